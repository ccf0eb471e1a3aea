"""How far forecasts may go from the targets that still count.

The least and the largest recent target are kept. With each target y both ends move a little towards y,

    low ← min(y, low + (y − low)/4000),   high ← max(y, high − (high − y)/4000)

so that an extreme counts for some thousand rows. With the length ℓ = high − low, a mean or a median is plausible within

    [low − ℓ, high + ℓ]

and a standard deviation up to ℓ: targets with a larger spread would have a longer range. A new target counts at once.
So forecasts can follow a jump after its first target, and a trend whose next step is shorter than its whole way so far.
Before the tenth target no voice of a bank is limited; nor is it while all targets are the same, since there is no
scale. The forecast of the whole model is plausible within [low − aℓ, high + aℓ] from the third target on, with
a = max(1, 8/n) after n targets. While all targets are the same, it is plausible within 10⁻³ of that value (10⁻¹² of 0)
from the tenth target on.

A target can be absurd: a fill value of 10³⁷ among temperatures. Of n targets with the median m and the upper quartile q
of their distances from it, y is far out at

    d = |y − m| / max(q, |m| · max(1/100, 1/(n − 1)²))

and absurd if d > 100, unless `confirming` successive targets are that far out on the same side. For targets that come
one by one, d is the distance from the range, divided by its length. Among targets that are all 0, and so have no unit,
only a target beyond 10¹⁶ is absurd.
"""

from typing import Any, NamedTuple

import numpy as np

from driftgp.contract.protocol import LARGEST, Units
from driftgp.contract.records import View, floats, wholes

# Targets after which the distance of an end from the targets has shrunk to 1/e.
_MEMORY = 4000.0
# Before this number of targets, their range is unknown. From the second number on it is known roughly: up to the third
# number, forecasts may be the farther out the fewer targets there are.
_FIRST, _ROUGHLY, _SHORT = 10, 3, 8.0
# Largest target, so that the square of the length is finite.
_FARTHEST = LARGEST**2
# Shortest range: the square of a shorter one would be 0.
_SHORTEST = 1e-76
# If all targets are the same, the length of their range: this share of them, and at least the second number.
_SHARE, _LEAST = 1e-3, 1e-12
# Distance from which a target is absurd, in spreads of the others; and the same once their errors are known.
_ABSURD, _NONSENSE = 100.0, 1e6
# Among targets that are all 0, a target is absurd from here on, where floats no longer resolve ones.
_NO_ONES = 1e16
# Standard deviation of the next target after 0, 1, … targets, in units of their size or range: see `least_std`.
_OF_RANGE = np.array([np.inf, 6.48, 5.61, 1.50, 0.882, 0.667, 0.559, 0.494, 0.450, 0.418, 0.0])
FEW = len(_OF_RANGE) - 2
# A level has no smaller spread than this share of it. Of a few targets nobody knows: see `_least_spread`.
_LEVEL = 0.01


class Span(View):
    """The recent range of each target, zeros before the first."""

    low: np.ndarray = floats("P", low=-_FARTHEST, high=_FARTHEST)
    high: np.ndarray = floats("P", low=-_FARTHEST, high=_FARTHEST)
    count: np.ndarray = wholes("P")  # targets so far

    def check(self, path: str = "") -> None:
        """Refuse a range that is impossible."""
        super().check(path)
        if (self.low > self.high).any():
            raise ValueError(f"{path}low must not be above {path}high")


