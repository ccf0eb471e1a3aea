"""One series: it predicts its rows, and learns from each when its target counts as known.

The steps of a series are a generator: it yields work for an engine, and is sent the results. The runtime runs the
generators of many series side by side and hands the work of all series that have one model to the engine in one call.
"""

import math
import warnings
from collections.abc import Generator, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from driftgp.engine import Batch
from driftgp.models import admission
from driftgp.models.model import Layout
from driftgp.stream import base_column
from driftgp.stream.begin import FIRST, Choice
from driftgp.stream.clock import Clock, in_steps
from driftgp.stream.derived import Past
from driftgp.stream.plan import Categories, Encoder, never_there
from driftgp.stream.rows import Buffer, EngineCall, ForecastRecords, Learning, Predicting, SeriesRows, Waiting
from driftgp.stream.stacks import Slot

if TYPE_CHECKING:
    from driftgp.stream.runtime import Streams


# Fields of a series, without its slot in a stack.
_KEPT = (
    *("buffer", "categories", "choice", "clock", "done", "encoder", "generation", "issued", "learned", "now", "past"),
    *("queue", "waiting"),
)


class Series:
    """Everything that is known about one series.

    Attributes:
        clock: of its rows.
        past: the last rows, as far as inputs reach back.
        categories: of its columns of text.
        buffer: the first rows, until they have chosen a model.
        slot: place of its model's state; None before the first row.
        choice: the model.
        generation: number of models so far; a forecast of an earlier model does not judge the present one.
        queue: rows of a table whose targets are not known yet, at most `horizon` of them.
        issued: the forecasts of these rows; None for one of an earlier model.
        waiting: rows by id whose labels are still to come.
    """

    __slots__ = ("owner", "slot", *_KEPT)

    def __init__(self, owner: "Streams") -> None:
        """Start with nothing."""
        self.owner = owner
        self.clock = Clock()
        self.past = Past(owner.derived.late)
        self.categories: Categories = owner.plan.no_categories()
        self.encoder: Encoder | None = None
        self.buffer: Buffer | None = None
        self.slot: Slot | None = None
        self.choice: Choice | None = None
        self.generation = 0
        self.learned = 0
        self.queue: SeriesRows | None = None
        self.issued: list[np.ndarray | None] = []
        self.waiting: dict[Hashable, Waiting] = {}
        self.now = 0.0  # rows that have waited so far
        self.done = 0.0  # of them, those before the last one whose label came

    # ---- predict -----------------------------------------------------------------------------------------------------

    def foresee(self, raw: np.ndarray) -> Predicting:
        """Predict rows, and learn nothing."""
        if self.slot is None or self.is_cold:
            return (yield from self._cold(raw))
        made = yield EngineCall(self.slot, Batch(self._encoder.expanded(raw)))
        return [ForecastRecords(self.slot.stack, made)]

    @property
    def is_cold(self) -> bool:
        """Whether neither this series nor its common start has learned anything."""
        return self.learned == 0 and self.owner.common is None

    def _cold(self, raw: np.ndarray) -> Predicting:
        """The forecast before anything was learned, the same for all rows."""
        if self.slot is not None:
            made = yield EngineCall(self.slot, Batch(np.zeros((len(raw), self.slot.stack.layout.inputs))))
            return [ForecastRecords(self.slot.stack, made)]
        encoder = self.owner.encoder(self.owner.plan.grown(self.categories, raw[0]))
        slot = self._started(self._meanwhile(encoder), encoder, None)
        X = np.zeros((len(raw), encoder.width)) if self.is_cold else encoder.expanded(raw)
        made = yield EngineCall(slot, Batch(X))
        slot.stack.release(slot.number)
        return [ForecastRecords(slot.stack, made)]

    # ---- predict and learn at once -----------------------------------------------------------------------------------

    def prompt(self, rows: SeriesRows, known: np.ndarray | None = None) -> Predicting:
        """Predict each row and then learn from it; `known` is an earlier forecast of the first row."""
        parts: list[ForecastRecords] = []
        begin = 0
        if self.slot is None:
            self._open(rows.raw[0])
        if self.is_cold:  # of the first row nothing is known
            parts += yield from self.foresee(rows.raw[:1])
            yield from self._learn(rows.part(slice(1)))
            begin, known = 1, None
        while begin < len(rows):
            count = self._steady(rows.raw[begin:])
            some = rows.part(slice(begin, begin + max(count, 1)))
            if count == 0:  # a category is new: its row is predicted without it
                self.encoder = self.owner.encoder(self.categories)  # with text where nothing was known of a column
                parts += yield from self.foresee(some.raw)
                yield from self._grow(some)
                yield from self._learn(some)
            else:
                made = yield self._lesson(some, known)
                parts.append(ForecastRecords(self._slot.stack, made))
                yield from self._noted(some)
            begin, known = begin + len(some), None
        return parts

    def _learn(self, one: SeriesRows) -> Learning:
        """Learn from a row that was predicted elsewhere."""
        yield self._lesson(one)
        yield from self._noted(one)

    def _lesson(self, rows: SeriesRows, known: np.ndarray | None = None) -> EngineCall:
        X, elapsed = self._encoder.expanded(rows.raw), in_steps(rows.spans, rows.steps)
        if known is None:
            return EngineCall(self._slot, Batch(X, rows.y, elapsed))
        places = np.full(len(rows), -1)
        places[0] = len(rows)
        return EngineCall(self._slot, Batch(X, rows.y, elapsed, None, known, places))

    # ---- predict now, learn later ------------------------------------------------------------------------------------

    def delayed(self, rows: SeriesRows) -> Predicting:
        """Before each row is predicted, learn from the one that came `horizon` rows before it."""
        h, parts, begin = self.owner.settings.horizon, [], 0
        if self.slot is None:
            self._open(rows.raw[0])
        while begin < len(rows):
            queue = rows.part(slice(0)) if self.queue is None else self.queue
            room = h - len(queue)
            if room > 0:
                some, cold = rows.part(slice(begin, begin + room)), self.is_cold
                made = (yield from self.foresee(some.raw))[0]
                self._push(queue.then(some), made.records)
                if cold:  # a forecast made before anything was learned does not judge the model
                    self.issued = [None] * len(self.issued)
            else:
                labels = queue.then(rows.part(slice(begin, None))).part(slice(len(rows) - begin))
                if self._steady(labels.raw) == 0:
                    yield from self._grow(labels)
                count = max(self._steady(labels.raw), 1)
                last = self.buffer is not None and count == self.buffer.missing  # which chooses the model
                count = max(count - last, 1)
                some, labels = rows.part(slice(begin, begin + count)), labels.part(slice(count))
                made = yield from self._later(queue, labels, some, last=last and count == 1)
            parts.append(made)
            begin += len(some)
        return parts

    def _later(
        self, queue: SeriesRows, labels: SeriesRows, rows: SeriesRows, *, last: bool
    ) -> Generator[EngineCall, np.ndarray, ForecastRecords]:
        """Learn each label just before the row at the same place is predicted; the last may choose the model."""
        X, elapsed = self._encoder.expanded(labels.raw), in_steps(labels.spans, labels.steps)
        kept = [made for made in self.issued if made is not None]
        issued = np.concatenate(kept) if kept else None
        N, h = len(labels), self.owner.settings.horizon
        there = np.array([made is not None for made in self.issued[:N]])
        places = np.arange(N) - h  # of a row that was predicted here
        places[: len(there)] = np.where(there, N + np.cumsum(there) - 1, -1)
        if last:
            yield EngineCall(self._slot, Batch(X, labels.y, elapsed, None, issued, places))
            self.queue = queue.part(slice(N, None)).then(rows)
            yield from self._noted(labels)
            self.issued = [*self.issued[N:], None]
            made = (yield from self.foresee(rows.raw))[0]
            self.issued[-1] = made.records
            return made
        X_next = self._encoder.expanded(rows.raw)
        made = ForecastRecords(
            self._slot.stack, (yield EngineCall(self._slot, Batch(X, labels.y, elapsed, X_next, issued, places)))
        )
        self._push(queue.then(rows).part(slice(N, None)), made.records)
        yield from self._noted(labels)
        return made

    def _push(self, queue: SeriesRows, made: np.ndarray) -> None:
        self.queue = queue
        issued = [*self.issued, *(made[i : i + 1] for i in range(max(len(made) - len(queue), 0), len(made)))]
        self.issued = issued[len(issued) - len(queue) :]

    def flush(self) -> Predicting:
        """Learn from all rows of a table that still wait for their targets."""
        rows, self_issued = self.queue, self.issued
        self.queue, self.issued = None, []
        for i in range(0 if rows is None else len(rows)):
            one, generation = rows.part(slice(i, i + 1)), self.generation  # type: ignore[union-attr]
            if self._steady(one.raw) == 0:
                yield from self._grow(one)
            same = generation == self.generation
            yield self._lesson(one, self_issued[i] if same else None)
            yield from self._noted(one)
            if generation != self.generation:
                self_issued = [None] * len(self_issued)
        return []

    # ---- the first rows ----------------------------------------------------------------------------------------------

    def _open(self, raw: np.ndarray) -> None:
        """Begin with a first row."""
        start, plan = self.owner.start, self.owner.plan
        categories = plan.grown(self.categories, raw)
        encoder = self.owner.encoder(categories)
        choice = self._meanwhile(encoder)
        self._adopt(choice, encoder, self._started(choice, encoder, None))
        self.categories = categories
        first = start.first or (FIRST if plan.text else 0)
        self.buffer = Buffer(first) if first else None

    def warm(self, rows: SeriesRows) -> Learning:
        """Begin with a batch, which chooses the model at once."""
        categories = self.categories
        for row in rows.raw:
            categories = self.owner.plan.grown(categories, row)
        encoder, first = self.owner.encoder(categories), self.owner.start.first
        X, y = encoder.expanded(rows.raw), self.owner.plain_targets(rows.y)
        choice = self.owner.start.choose(X[: first or len(X)], y[: first or len(y)])
        yield from self._replayed(choice, encoder, rows)
        self.categories = categories
        self.learned += len(rows)
        self._warn_of_base(rows)
        if len(rows) < first:
            self.buffer = Buffer(first)
            self.buffer.extend(rows)

    def _steady(self, raw: np.ndarray) -> int:
        """Number of next rows that change neither columns nor model; 0 if the first has a new category."""
        if self.buffer is None:
            return len(raw)
        return self.owner.plan.new_at(self.categories, raw[: self.buffer.missing])

    def _noted(self, rows: SeriesRows) -> Learning:
        """Keep the first rows that were learned; once they are complete, they choose the model."""
        self.learned += len(rows)
        if self.buffer is None:
            return
        self.buffer.extend(rows)
        if self.buffer.missing == 0 or self.buffer.count - len(rows) < base_column.LEAST <= self.buffer.count:
            self._warn_of_base(self.buffer.rows)
        if self.buffer.missing == 0:
            kept = self.buffer.rows
            if self.owner.start.first:
                X = self._encoder.expanded(kept.raw)
                choice = self.owner.start.choose(X, self.owner.plain_targets(kept.y))
                choice = choice._replace(warmup=min(choice.warmup, len(kept)))
                if choice != self.choice:
                    yield from self._replayed(choice, self._encoder, kept)
            self._warn_of_nothing(kept.raw)
            self.buffer = None

    def _grow(self, rows: SeriesRows) -> Learning:
        """Add inputs for the new categories of the first of these rows, and learn again from all rows before it."""
        categories = self.owner.plan.grown(self.categories, rows.raw[0])
        encoder = self.owner.encoder(categories)
        before = None if self.buffer is None or not self.buffer.count else self.buffer.rows
        yield from self._replayed(self._meanwhile(encoder), encoder, before, float(rows.steps[0]))
        self.categories = categories

    def _meanwhile(self, encoder: Encoder) -> Choice:
        choice = self.owner.start.choose(
            np.zeros((0, encoder.width)), self.owner.plain_targets(np.zeros((0, self.owner.P)))
        )
        return choice._replace(warmup=0)  # there is no batch yet: rows are learned one after another

    def _replayed(
        self, choice: Choice, encoder: Encoder, rows: SeriesRows | None, step: float | None = None
    ) -> Learning:
        """Start a model on earlier rows: it warms up on the first ones, and learns the others in order."""
        count = 0 if rows is None else min(choice.warmup, len(rows))
        slot = self._started(choice._replace(warmup=count), encoder, rows)
        if rows is not None and count < len(rows):
            rest = rows.part(slice(count, None))
            X, h = encoder.expanded(rest.raw), self.owner.settings.horizon
            elapsed = in_steps(rest.spans, float(rows.steps[-1]) if step is None else step)
            if h == 1:
                yield EngineCall(slot, Batch(X, rest.y, elapsed))
            else:
                # whose forecasts do not judge the model, as in `delayed`
                cold = count == 0 and self.owner.common is None
                issued = None if cold else (yield EngineCall(slot, Batch(X[:h])))
                places = np.arange(len(X)) - h
                places[:h] = -1 if cold else len(X) + np.arange(min(h, len(X)))
                yield EngineCall(
                    slot, Batch(X, rest.y, elapsed, np.concatenate([X[h:], X[-h:]])[: len(X)], issued, places)
                )
        self._adopt(choice._replace(warmup=count), encoder, slot)

    def _started(self, choice: Choice, encoder: Encoder, rows: SeriesRows | None) -> Slot:
        layout = Layout(encoder.width, self.owner.outputs, self.owner.start.gaps)
        count = 0 if rows is None else min(choice.warmup, len(rows))
        X = np.zeros((0, encoder.width)) if rows is None else encoder.expanded(rows.raw[:count])
        y = np.zeros((0, self.owner.P)) if rows is None else rows.y[:count]
        common = self.owner.common
        if common is not None and (common.model, common.layout) != (choice.model, layout):
            common = None
        if common is None:  # a state that is there already has been accepted, with the rows that it began with
            choice.model.accept(layout.inputs, layout.columns, count)
        slot = self.owner.stacks.admit(choice.model, layout)
        try:
            if common is not None:
                slot.stack.record(slot.number)[...] = common.record
            else:
                slot.stack.engine.start(slot.stack.record(slot.number), X, y)
        except BaseException:
            slot.stack.release(slot.number)
            raise
        return slot

    def _adopt(self, choice: Choice, encoder: Encoder, slot: Slot) -> None:
        if self.slot is not None:
            self.slot.stack.release(self.slot.number)
        self.slot, self.choice, self.encoder = slot, choice, encoder
        self.generation += 1
        self.issued = [None] * len(self.issued)

    def _warn_of_nothing(self, raw: np.ndarray) -> None:
        """Warn if a column had no value in any of the first rows."""
        names = self.owner.plan.names
        nothing = [name for name, column in zip(names, raw.T, strict=False) if np.isnan(column).all()]
        if nothing and self.owner.warns:
            warnings.warn(f"X: {never_there(nothing, len(raw))}", UserWarning, stacklevel=2)

    def _warn_of_base(self, rows: SeriesRows) -> None:
        """Warn if a forecast from elsewhere cannot be right."""
        given = self.owner.settings.base
        place = base_column.place_of(given)
        if place is not None and self.owner.warns:
            for text in base_column.doubts(given, rows.raw[:, place], rows.y[:, 0]):
                warnings.warn(text, UserWarning, stacklevel=2)

    @property
    def _slot(self) -> Slot:
        assert self.slot is not None  # noqa: S101
        return self.slot

    @property
    def _encoder(self) -> Encoder:
        assert self.encoder is not None  # noqa: S101
        return self.encoder

    @property
    def begins(self) -> bool:
        """Whether its model is still to be chosen."""
        return self.slot is None or self.buffer is not None

    def twin(self) -> "Series":
        """A copy of the series with its first rows and state, which may change while this one stays the same."""
        other = self.moved(self.owner)
        other.buffer = None if self.buffer is None else self.buffer.copy()
        other.waiting = dict(self.waiting)
        return other

    def leave(self) -> None:
        """Free the slot: the copy has replaced this series."""
        if self.slot is not None:
            self.slot.stack.release(self.slot.number)

    def moved(self, owner: "Streams") -> "Series":
        """The same series in another stack."""
        other = Series(owner)
        for name in _KEPT:
            setattr(other, name, getattr(self, name))
        if self.slot is not None:
            stack, number = self.slot
            other.slot = owner.stacks.admit(stack.model, stack.layout)
            other.slot.stack.record(other.slot.number)[...] = stack.record(number)
        return other

    # ---- copies and files --------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """All but the state of the model; arrays are for the payload of a file."""
        queue = None if self.queue is None else [*self.queue.arrays]
        return {
            "clock": [*self.clock],
            "past": self.past.to_json(),
            "categories": self.categories,
            "buffer": None
            if self.buffer is None
            else [self.buffer.first, *(self.buffer.rows.arrays if self.buffer.count else ())],
            "warmup": None if self.choice is None else self.choice.warmup,
            "generation": self.generation,
            "learned": self.learned,
            "now": self.now,
            "queue": queue,
            "issued": [_words(made) for made in self.issued],
            "done": self.done,
            "waiting": [
                [name, *row[:4], _words(row.issued if row.generation == self.generation else None), row.generation]
                for name, row in self.waiting.items()
            ],
        }

    def restore(self, stored: dict[str, Any], slot: Slot | None) -> None:
        """Take back what `to_json` gave, with the state in its place; refuses what it cannot have given."""
        owner = self.owner
        self.clock = Clock.restored(stored["clock"])
        self.past = Past.restored(stored["past"], owner.derived.depth, owner.derived.late)
        self.categories = owner.plan.checked_categories(stored["categories"])
        self.generation, self.learned = _count(stored["generation"]), _count(stored["learned"])
        self.now, self.done = float(stored["now"]), float(stored["done"])
        if not math.isfinite(self.now + self.done):
            raise ValueError(f"now must be finite; got {self.now!r} and {self.done!r}")
        dtype = None if slot is None else slot.stack.model.forecast_dtype(owner.P)
        for name, codes, time, wall, now, words, generation in stored["waiting"]:
            row = np.asarray(codes, np.float64)
            if row.shape != (len(owner.plan.names),) or np.isinf(row).any():
                raise ValueError("a row that waits for its label has another form")
            same = _count(generation) == self.generation
            made = _record(words, dtype) if same else None
            self.waiting[name] = Waiting(row, float(time), float(wall), float(now), made, generation)
        if slot is not None:
            self._restore_slot(stored, slot)

    def _restore_slot(self, stored: dict[str, Any], slot: Slot) -> None:
        """Take back the model, the first rows, and the rows of a table that wait for their targets."""
        owner, P = self.owner, self.owner.P
        R = len(owner.plan.names) + len(owner.derived.names)
        self.slot, self.encoder = slot, owner.encoder(self.categories)
        if self.encoder.width != slot.stack.layout.inputs:
            raise ValueError(f"{self.encoder.width} columns for {slot.stack.layout.inputs} inputs")
        self.choice = None if stored["warmup"] is None else Choice(slot.stack.model, _count(stored["warmup"]))
        if stored["buffer"] is not None:
            first, *arrays = stored["buffer"]
            rows = _rows(arrays, R, P) if arrays else None
            if not (0 if rows is None else len(rows)) < _count(first) < 1 << 20:
                raise ValueError(f"a buffer of {len(arrays)} parts for {first!r} rows")
            self.buffer = Buffer(first)
            if rows is not None:
                self.buffer.extend(rows)
        self.queue = None if stored["queue"] is None else _rows(stored["queue"], R, P)
        self.issued = [_record(words, slot.stack.model.forecast_dtype(P)) for words in stored["issued"]]
        waits = 0 if self.queue is None else len(self.queue)
        if len(self.issued) != waits or waits > owner.settings.horizon:
            raise ValueError("rows that wait for their targets and their forecasts differ in number")


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"a count must be a whole number that is not negative; got {value!r}")
    return value


