"""The variational sparse GP with an explicit q, on a window: w-VSGP and AGP-VSI.

The stochastic variational formulation of appendix B of the paper (after Titsias 2009 and Hoffman et al. 2013): instead
of the collapsed bound, gradient steps climb the λ-weighted evidence lower bound. It has an explicit Gaussian q(v) =
N(m, R Rᵀ) over the whitened inducing values u = L v:

    F(q) = Σ w_i E_q[log N(y_i | f_i, σ²)] − KL(q ‖ N(0, I))                                       (eq. F_SVI_lambda)

by Adam, in m, R, the inducing inputs, the kernel's parameters and the noise, from the last sample's solution.
R is lower triangular with a positive diagonal (learned as its logarithm). AGP-VSI has w_i = λ^age; w-VSGP is the same
with λ = 1. Both took 50 iterations per sample in the paper. The expected log-likelihood has a closed form for Gaussian
noise; the published runs scored log N(y_i | m_i, v_i + σ²) in its place (`score="predictive"`), which is no bound on
the evidence.

With 50 iterations both lose track of the toy stream, as in the paper. The gradient moves the inducing points too slowly
to follow the inputs, and few of them stay in the window. Four times the iterations cure AGP-VSI of that, and w-VSGP for
the most part; `renew=10` cures both at the cost of 50, but is ours and not the paper's.

Cost of a sample: O(k M² T) for k iterations; of a forecast O(M²).
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax import Array

from driftgp.rivals import jax_bound as bound
from driftgp.rivals import settings, variational
from driftgp.rivals.jax_bound import Posterior
from driftgp.rivals.jax_inducing import Inducing
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units, Window
from driftgp.rivals.sparse import SparseModel
from driftgp.rivals.variational import SCORES, Score, Whitened
from driftgp.rivals.windowed import Fit


class VSI(SparseModel):
    """Variational sparse GP with an explicit whitened q, learned by Adam on the window.

    `AGPVSI` and `WVSGP` are this model with the paper's settings.

    Args:
        kernel: covariance with its starting parameters; squared exponential by default.
        score: "expected" log-likelihood, or the "predictive" one of the published runs.
        iterations: Adam iterations per sample.
        rate: Adam's rate.
        renew: as in `SparseModel`, but none by default: in the paper the gradient alone moves the points.
    """

    score: Score = settings.one_of("expected", SCORES)
    iterations: int = settings.whole(50, 1)
    rate: float = settings.number(0.01)
    renew: Any = settings.whole(0, 0)

    def first(self, h: Hyperparameters, memory: Window, filled: int) -> tuple[Any, Any]:
        """Begin with q at the prior."""
        points, M, P = self.place(h, memory, filled), self.inducing, h.noise.shape[0]
        return (points.U, jnp.zeros((M, P)), jnp.zeros((P, M, M))), self.beginning(points)

    def move(self, fit: Fit, U: Array) -> Fit:
        """Carry q over to the points that stay."""
        moved = replace(fit, free=(U, *fit.free[1:]))
        L, inverse_L = bound.cholesky(self.gram(fit))[0], self.root(moved)[0]
        m, S = variational.carry_over(whitened(fit.free), L, inverse_L)
        return replace(moved, free=(U, m, unwhitened(bound.cholesky(S)[0])))

    def revalue(self, fit: Fit, moved: Fit, units: Units) -> Fit:
        """The mean of the inducing values in the new units; their covariance is a share of a unit and stays."""
        L, inverse_L = bound.cholesky(self.gram(fit))[0], self.root(moved)[0]
        U, m, raw = moved.free
        return replace(moved, free=(U, inverse_L @ units.targets(L @ m), raw))

    def climb(self, fit: Fit, memory: Window, rate: float, iterations: int) -> Fit:
        """Gradient steps on F(q) in everything."""

        def objective(h: Hyperparameters, free: tuple[Array, Array, Array]) -> Array:
            Kuu, Kux = self.grams(h, Inducing(free[0], fit.rest[0]), memory.X)
            A = variational.inverse_root(Kuu) @ Kux  # M×T
            return variational.elbo(whitened(free), A, h.kernel(memory.X), memory.w, memory.y, h.noise, self.score)

        return self.ascend(objective, fit, memory, rate, iterations)

    def condition(self, fit: Fit, memory: Window) -> tuple[Posterior, Array]:  # noqa: ARG002
        """Predictions follow from q alone."""
        inverse_L, repairs = self.root(fit)
        return variational.posterior(whitened(fit.free), inverse_L), repairs


def whitened(free: tuple[Array, Array, Array]) -> Whitened:
    """q from its free parameters: R has their lower half and the exponential of their diagonal."""
    _, m, raw = free
    diagonal = jnp.exp(jnp.diagonal(raw, axis1=-2, axis2=-1))  # P×M
    return Whitened(m, jnp.tril(raw, -1) + diagonal[..., None] * jnp.eye(raw.shape[-1]))


def unwhitened(R: Array) -> Array:
    """Free parameters whose R this is."""
    diagonal = jnp.log(jnp.diagonal(R, axis1=-2, axis2=-1))  # P×M
    return jnp.tril(R, -1) + diagonal[..., None] * jnp.eye(R.shape[-1])


def AGPVSI(kernel: Any = None, **given: Any) -> VSI:
    """AGP-VSI: the λ-weighted variational sparse GP with an explicit q (appendix B)."""
    return VSI(kernel, **given)


def WVSGP(kernel: Any = None, **given: Any) -> VSI:
    """w-VSGP: the variational sparse GP on a window in which all samples count alike, λ = 1."""
    if not given.keys() & {"forgetting", "attenuation"}:
        given["forgetting"] = 1.0
    return VSI(kernel, **given)
