"""For authors of kernels: a check of the derivative, and a way to do without it.

A kernel is a frozen dataclass with `gram`, `diagonal`, `pull`, `pull_inputs` and `pull_diagonal`. `check_kernel`
compares the last three with finite differences. A kernel that has the first two alone works as
`AGP(Numerical(kernel))`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.kernels import Kernel

_STEP = 1e-5  # of central differences in a logarithm, or in an input in units of its size


@dataclass(frozen=True, eq=False, repr=False)
class Numerical(Kernel):
    """A kernel with a formula only: central differences replace its derivative, with two evaluations per parameter.

    Args:
        formula: a kernel with `gram` and `diagonal`; its derivatives are not asked for.

    >>> from driftgp.kernels import SE
    >>> X = np.linspace(0, 1, 4)[:, None]
    >>> bool(np.allclose(Numerical(SE(0.5)).pull(np.eye(4), X, X[::-1]), SE(0.5).pull(np.eye(4), X, X[::-1])))
    True
    """

    formula: Kernel

    def gram(self, X: Any, Z: Any) -> Any:
        """Gram matrix of the formula."""
        return self.formula.gram(X, Z)

    def diagonal(self, X: Any) -> Any:
        """Diagonal of the formula."""
        return self.formula.diagonal(X)

    def pull(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Σ A ∂k/∂log θ by differences."""
        return self._in_logs(lambda kernel: float(np.sum(A * kernel.gram(X, Z))))

    def pull_inputs(self, A: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Σ A ∂k/∂x by differences, one input of all rows at a time."""
        step = _STEP * np.maximum(np.abs(X), 1.0)  # N×D
        made = np.empty_like(X)
        for d in range(X.shape[1]):
            ahead, behind = X.copy(), X.copy()
            ahead[:, d] += step[:, d]
            behind[:, d] -= step[:, d]
            rise = np.sum(A * (self.formula.gram(ahead, Z) - self.formula.gram(behind, Z)), 1)
            made[:, d] = rise / (ahead[:, d] - behind[:, d])
        return made

    def pull_diagonal(self, a: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Σ a ∂k/∂log θ by differences."""
        return self._in_logs(lambda kernel: float(a @ kernel.diagonal(X)))

    def _in_logs(self, value: Callable[[Kernel], float]) -> np.ndarray:
        theta = self.formula.theta
        made = np.empty_like(theta)
        for i in range(theta.size):
            ahead, behind = theta.copy(), theta.copy()
            ahead[i] *= np.exp(_STEP)
            behind[i] *= np.exp(-_STEP)
            made[i] = (value(self.formula.at(ahead)) - value(self.formula.at(behind))) / (2.0 * _STEP)
        return made


def check_kernel(kernel: Kernel, X: np.ndarray, Z: np.ndarray, tolerance: float = 1e-5) -> None:
    """Compare a kernel's derivative with finite differences at the rows of X and Z, and its diagonal with its formula.

    Raises a ValueError that names the method and the entry that is wrong.

    Args:
        kernel: the kernel to check.
        X: rows, N×D.
        Z: other rows, K×D.
        tolerance: largest difference, relative to the size of the derivative.

    >>> from driftgp.kernels import Matern52, Periodic
    >>> rng = np.random.default_rng(0)
    >>> check_kernel(Matern52([0.5, 2.0]) * Periodic(1.5), rng.normal(size=(4, 2)), rng.normal(size=(5, 2)))
    """
    rng = np.random.default_rng(0)
    A, a = rng.normal(size=(len(X), len(Z))), rng.normal(size=len(X))
    differences = Numerical(kernel)
    _same("diagonal", np.asarray(kernel.diagonal(X)), np.diagonal(kernel.gram(X, X)), tolerance)
    _same("pull", kernel.pull(A, X, Z), differences.pull(A, X, Z), tolerance)
    _same("pull_inputs", kernel.pull_inputs(A, X, Z), differences.pull_inputs(A, X, Z), tolerance)
    _same("pull_diagonal", kernel.pull_diagonal(a, X), differences.pull_diagonal(a, X), tolerance)


def _same(method: str, given: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    if given.shape != expected.shape:
        raise ValueError(f"{method} must return shape {expected.shape}; got shape {given.shape}")
    size = max(float(np.max(np.abs(expected), initial=0.0)), 1.0)
    wrong = ~(np.abs(given - expected) <= tolerance * size)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(f"{method} is wrong at {at}: it gives {given[at]:.6g}, and differences {expected[at]:.6g}")
