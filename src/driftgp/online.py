"""A model and its state as one object, for programs that meet their samples one at a time.

A call of a compiled function costs about as much as the arithmetic of a step, and so does every array that goes in or
comes out. So the state travels as one flat array per dtype, a sample as one array, and an update waits for the next
call: "learn from the last sample, then predict the next" is one compiled function.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from driftgp import checks
from driftgp.compiling import compile_outer, in_one_piece, small, wait
from driftgp.model import Engine, Layout, Model, State, checked_inputs, checked_rows
from driftgp.packing import Packed, Packing, pack, packing_of, unpack, vectors
from driftgp.prediction import Prediction

S = TypeVar("S", bound=State)
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # x, y, elapsed


class Online(Generic[S]):
    """Predict and update in place.

    >>> import numpy as np
    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = AGP(inducing=6, window=40)
    >>> online = Online(model, model.init(X[:40], y[:40]))
    >>> for x, target in zip(X[40:], y[40:]):
    ...     prediction = online.predict(x)
    ...     online.update(x, target)
    >>> prediction.mean.shape
    (1,)
    """

    def __init__(self, model: Model[S], state: S) -> None:
        """Take a model and a state of it, fresh from `init` or restored."""
        self.model = model
        self._layout = state.layout
        self._engine: Engine = model.stepper(state) or _Compiled(model, state)
        self._waiting: Rows | None = None  # a sample that was handed in and not learned from yet

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the model and its state; NumPy's arrays keep float64 wherever they are opened."""
        return type(self), jax.tree.map(np.asarray, (self.model, self.state))

    @property
    def state(self) -> S:
        """The state as it is now."""
        self.settle()
        state: S = self._engine.state
        return state

    def predict(self, x: ArrayLike) -> Prediction:
        """Distribution of the target at one row x (D), or at the rows of X (N×D)."""
        X = checks.real("X", x)
        X = checked_inputs(self._layout, X[None] if X.ndim == 1 else X)
        if self._waiting is not None and X.shape[0] == 1:
            return self._learn_and_predict(self._waiting, X[0])
        self.settle()
        return self._engine.predict(X)

    def update(self, x: ArrayLike, y: ArrayLike, elapsed: ArrayLike = 1.0) -> None:
        """Learn from one sample or from several rows, as `Model.update` does.

        What is refused is refused now; the learning itself is done in the next call, or by `settle`.
        """
        x, y, elapsed = checked_rows(self._layout, x, y, elapsed)
        self.settle()
        if x.ndim == 1:
            self._waiting = x.copy(), y.copy(), elapsed.copy()  # the caller may go on to use its own
        else:
            self._engine.update(x, y, elapsed)

    def settle(self) -> None:
        """Do what is left to do of the last update, so that the next prediction comes at its quickest."""
        if self._waiting is not None:
            # by the program that predicts too, so that a state has the same bits however it was reached
            self._learn_and_predict(self._waiting, self._waiting[0])

    def _learn_and_predict(self, sample: Rows, x: np.ndarray) -> Prediction:
        prediction = self._engine.follow(*sample, x)
        self._waiting = None
        return prediction


class LateLabels(Generic[S]):
    """Predict now, learn when the label comes.

    Inputs wait under a key until their label arrives, at most `most` of them: beyond that the oldest is given up.
    Samples are learned from in the order of their labels; between two of them passes the time between their inputs, or
    none where a label overtakes an earlier one.

    >>> import numpy as np
    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8)
    >>> service = LateLabels(Online(model, model.init(np.zeros((0, 1)), np.zeros(0))))
    >>> for key, x in [("a", 0.0), ("b", 1.0), ("c", 2.0)]:
    ...     prediction = service.predict(key, [x])
    >>> service.learn("b", 0.5), service.learn("z", 0.5), service.pending
    (True, False, 2)
    """

    def __init__(self, online: Online[S], most: int = 1000) -> None:
        """Take a model at work and the number of inputs that may wait."""
        self.online = online
        self.most = checks.whole("most", most, 1)
        self.given_up = 0
        self._waiting: dict[Hashable, tuple[np.ndarray, float]] = {}  # in the order of their coming
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
        self._waiting[key] = x, time
        if len(self._waiting) > self.most:
            del self._waiting[next(iter(self._waiting))]
            self.given_up += 1
        return prediction

    def learn(self, key: Hashable, y: ArrayLike) -> bool:
        """Learn from the input that waits under a key; False if none does."""
        if key not in self._waiting:
            return False
        x, time = self._waiting[key]
        self.online.update(x, y, max(time - self._learned, 0.0))
        del self._waiting[key]
        self._learned = max(time, self._learned)
        return True


