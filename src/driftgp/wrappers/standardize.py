"""Inputs and targets in units of their own spread, for any model."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from driftgp import checks
from driftgp.loops import only_if
from driftgp.model import Layout, Model, Units
from driftgp.prediction import Prediction
from driftgp.wrappers.holding import Holding, HoldingState

# A column varies if its spread is more than rounding: this many units in the last place of its mean.
_ROUNDING = 32.0
# Until this many samples have come, each of them counts in full, however far off it is.
_FIRST = 10.0
# Until then nobody knows how far inputs spread, and a forecast takes none to be more scales than this from the centre.
_FARTHEST = 10.0


class Moments(eqx.Module):
    """Running weight, mean and variance of each column, inputs first and targets after them."""

    weight: Array  # D+P
    mean: Array  # D+P
    variance: Array  # D+P


class StandardizeState(HoldingState):
    """The held model's state, the units it is in, and what the samples have been like of late."""

    inner: Any
    centre: Array  # D+P
    scale: Array  # D+P
    recent: Moments
    renewals: Array  # how often the units changed
    layout: Layout = eqx.field(static=True)


class Standardize(Holding[StandardizeState]):
    """Hold a model and let it see (x − centre) / scale and (y − centre) / scale; it answers in the user's units.

    Without `adapt` the centre and scale of each column are the mean and standard deviation of the warm-up batch, for
    good.

    With `adapt` = λ they follow the stream: each sample counts λ times as much as the one after it (λ = 1: all alike),
    and no warm-up batch is needed. The held model stays consistent because its units do not change sample by sample.
    They stay as they are until the running mean has moved by a scale, or the running scale by a factor of two, in any
    column; then, in one step, everything that the held model remembers is expressed in the new units (`Model.rescale`).
    So at every moment all that it holds is in one set of units: it is the model that has seen those same samples in
    today's units. Its hyperparameters are numbers of these units and stay: when the spread of the targets doubles, so
    do signal and noise. A λ closer to 1 than the model's own is usually better: a scale changes more slowly than a
    function, and known from few samples it wavers.

    A column that has not varied yet has the size of its values for a scale, or 1 if they are 0. Hence a stream in other
    units (metres for millimetres) gives the same predictions in those units, from the first sample on. A sample that is
    far off moves the scale by a factor of two at most: a lone outlier changes no units, and a change that lasts
    is followed within a few samples. A sample without a target counts for nothing, as everywhere.

    >>> import numpy as np
    >>> from driftgp import AGP
    >>> X = np.linspace(0, 86_400, 60)[:, None] + 1.7e9
    >>> y = 5e4 + 100 * np.sin(X[:, 0] / 1e4)
    >>> model = Standardize(AGP(inducing=6, window=40))
    >>> state = model.init(X[:40], y[:40])
    >>> bool(abs(model.predict(state, X[40:41]).mean[0] - y[40]) < 5)
    True
    """

    model: Model[Any]
    forgetting: Array | None

    def __init__(self, model: Model[Any], adapt: bool | ArrayLike = False) -> None:
        """Hold a model.

        Args:
            model: any model; one that can `rescale` if the units are to adapt.
            adapt: False for the units of the warm-up batch, λ in (0, 1] for units that follow, True for the model's λ.
        """
        self.model = model
        forgetting = getattr(model, "forgetting", None) if adapt is True else adapt
        if forgetting is None:
            raise ValueError(f"adapt must be a number for {type(model).__name__}, which has no forgetting of its own")
        self.forgetting = None if adapt is False else checks.between("adapt", forgetting, 0.0, 1.0)

    def start(self, layout: Layout, X: Array, y: Array) -> StandardizeState:
        """Measure the batch, then start the held model on it."""
        Z = jnp.concatenate([X, y], 1)  # N×(D+P)
        if Z.shape[0] == 0 and self.forgetting is None:
            raise ValueError("X must hold a warm-up batch to take the units from; without one, give adapt a number")
        recent = _moments(Z, jnp.all(jnp.isfinite(y), 1), 1.0 if self.forgetting is None else self.forgetting)
        centre, scale = recent.mean, _spread(recent, _size(recent))
        Z = (Z - centre) / scale
        return StandardizeState(
            inner=self.model.start(layout, *_split(layout, Z)),
            centre=centre,
            scale=scale,
            recent=recent,
            renewals=jnp.zeros((), jnp.int32),
            layout=layout,
        )

    def forecast(self, state: StandardizeState, X: Array) -> Prediction:
        """Forecast of the held model, in the user's units."""
        units = _units(state.layout, state.centre, state.scale)
        return self.model.forecast(state.inner, self._seen(state, X)).scaled(units.y_scale, units.y_centre)

    def joint(self, state: StandardizeState, X: Array) -> Array:
        """Joint covariance of the held model, in the user's units."""
        y_scale = _units(state.layout, state.centre, state.scale).y_scale
        return y_scale[:, None, None] ** 2 * self.model.joint(state.inner, self._seen(state, X))

    def learn(self, state: StandardizeState, x: Array, y: Array, elapsed: Array) -> StandardizeState:
        """Follow the stream's units if they adapt, then let the held model learn."""
        if self.forgetting is not None:
            state = self._follow(state, jnp.concatenate([x, y]), jnp.all(jnp.isfinite(y)), self.forgetting)
        units = _units(state.layout, state.centre, state.scale)
        x = units.inputs(x[None])[0]  # computed as for a forecast: the compiler then does it once
        return replace(state, inner=self.model.learn(state.inner, x, units.targets(y), elapsed))

    def rescale(self, state: StandardizeState, units: Units) -> StandardizeState:
        """Only what is in the user's units changes: the held model sees what it saw before."""
        centre = jnp.concatenate([units.x_centre, units.y_centre])
        scale = jnp.concatenate([units.x_scale, units.y_scale])
        recent = state.recent
        recent = replace(recent, mean=(recent.mean - centre) / scale, variance=recent.variance / scale**2)
        return replace(state, centre=(state.centre - centre) / scale, scale=state.scale / scale, recent=recent)

    def _seen(self, state: StandardizeState, X: Array) -> Array:
        """Inputs to predict for, as the held model sees them."""
        Z = _units(state.layout, state.centre, state.scale).inputs(X)
        if self.forgetting is None:
            return Z
        # a first value that happens to be near 0 is no scale for those to come
        young = state.recent.weight[: state.layout.inputs] < _FIRST
        return jnp.where(young, jnp.clip(Z, -_FARTHEST, _FARTHEST), Z)

    def _follow(self, state: StandardizeState, z: Array, observed: Array, forgetting: Array) -> StandardizeState:
        first = state.recent.weight == 0.0  # D+P
        recent = _count(state.recent, z, observed, forgetting, state.scale)
        scale = _spread(recent, jnp.where(first, _size(recent), state.scale))
        ratio = scale / state.scale
        moved = (ratio > 2.0) | (ratio < 0.5) | (jnp.abs(recent.mean - state.centre) > state.scale)
        state = replace(state, recent=recent)
        return only_if(
            observed & jnp.any(moved | (first & (recent.weight > 0.0))),
            lambda state: self._renew(state, recent.mean, scale),
            state,
        )

    def _renew(self, state: StandardizeState, centre: Array, scale: Array) -> StandardizeState:
        """Express what the held model remembers in new units, which to it are units of the present ones."""
        change = _units(state.layout, (centre - state.centre) / state.scale, scale / state.scale)
        inner = self.model.rescale(state.inner, change)
        return replace(state, inner=inner, centre=centre, scale=scale, renewals=state.renewals + 1)


