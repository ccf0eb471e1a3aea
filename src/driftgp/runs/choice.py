"""Lags and calendar, if not given: chosen by the time between rows and the correlation of targets.

lags        the last three targets, and the target a season before if targets at this distance are correlated. A season
is a day, a week or a year of months by the clock; without dates it is the period of the first rows calendar    the day
for rows up to half a day apart, the week for rows up to a day apart, the year for weeks and months
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftgp.base.season import DAY, usual_step
from driftgp.stream.naive import find_seasons

NEAR = 3  # last targets
_SURE = 2.0  # least correlation, in standard errors
_CLEAR = 0.3  # least correlation of changes a period apart, for rows without dates
_SHORTEST, _LONGEST = 4, 400  # rows of such a period
_ENOUGH = 30  # pairs of rows for a correlation


class Chosen(NamedTuple):
    """The chosen lags and calendar."""

    lags: tuple[int, ...]
    calendar: tuple[str, ...]


def choose(
    y: np.ndarray, at: np.ndarray, keys: Sequence[str] = (), *, dated: bool, days: bool = False, horizon: int = 1
) -> Chosen:
    """Lags and calendar for a series with these first rows.

    Args:
        y: targets of the first rows, N.
        at: their times, N, in microseconds where they are dates; NaN without.
        keys: the series of each of them, if there are several: the one with the most rows decides.
        dated: whether times are dates.
        days: whether times are days without an hour.
        horizon: rows ahead.

    >>> hours = np.arange(400.0)
    >>> choose(np.sin(hours * np.pi / 12), 3.6e9 * hours, dated=True)
    Chosen(lags=(1, 2, 3, 24, 168), calendar=('day', 'week'))
    """
    if len(keys):
        most = Counter(keys).most_common(1)[0][0]
        own = np.array([key == most for key in keys])
        y, at = y[own], at[own]
    if dated:
        order = np.argsort(at, kind="stable")
        y, at = y[order], at[order]
    seasons = [season.rows for season in find_seasons(at, dated=dated, horizon=horizon)]
    if not dated:
        seasons = _period(y, horizon)
    lags = [*range(horizon, horizon + NEAR), *(rows for rows in seasons if dated and _alike(y, rows))]
    lags += [] if dated else seasons
    return Chosen(tuple(dict.fromkeys(lags)), _calendar(at, dated=dated, days=days))


def _calendar(at: np.ndarray, *, dated: bool, days: bool) -> tuple[str, ...]:
    if not dated:
        return ()
    step = usual_step(at / 1e6)
    if step is None:
        return ("week",) if days else ("day", "week")
    if step > 1.5 * DAY:
        return ("year",)
    return ("week",) if step > 0.51 * DAY else ("day", "week")


def _alike(y: np.ndarray, rows: int) -> bool:
    """Whether targets at this distance in rows are alike."""
    share, pairs = _correlation(y, rows)
    return pairs >= _ENOUGH and share > _SURE / math.sqrt(pairs)


def _period(y: np.ndarray, horizon: int) -> list[int]:
    """Length in rows of the period in the changes from row to row; none if there is no clear period."""
    changes = np.diff(y)
    best, found = _CLEAR, 0
    for rows in range(max(_SHORTEST, horizon), min(_LONGEST, len(changes) - _ENOUGH)):
        share, pairs = _correlation(changes, rows)
        if share > 1.02 * best and pairs >= _ENOUGH:  # a multiple of a period is no better
            best, found = share, rows
    return [found] if found else []


def _correlation(y: np.ndarray, rows: int) -> tuple[float, int]:
    """Correlation of values at this distance in rows, and the number of pairs."""
    before, after = y[: max(len(y) - rows, 0)], y[rows:]
    there = np.isfinite(before) & np.isfinite(after)
    before, after = before[there], after[there]
    if len(before) < 2:
        return 0.0, 0
    with np.errstate(all="ignore"):
        before, after = before - before.mean(), after - after.mean()
        spread = math.sqrt(float(np.sum(before**2)) * float(np.sum(after**2)))
    share = float(before @ after) / spread if 0.0 < spread < math.inf else 0.0
    return share if math.isfinite(share) else 0.0, len(before)
