"""What a forecaster has learned, and one row of its work.

The means of all leads come from one linear regression (`Sheet`). Around its mean, lead h has a model of its own on the
engine's stack: the errors, in units of their usual size at that slot of the season, with intervals calibrated by the
forecasts as they were issued, each label h rows late. Between the leads, the correlation R of the normal scores of one
origin's forecasts is followed,

    R ← R + (z zᵀ − R)/n,   n at most `DEPENDENCE`

over all origins, and over those of the same slot of the season, n at most `OF_A_SLOT`: at night the next hours go
together in another way than at noon. A path is a draw from a normal law with the mean of the two, step by step through
the leads' distributions (a Gaussian copula).

A wild value teaches the regression nothing: one that is both well outside the last values and more than `WILD` usual
errors off. Where `HELD` of them come one after the other, it is the series that has changed, and the units move with it
(`frame`). Means and quantiles stay within an envelope around the values that still count (`envelope`).
"""

from copy import copy
from datetime import datetime
from typing import Any

import numpy as np

from driftgp.contract import LARGEST
from driftgp.engine import Single, engine
from driftgp.forecasting import frame
from driftgp.forecasting.calendar import Calendar
from driftgp.forecasting.envelope import envelope
from driftgp.forecasting.fan import Fan
from driftgp.forecasting.sheet import Sheet
from driftgp.forecasting.units import Units
from driftgp.members import Persistence
from driftgp.predictions import Forecast
from driftgp.wrappers import Calibrated

DEPENDENCE, OF_A_SLOT = 1000.0, 100.0  # origins over which the dependence between leads is averaged
SIZES = 60.0  # errors of a slot over which their usual size is averaged
WILD = 8.0  # usual errors: a value farther off than that, and well outside the last ones, is wild
OUTSIDE = 0.25  # of the range of the last values: what is not so far outside it is not wild
LEAST = 0.02  # in units of the series: what counts as a usual error, at least, when a value is called wild
HELD = 3  # wild values one after the other that tell of a change
GROWTH = 10.0  # of the usual errors where such values are not alike
FARTHEST = 1e6  # in units of its spread, a known column counts as no farther off
AT_ONCE = 1000  # rows whose place in the season is computed together
SHRINK = 0.02  # of the correlations, so that R has a factor from the first origin on
MODEL = Calibrated(Persistence(column=0, forgetting=0.995), gains=(0.0,), features=0)


