"""The times of the rows of a series: which step each of them is, and when the next steps are.

A step is a number of microseconds (or of the units of numeric times), a number of months, or a day of a trading week.
Steps of half a day and more are counted by the clock on the wall, shorter ones in UTC. So a day stays a day when the
clocks change, and no hour comes twice or is left out.
"""

import re
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from driftgp.base.season import DAY, MONTH, usual_step

SECOND = 1e6  # microseconds
_DAY = DAY * SECOND
_SHORTEST_MONTH = 27.5 * DAY
_ALL = (True,) * 7
_WEEKS = 3  # daily rows that show which days of the week have no rows
_RARE = 0.05  # share of the weeks: a day of the week with fewer rows is closed
_OFF = 0.25  # share of a step: times farther from the nearest step are not on the grid
_FREQUENCY = re.compile(r"\s*(\d*)\s*([A-Za-z]+)\s*")
_UNITS = {"us": 1e-6, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "t": 60.0, "h": 3600.0, "d": DAY, "w": 7.0 * DAY}
_MONTHS = {"M": 1, "MS": 1, "ME": 1, "Q": 3, "QS": 3, "QE": 3, "Y": 12, "YS": 12, "YE": 12}


class Frequency(NamedTuple):
    """A time between rows that a user has given."""

    seconds: float  # of months, in the mean
    months: int = 0

    @classmethod
    def of(cls, given: Any) -> "Frequency | None":
        """A time as users write it.

        >>> Frequency.of("15min"), Frequency.of("1M").months, Frequency.of(timedelta(hours=2)).seconds
        (Frequency(seconds=900.0, months=0), 1, 7200.0)
        """
        if given is None:
            return None
        if isinstance(given, str) and (found := _FREQUENCY.fullmatch(given)) is not None:
            count, unit = int(found[1] or 1), found[2]
            if unit in _MONTHS:
                return cls(count * _MONTHS[unit] * MONTH, count * _MONTHS[unit])
            if unit.casefold() in _UNITS and count:
                return cls(count * _UNITS[unit.casefold()])
        if isinstance(given, timedelta) and given > timedelta(0):
            return cls(given.total_seconds())
        raise ValueError(
            f"frequency must be a time above 0, such as timedelta(hours=1), '15min', '1h', '1d', '1w' or '1M'; "
            f"got {given!r}"
        )


