"""The rows on which every method is tried, and what a method gives back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from driftgp.predictions import Prediction
from driftgp.stream.naive import Season


@dataclass(frozen=True, eq=False)
class Trial:
    """A stream with one protocol for all methods: row i is predicted when the labels up to i − h are known."""

    X: np.ndarray  # N×D, NaN where an input is missing
    y: np.ndarray  # N, NaN where a target is missing
    warmup: int  # the first row that is scored
    horizon: int = 1  # h
    season: Season | None = None
    refit: int = 1  # rows from one fit to the next, for methods that learn in batches
    wall: np.ndarray | None = None  # N, times by the clock on the wall in microseconds; None without dates
    given: Any = None  # the rows as `Online` takes them; None where they are X and y
    settings: dict[str, Any] = field(default_factory=dict)  # of `Online`, for these rows

    @property
    def rows(self) -> int:
        """N."""
        return len(self.y)

    @cached_property
    def filled(self) -> np.ndarray:
        """Inputs for methods that take no gaps: the last value that was there, 0 before the first, N×D."""
        there = np.isfinite(self.X)
        last = np.maximum.accumulate(np.where(there, np.arange(self.rows)[:, None], -1), axis=0)
        values = np.take_along_axis(self.X, np.maximum(last, 0), axis=0)
        return np.where(last >= 0, values, 0.0)

    @cached_property
    def scored(self) -> np.ndarray:
        """Targets of the scored rows, N − warmup."""
        return self.y[self.warmup :]

    def known_before(self, row: int) -> np.ndarray:
        """Indices of the rows whose labels are known when a row is predicted, and are there."""
        return np.flatnonzero(np.isfinite(self.y[: max(row - self.horizon + 1, 0)]))


class Forecasts(NamedTuple):
    """The forecasts of a method for every row from the first scored one on."""

    mean: np.ndarray  # N − warmup
    law: Prediction | None = None  # the distributions, where the method has them


Run = Callable[[Trial], Forecasts]