def _rows(arrays: list[Any], columns: int, outputs: int) -> SeriesRows:
    """Rows from a file, checked."""
    rows = SeriesRows(*(np.asarray(array, np.float64) for array in arrays))
    N = len(rows)
    if [array.shape for array in rows.arrays] != [(N, columns), (N, outputs), (N,), (N,)]:
        raise ValueError("the shape of its rows does not fit its settings")
    if any(np.isinf(array).any() for array in rows.arrays) or not np.all(rows.steps > 0.0) or np.any(rows.spans < 0.0):
        raise ValueError("its rows have a number that is not finite or out of range")
    return rows


def _record(words: Any, dtype: np.dtype | None) -> np.ndarray | None:
    """One forecast from a file, checked; None if the file has none."""
    if words is None or dtype is None:
        return None
    array = np.asarray(words, np.uint64)
    if array.nbytes != dtype.itemsize or array.ndim != 1:
        raise ValueError("a forecast has another size than its model's")
    made = np.frombuffer(bytearray(array.tobytes()), dtype)
    if not admission.sound_forecasts(made):
        raise ValueError("a forecast is not finite")
    return made


def _words(made: np.ndarray | None) -> np.ndarray | None:
    return None if made is None else np.frombuffer(made.tobytes(), np.uint64)
