"""What a model answers: a distribution of the next target, never just a number."""

import abc
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import ndtr, ndtri
from jax.typing import ArrayLike

from driftgp import normal

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def traced(*trees: Any) -> bool:
    """Tell whether any leaf is being traced by jit, vmap, grad or scan."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


def outer_call(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Make a method of a prediction fit for direct calls: compiled, float64 kept, lists taken, NumPy arrays returned.

    Inside another trace the method is called as it is.
    """
    compiled = jax.jit(function)

    @functools.wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        if traced(args, kwargs):
            return function(*args, **kwargs)
        prediction, *arrays = args
        named = {name: np.asarray(value) for name, value in kwargs.items()}
        with jax.enable_x64(True):
            result: _Result = jax.tree.map(np.asarray, compiled(prediction, *map(np.asarray, arrays), **named))
        return result

    return call


class Prediction(eqx.Module):
    """A predictive distribution at N points: arrays of shape N, or N×P for P outputs."""

    mean: eqx.AbstractVar[Array]
    variance: eqx.AbstractVar[Array]  # of a new y, noise included
    noise: eqx.AbstractVar[Array]  # the share of the variance that is observation noise

    @abc.abstractmethod
    def cdf(self, y: ArrayLike) -> Array:
        """Probability that a new target is at most y."""

    @abc.abstractmethod
    def log_prob(self, y: ArrayLike) -> Array:
        """Log density at y."""

    @abc.abstractmethod
    def quantile(self, q: ArrayLike) -> Array:
        """Value that a new target stays below with probability q."""

    @abc.abstractmethod
    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score at y: ∫ (cdf(z) − [z ≥ y])² dz, smaller is better."""

    @abc.abstractmethod
    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Prediction":
        """Distribution of scale · y + shift, for a positive scale."""

    @outer_call
    def to_normal(self, y: ArrayLike) -> Array:
        """Normal score of y: the z for which Φ(z) = cdf(y)."""
        return ndtri(self.cdf(y))

    @outer_call
    def from_normal(self, z: ArrayLike) -> Array:
        """Value whose normal score is z: the quantile at Φ(z), without the loss of digits far out in a tail."""
        return self.quantile(ndtr(z))

    @property
    def std(self) -> Array:
        """Standard deviation of a new target."""
        return self.variance**0.5

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Central interval that holds a new target with probability `level`."""
        if not traced(level) and not 0.0 < float(level) < 1.0:
            raise ValueError(f"level must lie strictly between 0 and 1; got {level!r}")
        return self.quantile(0.5 * (1.0 - level)), self.quantile(0.5 * (1.0 + level))


class Gaussian(Prediction):
    """A normal distribution at each point.

    >>> import numpy as np
    >>> p = Gaussian(mean=np.zeros(1), variance=np.full(1, 4.0), noise=np.ones(1))
    >>> [round(float(bound[0]), 3) for bound in p.interval(0.95)]
    [-3.92, 3.92]
    """

    mean: Array
    variance: Array
    noise: Array

    @outer_call
    def cdf(self, y: ArrayLike) -> Array:
        """Φ((y − m)/s)."""
        return ndtr((y - self.mean) / jnp.sqrt(self.variance))

    @outer_call
    def log_prob(self, y: ArrayLike) -> Array:
        """−½ log 2πs² − (y − m)²/2s²."""
        return normal.log_pdf((y - self.mean) / jnp.sqrt(self.variance)) - 0.5 * jnp.log(self.variance)

    @outer_call
    def quantile(self, q: ArrayLike) -> Array:
        """m + s Φ⁻¹(q)."""
        return self.mean + jnp.sqrt(self.variance) * ndtri(jnp.asarray(q, self.mean.dtype))

    @outer_call
    def crps(self, y: ArrayLike) -> Array:
        """s (z (2Φ(z) − 1) + 2φ(z) − π^(−½)) with z = (y − m)/s."""
        std = jnp.sqrt(self.variance)
        z = (y - self.mean) / std
        return std * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * normal.pdf(z) - jnp.pi**-0.5)

    @outer_call
    def to_normal(self, y: ArrayLike) -> Array:
        """(y − m)/s."""
        return (jnp.asarray(y) - self.mean) / jnp.sqrt(self.variance)

    @outer_call
    def from_normal(self, z: ArrayLike) -> Array:
        """m + s z."""
        return self.mean + jnp.sqrt(self.variance) * z

    @outer_call
    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Gaussian":
        """N(scale · m + shift, scale² s²)."""
        scale, shift = jnp.asarray(scale), jnp.asarray(shift)
        return Gaussian(scale * self.mean + shift, scale**2 * self.variance, scale**2 * self.noise)
