"""Forecasts that need no model: the last known target, and the known target a season before."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftgp.runner.stored import number, whole
from driftgp.season import DAY, WEEK, season_of, usual_step

NAMES = ("persistence", "season", "season_2")  # of the naive forecasts, in the summary
_FIRST = 50  # rows by which seasons are known
_MOST = 3000  # rows of a season, which all have to be remembered
_SEASONS = {DAY: "day", WEEK: "week"}


class Season(NamedTuple):
    """How far back the target is that a naive forecast repeats: in seconds, or in rows where there are no dates."""

    length: float
    rows: int  # in it, about
    by_rows: bool = False

    @property
    def label(self) -> str:
        """How people call that.

        >>> Season(86400.0, 24).label, Season(1209600.0, 336).label, Season(12.0, 12, by_rows=True).label
        ('a day before', '2 weeks before', '12 rows before')
        """
        if self.by_rows:
            return f"{self.rows} rows before"
        for length, name in reversed(_SEASONS.items()):
            if self.length % length == 0.0:
                times = round(self.length / length)
                return f"a {name} before" if times == 1 else f"{times} {name}s before"
        return f"{self.length:g} s before"

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> "Season":
        """What a checkpoint holds."""
        length, rows, by_rows = stored
        return cls(number(length), whole(rows), by_rows is True)


def find_seasons(at: Sequence[float], dated: bool, lags: Sequence[int], horizon: int) -> tuple[Season, ...]:
    """Seasons, two at most, of a series whose first rows have these times: a day and a week, a week, or a year.

    Without dates, those that seasonal lags name. None is shorter than the horizon: what is later is not known.

    >>> [season.label for season in find_seasons([3600.0 * t for t in range(9)], True, [], 36)]
    ['2 days before', 'a week before']
    """
    step = usual_step(at) if dated else None
    rows = season_of(step)
    if step is None or rows is None:
        return tuple(Season(float(lag), lag, by_rows=True) for lag in sorted(set(lags)) if 1 < lag <= _MOST)[:2]
    if step > 1.5 * DAY:  # weeks of a year and months are counted in rows: they are no fixed number of seconds
        rows *= math.ceil(horizon / rows)
        return (Season(float(rows), rows, by_rows=True),)
    lengths = [length for length in _SEASONS if 2.0 * step <= length <= _MOST * step]
    known = dict.fromkeys(length * math.ceil(horizon * step / length) for length in lengths)
    return tuple(Season(length, round(length / step)) for length in known)


class Naive:
    """The naive forecasts of one series, row by row; where a season before nothing was observed, the last target."""

    def __init__(self, lags: Sequence[int], horizon: int) -> None:
        """Know nothing but the seasonal lags, which are seasons where there are no dates."""
        self.lags, self.horizon = lags, horizon
        self.seasons: tuple[Season, ...] | None = None  # until the first rows have shown how far apart rows are
        self.rows = 0
        self.last = math.nan  # the last label that is out
        self._first: list[tuple[float, float]] = []  # times and targets of the first rows
        self._past: dict[float, tuple[int, float]] = {}  # row and target by time, or by row; in the order of the rows

    def seasonal(self, at: np.ndarray, y: np.ndarray, dated: bool) -> np.ndarray:
        """Take in rows with times (N) and targets (N): the targets a season before each, N×2, NaN where unknown."""
        found = np.full((len(y), len(NAMES) - 1), np.nan)
        for i, (time, target) in enumerate(zip(at.tolist(), y.tolist(), strict=True)):
            if self.seasons is None:
                self._first.append((time, target))
                if len(self._first) == _FIRST:
                    self._begin(dated)
            elif self.seasons:
                found[i, : len(self.seasons)] = self._row(time, target)
        return found

    def _begin(self, dated: bool) -> None:
        """Choose the seasons, and remember the rows so far."""
        self.seasons = find_seasons([time for time, _ in self._first], dated, self.lags, self.horizon)
        for time, target in self._first if self.seasons else ():
            self._row(time, target)
        self._first = []

    def _row(self, time: float, target: float) -> list[float]:
        """Take in one row; the targets a season before it."""
        seasons = self.seasons or ()
        now = float(self.rows) if seasons[0].by_rows else time
        past = [self._past.get(now - season.length, (self.rows, math.nan)) for season in seasons]
        found = [value if self.rows - row >= self.horizon else math.nan for row, value in past]
        if target == target:
            self._past.pop(now, None)
            self._past[now] = self.rows, target
        if len(self._past) > max(season.rows for season in seasons) + self.horizon:
            del self._past[next(iter(self._past))]
        self.rows += 1
        return found

    def forecasts(self, labels: np.ndarray, first: int, seasonal: np.ndarray) -> np.ndarray:
        """Forecasts of the last rows, N×3: each came when the label of the same place from `first` on was out."""
        known = np.append(self.last, labels)
        place = np.maximum.accumulate(np.where(np.isnan(known), 0, np.arange(len(known))))
        filled = known[place]
        self.last = float(filled[-1])
        last = filled[1 + first :, None]
        seasonal = seasonal[len(seasonal) - len(last) :]
        return np.concatenate([last, np.where(np.isnan(seasonal), last, seasonal)], 1)

    def to_json(self) -> dict[str, Any]:
        """All that is known, as JSON holds it."""
        return {
            "seasons": self.seasons,
            "rows": self.rows,
            "last": self.last,
            "first": self._first,
            "past": [[at, *known] for at, known in self._past.items()],
        }

    def restore(self, stored: dict[str, Any]) -> None:
        """Take back what `to_json` gave."""
        seasons = stored["seasons"]
        self.seasons = None if seasons is None else tuple(map(Season.from_json, seasons))[:2]
        self.rows, self.last = whole(stored["rows"]), number(stored["last"])
        self._first = [(number(time), number(target)) for time, target in stored["first"]]
        self._past = {number(at): (whole(row), number(target)) for at, row, target in stored["past"]}


def labels_of(seasons: Sequence[tuple[Season, ...]]) -> dict[str, str]:
    """What each naive forecast of several series is, by its name in the summary.

    >>> labels_of([(Season(604800.0, 7),), (Season(604800.0, 7),)])
    {'persistence': 'persistence (the last value)', 'season': 'seasonal naive (a week before)'}
    """
    labels = {NAMES[0]: "persistence (the last value)"}
    for place, name in enumerate(NAMES[1:]):
        found = {own[place].label for own in seasons if len(own) > place}
        if found:
            labels[name] = f"seasonal naive ({found.pop() if len(found) == 1 else 'a season before'})"
    return labels
