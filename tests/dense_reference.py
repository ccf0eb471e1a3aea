"""Slow, dense, obviously right: what the library's fast paths are held against. NumPy only.

Letters as in the library: X is N×D, y is N (one output), w holds the N weights, U the M inducing inputs; Kuu,
Kux and Kxx are Gram matrices (Kuu with whatever jitter the model adds to it), kxx the diagonal of Kxx.
Everything is written from its definition, with N×N matrices and explicit sums, and shares nothing with the
code under test.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Pairwise = Callable[[Floats, Floats], float]

# ---- kernels, one pair of points at a time -----------------------------------------------------------------


def scaled_distance(x: Floats, z: Floats, lengthscale: ArrayLike) -> float:
    """r = √ Σ_d ((x_d − z_d) / lengthscale_d)²."""
    return float(np.sqrt(np.sum(((x - z) / np.asarray(lengthscale)) ** 2)))


def se(lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> Pairwise:
    """Squared exponential: variance · exp(−r²/2)."""
    return lambda x, z: float(variance * np.exp(-0.5 * scaled_distance(x, z, lengthscale) ** 2))


def matern12(lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> Pairwise:
    """Matérn ½: variance · exp(−r)."""
    return lambda x, z: float(variance * np.exp(-scaled_distance(x, z, lengthscale)))


def matern32(lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> Pairwise:
    """Matérn 3⁄2: variance · (1 + √3 r) exp(−√3 r)."""

    def k(x: Floats, z: Floats) -> float:
        r = scaled_distance(x, z, lengthscale)
        return float(variance * (1.0 + np.sqrt(3.0) * r) * np.exp(-np.sqrt(3.0) * r))

    return k


def matern52(lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> Pairwise:
    """Matérn 5⁄2: variance · (1 + √5 r + 5r²/3) exp(−√5 r)."""

    def k(x: Floats, z: Floats) -> float:
        r = scaled_distance(x, z, lengthscale)
        return float(variance * (1.0 + np.sqrt(5.0) * r + 5.0 * r**2 / 3.0) * np.exp(-np.sqrt(5.0) * r))

    return k


def rational_quadratic(lengthscale: ArrayLike = 1.0, variance: float = 1.0, mixture: float = 1.0) -> Pairwise:
    """Rational quadratic: variance · (1 + r²/2a)^(−a), a the mixture."""
    return lambda x, z: float(variance * (1.0 + scaled_distance(x, z, lengthscale) ** 2 / (2.0 * mixture)) ** -mixture)


def periodic(period: ArrayLike = 1.0, lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> Pairwise:
    """variance · exp(−2 Σ_d sin²(π (x_d − z_d) / period_d) / lengthscale_d²)."""

    def k(x: Floats, z: Floats) -> float:
        sine = np.sin(np.pi * (x - z) / np.asarray(period))
        return float(variance * np.exp(-2.0 * np.sum((sine / np.asarray(lengthscale)) ** 2)))

    return k


def linear(variance: ArrayLike = 1.0) -> Pairwise:
    """Σ_d variance_d x_d z_d."""
    return lambda x, z: float(np.sum(np.asarray(variance) * x * z))


def constant(variance: float = 1.0) -> Pairwise:
    """The variance, whatever the points."""
    return lambda x, z: float(variance)


def gram(kernel: Pairwise, X: Floats, Z: Floats) -> Floats:
    """K_ij = k(x_i, z_j), N×K, pair by pair."""
    return np.array([[kernel(x, z) for z in Z] for x in X], dtype=np.float64).reshape(len(X), len(Z))


def diagonal(kernel: Pairwise, X: Floats) -> Floats:
    """k_ii = k(x_i, x_i), N."""
    return np.array([kernel(x, x) for x in X], dtype=np.float64)


# ---- weights and statistics --------------------------------------------------------------------------------


def weights(times: Floats, now: float, forgetting: float, size: int) -> Floats:
    """w_i = λ^(t − t_i) for the last `size` samples, 0 for those before them; samples in order of arrival."""
    inside = np.arange(len(times)) >= len(times) - size
    return np.where(inside, forgetting ** (now - times), 0.0)


class Sums(NamedTuple):
    """The five statistics through which the data enter."""

    n: float
    yy: float
    b: Floats  # M
    Phi: Floats  # M×M
    kappa: float


def statistics(Kux: Floats, kxx: Floats, w: Floats, y: Floats) -> Sums:
    """n = Σ w_i, yy = Σ w_i y_i², b = Σ w_i k_i y_i, Φ = Σ w_i k_i k_iᵀ, κ = Σ w_i k_ii, sample by sample."""
    M, N = Kux.shape
    n, yy, b, Phi, kappa = 0.0, 0.0, np.zeros(M), np.zeros((M, M)), 0.0
    for i in range(N):
        n += w[i]
        yy += w[i] * y[i] ** 2
        b += w[i] * Kux[:, i] * y[i]
        Phi += w[i] * np.outer(Kux[:, i], Kux[:, i])
        kappa += w[i] * kxx[i]
    return Sums(n, yy, b, Phi, kappa)


# ---- evidence and bounds -----------------------------------------------------------------------------------


def log_gaussian(y: Floats, covariance: Floats) -> float:
    """log N(y | 0, covariance)."""
    log_determinant = np.linalg.slogdet(covariance)[1]
    return float(-0.5 * (len(y) * np.log(2.0 * np.pi) + log_determinant + y @ np.linalg.solve(covariance, y)))


def nystrom(Kuu: Floats, Kux: Floats) -> Floats:
    """Q = Kxu Kuu⁻¹ Kux, N×N."""
    return np.asarray(Kux.T @ np.linalg.solve(Kuu, Kux))


def power_correction(w: Floats, noise: float) -> float:
    """Σ w_i log N(y_i | f_i, σ²) − Σ log N(y_i | f_i, σ²/w_i) = −½ Σ (log w_i + (w_i − 1) log 2πσ²).

    It is the same for every f: this is why a weight acts as a noise σ²/w_i and a constant.
    """
    return float(-0.5 * np.sum(np.log(w) + (w - 1.0) * np.log(2.0 * np.pi * noise)))


def exact_evidence(Kxx: Floats, y: Floats, noise: ArrayLike) -> float:
    """log N(y | 0, Kxx + diag(noise)): the exact GP; the noise may be a vector, as σ²/w_i is."""
    return log_gaussian(y, Kxx + np.diag(np.broadcast_to(noise, y.shape)))


def weighted_evidence(Kxx: Floats, w: Floats, y: Floats, noise: float) -> float:
    """log ∫ Π_i N(y_i | f_i, σ²)^w_i N(f | 0, Kxx) df, which F never exceeds.

    A sample of weight 0 is a factor of 1.
    """
    seen = w > 0.0
    Kxx, w, y = Kxx[np.ix_(seen, seen)], w[seen], y[seen]
    return exact_evidence(Kxx, y, noise / w) + power_correction(w, noise)


def titsias_bound(Kuu: Floats, Kux: Floats, kxx: Floats, y: Floats, noise: float) -> float:
    """log N(y | 0, σ²I + Q) − tr(Kxx − Q)/2σ² (eq. F_V_2)."""
    Q = nystrom(Kuu, Kux)
    return log_gaussian(y, noise * np.eye(len(y)) + Q) - float(np.sum(kxx - np.diag(Q))) / (2.0 * noise)


def weighted_bound(Kuu: Floats, Kux: Floats, kxx: Floats, w: Floats, y: Floats, noise: float) -> float:
    """F = log N(y | 0, σ²W⁻¹ + Q) − ½ Σ (log w_i + (w_i − 1) log 2πσ²) − Σ w_i (k_ii − q_ii) / 2σ².

    Appendix A before its constants are dropped; the trace has the minus sign that eq. lambda_bound misprints.
    """
    seen = w > 0.0
    Kux, kxx, w, y = Kux[:, seen], kxx[seen], w[seen], y[seen]
    Q = nystrom(Kuu, Kux)
    fit = log_gaussian(y, np.diag(noise / w) + Q) + power_correction(w, noise)
    return fit - float(np.sum(w * (kxx - np.diag(Q)))) / (2.0 * noise)


# ---- posteriors: mean and covariance of the latent function at new points ----------------------------------


class Latent(NamedTuple):
    """Gaussian over the latent function; a new y adds the noise."""

    mean: Floats  # S
    covariance: Floats  # S×S


def exact_posterior(Kxx: Floats, Kxs: Floats, Kss: Floats, y: Floats, noise: ArrayLike) -> Latent:
    """Ksx (Kxx + D)⁻¹ y and Kss − Ksx (Kxx + D)⁻¹ Kxs with D = diag(noise)."""
    noisy = Kxx + np.diag(np.broadcast_to(noise, y.shape))
    return Latent(Kxs.T @ np.linalg.solve(noisy, y), Kss - Kxs.T @ np.linalg.solve(noisy, Kxs))


def weighted_exact_posterior(Kxx: Floats, Kxs: Floats, Kss: Floats, w: Floats, y: Floats, noise: float) -> Latent:
    """Exact posterior in which sample i has noise σ²/w_i, and none at all where w_i = 0."""
    seen = w > 0.0
    return exact_posterior(Kxx[np.ix_(seen, seen)], Kxs[seen], Kss, y[seen], noise / w[seen])


def sparse_posterior(Kuu: Floats, Kux: Floats, Kus: Floats, Kss: Floats, w: Floats, y: Floats, noise: float) -> Latent:
    """VSGP by way of q(f_u) = N(μ, A): μ = σ⁻² Kuu B Kux W y, A = Kuu B Kuu, B = (Kuu + σ⁻² Kux W Kxu)⁻¹.

    Then the mean is Ksu Kuu⁻¹ μ and the covariance Kss − Ksu Kuu⁻¹ Kus + Ksu Kuu⁻¹ A Kuu⁻¹ Kus
    (eqs. q_f* and q_tu_lamb).
    """
    W = np.diag(w)
    B = np.linalg.inv(Kuu + Kux @ W @ Kux.T / noise)
    mu, A = Kuu @ B @ Kux @ W @ y / noise, Kuu @ B @ Kuu
    weights_u = np.linalg.solve(Kuu, Kus)  # M×S
    return Latent(weights_u.T @ mu, Kss - Kus.T @ weights_u + weights_u.T @ A @ weights_u)


def sparse_posterior_dense(
    Kuu: Floats, Kux: Floats, Kus: Floats, Kss: Floats, w: Floats, y: Floats, noise: float
) -> Latent:
    """VSGP by N×N matrices: an exact GP with covariance Q, plus what U leaves unexplained."""
    Qxx, Qxs, Qss = nystrom(Kuu, Kux), Kux.T @ np.linalg.solve(Kuu, Kus), nystrom(Kuu, Kus)
    latent = weighted_exact_posterior(Qxx, Qxs, Qss, w, y, noise)
    return Latent(latent.mean, latent.covariance + Kss - Qss)


# ---- relevance, from R_tot alone ---------------------------------------------------------------------------


def unexplained(Kuu: Floats, Kux: Floats, kxx: Floats, w: Floats) -> float:
    """R_tot = Σ w_i (k_ii − k_iᵀ Kuu⁻¹ k_i); without a single inducing point it is κ."""
    return float(np.sum(w * (kxx - np.diag(nystrom(Kuu, Kux)))))


def unexplained_by(points: list[int], Kuu: Floats, Kux: Floats, kxx: Floats, w: Floats) -> float:
    """R_tot if only these inducing points were there."""
    return unexplained(Kuu[np.ix_(points, points)], Kux[points], kxx, w)


def relevance_leave_one_out(Kuu: Floats, Kux: Floats, kxx: Floats, w: Floats) -> Floats:
    """R_m = R_tot without m − R_tot."""
    every = list(range(len(Kuu)))
    R = [unexplained_by([j for j in every if j != m], Kuu, Kux, kxx, w) for m in every]
    return np.array(R) - unexplained(Kuu, Kux, kxx, w)


def relevance_cholesky(Kuu: Floats, Kux: Floats, kxx: Floats, w: Floats) -> Floats:
    """R_m = R_tot with the points before m − R_tot with m as well: what m adds when it comes in its turn."""
    R = [unexplained_by(list(range(m)), Kuu, Kux, kxx, w) for m in range(len(Kuu) + 1)]
    return -np.diff(np.array(R))


def relevance_diagonal(Kuu: Floats, Kux: Floats, w: Floats) -> Floats:
    """R_m = Σ w_i k_mi² / k_mm: what m would explain if it were alone (eq. R_inducing)."""
    return np.array([np.sum(w * Kux[m] ** 2) / Kuu[m, m] for m in range(len(Kuu))])
