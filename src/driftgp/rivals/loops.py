"""Control flow that the compiler can keep in place."""

from collections.abc import Callable
from typing import TypeVar

import jax.numpy as jnp
from jax import Array, lax

Tree = TypeVar("Tree")


def only_if(condition: Array, function: Callable[[Tree], Tree], tree: Tree) -> Tree:
    """Apply a function if a condition holds, else return its argument.

    This is a loop of at most one turn, and not `lax.cond`. A loop works on its carry in place; a condition would copy
    everything, the window included, at every sample.
    """
    return lax.while_loop(
        lambda carry: carry[0],
        lambda carry: (jnp.zeros_like(carry[0]), function(carry[1])),
        (condition, tree),
    )[1]
