"""A model and its state as one object, for programs that meet their samples one at a time.

The state travels in and out of the compiled step as one flat array per dtype: passing many small arrays costs more
than the arithmetic of a step.
"""

from functools import partial
from typing import Any, Generic, TypeVar

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from driftgp import checks
from driftgp.model import Model, State, checked_rows
from driftgp.packing import Packing, pack, packing_of, unpack
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
            self._settings, self._model_packing = pack(model), packing_of(model)
            self._packed, self._state_packing = pack(state), packing_of(state)

    @property
    def state(self) -> S:
        """The state as it is now."""
        with jax.enable_x64(True):
            state: S = unpack(self._state_packing, self._packed)
        return state

    def predict(self, x: ArrayLike) -> Prediction:
        """Distribution of the target at one row x (D), or at the rows of X (N×D)."""
        X = checks.inputs("x", np.atleast_2d(x), self._layout.inputs).astype(self._layout.dtype, copy=False)
        with jax.enable_x64(True):
            prediction: Prediction = _predict(self._model_packing, self._state_packing, self._settings, self._packed, X)
        return jax.tree.map(np.asarray, prediction)

    def update(self, x: ArrayLike, y: ArrayLike, elapsed: ArrayLike = 1.0) -> None:
        """Learn from one sample or from several rows, as `Model.update` does."""
        rows = checked_rows(self._layout, x, y, elapsed)
        with jax.enable_x64(True):
            self._packed = _update(self._model_packing, self._state_packing, self._settings, self._packed, *rows)


@partial(jax.jit, static_argnums=(0, 1))
def _predict(model: Packing, state: Packing, settings: Any, packed: Any, X: Array) -> Prediction:
    unpacked: Model[Any] = unpack(model, settings)
    return unpacked.predict(unpack(state, packed), X)


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=3)
def _update(model: Packing, state: Packing, settings: Any, packed: Any, x: Array, y: Array, elapsed: Array) -> Any:
    unpacked: Model[Any] = unpack(model, settings)
    return pack(unpacked.update(unpack(state, packed), x, y, elapsed))
