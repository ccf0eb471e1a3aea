"""The methods for users: `init`, `predict` and `update` check their arguments; `update` returns a new state."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from driftgp.base import checks
from driftgp.contract.protocol import Contract, Layout, Units
from driftgp.contract.summary import Summary
from driftgp.engine import Batch, Engine, engine
from driftgp.models import admission
from driftgp.predictions import Forecast

__all__ = ["Layout", "Model", "State", "Units", "checked_batch", "checked_inputs", "checked_rows", "warn_of_units"]


class Model(Contract):
    """A regression model for a stream. Its fields are settings; what it learns is in a `state`, which methods take.

    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8)
    >>> state = model.init([[0.0], [1.0]], [0.5, 0.7])  # a batch to warm up on
    >>> state = model.update(state, [2.0], 0.9)  # a new state; the old one stays as it is
    >>> model.predict(state, [[3.0]]).mean.shape
    (1,)
    """

    def init(self, X: ArrayLike, y: ArrayLike) -> "State":
        """Warm up on a batch X (N×D) and y (N, or N×P for several outputs); N = 0 is a cold start."""
        X, y = checked_batch(X, y, gaps=self.fills_gaps)
        layout = Layout(X.shape[1], y.shape[1] if y.ndim == 2 else None, self.fills_gaps)
        self.accept(layout.inputs, layout.columns, len(X))
        if self.sees_raw_numbers:
            warn_of_units(X, y)
        state = State.zeros(self, layout)
        state.engine().start(state.record, X, y.reshape(len(y), layout.columns))
        return state

    def predict(self, state: "State", X: ArrayLike) -> Forecast:
        """Distribution of new targets at the rows of X, N×D."""
        X = checked_inputs(state.layout, X)
        state = state.of(self)
        at_work = state.engine()
        forecasts = at_work.run(state.record.reshape(1), _FIRST, np.array([len(X)]), Batch(X))
        flat = state.layout.outputs is None
        return Forecast(self, forecasts, flat, at_work.solve, joint=lambda: self.joint(state.view, X))

    def update(self, state: "State", x: ArrayLike, y: ArrayLike, elapsed: ArrayLike = 1.0) -> "State":
        """Learn from one sample (x of D, y a number or P) or from several rows, one after another.

        `elapsed` is the time since the sample before. A NaN target means that time passes and nothing is learned.
        """
        learned = state.of(self).copy()
        rows = checked_rows(state.layout, x, y, elapsed)
        learned.engine().run(learned.record.reshape(1), _FIRST, np.array([len(rows[0])]), Batch(*rows))
        return learned

    def summary(self, state: "State") -> Summary:
        """What it has learned: members with their weights, relevance of the inputs, memory, calibration.

        >>> from driftgp import AGP
        >>> model = AGP(inducing=3, window=8, forgetting=0.9)
        >>> print(model.summary(model.init(np.zeros((0, 2)), np.zeros(0))))
        AGP, memory 10 samples
                 relevance of inputs: 1.00 1.00
        """
        state = state.of(self)
        return Summary({"model": self.outline} | self.facts(state.view))

    @property
    def outline(self) -> str:
        """The names of its parts, without their settings: ``Calibrated(Bank(3 AGP))``."""
        held = [getattr(self, name) for name in getattr(self, "__dataclass_fields__", ())]
        parts = [part for entry in held for part in (entry if isinstance(entry, tuple) else (entry,))]
        named = [part.outline for part in parts if isinstance(part, Model)]
        counted = [f"{named.count(name)} {name}" if named.count(name) > 1 else name for name in dict.fromkeys(named)]
        return f"{type(self).__name__}({', '.join(counted)})" if counted else type(self).__name__

    def covariance(self, state: "State", X: ArrayLike) -> np.ndarray:
        """Joint covariance of new targets at the rows of X, N×N, or N×N×P for several outputs."""
        covariance = np.moveaxis(self.joint(state.of(self).view, checked_inputs(state.layout, X)), 0, -1)  # N×N×P
        return covariance[..., 0] if state.layout.outputs is None else covariance


_FIRST = np.array([0])  # the one state of a stack of one


class State:
    """What a model has learned: one record, and the shapes that it was started with.

    The record's fields are attributes: `state.noise`, `state.inner.scale`. A state comes from `model.init`, or from a
    checkpoint.

    Args:
        model: the model whose state it is.
        layout: number of inputs and outputs, and whether inputs may be NaN.
        record: the numbers, a NumPy record of the model's layout and of shape (). It is checked: see
                `driftgp.models.admission`.

    >>> from driftgp import AGP
    >>> state = AGP(inducing=3, window=8).init([[0.0], [1.0]], [0.5, 0.7])
    >>> state
    <state of AGP: 1 inputs, 1 outputs, 768 bytes>
    >>> bool(state.copy().noise[0] == state.noise[0])
    True
    """

    __slots__ = ("layout", "model", "record", "view")

    def __init__(self, model: Model, layout: Layout, record: np.ndarray) -> None:
        """Take a record (of shape ()) from outside, once it is admitted: see `driftgp.models.admission`."""
        self.model, self.layout, self.record = model, layout, admission.admitted(model, layout, record)
        self.view = model.view(self.record)

    @classmethod
    def own(cls, model: Model, layout: Layout, record: np.ndarray) -> Self:
        """A state from the library itself: the record is taken unchecked."""
        state = cls.__new__(cls)
        state.model, state.layout, state.record, state.view = model, layout, record, model.view(record)
        return state

    @classmethod
    def zeros(cls, model: Model, layout: Layout) -> Self:
        """A state before it was started."""
        return cls.own(model, layout, np.zeros((), model.record_dtype(layout.inputs, layout.columns)))

    def engine(self) -> Engine:
        """The engine that runs the model on this state."""
        return engine(self.model, self.layout.inputs, self.layout.columns)

    def of(self, model: Model) -> "State":
        """The same numbers as a state of this model, which needs the same layout of records."""
        if model is self.model:
            return self
        if self.record.dtype != model.record_dtype(self.layout.inputs, self.layout.columns):
            raise ValueError(
                f"state must be one of {type(model).__name__} for {self.layout.inputs} inputs and "
                f"{self.layout.columns} outputs; its layout is another: start it with this model's init"
            )
        return State.own(model, self.layout, self.record)

    def copy(self) -> "State":
        """A copy with the same numbers."""
        words = self.record.reshape(1).view(np.uint64).copy()  # NumPy takes forty times as long over nested records
        return State.own(self.model, self.layout, words.view(self.record.dtype).reshape(()))

    def __getattr__(self, name: str) -> Any:
        if name in State.__slots__:
            raise AttributeError(name)
        return getattr(self.view, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the model, the shapes and the numbers."""
        return _restored, (self.model, self.layout, self.record.tobytes())

    def __repr__(self) -> str:
        D, P = self.layout.inputs, self.layout.columns
        return f"<state of {type(self.model).__name__}: {D} inputs, {P} outputs, {self.record.nbytes} bytes>"


