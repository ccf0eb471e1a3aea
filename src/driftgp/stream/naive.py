"""Forecasts that need no model: the last known target, and the known target a season before.

Row i is predicted when the targets of rows up to i − h are known, h being the horizon. Its naive forecasts are

    persistence    the last target among those rows
    a season       the target at the same time a day or a week before, by the clock; weeks and months, and rows without
                   dates, are counted in rows. Without such a target: the last one

Each forecast depends only on rows of a bounded past, so that the cut into blocks changes nothing.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftgp.base.season import DAY, WEEK, season_of, usual_step

PERSISTENCE = "persistence"
FIRST = 20  # rows by which seasons are known
MOST = 2  # seasons
_LONGEST = 3000  # largest number of rows in a season, which all have to be remembered
_SECOND = 1e6  # microseconds
_SEASONS = {DAY: "day", WEEK: "week"}


class Season(NamedTuple):
    """How far back the target is that a naive forecast repeats: in seconds by the clock, or in rows.

    >>> Season(86400.0, 24).label, Season(1209600.0, 336).label, Season(12.0, 12, by_rows=True).label
    ('a day before', '2 weeks before', '12 rows before')
    """

    length: float
    rows: int  # in it, about
    by_rows: bool = False

    @property
    def label(self) -> str:
        """Its name for people."""
        if self.by_rows:
            return f"{self.rows} rows before"
        for length, name in reversed(_SEASONS.items()):
            if self.length % length == 0.0:
                times = round(self.length / length)
                return f"a {name} before" if times == 1 else f"{times} {name}s before"
        return f"{self.length:g} s before"

    def depth(self, horizon: int) -> int:
        """Rows of the past in which the target is looked for: somewhat more than a season has."""
        return self.rows + self.rows // 4 + horizon + 1

    @classmethod
    def restored(cls, stored: Sequence[Any]) -> "Season":
        """A season from a file; refuses impossible ones."""
        length, rows, by_rows = stored
        if type(rows) is not int or not 1 <= rows <= 4 * _LONGEST or not 0.0 < float(length) < math.inf:
            raise ValueError(f"a season of {length!r} with {rows!r} rows is not possible")
        return cls(float(length), rows, by_rows is True)


def find_seasons(
    at: np.ndarray | None, *, dated: bool, horizon: int = 1, lags: Iterable[int] = ()
) -> tuple[Season, ...]:
    """Seasons, two at most, of rows with these times: a day and a week, a week, or a year.

    Args:
        at: times of the first rows; in microseconds where they are dates.
        dated: whether they are dates.
        horizon: rows ahead. No season is shorter, since later targets are not known.
        lags: the lags of the target, for rows without dates: long lags are seasons in rows.

    >>> hours = 3.6e9 * np.arange(9)
    >>> [season.label for season in find_seasons(hours, dated=True, horizon=36)]
    ['2 days before', 'a week before']
    """
    step = None if at is None or not dated else usual_step(np.asarray(at, np.float64) / _SECOND)
    rows = season_of(step)
    if step is None or rows is None:
        far = [lag for lag in sorted(set(lags)) if horizon + 3 <= lag <= _LONGEST]
        return tuple(Season(float(lag), lag, by_rows=True) for lag in far[-MOST:])
    if step > 1.5 * DAY:  # they are no fixed number of seconds
        rows *= math.ceil(horizon / rows)
        return (Season(float(rows), rows, by_rows=True),)
    lengths = [length for length in _SEASONS if 2.0 * step <= length <= _LONGEST * step]
    known = dict.fromkeys(length * math.ceil(horizon * step / length) for length in lengths)
    return tuple(Season(length, _rows_in(length, step, at)) for length in known)


def _rows_in(length: float, step: float, at: Any) -> int:
    """Number of rows in a span of seconds: one per step, or more where several rows have one time."""
    span = (np.nanmax(at) - np.nanmin(at)) / _SECOND
    each = len(at) * length / (span + step)
    return min(round(max(length / step, each)), 4 * _LONGEST)


def naive(
    y: np.ndarray,
    at: np.ndarray | None = None,
    *,
    dated: bool = False,
    horizon: int = 1,
    seasons: Sequence[Season] | None = None,
    lags: Iterable[int] = (),
) -> dict[str, np.ndarray]:
    """The naive forecasts of each row of a series, N each, by what they are; NaN where no target was known.

    Args:
        y: the targets, N; NaN where one is missing.
        at: times of the rows, N, those of the clock on the wall in microseconds where they are dates; None without.
        dated: whether times are dates.
        horizon: how many rows after the last known target the predicted row is.
        seasons: two at most; None for those that the first rows show. The first rows then have no seasonal forecast.
        lags: see `find_seasons`.

    >>> naive(np.array([1.0, 2.0, 3.0, 4.0]), seasons=[Season(2.0, 2, by_rows=True)])["2 rows before"].tolist()
    [nan, 1.0, 1.0, 2.0]
    """
    y = np.asarray(y, np.float64)
    at = np.full(len(y), np.nan) if at is None else np.asarray(at, np.float64)
    series = Naive(horizon, tuple(lags), None if seasons is None else tuple(seasons))
    made = series.take(y, at, dated=dated)
    return dict(zip(series.labels, made.T, strict=False))


def forecasts(
    y: np.ndarray, at: np.ndarray, seasons: Sequence[Season], horizon: int, last: float = math.nan
) -> np.ndarray:
    """Naive forecasts of N rows, N×(1 + seasons): persistence first. `last` is the last target known before them."""
    N = len(y)
    known = np.full(N, math.nan)
    known[horizon:] = y[: max(N - horizon, 0)]
    place = np.maximum.accumulate(np.where(np.isnan(known), -1, np.arange(N)))
    made = np.empty((N, 1 + len(seasons)))
    made[:, 0] = np.where(place >= 0, known[np.maximum(place, 0)], last)
    for number, season in enumerate(seasons, start=1):
        found = _before_in_rows(y, season.rows) if season.by_rows else _before(y, at, season, horizon)
        made[:, number] = np.where(np.isnan(found), made[:, 0], found)
    return made


def _before_in_rows(y: np.ndarray, rows: int) -> np.ndarray:
    """The target this number of rows before each row, N."""
    found = np.full(len(y), np.nan)
    found[rows:] = y[: max(len(y) - rows, 0)]
    return found


def _before(y: np.ndarray, at: np.ndarray, season: Season, horizon: int) -> np.ndarray:
    """The target at the same time a season before each row, N; NaN if no such target is known."""
    N, row = len(y), np.arange(len(y))
    there = np.flatnonzero(~np.isnan(y) & ~np.isnan(at))
    found = np.full(N, np.nan)
    if not len(there):
        return found
    times, code = np.unique(at[there], return_inverse=True)
    order = np.lexsort((there, code))
    keys = code[order] * N + there[order]  # by time, and then by row
    wanted = at - season.length * _SECOND
    same = np.minimum(np.searchsorted(times, wanted), len(times) - 1)
    match = np.searchsorted(keys, same * N + row - horizon, side="right") - 1
    one = there[order][np.maximum(match, 0)]
    good = (match >= 0) & (times[same] == wanted) & (at[one] == wanted)
    good &= (row >= horizon) & (row - one <= season.depth(horizon))
    found[good] = y[one[good]]
    return found


class Naive:
    """The naive forecasts of one series, block by block, with the rows that the next block needs."""

    __slots__ = ("at", "horizon", "lags", "last", "rows", "seasons", "y")

    def __init__(self, horizon: int, lags: tuple[int, ...] = (), seasons: tuple[Season, ...] | None = None) -> None:
        """Start without rows, with the seasons if they are given."""
        self.horizon, self.lags = horizon, lags
        self.seasons = seasons  # None until the first rows have shown how far apart rows are
        self.rows = 0
        self.last = math.nan  # the last target known before the rows that are remembered
        self.at, self.y = np.zeros(0), np.zeros(0)

    def take(self, y: np.ndarray, at: np.ndarray, *, dated: bool) -> np.ndarray:
        """Take in rows; return the naive forecasts of each, N×3: the last target if the season is not known."""
        made = np.empty((len(y), 1 + MOST))
        begin = 0
        if self.seasons is None:
            begin = min(FIRST - self.rows, len(y))
            made[:begin] = self._taken(y[:begin], at[:begin], ())
            if self.rows == FIRST:
                self.seasons = find_seasons(self.at, dated=dated, horizon=self.horizon, lags=self.lags)
                self._forget(self.seasons)
        if begin < len(y) and self.seasons is not None:
            taken = self._taken(y[begin:], at[begin:], self.seasons)
            made[begin:] = taken[:, :1]
            made[begin:, : taken.shape[1]] = taken
            self._forget(self.seasons)
        return made

    def _taken(self, y: np.ndarray, at: np.ndarray, seasons: tuple[Season, ...]) -> np.ndarray:
        before = len(self.y)
        self.y, self.at = np.concatenate([self.y, y]), np.concatenate([self.at, at])
        self.rows += len(y)
        return forecasts(self.y, self.at, seasons, self.horizon, self.last)[before:]

    def _forget(self, seasons: tuple[Season, ...]) -> None:
        """Forget the rows that no forecast reaches back to."""
        gone = len(self.y) - max((season.depth(self.horizon) for season in seasons), default=self.horizon)
        if gone > 0:
            known = self.y[:gone][~np.isnan(self.y[:gone])]
            self.last = float(known[-1]) if len(known) else self.last
            self.y, self.at = self.y[gone:].copy(), self.at[gone:].copy()

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each forecast."""
        return (PERSISTENCE, *(season.label for season in self.seasons or ()))

    def to_json(self) -> dict[str, Any]:
        """All that is known, for a file."""
        return {"seasons": self.seasons, "rows": self.rows, "last": self.last, "at": self.at, "y": self.y}

    def restore(self, stored: dict[str, Any]) -> None:
        """Take back what `to_json` gave; refuses what it cannot have given."""
        seasons, rows = stored["seasons"], stored["rows"]
        self.seasons = None if seasons is None else tuple(map(Season.restored, seasons))
        if type(rows) is not int or rows < 0 or len(self.seasons or ()) > MOST:
            raise ValueError("its naive forecasts have a count that is not valid")
        self.rows, self.last = rows, float(stored["last"])
        self.at, self.y = (np.asarray(stored[name], np.float64) for name in ("at", "y"))
        if self.at.ndim != 1 or self.at.shape != self.y.shape or len(self.y) > rows or np.isinf(self.y).any():
            raise ValueError("its naive forecasts do not fit its rows")