class Limits(NamedTuple):
    """Limits of the mean of a plausible forecast, and of its standard deviation, P each."""

    low: np.ndarray
    high: np.ndarray
    std: np.ndarray

    def wild(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Whether forecasts (…×P) are not plausible; NaN is not plausible."""
        with np.errstate(invalid="ignore", over="ignore"):
            near = (mean >= self.low) & (mean <= self.high) & (variance <= self.std**2)
        return ~near


def count(span: Span, y: np.ndarray) -> None:
    """Widen the range by a target (P), and move its ends towards the target; NaN changes nothing.

    >>> span = Span.empty(P=1)
    >>> for y in (0.0, 4.0, 2.0):
    ...     count(span, np.array([y]))
    >>> span.low.round(3).tolist(), span.high.round(3).tolist()
    ([0.001], [4.0])
    """
    here = np.isfinite(y)
    y = np.clip(y, -_FARTHEST, _FARTHEST)
    first = here & (span.count == 0)
    low = np.minimum(y, span.low + (y - span.low) / _MEMORY)
    high = np.maximum(y, span.high - (span.high - y) / _MEMORY)
    span.low[...] = np.where(first, y, np.where(here, low, span.low))
    span.high[...] = np.where(first, y, np.where(here, high, span.high))
    span.count += here


def confirming(distance: np.ndarray) -> np.ndarray:
    """Number of successive targets this far out that are believed: two, and one per three orders of magnitude.

    >>> confirming(np.array([200.0, 1e6, 1e9, 1e36])).tolist()
    [2.0, 2.0, 3.0, 12.0]
    """
    needed: np.ndarray = np.maximum(2.0, np.ceil(np.log10(np.maximum(distance, 1.0)) / 3.0))
    return needed


def absurd(y: np.ndarray) -> np.ndarray:
    """Which targets of a batch (N, or N×P), in their order, are not believed.

    >>> y = np.array([20.0, 21.0, 9.97e36, 19.0, 21.5])
    >>> absurd(y).tolist()
    [False, False, True, False, False]
    """
    wrong = np.zeros(y.shape, bool)
    for column, found in zip(*((each.T if each.ndim > 1 else each[None]) for each in (y, wrong)), strict=True):
        here = np.isfinite(column)
        found[here] = _absurd(np.clip(column[here], -_FARTHEST, _FARTHEST))
    return wrong


def _absurd(y: np.ndarray) -> np.ndarray:
    """Which of N targets are not believed, N."""
    n = len(y)
    if n < 2:
        return np.zeros(n, bool)
    in_order = np.sort(y)
    low, high = in_order[(n - 1) // 2], in_order[n // 2]
    middle = high if abs(high) < abs(low) else low
    off = np.abs(y - middle)
    scale = max(np.sort(off)[3 * (n - 1) // 4], _least_spread(n - 1) * abs(middle))
    scale = scale or _NO_ONES / _ABSURD
    side = np.where(off > _ABSURD * scale, np.sign(y - middle), 0.0)
    breaks = np.flatnonzero(np.diff(side) != 0.0) + 1
    length = np.diff(np.concatenate([[0], breaks, [n]]))
    running = np.repeat(length, length)
    return (side != 0.0) & (running < confirming(off / scale))


def _least_spread(count: Any) -> Any:
    """Least spread of this number of targets, as a share of their level."""
    return np.maximum(_LEVEL, 1.0 / np.maximum(count, 1) ** 2)


def far(span: Span, y: np.ndarray, *, first: bool) -> np.ndarray:
    """Distance of absurd targets (P) from the range, in its lengths; 0 for other targets.

    Args:
        span: the range of the targets before.
        y: the targets.
        first: whether nothing else can be known about targets; later on only what is nonsense is called so.
    """
    y = np.clip(np.where(np.isfinite(y), y, span.low), -_FARTHEST, _FARTHEST)
    size = np.maximum(np.abs(span.low), np.abs(span.high))
    scale = np.maximum(span.high - span.low, _least_spread(span.count) * size)
    most = _ABSURD if first else _NONSENSE
    scale = np.where(scale > 0.0, scale, _NO_ONES / most)
    off = np.maximum(np.maximum(span.low - y, y - span.high), 0.0)
    distance = np.where(span.count > 0, off / scale, 0.0)
    return np.where(distance > most, distance, 0.0)


def limits(span: Span) -> Limits:
    """What is plausible after these targets.

    >>> span = Span.empty(P=1)
    >>> for y in range(10):
    ...     count(span, np.array([float(y)]))
    >>> [end.round(2).tolist() for end in limits(span)]
    [[-8.98], [17.99], [8.99]]
    """
    length = span.high - span.low
    known = (span.count >= _FIRST) & (length > _SHORTEST)
    return Limits(
        np.where(known, span.low - length, -np.inf),
        np.where(known, span.high + length, np.inf),
        np.where(known, length, np.inf),
    )


def least_std(span: Span) -> np.ndarray:
    """Least standard deviation of the next target after a few targets, P; ∞ before the first.

    For n normal targets with a range ℓ, ±1.96 times this value is the 95 % interval of the next target by Student's t,

        t₀.₉₇₅(n − 1) √(1 + 1/n) · ℓ/d(n) / 1.96

    with d(n) the expected range of n standard normal numbers. A single target has a size and no range. If targets
    scatter around 0, the next one is within 12.7 times its size in 95 % of all cases. From the tenth target on, the
    model's own standard deviation counts.

    >>> span = Span.empty(P=1)
    >>> for y in (2.0, 3.0, 2.5):
    ...     count(span, np.array([y]))
    >>> least_std(span).round(2).tolist()
    [1.5]
    """
    known = np.where(span.count == 1, np.abs(span.low), span.high - span.low)
    with np.errstate(invalid="ignore"):
        least: np.ndarray = _OF_RANGE[np.minimum(span.count, len(_OF_RANGE) - 1)] * known
    return np.where(span.count == 0, np.inf, least)


def around(span: Span) -> tuple[np.ndarray, np.ndarray]:
    """The middle of the range, and the largest distance of a plausible mean from it, P each; infinite while unknown.

        |m − (low + high)/2| ≤ (½ + max(1, 8/n)) ℓ

    >>> span = Span.empty(P=1)
    >>> for y in 10 * [4.0]:
    ...     count(span, np.array([y]))
    >>> [end.tolist() for end in around(span)]
    [[4.0], [0.006]]
    """
    middle, length = 0.5 * (span.low + span.high), span.high - span.low
    known = span.count >= np.where(length > _SHORTEST, _ROUGHLY, _FIRST)
    length = np.where(length > _SHORTEST, length, np.maximum(_SHARE * np.abs(middle), _LEAST))
    wider = np.maximum(1.0, _SHORT / np.maximum(span.count, 1))
    return middle, np.where(known, (0.5 + wider) * length, np.inf)


def rescale(span: Span, units: Units) -> None:
    """Express the range in other units."""
    for end in (span.low, span.high):
        end[...] = np.where(span.count > 0, units.targets(end), 0.0)
