"""How far a forecast may go: no farther than the targets that still count give reason to.

The least and the largest recent target are kept, and with each target y both ends return a little to where y is,

    low ← min(y, low + (y − low)/4000),   high ← max(y, high − (high − y)/4000)

so that an extreme counts for some thousand rows. With the length ℓ = high − low, a mean or a median is plausible within

    [low − ℓ, high + ℓ]

and a standard deviation up to ℓ: targets that spread as far as that would have shown it. A new target counts at once.
So forecasts can follow a jump that has been seen, and a trend whose next step is shorter than its whole way so far.
Until ten targets have come everything is plausible. While they are all the same, a voice of a bank is not limited,
since there is no scale to judge it by. A forecast is then plausible within 10⁻³ of that value (10⁻¹² of 0).

A target can be absurd: a fill value of 10³⁷ among temperatures. Of n targets with the median m and the upper quartile q
of their distances from it, y is far out at

    d = |y − m| / max(q, |m| · max(1/100, 1/(n − 1)²))

and absurd if d > 100, unless as many targets running as `confirming` says are so on the same side. Of targets that come
one by one, d is the distance from their range in lengths of it. Among targets that are all 0, which have no unit, only
what is beyond 10¹⁶ is absurd.
"""

from typing import Any, NamedTuple

import numpy as np

from driftgp.contract.protocol import LARGEST, Units
from driftgp.contract.records import View, floats, wholes

# Targets after which the distance of an end from them has shrunk to 1/e.
_MEMORY = 4000.0
# Until so many targets have come nobody knows how far they go.
_FIRST = 10
# No target is farther out: the square of the length is a number.
_FARTHEST = LARGEST**2
# A range that is shorter is none: the square of its length would be 0.
_SHORTEST = 1e-76
# Where all targets are the same, their range is taken to be this share of them long, and no less than that.
_SHARE, _LEAST = 1e-3, 1e-12
# A target is absurd from so many times the spread of the others on; once their errors are known, from so many on.
_ABSURD, _NONSENSE = 100.0, 1e6
# Among targets that are all 0 one is absurd from here on, where a number has no digit for ones any more.
_NO_ONES = 1e16
# Standard deviation of a next target after 0, 1, … of them, in their sizes or ranges: see `least_std`.
_OF_RANGE = np.array([np.inf, 6.48, 5.61, 1.50, 0.882, 0.667, 0.559, 0.494, 0.450, 0.418, 0.0])
FEW = len(_OF_RANGE) - 2
# A level has no smaller spread than this share of it. Of a few targets nobody knows: see `_least_spread`.
_LEVEL = 0.01


class Span(View):
    """The recent range of each target, zeros before the first."""

    low: np.ndarray = floats("P")
    high: np.ndarray = floats("P")
    count: np.ndarray = wholes("P")  # targets so far


class Limits(NamedTuple):
    """Where the mean of a plausible forecast lies, and how large its standard deviation is at most, P each."""

    low: np.ndarray
    high: np.ndarray
    std: np.ndarray

    def wild(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Whether forecasts (…×P) are not plausible; one that is no number is not."""
        with np.errstate(invalid="ignore", over="ignore"):
            near = (mean >= self.low) & (mean <= self.high) & (variance <= self.std**2)
        return ~near


def count(span: Span, y: np.ndarray) -> None:
    """Widen the range by a target (P), and let the rest of it return; NaN changes nothing.

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
    """How many targets running have to be so far out to be believed: two, and one for each three orders of magnitude.

    >>> confirming(np.array([200.0, 1e6, 1e9, 1e36])).tolist()
    [2.0, 2.0, 3.0, 12.0]
    """
    needed: np.ndarray = np.maximum(2.0, np.ceil(np.log10(np.maximum(distance, 1.0)) / 3.0))
    return needed


def absurd(y: np.ndarray) -> np.ndarray:
    """Which targets of a batch (N, or N×P), in the order in which they came, are not to be believed.

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
    """Which of N targets are not to be believed, N."""
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
    """How far out the targets (P) lie, in lengths of the range, where that is absurd; 0 where it is not.

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
    """How large the standard deviation of a next target is at least, after the first ones: ∞ before the first, P.

    Of n normal targets with a range ℓ it is such that ±1.96 of it is the 95 % interval of a next one by Student's t,

        t₀.₉₇₅(n − 1) √(1 + 1/n) · ℓ/d(n) / 1.96

    with d(n) the expected range of n standard normal numbers. One target has a size and no range; if targets come from
    around 0, the next one is within 12.7 of its sizes in 95 % of all cases. From the tenth on the model speaks.

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
    """The middle of the range, and how far from it a plausible mean is at most, P each; infinite where nobody knows.

    >>> span = Span.empty(P=1)
    >>> for y in 10 * [4.0]:
    ...     count(span, np.array([y]))
    >>> [end.tolist() for end in around(span)]
    [[4.0], [0.006]]
    """
    middle, length = 0.5 * (span.low + span.high), span.high - span.low
    length = np.where(length > _SHORTEST, length, np.maximum(_SHARE * np.abs(middle), _LEAST))
    return middle, np.where(span.count >= _FIRST, 1.5 * length, np.inf)


def rescale(span: Span, units: Units) -> None:
    """Express the range in other units."""
    for end in (span.low, span.high):
        end[...] = np.where(span.count > 0, units.targets(end), 0.0)


def check(span: Span) -> None:
    """Refuse a range that no targets could have left."""
    if not np.all(np.abs([span.low, span.high]) <= _FARTHEST):
        raise ValueError(f"low and high must be finite, and at most {_FARTHEST:g} in size")
    if (span.low > span.high).any() or (span.count < 0).any():
        raise ValueError("low must not be above high, and count must not be negative")
