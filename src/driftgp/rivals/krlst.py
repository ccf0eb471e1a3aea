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
Lázaro-Gredilla, MLSP 2012). Here given ones stay as they are with `warmup_iterations=0`; else those are taken that
maximise the evidence of the exact GP on the warm-up batch, O(N³) once, with k alone as its covariance: with λ in it,
the warm-up of the toy stream leads to so small a variance that the mean cannot follow when the signal grows.
"""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from driftgp import bound, checks, forecasts, inducing
from driftgp.agp_settings import JITTER, checked_kernel, first_noise
from driftgp.bound import NoFactor
from driftgp.kernels import SE, Kernel
from driftgp.model import Model, Units
from driftgp.predictions import Prediction
from driftgp.records import View, floats, number, whole
from driftgp.rivals import exact_evidence
from driftgp.window import observed

_TINY = float(np.finfo(float).tiny)


class KRLSTState(View):
    """What KRLS-T remembers. Members of the dictionary come first; rows of others are zeros."""

    U: np.ndarray = floats("M", "D")
    points: int = whole()  # members of the dictionary
    theta: np.ndarray = floats("H")  # kernel parameters
    noise: np.ndarray = floats("P")
    K: np.ndarray = floats("M", "M")
    Q: np.ndarray = floats("M", "M")  # K⁻¹
    mu: np.ndarray = floats("M", "P")
    Sigma: np.ndarray = floats("P", "M", "M")
    errors: np.ndarray = floats("P")  # Σ λ^(t − t_i) e_i²/s_y,i²
    weight: float = number()  # Σ λ^(t − t_i)
    samples: int = whole()  # learned from
    skipped: int = whole()  # gradient steps of the warm-up left out because something in them was not finite
    repaired: int = whole()  # factorisations that needed more jitter


class _Arrival(NamedTuple):
    """A sample as the dictionary sees it."""

    k: np.ndarray  # m
    kxx: float
    q: np.ndarray  # m
    gamma2: float
    h: np.ndarray  # m×P
    s_f2: np.ndarray  # P
    s_y2: np.ndarray  # P
    e: np.ndarray  # P


@dataclass(frozen=True)
class KRLST(Model):
    """Kernel recursive least squares on a dictionary of M inputs, with back-to-prior forgetting.

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
        novelty: share γ²/k_xx below which an input does not enter the dictionary, whose posterior it still updates; the
            jitter is always a lower limit.
        jitter: added to K, relative to its diagonal.
        warmup_iterations: Adam iterations on the evidence of the warm-up batch.
        warmup_rate: their rate.
        warmup_samples: most samples, the last ones of the batch, whose evidence is maximised.
    """

    kernel: Kernel = field(default_factory=SE)
    _: KW_ONLY
    noise: Any = 1.0  # a tuple from then on
    dictionary: int = 10
    forgetting: float = 0.99
    estimate_scale: bool = True
    novelty: float = 0.0
    jitter: float = JITTER
    warmup_iterations: int = 200
    warmup_rate: float = 0.05
    warmup_samples: int = 500

    def __post_init__(self) -> None:
        """Check the settings."""
        settings = {
            "kernel": checked_kernel(self.kernel),
            "noise": checks.all_between("noise", self.noise, 0.0, np.inf),
            "dictionary": checks.whole("dictionary", self.dictionary, 1),
            "forgetting": checks.between("forgetting", self.forgetting, 0.0, 1.0),
            "estimate_scale": bool(self.estimate_scale),
            "novelty": checks.between("novelty", self.novelty, 0.0, 1.0, open_low=False),
            "jitter": checks.between("jitter", self.jitter, 0.0, 1.0),
            "warmup_iterations": checks.whole("warmup_iterations", self.warmup_iterations, 0),
            "warmup_rate": checks.between("warmup_rate", self.warmup_rate, 0.0, np.inf),
            "warmup_samples": checks.whole("warmup_samples", self.warmup_samples, 1),
        }
        for name, value in settings.items():
            object.__setattr__(self, name, value)

    # ---- records -----------------------------------------------------------------------------------------------------

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        return KRLSTState.dtype(D=inputs, P=outputs, M=self.dictionary, H=self.kernel.size)

    def view(self, record: np.ndarray) -> KRLSTState:
        """The fields of a state."""
        return KRLSTState(record)

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of a forecast."""
        return forecasts.layout(outputs)

    def law(self, made: np.ndarray) -> Prediction:
        """A normal distribution."""
        return forecasts.normal_law(made)

    def accept(self, inputs: int, outputs: int, rows: int) -> None:  # noqa: ARG002
        """Refuse what kernel or noise do not fit."""
        self.kernel.fit(inputs)
        first_noise(self.noise, outputs)

    def check(self, state: KRLSTState) -> None:
        """Refuse counts out of range, hyperparameters that are not positive and numbers that are not finite."""
        if not 0 <= state.points <= self.dictionary:
            raise ValueError(f"points must lie in [0, {self.dictionary}]; got {state.points}")
        for name, values in (("theta", state.theta), ("noise", state.noise)):
            if not np.all(np.isfinite(values) & (values > 0.0)):
                raise ValueError(f"{name} must be finite and positive; got {values}")
        learned = (state.U, state.Q, state.mu, state.Sigma, state.errors, state.weight)
        if not all(np.isfinite(values).all() for values in learned) or state.samples < 0:
            raise ValueError("U, Q, mu, Sigma, errors and weight must be finite, and samples not negative")

    def derived(self) -> tuple[str, ...]:
        """K follows from the dictionary."""
        return ("K",)

    def complete(self, state: KRLSTState) -> None:
        """K of the dictionary."""
        m = state.points
        state.K[:m, :m] = inducing.gram(self.kernel.at(state.theta), state.U[:m], self.jitter, 0.0)

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, state: KRLSTState, X: np.ndarray, y: np.ndarray) -> None:
        """Learn the hyperparameters from the batch, then go through it sample by sample."""
        state.theta[...], state.noise[...] = self.kernel.theta, first_noise(self.noise, y.shape[1])
        self._maximise_evidence(state, X[-self.warmup_samples :], y[-self.warmup_samples :])
        for x, target in zip(X, y, strict=True):
            self.learn(state, x, target, 1.0)

    def forecast(self, state: KRLSTState, X: np.ndarray) -> np.ndarray:
        """Mean kᵀQμ and variance s₀² (σ² + k** − kᵀQk + kᵀQΣQk), a unit of time ahead: forgetting comes first."""
        m, decay, kernel = state.points, self.forgetting, self.kernel.at(state.theta)
        K = kernel.gram(state.U[:m], X)  # m×N
        q = state.Q[:m, :m] @ K  # m×N
        Sigma = decay * state.Sigma[:, :m, :m] + (1.0 - decay) * state.K[:m, :m]
        explained = np.sum(q * (Sigma @ q), -2).T  # N×P
        unexplained = kernel.diagonal(X) - np.sum(K * q, 0)  # N
        scale = self._scale(decay * state.errors, decay * state.weight)  # P
        mean = np.sqrt(decay) * (q.T @ state.mu[:m])  # N×P
        latent = np.maximum(unexplained[:, None] + explained, 0.0)
        return forecasts.normal(mean, scale * (state.noise + latent), scale * state.noise)

    def learn(
        self,
        state: KRLSTState,
        x: np.ndarray,
        y: np.ndarray,
        elapsed: float,
        forecast: np.ndarray | None = None,  # noqa: ARG002 (it has not forgotten for this time, but for one unit)
    ) -> None:
        """Forget, then learn from the sample if there is one."""
        self._forget(state, self.forgetting**elapsed)
        if not observed(x, y):
            return
        self._absorb(state, x, y)
        # A recursive inverse drifts; begun anew once in M samples it costs O(M²) per sample, like the rest.
        if state.samples % self.dictionary == 0:
            self._invert_again(state)

    def rescale(self, state: KRLSTState, units: Units) -> None:
        """Inputs and mean in other units; the covariance is a share of the prior's and stays so."""
        m = state.points
        L_old, _ = bound.repaired_factor(state.K[:m, :m])
        state.U[:m], state.mu[:m] = units.inputs(state.U[:m]), units.targets(state.mu[:m])
        self.complete(state)
        L_new, _ = bound.repaired_factor(state.K[:m, :m])
        change = L_new @ bound.inverse_lower(L_old)
        state.Sigma[:, :m, :m] = change @ state.Sigma[:, :m, :m] @ change.T
        self._invert_again(state)

    # ---- the steps of the algorithm ----------------------------------------------------------------------------------

    def _forget(self, state: KRLSTState, decay: float) -> None:
        """Go back to the prior by as much as the time that has passed."""
        state.mu *= np.sqrt(decay)
        state.Sigma *= decay
        state.Sigma += (1.0 - decay) * state.K
        state.errors *= decay
        state.weight *= decay

    def _absorb(self, state: KRLSTState, x: np.ndarray, y: np.ndarray) -> None:
        """Learn from a sample and give it the slot of the least useful one, which may be itself."""
        m, s = state.points, self._see(state, x, y)
        gain = s.e / s.s_y2  # P
        state.mu[:m] += gain * s.h
        state.Sigma[:, :m, :m] -= (s.h.T / s.s_y2[:, None])[:, :, None] * s.h.T[:, None, :]
        mu_x = y - s.e + gain * s.s_f2  # P, the newcomer's own mean
        state.errors += s.e**2 / s.s_y2
        state.weight += 1.0
        state.samples += 1
        if s.gamma2 > max(self.novelty, 2.0 * self.jitter) * s.kxx:
            slot = m if m < self.dictionary else self._least_useful(state, s, mu_x)
            if slot < self.dictionary:
                self._take(state, x, s, mu_x, slot)

    def _see(self, state: KRLSTState, x: np.ndarray, y: np.ndarray) -> _Arrival:
        m, kernel = state.points, self.kernel.at(state.theta)
        k = kernel.gram(state.U[:m], x[None])[:, 0]
        kxx = float(kernel.diagonal(x[None])[0]) * (1.0 + self.jitter)
        q = state.Q[:m, :m] @ k
        gamma2 = max(kxx - float(k @ q), 0.0)
        h = (state.Sigma[:, :m, :m] @ q).T  # m×P
        s_f2 = gamma2 + q @ h
        return _Arrival(k, kxx, q, gamma2, h, s_f2, state.noise + s_f2, y - q @ state.mu[:m])

    def _least_useful(self, state: KRLSTState, s: _Arrival, mu_x: np.ndarray) -> int:
        """Slot of a full dictionary whose member changes the mean least when it goes; M stands for the newcomer.

        With the newcomer, Qμ is [Qμ − q d; d] with d = (μ_x − qᵀμ)/γ², and the diagonal of Q is [Q_mm + q_m²/γ²; 1/γ²].
        """
        gamma2 = max(s.gamma2, _TINY)
        surprise = mu_x - s.q @ state.mu  # P, γ² d
        members = gamma2 * (state.Q @ state.mu) - s.q[:, None] * surprise  # M×P, γ² Qμ
        cost = np.sum(members**2, 1) / (gamma2 * state.Q.diagonal() + s.q**2) ** 2
        return int(np.argmin(np.append(cost, surprise @ surprise)))

    def _take(self, state: KRLSTState, x: np.ndarray, s: _Arrival, mu_x: np.ndarray, slot: int) -> None:
        """Put the newcomer into a slot: behind the members, or in place of one of them."""
        m = max(state.points, slot + 1)
        k, row = np.zeros(m), np.zeros((m, len(mu_x)))
        k[: len(s.k)], row[: len(s.k)] = s.k, (1.0 - s.s_f2 / s.s_y2) * s.h  # of Σ
        row[slot] = s.s_f2 - s.s_f2**2 / s.s_y2
        without = state.Q[:m, :m].copy()  # to be the inverse of K without the slot
        if slot < state.points:
            without -= np.outer(without[slot], without[slot]) / without[slot, slot]
            without[slot] = without[:, slot] = 0.0
        q = without @ k  # 0 in the slot
        gamma2 = s.kxx - k @ q
        q[slot] = -1.0
        state.Q[:m, :m] = without + np.outer(q, q) / gamma2
        state.U[slot], state.mu[slot], state.points = x, mu_x, m
        state.Sigma[:, slot, :m] = state.Sigma[:, :m, slot] = row.T
        self.complete(state)

    def _invert_again(self, state: KRLSTState) -> None:
        m = state.points
        try:
            inverse_L, repairs = bound.inverse_root(state.K[:m, :m])
        except NoFactor:
            return
        state.Q[:m, :m] = inverse_L.T @ inverse_L
        state.repaired += repairs

    # ---- settings put to use -----------------------------------------------------------------------------------------

    def _maximise_evidence(self, state: KRLSTState, X: np.ndarray, y: np.ndarray) -> None:
        """Hyperparameters of the exact GP on the last samples of the batch; its noise stays above the jitter."""
        seen = observed(X, y)
        X, y = X[seen], y[seen]
        if len(X) == 0 or self.warmup_iterations == 0:
            return
        fit = exact_evidence.maximised(self.kernel, state.noise.copy(), X, y, self.warmup_iterations, self.warmup_rate)
        least = self.jitter * float(np.mean(self.kernel.at(fit.theta).diagonal(X)))
        state.theta[...], state.noise[...], state.skipped = fit.theta, np.maximum(fit.noise, least), fit.skipped

    def _scale(self, errors: np.ndarray, weight: float) -> np.ndarray:
        """s₀², which without samples is 1."""
        return (1.0 + errors) / (1.0 + weight) if self.estimate_scale else np.ones_like(errors)
