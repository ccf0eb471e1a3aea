"""The λ-weighted variational bound, its derivative, and the posterior it implies.

V. Gómez-Verdejo, E. Parrado-Hernández, M. Martínez-Ramón, "Adaptive Sparse Gaussian Process", IEEE TNNLS 35(11), 2024;
with λ = 1 it is that of M. K. Titsias, AISTATS 2009.

A sample i has weight w_i, W = diag(w). The data enter only through five statistics:

    n = Σ w_i    yy = Σ w_i y_i²    b = Kux W y    Φ = Kux W Kxu    κ = Σ w_i k_ii

With β = σ⁻², Kuu = L Lᵀ, S = L⁻¹ Φ L⁻ᵀ, B = I + β S = L_B L_Bᵀ, C = L_B⁻¹ L⁻¹ and P = Kuu + β Φ (so P⁻¹ = Cᵀ C):

    F = −½ n log 2πσ² − Σ log diag L_B − ½ β yy + ½ β² |C b|² − ½ β (κ − tr S)
    mean = k_u*ᵀ α,  α = β P⁻¹ b        variance = k** − |L⁻¹ k_u*|² + |C k_u*|²

B has no eigenvalue below 1, so its factor is computed, and not that of P. P outputs that share inputs
share Kuu, Φ, κ and n; yy, b and σ² have an entry each, and F is the sum over outputs.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

# Largest number of attempts at a factorisation: the last one adds more than the size of the matrix to its diagonal.
REPAIRS = 17
_EPSILON = float(np.finfo(float).eps)


class Statistics(NamedTuple):
    """The five statistics through which the data enter the bound and the posterior."""

    n: float  # effective number of samples
    yy: np.ndarray  # P
    b: np.ndarray  # M×P
    Phi: np.ndarray  # M×M
    kappa: float


class Posterior(NamedTuple):
    """The distribution of the inducing values, in the form that predictions need."""

    inverse_L: np.ndarray  # M×M, L⁻¹
    C: np.ndarray  # P×M×M, L_B⁻¹ L⁻¹
    alpha: np.ndarray  # M×P


# ---- statistics ------------------------------------------------------------------------------------------------------


def statistics(Kux: np.ndarray, kxx: np.ndarray, w: np.ndarray, y: np.ndarray) -> Statistics:
    """Statistics of a window, from scratch: O(M²T)."""
    weighted = Kux * w  # M×T
    return Statistics(float(np.sum(w)), w @ y**2, weighted @ y, weighted @ Kux.T, float(w @ kxx))


def forget(s: Statistics, factor: float) -> Statistics:
    """Shrink every weight by one factor."""
    return Statistics(factor * s.n, factor * s.yy, factor * s.b, factor * s.Phi, factor * s.kappa)


def absorb(s: Statistics, k: np.ndarray, kxx: float, y: np.ndarray, w: float) -> Statistics:
    """Add one sample with weight w (eq. data_add), or with −w take it out again (eq. data_remove): O(M²)."""
    wk = (w * k)[:, None]  # M×1
    return Statistics(s.n + w, s.yy + w * y**2, s.b + wk * y, s.Phi + wk * k, s.kappa + w * kxx)


# ---- factors ---------------------------------------------------------------------------------------------------------


class NoFactor(ArithmeticError):
    """A matrix that is not positive definite, or not even finite."""


def lower_factor(K: np.ndarray) -> np.ndarray:
    """Lower factor of K; the one place that factorises, since LAPACK reports success on NaN."""
    L, failed = lapack.dpotrf(K, lower=1, clean=1)
    if failed or not np.isfinite(L.diagonal()).all():
        raise NoFactor
    return L


def repaired_factor(K: np.ndarray) -> tuple[np.ndarray, int]:
    """Lower factor of K, and the number of times that a growing multiple of the identity was added before it existed.

    The multiple starts at the rounding error of the trace and grows tenfold each time.
    """
    if not np.isfinite(K).all():
        raise NoFactor
    rounding = _EPSILON * (np.trace(K) or 1.0)
    for repairs in range(REPAIRS + 1):
        try:
            added = rounding * 10.0 ** (repairs - 1) if repairs else 0.0
            return lower_factor(K + added * np.eye(len(K))), repairs
        except NoFactor:
            continue
    raise NoFactor


def inverse_lower(L: np.ndarray) -> np.ndarray:
    """L⁻¹ for a lower triangular L."""
    if len(L) == 0:  # LAPACK would complain on the terminal
        return L
    return lapack.dtrtri(L, lower=1)[0]


def inverse_root(Kuu: np.ndarray) -> tuple[np.ndarray, int]:
    """L⁻¹, and the repairs that the factorisation needed."""
    L, repairs = repaired_factor(Kuu)
    return inverse_lower(L), repairs


# ---- the bound -------------------------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """The bound, split as in the module's first formula; F is their sum."""

    constant: float
    log_determinant: float
    quadratic: float
    trace: float


def terms(Kuu: np.ndarray, s: Statistics, noise: np.ndarray) -> Terms:
    """Terms of the bound (eq. lambda_bound with the trace's sign corrected)."""
    beta = 1.0 / noise  # P
    inverse_L = inverse_lower(lower_factor(Kuu))
    S = inverse_L @ s.Phi @ inverse_L.T
    white_b = inverse_L @ s.b  # M×P
    log_determinant = quadratic = 0.0
    for p in range(len(beta)):
        L_B = lower_factor(np.eye(len(S)) + beta[p] * S)
        c = beta[p] * inverse_lower(L_B) @ white_b[:, p]  # β C b
        log_determinant -= float(np.sum(np.log(L_B.diagonal())))
        quadratic += 0.5 * float(c @ c - beta[p] * s.yy[p])
    return Terms(
        constant=0.5 * s.n * float(np.sum(np.log(beta / (2.0 * np.pi)))),
        log_determinant=log_determinant,
        quadratic=quadratic,
        trace=-0.5 * float(np.sum(beta)) * (s.kappa - float(np.trace(S))),
    )


