"""Gaps in the inputs: the last value that was seen stands in."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax

from driftgp.model import Layout, Model, Units
from driftgp.prediction import Prediction
from driftgp.wrappers.holding import Holding, HoldingState


class Carried(eqx.Module):
    """Last value of each input, and how often it stood in for a missing one."""

    last: Array  # D, 0 before the first value
    seen: Array  # D, whether there was one
    filled: Array  # D


class CarryForwardState(HoldingState):
    """The held model's state, and the inputs seen last."""

    inner: Any
    carried: Carried
    layout: Layout = eqx.field(static=True)


class CarryForward(Holding[CarryForwardState]):
    """Hold a model, and give it the last value seen of every input that is NaN.

    The policy on NaN inputs: a model by itself refuses them (in a direct call) or takes the sample for one that did not
    come (inside a compiled loop); held by this wrapper it predicts and learns as if the input had not changed, and
    `state.carried.filled` counts how often that was so. Before an input was seen at all there is nothing to carry: a
    prediction takes it as 0, and nothing is learned from the sample. Inside `Standardize`, 0 is the input's centre.

    >>> import numpy as np
    >>> from driftgp import AGP
    >>> model = CarryForward(AGP(inducing=3, window=8))
    >>> state = model.init(np.zeros((0, 2)), np.zeros(0))
    >>> state = model.update(state, [1.0, 2.0], 3.0)
    >>> state = model.update(state, [np.nan, 2.5], 3.5)
    >>> np.asarray(state.inner.window.X[1]).tolist(), state.carried.filled.tolist()
    ([1.0, 2.5], [1, 0])
    """

    model: Model[Any]

    @property
    def fills_gaps(self) -> bool:
        """Inputs may be NaN."""
        return True

    def start(self, layout: Layout, X: Array, y: Array) -> CarryForwardState:
        """Fill the gaps of the batch from above."""
        nothing = Carried(
            jnp.zeros(layout.inputs, X.dtype), jnp.zeros(layout.inputs, bool), jnp.zeros(layout.inputs, jnp.int32)
        )
        carried, (X, y) = lax.scan(lambda carried, row: _fill(carried, *row), nothing, (X, y))
        inner = self.model.start(replace(layout, gaps=self.model.fills_gaps), X, y)
        return CarryForwardState(inner=inner, carried=carried, layout=layout)

    def forecast(self, state: CarryForwardState, X: Array) -> Prediction:
        """Forecast at the filled inputs."""
        return self.model.forecast(state.inner, jnp.where(jnp.isnan(X), state.carried.last, X))

    def learn(self, state: CarryForwardState, x: Array, y: Array, elapsed: Array) -> CarryForwardState:
        """Fill the gaps, then let the held model learn."""
        carried, (x, y) = _fill(state.carried, x, y)
        return replace(state, inner=self.model.learn(state.inner, x, y, elapsed), carried=carried)

    def rescale(self, state: CarryForwardState, units: Units) -> CarryForwardState:
        """Express the last values in the new units too."""
        carried = state.carried
        carried = replace(carried, last=jnp.where(carried.seen, units.inputs(carried.last), 0.0))
        return replace(state, inner=self.model.rescale(state.inner, units), carried=carried)


def _fill(carried: Carried, x: Array, y: Array) -> tuple[Carried, tuple[Array, Array]]:
    missing = jnp.isnan(x)
    x = jnp.where(missing, carried.last, x)
    seen = carried.seen | ~missing
    y = jnp.where(jnp.all(seen), y, jnp.nan)  # nothing is learned from a value that was made up
    return Carried(x, seen, carried.filled + missing), (x, y)
