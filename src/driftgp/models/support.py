"""Bounds of targets, guessed from the first rows.

A wrong bound costs more than a missing one: a temperature that has been positive so far may fall
below 0 tomorrow. So a bound needs evidence besides the absence of values beyond it.
"""

from typing import Any, NamedTuple

import numpy as np

from driftgp.base import checks

# Fewer rows than this say nothing about bounds.
_FEWEST = 50
# Share of the rows that have to be exactly 0, where zeros are the evidence.
_ZEROS = 0.01
# Whole numbers as large as this are probably counts. Smaller ones may be degrees, so they also have to be skewed.
_LARGE, _SKEWED = 200.0, 0.5
# A gamma law whose mean is two standard deviations has this skewness.
_POSITIVE_SKEW = 1.0
# Offset of roots, as a share of the mean, and of a count.
_ROOT_OFFSET, _ANSCOMBE = 0.15, 0.375
# To find inputs that are earlier targets: rows of a stretch, rows in it that must be informative, and the share of
# these that must agree. An input of whose values a smaller share than the last number occurs among the targets is not
# one.
_STRETCH, _FEWEST_ALIKE, _ALIKE, _KNOWN = 50, 20, 0.75, 0.1
# Lags and targets that differ by this share of the targets' spread are the same: one of them was rounded on its way.
# Values this near to a whole number, by their own size, are whole.
_SAME, _WHOLE = 1e-6, 1e-8


class Support(NamedTuple):
    """Bounds of each output (None without one), and how far the law reaches beyond them."""

    low: tuple[float | None, ...]  # P
    high: tuple[float | None, ...]  # P
    slack: tuple[float, ...]  # P

    @property
    def bounded(self) -> bool:
        """Whether any output has a bound."""
        return any(bound is not None for bound in (*self.low, *self.high))


def support(y: Any) -> Support:
    """Bounds of targets, column by column.

    Args:
        y: the first targets, N or N×P; NaN is left out.

    The low bound is 0 if no value of at least 50 is negative, and

    - zeros pile up: they make up 1 % of the rows, are at least two, and are more than the values next to 0 (rain,
      sales), or
    - all values are whole, the least is below a fifth of the median, and they are skewed, or too large for degrees
      (counts), or
    - all are positive, the mean is less than two standard deviations, and the skewness is above 1. A symmetric law of
      this spread would reach below 0 (concentrations, durations).

    Both bounds, 0 and 1 or 0 and 100, are taken if no value lies outside and either end occurs at least twice. If a
    value lies at a bound, the slack is half the smallest difference between two values, and at most half a standard
    deviation. The reason: a value rounded to the bound may have been beyond it.

    >>> rng = np.random.default_rng(0)
    >>> support(rng.poisson(2.0, 200))
    Support(low=(0.0,), high=(None,), slack=(0.5,))
    >>> support(rng.normal(5.0, 1.0, 200)).bounded
    False
    """
    targets = checks.real("y", y)
    if targets.ndim not in (1, 2):
        raise ValueError(f"y must have shape N, or N×P for several outputs; got shape {targets.shape}")
    columns = [_column(column[np.isfinite(column)]) for column in targets.reshape(len(targets), -1).T]
    return Support(*zip(*columns, strict=True))


def root_offset(values: np.ndarray) -> float:
    """Offset c for roots √(y + c) of amounts that are 0 or more: 15 % of their mean, and at least 3/8 of a count.

    With 3/8 the root of a Poisson count has nearly the same variance at all rates that are not small (Anscombe 1948).

    >>> root_offset(np.array([0.0, 1.0, 2.0, 1.0])), root_offset(np.array([0.0, 50.0, 150.0, 200.0]))
    (0.375, 18.75)
    """
    values = values[np.isfinite(values)]
    if len(values) == 0 or not values.mean() > 0.0:
        return 0.0
    gap = _smallest_gap(values) if values.min() < values.max() else 0.0
    return float(max(_ROOT_OFFSET * values.mean(), min(_ANSCOMBE * gap, values.mean())))


