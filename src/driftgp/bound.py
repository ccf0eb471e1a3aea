"""The λ-weighted variational bound, its derivative, and the posterior it implies.

A sample i has weight w_i, W = diag(w). The data enter only through five statistics:

    n = Σ w_i    yy = Σ w_i y_i²    b = Kux W y    Φ = Kux W Kxu    κ = Σ w_i k_ii

With β = σ⁻², Kuu = L Lᵀ, S = L⁻¹ Φ L⁻ᵀ, B = I + β S = L_B L_Bᵀ, C = L_B⁻¹ L⁻¹ and P = Kuu + β Φ (so P⁻¹ = Cᵀ C):

    F = −½ n log 2πσ² − Σ log diag L_B − ½ β yy + ½ β² |C b|² − ½ β (κ − tr S)
    mean = k_u*ᵀ α,  α = β P⁻¹ b        variance = k** − |L⁻¹ k_u*|² + |C k_u*|²

B has no eigenvalue under 1, which is why its factor, not that of P, is the one to compute. P outputs that share inputs
share Kuu, Φ, κ and n; yy, b and σ² have an entry each, and F is the sum over outputs.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

# A factorisation that fails is tried again at most this often: the last try adds more than the matrix's own size.
_REPAIRS = 17
# From so many outputs on, one eigendecomposition of the S that they share costs less than a factor of B for each.
MANY = 11


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
    C: Array  # P×M×M, a root of P⁻¹ = CᵀC: L_B⁻¹ L⁻¹, or another one
    alpha: Array  # M×P
    repairs: Array  # factorisations that needed more jitter


# ---- statistics ------------------------------------------------------------------------------------------------------


@jax.custom_vjp
def statistics(Kux: Array, kxx: Array, w: Array, y: Array) -> Statistics:
    """Statistics of a window, from scratch: O(M²T).

    All five are entries of one product, which costs less than the five: (Kux; yᵀ; 1ᵀ) W (Kux; yᵀ; kxxᵀ; 1ᵀ)ᵀ.
    """
    M, P = Kux.shape[0], y.shape[1]
    ones = jnp.ones_like(w)[None]
    G = jnp.concatenate([Kux, y.T, ones]) * w @ jnp.concatenate([Kux, y.T, kxx[None], ones]).T  # (M+P+1)×(M+P+2)
    return Statistics(G[-1, -1], jnp.diagonal(G[M : M + P, M : M + P]), G[:M, M : M + P], G[:M, :M], G[-1, -2])


def _statistics_forward(Kux: Array, kxx: Array, w: Array, y: Array) -> tuple[Statistics, tuple[Array, ...]]:
    return statistics(Kux, kxx, w, y), (Kux, kxx, w, y)


def _statistics_backward(residuals: tuple[Array, ...], d: Statistics) -> tuple[Array, ...]:
    """∂F/∂Kux = 2 (∂F/∂Φ) Kux W + (∂F/∂b)(W y)ᵀ, with the symmetric part of ∂F/∂Φ."""
    Kux, kxx, w, y = residuals
    G = 0.5 * (d.Phi + d.Phi.T) @ Kux  # M×T
    by = d.b @ y.T  # M×T
    dw = d.n + y**2 @ d.yy + jnp.sum(Kux * (G + by), 0) + d.kappa * kxx
    dy = 2.0 * w[:, None] * y * d.yy + w[:, None] * (Kux.T @ d.b)
    return (2.0 * G + by) * w, d.kappa * w, dw, dy


statistics.defvjp(_statistics_forward, _statistics_backward)


@jax.custom_vjp
def renewed(Kux: Array, kxx: Array, w: Array, y: Array, Phi: Array, new: Array) -> Statistics:
    """`statistics`, where Φ is known already but for a new row (a mask, M): O(MT).

    Its derivative is that of `statistics`: it is the same function, not a function of what is known.
    """
    phi = Kux @ (new.astype(w.dtype) @ (Kux * w))  # M
    Phi = jnp.where(new[:, None], phi[None, :], jnp.where(new[None, :], phi[:, None], Phi))
    return Statistics(jnp.sum(w), w @ y**2, Kux @ (w[:, None] * y), Phi, w @ kxx)


def _renewed_forward(
    Kux: Array, kxx: Array, w: Array, y: Array, Phi: Array, new: Array
) -> tuple[Statistics, tuple[Array, ...]]:
    return renewed(Kux, kxx, w, y, Phi, new), (Kux, kxx, w, y)


def _renewed_backward(residuals: tuple[Array, ...], d: Statistics) -> tuple[Array | None, ...]:
    return *_statistics_backward(residuals, d), None, None


renewed.defvjp(_renewed_forward, _renewed_backward)


def forget(s: Statistics, factor: Array) -> Statistics:
    """Shrink every weight by one factor."""
    return jax.tree.map(lambda value: factor * value, s)


def absorb(s: Statistics, k: Array, kxx: Array, y: Array, w: Array) -> Statistics:
    """Add one sample with weight w (eq. data_add), or with −w take it out again (eq. data_remove): O(M²)."""
    return Statistics(
        n=s.n + w,
        yy=s.yy + w * y**2,
        b=s.b + w * k[:, None] * y,
        Phi=s.Phi + w * k[:, None] * k[None, :],
        kappa=s.kappa + w * kxx,
    )


# ---- factors ---------------------------------------------------------------------------------------------------------


def _lower(K: Array) -> Array:
    return lax.linalg.cholesky(K, symmetrize_input=False)


def cholesky(K: Array) -> tuple[Array, Array]:
    """Lower factor of K, and how often a growing multiple of the identity had to be added before it existed.

    K may be a stack of matrices. What is added starts at the rounding error of its trace and grows tenfold each time.
    """
    identity = jnp.eye(K.shape[-1], dtype=K.dtype)

    def unfinished(carry: tuple[Array, Array]) -> Array:
        L, repairs = carry
        return ~jnp.all(jnp.isfinite(L[..., -1, -1])) & (repairs < _REPAIRS)  # NaN everywhere if there is none

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
    return solve_lower(L, jnp.eye(L.shape[0], dtype=L.dtype)), repairs


# ---- the bound -------------------------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """The bound, split as in the module's first formula; F is their sum."""

    constant: Array
    log_determinant: Array
    quadratic: Array
    trace: Array