class _Compiled:
    """A model and its state in the hands of JAX."""

    def __init__(self, model: Model[Any], state: Any) -> None:
        with jax.enable_x64(True):
            self._settings, self._packed = pack(model), pack(state)
        self._packing = packing_of(state)
        self._steps = _steps(packing_of(model), self._packing)

    @property
    def state(self) -> Any:
        """A copy: the next update gives the vectors' memory away."""
        with jax.enable_x64(True):
            return unpack(self._packing, jax.tree.map(jnp.copy, self._packed))

    def predict(self, X: np.ndarray) -> Prediction:
        with jax.enable_x64(True):
            answer = self._steps.predict(self._settings, self._packed, X)
        return self._answer(answer, X.shape[0])

    def update(self, X: np.ndarray, y: np.ndarray, elapsed: np.ndarray) -> None:
        with jax.enable_x64(True):
            self._packed = self._steps.update(self._settings, self._packed, X, y, elapsed)

    def follow(self, x: np.ndarray, y: np.ndarray, elapsed: np.ndarray, x_next: np.ndarray) -> Prediction:
        rows = np.concatenate((x, y.reshape(-1), elapsed.reshape(1), x_next))  # each array that goes in costs 10 µs
        with jax.enable_x64(True):
            self._packed, answer = self._steps.follow(self._settings, self._packed, rows)
        return self._answer(answer, 1)

    def _answer(self, answer: Packed, rows: int) -> Prediction:
        prediction: Prediction = unpack(self._steps.answer(rows), [wait(vector) for vector in answer])
        return prediction


class _Steps(NamedTuple):
    """The compiled functions of a model, on packed trees."""

    predict: Callable[[Packed, Packed, Any], Packed]
    update: Callable[[Packed, Packed, Any, Any, Any], Packed]
    follow: Callable[[Packed, Packed, Any], tuple[Packed, Packed]]
    answer: Callable[[int], Packing]  # how a prediction for so many rows is packed


@lru_cache(maxsize=64)
def _steps(packed_model: Packing, packed_state: Packing) -> _Steps:
    """Build them for trees of these structures: once, and looked up in no table at every call."""
    hollow: Model[Any] = jax.tree.unflatten(packed_model.structure, [None] * len(packed_model.leaves))
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in packed_state.leaves]
    whole = small(shapes, light=hollow.light)
    layout: Layout = jax.tree.unflatten(packed_state.structure, [None] * len(packed_state.leaves)).layout

    def forecast(settings: Packed, packed: Packed, X: Array) -> Prediction:
        model: Model[Any] = unpack(packed_model, settings)
        return model.predict(unpack(packed_state, packed), X)

    def predict(settings: Packed, packed: Packed, X: Array) -> Packed:
        return pack(forecast(settings, packed, X))

    def update(settings: Packed, packed: Packed, x: Array, y: Array, elapsed: Array) -> Packed:
        model: Model[Any] = unpack(packed_model, settings)
        return pack(model.update(unpack(packed_state, packed), x, y, elapsed))

    def follow(settings: Packed, packed: Packed, rows: Array) -> tuple[Packed, Packed]:
        model: Model[Any] = unpack(packed_model, settings)
        ends = layout.inputs, layout.inputs + layout.columns, layout.inputs + layout.columns + 1
        x, y, elapsed, x_next = jnp.split(rows, ends)
        state = model.update(unpack(packed_state, packed), x, y.reshape(layout.target_shape), elapsed[0])
        return pack(state), pack(model.predict(state, x_next[None]))

    @lru_cache(maxsize=64)
    def answer(rows: int) -> Packing:
        with jax.enable_x64(True):
            X = jax.ShapeDtypeStruct((rows, layout.inputs), layout.dtype)
            return packing_of(jax.eval_shape(forecast, vectors(packed_model), vectors(packed_state), X))

    return _Steps(
        compile_outer(in_one_piece(predict, around_calls=True) if whole else predict, whole=whole),
        compile_outer(update, donate_argnums=1),
        compile_outer(in_one_piece(follow, around_calls=True) if whole else follow, whole=whole, donate_argnums=1),
        answer,
    )
