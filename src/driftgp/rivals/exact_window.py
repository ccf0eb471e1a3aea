"""The exact Gaussian process on the window.

Gaussian process regression (Rasmussen and Williams 2006, chapter 2) on the last T samples. A sample's weight
w_i = λ^age makes its noise σ²/w_i; λ = 1 is the plain windowed process. With S = diag(√w), K̃ = S Kxx S, z = S y,
β = σ⁻² and

    B = I + β K̃ = L Lᵀ

the λ-weighted evidence log ∫ Π N(y_i | f_i, σ²)^w_i N(f | 0, Kxx) df and the posterior are

    F = −½ n log 2πσ² − Σ log diag L − ½ β |L⁻¹z|²,  n = Σ w_i
    mean = k*ᵀ S a β,  a = B⁻¹ z        variance = k** − β |L⁻¹ S k*|²

B has no eigenvalue under 1, and an empty slot (w = 0) is a row of the identity that changes nothing: no mask is needed.

Cost of a sample: O(T³) for each gradient step and once more for the posterior; of a forecast O(T²); memory O(T²).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from driftgp.rivals import jax_bound as bound
from driftgp.rivals import jax_learning as learning
from driftgp.rivals import jax_window as window
from driftgp.rivals.base import Normal
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units, Window
from driftgp.rivals.windowed import Fit, WindowedModel, WindowedState


class Exact(NamedTuple):
    """The posterior, in the form that forecasts need."""

    L: Array  # P×T×T
    alpha: Array  # T×P, β S a


class ExactWindow(WindowedModel):
    """Exact GP on the last T samples, λ-weighted, with a few gradient steps per sample.

    Settings: those of `WindowedModel`. By default one fresh Adam step at rate 0.05 per sample, and λ^T = 0.1.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> model = ExactWindow(window=30)
    >>> state = model.init(X, np.sin(6 * X[:, 0]))
    >>> bool(abs(model.predict(state, X[:1]).mean[0]) < 0.05)
    True
    """

    def first(self, h: Hyperparameters, memory: Window, filled: int) -> tuple[Any, Any]:  # noqa: ARG002
        """Nothing but hyperparameters is learned."""
        return (), ()

    def welcome(self, fit: Fit, x: Array) -> Fit:  # noqa: ARG002
        """Every sample of the window takes part as it is."""
        return fit

    def fit_in_units(self, fit: Fit, units: Units) -> Fit:  # noqa: ARG002
        """Hyperparameters are shares of a unit and stay."""
        return fit

    def derived(self) -> tuple[str, ...]:
        """The posterior."""
        return "posterior_L", "posterior_alpha"

    def climb(self, fit: Fit, memory: Window, rate: float, iterations: int) -> Fit:
        """Gradient steps on the evidence."""

        def objective(h: Hyperparameters, _: Any) -> Array:
            return evidence(*whitened(h, memory), jnp.sum(memory.w), h.noise)

        return self.ascend(objective, fit, memory, rate, iterations)

    def condition(self, fit: Fit, memory: Window) -> tuple[Exact, Array]:
        """Factorise once for all forecasts."""
        h = fit.hyperparameters
        K, z = whitened(h, memory)
        f, repairs = _factorise(K, z, 1.0 / h.noise)
        a = _solve_upper(f.L, f.half[..., None])[..., 0].T  # T×P
        return Exact(f.L, jnp.sqrt(memory.w)[:, None] * a / h.noise), repairs

    def look(self, state: WindowedState, X: Array) -> Normal:
        """Mean and variance of the exact process."""
        h, q = state.hyperparameters, state.posterior
        Kxs = h.kernel(state.window.X, X)  # T×N
        scaled = jnp.broadcast_to(jnp.sqrt(state.window.w)[:, None] * Kxs, (*q.L.shape[:1], *Kxs.shape))
        explained = jnp.sum(bound.solve_lower(q.L, scaled) ** 2, -2).T / h.noise  # N×P
        latent = jnp.maximum(h.kernel(X)[:, None] - explained, 0.0)
        return Normal(Kxs.T @ q.alpha, latent + h.noise, jnp.broadcast_to(h.noise, latent.shape))


def whitened(h: Hyperparameters, memory: Window) -> tuple[Array, Array]:
    """K̃ = S Kxx S and z = S y."""
    root = jnp.sqrt(memory.w)
    return root[:, None] * h.kernel(memory.X, memory.X) * root, root[:, None] * memory.y


class _Factors(NamedTuple):
    L: Array  # P×T×T
    half: Array  # P×T, L⁻¹ z


def _factorise(K: Array, z: Array, beta: Array) -> tuple[_Factors, Array]:
    L, repairs = bound.cholesky(jnp.eye(K.shape[0]) + beta[:, None, None] * K)
    return _Factors(L, bound.solve_lower(L, z.T[..., None])[..., 0]), repairs


def _solve_upper(L: Array, X: Array) -> Array:
    """L⁻ᵀ X for a stack of factors."""
    return lax.linalg.triangular_solve(L, X, left_side=True, lower=True, transpose_a=True)


@jax.custom_vjp
def evidence(K: Array, z: Array, n: Array, noise: Array) -> Array:
    """F of the module's first formulas, from K̃ (T×T) and z (T×P), with its own derivative rule."""
    return _evidence_forward(K, z, n, noise)[0]


