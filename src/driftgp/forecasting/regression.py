"""One linear regression per lead, on shared inputs; each lead learns from its own label when it comes.

With φ the inputs of origin t, λ the forgetting and P the inverse of the weighted second moments,

    k_t = P φ_t / (λ + φ_tᵀ P φ_t),   P ← (P − k_t φ_tᵀ P)/λ

depend on inputs alone, so they are one for all leads and are kept for the last H origins. When the target of row t
comes, it is the label of lead h for the origin t − h:

    w_h ← w_h + k_{t−h} (y_t − φ_{t−h}ᵀ w_h).

For each lead this is recursive least squares over its origins in their order. A row costs O(D² + D H).
"""

import numpy as np
from scipy.linalg.blas import dsymv, dsyr

from driftgp.forecasting.part import Part, Ring

# largest variance of a weight, in prior variances: without it, directions without data would grow without end
LARGEST = 1e4
# largest input, in units of the series: after a long constant stretch the unit is tiny, and values before it are 10⁹
# of them. With such an input, rounding would leave a P that is no covariance
FARTHEST = 1e4


class Regression(Part):
    """H regressions on D inputs."""

    def __init__(self, prior: np.ndarray, horizon: int, memory: float) -> None:
        """Start without rows, all weights 0.

        Args:
            prior: variance of each weight, D, where that of the noise is 1.
            horizon: H.
            memory: rows until an origin counts 1/e.
        """
        D = len(prior)
        self.forgetting = 1.0 - 1.0 / memory
        self.greatest = LARGEST * float(prior.sum())
        self.P = np.asfortranarray(np.diag(prior))  # its lower triangle; times `factor`
        self.factor = np.ones(1)
        self.w = np.zeros((horizon, D))
        self.phi, self.k = Ring(horizon, (D,)), Ring(horizon, (D,))

    def means(self, phi: np.ndarray) -> np.ndarray:
        """Forecasts of all leads at the inputs of an origin, H."""
        return self.w @ np.clip(phi, -FARTHEST, FARTHEST)

    def observe(self, row: int, phi: np.ndarray) -> None:
        """Take in the inputs of an origin."""
        f, phi = self.factor[0], np.clip(phi, -FARTHEST, FARTHEST)
        g = dsymv(f, self.P, phi, lower=1)  # P φ
        total = self.forgetting + max(float(phi @ g), 0.0)
        dsyr(-1.0 / (total * f), g, lower=1, a=self.P, overwrite_a=1)
        self.factor[0] = f = f / self.forgetting
        if f > 2.0:
            trace = f * float(np.trace(self.P))
            self.P *= f * min(1.0, self.greatest / trace) if trace > 0.0 else 1.0
            self.factor[0] = 1.0
        self.phi.put(row, phi)
        self.k.put(row, g / total)

    def learn(self, row: int, targets: np.ndarray, most: np.ndarray) -> None:
        """Take in a row's target as each lead sees it, H; NaN where a lead learns nothing. Errors are limited."""
        phi = self.phi.before(row)
        e = targets - np.einsum("hd,hd->h", self.w, phi)
        e = np.where(e == e, np.minimum(np.maximum(e, -most), most), 0.0)
        self.w += e[:, None] * self.k.before(row)
