"""The Adaptive Sparse Gaussian Process.

One model, three settings of `learn_every`: 1 is the paper's AGP (a gradient step a sample), 0 is its fast-AGP
(hyperparameters stay as the warm-up left them), k a hybrid with a gradient step every k samples.
"""

from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from driftgp import bound, checks, inducing, learning, native, settings, window
from driftgp.bound import Posterior, Statistics
from driftgp.inducing import RULES, Inducing, Relevance
from driftgp.kernels import SE, Covariance
from driftgp.learning import Hyperparameters, Optimizer
from driftgp.loops import only_if
from driftgp.model import Layout, Model, State, Units
from driftgp.native.direct import Stack, Stepper
from driftgp.packing import Packing
from driftgp.prediction import Gaussian
from driftgp.window import Window

Placement = Literal["greedy", "recent"]
Admission = Literal["algorithm", "published"]
Tree = TypeVar("Tree")


class AGPState(State):
    """What AGP remembers."""

    window: Window
    points: Inducing
    hyperparameters: Hyperparameters
    Kux: Array  # M×T, at the current hyperparameters
    statistics: Statistics
    posterior: Posterior
    optimizer: Any  # empty where the optimiser starts afresh at every sample
    samples: Array  # how many were learned from since the warm-up
    skipped: Array  # gradient steps left out because something in them was not finite
    repaired: Array  # factorisations that needed more jitter
    layout: Layout = eqx.field(static=True)


