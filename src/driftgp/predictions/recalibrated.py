"""A predictive distribution stretched so that given central intervals reach as far as they should."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from driftgp.predictions import normal
from driftgp.predictions.base import Held
from driftgp.predictions.normal import nominal_reach


@dataclass(frozen=True, eq=False, repr=False)
class Recalibrated(Held):
    """The distribution with cdf(y) = Φ(h⁻¹(z)), where z is the held prediction's normal score of y.

    h maps a nominal score to the held prediction's: h(0) = 0 and h(±z_ℓ) = ±c_ℓ for every level, with straight lines in
    between. Beyond the last level a line keeps the ratio c/z. So the interval of a level ℓ ends where the held
    prediction has the scores ±c_ℓ. Quantiles, density and scores are those of one distribution with these intervals.
    Beyond the levels, and beyond t = z_0.99 at least, the line bends upwards,

        h(u) = h(t) exp(u/t − 1),   u > t,

    since most streams have longer tails than a normal law. With this line, a target 60 standard deviations off has a
    log density lower by about 60 nats, and not by 1800.

    The mean is that of the held prediction plus s E[h], and E[h] is 0 if both sides are alike. The variance is s²
    Var[h]. Both are exact if the held prediction is normal.

    >>> import numpy as np
    >>> from driftgp.predictions import Gaussian
    >>> normal = Gaussian(mean=np.zeros(1), variance=np.ones(1), noise=np.ones(1))
    >>> p = Recalibrated(normal, upper=np.full((1, 1), 3.0), lower=None, levels=(0.95,))
    >>> [round(float(bound[0]), 3) for bound in p.interval(0.95) + p.model.interval(0.95)]
    [-3.0, 3.0, -1.96, 1.96]
    """

    upper: np.ndarray  # L×N×P, c above the median
    lower: np.ndarray | None  # L×N×P, c below the median; None if they are the same
    levels: tuple[float, ...]  # L, increasing

    def __post_init__(self) -> None:
        shape = (len(self.levels), *self.model.shape)
        for name in ("upper", "lower"):
            reach = getattr(self, name)
            if reach is not None and reach.shape != shape:
                object.__setattr__(self, name, np.broadcast_to(reach, shape))

    @cached_property
    def mean(self) -> np.ndarray:
        """m + s E[h]."""
        return self.model.mean + self.model.std * self._moments[0]

    @cached_property
    def variance(self) -> np.ndarray:
        """s² Var[h]."""
        first, second = self._moments
        return self.model.variance * (second - first**2)

    @cached_property
    def noise(self) -> np.ndarray:
        """σ² Var[h]: the same share of the variance as before."""
        first, second = self._moments
        return self.model.noise * (second - first**2)

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """log f(y) − log φ(z) + log φ(u) − log h'(u), with u = h⁻¹(z)."""
        z = self.model.to_normal(y)
        u = self.nominal(z)
        slope = self._by_side(u, lambda size, reach: _slope(self._knots, reach, size))  # h'(u)
        return self.model.log_prob(y) - normal.log_pdf(z) + normal.log_pdf(u) - np.log(slope)

    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """h⁻¹(z)."""
        return self.nominal(self.model.to_normal(y))

    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """Value where the held prediction has the score h(z)."""
        z = np.asarray(z, np.float64)
        held = np.sign(z) * self._by_side(z, lambda size, reach: _stretched(self._knots, reach, size))
        return self.model.from_normal(held)

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Recalibrated":
        """Scale and shift the held prediction."""
        return Recalibrated(self.model.scaled(scale, shift), self.upper, self.lower, self.levels)

    def nominal(self, z: np.ndarray) -> np.ndarray:
        """h⁻¹(z): what a score under the held prediction is under this one."""
        return np.sign(z) * self._by_side(z, lambda size, reach: _unstretched(self._knots, reach, size))

    def _by_side(self, u: np.ndarray, value: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """A function of |u| and the reaches of the side that u is on."""
        size = np.abs(u)
        above = value(size, self.upper)
        return above if self.lower is None else np.where(u < 0.0, value(size, self.lower), above)

    @cached_property
    def _knots(self) -> np.ndarray:
        return nominal_reach(self.levels)  # L

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        sides = self.upper[:, None] if self.lower is None else np.stack([self.lower, self.upper], 1)
        return moments(sides, self.levels)


# ---- h: lines from (0, 0) through the points (z_ℓ, c_ℓ), beyond the last the ray through it, and the tail ------------

# The tail begins at the last level, but no nearer than this.
_TAIL = float(nominal_reach((0.99,))[0])
# The exponent is at most this, so that products of scores are finite; for an infinite score it is infinite.
_HIGHEST = 200.0


def moments(reach: np.ndarray, levels: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """E[h(u)] and E[h(u)²] for a standard normal u.

    Args:
        reach: c of each level and side, L×S×…; S = 1 if both sides are alike, else 0 is below the median and 1 above.
        levels: L of them, increasing.
    """
    knots, integrals, tail = _integrals(tuple(levels))
    _, height = _tail(knots, reach)  # S×…
    first, second = tail[0] * height, tail[1] * height**2  # S×…: over u ≥ 0
    for (a, start, slope), (mass, linear, square) in zip(_lines(knots, reach), integrals, strict=True):
        height = start - slope * a  # h(u) = height + slope · u here
        first += height * mass + slope * linear
        second += height**2 * mass + 2.0 * height * slope * linear + slope**2 * square
    return first[-1] - first[0], second[-1] + second[0]


def _lines(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[Any, Any, Any]]:
    """Where each of the L + 1 lines begins, and its slope; exchanging x and y gives the inverse function."""
    a, b = 0.0, 0.0
    for to_a, to_b in zip(x, y, strict=True):
        yield a, b, (to_b - b) / (to_a - a)
        a, b = to_a, to_b
    yield a, b, b / a


def _value(x: np.ndarray, y: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Value of the lines at u ≥ 0."""
    (_, _, slope), *others = _lines(x, y)
    value = slope * u
    for a, b, slope in others:
        value = np.where(u > a, b + slope * (u - a), value)
    return value


def _begin(knots: np.ndarray) -> float:
    """t, where the tail begins."""
    return max(float(knots[-1]), _TAIL)


def _tail(knots: np.ndarray, reach: np.ndarray) -> tuple[float, np.ndarray]:
    """t and h(t)."""
    t = _begin(knots)
    return t, reach[-1] * (t / knots[-1])


def _exponent(t: float, u: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(u), u, np.clip(u / t - 1.0, 0.0, _HIGHEST))


def _stretched(knots: np.ndarray, reach: np.ndarray, u: np.ndarray) -> np.ndarray:
    """h(u) at u ≥ 0."""
    t, height = _tail(knots, reach)
    return np.where(u > t, height * np.exp(_exponent(t, u)), _value(knots, reach, u))


def _unstretched(knots: np.ndarray, reach: np.ndarray, z: np.ndarray) -> np.ndarray:
    """h⁻¹(z) at z ≥ 0: the same lines with both coordinates exchanged, and t (1 + log z/h(t)) in the tail."""
    t, height = _tail(knots, reach)
    return np.where(z > height, t * (1.0 + np.log(np.maximum(z, height) / height)), _value(reach, knots, z))


def _slope(knots: np.ndarray, reach: np.ndarray, u: np.ndarray) -> np.ndarray:
    """h'(u) at u ≥ 0."""
    (_, _, value), *others = _lines(knots, reach)
    for a, _, slope in others:
        value = np.where(u > a, slope, value)
    t, height = _tail(knots, reach)
    return np.where(u > t, height / t * np.exp(_exponent(t, u)), value)


@lru_cache
def _integrals(
    levels: tuple[float, ...],
) -> tuple[np.ndarray, list[tuple[float, float, float]], tuple[float, float]]:
    """z of each level; ∫ φ, ∫ u φ and ∫ u² φ from 0 to the first z, between neighbouring z, and from the last z to t.

    The last two numbers are ∫ e^(u/t − 1) φ and ∫ e^(2u/t − 2) φ from t on.
    """
    knots = nominal_reach(levels)
    t = _begin(knots)
    z = np.concatenate([[0.0], knots, [t]])
    mass = np.diff(ndtr(z))
    linear = -np.diff(normal.pdf(z))
    square = mass - np.diff(z * normal.pdf(z))
    tail = (
        float(np.exp(0.5 / t**2 - 1.0) * ndtr(1.0 / t - t)),
        float(np.exp(2.0 / t**2 - 2.0) * ndtr(2.0 / t - t)),
    )
    return knots, list(zip(mass.tolist(), linear.tolist(), square.tolist(), strict=True)), tail
