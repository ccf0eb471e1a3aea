"""The functions of a rival as compiled programs, on the words of records (`trees.py`).

Settings are arguments, so that one program serves all models of one structure. Programs differ in the number of rows:
rows are padded to a power of two and counted, so that streams of any length share a dozen of programs.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from driftgp.rivals.jax_kernels import register
from driftgp.rivals.trees import TreeLayout

# Handing a part of a small step to another thread costs more than computing it.
_ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}
# Nor is another library worth its call for products of ten rows: OSGP takes 44 µs per row without it, 51 with it. The
# option is XLA's own affair and may change; only versions of JAX with which it was tried are asked.
_NO_LIBRARY = {"xla_cpu_experimental_ynn_fusion_type": ""}
_TRIED = {(0, 10)}
_IN_SMALL_STEPS = _ONE_THREAD | (_NO_LIBRARY if jax.__version_info__[:2] in _TRIED else {})
# A step is small if no leaf of the state has more entries, nor takes more multiplications in a product with itself.
_ENTRIES, _MULTIPLICATIONS = 7_500, 150_000


class Program:
    """A function of a layout, a rival and arrays, compiled for small states and for large ones."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Take the function; it is compiled when it is called."""
        self.small = jax.jit(function, static_argnums=0, compiler_options=_IN_SMALL_STEPS)
        self.large = jax.jit(function, static_argnums=0, compiler_options=_ONE_THREAD)

    def __call__(self, layout: TreeLayout, rival: Any, *arguments: Any) -> Any:
        """Compute."""
        return (self.small if all(map(_small, layout.shapes)) else self.large)(layout, rival, *arguments)


def _small(shape: tuple[int, ...]) -> bool:
    rows, columns = (1, 1, *shape)[-2:]
    return math.prod(shape) <= _ENTRIES and rows * columns * min(rows, columns) <= _MULTIPLICATIONS


def as_arrays(rival: Any) -> Any:
    """A rival with every number an array, as programs take it."""
    register(rival.kernel)
    return jax.tree.map(np.asarray, rival)


def settled(rival: Any) -> Any:
    """The same with JAX's arrays, which are handed over in half the time: for whoever does so more than once."""
    with jax.enable_x64(True):
        return jax.tree.map(jnp.asarray, as_arrays(rival))


def call(program: Callable[..., Any], layout: TreeLayout, rival: Any, *arguments: Any) -> Any:
    """What a program computes in double precision, as NumPy's arrays."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, program(layout, rival, *arguments))


def padded(rows: np.ndarray) -> np.ndarray:
    """Rows, and zeros behind them up to a power of two.

    >>> padded(np.ones((5, 2))).shape
    (8, 2)
    """
    size = 1 << max(len(rows) - 1, 0).bit_length()
    if size == len(rows):
        return rows
    made = np.zeros((size, *rows.shape[1:]))
    made[: len(rows)] = rows
    return made


def forecasts(layout: TreeLayout, rival: Any, words: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Forecasts at the rows of X, N×3P."""
    made: np.ndarray = call(look, layout, rival, words, padded(X), len(X))
    return made[: len(X)]


def run(layout: TreeLayout, rival: Any, words: np.ndarray, *rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Words after some rows, X, y and elapsed, and their forecasts, N×3P; with X_next too, those of its rows."""
    X, y, elapsed, *more = map(padded, rows)
    after, made = call(follow, layout, rival, words, X, y, elapsed, more[0] if more else None, len(rows[0]))
    return after, made[: len(rows[0])]


# ---- the programs ----------------------------------------------------------------------------------------------------


@partial(jax.jit, static_argnums=0, compiler_options=_ONE_THREAD)
def begin(layout: TreeLayout, rival: Any, X: Array, y: Array) -> Array:
    """Words after a warm-up batch."""
    return layout.pack(rival.begin(X, y))


@Program
def step(layout: TreeLayout, rival: Any, words: Array, x: Array, y: Array, elapsed: Array) -> Array:
    """Words after one sample."""
    return layout.pack(rival.step(layout.unpack(words), x, y, elapsed))


@Program
def look(layout: TreeLayout, rival: Any, words: Array, X: Array, count: int) -> Array:
    """Forecast each of the first `count` rows."""
    state = layout.unpack(words)
    return _rows(lambda state, i: (state, _forecast(rival, state, X[i])), state, X, count)[1]


@Program
def follow(
    layout: TreeLayout, rival: Any, words: Array, X: Array, y: Array, elapsed: Array, X_next: Array | None, count: int
) -> tuple[Array, Array]:
    """Learn from each of the first `count` rows: the last words, and forecasts.

    A forecast is of the row before it is learned from or, where `X_next` is given, of its row after that.
    """

    def turn(state: Any, i: Array) -> tuple[Any, Array]:
        after = rival.step(state, X[i], y[i], elapsed[i])
        return after, _forecast(rival, state, X[i]) if X_next is None else _forecast(rival, after, X_next[i])

    state, made = _rows(turn, layout.unpack(words), X, count)
    return layout.pack(state), made


@Program
def finish(layout: TreeLayout, rival: Any, words: Array) -> Array:
    """Words with all that follows from the rest."""
    return layout.pack(rival.finish(layout.unpack(words)))


@Program
def in_units(layout: TreeLayout, rival: Any, words: Array, units: Any) -> Array:
    """Words in other units."""
    return layout.pack(rival.in_units(layout.unpack(words), units))


def _forecast(rival: Any, state: Any, x: Array) -> Array:
    """Mean, variance and noise at one row, 3P: they lie behind each other, as in the record of a forecast."""
    return jnp.concatenate(rival.look(state, x[None]), 1)[0]


def _rows(turn: Callable[[Any, Array], tuple[Any, Array]], state: Any, X: Array, count: int) -> tuple[Any, Array]:
    """Take a turn for each row: the last state, and what the turns made, N×3P."""
    shape = jax.eval_shape(turn, state, jnp.zeros((), jnp.int32))[1]

    def next_row(i: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, made = turn(carry[0], i)
        return state, carry[1].at[i].set(made)

    return lax.fori_loop(0, count, next_row, (state, jnp.zeros((X.shape[0], *shape.shape))))
