"""The compiled functions of a fleet, on a block: a stack of packed trees, one row a key.

Rows of data come sorted by key, so each key's tree is read once, taken through its rows, and written back in place.
Both loops have as many turns as there are keys and rows: what fills a batch up to its fixed shape costs nothing.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from driftgp.compiling import compile_outer, in_one_piece, small
from driftgp.model import Stacked
from driftgp.packing import Packed, Packing, pack, unpack

ROWS = 256  # of data in one call of a compiled function: enough that the call itself costs little

Look = Callable[[Any, Any, Any], Any]  # what is common, a key's tree, a row → an answer
Step = Callable[[Any, Any, Any], tuple[Any, Any]]  # the same → the key's new tree, an answer


class Batch(NamedTuple):
    """Rows of data for one block, sorted by key and filled up to a fixed number."""

    rows: Any  # a tree of arrays, ROWS×…
    slots: Any  # ROWS, the place in the block of each key
    ends: Any  # ROWS, where the rows of each key end
    keys: Any  # how many keys there are


class Programs(NamedTuple):
    """What can be done with a block."""

    look: Callable[[Packed, Packed, Batch], Any]
    step: Callable[[Packed, Packed, Batch], tuple[Packed, Any]]
    fill: Callable[[Any, int], Packed]  # a block of so many copies of one tree
    read: Callable[[Packed, np.ndarray], Packed]  # the trees at some places
    write: Callable[[Packed, np.ndarray, Any], Packed]  # put trees at some places; places beyond the end: nowhere


@lru_cache(maxsize=64)
def programs(look: Look, step: Step, packed_common: Packing, packed_tree: Packing) -> Programs:
    """Build them for what is common to all keys and a tree of each, of these structures."""
    loops = _Loops(look, step, packed_common, packed_tree)
    whole = small([jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in packed_tree.leaves])
    looked, stepped = loops.looked, loops.stepped
    if whole:  # loops and all
        looked, stepped = in_one_piece(looked), in_one_piece(stepped, written=1)
    return Programs(
        look=compile_outer(looked, whole=whole),
        step=compile_outer(stepped, whole=whole, donate_argnums=1),
        fill=compile_outer(_fill, static_argnums=1),
        read=compile_outer(_read),
        write=compile_outer(_write, donate_argnums=0),
    )


def by_hand(stacked: Stacked) -> Programs:
    """The same for a model that has a way of its own with stacks: NumPy's arrays, changed where they are."""

    def run(stack: Any, batch: Batch, learn: bool) -> Any:
        keys = int(batch.keys)
        return stacked.run(stack, batch.slots[:keys], batch.ends[:keys], batch.rows, learn=learn)

    def write(stack: Any, slots: np.ndarray, rows: Any) -> Any:
        there = slots < stack[0].shape[0]
        for own, new in zip(stack, rows, strict=True):
            own[slots[there]] = new[there]
        return stack

    return Programs(
        look=lambda _, stack, batch: run(stack, batch, learn=False),
        step=lambda _, stack, batch: (stack, run(stack, batch, learn=True)),
        fill=lambda tree, count: jax.tree.map(lambda vector: np.repeat(np.asarray(vector)[None], count, 0), tree),
        read=lambda stack, slots: tuple(vector[slots] for vector in stack),
        write=write,
    )


class _Loops(NamedTuple):
    """Over the keys of a batch, and for each over its rows."""

    look: Look
    step: Step
    packed_common: Packing
    packed_tree: Packing

    def looked(self, common: Packed, block: Packed, batch: Batch) -> Any:
        answer = partial(self.look, unpack(self.packed_common, common))

        def one_key(key: Array, answers: Any) -> Any:
            tree = self._load(block, batch.slots[key])

            def one_row(row: Array, answers: Any) -> Any:
                return _noted(answers, row, answer(tree, _row(batch, row)))

            return lax.fori_loop(_begin(batch, key), batch.ends[key], one_row, answers)

        return lax.fori_loop(0, batch.keys, one_key, self._room(answer, block, batch))

    def stepped(self, common: Packed, block: Packed, batch: Batch) -> tuple[Packed, Any]:
        advance = partial(self.step, unpack(self.packed_common, common))

        def one_row(row: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            tree, answer = advance(carry[0], _row(batch, row))
            return tree, _noted(carry[1], row, answer)

        def one_key(key: Array, carry: tuple[Packed, Any]) -> tuple[Packed, Any]:
            block, answers = carry
            slot = batch.slots[key]
            first = self._load(block, slot), answers
            tree, answers = lax.fori_loop(_begin(batch, key), batch.ends[key], one_row, first)
            return _store(block, slot, tree), answers

        room = self._room(lambda tree, row: advance(tree, row)[1], block, batch)
        return lax.fori_loop(0, batch.keys, one_key, (block, room))

    def _load(self, block: Packed, slot: Any) -> Any:
        return unpack(self.packed_tree, tuple(lax.dynamic_index_in_dim(stack, slot, 0, False) for stack in block))

    def _room(self, answer: Callable[..., Any], block: Packed, batch: Batch) -> Any:
        """Room for the answers to a batch."""
        one = jax.eval_shape(lambda: answer(self._load(block, 0), _row(batch, 0)))
        return jax.tree.map(lambda leaf: jnp.zeros((ROWS, *leaf.shape), leaf.dtype), one)


def _store(block: Packed, slot: Array, tree: Any) -> Packed:
    # a barrier, or where the program is not one kernel, XLA would look for the piece of each number anew
    rows = zip(block, lax.optimization_barrier(pack(tree)), strict=True)
    return tuple(lax.dynamic_update_index_in_dim(stack, row, slot, 0) for stack, row in rows)


def _fill(tree: Packed, count: int) -> Packed:
    return tuple(jnp.broadcast_to(vector, (count, *vector.shape)) for vector in tree)


def _read(block: Packed, slots: Array) -> Packed:
    return tuple(stack[slots] for stack in block)


def _write(block: Packed, slots: Array, rows: Packed) -> Packed:
    return tuple(stack.at[slots].set(row, mode="drop") for stack, row in zip(block, rows, strict=True))


def _row(batch: Batch, row: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[row], batch.rows)


def _begin(batch: Batch, key: Array) -> Array:
    return jnp.where(key > 0, batch.ends[key - 1], 0)


def _noted(answers: Any, row: Array, answer: Any) -> Any:
    return jax.tree.map(lambda leaf, value: leaf.at[row].set(value), answers, answer)
