"""The Gaussian process on time as a Kalman filter: a state-space model of a Matérn kernel.

J. Hartikainen, S. Särkkä, "Kalman filtering and smoothing solutions to temporal Gaussian process regression models",
MLSP 2010; S. Särkkä, A. Solin, J. Hartikainen, IEEE Signal Processing Magazine 30(4), 2013.

A Matérn process of order ν = S − ½ and its first S − 1 derivatives are a Markov process. With λ = √(2ν)/ℓ, the
companion matrix F of (s + λ)^S and N = F + λI, which is nilpotent,

    z(t + δ) = A z(t) + ε,  A = e^(−λδ) Σ_k (N δ)^k/k!,  ε ~ N(0, P∞ − A P∞ Aᵀ)        f = z_1,  y = f + noise

so that the exact posterior of the GP costs O(S³) per sample and needs no window and no inducing points. P∞ is the
stationary covariance. Nothing is forgotten but by the kernel itself, which loses its memory over a few lengthscales.

**Hyperparameters** are those that maximise the evidence of the exact GP on the warm-up batch, and stay.
"""

import math
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftgp.kernels import Kernel, Matern12, Matern32, Matern52
from driftgp.rivals import jax_window as window
from driftgp.rivals import settings
from driftgp.rivals.base import Normal
from driftgp.rivals.filtered import FilteredModel
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units

ORDERS: dict[type[Kernel], int] = {Matern12: 1, Matern32: 2, Matern52: 3}  # of the state, S


class StateSpaceState(eqx.Module):
    """What the filter knows of the process and its derivatives."""

    hyperparameters: Hyperparameters
    mean: Array  # S×P
    covariance: Array  # P×S×S
    time: Array  # of the last sample, by the clock of the inputs
    skipped: Array  # gradient steps of the warm-up left out because something in them was not finite


