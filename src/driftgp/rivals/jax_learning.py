"""Gradient steps on hyperparameters, in JAX.

Positive parameters move on a logarithmic scale. A step whose gradient is not finite is left out and counted, so that
one bad sample cannot spoil what was learned.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from driftgp.kernels import Kernel

# Positive parameters stay within exp(±60), about 1e±26: far beyond any use, far from overflow.
_WIDEST = 60.0


class Hyperparameters(eqx.Module):
    """A kernel and the variance of the noise."""

    kernel: Any
    noise: Array  # P


class Climb(NamedTuple):
    """Where one or more gradient steps have led."""

    positive: Any
    free: Any
    optimizer: Any
    skipped: Array


def initial(kernel: Any, noise: Any, inputs: int, outputs: int) -> Hyperparameters:
    """Hyperparameters to start from: a kernel that suits the inputs, and a noise for each output."""
    if isinstance(kernel, Kernel):
        kernel.fit(inputs)
    if jnp.shape(noise) not in ((), (1,), (outputs,)):
        raise ValueError(
            f"noise must be one number or one for each of the {outputs} outputs; got shape {jnp.shape(noise)}"
        )
    return Hyperparameters(jax.tree.map(jnp.asarray, kernel), jnp.broadcast_to(jnp.asarray(noise), (outputs,)))


def adam(rate: Array | float) -> Any:
    """Adam with a rate that may be traced: changing it compiles nothing anew."""
    return optax.chain(optax.scale_by_adam(), optax.scale(-rate))


def annealed(rate: Array | float, period: float) -> Any:
    """Adam whose rate falls as half a cosine does, from `rate` to 1e-4 after `period` steps."""
    least = 1e-4

    def size(count: Array) -> Array:
        return -(least + (rate - least) * 0.5 * (1.0 + jnp.cos(jnp.pi * count / period)))

    return optax.chain(optax.scale_by_adam(), optax.scale_by_schedule(size))


def begun(optimizer: Any, positive: Any, free: Any = ()) -> Any:
    """State of an optimiser that has not taken a step."""
    return optimizer.init(ravel_pytree((positive, free))[0])


def ascend(
    objective: Callable[[Any, Any], Array],
    positive: Any,
    free: Any,
    optimizer: Any,
    optimizer_state: Any,
    iterations: int,
) -> Climb:
    """Take gradient steps that make objective(positive, free) larger, in log positive and in free."""
    # One vector for all: a handful of small operations instead of a handful for each parameter.
    values, unravel = ravel_pytree(positive)
    others, unravel_free = ravel_pytree(free)
    split = values.shape[0]

    def natural(flat: Array) -> tuple[Any, Any]:
        return unravel(jnp.exp(jnp.clip(flat[:split], -_WIDEST, _WIDEST))), unravel_free(flat[split:])

    downhill = jax.grad(lambda flat: -objective(*natural(flat)))  # the value is not needed

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
