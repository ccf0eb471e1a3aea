"""The last T samples and their weights, in JAX.

A ring of T slots: the newest sample overwrites the oldest. A sample's weight is λ^(t − t_i) inside the window, and 0
once it has left. An empty slot has weight 0, so every sum over slots is a sum over samples.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from driftgp.rivals.loops import only_if

Units = Any  # what `driftgp.models.model.Units` is, with JAX's arrays in it


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


def fill(X: Array, y: Array, decay: Array | float, size: int) -> Window:
    """Window holding the last `size` rows of a batch, the newest with weight 1 and λ for every step before it."""
    kept = min(X.shape[0], size)
    seen = observed(X, y)  # N
    rows = jnp.argsort(seen, stable=True)[X.shape[0] - kept :]  # rows without a target first: the first to go
    steps = X.shape[0] - 1 - rows  # since each of them
    X, y, seen = X[rows], y[rows], seen[rows]
    w = jnp.where(seen, decay**steps, 0.0)
    empty = ((0, size - kept), (0, 0))
    return Window(
        X=jnp.pad(jnp.where(jnp.isfinite(X), X, 0.0), empty),
        y=jnp.pad(jnp.where(seen[:, None], y, 0.0), empty),
        w=jnp.pad(w, empty[0]),
        cursor=jnp.asarray(kept % max(size, 1), jnp.int32),
    )


def observed(x: Array, y: Array) -> Array:
    """Whether a sample, or each row of a batch, has all its numbers: else only time has passed."""
    return jnp.all(jnp.isfinite(x), -1) & jnp.all(jnp.isfinite(y), -1)


def age(window: Window, decay: Array) -> Window:
    """Let time pass: every weight shrinks by `decay`."""
    return replace(window, w=window.w * decay)


def push(window: Window, x: Array, y: Array, observed: Array) -> Window:
    """Put a sample of weight 1 in the place of the oldest; without one change nothing."""

    def put(window: Window) -> Window:
        slot = window.cursor
        return Window(
            X=window.X.at[slot].set(x),
            y=window.y.at[slot].set(y),
            w=window.w.at[slot].set(1.0),
            cursor=(slot + 1) % window.size,
        )

    # to write either the new row or the old one, the compiler would copy the window first
    return only_if(observed, put, window)


def in_units(window: Window, units: Units) -> Window:
    """Samples of a window in other units; an empty slot stays empty."""
    here = window.w[:, None] > 0.0
    return replace(
        window,
        X=jnp.where(here, units.inputs(window.X), 0.0),
        y=jnp.where(here, units.targets(window.y), 0.0),
    )
