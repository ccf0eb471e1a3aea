"""Streaming sparse GP regression, by a bound that carries the old posterior along as pseudo-observations.

T. D. Bui, C. V. Nguyen, R. E. Turner, "Streaming Sparse Gaussian Process Approximations", NIPS 2017: the collapsed
variational bound for regression.

Before a sample the inducing inputs are a, the parameters θ', K' = k'(a, a) and the posterior q(a) = N(m, S). The
bound puts the ratio q(a)/p(a | θ') ∝ exp(−½ aᵀ D⁻¹ a + aᵀ S⁻¹ m), D⁻¹ = S⁻¹ − K'⁻¹, in the place of the past, as a
likelihood of the function at a, and is maximised over new inducing inputs u and new parameters θ:

    F(u, θ) = E_q [log p(y | f(x)) + log q(a)/p(a | θ')] − KL(q(u) ‖ p(u | θ))

**What differs from the published formulas.** Those invert D⁻¹, a difference of two matrices that agree but for
what was learned, and factorise it, which is where they fail. Nothing is subtracted or inverted here. Every
posterior of this form has D⁻¹ = K'⁻¹ Φ K'⁻¹ and S⁻¹m = K'⁻¹ b, where Φ and b are what they are in `bound`, with
1/σ² taken into the weights. So Φ and b are what the state keeps, and all that a step does to them is to project
and to add. With k = k(u, x),

    T = K'⁻¹ k(a, u)        Φ ← Tᵀ Φ T + k kᵀ/σ²        b ← Tᵀ b + k y/σ²
    κ = tr(D⁻¹ k(a, a)) + k_xx/σ²

Φ is positive semidefinite by construction. With these statistics and unit noise F is the bound of `bound`, less ½
log σ² + ½ y²/σ² and constants; its factors are those of Kuu and of I + L⁻¹ Φ L⁻ᵀ, which has no eigenvalue under 1.
T is computed as I + K'⁻¹ (k(a, u) − K'), the identity as long as nothing moves: then Φ and b are those of all the
data, and OSGP is Titsias' batch approximation.

In place of a jitter the points have a nugget: a point's value is that of the function and something of its own,
which it keeps when it moves, so that the nugget stands in k(a, u) too, where a point stays. If it is as small as a
jitter, D⁻¹ is so stiff, in directions that no sample speaks of, that neither inputs nor parameters can move
without losing the past; at a few per cent of the variance they can. The noise has a floor, a jitter's share of the
variance, so that the I of the second factor is not lost in the rounding of what is added to it.

There is no forgetting other than by the inducing points that go: an input that the points do not explain takes the
place of the oldest, where the authors put a share of the new inputs in the place of points chosen at random. Cost:
O(M³) a sample and iteration.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike

from driftgp import bound, checks, inducing, learning, settings, window
from driftgp.bound import Posterior, Statistics
from driftgp.inducing import Inducing
from driftgp.kernels import SE, Covariance
from driftgp.learning import Hyperparameters
from driftgp.loops import only_if
from driftgp.model import Layout, Model, State, Units
from driftgp.prediction import Gaussian
from driftgp.window import Window


class OSGPState(State):
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
    layout: Layout = eqx.field(static=True)


class _Past(NamedTuple):
    """What a step keeps of the old posterior."""

    points: Inducing
    stays: Array  # M, which points keep their slot
    K: Array  # M×M, K'
    inverse_K: Array  # M×M
    Phi: Array  # P×M×M
    b: Array  # M×P
    precision: Array  # P×M×M, D⁻¹ = K'⁻¹ Φ K'⁻¹


class _Carried(NamedTuple):
    """What the bound and the posterior need."""

    Kuu: Array  # M×M
    Phi: Array  # P×M×M
    b: Array  # M×P
    kappa: Array  # P


class OSGP(Model[OSGPState]):
    """Streaming sparse GP: every inducing input and hyperparameter follows the stream, the data are forgotten at once.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = OSGP(inducing=6)
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> bool(abs(model.predict(state, X[41:42]).mean[0] - np.sin(6 * X[41, 0])) < 0.05)
    True
    """

    kernel: Covariance
    noise: Array
    rate: Array
    inducing_rate: Array
    novelty: Array
    nugget: Array
    warmup_rate: Array
    inducing_inputs: Array | None
    inducing: int = eqx.field(static=True)
    iterations: int = eqx.field(static=True)
    restart: bool = eqx.field(static=True)
    warmup_iterations: int = eqx.field(static=True)
    learn_inducing: bool = eqx.field(static=True)

    def __init__(
        self,
        kernel: Covariance | None = None,
        *,
        noise: ArrayLike = 1.0,
        inducing: int = 10,
        iterations: int = 1,
        rate: ArrayLike = 0.005,
        inducing_rate: ArrayLike = 0.001,
        restart: bool = True,
        novelty: ArrayLike = 0.06,
        nugget: ArrayLike = 0.02,
        warmup_iterations: int = 200,
        warmup_rate: ArrayLike = 0.05,
        learn_inducing: bool = True,
        inducing_inputs: ArrayLike | None = None,
    ) -> None:
        """Take the settings; those that are arrays may differ between the models of a batch.

        Args:
            kernel: covariance with its starting parameters; squared exponential by default.
            noise: starting variance of the noise.
            inducing: inducing points M.
            iterations: Adam iterations a sample.
            rate: their rate for the logarithms of the hyperparameters.
            inducing_rate: their rate for the inducing inputs.
            restart: start Adam afresh at every sample or carry its state along.
            novelty: share of the variance at x, left unexplained by the inducing points, above which x takes the place
                of the oldest of them; 1 leaves the inducing points to the gradient alone.
            nugget: share of the variance that belongs to each inducing point alone; less than the novelty, or else
                every input is new.
            warmup_iterations: Adam iterations on the warm-up batch, whose bound is Titsias'.
            warmup_rate: their rate.
            learn_inducing: learn the inducing inputs in the warm-up, too.
            inducing_inputs: first inducing inputs, at most M rows; by default samples that the others explain least.
        """
        self.kernel = learning.float_leaves(SE() if kernel is None else kernel)
        self.noise = checks.between("noise", noise, 0.0, np.inf)
        self.inducing = checks.whole("inducing", inducing, 1)
        self.iterations = checks.whole("iterations", iterations, 1)
        self.rate = checks.between("rate", rate, 0.0, np.inf, open_low=False)
        self.inducing_rate = checks.between("inducing_rate", inducing_rate, 0.0, np.inf, open_low=False)
        self.restart = bool(restart)
        self.novelty = checks.between("novelty", novelty, 0.0, 1.0, open_low=False)
        self.nugget = checks.between("nugget", nugget, 0.0, 1.0)
        self.warmup_iterations = checks.whole("warmup_iterations", warmup_iterations, 0)
        self.warmup_rate = checks.between("warmup_rate", warmup_rate, 0.0, np.inf)
        self.learn_inducing = bool(learn_inducing)
        self.inducing_inputs = settings.inducing_inputs(inducing_inputs, self.inducing)

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, layout: Layout, X: Array, y: Array) -> OSGPState:
        """Learn from the batch by Titsias' bound."""
        h = learning.initial(self.kernel, self.noise, layout.columns, layout.dtype)
        memory = window.fill(X, y, jnp.ones((), X.dtype), X.shape[0])  # gaps have weight 0
        points = settings.place(self.inducing_inputs, "greedy", h.kernel, memory, X.shape[0], self.inducing)
        skipped = jnp.zeros((), jnp.int32)
        if X.shape[0] > 0 and self.warmup_iterations > 0:
            h, points, skipped = self._warm_up(h, points, memory)
        h = _floored(h, X)
        Kuu, s = self._batch(h, points, memory)
        Phi, b = s.Phi / h.noise[:, None, None], s.b / h.noise
        q = _posterior(Kuu, Phi, b)
        return OSGPState(
            points=points,
            born=jnp.arange(self.inducing, dtype=jnp.int32) - self.inducing,
            hyperparameters=h,
            Kuu=Kuu,
            Phi=Phi,
            b=b,
            posterior=q,
            optimizer=() if self.restart else learning.begin(learning.adam(self.rate), h, points.U),
            samples=jnp.zeros((), jnp.int32),
            skipped=skipped,
            repaired=q.repairs,
            layout=layout,
        )

    def forecast(self, state: OSGPState, X: Array) -> Gaussian:
        """Predictive distribution of the sparse posterior."""
        h = state.hyperparameters
        mean, latent = bound.predict(state.posterior, inducing.cross(h.kernel, state.points, X), h.kernel(X))
        return Gaussian(mean, latent + h.noise, jnp.broadcast_to(h.noise, mean.shape))

    def learn(self, state: OSGPState, x: Array, y: Array, elapsed: Array) -> OSGPState:  # noqa: ARG002 (nothing is forgotten)
        """Maximise the streaming bound for an iteration or more, then project the past on what came out."""
        observed = jnp.all(jnp.isfinite(y)) & jnp.all(jnp.isfinite(x))
        return only_if(observed, lambda state: self._adapt(state, x, y), state)

    def rescale(self, state: OSGPState, units: Units) -> OSGPState:
        """Inputs and pseudo-observations in other units; their precision is a share of a unit and stays."""
        points, used = state.points, state.points.used[:, None]
        inverse_K = state.posterior.inverse_L.T @ state.posterior.inverse_L
        precision = inverse_K @ state.Phi @ inverse_K  # P×M×M, D⁻¹
        shift = jnp.sum(jnp.where(used[:, 0], precision, 0.0), -1).T * units.y_centre  # M×P
        eta = (inverse_K @ state.b - shift) / units.y_scale  # M×P, S⁻¹m
        points = replace(points, U=jnp.where(used, units.inputs(points.U), 0.0))
        Kuu = self._gram(state.hyperparameters.kernel, points)
        Phi, b = Kuu @ precision @ Kuu, Kuu @ eta
        return replace(state, points=points, Kuu=Kuu, Phi=Phi, b=b, posterior=_posterior(Kuu, Phi, b))

    # ---- a step ------------------------------------------------------------------------------------------------------

    def _adapt(self, state: OSGPState, x: Array, y: Array) -> OSGPState:
        points, born = self._admit(state, x)
        past = _past(state, born == state.born)
        rates = jax.tree.map(lambda leaf: jnp.full_like(leaf, self.rate), state.hyperparameters)
        optimizer = learning.adam(ravel_pytree((rates, jnp.full_like(points.U, self.inducing_rate)))[0])

        def objective(h: Hyperparameters, U: Array) -> Array:
            return self._bound(self._carry(past, h, replace(points, U=U), x, y), h.noise, y)

        climb = learning.ascend(
            objective,
            state.hyperparameters,
            points.U,
            optimizer,
            learning.begin(optimizer, state.hyperparameters, points.U) if self.restart else state.optimizer,
            self.iterations,
        )
        h, points = _floored(climb.positive, x[None]), replace(points, U=climb.free)
        c = self._carry(past, h, points, x, y)
        q = _posterior(c.Kuu, c.Phi, c.b)
        return replace(
            state,
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
            repaired=state.repaired + q.repairs,
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

    def _carry(self, past: _Past, h: Hyperparameters, points: Inducing, x: Array, y: Array) -> _Carried:
        """Past and sample as they look from new inducing inputs and parameters."""
        a, kernel = past.points, h.kernel
        Kuu = self._gram(kernel, points)
        own = jnp.where(points.used, jnp.diagonal(Kuu) - kernel(points.U), 0.0)  # M, the nugget
        nugget = jnp.sum(own) / jnp.maximum(points.count, 1)
        Kaa = inducing.gram(kernel, a, jnp.zeros_like(nugget), nugget)
        Kau = jnp.where(a.used[:, None] & points.used, kernel(a.U, points.U), 0.0)
        Kau = Kau + jnp.eye(self.inducing, dtype=Kuu.dtype) * jnp.where(past.stays & a.used, nugget, 0.0)
        T = jnp.eye(self.inducing, dtype=Kuu.dtype) + past.inverse_K @ (Kau - past.K)  # K'⁻¹ k(a, u)
        k = inducing.cross(kernel, points, x[None])  # M×1
        Phi = T.T @ past.Phi @ T + k @ k.T / h.noise[:, None, None]
        b = T.T @ past.b + k * (y / h.noise)
        kappa = jnp.sum(past.precision * Kaa, (-2, -1)) + kernel(x[None])[0] / h.noise
        return _Carried(Kuu, Phi, b, kappa)

    def _bound(self, c: _Carried, noise: Array, y: Array) -> Array:
        """F but for what does not depend on the inducing inputs and parameters."""

        def one(Phi: Array, b: Array, kappa: Array) -> Array:
            return bound.bound(c.Kuu, _weightless(Phi, b, kappa), jnp.ones_like(noise[:1]))

        F = jax.vmap(one)(c.Phi, c.b.T, c.kappa)  # P
        return jnp.sum(F) - 0.5 * jnp.sum(jnp.log(noise) + y**2 / noise)

    # ---- settings put to use -----------------------------------------------------------------------------------------

    def _warm_up(self, h: Hyperparameters, points: Inducing, memory: Window) -> tuple[Hyperparameters, Inducing, Array]:
        """Learn from the batch: hyperparameters and, if so set, the inducing inputs."""

        def objective(h: Hyperparameters, free: Array | None) -> Array:
            here = points if free is None else replace(points, U=free)
            return bound.bound(*self._batch(h, here, memory), h.noise)

        free = points.U if self.learn_inducing else None
        optimizer = learning.adam(self.warmup_rate)
        begun = learning.begin(optimizer, h, free)
        climb = learning.ascend(objective, h, free, optimizer, begun, self.warmup_iterations)
        return climb.positive, points if climb.free is None else replace(points, U=climb.free), climb.skipped

    def _batch(self, h: Hyperparameters, points: Inducing, memory: Window) -> tuple[Array, Statistics]:
        """Kuu and the statistics of a batch."""
        Kux = inducing.cross(h.kernel, points, memory.X)
        return self._gram(h.kernel, points), bound.statistics(Kux, h.kernel(memory.X), memory.w, memory.y)

    def _gram(self, kernel: Covariance, points: Inducing) -> Array:
        nugget = jnp.asarray(self.nugget, points.U.dtype)
        return inducing.gram(kernel, points, nugget, jnp.zeros_like(nugget))


def _floored(h: Hyperparameters, X: Array) -> Hyperparameters:
    """Keep the noise above the rounding of Φ: with 1/σ² in the weights, no digit is left of I beside a larger one."""
    floor = settings.default_jitter(X.dtype) * jnp.mean(h.kernel(X)) if X.shape[0] > 0 else 0.0
    return replace(h, noise=jnp.maximum(h.noise, floor))


def _weightless(Phi: Array, b: Array, kappa: Array) -> Statistics:
    """Statistics of one output, 1/σ² taken into the weights; what the constant terms need is left out."""
    return Statistics(jnp.zeros_like(kappa), jnp.zeros_like(b[:1]), b[:, None], Phi, kappa)


def _posterior(Kuu: Array, Phi: Array, b: Array) -> Posterior:
    inverse_L, repairs = bound.inverse_root(Kuu)

    def one(Phi: Array, b: Array) -> Posterior:
        return bound.posterior(inverse_L, _weightless(Phi, b, jnp.zeros_like(b[0])), jnp.ones_like(b[:1]))

    q = jax.vmap(one)(Phi, b.T)
    return Posterior(inverse_L, q.C[:, 0], q.alpha[:, :, 0].T, repairs + jnp.sum(q.repairs))


def _past(state: OSGPState, stays: Array) -> _Past:
    inverse_L = state.posterior.inverse_L
    inverse_K = inverse_L.T @ inverse_L
    precision = inverse_K @ state.Phi @ inverse_K
    return _Past(state.points, stays, state.Kuu, inverse_K, state.Phi, state.b, precision)
