"""What a forecaster has learned, and one row of its work.

The means of all leads come from one linear regression (`Sheet`). Around its mean, lead h has a model of its own on the
engine's stack: the errors, in units of their usual size at that slot of the season, with intervals calibrated by the
forecasts as they were issued, each label h rows late. Between the leads, the correlation R of the normal scores of one
origin's forecasts is followed,

    R ← R + (z zᵀ − R)/n,   n at most `DEPENDENCE`

over all origins, and over those of the same slot of the season, n at most `OF_A_SLOT`: at night the next hours go
together in another way than at noon. A path is a draw from a normal law with the mean of the two, step by step through
the leads' distributions (a Gaussian copula).
"""

from datetime import datetime
from typing import Any

import numpy as np

from driftgp.engine import engine
from driftgp.forecasting.calendar import Calendar
from driftgp.forecasting.fan import Fan
from driftgp.forecasting.sheet import Sheet
from driftgp.forecasting.units import Units
from driftgp.members import Persistence
from driftgp.predictions import Forecast
from driftgp.wrappers import Calibrated

DEPENDENCE, OF_A_SLOT = 1000.0, 100.0  # origins over which the dependence between leads is averaged
SIZES = 60.0  # errors of a slot over which their usual size is averaged
WILD = 8.0  # usual errors: a value farther off than that counts as one so far off
AT_ONCE = 1000  # rows whose place in the season is computed together
SHRINK = 0.02  # of the correlations, so that R has a factor from the first origin on
MODEL = Calibrated(Persistence(column=0, forgetting=0.995), gains=(0.0,))


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
        self.places = np.zeros((2, 0))  # slots and phases of some rows
        self.placed = 0  # the first of these rows

    def _own(self) -> list[np.ndarray]:
        """The record of each lead."""
        return [self.records[h : h + 1].reshape(()) for h in range(self.horizon)]

    def _connect(self) -> None:
        """Have the engine at hand, and each lead's record in its hands."""
        self.engine = engine(MODEL, 1, 1)
        self.leads = [self.engine.single(record) for record in self._own()]

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles have an engine of their own."""
        return {name: value for name, value in vars(self).items() if name not in ("engine", "leads")}

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
        z = self._limited(self.units.inwards(np.array([value])).item())
        self.targets[place] = z
        if z == z:
            self._judge(z)
        if self.row >= self.horizon:
            self._learn()
        self.past = np.append(self.past[1:], z if z == z else self._expected())
        slot, year = self._place(self.row)
        phi = self.sheet.inputs(self.past, slot, year, (known - self.centre) / self.scale)
        self.phi[place], self.z[place] = phi, np.nan
        self.m[place] = self.sheet.means(phi)
        self.s[place] = np.sqrt(self.v[self._slots(self.row), np.arange(self.horizon)])
        self.issued[place] = self.engine.run(self.records, self.all, self.all + 1, self.zeros)

    def _expected(self) -> float:
        """What was forecast for this row one step ahead; the same place in the season before the first forecast."""
        if self.row == 0:
            return float(self.past[-self.calendar.season])
        return float(self.m[(self.row - 1) % (self.horizon + 1), 0])

    def _limited(self, z: float) -> float:
        """A value no farther from what was forecast than several usual errors, which grow if it stays there."""
        if self.row <= self.horizon or z != z:
            return z
        before = (self.row - 1) % (self.horizon + 1)
        reach = WILD * max(float(self.s[before, 0]), 1e-9)
        return float(np.clip(z, self.m[before, 0] - reach, self.m[before, 0] + reach))

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
        return int(self.places[0, at]), float(self.places[1, at])

    def _slot(self, row: int) -> int:
        """Slot of the short season of a row."""
        at = self._at(row)
        return int(self.places[0, at]) % self.calendar.slots

    def _slots(self, row: int) -> np.ndarray:
        """Slots of the short season of the H rows after a row."""
        first = self._at(row) + 1
        return self.places[0, first : first + self.horizon].astype(np.int64) % self.calendar.slots

    def _at(self, row: int) -> int:
        """Where a row and those after it are among the places, which are computed many at a time."""
        if not self.placed <= row < self.placed + self.places.shape[1] - self.horizon:
            self.placed = max(row - self.horizon, 0)
            rows = self.placed + np.arange(AT_ONCE + 2 * self.horizon)
            self.places = np.array(self.calendar.places(rows, self.first))
        return row - self.placed

    # ---- forecasts ---------------------------------------------------------------------------------------------------

    def fan(self, index: np.ndarray) -> Fan:
        """The forecasts issued after the last row."""
        place = self.row % (self.horizon + 1)
        law = Forecast(MODEL, self.issued[place], flat=True, solve=self.engine.solve)
        m, s = self.m[place].copy(), self.s[place].copy()
        mean = self.units.mean(m + s * law.mean, s**2 * law.variance)
        return Fan(index, mean, law, self._correlation(), self.units, m, s)

    def _correlation(self) -> np.ndarray:
        """R of all origins, and of those of the present slot as far as there are such."""
        slot = self._slot(self.row)
        share = 0.5 * (self.origins_slot[slot] - 1.0) / OF_A_SLOT
        R = (1.0 - share) * self.R + share * self.R_slot[slot]
        size = np.sqrt(np.diag(R))
        return (1.0 - SHRINK) * R / np.outer(size, size) + SHRINK * np.eye(self.horizon)


_ZERO = np.zeros(1)
_NOTHING = (np.zeros((0, 1)), np.zeros((0, 1)))
