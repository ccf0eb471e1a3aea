"""One stream as one object: rows in, forecasts out, from the first row on."""

import math
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from driftgp import checkpoint
from driftgp.base import frames, sealed
from driftgp.defaults import Effort, Support
from driftgp.models.model import Model, State
from driftgp.predictions import Forecast, Prediction
from driftgp.stream import pending, store
from driftgp.stream.base_column import Base
from driftgp.stream.begin import Default, Given, Start
from driftgp.stream.entry import Entry
from driftgp.stream.evaluation import in_parts, with_progress, with_rows
from driftgp.stream.pending import Id
from driftgp.stream.plan import Plan
from driftgp.stream.quick import Quick, quick
from driftgp.stream.reading import Block
from driftgp.stream.runtime import Inputs, Streams
from driftgp.stream.series import Series
from driftgp.stream.settings import Missing, Others, Settings, settings_among
from driftgp.stream.stacks import Slot


class Online(Entry):
    """Predict and learn row by row, from the first row on.

    Several threads may share one object: their calls take turns.

    Without a model it uses the default. It keeps the first 400 rows and meanwhile predicts with the default for an
    unknown stream. Then it builds the model that these rows choose, which learns from them.

    >>> from driftgp.data import toy_stream
    >>> X, y = toy_stream(seed=0).X, 5000 + 100 * toy_stream(seed=0).y
    >>> online = Online()
    >>> for x, target in zip(X, y):
    ...     prediction = online.predict(x)
    ...     online.update(x, target)
    >>> low, high = prediction.interval(0.95)
    >>> bool(low[0] < y[-1] < high[0])
    True

    Rows are arrays, dicts, or rows and frames of pandas, polars and others (with ``driftgp[frames]``). Names of columns
    are checked at every call: their order may change, but no column may be missing or new. A number or bool is one
    input. Text is one input per category of the first 400 rows (see `driftgp.stream.plan`).

    >>> online = Online()
    >>> for hour in range(48):
    ...     online.update(
    ...         {"hour": hour % 24, "open": 8 <= hour % 24 < 20, "sky": "rain" if hour % 5 else "clear"}, hour
    ...     )
    >>> online.inputs
    ('hour', 'open', 'sky = clear', 'sky = rain')

    A table with a target needs no other argument. Lags and the calendar follow from it:

    >>> rows = [{"day": day, "sales": 100.0 + 20.0 * (day % 7)} for day in range(60)]
    >>> online = Online(target="sales", time="day", lags=[1, 7])
    >>> online.evaluate(rows).mean.shape
    (60,)
    >>> abs(online.predict({"day": 60}).mean.item() - 180.0) < 5.0
    True
    """

    _kind = "online"

    def __init__(
        self,
        model: Model | Start | None = None,
        state: State | None = None,
        *,
        target: str | None = None,
        time: str | None = None,
        features: Iterable[str] | None = None,
        known: Iterable[str] = (),
        others: Others = "late",
        lags: int | Iterable[int] = (),
        calendar: bool | str | Iterable[str] = (),
        holidays: str | Iterable[Any] = (),
        horizon: int = 1,
        effort: Effort = "medium",
        support: Support = "auto",
        base: Base = None,
        level: float = 0.95,
        missing: Missing = "carry",
        half_life: Any = None,
    ) -> None:
        """Take a model and a state of it, a model to start cold, or nothing for the default model.

        Args:
            model: a model of the library or one of your own; None for the default.
            state: a state of this model, fresh from `init` or restored; it is copied. None for a cold start.
            target: name of the column to predict, in tables that have it; None where targets are given separately.
            time: name of the column of times; None without times, or if the times are in a DatetimeIndex.
            features: columns known when their row is predicted. By default all columns, where targets are given
                separately, and none in a table with a target.
            known: columns that are known ahead of time, such as a holiday flag or a weather forecast: features too.
            others: the other columns of a table with a target enter with their values of `horizon` rows before
                ("late"), or not at all ("ignored").
            lags: past targets that are inputs: how many, or how many steps back each of them is.
            calendar: True for waves of the day and the week, or the cycles: "day", "week", "year".
            holidays: dates, or the code of a country such as "US" (with ``driftgp[holidays]``).
            horizon: how many rows after the last known target the predicted row is. In `evaluate`, row i − horizon is
                learned just before row i is predicted.
            effort: cost and accuracy of the default model: "low", "medium" or "high" (see `recommended`).
            support: range of the targets: "auto", "real", "positive" or (low, high).
            base: column that holds a forecast of the target from elsewhere, a vendor's or another model's, known with
                its row; for arrays, the index of the input. The forecast is corrected and gets calibrated intervals.
            level: share of targets in the intervals of `to_frame` and `scores`.
            missing: rows with a blank input: fill it in ("carry"), "skip" them, or "refuse" them.
            half_life: refused: the default learns how fast to forget, and a model has a setting for it.
        """
        chosen = settings_among(locals())
        if state is not None and not isinstance(model, Model):
            raise ValueError(
                "state must come with its model: Online(model, state); or load both with Online.load(path)"
            )
        self._adopt(Streams(chosen, start_of(chosen, model)))
        if state is not None and isinstance(model, Model):
            self._go_on_from(state.of(model))  # refuses a state of another model

    def _adopt(self, streams: Streams) -> None:
        super()._adopt(streams)
        self._quick: Quick | None = None
        if streams.begun:
            self._ready()

    def _go_on_from(self, state: State) -> None:
        """Go on from a state."""
        streams, D = self._streams, state.layout.inputs
        streams.outputs = state.layout.outputs
        streams.share(_unnamed(D), named=False)
        series = Series(streams)
        series.slot = streams.stacks.admit(state.model, state.layout)
        series.slot.stack.record(series.slot.number)[...] = state.record
        series.encoder, series.learned = streams.encoder(series.categories), 1
        streams.series[None], streams.begun = series, True
        self._ready()

    # ---- what it holds -----------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model at work; with the default, another one once the first rows have chosen it."""
        return self._slot.stack.model

    @property
    def state(self) -> State:
        """A copy of the state as it is now."""
        with self.lock:
            return self._slot.stack.state(self._slot.number)

    @property
    def begun(self) -> bool:
        """Whether there is a state: whether a row has come."""
        series = self._series
        return series is not None and series.slot is not None

    @property
    def inputs(self) -> tuple[str, ...]:
        """What each input of the model is, by the names of the columns; numbers where none were given."""
        return self._begun_series.encoder.names  # type: ignore[union-attr]

    def inputs_of(self, X: Any, y: Any = None) -> Inputs:
        """The inputs that a stream with these settings gives its model, as a matrix for other models; nothing changes.

        Args:
            X: the rows of a series from its beginning, N×D, or a frame.
            y: the target of each row; left out where the rows have it in `target`.

        >>> rows = [{"sky": "rain" if day % 3 else "clear", "sales": 10.0 * day} for day in range(5)]
        >>> found = Online(target="sales", features=["sky"], lags=2).inputs_of(rows)
        >>> found.names
        ('sky = clear', 'sky = rain', 'lag 1', 'lag 2')
        >>> found.X[2].tolist()
        [0.0, 1.0, 10.0, 0.0]
        """
        frames.same_index(X, y)
        return self._streams.inputs_of(X, y)

    @property
    def _series(self) -> Series | None:
        return self._streams.series.get(None)

    @property
    def _begun_series(self) -> Series:
        series = self._series
        if series is None or series.slot is None:
            raise ValueError("there is no state yet: call update with a first row")
        return series

    @property
    def _slot(self) -> Slot:
        return self._begun_series.slot  # type: ignore[return-value]

    def __repr__(self) -> str:
        with self.lock:
            series = self._series
            if series is None or series.slot is None:
                start = self._streams.start
                waits = start.model.outline if isinstance(start, Given) else "its first rows will choose the model"
                return f"<Online: {waits}, no row yet>"
            layout = series.slot.stack.layout
            D, P = layout.inputs, layout.columns
            shapes = f"{D} input{'s' * (D > 1)}" + (f", {P} outputs" if P > 1 else "")
            chooses = series.buffer is not None and self._streams.start.first > 0
            missing = f", {series.buffer.missing} rows until the model is chosen" if chooses and series.buffer else ""
            return f"<Online: {self.model.outline}, {shapes}{missing}>"

    # ---- predict and learn -------------------------------------------------------------------------------------------

    def predict(self, x: Any, *, id: Id | None = None) -> Prediction:  # noqa: A002
        """Distribution of the target at one row x (D numbers, or a dict), or at several rows (N×D, or a frame).

        Args:
            x: the row, or rows. Columns that are known late may be left out.
            id: a name for one row, under which it waits for its label: see `update`. At most 1000 rows wait; the oldest
                is dropped when one more comes.

        >>> online = Online()
        >>> online.update([[0.0], [1.0]], [5.0, 6.0])
        >>> online.predict([2.0]).mean.shape, online.predict([[2.0], [3.0], [4.0]]).mean.shape
        ((1,), (3,))
        """
        with self.lock:
            if self._quick is not None and id is None:
                row = self._quick.row(x)
                if row is not None:
                    return self._quick.predict(row)
            block = self._streams.read(x, learn=False)
            if id is not None:
                pending.check(self._streams, None, id, block)
            prediction = self._streams.predict(block, [None] * len(block.codes))
            if isinstance(prediction, Forecast) and self._series is not None:
                prediction.generation = self._series.generation
                if self.begun and len(block.codes) > 1:
                    prediction = self._together(prediction, block)
            if id is not None:
                pending.keep(self._streams, None, id, self._streams.read(x, learn=True), prediction)
            return prediction

    def _together(self, forecast: Forecast, block: Block) -> Forecast:
        """Forecasts of several rows; their covariance is that of the present state, even if the state learns later."""
        state, X = self.state, self._streams.ahead(block, None)
        made = forecast.joined_by(lambda: state.model.joint(state.view, X))
        made.source = forecast.source
        return made

    def covariance(self, X: Any) -> np.ndarray:
        """Joint covariance of new targets at the rows of X, N×N, or N×N×P; noise included. They must be one model's.

        >>> online = Online()
        >>> online.update([[0.0], [1.0]], [5.0, 6.0])
        >>> online.covariance([[0.5], [0.6]]).shape
        (2, 2)
        """
        with self.lock:
            block = self._streams.read(X, learn=False)
            return self.model.covariance(self.state, self._streams.ahead(block, None))

    def update(
        self,
        x: Any = None,
        y: Any = None,
        elapsed: Any = None,
        *,
        issued: Prediction | None = None,
        id: Id | None = None,  # noqa: A002
    ) -> None:
        """Learn from one sample or from several rows, one after another, at once.

        Args:
            x: one row (D numbers, or a dict) or several (N×D, or a frame); left out for a row that waits under an id.
            y: the target of each row, a number or P; left out where the rows have it in the column `target`. Where it
                is NaN, time passes and nothing is learned.
            elapsed: time since the row before, in units of a usual step, or as spans of time (`index.diff()`). Left
                out it follows from the times of the rows; without times every row is one step after the one before.
            issued: the prediction that was made for this one row, if other rows came in between. Weights and
                calibration then learn from that prediction.
            id: the name that `predict` was given for this row.

        >>> online = Online()
        >>> online.update([[0.0], [1.0]], [5.0, 6.0])
        >>> forecast = online.predict([2.0], id="c")
        >>> online.update(y=7.0, id="c")
        """
        with self.lock:
            plain = elapsed is None and issued is None and id is None and isinstance(y, float)
            if plain and self._learned_quickly(x, y):
                return
            if id is None:
                self._take(x, y, elapsed, at_once=True, issued=issued)
            elif x is not None:
                raise ValueError("x must be left out where id names the row that waits")
            else:
                pending.label(self._streams, None, id, y, elapsed)
                self._ready()

    def _learned_quickly(self, x: Any, y: float) -> bool:
        """Learn from a row by the quick way if it can take it; returns whether it could."""
        if self._quick is None or not self._quick.flat or math.isinf(y):
            return False
        row = self._quick.row(x)
        return row is not None and self._quick.learn(row, y, x)

    def evaluate(self, X: Any, y: Any = None, elapsed: Any = None, *, progress: bool = False) -> Prediction:
        """Predict each row before it is learned from, and return what was predicted.

        It is the same as `predict` and `update` row by row: no row is predicted with knowledge of those after it.

        Args:
            X: the rows, N×D, or a frame.
            y: the target of each row, N or N×P; NaN where it is missing. Left out if the rows have it in the column
                `target`.
            elapsed: as in `update`.
            progress: show on standard error how many rows are done. An error or an interrupt then leaves the stream
                after the rows of the parts that were done, and not before the first row.

        >>> import numpy as np
        >>> X = np.arange(500.0)[:, None] % 24
        >>> prediction = Online().evaluate(X, 100 + 10 * np.sin(X[:, 0] / 4))
        >>> prediction.mean.shape
        (500,)
        """
        with self.lock:
            prediction = self._take(X, y, elapsed, at_once=False, table=True, progress=progress)
        if prediction is None:
            raise ValueError("X must have at least one row to predict for; got none")
        return prediction

    def evaluate_watched(self, X: Any, y: Any, elapsed: Any, every: int, watch: Callable[[State], Any]) -> Prediction:
        """Evaluate as `evaluate` does, and call `watch` with the state at regular intervals of rows.

        Args:
            X: the rows.
            y: their targets.
            elapsed: as in `update`.
            every: rows from one call of `watch` to the next.
            watch: a function of the state, which changes after the call.
        """
        frames.same_index(X, y)
        with self.lock:
            block = self._streams.read(X, learn=True)
            targets = self._streams.targets(block, y)

            def look(done: int) -> None:  # noqa: ARG001
                watch(State.own(self.model, self._slot.stack.layout, self._slot.stack.record(self._slot.number)))

            made, _ = in_parts(self._streams, block, targets, [None] * len(block.codes), elapsed, every, look)
            self._ready()
        return made

    def warm(self, X: Any, y: Any) -> None:
        """Begin with a batch of rows, X (N×D, or a frame) and y. They choose the model, which is used at once."""
        frames.same_index(X, y)
        with self.lock:
            if self.begun:
                raise ValueError("warm must be called once, before the first row: use a new Online")
            block = self._streams.read(X, learn=True)
            self._streams.warm(block, self._streams.targets(block, y), None)
            self._ready()

    def _take(
        self,
        x: Any,
        y: Any,
        elapsed: Any,
        *,
        at_once: bool,
        table: bool = False,
        issued: Prediction | None = None,
        progress: bool = False,
    ) -> Prediction | None:
        """Learn from rows of any form, and return what was predicted of them before."""
        if x is None:
            raise ValueError("x is missing: give the row, or the id under which it waits")
        frames.same_index(x, y)
        streams = self._streams
        block = streams.read(x, learn=True)
        if table and block.single and block.table is None and np.size(y) > 1 and np.size(y) == block.codes.shape[1]:
            raise ValueError(
                f"X must have a row for each target; got one dimension of {np.size(y)} numbers: for one input "
                "per row, use np.reshape(X, (-1, 1)), or X.to_frame() of a series"
            )
        targets = streams.targets(block, y)
        keys = [None] * len(block.codes)
        made: Prediction | None
        if progress and keys and not block.single:
            made, flags = with_progress(streams, block, targets, keys, elapsed)
        else:
            known, at_once = self._issued(issued, block), at_once or block.single
            made, flags = streams.take(block, targets, keys, elapsed=elapsed, at_once=at_once, known=known)
        self._ready()
        return None if made is None else with_rows(made, block, targets, flags, streams, None)

    def _issued(self, issued: Prediction | None, block: Block) -> np.ndarray | None:
        """The forecast that was issued for one row, if the model at work has issued it."""
        if issued is None:
            return None
        if len(block.codes) != 1 or not isinstance(issued, Forecast) or len(issued.records) != 1:
            raise ValueError("issued must be what predict gave for this one row; update rows one at a time with it")
        series = self._series
        same = series is not None and series.generation == issued.generation
        return issued.records if same else None

    def _ready(self) -> None:
        """Prepare the quick way, where rows can take it."""
        self._quick = quick(self._streams, self._series)

    @property
    def pending(self) -> int:
        """Number of rows that wait under an id for their label."""
        return 0 if self._series is None else len(self._series.waiting)

    # ---- copies and files --------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold."""
        with self.lock:
            return {"start": self._streams.start, "data": self.to_bytes()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        start = kept["start"]
        given = start.model if isinstance(start, Given) else None if isinstance(start, Default) else start
        self._adopt(store.from_bytes(self._kind, kept["data"], given))

    @classmethod
    def from_bytes(cls, data: bytes, model: Model | Start | None = None) -> Self:
        """Take back what `to_bytes` gave as `data`. A model with a part that is not in the library has to be given."""
        if sealed.kind_of(data) == checkpoint.KIND:  # a model and its state
            state = checkpoint.from_bytes(model if isinstance(model, Model) else None, data)
            return cls(state.model, state)
        return cls.of(store.from_bytes(cls._kind, data, model))


def start_of(chosen: Settings, model: Model | Start | None) -> Start:
    """How series begin: with the default, which their first rows choose; with a model; or as a start object says."""
    if model is None:
        return Default.of(chosen)
    if (chosen.effort, chosen.support, chosen.base) != ("medium", "auto", None):
        raise ValueError("effort, support and base belong to the default model: leave them out, or leave out the model")
    return Given(model) if isinstance(model, Model) else model


def _unnamed(inputs: int) -> Plan:
    return Plan(tuple(map(str, range(inputs))), inputs, (True,) * inputs)
