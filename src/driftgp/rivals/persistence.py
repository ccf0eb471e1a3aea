"""Forecasts without a model: the last value, a value that an input brings along, the mean of the last k values.

Folklore, and the yardstick: a method that does not beat them has learned nothing. Their intervals come from their own
errors e in the past, forgotten at rate λ. With n the number of errors that the variance v stands for,

    at the start    n = 1, v = `noise`
    time passes     n ← max(λ^elapsed n, 1)
    an error        n ← n + 1, v ← v + (e² − v)/n

so that without any sample the variance is the one of the settings, with a few it leans on it, and soon it is the
λ-weighted mean of the squared errors; after a long silence what was known still counts as one error. λ = 0.98 by
default (a memory of about 50 errors): short enough to follow a change of scale, long enough for a variance known to
about 20 %. All of the variance is given as noise, for nothing is said of a latent function.

Cost of a sample: O(1), or O(k) for the mean; nothing is learned in the warm-up but the errors.
"""

from collections.abc import Sequence
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from driftgp import checks, window
from driftgp.model import Layout, Model, State, Units
from driftgp.prediction import Gaussian
from driftgp.window import Window


class NaiveState(State):
    """The last values, and what the errors were like."""

    recent: Window  # the last k values; no inputs
    variance: Array  # P, of the errors
    errors: Array  # how many errors that variance stands for
    layout: Layout = eqx.field(static=True)


class Persistence(Model[NaiveState]):
    """The next value is the last one or, with `column`, what that column of the input says.

    `column` is the index of an input that holds an earlier value of the target, such as that of the same hour of the
    previous day; with P outputs it is a sequence of P such indices.

    >>> import numpy as np
    >>> model = Persistence()
    >>> state = model.init(np.zeros((3, 1)), np.array([1.0, 2.0, 5.0]))
    >>> float(model.predict(state, np.zeros((1, 1))).mean[0])
    5.0
    """

    noise: Array
    forgetting: Array
    column: tuple[int, ...] | None = eqx.field(static=True)

    def __init__(
        self,
        *,
        column: int | Sequence[int] | None = None,
        noise: ArrayLike = 1.0,
        forgetting: ArrayLike = 0.98,
    ) -> None:
        """Take the settings.

        Args:
            column: input, or one input an output, that holds the forecast; None for the last value of the target.
            noise: variance before there are errors.
            forgetting: λ of the errors, the factor by which their weight shrinks in one unit of time.
        """
        columns = (column,) if isinstance(column, (int, np.integer)) else column
        self.column = None if columns is None else tuple(checks.whole("column", c, 0) for c in columns)
        self.noise = checks.between("noise", noise, 0.0, np.inf)
        self.forgetting = checks.between("forgetting", forgetting, 0.0, 1.0)

    def start(self, layout: Layout, X: Array, y: Array) -> NaiveState:
        """Walk through the batch."""
        if self.column is not None and (len(self.column) != layout.columns or max(self.column) >= layout.inputs):
            raise ValueError(
                f"column must name one of the {layout.inputs} inputs for each of the {layout.columns} outputs; "
                f"got {self.column}"
            )
        return _walk(self, _empty(layout, 1, self.noise), X, y)

    def forecast(self, state: NaiveState, X: Array) -> Gaussian:
        """The value, with the variance of the errors."""
        if self.column is None:
            return _gaussian(state, _mean(state.recent), X.shape[0])
        return _gaussian(state, X[:, jnp.asarray(self.column)], X.shape[0])

    def learn(self, state: NaiveState, x: Array, y: Array, elapsed: Array) -> NaiveState:
        """Compare the forecast with what came."""
        known = jnp.any(state.recent.w > 0.0) | (self.column is not None)
        return _learn(state, self.forecast(state, x[None]).mean[0], known, y, self.forgetting, elapsed)

    def rescale(self, state: NaiveState, units: Units) -> NaiveState:
        """The last value and the errors in other units."""
        if self.column is not None:
            raise ValueError(
                f"Persistence by column {self.column} cannot change its units: its forecast is an input, which "
                "has to be in the units of the target"
            )
        return _rescale(state, units)


