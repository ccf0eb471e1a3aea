"""FITC and DTC on a window: sparse GPs whose approximation is in the model, not in the posterior.

Both replace the prior of the function values by one that depends on the M inducing values alone, and maximise the
evidence of that model. With A = L⁻¹ Kux, Q = AᵀA and weights w_i = λ^age (a sample's noise is σ²/w_i)

    y ~ N(0, Q + D + σ² W⁻¹)    FITC: D = diag(Kxx − Q)    DTC: D = 0

FITC: Snelson and Ghahramani 2006; DTC: Seeger, Williams and Lawrence 2003; names as in Quiñonero-Candela and Rasmussen
2005. Unlike the variational bound, the evidence of either may exceed that of the exact process: it can overfit.
With r_i = w_i / (σ² + w_i d_i), the precision of a sample around its projection, B = I + A diag(r) Aᵀ = L_B L_Bᵀ and
c = L_B⁻¹ A diag(r) y, the λ-weighted evidence and the posterior are

    F = −½ n log 2πσ² − ½ Σ log(1 + w_i d_i/σ²) − Σ log diag L_B − ½ Σ r_i y_i² + ½ |c|²
    mean = (L_B⁻¹ a*)ᵀ c        variance = k** − |a*|² + |L_B⁻¹ a*|²

Inducing inputs and hyperparameters start where the last sample left them and take a few gradient steps on F.

Cost of a sample: O(k M² T) for k gradient steps; of a forecast O(M²).
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from driftgp.rivals import jax_inducing as inducing
from driftgp.rivals import settings, variational
from driftgp.rivals.jax_bound import Posterior
from driftgp.rivals.jax_inducing import Inducing
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units, Window
from driftgp.rivals.sparse import SparseModel
from driftgp.rivals.windowed import Fit, points_of


class ProjectedProcess(SparseModel):
    """FITC or DTC, by whether a sample keeps the variance that the inducing points do not explain.

    Args:
        kernel: covariance with its starting parameters; squared exponential by default.
        independent: D = diag(Kxx − Q) (FITC) or D = 0 (DTC).
    """

    independent: bool = settings.flag(True)

    def first(self, h: Hyperparameters, memory: Window, filled: int) -> tuple[Any, Any]:
        """Place the inducing points."""
        points = self.place(h, memory, filled)
        return (points.U,), self.beginning(points)

    def move(self, fit: Fit, U: Array) -> Fit:
        """The posterior follows from the window: only the points move."""
        return replace(fit, free=(U,))

    def revalue(self, fit: Fit, moved: Fit, units: Units) -> Fit:  # noqa: ARG002
        """The posterior follows from the window."""
        return moved

    def climb(self, fit: Fit, memory: Window, rate: float, iterations: int) -> Fit:
        """Gradient steps on the evidence."""

        def objective(h: Hyperparameters, free: tuple[Array]) -> Array:
            return self.objective(h, Inducing(free[0], fit.rest[0]), memory)

        return self.ascend(objective, fit, memory, rate, iterations)

    def objective(self, h: Hyperparameters, points: Inducing, memory: Window) -> Array:
        """The λ-weighted evidence of the approximate model."""
        Kuu, Kux = self.grams(h, points, memory.X)
        A = variational.inverse_root(Kuu) @ Kux  # M×T
        return evidence(self._projection(A, h, memory), memory, h.noise)

    def condition(self, fit: Fit, memory: Window) -> tuple[Posterior, Array]:
        """Posterior of the inducing values, in the form that `bound.predict` takes."""
        h = fit.hyperparameters
        inverse_L, repairs = self.root(fit)
        A = inverse_L @ inducing.cross(h.kernel, points_of(fit), memory.X)  # M×T
        p = self._projection(A, h, memory)
        alpha = inverse_L.T @ jnp.einsum("pij,pi->jp", p.inverse_L_B, p.c)  # M×P
        return Posterior(inverse_L, p.inverse_L_B @ inverse_L, alpha), repairs

    def _projection(self, A: Array, h: Hyperparameters, memory: Window) -> "Projection":
        # Rounding may leave less than nothing unexplained where an inducing point is at a sample.
        unexplained = jnp.maximum(h.kernel(memory.X) - jnp.sum(A**2, 0), 0.0)
        return project(A, unexplained if self.independent else jnp.zeros_like(unexplained), memory, h.noise)


class Projection(NamedTuple):
    """What the evidence and the posterior share."""

    excess: Array  # P×T, w_i d_i / σ²
    r: Array  # P×T
    inverse_L_B: Array  # P×M×M
    c: Array  # P×M


def project(A: Array, d: Array, memory: Window, noise: Array) -> Projection:
    """Factorise B for each output: O(M²T)."""
    excess = memory.w * d / noise[:, None]  # P×T
    r = memory.w / (noise[:, None] * (1.0 + excess))
    scaled = A * r[:, None, :]  # P×M×T
    inverse_L_B = variational.inverse_root(jnp.eye(A.shape[0]) + scaled @ A.T)
    return Projection(excess, r, inverse_L_B, jnp.einsum("pij,pjt,tp->pi", inverse_L_B, scaled, memory.y))


def evidence(p: Projection, memory: Window, noise: Array) -> Array:
    """F of the module's formulas, summed over outputs."""
    constant = -0.5 * jnp.sum(memory.w) * jnp.sum(jnp.log(2.0 * jnp.pi * noise))
    log_determinant = jnp.sum(jnp.log(jnp.diagonal(p.inverse_L_B, axis1=-2, axis2=-1)))  # of L_B⁻¹: its sign is turned
    independent = -0.5 * jnp.sum(jnp.log1p(p.excess))
    quadratic = 0.5 * jnp.sum(p.c**2) - 0.5 * jnp.sum(p.r * memory.y.T**2)
    return constant + log_determinant + independent + quadratic


def FITC(kernel: Any = None, **given: Any) -> ProjectedProcess:
    """FITC: given the inducing values, samples are independent and keep their own variance."""
    return ProjectedProcess(kernel, independent=True, **given)


def DTC(kernel: Any = None, **given: Any) -> ProjectedProcess:
    """DTC: given the inducing values, the function is known at every sample."""
    return ProjectedProcess(kernel, independent=False, **given)