def _restored(model: Model, layout: Layout, data: bytes) -> State:
    """A state from its bytes; the array is made anew, since an unpickled record ignores what is written to it."""
    dtype = admission.record_dtype(model, layout)
    if len(data) != dtype.itemsize:
        raise ValueError(f"state must have {dtype.itemsize} bytes; got {len(data)}")
    return State(model, layout, np.frombuffer(bytearray(data), dtype).reshape(()))


# ---- a word on units -------------------------------------------------------------------------------------------------

# A column is far from unit scale if its root mean square is above the first number, or its spread below the second.
_LARGE, _SMALL, _ENOUGH = 20.0, 0.01, 20


def warn_of_units(X: np.ndarray, y: np.ndarray) -> None:
    """Warn of inputs (N×D) or targets (N, or N×P) far from unit scale, where a model does not scale them."""
    if len(X) == 0:
        return
    for name, values in (("inputs", X), ("targets", y.reshape(len(y), -1))):
        known = values[np.isfinite(values).all(axis=1)]
        if known.size == 0:
            continue
        size, spread = np.sqrt(np.mean(known**2, axis=0)).max(), known.std(axis=0)
        small = spread[spread > 0.0].min(initial=np.inf) if len(known) >= _ENOUGH else np.inf
        if size > _LARGE or small < _SMALL:
            found = f"are as large as {size:.3g}" if size > _LARGE else f"vary by {small:.2g} only"
            warnings.warn(
                f"{name} {found}, and AGP by itself is made for numbers near unit scale: its predictions will be poor. "
                f"Wrap it, Standardize(AGP(…)) from driftgp.wrappers, or take the default model, Online()",
                UserWarning,
                stacklevel=3,
            )
            return


# ---- checks of direct calls ------------------------------------------------------------------------------------------


def checked_batch(X: ArrayLike, y: ArrayLike, *, gaps: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return a warm-up batch as arrays, or refuse it."""
    X, y = checks.inputs("X", X, gaps=gaps), checks.real("y", y)
    if y.ndim not in (1, 2) or y.shape[0] != X.shape[0] or y.shape[1:] == (0,):
        rows = X.shape[0]
        raise ValueError(f"y must have shape ({rows},) or ({rows}, P), one row for each of X; got shape {y.shape}")
    return X, checks.targets("y", y, y.shape)


def checked_inputs(layout: Layout, X: ArrayLike) -> np.ndarray:
    """Return rows to predict for as an array that fits the state, or refuse them."""
    X = checks.inputs("X", X, layout.inputs, gaps=layout.gaps)
    if X.shape[0] == 0:
        raise ValueError(f"X must have at least one row to predict for; got shape {X.shape}")
    return X


def checked_rows(
    layout: Layout, x: ArrayLike, y: ArrayLike, elapsed: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one sample or several as rows N×D, N×P and N, or refuse them."""
    x = checks.real("x", x)
    if x.ndim not in (1, 2):
        raise ValueError(f"x must have shape ({layout.inputs},) for one sample or N×D for several; got {x.shape}")
    x = checks.inputs("x", x, layout.inputs, ndim=x.ndim, gaps=layout.gaps)
    y = checks.targets("y", y, x.shape[:-1] + layout.target_shape)
    elapsed = checks.elapsed(elapsed, x.shape[:-1])
    return x.reshape(-1, layout.inputs), y.reshape(-1, layout.columns), elapsed.reshape(-1)
