"""Covariance functions.

A kernel is its formula and the derivative of its formula. Sums and products of kernels are kernels:

    k(X, Z)   Gram matrix, N×K
    k(X)      diagonal, N

Every parameter is positive and is learned on a logarithmic scale; a lengthscale with one entry per input is automatic
relevance determination (ARD). For an objective F with A = ∂F/∂k(X, Z), the derivative of the kernel gives the
derivative of F:

    pull(A, X, Z)          ∂F/∂log θ = Σ_ij A_ij ∂k(x_i, z_j)/∂log θ, one entry per parameter
    pull_inputs(A, X, Z)   ∂F/∂x_i   = Σ_j A_ij ∂k(x_i, z_j)/∂x_i, N×D
    pull_diagonal(a, X)    ∂F/∂log θ of the diagonal, where a = ∂F/∂k(X)

`check.py` compares these with finite differences, and lets a kernel do without them. The formulas work on arrays
of NumPy and of JAX alike, for methods that differentiate them automatically.
"""

import abc
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

# Up to this many inputs, squared distances are summed from differences, which is exact; beyond it one matrix product
# is several times faster.
_DIRECT_INPUTS = 3
_ROUNDING = 16.0 * float(np.finfo(float).eps)

Array = Any  # of NumPy, or of JAX in the formulas


def positive(name: str, value: ArrayLike) -> np.ndarray:
    """Return a parameter as an array of floats, refusing what is not finite and positive."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.ndim > 1 or not np.all(np.isfinite(array) & (array > 0)):
        raise ValueError(f"{name} must be a positive number or a vector of them; got {value!r}")
    return array.astype(np.float64)


def library(*arrays: Array) -> Any:
    """The library whose functions suit these arrays: NumPy, or JAX where any of them is JAX's."""
    found = (array.__array_namespace__() for array in arrays)
    return next((other for other in found if other is not np), np)


def squared_distance(X: Array, Z: Array) -> Array:
    """Squared Euclidean distances |x − z|², N×K.

    Inputs far from the origin (timestamps) lose their digits in |x|² − 2xᵀz + |z|², so both sides are first
    measured from one of the points.
    """
    xp = library(X, Z)
    if X.shape[-1] <= _DIRECT_INPUTS:
        return xp.sum((X[:, None, :] - Z[None, :, :]) ** 2, axis=-1)  # N×K
    X, Z = X - Z[:1], Z - Z[:1]
    squares = xp.sum(X**2, axis=-1)[:, None] + xp.sum(Z**2, axis=-1)[None, :]  # N×K
    r2 = squares - 2.0 * X @ Z.T
    return xp.where(r2 < _ROUNDING * squares, 0.0, r2)  # a distance within rounding counts as 0


