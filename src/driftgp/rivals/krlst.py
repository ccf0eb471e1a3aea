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
is the exact GP of the covariance k(x, x') λ^(|t − t'|/2). Cost: O(M²) a sample and a forecast.

**Hyperparameters** are fixed beforehand: the method has no way of following them online, and drift that changes them
costs it. The authors estimate them as those of a GP with that covariance (Van Vaerenbergh, Santamaría and
Lázaro-Gredilla, MLSP 2012). Here given ones stay as they are with `warmup_iterations=0`; else those are taken that
maximise the evidence of the exact GP on the warm-up batch, O(N³) once, with k alone as its covariance: with λ in it,
the warm-up of the toy stream leads to so small a variance that the mean cannot follow when the signal grows.
"""

from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from driftgp import bound, checks, inducing, learning, settings
from driftgp.inducing import Inducing
from driftgp.kernels import SE, Covariance
from driftgp.learning import Hyperparameters
from driftgp.loops import only_if
from driftgp.model import Layout, Model, State, Units
from driftgp.prediction import Gaussian
from driftgp.rivals.exact_window import ExactWindow
from driftgp.rivals.windowed import Fit


class KRLSTState(State):
    """What KRLS-T remembers."""

    points: Inducing  # the dictionary; a slot that is not in use has the rows of the identity in K, Q and Σ
    hyperparameters: Hyperparameters
    Q: Array  # M×M, K⁻¹
    mu: Array  # M×P
    Sigma: Array  # P×M×M
    errors: Array  # P, Σ λ^(t − t_i) e_i²/s_y,i²
    weight: Array  # Σ λ^(t − t_i)
    samples: Array  # how many were learned from
    skipped: Array  # gradient steps of the warm-up left out because something in them was not finite
    repaired: Array  # factorisations that needed more jitter
    layout: Layout = eqx.field(static=True)


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


class KRLST(Model[KRLSTState]):
    """Kernel recursive least squares on a dictionary of M inputs, with back-to-prior forgetting.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = KRLST(forgetting=0.99)
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> bool(abs(model.predict(state, X[41:42]).mean[0] - np.sin(6 * X[41, 0])) < 0.05)
    True
    """

    kernel: Covariance
    noise: Array
    forgetting: Array
    novelty: Array
    jitter: Array | None
    warmup_rate: Array
    dictionary: int = eqx.field(static=True)
    estimate_scale: bool = eqx.field(static=True)
    warmup_iterations: int = eqx.field(static=True)
    warmup_samples: int = eqx.field(static=True)

    def __init__(
        self,
        kernel: Covariance | None = None,
        *,
        noise: ArrayLike = 1.0,
        dictionary: int = 10,
        forgetting: ArrayLike = 0.99,
        estimate_scale: bool = True,
        novelty: ArrayLike = 0.0,
        jitter: ArrayLike | None = None,
        warmup_iterations: int = 200,
        warmup_rate: ArrayLike = 0.05,
        warmup_samples: int = 500,
    ) -> None:
        """Take the settings; those that are arrays may differ between the models of a batch.

        Args:
            kernel: covariance with its starting parameters; squared exponential by default.
            noise: starting variance of the noise.
            dictionary: most inputs M in the dictionary.
            forgetting: λ, in one unit of time.
            estimate_scale: follow the scale s₀² of the variances; without it the variances are those of the GP.
            novelty: share γ²/k_xx below which an input does not enter the dictionary, whose posterior it still
                updates; the jitter is always a lower limit.
            jitter: added to K, relative to its diagonal; by default ten times the square root of the dtype's eps.
            warmup_iterations: Adam iterations on the evidence of the warm-up batch.
            warmup_rate: their rate.
            warmup_samples: most samples, the last ones of the batch, whose evidence is maximised.
        """
        self.kernel = learning.float_leaves(SE() if kernel is None else kernel)
        self.noise = checks.between("noise", noise, 0.0, np.inf)
        self.dictionary = checks.whole("dictionary", dictionary, 1)
        self.forgetting = checks.between("forgetting", forgetting, 0.0, 1.0)
        self.estimate_scale = bool(estimate_scale)
        self.novelty = checks.between("novelty", novelty, 0.0, 1.0, open_low=False)
        self.jitter = None if jitter is None else checks.between("jitter", jitter, 0.0, 1.0)
        self.warmup_iterations = checks.whole("warmup_iterations", warmup_iterations, 0)
        self.warmup_rate = checks.between("warmup_rate", warmup_rate, 0.0, np.inf)
        self.warmup_samples = checks.whole("warmup_samples", warmup_samples, 1)

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, layout: Layout, X: Array, y: Array) -> KRLSTState:
        """Learn the hyperparameters from the batch, then go through it sample by sample."""
        h = learning.initial(self.kernel, self.noise, layout.columns, layout.dtype)
        skipped = jnp.zeros((), jnp.int32)
        if X.shape[0] > 0 and self.warmup_iterations > 0:
            fit = self._maximise_evidence(layout, X[-self.warmup_samples :], y[-self.warmup_samples :])
            h, skipped = fit.hyperparameters, fit.skipped
        M, P = self.dictionary, layout.columns
        identity = jnp.eye(M, dtype=X.dtype)
        state = KRLSTState(
            points=Inducing(jnp.zeros((M, layout.inputs), X.dtype), jnp.zeros(M, bool)),
            hyperparameters=h,
            Q=identity,
            mu=jnp.zeros((M, P), X.dtype),
            Sigma=jnp.broadcast_to(identity, (P, M, M)),
            errors=jnp.zeros(P, X.dtype),
            weight=jnp.zeros((), X.dtype),
            samples=jnp.zeros((), jnp.int32),
            skipped=skipped,
            repaired=jnp.zeros((), jnp.int32),
            layout=layout,
        )
        if X.shape[0] == 0:
            return state
        one = jnp.ones((), X.dtype)
        return lax.scan(lambda state, row: (self.learn(state, *row, one), None), state, (X, y))[0]

    def forecast(self, state: KRLSTState, X: Array) -> Gaussian:
        """Mean kᵀQμ and variance s₀² (σ² + k** − kᵀQk + kᵀQΣQk), a unit of time ahead: forgetting comes first."""
        h = state.hyperparameters
        state = self._forget(state, self.forgetting)
        K = inducing.cross(h.kernel, state.points, X)  # M×N
        q = state.Q @ K  # M×N
        unexplained = h.kernel(X) - jnp.sum(K * q, 0)  # N
        explained = jnp.einsum("mn,pmk,kn->np", q, state.Sigma, q)
        latent = jnp.maximum(unexplained[:, None] + explained, 0.0)
        scale = self._scale(state)
        mean = q.T @ state.mu  # N×P
        return Gaussian(mean, scale * (h.noise + latent), jnp.broadcast_to(scale * h.noise, mean.shape))

    def learn(self, state: KRLSTState, x: Array, y: Array, elapsed: Array) -> KRLSTState:
        """Forget, then learn from the sample if there is one."""
        observed = jnp.all(jnp.isfinite(y)) & jnp.all(jnp.isfinite(x))
        x, y = jnp.where(observed, x, 0.0), jnp.where(observed, y, 0.0)
        state = self._forget(state, self.forgetting**elapsed)
        state = only_if(observed, lambda state: self._absorb(state, x, y), state)
        # A recursive inverse drifts; begun anew once in M samples it costs O(M²) a sample, like the rest.
        return only_if(observed & (state.samples % self.dictionary == 0), self._invert_again, state)

    def rescale(self, state: KRLSTState, units: Units) -> KRLSTState:
        """Inputs and mean in other units; the covariance is a share of the prior's and stays so."""
        moved = jnp.where(state.points.used[:, None], units.inputs(state.points.U), 0.0)
        L_old, _ = bound.cholesky(self._gram(state))
        state = replace(state, points=replace(state.points, U=moved))
        L_new, _ = bound.cholesky(self._gram(state))
        change = L_new @ bound.solve_lower(L_old, jnp.eye(self.dictionary, dtype=L_old.dtype))
        mu = jnp.where(state.points.used[:, None], units.targets(state.mu), 0.0)
        return self._invert_again(replace(state, mu=mu, Sigma=change @ state.Sigma @ change.T))

    # ---- the steps of the algorithm ----------------------------------------------------------------------------------

    def _forget(self, state: KRLSTState, decay: Array) -> KRLSTState:
        """Go back to the prior by as much as the time that has passed."""
        K = self._gram(state)
        return replace(
            state,
            mu=jnp.sqrt(decay) * state.mu,
            Sigma=decay * state.Sigma + (1.0 - decay) * K,
            errors=decay * state.errors,
            weight=decay * state.weight,
        )

    def _absorb(self, state: KRLSTState, x: Array, y: Array) -> KRLSTState:
        """Learn from a sample and give it the slot of the least useful one, which may be itself."""
        s = self._see(state, x, y)
        gain = s.e / s.s_y2  # P
        mu = state.mu + gain * s.h
        Sigma = state.Sigma - jnp.einsum("mp,kp,p->pmk", s.h, s.h, 1.0 / s.s_y2)
        mu_x = y - s.e + gain * s.s_f2  # P, the newcomer's own mean
        state = replace(
            state,
            mu=mu,
            Sigma=Sigma,
            errors=state.errors + s.e**2 / s.s_y2,
            weight=state.weight + 1.0,
            samples=state.samples + 1,
        )
        slot = self._least_useful(state, s, mu_x)
        return only_if(slot < self.dictionary, lambda state: self._take(state, x, s, mu_x, slot), state)

    def _see(self, state: KRLSTState, x: Array, y: Array) -> _Arrival:
        h = state.hyperparameters
        k = inducing.cross(h.kernel, state.points, x[None])[:, 0]
        kxx = h.kernel(x[None])[0] * (1.0 + self._jitter(x.dtype))
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
        members = state.Q @ state.mu * gamma2 - s.q[:, None] * surprise  # M×P, γ² Qμ
        members = jnp.sum(members**2, -1) / (jnp.diagonal(state.Q) * gamma2 + s.q**2) ** 2
        cost = jnp.append(jnp.where(state.points.used, members, -1.0), jnp.sum(surprise**2))
        known = s.gamma2 <= jnp.maximum(self.novelty, 2.0 * self._jitter(gamma2.dtype)) * s.kxx
        return jnp.where(known, self.dictionary, jnp.argmin(cost))

    def _take(self, state: KRLSTState, x: Array, s: _Arrival, mu_x: Array, slot: Array) -> KRLSTState:
        """Put the newcomer into a slot, in place of whoever is there."""
        row = (1.0 - s.s_f2 / s.s_y2) * s.h  # M×P, the newcomer's row of Σ
        row = row.at[slot].set(s.s_f2 - s.s_f2**2 / s.s_y2).T  # P×M
        others = jnp.arange(self.dictionary) != slot
        without = state.Q - jnp.outer(state.Q[slot], state.Q[slot]) / state.Q[slot, slot]
        without = jnp.where(others[:, None] & others, without, 0.0)  # M×M, the inverse of K without the slot
        q = without @ s.k
        gamma2 = s.kxx - s.k @ jnp.where(others, q, 0.0)
        p = jnp.where(others, q, -1.0)
        return replace(
            state,
            points=Inducing(state.points.U.at[slot].set(x), state.points.used.at[slot].set(True)),
            Q=without + jnp.outer(p, p) / gamma2,
            mu=state.mu.at[slot].set(mu_x),
            Sigma=state.Sigma.at[:, slot, :].set(row).at[:, :, slot].set(row),
        )

    def _invert_again(self, state: KRLSTState) -> KRLSTState:
        inverse_L, repairs = bound.inverse_root(self._gram(state))
        return replace(state, Q=inverse_L.T @ inverse_L, repaired=state.repaired + repairs)

    # ---- settings put to use -----------------------------------------------------------------------------------------

    def _maximise_evidence(self, layout: Layout, X: Array, y: Array) -> Fit:
        """Hyperparameters of the exact GP on the last samples of the batch."""
        exact = ExactWindow(
            self.kernel,
            noise=self.noise,
            window=X.shape[0],
            forgetting=1.0,
            warmup_iterations=self.warmup_iterations,
            warmup_rate=self.warmup_rate,
            jitter=self.jitter,
        )
        return exact.start(layout, X, y).fit

    def _scale(self, state: KRLSTState) -> Array:
        """s₀², which without samples is 1."""
        return (1.0 + state.errors) / (1.0 + state.weight) if self.estimate_scale else jnp.ones_like(state.errors)

    def _gram(self, state: KRLSTState) -> Array:
        jitter = self._jitter(state.Q.dtype)
        return inducing.gram(state.hyperparameters.kernel, state.points, jitter, jnp.zeros_like(jitter))

    def _jitter(self, dtype: np.dtype) -> Array:
        return jnp.asarray(settings.default_jitter(dtype) if self.jitter is None else self.jitter, dtype)
