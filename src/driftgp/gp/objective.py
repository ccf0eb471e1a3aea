"""The bound as a function of hyperparameters and inducing inputs, for gradient steps."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftgp.gp import bound
from driftgp.gp.bound import NoFactor
from driftgp.gp.inducing import gram
from driftgp.kernels import Kernel


class Samples(NamedTuple):
    """Samples and their weights."""

    X: np.ndarray  # T×D
    y: np.ndarray  # T×P
    w: np.ndarray  # T


class Jitter(NamedTuple):
    """What is added to the diagonal of Kuu: relative to its mean, and as it is."""

    relative: float
    absolute: float


@dataclass(frozen=True)
class Objective:
    """F of a window, plus the log density of a log-normal prior around the parameters to start from."""

    kernel: Kernel  # with its first parameters
    noise: np.ndarray  # P, the first
    jitter: Jitter
    prior: float | None  # standard deviation of each logarithm

    def slope(self, theta: np.ndarray, noise: np.ndarray, U: np.ndarray, samples: Samples) -> "Slope | None":
        """Its derivative, or None if anything in it is not finite."""
        try:
            slope = Slope(self.kernel.at(theta.copy()), noise.copy(), U, samples, self.jitter)
        except NoFactor:
            return None
        if self.prior is not None:
            here, centre = np.concatenate([theta, noise]), np.concatenate([self.kernel.theta, self.noise])
            slope.hyperparameters -= np.log(here / centre) / self.prior**2
        return slope if np.isfinite(slope.hyperparameters).all() else None


class Slope:
    """Derivative of F at one set of hyperparameters and inducing inputs.

    F depends on the kernel only through Kuu, Kux and κ, so the chain rule needs only the kernel's own derivative.
    """

    def __init__(self, kernel: Kernel, noise: np.ndarray, U: np.ndarray, samples: Samples, jitter: Jitter) -> None:
        """Compute ∂F/∂Kuu, ∂F/∂Kux and ∂F/∂κ; raises `bound.NoFactor` where Kuu has no factor."""
        X, y, w = samples
        Kux = kernel.gram(U, X)  # M×T
        s = bound.statistics(Kux, kernel.diagonal(X), w, y)
        g = bound.gradient(gram(kernel, U, *jitter), s, noise)
        dKux = bound.through_Kux(g, Kux, w, y)  # M×T
        # the jitter is relative to the diagonal's mean
        shares = np.full(len(U), jitter.relative * np.trace(g.Kuu) / max(len(U), 1))
        by_kernel = (
            kernel.pull(dKux, U, X)
            + kernel.pull(g.Kuu, U, U)
            + kernel.pull_diagonal(shares, U)
            + kernel.pull_diagonal(g.kappa * w, X)
        )
        self.hyperparameters = np.concatenate([by_kernel, g.noise * noise])  # H+P: ∂F/∂log θ and ∂F/∂log σ²
        self._kernel, self._U, self._X, self._dKuu, self._dKux = kernel, U, X, g.Kuu, dKux

    def inputs(self, rows: slice) -> np.ndarray:
        """∂F/∂U of some of the inducing inputs, whose rows of Kuu are its columns too."""
        kernel, U = self._kernel, self._U[rows]
        return kernel.pull_inputs(self._dKux[rows], U, self._X) + 2.0 * kernel.pull_inputs(self._dKuu[rows], U, self._U)
