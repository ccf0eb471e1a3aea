"""Rows of one series: on their way to an engine, kept from the beginning, or waiting for their labels."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftgp.engine import Batch
from driftgp.stream.stacks import Slot, Stack


@dataclass(frozen=True, slots=True)
class SeriesRows:
    """Rows of one series, N of them, with the inputs that follow from its past."""

    raw: np.ndarray  # N×R: codes of columns, then lags and calendar
    y: np.ndarray  # N×P, NaN where one is missing
    spans: np.ndarray  # N, time since the row before; NaN for one step
    steps: np.ndarray  # N, the typical step as known at each row

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All of its arrays."""
        return self.raw, self.y, self.spans, self.steps

    def part(self, some: slice) -> "SeriesRows":
        """Some of them."""
        return SeriesRows(self.raw[some], self.y[some], self.spans[some], self.steps[some])

    def then(self, other: "SeriesRows") -> "SeriesRows":
        """These and others after them."""
        return SeriesRows(*(np.concatenate(pair) for pair in zip(self.arrays, other.arrays, strict=True)))


class EngineCall(NamedTuple):
    """Rows for the model of one series."""

    slot: Slot
    batch: Batch


class ForecastRecords(NamedTuple):
    """Forecasts of some of the rows, one after another."""

    stack: Stack
    records: np.ndarray


Predicting = Generator[EngineCall, np.ndarray, list[ForecastRecords]]
Learning = Generator[EngineCall, np.ndarray, None]


class Buffer:
    """The first rows of a series, kept until there are enough of them to choose a model."""

    __slots__ = ("count", "first", "kept")

    def __init__(self, first: int) -> None:
        """Keep up to `first` rows."""
        self.first, self.count = first, 0
        self.kept: SeriesRows | None = None

    @property
    def missing(self) -> int:
        """Rows that are still to come."""
        return self.first - self.count

    @property
    def rows(self) -> SeriesRows:
        """The rows kept so far, at least one."""
        assert self.kept is not None  # noqa: S101
        return self.kept.part(slice(self.count))

    def extend(self, rows: SeriesRows) -> None:
        """Keep more rows."""
        if self.kept is None:
            self.kept = SeriesRows(*(np.empty((self.first, *array.shape[1:])) for array in rows.arrays))
        for kept, new in zip(self.kept.arrays, rows.arrays, strict=True):
            kept[self.count : self.count + len(rows)] = new
        self.count += len(rows)

    def copy(self) -> "Buffer":
        """A copy of the buffer."""
        other = Buffer(self.first)
        if self.count:
            other.extend(self.rows)
        return other


class Waiting(NamedTuple):
    """A row whose label is still to come."""

    codes: np.ndarray  # C, as the plan reads them
    time: float  # NaN without
    wall: float
    now: float  # steps before it, where there are no times
    issued: np.ndarray | None  # its forecast, 1 record; None before the first target
    generation: int  # of the model that made it
