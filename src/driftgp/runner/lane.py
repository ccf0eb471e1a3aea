"""One series of a run: its past rows, its model, and the labels that have yet to come."""

import math
import statistics
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from driftgp import checkpoint
from driftgp.features import Features, History
from driftgp.runner.crew import Crew, Member
from driftgp.runner.loop import Forecast, Step, advance
from driftgp.runner.models import build_model
from driftgp.runner.reach import Reach
from driftgp.runner.schema import Sample
from driftgp.runner.scores import Scores
from driftgp.runner.settings import SECONDS, Settings
from driftgp.runner.stored import number, numbers, positive

_INTERVALS = 1000  # times between rows from which the usual one is found

NOTHING = Forecast(math.nan, math.nan, math.nan, math.nan, 0.0)


class Answer(NamedTuple):
    """What a run says of a row."""

    line: int
    time: str
    group: str
    mean: float
    low: float
    high: float
    actual: float
    flags: tuple[str, ...]


class Waiting(NamedTuple):
    """A row whose label is not out yet."""

    x: np.ndarray | None  # None where the past does not reach back far enough
    y: float
    interval: float  # time since the row before, NaN without times


class Prepared(NamedTuple):
    """Rows received."""

    steps: list[Step]  # of the rows since the model started
    flags: list[list[str]]


