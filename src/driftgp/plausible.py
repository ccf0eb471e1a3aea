"""How far a forecast may go: no farther than the targets that still count give reason to.

The least and the largest target of late are kept, and with each target y both ends return a little to where y is,

    low ← min(y, low + (y − low)/4000),   high ← max(y, high − (high − y)/4000)

so that an extreme counts for some thousand rows. With the length ℓ = high − low, a mean or a median is plausible within

    [low − ℓ, high + ℓ]

and a standard deviation up to ℓ: targets that spread as far as that would have shown it. A target that comes counts at
once, so nothing keeps a forecast from following a jump that it has seen, or a trend whose next step is shorter than all
the way so far. Until ten targets have come everything is plausible. While they are all the same, a voice of a bank
is not limited, since it has no units to be judged in; a forecast is plausible within 10⁻³ of that value (10⁻¹² of 0).
"""

from typing import NamedTuple

import numpy as np

from driftgp.contract import LARGEST, Units
from driftgp.records import View, floats, wholes

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


class Span(View):
    """The range of each target of late, zeros before the first."""

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
