"""The model of one series: what it has learned from the rows, and the forecasts of the next steps.

A row goes through these steps. Its target judges the forecasts that the last H origins issued for it. Their errors
update the weights of the members (`mixture`), the intervals (`reach`) and the dependence between leads (`dependence`).
Then each lead of each regression learns from its own label (`regression`, `by_slot`). The smoothers and the effects of
known columns follow (`smoothers`, `effects`). Last, the forecasts of the next H rows are issued. The part of known
columns is added once their values are known. Until then their coefficients are kept with the forecast, so that no row
needs the future.

A wild value is well outside the last values and more than `WILD` usual errors off. It teaches nothing. After `HELD`
successive wild values the series has changed, and the units move with it (`units`). Means and quantiles stay within an
envelope around the values that still count (`units.envelope`).
"""

import numpy as np

from driftgp.contract.protocol import LARGEST
from driftgp.forecasting import by_slot, dependence, effects, mixture, native, reach, seasons
from driftgp.forecasting.by_slot import BySlot
from driftgp.forecasting.dependence import Dependence
from driftgp.forecasting.effects import Columns, Effects
from driftgp.forecasting.fan import Fan
from driftgp.forecasting.inputs import SLOTS, WAVES, Inputs
from driftgp.forecasting.mixture import Mixture
from driftgp.forecasting.part import Part, constant
from driftgp.forecasting.reach import LEVELS, Reach
from driftgp.forecasting.regression import Regression
from driftgp.forecasting.seasons import Seasons
from driftgp.forecasting.settings import Settings
from driftgp.forecasting.smoothers import Smoothers, usual
from driftgp.forecasting.units import Units, envelope, moved, sane
from driftgp.predictions import Gaussian, Recalibrated

EARLY, OFTEN, SELDOM = 64, 4, 16  # rows from one choice of a block's weights to the next: in the first rows, and later
MOST_VARIANCE = 4.0  # largest variance of a law, in usual ones, in the mean of a series whose model sees roots
FIRST_SCORES = 50  # first rows, whose scores do not count for the dependence
LEVEL = LEVELS.index(0.95)
GAPS = (
    "said",
    "m",
    "dependence.z",
    "dependence.error",
    "held",
    "ranges",
    "effects.before",
)  # arrays in which NaN stands for missing values
MOST_NUMBER = 1e150
WILD = 8.0  # usual errors: a value farther off than this, and well outside the last values, is wild
OUTSIDE = 1.0  # share of the range of the last values: a wild value is farther outside than this
LEAST = 0.02  # least usual error, in units of the series, by which a value is called wild
HELD = 3  # successive wild values that show a change
GROWTH = 10.0  # growth of the usual errors if these values are not alike
CLIP = 2.0  # usual errors: a larger error counts as this in the regressions
SEASONS = 36.0  # rows of the longest season until an origin counts 1/e in the regressions
START = (1.0, 0.0)  # of the value one short season before, and one long season before, where many lags begin
PRIOR = 0.03  # variance of a weight of the regressions
YEARLY = 200  # rows of a year, at least, for its phase to be an input
LONGEST_STEP = 86400.0 * 3  # seconds of a row, at most, for the same

Parts = tuple[np.ndarray, np.ndarray]  # what the known columns of a row say: by origin, and by its slot, H each


