"""The Adaptive Sparse Gaussian Process (Gómez-Verdejo, Parrado-Hernández and Martínez-Ramón 2024).

The setting `learn_every` chooses between three forms. With 1 the model is the paper's AGP: a gradient step per sample.
With 0 it is the paper's fast-AGP: hyperparameters stay as the warm-up left them. With k it is a hybrid: a gradient step
every k samples.
"""

from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, Literal

import numpy as np

from driftgp.contract import forecasts
from driftgp.contract.summary import memory, relevance
from driftgp.gp import bound, inducing
from driftgp.gp.bound import NoFactor
from driftgp.gp.inducing import Relevance
from driftgp.gp.learning import Adam, Step, moved, scaled_step
from driftgp.gp.objective import Jitter, Objective, Samples
from driftgp.gp.settings import JITTER, checked, first_noise, settings_shown
from driftgp.gp.state import AGPState, put
from driftgp.gp.window import Leaving, Windowed, WindowState, observed
from driftgp.kernels import SE, Kernel
from driftgp.models.model import Units

_LARGEST = 1e300  # largest statistic from outside, so that sums stay finite


@dataclass(frozen=True, repr=False)
class AGP(Windowed):
    """Sparse Gaussian process that forgets, with inducing points that follow the stream.

    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = AGP(inducing=6, window=40)
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> prediction = model.predict(state, X[41:42])
    >>> bool(abs(prediction.mean[0] - np.sin(6 * X[41, 0])) < 2 * prediction.std[0])
    True

    Args:
        kernel: covariance with its starting parameters; squared exponential by default.
        noise: starting variance of the noise, one number or one per output.
        inducing: largest number of inducing points M.
        window: samples kept T. None, for fast-AGP alone, keeps no samples: the inducing points of the warm-up stay and
            the statistics carry the past.
        forgetting: λ, the factor by which a sample's weight shrinks in one unit of time.
        attenuation: λ^T instead of λ: the weight left at the window's far end, 0.1 by default.
        relevance: rule by which inducing points are dropped: "leave-one-out", "cholesky" or "diagonal".
        learn_every: samples from one gradient step to the next; 0 takes none after the warm-up.
        iterations: gradient steps each time.
        step: the gradient step. "fresh" starts Adam afresh at every sample, as the authors' latest code does. "carried"
            goes on with Adam's averages from the warm-up, as the authors' notebooks do. "scaled" is
            g / (n/2 + prior⁻²) in each logarithm, for its gradient g and n = Σw, and `rate` at most. Only a fresh step
            moves the newest inducing point too; with the others it stays at its sample.
        rate: size of the step; 0.05 by default, 0.2 for scaled steps.
        threshold: r_th, the share of the largest relevance below which a point is dropped.
        jitter: added to Kuu, relative to its diagonal.
        absolute_jitter: added to Kuu as it is, as the published runs did.
        prior: standard deviation of each log parameter around its starting value; None, as published, for no prior.
            Even a wide one (10) helps the model recover after stretches of data without information.
        outliers: ν, which limits the pull of one wild target; 4 is usual. A sample z standard deviations from its
            prediction enters with weight min(1, (ν + 1)/(ν + z²)), as under a Student law of ν degrees of freedom.
            With None, the default, every sample counts in full, so that forecasts follow a jump of the level sooner.
        warmup_iterations: Adam iterations on the warm-up batch.
        warmup_rate: their rate.
        learn_inducing: learn the inducing inputs too in the warm-up.
        placement: first inducing inputs: "greedy" takes the samples least explained by those taken before, "recent"
            every second one of the last 2M.
        inducing_inputs: first inducing inputs, in place of a placement, at most M rows.
        admission: when fast-AGP admits a point: as Algorithm 1 says, or as the published runs did.
    """

    kernel: Kernel = field(default_factory=SE)
    _: KW_ONLY
    noise: Any = 1.0  # a tuple from then on
    inducing: int = 10
    window: int | None = 100
    forgetting: float = None  # type: ignore[assignment]  # by the attenuation, unless it is given
    attenuation: InitVar[float | None] = None
    relevance: Relevance = "leave-one-out"
    learn_every: int = 1
    iterations: int = 1
    step: Step = "fresh"
    rate: float = None  # type: ignore[assignment]  # by the step, unless it is given
    threshold: float = 1e-4
    jitter: float = JITTER
    absolute_jitter: float = 0.0
    prior: float | None = None
    outliers: float | None = None
    warmup_iterations: int = 200
    warmup_rate: float = 0.05
    learn_inducing: bool = False
    placement: Literal["greedy", "recent"] = "greedy"
    inducing_inputs: Any = None  # a tuple of tuples from then on
    admission: Literal["algorithm", "published"] = "algorithm"

    def __post_init__(self, attenuation: float | None) -> None:
        """Check the settings, and find those that follow from others."""
        for name, value in checked(self, attenuation).items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """The main settings, and those that are not as they would be by default."""
        return f"AGP({', '.join(f'{name}={value!r}' for name, value in settings_shown(self).items())})"

    @property
    def sees_raw_numbers(self) -> bool:
        """Numbers are taken as they are: starting parameters, noise and thresholds are made for unit scale."""
        return True

    # ---- records -----------------------------------------------------------------------------------------------------

    def own_dtype(self, inputs: int, outputs: int, *, window: bool) -> np.dtype:
        """Layout of a state, with its window or without it."""
        H = self.kernel.size
        sizes = {"D": inputs, "P": outputs, "M": self.inducing, "T": self.window or 0, "H": H}
        A = H + outputs if self.step == "carried" else 0
        return AGPState.dtype(**sizes, A=A, **({} if window else {"window": None}))

    def view_on(self, record: np.ndarray, window: WindowState) -> AGPState:
        """The fields of a state."""
        return AGPState(record, window=window)

    def derived(self) -> tuple[str, ...]:
        """All that follows from samples, points and hyperparameters; without a window the statistics are needed."""
        sums = () if self.window is None else ("n", "yy", "b", "Phi", "kappa")
        return ("Kux", *sums, "inverse_L", "C", "alpha")

    def check(self, state: AGPState) -> None:
        """Refuse fields out of range; without a window, also statistics that are impossible."""
        state.check()
        if self.window is None:
            _check_statistics(state)

    # ---- the contract ------------------------------------------------------------------------------------------------

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse what kernel, noise or first inducing inputs do not fit."""
        self.kernel.fit(inputs)
        first_noise(self.noise, outputs)
        if self.inducing_inputs is not None and len(self.inducing_inputs[0]) != inputs:
            given = len(self.inducing_inputs[0])
            raise ValueError(f"inducing_inputs must have {inputs} columns, as many as X; got {given}")
        if self.window is None and self.inducing_inputs is None and rows == 0:
            raise ValueError(
                f"X must not be empty when window is None and no inducing_inputs are given: there would never be an "
                f"inducing point; got shape {(rows, inputs)}"
            )

    def start(self, state: AGPState, X: np.ndarray, y: np.ndarray) -> None:
        """Place inducing points on the batch and learn from it for a while."""
        state.theta[...] = self.kernel.theta
        state.noise[...] = first_noise(self.noise, y.shape[1])
        memory = state.window
        if self.window is None:  # the batch is kept during the warm-up; after that the statistics carry the past
            memory = WindowState.empty(T=len(X), D=X.shape[1], P=y.shape[1])
        w = memory.fill(X, y, self.forgetting)
        filled = min(len(X), len(w))
        samples = Samples(memory.X, memory.y, w)
        U = self._first_points(memory.X[:filled], w[:filled])
        if len(X) > 0:
            U = self._warm_up(state, U, samples)
        Kux = self._refresh(state, U, samples)
        if self.window is None:
            state.points = len(U)
            put(state.U, U)
        else:
            state.w[...] = w
            state.place(U, Kux)

    def forecast(self, state: AGPState, X: np.ndarray) -> np.ndarray:
        """Predictive distribution (eq. adap_pred_dist)."""
        kernel = self.kernel.at(state.theta)
        Kus = kernel.gram(state.U[: state.points], X)  # M×N
        mean, latent = bound.predict(state.posterior, Kus, kernel.diagonal(X))
        return forecasts.normal(mean, latent + state.noise, state.noise)

    def facts(self, state: AGPState) -> dict[str, Any]:
        """Its memory, and how much the function changes with each input."""
        return {
            "memory": memory(self.forgetting),
            "relevance": relevance(self.kernel.at(state.theta), state.U.shape[1]),
        }

    def joint(self, state: AGPState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of new targets: the latent one, and the noise of each by itself."""
        kernel = self.kernel.at(state.theta)
        latent = bound.covariance(state.posterior, kernel.gram(state.U[: state.points], X), kernel.gram(X, X))
        return latent + state.noise[:, None, None] * np.eye(len(X))

    def learn_on(
        self,
        state: AGPState,
        leaving: Leaving | None,
        x: np.ndarray,
        y: np.ndarray,
        elapsed: float,
        forecast: np.ndarray | None = None,
    ) -> None:
        """One step of Algorithm 2 (AGP), of Algorithm 1 (fast-AGP), or of the one that is due (hybrid)."""
        before = state.record.copy()
        seen = bool(observed(x, y))
        try:
            self._age(state, self.forgetting**elapsed)
            if seen:
                self._observe(state, leaving, x, y, forecast)
            due = seen and self.learn_every > 0 and state.samples % self.learn_every == 0
            if due:
                self._adapt(state, x)
            elif seen and self.learn_every != 1 and self.window is not None:
                self._follow(state, x)
            else:
                self._settle(state)
        except NoFactor:  # numbers beyond all bounds: the sample is left out, and the state stays
            state.record[...] = before
            state.skipped += 1
            self._forgo(state, leaving)

    def _forgo(self, state: AGPState, leaving: Leaving | None) -> None:
        """Take a sample out of the window again; in a shared window its weight in this model becomes 0."""
        if leaving is None:
            return
        if "window" in (state.record.dtype.names or ()):
            state.window.put_back(leaving)
        else:
            state.w[leaving.slot] = 0.0
            self.complete(state)

    def evidence_bound(self, state: Any) -> float:
        """F for the samples and hyperparameters of a state as they are, summed over outputs."""
        Kuu = self._Kuu(self.kernel.at(state.theta), state.U[: state.points])
        return bound.bound(Kuu, state.statistics, state.noise)

    def complete(self, state: AGPState) -> None:
        """Kux, statistics and posterior from the rest."""
        U = state.U[: state.points].copy()
        if self.window is None:
            inverse_L, _ = bound.inverse_root(self._Kuu(self.kernel.at(state.theta), U))
            state.posterior, _ = bound.posterior(inverse_L, state.statistics, state.noise)
        else:
            repaired = state.repaired
            state.place(U, self._refresh(state, U, state.samples_in_window))
            state.repaired = repaired

    def rescale_on(self, state: AGPState, units: Units) -> None:
        """Express inducing inputs in other units; the hyperparameters, which are in these units, stay."""
        if self.window is None:
            raise ValueError("window must be a number for AGP to change its units: the statistics alone cannot")
        state.U[: state.points] = units.inputs(state.U[: state.points])
        self.complete(state)

    # ---- both algorithms ---------------------------------------------------------------------------------------------

    def _age(self, state: AGPState, decay: float) -> None:
        """Let time pass."""
        state.w *= decay
        state.statistics = bound.forget(state.statistics, decay)

    def _observe(
        self, state: AGPState, leaving: Leaving | None, x: np.ndarray, y: np.ndarray, forecast: np.ndarray | None
    ) -> None:
        """Take the sample in (eq. data_add) and the oldest one out (eq. data_remove)."""
        kernel, U, s = self.kernel.at(state.theta), state.U[: state.points], state.statistics
        if not np.isfinite(kernel.diagonal(x[None])[0] + np.sum(y**2)):
            raise NoFactor  # no statistic could hold it
        trust = self._trust(state, x, y, forecast)
        k = kernel.gram(U, x[None])[:, 0]  # M
        if leaving is not None:
            slot, x_old, y_old = leaving
            k_old = kernel.gram(U, x_old[None])[:, 0]
            s = bound.absorb(s, k_old, kernel.diagonal(x_old[None])[0], y_old, -state.w[slot])
            state.w[slot] = trust
            state.Kux[: len(U), slot] = k
        state.statistics = bound.absorb(s, k, kernel.diagonal(x[None])[0], y, trust)
        state.samples += 1

    def _trust(self, state: AGPState, x: np.ndarray, y: np.ndarray, forecast: np.ndarray | None) -> float:
        """Weight of a new sample: 1, or less if it is far from its prediction."""
        if self.outliers is None:
            return 1.0
        p = self.forecast(state, x[None]) if forecast is None else forecast
        z2 = float(np.mean((y - p["mean"][0]) ** 2 / p["variance"][0]))
        return min(1.0, (self.outliers + 1.0) / (self.outliers + z2))

    def _settle(self, state: AGPState) -> None:
        """Keep points and hyperparameters; bring the posterior up to date with the statistics."""
        state.posterior, repairs = bound.posterior(state.posterior.inverse_L, state.statistics, state.noise)
        state.repaired += repairs

    def _refresh(self, state: AGPState, U: np.ndarray, samples: "Samples") -> np.ndarray:
        """Statistics and posterior from the samples, and Kux: O(M²T)."""
        kernel = self.kernel.at(state.theta)
        Kux: np.ndarray = kernel.gram(U, samples.X)
        state.points = len(U)
        state.statistics = s = bound.statistics(Kux, kernel.diagonal(samples.X), samples.w, samples.y)
        inverse_L, repairs = bound.inverse_root(self._Kuu(kernel, U))
        state.posterior, more = bound.posterior(inverse_L, s, state.noise)
        state.repaired += repairs + more
        return Kux

    def _Kuu(self, kernel: Kernel, U: np.ndarray) -> np.ndarray:
        return inducing.gram(kernel, U, self.jitter, self.absolute_jitter)

    def _relevance(self, kernel: Kernel, U: np.ndarray, inverse_L: np.ndarray, Phi: np.ndarray) -> np.ndarray:
        return inducing.relevance(self.relevance, inverse_L, kernel.diagonal(U), Phi)

    # ---- Algorithm 2: AGP --------------------------------------------------------------------------------------------

    def _adapt(self, state: AGPState, x: np.ndarray) -> None:
        kernel, U, samples = self.kernel.at(state.theta), state.U[: state.points], state.samples_in_window
        # Algorithm 2, remove useless inducing points and limit set size to M − 1
        R = self._relevance(kernel, U, state.posterior.inverse_L, state.statistics.Phi)
        keep = inducing.survivors(R, self.threshold, self.inducing - 1)
        # Algorithm 2, add a new inducing point
        U = np.vstack([U[keep], x])
        # Algorithm 2, update model parameters; the noise is at least the jitter
        least = self.jitter * state.kappa / state.n
        U = self._climb(state, U, samples)
        state.noise[...] = np.maximum(state.noise, least if np.isfinite(least) else 0.0)
        # Algorithm 2, update predictive distribution with new parameters
        state.place(U, self._refresh(state, U, samples))

    def _climb(self, state: AGPState, U: np.ndarray, samples: Samples) -> np.ndarray:
        """Take gradient steps in the hyperparameters and, if they are fresh, in the newest inducing input."""
        carried = self.step == "carried"
        adam = Adam(state.adam_mean, state.adam_square, state.adam_steps) if carried else Adam.begin(self._free(state))
        newest = Adam.begin(U.shape[1])
        for _ in range(self.iterations):
            slope = self._objective(state).slope(state.theta, state.noise, U, samples)
            if slope is None:
                state.skipped += 1
                continue
            if self.step == "scaled":
                information = 0.5 * state.n + (0.0 if self.prior is None else self.prior**-2)
                self._move(state, scaled_step(slope.hyperparameters, information, self.rate))
                continue
            move, adam = adam.step(slope.hyperparameters, self.rate)
            self._move(state, move)
            if not carried:  # the notebooks' optimiser, made before the stream, does not include points that come later
                shift, newest = newest.step(slope.inputs(slice(-1, None))[0], self.rate)
                U = np.vstack([U[:-1], U[-1] + shift])
        if carried:
            self._keep(state, adam)
        return U

    def _warm_up(self, state: AGPState, U: np.ndarray, samples: Samples) -> np.ndarray:
        """Learn from the batch by Adam: hyperparameters and, if so set, all the inducing inputs."""
        adam, inputs = Adam.begin(self._free(state)), Adam.begin(U.size)
        for _ in range(self.warmup_iterations):
            slope = self._objective(state).slope(state.theta, state.noise, U, samples)
            if slope is None:
                state.skipped += 1
                continue
            move, adam = adam.step(slope.hyperparameters, self.warmup_rate)
            if self.learn_inducing:
                shift, inputs = inputs.step(slope.inputs(slice(None)).reshape(-1), self.warmup_rate)
                U = U + shift.reshape(U.shape)
            self._move(state, move)
        if self.step == "carried":
            self._keep(state, adam)
        return U

    def _objective(self, state: AGPState) -> Objective:
        jitter, noise = Jitter(self.jitter, self.absolute_jitter), first_noise(self.noise, len(state.noise))
        return Objective(self.kernel, noise, jitter, self.prior)

    def _move(self, state: AGPState, step: np.ndarray) -> None:
        H = len(state.theta)
        state.theta[...], state.noise[...] = moved(state.theta, step[:H]), moved(state.noise, step[H:])

    def _keep(self, state: AGPState, adam: Adam) -> None:
        state.adam_mean[...], state.adam_square[...], state.adam_steps = adam

    def _free(self, state: AGPState) -> int:
        return len(state.theta) + len(state.noise)

    # ---- Algorithm 1: fast-AGP ---------------------------------------------------------------------------------------

    def _follow(self, state: AGPState, x: np.ndarray) -> None:
        kernel, U, samples = self.kernel.at(state.theta), state.U[: state.points], state.samples_in_window
        # rounding errors of running sums add up: compute them anew once per turn of the window
        if state.window.cursor == 0:
            state.statistics = bound.statistics(state.Kux[: len(U)], kernel.diagonal(samples.X), samples.w, samples.y)
        inverse_L, s = state.posterior.inverse_L, state.statistics
        # Algorithm 1, add a new inducing point if it is needed
        admit = self._needed(inducing.unexplained(inverse_L, s), state)
        # Algorithm 1, remove useless inducing points
        keep = self._survivors(self._relevance(kernel, U, inverse_L, s.Phi))
        if admit or len(keep) < len(U):
            self._exchange(state, x if admit else x[:0])
        self._settle(state)

    def _needed(self, unexplained: float, state: AGPState) -> bool:
        if self.admission == "published":
            return bool(unexplained / np.mean(state.noise) > state.kappa / state.n)
        return unexplained > state.kappa / (self.window or 1)  # R_th,tot = κ/T

    def _survivors(self, R: np.ndarray) -> np.ndarray:
        rule = inducing.survivors_published if self.admission == "published" else inducing.survivors
        return rule(R, self.threshold, self.inducing)

    def _exchange(self, state: AGPState, x: np.ndarray) -> None:
        """Admit x, or nothing, then drop useless points; the new point competes with the others."""
        kernel, samples, m = self.kernel.at(state.theta), state.samples_in_window, state.points
        U, Kux, s = state.U[:m], state.Kux[:m], state.statistics
        if x.size:  # a row of Kux, and so of Φ and b (eq. update_B_inducing)
            U = np.vstack([U, x])
            Kux = np.vstack([Kux, kernel.gram(x[None], samples.X)])
            row = Kux @ (Kux[-1] * samples.w)  # M+1
            Phi = np.block([[s.Phi, row[:-1, None]], [row]])
            s = s._replace(Phi=Phi, b=np.vstack([s.b, (Kux[-1] * samples.w) @ samples.y]))
        inverse_L, _ = bound.inverse_root(self._Kuu(kernel, U))
        keep = self._survivors(self._relevance(kernel, U, inverse_L, s.Phi))
        U, Kux, s = U[keep], Kux[keep], s._replace(Phi=s.Phi[np.ix_(keep, keep)], b=s.b[keep])
        inverse_L, repairs = bound.inverse_root(self._Kuu(kernel, U))
        state.place(U, Kux)
        state.statistics = s
        put(state.inverse_L, inverse_L)
        state.repaired += repairs

    # ---- settings put to use -----------------------------------------------------------------------------------------

    def _first_points(self, X: np.ndarray, w: np.ndarray) -> np.ndarray:
        """First inducing inputs: those given, or some of the samples."""
        if self.inducing_inputs is not None:
            return np.array(self.inducing_inputs)
        if self.placement == "recent":
            return inducing.recent(X, w, self.inducing)
        return inducing.greedy(self.kernel, X, w, self.inducing)


def _check_statistics(state: AGPState) -> None:
    """Refuse impossible statistics; without a window they are the whole memory of a model."""
    sums = np.concatenate([np.ravel(getattr(state, name)) for name in ("n", "yy", "kappa", "b", "Phi")])
    if not np.all(np.abs(sums) < _LARGEST) or np.any(sums[: 2 + state.yy.size] < 0.0):
        raise ValueError(f"n, yy, kappa, b and Phi must lie within {_LARGEST:g}, and none of the first three below 0")


def FastAGP(**options: Any) -> AGP:
    """AGP that takes no gradient step after the warm-up: the paper's fast-AGP.

    Args:
        options: those of `AGP`, except `learn_every`.

    >>> FastAGP(inducing=20, window=200).learn_every
    0
    """
    return AGP(**options, learn_every=0)
