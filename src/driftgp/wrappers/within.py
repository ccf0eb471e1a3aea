"""Inputs no farther out than a model has reason to follow them."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from driftgp import checks
from driftgp.model import Layout, Model, Units
from driftgp.prediction import Prediction
from driftgp.wrappers.holding import Holding, HoldingState

# Until an input has been seen so often nobody knows how far it goes.
_FIRST = 10


class Range(eqx.Module):
    """How far each input has gone so far; zeros before the first."""

    low: Array  # D
    high: Array  # D
    last: Array  # D, as it came
    count: Array  # D


class WithinState(HoldingState):
    """The held model's state, and the range of its inputs."""

    inner: Any
    range: Range
    limited: Array  # D, how often an input that was learned from lay beyond the limits
    layout: Layout = eqx.field(static=True)


class Within(Holding[WithinState]):
    """Hold a model, and let it see no input farther out than those so far, plus a margin.

        low − margin · (high − low)  ≤  x  ≤  high + margin · (high − low)

    A faulty meter, a unit mixed up: a kernel with a linear part would follow such an input to a forecast as wild, and
    learn a slope from it that takes a memory to forget. The limits give way to what lasts. An input that goes as far
    twice running is taken for real, and the range reaches there at once; one that stands alone widens the range up to
    the limit. An input that never changed has no range, and its first other value counts as it is.

    >>> import numpy as np
    >>> from driftgp import AGP
    >>> from driftgp.kernels import Linear
    >>> x = np.sin(np.arange(40.0))
    >>> model = Within(AGP(Linear(), inducing=3, window=40))
    >>> state = model.init(x[:, None], 2 * x)
    >>> bool(model.predict(state, [[100.0]]).mean[0] < 4.0)
    True
    """

    model: Model[Any]
    margin: Array

    def __init__(self, model: Model[Any], margin: ArrayLike = 0.25) -> None:
        """Hold a model.

        Args:
            model: any model.
            margin: how far beyond the range an input may go, as a share of the range.
        """
        self.model = model
        self.margin = checks.between("margin", margin, 0.0, jnp.inf, open_low=False)

    def start(self, layout: Layout, X: Array, y: Array) -> WithinState:
        """Find the range of the batch, and start the held model on it as it is."""
        D = layout.inputs
        zeros = jnp.zeros(D, X.dtype)
        nothing = Range(low=zeros, high=zeros, last=zeros, count=jnp.zeros(D, jnp.int32))
        reached, _ = lax.scan(lambda reached, row: (self._extend(reached, *row), None), nothing, (X, y))
        return WithinState(
            inner=self.model.start(layout, X, y), range=reached, limited=jnp.zeros(D, jnp.int32), layout=layout
        )

    def forecast(self, state: WithinState, X: Array) -> Prediction:
        """Forecast of the held model at inputs within the limits."""
        return self.model.forecast(state.inner, self._limit(state.range, X))

    def joint(self, state: WithinState, X: Array) -> Array:
        """Joint covariance of the held model there."""
        return self.model.joint(state.inner, self._limit(state.range, X))

    def learn(self, state: WithinState, x: Array, y: Array, elapsed: Array) -> WithinState:
        """Let the held model learn from the input within the limits, then widen them."""
        near = self._limit(state.range, x[None])[0]  # computed as for a forecast: the compiler then does it once
        beyond = jnp.isfinite(x) & (near != x) & jnp.any(jnp.isfinite(y))
        return replace(
            state,
            inner=self.model.learn(state.inner, near, y, elapsed),
            range=self._extend(state.range, x, y),
            limited=state.limited + beyond,
        )

    def rescale(self, state: WithinState, units: Units) -> WithinState:
        """Express the range in the new units too."""
        reached = state.range

        def converted(place: Array) -> Array:
            return jnp.where(reached.count > 0, units.inputs(place), 0.0)

        reached = replace(
            reached, low=converted(reached.low), high=converted(reached.high), last=converted(reached.last)
        )
        return replace(state, inner=self.model.rescale(state.inner, units), range=reached)

    def _limit(self, reached: Range, X: Array) -> Array:
        """Inputs (D, or N×D) within the limits."""
        margin = self.margin * (reached.high - reached.low)
        known = (reached.count >= _FIRST) & (reached.high > reached.low)
        return jnp.where(known, jnp.clip(X, reached.low - margin, reached.high + margin), X)

    def _extend(self, reached: Range, x: Array, y: Array) -> Range:
        """The range with one more sample, if it has a target."""
        here = jnp.isfinite(x) & jnp.any(jnp.isfinite(y))
        first = reached.count == 0
        near = self._limit(reached, x)
        low = jnp.minimum(reached.low, jnp.minimum(near, jnp.maximum(x, reached.last)))
        high = jnp.maximum(reached.high, jnp.maximum(near, jnp.minimum(x, reached.last)))
        return Range(
            low=jnp.where(here, jnp.where(first, x, low), reached.low),
            high=jnp.where(here, jnp.where(first, x, high), reached.high),
            last=jnp.where(here, x, reached.last),
            count=reached.count + here,
        )
