"""Each target is compared with its forecast, and an alarm says when something has changed."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftgp.alarms.detectors import KINDS, Detectors, Found, Kind
from driftgp.alarms.inputs import Inputs
from driftgp.alarms.stored import array_from
from driftgp.alarms.usual import UsualWidth
from driftgp.base import checks
from driftgp.predictions import Prediction

PATIENCE = 10_000  # rows per false alarm, at least
_AT_ONCE = 128  # rows that are taken in together


class Alarm(NamedTuple):
    """The content of an alarm.

    Attributes:
        row: number of the row that raised it, from 0.
        kind: what has changed: one of `KINDS`.
        direction: "up" or "down" for level and noise, else "".
        since: the row at which the change most likely began.
        inputs: names of those most likely concerned, the likeliest first; empty if none stands out.
        evidence: M / c at the alarm, 1 or more: how far beyond the threshold.

    >>> print(Alarm(1002, "input", "", 1000, ("wind",), 3.5))
    row 1002: inputs are outside the range of all rows before, since about row 1000; inputs most likely concerned: wind
    """

    row: int
    kind: Kind
    direction: str
    since: int
    inputs: tuple[str, ...]
    evidence: float

    @property
    def flag(self) -> str:
        """A word for tables: alarm:level-up:temp,lag_1."""
        parts = ("alarm", "-".join(filter(None, (self.kind, self.direction))), ",".join(self.inputs).replace(" ", "_"))
        return ":".join(filter(None, parts))

    def __str__(self) -> str:
        """A sentence for people."""
        what = {
            ("level", "up"): "targets are higher than forecast",
            ("level", "down"): "targets are lower than forecast",
            ("noise", "up"): "targets scatter more than before",
            ("noise", "down"): "targets scatter less than before",
            ("input", ""): "inputs are outside the range of all rows before",
            ("error", ""): "more targets than promised are outside their intervals",
        }[self.kind, self.direction]
        concerned = f"; inputs most likely concerned: {', '.join(self.inputs)}" if self.inputs else ""
        return f"row {self.row}: {what}, since about row {self.since}{concerned}"


class Alarms:
    """Compare targets with their forecasts as they come, and raise alarms when something has changed.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=1000)
    >>> z[800:] += 3.0
    >>> watch = Alarms()
    >>> found = [alarm for score in z for alarm in watch.update(score)]
    >>> found[0].kind, found[0].direction, 800 <= found[0].since <= found[0].row < 815
    ('level', 'up', True)

    Args:
        inputs: names of the inputs; without them, none is watched or blamed.
        patience: rows per false alarm in the mean, at least.
        horizon: rows from a forecast to its label. Errors of forecasts h rows ahead come h at a time. So every h-th row
            has its own detectors; together they keep the same rate.
        call: called with each alarm.
    """

    def __init__(
        self,
        inputs: Sequence[str] = (),
        *,
        patience: float = PATIENCE,
        horizon: int = 1,
        call: Callable[[Alarm], None] | None = None,
    ) -> None:
        """Start without any rows."""
        self.inputs = tuple(inputs)
        self.patience = checks.between("patience", patience, 1.0, np.inf)
        self.horizon = checks.whole("horizon", horizon, 1)
        self.call = call
        self.rows = 0
        self.last: int | None = None  # the row of the last alarm
        self._threshold = len(KINDS) * self.patience
        self._detectors = Detectors(self.horizon)
        self._inputs = Inputs(len(self.inputs))
        self._usual = UsualWidth()

    def update(
        self, z: float, x: Sequence[float] | np.ndarray | None = None, width: float | None = None
    ) -> list[Alarm]:
        """Take in a row and its target; return the alarms that it raises.

        Args:
            z: the normal score of the target, `prediction.to_normal(y)`; NaN without a target.
            x: the row's inputs.
            width: the forecast's standard deviation, or the width of its interval. With it, a change is found also
                where the model has widened its forecasts at once.
        """
        X = None if x is None else np.asarray(x, np.float64)[None]
        return self.update_all(np.array([z], np.float64), X, None if width is None else np.array([width], np.float64))

    def update_all(self, z: np.ndarray, X: np.ndarray | None = None, widths: np.ndarray | None = None) -> list[Alarm]:
        """Take in many rows and their targets: the same, to the last bit, as one by one.

        Args:
            z: normal scores, N.
            X: inputs, N×D.
            widths: of the forecasts, N.
        """
        found: list[Alarm] = []
        place, N = 0, len(z)
        while place < N:
            some = slice(place, place + _AT_ONCE)
            score = z[some] if widths is None else self._usual.scores(z[some], widths[some])
            before, excess = self._inputs, np.full(len(score), np.nan)
            if X is not None and self.inputs:
                self._inputs = before.copy()
                excess = self._inputs.take(self.rows, X[some], score)
            reached = self._detectors.weigh(self.rows, score, z[some], excess, self._threshold)
            taken = reached[0].place + 1 if reached else len(score)
            if reached and X is not None and self.inputs:  # as if the rows after it had not come
                self._inputs = before
                before.take(self.rows, X[some][:taken], score[:taken])
            place, self.rows = place + taken, self.rows + taken
            if reached:
                found += self._raise(reached)
        return found

    def _raise(self, reached: list[Found]) -> list[Alarm]:
        """The alarms of the last row. What comes after it is the new normal."""
        self.last = self.rows - 1
        alarms = []
        for kind, direction, since, M in (one[1:] for one in reached):
            blamed = self._inputs.blamed(self.rows, since, ranges=kind == "input") if self.inputs else []
            names = tuple(self.inputs[i] for i in blamed)
            alarms.append(Alarm(self.last, kind, direction, since, names, M / self._threshold))
        self._usual.restart()
        self._detectors.restart()
        if self.call is not None:
            for alarm in alarms:
                self.call(alarm)
        return alarms

    @property
    def evidence(self) -> dict[Kind, float]:
        """How near each kind is to an alarm, log(1 + M) / log(1 + c): 1 raises it."""
        M = self._detectors.means()
        return dict(zip(KINDS, (np.log1p(M) / math.log1p(self._threshold)).tolist(), strict=True))

    def to_json(self) -> dict[str, Any]:
        """Everything that is needed to continue, as JSON."""
        return {
            "rows": self.rows,
            "last": self.last,
            "tracks": self._detectors.to_json(),
            "inputs": self._inputs.to_json(),
            "width": self._usual.to_json(),
        }

    def restore(self, stored: dict[str, Any]) -> None:
        """Take back what `to_json` gave as `stored`, or refuse what it could not have given."""
        self.rows = int(array_from(stored["rows"], (), np.int64))
        self.last = None if stored["last"] is None else int(array_from(stored["last"], (), np.int64))
        self._detectors.restore(stored["tracks"])
        self._inputs.restore(stored["inputs"])
        self._usual.restore(stored["width"])


def find_alarms(prediction: Prediction, y: np.ndarray, X: np.ndarray | None = None, **settings: Any) -> list[Alarm]:
    """Alarms of a whole run.

    Args:
        prediction: what was predicted of each row before its target was known, N.
        y: the targets, N; NaN where one is missing.
        X: the inputs, N×D, if inputs are to be watched too; None if not.
        settings: those of `Alarms`, such as `inputs` for the names of the inputs.

    >>> from driftgp.predictions import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=600) * np.repeat([1.0, 4.0], 300)
    >>> [alarm.kind for alarm in find_alarms(Gaussian(np.zeros(600), np.ones(600), np.ones(600)), y)][:1]
    ['noise']
    """
    if X is not None and "inputs" not in settings:
        settings["inputs"] = [f"input {i + 1}" for i in range(X.shape[1])]
    watch = Alarms(**settings)
    scores = np.where(np.isfinite(y), prediction.to_normal(np.where(np.isfinite(y), y, prediction.mean)), np.nan)
    return watch.update_all(scores, X, prediction.std)
