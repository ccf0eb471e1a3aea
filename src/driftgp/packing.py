"""A pytree of arrays as one flat array per dtype, and back."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

Packed = tuple[Array, ...]  # one vector per dtype, in the order of their names


class Piece(NamedTuple):
    """Where a leaf lies."""

    vector: int
    start: int
    stop: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Packing:
    """How a pytree was packed: static, and equal for trees of the same structure, shapes and dtypes."""

    structure: Any
    leaves: tuple[tuple[tuple[int, ...], str], ...]  # shape and dtype of each

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """Dtypes in the order of their vectors."""
        return tuple(sorted({dtype for _, dtype in self.leaves}))

    @cached_property
    def shapes(self) -> Any:
        """The tree, with the shape of each leaf in its place."""
        leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in self.leaves]
        return jax.tree.unflatten(self.structure, leaves)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Entries of each vector."""
        return tuple(sum(math.prod(shape) for shape, dtype in self.leaves if dtype == vector) for vector in self.dtypes)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The leaves' places, in order."""
        ends = [0] * len(self.dtypes)
        pieces = []
        for shape, dtype in self.leaves:
            vector = self.dtypes.index(dtype)
            start = ends[vector]
            ends[vector] = start + math.prod(shape)
            pieces.append(Piece(vector, start, ends[vector], shape))
        return tuple(pieces)


def _dtype(leaf: Any) -> str:
    """The leaf's own dtype, whatever precision JAX is set to at the moment."""
    return str(leaf.dtype if hasattr(leaf, "dtype") else jnp.result_type(leaf))


def _shape(leaf: Any) -> tuple[int, ...]:
    return tuple(leaf.shape if hasattr(leaf, "shape") else jnp.shape(leaf))


def packing_of(tree: Any) -> Packing:
    """Describe how a pytree packs."""
    leaves, structure = jax.tree.flatten(tree)
    return Packing(structure, tuple((_shape(leaf), _dtype(leaf)) for leaf in leaves))


def pack(tree: Any) -> Packed:
    """Concatenate the leaves of each dtype.

    >>> import numpy as np
    >>> vectors = pack({"a": np.zeros((2, 3), np.float32), "b": np.ones(2, np.float32)})
    >>> [vector.shape for vector in vectors]
    [(8,)]
    """
    leaves = jax.tree.leaves(tree)
    dtypes = packing_of(tree).dtypes
    return tuple(jnp.concatenate([jnp.ravel(leaf) for leaf in leaves if _dtype(leaf) == dtype]) for dtype in dtypes)


def unpack(packing: Packing, packed: Sequence[Any]) -> Any:
    """Cut the vectors up again."""
    leaves = [packed[vector][start:stop].reshape(shape) for vector, start, stop, shape in packing.pieces]
    return packing.structure.unflatten(leaves)


def vectors(packing: Packing) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Shapes of the vectors of a packed tree."""
    return tuple(
        jax.ShapeDtypeStruct((size,), dtype) for size, dtype in zip(packing.sizes, packing.dtypes, strict=True)
    )
