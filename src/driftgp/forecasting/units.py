"""The units in which a series is seen: centred and scaled, or its square roots where it reaches down to 0.

They move with a series whose level or unit has changed (`moved`), so that its model stays valid.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

FINEST = 1e-12  # least scale, as a share of the size of the values: below it rounding would count as noise
ABSURD = 1000.0  # a first value is absurd at this many usual distances from the median
_NEAR_ZERO = 0.1  # share of the mean: a series without negative values that comes this near to 0 is seen as roots


@dataclass(frozen=True)
class Units:
    """z = (f(y) − centre)/scale, with f(y) = y or √y."""

    centre: float
    scale: float
    roots: bool

    @classmethod
    def of(cls, y: np.ndarray) -> "Units":
        """Units for a series that begins with these values.

        >>> Units.of(np.array([1.0, 4.0, 400.0])).roots, Units.of(np.array([90.0, 110.0])).roots
        (True, False)
        """
        y = y[np.isfinite(y)]
        if not len(y):
            return cls(0.0, 1.0, False)
        roots = bool(y.min() >= 0.0 and y.min() < _NEAR_ZERO * y.mean())
        f = np.sqrt(y) if roots else y
        scale = float(f.std())
        return cls(float(f.mean()), scale if scale > 0.0 else max(abs(float(f.mean())), 1.0), roots)

    def inwards(self, y: np.ndarray) -> np.ndarray:
        """Values in these units; a negative value counts as 0 where roots are taken."""
        return ((np.sqrt(np.maximum(y, 0.0)) if self.roots else y) - self.centre) / self.scale

    def outwards(self, z: np.ndarray) -> np.ndarray:
        """Values from z, in these units."""
        f = self.centre + self.scale * z
        return np.maximum(f, 0.0) ** 2 if self.roots else f

    def slope(self, z: np.ndarray) -> np.ndarray:
        """By how much a value grows with z; for roots at least a tenth of that of one standard deviation."""
        if not self.roots:
            return np.full(len(z), self.scale)
        return 2.0 * self.scale * np.maximum(self.centre + self.scale * z, 0.1 * self.scale)

    def mean(self, z: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Mean of values whose mean and variance in these units are z and v: E f² = (E f)² + Var f for roots."""
        f = self.centre + self.scale * z
        return f**2 + self.scale**2 * variance if self.roots else f

    def variance(self, z: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Variance of the same values: 4 (E f)² Var f + 2 (Var f)² for roots that are normal."""
        f, v = self.centre + self.scale * z, self.scale**2 * variance
        return 4.0 * f**2 * v + 2.0 * v**2 if self.roots else v


def moved(
    units: Units, earlier: np.ndarray, y: np.ndarray, expected: np.ndarray, usual: float, most: float
) -> Units | None:
    """Units in which the values agree with their expectations; None if no units do.

    Let f be the values, or their roots, and g their expected values. Three changes are tried: of the level, f = g + δ;
    of the unit, f = b g; and back to the earlier units. The one with the greatest likelihood

        Σ −½ (error / (b · usual))² − log b,    b = scale / scale before,

    is taken if all its errors are at most `most` usual ones. A single value can only bring back the earlier units.

    >>> units, earlier = Units(100.0, 2.0, False), np.array([100.0, 2.0])
    >>> moved(units, earlier, np.array([151.0, 150.0, 149.0]), np.zeros(3), 1.0, 8.0).centre
    150.0
    >>> moved(units, earlier, np.array([1e4, 1.1e4, 0.9e4]), np.array([0.0, 5.0, -5.0]), 0.1, 8.0).scale
    200.0
    >>> moved(units, earlier, np.array([1e4, 1e9, 1e6]), np.zeros(3), 1.0, 8.0) is None
    True

    Args:
        units: at present.
        earlier: centre and scale of the units before these.
        y: values far from their expectations, N.
        expected: of them, in the present units, N.
        usual: size of an error, in the present units.
        most: largest error of values that agree, in usual errors.
    """
    f, g = np.sqrt(np.maximum(y, 0.0)) if units.roots else y, units.centre + units.scale * expected
    ratio = f / np.where(g == 0.0, np.nan, g)
    b = float(np.median(ratio)) if np.all(ratio > 0.0) else np.nan
    changes = (
        (units.centre + float(np.median(f - g)), units.scale),
        (b * units.centre, b * units.scale),
        (float(earlier[0]), float(earlier[1])),
    )
    best, found = -np.inf, None
    for centre, fine in changes if len(f) > 1 else changes[-1:]:
        scale = max(fine, FINEST * float(np.abs(f).max()), FINEST * abs(centre))
        error = ((f - centre) / scale - expected) / usual
        likelihood = -0.5 * float(error @ error) - len(f) * np.log(scale / units.scale)
        if np.all(np.abs(error) <= most) and likelihood > best and np.isfinite(centre):
            best, found = likelihood, replace(units, centre=centre, scale=scale)
    return found


def sane(y: np.ndarray) -> np.ndarray:
    """First values of a series, NaN instead of those that are absurdly far from the others, such as fill values.

    >>> sane(np.array([3.0, 4.0, 9.97e36, 5.0, 4.0, 3.0, 5.0, 4.0, 4.0, 3.0, 5.0, 6.0]))[1:4]
    array([ 4., nan,  5.])
    """
    if np.isnan(y).all():
        return y
    middle = np.nanmedian(y)
    far = np.abs(y - middle)
    most = np.nanquantile(far, 0.9, method="lower")
    return np.where(far > ABSURD * (most if most > 0.0 else ABSURD * max(abs(middle), 1.0)), np.nan, y)


def envelope(low: float, high: float) -> tuple[float, float]:
    """The range of the values that still count, widened by its own length on both sides.

        [low − (high − low),  high + (high − low)]

    There is no limit while all values are the same, or none is known (NaN).

    >>> envelope(10.0, 14.0)
    (6.0, 18.0)
    >>> envelope(10.0, 10.0)
    (-inf, inf)
    """
    length = high - low
    return (low - length, high + length) if length > 0.0 else (-math.inf, math.inf)
