"""The run: rows in, answers out, and all that it knows in one checkpoint.

A checkpoint holds the settings, what each column is, how many rows were read and a digest of them, how long the output
was, and of every series the model's state, the past rows and the labels yet to come. Resumed on the same rows, a run
goes on as if it had never stopped, bit for bit.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from driftgp.cores import each
from driftgp.data.ahead import Ahead
from driftgp.data.rows import Row, Rows
from driftgp.runner import bundle
from driftgp.runner.lane import Lane
from driftgp.runner.leaks import without_leaks
from driftgp.runner.models import build_model
from driftgp.runner.samples import Interpreter, Sample
from driftgp.runner.schema import Schema, features_of, find_schema
from driftgp.runner.scores import Scores
from driftgp.runner.settings import Settings, settings_from
from driftgp.runner.stack import Stacks
from driftgp.runner.stored import text, whole
from driftgp.runner.work import Answer, Said, Work

PEEK = 1000  # rows of a file by which columns are known for what they are; of a live stream the first one
BLOCK = 128  # rows read, and answered, at a time
MOST_LANES = 64  # the series for which a block grows, so that each has several rows in it

Complain = Callable[[str], None]


class Saved(NamedTuple):
    """What a checkpoint of a run holds."""

    settings: Settings
    schema: Schema
    lanes: dict[str, Lane]
    rows: int
    digest: str
    output: int  # bytes


class Runner:
    r"""Predict each row of a table before learning from it.

    >>> from driftgp.data.rows import csv_rows
    >>> lines = [b"t,y\n", *(f"{t},{t % 3}\n".encode() for t in range(40))]
    >>> settings = settings_from({"target": "y", "features": [], "lags": 3, "model": "persistence", "warmup": 5})
    >>> runner = Runner(settings, csv_rows("here", lines))
    >>> answers = [answer for block in runner.blocks() for answer in block]
    >>> len(answers), answers[0].flags, answers[-1].mean, answers[-1].actual
    (40, ('warmup',), 2.0, 0.0)
    """

    def __init__(
        self,
        settings: Settings,
        rows: Rows,
        *,
        saved: Saved | None = None,
        live: bool = False,
        complain: Complain | None = None,
    ) -> None:
        """Take the rows, from the beginning, and a checkpoint to go on from.

        Args:
            settings: those of the run; of a resumed one, the same as before.
            rows: all rows, also those read before the checkpoint; of a live stream, the rows since then.
            saved: the checkpoint.
            live: answer each row at once.
            complain: called with a line about each malformed row that is left out.
        """
        self.settings, self.live = settings, live
        self._rows, self._complain = rows, complain or (lambda _: None)
        self._source = Ahead(self._readable())
        self._digest = hashlib.blake2b(digest_size=16)
        self.rows = 0
        self.left_out = 0
        if saved is None:
            first = self._source.look(1 if live else PEEK)
            if not first:
                next(self._source, None)  # raises what is wrong with the first row, if anything is
                raise ValueError(f"{rows.place} has a header and no rows: there is nothing to predict")
            schema = find_schema(settings, rows, first)
            self.schema = without_leaks(settings, schema, _readable_samples(Interpreter(settings, schema, rows), first))
            self.lanes: dict[str, Lane] = {}
        else:
            self.schema, self.lanes = saved.schema, saved.lanes
            self._go_on_from(saved)
        self.features = features_of(settings, self.schema)
        D = len(self.features.names)
        build_model(settings, np.zeros((0, D)), np.zeros(0), None)  # refuses a bad kernel now, not after the warm-up
        self._stacks = Stacks(D)
        self._interpreter = Interpreter(settings, self.schema, rows)

    # ---- rows

    def blocks(self) -> Iterator[list[Answer]]:
        """Answers, block by block. After a malformed row come those of the rows before it, and then the error."""
        fault: ValueError | None = None
        while fault is None:
            samples, fault = self._read(1 if self.live else BLOCK * min(max(len(self.lanes), 1), MOST_LANES))
            if samples:
                yield self._answers(samples)
            elif fault is None:
                return
        raise fault

    def samples(self, most: int | None = None) -> list[Sample]:
        """The rows from here on, or so many of them, read and not answered."""
        samples, fault = self._read(sys.maxsize if most is None else most)
        if fault is not None:
            raise fault
        return samples

    def _read(self, count: int) -> tuple[list[Sample], ValueError | None]:
        samples: list[Sample] = []
        while len(samples) < count:
            try:
                row = next(self._source, None)
                if row is None:
                    break
                samples.append(self._interpreter.sample(row))
                self._consume(row)
            except ValueError as error:
                if self.settings.malformed == "stop":
                    return samples, error
                self._leave_out(error)
        return samples, None

    def _consume(self, row: Row) -> None:
        self.rows += 1
        self._digest.update("\x1f".join(row.cells).encode("utf-8", "surrogatepass") + b"\n")

    def _leave_out(self, error: ValueError) -> None:
        self.left_out += 1
        self._complain(f"left out: {error}")

    def _readable(self) -> Iterator[Row]:
        """Rows; those that cannot even be split into cells are refused or left out here."""
        while True:
            try:
                yield next(self._rows)
            except StopIteration:
                return
            except ValueError as error:
                if self.settings.malformed == "stop":
                    raise
                self._leave_out(error)

    def _answers(self, samples: list[Sample]) -> list[Answer]:
        """Answers in the order of the rows: each series has its own past, and all of them work at once."""
        places: dict[str, list[int]] = {}
        for place, sample in enumerate(samples):
            places.setdefault(sample.group, []).append(place)
        for group in places:
            if group not in self.lanes:
                self.lanes[group] = Lane(self.settings, self.features)
        lanes = [self.lanes[group] for group in places]
        own = [[samples[place] for place in where] for where in places.values()]
        received = [lane.receive(rows) for lane, rows in zip(lanes, own, strict=True)]
        said = self._advance(lanes, [taken.work for taken in received])
        answers: list[Answer | None] = [None] * len(samples)
        for lane, rows, taken, word, where in zip(lanes, own, received, said, places.values(), strict=True):
            for place, answer in zip(where, lane.answer(rows, taken, word), strict=True):
                answers[place] = answer
        return answers  # type: ignore[return-value]

    def _advance(self, lanes: list[Lane], works: list[Work]) -> list[Said | None]:
        """Have the models of several series do their work, those of one kind together; None where there is none."""
        new = [i for i, lane in enumerate(lanes) if lane.sit(self._stacks)]
        each(lambda i: lanes[i].begin(works[i]), new)
        members: dict[int, list[int]] = {}
        for i, work in enumerate(works):
            if len(work.y):
                members.setdefault(id(lanes[i].seat.stack), []).append(i)
        said: list[Said | None] = [None] * len(lanes)
        for some in members.values():
            words = self._together([lanes[i] for i in some], [works[i] for i in some])
            for i, word in zip(some, words, strict=True):
                said[i] = word
        return said

    def _together(self, lanes: list[Lane], works: list[Work]) -> list[Said]:
        """What the models of one stack say, after the labels that came."""
        stack = lanes[0].seat.stack
        if self.settings.horizon == 1:
            made = stack.run([lane.seat.slot for lane in lanes], works)
        else:
            made = np.concatenate([lane.run_late(work) for lane, work in zip(lanes, works, strict=True)])
        said = stack.say(made, np.concatenate([work.y_next for work in works]), self.settings.level)
        ends = np.cumsum([len(work.y) for work in works])[:-1]
        return [Said(*word) for word in zip(*(np.split(array, ends) for array in said), strict=True)]

    # ---- results

    def summary(self) -> dict[str, dict[str, Any]]:
        """Scores of every series, and of all together under an empty name."""
        scores = {group: lane.scores for group, lane in self.lanes.items()}
        total = Scores()
        for own in scores.values():
            total = total.plus(own)
        return {group: own.summary() for group, own in scores.items()} | {"": total.summary()}

    # ---- checkpoints

    def to_bytes(self, output: int = 0) -> bytes:
        """All that is needed to go on, with the length that the output had."""
        header = {
            "settings": self.settings.to_json(),
            "schema": self.schema.to_json(),
            "rows": self.rows,
            "digest": self._digest.hexdigest(),
            "output": output,
            "lanes": [[group, lane.to_json()] for group, lane in self.lanes.items()],
        }
        return bundle.pack(header, [part for lane in self.lanes.values() for part in lane.parts()])

    def _go_on_from(self, saved: Saved) -> None:
        _same_settings(saved.settings, self.settings)
        if self._rows.header != saved.schema.header:
            raise ValueError(
                f"{self._rows.place} has other columns than the checkpoint's table, whose were {saved.schema.header}"
            )
        if self.live:
            self.rows = saved.rows
            self._digest.update(saved.digest.encode())
            return
        while self.rows < saved.rows:
            row = next(self._source, None)
            if row is None:
                break
            if self._counted(row):
                self._consume(row)
        if self.rows < saved.rows or self._digest.hexdigest() != saved.digest:
            raise ValueError(
                f"the first {saved.rows} rows of {self._rows.place} are not those that the checkpoint has seen: "
                "resume on the same file, or on one that has only grown"
            )

    def _counted(self, row: Row) -> bool:
        """Whether a row that comes again was counted: all were, but for those left out for a bad cell."""
        if self.settings.malformed == "stop":
            return True
        try:
            Interpreter(self.settings, self.schema, self._rows).sample(row)
        except ValueError:
            self.left_out += 1
            return False
        return True


def read_checkpoint(data: bytes) -> Saved:
    """Return what a run's checkpoint holds, or refuse data that is none."""
    header, parts = bundle.unpack(data)
    try:
        settings = settings_from({name: value for name, value in header["settings"].items() if value is not None})
        schema = Schema.from_json(header["schema"])
        features = features_of(settings, schema)
        lanes = {
            text(group): Lane.restored(settings, features, stored, own)
            for (group, stored), own in zip(header["lanes"], zip(parts[::2], parts[1::2], strict=True), strict=True)
        }
        return Saved(settings, schema, lanes, whole(header["rows"]), text(header["digest"]), whole(header["output"]))
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the checkpoint is damaged: its header is not complete ({error})") from error


def _readable_samples(interpreter: Interpreter, rows: list[Row]) -> list[Sample]:
    """Those of the rows that can be read; the others are refused, or left out, when it is their turn."""
    samples = []
    for row in rows:
        with suppress(ValueError):
            samples.append(interpreter.sample(row))
    return samples


def _same_settings(before: Settings, now: Settings) -> None:
    for name, value in before.to_json().items():
        given = now.to_json()[name]
        if given != value:
            raise ValueError(
                f"{name.replace('_', '-')} is {given!r}, and the checkpoint's run had {value!r}: "
                "resume with the same settings, or start a new checkpoint"
            )
