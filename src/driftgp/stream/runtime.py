"""Many series at once: rows of any form in, forecasts out, with one call of the engine per model.

One series is the case of one key. A call that is refused changes nothing; one that is interrupted leaves each series
after some whole number of its rows.
"""

import math
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from driftgp.base import checks, frames
from driftgp.base.frames import Column, Table
from driftgp.models.model import State, warn_of_units
from driftgp.predictions import Prediction
from driftgp.stream import order
from driftgp.stream.begin import Default, Given, Start
from driftgp.stream.clock import Clock, Passed
from driftgp.stream.derived import Derived, Past
from driftgp.stream.keys import SeriesKey
from driftgp.stream.one_each import one_each, settled
from driftgp.stream.plan import Categories, Encoder, Plan, listed
from driftgp.stream.reading import Block, Reader, refuse_gaps
from driftgp.stream.rows import ForecastRecords, Predicting, SeriesRows
from driftgp.stream.series import Series
from driftgp.stream.settings import Settings, promised
from driftgp.stream.stacks import Stacks
from driftgp.stream.together import assembled, batched, by_key, run_together, scattered

_TOGETHER = 256  # series that run at the same time; more would take too much memory for copies


class Prepared(NamedTuple):
    """Rows of one series, ready for its model, and the series after them."""

    rows: SeriesRows
    passed: Passed
    clock: Clock
    past: Past


class Inputs(NamedTuple):
    """Rows as the inputs of any model.

    Attributes:
        names: what each input is, D.
        X: the inputs, N×D; NaN where one is missing.
        y: the targets, N, or N×P; NaN where one is missing.
        wall: times by the clock on the wall, N, in microseconds; NaN where rows have no dates.
    """

    names: tuple[str, ...]
    X: np.ndarray
    y: np.ndarray
    wall: np.ndarray


