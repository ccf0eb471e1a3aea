"""The protocol: the first 500 rows start a model, and each row after that is predicted before it is learned."""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.defaults.streams import WARMUP, Floats, Stream, hours
from benchmarks.timing import timed
from driftgp.defaults import Effort, recommended
from driftgp.evaluate import coverage, crps, mse, nlpd, prequential

Scores = dict[str, float]
LEVELS = (50, 80, 95)  # % of the intervals
WINDOW = 500  # rows over which the least coverage is looked for
BLOCK = 168  # rows that are in the same half, where one half judges what the other one has found
LEAVES, LEAST = 8, 200  # of a tree, and rows in each
EFFORTS: tuple[Effort, ...] = ("low", "medium", "high")


class Followed(NamedTuple):
    """The predictions of a model for the rows after its warm-up."""

    prediction: Any  # N − 500
    y: Floats  # N − 500
    microseconds: float  # of CPU per row
    state: Any = None  # after the last row

    @property
    def errors(self) -> Floats:
        """Target minus mean."""
        return self.y - np.asarray(self.prediction.mean)


def follow(stream: Stream, effort: Effort = "medium", warmup: int = WARMUP) -> Followed:
    """The default from the first rows of a stream to its end."""
    X, y = stream.X[:warmup], stream.y[:warmup]
    model = recommended(X, y, effort=effort)
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
        "winkler_95": float(np.mean(winkler(low, high, y))),
        "worst_window": worst_window(np.asarray((low <= y) & (y <= high))),
        "microseconds": followed.microseconds,
    }


def winkler(low: Floats, high: Floats, y: Floats, level: float = 0.95) -> Floats:
    """Width of each interval, and 2/(1 − level) times the distance of a target outside: smaller is better.

    >>> winkler(np.zeros(2), np.ones(2), np.array([0.5, 1.5])).round(6).tolist()
    [1.0, 21.0]
    """
    score: Floats = high - low + 2.0 / (1.0 - level) * (np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0))
    return score


# ---- coverage given the row ------------------------------------------------------------------------------------------


def by_group(followed: Followed, stream: Stream) -> Scores:
    """Least coverage of the 95 % interval in any hour of the day, tenth of the forecasts, and leaf of a tree.

    The tree is fitted to |z|, the sizes of the normal scores, from inputs, mean and width of the interval: it looks for
    rows whose intervals are too narrow. Every second week of rows is judged by the tree of the others.
    """
    prediction, y = followed.prediction, followed.y
    low, high = prediction.interval(0.95)
    inside, mean = np.asarray((low <= y) & (y <= high)), np.asarray(prediction.mean)
    tenth = np.argsort(np.argsort(mean, kind="stable")) * 10 // len(y)
    found = {"worst_decile": least_share(inside, tenth)}
    X = np.column_stack([stream.X[-len(y) :], mean, high - low])
    if stream.time is not None:
        hour = hours(stream.time[-len(y) :])
        found["worst_hour"], found["best_hour"] = least_share(inside, hour), 1.0 - least_share(~inside, hour)
        X = np.column_stack([X, hour])
    size = np.minimum(np.abs(np.nan_to_num(np.asarray(prediction.to_normal(y)), posinf=9.0, neginf=9.0)), 4.0)
    return found | {"worst_leaf": worst_leaf(X, size, inside)}


def least_share(inside: np.ndarray, group: np.ndarray) -> float:
    """Least share of any group.

    >>> least_share(np.array([True, False, True, True]), np.array([0, 0, 1, 1]))
    0.5
    """
    return min(float(inside[group == one].mean()) for one in np.unique(group))


def worst_leaf(X: Floats, size: Floats, inside: np.ndarray) -> float:
    """Least coverage in any leaf of a tree that was fitted to sizes of errors in the other half of the rows."""
    from sklearn.tree import DecisionTreeRegressor

    half, worst = np.arange(len(X)) // BLOCK % 2, 1.0
    for one in (0, 1):
        tree = DecisionTreeRegressor(max_leaf_nodes=LEAVES, min_samples_leaf=LEAST, random_state=0)
        leaf = tree.fit(X[half == one], size[half == one]).apply(X[half != one])
        worst = min(worst, least_share(inside[half != one], leaf))
    return worst


def worst_window(inside: np.ndarray, rows: int = WINDOW) -> float:
    """Least share of targets inside their intervals in any stretch of this number of rows.

    >>> worst_window(np.array([True, True, False, False, True]), rows=2)
    0.0
    """
    sums = np.concatenate([[0], np.cumsum(inside)])
    rows = min(rows, len(inside))
    return float(np.min(sums[rows:] - sums[:-rows])) / rows
