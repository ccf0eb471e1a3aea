"""Streaming sparse GP regression, by a bound that carries the old posterior along as pseudo-observations.

Bui, Nguyen and Turner 2017; the bound, and what differs here from the published formulas, is in `streaming_bound`.

The noise is at least the jitter's share of the variance, so that the I of the bound's second factor is not lost in
rounding. It forgets only by the inducing points that go. An input that the points do not explain replaces the oldest
point. The authors replace points chosen at random by a share of the new inputs. Cost: O(M³) per sample and iteration.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from driftgp.rivals import jax_bound as bound
from driftgp.rivals import jax_inducing as inducing
from driftgp.rivals import jax_learning as learning
from driftgp.rivals import jax_window as window
from driftgp.rivals import settings, streaming_bound
from driftgp.rivals.base import Normal, Rival
from driftgp.rivals.jax_bound import Posterior, Statistics
from driftgp.rivals.jax_inducing import Inducing
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units, Window
from driftgp.rivals.loops import only_if


class OSGPState(eqx.Module):
    """What OSGP remembers."""

    points: Inducing
    born: Array  # M, the sample with which each point came in
    hyperparameters: Hyperparameters
    Kuu: Array  # M×M
    Phi: Array  # P×M×M
    b: Array  # M×P
    posterior: Posterior
    optimizer: Any  # empty where the optimiser starts afresh at every sample
    samples: Array  # how many were learned from since the warm-up
    skipped: Array  # gradient steps left out because something in them was not finite
    repaired: Array  # factorisations that needed more jitter


class OSGP(Rival):
    """Streaming sparse GP: every inducing input and hyperparameter follows the stream, the data are forgotten at once.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = OSGP(inducing=6)
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> bool(abs(model.predict(state, X[41:42]).mean[0] - np.sin(6 * X[41, 0])) < 0.05)
    True

    Args:
        kernel: covariance with its starting parameters; squared exponential by default.
        noise: starting variance of the noise.
        inducing: inducing points M.
        iterations: Adam iterations per sample.
        rate: their rate for the logarithms of the hyperparameters.
        inducing_rate: their rate for the inducing inputs.
        restart: start Adam afresh at every sample or carry its state along.
        novelty: x replaces the oldest inducing point if more than this share of the variance at x is unexplained.
            With 1, only the gradient moves the points.
        nugget: share of the variance that belongs to each inducing point alone; less than the novelty, or else
            every input is new.
        warmup_iterations: Adam iterations on the warm-up batch, whose bound is Titsias'.
        warmup_rate: their rate.
        learn_inducing: learn the inducing inputs in the warm-up, too.
        inducing_inputs: first inducing inputs, at most M rows; by default samples that the others explain least.
    """

    inducing: int = settings.whole(10, 1)
    iterations: int = settings.whole(1, 1)
    rate: float = settings.number(0.005, open_low=False)
    inducing_rate: float = settings.number(0.001, open_low=False)
    restart: bool = settings.flag(True)
    novelty: float = settings.share(0.06)
    nugget: float = settings.share(0.02, open_low=True)
    warmup_iterations: int = settings.whole(200, 0)
    warmup_rate: float = settings.number(0.05)
    learn_inducing: bool = settings.flag(True)
    inducing_inputs: Any = settings.inputs()

    # ---- what a rival provides ---------------------------------------------------------------------------------------

    def begin(self, X: Array, y: Array) -> OSGPState:
        """Learn from the batch by Titsias' bound."""
        h = learning.initial(self.kernel, self.noise, X.shape[1], y.shape[1])
        memory = window.fill(X, y, 1.0, X.shape[0])  # gaps have weight 0
        points = inducing.place(self.inducing_inputs, "greedy", h.kernel, memory, X.shape[0], self.inducing)
        skipped = jnp.zeros((), jnp.int32)
        if X.shape[0] > 0 and self.warmup_iterations > 0:
            h, points, skipped = self._warm_up(h, points, memory)
        h = _floored(h, X)
        Kuu, s = self._batch(h, points, memory)
        Phi, b = s.Phi / h.noise[:, None, None], s.b / h.noise
        q, repairs = streaming_bound.posterior(Kuu, Phi, b)
        return OSGPState(
            points=points,
            born=jnp.arange(self.inducing, dtype=jnp.int32) - self.inducing,
            hyperparameters=h,
            Kuu=Kuu,
            Phi=Phi,
            b=b,
            posterior=q,
            optimizer=() if self.restart else learning.begun(learning.adam(self.rate), h, points.U),
            samples=jnp.zeros((), jnp.int32),
            skipped=skipped,
            repaired=repairs,
        )

    def look(self, state: OSGPState, X: Array) -> Normal:
        """Predictive distribution of the sparse posterior."""
        h = state.hyperparameters
        mean, latent = bound.predict(state.posterior, inducing.cross(h.kernel, state.points, X), h.kernel(X))
        return Normal(mean, latent + h.noise, jnp.broadcast_to(h.noise, mean.shape))

    def step(self, state: OSGPState, x: Array, y: Array, elapsed: Array) -> OSGPState:  # noqa: ARG002 (no forgetting)
        """Maximise the streaming bound for one or more iterations, then project the past on the new inducing points."""
        return only_if(window.observed(x, y), lambda state: self._adapt(state, x, y), state)

    def in_units(self, state: OSGPState, units: Units) -> OSGPState:
        """Inputs and pseudo-observations in other units; their precision is a share of a unit and stays."""
        points, used = state.points, state.points.used[:, None]
        inverse_K = state.posterior.inverse_L.T @ state.posterior.inverse_L
        precision = inverse_K @ state.Phi @ inverse_K  # P×M×M, D⁻¹
        shift = jnp.sum(jnp.where(used[:, 0], precision, 0.0), -1).T * units.y_centre  # M×P
        eta = (inverse_K @ state.b - shift) / units.y_scale  # M×P, S⁻¹m
        points = replace(points, U=jnp.where(used, units.inputs(points.U), 0.0))
        Kuu = streaming_bound.gram(state.hyperparameters.kernel, points, self.nugget)
        Phi, b = Kuu @ precision @ Kuu, Kuu @ eta
        q, _ = streaming_bound.posterior(Kuu, Phi, b)
        return replace(state, points=points, Kuu=Kuu, Phi=Phi, b=b, posterior=q)

    # ---- a step ------------------------------------------------------------------------------------------------------

    def _adapt(self, state: OSGPState, x: Array, y: Array) -> OSGPState:
        points, born = self._admit(state, x)
        stays, inverse_L = born == state.born, state.posterior.inverse_L
        past = streaming_bound.past(state.points, stays, state.Kuu, inverse_L, state.Phi, state.b)
        rates = jax.tree.map(lambda leaf: jnp.full_like(leaf, self.rate), state.hyperparameters)
        optimizer = learning.adam(ravel_pytree((rates, jnp.full_like(points.U, self.inducing_rate)))[0])

        def objective(h: Hyperparameters, U: Array) -> Array:
            carried = streaming_bound.carry(past, h, replace(points, U=U), self.nugget, x, y)
            return streaming_bound.objective(carried, h.noise, y)

        climb = learning.ascend(
            objective,
            state.hyperparameters,
            points.U,
            optimizer,
            learning.begun(optimizer, state.hyperparameters, points.U) if self.restart else state.optimizer,
            self.iterations,
        )
        h, points = _floored(climb.positive, x[None]), replace(points, U=climb.free)
        c = streaming_bound.carry(past, h, points, self.nugget, x, y)
        q, repairs = streaming_bound.posterior(c.Kuu, c.Phi, c.b)
        return OSGPState(
            points=points,
            born=born,
            hyperparameters=h,
            Kuu=c.Kuu,
            Phi=c.Phi,
            b=c.b,
            posterior=q,
            optimizer=() if self.restart else climb.optimizer,
            samples=state.samples + 1,
            skipped=state.skipped + climb.skipped,
            repaired=state.repaired + repairs,
        )

    def _admit(self, state: OSGPState, x: Array) -> tuple[Inducing, Array]:
        """Where x is new to the inducing points, it takes a free slot or that of the oldest point."""
        points, kernel = state.points, state.hyperparameters.kernel
        k = inducing.cross(kernel, points, x[None])[:, 0]  # M
        kxx = kernel(x[None])[0]
        unexplained = kxx - jnp.sum((state.posterior.inverse_L @ k) ** 2)
        new = (unexplained > self.novelty * kxx) | ~jnp.any(points.used)
        slot = jnp.argmin(jnp.where(points.used, state.born, jnp.iinfo(jnp.int32).min))
        here = new & (jnp.arange(self.inducing) == slot)
        return (
            Inducing(jnp.where(here[:, None], x, points.U), points.used | here),
            jnp.where(here, state.samples, state.born),
        )

    # ---- the warm-up -------------------------------------------------------------------------------------------------

    def _warm_up(self, h: Hyperparameters, points: Inducing, memory: Window) -> tuple[Hyperparameters, Inducing, Array]:
        """Learn from the batch: hyperparameters and, if so set, the inducing inputs."""

        def objective(h: Hyperparameters, free: Array | None) -> Array:
            here = points if free is None else replace(points, U=free)
            return bound.bound(*self._batch(h, here, memory), h.noise)

        free = points.U if self.learn_inducing else None
        optimizer = learning.adam(self.warmup_rate)
        begun = learning.begun(optimizer, h, free)
        climb = learning.ascend(objective, h, free, optimizer, begun, self.warmup_iterations)
        return climb.positive, points if climb.free is None else replace(points, U=climb.free), climb.skipped

    def _batch(self, h: Hyperparameters, points: Inducing, memory: Window) -> tuple[Array, Statistics]:
        """Kuu and the statistics of a batch."""
        Kux = inducing.cross(h.kernel, points, memory.X)
        Kuu = streaming_bound.gram(h.kernel, points, self.nugget)
        return Kuu, bound.statistics(Kux, h.kernel(memory.X), memory.w, memory.y)


def _floored(h: Hyperparameters, X: Array) -> Hyperparameters:
    """Keep the noise above the rounding of Φ: with 1/σ² in the weights, no digit is left of I beside a larger one."""
    floor = settings.JITTER * jnp.mean(h.kernel(X)) if X.shape[0] > 0 else 0.0
    return replace(h, noise=jnp.maximum(h.noise, floor))
