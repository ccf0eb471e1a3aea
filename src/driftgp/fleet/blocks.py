"""Where the trees of a fleet are kept: packed, one row a key, in blocks of a fixed size.

A fleet grows by another block. Nothing is ever copied for it, no memory lies idle but in the last blocks, and the
compiled functions, which know a block's size, stay the same. Blocks are also what the cores share out among them.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import jax
import numpy as np

from driftgp.cores import cores, each
from driftgp.fleet.programs import ROWS, Batch, Look, Programs, Step, by_hand, programs
from driftgp.model import Stacked
from driftgp.packing import Packing, pack, packing_of, unpack

SIZE = 256  # trees in a block: a small fleet should take little memory, and a large one few calls
_SHARE = 16  # keys that a block has before another core is given one


class Place(NamedTuple):
    """Where a key's tree is."""

    block: int
    slot: int


class Block:
    """A stack of trees; the row after the last is the tree that new keys start from, and so is every free one."""

    def __init__(self, does: Programs, start: Sequence[np.ndarray]) -> None:
        self._does = does
        self.free = list(range(SIZE))[::-1]
        self.stack = does.fill(start, SIZE + 1)

    @property
    def used(self) -> int:
        """Keys at home here."""
        return SIZE - len(self.free)

    def read(self, slots: np.ndarray) -> tuple[np.ndarray, ...]:
        """Trees at some places, as arrays of the caller's own."""
        padded = np.full(SIZE + 1, SIZE, np.int32)
        padded[: slots.size] = slots
        return tuple(np.asarray(rows)[: slots.size] for rows in self._does.read(self.stack, padded))

    def write(self, slots: np.ndarray, trees: Sequence[np.ndarray]) -> None:
        """Put trees at some places."""
        padded = np.full(SIZE + 1, SIZE + 1, np.int32)  # beyond the end, where nothing is written
        padded[: slots.size] = slots
        filled = tuple(_filled_up(rows, SIZE + 1) for rows in trees)
        self.stack = self._does.write(self.stack, padded, filled)


