"""The units in which a series is seen: centred and scaled, or its square roots where it reaches down to 0."""

from dataclasses import dataclass

import numpy as np

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
