"""A normal distribution."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from driftgp.predictions import normal
from driftgp.predictions.base import Prediction


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Gaussian(Prediction):
    """A normal distribution N(m, s²) at each point.

    >>> import numpy as np
    >>> p = Gaussian(mean=np.zeros(1), variance=np.full(1, 4.0), noise=np.ones(1))
    >>> [round(float(bound[0]), 3) for bound in p.interval(0.95)]
    [-3.92, 3.92]
    """

    mean: np.ndarray
    variance: np.ndarray
    noise: np.ndarray

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """−½ log 2πs² − (y − m)²/2s²."""
        return normal.log_pdf(self.to_normal(y)) - 0.5 * np.log(self.variance)

    def crps(self, y: ArrayLike) -> np.ndarray:
        """s (z (2Φ(z) − 1) + 2φ(z) − π^(−½)) with z = (y − m)/s."""
        z = self.to_normal(y)
        return self.std * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * normal.pdf(z) - math.pi**-0.5)

    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """(y − m)/s."""
        return (np.asarray(y) - self.mean) / self.std

    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """m + s z."""
        return self.mean + self.std * np.asarray(z)

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Gaussian":
        """N(scale · m + shift, scale² s²)."""
        scale = np.asarray(scale)
        return Gaussian(scale * self.mean + shift, scale**2 * self.variance, scale**2 * self.noise)
