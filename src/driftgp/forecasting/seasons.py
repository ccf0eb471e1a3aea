"""The seasons of a series, from the clock or from its values.

Rows that are hours or minutes apart have a day and a week; days have a week; weeks, months and quarters a year.
Without times a season is found from the values: for a length p, the profile of the odd cycles has to predict the even
ones. With x the values less their mean over a cycle around them, and f the mean of x by place in the cycle,

    r = 1 − |f_even − f_odd|² / (|f_even|² + |f_odd|²)

is 1 for a season that repeats itself, and near 0 for noise and for random walks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from driftgp.base.season import DAY, season_of

WEEK = 7  # days
YEAR = 365.25
FIRST_MONDAY = 4  # day 4 of 1970 was one
LONGEST = 2000  # slots of a season that are told apart
CANDIDATES = 8
LEAST, CYCLES = 0.2, 1.5  # r has to be LEAST + CYCLES / cycles
FIRM, APART = 4.0, 6.0  # least F of a season: FIRM plus APART standard deviations of the F of noise
NEARLY = 0.9  # share of the best r: the shortest season with at least this share is taken
DAYS = (24, 48, 96)  # rows that may be a day where there are no times: of hours, half hours and quarters
WEEKS = (WEEK, 5)  # days of a week: all of them, or those on which markets trade


@dataclass(frozen=True)
class Seasons:
    """Lengths in rows, the shortest first, and whether their slots follow the clock."""

    lengths: tuple[int, ...]
    step: float | None  # seconds between rows
    clock: bool

    def slots(self, row: int, at: np.ndarray | None, count: int) -> np.ndarray:
        """Slots of rows from `row` on, whose times are `at`: one line for each season, S×N."""
        if not self.clock or at is None or self.step is None:
            rows = row + np.arange(count)
            return np.array([rows % length for length in self.lengths], np.int64).reshape(len(self.lengths), count)
        steps = np.floor((_days(at) - FIRST_MONDAY) * (DAY / self.step) + 1e-6).astype(np.int64)
        return np.array([steps % length for length in self.lengths], np.int64)

    def words(self) -> str:
        """Them in words.

        >>> Seasons((24, 168), 3600.0, True).words()
        'seasons: a day (24 rows), a week (168 rows)'
        """
        if not self.lengths:
            return "no season"
        return "seasons: " + ", ".join(self._named(length) for length in self.lengths)

    def _named(self, length: int) -> str:
        if self.step is not None:
            for seconds, name in ((DAY, "a day"), (WEEK * DAY, "a week"), (YEAR * DAY, "a year")):
                if abs(length * self.step - seconds) < 0.02 * seconds:
                    return f"{name} ({length} rows)"
        return f"{length} rows"


def of_clock(step: float | None) -> Seasons:
    """The seasons of rows that are this number of seconds apart.

    >>> of_clock(3600.0).lengths, of_clock(86400.0).lengths, of_clock(2.63e6).lengths, of_clock(None).lengths
    ((24, 168), (7,), (12,), ())
    """
    season = season_of(step)
    if season is None or step is None or season < 2:
        return Seasons((), step, False)
    if step <= DAY / 2 and abs(season * step - DAY) < 1.0:
        return Seasons(tuple(length for length in (season, WEEK * season) if length <= LONGEST * WEEK), step, True)
    return Seasons((season,), step, step == DAY)


def found(y: np.ndarray, given: Iterable[int] = ()) -> tuple[int, ...]:
    """Lengths of the seasons that values show, two at most; of those given, the longer ones that are multiples.

    A season of 24, 48 or 96 rows may be a day. It has a week then: of seven days, unless the rows show one of five.

    >>> t = np.arange(700)
    >>> noise = np.random.default_rng(0).normal(size=700)
    >>> found(np.sin(2 * np.pi * t / 24) + (t // 24 % 7 > 4) + 0.3 * noise)
    (24, 168)
    >>> found(np.cumsum(noise)), found(noise)
    ((), ())
    """
    y = _filled(np.asarray(y, np.float64))
    given = lengths = tuple(given)
    if not lengths:
        some = _peaks(y)
        shown = [(p, _repeats(y, p)) for p in some]
        shown = [(p, r) for p, r in shown if r > LEAST + CYCLES * p / len(y)]
        if not shown:
            return ()
        best = max(r for _, r in shown)
        lengths = (min(p for p, r in shown if r >= NEARLY * best),)
    p = lengths[-1]
    if len(lengths) == 1 and 3 * p <= LONGEST:
        rest = _less_season(y, p)
        multiples = [(k, _repeats(rest, k * p)) for k in range(2, 15) if 3 * k * p <= len(y) and k * p <= LONGEST]
        multiples = [(k, r) for k, r in multiples if r > LEAST + CYCLES * k * p / len(y)]
        if p in DAYS:
            shown_weeks = [k for k in WEEKS if any(k == other for other, _ in multiples)]
            return (p, (*shown_weeks, WEEK)[0] * p)
        if multiples:
            best = max(r for _, r in multiples)
            lengths = (p, p * min(k for k, r in multiples if r >= NEARLY * best))
    if lengths[-1] in DAYS and not given:  # the shorter season is a part of a day
        return (lengths[-1], WEEK * lengths[-1])
    return lengths


def year(at: np.ndarray | None, count: int) -> np.ndarray:
    """Phase of the year of rows, N; zeros without times."""
    return np.zeros(count) if at is None else 2.0 * np.pi * (_days(at) % YEAR) / YEAR


def waves_of_year(phase: float | np.ndarray) -> np.ndarray:
    """Sine and cosine of the year's phase, and of its double, 4 or 4×N."""
    return np.array([np.sin(phase), np.cos(phase), np.sin(2.0 * phase), np.cos(2.0 * phase)])


def _days(at: np.ndarray) -> np.ndarray:
    days: np.ndarray = at.astype("datetime64[us]").astype(np.int64) / (1e6 * DAY)
    return days


def _filled(y: np.ndarray) -> np.ndarray:
    """Values with gaps bridged, and wild ones held in."""
    there = np.isfinite(y)
    if there.sum() < 2:
        return np.zeros(len(y))
    y = np.interp(np.arange(len(y)), np.flatnonzero(there), y[there])
    low, high = np.quantile(y, [0.02, 0.98])
    return np.clip(y, low - (high - low), high + (high - low))


def _peaks(y: np.ndarray) -> list[int]:
    """Lengths with the largest autocorrelation of the values or of their changes."""
    N = len(y)
    if N < 8:
        return []
    some: dict[int, float] = {}
    for x in (np.diff(y), _level_free(y)):
        power = np.abs(np.fft.rfft(x - x.mean(), 2 * N)) ** 2
        r = np.fft.irfft(power)[: N // 3 + 2]
        if not r[0] > 0.0:
            continue
        r = r / r[0]
        at = 2 + np.flatnonzero((r[2:-1] > r[1:-2]) & (r[2:-1] >= r[3:]))
        for p in at[np.argsort(r[at])[::-1][:CANDIDATES]].tolist():
            some[p] = max(some.get(p, 0.0), float(r[p]))
    return sorted(p for p, r in some.items() if r > 0.1 and p <= LONGEST)


def _level_free(y: np.ndarray) -> np.ndarray:
    t = np.linspace(-1.0, 1.0, len(y))
    return y - np.polynomial.legendre.legval(t, np.polynomial.legendre.legfit(t, y, 2))


def _less_level(y: np.ndarray, p: int) -> np.ndarray:
    """Values less their mean over the cycle around them; NaN at the ends, where no full cycle exists."""
    sums = np.concatenate([[0.0], np.cumsum(y)])
    mean = (sums[p:] - sums[:-p]) / p
    if p % 2 == 0:
        mean = 0.5 * (mean[1:] + mean[:-1])
    x = np.full(len(y), np.nan)
    x[p // 2 : p // 2 + len(mean)] = y[p // 2 : p // 2 + len(mean)] - mean
    return x


def _repeats(y: np.ndarray, p: int) -> float:
    """r of a length."""
    if len(y) < 3 * p:
        return 0.0
    x = _less_level(y, p)
    rows = np.flatnonzero(x == x)
    profiles = np.zeros((2, p))
    count = np.zeros((2, p))
    half, place = rows // p % 2, rows % p
    np.add.at(profiles, (half, place), x[rows])
    np.add.at(count, (half, place), 1.0)
    if count.min() < 1.0:
        return 0.0
    f = profiles / count
    size = float((f**2).sum())
    if not size > 1e-18 * float((y**2).sum()):
        return 0.0
    profile = profiles.sum(0) / count.sum(0)
    within = float(((x[rows] - profile[place]) ** 2).sum()) / max(len(rows) - p, 1)
    between = float((count.sum(0) * profile**2).sum()) / (p - 1)
    # an F test, which is strict because many lengths are tried
    if between < (FIRM + APART * np.sqrt(2.0 / (p - 1))) * within:
        return 0.0
    return 1.0 - float(((f[0] - f[1]) ** 2).sum()) / size


def _less_season(y: np.ndarray, p: int) -> np.ndarray:
    x = _less_level(y, p)
    rows = np.flatnonzero(x == x)
    f = np.bincount(rows % p, x[rows], p) / np.maximum(np.bincount(rows % p, minlength=p), 1)
    rest: np.ndarray = y - f[np.arange(len(y)) % p]
    return rest
