"""A pytree of arrays as one record, and back.

A field is named after the way to its leaf: `state.fit.hyperparameters.noise` is in `fit_hyperparameters_noise`. Whole
numbers, truth values and the words of random keys are all stored as int64. Two fields without entries come first, of
shapes 0×D and 0×P: from a record alone one can tell how many inputs and outputs it was made for.

A compiled program takes a record as it lies in memory, one vector of words of eight bytes. One array takes a few
microseconds to hand over, and twenty take longer than most steps.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from driftgp.contract.records import FLOAT, WHOLE

_SIZES = ("inputs", "outputs")


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """How a pytree with leaves of these shapes lies in a record."""

    structure: Any
    dtypes: tuple[np.dtype, ...]  # of the leaves, which JAX needs back as they were
    record: np.dtype

    def fields(self) -> Iterator[tuple[str, np.dtype]]:
        """Name of the field, and dtype, of each leaf."""
        return zip((self.record.names or ())[len(_SIZES) :], self.dtypes, strict=True)

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shape of each leaf."""
        return [self.record[name].shape for name, _ in self.fields()]

    # ---- in NumPy ----------------------------------------------------------------------------------------------------

    def read(self, record: np.ndarray) -> Any:
        """A pytree with copies of the arrays."""
        return jax.tree.unflatten(self.structure, [record[name].astype(dtype) for name, dtype in self.fields()])

    def write(self, tree: Any, record: np.ndarray) -> None:
        """Put all leaves into the record."""
        for (name, _), leaf in zip(self.fields(), jax.tree.leaves(tree), strict=True):
            record[name][...] = np.asarray(leaf)

    # ---- in JAX ------------------------------------------------------------------------------------------------------

    def unpack(self, words: Array) -> Any:
        """The pytree whose record has these words."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = jnp.split(words, ends[:-1])
        leaves = [
            (lax.bitcast_convert_type(part, jnp.float64) if dtype.kind == "f" else part.astype(dtype)).reshape(shape)
            for part, dtype, shape in zip(parts, self.dtypes, self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.structure, leaves)

    def pack(self, tree: Any) -> Array:
        """The words of a pytree's record."""
        flat = [jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)]
        return jnp.concatenate(
            [
                lax.bitcast_convert_type(leaf, jnp.int64) if leaf.dtype == jnp.float64 else leaf.astype(jnp.int64)
                for leaf in flat
            ]
        )


def layout_of(tree: Any, inputs: int, outputs: int) -> TreeLayout:
    """Layout of a pytree, of arrays or of their shapes.

    >>> tree = {"noise": np.ones(2), "fit": (np.zeros(()), np.ones(3, bool))}
    >>> [(name, *field[0].shape) for name, field in layout_of(tree, 1, 2).record.fields.items()]
    [('inputs', 0, 1), ('outputs', 0, 2), ('fit_0',), ('fit_1', 3), ('noise', 2)]
    """
    leaves, structure = jax.tree.flatten_with_path(tree)
    names = [jax.tree_util.keystr(path, simple=True, separator="_") for path, _ in leaves]
    dtypes = tuple(np.dtype(leaf.dtype) for _, leaf in leaves)
    fields: list[Any] = [("inputs", FLOAT, (0, inputs)), ("outputs", FLOAT, (0, outputs))]
    for name, dtype, (_, leaf) in zip(names, dtypes, leaves, strict=True):
        fields.append((name, FLOAT if dtype.kind == "f" else WHOLE, leaf.shape))
    return TreeLayout(structure, dtypes, np.dtype(fields))


def sizes(record: np.ndarray) -> tuple[int, int]:
    """Number of inputs and outputs that a record was made for."""
    inputs, outputs = (record[name].shape[1] for name in _SIZES)
    return inputs, outputs
