"""Inducing points in slots, in JAX.

M slots hold the points, those in use first. An unused slot is an independent variable on which no sample depends. Its
row of Kuu is that of the identity, and its row of Kux is zero. So it adds nothing to the bound, the statistics or a
prediction.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from driftgp.rivals.jax_window import Window

PLACEMENTS = ("greedy", "recent")


class Inducing(eqx.Module):
    """Inducing inputs in their slots."""

    U: Array  # M×D
    used: Array  # M, which slots are in use

    @property
    def count(self) -> Array:
        """How many slots are in use."""
        return jnp.sum(self.used, -1)

    @property
    def free(self) -> Array:
        """Where the next point goes, M: the first slot that is not in use."""
        return ~self.used & jnp.append(True, self.used[:-1])


def gram(kernel: Any, points: Inducing, jitter: Array | float, absolute: Array | float) -> Array:
    """Kuu with a jitter relative to the mean of its diagonal and one that is absolute, M×M."""
    return _finished_gram(kernel(points.U, points.U), kernel(points.U), points.used, jitter, absolute)


def _finished_gram(Kuu: Array, kuu: Array, used: Array, jitter: Array | float, absolute: Array | float) -> Array:
    """Give the used slots their jitter and the unused ones the identity's rows."""
    identity = jnp.eye(Kuu.shape[0])
    total, count = jnp.stack([kuu, jnp.ones_like(kuu)]) @ used.astype(kuu.dtype)
    scale = total / jnp.maximum(count, 1.0)
    return jnp.where(used[:, None] & used[None, :], Kuu + (jitter * scale + absolute) * identity, identity)


def cross(kernel: Any, points: Inducing, X: Array) -> Array:
    """Kux, M×N."""
    return jnp.where(points.used[:, None], kernel(points.U, X), 0.0)


def grams(kernel: Any, points: Inducing, X: Array, jitter: float, absolute: float) -> tuple[Array, Array]:
    """Kuu and Kux from one evaluation of the kernel, which costs less than two."""
    U, used, T = points.U, points.used, X.shape[0]
    K = kernel(U, jnp.concatenate([X, U]))  # M×(T+M)
    # transposed, since LAPACK wants columns: else the compiler would store all of K by columns
    Kuu = _finished_gram(K[:, T:].T, kernel(U), used, jitter, absolute)
    return Kuu, jnp.where(used[:, None], K[:, :T], 0.0)


def append(points: Inducing, x: Array) -> Inducing:
    """Put a new point into the first free slot."""
    return Inducing(jnp.where(points.free[:, None], x, points.U), points.used | points.free)


# ---- a first set -----------------------------------------------------------------------------------------------------


def place(given: np.ndarray | None, placement: str, kernel: Any, memory: Window, filled: int, size: int) -> Inducing:
    """First inducing points: those given, or some of the first `filled` samples of a window, or none yet."""
    X, w = memory.X[:filled], memory.w[:filled]
    if given is not None:
        if given.shape[1] != X.shape[1]:
            raise ValueError(f"inducing_inputs must have {X.shape[1]} columns, as many as X; got {given.shape[1]}")
        return _first(jnp.asarray(given), size)
    if filled == 0:
        return _first(X, size)
    return recent(X, w, size) if placement == "recent" else greedy(kernel, X, w, size)


def _first(U: Array, size: int) -> Inducing:
    """These points, and free slots behind them."""
    return Inducing(jnp.pad(U, ((0, size - U.shape[0]), (0, 0))), jnp.arange(size) < U.shape[0])


def greedy(kernel: Any, X: Array, w: Array, size: int) -> Inducing:
    """Choose among samples, one after another, the one that the chosen ones explain least (pivoted Cholesky)."""

    def pick(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        left, rows = carry  # N, what is left unexplained; size×N, rows of the factor found so far
        i, step = jnp.argmax(left), jnp.sum(jnp.any(rows != 0.0, -1))
        row = kernel(X[i][None], X)[0] - rows[:, i] @ rows
        row = row / jnp.sqrt(jnp.maximum(left[i], jnp.finfo(X.dtype).tiny))
        worthwhile = left[i] > 0.0
        left = jnp.where(worthwhile, jnp.maximum(left - row**2, 0.0), left)
        left = jnp.where(jnp.all(X == X[i], -1), 0.0, left)  # nor is a copy of it, for the rounding that is left
        return (left, jnp.where(worthwhile, rows.at[step].set(row), rows)), (i, worthwhile)

    prior = jnp.where(w > 0.0, kernel(X), 0.0)
    (_, _), (chosen, worthwhile) = lax.scan(pick, (prior, jnp.zeros((size, X.shape[0]))), length=size)
    return _together(X[chosen], worthwhile)


def recent(X: Array, w: Array, size: int) -> Inducing:
    """Every second one of the last 2M samples, oldest first (the published runs on load and sales)."""
    slots = X.shape[0] - 2 * jnp.arange(size, 0, -1)  # positions in the batch; negative where it is too short
    usable = (slots >= 0) & (w[jnp.maximum(slots, 0)] > 0.0)
    return _together(X[jnp.maximum(slots, 0)], usable)


def _together(U: Array, keep: Array) -> Inducing:
    """The points that are kept, in their order and in the first slots."""
    used = jnp.arange(keep.shape[0]) < jnp.sum(keep)
    return Inducing(jnp.where(used[:, None], U[jnp.argsort(~keep, stable=True)], 0.0), used)
