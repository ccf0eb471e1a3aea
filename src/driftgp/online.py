"""A model and its state as one object, for programs that meet their samples one at a time.

The state travels in and out of the compiled step as one flat array per dtype: passing many small arrays costs more
than the arithmetic of a step.
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
from driftgp.loops import compile_outer
from driftgp.model import Model, State, checked_inputs, checked_rows
from driftgp.packing import Packed, Packing, pack, packing_of, unpack
from driftgp.prediction import Prediction

S = TypeVar("S", bound=State)


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
        with jax.enable_x64(True):
            self._settings, self._packed = pack(model), pack(state)
        self._packing = packing_of(state)
        self._steps = _steps(packing_of(model), self._packing)

    @property
    def state(self) -> S:
        """The state as it is now."""
        with jax.enable_x64(True):
            # a copy: the next update gives the vectors' memory away
            state: S = unpack(self._packing, jax.tree.map(jnp.copy, self._packed))
        return state

    def predict(self, x: ArrayLike) -> Prediction:
        """Distribution of the target at one row x (D), or at the rows of X (N×D)."""
        X = checked_inputs(self._layout, np.atleast_2d(checks.real("X", x)))
        with jax.enable_x64(True):
            prediction = self._steps.predict(self._settings, self._packed, X)
        return jax.tree.map(np.asarray, prediction)

    def update(self, x: ArrayLike, y: ArrayLike, elapsed: ArrayLike = 1.0) -> None:
        """Learn from one sample or from several rows, as `Model.update` does."""
        rows = checked_rows(self._layout, x, y, elapsed)
        with jax.enable_x64(True):
            self._packed = self._steps.update(self._settings, self._packed, *rows)


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


class _Steps(NamedTuple):
    predict: Callable[..., Prediction]
    update: Callable[..., Packed]


@lru_cache(maxsize=64)
def _steps(model: Packing, state: Packing) -> _Steps:
    """The two compiled functions for trees of these structures, looked up once and not at every call."""

    def predict(settings: Packed, packed: Packed, X: Array) -> Prediction:
        unpacked: Model[Any] = unpack(model, settings)
        return unpacked.predict(unpack(state, packed), X)

    def update(settings: Packed, packed: Packed, x: Array, y: Array, elapsed: Array) -> Packed:
        unpacked: Model[Any] = unpack(model, settings)
        return pack(unpacked.update(unpack(state, packed), x, y, elapsed))

    return _Steps(compile_outer(predict), compile_outer(update, donate_argnums=1))
