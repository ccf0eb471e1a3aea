"""The kernel recursive least-squares tracker.

S. Van Vaerenbergh, M. Lázaro-Gredilla, I. Santamaría, "Kernel Recursive Least-Squares Tracker for Time-Varying
Regression", IEEE Transactions on Neural Networks and Learning Systems 23(8), 2012.

A dictionary of M inputs U carries the posterior of the function there, N(μ, Σ), and Q = K⁻¹ with K = k(U, U).
Forgetting goes back to the prior: where nothing is observed any more, the posterior becomes N(0, K) again,

    Σ ← λ Σ + (1 − λ) K        μ ← √λ μ

A sample (x, y), with k = k(U, x), q = Q k, h = Σ q, is predicted, learned from and taken into the dictionary:

    γ² = k_xx − kᵀq            what the dictionary cannot say about x
    s_f² = γ² + qᵀh            s_y² = σ² + s_f²            e = y − qᵀμ
    μ ← [μ; qᵀμ] + e/s_y² p    Σ ← [Σ h; hᵀ s_f²] − p pᵀ/s_y²      p = [h; s_f²]
    Q ← [Q 0; 0 0] + [q; −1][q; −1]ᵀ/γ²

When the dictionary is full, the member goes whose removal changes the mean least, |(Qμ)_m| / Q_mm; it may be the
newcomer. The scale s₀² of all variances is the λ-weighted mean of e²/s_y², which begins at 1. With no one removed this
is the exact GP of the covariance k(x, x') λ^(|t − t'|/2). Cost: O(M²) per sample and per forecast.

**Hyperparameters** are fixed beforehand: the method has no way of following them online, and drift that changes them
costs it. The authors estimate them as those of a GP with that covariance (Van Vaerenbergh, Santamaría and
Lázaro-Gredilla, MLSP 2012). Here `warmup_iterations=0` keeps the given ones. Otherwise they maximise the evidence of
the exact GP on the warm-up batch, O(N³) once, with k alone as its covariance. With λ in it, the warm-up of the toy
stream leads to such a small variance that the mean cannot follow when the signal grows.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from driftgp.rivals import jax_bound as bound
from driftgp.rivals import jax_inducing as inducing
from driftgp.rivals import jax_window as window
from driftgp.rivals import settings
from driftgp.rivals.base import Normal
from driftgp.rivals.filtered import FilteredModel
from driftgp.rivals.jax_inducing import Inducing
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Units
from driftgp.rivals.loops import only_if


class KRLSTState(eqx.Module):
    """What KRLS-T remembers. A slot that is not in use has the rows of the identity in K, Q and Σ."""

    points: Inducing  # the dictionary
    hyperparameters: Hyperparameters
    K: Array  # M×M
    Q: Array  # M×M, K⁻¹
    mu: Array  # M×P
    Sigma: Array  # P×M×M
    errors: Array  # P, Σ λ^(t − t_i) e_i²/s_y,i²
    weight: Array  # Σ λ^(t − t_i)
    samples: Array  # learned from
    skipped: Array  # gradient steps of the warm-up left out because something in them was not finite
    repaired: Array  # factorisations that needed more jitter


class _Arrival(NamedTuple):
    """A sample as the dictionary sees it."""

    k: Array  # M
    kxx: Array
    q: Array  # M
    gamma2: Array
    h: Array  # M×P
    s_f2: Array  # P
    s_y2: Array  # P
    e: Array  # P


class KRLST(FilteredModel):
    """Kernel recursive least squares on a dictionary of M inputs, with back-to-prior forgetting.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = KRLST(forgetting=0.99)
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> bool(abs(model.predict(state, X[41:42]).mean[0] - np.sin(6 * X[41, 0])) < 0.05)
    True

    Args:
        kernel: covariance with its starting parameters; squared exponential by default.
        noise: starting variance of the noise, one number or one per output.
        dictionary: most inputs M in the dictionary.
        forgetting: λ, in one unit of time.
        estimate_scale: follow the scale s₀² of the variances; without it the variances are those of the GP.
        novelty: share γ²/k_xx below which an input does not enter the dictionary, whose posterior it still updates;
            the jitter is always a lower limit.
        jitter: added to K, relative to its diagonal.
    """

    dictionary: int = settings.whole(10, 1)
    forgetting: float = settings.share(0.99, open_low=True)
    estimate_scale: bool = settings.flag(True)
    novelty: float = settings.share(0.0)
    jitter: float = settings.share(settings.JITTER, open_low=True)

    # ---- what a rival provides ---------------------------------------------------------------------------------------

    def before(self, h: Hyperparameters, skipped: Array, X: Array, y: Array) -> KRLSTState:
        """An empty dictionary."""
        M, P = self.dictionary, y.shape[1]
        identity = jnp.eye(M)
        return KRLSTState(
            points=Inducing(jnp.zeros((M, X.shape[1])), jnp.zeros(M, bool)),
            hyperparameters=h,
            K=identity,
            Q=identity,
            mu=jnp.zeros((M, P)),
            Sigma=jnp.broadcast_to(identity, (P, M, M)),
            errors=jnp.zeros(P),
            weight=jnp.zeros(()),
            samples=jnp.zeros((), jnp.int32),
            skipped=skipped,
            repaired=jnp.zeros((), jnp.int32),
        )

    def look(self, state: KRLSTState, X: Array) -> Normal:
        """Mean kᵀQμ and variance s₀² (σ² + k** − kᵀQk + kᵀQΣQk), a unit of time ahead: forgetting comes first."""
        h = state.hyperparameters
        state = self._forget(state, self.forgetting)
        K = inducing.cross(h.kernel, state.points, X)  # M×N
        q = state.Q @ K  # M×N
        unexplained = h.kernel(X) - jnp.sum(K * q, 0)  # N
        latent = jnp.maximum(unexplained[:, None] + jnp.sum(q * (state.Sigma @ q), -2).T, 0.0)  # N×P
        scale = (1.0 + state.errors) / (1.0 + state.weight) if self.estimate_scale else jnp.ones_like(state.errors)
        mean = q.T @ state.mu  # N×P
        return Normal(mean, scale * (h.noise + latent), jnp.broadcast_to(scale * h.noise, mean.shape))

    def step(self, state: KRLSTState, x: Array, y: Array, elapsed: Array) -> KRLSTState:
        """Forget, then learn from the sample, if any."""
        observed = window.observed(x, y)
        x, y = jnp.where(observed, x, 0.0), jnp.where(observed, y, 0.0)
        state = self._forget(state, self.forgetting**elapsed)
        state = only_if(observed, lambda state: self._absorb(state, x, y), state)
        # A recursive inverse drifts; begun anew once in M samples it costs O(M²) per sample, like the rest.
        return only_if(observed & (state.samples % self.dictionary == 0), self._invert_again, state)

    def in_units(self, state: KRLSTState, units: Units) -> KRLSTState:
        """Inputs and mean in other units; the covariance is a share of the prior's and stays so."""
        used = state.points.used[:, None]
        L_old, _ = bound.cholesky(state.K)
        points = replace(state.points, U=jnp.where(used, units.inputs(state.points.U), 0.0))
        state = self.finish(replace(state, points=points, mu=jnp.where(used, units.targets(state.mu), 0.0)))
        L_new, _ = bound.cholesky(state.K)
        change = L_new @ bound.solve_lower(L_old, jnp.eye(self.dictionary))
        return self._invert_again(replace(state, Sigma=change @ state.Sigma @ change.T))

    def derived(self) -> tuple[str, ...]:
        """K follows from the dictionary."""
        return ("K",)

    def finish(self, state: KRLSTState) -> KRLSTState:
        """K of the dictionary."""
        return replace(state, K=inducing.gram(state.hyperparameters.kernel, state.points, self.jitter, 0.0))

    # ---- the steps of the algorithm ----------------------------------------------------------------------------------

    def _forget(self, state: KRLSTState, decay: Any) -> KRLSTState:
        """Go back to the prior by as much as the time that has passed."""
        return replace(
            state,
            mu=jnp.sqrt(decay) * state.mu,
            Sigma=decay * state.Sigma + (1.0 - decay) * state.K,
            errors=decay * state.errors,
            weight=decay * state.weight,
        )

    def _absorb(self, state: KRLSTState, x: Array, y: Array) -> KRLSTState:
        """Learn from a sample and give it the slot of the least useful one, which may be itself."""
        s = self._see(state, x, y)
        gain = s.e / s.s_y2  # P
        mu_x = y - s.e + gain * s.s_f2  # P, the newcomer's own mean
        state = replace(
            state,
            mu=state.mu + gain * s.h,
            Sigma=state.Sigma - (s.h.T / s.s_y2[:, None])[:, :, None] * s.h.T[:, None, :],
            errors=state.errors + s.e**2 / s.s_y2,
            weight=state.weight + 1.0,
            samples=state.samples + 1,
        )
        slot = self._least_useful(state, s, mu_x)
        return only_if(slot < self.dictionary, lambda state: self._take(state, x, s, mu_x, slot), state)

    def _see(self, state: KRLSTState, x: Array, y: Array) -> _Arrival:
        h = state.hyperparameters
        k = inducing.cross(h.kernel, state.points, x[None])[:, 0]
        kxx = h.kernel(x[None])[0] * (1.0 + self.jitter)
        q = state.Q @ k
        gamma2 = jnp.maximum(kxx - k @ q, 0.0)
        Sigma_q = (state.Sigma @ q).T  # M×P
        s_f2 = gamma2 + q @ Sigma_q
        return _Arrival(k, kxx, q, gamma2, Sigma_q, s_f2, h.noise + s_f2, y - q @ state.mu)

    def _least_useful(self, state: KRLSTState, s: _Arrival, mu_x: Array) -> Array:
        """Slot whose member goes: a free one, else the one that changes the mean least; M stands for the newcomer.

        With the newcomer, Qμ is [Qμ − q d; d] with d = (μ_x − qᵀμ)/γ², and the diagonal of Q is [Q_mm + q_m²/γ²; 1/γ²].
        """
        gamma2 = jnp.maximum(s.gamma2, jnp.finfo(s.gamma2.dtype).tiny)
        surprise = mu_x - s.q @ state.mu  # P, γ² d
        members = gamma2 * (state.Q @ state.mu) - s.q[:, None] * surprise  # M×P, γ² Qμ
        cost = jnp.sum(members**2, -1) / (gamma2 * jnp.diagonal(state.Q) + s.q**2) ** 2
        cost = jnp.append(jnp.where(state.points.used, cost, -1.0), surprise @ surprise)
        known = s.gamma2 <= jnp.maximum(self.novelty, 2.0 * self.jitter) * s.kxx
        return jnp.where(known, self.dictionary, jnp.argmin(cost))

    def _take(self, state: KRLSTState, x: Array, s: _Arrival, mu_x: Array, slot: Array) -> KRLSTState:
        """Put the newcomer into a slot, in place of whoever is there."""
        row = (1.0 - s.s_f2 / s.s_y2) * s.h  # M×P, the newcomer's row of Σ
        row = row.at[slot].set(s.s_f2 - s.s_f2**2 / s.s_y2).T  # P×M
        here = jnp.arange(self.dictionary) == slot
        without = state.Q - jnp.outer(state.Q[slot], state.Q[slot]) / state.Q[slot, slot]
        without = jnp.where(here[:, None] | here, 0.0, without)  # the inverse of K without the slot
        q = without @ s.k
        gamma2 = s.kxx - s.k @ q
        p = jnp.where(here, -1.0, q)
        k = jnp.where(here, s.kxx, s.k)
        return replace(
            state,
            points=Inducing(state.points.U.at[slot].set(x), state.points.used | here),
            K=state.K.at[slot].set(k).at[:, slot].set(k),
            Q=without + jnp.outer(p, p) / gamma2,
            mu=state.mu.at[slot].set(mu_x),
            Sigma=state.Sigma.at[:, slot, :].set(row).at[:, :, slot].set(row),
        )

    def _invert_again(self, state: KRLSTState) -> KRLSTState:
        inverse_L, repairs = bound.inverse_root(state.K)
        Q = inverse_L.T @ inverse_L
        return replace(state, Q=jnp.where(jnp.all(jnp.isfinite(Q)), Q, state.Q), repaired=state.repaired + repairs)

    def learned(self, h: Hyperparameters, X: Array, y: Array) -> tuple[Hyperparameters, Array]:
        """Hyperparameters of the exact GP, whose noise stays above the jitter."""
        h, skipped = super().learned(h, X, y)
        seen = window.observed(X, y)
        variance = jnp.where(seen, h.kernel(jnp.where(seen[:, None], X, 0.0)), 0.0)
        least = self.jitter * jnp.sum(variance) / jnp.maximum(jnp.sum(seen), 1)
        return replace(h, noise=jnp.maximum(h.noise, least)), skipped
