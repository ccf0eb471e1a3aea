"""How the errors of the leads of one origin go together: for paths, and for sums.

The correlation R of the normal scores z of one origin's forecasts is followed,

    R ← R + (z zᵀ − R)/n,   n at most `DEPENDENCE`.

Paths are draws from a normal law with this correlation C, with the law of each lead (a Gaussian copula). Large errors
of different leads come together more often than a normal law says, so that sums of all leads would fall outside their
intervals too often. Therefore C is drawn towards 1 1ᵀ, or towards the identity, until the variance sᵀ C s of the sum
is e^{2d} times as large, s the sizes of the errors. With v = sᵀ C s for half widths s of the 95 % intervals,

    d ← d + γ ([|Σ e| > e^d √v] − 0.05)

as in `reach`: the share of sums outside tends to what it should be.
"""

import numpy as np

from driftgp.forecasting.part import Part

DEPENDENCE = 1000.0  # origins over which R is averaged
SHRINK = 0.02  # of the correlations, so that C has a factor from the first origin on
LARGEST = 4.0  # a score counts as no more in R
MOST = 0.9  # share of 1 1ᵀ, or of the identity, at most
OUTSIDE = 0.05  # share of sums
FARTHEST = 1.0  # of d


class Dependence(Part):
    """Between H leads."""

    def __init__(self, horizon: int, step: float) -> None:
        """Start with leads that are nearly independent.

        Args:
            horizon: H.
            step: γ.
        """
        self.step = step
        self.R, self.origins = np.eye(horizon), np.ones(1)
        self.z = np.full((horizon, horizon), np.nan)  # scores by place of the origin and lead
        self.size = np.ones((horizon, horizon))  # half widths, the same
        self.error = np.full(horizon, np.nan)  # sum of the errors so far, by place of the origin
        self.d = np.zeros(1)

    def begin(self, place: int) -> None:
        """Forecasts of an origin at this place are issued."""
        self.z[place], self.error[place] = np.nan, 0.0

    def judge(self, place: np.ndarray, scores: np.ndarray, errors: np.ndarray, sizes: np.ndarray) -> None:
        """Take in a target: scores, errors and half widths by lead, H, of the origins at these places."""
        lead = np.arange(len(place))
        self.z[place, lead], self.size[place, lead] = scores, np.where(errors == errors, sizes, 1.0)
        self.error[place] += errors

    def learn(self, place: int) -> None:
        """The last target of the origin at this place has come."""
        z, s = np.clip(self.z[place], -LARGEST, LARGEST), self.size[place]
        if not np.isfinite(z).all():
            return
        outside = float(abs(self.error[place]) > np.exp(self.d[0]) * np.sqrt(s @ self._plain() @ s))
        self.d[0] = min(max(self.d[0] + self.step * (outside - OUTSIDE), -FARTHEST), FARTHEST)
        self.origins[0] = min(self.origins[0] + 1.0, DEPENDENCE)
        self.R += (np.outer(z, z) - self.R) / self.origins[0]

    def correlation(self, s: np.ndarray) -> np.ndarray:
        """C for errors of these sizes, H×H."""
        C = self._plain()
        v, larger = float(s @ C @ s), float(np.exp(2.0 * self.d[0]))
        other = np.ones_like(C) if larger > 1.0 else np.eye(len(C))
        most = float(s @ other @ s)
        share = (larger - 1.0) * v / (most - v) if (most - v) * (larger - 1.0) > 0.0 else 0.0
        share = min(share, MOST)
        return (1.0 - share) * C + share * other

    def _plain(self) -> np.ndarray:
        size = np.sqrt(np.diag(self.R))
        plain: np.ndarray = (1.0 - SHRINK) * self.R / np.outer(size, size) + SHRINK * np.eye(len(size))
        return plain
