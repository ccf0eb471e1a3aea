"""Inputs of the regressions at an origin: the last values, those one season before the targets, the calendar.

No input depends on the horizon, so the forecast of a step does not either. All values are differences from the
mean of the last season, so that a change of the level does not change the inputs.
"""

import numpy as np

from driftgp.forecasting.part import Part, constant
from driftgp.forecasting.seasons import waves_of_year

FEW = 8  # last values of the small regression, at least
LAGS = 48  # of the large one, at most
SEASONAL = 48  # targets whose value one long season before is an input
SLOTS = 24  # of the short season that are told apart
WEEKS = 168  # of the long season
WAVES = 128  # of the small inputs


class Inputs(Part):
    """Which they are, for seasons of these lengths in rows."""

    def __init__(self, lengths: tuple[int, ...], past: int, yearly: bool, waves: int) -> None:
        """Choose the inputs.

        Args:
            lengths: of the seasons, the shortest first.
            past: columns known up to the origin.
            yearly: whether the phase of the year is an input.
            waves: cosines of the small inputs.
        """
        self.lengths, self.past, self.yearly = lengths, past, yearly
        short, long = (lengths[0], lengths[-1]) if lengths else (1, 1)
        self.short, self.long = short, long
        lags = set(range(FEW if short > 1 else 12))
        for length in lengths:
            if length <= 2000:
                lags |= {length - 2, length - 1, length, 2 * length - 1} & set(range(4 * 2000))
        if 2 < short <= 12:
            lags |= set(range(2 * short))
        self.lags = constant(np.array(sorted(lag for lag in lags if lag >= 0)))
        self.groups = min(short, SLOTS)
        self.small = len(self.lags) + 8 + 4 * yearly + past
        recent = min(max(2 * short, 12), LAGS)
        seasonal = np.arange(1, min(SEASONAL, long) + 1) if long > recent else np.zeros(0, int)
        self.recent = constant(np.unique(np.concatenate([np.arange(recent), long - seasonal])).astype(np.int64))
        self.weeks = min(long, WEEKS) if long > short else 0
        self.by_group = 7 + 2 * yearly  # inputs that count by slot of the short season
        self.large = len(self.recent) + self.groups * self.by_group + self.weeks + 2 + 4 * yearly + past
        self.reach = int(max(self.recent.max(), self.lags.max(), 2 * long)) + 2
        rng = np.random.default_rng(0)
        self.seen = constant(np.concatenate([np.arange(min(4, len(self.lags))), np.arange(len(self.lags), self.small)]))
        width = len(self.seen)
        self.omega = constant(rng.normal(size=(waves, width)) / np.sqrt(width) * rng.uniform(0.5, 2.5, (waves, 1)))
        self.shift = constant(rng.uniform(0.0, 2.0 * np.pi, waves))

    def of_small(self, dev: np.ndarray, slots: np.ndarray, level: float, year: float, past: np.ndarray) -> np.ndarray:
        """The small inputs: deviations from the season's profile (latest last), by lags, times the phase, and means."""
        n = len(self.lags)
        phi = np.zeros(self.small)
        last = dev[len(dev) - 1 - self.lags] - level
        phi[:n] = last
        if len(slots):
            phase = 2.0 * np.pi * slots[0] / self.short
            sin, cos = np.sin(phase), np.cos(phase)
            phi[n : n + 4] = last[0] * sin, last[0] * cos, 0.3 * sin, 0.3 * cos
            phase = 2.0 * np.pi * slots[-1] / self.long
            phi[n + 4 : n + 6] = 0.3 * np.sin(phase), 0.3 * np.cos(phase)
        phi[n + 6] = 0.3
        phi[n + 7] = dev[-3:].mean() - level
        if self.yearly:
            phi[n + 8 : n + 12] = 0.3 * waves_of_year(year)
        phi[self.small - self.past :] = past
        return phi

    def of_waves(self, phi: np.ndarray, scale: float) -> np.ndarray:
        """Cosines of the small inputs, in which deviations count in their usual size."""
        u = phi[self.seen].copy()
        n = min(4, len(self.lags))
        u[: n + 2] /= scale
        u[n + 2 : n + 6] *= 5.0
        u[n + 7] /= scale
        u[n + 8 :] *= 5.0
        waves = np.cos(self.omega @ np.clip(u, -6.0, 6.0) + self.shift)
        return scale * np.sqrt(2.0 / max(len(self.shift), 1)) * waves

    def of_large(
        self, values: np.ndarray, slots: np.ndarray, level: float, year: float, past: np.ndarray
    ) -> np.ndarray:
        """The large inputs: the last values and those one long season before the targets, by slot."""
        phi = np.zeros(self.large)
        n = len(self.recent)
        phi[:n] = values[len(values) - 1 - self.recent] - level
        longer = values[-self.long :].mean() - level
        if len(slots):
            group = int(slots[0]) * self.groups // self.short
            before = values[-2 * self.short : -self.short].mean() - level
            some = [
                1.0,
                phi[0],
                phi[0] - phi[1],
                longer,
                values[-1] - values[-1 - self.short],
                values[-1] - values[-1 - self.long],
                before,
            ]
            if self.yearly:
                some += [0.3 * np.sin(year), 0.3 * np.cos(year)]
            phi[n + group + self.groups * np.arange(self.by_group)] = some
        n += self.by_group * self.groups
        if self.weeks:
            phi[n + int(slots[-1]) * self.weeks // self.long] = 1.0
            n += self.weeks
        phi[n] = 1.0
        phi[n + 1] = longer
        if self.yearly:
            phi[n + 2 : n + 6] = 0.3 * waves_of_year(year)
        phi[self.large - self.past :] = past
        return phi

    def naive(self, horizon: int, shares: tuple[float, float]) -> np.ndarray:
        """Weights of the large inputs, and of the cosines, that repeat the last season, H×…."""
        w = np.zeros((horizon, self.large + len(self.shift)))
        if self.short > 1:
            for length, share in zip((self.short, self.long), shares, strict=True):
                for h in range(1, horizon + 1):
                    w[h - 1, : len(self.recent)] += share * (self.recent == length * -(-h // length) - h)
        return w
