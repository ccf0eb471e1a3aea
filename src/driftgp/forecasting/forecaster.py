"""One stream, and forecasts of its next H steps at any moment."""

import os
from collections.abc import Sequence
from copy import copy, deepcopy
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from driftgp import checks
from driftgp.files import read_whole, write_atomically
from driftgp.forecasting import stored
from driftgp.forecasting.calendar import MOST_STEPS, Calendar
from driftgp.forecasting.fan import Fan
from driftgp.forecasting.frame import sane
from driftgp.forecasting.grid import Grid
from driftgp.forecasting.work import Work

FIRST = 50  # rows, or two seasons, by which units are chosen
MOST_GAP = 10_000  # missing rows in a row, beyond which times are taken for wrong


class Forecaster:
    """Take rows in as they come; forecast the next H steps at any moment.

    >>> t = np.arange(600)
    >>> y = 100.0 + 10.0 * np.sin(2 * np.pi * t / 24) + np.random.default_rng(0).normal(size=600)
    >>> forecaster = Forecaster(horizon=24, season=24)
    >>> forecaster.update(y)
    >>> fan = forecaster.forecast()
    >>> fan.index[0].item(), bool(np.abs(fan.mean - (100.0 + 10.0 * np.sin(2 * np.pi * fan.index / 24))).max() < 2.0)
    (600, True)
    >>> low, high = fan.interval(0.95)
    >>> fan.sample(size=10, seed=0).shape
    (10, 24)

    Args:
        horizon: H, steps ahead.
        frequency: time between rows, such as timedelta(hours=1); by default the usual one of the first times.
        season: rows of a season; by default a day of hours, a week of days, and so on, by the times.
        known: names of columns that are known ahead, such as a holiday flag.
    """

    def __init__(
        self,
        horizon: int = 24,
        *,
        frequency: timedelta | None = None,
        season: int | None = None,
        known: Sequence[str] = (),
    ) -> None:
        """Start without rows."""
        self.horizon = checks.whole("horizon", horizon, 1, MOST_STEPS)
        self.season = None if season is None else checks.whole("season", season, 1)
        if frequency is not None and frequency <= timedelta(0):
            raise ValueError(f"frequency must be a time above 0; got {frequency}")
        self.known = tuple(known)
        self.frequency = frequency
        self._grid: Grid | None = None  # times of the rows, where they have any
        self._rows: list[tuple[float, np.ndarray]] = []  # until there are enough to begin
        self._work: Work | None = None
        self._taken = 0

    @property
    def rows(self) -> int:
        """Rows taken in, missing ones included."""
        return self._taken

    # ---- rows in -----------------------------------------------------------------------------------------------------

    def update(self, y: Any, times: Any = None, known: ArrayLike | None = None) -> None:
        """Take rows in, in the order of time; NaN for a target that is missing.

        The call happens or does not: where it is refused or interrupted, none of its rows has been taken in.

        Args:
            y: targets, N, or one number; a pandas series brings its times with its index.
            times: of the rows: datetimes, or NumPy's. Hours that are missing between them are missing targets.
            known: columns that are known ahead, (N + H)×K: of these rows and of the H rows after them.
        """
        if (
            times is None
            and getattr(getattr(y, "index", None), "dtype", None) is not None
            and y.index.dtype.kind == "M"
        ):
            times = y.index.to_numpy()
        values = np.atleast_1d(checks.real("y", y)).astype(np.float64)
        if values.ndim != 1 or np.isinf(values).any():
            raise ValueError(f"y must be one finite number, or NaN, per row; got shape {values.shape}")
        grid = self._grid_of(values, times)
        places = self._places(values, times, grid)
        outside = self._checked_known(len(values), known, places)
        ahead = _windows(outside, self.horizon)
        every = np.full(len(ahead), np.nan)
        every[places - self._taken] = values
        later = self._later(grid, every, ahead)
        vars(self).update(later)  # one step of the interpreter: no signal comes between its parts

    def _grid_of(self, values: np.ndarray, times: Any) -> Grid | None:
        """The times of the rows: those of before, or the first ones."""
        if times is None:
            if self._grid is not None:
                raise ValueError("times must be given, as they were before")
            return None
        at = _times(times)
        if at.shape != values.shape or np.isnat(at).any():
            raise ValueError(f"times must be one time per row; got {len(at)} for {len(values)} rows")
        if self._grid is None and self._taken:
            raise ValueError("times must be given from the first row on, or not at all")
        return self._grid or Grid.of(at, self.frequency)

    def _places(self, values: np.ndarray, times: Any, grid: Grid | None) -> np.ndarray:
        """Numbers of the rows, counted from the first one."""
        if grid is None:
            return self._taken + np.arange(len(values))
        at = _times(times)
        places = grid.rows(at)
        gaps = np.diff(places, prepend=self._taken - 1)
        if (gaps < 1).any():
            late = at[np.argmax(gaps < 1)].astype(datetime)
            raise ValueError(
                f"times must increase by the frequency ({grid}) or more; {late} comes after a row as late: "
                "sort the rows by time, and remove what is there twice"
            )
        if gaps.max() > MOST_GAP:
            raise ValueError(f"times must not leave more than {MOST_GAP} rows out; the last is {at[-1]}")
        return places

    def _checked_known(self, count: int, known: ArrayLike | None, places: np.ndarray) -> np.ndarray:
        """Known columns of all rows from the next one to H after the last; a missing row has those before it."""
        K, H = len(self.known), self.horizon
        given = np.zeros((count + H, 0)) if K == 0 else np.zeros((0, K))
        if K and known is not None:
            given = np.asarray(known, np.float64).reshape(-1, K)
        if len(given) != count + H or not np.isfinite(given).all():
            raise ValueError(
                f"known must have the columns {', '.join(self.known)} of the {count} rows and of the {H} rows after "
                f"them, all finite: {count + H} rows; got {len(given)}"
            )
        after = np.concatenate([places, places[-1:] + 1 + np.arange(H)])
        rows = np.arange(self._taken, after[-1] + 1)
        return given[np.searchsorted(after, rows, side="right").clip(1) - 1]

    def _later(self, grid: Grid | None, values: np.ndarray, ahead: np.ndarray) -> dict[str, Any]:
        """The attributes that it has after these rows; nothing is changed here, so that it may end at any moment."""
        later = copy(self)
        later._grid, later._rows = grid, list(self._rows)  # noqa: SLF001 (its own kind)
        later._work = None if self._work is None else self._work.later()  # noqa: SLF001
        for value, known in zip(values.tolist(), ahead, strict=True):
            later._take(value, known)  # noqa: SLF001
        return vars(later)

    def _take(self, value: float, ahead: np.ndarray) -> None:
        self._taken += 1
        if self._work is not None:
            self._work.take(value, ahead)
            return
        self._rows.append((value, ahead))
        there = sum(value == value for value, _ in self._rows)
        if len(self._rows) >= max(FIRST, 2 * self._calendar.season) and there >= FIRST // 2:
            self._work, self._rows = self._begun(), []

    @property
    def _calendar(self) -> Calendar:
        return Calendar(None if self._grid is None else self._grid.step, self.season)

    @property
    def _start(self) -> datetime | None:
        return None if self._grid is None else self._grid.first

    def _begun(self) -> Work:
        values = sane(np.array([value for value, _ in self._rows]))
        known = np.array([ahead for _, ahead in self._rows])
        work = Work(self._calendar, self.horizon, self._start, values, known)
        for value, ahead in zip(values.tolist(), known, strict=True):
            work.take(value, ahead)
        return work

    # ---- forecasts out -----------------------------------------------------------------------------------------------

    def forecast(self) -> Fan:
        """The next H steps after the last row."""
        if self._taken <= self.horizon:
            raise ValueError(
                f"horizon is {self.horizon}, and there are {self._taken} rows: a forecast needs more rows than it has "
                "steps, and good ones need several seasons"
            )
        work = self._begun() if self._work is None else self._work
        return work.fan(self._index())

    def _index(self) -> np.ndarray:
        steps = self._taken + np.arange(self.horizon)
        return steps if self._grid is None else self._grid.times(steps)

    # ---- copies and files --------------------------------------------------------------------------------------------

    def copy(self) -> "Forecaster":
        """Another one that goes on from here by itself."""
        return deepcopy(self)

    def to_bytes(self) -> bytes:
        """All of it as bytes, without pickle."""
        settings = {"horizon": self.horizon, "season": self.season, "known": list(self.known)}
        return stored.to_bytes(stored.Stored(settings, self._grid, self._work, self._rows))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Forecaster":
        """The forecaster whose `to_bytes` gave `data`: it goes on as that one would have, to the last bit."""
        settings, grid, work, rows = stored.from_bytes(data)
        forecaster = cls(settings["horizon"], season=settings["season"], known=settings["known"])
        forecaster._grid, forecaster._work, forecaster._rows = grid, work, rows
        forecaster._taken = len(rows) if work is None else work.row + 1
        return forecaster

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to the file at `path`, which at every moment is the old one or the new one."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Forecaster":
        """Read what `save` wrote to `path`, in this process or another one."""
        data = read_whole(path)
        try:
            return cls.from_bytes(data)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def _times(times: Any) -> np.ndarray:
    return np.atleast_1d(np.asarray(times, "datetime64[us]"))


def _windows(outside: np.ndarray, horizon: int) -> np.ndarray:
    """Known columns of the H rows after each row but the last H, N×(H K)."""
    count = len(outside) - horizon
    return np.array([outside[i + 1 : i + 1 + horizon].reshape(-1) for i in range(count)])
