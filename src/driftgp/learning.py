"""Gradient steps on hyperparameters, for every model that takes them.

Positive parameters move on a logarithmic scale. A step whose gradient is not finite is left out and
counted, so that one bad sample cannot spoil what was learned.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

Tree = TypeVar("Tree")

# Positive parameters stay within exp(±60), about 1e±26 (float32: 1e±11): far beyond any use, far from overflow.
_WIDEST = 60.0


class Hyperparameters(eqx.Module):
    """A kernel and the variance of the noise."""

    kernel: Any
    noise: Array  # P


@runtime_checkable
class Optimizer(Protocol):
    """What all of optax's optimisers are."""

    @property
    def init(self) -> Callable[[Any], Any]:
        """State before the first step, from the parameters."""

    @property
    def update(self) -> Callable[..., Any]:
        """Step and next state, from the gradient, the state and the parameters."""


class Steps(NamedTuple):
    """An optimiser."""

    init: Callable[[Any], Any]
    update: Callable[..., Any]


class Climb(NamedTuple):
    """Where one or more gradient steps have led."""

    positive: Any
    free: Any
    optimizer: Any
    skipped: Array


def float_leaves(tree: Tree) -> Tree:
    """Make every number of a kernel a float array, so that each of them is learned, batched and saved."""
    if not callable(tree):
        raise ValueError(f"kernel must be a kernel, one of driftgp.kernels or of tinygp; got {tree!r}")

    def convert(leaf: Any) -> Any:
        array = leaf if isinstance(leaf, jax.core.Tracer) else np.asarray(leaf, float)
        if not isinstance(leaf, jax.core.Tracer) and not np.all(np.isfinite(array) & (array > 0)):
            raise ValueError(f"kernel must have positive parameters, since their logarithms are learned; got {leaf!r}")
        return array

    return jax.tree.map(convert, tree)


def initial(kernel: Tree, noise: Any, outputs: int, dtype: str) -> Hyperparameters:
    """Hyperparameters to start from, in the precision of the data and with a noise for each output."""
    kernel = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), kernel)
    if jnp.shape(noise) not in ((), (1,), (outputs,)):
        raise ValueError(
            f"noise must be one number or one for each of the {outputs} outputs; got shape {jnp.shape(noise)}"
        )
    return Hyperparameters(kernel, jnp.broadcast_to(jnp.asarray(noise, dtype), (outputs,)))


def log_prior(positive: Any, centre: Any, width: Array) -> Array:
    """Log density, up to a constant, of independent log-normal parameters around a centre.

    Where the samples say nothing about a parameter (a constant target says nothing about a lengthscale), the bound is
    flat, and without a prior the parameter drifts to where no later sample can move it any more.
    """
    distance = jnp.log(ravel_pytree(positive)[0]) - jnp.log(ravel_pytree(centre)[0])
    return -0.5 * jnp.sum((distance / width) ** 2)


def adam(rate: Array) -> Optimizer:
    """Adam with a rate that may be traced: changing it compiles nothing anew."""
    import optax  # here, since it would take a sixth of the time of `import driftgp`

    return optax.chain(optax.scale_by_adam(), optax.scale(-rate))


def natural(rate: Array, largest: Array, information: Array) -> Optimizer:
    """Natural steps: the gradient over the information that the samples hold, none of them larger than `largest`.

    n samples hold at most n/2 of information on the logarithm of a variance, noise or signal: with that for the
    curvature, a step of rate 1 is Newton's where the samples are clear and a shorter one where they say little, so that
    a parameter that is right stays where it is.
    """

    def update(gradient: Array, state: Any, _: Any = None) -> tuple[Array, Any]:
        return jnp.clip(-rate * gradient / information, -largest, largest), state

    return Steps(lambda _: (), update)


def begin(optimizer: Optimizer, positive: Any, free: Any = ()) -> Any:
    """State of an optimiser that has not taken a step."""
    return optimizer.init(ravel_pytree((positive, free))[0])


def ascend(
    objective: Callable[[Any, Any], Array],
    positive: Any,
    free: Any,
    optimizer: Optimizer,
    optimizer_state: Any,
    iterations: int,
) -> Climb:
    """Take gradient steps that make objective(positive, free) larger, in log positive and in free."""
    # One vector for all: a handful of small operations instead of a handful for each parameter.
    values, unravel = ravel_pytree(positive)
    others, unravel_free = ravel_pytree(free)
    split = values.shape[0]
    limit = min(0.3 * float(np.log(np.finfo(values.dtype).max)), _WIDEST)

    def natural(flat: Array) -> tuple[Any, Any]:
        return unravel(jnp.exp(jnp.clip(flat[:split], -limit, limit))), unravel_free(flat[split:])

    downhill = jax.grad(
        lambda flat: -objective(*natural(flat))
    )  # the value is not needed: it costs a logarithm a point

    def step(carry: tuple[Array, Any, Array], _: None) -> tuple[tuple[Array, Any, Array], None]:
        flat, optimizer_state, skipped = carry
        gradient = downhill(flat)
        finite = jnp.all(jnp.isfinite(gradient))
        move, moved_state = optimizer.update(jnp.where(finite, gradient, 0.0), optimizer_state, flat)
        chosen = jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved_state, optimizer_state)
        return (jnp.where(finite, flat + move, flat), chosen, skipped + ~finite), None

    carry = jnp.concatenate([jnp.log(values), others]), optimizer_state, jnp.zeros((), jnp.int32)
    if iterations == 1:  # without a loop around it the compiler can merge the step with what surrounds it
        carry, _ = step(carry, None)
    else:
        carry, _ = lax.scan(step, carry, length=iterations)
    return Climb(*natural(carry[0]), carry[1], carry[2])
