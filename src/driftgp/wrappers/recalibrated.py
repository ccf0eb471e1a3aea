"""A predictive distribution stretched so that given central intervals reach as far as they should."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import ndtr, ndtri
from jax.typing import ArrayLike

from driftgp import normal
from driftgp.prediction import Prediction, outer_call

_NORMAL = NormalDist()
# Nodes and weights of a quadrature on [−1, 1] for the one score that has no formula, and how far into a tail it goes.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_FURTHEST = 9.0


class Lines(NamedTuple):
    """A function on u ≥ 0 with value 0 at 0: straight lines that change slope at knots."""

    knots: list[Any]  # L
    slopes: list[Any]  # L + 1

    def at(self, u: Array) -> Array:
        """Value at u."""
        bends = zip(self.knots, pairwise(self.slopes), strict=True)
        return self.slopes[0] * u + sum(
            (after - before) * jnp.maximum(u - knot, 0.0) for knot, (before, after) in bends
        )

    def slope(self, u: Array) -> Array:
        """Slope at u."""
        bends = zip(self.knots, pairwise(self.slopes), strict=True)
        return self.slopes[0] + sum((after - before) * (u > knot) for knot, (before, after) in bends)

    def inverse(self) -> "Lines":
        """The inverse function, which is of the same kind."""
        starts = [0.0, *self.knots]
        rises = (slope * (end - start) for slope, (start, end) in zip(self.slopes[:-1], pairwise(starts), strict=True))
        values, value = [], 0.0
        for rise in rises:
            value = value + rise
            values.append(value)
        return Lines(values, [1.0 / slope for slope in self.slopes])

    def half_moments(self) -> tuple[Any, Any]:
        """∫ h φ du and ∫ h² φ du over u ≥ 0, for the standard normal density φ."""
        first, second, start_value = 0.0, 0.0, 0.0
        for (a, b), slope in zip(pairwise([0.0, *self.knots, math.inf]), self.slopes, strict=True):
            mass, drop, moment = _pieces(a, b)
            height = start_value - slope * a  # h(u) = height + slope · u here
            first = first + height * mass + slope * drop
            second = second + height**2 * mass + 2.0 * height * slope * drop + slope**2 * (mass + moment)
            start_value = start_value + slope * (b - a) if b < math.inf else start_value
        return first, second


def _pieces(a: float, b: float) -> tuple[float, float, float]:
    """Φ(b) − Φ(a), φ(a) − φ(b), a φ(a) − b φ(b)."""
    top = (1.0, 0.0, 0.0) if b == math.inf else (_NORMAL.cdf(b), _NORMAL.pdf(b), b * _NORMAL.pdf(b))
    return top[0] - _NORMAL.cdf(a), _NORMAL.pdf(a) - top[1], a * _NORMAL.pdf(a) - top[2]


def _from_zero(values: Sequence[Any]) -> list[Any]:
    return [0.0, *values]


def nominal_reach(level: float) -> float:
    """z of a level: a standard normal number lies within ±z with that probability.

    >>> round(nominal_reach(0.95), 4)
    1.96
    """
    return _NORMAL.inv_cdf(0.5 * (1.0 + level))


class Recalibrated(Prediction):
    """The distribution with cdf(y) = Φ(h⁻¹(z)), where z is the held prediction's normal score of y.

    h maps a nominal score to the held prediction's: h(0) = 0, h(±z_ℓ) = ±c_ℓ for every level, straight lines in
    between, and from the last level on a line that keeps the ratio c/z. So the interval of a level ℓ ends where the
    held prediction has the scores ±c_ℓ, and all the rest (quantiles, density, scores) is that of one distribution with
    these intervals.

    The mean is the held one's moved by s E[h], which is 0 if both sides are alike, and the variance s² Var[h]: exact
    where the held prediction is normal.

    >>> import numpy as np
    >>> from driftgp.prediction import Gaussian
    >>> normal = Gaussian(mean=np.zeros(1), variance=np.ones(1), noise=np.ones(1))
    >>> p = Recalibrated(normal, upper=(np.full(1, 3.0),), lower=(), levels=(0.95,))
    >>> [round(float(bound[0]), 3) for bound in p.interval(0.95) + p.model.interval(0.95)]
    [-3.0, 3.0, -1.96, 1.96]
    """

    mean: Array
    variance: Array
    noise: Array
    model: Prediction  # as it was before
    upper: tuple[Array, ...]  # L, each N×P: c above the median
    lower: tuple[Array, ...]  # L, each N×P: c below the median; empty if they are the same
    levels: tuple[float, ...] = eqx.field(static=True)

    def __init__(
        self, model: Prediction, upper: Sequence[Array], lower: Sequence[Array], levels: Sequence[float]
    ) -> None:
        """Take a prediction and how far its intervals of these levels are to reach."""
        self.model, self.levels = model, tuple(levels)
        self.upper, self.lower = tuple(upper), tuple(lower)
        first, second = self._moments()
        self.mean = model.mean + model.std * first if self.lower else model.mean
        self.variance = model.variance * (second - first**2)
        self.noise = model.noise * (second - first**2)  # the same share of the variance as before

    @outer_call
    def cdf(self, y: ArrayLike) -> Array:
        """Φ(h⁻¹(z))."""
        return ndtr(self._score(y))

    @outer_call
    def log_prob(self, y: ArrayLike) -> Array:
        """log f(y) − log φ(z) + log φ(u) − log h'(u), with u = h⁻¹(z)."""
        z, u = self.model.to_normal(y), self._score(y)
        slope = self._by_side(u, lambda lines: lines.slope(jnp.abs(u)))
        return self.model.log_prob(y) - normal.log_pdf(z) + normal.log_pdf(u) - jnp.log(slope)

    @outer_call
    def quantile(self, q: ArrayLike) -> Array:
        """Value where the held prediction has the score h(Φ⁻¹(q))."""
        return self._value(ndtri(jnp.asarray(q, self.upper[0].dtype)))

    @outer_call
    def to_normal(self, y: ArrayLike) -> Array:
        """h⁻¹(z)."""
        return self._score(y)

    @outer_call
    def from_normal(self, z: ArrayLike) -> Array:
        """Value where the held prediction has the score h(z)."""
        return self._value(jnp.asarray(z, self.upper[0].dtype))

    @outer_call
    def crps(self, y: ArrayLike) -> Array:
        """2 ∫ ([y < Q(q)] − q) (Q(q) − y) dq, by quadrature in u = Φ⁻¹(q) on either side of y."""
        y = jnp.asarray(y)
        u = jnp.clip(self._score(y), -_FURTHEST, _FURTHEST)

        def add(total: Array, node: tuple[Array, Array]) -> tuple[Array, None]:
            at, weight = node
            for sign in (-1.0, 1.0):
                half = 0.5 * (_FURTHEST - sign * u)
                score = u + sign * half * (1.0 + at)
                total += weight * half * sign * (self._value(score) - y) * ndtr(-sign * score) * normal.pdf(score)
            return total, None

        nodes = jnp.asarray(_NODES, u.dtype), jnp.asarray(_WEIGHTS, u.dtype)
        return 2.0 * lax.scan(add, jnp.zeros_like(u), nodes)[0]

    @outer_call
    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Recalibrated":
        """Scale and shift the held prediction."""
        return Recalibrated(self.model.scaled(scale, shift), self.upper, self.lower, self.levels)

    def _score(self, y: ArrayLike) -> Array:
        z = self.model.to_normal(y)
        return jnp.sign(z) * self._by_side(z, lambda lines: lines.inverse().at(jnp.abs(z)))

    def _value(self, u: Array) -> Array:
        return self.model.from_normal(jnp.sign(u) * self._by_side(u, lambda lines: lines.at(jnp.abs(u))))

    def _by_side(self, u: Array, value: Any) -> Array:
        above = value(self._lines(self.upper))
        return jnp.where(u < 0.0, value(self._lines(self.lower)), above) if self.lower else above

    def _lines(self, reach: tuple[Array, ...]) -> Lines:
        """h on one side."""
        knots = [nominal_reach(level) for level in self.levels]
        steps = zip(pairwise([0.0, *knots]), pairwise(_from_zero(reach)), strict=True)
        slopes: list[Any] = [(d - c) / (b - a) for (a, b), (c, d) in steps]
        return Lines(knots, [*slopes, reach[-1] / knots[-1]])

    def _moments(self) -> tuple[Any, Any]:
        """E[h] and E[h²]."""
        first, second = self._lines(self.upper).half_moments()
        if not self.lower:
            return 0.0, 2.0 * second
        below, below_second = self._lines(self.lower).half_moments()
        return first - below, second + below_second
