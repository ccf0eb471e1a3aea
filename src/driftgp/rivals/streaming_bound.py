"""The streaming bound: an old posterior as pseudo-observations, seen from new inducing inputs and parameters.

T. D. Bui, C. V. Nguyen, R. E. Turner, "Streaming Sparse Gaussian Process Approximations", NIPS 2017: the collapsed
variational bound for regression.

Before a sample the inducing inputs are a, the parameters θ', K' = k'(a, a) and the posterior q(a) = N(m, S). The
bound puts the ratio q(a)/p(a | θ') ∝ exp(−½ aᵀ D⁻¹ a + aᵀ S⁻¹ m), D⁻¹ = S⁻¹ − K'⁻¹, in the place of the past, as a
likelihood of the function at a, and is maximised over new inducing inputs u and new parameters θ:

    F(u, θ) = E_q [log p(y | f(x)) + log q(a)/p(a | θ')] − KL(q(u) ‖ p(u | θ))

**What differs from the published formulas.** Those invert D⁻¹, a difference of two matrices that agree but for
what was learned, and factorise it, which is where they fail. Nothing is subtracted or inverted here. Every
posterior of this form has D⁻¹ = K'⁻¹ Φ K'⁻¹ and S⁻¹m = K'⁻¹ b, where Φ and b are those of `driftgp.gp.bound`, with
1/σ² taken into the weights. So Φ and b are what the state keeps, and all that a step does to them is to project
and to add. With k = k(u, x),

    T = K'⁻¹ k(a, u)        Φ ← Tᵀ Φ T + k kᵀ/σ²        b ← Tᵀ b + k y/σ²
    κ = tr(D⁻¹ k(a, a)) + k_xx/σ²

Φ is positive semidefinite by construction. With these statistics and unit noise, F is that of `driftgp.gp.bound`, less
½ log σ² + ½ y²/σ² and constants. Its factors are those of Kuu and of I + L⁻¹ Φ L⁻ᵀ, which has no eigenvalue below 1. T
is computed as I + K'⁻¹ (k(a, u) − K'), the identity as long as nothing moves: then Φ and b are those of all the data,
and OSGP is Titsias' batch approximation.

In place of a jitter the points have a nugget. The value of a point is the function plus an independent part, which the
point keeps when it moves. So the nugget stands in k(a, u) too, where a point stays. If it is as small as a jitter, D⁻¹
is very stiff in directions without samples: neither inputs nor parameters can move without losing the past. At a few
per cent of the variance they can.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftgp.rivals import jax_bound as bound
from driftgp.rivals import jax_inducing as inducing
from driftgp.rivals.jax_bound import Posterior, Statistics
from driftgp.rivals.jax_inducing import Inducing
from driftgp.rivals.jax_learning import Hyperparameters


class Past(NamedTuple):
    """What a step keeps of the old posterior."""

    points: Inducing
    stays: Array  # M, which points keep their slot
    K: Array  # M×M, K'
    inverse_K: Array  # M×M
    Phi: Array  # P×M×M
    b: Array  # M×P
    precision: Array  # P×M×M, D⁻¹ = K'⁻¹ Φ K'⁻¹


class Carried(NamedTuple):
    """What the bound and the posterior need."""

    Kuu: Array  # M×M
    Phi: Array  # P×M×M
    b: Array  # M×P
    kappa: Array  # P


def gram(kernel: Any, points: Inducing, nugget: float) -> Array:
    """Kuu, with the nugget as a share of the variance."""
    return inducing.gram(kernel, points, nugget, 0.0)


def past(points: Inducing, stays: Array, K: Array, inverse_L: Array, Phi: Array, b: Array) -> Past:
    """The old posterior, of which the points that do not stay lose their slot."""
    inverse_K = inverse_L.T @ inverse_L
    return Past(points, stays, K, inverse_K, Phi, b, inverse_K @ Phi @ inverse_K)


def carry(old: Past, h: Hyperparameters, points: Inducing, nugget: float, x: Array, y: Array) -> Carried:
    """Past and sample as they look from new inducing inputs and parameters."""
    a, kernel = old.points, h.kernel
    Kuu = gram(kernel, points, nugget)
    own = jnp.where(points.used, jnp.diagonal(Kuu) - kernel(points.U), 0.0)  # M, the nugget as it is added
    added = jnp.sum(own) / jnp.maximum(points.count, 1)
    Kaa = inducing.gram(kernel, a, 0.0, added)
    Kau = jnp.where(a.used[:, None] & points.used, kernel(a.U, points.U), 0.0)
    identity = jnp.eye(Kuu.shape[0])
    Kau = Kau + identity * jnp.where(old.stays & a.used, added, 0.0)
    T = identity + old.inverse_K @ (Kau - old.K)  # K'⁻¹ k(a, u)
    k = inducing.cross(kernel, points, x[None])  # M×1
    Phi = T.T @ old.Phi @ T + k @ k.T / h.noise[:, None, None]
    b = T.T @ old.b + k * (y / h.noise)
    kappa = jnp.sum(old.precision * Kaa, (-2, -1)) + kernel(x[None])[0] / h.noise
    return Carried(Kuu, Phi, b, kappa)


def objective(c: Carried, noise: Array, y: Array) -> Array:
    """F but for what does not depend on the inducing inputs and parameters."""

    def one(Phi: Array, b: Array, kappa: Array) -> Array:
        return bound.bound(c.Kuu, _weightless(Phi, b, kappa), jnp.ones_like(noise[:1]))

    F = jax.vmap(one)(c.Phi, c.b.T, c.kappa)  # P
    return jnp.sum(F) - 0.5 * jnp.sum(jnp.log(noise) + y**2 / noise)


def posterior(Kuu: Array, Phi: Array, b: Array) -> tuple[Posterior, Array]:
    """Posterior of the inducing values, and the repairs that its factorisations needed."""
    inverse_L, repairs = bound.inverse_root(Kuu)

    def one(Phi: Array, b: Array) -> tuple[Posterior, Array]:
        return bound.posterior(inverse_L, _weightless(Phi, b, jnp.zeros_like(b[0])), jnp.ones_like(b[:1]))

    q, more = jax.vmap(one)(Phi, b.T)
    return Posterior(inverse_L, q.C[:, 0], q.alpha[:, :, 0].T), repairs + jnp.sum(more)


def _weightless(Phi: Array, b: Array, kappa: Array) -> Statistics:
    """Statistics of one output, 1/σ² taken into the weights; what the constant terms need is left out."""
    return Statistics(jnp.zeros_like(kappa), jnp.zeros_like(b[:1]), b[:, None], Phi, kappa)
