"""Intervals that hold as many targets as they say, whatever the stream does."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from driftgp import checks, normal
from driftgp.model import Layout, Model, Units
from driftgp.wrappers import spread
from driftgp.wrappers.holding import Holding, HoldingState
from driftgp.wrappers.recalibrated import Recalibrated, nominal_reach

LEVELS = (0.5, 0.8, 0.95, 0.99)
# Two reaches keep at least this share of their nominal ratio: a distribution needs its quantiles in order.
_LEAST_RATIO = 0.2


class CalibratedState(HoldingState):
    """The held model's state, and how far its intervals have to reach."""

    inner: Any
    log_s2: Array  # J×P, spread of the normal scores as each gain sees it
    log_weights: Array  # J×P, how well each of them has foretold the scores
    offset: Array  # L×S×P, what each level (and side) needs besides, in log units
    layout: Layout = eqx.field(static=True)


class Calibrated(Holding[CalibratedState]):
    """Hold a model and stretch its predictive distribution so that its intervals hold their share of the targets.

    The normal score z of a target, Φ(z) = cdf(y), has a standard normal law if the model is right. The interval of a
    level ℓ, nominally |z| ≤ z_ℓ, is made to reach as far as

        c_ℓ = z_ℓ · s · exp(d_ℓ)

    s is the spread of the scores of late, by several trackers of different speed mixed by likelihood: it answers a jump
    of the noise within a few samples. d_ℓ is an integral controller (adaptive conformal inference: Gibbs and Candès
    2021; Angelopoulos, Candès and Tibshirani 2023 call it the I of PID):

        d_ℓ ← d_ℓ + γ_ℓ ([|z| > c_ℓ] − (1 − ℓ))

    Summed over n samples this says: share outside − (1 − ℓ) = (change of d_ℓ) / (γ_ℓ n). A target is never outside
    once c_ℓ exceeds every score, so d_ℓ stays bounded while the scores do, and the share outside tends to 1 − ℓ at
    the rate 1/n: no assumption on the stream, the model, or s. γ_ℓ = rate / (z_ℓ · 2φ(z_ℓ)) gives all levels one time
    constant, 1/rate samples.

    Predictions are `Recalibrated`: their intervals, quantiles and density are the calibrated ones, those of the held
    model are in their field `model`.

    >>> import numpy as np
    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = Calibrated(AGP(inducing=6, window=40))
    >>> prediction = model.predict(model.init(X[:40], y[:40]), X[40:41])
    >>> bool(np.allclose(prediction.interval(0.95), prediction.model.interval(0.95)))  # nothing to correct yet
    True
    """

    model: Model[Any]
    rate: Array
    gains: Array  # J
    log_prior: Array  # J
    memory: Array
    levels: tuple[float, ...] = eqx.field(static=True)
    symmetric: bool = eqx.field(static=True)

    def __init__(
        self,
        model: Model[Any],
        *,
        levels: tuple[float, ...] = LEVELS,
        symmetric: bool = True,
        rate: ArrayLike = 0.007,
        gains: ArrayLike | Sequence[float] = (0.0, 0.02, 0.1),
        prior: ArrayLike | Sequence[float] | None = None,
        memory: ArrayLike = 0.98,
    ) -> None:
        """Hold a model.

        Args:
            model: any model.
            levels: of the intervals that are controlled, in increasing order; others are interpolated.
            symmetric: control central intervals, or each of their two ends by itself, so that a one-sided bound holds
                too.
            rate: of the controllers, one over their time constant in samples.
            gains: of the trackers of the spread; 0 is a tracker that stays with the model's word.
            prior: weights of the trackers where nothing speaks for any; by default each has a tenth of the one before,
                for a quick tracker wavers, and a jump of the noise speaks loudly enough.
            memory: factor by which the past counts less with each unit of time in the trackers' weights.
        """
        self.model = model
        self.levels = _checked_levels(levels)
        self.symmetric = bool(symmetric)
        self.rate = checks.between("rate", rate, 0.0, 1.0)
        self.gains = checks.between("gains", np.atleast_1d(gains), 0.0, 1.0, open_low=False)
        shares = checks.between("prior", 0.1 ** np.arange(len(self.gains)) if prior is None else prior, 0.0, np.inf)
        if shares.shape != self.gains.shape:
            raise ValueError(f"prior must have one weight for each of {len(self.gains)} gains; got {shares.shape}")
        self.log_prior = np.log(shares / np.sum(shares))
        self.memory = checks.between("memory", memory, 0.0, 1.0)

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, layout: Layout, X: Array, y: Array) -> CalibratedState:
        """Start the held model, and take its word for its intervals."""
        trackers = jnp.zeros((self.gains.shape[-1], layout.columns), layout.dtype)
        offset = jnp.zeros((len(self.levels), 1 if self.symmetric else 2, layout.columns), layout.dtype)
        return CalibratedState(
            inner=self.model.start(layout, X, y),
            log_s2=trackers,
            log_weights=trackers + self.log_prior[:, None],
            offset=offset,
            layout=layout,
        )

    def forecast(self, state: CalibratedState, X: Array) -> Recalibrated:
        """Forecast of the held model, stretched."""
        p = self.model.forecast(state.inner, X)
        reach = self._reach(state)[:, :, None]  # L×S×1×P
        reach = jnp.broadcast_to(reach, (*reach.shape[:2], *p.mean.shape))
        return Recalibrated(p, tuple(reach[:, -1]), () if self.symmetric else tuple(reach[:, 0]), self.levels)

    def learn(self, state: CalibratedState, x: Array, y: Array, elapsed: Array) -> CalibratedState:
        """See whether the target was inside, then let the held model learn."""
        observed = jnp.isfinite(y) & jnp.all(jnp.isfinite(x) | self.fills_gaps)  # P
        p = self.model.forecast(state.inner, x[None])
        z = jnp.where(observed, p.to_normal(jnp.where(observed, y, 0.0))[0], 0.0)  # P
        memory = self.memory**elapsed
        returned = memory * state.log_weights + (1.0 - memory) * self.log_prior[:, None]
        log_weights = returned + jnp.where(observed, spread.log_likelihood(state.log_s2, z), 0.0)
        return replace(
            state,
            inner=self.model.learn(state.inner, x, y, elapsed),
            log_s2=spread.follow(state.log_s2, z, observed, self.gains[:, None], jnp.ones_like(memory)),
            log_weights=log_weights - jnp.max(log_weights, 0),
            offset=state.offset + jnp.where(observed, self._steps() * self._excess(state, z), 0.0),
        )

    def rescale(self, state: CalibratedState, units: Units) -> CalibratedState:
        """Scores have no units."""
        return replace(state, inner=self.model.rescale(state.inner, units))

    # ---- reaches and controllers -------------------------------------------------------------------------------------

    def _reach(self, state: CalibratedState) -> Array:
        """c, in increasing order of the levels, L×S×P."""
        log_s = 0.5 * jnp.sum(jax.nn.softmax(state.log_weights, 0) * state.log_s2, 0)  # P
        nominal = jnp.log(self._nominal(log_s.dtype))  # L×1×1
        in_order = jax.lax.cummax(log_s + state.offset + (1.0 - _LEAST_RATIO) * nominal)
        return jnp.exp(in_order + _LEAST_RATIO * nominal)

    def _excess(self, state: CalibratedState, z: Array) -> Array:
        """[outside] − nominal share outside, of each level and side, L×S×P."""
        share = 1.0 - jnp.asarray(self.levels, z.dtype)[:, None, None]
        if self.symmetric:
            return (jnp.abs(z) > self._reach(state)) - share
        return (jnp.stack([-z, z]) > self._reach(state)) - 0.5 * share

    def _steps(self) -> Array:
        """γ of each level, L×1×1: the rate over the change of the share outside with log c."""
        nominal = self._nominal(self.rate.dtype)
        sides = 2.0 if self.symmetric else 1.0
        return self.rate / (sides * nominal * normal.pdf(nominal))

    def _nominal(self, dtype: Any) -> Array:
        return jnp.array([nominal_reach(level) for level in self.levels], dtype)[:, None, None]


def _checked_levels(levels: Any) -> tuple[float, ...]:
    values = tuple(float(level) for level in np.atleast_1d(levels))
    if not values or not all(
        0.0 < low < high < 1.0 for low, high in zip(values, (*values[1:], 1.0 - 1e-12), strict=True)
    ):
        raise ValueError(f"levels must increase and lie strictly between 0 and 1; got {levels!r}")
    return values