class Factors(NamedTuple):
    """What F and its derivative share."""

    inverse_L: Array  # M×M
    S: Array  # M×M
    white_b: Array  # M×P, L⁻¹ b
    B: "Inverses"


class Inverses(NamedTuple):
    """What F and its derivative need of B⁻¹; B = I + β S differs between outputs in β alone."""

    log_diagonal: Array  # P, Σ log diag L_B = ½ log|B|
    a: Array  # M×P, B⁻¹ L⁻¹ b
    trace: Array  # P, tr((I − B⁻¹) S)
    left: Array  # M×M, Σ (I − B⁻¹) over outputs
    weighted_left: Array  # M×M, Σ β (I − B⁻¹) over outputs


def terms(Kuu: Array, s: Statistics, noise: Array) -> Terms:
    """Terms of the bound (eq. lambda_bound with the trace's sign corrected)."""
    return _terms(_factorise(Kuu, s, 1.0 / noise), s, 1.0 / noise)


def _factorise(Kuu: Array, s: Statistics, beta: Array) -> Factors:
    """Factorise without repairs: where a factor does not exist, F is NaN and says so."""
    inverse_L = solve_lower(_lower(Kuu), jnp.eye(Kuu.shape[0], dtype=Kuu.dtype))
    S = inverse_L @ s.Phi @ inverse_L.T
    white_b = inverse_L @ s.b
    invert = _invert_by_factors if beta.shape[0] < MANY else _invert_by_eigenvalues
    return Factors(inverse_L, S, white_b, invert(S, beta, white_b))