class Streams:
    """What all series of a stream or a fleet share, and the series by their keys."""

    def __init__(self, settings: Settings, start: Start) -> None:
        """Begin without rows."""
        self.settings, self.start = settings, start
        self.stacks = Stacks()
        self.series: dict[SeriesKey, Series] = {}
        self.outputs: int | None = None
        self.begun = False  # whether the columns and the number of outputs are known
        self.named = False
        self.warns = True  # whether to warn of columns without a value
        self.common: State | None = None  # what new series start from, if they do not start cold
        self._plan: Plan | None = None
        self._derived: Derived | None = None
        self._promised = promised(settings.support)
        self._doubtful = isinstance(start, Given) and start.model.sees_raw_numbers

    # ---- what is shared ----------------------------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """The columns."""
        if self._plan is None:
            raise ValueError("there are no columns yet: they are known with the first row")
        return self._plan

    @property
    def planned(self) -> Plan | None:
        """The columns, None before the first row."""
        return self._plan

    @property
    def derived(self) -> Derived:
        """The inputs that follow from the past."""
        if self._derived is None:
            raise ValueError("there are no columns yet: they are known with the first row")
        return self._derived

    @property
    def P(self) -> int:
        """Number of target columns inside the model."""
        return self.outputs or 1

    def encoder(self, categories: Categories) -> Encoder:
        """From rows to inputs, for a series with these categories."""
        return self.plan.encoder(categories, self.derived.names, self.settings.horizon)

    def plain_targets(self, y: np.ndarray) -> np.ndarray:
        """Targets N×P as users have them: N where a target is a plain number."""
        return y if self.outputs is not None else y[:, 0]

    def share(self, plan: Plan, *, named: bool) -> None:
        """Set the columns."""
        if self._plan is None or len(plan.names) != len(self._plan.names) or plan.known != self._plan.known:
            self._derived = Derived.of(self.settings, plan.known, plan.late)
        self._plan, self.named = plan, named

    def start_from(self, state: State, block: Block) -> None:
        """Start new series from this state."""
        self.share(block.plan, named=block.named)
        self.start, self.common, self.begun = Given(state.model), state, True

    def remove(self, key: SeriesKey) -> None:
        """Forget a series."""
        self.series.pop(key).leave()

    # ---- rows of any form --------------------------------------------------------------------------------------------

    def read(self, x: Any, *, learn: bool) -> Block:
        """Rows as an array, a dict, a list of dicts or a frame."""
        block = Reader(self.settings, self._plan, self.named, self.start.gaps).read(x, learn=learn)
        if learn and block.table is not None:
            _warn(order.mixed(block.table, block.times, self.settings))
        return block

    def targets(self, block: Block, y: Any) -> np.ndarray:
        """The targets of rows as N×P, NaN where one is missing. The first targets set the number of outputs."""
        N = block.codes.shape[0]
        if y is None:
            y = self._column("target", block.table)
        y = checks.real("y", frames.targets(y))
        rows = () if block.single else (N,)
        if not self.begun:
            self.outputs = y.shape[-1] if y.ndim == len(rows) + 1 and y.shape[-1] > 0 else None
            if self.outputs is not None and self.settings.lags:
                raise ValueError(f"lags are those of one target; got {self.outputs} outputs: take a stream for each")
            if self.outputs is not None and self.settings.base is not None:
                raise ValueError(f"base is that of one target; got {self.outputs} outputs: take a stream for each")
        shape = rows if self.outputs is None else (*rows, self.outputs)
        made = checks.targets("y", y, shape).reshape(N, self.P)
        self._warn_of_support(made)
        return made

    def _warn_of_support(self, y: np.ndarray) -> None:
        """Warn once if targets contradict `support`."""
        if self._promised is None or not isinstance(self.start, Default):
            return
        low, high = self._promised
        outside = y[(y < low) | (y > high)]
        if outside.size:
            self._promised = None
            warnings.warn(
                f"support is {self.settings.support!r}, but a target is {outside[0]:g}: from then on, the "
                f'forecasts of its series have no such bounds. Correct the target, or take support="real"',
                UserWarning,
                stacklevel=3,
            )

    def _column(self, role: str, table: Table | None) -> Any:
        """The values of a column that a setting names."""
        name = getattr(self.settings, role)
        if name is None:
            raise ValueError(f"y is missing: give the targets, or name their column, Online({role}=…)")
        if table is None or name not in table.columns:
            found = "an array" if table is None else listed(table.columns)
            raise ValueError(f"X must have the column {name!r}, which is the {role}; it has {found}")
        column = table.columns[name]
        values = frames.numbers(column, name)
        return values[0] if table.single else values

    def keys_of(self, block: Block) -> list[Any]:
        """The keys of rows, in the column that the settings name."""
        name = self.settings.key
        if name is None:
            raise ValueError("keys are missing: give the key of each row, or name their column, Fleet(key=…)")
        if block.table is None or name not in block.table.columns:
            found = "an array" if block.table is None else listed(block.table.columns)
            raise ValueError(f"X must have the column {name!r}, which is the key; it has {found}")
        return block.table.columns[name].keys

    # ---- predict -----------------------------------------------------------------------------------------------------

    def predict(self, block: Block, keys: Sequence[SeriesKey]) -> Prediction:
        """Distribution of the target at each row, by the series of its key; nothing is learned, and nothing changes."""
        if len(block.codes) == 0:
            raise ValueError(f"X must have at least one row to predict for; got shape {block.codes.shape}")
        before = self._plan, self._derived, self.named
        try:
            if self._plan is None or block.named != self.named:
                self.share(block.plan, named=block.named)
            which = by_key(keys)
            jobs = []
            for key, places in which.items():
                series = self.series.get(key) or Series(self)
                jobs.append(series.foresee(self._ahead(series, block, places)))
            made = run_together(jobs)
        finally:
            if not self.begun:
                self._plan, self._derived, self.named = before
        return assembled(made, list(which.values()), block.source)

    def _ahead(self, series: Series, block: Block, places: np.ndarray) -> np.ndarray:
        """Rows as the next ones of a series."""
        codes = block.codes[places]
        if self.settings.missing == "refuse":
            refuse_gaps(codes[:, : self.plan.known], self.plan)
        if not self.derived.any:
            return codes
        times = np.full(len(codes), np.nan)
        if block.times is not None:
            times = series.clock.checked(block.times.rows(places))
        ahead = 0 if series.queue is not None and len(series.queue) else self.settings.horizon - 1
        return self.derived.rows(
            series.past, codes, times, block.wall[places], np.full(len(codes), series.past.count + ahead)
        )

    def ahead(self, block: Block, key: SeriesKey) -> np.ndarray:
        """The inputs of rows as the next ones of a series that has begun, N×D."""
        series = self.series[key]
        raw = self._ahead(series, block, np.arange(len(block.codes)))
        return self.encoder(series.categories).expanded(raw)

    def inputs_of(self, x: Any, y: Any) -> Inputs:
        """The inputs of the rows of one series from its beginning, with every category in them; nothing changes."""
        fresh = Streams(self.settings, self.start)
        block = fresh.read(x, learn=True)
        targets = fresh.targets(block, y)
        fresh.share(block.plan, named=block.named)
        series = Series(fresh)
        rows = fresh._prepared(series, block, targets, np.arange(len(block.codes)), None).rows
        categories = series.categories
        for row in block.codes:
            categories = fresh.plan.grown(categories, row)
        encoder = fresh.encoder(categories)
        return Inputs(encoder.names, encoder.expanded(rows.raw), fresh.plain_targets(targets), block.wall)

    # ---- learn -------------------------------------------------------------------------------------------------------

    def take(
        self,
        block: Block,
        y: np.ndarray,
        keys: Sequence[SeriesKey],
        *,
        elapsed: Any = None,
        at_once: bool,
        known: np.ndarray | None = None,
        overtaken: bool = False,
    ) -> tuple[Prediction | None, dict[str, np.ndarray]]:
        """Predict rows and learn from them; return what was predicted of each, and flags of each.

        Args:
            block: the rows.
            y: their targets, N×P.
            keys: their keys.
            elapsed: time since the row before, as the user gives it; None to go by the times of the rows.
            at_once: learn from each row right after its prediction; else after `horizon` more rows.
            known: the forecast that was issued for a single row.
            overtaken: whether a single row is learned even if it is older than the last one.
        """
        if len(block.codes) == 0:
            return None, {}
        if elapsed is None and known is None and (at_once or self.settings.horizon == 1) and not self._doubtful:
            series = settled(self, block, keys)
            if series is not None:
                nowhere = np.zeros(len(y), bool)
                flags = {"late": nowhere, "jump": nowhere, "missing": np.isnan(y).all(1)}
                return one_each(series, block, y), flags | {"carried": np.isnan(block.codes).any(1)}
        return self._by_series(block, y, keys, elapsed=elapsed, at_once=at_once, known=known, overtaken=overtaken)

    def _by_series(
        self,
        block: Block,
        y: np.ndarray,
        keys: Sequence[SeriesKey],
        *,
        elapsed: Any,
        at_once: bool,
        known: np.ndarray | None,
        overtaken: bool,
    ) -> tuple[Prediction | None, dict[str, np.ndarray]]:
        """Do the same, with the rows of each series as its story has them."""
        before, begun, which = (self._plan, self._derived, self.named), self.begun, by_key(keys)
        made: list[list[ForecastRecords]] = []
        try:
            self.share(block.plan, named=block.named)
            gaps = np.isnan(block.codes[:, : self.plan.known]).any(1)
            if self.settings.missing == "refuse":
                refuse_gaps(block.codes[:, : self.plan.known], self.plan)
            elif self.settings.missing == "skip":
                y = np.where(gaps[:, None], np.nan, y)
            prepared = {
                key: self._prepared(self.series.get(key) or Series(self), block, y, places, elapsed)
                for key, places in which.items()
            }
            if self._doubtful:
                warn_of_units(block.codes, y)
            for some in batched(prepared.items(), _TOGETHER):
                made += self._learned(some, at_once=at_once, known=known, overtaken=overtaken)
        except BaseException:
            if not made and self.begun == begun:
                self._plan, self._derived, self.named = before
            raise
        self._doubtful = False
        places, own = list(which.values()), prepared.values()
        late = scattered(places, [each.passed.late for each in own])
        _warn(order.unsorted(late))
        flags = {
            "late": late,
            "jump": scattered(places, [each.passed.jumped for each in own]),
            "missing": np.isnan(y).all(1),
            "skipped" if self.settings.missing == "skip" else "carried": gaps,
        }
        return assembled(made, places, block.source), flags

    def _learned(
        self,
        prepared: Sequence[tuple[SeriesKey, Prepared]],
        *,
        at_once: bool,
        known: np.ndarray | None,
        overtaken: bool,
    ) -> list[list[ForecastRecords]]:
        """Run some series over their rows, and store the results.

        If more than the state changes, the series learns on a copy, which replaces it in one step. So an error before
        that step changes nothing.
        """
        olds = [self.series.get(key) for key, _ in prepared]
        series = [self._to_change(old) for old in olds]
        made = run_together(
            [
                _job(one, own, at_once=at_once, known=known, overtaken=overtaken)
                for one, (_, own) in zip(series, prepared, strict=True)
            ]
        )
        depth = self.derived.depth
        for one, (_, own) in zip(series, prepared, strict=True):
            one.clock, one.past = own.clock, own.past.last(depth)
        self.begun = True
        self.series.update({key: one for one, (key, _) in zip(series, prepared, strict=True)})
        for old, one in zip(olds, series, strict=True):
            if old is not None and old is not one:
                old.leave()
        return made

    def _to_change(self, series: Series | None) -> Series:
        """A series that may be changed: a new one, a copy, or the series itself if only its state changes."""
        if series is None:
            return Series(self)
        more = series.queue is not None or not math.isnan(series.clock.latest) or self.derived.any
        return series.twin() if series.begins or more else series

    def warm(self, block: Block, y: np.ndarray, key: SeriesKey) -> None:
        """Begin a series with a batch of rows."""
        before = self._plan, self._derived, self.named
        try:
            self.share(block.plan, named=block.named)
            series = Series(self)
            own = self._prepared(series, block, y, np.arange(len(block.codes)), None)
            if self._doubtful:
                warn_of_units(block.codes, y)
            run_together([_warming(series, own.rows)])
        except ValueError:
            if not self.begun:
                self._plan, self._derived, self.named = before
            raise
        self.begun, self._doubtful = True, False
        series.clock, series.past = own.clock, own.past.last(self.derived.depth)
        self.series[key] = series

    def _prepared(self, series: Series, block: Block, y: np.ndarray, places: np.ndarray, elapsed: Any) -> Prepared:
        """Rows of one series with their derived inputs, and the series after them."""
        codes, targets = block.codes[places], y[places]
        N = len(codes)
        passed, clock = self._passed(series, block, places, elapsed)
        past, raw = series.past, codes
        if self.derived.any:
            learned = ~passed.late
            index = past.count + np.cumsum(learned) - learned
            past = past.then(passed.rows(learned), targets[learned, 0], codes[learned, self.plan.known :])
            times = np.full(N, np.nan) if block.times is None else np.asarray(block.times.values, np.float64)[places]
            raw = self.derived.rows(past, codes, times, block.wall[places], index)
        return Prepared(SeriesRows(raw, targets, passed.spans, passed.steps), passed, clock, past)

    def _passed(self, series: Series, block: Block, places: np.ndarray, elapsed: Any) -> tuple[Passed, Clock]:
        """Time since the row before, for each row: as given, by the rows' own times, or one step each."""
        shape = () if block.single else (len(block.codes),)
        if elapsed is not None:
            spans = frames.times("elapsed", elapsed)
            if spans is None:
                steps = np.atleast_1d(checks.elapsed(frames.targets(elapsed), shape))[places]
                passed, clock = series.clock.untimed(steps, len(places))
            else:
                passed, clock = series.clock.spaced(_spans(spans, shape)[places])
            if block.times is not None and len(places):
                last = float(np.asarray(block.times.values, np.float64)[places[-1]])
                clock = clock._replace(
                    latest=last, before=last, zoned=block.times.zoned, dated=block.times.kind == "times"
                )
            return passed, clock
        if block.times is None:
            return series.clock.untimed(None, len(places))
        return series.clock.passed(block.times.rows(places))