class AGP(Model[AGPState]):
    """Sparse Gaussian process that forgets, with inducing points that follow the stream.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = AGP(inducing=6, window=40)
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> state = model.update(state, X[40], np.sin(6 * X[40, 0]))
    >>> prediction = model.predict(state, X[41:42])
    >>> bool(abs(prediction.mean[0] - np.sin(6 * X[41, 0])) < 2 * prediction.std[0])
    True
    """

    kernel: Covariance
    noise: Array
    forgetting: Array
    rate: Array
    warmup_rate: Array
    threshold: Array
    jitter: Array | None
    absolute_jitter: Array
    prior: Array | None
    outliers: Array | None = eqx.field(metadata={"later": True})
    natural: Array | None = eqx.field(metadata={"later": True})
    inducing_inputs: Any
    inducing: int = eqx.field(static=True)
    window: int | None = eqx.field(static=True)
    relevance: Relevance = eqx.field(static=True)
    learn_every: int = eqx.field(static=True)
    iterations: int = eqx.field(static=True)
    optimizer: Optimizer | None = eqx.field(static=True)
    restart: bool = eqx.field(static=True)
    warmup_iterations: int = eqx.field(static=True)
    learn_inducing: bool = eqx.field(static=True)
    placement: Placement = eqx.field(static=True)
    admission: Admission = eqx.field(static=True)

    def __init__(
        self,
        kernel: Covariance | None = None,
        *,
        noise: ArrayLike = 1.0,
        inducing: int = 10,
        window: int | None = 100,
        forgetting: ArrayLike | None = None,
        attenuation: ArrayLike | None = None,
        relevance: Relevance = "leave-one-out",
        learn_every: int = 1,
        iterations: int = 1,
        rate: ArrayLike | None = None,
        natural: ArrayLike | None = None,
        optimizer: Optimizer | None = None,
        restart: bool = True,
        threshold: ArrayLike = 1e-4,
        jitter: ArrayLike | None = None,
        absolute_jitter: ArrayLike = 0.0,
        prior: ArrayLike | None = None,
        outliers: ArrayLike | None = None,
        warmup_iterations: int = 200,
        warmup_rate: ArrayLike = 0.05,
        learn_inducing: bool = False,
        placement: Placement = "greedy",
        inducing_inputs: ArrayLike | None = None,
        admission: Admission = "algorithm",
    ) -> None:
        """Take the settings; those that are arrays may differ between the models of a batch.

        Args:
            kernel: covariance with its starting parameters; squared exponential by default.
            noise: starting variance of the noise.
            inducing: most inducing points M.
            window: samples kept T. None, for fast-AGP alone, keeps no samples: the inducing points of the warm-up
                stay and the statistics carry the past.
            forgetting: λ, the factor by which a sample's weight shrinks in one unit of time.
            attenuation: λ^T instead of λ: the weight left at the window's far end, 0.1 by default.
            relevance: rule by which inducing points are dropped: "leave-one-out", "cholesky" or "diagonal".
            learn_every: samples from one gradient step to the next; 0 takes none after the warm-up.
            iterations: gradient steps each time.
            rate: size of the published step, 0.05 by default.
            natural: η, for natural steps in place of the published ones: η g / (n/2 + prior⁻²) in each logarithm, for
                its gradient g and n = Σw, and `rate` at most; 1 is usual, with a rate of 0.2. The newest inducing
                point then stays at its sample, where it is as good, and the derivative in it is saved.
            optimizer: any optax optimiser, with its own learning rate, in place of the published step.
            restart: start the optimiser afresh at every sample, as published, or carry its state along.
            threshold: r_th, the share of the largest relevance below which a point is dropped.
            jitter: added to Kuu, relative to its diagonal; by default ten times the square root of the dtype's eps.
            absolute_jitter: added to Kuu as it is, as the published runs did.
            prior: standard deviation of each log parameter around its starting value; None, as published, for no prior.
                Even a wide one (10) has the model find back after stretches of data that say nothing.
            outliers: ν, to limit the pull of one wild target: a sample z standard deviations from its prediction enters
                with weight min(1, (ν + 1)/(ν + z²)), as under a Student law of ν degrees of freedom (4 is usual). None,
                the default, takes every sample in full, which follows a jump of the level sooner.
            warmup_iterations: Adam iterations on the warm-up batch.
            warmup_rate: their rate.
            learn_inducing: learn the inducing inputs too in the warm-up.
            placement: first inducing inputs: "greedy" takes the samples least explained by those taken before,
                "recent" every second one of the last 2M.
            inducing_inputs: first inducing inputs, in place of a placement, at most M rows.
            admission: when fast-AGP admits a point: as Algorithm 1 says, or as the published runs did.
        """
        self.kernel = learning.float_leaves(SE() if kernel is None else kernel)
        self.noise = checks.between("noise", noise, 0.0, np.inf)
        self.inducing = checks.whole("inducing", inducing, 1)
        self.window = None if window is None else checks.whole("window", window, 1)
        self.learn_every = checks.whole("learn_every", learn_every, 0)
        if self.window is None and self.learn_every > 0:
            raise ValueError(f"window must be a number when learn_every is {learn_every}: a gradient needs samples")
        if self.window is not None and self.inducing > self.window:
            raise ValueError(f"inducing must be at most window ({window}); got {inducing}")
        self.forgetting = settings.forgetting_factor(forgetting, attenuation, self.window)
        self.relevance = checks.choice("relevance", relevance, RULES)  # type: ignore[assignment]
        self.iterations = checks.whole("iterations", iterations, 1)
        if not isinstance(optimizer, Optimizer | None):
            raise ValueError(f"optimizer must be an optax optimiser, such as optax.adam(0.01); got {optimizer!r}")
        if optimizer is not None and rate is not None:
            raise ValueError(f"rate must be left out when an optimizer is given, which has its own; got {rate!r}")
        if optimizer is not None and natural is not None:
            raise ValueError(f"natural must be left out when an optimizer is given; got {natural!r}")
        self.natural = None if natural is None else checks.between("natural", natural, 0.0, np.inf)
        self.rate = checks.between("rate", 0.05 if rate is None else rate, 0.0, np.inf)
        self.optimizer = optimizer
        self.restart = bool(restart)
        self.threshold = checks.between("threshold", threshold, 0.0, 1.0, open_low=False)
        self.jitter = None if jitter is None else checks.between("jitter", jitter, 0.0, 1.0, open_low=False)
        self.absolute_jitter = checks.between("absolute_jitter", absolute_jitter, 0.0, np.inf, open_low=False)
        self.prior = None if prior is None else checks.between("prior", prior, 0.0, np.inf)
        self.outliers = None if outliers is None else checks.between("outliers", outliers, 0.0, np.inf)
        self.warmup_iterations = checks.whole("warmup_iterations", warmup_iterations, 0)
        self.warmup_rate = checks.between("warmup_rate", warmup_rate, 0.0, np.inf)
        self.learn_inducing = bool(learn_inducing)
        self.placement = checks.choice("placement", placement, ("greedy", "recent"))  # type: ignore[assignment]
        self.admission = checks.choice("admission", admission, ("algorithm", "published"))  # type: ignore[assignment]
        self.inducing_inputs = settings.inducing_inputs(inducing_inputs, self.inducing)

    # ---- the contract ------------------------------------------------------------------------------------------------

    @property
    def light(self) -> bool:
        """fast-AGP touches a row and a column at most."""
        return self.learn_every == 0

    def start(self, layout: Layout, X: Array, y: Array) -> AGPState:
        """Place inducing points on the batch and learn from it for a while."""
        if self.window is None and self.inducing_inputs is None and X.shape[0] == 0:
            raise ValueError(
                f"X must not be empty when window is None and no inducing_inputs are given: there would never be an "
                f"inducing point; got shape {X.shape}"
            )
        h = learning.initial(self.kernel, self.noise, layout.columns, layout.dtype)
        memory = window.fill(X, y, self.forgetting, X.shape[0] if self.window is None else self.window)
        filled = min(X.shape[0], memory.size)
        points = settings.place(self.inducing_inputs, self.placement, h.kernel, memory, filled, self.inducing)
        iterations = self.warmup_iterations if X.shape[0] > 0 else 0
        begun = self._begun(layout, h, points, memory)
        if native.suits(self, begun) and not self.learn_inducing:
            return native.warm_up(self, begun, iterations)
        skipped = begun.skipped
        if iterations > 0:
            h, points, skipped = self._warm_up(h, points, memory)
        Kux, s, q = self._from_scratch(h, points, memory)
        if self.window is None:  # from here on the statistics alone carry the past
            memory, Kux = window.fill(X[:0], y[:0], self.forgetting, 0), Kux[:, :0]
        return replace(
            begun,
            window=memory,
            points=points,
            hyperparameters=h,
            Kux=Kux,
            statistics=s,
            posterior=q,
            optimizer=() if self.restart else learning.begin(self._optimizer(s), h, self._free(points.U[0])),
            skipped=skipped,
            repaired=q.repairs,
        )

    def _begun(self, layout: Layout, h: Hyperparameters, points: Inducing, memory: Window) -> AGPState:
        """A state with its samples and points, and nothing computed from them yet."""
        M, P, none = self.inducing, layout.columns, jnp.zeros((), jnp.int32)
        zeros = partial(jnp.zeros, dtype=layout.dtype)
        s = Statistics(n=zeros(()), yy=zeros(P), b=zeros((M, P)), Phi=zeros((M, M)), kappa=zeros(()))
        q = Posterior(inverse_L=zeros((M, M)), C=zeros((P, M, M)), alpha=zeros((M, P)), repairs=none)
        return AGPState(
            window=memory,
            points=points,
            hyperparameters=h,
            Kux=zeros((M, memory.size)),
            statistics=s,
            posterior=q,
            optimizer=(),
            samples=none,
            skipped=none,
            repaired=none,
            layout=layout,
        )

    def forecast(self, state: AGPState, X: Array) -> Gaussian:
        """Predictive distribution (eq. adap_pred_dist)."""
        if native.suits(self, state):
            forecast: Gaussian = _forecast_natively(self, state, X)
            return forecast
        return self.forecast_by_jax(state, X)

    def learn(self, state: AGPState, x: Array, y: Array, elapsed: Array) -> AGPState:
        """One step of Algorithm 2 (AGP), of Algorithm 1 (fast-AGP), or of whichever is due (hybrid)."""
        way = native.learn if native.suits(self, state) else AGP.learn_by_jax
        learned: AGPState = way(self, state, x, y, elapsed)
        return learned

    def follow(self, state: AGPState, X: Array, y: Array, elapsed: Array) -> tuple[Gaussian, AGPState] | None:
        """All rows in one call, where there is a library for it."""
        if not native.suits(self, state):
            return None
        answer, state = native.follow(self, state, X, y, elapsed)
        return Gaussian(*answer), state

    def stepper(self, state: AGPState) -> Stepper | None:
        """The library itself, where there is one."""
        return Stepper(self, state) if native.suits(self, state, from_jax=False) else None

    def stacked(self, packing: Packing) -> Stack | None:
        """The library itself, where there is one."""
        return Stack(self, packing) if native.suits(self, packing.shapes, from_jax=False) else None

    # ---- the mathematics, in JAX -------------------------------------------------------------------------------------

    def forecast_by_jax(self, state: AGPState, X: Array) -> Gaussian:
        """`forecast`, whatever the model."""
        h = state.hyperparameters
        Kus = inducing.cross(h.kernel, state.points, X)  # M×N
        mean, latent = bound.predict(state.posterior, Kus, h.kernel(X))
        return Gaussian(mean, latent + h.noise, jnp.broadcast_to(h.noise, mean.shape))

    def learn_by_jax(self, state: AGPState, x: Array, y: Array, elapsed: Array) -> AGPState:
        """`learn`, whatever the model."""
        observed = jnp.all(jnp.isfinite(y)) & jnp.all(jnp.isfinite(x))
        x, y = jnp.where(observed, x, 0.0), jnp.where(observed, y, 0.0)
        state = self._observe(state, x, y, self.forgetting**elapsed, observed)
        if self.learn_every == 0:
            return self._follow(state, x, observed)
        if self.learn_every == 1:
            # one truth for all members of a bank, which then need not choose one by one; the barrier keeps the compiler
            # from merging the loops below with others on the same truth, which makes a step half as long again
            due = lax.optimization_barrier(observed)
        else:
            due = observed & (state.samples % self.learn_every == 0)
        otherwise = _wait if self.learn_every == 1 else partial(self._follow, x=x, observed=observed)
        return only_if(~due, otherwise, only_if(due, partial(self._adapt, x=x), state))

    def evidence_bound(self, state: AGPState) -> Array:
        """F for the samples and hyperparameters as they are, summed over outputs."""
        h, points = state.hyperparameters, state.points
        return bound.bound(inducing.gram(h.kernel, points, *self._jitters(points.U)), state.statistics, h.noise)

    # ---- for checkpoints and wrappers --------------------------------------------------------------------------------

    def essence(self, state: AGPState) -> AGPState:
        """Window, inducing points, hyperparameters and counters; without a window the statistics too."""
        state = replace(state, Kux=_zeros(state.Kux), posterior=_zeros(state.posterior))
        return state if self.window is None else replace(state, statistics=_zeros(state.statistics))

    def complete(self, state: AGPState) -> AGPState:
        """Kux, statistics and posterior from the rest."""
        h, points = state.hyperparameters, state.points
        if self.window is None:
            inverse_L, _ = self._inverse_root(h.kernel, points)
            return replace(state, posterior=bound.posterior(inverse_L, state.statistics, h.noise))
        Kux, s, q = self._from_scratch(h, points, state.window)
        return replace(state, Kux=Kux, statistics=s, posterior=q)

    def joint(self, state: AGPState, X: Array) -> Array:
        """Joint covariance of new targets: the latent one, and the noise of each by itself."""
        h = state.hyperparameters
        latent = bound.covariance(state.posterior, inducing.cross(h.kernel, state.points, X), h.kernel(X, X))  # P×N×N
        return latent + h.noise[:, None, None] * jnp.eye(X.shape[0], dtype=X.dtype)

    def rescale(self, state: AGPState, units: Units) -> AGPState:
        """Samples and inducing inputs in other units; the hyperparameters, shares of a unit each, stay."""
        if self.window is None:
            raise ValueError("window must be a number for AGP to change its units: the statistics alone cannot")
        memory, points = state.window, state.points
        here = memory.w[:, None] > 0.0  # an empty slot stays empty
        memory = replace(
            memory,
            X=jnp.where(here, units.inputs(memory.X), 0.0),
            y=jnp.where(here, units.targets(memory.y), 0.0),
        )
        points = replace(points, U=jnp.where(points.used[:, None], units.inputs(points.U), 0.0))
        return self.complete(replace(state, window=memory, points=points))

    # ---- both algorithms ---------------------------------------------------------------------------------------------

    def _observe(self, state: AGPState, x: Array, y: Array, decay: Array, observed: Array) -> AGPState:
        """Let time pass; if there is a sample, take it in (eq. data_add) and the oldest one out (eq. data_remove)."""
        kernel = state.hyperparameters.kernel
        trust = self._trust(state, x, y)
        arrival = observed.astype(state.Kux.dtype)
        k = inducing.cross(kernel, state.points, x[None])[:, 0]  # M
        s = bound.absorb(bound.forget(state.statistics, decay), k, kernel(x[None])[0], y, arrival * trust)
        memory, Kux = window.age(state.window, decay), state.Kux
        if self.window is not None:
            old = window.oldest(memory)
            # not read from Kux, or the compiler would copy all of it before it writes the new column
            k_old = inducing.cross(kernel, state.points, old.x[None])[:, 0]  # M
            s = bound.absorb(s, k_old, kernel(old.x[None])[0], old.y, -old.w * arrival)
            memory = window.push(memory, x, y, observed, trust)
            Kux = Kux.at[:, old.slot].set(jnp.where(observed, k, k_old))
        return replace(state, window=memory, Kux=Kux, statistics=s, samples=state.samples + observed)

    def _trust(self, state: AGPState, x: Array, y: Array) -> Array | float:
        """Weight that a sample enters with: 1, or less the further it is from what was predicted."""
        if self.outliers is None:
            return 1.0
        p = self.forecast(state, x[None])
        z2 = jnp.mean((y - p.mean[0]) ** 2 / p.variance[0])
        return jnp.minimum(1.0, (self.outliers + 1.0) / (self.outliers + z2))

    # ---- Algorithm 2: AGP --------------------------------------------------------------------------------------------

    def _adapt(self, state: AGPState, x: Array) -> AGPState:
        h, points = state.hyperparameters, state.points
        # Algorithm 2, remove useless inducing points and limit set size to M − 1
        R = self._relevance(h.kernel, points, state.posterior.inverse_L, state.statistics.Phi)
        keep = inducing.survivors(R, points.used, self.threshold, self.inducing - 1)
        # Algorithm 2, add a new inducing point
        source, used = inducing.compaction(keep)
        points = inducing.append(Inducing(points.U[source], used), x)
        # hyperparameters and samples are those of Φ: all that is new to it is the row of x
        Phi = inducing.remaining(state.statistics.Phi, source, used) if self.iterations == 1 else None
        # Algorithm 2, update model parameters
        optimizer, free, moves = self._optimizer(state.statistics), self._free(x), self.natural is None
        climb = learning.ascend(
            lambda h, u: self.objective(h, points, state.window, u if moves else None, Phi) + self._log_prior(h),
            h,
            free,
            optimizer,
            learning.begin(optimizer, h, free) if self.restart else state.optimizer,
            self.iterations,
        )
        h = self._above_jitter(climb.positive, state.statistics)
        points = inducing.move_newest(points, climb.free) if moves else points
        # Algorithm 2, update predictive distribution with new parameters
        Kux, s, q = self._from_scratch(h, points, state.window)
        return replace(
            state,
            points=points,
            hyperparameters=h,
            Kux=Kux,
            statistics=s,
            posterior=q,
            optimizer=() if self.restart else climb.optimizer,
            skipped=state.skipped + climb.skipped,
            repaired=state.repaired + q.repairs,
        )

    def _grams(self, h: Hyperparameters, points: Inducing, memory: Window, newest: Array | None = None) -> Any:
        return inducing.grams(h.kernel, points, memory.X, *self._jitters(memory.w), newest)

    def objective(
        self,
        h: Hyperparameters,
        points: Inducing,
        memory: Window,
        newest: Array | None = None,
        Phi: Array | None = None,
    ) -> Array:
        """F of a window for any hyperparameters and points: what gradient steps make larger.

        Φ may be given, but for the newest point's row, where the hyperparameters have not moved yet.
        """
        Kuu, Kux = self._grams(h, points, memory, newest)
        data = Kux, h.kernel(memory.X), memory.w, memory.y
        s = bound.statistics(*data) if Phi is None else bound.renewed(*data, Phi, points.newest)
        return bound.bound(Kuu, s, h.noise)

    def _from_scratch(
        self, h: Hyperparameters, points: Inducing, memory: Window
    ) -> tuple[Array, Statistics, Posterior]:
        """Kux, statistics and posterior from the window: O(M²T)."""
        Kuu, Kux = self._grams(h, points, memory)
        s = bound.statistics(Kux, h.kernel(memory.X), memory.w, memory.y)
        inverse_L, repairs = bound.inverse_root(Kuu)
        q = bound.posterior(inverse_L, s, h.noise)
        return Kux, s, replace(q, repairs=q.repairs + repairs)

    # ---- Algorithm 1: fast-AGP ---------------------------------------------------------------------------------------

    def _follow(self, state: AGPState, x: Array, observed: Array) -> AGPState:
        if self.window is None:
            return _wait(state)
        # Sums that are forever added to and subtracted from drift; once a turn of the window they start anew.
        state = only_if(observed & (state.window.cursor == 0), _sum_again, state)
        h, points, s = state.hyperparameters, state.points, state.statistics
        # Algorithm 1, add a new inducing point if it is needed
        admit = observed & self._needed(inducing.unexplained(state.posterior.inverse_L, s), h, s)
        # Algorithm 1, remove useless inducing points
        R = self._relevance(h.kernel, points, state.posterior.inverse_L, s.Phi)
        leave = observed & jnp.any(self._keep(R, points.used) != points.used)
        state = only_if(admit | leave, lambda state: self._exchange(state, x, admit), state)
        return _wait(state)

    def _needed(self, unexplained: Array, h: Hyperparameters, s: Statistics) -> Array:
        if self.admission == "published":
            return unexplained / jnp.mean(h.noise) > s.kappa / s.n
        return unexplained > s.kappa / (self.window or 1)  # R_th,tot = κ/T

    def _keep(self, R: Array, used: Array) -> Array:
        rule = inducing.survivors_published if self.admission == "published" else inducing.survivors
        return rule(R, used, self.threshold, self.inducing)

    def _exchange(self, state: AGPState, x: Array, admit: Array) -> AGPState:
        """Admit x or not, then drop what has become useless; the newcomer competes with the others."""
        h = state.hyperparameters
        wide = inducing.widen(h.kernel, state.points, state.Kux, state.statistics, state.window, x, admit)
        inverse_L, _ = self._inverse_root(h.kernel, wide.points)
        keep = self._keep(self._relevance(h.kernel, wide.points, inverse_L, wide.statistics.Phi), wide.points.used)
        points, Kux, s = inducing.narrow(wide, keep)
        inverse_L, repairs = self._inverse_root(h.kernel, points)
        return replace(
            state,
            points=points,
            Kux=Kux,
            statistics=s,
            posterior=replace(state.posterior, inverse_L=inverse_L),
            repaired=state.repaired + repairs,
        )

    # ---- settings put to use -----------------------------------------------------------------------------------------

    def _warm_up(self, h: Hyperparameters, points: Inducing, memory: Window) -> tuple[Hyperparameters, Inducing, Array]:
        """Learn from the batch: hyperparameters and, if so set, all the inducing inputs."""
        optimizer = learning.adam(self.warmup_rate)
        free = points.U if self.learn_inducing else ()
        climb = learning.ascend(
            lambda h, U: (
                self.objective(h, replace(points, U=U) if self.learn_inducing else points, memory) + self._log_prior(h)
            ),
            h,
            free,
            optimizer,
            learning.begin(optimizer, h, free),
            self.warmup_iterations,
        )
        points = replace(points, U=climb.free) if self.learn_inducing else points
        return climb.positive, points, climb.skipped

    def _log_prior(self, h: Hyperparameters) -> Array | float:
        if self.prior is None:
            return 0.0
        start = learning.initial(self.kernel, self.noise, h.noise.shape[0], str(h.noise.dtype))
        return learning.log_prior(h, start, self.prior)

    def _optimizer(self, s: Statistics) -> Optimizer:
        if self.natural is not None:
            information = 0.5 * s.n + (0.0 if self.prior is None else self.prior**-2)
            return learning.natural(self.natural, self.rate, information)
        return learning.adam(self.rate) if self.optimizer is None else self.optimizer

    def _free(self, newest: Array) -> Any:
        """What a gradient step moves besides the hyperparameters: the newest point, or nothing."""
        return newest if self.natural is None else ()

    def _jitters(self, like: Array) -> tuple[Array, Array]:
        relative = settings.default_jitter(like.dtype) if self.jitter is None else self.jitter
        return jnp.asarray(relative, like.dtype), jnp.asarray(self.absolute_jitter, like.dtype)

    def _inverse_root(self, kernel: Covariance, points: Inducing) -> tuple[Array, Array]:
        return bound.inverse_root(inducing.gram(kernel, points, *self._jitters(points.U)))

    def _relevance(self, kernel: Covariance, points: Inducing, inverse_L: Array, Phi: Array) -> Array:
        return inducing.relevance(self.relevance, inverse_L, kernel(points.U), Phi)

    def _above_jitter(self, h: Hyperparameters, s: Statistics) -> Hyperparameters:
        """The jitter is noise already: the noise has no meaning below it."""
        floor = self._jitters(s.kappa)[0] * s.kappa / s.n
        return replace(h, noise=jnp.maximum(h.noise, floor))


@partial(native.differentiable, plain=AGP.forecast_by_jax)
def _forecast_natively(model: AGP, state: AGPState, X: Array) -> Gaussian:
    mean, variance = native.forecast(model, state, X)
    return Gaussian(mean, variance, jnp.broadcast_to(state.hyperparameters.noise, mean.shape))


def _zeros(tree: Tree) -> Tree:
    return jax.tree.map(jnp.zeros_like, tree)


def _wait(state: AGPState) -> AGPState:
    """Keep points and hyperparameters; bring the posterior up to date with the statistics."""
    q = bound.posterior(state.posterior.inverse_L, state.statistics, state.hyperparameters.noise)
    return replace(state, posterior=q, repaired=state.repaired + q.repairs)


def _sum_again(state: AGPState) -> AGPState:
    memory = state.window
    kxx = state.hyperparameters.kernel(memory.X)
    return replace(state, statistics=bound.statistics(state.Kux, kxx, memory.w, memory.y))


def FastAGP(**options: Any) -> AGP:
    """AGP that takes no gradient step after the warm-up: the paper's fast-AGP."""
    return AGP(**options, learn_every=0)