def _invert_by_factors(S: Array, beta: Array, white_b: Array) -> Inverses:
    """O(M³) for each output."""
    identity = jnp.eye(S.shape[0], dtype=S.dtype)
    L_B = _lower(identity + beta[:, None, None] * S)  # P×M×M
    inverse_L_B = solve_lower(L_B, jnp.broadcast_to(identity, L_B.shape))
    inverse_B = jnp.swapaxes(inverse_L_B, -1, -2) @ inverse_L_B
    unexplained = identity - inverse_B  # P×M×M
    return Inverses(
        log_diagonal=jnp.sum(jnp.log(jnp.diagonal(L_B, axis1=-2, axis2=-1)), -1),
        a=jnp.einsum("pij,jp->ip", inverse_B, white_b),
        trace=jnp.sum(unexplained * S, (-2, -1)),
        left=jnp.sum(unexplained, 0),
        weighted_left=jnp.einsum("p,pij->ij", beta, unexplained),
    )


def _invert_by_eigenvalues(S: Array, beta: Array, white_b: Array) -> Inverses:
    """O(M³) once and O(M²) for each output: S = Q Λ Qᵀ gives B⁻¹ = Q (I + β Λ)⁻¹ Qᵀ."""
    Q, eigenvalues, share = _spectrum(S, beta)
    gain = beta[:, None] * eigenvalues  # P×M, those of β S
    gone = gain * share  # P×M, those of I − B⁻¹
    return Inverses(
        log_diagonal=0.5 * jnp.sum(jnp.log1p(gain), -1),
        a=Q @ (share.T * (Q.T @ white_b)),
        trace=gone @ eigenvalues,
        left=(Q * jnp.sum(gone, 0)) @ Q.T,
        weighted_left=(Q * (beta @ gone)) @ Q.T,
    )


def _spectrum(S: Array, beta: Array) -> tuple[Array, Array, Array]:
    """Q and Λ of S = Q Λ Qᵀ, and the eigenvalues of B⁻¹ for each output, P×M; rounding may not make Λ negative."""
    Q, eigenvalues = lax.linalg.eigh(S, symmetrize_input=False)
    eigenvalues = jnp.maximum(eigenvalues, 0.0)
    return Q, eigenvalues, 1.0 / (1.0 + beta[:, None] * eigenvalues)


def _terms(f: Factors, s: Statistics, beta: Array) -> Terms:
    return Terms(
        constant=0.5 * s.n * jnp.sum(jnp.log(beta / (2.0 * jnp.pi))),
        log_determinant=-jnp.sum(f.B.log_diagonal),
        quadratic=jnp.sum(-0.5 * beta * s.yy + 0.5 * beta**2 * jnp.sum(f.white_b * f.B.a, 0)),
        trace=-0.5 * jnp.sum(beta) * (s.kappa - jnp.trace(f.S)),
    )


@jax.custom_vjp
def bound(Kuu: Array, s: Statistics, noise: Array) -> Array:
    """F, with its own derivative rule: nothing is differentiated through a factorisation.

    With α' = P⁻¹ b = L⁻ᵀ a, every matrix of the rule is L⁻ᵀ (…) L⁻¹:

        ∂F/∂Φ   = ½ β (Kuu⁻¹ − P⁻¹) − ½ β³ α'α'ᵀ                         (…) = ½ β (I − B⁻¹) − ½ β³ a aᵀ
        ∂F/∂Kuu = ½ (Kuu⁻¹ − P⁻¹) − ½ β² α'α'ᵀ − ½ β Kuu⁻¹ΦKuu⁻¹         (…) = ½ (I − B⁻¹) − ½ β² a aᵀ − ½ β S
        ∂F/∂b   = β² α'        ∂F/∂κ = −½ β        ∂F/∂yy = −½ β        ∂F/∂n = ½ log(β/2π)
        ∂F/∂β   = ½ (n/β − yy − κ + tr((I − B⁻¹) S) + β aᵀ(L⁻¹b + a))    by β S a = L⁻¹b − a
    """
    return _sum(terms(Kuu, s, noise))


