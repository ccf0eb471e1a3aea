"""A model and its state as one object, for programs that meet their samples one at a time."""

import math
import os
import threading
import warnings
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from driftgp import checkpoint, checks, frames
from driftgp.beginning import FIRST, Buffer, Default, Given, Plan, Rows, Start
from driftgp.columns import never_there
from driftgp.defaults import Effort, Support
from driftgp.files import write_atomically
from driftgp.frames import Source
from driftgp.intake import Intake, Read
from driftgp.model import Layout, Model, State, checked_inputs, checked_rows, warn_of_units
from driftgp.predictions import Forecast, Prediction, joined

_FLOAT = np.dtype(np.float64)
_FIRST = np.array([0])  # the one state of a stack of one
_ONE = (1,)


class Online:
    """Predict and update in place, from the first row on. Several threads may share one: their calls take turns.

    Without a model it is the default one. It keeps the first 400 rows, predicts meanwhile with the default for a stream
    of which nothing is known, and then builds the model that these rows choose and has it learn from them.

    >>> from driftgp.data import toy_stream
    >>> X, y = toy_stream(seed=0).X, 5000 + 100 * toy_stream(seed=0).y
    >>> online = Online()
    >>> for x, target in zip(X, y):
    ...     prediction = online.predict(x)
    ...     online.update(x, target)
    >>> low, high = prediction.interval(0.95)
    >>> bool(low[0] < y[-1] < high[0])
    True

    Rows are arrays, dicts, or rows and frames of pandas, polars and others (with ``driftgp[frames]``). Columns with
    names are checked at every call: they may come in another order, but none may be missing or new. Numbers and bools
    are one input each; text is one input per category, those of the first 400 rows (see `driftgp.columns`). Times in a
    DatetimeIndex, or in the column `time`, say how far apart rows are, in units of the typical step.

    >>> online = Online()
    >>> for hour in range(48):
    ...     online.update(
    ...         {"hour": hour % 24, "open": 8 <= hour % 24 < 20, "sky": "rain" if hour % 5 else "clear"}, hour
    ...     )
    >>> online.inputs
    ('hour', 'open', 'sky = clear', 'sky = rain')
    """

    def __init__(
        self,
        model: Model | Start | None = None,
        state: State | None = None,
        *,
        time: str | None = None,
        effort: Effort = "medium",
        support: Support = "auto",
    ) -> None:
        """Take a model and a state of it, a model to start cold, or nothing for the default model.

        Args:
            model: a model of the library or one of your own; None for the default.
            state: a state of this model, fresh from `init` or restored; it is copied. None for a cold start.
            time: name of the column that has the times, in dicts and frames; None if there is none, or for the times of
                a DatetimeIndex.
            effort: of the default model: "low", "medium" or "high" (see `recommended`).
            support: of its targets: "auto", "real", "positive" or (low, high).
        """
        if state is not None and not isinstance(model, Model):
            raise ValueError(
                "state must come with its model: Online(model, state); or load both with Online.load(path)"
            )
        if model is not None and (effort, support) != ("medium", "auto"):
            raise ValueError("effort and support belong to the default model: leave them out, or leave out the model")
        default = Default(effort=effort, support=support)
        self._start: Start = default if model is None else Given(model) if isinstance(model, Model) else model
        self._intake = Intake(time)
        self._known: tuple[bytes, np.ndarray] | None = None  # the last input predicted for since the last update
        self._buffer: Buffer | None = None  # the first rows, until they have chosen a model
        self._plan: Plan | None = None  # which model is at work, if the first rows choose it
        self._state: State | None = None
        self._row: tuple[int, ...] | None = None  # shape of a row that needs no further look
        self._usual = False  # whether such a row can be learned from as it is
        # a model that takes numbers as they are: whether they suit it, the first ones will tell
        self._doubtful = isinstance(self._start, Given) and self._start.model.as_they_are
        self._lock = threading.RLock()
        if state is not None and isinstance(model, Model):
            self._adopt(state.of(model).copy())  # refuses a state of another model

    # ---- what it holds -----------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model at work; with the default, another one once the first rows have chosen it."""
        return self._at_work.model

    @property
    def state(self) -> State:
        """A copy of the state as it is now."""
        with self._lock:
            return self._at_work.copy()

    @property
    def begun(self) -> bool:
        """Whether there is a state: whether a row has come."""
        return self._state is not None

    @property
    def inputs(self) -> tuple[str, ...]:
        """What each input of the model is, by the names of the columns; numbers where none were given."""
        if self._intake.columns is not None:
            return self._intake.columns.inputs
        return tuple(map(str, range(self._at_work.layout.inputs)))

    @property
    def _at_work(self) -> State:
        if self._state is None:
            raise ValueError("there is no state yet: it begins with the first row that `update` is given")
        return self._state

    def __repr__(self) -> str:
        with self._lock:
            if self._state is None:
                waits = self._start.model.outline if isinstance(self._start, Given) else "model by the first rows"
                return f"<Online: {waits}, no row yet>"
            D, P = self._layout.inputs, self._layout.columns
            shapes = f"{D} input{'s' * (D > 1)}" + (f", {P} outputs" if P > 1 else "")
            missing = "" if self._buffer is None else f", {self._buffer.missing} rows until the model is chosen"
            return f"<Online: {self._model.outline}, {shapes}{missing}>"

    # ---- predict and learn -------------------------------------------------------------------------------------------

    def predict(self, x: Any) -> Forecast:
        """Distribution of the target at one row x (D numbers, or a dict), or at several rows (N×D, or a frame).

        >>> online = Online()
        >>> online.update([[0.0], [1.0]], [5.0, 6.0])
        >>> online.predict([2.0]).mean.shape, online.predict([[2.0], [3.0], [4.0]]).mean.shape
        ((1,), (3,))
        """
        if not self._plain(x):
            return self._predict(x)
        with self._lock:
            made = self._one.predict(x)
            self._known = x.tobytes(), made
        return Forecast(self._model, made, self._flat, self._engine.solve)

    def update(self, x: Any, y: Any, elapsed: Any = None, *, issued: Forecast | None = None) -> None:
        """Learn from one sample or from several rows, one after another, at once.

        Args:
            x: one row (D numbers, or a dict) or several (N×D, or a frame).
            y: the target of each row, a number or P. Where it is NaN, time passes and nothing is learned.
            elapsed: time since the row before, in units of a usual step, or as spans of time (`index.diff()`). Left
                out it follows from the times of the rows; without times every row is one step after the one before.
            issued: what `predict` had said of this one row, if other rows came in between. Weights, calibration and
                members that use the last known target are then judged by what was known at that moment.
        """
        if issued is not None and issued.model is self._model and self._buffer is None and self._plain(x):
            target = checks.targets("y", y, self._layout.target_shape).reshape(-1)
            with self._lock:
                self._known = None
                self._one.learn(
                    x, target, 1.0 if elapsed is None else float(checks.elapsed(elapsed, ())), issued.records
                )
        elif self._usual and elapsed is None and isinstance(y, float) and not math.isinf(y) and self._plain(x):
            self._learn(x, y)
        else:
            self._take(x, y, elapsed)

    def evaluate(self, X: Any, y: Any, elapsed: Any = None) -> Prediction:
        """Do what `update` does, and return what was predicted of each row before it was learned from.

        It is the same as `predict` and `update` row by row: no row is predicted with knowledge of those after it.

        Args:
            X: the rows, N×D, or a frame.
            y: the target of each row, N or N×P; NaN where there is none.
            elapsed: as in `update`.

        >>> import numpy as np
        >>> X = np.arange(500.0)[:, None] % 24
        >>> prediction = Online().evaluate(X, 100 + 10 * np.sin(X[:, 0] / 4))
        >>> prediction.mean.shape
        (500,)
        """
        made, source = self._take(X, y, elapsed, asked=True)
        if not made:
            raise ValueError("X must have at least one row to predict for; got none")
        if len(made) > 1:
            return joined(made, source)
        made[0].source = source
        return made[0]

    def warm(self, X: Any, y: Any) -> None:
        """Begin with a batch of rows, X (N×D, or a frame) and y: the model that they choose is at work at once."""
        with self._lock:
            if self._state is not None:
                raise ValueError("a stream can be warmed up once, before its first row: take a new Online")
            self._take(X, y, None, warm=True)

    def _plain(self, x: Any) -> bool:
        """Whether x is one row that needs no further check: most calls hand in such rows, and a check takes as long."""
        return (
            type(x) is np.ndarray
            and x.shape == self._row
            and x.dtype is _FLOAT
            and math.isfinite(x.item() if self._row == _ONE else x.dot(self._small))
        )

    def _learn(self, x: Any, y: float) -> None:
        """Learn from one sample that needs no check; what was predicted for it last is not computed again."""
        with self._lock:
            known, self._known = self._known, None
            self._target[0] = y
            if known is not None and known[0] == x.tobytes():
                self._one.learn(x, self._target, 1.0, known[1])
            else:
                self._one.learn(x, self._target, 1.0)

    # ---- rows of every other form ------------------------------------------------------------------------------------

    def _predict(self, x: Any) -> Forecast:
        with self._lock:
            read, intake = self._intake.read(x, timed=False)
            X = intake.expanded(read.codes)
            X = X[None] if X.ndim == 1 else X
            if self._state is None:
                forecast = self._cold(X)
            else:
                forecast = self._run(Rows(checked_inputs(self._layout, X), None, None))
            self._keep(intake)
        forecast.source = read.source
        return forecast

    def _cold(self, X: np.ndarray) -> Forecast:
        """What is predicted before the first row, whose targets may yet be several."""
        X = checks.inputs("X", X, gaps=self._start.gaps)
        layout = Layout(X.shape[1], None, self._start.gaps)
        plan = self._start.meanwhile(X[:0], np.zeros(0))
        return plan.model.predict(plan.start(layout, _no_rows(layout)), X)

    def _take(
        self, x: Any, y: Any, elapsed: Any, *, asked: bool = False, warm: bool = False
    ) -> tuple[list[Forecast], Source | None]:
        """Learn from rows of any form; what was predicted of them before, if that is asked."""
        frames.same_index(x, y)
        y = frames.targets(y)
        with self._lock:
            begins = self._state is None or self._buffer is not None
            read, intake = self._intake.read(x, grow=self._growing(warm=warm) if begins else None)
            if asked and read.before is None and read.codes.ndim == 1 and len(read.codes) == np.size(y) > 1:
                raise ValueError(
                    f"X must have a row for each target; got one dimension of {len(read.codes)} numbers: for one input "
                    "per row, use np.reshape(X, (-1, 1)), or X.to_frame() of a series"
                )
            spans, intake = intake.elapsed(read, elapsed)
            X = intake.expanded(read.codes)
            layout = self._layout_for(X, y) if begins else self._layout
            rows = Rows(*checked_rows(layout, X, y, spans.elapsed if X.ndim == 2 else spans.elapsed[0]))
            if len(rows.X) == 0:
                return [], None
            # everything is in order: from here on things change
            if self._doubtful:
                warn_of_units(rows.X, rows.y)
                self._doubtful = False
            made: list[Forecast] = []
            if begins:
                kept = Rows(read.codes.reshape(len(rows.X), -1), rows.y, spans.spans)
                made, rows = self._begin(_First(layout, rows, kept, spans.steps, read, intake), asked=asked, warm=warm)
            self._keep(intake)
            if len(rows.X):
                made.append(self._run(rows))
            return made, read.source

    def _keep(self, intake: Intake) -> None:
        """Know the form of the rows from now on."""
        self._intake = intake
        if self._state is None:
            return
        self._row = (self._layout.inputs,) if intake.columns is None or intake.columns.plain else None
        self._usual = self._flat and self._buffer is None and not self._doubtful and intake.clock.last is None

    def _run(self, rows: Rows) -> Forecast:
        """Predict rows and, where they have targets, learn from each after it was predicted."""
        if rows.y is not None:
            self._known = None
        made = self._engine.run(self._stack, _FIRST, np.array([len(rows.X)]), *rows)
        return Forecast(self._model, made, self._flat, self._engine.solve, self._joint(rows))

    def _joint(self, rows: Rows) -> Callable[[], np.ndarray] | None:
        """The covariance of rows that were only predicted, by what is known now and may be more later."""
        if rows.y is not None or self._state is None:
            return None
        model, known = self._model, self._state.copy()
        return lambda: model.joint(known.view, rows.X)

    # ---- the first rows ----------------------------------------------------------------------------------------------

    def _layout_for(self, X: np.ndarray, y: Any) -> Layout:
        """Shapes of the stream as it begins; a category that is new is one input more."""
        X = checks.inputs("x", X, ndim=2 if X.ndim != 1 else 1, gaps=self._start.gaps)
        if self._state is None:
            return Layout(X.shape[-1], _outputs(X, checks.real("y", y)), self._start.gaps)
        return self._layout if self._intake.columns is None else replace(self._layout, inputs=X.shape[-1])

    def _growing(self, *, warm: bool) -> int | None:
        """How many of the next rows may bring categories; None for all of them."""
        if self._buffer is not None:
            return self._buffer.missing
        return self._start.first or (None if warm else FIRST)

    def _begin(self, new: "_First", *, asked: bool, warm: bool) -> tuple[list[Forecast], Rows]:
        """Learn from rows until the first ones are complete; what was predicted of them, and the rows that are left."""
        buffer = self._buffer
        if buffer is None:
            first = self._start.first or (len(new.rows.X) if warm else FIRST if new.intake.unsettled else 0)
            buffer = Buffer(first, new.kept.X.shape[1], new.layout.columns)
        before, count = buffer.count, min(buffer.missing, len(new.rows.X))
        buffer.extend(new.kept.part(slice(count)))
        plan, first_rows = None, new.intake.inputs(buffer.rows, new.steps[max(count - 1, 0)])
        if warm or (buffer.missing == 0 and self._start.first):
            plan = self._planned(new.layout, first_rows)
        made: list[Forecast] = []
        if plan is None or (count and (asked or plan == self._plan)):
            made = self._meanwhile(new, buffer, before, asked=asked)
        if plan is not None and plan != self._plan:
            self._adopt(plan.start(new.layout, first_rows), plan)
        if buffer.missing == 0 and buffer.count:
            self._warn_of_nothing(buffer.rows.X, new.intake)
        self._buffer = None if buffer.missing == 0 else buffer
        return made, new.rows.part(slice(count, None))

    @staticmethod
    def _warn_of_nothing(codes: np.ndarray, intake: Intake) -> None:
        """Say it if a column had no value in any of the first rows."""
        nothing = np.flatnonzero(np.isnan(codes).all(axis=0)).tolist()
        if nothing:
            names = map(str, range(codes.shape[1])) if intake.columns is None else intake.columns.names
            named = list(names)
            message = never_there([named[c] for c in nothing], len(codes))
            warnings.warn(f"X: {message}", UserWarning, stacklevel=5)

    def _planned(self, layout: Layout, rows: Rows) -> Plan:
        """The model that these rows choose."""
        plan = self._start.plan(rows.X, rows.y if layout.outputs is not None else rows.y[:, 0])
        return plan._replace(warmup=min(plan.warmup, len(rows.X)))

    def _meanwhile(self, new: "_First", buffer: Buffer, before: int, *, asked: bool) -> list[Forecast]:
        """Predict and learn from the rows that the buffer has from `before` on, with no more than was known at each.

        A category that is new is one input more. Its first row is predicted without; then the model starts anew, and
        learns again from the rows that came before.
        """
        made, count = [], buffer.count - before
        stages = new.intake.stages(new.read.before, new.kept.X[:count])
        for (row, form), end in zip(stages, [*(row for row, _ in stages[1:]), count], strict=True):
            unlike = self._state is not None and form.columns != self._intake.columns
            if unlike and asked:
                made.append(self._run(Rows(self._intake.expanded(new.kept.X[row : row + 1]), None, None)))
            layout = new.layout if form.columns is None else replace(new.layout, inputs=form.columns.width)
            if self._state is None or self._layout != layout:
                rows = form.inputs(buffer.rows.part(slice(before + row)), new.steps[row])
                plan = self._start.meanwhile(np.zeros((0, layout.inputs)), np.zeros((0, *layout.target_shape)))
                plan = plan._replace(warmup=min(plan.warmup, len(rows.X)))
                self._adopt(plan.start(layout, rows), plan)
            self._keep(form)
            rows = new.rows.part(slice(row, end))._replace(X=form.expanded(new.kept.X[row:end]))
            if unlike:
                self._run(rows.part(slice(1)))
                rows = rows.part(slice(1, None))
            if len(rows.X):
                made.append(self._run(rows))
        return made

    def _adopt(self, state: State, plan: Plan | None = None) -> None:
        """Have a model at work on this state from now on."""
        self._state, self._plan = state, plan
        self._model, self._layout, self._engine = state.model, state.layout, state.engine()
        self._flat = state.layout.outputs is None
        self._one, self._stack = self._engine.single(state.record), state.record.reshape(1)
        self._target = np.empty(1)
        self._small = np.full(state.layout.inputs, 1e-16)  # a sum of so small shares is finite if all numbers are
        self._known = None
        self._keep(self._intake)

    # ---- copies and files --------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold."""
        with self._lock:
            names = ("_start", "_intake", "_plan", "_doubtful")
            kept = {name: getattr(self, name) for name in names}
            buffer = None if self._buffer is None else self._buffer.copy()
            return {**kept, "_buffer": buffer, "_state": None if self._state is None else self._state.copy()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__init__(kept["_start"])  # type: ignore[misc]
        self._intake, self._buffer, self._doubtful = kept["_intake"], kept["_buffer"], kept["_doubtful"]
        if kept["_state"] is not None:
            self._adopt(kept["_state"], kept["_plan"])

    def to_bytes(self, **extra: Any) -> bytes:
        """The model, its state, and all that is known of the rows, as bytes; `extra` is anything that JSON can hold."""
        with self._lock:
            stored = {
                "intake": self._intake.to_json(),
                "buffer": None if self._buffer is None else self._buffer.to_json(),
                "warmup": None if self._plan is None else self._plan.warmup,
            }
            return checkpoint.to_bytes(self.model, self._at_work, {_KIND: stored, **extra})

    @classmethod
    def from_bytes(cls, data: bytes, model: Model | Start | None = None) -> "Online":
        """Take back what `to_bytes` gave as `data`. A model with a part that is not in the library has to be given."""
        restored = checkpoint.restore(model if isinstance(model, Model) else None, data)
        state = restored.state
        if not isinstance(restored.extra, dict) or _KIND not in restored.extra:  # a checkpoint of a model and its state
            return cls(state.model, state)
        online = cls(model)
        try:
            stored = restored.extra[_KIND]
            online._intake = Intake.from_json(stored["intake"])
            columns = online._intake.columns
            width = state.layout.inputs if columns is None else len(columns.names)
            if columns is not None and columns.width != state.layout.inputs:
                raise ValueError(f"{columns.width} columns for {state.layout.inputs} inputs")
            if stored["buffer"] is not None:
                online._buffer = Buffer.from_json(stored["buffer"], width, state.layout.columns)
            online._adopt(state, None if stored["warmup"] is None else Plan(state.model, int(stored["warmup"])))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise ValueError(f"checkpoint is damaged: what it says of the rows cannot be ({error})") from error
        return online

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and its state to the file at `path`, which at every moment is the old one or the new one."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Model | None = None) -> "Online":
        """Read what `save` wrote, in this process or another one.

        Args:
            path: the file.
            model: only for a model with a part that is not in the library (a kernel of your own, a rival): the file
                cannot describe it.
        """
        try:
            return cls.from_bytes(Path(path).read_bytes(), model)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


_KIND = "online"


class _First(NamedTuple):
    """Rows that come while a stream begins."""

    layout: Layout  # once all of them have come
    rows: Rows  # as a model with this layout takes them
    kept: Rows  # as a buffer keeps them
    steps: np.ndarray  # the typical step as it is known at each of them
    read: Read
    intake: Intake  # once all of them have come


def _outputs(X: np.ndarray, y: np.ndarray) -> int | None:
    """P, or None where a target is a plain number."""
    return y.shape[-1] if y.ndim == X.ndim else None


def _no_rows(layout: Layout) -> Rows:
    return Rows(np.zeros((0, layout.inputs)), np.zeros((0, layout.columns)), np.zeros(0))


class LateLabels:
    """Predict now, learn when the label comes.

    Inputs wait under a key until their label arrives, at most `most` of them: beyond that the oldest is given up.
    Samples are learned from in the order of their labels; between two of them passes the time between their inputs, or
    none where a label overtakes an earlier one.

    Args:
        online: the model at work.
        most: inputs that may wait; beyond that the oldest is given up.

    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8)
    >>> service = LateLabels(Online(model, model.init(np.zeros((0, 1)), np.zeros(0))))
    >>> for key, x in [("a", 0.0), ("b", 1.0), ("c", 2.0)]:
    ...     prediction = service.predict(key, [x])
    >>> service.learn("b", 0.5), service.learn("z", 0.5), service.pending
    (True, False, 2)
    """

    def __init__(self, online: Online, most: int = 1000) -> None:
        """Take a model at work and the number of inputs that may wait."""
        self.online = online
        self.most = checks.whole("most", most, 1)
        self.given_up = 0
        self._waiting: dict[Hashable, tuple[np.ndarray, float, Forecast]] = {}  # in the order of their coming
        self._now = self._learned = 0.0

    @property
    def pending(self) -> int:
        """How many inputs wait for their label."""
        return len(self._waiting)

    def predict(self, key: Hashable, x: ArrayLike, elapsed: float = 1.0) -> Prediction:
        """Distribution of the target at x (D), which came `elapsed` after the one before and waits under its key."""
        if key in self._waiting:
            raise ValueError(f"key must be new, or its label known; {key!r} still waits for its label")
        time = self._now + float(checks.elapsed(elapsed, ()))
        x = np.array(checks.inputs("x", x, ndim=1, gaps=True))  # a copy: the caller may go on to use its own
        prediction = self.online.predict(x)
        self._now = time
        self._waiting[key] = x, time, prediction
        if len(self._waiting) > self.most:
            del self._waiting[next(iter(self._waiting))]
            self.given_up += 1
        return prediction

    def learn(self, key: Hashable, y: ArrayLike) -> bool:
        """Learn from the input that waits under a key and its target y; False if none waits."""
        if key not in self._waiting:
            return False
        x, time, prediction = self._waiting[key]
        self.online.update(x, y, max(time - self._learned, 0.0), issued=prediction)
        del self._waiting[key]
        self._learned = max(time, self._learned)
        return True
