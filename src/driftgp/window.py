"""The last T samples and their weights.

A ring of T slots: the newest sample overwrites the oldest. A sample's weight is λ^(t − t_i) inside the window and 0
once it has left; an empty slot has weight 0, so that every sum over slots is a sum over samples.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from driftgp.loops import only_if


class Window(eqx.Module):
    """Samples in a ring of T slots."""

    X: Array  # T×D
    y: Array  # T×P
    w: Array  # T, λ^(t − t_i), 0 where empty
    cursor: Array  # slot that the next sample takes

    @property
    def size(self) -> int:
        """Number of slots T."""
        return self.w.shape[0]


class Oldest(NamedTuple):
    """The sample that the next one replaces; its weight is 0 if the slot is still empty."""

    slot: Array
    x: Array  # D
    y: Array  # P
    w: Array


def fill(X: Array, y: Array, decay: Array, size: int) -> Window:
    """Window holding the last `size` rows of a batch, the newest with weight 1 and λ for every step before it."""
    kept = min(X.shape[0], size)
    observed = jnp.all(jnp.isfinite(X), -1) & jnp.all(jnp.isfinite(y), -1)  # N
    rows = jnp.argsort(observed, stable=True)[X.shape[0] - kept :]  # rows without a target first: the first to go
    steps = X.shape[0] - 1 - rows  # since each of them
    X, y, observed = X[rows], y[rows], observed[rows]
    w = jnp.where(observed, decay**steps, 0.0).astype(X.dtype)
    empty = ((0, size - kept), (0, 0))
    return Window(
        X=jnp.pad(jnp.where(jnp.isfinite(X), X, 0.0), empty),
        y=jnp.pad(jnp.where(observed[:, None], y, 0.0), empty),
        w=jnp.pad(w, empty[0]),
        cursor=jnp.asarray(kept % max(size, 1), jnp.int32),
    )


def age(window: Window, decay: Array) -> Window:
    """Let time pass: every weight shrinks by `decay`."""
    return eqx.tree_at(lambda window: window.w, window, window.w * decay)


def oldest(window: Window) -> Oldest:
    """Return the sample that leaves when the next one comes."""
    slot = window.cursor
    return Oldest(slot, window.X[slot], window.y[slot], window.w[slot])


def push(window: Window, x: Array, y: Array, observed: Array, weight: Array | float = 1.0) -> Window:
    """Put a sample, of weight 1 unless told otherwise, in the place of the oldest; without one change nothing."""

    def put(window: Window) -> Window:
        slot = window.cursor
        return Window(
            X=window.X.at[slot].set(x),
            y=window.y.at[slot].set(y),
            w=window.w.at[slot].set(weight),
            cursor=(slot + 1) % window.size,
        )

    # to write either the new row or the old one, the compiler would copy the window first
    return only_if(observed, put, window)