# ---- many series side by side ----------------------------------------------------------------------------------------


def _job(series: Series, own: Prepared, *, at_once: bool, known: np.ndarray | None, overtaken: bool) -> Predicting:
    """The job of a series over its rows; late rows are only predicted."""
    parts: list[ForecastRecords] = []
    late, rows = own.passed.late & (not overtaken), own.rows
    horizon = series.owner.settings.horizon
    if at_once and series.queue is not None:
        yield from series.flush()
    cuts = [0, *(np.flatnonzero(np.diff(late)) + 1).tolist(), len(rows)]
    for begin, end in pairwise(cuts):
        some = rows.part(slice(begin, end))
        if late[begin]:
            parts += yield from series.foresee(some.raw)
        elif at_once or horizon == 1:
            parts += yield from series.prompt(some, known)
        else:
            parts += yield from series.delayed(some)
    return parts


def _warming(series: Series, rows: SeriesRows) -> Predicting:
    yield from series.warm(rows)
    return []


def _warn(text: str | None) -> None:
    if text is not None:
        warnings.warn(text, UserWarning, stacklevel=5)


def _spans(spans: Column, shape: tuple[int, ...]) -> np.ndarray:
    """Spans of time that the user gives, N."""
    if spans.kind != "spans":
        raise ValueError(f"elapsed must be numbers or spans of time (such as index.diff()); got {spans.kind}")
    missing = np.isnan(spans.values)
    if missing[1:].any():
        raise ValueError(
            f"elapsed must not be missing after the first row; it is in row {int(missing[1:].argmax()) + 1}"
        )
    values = np.broadcast_to(spans.values, shape or (1,))
    checks.elapsed(np.where(np.isnan(values), 0.0, values).reshape(shape), shape)
    return values
