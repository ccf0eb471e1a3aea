"""The inputs of the last rows: whether they are outside the range of all before, and which ones an alarm is about."""

from typing import Any

import numpy as np

from driftgp.alarms.stored import array_from

RECENT = 64  # rows by which inputs are blamed
_TOGETHER = 32  # rows that are taken in at a time
_RING = RECENT + _TOGETHER
_LATE = 20  # rows after which a row counts for the range of the inputs: so long a new range is news
_FIRST = _LATE + 30  # rows before the first evidence of a range
_FARTHEST = 1e9  # ranges outside
_LEAST = 3.0  # of the t statistics by which an input is blamed


class Inputs:
    """Ranges and moments of the inputs, and the last rows with their scores."""

    def __init__(self, count: int) -> None:
        """Start without any rows, for this number of inputs."""
        self._ring = np.zeros((_RING, count + 1))  # inputs and scores of the last rows
        self._low, self._high, self._scale = np.full(count, np.inf), np.full(count, -np.inf), np.ones(count)
        self._moments = np.zeros((3, count))  # count, mean and squares of the inputs before the recent ones

    def copy(self) -> "Inputs":
        """The same, to come back to."""
        other = Inputs(self._moments.shape[1])
        other._ring, other._moments = self._ring.copy(), self._moments.copy()
        other._low, other._high, other._scale = self._low, self._high, self._scale
        return other

    def take(self, row: int, X: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """How far rows lie outside the range of earlier ones, the last few left out, in ranges; NaN at first.

        Args:
            row: number of the first one.
            X: their inputs, N×D.
            scores: those of their targets, N.
        """
        excess = np.full(len(X), np.nan)
        place = 0
        while place < len(X):
            number = row + place
            if number % _TOGETHER == 0:
                self._absorb(number)
            some = slice(place, place + _TOGETHER - number % _TOGETHER)
            numbers = np.arange(number, row + len(X))[: some.stop - place]
            self._ring[numbers % _RING] = np.column_stack([X[some], scores[some]])
            farthest = np.fmax.reduce(self._beyond(X[some]), axis=1, initial=0.0)
            excess[some] = np.where(numbers < _FIRST, np.nan, np.minimum(farthest, _FARTHEST))
            place = some.stop
        return excess

    @np.errstate(over="ignore", invalid="ignore")  # of numbers near the largest there are
    def blamed(self, rows: int, since: int, *, ranges: bool) -> list[int]:
        """Inputs out of range; or those that moved, or went with the scores, since the change: the three likeliest."""
        count = min(max(rows - since, 3), rows, RECENT)
        recent = self._ring[(rows - 1 - np.arange(count)) % _RING]
        X, scores = recent[:, :-1], recent[:, -1]
        if ranges:
            strength = 1e6 * np.fmax.reduce(self._beyond(X), axis=0, initial=0.0)
        else:
            strength = np.fmax(_moved(X, self._moments), _together(X, scores))
        order = np.argsort(-np.nan_to_num(strength), kind="stable")[:3]
        return [int(i) for i in order if strength[i] > _LEAST]

    def _beyond(self, x: np.ndarray) -> np.ndarray:
        """Of each input, how far it is outside its range, in ranges; negative inside, NaN where one is missing."""
        with np.errstate(over="ignore"):  # of numbers near the largest there are
            beyond = np.maximum(x - self._high, self._low - x) / self._scale
        return np.where(self._high >= self._low, beyond, np.nan)

    @np.errstate(over="ignore", invalid="ignore")  # likewise
    def _absorb(self, row: int) -> None:
        """Rows that are no longer new widen the ranges; those that are no longer recent count for the moments."""
        late, old = (
            self._ring[np.arange(max(row - back - _TOGETHER, 0), max(row - back, 0)) % _RING, :-1]
            for back in (_LATE, RECENT)
        )
        if len(late):
            self._low, self._high = (
                np.fmin(self._low, np.fmin.reduce(late, axis=0)),
                np.fmax(self._high, np.fmax.reduce(late, axis=0)),
            )
            self._rescale()
        if len(old):
            _add(self._moments, old)

    def _rescale(self) -> None:
        """Ranges; of an input that never changed, its size."""
        there = self._high >= self._low
        low, high = np.where(there, self._low, 0.0), np.where(there, self._high, 0.0)
        self._scale = np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))

    def to_json(self) -> dict[str, Any]:
        """Everything that is needed to continue."""
        return {
            "recent": self._ring.tolist(),
            "range": [self._low.tolist(), self._high.tolist()],
            "moments": self._moments.tolist(),
        }

    def restore(self, stored: dict[str, Any]) -> None:
        """Take back what `to_json` gave."""
        D = self._moments.shape[1]
        self._ring = array_from(stored["recent"], (_RING, D + 1))
        self._low, self._high = array_from(stored["range"], (2, D))
        self._rescale()
        self._moments = array_from(stored["moments"], (3, D))


def _add(moments: np.ndarray, X: np.ndarray) -> None:
    """Count, mean and squares with more rows, by the inputs that are there (Chan, Golub and LeVeque 1979)."""
    count, mean, squares = moments
    there = X == X
    more = there.sum(0)
    own = np.where(there, X, 0.0).sum(0) / np.maximum(more, 1)
    off = own - mean
    total = np.maximum(count + more, 1.0)
    squares += (np.where(there, X - own, 0.0) ** 2).sum(0) + off**2 * count * more / total
    mean += off * more / total
    count += more


def _moved(X: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """|t| of the inputs' mean in the recent rows against what it was before, D."""
    count, mean, squares = moments
    std = np.sqrt(squares / np.maximum(count - 1.0, 1.0))
    there = np.isfinite(X).sum(0)
    recent = np.where(there > 0, np.nansum(X, 0) / np.maximum(there, 1), mean)
    error = np.where(std > 0.0, std, np.inf) / np.sqrt(np.maximum(there, 1))
    return np.where(count > 1.0, np.abs(recent - mean) / error, 0.0)


def _together(X: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """|t| of the correlation between each input and the scores in the recent rows, D."""
    there = np.isfinite(scores)
    X, z = X[there], scores[there]
    n = len(z)
    if n < 5:
        return np.zeros(X.shape[1])
    X = np.where(np.isfinite(X), X, np.nanmean(np.where(np.isfinite(X), X, 0.0), 0))
    X, z = X - X.mean(0), z - z.mean()
    scale = np.sqrt((X**2).sum(0) * (z**2).sum())
    r = np.where(scale > 0.0, X.T @ z / np.where(scale > 0.0, scale, 1.0), 0.0)
    return np.abs(r) * np.sqrt((n - 2) / np.maximum(1.0 - r**2, 1e-9))
