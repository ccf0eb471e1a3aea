"""The inducing points: which are worth keeping, and how they come and go.

M slots hold the points in the order of their arrival, those in use first. An unused slot looks like an independent
variable that no sample depends on: its row of Kuu is that of the identity and its row of Kux is zero, so that it adds
nothing to the bound, the statistics or a prediction.
"""

from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax

from driftgp.bound import Statistics
from driftgp.kernels import Covariance
from driftgp.window import Window

Relevance = Literal["leave-one-out", "cholesky", "diagonal"]
RULES: tuple[str, ...] = get_args(Relevance)


class Inducing(eqx.Module):
    """Inducing inputs in their slots."""

    U: Array  # M×D
    used: Array  # M, which slots are in use

    @property
    def count(self) -> Array:
        """How many slots are in use."""
        return jnp.sum(self.used, -1)

    @property
    def newest(self) -> Array:
        """Where the newest point is, M: the last slot in use."""
        return self.used & ~jnp.append(self.used[1:], False)

    @property
    def free(self) -> Array:
        """Where the next point goes, M: the first slot that is not in use."""
        return ~self.used & jnp.append(True, self.used[:-1])


def gram(kernel: Covariance, points: Inducing, jitter: Array, absolute: Array) -> Array:
    """Kuu with a jitter relative to the mean of its diagonal and one that is absolute, M×M."""
    return _finished_gram(kernel(points.U, points.U), kernel(points.U), points.used, jitter, absolute)


def _finished_gram(Kuu: Array, kuu: Array, used: Array, jitter: Array, absolute: Array) -> Array:
    """Give the used slots their jitter and the unused ones the identity's rows."""
    identity = jnp.eye(Kuu.shape[0], dtype=Kuu.dtype)
    total, count = jnp.stack([kuu, jnp.ones_like(kuu)]) @ used.astype(kuu.dtype)
    scale = total / jnp.maximum(count, 1.0)
    return jnp.where(used[:, None] & used[None, :], Kuu + (jitter * scale + absolute) * identity, identity)


def cross(kernel: Covariance, points: Inducing, X: Array) -> Array:
    """Kux, M×N."""
    return jnp.where(points.used[:, None], kernel(points.U, X), 0.0)


def grams(
    kernel: Covariance,
    points: Inducing,
    X: Array,
    jitter: Array,
    absolute: Array,
    newest: Array | None = None,
) -> tuple[Array, Array]:
    """Kuu and Kux from one evaluation of the kernel, which costs less than two.

    If `newest` is given, the newest point is there, and it alone of all the points has a derivative: differentiating
    all M to use one would cost another product of the Gram matrix's size.
    """
    U, used, T = points.U, points.used, X.shape[0]
    Z = jnp.concatenate([X, U])  # (T+M)×D
    K = kernel(U, Z)  # M×(T+M)
    if newest is not None:
        here = points.newest
        row = kernel(newest[None], Z)  # 1×(T+M)
        K = jnp.where(here[:, None], row, K)
        Kuu = jnp.where(here[None, :], row[:, T:].T, K[:, T:])
        Kuu = jnp.where(here[:, None] & here[None, :], kernel(newest[None])[0], Kuu)
    else:
        Kuu = K[:, T:]
    # transposed, since LAPACK wants columns: else the compiler would store all of K by columns
    return _finished_gram(Kuu.T, kernel(U), used, jitter, absolute), jnp.where(used[:, None], K[:, :T], 0.0)


# ---- relevance -------------------------------------------------------------------------------------------------------


def relevance(rule: Relevance, inverse_L: Array, kuu: Array, Phi: Array) -> Array:
    """Relevance of each point, M, by one of three rules.

    leave-one-out   Σ w_i (Kuu⁻¹ k_i)_m² / (Kuu⁻¹)_mm   how much R_tot grows if m goes; independent of the order
    cholesky        Σ w_i (L⁻¹ k_i)_m²                   sums to tr(Kuu⁻¹Φ); depends on the order; the published runs
    diagonal        Σ w_i k_mi² / k_mm                   as printed in the paper (eq. R_inducing)
    """
    if rule == "diagonal":
        return jnp.diagonal(Phi) / kuu
    if rule == "cholesky":
        return _row_sums((inverse_L @ Phi) * inverse_L)
    inverse_K = inverse_L.T @ inverse_L
    return _row_sums((inverse_K @ Phi) * inverse_K) / _row_sums(inverse_L.T**2)


def _row_sums(A: Array) -> Array:
    """Sums as a product: the compiler prepares three buffers a call for each reduction, and none for a product."""
    return A @ jnp.ones(A.shape[1], A.dtype)


def unexplained(inverse_L: Array, s: Statistics) -> Array:
    """R_tot = κ − tr(Kuu⁻¹Φ): the variance of the samples that the inducing points do not explain."""
    return s.kappa - jnp.sum((inverse_L @ s.Phi) * inverse_L)


def survivors(R: Array, used: Array, threshold: Array, most: int) -> Array:
    """Which points stay: none under `threshold` times the largest relevance, and at most `most`.

    There is never more than one point too many, since one at a time is admitted.
    """
    keep = used & ~_useless(R, used, threshold)
    return _drop_weakest(R, keep, jnp.sum(keep) > most)