def _evidence_forward(K: Array, z: Array, n: Array, noise: Array) -> tuple[Array, tuple[Any, ...]]:
    beta = 1.0 / noise
    f, _ = _factorise(K, z, beta)
    constant = 0.5 * n * jnp.sum(jnp.log(beta / (2.0 * jnp.pi)))
    log_determinant = jnp.sum(jnp.log(jnp.diagonal(f.L, axis1=-2, axis2=-1)))
    return constant - log_determinant - 0.5 * beta @ jnp.sum(f.half**2, -1), (f, n, beta)


def _evidence_backward(residuals: tuple[Any, ...], dF: Array) -> tuple[Array, Array, Array, Array]:
    """∂F/∂K̃ = ½β (β aaᵀ − B⁻¹), ∂F/∂z = −β a, and by K̃a = (z − a)/β: ∂F/∂β = ½ (n − T + tr B⁻¹)/β − ½ aᵀa."""
    f, n, beta = residuals
    T = f.L.shape[-1]
    identity = jnp.broadcast_to(jnp.eye(T), f.L.shape)
    inverse_B = _solve_upper(f.L, bound.solve_lower(f.L, identity))  # P×T×T; measured faster than L⁻ᵀ times L⁻¹
    a = _solve_upper(f.L, f.half[..., None])[..., 0].T  # T×P
    dK = 0.5 * ((a * beta**2) @ a.T - jnp.sum(beta[:, None, None] * inverse_B, 0))
    dbeta = 0.5 * ((n - T + jnp.trace(inverse_B, axis1=-2, axis2=-1)) / beta - jnp.sum(a**2, 0))
    dn = 0.5 * jnp.sum(jnp.log(beta / (2.0 * jnp.pi)))
    return dF * dK, -dF * a * beta, dF * dn, -dF * dbeta * beta**2


evidence.defvjp(_evidence_forward, _evidence_backward)


def maximised(h: Hyperparameters, X: Array, y: Array, rate: Any, iterations: int) -> tuple[Hyperparameters, Array]:
    """Hyperparameters after some Adam iterations on the evidence of a batch, and the number of skipped steps."""
    memory = window.fill(X, y, 1.0, X.shape[0])  # gaps have weight 0
    n = jnp.sum(memory.w)

    def objective(h: Hyperparameters, _: Any) -> Array:
        return evidence(*whitened(h, memory), n, h.noise)

    optimizer = learning.adam(rate)
    climb = learning.ascend(objective, h, (), optimizer, learning.begun(optimizer, h), iterations)
    return climb.positive, climb.skipped
