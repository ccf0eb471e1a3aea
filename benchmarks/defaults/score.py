"""The protocol: the first 500 rows start a model, and each row after that is predicted before it is learned.

The functions here use nothing that version 0.1 did not have, so that its default is measured by the same lines.
"""

from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from benchmarks.defaults.streams import WARMUP, Floats, Stream
from benchmarks.timing import timed
from driftgp.defaults import recommended
from driftgp.evaluate import coverage, crps, mse, nlpd, prequential

Scores = dict[str, float]
LEVELS = (50, 80, 95)  # % of the intervals
WINDOW = 500  # rows over which the least coverage is looked for
_KNOWN = signature(recommended).parameters
OLD = "horizon" not in _KNOWN  # whether this is version 0.1
EFFORTS = ("low", "medium", "high") if "effort" in _KNOWN else ("medium",)


class Followed(NamedTuple):
    """What a model said of the rows after its warm-up."""

    prediction: Any  # N − 500
    y: Floats  # N − 500
    microseconds: float  # of CPU per row
    state: Any = None  # after the last row

    @property
    def errors(self) -> Floats:
        """Target minus mean."""
        return self.y - np.asarray(self.prediction.mean)


def default(X: Floats, y: Floats, effort: str = "medium", **options: Any) -> Any:
    """The default model for a stream that begins so; a version without efforts has the one."""
    chosen: dict[str, Any] = {"effort": effort} if "effort" in _KNOWN else {}
    return recommended(X, y, **chosen, **options)


def follow(stream: Stream, effort: str = "medium", warmup: int = WARMUP) -> Followed:
    """The default from the first rows of a stream to its end."""
    X, y = stream.X[:warmup], stream.y[:warmup]
    model = default(X, y, effort)
    return follow_from(model, model.init(X, y), stream, warmup)


def follow_from(model: Any, state: Any, stream: Stream, start: int, end: int | None = None) -> Followed:
    """A model with its state from one row of a stream to another."""
    X, y = stream.X[start:end], stream.y[start:end]
    runs: list[Any] = []
    microseconds = timed(max(len(y), 1), lambda: runs.append(prequential(model, state, X, y)))
    return Followed(runs[0].prediction, y, microseconds, runs[0].state)


def scores(followed: Followed) -> Scores:
    """All figures of the protocol."""
    prediction, y = followed.prediction, followed.y
    shares = {f"coverage_{level}": coverage(prediction, y, level / 100.0) for level in LEVELS}
    low, high = prediction.interval(0.95)
    return {
        "mse": mse(prediction, y),
        "nlpd": nlpd(prediction, y),
        "crps": crps(prediction, y),
        **shares,
        "worst_window": worst_window(np.asarray((low <= y) & (y <= high))),
        "microseconds": followed.microseconds,
    }


def worst_window(inside: np.ndarray, rows: int = WINDOW) -> float:
    """Least share of targets inside their intervals in any stretch of so many rows.

    >>> worst_window(np.array([True, True, False, False, True]), rows=2)
    0.0
    """
    sums = np.concatenate([[0], np.cumsum(inside)])
    rows = min(rows, len(inside))
    return float(np.min(sums[rows:] - sums[:-rows])) / rows
