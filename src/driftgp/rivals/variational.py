"""An explicit Gaussian over whitened inducing values, and the bound it gives.

With Kuu = L Lᵀ the inducing values are u = L v, so that v has the prior N(0, I). For q(v) = N(m, R Rᵀ) and A = L⁻¹ Kux

    mean_i = a_iᵀ m        variance_i = k_ii − |a_i|² + |Rᵀ a_i|²
    F(q) = Σ w_i E_q[log N(y_i | f_i, σ²)] − KL(q ‖ N(0, I))

F(q) is never above the bound of `driftgp.gp.bound`, and equals it at q's optimum: precision R⁻ᵀ R⁻¹ = I + β A W Aᵀ and
m = β R Rᵀ A W y with β = σ⁻². P outputs have a q each; they share inputs, inducing points and kernel.
"""

from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax import Array

from driftgp.rivals import jax_bound as bound
from driftgp.rivals.jax_bound import Posterior

Score = Literal["expected", "predictive"]
SCORES: tuple[str, ...] = get_args(Score)


class Whitened(NamedTuple):
    """q(v) = N(m, R Rᵀ) for each output."""

    m: Array  # M×P
    R: Array  # P×M×M, triangular


# ---- a differentiable factor -----------------------------------------------------------------------------------------


@jax.custom_vjp
def inverse_root(K: Array) -> Array:
    """L⁻¹ for K = L Lᵀ, or for a stack of such matrices; a failing factorisation is repaired as in `bound.cholesky`.

    From K = L Lᵀ, with Ψ the lower half of a matrix (its diagonal halved): d(L⁻¹) = −Ψ(L⁻¹ dK L⁻ᵀ) L⁻¹. The rule below
    is its transpose, in three products and without a triangular solve.
    """
    L = bound.cholesky(K)[0]
    return bound.solve_lower(L, jnp.broadcast_to(jnp.eye(K.shape[-1]), K.shape))


def _inverse_root_forward(K: Array) -> tuple[Array, Array]:
    C = inverse_root(K)
    return C, C


def _inverse_root_backward(C: Array, dC: Array) -> tuple[Array]:
    identity = jnp.eye(C.shape[-1])
    half = jnp.tril(dC @ C.mT) * (1.0 - 0.5 * identity)
    dK = -C.mT @ half @ C
    return (0.5 * (dK + dK.mT),)


inverse_root.defvjp(_inverse_root_forward, _inverse_root_backward)


# ---- the bound -------------------------------------------------------------------------------------------------------


def marginals(q: Whitened, A: Array, kxx: Array) -> tuple[Array, Array]:
    """Mean and variance of f at every sample, N×P each."""
    explained = jnp.sum((q.R.mT @ A) ** 2, -2)  # P×N
    return A.T @ q.m, (kxx - jnp.sum(A**2, 0) + explained).T


def expected_log_likelihood(mean: Array, variance: Array, y: Array, noise: Array) -> Array:
    """E_q[log N(y | f, σ²)] = log N(y | mean, σ²) − variance/2σ², in closed form, N×P."""
    return -0.5 * (jnp.log(2.0 * jnp.pi * noise) + ((y - mean) ** 2 + variance) / noise)


def predictive_log_likelihood(mean: Array, variance: Array, y: Array, noise: Array) -> Array:
    """log N(y | mean, variance + σ²), N×P: what the published runs scored, which is no bound on the evidence."""
    return expected_log_likelihood(mean, jnp.zeros_like(variance), y, variance + noise)


def divergence(q: Whitened) -> Array:
    """KL(q ‖ N(0, I)) = ½ (tr RRᵀ + mᵀm − M − log|RRᵀ|), summed over outputs."""
    log_determinant = 2.0 * jnp.sum(jnp.log(jnp.abs(jnp.diagonal(q.R, axis1=-2, axis2=-1))))
    return 0.5 * (jnp.sum(q.R**2) + jnp.sum(q.m**2) - q.m.size - log_determinant)


def elbo(q: Whitened, A: Array, kxx: Array, w: Array, y: Array, noise: Array, score: Score = "expected") -> Array:
    """F(q) (eq. F_SVI_lambda): O(M²N)."""
    rule = expected_log_likelihood if score == "expected" else predictive_log_likelihood
    return w @ jnp.sum(rule(*marginals(q, A, kxx), y, noise), -1) - divergence(q)


# ---- natural parameters and predictions ------------------------------------------------------------------------------


class Natural(NamedTuple):
    """q(v) by its natural parameters: precision Λ and Λ m for each output."""

    precision: Array  # P×M×M
    shift: Array  # M×P


def optimum(A: Array, w: Array, y: Array, noise: Array) -> Natural:
    """The best q for a set of samples: Λ = I + β A W Aᵀ, Λ m = β A W y."""
    AW = A * w  # M×N
    S = AW @ A.T
    return Natural(jnp.eye(S.shape[0]) + S / noise[:, None, None], AW @ y / noise)


def from_natural(natural: Natural) -> Whitened:
    """Mean and root: with Λ = G Gᵀ the root is G⁻ᵀ."""
    C = inverse_root(natural.precision)  # P×M×M, G⁻¹
    return Whitened(jnp.einsum("pij,pik,kp->jp", C, C, natural.shift), C.mT)


def to_natural(m: Array, S: Array) -> Natural:
    """Natural parameters of q(v) = N(m, S)."""
    C = inverse_root(S)  # P×M×M
    precision = C.mT @ C
    return Natural(precision, jnp.einsum("pij,jp->ip", precision, m))


def carry_over(q: Whitened, L: Array, inverse_L: Array) -> tuple[Array, Array]:
    """Mean and covariance of v after the first inducing point has gone and a new one has come last.

    L is the factor of Kuu before, `inverse_L` the inverse of the one after. The values that stay, u = L v without the
    first, keep their distribution. The new value has its prior distribution given the others: its v is N(0, 1).
    """
    C = inverse_L[:-1, :-1]
    m = C @ (L @ q.m)[1:]  # (M−1)×P
    root = C @ (L @ q.R)[:, 1:]  # P×(M−1)×M
    S = jnp.zeros_like(q.R).at[:, -1, -1].set(1.0).at[:, :-1, :-1].set(root @ root.mT)
    return jnp.pad(m, ((0, 1), (0, 0))), S


def posterior(q: Whitened, inverse_L: Array) -> Posterior:
    """The distribution of the inducing values in the form that `bound.predict` takes."""
    return Posterior(inverse_L, q.R.mT @ inverse_L, inverse_L.T @ q.m)