class Core(Part):
    """The state after a number of rows."""

    def __init__(self, settings: Settings, found: Seasons, rows: np.ndarray, many: np.ndarray | None = None) -> None:
        """Choose units by the first rows, N×(1 + K + P), which are to be taken in after that.

        Args:
            settings: of the series.
            found: its seasons.
            rows: targets, known and past columns.
            many: which known columns have more than two values, K, if already known.
        """
        H, K, P = settings.horizon, settings.known, settings.past
        self.settings, self.seasons = settings, found
        self.lengths = np.array(found.lengths, np.int64)
        self.clock = np.array([found.clock], np.int64)
        lengths = found.lengths
        values = sane(rows[:, 0]) if len(rows) else np.zeros(0)
        units = Units.of(values)
        self.frame = np.array([units.centre, units.scale, float(units.roots)])
        self.counts = np.array([-1, 0], np.int64)  # the last row taken in, and negative values while roots are seen
        yearly = settings.step is not None and 365.25 * 86400.0 / settings.step >= YEARLY
        self.yearly = yearly
        self.turn = 2.0 * np.pi * (settings.step or 0.0) / (365.25 * 86400.0)  # of the year in a row
        short = lengths[0] if lengths else 1
        daily = found.clock and len(lengths) > 1
        # effects of known columns and the calendar
        self.columns = Columns(rows[:, 1 : 1 + K], daily)
        if many is not None:
            self.columns.many = many
        self.effective = settings.effort != "low" or K > 0
        told = tuple(length for length in (short, 7 if daily else 1) if 1 < length <= 60)
        self.told = constant(np.array([short if length == short else -1 for length in told], np.int64))
        self.effects = Effects(told, yearly, self.columns.width)
        others = rows[:, 1 + K :]
        self.past_units = np.zeros((2, P))
        self.past_units[1] = 1.0
        if len(rows):
            spread = others.std(0)
            self.past_units[0] = others.mean(0)
            self.past_units[1] = np.where(spread > 0.0, spread, np.maximum(np.abs(others.mean(0)), 1.0))
        # members
        waves = {"low": 0, "medium": WAVES, "high": 3 * WAVES}[settings.effort]
        self.inputs = Inputs(lengths, P, yearly, waves)
        rates = usual(len(lengths), settings.effort)
        self.smoothers = Smoothers(rates, lengths, H)
        self.profile = len(rates) - 1  # the smoother whose seasons the small inputs are taken from
        memory = max(SEASONS * (lengths[-1] if lengths else 1), 1000.0)
        few = np.full(self.inputs.small, PRIOR)
        self.few = Regression(few, H, memory)
        self.waves = Regression(np.concatenate([few, np.full(waves, PRIOR)]), H, memory) if waves else None
        self.wide = (
            Regression(np.full(self.inputs.large + waves, PRIOR), H, memory) if settings.effort != "low" else None
        )
        if self.wide is not None:
            self.wide.w[...] = self.inputs.naive(H, START)
        self.by_slot = (
            BySlot(lengths, H, memory, self.columns.plain, self.columns.scaled(rows[:, 1 : 1 + K]), yearly=yearly)
            if lengths and settings.effort != "low"
            else None
        )
        self.names = ["last", *(f"naive {length}" for length in lengths)]
        self.names += [f"smoother {j + 1}" for j in range(len(rates))]
        self.names += ["calendar"] * self.effective + ["few lags"]
        self.names += ["points"] * (self.waves is not None) + ["many lags"] * (self.wide is not None)
        self.names += ["slots", "slots and last errors"] * (self.by_slot is not None)
        J = len(self.names)
        self.whole = constant(np.array([name == "last" or name.startswith("naive") for name in self.names], np.float64))
        self.own = constant(np.array([name.startswith("slots") for name in self.names], np.float64))
        self.open = constant(1.0 - self.whole - self.own)  # the members to which the part of known columns is added
        self.mixture = Mixture(H, np.where(self.whole > 0.0, 1.0, 1.5))
        # forecasts that wait for their targets
        T = len(self.mixture.leads)
        self.lead = constant(np.arange(H))
        self.all_but = constant(np.arange(T))
        self.said = np.full((H, T, J), np.nan)  # means of the members, known columns left out
        # mean so far, share of open members, level and base of the regressions, share of those by slot, their forecast
        self.m = np.full((6, H, H), np.nan)
        self.s = np.ones((H, H))
        self.beta = np.zeros((H, self.columns.width))
        self.groups = min(short, SLOTS)
        self.reach = Reach(H, self.groups)
        self.dependence = Dependence(H, float(self.reach.step[LEVEL] * self.reach.slower[-1]))
        # the series
        n = max(self.inputs.reach, H + short + 1, self.by_slot.reach if self.by_slot else 0)
        self.history = np.zeros((4, n))  # values, less the known part, less the profile too; errors by slot
        season = np.where(np.isfinite(values), units.inwards(values), 0.0)[:short] if len(values) else np.zeros(1)
        self.history[:2] = season[np.arange(-n, 0) % len(season)]
        self.held = np.full((3, HELD), np.nan)  # the last wild values: row, value, and what was expected
        self.earlier = np.array([units.centre, units.scale])  # units before they moved
        self.ranges = np.full((2, 2), np.nan)  # least and greatest value of this block of rows, and of the one before
        self.block = round(memory)
        self.sums = np.zeros((4, H))  # count, absolute errors, those of the naive forecast, targets inside
        self.ahead = np.zeros((len(lengths), H), np.int64)  # slots of the rows after the last

    @property
    def row(self) -> int:
        """The last row taken in."""
        return int(self.counts[0])

    @property
    def units(self) -> Units:
        """What z is."""
        return Units(float(self.frame[0]), float(self.frame[1]), bool(self.frame[2]))

    # ---- rows --------------------------------------------------------------------------------------------------------

    def take(self, rows: np.ndarray, at: np.ndarray | None) -> None:
        """Take rows in, N×(1 + K + P), whose times are `at`."""
        if self.units.roots and not self.settings.low >= 0.0:
            below = np.flatnonzero(rows[:, 0] < 0.0)
            left = HELD - int(self.counts[1])
            self.counts[1] += min(len(below), left)
            if len(below) >= left:
                stop = int(below[left - 1])
                self._take(rows[:stop], None if at is None else at[:stop])
                self._leave_roots()
                rows, at = rows[stop:], None if at is None else at[stop:]
        self._take(rows, at)

    def _take(self, rows: np.ndarray, at: np.ndarray | None) -> None:
        N, K = len(rows), self.settings.known
        if not N:
            return
        slots = self.seasons.slots(self.row + 1, at, N)
        years = seasons.year(at, N)
        phase = 2.0 * np.pi * slots[0] / self.seasons.lengths[0] if self.seasons.lengths else np.zeros(N)
        x = self.columns.of(rows[:, 1 : 1 + K], phase)
        past = np.clip((rows[:, 1 + K :] - self.past_units[0]) / self.past_units[1], -10.0, 10.0)
        if self.by_slot is not None:
            x = np.concatenate([x, self.by_slot.of_columns(x, self.columns.scaled(rows[:, 1 : 1 + K]), keep=True)], 1)
        done = 0
        while done < N:
            done = native.take(self, rows[:, 0], slots, years, x, past, done)
            if done < N:  # without the compiled library, or where a value may be wild
                self._row(float(rows[done, 0]), slots[:, done], float(years[done]), x[done], past[done])
                done += 1

    def _leave_roots(self) -> None:
        """Go on with the values themselves, since some are negative; near the centre z stays as it is."""
        values = self.units.outwards(self.history[0])
        for pair in (self.frame[:2], self.earlier):
            centre = max(pair[0], pair[1])
            pair[:] = centre**2, 2.0 * centre * pair[1]
        self.frame[2] = 0.0
        self.history[:3] += self.units.inwards(values) - self.history[0]

    def _row(self, value: float, slots: np.ndarray, year: float, x: np.ndarray, past: np.ndarray) -> None:
        self.counts[0] += 1
        place = self._place()
        x, own = np.split(x, [self.columns.width])
        base = self.beta[place] @ x  # the part of the known columns in each of them, H
        m = self.m[0, place, self.lead] + self.m[1, place, self.lead] * base
        part = np.zeros(len(place))
        if self.by_slot is not None:
            same = np.repeat(self.by_slot.group(slots[:, None]), len(place))
            part = self.by_slot.part(np.tile(own, (len(place), 1)), same, self.lead <= slots[0])
            m = m + self.m[4, place, self.lead] * part
        expected = m[0] if m[0] == m[0] else self._naive_next()
        group = self._group(slots)
        y = float(np.clip(value, -LARGEST, LARGEST))
        z = self._learned(y, float(expected), group, place, m, (base, part))
        self.history[:, :-1] = self.history[:, 1:]
        effect = float(self.effects.beta @ x) if self.effective else 0.0
        self._learn(z, base, place)
        error = 0.0 if self.by_slot is None else self._learn_slot(z, part, slots, year, own)
        if self.effective:
            g = self.effects.features(self._told(slots), year, x)
            self.effects.learn(z, g)
            effect = float(self.effects.beta @ x)
        there = z if z == z else float(expected)
        self.smoothers.learn(z - effect, slots)
        seasonal = self.smoothers.season(self.profile, slots)
        self.history[:, -1] = there, there - effect, there - effect - seasonal, error
        self._issue(slots, year, past)

    def _place(self) -> np.ndarray:
        """Of the origins that forecast this row, by lead."""
        return (self.row - 1 - self.lead) % self.settings.horizon

    def _naive_next(self) -> float:
        """The value at the same place in the season before."""
        back = self.seasons.lengths[0] if self.seasons.lengths else 1
        return float(self.history[0, -back])

    def _told(self, slots: np.ndarray) -> np.ndarray:
        """Slots that the effects tell apart: of the short season, and the day of the week."""
        if not len(self.told):
            return slots[:0]
        return np.array([slots[0] if kind >= 0 else slots[-1] // self.seasons.lengths[0] for kind in self.told])

    def _group(self, slots: np.ndarray) -> int:
        return int(slots[0]) * self.groups // self.seasons.lengths[0] if len(slots) else 0

    def _groups(self) -> np.ndarray:
        """Slots by which the errors of the rows after the last are kept, H."""
        if not len(self.ahead):
            return np.zeros(self.settings.horizon, np.int64)
        return self.ahead[0] * self.groups // self.seasons.lengths[0]

    # ---- the forecasts of a row, judged by its target ----------------------------------------------------------------

    def _learned(self, y: float, expected: float, group: int, place: np.ndarray, m: np.ndarray, parts: Parts) -> float:
        """Judge the forecasts of this row by its value; return the value to learn, NaN for a wild one."""
        if self.row % self.block == 0:
            self.ranges[1], self.ranges[0] = self.ranges[0], np.nan
        if y != y:
            self._judge(np.nan, group, place, m, parts)
            return y
        farthest = self._farthest(group)
        z = self._inwards(y)
        wild = self.row > 0 and self._wild(z, expected, farthest)
        if wild:
            self.held[:, :-1] = self.held[:, 1:]
            self.held[:, -1] = self.row, y, expected
            wild = not self._moved(group)
            z = self._inwards(y)
        if wild:  # its error counts as the limit, so that a series with many wild values has wide intervals
            self._judge(min(max(z, expected - farthest), expected + farthest), group, place, m, parts, teach=False)
            return float("nan")
        self.held[...] = np.nan
        self._see(y)
        self._judge(z, group, place, m, parts)
        return z

    def _inwards(self, y: float) -> float:
        return float(self.units.inwards(np.array([y]))[0])

    def _usual(self, group: int) -> float:
        """Usual error one step ahead at a slot."""
        n, v = self.reach.n[group, 0], self.reach.v[group, 0]
        return float(np.sqrt((n * v + self.reach.all[0]) / (n + 1.0)))

    def _farthest(self, group: int) -> float:
        """Largest distance of a value from its forecast: several usual errors, and at most the range of the series."""
        low, high = self.units.inwards(self._range())
        most = max(high - low, 1.0) if low == low else 1.0
        return WILD * min(max(self._usual(group), LEAST), most)

    def _wild(self, z: float, expected: float, reach: float) -> bool:
        last = self.history[0, -self.inputs.reach :]
        low, high = last.min(), last.max()
        return bool(abs(z - expected) > reach and max(low - z, z - high) > max(0.5 * reach, OUTSIDE * (high - low)))

    def _range(self) -> np.ndarray:
        """Least and greatest of the values that still count."""
        return np.array([np.fmin.reduce(self.ranges[:, 0]), np.fmax.reduce(self.ranges[:, 1])])

    def _see(self, y: float) -> None:
        self.ranges[0] = np.fmin(self.ranges[0, 0], y), np.fmax(self.ranges[0, 1], y)

    def _limits(self) -> tuple[float, float]:
        """The limits of forecasts."""
        low, high = envelope(*self._range())
        return max(low, self.settings.low), min(high, self.settings.high)

    def _moved(self, group: int) -> bool:
        """Whether the last wild values show another level or unit; if so, the units have been moved.

        The model stays the same: earlier values do not change in units of the series, so they move with these units.
        """
        usual = max(self._usual(group), LEAST)
        enough = bool(np.isfinite(self.held).all())
        rows, y, expected = self.held if enough else self.held[:, -1:]
        units = moved(self.units, self.earlier, y, expected, usual, WILD)
        if units is None:
            if enough:  # they are not alike: the errors have grown
                low, high = self.units.inwards(self._range())
                for v in (self.reach.v, self.reach.all):
                    v[...] = np.minimum(GROWTH**2 * v, np.maximum(v, (high - low) ** 2))
                self.held[...] = np.nan
            return False
        self.earlier[...] = self.frame[:2]
        self.frame[:2] = units.centre, units.scale
        for row, value in zip(rows.astype(np.int64).tolist(), y.tolist(), strict=True):
            back = self.row - row  # the present row is not in the history yet
            if 1 <= back <= self.history.shape[1]:
                self.history[:, -back] += self._inwards(value) - self.history[0, -back]
            self._see(value)
        return True

    def _judge(
        self, z: float, group: int, place: np.ndarray, m: np.ndarray, parts: Parts, *, teach: bool = True
    ) -> None:
        """Update weights, intervals and dependence by the errors of the forecasts for this row."""
        H, lead = self.settings.horizon, self.lead
        s, reached = self.s[place, lead], self.reach.reaches()
        (base, part), error = parts, z - m
        scores = self.reach.learn(group, error, s, reached)
        half, slope = 0.5 * reached[:, :, LEVEL].sum(1), self.units.slope(m)
        self.dependence.judge(place, scores, slope * error, slope * s * half)
        if teach and z == z:
            self._count(z, m, error, s, reached)
            some = self.mixture.leads - 1
            errors = (
                z - self.said[place[some], self.all_but] - base[some, None] * self.open - part[some, None] * self.own
            )
            self.mixture.learn(errors)
        for b in range(len(self.mixture.starts)):  # the blocks take turns, for any horizon
            if (self.row - b) % (OFTEN if self.row < EARLY else SELDOM) == 0:
                self.mixture.solve(b)
        if self.row >= H + FIRST_SCORES:
            self.dependence.learn(self.row % H)

    def _count(self, z: float, m: np.ndarray, error: np.ndarray, s: np.ndarray, reached: np.ndarray) -> None:
        """Add the errors of the forecasts, in units of the values, to the record."""
        there = error == error
        units, short = self.units, self.seasons.lengths[0] if self.seasons.lengths else 1
        said = np.concatenate([np.where(there, m, 0.0), self.history[0, -short * (1 + self.lead // short)], [z]])
        y = units.outwards(said)
        H = len(m)
        u = np.where(there, error, 0.0) / s
        self.sums[0] += there
        self.sums[1] += there * np.abs(y[:H] - y[-1])
        self.sums[2] += there * np.abs(y[H:-1] - y[-1])
        self.sums[3] += there * ((-reached[:, 0, LEVEL] <= u) & (u <= reached[:, 1, LEVEL]))

    # ---- learning ----------------------------------------------------------------------------------------------------

    def _learn(self, z: float, base: np.ndarray, place: np.ndarray) -> None:
        """Each lead of each regression learns from its own label."""
        if z != z or self.row == 0:
            return
        most = CLIP * np.sqrt(self.reach.all)
        if self.row < 2 * FIRST_SCORES:
            most = np.full(len(base), np.inf)
        target = z - base
        few = target - self.m[3, place, self.lead]
        self.few.learn(self.row, few, most)
        if self.waves is not None:
            self.waves.learn(self.row, few, most)
        if self.wide is not None:
            self.wide.learn(self.row, target - self.m[2, place, self.lead], most)

    def _learn_slot(self, z: float, part: np.ndarray, slots: np.ndarray, year: float, x: np.ndarray) -> float:
        """The regressions by slot learn; return by how much that of this slot was off."""
        regressions, H = self.by_slot, self.settings.horizon
        if z != z or regressions is None:
            return 0.0
        if self.row:
            most = by_slot.LIMIT * np.sqrt(self.reach.all) if self.row >= 2 * FIRST_SCORES else np.full(H, np.inf)
            regressions.late.learn(self.row, z - part - self.m[5, self._place(), self.lead], most)
        phi, level = regressions.features(self.history[0, :-1], slots[:, None], np.array([year]))
        group = int(regressions.group(slots[:, None])[0])
        inputs, target = np.concatenate([phi[0], x]), z - float(level[0])
        season, _ = regressions.last_season(self.history[0, :-1], slots[:1], level)
        regressions.with_season.learn(target, np.concatenate([inputs, season[0]]), group)
        return regressions.usual.learn(target, inputs, group)

    # ---- forecasts ---------------------------------------------------------------------------------------------------

    def _issue(self, slots: np.ndarray, year: float, past: np.ndarray) -> None:
        """The forecasts of the H rows after this one."""
        H, row, lead = self.settings.horizon, self.row, self.lead
        lengths, inputs = self.seasons.lengths, self.inputs
        place = row % H
        if lengths:
            self.ahead[...] = (slots[:, None] + 1 + lead) % self.lengths[:, None]
        values, less, dev = self.history[:3]
        means = np.empty((len(self.names), H))
        means[0] = values[-1]
        j = 1
        for length in lengths:
            means[j] = values[lead % length - length] if length <= len(values) else values[-1]
            j += 1
        smooth = self.smoothers.forecasts(self.ahead)
        means[j : j + len(smooth)] = smooth
        j += len(smooth)
        if self.effective:
            told = np.array([self.ahead[0] if kind >= 0 else self.ahead[-1] // lengths[0] for kind in self.told])
            means[j] = self.effects.forecasts(told.reshape(len(self.told), H), year + self.turn * (1 + lead))
            j += 1
        level = float(dev[-inputs.short :].mean()) if inputs.short > 1 else float(dev[-1])
        seasonal = np.zeros(H)
        for offset, ahead in zip(self.smoothers.offsets, self.ahead, strict=True):
            seasonal = seasonal + self.smoothers.c[self.profile, offset + ahead]
        base = level + seasonal
        phi = inputs.of_small(dev, slots, level, year, past)
        self.few.observe(row, phi)
        means[j] = base + self.few.means(phi)
        j += 1
        of_values = float(less[-inputs.short :].mean()) if inputs.short > 1 else float(less[-1])
        waves = inputs.of_waves(phi, max(float(np.sqrt(self.reach.all[0])), 1e-6))
        if self.waves is not None:
            phi = np.concatenate([phi, waves])
            self.waves.observe(row, phi)
            means[j] = base + self.waves.means(phi)
            j += 1
        if self.wide is not None:
            phi = np.concatenate([inputs.of_large(less, slots, of_values, year, past), waves])
            self.wide.observe(row, phi)
            means[j] = of_values + self.wide.means(phi)
        if self.by_slot is not None:
            phis, levels = self.by_slot.features(values, self.ahead, year + self.turn * (1 + lead))
            season, known = self.by_slot.last_season(values, self.ahead[0], levels)
            group = self.by_slot.group(self.ahead)
            means[-2] = self.m[5, place] = self.by_slot.forecasts(phis, levels, group, season, known)
            phi = np.append(self.history[3, : -self.by_slot.errors - 1 : -1], 1.0)
            self.by_slot.late.observe(row, phi)
            means[-1] = means[-2] + self.by_slot.late.means(phi)
        limits = self.units.inwards(np.array(envelope(*self._range())))
        np.clip(means, *limits, out=means)
        weights = self.mixture.of_leads()
        self.said[place] = means[:, self.mixture.leads - 1].T
        self.m[0, place] = np.einsum("hj,jh->h", weights, means)
        self.m[1, place] = weights @ self.open
        self.m[4, place] = weights @ self.own
        self.m[2, place], self.m[3, place] = of_values, base
        self.s[place] = self.reach.sizes(self._groups())
        self.beta[place] = self.effects.beta
        self.dependence.begin(place)

    def fan(self, index: np.ndarray, known: np.ndarray) -> Fan:
        """The forecasts issued after the last row, with the known columns of the steps, h×K."""
        h, place = len(index), self.row % self.settings.horizon
        phase = 2.0 * np.pi * self.ahead[0, :h] / self.seasons.lengths[0] if self.seasons.lengths else np.zeros(h)
        x = self.columns.of(known, phase)
        m = self.m[0, place, :h] + self.m[1, place, :h] * (x @ self.beta[place])
        if self.by_slot is not None:
            own = self.by_slot.of_columns(x, self.columns.scaled(known))
            m += self.m[4, place, :h] * self.by_slot.part(
                own, self.by_slot.group(self.ahead[:, :h]), self.lead[:h] <= self.ahead[0, :h]
            )
        s, reached = self.s[place, :h].copy(), self.reach.reaches()[:h]
        normal = Gaussian(np.zeros(h), np.ones(h), np.ones(h))
        law = Recalibrated(normal, reached[:, 1].T.copy(), reached[:, 0].T.copy(), LEVELS)
        units, limits = self.units, self._limits()
        m = np.clip(m, *units.inwards(np.array(limits)))
        mean = units.mean(m, s**2 * np.minimum(law.variance, MOST_VARIANCE)) if units.roots else units.outwards(m)
        return Fan(index, np.clip(mean, *limits), law, self._correlation()[:h, :h], units, m, s, limits)

    def _correlation(self) -> np.ndarray:
        """Of the leads of the last origin, H×H."""
        place, half = self.row % self.settings.horizon, 0.5 * self.reach.reaches()[:, :, LEVEL].sum(1)
        return self.dependence.correlation(self.units.slope(self.m[0, place]) * self.s[place] * half)

    def constants(self) -> np.ndarray:
        """`Constant` of engine/cpp/forecast.hpp."""
        wide, waves = (0.0 if each is None else each.greatest for each in (self.wide, self.waves))
        return np.array(
            [
                LARGEST, WILD, OUTSIDE, LEAST, CLIP, dependence.DEPENDENCE, FIRST_SCORES,
                mixture.MEMORY, mixture.SHARE, mixture.RIDGE, mixture.FIRST, mixture.FARTHEST,
                reach.SIZES, reach.ALL, reach.LEAN, reach.LOWEST, reach.LEAST_RATIO, reach.LARGE, reach.TINY,
                reach.RECENT,
                self.few.forgetting, self.few.greatest, self.effects.forgetting,
                effects.GREATEST * self.effects.D / effects.RIDGE,
                effects.PERSISTENCE, effects.LARGEST, self.turn, waves, wide, LEVEL, reach.SLOWER, EARLY, OFTEN, SELDOM,
                *self._of_slots(), dependence.SHRINK, self.dependence.step, dependence.OUTSIDE, dependence.FARTHEST,
                dependence.LARGEST,
            ]
        )  # fmt: skip

    def _of_slots(self) -> tuple[float, ...]:
        """Of them, those of the regressions by slot."""
        model = self.by_slot
        greatest = (
            (0.0, 0.0, 0.0)
            if model is None
            else (model.usual.greatest, model.with_season.greatest, model.late.greatest)
        )
        return (by_slot.ROBUST, by_slot.FIRST, by_slot.AVERAGED, 1.0 - 1.0 / by_slot.MEMORY, *greatest, by_slot.LIMIT)

    def check(self) -> None:
        """Refuse impossible numbers."""
        self._check_finite()
        for name, array in self._above_0().items():
            if not np.all(array > 0.0):
                raise ValueError(f"{name} must be above 0")
        counts = {"seen": self.smoothers.seen, "count": self.reach.n, "w": self.mixture.w, "sums": self.sums}
        for name, array in counts.items():
            if not np.all(array >= 0.0):
                raise ValueError(f"{name} must not be below 0")
        if not (self.row >= -1 and np.all((self.ahead >= 0) & (self.ahead < self.lengths[:, None]))):
            raise ValueError("counts and ahead must be those of a row")
        if not np.all(np.diag(self.dependence.R) > 0.0) or np.linalg.eigvalsh(self._correlation())[0] <= 0.0:
            raise ValueError("R has a negative variance")

    def _check_finite(self) -> None:
        for name, array in self.arrays().items():
            if name not in GAPS and not np.isfinite(array).all():
                raise ValueError(f"{name} is not finite")
            if not np.all(np.abs(array[np.isfinite(array)]) <= MOST_NUMBER):
                raise ValueError(f"{name} must be at most {MOST_NUMBER:g} in size")

    def _above_0(self) -> dict[str, np.ndarray]:
        reach = {"q": self.reach.q, "v": self.reach.v, "all": self.reach.all, "s": self.s}
        own = (
            {}
            if self.by_slot is None
            else {"size": self.by_slot.usual.size, "size with season": self.by_slot.with_season.size}
        )
        known = {"scale": self.columns.scale, "past_units": self.past_units[1]}
        return reach | known | own | {"frame": self.frame[1:2], "n": self.mixture.n, "origins": self.dependence.origins}
