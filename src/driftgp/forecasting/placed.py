"""One series: the places of its rows on a grid, its last rows, and its model."""

from typing import NamedTuple

import numpy as np

from driftgp.forecasting.asked import Asked
from driftgp.forecasting.fan import Fan
from driftgp.forecasting.grid import Grid
from driftgp.forecasting.reading import Reader, Rows
from driftgp.forecasting.series import Series
from driftgp.forecasting.settings import Settings as Task
from driftgp.forecasting.zones import from_wall, to_wall
from driftgp.stream import calendar
from driftgp.stream.plan import Categories

FIRST = 50  # rows after which the grid and the categories no longer change
DOUBTFUL = 10  # rows after which the grid must be known
MOST_GAP = 10_000  # successive missing rows; after a longer gap, times count as wrong
KEPT, HORIZONS = 2048, 30  # last rows that are kept: a number of rows, and a number of horizons
REPEATED = 0.01  # share of the rows of a call that may have the time of another row
_HOUR = 3.6e9
_DAY = 86_400_000_000


class Steps(NamedTuple):
    """Rows on the steps of a grid, none left out: N of them."""

    wall: np.ndarray
    y: np.ndarray
    codes: np.ndarray

    def some(self, which: slice) -> "Steps":
        """Some of them."""
        return Steps(*(array[which] for array in self))

    @classmethod
    def none(cls, columns: int) -> "Steps":
        """No steps, with this number of columns."""
        return cls(np.zeros(0), np.zeros(0), np.zeros((0, columns)))

    def then(self, other: "Steps") -> "Steps":
        """These, and others after them."""
        return Steps(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class Placed(NamedTuple):
    """Everything about one series; an immutable value: `taken` gives a new one."""

    waiting: Rows  # the first rows, until there are enough of them to know the grid and the categories
    grid: Grid | None = None
    length: int = 0  # steps taken in, missing rows included
    last: Steps | None = None  # the last of them
    latest: float = np.nan  # time of the last row
    series: Series | None = None  # what has been learned
    categories: Categories = ()

    @property
    def rows(self) -> int:
        """Rows taken in; once the grid is known, missing ones too."""
        return self.length + len(self.waiting)

    # ---- rows in -----------------------------------------------------------------------------------------------------

    def taken(self, settings: Asked, reader: Reader, rows: Rows, said: list[str], name: str) -> "Placed":
        """The series after these rows; `said` gets sentences about rows that were left out."""
        if reader.timed:
            rows = self._in_order(reader, rows, said, name)
        latest = float(rows.at[-1]) if reader.timed and len(rows) else self.latest
        placed = self._replace(waiting=self.waiting.then(rows), latest=latest)
        if placed.series is None and len(placed.waiting) < FIRST:
            if reader.timed and len(placed.waiting) >= DOUBTFUL:
                placed.grid_of(settings, reader, name)  # refuses times that have no usual distance
            return placed
        return placed.settled(settings, reader, said, name)

    def settled(self, settings: Asked, reader: Reader, said: list[str], name: str) -> "Placed":
        """The series with all its rows on a grid and learned from; grid and categories are those of the first rows."""
        rows = self.waiting
        if not len(rows):
            return self
        grid = self.grid or self.grid_of(settings, reader, name)
        steps = self._steps(grid, reader, rows, said, name)
        placed = self._replace(waiting=rows.some(slice(0, 0)), grid=grid)
        if placed.series is None:
            placed = placed.begun(reader, steps)
        return placed.learned(settings, reader, steps)

    def gridded(self, settings: Asked, reader: Reader, rows: Rows, name: str) -> tuple["Placed", Reader, Steps]:
        """These rows on a grid of their own, and nothing learned."""
        if reader.timed:
            rows = self._in_order(reader, rows, [], name)
        grid = self._replace(waiting=rows).grid_of(settings, reader, name)
        steps = self._steps(grid, reader, rows, [], name)
        return self._replace(grid=grid).begun(reader, steps), reader, steps

    def learned(self, settings: Asked, reader: Reader, steps: Steps) -> "Placed":
        """The series once these steps have been learned from."""
        known, past = self.inputs(settings, reader, steps)
        later = Series(self.task(settings, reader)) if self.series is None else self.series.copy()
        later.take(steps.y, instants(steps.wall) if reader.dated else None, known, past)
        most = max(KEPT, HORIZONS * settings.horizon)
        last = steps if self.last is None else self.last.then(steps)
        if len(last.y) > most:
            last = Steps(*(array[-most:].copy() for array in last))
        return self._replace(series=later, last=last, length=self.length + len(steps.y))

    def begun(self, reader: Reader, steps: Steps) -> "Placed":
        """The series with the categories that its first rows show."""
        categories: Categories = ()
        if reader.plan is not None:
            categories = reader.plan.no_categories()
            for row in steps.codes:
                categories = reader.plan.grown(categories, row)
        return self._replace(categories=categories)

    def task(self, settings: Asked, reader: Reader) -> Task:
        """What is to be learned."""
        known, past = self.inputs(settings, reader, Steps.none(0 if reader.plan is None else len(reader.plan.names)))
        low, high = settings.bounds or (-np.inf, np.inf)
        season = () if settings.season is None else (settings.season,)
        if not season and self.grid is not None and not all(self.grid.days):
            season = (sum(self.grid.days),)  # a trading week
        seconds = None if self.grid is None else self.grid.seconds
        return Task(settings.horizon, settings.effort, known.shape[1], past.shape[1], seconds, season, low, high)

    def _in_order(self, reader: Reader, rows: Rows, said: list[str], name: str) -> Rows:
        """The rows by their times, each time once."""
        if np.any(np.diff(rows.at) < 0.0):
            rows = rows.some(np.argsort(rows.at, kind="stable"))
        old = rows.at <= self.latest
        again = np.concatenate([[False], np.diff(rows.at) == 0.0]) if len(rows) else old
        if not (old.any() or again.any()):
            return rows
        near = old & (rows.at > self.latest - _HOUR) if reader.dated else old & False
        if (old & ~near).any() or np.sum(old) > max(1, REPEATED * len(rows)):
            raise ValueError(
                f"{name}{int(old.sum())} of {len(rows)} rows are not later than the last row that was taken in, "
                f"{shown(self.latest_wall(reader), reader)}; the first is of {shown(rows.wall[old][0], reader)}: "
                f"give new rows only"
            )
        if again.sum() > self._allowed(reader, rows):
            raise Repeated(name, int(again.sum()), len(rows), shown(rows.wall[again][0], reader))
        gone = old | again
        said.append(
            f"{name}{_counted(int(gone.sum()), 'row')} left out, the first of {shown(rows.wall[gone][0], reader)}: "
            "the time was there before. If clocks went back, give times with their time zone"
        )
        return rows.some(~gone)

    def latest_wall(self, reader: Reader) -> float:
        """Time of the last row by the clock on the wall."""
        if not reader.clock.zoned:
            return self.latest
        return float(to_wall(np.array([self.latest]), reader.look.zone)[0])

    def _allowed(self, reader: Reader, rows: Rows) -> float:
        """Rows with the time of another one that may be the hour in which clocks go back."""
        if not reader.dated or len(rows) < 3:
            return 0.0
        step = np.median(np.diff(np.unique(rows.at))) if len(np.unique(rows.at)) > 1 else np.inf
        return max(_HOUR / step + 0.5 if step <= _HOUR else 0.0, REPEATED * len(rows))

    def grid_of(self, settings: Asked, reader: Reader, name: str) -> Grid:
        """The grid of the rows that are waiting."""
        if not reader.timed:
            return Grid(0.0, 1.0, dated=False)
        try:
            return Grid.of(self.waiting.at, self.waiting.wall, dated=reader.dated, frequency=settings.step)
        except ValueError as error:
            raise ValueError(f"{name}{error}") from error

    def _steps(self, grid: Grid, reader: Reader, rows: Rows, said: list[str], name: str) -> Steps:
        """Rows on the steps after the last one, with a missing target where there is no row."""
        if not reader.timed:
            return Steps(np.full(len(rows), np.nan), rows.y, self._carried(rows.codes))
        times = rows.wall if grid.on_wall else rows.at
        closed = grid.closed(times)
        if closed.any():
            said.append(
                f"{name}{_counted(int(closed.sum()), 'row')} left out, the first of "
                f"{shown(rows.wall[closed][0], reader)}: "
                "the series has no rows on that day of the week otherwise"
            )
            rows, times = rows.some(~closed), times[~closed]
        places = grid.places(times)
        off = grid.off(times, places)
        if off.any():
            raise ValueError(
                f"{name}{int(off.sum())} of {len(rows)} times are not on the grid of one row every {grid}, the first "
                f"is {shown(rows.wall[off][0], reader)}: bring the rows to regular times first, such as with "
                "frame.resample(…).mean(), or say frequency="
            )
        new = np.diff(places, prepend=self.length - 1) > 0
        if not new.all():  # nearer to one step than the step is long
            said.append(
                f"{name}{_counted(int((~new).sum()), 'row')} left out, the first of "
                f"{shown(rows.wall[~new][0], reader)}: "
                f"another row falls on the same step of {grid}"
            )
            rows, places = rows.some(new), places[new]
        gaps = np.diff(places, prepend=self.length - 1)
        if len(gaps) and gaps.max() > MOST_GAP:
            place = int(gaps.argmax())
            raise ValueError(
                f"{name}at most {MOST_GAP} rows in succession may be missing; {shown(rows.wall[place], reader)} is "
                f"{int(gaps[place])} steps of {grid} after the row before: correct it, or start anew there"
            )
        return self._filled(grid, reader, rows, places)

    def _filled(self, grid: Grid, reader: Reader, rows: Rows, places: np.ndarray) -> Steps:
        count = int(places[-1]) + 1 - self.length if len(places) else 0
        here = places - self.length
        y, wall = np.full(count, np.nan), np.full(count, np.nan)
        codes = np.full((count, rows.codes.shape[1]), np.nan)
        y[here], wall[here], codes[here] = rows.y, rows.wall, rows.codes
        missing = np.flatnonzero(np.isnan(wall))
        if len(missing):
            _, wall[missing] = self.when(reader, self.length + missing, grid)
        return Steps(wall, y, self._carried(codes))

    def _carried(self, codes: np.ndarray) -> np.ndarray:
        """Columns with gaps filled by the last value before them, and by 0 before the first value."""
        before = np.zeros((1, codes.shape[1])) if self.last is None else self.last.codes[-1:]
        whole = np.concatenate([before, codes])
        there = np.where(np.isnan(whole), 0, np.arange(len(whole))[:, None])
        return np.take_along_axis(whole, np.maximum.accumulate(there, axis=0), axis=0)[1:]

    # ---- what comes --------------------------------------------------------------------------------------------------

    def anew(self) -> "Placed":
        """The same grid and categories, and nothing learned."""
        return self._replace(length=0, last=None, series=None)

    @property
    def seasons(self) -> tuple[int, ...]:
        """Rows of each season that was found."""
        return () if self.series is None else tuple(self.series.seasons)

    def inputs(self, settings: Asked, reader: Reader, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
        """The known inputs N×K and the past ones N×Q of steps."""
        N = len(steps.y)
        known, past = np.zeros((N, 0)), np.zeros((N, 0))
        if reader.plan is not None:
            encoder = reader.plan.encoder(self.categories, ())
            made = encoder.expanded(steps.codes)
            width = [*encoder.first, encoder.width][len(settings.known)]
            known, past = made[:, :width], made[:, width:]
        if settings.holidays:
            known = np.concatenate([known, holidays(steps.wall, settings.holidays)[:, None]], axis=1)
        return known, past

    def ahead(self, reader: Reader, h: int) -> tuple[np.ndarray, np.ndarray]:
        """Times of the next h steps, and the same by the clock on the wall."""
        return self.when(reader, self.length + np.arange(h))

    def when(self, reader: Reader, places: np.ndarray, grid: Grid | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Times of steps by their numbers, and the same by the clock on the wall."""
        grid = grid or self.grid
        assert grid is not None  # noqa: S101
        times = grid.times(places)
        zone = reader.look.zone if reader.clock.zoned else None
        if not reader.timed:
            return places.astype(np.float64), np.full(len(places), np.nan)
        if not reader.dated:
            return times, times
        return (from_wall(times, zone), times) if grid.on_wall else (times, to_wall(times, zone))

    def forecast(self, settings: Asked, reader: Reader, codes: np.ndarray, h: int) -> Fan:
        """The next h steps, with their known columns, h×C."""
        assert self.series is not None  # noqa: S101
        at, wall = self.ahead(reader, h)
        known, _ = self.inputs(settings, reader, Steps(wall, np.full(h, np.nan), codes))
        whole = not reader.dated and bool(np.all(at == np.round(at)))
        index = instants(at) if reader.dated else at.astype(np.int64) if whole else at
        return self.series.fan(index, instants(wall) if reader.dated else None, known)


class Repeated(ValueError):
    """Several rows have one time: the rows are of several series, or repeated."""

    def __init__(self, name: str, count: int, rows: int, first: str) -> None:
        """Take how many there are, and when the first is."""
        self.remedy = "If there are several series, name their column with key=; else remove repeated rows"
        super().__init__(f"{name}{count} of {rows} rows have the time of another row, the first {first}. {self.remedy}")


def holidays(wall: np.ndarray, given: tuple[str, ...] | str) -> np.ndarray:
    """1 on holidays, N."""
    days, place = np.unique(np.floor(wall / _DAY), return_inverse=True)
    found = np.array([0.0 if day != day else float(calendar.is_holiday(int(day), given)) for day in days.tolist()])
    return np.asarray(found[place])


def shown(time: float, reader: Reader) -> str:
    """A time for a message."""
    if not reader.dated:
        return f"{time:g}"
    return str(np.datetime64(int(time), "us")).replace("T", " ").removesuffix(".000000").removesuffix(" 00:00:00")


def instants(at: np.ndarray) -> np.ndarray:
    """Microseconds since 1970 as NumPy's times."""
    return np.asarray(at, np.float64).astype(np.int64).astype("datetime64[us]")


def _counted(count: int, what: str) -> str:
    return f"1 {what} was" if count == 1 else f"{count} {what}s were"
