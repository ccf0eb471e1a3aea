"""The run: rows of a table in, answers out, and everything it knows in one file.

The rows go to an `Online`, or to a `Fleet` where there are keys, in blocks. The file holds their states, the settings,
the way the table is written, the rows read so far (number and digest), the length of the output, and the monitor.
Resumed on the same rows, a run goes on as if it had never stopped, bit for bit.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from driftgp.base import sealed
from driftgp.base.frames import Table
from driftgp.base.season import usual_step
from driftgp.fleet import Fleet
from driftgp.online import Online
from driftgp.predictions import Prediction
from driftgp.runs.choice import Chosen, choose
from driftgp.runs.leaks import find_leaks
from driftgp.runs.models import ByName
from driftgp.runs.oddities import Oddities
from driftgp.runs.settings import DEFAULT, SECONDS, RunSettings, settings_from
from driftgp.stream import order, store
from driftgp.stream.keys import key_column
from driftgp.stream.running_scores import PredictedRows, RunningScores
from driftgp.stream.settings import Settings as StreamSettings
from driftgp.tables.blocks import Block, Order, Reader, in_order_of_time, order_of, time_texts
from driftgp.tables.rows import Complain, FileRows
from driftgp.tables.written import Written, find_written

KIND = "run"
PEEK = 1000  # rows of a file that show its format; of a live stream only the first row
BLOCK = 1 << 13  # rows read, and answered, at a time
EACH, MOST = 64, 1 << 17  # rows of each series in a block, and largest number of all rows in it
_SAID = ("had no value in", "almost exactly", order.MIXED, order.LATE)  # by the summary, in its own words
_UNITS = {"seconds": 1.0, "milliseconds": 1e3}
_WRONG = (KeyError, TypeError, AttributeError, IndexError, OverflowError)


class Facts(NamedTuple):
    """Facts found from the first rows, which stay the same for the whole run."""

    written: Written
    chosen: Chosen
    forgetting: float | None = None  # λ from the half-life of a model by name
    watched: tuple[str, ...] = ()  # columns that hold numbers, or no value yet
    leaks: tuple[str, ...] = ()  # columns known with the row that give the target away
    keys: tuple[str, ...] = ()  # columns that may be the key, if several rows have one time
    sorted: int = 0  # rows that were older than the row before them, and for which the file was sorted
    live: bool = False  # whether rows came one by one, so that the first one alone was seen before the choices


class Answers(NamedTuple):
    """The answers of a run for N rows."""

    lines: np.ndarray
    times: Sequence[str]
    keys: Sequence[str]
    mean: np.ndarray
    std: np.ndarray
    low: np.ndarray
    high: np.ndarray
    actual: np.ndarray
    flags: list[str]

    def __len__(self) -> int:
        return len(self.lines)


class Saved(NamedTuple):
    """The contents of the file of a run."""

    settings: RunSettings
    facts: Facts
    stream: Online | Fleet
    monitor: RunningScores | None
    oddities: Oddities
    rows: int
    left_out: int
    digest: str
    output: int  # bytes
    remarks: list[str]


class Run:
    r"""Predict each row of a table before learning from it.

    >>> from driftgp.tables.rows import csv_rows
    >>> from driftgp.runs.settings import settings_from
    >>> lines = [b"t,y\n", *(f"{t},{t % 3}\n".encode() for t in range(40))]
    >>> run = Run(settings_from({"target": "y", "lags": 3, "model": "persistence", "warmup": 5}), csv_rows("", lines))
    >>> answers = next(run.answers())
    >>> len(answers), answers.flags[:2], float(answers.mean[-1]), float(answers.actual[-1])
    (40, ['cold', ''], 2.0, 0.0)
    """

    def __init__(
        self,
        settings: RunSettings,
        rows: FileRows,
        *,
        saved: Saved | None = None,
        live: bool = False,
        frozen: bool = False,
        growing: bool = False,
        monitored: bool = True,
        block: int | None = None,
        complain: Complain | None = None,
    ) -> None:
        """Take the rows, from the beginning, and a file to go on from.

        Args:
            settings: those of the run; of a resumed one, the same as before.
            rows: all rows, including those of an earlier run; for a live stream, the new rows.
            saved: what the file holds.
            live: answer the rows that are there at once.
            frozen: predict by what was saved, and learn nothing.
            growing: more rows are expected, so rows are taken in the order of the file.
            monitored: keep scores, and answer; without, rows are only learned from.
            block: rows that are answered at a time, at most; None for many.
            complain: called with a line about each malformed row that is left out.
        """
        self.settings, self.live, self.frozen = settings, live, frozen
        self._block = block
        self._source = rows
        rows.complain = (complain or (lambda _: None)) if settings.malformed == "skip" else None
        self._sorted: Block | None = None
        self._expected = 0  # number of series, from a first look at the file
        self.remarks: list[str] = []  # warnings of the stream, and of the first rows
        if saved is None:
            self.facts = self._found(rows, finite=not (live or growing))
            self.stream = _stream(settings, self.facts)
        else:
            self.facts, self.stream = saved.facts, saved.stream
        self.oddities = Oddities((*self.facts.watched, settings.target))
        self.monitor = self._monitor() if monitored else None
        filled = settings.with_their_row if settings.missing == "refuse" else ()
        self.reader = Reader(self._source, self.facts.written, key=settings.key, filled=filled)
        if frozen:
            self._check_frozen(rows)
        elif saved is not None:
            self._go_on_from(saved)
        self.before = self.rows  # rows that an earlier run has read

    # ---- what the first rows show ------------------------------------------------------------------------------------

    def _found(self, rows: FileRows, *, finite: bool) -> Facts:
        settings = self.settings
        first = rows.look(1 if self.live else PEEK)
        asked = settings.with_their_row
        written = find_written(
            rows,
            first,
            target=settings.target,
            time=settings.time,
            key=settings.key,
            features=asked,
            decimal=settings.decimal,
            time_format=settings.time_format,
        )
        if (settings.calendar or settings.holidays) and written.time and not written.dated:
            expected = (
                "a date such as 2020-01-31 13:00, for the calendar; for seconds since 1970 say --time-format seconds"
            )
            place = rows.index(written.time[0])
            raise rows.fault(int(first.numbers[0]), first.cells[0, place], place, expected)
        order = order_of(rows, written, settings.key) if finite else Order(0, 0)
        back, self._expected = order.back, order.series
        reader = Reader(self._source, written, key=settings.key)
        if back:
            self._sorted = in_order_of_time(list(reader.blocks(BLOCK)), written)
            sample: Block | None = self._sorted.rows(np.arange(min(PEEK, len(self._sorted))))
        else:
            sample = reader.sample(first)
        numbers = tuple(n for n, kind in reader.kinds.items() if kind != "text" and n != settings.target)
        facts = Facts(
            replace(written, kinds=reader.kinds), Chosen((), ()), watched=numbers, sorted=back, live=self.live
        )
        return facts if sample is None else self._judged(facts, sample, asked)

    def _judged(self, facts: Facts, sample: Block, asked: tuple[str, ...]) -> Facts:
        """Facts that follow from the first rows."""
        settings, written = self.settings, facts.written
        self.remarks += _seconds(sample.table, facts)
        y = np.asarray(sample.table.columns[settings.target].values, np.float64)
        at = _times(sample, written)
        keys = sample.table.columns[settings.key].values if settings.key else []
        days, horizon = written.days, settings.horizon
        chosen = choose(y, at, keys, dated=written.dated, days=days, horizon=horizon)
        columns = [name for name in asked if sample.table.columns[name].kind == "numbers"]
        X = np.array([sample.table.columns[name].values for name in columns]).reshape(len(columns), len(y)).T
        leaks = tuple(columns[place] for place in find_leaks(X, y, keys))
        repeated = settings.key is None and bool(written.time) and 2 * len(np.unique(at)) <= len(at)
        key = key_column(sample.table.columns, at, {settings.target, *written.time}) if repeated else None
        forgetting = None if settings.half_life is None else self._forgetting(written, at)
        return facts._replace(
            chosen=chosen,
            leaks=leaks,
            keys=() if key is None else (key,),
            forgetting=forgetting,
        )

    def _forgetting(self, written: Written, at: np.ndarray) -> float:
        """λ for one step of time, which is the usual time between rows, or one row."""
        half_life = self.settings.half_life_of
        assert half_life is not None  # noqa: S101
        (length, unit), text = half_life, self.settings.half_life
        if not unit:
            if written.dated:
                raise ValueError(f"half-life {text!r} has no unit, and times are dates: give it one, such as 7d")
            step = usual_step(at) if written.time else 1.0
        elif not written.dated:
            raise ValueError(f"half-life {text!r} needs a column of dates, and the file has none: name one with --time")
        else:
            step = usual_step(at / 1e6)
        if step is None:
            raise ValueError(
                f"half-life {text!r} needs rows at regular distances in time: the first rows are irregular, or too few"
            )
        return float(0.5 ** (step / (length * SECONDS.get(unit, 1.0))))

    def _monitor(self) -> RunningScores:
        watch = self.facts.watched if self.settings.alarms and not self.frozen else None
        stream = self.stream.settings
        return RunningScores(stream.horizon, stream.lags, watch=watch, naive=not self.frozen)

    # ---- rows --------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Rows that were read."""
        return self.reader.read

    @property
    def left_out(self) -> int:
        """Malformed rows that were passed over."""
        return self._source.left_out

    @property
    def series(self) -> int:
        """How many series there are."""
        return len(self.stream) if isinstance(self.stream, Fleet) else 1

    def answers(self) -> Iterator[Answers]:
        """Answers, block by block. After a malformed row come those of the rows before it, and then the error."""
        for block in self.blocks():
            yield self._answered(block)

    def blocks(self) -> Iterator[Block]:
        """The rows from here on, read and not answered."""
        whole = self._sorted
        while whole is not None and self.rows < len(whole):
            end = min(self.rows + self._size, len(whole))
            some = whole.rows(np.arange(self.rows, end))
            self.reader.read = end
            yield some
        fault: ValueError | None = None
        while whole is None and fault is None:
            block, fault = self.reader.block(self._size)
            if block is not None:
                yield block
            elif fault is None:
                return
        if fault is not None:
            raise fault

    @property
    def _size(self) -> int:
        """Rows of the next block. It is larger for many series, so that each of them has several rows in it."""
        return self._block or min(max(BLOCK, EACH * max(self.series, self._expected)), MOST)

    def _answered(self, block: Block) -> Answers:
        written, settings, table = self.facts.written, self.settings, block.table
        keys = table.columns[settings.key].values if settings.key else [""] * len(block)
        prediction, flags = self._predicted(table)
        there = settings.target in table.columns
        y = table.columns[settings.target].values if there else np.full(len(block), np.nan)
        if self.monitor is None:
            nothing = np.zeros(0)
            return Answers(block.lines, [], keys, nothing, nothing, nothing, nothing, y, [])
        times = time_texts(block, written)
        low, high = prediction.interval(settings.level)
        values = np.array([_values(table, name) for name in (*self.facts.watched, settings.target)])
        at = _times(block, written)
        wild = self.oddities.see(block.lines, keys, at, times, block.offsets, values.T)
        late = flags.get("late", np.zeros(len(block), bool))
        self.oddities.see_forecasts(block.lines, prediction.mean, late)
        wall = table.columns[written.time[0]].clock if written.dated else at
        whose: Sequence[Any] = keys if settings.key else [None] * len(block)
        base = None if settings.base is None else _values(table, settings.base)
        watched = values[:-1].T
        rows = PredictedRows(
            prediction, low, high, y, wall, written.dated, whose, flags, block.lines, times, watched, base
        )
        cold, alarms = self.monitor.see(rows)
        words = _flags({"cold": cold, **flags, "wild": wild}, alarms, len(block))
        return Answers(block.lines, times, keys, prediction.mean, prediction.std, low, high, y, words)

    def _predicted(self, table: Table) -> tuple[Prediction, dict[str, np.ndarray]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            if self.frozen:
                prediction, flags = self._foreseen(table), self._blanks(table)
            else:
                prediction = self.stream.evaluate(table)
                flags = prediction.source.evaluated.flags  # type: ignore[union-attr]
        for warning in caught:
            text = str(warning.message)
            # the summary says this about all rows, or from the first rows
            if text not in self.remarks and not any(part in text for part in _SAID):
                self.remarks.append(text)
        return prediction, flags

    def _foreseen(self, table: Table) -> Prediction:
        if isinstance(self.stream, Fleet):
            return self.stream.predict(table, unknown="start")
        return self.stream.predict(table)

    def _blanks(self, table: Table) -> dict[str, np.ndarray]:
        """Flags of rows that are predicted and not learned."""
        inputs = [table.columns[name].blank for name in self.settings.with_their_row]
        flags = {"carried": np.any(inputs, axis=0)} if inputs else {}
        target = table.columns.get(self.settings.target)
        return flags if target is None else {"missing": target.blank, **flags}

    # ---- files -------------------------------------------------------------------------------------------------------

    def to_bytes(self, output: int = 0) -> bytes:
        """Everything that is needed to continue, with the length of the output."""
        facts = self.facts._replace(written=replace(self.facts.written, kinds=self.reader.kinds))
        extra = {
            "settings": self.settings.to_json(),
            "facts": facts._replace(written=facts.written.to_json())._asdict(),  # type: ignore[arg-type]
            "rows": self.rows,
            "left_out": self.left_out,
            "digest": self.reader.digest,
            "output": output,
            "monitor": None if self.monitor is None else self.monitor.to_json(),
            "oddities": self.oddities.to_json(),
            "remarks": self.remarks,
        }
        return store.to_bytes(KIND, self.stream.streams, extra=extra)

    def _go_on_from(self, saved: Saved) -> None:
        rows = self._source
        _same_settings(saved.settings, self.settings)
        if rows.header != saved.facts.written.header:
            raise ValueError(
                f"{rows.place} has other columns than the checkpoint's table, whose were "
                f"{', '.join(saved.facts.written.header)}"
            )
        if self.live:
            self.reader.read = saved.rows
            self.reader.add_to_digest(saved.digest)
        else:
            self._read_again(saved)
        self.oddities, self.remarks = saved.oddities, saved.remarks
        self._source.left_out = saved.left_out
        if self.monitor is not None and saved.monitor is not None:
            self.monitor = saved.monitor

    def _read_again(self, saved: Saved) -> None:
        while self.rows < saved.rows:
            block, fault = self.reader.block(min(BLOCK, saved.rows - self.rows))
            if block is None or fault is not None:
                break
        if self.rows < saved.rows or self.reader.digest != saved.digest:
            raise ValueError(
                f"the first {saved.rows} rows of {self._source.place} are not those that the checkpoint has seen: "
                "resume on the same file, or on one that has only grown"
            )

    def _check_frozen(self, rows: FileRows) -> None:
        settings = self.settings
        needed = (*settings.with_their_row, *self.facts.written.time)
        for name in (*needed, *([settings.key] if settings.key else [])):
            rows.index(name)


def read_checkpoint(data: bytes) -> Saved:
    """What the file of a run holds; other data are refused."""
    extra = sealed.opened(KIND, data)["extra"]
    try:
        settings = settings_from({name: value for name, value in extra["settings"].items() if value is not None})
        facts = _facts(extra["facts"])
        given = None if settings.model == DEFAULT else ByName(settings, facts.forgetting)
        streams = store.from_bytes(KIND, data, given)
        stream = Online.of(streams) if settings.key is None else Fleet.of(streams)
        oddities = Oddities((*facts.watched, settings.target))
        oddities.restore(extra["oddities"])
        monitor = None
        if extra["monitor"] is not None:
            watch = facts.watched if settings.alarms else None
            monitor = RunningScores(settings.horizon, streams.settings.lags, watch=watch)
            monitor.restore(extra["monitor"])
        rows, left_out, output = (_count(extra[name]) for name in ("rows", "left_out", "output"))
        remarks = [str(text) for text in extra["remarks"]]
        return Saved(settings, facts, stream, monitor, oddities, rows, left_out, str(extra["digest"]), output, remarks)
    except _WRONG as error:
        raise ValueError(f"run is damaged: its header is not complete ({error})") from error


def _facts(stored: dict[str, Any]) -> Facts:
    lags, calendar = stored["chosen"]
    forgetting = stored["forgetting"]
    if forgetting is not None and not 0.0 < float(forgetting) <= 1.0:
        raise ValueError(f"run is damaged: a rate of forgetting must lie in (0, 1]; got {forgetting!r}")
    return Facts(
        Written.from_json(stored["written"]),
        Chosen(tuple(map(int, lags)), tuple(map(str, calendar))),
        forgetting,
        watched=tuple(map(str, stored["watched"])),
        leaks=tuple(map(str, stored["leaks"])),
        keys=tuple(map(str, stored["keys"])),
        sorted=_count(stored["sorted"]),
        live=stored.get("live") is True,
    )


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"run is damaged: it has {str(value)[:60]!r} where a count should be")
    return value


