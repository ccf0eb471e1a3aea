"""A mixture's law whose tails are no longer than its standard deviation gives reason to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from driftgp.predictions import normal
from driftgp.predictions.base import Held

FROM = 2.5  # the score from which on a tail is limited
SLOPE = 2.0  # standard deviations for each unit of the score there, at most


@dataclass(frozen=True, eq=False, repr=False)
class Limited(Held):
    """The distribution with the quantiles q̃(z) = min(q(z), q(t) + (z − t) κ s) at scores z > t, and likewise below −t.

    q are the held law's quantiles by their normal scores, s its standard deviation, t = 2.5 and κ = 2. In a mixture of
    models the quantiles far out are those of the members that have lost nearly all weight, and these may lie a thousand
    times as far away as those that count. A law that is to reach twice as far is not to reach there. Mean and variance
    are the held ones.

    >>> from driftgp.predictions import Mixture
    >>> weights, means = np.array([[1.0 - 1e-6], [1e-6]]), np.zeros((2, 1))
    >>> mixture = Mixture(weights, means, np.array([[1.0], [1e4]]), np.ones((2, 1)))
    >>> limited = Limited(mixture)
    >>> [[round(p.from_normal(z).item(), 2) for z in (2.0, 6.0)] for p in (mixture, limited)]
    [[2.0, 309.42], [2.0, 9.53]]
    """

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """log φ(z) − log κ s on a line, else the held density."""
        held = self.model.to_normal(y)
        line = self._on_line(y, held)
        on_line = normal.log_pdf(line) - np.log(SLOPE * self.model.std)
        return np.where(np.abs(line) > np.abs(held), on_line, self.model.log_prob(y))

    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """The score that is farther out, of the line or of the held law."""
        held = self.model.to_normal(y)
        line = self._on_line(y, held)
        return np.where(np.abs(line) > np.abs(held), line, held)

    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """q̃(z)."""
        z = np.asarray(z, np.float64)
        held = self.model.from_normal(z)
        far = (np.abs(z) > FROM) & np.isfinite(z)
        if not far.any():
            return held
        side = np.sign(z)
        with np.errstate(invalid="ignore"):  # an infinite score stays what it is
            end = self.model.from_normal(side * FROM) + side * (np.abs(z) - FROM) * SLOPE * self.model.std
        return np.where(far, side * np.minimum(side * held, side * end), held)

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Limited":
        """Scale and shift the held law."""
        return Limited(self.model.scaled(scale, shift))

    def _on_line(self, y: ArrayLike, held: np.ndarray) -> np.ndarray:
        """Scores by the line of the side where a target is, 0 within ±t."""
        far = np.abs(held) > FROM
        if not far.any():
            return np.zeros(held.shape)
        side = np.where(held < 0.0, -1.0, 1.0)
        with np.errstate(invalid="ignore"):
            size = FROM + side * (np.asarray(y) - self.model.from_normal(side * FROM)) / (SLOPE * self.model.std)
        return np.where(far & (size > FROM), side * size, 0.0)
