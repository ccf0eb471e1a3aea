"""The means of all leads at once: one recursive linear regression whose inputs are the same for every lead.

At origin t the inputs φ_t are the last values, the values one long season before each target, the slot of the week, and
the last values by slot of the day: what a value of now means for later depends on the hour. All leads h = 1 … H have
these inputs, so that one matrix P serves them all: with w_h the weights of lead h and forgetting λ,

    k = P φ / (λ + φᵀ P φ),   w_h ← w_h + k (y_{t+h} − φᵀ w_h),   P ← (P − k φᵀ P)/λ

when the last of the targets is known. A row costs O(D²) for all leads together.
"""

from typing import NamedTuple

import numpy as np

from driftgp.forecasting.calendar import Calendar

LAGS = 48  # last values, at most
SEASONAL = 48  # values one long season before the targets, at most
MEMORY = 36  # long seasons until a row counts 1/e
SHORTEST = 1000  # rows of that memory, at least
PRIOR = 0.1  # variance of a weight around the seasonal naive forecast, which is where the regression starts
OUTSIDE = 1.0  # of the weight of a column from outside, which is given for a reason
LARGEST = 1e4  # trace of P per input: directions that no row shows any more must not grow without end


class Layout(NamedTuple):
    """What the inputs of an origin are, by number."""

    lags: int
    seasonal: np.ndarray  # leads whose value one long season before is an input
    slots: int
    long_slots: int
    others: int  # columns from outside


class Sheet:
    """Linear forecasts of H leads from one design."""

    def __init__(self, calendar: Calendar, horizon: int, others: int) -> None:
        """Start without rows.

        Args:
            calendar: the seasons.
            horizon: H.
            others: number of columns from outside that an origin has.
        """
        self.calendar, self.horizon = calendar, horizon
        seasons = -(-horizon // calendar.long_season)
        self.back = seasons * calendar.long_season  # rows from a target to the one of the season before that is known
        leads = np.unique(np.linspace(1, horizon, min(horizon, SEASONAL)).astype(np.int64))
        leads = leads[self.back - leads >= LAGS] if calendar.long_season > 1 else leads[:0]
        lags = max(min(2 * calendar.season, LAGS), min(horizon, 12), 3)
        self.layout = Layout(lags, leads, calendar.slots, calendar.long_slots, others)
        self.D = lags + len(leads) + calendar.long_slots + 3 * calendar.slots + 4 + others
        self.forgetting = 1.0 - 1.0 / max(MEMORY * calendar.long_season, SHORTEST)
        self.P, self.w = PRIOR * np.eye(self.D), np.zeros((self.D, horizon))
        self.P[self.D - others :, self.D - others :] *= OUTSIDE / PRIOR
        lead = np.arange(horizon)
        same = calendar.season - 1 - lead % calendar.season  # the last value at the same place in the season
        self.w[same[same < lags], lead[same < lags]] = 1.0

    @property
    def reach(self) -> int:
        """Rows before an origin that its inputs reach back."""
        return max(self.layout.lags, self.calendar.season, self.back) + 1

    def inputs(self, past: np.ndarray, slot: int, year: float, others: np.ndarray) -> np.ndarray:
        """φ of an origin: the last values, latest last, in units of their spread; its slot; its phase of the year."""
        lags, seasonal, slots, long_slots, _ = self.layout
        phi = np.zeros(self.D)
        recent = past[: -lags - 1 : -1]
        phi[:lags] = recent
        a = lags + len(seasonal)
        phi[lags:a] = past[len(past) - 1 - (self.back - seasonal)]
        phi[a + slot] = 1.0
        a += long_slots + slot % slots
        phi[a] = recent[0]
        phi[a + slots] = past[-min(self.calendar.season, len(past)) :].mean()
        phi[a + 2 * slots] = recent[0] - recent[1]
        a = self.D - len(others) - 4
        phi[a : a + 4] = np.sin(year), np.cos(year), np.sin(2.0 * year), np.cos(2.0 * year)
        phi[a + 4 :] = others
        return phi

    def means(self, phi: np.ndarray) -> np.ndarray:
        """Forecasts of all leads, H."""
        return phi @ self.w

    def learn(self, phi: np.ndarray, y: np.ndarray) -> None:
        """Take in the targets of an origin, H; leads whose target is NaN learn nothing."""
        P_phi = self.P @ phi
        k = P_phi / (self.forgetting + phi @ P_phi)
        error = y - phi @ self.w
        self.w += np.outer(k, np.where(np.isfinite(error), error, 0.0))
        self.P -= np.outer(k, P_phi)
        self.P /= self.forgetting
        trace = np.trace(self.P)
        if trace > LARGEST * self.D:
            self.P *= LARGEST * self.D / trace
