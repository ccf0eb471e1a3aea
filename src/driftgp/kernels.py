"""Covariance functions.

A kernel is its formula. `Kernel` turns the formula into a Gram matrix, a diagonal, sums and products:

    k(X, Z)   Gram matrix, N×K
    k(X)      diagonal, N

tinygp's kernels answer the same two calls, so any of them may stand where one of ours does. Every parameter is
positive and is learned on a logarithmic scale; a lengthscale with one entry per input is automatic relevance
determination (ARD).
"""

import abc
from functools import partial
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

# Up to this many inputs, squared distances are summed from differences, which is exact; beyond it one matrix product
# is several times faster.
_DIRECT_INPUTS = 3


class Covariance(Protocol):
    """What the library asks of a kernel, ours or tinygp's."""

    def __call__(self, X: Any, Z: Any = None, /) -> Any:
        """Gram matrix of X and Z, or the diagonal for X alone."""


def positive(name: str, value: ArrayLike) -> Any:
    """Return the parameter as a float array, refusing what is not finite and positive."""
    if isinstance(value, jax.core.Tracer):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.ndim > 1 or not np.all(np.isfinite(array) & (array > 0)):
        raise ValueError(f"{name} must be a positive number or a vector of them; got {value!r}")
    return array.astype(array.dtype if array.dtype.kind == "f" else float)


def _parameter(name: str) -> Any:
    return eqx.field(default=1.0, converter=partial(positive, name))


# A number, or one an input, on the way in; an array from then on.
Parameter = Any


def per_input(name: str, parameter: Array, X: Array) -> Array:
    """Return a parameter that may have an entry for each input, refusing any other number of entries."""
    if jnp.ndim(parameter) > 0 and jnp.shape(parameter)[-1] != X.shape[-1]:
        given = jnp.shape(parameter)[-1]
        raise ValueError(f"{name} must have one entry or one for each of the {X.shape[-1]} inputs; got {given}")
    return parameter


def squared_distance(X: Array, Z: Array) -> Array:
    """Squared Euclidean distances |x − z|², N×K.

    Inputs far from the origin (timestamps) lose their digits in |x|² − 2xᵀz + |z|², so both sides are first
    measured from one of the points.
    """
    if X.shape[-1] <= _DIRECT_INPUTS:
        return jnp.sum((X[:, None, :] - Z[None, :, :]) ** 2, axis=-1)  # N×K
    origin = lax.stop_gradient(Z[0])
    X, Z = X - origin, Z - origin
    return jnp.maximum(jnp.sum(X**2, -1)[:, None] - 2.0 * X @ Z.T + jnp.sum(Z**2, -1)[None, :], 0.0)  # N×K


def safe_sqrt(r2: Array) -> Array:
    """Square root whose derivative at 0 is 0 instead of infinite: distances of coincident points."""
    zero = r2 <= 0.0
    return jnp.where(zero, 0.0, jnp.sqrt(jnp.where(zero, 1.0, r2)))


class Kernel(eqx.Module):
    """A covariance function: `gram` is the formula, the rest follows."""

    @abc.abstractmethod
    def gram(self, X: Array, Z: Array) -> Array:
        """Covariance of every row of X with every row of Z, N×K."""

    @abc.abstractmethod
    def diagonal(self, X: Array) -> Array:
        """Variance at every row of X, N."""

    def __call__(self, X: Array, Z: Array | None = None, /) -> Array:
        """Gram matrix of X and Z, or the diagonal for X alone.

        >>> import numpy as np
        >>> X = np.array([[0.0], [1.0]])
        >>> bool(np.allclose(SE(lengthscale=2.0)(X, X), np.exp([[0.0, -0.125], [-0.125, 0.0]])))
        True
        """
        return self.diagonal(jnp.asarray(X)) if Z is None else self.gram(jnp.asarray(X), jnp.asarray(Z))

    def __add__(self, other: Covariance) -> "Sum":
        """Sum of two kernels."""
        return Sum(self, other)

    def __mul__(self, other: Covariance) -> "Product":
        """Product of two kernels."""
        return Product(self, other)


class Sum(Kernel):
    """k(x, z) = k₁(x, z) + k₂(x, z)."""

    first: Covariance
    second: Covariance

    def gram(self, X: Array, Z: Array) -> Array:
        """Add the Gram matrices."""
        return jnp.asarray(self.first(X, Z) + self.second(X, Z))

    def diagonal(self, X: Array) -> Array:
        """Add the diagonals."""
        return jnp.asarray(self.first(X) + self.second(X))


class Product(Kernel):
    """k(x, z) = k₁(x, z) k₂(x, z)."""

    first: Covariance
    second: Covariance

    def gram(self, X: Array, Z: Array) -> Array:
        """Multiply the Gram matrices entry by entry."""
        return jnp.asarray(self.first(X, Z) * self.second(X, Z))

    def diagonal(self, X: Array) -> Array:
        """Multiply the diagonals."""
        return jnp.asarray(self.first(X) * self.second(X))