class StateSpaceGP(FilteredModel):
    """Exact GP regression on time with a Matérn kernel, by a Kalman filter.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = StateSpaceGP(column=0)
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> bool(abs(model.predict(state, X[41:42]).mean[0] - np.sin(6 * X[41, 0])) < 0.05)
    True

    Args:
        kernel: Matern12, Matern32 or Matern52 of one lengthscale, to start from; Matern32 by default.
        noise: starting variance of the noise, one number or one per output.
        column: the input that is time. None: time is what has elapsed between samples, and a forecast is one unit
            ahead. A time before the last sample counts as that of the last sample.
    """

    column: int | None = settings.whole(None, 0)

    def __post_init__(self) -> None:
        """Check the settings."""
        given = self.kernel
        if self.kernel is None:
            self.kernel = Matern32()
        super().__post_init__()
        if type(self.kernel) not in ORDERS or np.size(self.kernel.lengthscale) != 1:
            raise ValueError(f"kernel must be Matern12, Matern32 or Matern52 of one lengthscale; got {given!r}")

    @property
    def order(self) -> int:
        """S, the size of the state."""
        return ORDERS[type(self.kernel)]

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse a column that the inputs do not have."""
        if self.column is not None and self.column >= inputs:
            raise ValueError(f"column must be less than the number of inputs, {inputs}; got {self.column}")
        super().accept(inputs, outputs, rows)

    # ---- what a rival provides ---------------------------------------------------------------------------------------

    def of_kernel(self, X: Array) -> Array:
        """Times of the rows of a batch, N×1."""
        return jnp.arange(float(X.shape[0]))[:, None] if self.column is None else X[:, self.column, None]

    def before(self, h: Hyperparameters, skipped: Array, X: Array, y: Array) -> StateSpaceState:
        """The stationary process."""
        _, _, stationary = _dynamics(h.kernel, self.order, jnp.zeros(()))
        return StateSpaceState(
            hyperparameters=h,
            mean=jnp.zeros((self.order, y.shape[1])),
            covariance=jnp.broadcast_to(stationary, (y.shape[1], *stationary.shape)),
            time=jnp.zeros(()) if self.column is None or X.shape[0] == 0 else X[0, self.column],
            skipped=skipped,
        )

    def look(self, state: StateSpaceState, X: Array) -> Normal:
        """Mean and variance of f at the times of X, or a unit of time ahead, and the noise."""
        spans = jnp.ones(X.shape[0]) if self.column is None else self._span(state, X[:, self.column])
        noise = state.hyperparameters.noise
        ahead = jax.vmap(lambda span: self._pass(state, span))(spans)
        mean, latent = ahead.mean[:, 0], jnp.maximum(ahead.covariance[:, :, 0, 0], 0.0)  # N×P
        return Normal(mean, latent + noise, jnp.broadcast_to(noise, mean.shape))

    def step(self, state: StateSpaceState, x: Array, y: Array, elapsed: Array) -> StateSpaceState:
        """Let time pass, then condition on the sample, if any."""
        observed = window.observed(x, y)
        if self.column is None:
            state = self._pass(state, elapsed)
        else:
            now = jnp.where(observed, x[self.column], state.time)
            state = replace(self._pass(state, self._span(state, now)), time=jnp.maximum(state.time, now))
        y = jnp.where(observed, y, 0.0)
        row = state.covariance[:, 0, :]  # P×S
        gain = row / (row[:, :1] + state.hyperparameters.noise[:, None])  # P×S
        mean = state.mean + gain.T * (y - state.mean[0])
        # Joseph's form: what is subtracted is the same matrix from both sides, so that the covariance stays positive
        keep = jnp.eye(self.order) - gain[:, :, None] * jnp.eye(self.order)[0]  # P×S×S
        noisy = state.hyperparameters.noise[:, None, None] * gain[:, :, None] * gain[:, None, :]
        covariance = keep @ state.covariance @ keep.mT + noisy
        return replace(
            state,
            mean=jnp.where(observed, mean, state.mean),
            covariance=jnp.where(observed, covariance, state.covariance),
        )

    def in_units(self, state: StateSpaceState, units: Units) -> StateSpaceState:
        """Mean and time in other units; the covariance is a share of the prior's and stays."""
        stretch = 1.0 if self.column is None else units.x_scale[self.column]
        mean = state.mean.at[0].add(-units.y_centre) / units.y_scale
        mean = mean * (stretch ** jnp.arange(self.order))[:, None]  # a derivative by time for each row
        if self.column is None:
            return replace(state, mean=mean)
        return replace(state, mean=mean, time=(state.time - units.x_centre[self.column]) / stretch)

    # ---- time --------------------------------------------------------------------------------------------------------

    def _span(self, state: StateSpaceState, time: Array) -> Array:
        return jnp.maximum(time - state.time, 0.0)

    def _pass(self, state: StateSpaceState, span: Array) -> StateSpaceState:
        A, Q, _ = _dynamics(state.hyperparameters.kernel, self.order, span)
        return replace(state, mean=A @ state.mean, covariance=A @ state.covariance @ A.T + Q)


def _dynamics(kernel: Any, order: int, span: Array) -> tuple[Array, Array, Array]:
    """A, the covariance of the process noise, and P∞."""
    lengthscale = jnp.reshape(kernel.lengthscale, ())
    rate = jnp.sqrt(2.0 * order - 1.0) / lengthscale
    # in units of 1/λ all matrices are numbers, and derivatives are of the size of the process
    binomials = jnp.asarray([math.comb(order, k) for k in range(order)], float)
    nilpotent = jnp.eye(order, k=1).at[-1].add(-binomials) + jnp.eye(order)
    step, power = rate * span, jnp.eye(order)
    A = power
    for k in range(1, order):
        power = power @ nilpotent * (step / k)
        A = A + power
    A = jnp.exp(-step) * A
    shape = {1: [[1.0]], 2: [[1.0, 0.0], [0.0, 1.0]], 3: [[1.0, 0.0, -1 / 3], [0.0, 1 / 3, 0.0], [-1 / 3, 0.0, 1.0]]}
    stationary = jnp.asarray(shape[order])
    units = rate ** jnp.arange(order)  # of the derivatives
    A, stationary = units[:, None] * A / units, kernel.variance * units[:, None] * stationary * units
    return A, stationary - A @ stationary @ A.T, stationary
