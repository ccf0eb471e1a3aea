"""The core's kernels in JAX: their formulas work on its arrays, and JAX has to be told where their parameters are."""

from dataclasses import fields
from typing import Any

import jax
import numpy as np
from jax.tree_util import GetAttrKey

from driftgp.kernels import SE, Kernel


def register(kernel: Any) -> None:
    """Make JAX see the class of a kernel, and of the kernels that it is made of, as trees of their parameters."""
    if not isinstance(kernel, Kernel):
        return
    kind, names = type(kernel), tuple(field.name for field in fields(kernel))  # type: ignore[arg-type]
    if jax.tree_util.all_leaves([kernel]):  # not known yet

        def flatten(kernel: Kernel) -> tuple[tuple[tuple[GetAttrKey, Any], ...], None]:
            return tuple((GetAttrKey(name), getattr(kernel, name)) for name in names), None

        def unflatten(_: None, values: Any) -> Kernel:
            made = object.__new__(kind)  # no checks: parameters may be shapes, or not known yet
            for name, value in zip(names, values, strict=True):
                object.__setattr__(made, name, value)
            return made

        jax.tree_util.register_pytree_with_keys(kind, flatten, unflatten)
    for name in names:
        register(getattr(kernel, name))


def checked_kernel(kernel: Any) -> Any:
    """The kernel of a rival: one of the core's, one written in JAX such as tinygp's, or by default SE."""
    if kernel is None:
        kernel = SE()
    if isinstance(kernel, Kernel):
        register(kernel)
        return kernel
    return positive_leaves(kernel)


def positive_leaves(kernel: Any) -> Any:
    """A kernel written in JAX with every number a float array, so that each of them is learned and saved."""
    if not callable(kernel):
        raise ValueError(f"kernel must be a kernel, one of driftgp.kernels or of tinygp; got {kernel!r}")

    def convert(leaf: Any) -> np.ndarray:
        array = np.asarray(leaf, np.float64)
        if not np.all(np.isfinite(array) & (array > 0)):
            raise ValueError(f"kernel must have positive parameters, since their logarithms are learned; got {leaf!r}")
        return array

    return jax.tree.map(convert, kernel)