class LastKMean(Model[NaiveState]):
    """The next value is the mean of the last k.

    >>> import numpy as np
    >>> model = LastKMean(k=2)
    >>> state = model.init(np.zeros((3, 1)), np.array([1.0, 2.0, 5.0]))
    >>> float(model.predict(state, np.zeros((1, 1))).mean[0])
    3.5
    """

    noise: Array
    forgetting: Array
    k: int = eqx.field(static=True)

    def __init__(self, *, k: int = 5, noise: ArrayLike = 1.0, forgetting: ArrayLike = 0.98) -> None:
        """Take the settings.

        Args:
            k: values averaged.
            noise: variance before there are errors.
            forgetting: λ of the errors, the factor by which their weight shrinks in one unit of time.
        """
        self.k = checks.whole("k", k, 1)
        self.noise = checks.between("noise", noise, 0.0, np.inf)
        self.forgetting = checks.between("forgetting", forgetting, 0.0, 1.0)

    def start(self, layout: Layout, X: Array, y: Array) -> NaiveState:
        """Walk through the batch."""
        return _walk(self, _empty(layout, self.k, self.noise), X, y)

    def forecast(self, state: NaiveState, X: Array) -> Gaussian:
        """The mean, with the variance of the errors."""
        return _gaussian(state, _mean(state.recent), X.shape[0])

    def learn(self, state: NaiveState, x: Array, y: Array, elapsed: Array) -> NaiveState:  # noqa: ARG002
        """Compare the forecast with what came."""
        known = jnp.any(state.recent.w > 0.0)
        return _learn(state, _mean(state.recent), known, y, self.forgetting, elapsed)

    def rescale(self, state: NaiveState, units: Units) -> NaiveState:
        """The last values and the errors in other units."""
        return _rescale(state, units)


# ---- what both do ----------------------------------------------------------------------------------------------------


def _empty(layout: Layout, k: int, noise: ArrayLike) -> NaiveState:
    dtype, P = layout.dtype, layout.columns
    recent = window.fill(jnp.zeros((0, 0), dtype), jnp.zeros((0, P), dtype), jnp.ones((), dtype), k)
    variance = jnp.broadcast_to(jnp.asarray(noise, dtype), (P,))
    return NaiveState(recent=recent, variance=variance, errors=jnp.ones((), dtype), layout=layout)


def _walk(model: Model[NaiveState], state: NaiveState, X: Array, y: Array) -> NaiveState:
    def step(state: NaiveState, row: tuple[Array, Array]) -> tuple[NaiveState, None]:
        return model.learn(state, *row, jnp.ones((), X.dtype)), None

    return lax.scan(step, state, (X, y))[0]


def _mean(recent: Window) -> Array:
    """Mean of the values there are, P; 0 before the first."""
    return recent.w @ recent.y / jnp.maximum(jnp.sum(recent.w), 1.0)


def _gaussian(state: NaiveState, mean: Array, rows: int) -> Gaussian:
    # Targets that never change leave no error: a variance has to stay above zero.
    floor = jnp.finfo(state.variance.dtype).tiny ** 0.5
    shape = (rows, state.layout.columns)
    variance = jnp.broadcast_to(jnp.maximum(state.variance, floor), shape)
    return Gaussian(jnp.broadcast_to(mean, shape), variance, variance)


def _learn(state: NaiveState, forecast: Array, known: Array, y: Array, forgetting: Array, elapsed: Array) -> NaiveState:
    observed = jnp.all(jnp.isfinite(y))
    y = jnp.where(observed, y, 0.0)
    counts = (observed & known).astype(y.dtype)  # the first value has no forecast to be compared with
    errors = jnp.maximum(jnp.asarray(forgetting, y.dtype) ** elapsed * state.errors, 1.0) + counts
    return replace(
        state,
        recent=window.push(state.recent, state.recent.X[0], y, observed),
        variance=state.variance + counts * ((y - forecast) ** 2 - state.variance) / errors,
        errors=errors,
    )


def _rescale(state: NaiveState, units: Units) -> NaiveState:
    recent = state.recent
    y = jnp.where(recent.w[:, None] > 0.0, units.targets(recent.y), 0.0)
    return replace(state, recent=replace(recent, y=y), variance=state.variance / units.y_scale**2)
