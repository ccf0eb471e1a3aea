"""The map that takes many inputs to the two axes of WISKI's grid.

h = tanh(½ (A x − mean)/deviation): a linear map, batch normalisation over all the inputs seen, and tanh. A is learned;
the moments of A x follow from those of x, which are updated input by input.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from driftgp.rivals.jax_window import Window

AXES = 2  # of the largest grid


class Projection(eqx.Module):
    """The linear map, and the moments of the inputs that normalise it."""

    A: Array  # 2×D
    n: Array
    mean: Array  # D
    covariance: Array  # D×D


def first_projection(memory: Window, seed: Any) -> Projection | None:
    """A random map with the moments of a batch; None where the inputs are the grid's axes as they are.

    Weights are uniform in ±1/√D, as a linear layer of PyTorch starts: from smaller ones, a step turns further.
    """
    D = memory.X.shape[1]
    if D <= AXES:
        return None
    A = jax.random.uniform(jax.random.key(seed), (AXES, D), minval=-1.0, maxval=1.0) / D**0.5
    n = jnp.sum(memory.w)
    mean = memory.w @ memory.X / jnp.maximum(n, 1.0)
    centred = memory.w[:, None] * (memory.X - mean)
    return Projection(A, n, mean, centred.T @ centred / jnp.maximum(n, 1.0))


def mapped(projection: Projection | None, X: Array) -> Array:
    """Inputs as the grid has them: as they are, or through the map, N×2."""
    if projection is None:
        return X
    A = projection.A
    variance = jnp.sum((A @ projection.covariance) * A, -1)  # 2
    # before there is anything to normalise by, inputs are taken for standardised ones
    variance = jnp.where(projection.n > AXES, variance, jnp.sum(A**2, -1)) + jnp.finfo(A.dtype).tiny
    return jnp.tanh(0.5 * ((X - projection.mean) @ A.T) / jnp.sqrt(variance))


def with_weights(projection: Projection | None, A: Any) -> Projection | None:
    """The same moments with another linear map."""
    return None if projection is None else replace(projection, A=A)


def with_input(projection: Projection, x: Array) -> Projection:
    """Moments that know of one more input."""
    n = projection.n + 1.0
    ahead = (x - projection.mean) / n
    covariance = projection.covariance * (1.0 - 1.0 / n) + (n - 1.0) * ahead[:, None] * ahead
    return replace(projection, n=n, mean=projection.mean + ahead, covariance=covariance)
