"""Inputs that follow from the past of a series: lags of the target, and earlier values of other columns.

Row q is predicted when the targets of rows up to q − h are known, h being the horizon. Its inputs are

    columns known with the row    as they are
    other columns                 those of row q − h
    lags                          the target k steps before, k ≥ h: of the row with that time where times lie on a grid
                                  (none if there was no such row), else of row q − k
    calendar                      see `calendar`

An input whose past row is missing is NaN. The row then has a missing input and still gets a forecast.
"""

from typing import Any, NamedTuple

import numpy as np

from driftgp.stream import calendar
from driftgp.stream.clock import Passed
from driftgp.stream.settings import Settings

_NEAR = 1e-3  # of a step: times that differ by less are the same


class Derived(NamedTuple):
    """Which inputs follow from the past. The first `known` columns of a row are known in time, `late` are not."""

    known: int
    late: int
    lags: tuple[int, ...]
    cycles: tuple[str, ...]
    holidays: tuple[str, ...] | str
    horizon: int

    @classmethod
    def of(cls, settings: Settings, known: int, late: int) -> "Derived":
        """Those of a stream."""
        return cls(known, late, settings.lags, settings.calendar, settings.holidays, settings.horizon)

    @property
    def depth(self) -> int:
        """Rows of the past that are needed; 0 where none is."""
        return max((*self.lags, 1)) + self.horizon if self.lags or self.late else 0

    @property
    def names(self) -> tuple[str, ...]:
        """What each input beside the columns is."""
        return (*(f"lag {lag}" for lag in self.lags), *calendar.names(self.cycles, self.holidays))

    @property
    def any(self) -> bool:
        """Whether rows get derived inputs."""
        return bool(self.late or self.lags or self.cycles or self.holidays)

    def rows(
        self, past: "Past", codes: np.ndarray, times: np.ndarray, wall: np.ndarray, places: np.ndarray
    ) -> np.ndarray:
        """The inputs of N rows, N×R.

        Args:
            past: of the series, those of these rows that are in it included.
            codes: columns of the rows, N×C, the known ones first.
            times: of the rows, N.
            wall: the same by the clock on the wall.
            places: which row of the series each of them is, N.
        """
        if not self.any:
            return codes
        N, C, L = len(codes), self.known + self.late, len(self.lags)
        made = np.empty((N, C + len(self.names)))
        made[:, : self.known] = codes[:, : self.known]
        here = places - past.first  # in the arrays of the past
        asof = here - self.horizon  # the last row that is known
        known = asof >= 0
        if self.late:
            made[:, self.known : C] = (
                np.where(known[:, None], past.late[np.maximum(asof, 0)], np.nan) if len(past) else np.nan
            )
        if L:
            made[:, C : C + L] = self._lagged(past, times, here, asof, known) if len(past) else np.nan
        if self.cycles or self.holidays:
            made[:, C + L :] = calendar.inputs(wall, self.cycles, self.holidays)
        return made

    def _lagged(
        self, past: "Past", times: np.ndarray, here: np.ndarray, asof: np.ndarray, known: np.ndarray
    ) -> np.ndarray:
        lags = np.array(self.lags)
        last = np.maximum(asof, 0)
        by_rows = here[:, None] - lags  # N×L
        found, there = by_rows, (by_rows >= 0) & known[:, None]
        grid = past.grid[last] & known & ~np.isnan(times)
        if grid.any():
            step = past.steps[last][:, None]
            wanted = times[:, None] - lags * step
            by_time = np.searchsorted(past.at, wanted + _NEAR * step, side="right") - 1
            match = (by_time >= 0) & (past.at[np.maximum(by_time, 0)] >= wanted - _NEAR * step)
            match &= (by_time <= asof[:, None]) & (by_time >= here[:, None] - self.depth)
            found, there = np.where(grid[:, None], by_time, found), np.where(grid[:, None], match, there)
        return np.where(there, past.y[np.clip(found, 0, len(past) - 1)], np.nan)


class Past:
    """The last rows of a series, as far back as its inputs reach; `count` rows have come in all."""

    __slots__ = ("at", "count", "grid", "late", "steps", "y")

    def __init__(self, columns: int) -> None:
        """Start without any rows, for this number of columns that are known late."""
        self.count = 0
        self.at, self.y, self.steps = np.zeros(0), np.zeros(0), np.zeros(0)
        self.grid, self.late = np.zeros(0, bool), np.zeros((0, columns))

    def __len__(self) -> int:
        return len(self.y)

    @property
    def first(self) -> int:
        """Which row of the series the first one kept is."""
        return self.count - len(self.y)

    def then(self, passed: Passed, y: np.ndarray, late: np.ndarray) -> "Past":
        """The past with more rows: their times, targets (N) and columns that are known late."""
        other = Past.__new__(Past)
        other.count = self.count + len(y)
        new = (passed.at, y, passed.steps, passed.grid, late)
        for name, more in zip(_FIELDS, new, strict=True):
            setattr(other, name, np.concatenate([getattr(self, name), more]))
        return other

    def last(self, rows: int) -> "Past":
        """The last rows, as many as the inputs reach back."""
        if len(self) <= rows:
            return self
        other = Past.__new__(Past)
        other.count = self.count
        for name in _FIELDS:
            setattr(other, name, getattr(self, name)[len(self) - rows :].copy())
        return other

    def to_json(self) -> dict[str, Any]:
        """What a file holds."""
        return {"count": self.count, **{name: getattr(self, name) for name in _FIELDS}}

    @classmethod
    def restored(cls, stored: dict[str, Any], depth: int, columns: int) -> "Past":
        """Take back what `to_json` gave; refuses what it cannot have given."""
        past, count = cls(columns), stored["count"]
        arrays = {name: np.asarray(stored[name], getattr(past, name).dtype) for name in _FIELDS}
        rows = len(arrays["y"])
        shapes = {name: (rows, columns) if name == "late" else (rows,) for name in _FIELDS}
        if type(count) is not int or rows > min(depth, count) or any(arrays[n].shape != shapes[n] for n in _FIELDS):
            raise ValueError("the shapes of its past rows do not fit its settings")
        if any(np.isinf(array).any() for array in arrays.values()) or np.any(np.diff(arrays["at"]) < 0.0):
            raise ValueError("its past rows have a number that is not finite or out of range")
        past.count = count
        for name, array in arrays.items():
            setattr(past, name, array)
        return past


_FIELDS = ("at", "y", "steps", "grid", "late")
