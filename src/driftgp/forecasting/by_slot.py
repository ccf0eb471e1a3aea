"""Two regressions for each slot of the short season, on what is known a season before the target and on known columns.

A row τ has features φ = (v, 1, weekday, year, x): the values v of one, two and three short seasons before, of the long
season before, of their neighbours, and means over quarters of the season that ended one short season before, all less
the mean l of that season; and the known columns x, of the row itself, of the season and the long season before, and
their means over the last season and the one before it. With θ of the row's slot, the forecast is l + θᵀφ, by recursive
least squares,

    k = P φ / (λ + φᵀPφ),   θ ← θ + k ψ(z − l − θᵀφ),   P ← (P − k φᵀP)/λ,

where ψ limits an error to `ROBUST` times the mean absolute one, so that θ leans towards the median of each slot.

Nothing in φ is later than one short season before the target, so that it is the same for all leads of the first season;
for later ones the values of the short season are those of the last season that is known.

The second regression has all values of the season before too, from its first slot to its last: of yesterday, for an
hour of today. It forecasts the rows for which all of that season is known, and the first one forecasts the others.
"""

from itertools import pairwise

import numpy as np

from driftgp.forecasting.inputs import SLOTS
from driftgp.forecasting.part import Part, constant
from driftgp.forecasting.regression import Regression
from driftgp.forecasting.seasons import waves_of_year

MEMORY = 500.0  # targets of a slot until one counts 1/e
ROBUST = 1.5  # mean absolute errors: one error teaches no more than that
FIRST = 30.0  # targets of a slot before errors are limited
AVERAGED = 100.0  # errors of a slot over which their mean size is averaged
PRIOR, OF_CALENDAR = 0.2, 0.5  # variances of weights
OF_SEASON = 0.02  # of those of the season before
WEEKDAYS = 14  # cycles of the short season in the long one, at most, that are told apart
GREATEST = 1e4  # variance of a weight, in prior variances
LAGS = 48  # last errors of the regression on them, at most
OF_ERRORS = 0.003  # variance of a weight of it
LIMIT = 1.5  # usual errors: one error teaches it no more than that


