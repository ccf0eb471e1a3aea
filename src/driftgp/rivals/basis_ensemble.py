"""A mixture of GPs by basis expansions, whose weights drift, in the manner of DOEBE.

D. Waxman, P. M. Djurić, "Dynamic Online Ensembles of Basis Expansions", Transactions on Machine Learning Research,
2024; Q. Lu, G. Karanikolas, G. B. Giannakis, "Incremental Ensemble Gaussian Processes", IEEE Transactions on Pattern
Analysis and Machine Intelligence 45(2), 2023; features: A. Rahimi, B. Recht, NIPS 2007.

An expert is Bayesian linear regression on F features of the inputs, which approximate the kernel, k ≈ φᵀφ'. Its weights
take a random walk, so that old samples count less:

    w ← w + ε,  ε ~ N(0, q I) per unit of time        y = φ(x)ᵀw + noise,  w ~ N(0, I) at first

Experts differ in lengthscale and in q, from 0 (nothing drifts) on. Each is a Kalman filter, O(F²) per sample. Their
weights in the mixture are those of Bayes' rule, π_e ∝ π_e p_e(y), per output. A share is spread evenly at every sample
(Herbster and Warmuth 1998), which DOEBE does not do. Without it the mixture is soon one expert, also after the stream
has changed. The forecast is the normal distribution of the mixture's mean and variance.

Features are random Fourier features of the squared exponential kernel, √(2/F) s cos(ωᵀx + b), and a constant.
**Hyperparameters** maximise the evidence of the exact GP on the warm-up batch, and stay.
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from driftgp.kernels import SE
from driftgp.rivals import jax_window as window
from driftgp.rivals import settings
from driftgp.rivals.base import Normal
from driftgp.rivals.filtered import FilteredModel
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units
from driftgp.rivals.loops import only_if


class EnsembleState(eqx.Module):
    """What the experts know, E of them with F features."""

    hyperparameters: Hyperparameters
    omega: Array  # E×F×D
    phase: Array  # E×F
    constant: Array  # E, value of the last feature
    mean: Array  # E×(F+1)×P
    covariance: Array  # E×P×(F+1)×(F+1)
    log_weights: Array  # E×P
    skipped: Array  # gradient steps of the warm-up left out because something in them was not finite


class BasisEnsemble(FilteredModel):
    """Mixture of drifting linear regressions on random Fourier features.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = BasisEnsemble(features=30)
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> bool(abs(model.predict(state, X[41:42]).mean[0] - np.sin(6 * X[41, 0])) < 0.05)
    True

    Args:
        kernel: squared exponential with its starting parameters.
        noise: starting variance of the noise, one number or one per output.
        features: random Fourier features F of an expert.
        lengthscales: of the experts, as multiples of the learned one.
        drifts: q of the experts, the variance that a weight of prior variance 1 gains per unit of time. There is an
            expert for each pair of a lengthscale and a drift.
        switch: share of the mixture's weights that is dealt out evenly at every sample; 0 is Bayes' rule alone.
        seed: of the random features.
    """

    features: int = settings.whole(50, 1)
    lengthscales: Any = settings.numbers((0.5, 1.0))
    drifts: Any = settings.numbers((0.0, 1e-4, 1e-3, 1e-2), open_low=False)
    switch: float = settings.share(0.01)
    seed: Any = settings.seed()

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if not isinstance(self.kernel, SE):
            raise ValueError(f"kernel must be SE, whose random features are known; got {self.kernel!r}")

    # ---- what a rival provides ---------------------------------------------------------------------------------------

    def before(self, h: Hyperparameters, skipped: Array, X: Array, y: Array) -> EnsembleState:
        """Draw the features; all experts weigh the same."""
        D, P, F, E = X.shape[1], y.shape[1], self.features, self.lengthscales.shape[0] * self.drifts.shape[0]
        keys = jax.random.split(jax.random.key(self.seed))
        omega = jax.random.normal(keys[0], (F, D)) / h.kernel.lengthscale
        phase = jax.random.uniform(keys[1], (F,), maxval=2.0 * jnp.pi)
        return EnsembleState(
            hyperparameters=h,
            omega=jnp.repeat(omega / jnp.asarray(self.lengthscales)[:, None, None], self.drifts.shape[0], 0),
            phase=jnp.broadcast_to(phase, (E, F)),
            constant=jnp.broadcast_to(jnp.sqrt(h.kernel.variance), (E,)),
            mean=jnp.zeros((E, F + 1, P)),
            covariance=jnp.broadcast_to(jnp.eye(F + 1), (E, P, F + 1, F + 1)),
            log_weights=jnp.full((E, P), -jnp.log(float(E))),
            skipped=skipped,
        )

    def look(self, state: EnsembleState, X: Array) -> Normal:
        """Mean and variance of the mixture, a unit of time ahead."""
        mean, latent = self._experts(self._drift(state, jnp.ones(())), X)  # E×N×P
        weights = jnp.exp(state.log_weights)[:, None]  # E×1×P
        centre = jnp.sum(weights * mean, 0)
        noise = jnp.broadcast_to(state.hyperparameters.noise, centre.shape)
        return Normal(centre, noise + jnp.sum(weights * (latent + (mean - centre) ** 2), 0), noise)

    def step(self, state: EnsembleState, x: Array, y: Array, elapsed: Array) -> EnsembleState:
        """Let the weights drift, then condition on the sample, if any."""
        state = self._drift(state, elapsed)
        observed = window.observed(x, y)
        return only_if(observed, lambda state: self._absorb(state, x, y), state)

    def in_units(self, state: EnsembleState, units: Units) -> EnsembleState:
        """The same functions of other inputs; of the targets, means alone change: covariances are shares of a unit."""
        phase = state.phase + state.omega @ units.x_centre
        shift = units.y_centre / state.constant[:, None]  # E×P, of the constant's weight
        mean = state.mean.at[:, -1].add(-shift) / units.y_scale
        return replace(state, omega=state.omega * units.x_scale, phase=phase, mean=mean)

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _features(self, state: EnsembleState, X: Array) -> Array:
        """φ of every expert, E×N×(F+1)."""
        size = jnp.sqrt(2.0 * state.hyperparameters.kernel.variance / self.features)
        waves = size * jnp.cos(jnp.einsum("efd,nd->enf", state.omega, X) + state.phase[:, None])
        constant = jnp.broadcast_to(state.constant[:, None, None], (*waves.shape[:2], 1))
        return jnp.concatenate([waves, constant], -1)

    def _experts(self, state: EnsembleState, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the function by each expert, E×N×P."""
        phi = self._features(state, X)  # E×N×F
        latent = jnp.einsum("enf,epfg,eng->enp", phi, state.covariance, phi)
        return phi @ state.mean, jnp.maximum(latent, 0.0)

    def _drift(self, state: EnsembleState, elapsed: Array) -> EnsembleState:
        q = jnp.tile(jnp.asarray(self.drifts), self.lengthscales.shape[0]) * elapsed  # E
        added = q[:, None, None, None] * jnp.eye(self.features + 1)
        return replace(state, covariance=state.covariance + added)

    def _absorb(self, state: EnsembleState, x: Array, y: Array) -> EnsembleState:
        phi = self._features(state, x[None])[:, 0]  # E×F
        row = jnp.einsum("epfg,eg->epf", state.covariance, phi)
        variance = jnp.einsum("epf,ef->ep", row, phi) + state.hyperparameters.noise  # E×P
        error = y - jnp.einsum("ef,efp->ep", phi, state.mean)
        gain = row / variance[..., None]  # E×P×F
        score = state.log_weights - 0.5 * (jnp.log(variance) + error**2 / variance)
        weights = (1.0 - self.switch) * jax.nn.softmax(score, 0) + self.switch / score.shape[0]
        return replace(
            state,
            mean=state.mean + (gain * error[..., None]).mT,
            covariance=state.covariance - gain[..., :, None] * row[..., None, :],
            log_weights=jnp.log(jnp.maximum(weights, jnp.finfo(weights.dtype).tiny)),
        )