class Work:
    """The state of a forecaster that has begun: rings of H + 1 origins, and what they have taught."""

    def __init__(
        self, calendar: Calendar, horizon: int, first: datetime | None, values: np.ndarray, known: np.ndarray
    ) -> None:
        """Choose units by the first values (N) and known columns (N×…), which are to be taken in after that."""
        self.calendar, self.horizon, self.first = calendar, horizon, first
        self.units = Units.of(values)
        self.centre, spread = known.mean(0), known.std(0)  # of the known columns
        self.scale = np.where(spread > 0.0, spread, np.maximum(np.abs(self.centre), 1.0))
        self.sheet = Sheet(calendar, horizon, known.shape[1])
        H, ring = horizon, horizon + 1
        self.row = -1  # the last row taken in
        self.past = self._before(self.units.inwards(values))  # the last values, gaps filled
        self.held = np.full((HELD, 3), np.nan)  # the last wild values: row, value, and what was expected; latest last
        self.earlier = np.array([self.units.centre, self.units.scale])  # units before they moved
        self.ranges = np.full((2, 2), np.nan)  # least and greatest value of this block of rows, and of the one before
        self.targets = np.full(ring, np.nan)  # the last values as they came
        self.phi = np.zeros((ring, self.sheet.D))
        self.m, self.s = np.zeros((ring, H)), np.ones((ring, H))
        self.z = np.full((ring, H), np.nan)  # normal scores of the targets that have come
        self.v, self.n = np.ones((calendar.slots, H)), np.ones((calendar.slots, H))  # errors by slot of the target
        self.R, self.origins = np.eye(H), 1.0
        self.R_slot, self.origins_slot = np.tile(np.eye(H), (calendar.slots, 1, 1)), np.ones(calendar.slots)
        self.records = np.zeros(H, MODEL.record_dtype(1, 1))
        self._connect()
        for record in self._own():
            self.engine.start(record, *_NOTHING)
        self.issued = np.zeros((ring, H), MODEL.forecast_dtype(1))
        self.all, self.zeros = np.arange(H), np.zeros((H, 1))  # every lead, and its one input
        self.placed = 0, np.zeros((2, 0))  # a row, and the slots and phases from it on

    def _own(self) -> list[np.ndarray]:
        """The record of each lead."""
        return [self.records[h : h + 1].reshape(()) for h in range(self.horizon)]

    def _connect(self) -> None:
        """Have the engine at hand, and each lead's record in its hands."""
        self.engine = engine(MODEL, 1, 1)
        self.leads = [self.engine.single(record) for record in self._own()]
        self.spare: tuple[np.ndarray, list[Single]] | None = None  # records for the next step, and their leads

    def later(self) -> "Work":
        """A copy that takes rows in while this one stays as it is, to be had once at a time.

        Connecting records to the engine takes as long as a row: the copy has those of the step before.
        """
        later = object.__new__(Work)
        arrays = {name: value.copy() for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        vars(later).update(vars(self) | arrays)
        later.sheet = copy(self.sheet)
        later.sheet.P, later.sheet.w = self.sheet.P.copy(), self.sheet.w.copy()
        if self.spare is None:
            later._connect()
        else:
            later.records, later.leads = self.spare
            later.records[...] = self.records
        later.spare = self.records, self.leads
        return later

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles have an engine of their own."""
        return {name: value for name, value in vars(self).items() if name not in ("engine", "leads", "spare")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.records = self.records.copy()  # an unpickled array of records ignores what is written to its parts
        self._connect()

    def _before(self, z: np.ndarray) -> np.ndarray:
        """A past before the first row: its first season over and over."""
        season = np.where(np.isfinite(z), z, 0.0)[: self.calendar.season]
        reach = self.sheet.reach
        return season[np.arange(-reach, 0) % len(season)]

    # ---- one row -----------------------------------------------------------------------------------------------------

    def take(self, value: float, known: np.ndarray) -> None:
        """Learn from a row, then issue the forecasts of the H rows after it."""
        self.row += 1
        place = self.row % (self.horizon + 1)
        self.past = np.append(self.past[1:], self._expected())  # until it is known better
        y = float(np.clip(value, -LARGEST, LARGEST))
        z = self._learned(y)
        self.targets[place] = z
        if self.row >= self.horizon:
            self._learn()
        if z == z:
            self.past[-1] = z
        slot, year = self._place(self.row)
        outside = np.clip((known - self.centre) / self.scale, -FARTHEST, FARTHEST)
        phi = self.sheet.inputs(self.past, slot, year, outside)
        self.phi[place], self.z[place] = phi, np.nan
        self.m[place] = self._within(self.sheet.means(phi))
        self.s[place] = np.sqrt(self.v[self._slots(self.row), np.arange(self.horizon)])
        self.issued[place] = self.engine.run(self.records, self.all, self.all + 1, self.zeros)

    def _expected(self) -> float:
        """What was forecast for this row one step ahead; the same place in the season before the first forecast."""
        if self.row == 0:
            return float(self.past[-self.calendar.season])
        return float(self.m[(self.row - 1) % (self.horizon + 1), 0])

    def _learned(self, y: float) -> float:
        """Judge the forecasts of this row by its value; return what the regression learns from: NaN for a wild one."""
        if self.row % self.block == 0:
            self.ranges[1], self.ranges[0] = self.ranges[0], np.nan
        if y != y:
            return y
        reach = self._reach()
        z = self._inwards(y)
        wild = self.row > 0 and self._wild(z, reach)
        if wild:
            self.held = np.concatenate([self.held[1:], [[self.row, y, self.past[-1]]]])
            wild = not self._moved()
            z = self._inwards(y)
        if wild:  # its error counts as the limit, so that the intervals of a series with many of them show it
            self._judge(float(np.clip(z, self.past[-1] - reach, self.past[-1] + reach)))
            return np.nan
        self.held = np.full_like(self.held, np.nan)
        self._see(y)
        self._judge(z)
        return z

    def _inwards(self, y: float) -> float:
        return self.units.inwards(np.array([y])).item()

    @property
    def block(self) -> int:
        """Rows of a block: those that the regression remembers."""
        return round(1.0 / (1.0 - self.sheet.forgetting))

    def _reach(self) -> float:
        """How far a value may be from its forecast: several usual errors, but no more than the series has moved."""
        low, high = self.units.inwards(self._range())
        most = max(high - low, 1.0) if low == low else 1.0
        return WILD * min(max(float(np.sqrt(self.v[self._slot(self.row), 0])), LEAST), most)

    def _wild(self, z: float, reach: float) -> bool:
        last = self.past[:-1]
        low, high = last.min(), last.max()
        return abs(z - self.past[-1]) > reach and max(low - z, z - high) > max(0.5 * reach, OUTSIDE * (high - low))

    def _range(self) -> np.ndarray:
        """Least and greatest of the values that still count."""
        return np.array([np.fmin.reduce(self.ranges[:, 0]), np.fmax.reduce(self.ranges[:, 1])])

    def _see(self, y: float) -> None:
        self.ranges[0] = np.fmin(self.ranges[0, 0], y), np.fmax(self.ranges[0, 1], y)

    def _within(self, z: np.ndarray) -> np.ndarray:
        """Means inside the envelope, H."""
        return np.clip(z, *self.units.inwards(np.array(envelope(*self._range()))))

    def _moved(self) -> bool:
        """Whether the last wild values tell of another level or unit; if so, the units have moved there.

        What was learned still applies: the values of before stay as they are in units of the series, and so move along.
        """
        usual = max(float(np.sqrt(self.v[self._slot(self.row), 0])), LEAST)
        enough = bool(np.isfinite(self.held).all())
        rows, y, expected = (self.held if enough else self.held[-1:]).T
        units = frame.moved(self.units, self.earlier, y, expected, usual, WILD)
        if units is None:
            if enough:  # they are not alike: it is the errors that have grown
                low, high = self.units.inwards(self._range())
                self.v = np.minimum(GROWTH**2 * self.v, np.maximum(self.v, (high - low) ** 2))
                self.held = np.full_like(self.held, np.nan)
            return False
        self.earlier = np.array([self.units.centre, self.units.scale])
        self.units = units
        for row, value in zip(rows.astype(np.int64).tolist(), y.tolist(), strict=True):
            back = self.row - row
            if back < len(self.past):
                self.past[-1 - back] = self._inwards(value)
            if back <= self.horizon:
                self.targets[row % (self.horizon + 1)] = self._inwards(value)
            self._see(value)
        return True

    def _judge(self, z: float) -> None:
        """Every lead learns how far the forecast that it issued for this row was off."""
        H = self.horizon
        lead = np.arange(min(H, self.row))  # h − 1 of the origins that forecast this row
        place = (self.row - 1 - lead) % (H + 1)
        error = z - self.m[place, lead]
        u = error / self.s[place, lead]
        issued = self.issued[place, lead]
        self.z[place, lead] = Forecast(MODEL, issued, flat=True, solve=self.engine.solve).to_normal(u)
        for h in lead:
            self.leads[h].learn(_ZERO, u[h : h + 1], 1.0, issued[h : h + 1])
        slot = self._slot(self.row)
        n = np.minimum(self.n[slot, lead] + 1.0, SIZES)
        usual = self.v[slot, lead]
        # one wild error counts as no more than a few usual ones
        square = np.minimum(error**2, np.where(n > 10.0, 25.0 * usual, np.inf))
        self.n[slot, lead] = n
        self.v[slot, lead] = np.maximum(usual + (square - usual) / n, 1e-18)

    def _learn(self) -> None:
        """The origin whose last target has come teaches the regression, and the dependence between leads."""
        H = self.horizon
        origin = (self.row - H) % (H + 1)
        y = self.targets[(self.row - H + 1 + np.arange(H)) % (H + 1)]
        self.sheet.learn(self.phi[origin], y)
        scores = np.clip(self.z[origin], -4.0, 4.0)
        if self.row >= self.sheet.reach + 2 * H and np.isfinite(scores).all():
            products, slot = np.outer(scores, scores), self._slot(self.row - H)
            self.origins = min(self.origins + 1.0, DEPENDENCE)
            self.R += (products - self.R) / self.origins
            self.origins_slot[slot] = min(self.origins_slot[slot] + 1.0, OF_A_SLOT)
            self.R_slot[slot] += (products - self.R_slot[slot]) / self.origins_slot[slot]

    def _place(self, row: int) -> tuple[int, float]:
        """Slot of the long season of a row, and its phase of the year."""
        at = self._at(row)
        return int(self.placed[1][0, at]), float(self.placed[1][1, at])

    def _slot(self, row: int) -> int:
        """Slot of the short season of a row."""
        at = self._at(row)
        return int(self.placed[1][0, at]) % self.calendar.slots

    def _slots(self, row: int) -> np.ndarray:
        """Slots of the short season of the H rows after a row."""
        first = self._at(row) + 1
        return self.placed[1][0, first : first + self.horizon].astype(np.int64) % self.calendar.slots

    def _at(self, row: int) -> int:
        """Where a row and those after it are among the places, which are computed many at a time."""
        first, places = self.placed
        if not first <= row < first + places.shape[1] - self.horizon:
            first = max(row - self.horizon, 0)
            rows = first + np.arange(AT_ONCE + 2 * self.horizon)
            self.placed = first, np.array(self.calendar.places(rows, self.first))
        return row - first

    # ---- forecasts ---------------------------------------------------------------------------------------------------

    def fan(self, index: np.ndarray) -> Fan:
        """The forecasts issued after the last row."""
        place = self.row % (self.horizon + 1)
        law = Forecast(MODEL, self.issued[place], flat=True, solve=self.engine.solve)
        m, s = self.m[place].copy(), self.s[place].copy()
        mean = self.units.mean(m + s * law.mean, s**2 * law.variance)
        limits = envelope(*self._range())
        return Fan(index, np.clip(mean, *limits), law, self._correlation(), self.units, m, s, limits)

    def _correlation(self) -> np.ndarray:
        """R of all origins, and of those of the present slot as far as there are such."""
        slot = self._slot(self.row)
        share = 0.5 * (self.origins_slot[slot] - 1.0) / OF_A_SLOT
        R = (1.0 - share) * self.R + share * self.R_slot[slot]
        size = np.sqrt(np.diag(R))
        return (1.0 - SHRINK) * R / np.outer(size, size) + SHRINK * np.eye(self.horizon)


_ZERO = np.zeros(1)
_NOTHING = (np.zeros((0, 1)), np.zeros((0, 1)))