class BySlot(Part):
    """Of a series with these seasons and H leads."""

    def __init__(
        self, lengths: tuple[int, ...], horizon: int, memory: float, plain: int, known: np.ndarray, *, yearly: bool
    ) -> None:
        """Start without rows.

        Args:
            lengths: of the seasons, the shortest first.
            horizon: H.
            memory: rows until an origin counts 1/e in the regression on the last errors.
            plain: what the columns that are known ahead say by themselves, in numbers.
            known: their first rows in units of their spread, N×K.
            yearly: whether the phase of the year is an input.
        """
        short, long = lengths[0], lengths[-1]
        self.short, self.long, self.yearly, self.plain = short, long, yearly, plain
        K = known.shape[1]
        self.groups = min(short, SLOTS)
        lags = sorted({short, short + 1, short + 2, 2 * short - 1, 2 * short, 3 * short} - {0})
        self.lags = constant(np.array(lags, np.int64))
        self.quarters = 4 if short >= 8 else 0
        self.days = long // short if 1 < long // short <= WEEKDAYS else 0
        self.own = len(lags) + (long > short) + self.quarters + 2 + self.days + 4 * yearly
        self.X = plain + K * (3 + (long > short))
        self.D = self.own + self.X
        steps = np.arange(horizon)
        self.season = constant(steps // short * short)  # by which values are older for later leads
        self.seasons = constant(steps // long * long)
        self.reach = max(3 * short, long) + horizon + short  # values that it looks back
        prior = np.full(self.D, PRIOR)
        prior[self.own - self.days - 2 - 4 * yearly : self.own] = OF_CALENDAR
        G = self.groups
        self.usual = Robust(prior, G)
        self.places = min(short, SLOTS)  # values of the season before, or means over so many parts of it
        self.with_season = Robust(np.concatenate([prior, np.full(self.places, OF_SEASON)]), G)
        self.errors = min(2 * short, LAGS)
        self.late = Regression(np.full(self.errors + 1, OF_ERRORS), horizon, memory)
        self.before = np.zeros((short + long, K))  # the columns of the last rows
        if len(known):
            self.before[...] = known[0]

    # ---- features ----------------------------------------------------------------------------------------------------

    def of_columns(self, x: np.ndarray, known: np.ndarray, *, keep: bool = False) -> np.ndarray:
        """Features of the known columns of the next rows, N×X.

        Args:
            x: what the columns of these rows say, by themselves first.
            known: the columns in units of their spread, N×K.
            keep: whether these rows have come.
        """
        if not known.shape[1]:
            return np.zeros((len(known), 0))
        raw = np.concatenate([self.before, known])
        at = np.arange(len(self.before), len(raw))
        if keep:
            self.before[...] = raw[len(known) :]
        parts = [x[:, : self.plain], raw[at - self.short]]
        if self.long > self.short:
            parts.append(raw[at - self.long])
        back = np.arange(self.short)[:, None]
        # one after the other: the same bits for any number of rows
        parts += [np.add.accumulate(raw[at - first - back], 0)[-1] / self.short for first in (0, self.short)]
        return np.concatenate(parts, 1)

    def features(self, values: np.ndarray, slots: np.ndarray, years: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """φ of the next rows less the columns, H×own, and their levels, H, by the values so far (latest last).

        Args:
            values: of the series.
            slots: of the next rows, S×H.
            years: phases of the year of the next rows, H.
        """
        n, H, short = len(values), slots.shape[1], self.short
        target = n + np.arange(H)
        from_ = (target - self.season[:H])[:, None]
        window = values[from_ - short - np.arange(short)]  # H×short, the latest first
        level = window.mean(1)
        phi = np.zeros((H, self.own))
        c = len(self.lags)
        phi[:, :c] = values[from_ - self.lags] - level[:, None]
        if self.long > self.short:
            phi[:, c] = values[target - self.seasons[:H] - self.long] - level
            c += 1
        for q in range(self.quarters):
            a, b = q * short // 4, (q + 1) * short // 4
            phi[:, c] = window[:, a:b].mean(1) - level
            c += 1
        phi[:, c], phi[:, c + 1] = 1.0, level
        c += 2
        if self.days:
            phi[np.arange(H), c + slots[-1] // short] = 1.0
            c += self.days
        if self.yearly:
            phi[:, c : c + 4] = 0.3 * waves_of_year(years).T
        return phi, level

    def group(self, slots: np.ndarray) -> np.ndarray:
        """By which slots are told apart."""
        return slots[0] * self.groups // self.short

    def last_season(self, values: np.ndarray, slots: np.ndarray, level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The season before that of each of the next rows, H×places, less their levels; and where all of it is known.

        Args:
            values: of the series so far.
            slots: of the next rows in the short season, H.
            level: of the next rows, H.
        """
        lead = np.arange(len(slots))
        known = lead <= slots
        first = np.where(known, len(values) + lead - slots - self.short, 0)
        window = values[first[:, None] + np.arange(self.short)]
        ends = np.arange(self.places + 1) * self.short // self.places
        parts = [window[:, a:b].mean(1) - level for a, b in pairwise(ends)]
        return np.where(known[:, None], np.stack(parts, 1), 0.0), known

    # ---- forecasts ---------------------------------------------------------------------------------------------------

    def forecasts(
        self, phi: np.ndarray, level: np.ndarray, group: np.ndarray, season: np.ndarray, known: np.ndarray
    ) -> np.ndarray:
        """Forecasts without the columns, H."""
        own, D = self.own, self.D
        usual = np.einsum("hd,hd->h", self.usual.theta[group, :own], phi)
        theta = self.with_season.theta[group]
        more = np.einsum("hd,hd->h", theta[:, :own], phi) + np.einsum("hd,hd->h", theta[:, D:], season)
        return level + np.where(known, more, usual)

    def part(self, x: np.ndarray, group: np.ndarray, known: np.ndarray) -> np.ndarray:
        """What the columns add, N."""
        own, D = self.own, self.D
        usual = np.einsum("nd,nd->n", self.usual.theta[group, own:], x)
        return np.where(known, np.einsum("nd,nd->n", self.with_season.theta[group, own:D], x), usual)


class Robust(Part):
    """Recursive least squares for each of several groups, in which one error counts for no more than is usual."""

    def __init__(self, prior: np.ndarray, groups: int) -> None:
        """Start without rows.

        Args:
            prior: variance of each weight, D.
            groups: G.
        """
        self.greatest = GREATEST * float(prior.sum())
        self.forgetting = 1.0 - 1.0 / MEMORY
        self.P = np.tile(np.diag(prior), (groups, 1, 1))
        self.theta = np.zeros((groups, len(prior)))
        self.size, self.n = np.ones(groups), np.zeros(groups)

    def learn(self, target: float, phi: np.ndarray, group: int) -> float:
        """Take in a target and its features; return the error of its forecast."""
        P, theta = self.P[group], self.theta[group]
        e = target - float(theta @ phi)
        self.n[group] += 1.0
        n = self.n[group]
        size = self.size[group]
        limited = min(max(e, -ROBUST * size), ROBUST * size) if n > FIRST else e
        self.size[group] += (min(abs(e), 5.0 * size) - size) / min(n + 1.0, AVERAGED)
        h = P @ phi
        k = h / (self.forgetting + max(float(phi @ h), 0.0))
        theta += k * limited
        P -= np.outer(k, h)
        P /= self.forgetting
        if P.trace() > self.greatest:
            P *= 0.5
        return e