class Grid(NamedTuple):
    """Step i is at first + i steps."""

    first: float  # time of step 0
    step: float  # microseconds, or units of the numbers; for months the mean length
    months: int = 0  # of a step; 0 where it is a number of microseconds
    days: tuple[bool, ...] = _ALL  # days of the week, from Monday on, that have rows
    dated: bool = True
    on_wall: bool = True  # whether steps are counted by the clock on the wall

    @classmethod
    def of(cls, at: np.ndarray, wall: np.ndarray, *, dated: bool, frequency: Frequency | None = None) -> "Grid":
        """The grid of a series with these times, N in their order, by the usual time between them if none is given.

        Args:
            at: times, in microseconds where they are dates.
            wall: the same by the clock on the wall.
            dated: whether they are dates.
            frequency: time between rows, if it was given.

        >>> ends = np.array(["2024-01-31", "2024-02-29", "2024-03-31"], "datetime64[us]").astype(float)
        >>> Grid.of(ends, ends, dated=True).months
        1
        """
        if not dated:
            given = 1.0 if frequency is None else frequency.seconds
            return cls(float(at[0]), usual_step(at) or given, dated=False)
        if frequency is not None:
            on_wall = frequency.seconds >= DAY / 2
            first = float((wall if on_wall else at)[0])
            return cls(first, frequency.seconds * SECOND, frequency.months, on_wall=on_wall)
        step = usual_step((wall - wall[0]) / SECOND)
        if step is None:
            raise ValueError(
                f"frequency cannot be inferred from {len(at)} times: give frequency=timedelta(hours=1), or what it is, "
                "or more rows at once"
            )
        if step >= _SHORTEST_MONTH:
            months = max(round(step / MONTH), 1)
            monthly = cls(float(wall[0]), months * MONTH * SECOND, months)
            if np.all(np.abs(monthly.times(monthly.places(wall)) - wall) < _DAY):
                return monthly
        on_wall = step >= DAY / 2
        if abs(step - DAY) < 0.01 * DAY:
            days = _open(wall)
            return cls(float(wall[_on(days, wall).argmax()]), _DAY, days=days)
        seconds = usual_step((at - at[0]) / SECOND) or step
        return cls(float((wall if on_wall else at)[0]), seconds * SECOND, on_wall=on_wall)

    @property
    def seconds(self) -> float | None:
        """Seconds between steps, in the mean; None without dates."""
        return self.step / SECOND if self.dated else None

    def places(self, times: np.ndarray) -> np.ndarray:
        """Which steps are nearest to these times, by the clock that this grid counts by."""
        if self.months:
            since = _month(times) - _month(np.array([self.first]))
            return np.round(since / self.months).astype(np.int64)
        if self.days != _ALL:
            return self._opened(times) - self._opened(np.array([self.first]))
        return np.round((times - self.first) / self.step).astype(np.int64)

    def off(self, times: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Which times are on none of the steps."""
        far = np.abs(self.times(places) - times)
        return np.asarray(far > (_DAY if self.months else _OFF * self.step))

    def closed(self, times: np.ndarray) -> np.ndarray:
        """Which times are on a day of the week that has no rows."""
        return ~_on(self.days, times) if self.days != _ALL else np.zeros(len(times), bool)

    def times(self, places: np.ndarray) -> np.ndarray:
        """Times of steps. A step of months keeps the day of the month, or takes the last day in shorter months.

        >>> first = np.datetime64("2023-11-30", "us").astype(float)
        >>> Grid(first, MONTH, 1).times(np.array([1, 3])).astype("datetime64[us]").astype("datetime64[D]").tolist()
        [datetime.date(2023, 12, 31), datetime.date(2024, 2, 29)]
        """
        if self.months:
            return self._months_after(places)
        if self.days != _ALL:
            return self._days_after(places)
        return self.first + places * self.step

    def _months_after(self, places: np.ndarray) -> np.ndarray:
        first = np.datetime64(round(self.first), "us")
        month = first.astype("datetime64[M]")
        into = first - month  # from the first day of its month
        after = month + (places * self.months).astype("timedelta64[M]")
        last = (after + 1).astype("datetime64[D]") - after.astype("datetime64[D]") - np.timedelta64(1, "D")
        day = into.astype("timedelta64[D]")
        ends = first.astype("datetime64[D]") + 1 == (month + 1).astype("datetime64[D]")
        days = last if ends else np.minimum(last, day)
        made = (after.astype("datetime64[D]") + days).astype("datetime64[us]") + (into - day)
        return np.asarray(made.astype(np.int64), np.float64)

    def _opened(self, times: np.ndarray) -> np.ndarray:
        """Open days since 1970 before each time's own day, its own included where it is open."""
        day = np.floor(times / _DAY).astype(np.int64) + 3  # from a Monday on
        before = np.concatenate([[0], np.cumsum(self.days)])
        return np.asarray(day // 7 * int(before[-1]) + before[day % 7 + 1])

    def _days_after(self, places: np.ndarray) -> np.ndarray:
        opened, week = np.flatnonzero(self.days), int(np.sum(self.days))
        number = self._opened(np.array([self.first]))[0] + places - 1
        day = number // week * 7 + opened[number % week] - 3
        return np.asarray(day * _DAY + self.first % _DAY, np.float64)

    def __str__(self) -> str:
        """The step, for messages."""
        if self.months:
            return "1 month" if self.months == 1 else f"{self.months} months"
        if not self.dated:
            return f"{self.step:g}"
        return "1 day" if self.step == _DAY else str(timedelta(microseconds=round(self.step)))


def _open(wall: np.ndarray) -> tuple[bool, ...]:
    """The days of the week that have rows."""
    weeks = (wall[-1] - wall[0]) / (7.0 * _DAY)
    if weeks < _WEEKS:
        return _ALL
    count = np.bincount(_weekday(wall), minlength=7)
    there = tuple((count > _RARE * weeks).tolist())
    return there if any(there) else _ALL


def _on(days: tuple[bool, ...], wall: np.ndarray) -> np.ndarray:
    """Which times are on an open day of the week."""
    return np.array(days)[_weekday(wall)]


def _weekday(wall: np.ndarray) -> np.ndarray:
    """0 on Mondays."""
    return np.asarray((np.floor(wall / _DAY).astype(np.int64) + 3) % 7)


def _month(times: np.ndarray) -> np.ndarray:
    return times.astype(np.int64).astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)


def regular(at: np.ndarray) -> bool:
    """Whether times (datetime64) follow one another by one step, with none left out.

    >>> regular(np.arange("2024-01", "2024-06", dtype="datetime64[M]").astype("datetime64[us]"))
    True
    """
    times = np.asarray(at, "datetime64[us]").astype(np.int64).astype(np.float64)
    try:
        grid = Grid.of(times, times, dated=True)
    except ValueError:
        return False
    return bool(np.all(np.diff(grid.places(times)) == 1))
