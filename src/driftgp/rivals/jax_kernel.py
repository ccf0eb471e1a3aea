"""A kernel written in JAX, such as one of tinygp, in the place of a kernel of the library.

    AGP(JaxKernel(tinygp.kernels.ExpSquared(0.5) + 2.0 * tinygp.kernels.Linear()))

JAX differentiates the formula, so that nothing else need be written.
"""

from dataclasses import dataclass
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from driftgp.kernels import Kernel
from driftgp.rivals.jax_kernels import positive_leaves


@dataclass(frozen=True, eq=False, repr=False)
class JaxKernel(Kernel):
    """Any k that answers k(X, Z) with a Gram matrix and k(X) with its diagonal, and is a pytree of its parameters.

    Its parameters are the leaves of the pytree; all of them have to be positive.

    Args:
        kernel: the k.

    >>> from driftgp.kernels import SE
    >>> from driftgp.rivals.jax_kernels import checked_kernel
    >>> X = np.linspace(0, 1, 4)[:, None]
    >>> kernel = JaxKernel(checked_kernel(SE(0.5)))  # one of the core's stands in for one of another library
    >>> bool(np.allclose(kernel.pull(np.eye(4), X, X[::-1]), SE(0.5).pull(np.eye(4), X, X[::-1])))
    True
    """

    kernel: Any

    def __post_init__(self) -> None:
        """Make every parameter an array, refusing what is not positive."""
        object.__setattr__(self, "kernel", positive_leaves(self.kernel))

    # ---- the formula and its derivative ------------------------------------------------------------------------------

    def gram(self, X: Any, Z: Any) -> Any:
        """Ask the kernel, in JAX's arrays or in NumPy's."""
        if isinstance(X, Array) or isinstance(Z, Array):
            return self.kernel(X, Z)
        if min(len(X), len(Z)) == 0:
            return np.zeros((len(X), len(Z)))
        return _compute(_gram, self.kernel, _padded(X), _padded(Z))[: len(X), : len(Z)]

    def diagonal(self, X: Any) -> Any:
        """Ask the kernel, in JAX's arrays or in NumPy's."""
        if isinstance(X, Array):
            return self.kernel(X)
        return _compute(_diagonal, self.kernel, _padded(X))[: len(X)] if len(X) else np.zeros(0)

    def pull(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Vector–Jacobian product in the logarithms of the parameters."""
        if A.size == 0:
            return np.zeros(self.size)
        X, Z = _padded(X), _padded(Z)
        return _compute(_pull, self.kernel, _with_zeros(A, (len(X), len(Z))), X, Z)

    def pull_inputs(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Vector–Jacobian product in X."""
        if A.size == 0:
            return np.zeros_like(X)
        rows, X, Z = len(X), _padded(X), _padded(Z)
        return _compute(_pull_inputs, self.kernel, _with_zeros(A, (len(X), len(Z))), X, Z)[:rows]

    def pull_diagonal(self, a: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Vector–Jacobian product in the logarithms of the parameters."""
        if len(a) == 0:
            return np.zeros(self.size)
        X = _padded(X)
        return _compute(_pull_diagonal, self.kernel, _with_zeros(a, (len(X),)), X)

    # ---- its parameters ----------------------------------------------------------------------------------------------

    @property
    def theta(self) -> np.ndarray:
        """All parameters as one vector, in the order of the leaves."""
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(self.kernel)] or [np.zeros(0)])

    @property
    def size(self) -> int:
        """Number of parameters H."""
        return sum(np.size(leaf) for leaf in jax.tree.leaves(self.kernel))

    def at(self, theta: np.ndarray) -> Self:
        """The same kernel with other parameters."""
        leaves, structure = jax.tree.flatten(self.kernel)
        parts = np.split(theta, np.cumsum([np.size(leaf) for leaf in leaves[:-1]])) if leaves else []
        shaped = [part.reshape(np.shape(leaf)) for part, leaf in zip(parts, leaves, strict=True)]
        other = object.__new__(type(self))
        object.__setattr__(other, "kernel", jax.tree.unflatten(structure, shaped))
        return other

    def fit(self, inputs: int) -> None:
        """Refuse a number of inputs that the formula does not take."""
        with jax.enable_x64(True):
            X = jax.ShapeDtypeStruct((3, inputs), np.float64)
            try:
                shapes = [made.shape for made in jax.eval_shape(lambda X: (self.kernel(X, X[:2]), self.kernel(X)), X)]
            except (TypeError, ValueError) as error:
                raise ValueError(f"kernel must take {inputs} inputs; this one does not: {error}") from error
        if shapes != [(3, 2), (3,)]:
            raise ValueError(f"kernel must return N×K for k(X, Z) and N for k(X); for 3 and 2 rows it gives {shapes}")

    def __repr__(self) -> str:
        return f"JaxKernel({self.kernel!r}, theta={self.theta.tolist()})"


# ---- compiled, for rows padded to a power of two: AGP asks for every number of points, and each would be a program ---


def _compute(program: Any, *arguments: Any) -> np.ndarray:
    """The result of a program, in double precision, as an array of one's own."""
    with jax.enable_x64(True):
        return np.array(program(*arguments))


def _padded(X: np.ndarray) -> np.ndarray:
    """Rows, and copies of the first behind them: pairs of points that the kernel is asked for anyway."""
    more = (1 << (len(X) - 1).bit_length()) - len(X)
    return np.concatenate([X, np.broadcast_to(X[:1], (more, X.shape[1]))])


def _with_zeros(A: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    made = np.zeros(shape)
    made[tuple(map(slice, A.shape))] = A
    return made


@jax.jit
def _gram(kernel: Any, X: Array, Z: Array) -> Array:
    return kernel(X, Z)


@jax.jit
def _diagonal(kernel: Any, X: Array) -> Array:
    return kernel(X)


@jax.jit
def _pull(kernel: Any, A: Array, X: Array, Z: Array) -> Array:
    return _in_logarithms(lambda kernel: kernel(X, Z), kernel, A)


@jax.jit
def _pull_diagonal(kernel: Any, a: Array, X: Array) -> Array:
    return _in_logarithms(lambda kernel: kernel(X), kernel, a)


@jax.jit
def _pull_inputs(kernel: Any, A: Array, X: Array, Z: Array) -> Array:
    return jax.vjp(lambda X: kernel(X, Z), X)[1](A)[0]


def _in_logarithms(formula: Any, kernel: Any, A: Array) -> Array:
    """θ Σ A ∂k/∂θ, one entry per parameter."""
    (slopes,) = jax.vjp(formula, kernel)[1](A)
    return ravel_pytree(jax.tree.map(jnp.multiply, slopes, kernel))[0]
