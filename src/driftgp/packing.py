"""A pytree of arrays as one flat array per dtype, and back."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

Packed = tuple[Array, ...]  # one vector per dtype, in the order of their names


class Packing(NamedTuple):
    """How a pytree was packed: static, and equal for trees of the same structure, shapes and dtypes."""

    structure: Any
    leaves: tuple[tuple[tuple[int, ...], str], ...]  # shape and dtype of each

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Dtypes in the order of their vectors."""
        return tuple(sorted({dtype for _, dtype in self.leaves}))


def _dtype(leaf: Any) -> str:
    """The leaf's own dtype, whatever precision JAX is set to at the moment."""
    return str(leaf.dtype if hasattr(leaf, "dtype") else jnp.result_type(leaf))


def packing_of(tree: Any) -> Packing:
    """Describe how a pytree packs."""
    leaves, structure = jax.tree.flatten(tree)
    return Packing(structure, tuple((tuple(jnp.shape(leaf)), _dtype(leaf)) for leaf in leaves))


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


def unpack(packing: Packing, packed: Packed) -> Any:
    """Cut the vectors up again."""
    vectors = dict(zip(packing.dtypes, packed, strict=True))
    offsets = dict.fromkeys(packing.dtypes, 0)
    leaves = []
    for shape, dtype in packing.leaves:
        size = math.prod(shape)
        leaves.append(vectors[dtype][offsets[dtype] : offsets[dtype] + size].reshape(shape))
        offsets[dtype] += size
    return jax.tree.unflatten(packing.structure, leaves)
