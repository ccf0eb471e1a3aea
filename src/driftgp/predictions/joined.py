"""Predictions of rows by several models, put together."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from driftgp.base.frames import Source
from driftgp.predictions.base import Prediction, row_index


def joined(
    parts: Sequence[Prediction], source: Source | None = None, places: Sequence[np.ndarray] | None = None
) -> Prediction:
    """The rows of several predictions as one: one after another, or each at its places.

    >>> from driftgp.predictions import Gaussian
    >>> one = Gaussian(mean=np.zeros(2), variance=np.ones(2), noise=np.ones(2))
    >>> both = joined([one, one.scaled(2.0, 1.0)])
    >>> both.mean.tolist(), both.std.tolist()
    ([0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 2.0, 2.0])
    >>> joined([one, one.scaled(2.0, 1.0)], places=[[0, 3], [1, 2]]).mean.tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    if not parts:
        raise ValueError("X must have at least one row; got none")
    if len(parts) == 1:
        whole: Any = parts[0]
        if source is not None:
            whole.source = source
        return parts[0]
    if places is None:
        ends = np.cumsum([part.shape[0] for part in parts])
        places = [np.arange(end - part.shape[0], end) for part, end in zip(parts, ends, strict=True)]
    return Joined(parts, places, source)


class Joined(Prediction):
    """Predictions of the same outputs, each of some of the rows."""

    __slots__ = ("parts", "places", "source")

    def __init__(self, parts: Sequence[Prediction], places: Sequence[ArrayLike], source: Source | None = None) -> None:
        """Take the parts, and which rows each of them is of."""
        self.parts, self.places = tuple(parts), tuple(np.asarray(rows, np.int64) for rows in places)
        self.source: Source | None = source  # where the rows came from, if that was a frame

    @property
    def called(self) -> str:
        """Its name in `repr`: that of its parts."""
        return self.parts[0].called

    @property
    def mean(self) -> np.ndarray:
        """Mean of a new target."""
        return self._scattered([part.mean for part in self.parts], 0)

    @property
    def variance(self) -> np.ndarray:
        """Variance of a new target, noise included."""
        return self._scattered([part.variance for part in self.parts], 0)

    @property
    def noise(self) -> np.ndarray:
        """The share of the variance that is observation noise."""
        return self._scattered([part.noise for part in self.parts], 0)

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """Log density at y."""
        return self._together(lambda part, some: part.log_prob(some), y)

    def crps(self, y: ArrayLike) -> np.ndarray:
        """Continuous ranked probability score at y."""
        return self._together(lambda part, some: part.crps(some), y)

    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """Normal score of y."""
        return self._together(lambda part, some: part.to_normal(some), y)

    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """Value whose normal score is z."""
        return self._together(lambda part, some: part.from_normal(some), z)

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Central interval that holds a new target with probability `level`."""
        ends = [part.interval(level) for part in self.parts]
        low, high = (self._scattered([own[side] for own in ends], 0) for side in (0, 1))
        return low, high

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Joined":
        """Distribution of scale · y + shift, for a positive scale."""
        return Joined([part.scaled(scale, shift) for part in self.parts], self.places)

    def each(self, function: Callable[[np.ndarray], np.ndarray]) -> "Joined":
        """The parts with a function applied to each of their arrays, which must keep the rows."""
        return Joined([part.each(function) for part in self.parts], self.places)

    def rows(self, index: slice | ArrayLike) -> Prediction:
        """Distribution at some of the points: a slice, numbers or a mask of rows."""
        wanted = np.arange(self.shape[0])[row_index(index)]
        owner, inside = np.empty(self.shape[0], np.int64), np.empty(self.shape[0], np.int64)
        for number, rows in enumerate(self.places):
            owner[rows], inside[rows] = number, np.arange(len(rows))
        chosen = [np.flatnonzero(owner[wanted] == number) for number in range(len(self.parts))]
        some = [number for number, rows in enumerate(chosen) if len(rows)] or [0]
        pieces = [self.parts[number].rows(inside[wanted[chosen[number]]]) for number in some]
        return joined(pieces, self.source and self.source.taken(wanted), [chosen[number] for number in some])

    def _scattered(self, values: list[np.ndarray], axis: int) -> np.ndarray:
        """Values of the parts in the order of the rows, which lie along an axis."""
        whole = np.concatenate(values, axis)
        return np.take(whole, np.argsort(np.concatenate(self.places)), axis)

    def _together(self, method: Callable[[Prediction, Any], np.ndarray], values: ArrayLike) -> np.ndarray:
        """A method of each part, for the values that belong to its rows."""
        axis = -len(self.shape)  # of the rows
        values = np.asarray(values, np.float64)
        values = np.broadcast_to(values, np.broadcast_shapes(values.shape, self.shape))
        made = [method(part, np.take(values, rows, axis)) for part, rows in zip(self.parts, self.places, strict=True)]
        return self._scattered(made, axis)
