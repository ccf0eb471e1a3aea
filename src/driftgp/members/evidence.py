"""Sparse regression on fixed points: its features, and how well hyperparameters explain some rows.

A squared exponential with one lengthscale per input, beside a linear part with one variance per input,

    f(x) = w_0 + Σ_d w_d √v_d x_d + Σ_j w_j φ_j(x),   φ(x) = L⁻¹ k(Z, x),   L Lᵀ = k(Z, Z),   w ~ N(0, I)

is a linear regression on the features Φ = (1, √v x, L⁻¹ k(Z, x)). The collapsed bound (Titsias 2009) of n rows with P
targets is the evidence of this regression, less a term for the variance that the points leave out. With A = ΦᵀΦ/q + I
and q the variance of the noise, it is

    ½ Σ_p [n log 2πq + log|A| + yᵀy/q − yᵀΦ A⁻¹ Φᵀy/q²] + P/(2q) Σ_i (k(x_i, x_i) − |φ(x_i)|²)

as a negative logarithm. The bound and its gradient are sums over rows, so they can be computed a few rows at a time.
The order is `moments` over all rows, `value`, `slope` over all rows, `gradient`. Only the part of the gradient that
depends on distances is a sum over rows. The rest follows from A⁻¹ and ΦᵀΦ, since (ΦᵀΦ/q) A⁻¹ = I − A⁻¹. Parameters are
logarithms,

    θ = (log ℓ (D), log s², log v (D), log q)

with normal priors, whose centres suit standardised inputs and targets.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

JITTER = 1e-6  # relative to the diagonal of k(Z, Z)
_LARGEST = 700.0  # logarithm of a number


class Parameters(NamedTuple):
    """Hyperparameters as they enter the kernel."""

    lengthscale: np.ndarray  # D
    variance: float  # s²
    linear: np.ndarray  # √v, D
    noise: float  # q


def parameters(theta: np.ndarray) -> Parameters:
    """The parameters of their logarithms."""
    D = (len(theta) - 2) // 2
    e = np.exp(theta)
    return Parameters(e[:D], float(e[D]), np.sqrt(e[D + 1 : -1]), float(e[-1]))


def check(theta: np.ndarray) -> None:
    """Refuse logarithms of numbers that are too large or too small to be numbers."""
    D = (len(theta) - 2) // 2
    if not (np.all(theta <= _LARGEST) and np.all(theta[:D] >= -0.5 * _LARGEST) and theta[[D, -1]].min() >= -_LARGEST):
        raise ValueError("theta must be logarithms of numbers that are finite and positive")


def prior(inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each logarithm, for D standardised inputs.

    The lengthscale is near √D e^½. The linear part and the noise have a tenth of the variance each.
    """
    ones = np.ones(inputs)
    mean = np.concatenate([(0.5 * np.log(inputs) + 0.5) * ones, [0.0], np.log(0.1 / inputs) * ones, [np.log(0.1)]])
    return mean, np.concatenate([1.5 * ones, np.full(inputs + 2, 2.0)])