class Blocks:
    """All the blocks of a fleet, and what is common to its keys."""

    def __init__(
        self,
        look: Look,
        step: Step,
        common: Any,
        packing: Packing,
        start: Sequence[Any],
        stacked: Stacked | None = None,
    ) -> None:
        """Take what is done with a row, what all keys have in common, and the tree that each starts from, packed.

        `stacked` does the same to the same trees more quickly, if it is given.
        """
        with jax.enable_x64(True):
            self._common = pack(common)
        self._does = programs(look, step, packing_of(common), packing) if stacked is None else by_hand(stacked)
        self.packing = packing
        self.start = tuple(np.asarray(vector) for vector in start)
        self.blocks: list[Block] = []

    # ---- coming and going

    def unknown(self) -> Place:
        """Return where the tree is that new keys start from."""
        if not self.blocks:
            self._another()
        return Place(0, SIZE)

    def admit(self) -> Place:
        """Find a place for one more key: in the emptiest block, or in a new one while there are cores without any."""
        open_ones = [number for number, block in enumerate(self.blocks) if block.free]
        number = min(open_ones, key=lambda number: self.blocks[number].used, default=-1)
        idle_cores = len(self.blocks) < cores()
        if number < 0 or (idle_cores and self.blocks[number].used >= _SHARE):
            self._another()
            number = len(self.blocks) - 1
        return Place(number, self.blocks[number].free.pop())

    def _another(self) -> None:
        with jax.enable_x64(True):
            self.blocks.append(Block(self._does, self.start))

    def release(self, places: Sequence[Place]) -> None:
        """Give places back; they hold the starting tree again."""
        self.write(places, tuple(np.broadcast_to(vector, (len(places), vector.size)) for vector in self.start))
        for block, slot in places:
            self.blocks[block].free.append(slot)

    def restart(self, start: Sequence[Any]) -> None:
        """Have keys that come from now on start from another tree."""
        self.start = tuple(np.asarray(vector) for vector in start)
        with jax.enable_x64(True):
            for block in self.blocks:
                slots = np.array([*block.free, SIZE])
                block.write(slots, tuple(np.broadcast_to(vector, (slots.size, vector.size)) for vector in self.start))

    def read(self, places: Sequence[Place]) -> tuple[np.ndarray, ...]:
        """Trees at some places, packed: one row each."""
        trees = tuple(np.empty((len(places), vector.size), vector.dtype) for vector in self.start)
        with jax.enable_x64(True):
            for block, here, slots in _by_block(places):
                for rows, some in zip(trees, self.blocks[block].read(slots), strict=True):
                    rows[here] = some
        return trees

    def write(self, places: Sequence[Place], trees: Sequence[np.ndarray]) -> None:
        """Put trees, packed, at some places."""
        with jax.enable_x64(True):
            for block, here, slots in _by_block(places):
                self.blocks[block].write(slots, tuple(rows[here] for rows in trees))

    def tree(self, place: Place) -> Any:
        """One tree, as it was before it was packed."""
        with jax.enable_x64(True):
            return unpack(self.packing, jax.device_put([rows[0] for rows in self.read([place])]))

    # ---- the compiled loops

    def look(self, places: Sequence[Place], which: np.ndarray, rows: Any) -> Any:
        """Answers to rows (a tree of arrays, N×…), the i-th by the tree at the place `which[i]`."""
        return self._run(places, which, rows, lambda block, batch: self._does.look(self._common, block.stack, batch))

    def step(self, places: Sequence[Place], which: np.ndarray, rows: Any) -> Any:
        """Do the same, and take the trees a step further with every row."""

        def advance(block: Block, batch: Batch) -> Any:
            block.stack, answers = self._does.step(self._common, block.stack, batch)
            return answers

        return self._run(places, which, rows, advance)

    def _run(self, places: Sequence[Place], which: np.ndarray, rows: Any, call: Any) -> Any:
        """Sort rows by place, hand each block its own, and put the answers back in the rows' order."""
        home = _array(places)[which]  # N×2
        order = np.lexsort((home[:, 1], home[:, 0]))  # stable: rows of one key stay in order
        blocks, slots = home[order].T
        numbers, begins = np.unique(blocks, return_index=True)

        def work(own: tuple[int, int, int]) -> list[Any]:
            number, begin, end = own
            cuts = [slice(cut, min(cut + ROWS, end)) for cut in range(begin, end, ROWS)]
            with jax.enable_x64(True):
                answers = [call(self.blocks[number], _batch(rows, order[c], slots[c])) for c in cuts]
            # wait for them here: JAX computes one after the other what one thread has asked for without waiting
            return [_first(answer, c.stop - c.start) for answer, c in zip(answers, cuts, strict=True)]

        ends = np.append(begins[1:], which.size)
        items = zip(numbers.tolist(), begins.tolist(), ends.tolist(), strict=True)
        parts = chain.from_iterable(each(work, items))
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[back], *parts)


def _by_block(places: Sequence[Place]) -> Iterable[tuple[int, np.ndarray, np.ndarray]]:
    """For every block its number, which of the places are in it, and their slots."""
    array = _array(places)
    for block in np.unique(array[:, 0]).tolist():
        here = np.flatnonzero(array[:, 0] == block)
        yield block, here, array[here, 1]


def _array(places: Sequence[Place]) -> np.ndarray:
    """Blocks and slots, two columns; NumPy would take a list of tuples apart ten times as slowly."""
    return np.fromiter(chain.from_iterable(places), np.int64, 2 * len(places)).reshape(-1, 2)


def _batch(rows: Any, chosen: np.ndarray, slots: np.ndarray) -> Batch:
    """The rows chosen, which are sorted by slot, filled up to the fixed number."""
    begins = np.flatnonzero(np.diff(slots, prepend=-1))
    ends = np.append(begins[1:], slots.size)
    return Batch(
        rows=jax.tree.map(lambda leaf: _filled_up(leaf[chosen], ROWS), rows),
        slots=_filled_up(slots[begins].astype(np.int32), ROWS),
        ends=_filled_up(ends.astype(np.int32), ROWS),
        keys=np.int32(begins.size),
    )


def _first(tree: Any, count: int) -> Any:
    """The first entries of every array of a tree, once they are computed."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:count], tree)


def _filled_up(rows: np.ndarray, size: int) -> np.ndarray:
    filled = np.zeros((size, *rows.shape[1:]), rows.dtype)
    filled[: rows.shape[0]] = rows
    return filled
