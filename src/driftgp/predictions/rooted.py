"""A predictive distribution for a target whose root has the law of a model."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from driftgp.predictions import normal
from driftgp.predictions.base import Held


class Root(NamedTuple):
    """Targets as roots: t = √(y − base + c) − √c, and t = y where the offset c is 0.

    Below the base there is no root. There a line with the slope at the base continues the function:

        t = d / (√(c + max(d, 0)) + √c),    y = base + t (2 √c + max(t, 0)),    d = y − base

    Both functions increase and have a finite slope that is continuous: a density at the base is finite, and a target
    below it is a number like any other.

    >>> root = Root(base=np.array([0.0]), offset=np.array([1.0]))
    >>> root.of([8.0, 0.0, -2.0]).tolist(), root.back([2.0, 0.0, -1.0]).tolist()
    ([2.0, 0.0, -1.0], [8.0, 0.0, -2.0])
    """

    base: np.ndarray
    offset: np.ndarray  # c

    def of(self, y: ArrayLike) -> np.ndarray:
        """The root of y."""
        y = np.asarray(y, np.float64)
        rooted, c = self._rooted
        d = y - np.where(rooted, self.base, 0.0)
        with np.errstate(invalid="ignore"):  # the root of infinity is infinite
            root = d / (np.sqrt(c + np.maximum(d, 0.0)) + np.sqrt(c))
        return np.where(rooted & ~np.isposinf(y), root, y)

    def back(self, t: ArrayLike) -> np.ndarray:
        """The value whose root is t."""
        t = np.asarray(t, np.float64)
        rooted, c = self._rooted
        return np.where(rooted, self.base + t * (2.0 * np.sqrt(c) + np.maximum(t, 0.0)), t)

    def log_slope(self, y: ArrayLike) -> np.ndarray:
        """log dt/dy = −log 2 √(c + max(y − base, 0))."""
        rooted, c = self._rooted
        d = np.maximum(np.asarray(y, np.float64) - np.where(rooted, self.base, 0.0), 0.0)
        return np.where(rooted, -0.5 * np.log(4.0 * (c + d)), 0.0)

    def moments(self, mean: Any, variance: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For normal roots: the value of the mean root, how far the mean of y lies above it, and the variance of y.

        With t ~ N(m, s²), α = m/s, L = φ(α) − |α| Φ(−|α|) and E[max(t, 0)] = max(m, 0) + s L:

            E[y] − y(m) = s² (Φ(α) + α L)
            Var[y] ≈ 4 s² (√c + E[max(t, 0)])² + 2 s⁴ Φ(α)² + ⅔ s⁴ φ(α)²

        The mean is exact. The variance has the first three terms of its series in Hermite polynomials: it is exact for
        large α, and within 1 % everywhere.
        """
        rooted, c = self._rooted
        s = np.sqrt(variance)
        a = mean / s
        below, density = ndtr(a), normal.pdf(a)
        over = density - np.abs(a) * ndtr(-np.abs(a))
        above = np.maximum(variance * (below + a * over), 0.0)
        slope = np.sqrt(c) + np.maximum(mean, 0.0) + s * over
        spread = variance * (4.0 * slope**2 + variance * (2.0 * below**2 + density**2 / 1.5))
        return self.back(mean), np.where(rooted, above, 0.0), np.where(rooted, spread, variance)

    @property
    def _rooted(self) -> tuple[np.ndarray, np.ndarray]:
        """Where targets have roots, and the offset, with 1 where they have none."""
        rooted = np.asarray(self.offset) > 0.0
        return rooted, np.where(rooted, self.offset, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Rooted(Held):
    """The law of y where the held law is that of its root t (see `Root`).

        cdf(y) = F(t),    density f(t) dt/dy

    The mean is y(m) + γ (E[y] − y(m)), with m the mean of the held law and E[y] as for normal roots. γ = 1 gives the
    mean of the law, and γ = 0 the median if the held law is symmetric. A model learns the γ whose means have no bias.

    >>> from driftgp.predictions import Gaussian
    >>> held = Gaussian(mean=np.array([3.0]), variance=np.ones(1), noise=np.ones(1))
    >>> p = Rooted(held, base=np.zeros(1), offset=np.full(1, 0.25), gain=np.ones(1))
    >>> p.quantile(0.5).tolist(), p.mean.round(2).tolist()
    ([12.0], [13.0])
    """

    base: np.ndarray  # N×P
    offset: np.ndarray  # N×P, c; 0 where targets are as they are
    gain: np.ndarray  # N×P, γ

    def __post_init__(self) -> None:
        self._broadcast("base", "offset", "gain")

    @property
    def root(self) -> Root:
        """Which root it is."""
        return Root(self.base, self.offset)

    @property
    def mean(self) -> np.ndarray:
        """y(m) + γ (E[y] − y(m))."""
        return self._moments[0]

    @property
    def variance(self) -> np.ndarray:
        """Variance of y for normal roots."""
        return self._moments[1]

    @cached_property
    def noise(self) -> np.ndarray:
        """The same share of the variance as the held law's."""
        return self._moments[1] * (self.model.noise / self.model.variance)

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """log f(t) + log dt/dy."""
        return self.model.log_prob(self.root.of(y)) + self.root.log_slope(y)

    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """That of the root."""
        return self.model.to_normal(self.root.of(y))

    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """The value whose root has this score."""
        return self.root.back(self.model.from_normal(z))

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Rooted":
        """Roots grow with the root of the scale."""
        scale = np.asarray(scale, np.float64)
        rooted = self.offset > 0.0
        held = self.model.scaled(np.where(rooted, np.sqrt(scale), scale), np.where(rooted, 0.0, shift))
        return Rooted(held, scale * self.base + shift, scale * self.offset, self.gain)

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        return carried_back(self.root, self.gain, self.model.mean, self.model.variance)


def carried_back(root: Root, gain: Any, mean: Any, variance: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of y where its root has this mean and variance."""
    middle, above, spread = root.moments(mean, variance)
    return middle + gain * above, spread
