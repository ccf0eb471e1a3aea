"""The inducing points: which of them to keep, and where to place the first ones."""

from typing import Literal, get_args

import numpy as np

from driftgp.gp.bound import Statistics
from driftgp.kernels import Kernel

Relevance = Literal["leave-one-out", "cholesky", "diagonal"]
RULES: tuple[str, ...] = get_args(Relevance)


def gram(kernel: Kernel, U: np.ndarray, jitter: float, absolute: float) -> np.ndarray:
    """Kuu with a jitter relative to the mean of its diagonal and one that is absolute, M×M."""
    kuu = kernel.diagonal(U)
    Kuu: np.ndarray = kernel.gram(U, U)
    np.fill_diagonal(Kuu, kuu + jitter * (np.sum(kuu) / max(len(U), 1)) + absolute)
    return Kuu


# ---- relevance -------------------------------------------------------------------------------------------------------


def relevance(rule: Relevance, inverse_L: np.ndarray, kuu: np.ndarray, Phi: np.ndarray) -> np.ndarray:
    """Relevance of each point, M, by one of three rules.

    leave-one-out   Σ w_i (Kuu⁻¹ k_i)_m² / (Kuu⁻¹)_mm   how much R_tot grows if m goes; independent of the order
    cholesky        Σ w_i (L⁻¹ k_i)_m²                   sums to tr(Kuu⁻¹Φ); depends on the order; the published runs
    diagonal        Σ w_i k_mi² / k_mm                   as printed in the paper (eq. R_inducing)
    """
    if rule == "diagonal":
        return Phi.diagonal() / kuu
    if rule == "cholesky":
        return np.sum((inverse_L @ Phi) * inverse_L, 1)
    inverse_K = inverse_L.T @ inverse_L
    return np.sum((inverse_K @ Phi) * inverse_K, 1) / inverse_K.diagonal()


def unexplained(inverse_L: np.ndarray, s: Statistics) -> float:
    """R_tot = κ − tr(Kuu⁻¹Φ): the variance of the samples that the inducing points do not explain."""
    return s.kappa - float(np.sum((inverse_L @ s.Phi) * inverse_L))


def survivors(R: np.ndarray, threshold: float, most: int) -> np.ndarray:
    """Which points stay, in their order: those above `threshold` times the largest relevance, at most `most`.

    At most one point is too many, since points are admitted one at a time.
    """
    keep = np.flatnonzero(R >= threshold * np.max(R, initial=0.0))
    return _without_weakest(R, keep) if len(keep) > most else keep


def survivors_published(R: np.ndarray, threshold: float, most: int) -> np.ndarray:
    """Which points stay in the published fast-AGP.

    Points below the threshold are dropped. If there are none, the weakest one is dropped as soon as `most` are in use.
    """
    keep = np.flatnonzero(R >= threshold * np.max(R, initial=0.0))
    return _without_weakest(R, keep) if len(keep) == len(R) >= most else keep


def _without_weakest(R: np.ndarray, keep: np.ndarray) -> np.ndarray:
    return np.delete(keep, np.argmin(R[keep]))


# ---- a first set -----------------------------------------------------------------------------------------------------


def greedy(kernel: Kernel, X: np.ndarray, w: np.ndarray, size: int) -> np.ndarray:
    """Choose among samples, one after another, the one that the chosen ones explain least (pivoted Cholesky)."""
    left = np.where(w > 0.0, kernel.diagonal(X), 0.0)  # N, what is left unexplained
    rows: list[np.ndarray] = []  # of the factor found so far
    chosen: list[int] = []
    while len(chosen) < size and np.max(left, initial=0.0) > 0.0:
        i = int(np.argmax(left))
        explained = sum((row[i] * row for row in rows), np.zeros(len(X)))
        row = (kernel.gram(X[i : i + 1], X)[0] - explained) / np.sqrt(left[i])
        left = np.maximum(left - row**2, 0.0)
        left[np.all(X == X[i], 1)] = 0.0  # nor a copy of it, whose remaining variance is rounding
        rows.append(row)
        chosen.append(i)
    return X[chosen]


def recent(X: np.ndarray, w: np.ndarray, size: int) -> np.ndarray:
    """Every second one of the last 2M samples, oldest first (the published runs on load and sales)."""
    slots = len(X) - 2 * np.arange(size, 0, -1)  # positions in the batch; negative where it is too short
    slots = slots[slots >= 0]
    return X[slots[w[slots] > 0.0]]
