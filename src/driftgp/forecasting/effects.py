"""Effects of the calendar and of columns known ahead: one regression for all leads.

A row has features g = (1, slots, year, x), x the known columns and, of those with more than two values, squares and
products. The residuals e of y on θᵀg are autocorrelated, so the regression is of changes from row to row,

    y_t − ρ y_{t−1}  on  g_t − ρ g_{t−1},      ρ the correlation of e_t with e_{t−1},

by recursive least squares (Cochrane and Orcutt). The forecast of lead h is θᵀg_{t+h} + ρʰ e_t. The part of x, βᵀx, is
the effect of the columns: other members forecast the series less this part.
"""

import numpy as np

from driftgp.forecasting.part import Part, constant
from driftgp.forecasting.seasons import waves_of_year

RIDGE = 0.05  # prior precision of an effect, in rows
MEMORY = 3000.0  # rows until one counts 1/e
PERSISTENCE = 300.0  # rows over which ρ is averaged
LARGEST = 0.97  # ρ
FARTHEST = 100.0  # largest distance of a column, in its spreads
MOST_PRODUCTS = 3  # columns with many values whose products are taken
GREATEST = 1e4  # variance of an effect, in prior variances


class Columns(Part):
    """Known columns in units of their spread, with squares and products."""

    def __init__(self, known: np.ndarray, daily: bool) -> None:
        """Choose units by the first rows, N×K.

        Args:
            known: the columns of the first rows.
            daily: whether a column may count for more at some hours of the day.
        """
        K = known.shape[1]
        self.centre, spread = known.mean(0) if len(known) else np.zeros(K), known.std(0) if len(known) else np.zeros(K)
        self.scale = np.where(spread > 0.0, spread, np.maximum(np.abs(self.centre), 1.0))
        many = [k for k in range(K) if len(np.unique(known[:, k])) > 2]
        self.many = np.isin(np.arange(K), many).astype(np.int64)
        self.daily = daily

    @property
    def width(self) -> int:
        """Columns that come out of it."""
        return self.plain + (4 * int(self.many.sum()) if self.daily else 0)

    @property
    def plain(self) -> int:
        """Those of them that do not depend on the phase."""
        K, many = len(self.centre), int(self.many.sum())
        return K + many + (many * (many - 1) // 2 if many <= MOST_PRODUCTS else 0)

    def scaled(self, known: np.ndarray) -> np.ndarray:
        """Columns of rows in units of their spread, N×K."""
        return np.clip((known - self.centre) / self.scale, -10.0, 10.0)

    def of(self, known: np.ndarray, phase: np.ndarray) -> np.ndarray:
        """Columns of rows whose phase of the day is given, N×width."""
        x = np.clip((known - self.centre) / self.scale, -FARTHEST, FARTHEST)
        z = np.clip(x[:, self.many == 1], -10.0, 10.0)
        parts = [x, z**2 - 1.0]
        if 1 < z.shape[1] <= MOST_PRODUCTS:
            a, b = np.triu_indices(z.shape[1], 1)
            parts.append(z[:, a] * z[:, b])
        if self.daily:
            for harmonic in (1.0, 2.0):
                parts += [z * np.sin(harmonic * phase)[:, None], z * np.cos(harmonic * phase)[:, None]]
        return np.concatenate(parts, 1)


class Effects(Part):
    """θ, and what is needed to learn it."""

    def __init__(self, slots: tuple[int, ...], yearly: bool, columns: int) -> None:
        """Start without rows.

        Args:
            slots: number of slots of each season.
            yearly: whether the phase of the year counts.
            columns: K, of x.
        """
        self.offsets = constant(
            1 + np.concatenate([[0], np.cumsum(slots)[:-1]]).astype(np.int64) if slots else np.zeros(0, int)
        )
        self.first = 1 + sum(slots)  # where the year begins
        self.yearly, self.columns = yearly, columns
        self.D = self.first + 4 * yearly + columns
        self.forgetting = 1.0 - 1.0 / MEMORY
        precision = np.full(self.D, RIDGE)
        precision[1 : self.first] = 4.0 * RIDGE
        self.P = np.diag(1.0 / precision)
        self.theta = np.zeros(self.D)
        self.before = np.full(1 + self.D, np.nan)  # target and features of the row before
        self.residual = np.zeros(1)
        self.products = np.array([0.0, 1.0, 1.0])  # Σ e e₋₁, Σ e², number

    @property
    def beta(self) -> np.ndarray:
        """Of the columns, K."""
        return self.theta[self.D - self.columns :]

    @property
    def rho(self) -> float:
        """ρ."""
        return float(min(max(self.products[0] / max(self.products[1], 1e-12), 0.0), LARGEST))

    def features(self, slots: np.ndarray, year: float, x: np.ndarray) -> np.ndarray:
        """g of a row, D."""
        g = np.zeros(self.D)
        g[0] = 1.0
        g[self.offsets + slots] = 1.0
        if self.yearly:
            g[self.first : self.first + 4] = waves_of_year(year)
        g[self.D - self.columns :] = x
        return g

    def learn(self, y: float, g: np.ndarray) -> None:
        """Take in a target, or NaN, and its features."""
        rho = self.rho
        if y != y:
            self.residual *= rho
            self.before[0] = np.nan
            return
        e = y - float(self.theta @ g)
        if self.before[0] == self.before[0]:
            last = self.before[0] - float(self.theta @ self.before[1:])
            self.products[2] = min(self.products[2] + 1.0, PERSISTENCE)
            self.products[:2] += (
                np.array([e * last, 0.5 * (e * e + last * last)]) - self.products[:2]
            ) / self.products[2]
            a, target = g - rho * self.before[1:], y - rho * self.before[0]
            h = self.P @ a
            k = h / (self.forgetting + a @ h)
            self.theta += k * (target - float(self.theta @ a))
            self.P -= np.outer(k, h)
            self.P /= self.forgetting
            if self.P.trace() > GREATEST * self.D / RIDGE:
                self.P *= 0.5
        self.before[0], self.before[1:] = y, g
        self.residual[0] = y - float(self.theta @ g)

    def forecasts(self, ahead: np.ndarray, years: np.ndarray) -> np.ndarray:
        """Forecasts of all leads without the part of x, H, at slots S×H and phases of the year H."""
        means = self.theta[0] + self.rho ** np.arange(1, len(years) + 1) * self.residual[0]
        for offset, slots in zip(self.offsets, ahead, strict=True):
            means = means + self.theta[offset + slots]
        if self.yearly:
            for weight, wave in zip(self.theta[self.first : self.first + 4], waves_of_year(years), strict=True):
                means = means + weight * wave
        return means