class Kernel(abc.ABC):
    """A covariance function: a frozen dataclass whose fields are its parameters, or the kernels that it is made of.

    Kernels are added and multiplied. Called with rows it gives the Gram matrix, or with one set of rows the diagonal.

    >>> kernel = SE(lengthscale=2.0) + Constant(0.5)
    >>> kernel.gram(np.zeros((1, 1)), np.zeros((1, 1))).tolist()
    [[1.5]]
    """

    # ---- what a new kernel provides ----------------------------------------------------------------------------------

    @abc.abstractmethod
    def gram(self, X: Array, Z: Array) -> Array:
        """Covariance of every row of X with every row of Z, N×K."""

    @abc.abstractmethod
    def diagonal(self, X: Array) -> Array:
        """Variance at every row of X, N."""

    def pull(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Derivative in the logarithm of each parameter, where A (N×K) is that in the Gram matrix of X and Z."""
        raise self._without("pull")

    def pull_inputs(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Derivative in X, N×D, where A (N×K) is that in the Gram matrix of X and Z."""
        raise self._without("pull_inputs")

    def pull_diagonal(self, a: np.ndarray, X: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Derivative in the logarithm of each parameter, where a (N) is that in the diagonal at X."""
        raise self._without("pull_diagonal")

    def _without(self, method: str) -> NotImplementedError:
        name = type(self).__name__
        return NotImplementedError(
            f"{name} has no {method}: write it, or use driftgp.kernels.check.Numerical({name}(…))"
        )

    # ---- what follows from it ----------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        """Make every parameter an array, refusing what is not positive."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if not isinstance(value, Kernel):
                object.__setattr__(self, field.name, positive(field.name, value))

    def __call__(self, X: Array, Z: Array | None = None, /) -> Array:
        """Gram matrix of X and Z, or the diagonal for X alone.

        >>> X = np.array([[0.0], [1.0]])
        >>> bool(np.allclose(SE(lengthscale=2.0)(X, X), np.exp([[0.0, -0.125], [-0.125, 0.0]])))
        True
        """
        self.fit(X.shape[-1])
        return self.diagonal(X) if Z is None else self.gram(X, Z)

    def __add__(self, other: "Kernel") -> "Sum":
        """Sum of two kernels."""
        return Sum(self, other)

    def __mul__(self, other: "Kernel") -> "Product":
        """Product of two kernels."""
        return Product(self, other)

    @property
    def theta(self) -> np.ndarray:
        """All parameters as one vector, H.

        >>> (Linear(0.5) + SE([1.0, 2.0])).theta.tolist()
        [0.5, 1.0, 2.0, 1.0]
        """
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return np.concatenate([value.theta if isinstance(value, Kernel) else value.reshape(-1) for value in values])

    @property
    def size(self) -> int:
        """Number of parameters H."""
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return sum(value.size for value in values)

    def at(self, theta: Array) -> Self:
        """The same kernel with other parameters, given as one vector."""
        other = object.__new__(type(self))
        start = 0
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            own = theta[start : start + value.size]
            start += value.size
            changed = value.at(own) if isinstance(value, Kernel) else own.reshape(value.shape)
            object.__setattr__(other, field.name, changed)
        return other

    def fit(self, inputs: int) -> None:
        """Refuse a number of inputs that the parameters were not made for."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Kernel):
                value.fit(inputs)
            elif value.ndim > 0 and value.shape != (inputs,):
                raise ValueError(
                    f"{field.name} must have one entry or one for each of the {inputs} inputs; got {value.size}"
                )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]
        shown = (f"{name}={value if isinstance(value, Kernel) else value.tolist()}" for name, value in values)
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Kernel):
    """k(x, z) = k₁(x, z) + k₂(x, z)."""

    first: Kernel
    second: Kernel

    def gram(self, X: Array, Z: Array) -> Array:
        """Add the Gram matrices."""
        return self.first.gram(X, Z) + self.second.gram(X, Z)

    def diagonal(self, X: Array) -> Array:
        """Add the diagonals."""
        return self.first.diagonal(X) + self.second.diagonal(X)

    def pull(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Each term by itself."""
        return np.concatenate([self.first.pull(A, X, Z), self.second.pull(A, X, Z)])

    def pull_inputs(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Sum over the terms."""
        return self.first.pull_inputs(A, X, Z) + self.second.pull_inputs(A, X, Z)

    def pull_diagonal(self, a: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Each term by itself."""
        return np.concatenate([self.first.pull_diagonal(a, X), self.second.pull_diagonal(a, X)])


@dataclass(frozen=True, eq=False, repr=False)
class Product(Kernel):
    """k(x, z) = k₁(x, z) k₂(x, z)."""

    first: Kernel
    second: Kernel

    def gram(self, X: Array, Z: Array) -> Array:
        """Multiply the Gram matrices entry by entry."""
        return self.first.gram(X, Z) * self.second.gram(X, Z)

    def diagonal(self, X: Array) -> Array:
        """Multiply the diagonals."""
        return self.first.diagonal(X) * self.second.diagonal(X)

    def pull(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Product rule: each factor, with A times the other one."""
        first, second = A * self.second.gram(X, Z), A * self.first.gram(X, Z)
        return np.concatenate([self.first.pull(first, X, Z), self.second.pull(second, X, Z)])

    def pull_inputs(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Product rule."""
        first, second = A * self.second.gram(X, Z), A * self.first.gram(X, Z)
        return self.first.pull_inputs(first, X, Z) + self.second.pull_inputs(second, X, Z)

    def pull_diagonal(self, a: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Product rule."""
        first, second = a * self.second.diagonal(X), a * self.first.diagonal(X)
        return np.concatenate([self.first.pull_diagonal(first, X), self.second.pull_diagonal(second, X)])


@dataclass(frozen=True, eq=False, repr=False)
class Stationary(Kernel):
    """k(x, z) = variance · shape(r²), with r the distance in units of the lengthscale and shape(0) = 1.

    Args:
        lengthscale: distance over which targets are similar, in units of the inputs; one number, or one per input.
        variance: of the function, in squared units of the targets.
    """

    lengthscale: Any = 1.0
    variance: Any = 1.0

    @abc.abstractmethod
    def shape(self, r2: Array) -> Array:
        """Correlation as a function of the squared scaled distance."""

    @abc.abstractmethod
    def slope(self, r2: np.ndarray) -> np.ndarray:
        """−2 ∂shape/∂r²."""

    def squared_distance(self, X: Array, Z: Array) -> Array:
        """Squared distances in units of the lengthscale, N×K."""
        if self.lengthscale.ndim == 0:  # scaling the distances is cheaper than scaling the inputs
            return squared_distance(X, Z) / self.lengthscale**2
        return squared_distance((X - Z[:1]) / self.lengthscale, (Z - Z[:1]) / self.lengthscale)

    def gram(self, X: Array, Z: Array) -> Array:
        """Scale the inputs, take the distances, apply the shape."""
        return self.variance * self.shape(self.squared_distance(X, Z))  # N×K

    def diagonal(self, X: Array) -> Array:
        """Return the variance at every point."""
        return self.variance * library(X, self.variance).ones(X.shape[0])

    def pull(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """∂k/∂log ℓ_d = variance · slope · (x_d − z_d)²/ℓ_d² and ∂k/∂log variance = k."""
        r2 = self.squared_distance(X, Z)  # N×K
        B = A * (self.variance * self.slope(r2))  # N×K
        by_variance = np.sum(A * (self.variance * self.shape(r2)))
        if self.lengthscale.ndim == 0:
            return np.array([np.sum(B * r2), by_variance])
        X, Z = (X - Z[:1]) / self.lengthscale, (Z - Z[:1]) / self.lengthscale
        by_length = np.sum(B, 1) @ X**2 - 2.0 * np.sum(X * (B @ Z), 0) + np.sum(B, 0) @ Z**2  # D
        return np.append(by_length, by_variance)

    def pull_inputs(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """∂k/∂x_d = −variance · slope · (x_d − z_d)/ℓ_d²."""
        B = A * (self.variance * self.slope(self.squared_distance(X, Z)))  # N×K
        X, Z = X - Z[:1], Z - Z[:1]
        return (B @ Z - np.sum(B, 1)[:, None] * X) / self.lengthscale**2  # N×D

    def pull_diagonal(self, a: np.ndarray, X: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """The diagonal is the variance, for any lengthscale."""
        return np.append(np.zeros(self.lengthscale.size), np.sum(a) * self.variance)


class SE(Stationary):
    """Squared exponential: exp(−r²/2).

    >>> SE(lengthscale=2.0).gram(np.zeros((1, 1)), np.full((1, 1), 2.0)).round(3).tolist()
    [[0.607]]
    """

    def shape(self, r2: Array) -> Array:
        """Squared exponential of the distance."""
        return library(r2).exp(-0.5 * r2)

    def slope(self, r2: np.ndarray) -> np.ndarray:
        """exp(−r²/2)."""
        return np.exp(-0.5 * r2)


class Matern12(Stationary):
    """Matérn ½: exp(−r).

    >>> Matern12(lengthscale=2.0).gram(np.zeros((1, 1)), np.full((1, 1), 2.0)).round(3).tolist()
    [[0.368]]
    """

    def shape(self, r2: Array) -> Array:
        """Exponential of the distance."""
        return library(r2).exp(-_root(r2))

    def slope(self, r2: np.ndarray) -> np.ndarray:
        """exp(−r)/r, and 0 for coincident points, where the kernel has a kink."""
        r = np.sqrt(r2)
        return np.divide(np.exp(-r), r, out=np.zeros_like(r), where=r > 0.0)


class Matern32(Stationary):
    """Matérn 3⁄2: (1 + √3 r) exp(−√3 r).

    >>> Matern32(lengthscale=2.0).gram(np.zeros((1, 1)), np.full((1, 1), 2.0)).round(3).tolist()
    [[0.483]]
    """

    def shape(self, r2: Array) -> Array:
        """First-order polynomial times an exponential."""
        s = _root(3.0 * r2)
        return (1.0 + s) * library(r2).exp(-s)

    def slope(self, r2: np.ndarray) -> np.ndarray:
        """3 exp(−√3 r)."""
        return 3.0 * np.exp(-np.sqrt(3.0 * r2))


class Matern52(Stationary):
    """Matérn 5⁄2: (1 + √5 r + 5r²/3) exp(−√5 r).

    >>> Matern52(lengthscale=2.0).gram(np.zeros((1, 1)), np.full((1, 1), 2.0)).round(3).tolist()
    [[0.524]]
    """

    def shape(self, r2: Array) -> Array:
        """Second-order polynomial times an exponential."""
        s = _root(5.0 * r2)
        return (1.0 + s + s**2 / 3.0) * library(r2).exp(-s)

    def slope(self, r2: np.ndarray) -> np.ndarray:
        """5⁄3 (1 + √5 r) exp(−√5 r)."""
        s = np.sqrt(5.0 * r2)
        return 5.0 / 3.0 * (1.0 + s) * np.exp(-s)


@dataclass(frozen=True, eq=False, repr=False)
class RationalQuadratic(Stationary):
    """Rational quadratic: (1 + r²/2a)^(−a), a mixture of squared exponentials of many lengthscales.

    Args:
        mixture: a; the larger, the more alike the lengthscales.

    >>> RationalQuadratic(lengthscale=2.0).gram(np.zeros((1, 1)), np.full((1, 1), 2.0)).round(3).tolist()
    [[0.667]]
    """

    mixture: Any = 1.0

    def shape(self, r2: Array) -> Array:
        """Power of the distance."""
        return library(r2, self.mixture).exp(-self.mixture * library(r2, self.mixture).log1p(0.5 * r2 / self.mixture))

    def slope(self, r2: np.ndarray) -> np.ndarray:
        """(1 + r²/2a)^(−a−1)."""
        return self.shape(r2) / (1.0 + 0.5 * r2 / self.mixture)

    def pull(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """∂k/∂log a = a k (u/(1 + u) − log(1 + u)) with u = r²/2a; the rest as for every stationary kernel."""
        r2 = self.squared_distance(X, Z)
        u = 0.5 * r2 / self.mixture
        by_mixture = np.sum(A * self.variance * self.shape(r2) * self.mixture * (u / (1.0 + u) - np.log1p(u)))
        return np.append(super().pull(A, X, Z), by_mixture)

    def pull_diagonal(self, a: np.ndarray, X: np.ndarray) -> np.ndarray:
        """The diagonal is the variance."""
        return np.append(super().pull_diagonal(a, X), 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Periodic(Kernel):
    """variance · exp(−2 Σ_d sin²(π (x_d − z_d) / period_d) / lengthscale_d²).

    Args:
        period: after which the function repeats itself, in units of the inputs; one number, or one per input.
        lengthscale: how smooth it is within a period; about 1 is one wave. One number, or one per input.
        variance: of the function, in squared units of the targets.

    >>> Periodic(period=24.0).gram(np.zeros((1, 1)), np.full((1, 1), 48.0)).round(3).tolist()
    [[1.0]]
    """

    period: Any = 1.0
    lengthscale: Any = 1.0
    variance: Any = 1.0

    def gram(self, X: Array, Z: Array) -> Array:
        """Sum over the inputs of the squared sine of each difference."""
        xp = library(X, Z, self.period, self.lengthscale)
        sine = xp.sin(xp.pi * (X[:, None, :] - Z[None, :, :]) / self.period)  # N×K×D
        return self.variance * xp.exp(-2.0 * xp.sum((sine / self.lengthscale) ** 2, axis=-1))

    def diagonal(self, X: Array) -> Array:
        """Return the variance at every point."""
        return self.variance * library(X, self.variance).ones(X.shape[0])

    def _slopes(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A ∘ K, N×K; angles π (x − z)/period and 4 sin cos / lengthscale² of them, N×K×D."""
        angle = np.pi * (X[:, None, :] - Z[None, :, :]) / self.period
        return A * self.gram(X, Z), angle, 4.0 * np.sin(angle) * np.cos(angle) / self.lengthscale**2

    def pull(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """∂k/∂log period_d = k · 4 sin cos · angle / ℓ_d² and ∂k/∂log ℓ_d = k · 4 sin² / ℓ_d²."""
        AK, angle, slopes = self._slopes(A, X, Z)
        by_period = np.einsum("ij,ijd->d", AK, slopes * angle)
        by_length = np.einsum("ij,ijd->d", AK, 4.0 * (np.sin(angle) / self.lengthscale) ** 2)
        return np.concatenate([_like(self.period, by_period), _like(self.lengthscale, by_length), [np.sum(AK)]])

    def pull_inputs(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """∂k/∂x_d = −k · 4 sin cos / ℓ_d² · π / period_d."""
        AK, _, slopes = self._slopes(A, X, Z)
        return -np.einsum("ij,ijd->id", AK, slopes) * np.pi / self.period

    def pull_diagonal(self, a: np.ndarray, X: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """The diagonal is the variance."""
        return np.append(np.zeros(self.period.size + self.lengthscale.size), np.sum(a) * self.variance)


@dataclass(frozen=True, eq=False, repr=False)
class Linear(Kernel):
    """Σ_d variance_d x_d z_d: Bayesian linear regression. Add a `Constant` for an intercept.

    Args:
        variance: of the slope, one number, or one per input.

    >>> Linear(variance=2.0).gram(np.array([[3.0]]), np.array([[4.0]])).tolist()
    [[24.0]]
    """

    variance: Any = 1.0

    def gram(self, X: Array, Z: Array) -> Array:
        """Weighted inner products."""
        return (X * self.variance) @ Z.T

    def diagonal(self, X: Array) -> Array:
        """Weighted squared norms."""
        return library(X, self.variance).sum(self.variance * X**2, axis=-1)

    def pull(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """∂k/∂log v_d = v_d x_d z_d."""
        return _like(self.variance, self.variance * np.sum(X * (A @ Z), 0))

    def pull_inputs(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """∂k/∂x_d = v_d z_d."""
        return (A @ Z) * self.variance

    def pull_diagonal(self, a: np.ndarray, X: np.ndarray) -> np.ndarray:
        """∂k/∂log v_d = v_d x_d²."""
        return _like(self.variance, self.variance * (a @ X**2))


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Kernel):
    """The same covariance everywhere: an unknown level.

    Args:
        variance: of the level, in squared units of the targets.

    >>> Constant(2.0).gram(np.zeros((1, 1)), np.ones((1, 1))).tolist()
    [[2.0]]
    """

    variance: Any = 1.0

    def gram(self, X: Array, Z: Array) -> Array:
        """Return the variance for every pair."""
        return self.variance * library(X, self.variance).ones((X.shape[0], Z.shape[0]))

    def diagonal(self, X: Array) -> Array:
        """Return the variance at every point."""
        return self.variance * library(X, self.variance).ones(X.shape[0])

    def pull(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """∂k/∂log v = v."""
        return np.sum(A) * self.variance.reshape(1)

    def pull_inputs(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """No input changes it."""
        return np.zeros_like(X)

    def pull_diagonal(self, a: np.ndarray, X: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """∂k/∂log v = v."""
        return np.sum(a) * self.variance.reshape(1)


def _like(parameter: np.ndarray, derivative: np.ndarray) -> np.ndarray:
    """A derivative with one entry per input as the parameter has them: one per input, or one for all."""
    return derivative if parameter.ndim > 0 else np.sum(derivative)[None]


def _root(r2: Array) -> Array:
    """Square root; under automatic differentiation its derivative at 0 is 0 instead of infinite."""
    xp = library(r2)
    zero = r2 <= 0.0
    return xp.where(zero, 0.0, xp.sqrt(xp.where(zero, 1.0, r2)))
