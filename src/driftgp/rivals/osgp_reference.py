"""Streaming sparse GP as the paper ran it: the PyTorch implementation, with what it does otherwise than `osgp`.

The paper took OSGP from https://github.com/wjmaddox/online_gp (models/streaming_sgpr.py), not from the authors of the
method. With a the old inducing inputs, b the new ones, C the precision of the past as seen from them (Φ in
`streaming_bound`) and q(a) = N(m_a, ·), a step of that code is

    C = k_b k_bᵀ/σ² + Tᵀ C_a T        c = k_b y/σ² + Tᵀ (K_a + C_a) K_a⁻¹ m_a        T = K_a⁻¹ k(a, b)
    m_b = K_b (K_b + C)⁻¹ c           S_b = K_b (K_b + C)⁻¹ K_b

where C_a already has the newest sample in it: the posterior counts that sample twice, once with the target that was
predicted. Its bound ignores the covariance between a sample and the pseudo-observations of the past. Q is
block-diagonal there, unlike in the code of Bui, Nguyen and Turner. Parameters, the softplus of a number each, take one
fresh Adam step per sample. The inputs are shaken by up to 1e-4. At every second sample one of them, chosen at random,
is put at x.

Factorisations are tried again with a jitter of 1e-3, 1e-2 and 1e-1, and then given up. The paper's runs leave such a
stream out. Here the step is left out and counted in `failed`. One output only.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from driftgp.rivals import jax_bound as bound
from driftgp.rivals import jax_inducing as inducing_points
from driftgp.rivals import jax_learning as learning
from driftgp.rivals import jax_window as window
from driftgp.rivals import settings
from driftgp.rivals.base import Normal, Rival
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units, Window
from driftgp.rivals.loops import only_if

_SHAKE = 1e-4
_JITTERS = (1e-3, 1e-2, 1e-1)
_LEAST = 1e-6  # added by GPyTorch where nothing else is, in single precision
_SINGLE = float(np.finfo(np.float32).eps)  # the published runs were in single precision, where C has no factor sooner


class Past(NamedTuple):
    """The model before: what the streaming bound holds on to."""

    U: Array  # M×D
    K: Array  # M×M
    mean: Array  # M
    C: Array  # M×M


class ReferenceState(eqx.Module):
    """What the implementation remembers."""

    U: Array  # M×D
    hyperparameters: Hyperparameters
    mean: Array  # M
    covariance: Array  # M×M
    past: Past
    key: Array
    samples: Array  # since the warm-up
    failed: Array  # steps left out because a factorisation failed


class ReferenceOSGP(Rival):
    """Streaming sparse GP by the implementation that the paper ran; see `OSGP` for one that does not fail.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = ReferenceOSGP(inducing=6)
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> bool(abs(model.predict(state, X[41:42]).mean[0] - np.sin(6 * X[41, 0])) < 0.2)
    True

    Args:
        kernel: covariance with its starting parameters; squared exponential by default.
        noise: starting variance of the noise.
        inducing: inducing points M.
        rate: Adam's rate for the hyperparameters.
        inducing_rate: its rate for the inducing inputs.
        resample: samples from one to the next that takes the place of a random inducing input; 0 for none.
        jitter: added to Kuu.
        warmup_iterations: Adam iterations on the warm-up batch.
        warmup_rate: their first rate, a tenth of it for the inducing inputs. It falls like half a cosine over twice
            the number of iterations.
        inducing_inputs: first inducing inputs, at most M rows, in place of a placement.
        placement: "greedy" takes the samples of the warm-up least explained by those taken before, "recent" every
            second one of the last 2M.
        seed: for what is drawn at random.
    """

    noise: Any = settings.noise(0.6931)
    inducing: int = settings.whole(10, 1)
    rate: float = settings.number(0.01, open_low=False)
    inducing_rate: float = settings.number(0.001, open_low=False)
    resample: int = settings.whole(2, 0)
    jitter: float = settings.share(1e-3, open_low=True)
    warmup_iterations: int = settings.whole(200, 0)
    warmup_rate: float = settings.number(0.1)
    inducing_inputs: Any = settings.inputs()
    placement: str = settings.one_of("greedy", inducing_points.PLACEMENTS)
    seed: Any = settings.seed()

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse several outputs."""
        if outputs > 1:
            raise ValueError(f"ReferenceOSGP takes one output; got {outputs}")
        super().accept(inputs, outputs, rows)

    # ---- what a rival provides ---------------------------------------------------------------------------------------

    def begin(self, X: Array, y: Array) -> ReferenceState:
        """Climb Titsias' bound on the batch, then take it for the first step."""
        h = learning.initial(self.kernel, self.noise, X.shape[1], y.shape[1])
        memory = window.fill(X, y, 1.0, X.shape[0])
        points = inducing_points.place(
            self.inducing_inputs, self.placement, h.kernel, memory, X.shape[0], self.inducing
        )
        # this implementation has no free slots: what is not placed lies where an input of zeros would, shaken apart
        U = points.U + jnp.where(points.used, 0.0, 1e-2 * jnp.arange(self.inducing))[:, None]
        if X.shape[0] > 0 and self.warmup_iterations > 0:
            h, U = self._warm_up(h, U, memory)
        K = self._gram(h, U)
        C = _precision(h, U, memory.X, memory.w)
        c = h.kernel(U, memory.X) @ (memory.w * memory.y[:, 0]) / h.noise[0]
        mean = K @ jnp.linalg.solve(K + C, c)
        key, shake = jax.random.split(jax.random.key(self.seed))
        state = ReferenceState(
            U=U,
            hyperparameters=h,
            mean=mean,
            covariance=K,
            past=Past(U, K, mean, C),
            key=jax.random.key_data(key),
            samples=jnp.zeros((), jnp.int32),
            failed=jnp.zeros((), jnp.int32),
        )
        return self._conditioned(state, self._shaken(U, shake), memory.X, memory.y[:, 0], memory.w)

    def look(self, state: ReferenceState, X: Array) -> Normal:
        """Predictive distribution of the sparse posterior."""
        h = state.hyperparameters
        A = jnp.linalg.solve(self._gram(h, state.U), h.kernel(state.U, X))  # M×N
        latent = h.kernel(X) - jnp.sum(A * h.kernel(state.U, X), 0) + jnp.sum(A * (state.covariance @ A), 0)
        mean = (A.T @ state.mean)[:, None]
        variance = jnp.maximum(latent, 0.0)[:, None] + h.noise
        return Normal(mean, variance, jnp.broadcast_to(h.noise, mean.shape))

    def step(self, state: ReferenceState, x: Array, y: Array, elapsed: Array) -> ReferenceState:  # noqa: ARG002
        """One gradient step, then the posterior from new inducing inputs; time means nothing to this model."""
        return only_if(window.observed(x, y), lambda state: self._adapt(state, x, y[0]), state)

    def in_units(self, state: ReferenceState, units: Units) -> ReferenceState:
        """Inputs and means in other units; precisions are shares of a unit and stay."""
        centre, scale = units.y_centre[0], units.y_scale[0]
        past = state.past
        moved = past._replace(U=units.inputs(past.U), mean=(past.mean - centre) / scale)
        return replace(state, U=units.inputs(state.U), mean=(state.mean - centre) / scale, past=moved)

    # ---- a step ------------------------------------------------------------------------------------------------------

    def _adapt(self, state: ReferenceState, x: Array, y: Array) -> ReferenceState:
        key, shake, choice = jax.random.split(jax.random.wrap_key_data(state.key), 3)
        h, U = self._climb(state, x, y)
        C = _factorised(_precision(h, U, x[None], jnp.ones(1)) + self._carried(state.past, h, U))
        K = self._gram(h, U)
        moved = self._shaken(U, shake)
        if self.resample > 0:
            slot = jnp.arange(self.inducing) == jax.random.randint(choice, (), 0, self.inducing)
            due = state.samples % self.resample == self.resample - 1
            moved = jnp.where((due & slot)[:, None], x, moved)
        before = replace(state, hyperparameters=h, past=Past(U, K, state.mean, C))
        after = self._conditioned(before, moved, x[None], y[None], jnp.ones(1))
        sound = jnp.all(jnp.isfinite(after.mean)) & jnp.all(jnp.isfinite(after.covariance)) & jnp.all(jnp.isfinite(C))
        kept = jax.tree.map(lambda new, old: jnp.where(sound, new, old), after, state)
        return replace(
            kept,
            key=jax.random.key_data(key),
            samples=state.samples + 1,
            failed=state.failed + ~sound,
        )

    def _conditioned(self, state: ReferenceState, U: Array, X: Array, y: Array, w: Array) -> ReferenceState:
        """The posterior at U of the past, and of samples that the past may know already."""
        h, past = state.hyperparameters, state.past
        K = h.kernel(U, U) + _LEAST * jnp.eye(self.inducing)  # without the jitter, here
        T = jnp.linalg.solve(past.K, h.kernel(past.U, U))  # M×M
        C = _factorised(_precision(h, U, X, w) + T.T @ past.C @ T)
        c = h.kernel(U, X) @ (w * y) / h.noise[0] + T.T @ (past.mean + past.C @ jnp.linalg.solve(past.K, past.mean))
        L = _lower(K + C)
        half = bound.solve_lower(L, K)  # M×M
        mean = half.T @ bound.solve_lower(L, c[:, None])[:, 0]
        return replace(state, U=U, mean=mean, covariance=half.T @ half)

    def _climb(self, state: ReferenceState, x: Array, y: Array) -> tuple[Hyperparameters, Array]:
        """A fresh Adam step on the bound with two blocks: the rate, in the direction of each derivative."""
        past = state.past
        C = past.C + _SINGLE * jnp.trace(past.C) * jnp.eye(self.inducing)
        Sigma = past.K @ jnp.linalg.solve(C, past.K) + self.jitter * jnp.eye(self.inducing)
        pseudo = past.K @ jnp.linalg.solve(C, past.mean) + past.mean

        def objective(h: Hyperparameters, U: Array) -> Array:
            K, kx, Ka = self._gram(h, U), h.kernel(U, x[None])[:, 0], h.kernel(U, past.U)
            solved = jnp.linalg.solve(K, jnp.concatenate([kx[:, None], Ka], 1))
            q, Q = kx @ solved[:, 0], Ka.T @ solved[:, 1:]
            variance = q + h.noise[0] + self.jitter
            density = -0.5 * (jnp.log(variance) + y**2 / variance)
            L = jnp.linalg.cholesky(Q + Sigma + self.jitter * jnp.eye(self.inducing))
            white = bound.solve_lower(L, pseudo[:, None])
            density = density - jnp.sum(jnp.log(jnp.diagonal(L))) - 0.5 * jnp.sum(white**2)
            prior = lax.stop_gradient(h.kernel(past.U, past.U))
            unexplained = (h.kernel(x[None])[0] - q) / h.noise[0] + jnp.trace(jnp.linalg.solve(Sigma, prior - Q))
            return density - 0.5 * unexplained

        slopes = jax.grad(objective, argnums=(0, 1))(state.hyperparameters, state.U)
        sound = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(slopes)]))
        by_h, by_U = jax.tree.map(lambda slope: jnp.where(sound, jnp.sign(slope), 0.0), slopes)
        h = jax.tree.map(lambda value, sign: _softplus_moved(value, self.rate * sign), state.hyperparameters, by_h)
        return h, state.U + self.inducing_rate * by_U

    def _carried(self, past: Past, h: Hyperparameters, U: Array) -> Array:
        T = jnp.linalg.solve(past.K, h.kernel(past.U, U))
        return T.T @ past.C @ T

    def _gram(self, h: Hyperparameters, U: Array) -> Array:
        return h.kernel(U, U) + self.jitter * jnp.eye(self.inducing)

    def _shaken(self, U: Array, key: Array) -> Array:
        return U + jax.random.uniform(key, U.shape, minval=-_SHAKE, maxval=_SHAKE)

    # ---- the warm-up -------------------------------------------------------------------------------------------------

    def _warm_up(self, h: Hyperparameters, U: Array, memory: Window) -> tuple[Hyperparameters, Array]:
        """Titsias' bound, which the notebooks' explicit q climbs to, at a rate that falls as half a cosine."""

        def objective(h: Hyperparameters, U: Array) -> Array:
            s = bound.statistics(h.kernel(U, memory.X), h.kernel(memory.X), memory.w, memory.y)
            return bound.bound(self._gram(h, U), s, h.noise)

        rates = jax.tree.map(lambda leaf: jnp.full_like(leaf, self.warmup_rate), h)
        rates = ravel_pytree((rates, jnp.full_like(U, 0.1 * self.warmup_rate)))[0]
        optimizer = learning.annealed(rates, 2.0 * self.warmup_iterations)
        begun = learning.begun(optimizer, h, U)
        climb = learning.ascend(objective, h, U, optimizer, begun, self.warmup_iterations)
        return climb.positive, climb.free


def _precision(h: Hyperparameters, U: Array, X: Array, w: Array) -> Array:
    """What samples say of the function, as seen from U: K_ux W K_xu/σ²."""
    k = h.kernel(U, X)
    return (k * w) @ k.T / h.noise[0]


def _factorised(C: Array) -> Array:
    """C with the jitter that it needs to have a factor in single precision."""
    identity = jnp.eye(C.shape[0])
    rounding = _SINGLE * jnp.trace(C)
    made, sound = C, jnp.isfinite(jnp.linalg.cholesky(C - rounding * identity)[-1, -1])
    for jitter in _JITTERS:
        more = C + jitter * identity
        made = jnp.where(sound, made, more)
        sound = sound | jnp.isfinite(jnp.linalg.cholesky(more - rounding * identity)[-1, -1])
    return jnp.where(sound, made, jnp.nan)


def _softplus_moved(value: Array, step: Array) -> Array:
    """A positive parameter, the softplus log(1 + eᵘ) of a number u, after a step in u."""
    return jax.nn.softplus(value + jnp.log(-jnp.expm1(-value)) + step)


def _lower(K: Array) -> Array:
    return lax.linalg.cholesky(K, symmetrize_input=False)
