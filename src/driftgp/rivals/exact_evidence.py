"""Hyperparameters that maximise the evidence of the exact GP on a batch.

With B = I + β K, β = σ⁻² and a = B⁻¹ y (Rasmussen and Williams 2006, chapter 5), for each output

    F = −½ n log 2πσ² − ½ log|B| − ½ β yᵀa
    ∂F/∂K = ½ β (β aaᵀ − B⁻¹)        ∂F/∂β = ½ tr B⁻¹/β − ½ aᵀa

The first is ½ (αα' − (K + σ²I)⁻¹) with α = (K + σ²I)⁻¹ y. Cost: O(N³) per iteration.
"""

from typing import NamedTuple

import numpy as np

from driftgp.bound import NoFactor, inverse_lower, lower_factor
from driftgp.kernels import Kernel
from driftgp.learning import Adam, moved


class Fit(NamedTuple):
    """Where the climb has led."""

    theta: np.ndarray  # H
    noise: np.ndarray  # P
    skipped: int  # steps left out because something in them was not finite


def evidence(kernel: Kernel, noise: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """F, summed over outputs."""
    K = kernel.gram(X, X)
    total = 0.0
    for p, sigma2 in enumerate(noise):
        L = lower_factor(np.eye(len(K)) + K / sigma2)
        half = inverse_lower(L) @ y[:, p]
        log_determinant = np.sum(np.log(L.diagonal()))
        total -= 0.5 * len(K) * np.log(2.0 * np.pi * sigma2) + log_determinant + 0.5 * half @ half / sigma2
    return float(total)


def gradient(kernel: Kernel, noise: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """∂F/∂log θ and ∂F/∂log σ², H+P.

    >>> from driftgp.kernels import SE
    >>> X, noise = np.linspace(0, 1, 5)[:, None], np.array([0.3])
    >>> y = np.sin(6 * X)
    >>> ahead, behind = (evidence(SE(0.5 * np.exp(step)), noise, X, y) for step in (1e-5, -1e-5))
    >>> bool(np.isclose(gradient(SE(0.5), noise, X, y)[0], (ahead - behind) / 2e-5))
    True
    """
    K = kernel.gram(X, X)
    dK, by_noise = np.zeros_like(K), np.empty_like(noise)
    for p, beta in enumerate(1.0 / noise):
        inverse_L = inverse_lower(lower_factor(np.eye(len(K)) + beta * K))
        inverse_B = inverse_L.T @ inverse_L
        a = inverse_B @ y[:, p]
        dK += 0.5 * beta * (beta * np.outer(a, a) - inverse_B)
        by_noise[p] = -0.5 * (np.trace(inverse_B) - beta * a @ a)  # −β ∂F/∂β
    return np.concatenate([kernel.pull(dK, X, X), by_noise])


def maximised(kernel: Kernel, noise: np.ndarray, X: np.ndarray, y: np.ndarray, iterations: int, rate: float) -> Fit:
    """Adam's steps on the logarithms of all hyperparameters."""
    theta, skipped, adam = kernel.theta, 0, Adam.begin(kernel.size + len(noise))
    for _ in range(iterations):
        try:
            slope = gradient(kernel.at(theta), noise, X, y)
        except NoFactor:
            slope = np.full(kernel.size + len(noise), np.nan)
        if not np.isfinite(slope).all():
            skipped += 1
            continue
        step, adam = adam.step(slope, rate)
        theta, noise = moved(theta, step[: kernel.size]), moved(noise, step[kernel.size :])
    return Fit(theta, noise, skipped)
