"""A trial: gradient steps beyond AGP's own, at every sample or only when errors say that the stream has turned."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from driftgp import learning
from driftgp.agp import AGP, AGPState
from driftgp.learning import Hyperparameters
from driftgp.loops import only_if
from driftgp.model import Layout
from driftgp.prediction import Gaussian
from driftgp.wrappers.holding import Holding, HoldingState

_MEMORY = 0.9  # of the mean of squared errors, in units of the variances that were predicted
_RATE = 0.05


class FurtherState(HoldingState):
    """AGP's state, and how large its errors have been of late."""

    inner: AGPState
    surprise: Array  # mean of z²; 1 if the model is right
    layout: Layout = eqx.field(static=True)


class Further(Holding[FurtherState]):
    """AGP with a published step more: of the hyperparameters, and of all inducing points if `points`."""

    model: AGP
    above: ArrayLike
    points: bool = eqx.field(static=True)

    def __init__(self, model: AGP, above: float = 0.0, *, points: bool = False) -> None:
        """Take the model, the mean of z² above which the step is taken, and what it moves."""
        self.model, self.above, self.points = model, above, points

    def start(self, layout: Layout, X: Array, y: Array) -> FurtherState:
        """Start the model."""
        return FurtherState(inner=self.model.start(layout, X, y), surprise=jnp.ones((), layout.dtype), layout=layout)

    def forecast(self, state: FurtherState, X: Array) -> Gaussian:
        """Forecast as AGP does."""
        return self.model.forecast(state.inner, X)

    def learn(self, state: FurtherState, x: Array, y: Array, elapsed: Array) -> FurtherState:
        """Learn as AGP does, then take the further step if it is due."""
        p = self.model.forecast(state.inner, x[None])
        z2 = jnp.mean((y - p.mean[0]) ** 2 / p.variance[0])
        surprise = jnp.where(jnp.isfinite(z2), _MEMORY * state.surprise + (1.0 - _MEMORY) * z2, state.surprise)
        inner = self.model.learn(state.inner, x, y, elapsed)
        return replace(
            state, inner=only_if(jnp.isfinite(z2) & (surprise > self.above), self._step, inner), surprise=surprise
        )

    def _step(self, state: AGPState) -> AGPState:
        def objective(h: Hyperparameters, U: Any) -> Array:
            points = replace(state.points, U=U) if self.points else state.points
            return self.model.objective(h, points, state.window)

        h, free = state.hyperparameters, state.points.U if self.points else ()
        adam = learning.adam(jnp.asarray(_RATE, h.noise.dtype))
        climb = learning.ascend(objective, h, free, adam, learning.begin(adam, h, free), 1)
        points = replace(state.points, U=climb.free) if self.points else state.points
        return self.model.complete(replace(state, hyperparameters=climb.positive, points=points))