def _stream(settings: RunSettings, facts: Facts) -> Online | Fleet:
    """The stream, or the fleet, that rows go to."""
    written = facts.written
    chosen = settings.stream(written.time[0] if written.time else None, facts.chosen.lags, facts.chosen.calendar)
    if chosen.needs_dates and not written.dated:
        raise ValueError("the calendar needs a column of dates, and the file has none: name one with --time")
    given = {field.name: getattr(chosen, field.name) for field in fields(StreamSettings)}
    start = None if settings.model == DEFAULT else ByName(settings, facts.forgetting)
    if start is not None:
        start.model(1)  # refuses a bad kernel now, not with the first row
    if settings.key is None:
        del given["key"]
        return Online(start, **given)
    return Fleet(start, **given)


def _seconds(table: Table, facts: Facts) -> Iterator[str]:
    """A sentence about the first column of seconds or milliseconds since 1970, if no column is the time."""
    for name in () if facts.written.time else facts.watched:
        values = _values(table, name)
        unit = next((unit for unit, second in _UNITS.items() if _is_since_1970(values / second)), None)
        if unit is not None:
            yield f"column {name!r} looks like {unit} since 1970: say --time {name} --time-format {unit}"
            return


def _is_since_1970(seconds: np.ndarray) -> bool:
    """Whether numbers are times between 2001 and 2065, each later than the one before, or each earlier."""
    steps = np.diff(seconds)
    one_way = bool((steps > 0.0).all() or (steps < 0.0).all())
    return len(seconds) > 2 and one_way and 1e9 <= seconds.min() and seconds.max() <= 3e9


