"""Structured kernel interpolation: a kernel as it looks from a regular grid.

A. G. Wilson, H. Nickisch, "Kernel Interpolation for Scalable Structured Gaussian Processes", ICML 2015. With K the
Gram matrix of the m grid points and w(x) the weights of cubic convolution interpolation (R. G. Keys, 1981),

    k(x, z) ≈ w(x)ᵀ K w(z)

On two axes weights and Gram matrix are Kronecker products, w(x) = w₁(x₁) ⊗ w₂(x₂) and K = K₁ ⊗ K₂. A kernel that is no
product along the axes (Matérn) is replaced by one.
"""

import math
from functools import reduce
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax


class Grid(eqx.Module):
    """A regular grid of `size` points along each of one or two axes."""

    lower: Array  # d
    upper: Array  # d
    size: int = eqx.field(static=True)

    @property
    def dimensions(self) -> int:
        """Number of axes d."""
        return self.lower.shape[0]

    @property
    def points(self) -> int:
        """Number of grid points m."""
        return math.prod([self.size] * self.dimensions)


# ---- interpolation weights -------------------------------------------------------------------------------------------


def axis_weights(grid: Grid, X: Array) -> list[Array]:
    """Weights along each axis, N×size; inputs beyond the grid count as on its edge.

    In the outermost cells one neighbour is missing; its value is extrapolated as c₋₁ = 3c₀ − 3c₁ + c₂, so that its
    weight goes to those three.
    """
    nodes = jnp.arange(-1, grid.size + 1)
    left, right = jnp.asarray([3.0, -3.0, 1.0]), jnp.asarray([1.0, -3.0, 3.0])
    weights = []
    for x, lower, upper in zip(X.T, grid.lower, grid.upper, strict=True):
        position = jnp.clip((x - lower) / (upper - lower), 0.0, 1.0) * (grid.size - 1)
        w = _convolution(jnp.abs(position[:, None] - nodes))  # N×(size + 2)
        w = w.at[:, 1:4].add(w[:, :1] * left).at[:, -4:-1].add(w[:, -1:] * right)
        weights.append(w[:, 1:-1])
    return weights


def interpolation(grid: Grid, X: Array) -> Array:
    """W: the weights of all grid points, N×m."""
    return reduce(
        lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(X.shape[0], a.shape[1] * b.shape[1]), axis_weights(grid, X)
    )


def _convolution(s: Array) -> Array:
    """Keys' kernel at distance s ≥ 0 in grid steps: two cubics, with value and slope continuous."""
    near = (1.5 * s - 2.5) * s**2 + 1.0
    far = ((-0.5 * s + 2.5) * s - 4.0) * s + 2.0
    return jnp.where(s < 1.0, near, jnp.where(s < 2.0, far, 0.0))


# ---- the kernel on the grid ------------------------------------------------------------------------------------------


def axis_grams(grid: Grid, kernel: Any) -> list[Array]:
    """K₁, K₂: Gram matrices of the axes, whose Kronecker product is K."""
    origin = 0.5 * (grid.lower + grid.upper)
    grams = []
    for axis in range(grid.dimensions):
        line = jnp.linspace(grid.lower[axis], grid.upper[axis], grid.size)
        points = jnp.broadcast_to(origin, (grid.size, grid.dimensions)).at[:, axis].set(line)
        gram = kernel(points, points)
        grams.append(gram if axis == 0 else gram / kernel(origin[None])[0])
    return grams


def gram(grid: Grid, kernel: Any, X: Array) -> Array:
    """W K Wᵀ for a few samples, N×N: the product over the axes of the interpolated Gram matrices."""
    pairs = zip(axis_weights(grid, X), axis_grams(grid, kernel), strict=True)
    return reduce(jnp.multiply, [w @ K @ w.T for w, K in pairs])


def times(grams: list[Array], Y: Array) -> Array:
    """K Y for Y of m×c, by the Kronecker factors."""
    size = grams[0].shape[0]
    if len(grams) == 1:
        return grams[0] @ Y
    cube = jnp.einsum("bd,adc->abc", grams[1], Y.reshape(size, size, -1))
    return jnp.einsum("ab,bdc->adc", grams[0], cube).reshape(Y.shape)


def trace_with(grams: list[Array], A: Array) -> Array:
    """tr(A K) for a symmetric A of m×m, by the Kronecker factors."""
    size = grams[0].shape[0]
    if len(grams) == 1:
        return jnp.sum(A * grams[0])
    return jnp.einsum("abcd,ac,bd->", A.reshape(size, size, size, size), grams[0], grams[1])


def root(grams: list[Array], rank: int) -> Array:
    """F of m×rank with F Fᵀ ≈ K: the leading eigenvectors, scaled; exact for rank m.

    The eigenvectors of a Kronecker product are the products of those of its factors. F has no derivative.
    """
    decompositions = [jnp.linalg.eigh(lax.stop_gradient(K)) for K in grams]
    values = reduce(jnp.multiply.outer, [values for values, _ in decompositions]).reshape(-1)  # m
    leading, chosen = lax.top_k(values, rank)
    index = jnp.unravel_index(chosen, tuple(K.shape[0] for K in grams))
    vectors = [E[:, i] for (_, E), i in zip(decompositions, index, strict=True)]  # size×rank each
    product: Array = reduce(lambda a, b: (a[:, None, :] * b[None, :, :]).reshape(-1, rank), vectors)
    return product * jnp.sqrt(jnp.maximum(leading, 0.0))
