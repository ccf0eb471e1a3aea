"""What the rivals that learn by gradient from a window have in common: the loop around their objective.

A sample comes: every weight ages, and the sample replaces the oldest. The parameters climb for a few steps from where
the last sample left them (warm start). Then the posterior is computed anew.
"""

import abc
from collections.abc import Callable
from dataclasses import InitVar, field, replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from driftgp.rivals import jax_learning as learning
from driftgp.rivals import jax_window as window
from driftgp.rivals import settings
from driftgp.rivals.base import Rival, RivalView
from driftgp.rivals.jax_inducing import Inducing
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units, Window
from driftgp.rivals.loops import only_if


class Fit(eqx.Module):
    """What is learned."""

    hyperparameters: Hyperparameters
    free: Any  # other parameters for the gradient: inducing inputs, parameters of q
    rest: Any  # fixed values: the slots in use, a random key
    optimizer: Any  # empty where the optimiser starts afresh at every sample
    skipped: Array  # gradient steps left out because something in them was not finite


class WindowedState(eqx.Module):
    """What a windowed model remembers."""

    window: Window
    fit: Fit
    posterior: Any
    repaired: Array  # factorisations that needed more jitter

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Kernel and noise as they are now."""
        return self.fit.hyperparameters

    @property
    def points(self) -> Inducing | None:
        """Inducing points, if the model has any."""
        return points_of(self.fit) if self.fit.free else None


def points_of(fit: Fit) -> Inducing:
    """Inducing points of a fit: the first free parameter, and the first fixed one."""
    return Inducing(fit.free[0], fit.rest[0])


class WindowedModel(Rival):
    """A model that climbs an objective of the last T samples.

    A new one says how it starts (`first`), how it climbs (`climb`), its posterior (`condition`) and its forecast.

    Args:
        kernel: covariance with its starting parameters; squared exponential by default.
        noise: starting variance of the noise.
        window: samples kept T.
        forgetting: λ, the factor by which a sample's weight shrinks in one unit of time.
        attenuation: λ^T instead of λ: the weight left at the window's far end, 0.1 by default.
        iterations: gradient steps per sample.
        rate: Adam's rate.
        restart: start Adam afresh at every sample, or carry its state along.
        warmup_iterations: gradient steps on the warm-up batch.
        warmup_rate: Adam's rate in them.
        jitter: least noise and (for sparse models) addition to Kuu, relative to the kernel's diagonal; by default
            ten times the square root of the rounding error.
    """

    window: int = settings.whole(100, 1)
    forgetting: Any = field(default=None, kw_only=True)
    attenuation: InitVar[float | None] = field(default=None, kw_only=True)
    iterations: int = settings.whole(1, 1)
    rate: float = settings.number(0.05)
    restart: bool = settings.flag(True)
    warmup_iterations: int = settings.whole(200, 0)
    warmup_rate: float = settings.number(0.05)
    jitter: Any = settings.share(None)

    def __post_init__(self, attenuation: float | None) -> None:
        """Check the settings; λ is given by itself or by the attenuation."""
        super().__post_init__()
        self.forgetting = settings.forgetting_factor(self.forgetting, attenuation, self.window)
        if self.jitter is None:
            self.jitter = settings.JITTER

    # ---- what a method provides --------------------------------------------------------------------------------------

    @abc.abstractmethod
    def first(self, h: Hyperparameters, memory: Window, filled: int) -> tuple[Any, Any]:
        """`free` and `rest` of a fit before any step, for a window whose first `filled` slots hold a batch."""

    @abc.abstractmethod
    def welcome(self, fit: Fit, x: Array) -> Fit:
        """Make room for a new input before the climb."""

    @abc.abstractmethod
    def climb(self, fit: Fit, memory: Window, rate: float, iterations: int) -> Fit:
        """Take gradient steps on the window's samples."""

    @abc.abstractmethod
    def condition(self, fit: Fit, memory: Window) -> tuple[Any, Array]:
        """Posterior for forecasts, and the repairs that its factorisations needed."""

    @abc.abstractmethod
    def fit_in_units(self, fit: Fit, units: Units) -> Fit:
        """Fit as if every sample had come in other units; hyperparameters are shares of a unit and stay."""

    # ---- what a rival provides ---------------------------------------------------------------------------------------

    def begin(self, X: Array, y: Array) -> WindowedState:
        """Climb from the settings on the last T samples of the batch."""
        h = learning.initial(self.kernel, self.noise, X.shape[1], y.shape[1])
        memory = window.fill(X, y, self.forgetting, self.window)
        free, rest = self.first(h, memory, min(X.shape[0], self.window))
        optimizer = learning.begun(learning.adam(self.rate), h, free)
        fit = Fit(h, free, rest, optimizer, jnp.zeros((), jnp.int32))
        if X.shape[0] > 0 and self.warmup_iterations > 0:
            fit = self.climb(fit, memory, self.warmup_rate, self.warmup_iterations)
        fit = replace(fit, optimizer=() if self.restart else optimizer)
        posterior, repairs = self.condition(fit, memory)
        return WindowedState(window=memory, fit=fit, posterior=posterior, repaired=repairs)

    def step(self, state: WindowedState, x: Array, y: Array, elapsed: Array) -> WindowedState:
        """Let time pass; if there is a sample, take it in and climb."""
        observed = window.observed(x, y)
        x, y = jnp.where(observed, x, 0.0), jnp.where(observed, y, 0.0)
        memory = window.push(window.age(state.window, self.forgetting**elapsed), x, y, observed)
        fit = only_if(observed, lambda fit: self._improve(fit, memory, x), state.fit)
        posterior, repairs = self.condition(fit, memory)
        return WindowedState(window=memory, fit=fit, posterior=posterior, repaired=state.repaired + repairs)

    def finish(self, state: WindowedState) -> WindowedState:
        """Posterior from window and fit."""
        return replace(state, posterior=self.condition(state.fit, state.window)[0])

    def in_units(self, state: WindowedState, units: Units) -> WindowedState:
        """Samples and fit in other units."""
        memory, fit = window.in_units(state.window, units), self.fit_in_units(state.fit, units)
        return self.finish(replace(state, window=memory, fit=fit))

    def check(self, state: RivalView) -> None:
        """Refuse a cursor outside the window too."""
        super().check(state)
        if not 0 <= state.window_cursor < self.window:
            raise ValueError(f"window_cursor must lie in [0, {self.window}); got {state.window_cursor}")

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _improve(self, fit: Fit, memory: Window, x: Array) -> Fit:
        fit = self.welcome(fit, x)
        if self.restart:
            fresh = learning.begun(learning.adam(self.rate), fit.hyperparameters, fit.free)
            fit = replace(fit, optimizer=fresh)
        fit = self.climb(fit, memory, self.rate, self.iterations)
        return replace(fit, optimizer=()) if self.restart else fit

    def ascend(
        self,
        objective: Callable[[Hyperparameters, Any], Array],
        fit: Fit,
        memory: Window,
        rate: float,
        iterations: int,
    ) -> Fit:
        """Adam steps on log hyperparameters and on what else is free; the noise stays above the jitter."""
        optimizer = learning.adam(rate)
        climb = learning.ascend(objective, fit.hyperparameters, fit.free, optimizer, fit.optimizer, iterations)
        h: Hyperparameters = climb.positive
        kappa, n = memory.w @ h.kernel(memory.X), jnp.sum(memory.w)
        floor = self.jitter * kappa / jnp.maximum(n, jnp.finfo(n.dtype).tiny)
        return Fit(
            hyperparameters=replace(h, noise=jnp.maximum(h.noise, floor)),
            free=climb.free,
            rest=fit.rest,
            optimizer=climb.optimizer,
            skipped=fit.skipped + climb.skipped,
        )