def lagged(X: np.ndarray, y: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Inputs of X (N×D) that are targets y (N×P) of some rows before, with the output that they are of.

    In each stretch of 50 rows, three in four values must equal the target k rows before, up to rounding. k may differ
    between stretches, since rows may be missing. A pair in which both are the most common target, such as 0 and 0, does
    not count.

    >>> y = np.random.default_rng(0).poisson(3.0, 200).astype(float)
    >>> lagged(np.column_stack([np.arange(195), y[2:-3]]), y[5:, None])
    ((1, 0),)
    """
    found = []
    for x in range(X.shape[1]):
        of = next((p for p in range(y.shape[1]) if _is_lag(X[:, x], y[:, p])), None)
        if of is not None:
            found.append((x, of))
    return tuple(found)


def _is_lag(x: np.ndarray, y: np.ndarray) -> bool:
    values, counts = np.unique(y[np.isfinite(y)], return_counts=True)
    here = np.isfinite(x)
    if len(values) > 1:
        x = _snapped(x, values, _SAME * values.std())
    if len(values) < 2 or not np.any(here) or np.mean(np.isin(x[here], values)) < _KNOWN:
        return False  # most columns are not like targets at all
    common = values[counts.argmax()]
    shares = []
    for start in range(0, len(y), _STRETCH):
        now = x[start : start + _STRETCH]
        if len(now) < _STRETCH:
            break
        before = np.full((_STRETCH, len(y)), np.nan)  # the targets of 1, 2, … rows before
        for row in range(_STRETCH):
            before[row, : start + row] = y[: start + row][::-1]
        telling = np.isfinite(now)[:, None] & np.isfinite(before) & ~((now == common)[:, None] & (before == common))
        alike, rows = np.sum(telling & (now[:, None] == before), 0), np.sum(telling, 0)
        if rows.max() >= _FEWEST_ALIKE:
            shares.append(np.max(alike[rows >= _FEWEST_ALIKE] / rows[rows >= _FEWEST_ALIKE]))
    first = next((i for i, share in enumerate(shares) if share >= _ALIKE), None)
    return first is not None and bool(np.mean(shares[first:]) >= _ALIKE)


def _snapped(x: np.ndarray, values: np.ndarray, tolerance: float) -> np.ndarray:
    """Each number, or the nearest of the values (in increasing order) if that is within the tolerance."""
    above = np.searchsorted(values, x).clip(1, len(values) - 1)
    nearest = np.where(np.abs(values[above - 1] - x) < np.abs(values[above] - x), values[above - 1], values[above])
    return np.where(np.abs(nearest - x) <= tolerance, nearest, x)


def _column(values: np.ndarray) -> tuple[float | None, float | None, float]:
    """Low, high and slack of one output."""
    if len(values) < _FEWEST or values.min() < 0.0 or values.min() == values.max():
        return None, None, 0.0
    top = float(values.max())
    if top in (1.0, 100.0) and np.sum(values == 0.0) >= 2 and np.sum(values == top) >= 2:
        return 0.0, top, _slack(values)
    if _zeros_pile_up(values) or _counts(values) or _positive(values):
        return 0.0, None, _slack(values) if values.min() == 0.0 else 0.0
    return None, None, 0.0


def _zeros_pile_up(values: np.ndarray) -> bool:
    """Whether 0 is far more common than the values near it."""
    zeros = np.sum(values == 0.0)
    nearby = max(0.1 * values.std(), _smallest_gap(values))
    return bool(zeros >= max(2.0, _ZEROS * len(values)) and zeros > np.sum((values > 0.0) & (values <= nearby)))


def _counts(values: np.ndarray) -> bool:
    whole = bool(np.all(np.abs(values - np.round(values)) <= _WHOLE * values))
    return (
        whole
        and bool(values.min() < 0.2 * np.median(values))
        and (bool(values.max() >= _LARGE) or _skewness(values) > _SKEWED)
    )


def _positive(values: np.ndarray) -> bool:
    return bool(values.min() > 0.0 and values.mean() < 2.0 * values.std() and _skewness(values) > _POSITIVE_SKEW)


def _skewness(values: np.ndarray) -> float:
    z = (values - values.mean()) / values.std()
    return float(np.mean(z**3))


def _slack(values: np.ndarray) -> float:
    return float(min(0.5 * _smallest_gap(values), 0.5 * values.std()))


def _smallest_gap(values: np.ndarray) -> float:
    return float(np.diff(np.unique(values)).min())