def _sum(t: Terms) -> Array:
    return t.constant + t.log_determinant + t.quadratic + t.trace


def _bound_forward(Kuu: Array, s: Statistics, noise: Array) -> tuple[Array, tuple[Factors, Statistics, Array]]:
    beta = 1.0 / noise
    f = _factorise(Kuu, s, beta)
    return _sum(_terms(f, s, beta)), (f, s, beta)


def _bound_backward(residuals: tuple[Factors, Statistics, Array], dF: Array) -> tuple[Array, Statistics, Array]:
    f, s, beta = residuals
    a = f.B.a
    white_dPhi = f.B.weighted_left - (a * beta**3) @ a.T
    white_dKuu = f.B.left - (a * beta**2) @ a.T - jnp.sum(beta) * f.S
    white = jnp.stack([white_dPhi, white_dKuu])  # both through L⁻¹ at once
    dPhi, dKuu = 0.5 * dF * (f.inverse_L.T @ white @ f.inverse_L)
    dbeta = 0.5 * (s.n / beta - s.yy - s.kappa + f.B.trace + beta * jnp.sum(a * (f.white_b + a), 0))
    ds = Statistics(
        n=0.5 * dF * jnp.sum(jnp.log(beta / (2.0 * jnp.pi))),
        yy=-0.5 * dF * beta,
        b=dF * beta**2 * (f.inverse_L.T @ a),
        Phi=dPhi,
        kappa=-0.5 * dF * jnp.sum(beta),
    )
    return dKuu, ds, -dF * dbeta * beta**2


bound.defvjp(_bound_forward, _bound_backward)


# ---- the posterior ---------------------------------------------------------------------------------------------------


def posterior(inverse_L: Array, s: Statistics, noise: Array) -> Posterior:
    """Posterior of the inducing values (eq. adap_pred_dist)."""
    beta = 1.0 / noise
    S = inverse_L @ s.Phi @ inverse_L.T
    if beta.shape[0] >= MANY:
        return _posterior_by_eigenvalues(inverse_L, S, s.b, beta)
    L_B, repairs = cholesky(jnp.eye(S.shape[0], dtype=S.dtype) + beta[:, None, None] * S)
    C = solve_lower(L_B, jnp.broadcast_to(inverse_L, L_B.shape))  # P×M×M
    alpha = jnp.einsum("pij,pi->jp", C, jnp.einsum("pij,jp->pi", C, s.b))  # M×P, P⁻¹ b
    return Posterior(inverse_L, C, beta * alpha, repairs)


def _posterior_by_eigenvalues(inverse_L: Array, S: Array, b: Array, beta: Array) -> Posterior:
    """The same for many outputs: C = (I + β Λ)^(−½) Qᵀ L⁻¹ is another root of P⁻¹, and no factorisation can fail."""
    Q, _, share = _spectrum(S, beta)
    white = Q.T @ inverse_L  # M×M
    alpha = white.T @ (beta * share.T * (white @ b))  # M×P
    return Posterior(inverse_L, jnp.sqrt(share)[:, :, None] * white, alpha, jnp.zeros((), jnp.int32))


def predict(q: Posterior, Kus: Array, kss: Array) -> tuple[Array, Array]:
    """Mean and latent variance at new points, N×P each; rounding may not make a variance negative."""
    mean = Kus.T @ q.alpha  # N×P
    prior = kss - jnp.sum((q.inverse_L @ Kus) ** 2, 0)  # N, what the inducing points leave unexplained
    explained = jnp.sum((q.C @ Kus) ** 2, -2)  # P×N
    return mean, jnp.maximum(prior + explained, 0.0).T


def covariance(q: Posterior, Kus: Array, Kss: Array) -> Array:
    """Joint latent covariance at new points, Kss + Kusᵀ (P⁻¹ − Kuu⁻¹) Kus for each output, P×N×N."""
    A = q.inverse_L @ Kus  # M×N
    E = q.C @ Kus  # P×M×N
    return Kss - A.T @ A + jnp.swapaxes(E, -1, -2) @ E