class Lane:
    """A series: rows in, answers out.

    The label of a row counts as known `horizon` rows later. The first labels make up the warm-up batch; the one after
    them starts the model. From then on every row brings one label to learn from, and is then predicted.
    """

    def __init__(self, settings: Settings, features: Features) -> None:
        """Start with nothing."""
        self.settings, self.features = settings, features
        self.history = History(features)
        self.waiting: deque[Waiting] = deque()
        self.batch: list[tuple[list[float], float]] = []
        self.intervals: list[float] = []  # until the model starts
        self.unit = 1.0  # the usual time between rows
        self.last = math.nan  # time of the last row
        self.scores = Scores()
        self.reach = Reach(settings.level, settings.horizon)
        self.model: Any = None
        self.state: Any = None  # or that of the member
        self.member: Member | None = None  # where the model is one of a crew
        self._blob = b""  # of the state, while it has not changed

    # ---- rows

    def take(self, samples: list[Sample]) -> list[Answer]:
        """Answer rows, in their order."""
        prepared = self.prepare(samples)
        return self.answer(samples, prepared, self._advance(prepared.steps))

    def prepare(self, samples: list[Sample]) -> "Prepared":
        """Receive rows, and say what the model is to do."""
        steps: list[Step] = []
        flags: list[list[str]] = []
        for sample in samples:
            row, remarks = self._receive(sample)
            flags.append(remarks)
            step = self._step(row)
            if step is None:
                remarks.insert(0, "warmup")
            else:
                steps.append(step)
        if steps:
            self._blob = b""
        return Prepared(steps, flags)

    def answer(self, samples: list[Sample], prepared: "Prepared", forecasts: list[Forecast]) -> list[Answer]:
        """Answer rows with what the model said of the last of them; before it started there is nothing to say."""
        forecasts = [NOTHING] * (len(samples) - len(forecasts)) + forecasts
        return [self._answer(*each) for each in zip(samples, forecasts, prepared.flags, strict=True)]

    def join(self, crew: Crew) -> Member | None:
        """Have the model work in a crew from now on, if it has started."""
        if self.member is None and self.model is not None:
            self.member, self.state = crew.enrol(self.model, self.state), None
        return self.member

    def _receive(self, sample: Sample) -> tuple[Waiting, list[str]]:
        """Turn a sample into inputs, and remember it."""
        x = self.history.inputs(sample.columns, sample.known, sample.clock) if self.history.full else None
        self.history.push(sample.columns, sample.target)
        interval = sample.at - self.last
        flags = []
        if math.isnan(sample.target):
            flags.append("missing")
            self.scores.missing += 1
        if x is not None and np.isnan(x).any():
            flags.append("skipped" if self.settings.missing == "skip" else "carried")
            self.scores.carried += 1
        if interval < 0.0:
            flags.append("unordered")
        self.last = sample.at if math.isnan(self.last) else max(self.last, sample.at)
        self.scores.rows += 1
        return Waiting(x, sample.target, max(interval, 0.0)), flags

    def _step(self, row: Waiting) -> Step | None:
        """The label that is now out and the row to predict; None while the model has not started."""
        self.waiting.append(row)
        if self.model is None and row.interval > 0.0 and len(self.intervals) < _INTERVALS:
            self.intervals.append(row.interval)
        if len(self.waiting) <= self.settings.horizon:
            return None
        label = self.waiting.popleft()
        if label.x is None:
            return None
        if self.model is None:
            if len(self.batch) < self.settings.rows_of_warmup:
                self._collect(label)
                return None
            self._start()
        return Step(label.x, label.y, self._elapsed(label), row.x, row.y)

    def _collect(self, label: Waiting) -> None:
        usable = math.isfinite(label.y) and (self.settings.missing != "skip" or np.isfinite(label.x).all())  # type: ignore[arg-type]
        if usable and label.x is not None:
            self.batch.append((label.x.tolist(), label.y))

    def _start(self) -> None:
        self.unit = statistics.median(self.intervals) if self.intervals else 1.0
        self.model = self._build()
        X = np.array([x for x, _ in self.batch], np.float64).reshape(len(self.batch), len(self.features.names))
        self.state = self.model.init(X, np.array([y for _, y in self.batch], np.float64))
        self.batch, self.intervals = [], []

    def _advance(self, steps: list[Step]) -> list[Forecast]:
        if not steps:
            return []
        self.state, forecasts = advance(self.model, self.state, steps, self.settings.level)
        return forecasts

    def _answer(self, sample: Sample, forecast: Forecast, flags: list[str]) -> Answer:
        if self.settings.calibrate:
            forecast = self.reach.stretch(forecast, sample.target)
        self.scores.count(forecast, sample.target)
        if forecast.alarms > self.scores.alarms:
            flags.append("alarm")
            self.scores.alarms = int(forecast.alarms)
        return Answer(sample.line, sample.time, sample.group, *forecast[:3], sample.target, tuple(flags))

    # ---- forgetting

    def _build(self) -> Any:
        return build_model(self.settings, len(self.features.names), self._forgetting())

    def _forgetting(self) -> float | None:
        """λ for one unit of time, which is the usual time between rows, or one row."""
        half_life = self.settings.half_life_of
        if half_life is None:
            return None
        number, unit = half_life
        return float(0.5 ** (self.unit / (number * SECONDS.get(unit, 1.0))))

    def _elapsed(self, row: Waiting) -> float:
        """Time since the row before; a row without a half-life in time is a unit of time."""
        timed = self.settings.half_life is not None and math.isfinite(row.interval)
        return row.interval / self.unit if timed else 1.0

    # ---- checkpoints

    def to_json(self) -> dict[str, Any]:
        """All but the model's state."""
        return {
            "history": self.history.to_json(),
            "waiting": [[None if row.x is None else row.x.tolist(), row.y, row.interval] for row in self.waiting],
            "batch": self.batch,
            "intervals": self.intervals,
            "unit": self.unit,
            "last": self.last,
            "scores": self.scores.to_json(),
            "reach": self.reach.to_json(),
            "started": self.model is not None,
        }

    def blob(self) -> bytes:
        """The model's state, or nothing if there is none."""
        if self.model is not None and not self._blob:
            self._blob = checkpoint.to_bytes(self.model, self.state if self.member is None else self.member.state)
        return self._blob

    @classmethod
    def restored(cls, settings: Settings, features: Features, stored: dict[str, Any], blob: bytes) -> "Lane":
        """The lane that `to_json` and `blob` describe."""
        lane = cls(settings, features)
        D = len(features.names)
        for row in stored["history"]["columns"]:
            numbers(row, len(features.columns))
        lane.history.restore(stored["history"])
        lane.waiting.extend(
            Waiting(None if x is None else np.array(numbers(x, D)), number(y), number(interval))
            for x, y, interval in stored["waiting"]
        )
        lane.batch = [(numbers(x, D), number(y)) for x, y in stored["batch"]]
        lane.intervals, lane.unit = numbers(stored["intervals"]), positive(stored["unit"])
        lane.last = number(stored["last"])
        lane.scores = Scores.from_json(stored["scores"])
        lane.reach.restore(stored["reach"])
        if stored["started"]:
            lane.model = lane._build()
            lane.state = checkpoint.from_bytes(lane.model, blob)
            lane._blob = blob
        return lane