def covariance(p: Parameters, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """k(X, Z) of the squared exponential, N×M."""
    A, B = X / p.lengthscale, Z / p.lengthscale
    square = np.sum(A**2, 1)[:, None] + np.sum(B**2, 1) - 2.0 * A @ B.T
    return p.variance * np.exp(-0.5 * np.maximum(square, 0.0))


def factor(p: Parameters, Z: np.ndarray) -> np.ndarray | None:
    """L⁻¹ of k(Z, Z), M×M; None if the factorisation fails."""
    K = covariance(p, Z, Z)
    K[np.diag_indices(len(Z))] = p.variance * (1.0 + JITTER)
    try:
        L = cholesky(K, lower=True)
    except (np.linalg.LinAlgError, ValueError):
        return None
    return np.asarray(solve_triangular(L, np.eye(len(Z)), lower=True))


def features(p: Parameters, Z: np.ndarray, N: np.ndarray, X: np.ndarray, width: int = 0) -> np.ndarray:
    """Φ at X (n×D): n×(1 + D + M), or `width` columns of which the last are zeros."""
    Phi = np.concatenate([np.ones((len(X), 1)), p.linear * X, covariance(p, X, Z) @ N.T], 1)
    return np.pad(Phi, ((0, 0), (0, max(width - Phi.shape[1], 0))))


def inverse(A: np.ndarray) -> tuple[np.ndarray, float] | None:
    """A⁻¹ of a positive definite matrix and log|A|; None if it is not positive definite."""
    try:
        R = cholesky(A, lower=True)
    except (np.linalg.LinAlgError, ValueError):
        return None
    return cho_solve((R, True), np.eye(len(A))), 2.0 * float(np.sum(np.log(np.diag(R))))


class Moments(NamedTuple):
    """Sums over rows."""

    S: np.ndarray  # ΦᵀΦ, F×F
    b: np.ndarray  # Φᵀy, F×P
    squares: float  # yᵀy over all outputs
    left_out: float  # Σ k(x, x) − |φ(x)|²


def moments(p: Parameters, Z: np.ndarray, N: np.ndarray, X: np.ndarray, y: np.ndarray) -> Moments:
    """Sums of some rows."""
    Phi = features(p, Z, N, X)
    nearby = Phi[:, 1 + X.shape[1] :]
    return Moments(Phi.T @ Phi, Phi.T @ y, float(np.sum(y**2)), len(X) * p.variance - float(np.sum(nearby**2)))


class Solved(NamedTuple):
    """The bound, and what its gradient needs."""

    value: float
    inverse: np.ndarray  # A⁻¹, F×F
    c: np.ndarray  # mean of the weights, F×P
    by_noise: float  # derivative by log q


def value(p: Parameters, m: Moments, rows: int) -> Solved | None:
    """The negative bound of all rows; None if A has no factor."""
    F, P = m.b.shape
    q = p.noise
    found = inverse(m.S / q + np.eye(F))
    if found is None:
        return None
    C, log_determinant = found
    b = m.b / q
    c = C @ b
    explained, squares = float(np.sum(b * c)), m.squares / q
    fit = P * rows * np.log(2.0 * np.pi * q) + P * log_determinant + squares - explained
    rest = P * m.left_out / (2.0 * q)
    weights = float(np.sum(c**2))
    by_noise = 0.5 * (P * rows - P * F + P * float(np.trace(C)) - squares + explained + weights) - rest
    return Solved(0.5 * fit + rest, C, c, by_noise)


class Reach(NamedTuple):
    """Terms of the bound for 1, √v x and k(Z, x) in place of φ(x): the last M rows are multiplied by L⁻¹."""

    C: np.ndarray  # A⁻¹ for the first 1 + D features, beside A⁻¹ L⁻¹, and L⁻ᵀ (I − A⁻¹) L⁻¹ below: F×F
    c: np.ndarray  # weights of the first 1 + D, and L⁻ᵀ c: F×P


def reach(N: np.ndarray, solved: Solved) -> Reach:
    """From A⁻¹ and c, for N = L⁻¹."""
    m = len(N)
    C, c = solved.inverse.copy(), solved.c.copy()
    C[:-m, -m:] = C[:-m, -m:] @ N
    C[-m:, :-m] = C[:-m, -m:].T
    C[-m:, -m:] = N.T @ (np.eye(m) - C[-m:, -m:]) @ N
    c[-m:] = N.T @ c[-m:]
    return Reach(C, c)


class Slope(NamedTuple):
    """The sums over rows in the gradient."""

    by_lengthscale: np.ndarray  # D
    by_variance: float


def slope(p: Parameters, Z: np.ndarray, X: np.ndarray, y: np.ndarray, r: Reach) -> Slope:
    """Sums of some rows: the derivatives of the (positive) bound through k(Z, x)."""
    P, m = y.shape[1], len(Z)
    K = covariance(p, X, Z)
    level = np.concatenate([np.ones((len(X), 1)), p.linear * X], 1)  # n×(1 + D)
    wrong = y - level @ r.c[:-m] - K @ r.c[-m:]  # n×P
    by_K = wrong @ r.c[-m:].T + P * (K @ r.C[-m:, -m:] - level @ r.C[:-m, -m:])
    W = by_K * K / p.noise  # ∂/∂log k(x, z)
    return Slope(_by_lengthscale(p, W, X, Z), float(np.sum(W)))


def gradient(
    theta: np.ndarray, Z: np.ndarray, N: np.ndarray, S: np.ndarray, r: Reach, s: Slope, by_noise: float, rows: int
) -> np.ndarray:
    """Gradient of the negative bound by θ, from the sums over all rows, of which S = ΦᵀΦ."""
    p = parameters(theta)
    m, D, P = len(Z), Z.shape[1], r.c.shape[1]
    K = covariance(p, Z, Z)
    K[np.diag_indices(m)] = p.variance * (1.0 + JITTER)
    by_K = P * (N.T @ S[-m:, -m:] @ N / p.noise - r.C[-m:, -m:]) + r.c[-m:] @ r.c[-m:].T
    W = -0.5 * by_K * K  # ∂/∂log k(z, z')
    by_lengthscale = s.by_lengthscale + _by_lengthscale(p, W, Z, Z)
    by_variance = s.by_variance + float(np.sum(W)) - P * rows * p.variance / (2.0 * p.noise)
    slopes = slice(1, 1 + D)
    by_linear = 0.5 * (np.sum(r.c[slopes] ** 2, 1) - P * (1.0 - np.diag(r.C)[slopes]))
    return np.concatenate([-by_lengthscale, [-by_variance], -by_linear, [by_noise]])


def prior_value(theta: np.ndarray) -> float:
    """The negative log prior, without its constant."""
    mean, std = prior((len(theta) - 2) // 2)
    z = (theta - mean) / std
    return 0.5 * float(z @ z)


def with_prior(theta: np.ndarray, value: float, gradient: np.ndarray) -> tuple[float, np.ndarray]:
    """A value and its gradient with the negative log prior added."""
    mean, std = prior((len(theta) - 2) // 2)
    return value + prior_value(theta), gradient + (theta - mean) / std**2


def _by_lengthscale(p: Parameters, W: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Σ_ij W_ij (x_id − z_jd)² / ℓ_d² for each input d."""
    squares = np.sum(W, 1) @ X**2 - 2.0 * np.sum(Z * (W.T @ X), 0) + np.sum(W, 0) @ Z**2
    by: np.ndarray = squares / p.lengthscale**2
    return by