def _times(block: Block, written: Written) -> np.ndarray:
    if not written.time:
        return np.full(len(block), np.nan)
    return np.asarray(block.table.columns[written.time[0]].values, np.float64)


def _values(table: Table, name: str) -> np.ndarray:
    """A column of numbers, NaN in every row if the table has none."""
    column = table.columns.get(name)
    return column.values if column is not None and column.kind == "numbers" else np.full(len(table), math.nan)


def _flags(marks: dict[str, np.ndarray], alarms: dict[int, list[str]], rows: int) -> list[str]:
    """The flags of each row, in words."""
    words: dict[int, list[str]] = {}
    for name, marked in marks.items():
        for row in np.flatnonzero(marked).tolist():
            words.setdefault(row, []).append(name)
    for row, raised in alarms.items():
        words.setdefault(row, []).extend(raised)
    made = [""] * rows
    for row, own in words.items():
        made[row] = " ".join(own)
    return made


def _given(value: Any) -> str:
    return "not given" if value is None else repr(value)


def _same_settings(before: RunSettings, now: RunSettings) -> None:
    for name, value in before.to_json().items():
        given = now.to_json()[name]
        if given != value:
            raise ValueError(
                f"{name.replace('_', '-')} is {_given(given)}, and the checkpoint was made with {_given(value)}: "
                "resume with the same settings, or start a new checkpoint"
            )