def bound(Kuu: np.ndarray, s: Statistics, noise: np.ndarray) -> float:
    """F, the sum of its terms."""
    return sum(terms(Kuu, s, noise))


class Gradient(NamedTuple):
    """∂F in everything that the kernel or the noise determines."""

    Kuu: np.ndarray  # M×M
    Phi: np.ndarray  # M×M
    b: np.ndarray  # M×P
    kappa: float
    noise: np.ndarray  # P


def gradient(Kuu: np.ndarray, s: Statistics, noise: np.ndarray) -> Gradient:
    """Derivative of F, in closed form: nothing is differentiated through a factorisation.

    With a = B⁻¹ L⁻¹ b and α' = P⁻¹ b = L⁻ᵀ a, every matrix of the rule is L⁻ᵀ (…) L⁻¹, summed over outputs:

        ∂F/∂Φ   = ½ β (Kuu⁻¹ − P⁻¹) − ½ β³ α'α'ᵀ                         (…) = ½ β (I − B⁻¹) − ½ β³ a aᵀ
        ∂F/∂Kuu = ½ (Kuu⁻¹ − P⁻¹) − ½ β² α'α'ᵀ − ½ β Kuu⁻¹ΦKuu⁻¹         (…) = ½ (I − B⁻¹) − ½ β² a aᵀ − ½ β S
        ∂F/∂b   = β² α'        ∂F/∂κ = −½ β
        ∂F/∂β   = ½ (n/β − yy − κ + tr((I − B⁻¹) S) + β aᵀ(L⁻¹b + a))    by β S a = L⁻¹b − a
    """
    beta = 1.0 / noise  # P
    inverse_L = inverse_lower(lower_factor(Kuu))
    S = inverse_L @ s.Phi @ inverse_L.T
    white_b = inverse_L @ s.b  # M×P
    white_Phi, white_Kuu = np.zeros_like(S), -0.5 * np.sum(beta) * S
    a, dbeta = np.empty_like(white_b), np.empty_like(beta)
    for p in range(len(beta)):
        inverse_L_B = inverse_lower(lower_factor(np.eye(len(S)) + beta[p] * S))
        inverse_B = inverse_L_B.T @ inverse_L_B
        explained = np.eye(len(S)) - inverse_B  # I − B⁻¹
        a[:, p] = inverse_B @ white_b[:, p]
        common = 0.5 * explained - 0.5 * beta[p] ** 2 * np.outer(a[:, p], a[:, p])
        white_Phi += beta[p] * common
        white_Kuu += common
        agreement = beta[p] * a[:, p] @ (white_b[:, p] + a[:, p])
        dbeta[p] = 0.5 * (s.n / beta[p] - s.yy[p] - s.kappa + np.sum(explained * S) + agreement)
    return Gradient(
        Kuu=inverse_L.T @ white_Kuu @ inverse_L,
        Phi=inverse_L.T @ white_Phi @ inverse_L,
        b=beta**2 * (inverse_L.T @ a),
        kappa=-0.5 * float(np.sum(beta)),
        noise=-dbeta * beta**2,
    )


def through_Kux(g: Gradient, Kux: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    """∂F/∂Kux = 2 (∂F/∂Φ) Kux W + (∂F/∂b)(W y)ᵀ, M×T."""
    return (2.0 * g.Phi @ Kux + g.b @ y.T) * w


# ---- the posterior ---------------------------------------------------------------------------------------------------


def posterior(inverse_L: np.ndarray, s: Statistics, noise: np.ndarray) -> tuple[Posterior, int]:
    """Posterior of the inducing values (eq. adap_pred_dist), and the repairs that its factorisations needed."""
    beta = 1.0 / noise  # P
    S = inverse_L @ s.Phi @ inverse_L.T
    C, alpha = np.empty((len(beta), *S.shape)), np.empty_like(s.b)
    repairs = 0
    for p in range(len(beta)):
        inverse_L_B, repaired = inverse_root(np.eye(len(S)) + beta[p] * S)
        C[p] = inverse_L_B @ inverse_L
        alpha[:, p] = beta[p] * C[p].T @ (C[p] @ s.b[:, p])
        repairs += repaired
    return Posterior(inverse_L, C, alpha), repairs


def predict(q: Posterior, Kus: np.ndarray, kss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and latent variance at new points, N×P each; rounding may not make a variance negative."""
    mean = Kus.T @ q.alpha  # N×P
    prior = kss - np.sum((q.inverse_L @ Kus) ** 2, 0)  # N, what the inducing points leave unexplained
    explained = np.sum((q.C @ Kus) ** 2, -2)  # P×N
    return mean, np.maximum(prior + explained, 0.0).T


def covariance(q: Posterior, Kus: np.ndarray, Kss: np.ndarray) -> np.ndarray:
    """Joint latent covariance at new points, Kss + Kusᵀ (P⁻¹ − Kuu⁻¹) Kus for each output, P×N×N."""
    A = q.inverse_L @ Kus  # M×N
    E = q.C @ Kus  # P×M×N
    return Kss - A.T @ A + np.swapaxes(E, -1, -2) @ E