class Stationary(Kernel):
    """k(x, z) = variance · shape(r²), with r the distance in units of the lengthscale and shape(0) = 1."""

    lengthscale: Parameter = _parameter("lengthscale")
    variance: Parameter = _parameter("variance")

    @abc.abstractmethod
    def shape(self, r2: Array) -> Array:
        """Correlation as a function of the squared scaled distance."""

    def gram(self, X: Array, Z: Array) -> Array:
        """Scale the inputs, take the distances, apply the shape."""
        if jnp.ndim(self.lengthscale) == 0:  # scaling the distances is cheaper than scaling the inputs
            r2 = squared_distance(X, Z) / self.lengthscale**2
        else:
            lengthscale = per_input("lengthscale", self.lengthscale, X)
            r2 = squared_distance(X / lengthscale, Z / lengthscale)
        return self.variance * self.shape(r2)  # N×K

    def diagonal(self, X: Array) -> Array:
        """Return the variance at every point."""
        return jnp.broadcast_to(self.variance, X.shape[:1]).astype(X.dtype)


class SE(Stationary):
    """Squared exponential: exp(−r²/2)."""

    def shape(self, r2: Array) -> Array:
        """Squared exponential of the distance."""
        return jnp.exp(-0.5 * r2)


class Matern12(Stationary):
    """Matérn ½: exp(−r)."""

    def shape(self, r2: Array) -> Array:
        """Exponential of the distance."""
        return jnp.exp(-safe_sqrt(r2))


class Matern32(Stationary):
    """Matérn 3⁄2: (1 + √3 r) exp(−√3 r)."""

    def shape(self, r2: Array) -> Array:
        """First-order polynomial times an exponential."""
        s = safe_sqrt(3.0 * r2)
        return (1.0 + s) * jnp.exp(-s)


class Matern52(Stationary):
    """Matérn 5⁄2: (1 + √5 r + 5r²/3) exp(−√5 r)."""

    def shape(self, r2: Array) -> Array:
        """Second-order polynomial times an exponential."""
        s = safe_sqrt(5.0 * r2)
        return (1.0 + s + s**2 / 3.0) * jnp.exp(-s)


class RationalQuadratic(Stationary):
    """Rational quadratic: (1 + r²/2a)^(−a), a mixture of squared exponentials of many lengthscales."""

    mixture: Parameter = _parameter("mixture")

    def shape(self, r2: Array) -> Array:
        """Power of the distance."""
        return jnp.exp(-self.mixture * jnp.log1p(0.5 * r2 / self.mixture))


class Periodic(Kernel):
    """variance · exp(−2 Σ_d sin²(π (x_d − z_d) / period_d) / lengthscale_d²)."""

    period: Parameter = _parameter("period")
    lengthscale: Parameter = _parameter("lengthscale")
    variance: Parameter = _parameter("variance")

    def gram(self, X: Array, Z: Array) -> Array:
        """Sum over the inputs of the squared sine of each difference."""
        period, lengthscale = per_input("period", self.period, X), per_input("lengthscale", self.lengthscale, X)
        sine = jnp.sin(jnp.pi * (X[:, None, :] - Z[None, :, :]) / period)  # N×K×D
        return self.variance * jnp.exp(-2.0 * jnp.sum((sine / lengthscale) ** 2, -1))

    def diagonal(self, X: Array) -> Array:
        """Return the variance at every point."""
        return jnp.broadcast_to(self.variance, X.shape[:1]).astype(X.dtype)


class Linear(Kernel):
    """Σ_d variance_d x_d z_d: Bayesian linear regression. Add a `Constant` for an intercept."""

    variance: Parameter = _parameter("variance")

    def gram(self, X: Array, Z: Array) -> Array:
        """Weighted inner products."""
        if jnp.ndim(self.variance) == 0:  # the product is then the same whatever the variance: it is computed once
            return self.variance * (X @ Z.T)
        return (X * per_input("variance", self.variance, X)) @ Z.T

    def diagonal(self, X: Array) -> Array:
        """Weighted squared norms."""
        return jnp.sum(self.variance * X**2, -1)


class Constant(Kernel):
    """The same covariance everywhere: an unknown level."""

    variance: Parameter = _parameter("variance")

    def gram(self, X: Array, Z: Array) -> Array:
        """Return the variance for every pair."""
        return jnp.broadcast_to(self.variance, (X.shape[0], Z.shape[0])).astype(X.dtype)

    def diagonal(self, X: Array) -> Array:
        """Return the variance at every point."""
        return jnp.broadcast_to(self.variance, X.shape[:1]).astype(X.dtype)