# ---- moments ---------------------------------------------------------------------------------------------------------


def _moments(Z: Array, observed: Array, forgetting: ArrayLike) -> Moments:
    """Weighted moments of a batch, column by column, over the values that are there."""
    here = observed[:, None] & jnp.isfinite(Z)  # N×(D+P)
    age = jnp.cumsum(here[::-1], 0)[::-1] - 1  # samples that came later
    w = jnp.where(here, jnp.asarray(forgetting, Z.dtype) ** age, 0.0)
    weight = jnp.sum(w, 0)
    share = w / jnp.where(weight > 0.0, weight, 1.0)
    Z = jnp.where(here, Z, 0.0)
    mean = jnp.sum(share * Z, 0)
    return Moments(weight, mean, jnp.sum(share * (Z - mean) ** 2, 0))


def _count(m: Moments, z: Array, observed: Array, forgetting: Array, scale: Array) -> Moments:
    """Moments with one more sample, whose distance from the mean is limited so that the scale at most doubles."""
    here = observed & jnp.isfinite(z)
    weight = jnp.where(here, forgetting * m.weight + 1.0, m.weight)
    gain = jnp.where(here, 1.0 / jnp.where(here, weight, 1.0), 0.0)
    # the variance gains (1 − gain) · gain · step², which is to stay below (2² − 1) · scale²
    limit = jnp.where(weight > _FIRST, jnp.sqrt(3.0 * weight) * scale, jnp.inf)
    step = jnp.clip(jnp.where(here, z - m.mean, 0.0), -limit, limit)
    return Moments(weight, m.mean + gain * step, (1.0 - gain) * (m.variance + gain * step**2))


def _size(m: Moments) -> Array:
    """Scale for want of a better one: the size of the values."""
    return jnp.where(m.mean == 0.0, 1.0, jnp.abs(m.mean))


def _spread(m: Moments, otherwise: Array) -> Array:
    """Standard deviation of every column that varies."""
    std = jnp.sqrt(m.variance)
    return jnp.where(std > _ROUNDING * jnp.finfo(std.dtype).eps * jnp.abs(m.mean), std, otherwise)


def _split(layout: Layout, Z: Array) -> tuple[Array, Array]:
    return Z[..., : layout.inputs], Z[..., layout.inputs :]


def _units(layout: Layout, centre: Array, scale: Array) -> Units:
    (x_centre, y_centre), (x_scale, y_scale) = _split(layout, centre), _split(layout, scale)
    return Units(x_centre, x_scale, y_centre, y_scale)
