"""Predictions of one stream by several models, one after another."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from driftgp.frames import Source
from driftgp.predictions.base import Prediction, row_index


def joined(parts: Sequence[Prediction], source: Source | None = None) -> Prediction:
    """The rows of several predictions as one.

    >>> from driftgp.predictions import Gaussian
    >>> one = Gaussian(mean=np.zeros(2), variance=np.ones(2), noise=np.ones(2))
    >>> both = joined([one, one.scaled(2.0, 1.0)])
    >>> both.mean.tolist(), both.std.tolist()
    ([0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 2.0, 2.0])
    """
    if not parts:
        raise ValueError("X must have at least one row; got none")
    if len(parts) == 1 and source is None:
        return parts[0]
    whole = Joined(parts)
    whole.source = source
    return whole


class Joined(Prediction):
    """Predictions of the same outputs, the rows of one after those of the other."""

    __slots__ = ("parts", "source")

    def __init__(self, parts: Sequence[Prediction]) -> None:
        """Take the parts, in the order of their rows."""
        self.parts = tuple(parts)
        self.source: Source | None = None  # where the rows came from, if that was a frame

    @property
    def mean(self) -> np.ndarray:
        """Mean of a new target."""
        return np.concatenate([part.mean for part in self.parts])

    @property
    def variance(self) -> np.ndarray:
        """Variance of a new target, noise included."""
        return np.concatenate([part.variance for part in self.parts])

    @property
    def noise(self) -> np.ndarray:
        """The share of the variance that is observation noise."""
        return np.concatenate([part.noise for part in self.parts])

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

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Joined":
        """Distribution of scale · y + shift, for a positive scale."""
        return Joined([part.scaled(scale, shift) for part in self.parts])

    def each(self, function: Callable[[np.ndarray], np.ndarray]) -> "Joined":
        """The parts with a function applied to each of their arrays, which must keep the rows."""
        return Joined([part.each(function) for part in self.parts])

    def rows(self, index: slice | ArrayLike) -> Prediction:
        """Distribution at some of the points: a slice, numbers or a mask of rows."""
        wanted = np.arange(self.shape[0])[row_index(index)]
        begins = np.cumsum([0, *(part.shape[0] for part in self.parts)])
        owner = np.searchsorted(begins, wanted, side="right") - 1
        cuts = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(wanted)]
        pieces = [
            self.parts[owner[begin]].rows(wanted[begin:end] - begins[owner[begin]])
            for begin, end in pairwise(cuts)
            if end > begin
        ]
        return joined(pieces or [self.parts[0].rows(slice(0))], self.source and self.source.taken(wanted))

    def _together(self, method: Callable[[Prediction, Any], np.ndarray], values: ArrayLike) -> np.ndarray:
        """A method of each part, for the values that belong to its rows."""
        axis = -len(self.shape)  # of the rows
        values = np.asarray(values, np.float64)
        values = np.broadcast_to(values, np.broadcast_shapes(values.shape, self.shape))
        ends = np.cumsum([part.shape[0] for part in self.parts])[:-1]
        some = np.split(values, ends, axis)
        return np.concatenate([method(part, own) for part, own in zip(self.parts, some, strict=True)], axis)