def survivors_published(R: Array, used: Array, threshold: Array, most: int) -> Array:
    """Which points stay in the published fast-AGP.

    Those under the threshold go or, if there are none, the weakest one as soon as `most` are in use.
    """
    useless = _useless(R, used, threshold)
    return _drop_weakest(R, used & ~useless, ~jnp.any(useless) & (jnp.sum(used) >= most))


def _useless(R: Array, used: Array, threshold: Array) -> Array:
    return used & (R < threshold * jnp.max(jnp.where(used, R, -jnp.inf)))


def _drop_weakest(R: Array, keep: Array, condition: Array) -> Array:
    weakest = jnp.argmin(jnp.where(keep, R, jnp.inf))
    return keep & ~(condition & (jnp.arange(keep.shape[0]) == weakest))


# ---- coming and going ------------------------------------------------------------------------------------------------


def compaction(keep: Array) -> tuple[Array, Array]:
    """Slot that each slot is filled from, and whether it is: the kept points come first and in their order, M each."""
    slots = jnp.arange(keep.shape[0], dtype=float)
    rank = (slots[None, :] < slots[:, None]).astype(float) @ keep.astype(float)  # kept points before each slot
    moves = keep[None, :] & (rank[None, :] == slots[:, None])  # M×M, from column to row
    source, filled = (moves.astype(float) @ jnp.stack([slots, jnp.ones_like(slots)], 1)).T
    return source.astype(int), filled > 0.0


def remove(points: Inducing, keep: Array) -> Inducing:
    """Close the gaps that removed points leave."""
    source, filled = compaction(keep)
    return Inducing(points.U[source], filled)


def remaining(Phi: Array, source: Array, used: Array) -> Array:
    """Φ of the points that stay: slot m is filled from `source[m]`, or empty."""
    return jnp.where(used[:, None] & used[None, :], Phi[source][:, source], 0.0)


def append(points: Inducing, x: Array) -> Inducing:
    """Put a new point into the first free slot."""
    return Inducing(jnp.where(points.free[:, None], x, points.U), points.used | points.free)


def move_newest(points: Inducing, x: Array) -> Inducing:
    """Put the newest point elsewhere."""
    return replace(points, U=jnp.where(points.newest[:, None], x, points.U))


class Wide(NamedTuple):
    """Points, Kux and statistics while there is a slot more than usual."""

    points: Inducing
    Kux: Array  # (M+1)×T
    statistics: Statistics


def widen(
    kernel: Covariance, points: Inducing, Kux: Array, s: Statistics, window: Window, x: Array, admit: Array
) -> Wide:
    """Add a slot, with x in it if it is admitted, and its row of Kux, Φ and b (eq. update_B_inducing): O(MT)."""
    row = jnp.where(admit, kernel(x[None], window.X), 0.0)  # 1×T
    weighted = row * window.w
    Kux = jnp.concatenate([Kux, row])
    phi = Kux @ weighted[0]  # M+1
    Phi = jnp.zeros((phi.size, phi.size), phi.dtype).at[:-1, :-1].set(s.Phi).at[-1].set(phi).at[:, -1].set(phi)
    wider = Inducing(jnp.concatenate([points.U, x[None]]), jnp.append(points.used, admit))
    return Wide(wider, Kux, replace(s, Phi=Phi, b=jnp.concatenate([s.b, weighted @ window.y])))


def narrow(wide: Wide, keep: Array) -> tuple[Inducing, Array, Statistics]:
    """Go back to M slots, with the rows of the kept points."""
    points, Kux, s = wide
    chosen, used = (array[:-1] for array in compaction(keep))
    kept = replace(s, Phi=remaining(s.Phi, chosen, used), b=jnp.where(used[:, None], s.b[chosen], 0.0))
    return Inducing(points.U[chosen], used), jnp.where(used[:, None], Kux[chosen], 0.0), kept


# ---- a first set -----------------------------------------------------------------------------------------------------


def given(U: Array, size: int) -> Inducing:
    """Take the points that are given, and leave the other slots free."""
    free = size - U.shape[0]
    return Inducing(jnp.pad(U, ((0, free), (0, 0))), jnp.arange(size) < U.shape[0])


def greedy(kernel: Covariance, X: Array, w: Array, size: int) -> Inducing:
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
    (_, _), (chosen, worthwhile) = lax.scan(pick, (prior, jnp.zeros((size, X.shape[0]), X.dtype)), length=size)
    return remove(Inducing(X[chosen], worthwhile), worthwhile)


def recent(X: Array, w: Array, size: int) -> Inducing:
    """Every second one of the last 2M samples, oldest first (the published runs on load and sales)."""
    N = X.shape[0]
    slots = N - 2 * jnp.arange(size, 0, -1)  # positions in the batch; negative where it is too short
    usable = (slots >= 0) & (w[jnp.maximum(slots, 0)] > 0.0)
    return remove(Inducing(X[jnp.maximum(slots, 0)], usable), usable)
