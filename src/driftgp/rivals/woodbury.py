"""Posterior and evidence of a GP on a grid, from statistics of fixed size.

The covariance of the targets is W K Wᵀ + σ²I. K is the Gram matrix of a fixed grid of m points, and W has a row of
cubic interpolation weights for each sample (module `ski`). By Woodbury's identity the data enter only through

    n    yᵀy    Wᵀy (m)    WᵀW (m×m)

With K = F Fᵀ, Φ = Fᵀ WᵀW F, b = Fᵀ Wᵀy, B = I + Φ/σ²:

    evidence  −½ [n log 2πσ² + log |B| + yᵀy/σ² − bᵀB⁻¹b/σ⁴]
    mean      w*ᵀ F α, α = B⁻¹b/σ²          variance  w*ᵀ F B⁻¹ Fᵀ w*

The evidence's derivative is written out, so that nothing is differentiated through a factorisation: with u the grid's
values, v = Wᵀ(y − W E[u])/σ² and D = WᵀW/σ² − WᵀW Cov[u] WᵀW/σ⁴,

    ∂evidence/∂K = ½ (v vᵀ − D)          ∂evidence/∂σ⁻² = ½ (nσ² − E |y − W u|²)
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from driftgp.rivals import jax_bound as bound
from driftgp.rivals import ski
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units
from driftgp.rivals.ski import Grid


class Woodbury(eqx.Module):
    """Everything that the evidence and the posterior know of the data."""

    n: Array
    yy: Array  # P
    Wy: Array  # m×P
    WW: Array  # m×m


class GridPosterior(eqx.Module):
    """The distribution of the grid's values, u = F z."""

    F: Array  # m×r
    C: Array  # P×r×r, Cᵀ C = B⁻¹
    alpha: Array  # r×P, E[z]


def summed_up(W: Array, w: Array, y: Array) -> Woodbury:
    """Statistics of samples of weight 0 or 1."""
    W = W * w[:, None]  # N×m
    return Woodbury(jnp.sum(w), w @ y**2, W.T @ y, W.T @ W)


def with_sample(s: Woodbury, w: Array, y: Array) -> Woodbury:
    """Statistics with one more sample, of interpolation weights w (m)."""
    return Woodbury(s.n + 1.0, s.yy + y**2, s.Wy + w[:, None] * y, s.WW + w[:, None] * w)


def in_units(s: Woodbury, units: Units) -> Woodbury:
    """Statistics of targets in other units; the interpolation weights of a sample stay, and add up to 1."""
    centre, scale = units.y_centre, units.y_scale
    Wy = (s.Wy - jnp.sum(s.WW, 1)[:, None] * centre) / scale
    yy = (s.yy - 2.0 * centre * jnp.sum(s.Wy, 0) + s.n * centre**2) / scale**2
    return replace(s, Wy=Wy, yy=yy)


def condition(grid: Grid, h: Hyperparameters, s: Woodbury, rank: int) -> tuple[GridPosterior, Hyperparameters, Array]:
    """Posterior of the grid's values, the evidence's derivative, and the repairs that its factorisation needed."""
    F = ski.root(ski.axis_grams(grid, h.kernel), min(rank, grid.points))  # m×r
    beta = 1.0 / h.noise
    WWF = s.WW @ F  # m×r
    Phi, b = F.T @ WWF, F.T @ s.Wy
    identity = jnp.eye(Phi.shape[0])
    L_B, repairs = bound.cholesky(identity + beta[:, None, None] * Phi)  # P×r×r
    C = bound.solve_lower(L_B, jnp.broadcast_to(identity, L_B.shape))
    alpha = beta * jnp.einsum("pij,pi->jp", C, jnp.einsum("pij,jp->pi", C, b))  # r×P
    v = beta * (s.Wy - WWF @ alpha)  # m×P
    V = jnp.einsum("p,mj,pij->mpi", beta, WWF, C).reshape(s.WW.shape[0], -1)  # m×Pr, V Vᵀ = Σ_p WᵀW Cov[u] WᵀW/σ⁴
    residual = s.yy - jnp.sum((2.0 * b - Phi @ alpha) * alpha, 0) + jnp.einsum("pij,jk,pik->p", C, Phi, C)

    def slope(h: Hyperparameters) -> Array:
        """A function with the derivative of the evidence: K's is ½ (v vᵀ − D), the noise's that of a likelihood."""
        grams = ski.axis_grams(grid, h.kernel)
        Y = jnp.concatenate([v, V], 1)
        by_kernel = jnp.sum(Y * ski.times(grams, Y)) - jnp.sum(beta) * ski.trace_with(grams, s.WW)
        return 0.5 * (by_kernel - jnp.sum(s.n * jnp.log(h.noise) + residual / h.noise))

    return GridPosterior(F, C, alpha), jax.grad(slope)(h), repairs


def interpolated(grid: Grid, q: GridPosterior, X: Array) -> tuple[Array, Array]:
    """Mean and latent variance at inputs of the grid, N×P each."""
    features = ski.interpolation(grid, X) @ q.F  # N×r
    return features @ q.alpha, jnp.sum((q.C @ features.T) ** 2, -2).T
