"""The λ-weighted variational bound and its posterior in JAX: `driftgp.gp.bound` for rivals that differentiate it.

The formulas and letters are those of `driftgp.gp.bound`. Here the bound is a differentiable function of Kuu, of the
statistics and of the noise, with the derivative of `driftgp.gp.bound.gradient` as its rule.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from driftgp.gp.bound import REPAIRS


class Statistics(eqx.Module):
    """Everything that the bound and the posterior know of the data."""

    n: Array  # effective number of samples
    yy: Array  # P
    b: Array  # M×P
    Phi: Array  # M×M
    kappa: Array


class Posterior(eqx.Module):
    """The distribution of the inducing values, in the form that predictions need."""

    inverse_L: Array  # M×M, L⁻¹
    C: Array  # P×M×M, a root of P⁻¹ = CᵀC
    alpha: Array  # M×P


def statistics(Kux: Array, kxx: Array, w: Array, y: Array) -> Statistics:
    """Statistics of samples, from scratch: O(M²T)."""
    weighted = Kux * w  # M×T
    return Statistics(jnp.sum(w), w @ y**2, weighted @ y, weighted @ Kux.T, w @ kxx)


# ---- factors ---------------------------------------------------------------------------------------------------------


def _lower(K: Array) -> Array:
    return lax.linalg.cholesky(K, symmetrize_input=False)


def cholesky(K: Array) -> tuple[Array, Array]:
    """Lower factor of K, and how often a growing multiple of the identity had to be added before it existed.

    K may be a stack of matrices. What is added starts at the rounding error of its trace and grows tenfold each time.
    """
    identity = jnp.eye(K.shape[-1])

    def unfinished(carry: tuple[Array, Array]) -> Array:
        L, repairs = carry
        return ~jnp.all(jnp.isfinite(L[..., -1, -1])) & (repairs < REPAIRS)  # NaN everywhere if the factorisation fails

    def again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        _, repairs = carry
        rounding = jnp.finfo(K.dtype).eps * jnp.trace(K, axis1=-2, axis2=-1)[..., None, None]
        return _lower(K + rounding * 10.0 ** repairs.astype(K.dtype) * identity), repairs + 1

    return lax.while_loop(unfinished, again, (_lower(K), jnp.zeros((), jnp.int32)))


def solve_lower(L: Array, X: Array) -> Array:
    """L⁻¹ X for a lower triangular L, or for a stack of them."""
    return lax.linalg.triangular_solve(L, X, left_side=True, lower=True)


def inverse_root(Kuu: Array) -> tuple[Array, Array]:
    """L⁻¹, and the repairs that the factorisation needed."""
    L, repairs = cholesky(Kuu)
    return solve_lower(L, jnp.eye(L.shape[0])), repairs


# ---- the bound -------------------------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """The bound, split as in `driftgp.gp.bound`; F is their sum."""

    constant: Array
    log_determinant: Array
    quadratic: Array
    trace: Array


class _Factors(NamedTuple):
    """What F and its derivative share."""

    inverse_L: Array  # M×M
    S: Array  # M×M
    white_b: Array  # M×P, L⁻¹ b
    log_diagonal: Array  # P, Σ log diag L_B = ½ log|B|
    a: Array  # M×P, B⁻¹ L⁻¹ b
    explained: Array  # P×M×M, I − B⁻¹


def terms(Kuu: Array, s: Statistics, noise: Array) -> Terms:
    """Terms of the bound (eq. lambda_bound with the trace's sign corrected)."""
    return _terms(_factorise(Kuu, s, 1.0 / noise), s, 1.0 / noise)


def _factorise(Kuu: Array, s: Statistics, beta: Array) -> _Factors:
    """Factorise without repairs: where a factor does not exist, F is NaN and says so."""
    identity = jnp.eye(Kuu.shape[0])
    inverse_L = solve_lower(_lower(Kuu), identity)
    S = inverse_L @ s.Phi @ inverse_L.T
    white_b = inverse_L @ s.b
    L_B = _lower(identity + beta[:, None, None] * S)  # P×M×M
    inverse_L_B = solve_lower(L_B, jnp.broadcast_to(identity, L_B.shape))
    inverse_B = jnp.swapaxes(inverse_L_B, -1, -2) @ inverse_L_B
    return _Factors(
        inverse_L=inverse_L,
        S=S,
        white_b=white_b,
        log_diagonal=jnp.sum(jnp.log(jnp.diagonal(L_B, axis1=-2, axis2=-1)), -1),
        a=jnp.einsum("pij,jp->ip", inverse_B, white_b),
        explained=identity - inverse_B,
    )


def _terms(f: _Factors, s: Statistics, beta: Array) -> Terms:
    return Terms(
        constant=0.5 * s.n * jnp.sum(jnp.log(beta / (2.0 * jnp.pi))),
        log_determinant=-jnp.sum(f.log_diagonal),
        quadratic=jnp.sum(-0.5 * beta * s.yy + 0.5 * beta**2 * jnp.sum(f.white_b * f.a, 0)),
        trace=-0.5 * jnp.sum(beta) * (s.kappa - jnp.trace(f.S)),
    )


@jax.custom_vjp
def bound(Kuu: Array, s: Statistics, noise: Array) -> Array:
    """F, with its own derivative rule: nothing is differentiated through a factorisation."""
    return _sum(terms(Kuu, s, noise))


def _sum(t: Terms) -> Array:
    return t.constant + t.log_determinant + t.quadratic + t.trace


def _bound_forward(Kuu: Array, s: Statistics, noise: Array) -> tuple[Array, tuple[_Factors, Statistics, Array]]:
    beta = 1.0 / noise
    f = _factorise(Kuu, s, beta)
    return _sum(_terms(f, s, beta)), (f, s, beta)


def _bound_backward(residuals: tuple[_Factors, Statistics, Array], dF: Array) -> tuple[Array, Statistics, Array]:
    """The formulas of `driftgp.gp.bound.gradient`."""
    f, s, beta = residuals
    white_dPhi = jnp.einsum("p,pij->ij", beta, f.explained) - (f.a * beta**3) @ f.a.T
    white_dKuu = jnp.sum(f.explained, 0) - (f.a * beta**2) @ f.a.T - jnp.sum(beta) * f.S
    white = jnp.stack([white_dPhi, white_dKuu])  # both through L⁻¹ at once
    dPhi, dKuu = 0.5 * dF * (f.inverse_L.T @ white @ f.inverse_L)
    agreement = beta * jnp.sum(f.a * (f.white_b + f.a), 0)
    dbeta = 0.5 * (s.n / beta - s.yy - s.kappa + jnp.sum(f.explained * f.S, (-2, -1)) + agreement)
    ds = Statistics(
        n=0.5 * dF * jnp.sum(jnp.log(beta / (2.0 * jnp.pi))),
        yy=-0.5 * dF * beta,
        b=dF * beta**2 * (f.inverse_L.T @ f.a),
        Phi=dPhi,
        kappa=-0.5 * dF * jnp.sum(beta),
    )
    return dKuu, ds, -dF * dbeta * beta**2


bound.defvjp(_bound_forward, _bound_backward)


# ---- the posterior ---------------------------------------------------------------------------------------------------


def posterior(inverse_L: Array, s: Statistics, noise: Array) -> tuple[Posterior, Array]:
    """Posterior of the inducing values (eq. adap_pred_dist), and the repairs that its factorisations needed."""
    beta = 1.0 / noise
    S = inverse_L @ s.Phi @ inverse_L.T
    L_B, repairs = cholesky(jnp.eye(S.shape[0]) + beta[:, None, None] * S)
    C = solve_lower(L_B, jnp.broadcast_to(inverse_L, L_B.shape))  # P×M×M
    alpha = jnp.einsum("pij,pi->jp", C, jnp.einsum("pij,jp->pi", C, s.b))  # M×P, P⁻¹ b
    return Posterior(inverse_L, C, beta * alpha), repairs


def predict(q: Posterior, Kus: Array, kss: Array) -> tuple[Array, Array]:
    """Mean and latent variance at new points, N×P each; rounding may not make a variance negative."""
    mean = Kus.T @ q.alpha  # N×P
    prior = kss - jnp.sum((q.inverse_L @ Kus) ** 2, 0)  # N, what the inducing points leave unexplained
    explained = jnp.sum((q.C @ Kus) ** 2, -2)  # P×N
    return mean, jnp.maximum(prior + explained, 0.0).T
