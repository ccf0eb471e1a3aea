"""Intervals of each lead: usual errors by slot of the target, and reaches that hold their share of the targets.

The error of lead h at a slot of the short season has a usual size s: the mean of squares at that slot, shrunk towards
that of all slots. In these units, u = (y − m)/s, the interval of level ℓ reaches below and above to

    c = z_ℓ √q exp(d),   q the recent mean of u²,   d ← d + γ_ℓ ([outside] − (1 − ℓ)/2)

as in `Calibrated`: the share outside tends to its nominal value on any series. Outside means beyond the present c. A
label comes h rows after its forecast: with the c of that time, errors of one sign would drive d far off before the
first of them is seen.
"""

import numpy as np

from driftgp.forecasting.part import Part, constant
from driftgp.predictions.normal import nominal_reach, pdf

LEVELS = (0.5, 0.8, 0.95, 0.99)
RATE = 0.007  # of the controllers
RECENT = 100.0  # errors over which q is averaged
SIZES = 60.0  # errors of a slot over which their size is averaged
ALL = 400.0  # errors of all slots
LEAN = 5.0  # errors for which the mean of all slots counts
SLOWER = 6.0  # leads: errors of long leads are autocorrelated, so their controllers are slower by 1 + (h − 1)/SLOWER
LOWEST = -7.0  # of d
LEAST_RATIO = 0.2  # two neighbouring reaches keep at least this share of their nominal ratio
LARGE = 25.0  # usual squares: a larger error counts as this in s, after the first errors
TINY = 1e-18


class Reach(Part):
    """Of H leads."""

    def __init__(self, horizon: int, groups: int) -> None:
        """Start with errors of size 1.

        Args:
            horizon: H.
            groups: number of slots.
        """
        nominal = nominal_reach(LEVELS)
        self.slower = constant(1.0 / (1.0 + np.arange(horizon) / SLOWER))
        self.nominal = constant(nominal)
        self.step = constant(RATE / (nominal * pdf(nominal)))
        self.share = constant(0.5 * (1.0 - np.array(LEVELS)))
        self.v, self.n = np.ones((groups, horizon)), np.zeros((groups, horizon))
        self.all, self.count = np.ones(horizon), np.ones(horizon)
        self.q, self.issued = np.ones(horizon), np.zeros(horizon)
        self.d = np.zeros((horizon, 2, len(LEVELS)))

    def sizes(self, groups: np.ndarray) -> np.ndarray:
        """s of all leads whose targets have these slots, H."""
        lead = np.arange(len(groups))
        n, v = self.n[groups, lead], self.v[groups, lead]
        return np.sqrt(self.q * (n * v + LEAN * self.all) / (n + LEAN))

    def reaches(self) -> np.ndarray:
        """c below and above, H×2×L, in increasing order of the levels."""
        low = np.log(self.nominal) * LEAST_RATIO
        logs = self.d + (np.log(self.nominal) - low)
        reached: np.ndarray = np.exp(np.maximum.accumulate(logs, 2) + low)
        return reached

    def learn(self, group: int, error: np.ndarray, s: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Take in errors (H, NaN without a target) of forecasts with sizes s; return their normal scores."""
        here = error == error
        e2 = np.where(here, error, 0.0) ** 2
        u = np.where(here, error, 0.0) / s
        usual = (self.n[group] * self.v[group] + LEAN * self.all) / (self.n[group] + LEAN)
        self.count[:] = np.minimum(self.count + here, ALL)
        known = self.count > 10.0
        self.all += here * (np.minimum(e2, np.where(known, LARGE * self.all, np.inf)) - self.all) / self.count
        n = np.minimum(self.n[group] + here, SIZES)
        v = self.v[group]
        limit = np.where(n > 10.0, LARGE * v, np.where(known, LARGE * self.all, np.inf))
        v += here * (np.minimum(e2, limit) - v) / np.maximum(n, 1.0)
        self.n[group] = n
        np.maximum(v, TINY, out=v)
        np.maximum(self.all, TINY, out=self.all)
        self.issued[:] = np.minimum(self.issued + here, RECENT)
        self.q += here * (np.minimum(e2 / usual, LARGE) - self.q) / np.maximum(self.issued, 10.0)
        np.maximum(self.q, 1e-6, out=self.q)
        size = np.abs(u)[:, None, None]
        side = np.stack([u < 0.0, u >= 0.0], 1)[:, :, None]
        outside = (size > reached) & side
        self.d[...] = np.where(
            here[:, None, None],
            np.maximum(self.d + self.slower[:, None, None] * self.step * (outside - self.share), LOWEST),
            self.d,
        )
        own = np.where((u < 0.0)[:, None], reached[:, 0], reached[:, 1])  # H×L
        return np.where(here, np.sign(u) * _score(np.abs(u), own, self.nominal), np.nan)


def _score(size: np.ndarray, reached: np.ndarray, nominal: np.ndarray) -> np.ndarray:
    """Normal scores of these errors: straight lines through the reaches of the levels, H."""
    knots = np.concatenate([np.zeros((len(size), 1)), reached], 1)
    heights = np.concatenate([[0.0], nominal])
    i = np.minimum((size[:, None] >= knots).sum(1) - 1, knots.shape[1] - 2)
    lead = np.arange(len(size))
    a, b = knots[lead, i], knots[lead, i + 1]
    score: np.ndarray = heights[i] + (heights[i + 1] - heights[i]) * (size - a) / np.maximum(b - a, 1e-300)
    return np.minimum(score, 8.0)
