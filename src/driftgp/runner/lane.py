"""One series of a run: its past rows, its model, and the labels that have yet to come."""

import math
import statistics
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from driftgp import checkpoint, gate
from driftgp.alarms import Alarms
from driftgp.features import Features, History
from driftgp.model import Model, State
from driftgp.runner.clock import Clock
from driftgp.runner.models import build_model
from driftgp.runner.naive import Naive
from driftgp.runner.observed import Observed
from driftgp.runner.samples import Sample
from driftgp.runner.scores import Scores
from driftgp.runner.settings import DEFAULT, SECONDS, Settings
from driftgp.runner.stack import Seat, Stacks
from driftgp.runner.stored import numbers, positive
from driftgp.runner.work import Answer, Received, Said, Waiting, Work
from driftgp.wrappers import Watched

_INTERVALS = 1000  # times between rows from which the usual one is found


class Lane:
    """A series: rows in, answers out.

    The label of a row counts as known `horizon` rows later. The first labels make up the warm-up batch; the one after
    them starts the model. From then on every row brings one label to learn from, and is then predicted.
    """

    def __init__(self, settings: Settings, features: Features) -> None:
        """Start with nothing."""
        self.settings, self.features = settings, features
        self.history = History(features)
        self.naive = Naive(settings.seasonal_lags, settings.horizon)
        self.observed = Observed((*features.columns, *features.known, settings.target))
        self.waiting = Waiting(np.zeros((0, len(features.names))), np.zeros(0), np.zeros(0))
        self.batch: list[tuple[list[float], float]] = []
        self.intervals: list[float] = []  # until the model starts
        self.unit = 1.0  # the usual time between rows
        self.clock = Clock()
        self.scores = Scores()
        self.alarms = Alarms(features.names, horizon=settings.horizon)
        self.model: Model | None = None
        self.issued: np.ndarray | None = None  # forecasts of the rows in `waiting`, where the horizon is more than 1
        self._restored: State | None = None  # until there is a seat for it
        self._seat: Seat | None = None
        self._blob = b""  # of the state, while it has not changed

    # ---- rows in

    def receive(self, samples: Sequence[Sample]) -> Received:
        """Take rows in. Where that gives the series a model, it is to be seated, and begun, before it works."""
        y, at = np.array([[sample.target, sample.at] for sample in samples]).T
        columns = np.array([sample.columns for sample in samples], np.float64)
        known = np.array([sample.known for sample in samples], np.float64)
        X = self.history.extend(columns, known, y, [sample.clock for sample in samples])
        wild, bounds = self.observed.see(samples, at, np.concatenate([columns, known, y[:, None]], 1))
        seasonal = self.naive.seasonal(at, y, dated=samples[0].clock is not None)
        interval, jumps = self.clock.since(at)
        gaps = np.isnan(X).any(1)
        flags = self._remarks(y, gaps, {"unordered": interval < 0.0, "jump": jumps, "wild": wild})
        interval = np.maximum(interval, 0.0)
        ready = slice(len(samples) - len(X), None)  # the rows before have not enough of a past
        rows = self.waiting.then(Waiting(X, y[ready], interval[ready]))
        first = self._first(rows, interval) if self.model is None else 0
        work = self._work(rows, first)
        naive = self.naive.forecasts(rows.y[: max(len(rows.y) - self.settings.horizon, 0)], first, seasonal)
        self.waiting = rows.rows(slice(max(len(rows.y) - self.settings.horizon, 0), None))
        if len(work.y):
            self._blob = b""
        return Received(work, gaps[len(gaps) - len(work.y) :], naive, bounds[len(y) - len(work.y) :], flags)

    def _remarks(self, y: np.ndarray, gaps: np.ndarray, others: dict[str, np.ndarray]) -> list[list[str]]:
        """What is to be said of each row; counts of them."""
        missing, ready = np.isnan(y), len(y) - len(gaps)
        self.scores.rows += len(y)
        self.scores.missing += int(missing.sum())
        self.scores.carried += int(gaps.sum())
        flags: list[list[str]] = [[] for _ in y]
        remarks = (
            ("missing", np.flatnonzero(missing)),
            ("skipped" if self.settings.missing == "skip" else "carried", ready + np.flatnonzero(gaps)),
            *((name, np.flatnonzero(rows)) for name, rows in others.items()),
        )
        for remark, places in remarks:
            for place in places:
                flags[place].append(remark)
        return flags

    def _first(self, rows: Waiting, interval: np.ndarray) -> int:
        """The first label in `rows` to learn from, once those before it have filled the warm-up batch."""
        labels = max(len(rows.y) - self.settings.horizon, 0)
        for i in range(labels):
            if len(self.batch) >= self.settings.rows_of_warmup:
                after = labels - i - 1  # rows that come after the one with which the label is out
                self._note(interval[: len(interval) - after])
                self._choose()
                return i
            if math.isfinite(rows.y[i]) and not (self.settings.missing == "skip" and np.isnan(rows.X[i]).any()):
                self.batch.append((rows.X[i].tolist(), float(rows.y[i])))
        self._note(interval)
        return labels

    def _note(self, interval: np.ndarray) -> None:
        self.intervals += interval[interval > 0.0].tolist()
        del self.intervals[_INTERVALS:]

    def _work(self, rows: Waiting, first: int) -> Work:
        """The labels that are out, from one on, and the rows with which they came."""
        h = self.settings.horizon
        labels, later = rows.rows(slice(first, max(len(rows.y) - h, 0))), rows.rows(slice(first + h, None))
        y, elapsed = labels.y, np.ones(len(labels.y))
        if self.settings.missing == "skip":  # time passes
            y = np.where(np.isnan(labels.X).any(1), np.nan, y)
        if self.settings.half_life is not None:
            elapsed = np.where(np.isfinite(labels.interval), labels.interval / self.unit, 1.0)
        return Work(self._inputs(labels.X), y, elapsed, self._inputs(later.X), later.y)

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        """Inputs as the model sees them: of a row to be skipped, zeros, from which nothing is learned."""
        return np.where(np.isnan(X).any(1)[:, None], 0.0, X) if self.settings.missing == "skip" else X

    # ---- the model

    def _choose(self) -> None:
        """Have a model, by the rows so far."""
        self.unit = statistics.median(self.intervals) if self.intervals else 1.0
        self.intervals = []
        self.model = build_model(self.settings, *self._warmup(), self._forgetting())

    def _warmup(self) -> tuple[np.ndarray, np.ndarray]:
        X = np.array([x for x, _ in self.batch], np.float64).reshape(len(self.batch), len(self.features.names))
        return X, np.array([y for _, y in self.batch], np.float64)

    def sit(self, stacks: Stacks) -> bool:
        """Have a place for the state, if there is a model; whether it is now to begin."""
        if self.model is None or self._seat is not None:
            return False
        self._seat = stacks.admit(self.model)
        if self._restored is None:
            return True
        self.seat.stack.state(self.seat.slot).record[...] = self._restored.record
        self._restored = None
        return False

    def begin(self, work: Work) -> None:
        """Start the model on the warm-up batch, before its first work."""
        stack, slot = self.seat
        stack.start(slot, *self._warmup())
        self.batch = []
        h = self.settings.horizon
        if h > 1:
            self.issued = stack.forecast(slot, np.concatenate([work.x, self._inputs(self.waiting.X)])[:h])

    def run_late(self, work: Work) -> np.ndarray:
        """Do the work where labels come more than a row late."""
        assert self.issued is not None  # noqa: S101
        made = self.seat.stack.run_late(self.seat.slot, work, self.issued)
        self.issued = made[len(work.y) :]
        return made[len(self.issued) :]

    @property
    def seat(self) -> Seat:
        """Where the state is."""
        assert self._seat is not None  # noqa: S101
        return self._seat

    @property
    def state(self) -> State | None:
        """The model's state, None if it has not started."""
        return self._restored if self._seat is None else self._seat.stack.state(self._seat.slot)

    def _forgetting(self) -> float | None:
        """λ for one unit of time, which is the usual time between rows, or one row."""
        half_life = self.settings.half_life_of
        if half_life is None:
            return None
        length, unit = half_life
        return float(0.5 ** (self.unit / (length * SECONDS.get(unit, 1.0))))

    # ---- answers out

    def answer(self, samples: Sequence[Sample], received: Received, said: Said | None) -> list[Answer]:
        """Answer rows with what the model said of the last of them; before it started there is nothing to say."""
        work, flags = received.work, received.flags
        first = len(samples) - len(work.y)
        ends = np.full((3, len(samples)), np.nan)  # mean, low and high
        for remarks in flags[:first]:
            remarks.insert(0, "warmup")
        if said is not None:
            if self.settings.missing == "skip":
                said = said.without(received.gaps)
            lines = [sample.line for sample in samples[first:]]
            self.scores.count(said, work.y_next, received.naive, lines)
            self.observed.see_forecasts(lines, said.mean, received.bounds)
            ends[:, first:] = said[:3]
            scores, widths = said.score.tolist(), (said.high - said.low).tolist()
            for remarks, *row in zip(flags[first:], scores, work.x_next, widths, strict=True):
                found = self.alarms.update(*row)
                remarks += [alarm.flag for alarm in found]
                self.scores.alarms += len(found)
        return [
            Answer(sample.line, sample.time, sample.group, mean, low, high, sample.target, tuple(remarks))
            for sample, (mean, low, high), remarks in zip(samples, ends.T.tolist(), flags, strict=True)
        ]

    # ---- checkpoints

    def to_json(self) -> dict[str, Any]:
        """All but the model's state and its forecasts."""
        return {
            "history": self.history.to_json(),
            "waiting": [array.tolist() for array in self.waiting],
            "batch": self.batch,
            "intervals": self.intervals,
            "unit": self.unit,
            "clock": self.clock.to_json(),
            "scores": self.scores.to_json(),
            "naive": self.naive.to_json(),
            "observed": self.observed.to_json(),
            "alarms": self.alarms.to_json(),
            "started": self.model is not None,
        }

    def parts(self) -> tuple[bytes, bytes]:
        """The model's state, and the forecasts whose labels have yet to come; nothing where there is none."""
        state = self.state
        if state is not None and not self._blob:
            self._blob = checkpoint.to_bytes(state.model, state)
        issued = self.issued
        return self._blob, b"" if issued is None else issued.astype(issued.dtype.newbyteorder("<")).tobytes()

    @classmethod
    def restored(
        cls,
        settings: Settings,
        features: Features,
        stored: dict[str, Any],
        parts: tuple[bytes, bytes],
    ) -> Self:
        """The lane that `to_json` and `parts` describe."""
        lane = cls(settings, features)
        D, C, history = len(features.names), len(features.columns), stored["history"]
        lane.history.restore([numbers(row, C) for row in history["columns"]], numbers(history["targets"]))
        X, y, interval = stored["waiting"]
        X = np.array([numbers(row, D) for row in X]).reshape(len(X), D)
        lane.waiting = Waiting(X, *(np.array(numbers(values, len(X))) for values in (y, interval)))
        lane.batch = [(numbers(x, D), numbers([y])[0]) for x, y in stored["batch"]]
        lane.intervals, lane.unit = numbers(stored["intervals"]), positive(stored["unit"])
        lane.clock = Clock.from_json(stored["clock"])
        lane.scores = Scores.from_json(stored["scores"])
        lane.naive.restore(stored["naive"])
        lane.observed = Observed.from_json(lane.observed.columns, stored["observed"])
        lane.alarms.restore(stored["alarms"])
        if stored["started"]:
            lane._restore_model(*parts)
        return lane

    def _restore_model(self, blob: bytes, issued: bytes) -> None:
        """Take back the model, of which only a checkpoint knows how the default was chosen, and what it has issued."""
        h, D = self.settings.horizon, len(self.features.names)
        named = self.settings.model != DEFAULT
        model = build_model(self.settings, np.zeros((0, D)), np.zeros(0), self._forgetting()) if named else None
        state = checkpoint.from_bytes(model, blob)
        dtype = state.model.forecast_dtype(1).newbyteorder("<")
        sound = isinstance(state.model, Watched) and (state.layout.inputs, state.layout.outputs) == (D, None)
        if not sound or len(self.waiting.y) != h or len(issued) != (h * dtype.itemsize if h > 1 else 0):
            raise ValueError("the checkpoint is damaged: a model in it is not that of its series")
        self.model, self._restored, self._blob = state.model, state, blob
        if h > 1:
            self.issued = np.frombuffer(issued, dtype).astype(dtype.newbyteorder("="))
            if not gate.sound_forecasts(self.issued):
                raise ValueError("the checkpoint is damaged: a forecast in it is not finite")
