"""A law that is wider than the model says: all of its normal scores are divided by a factor."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from driftgp.predictions import normal
from driftgp.predictions.base import Held


@dataclass(frozen=True, eq=False, repr=False)
class Stretched(Held):
    """The distribution with cdf(y) = Φ(z/κ), where z is the held prediction's normal score of y.

    Its median and its bounds are the held one's. Before the first target κ = ∞. Every value has the score 0 (cdf 1/2)
    and no density (log density −∞). Every interval reaches from bound to bound, or is (−∞, ∞) without bounds. Samples
    are its ends, and variance and CRPS are ∞.

    >>> from driftgp import Online
    >>> forecast = Online().predict([[1.0, 2.0]])
    >>> forecast.mean.tolist(), forecast.quantile(0.5).tolist(), [end.item() for end in forecast.interval(0.5)]
    ([0.0], [0.0], [-inf, inf])
    """

    factor: np.ndarray  # N×P, or N: κ
    wider: np.ndarray  # the same of the variance: κ² if the held law is normal

    @property
    def mean(self) -> np.ndarray:
        """The held one's."""
        return self.model.mean

    @property
    def variance(self) -> np.ndarray:
        """The held one's, widened."""
        return self.wider * self.model.variance

    @property
    def noise(self) -> np.ndarray:
        """The same share of the variance as before."""
        return self.wider * self.model.noise

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """log f(y) − log φ(z) + log φ(z/κ) − log κ; where κ = 1, the log density of the held law, bit for bit."""
        z = self.model.to_normal(y)
        thinner = normal.log_pdf(z) - normal.log_pdf(z / self.factor) + np.log(self.factor)
        return self.model.log_prob(y) - np.where(self.factor == 1.0, 0.0, thinner)

    def crps(self, y: ArrayLike) -> np.ndarray:
        """The held one where κ = 1, else by quadrature."""
        as_before = self.factor == 1.0
        held = self.model.crps(y)
        return held if as_before.all() else np.where(as_before, held, super().crps(y))

    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """z/κ."""
        return self.model.to_normal(y) / self.factor

    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """Value where the held prediction has the score κ z."""
        z = np.asarray(z, np.float64)
        with np.errstate(invalid="ignore"):  # the median stays where it was, even if κ is infinite
            return self.model.from_normal(np.where(z == 0.0, z, self.factor * z))

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Stretched":
        """The held prediction in other units."""
        return Stretched(self.model.scaled(scale, shift), self.factor, self.wider)
