"""A model for several values of its settings at once, mixed by how well each has predicted of late."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from driftgp import checks
from driftgp.model import Layout, Model, Units
from driftgp.prediction import Gaussian, Mixture
from driftgp.wrappers import spread
from driftgp.wrappers.holding import Holding, HoldingState

# Memories in samples, 1/(1 − λ), of the members when no settings are given.
MEMORIES = (20.0, 40.0, 80.0, 160.0, 1000.0)
# A member's weight never falls below e^−12 of the best one's, so that it can come back within a few samples.
_LOWEST = -12.0


class BankState(HoldingState):
    """The members' states, and how they have fared."""

    inner: Any  # every array with a leading axis K
    log_weights: Array  # K
    log_s2: Array  # K×P, by how much the members' errors exceed their variances
    layout: Layout = eqx.field(static=True)

    @property
    def weights(self) -> Array:
        """The members' shares in the mixture, K."""
        return jax.nn.softmax(jnp.asarray(self.log_weights), axis=-1)


class Bank(Holding[BankState]):
    """Hold K copies of a model that differ in some settings, by default in λ, and predict their mixture.

    The weight of member k is its recent predictive likelihood (dynamic model averaging: Raftery, Kárný and Ettler 2010),

        log w_k ← a^Δt log w_k + (1 − a^Δt) log π_k + log N(y | m_k, s²)

    averaged over the outputs, which share the weights. s² is the same for all members, the geometric mean of their
    variances: so the weights judge means alone, and a member with a good mean is not put aside for being late with its
    variance. Variances are set right one by one instead (`spread.py`).

    >>> import numpy as np
    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = Bank(AGP(inducing=6, window=40), forgetting=[0.9, 0.95, 0.99])
    >>> state = model.update(model.init(X[:40], y[:40]), X[40:59], y[40:59])
    >>> state.weights.shape, bool(abs(model.predict(state, X[59:]).mean[0] - y[59]) < 0.1)
    ((3,), True)
    """

    model: Model[Any]  # stacked: every number has a leading axis K
    memory: Array
    log_prior: Array  # K
    gain: Array
    restore: Array

    def __init__(
        self,
        model: Model[Any],
        *,
        memory: ArrayLike = 0.98,
        prior: ArrayLike | None = None,
        gain: ArrayLike = 0.05,
        restore: ArrayLike = 0.99,
        **settings: ArrayLike,
    ) -> None:
        """Hold copies of a model.

        Args:
            model: any model with Gaussian predictions.
            memory: a, the factor by which the past counts less in the weights with each unit of time; 1 forgets nothing.
            prior: π, the weights to start from and to return to; equal by default.
            gain: g, how fast the members' variances are set right; 0 leaves them as they are.
            restore: the factor by which that correction fades in one unit of time.
            settings: names of numeric settings of the model, each with K values; by default `forgetting`, for memories
                1/(1 − λ) of 20 to 1000 samples.
        """
        if not settings:
            settings = {"forgetting": 1.0 - 1.0 / np.array(MEMORIES)}
        self.model = _stacked(model, settings)
        K = np.shape(next(iter(settings.values())))[0]
        self.memory = checks.between("memory", memory, 0.0, 1.0)
        self.gain = checks.between("gain", gain, 0.0, 1.0, open_low=False)
        self.restore = checks.between("restore", restore, 0.0, 1.0)
        prior = checks.between("prior", np.ones(K) if prior is None else prior, 0.0, np.inf)
        if np.shape(prior) != (K,):
            raise ValueError(f"prior must have one weight for each of the {K} members; got shape {np.shape(prior)}")
        self.log_prior = np.log(prior / np.sum(prior))

    @property
    def size(self) -> int:
        """Number of members K."""
        return self.log_prior.shape[-1]

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, layout: Layout, X: Array, y: Array) -> BankState:
        """Start every member on the batch."""
        inner = jax.vmap(lambda model: model.start(layout, X, y))(self.model)
        log_s2 = jnp.zeros((self.size, layout.columns), layout.dtype)
        return BankState(inner, jnp.asarray(self.log_prior, layout.dtype), log_s2, layout)

    def forecast(self, state: BankState, X: Array) -> Mixture:
        """Mixture of the members' forecasts."""
        p = self._members(state, X)
        shape = p.mean.shape[1:]
        weights = jax.nn.softmax(state.log_weights)
        return Mixture(
            tuple(jnp.broadcast_to(weight, shape) for weight in weights),
            tuple(p.mean),
            tuple(p.variance),
            tuple(p.noise),
        )

    def learn(self, state: BankState, x: Array, y: Array, elapsed: Array) -> BankState:
        """Judge the members by the sample, then let each learn from it."""
        observed = jnp.isfinite(y) & jnp.all(jnp.isfinite(x) | self.fills_gaps)  # P
        p = self._members(state, x[None])
        error = jnp.where(observed, y - p.mean[:, 0], 0.0)  # K×P
        state = replace(
            state,
            inner=jax.vmap(lambda model, inner: model.learn(inner, x, y, elapsed))(self.model, state.inner),
            log_weights=self._judged(state.log_weights, error, p.variance[:, 0], observed, elapsed),
        )
        z = error / jnp.sqrt(p.variance[:, 0] * jnp.exp(-state.log_s2))  # in the member's own units
        return replace(state, log_s2=spread.follow(state.log_s2, z, observed, self.gain, self.restore**elapsed))

    def _members(self, state: BankState, X: Array) -> Gaussian:
        """Forecast of each member, its variance set right, K×N×P."""
        p = jax.vmap(lambda model, inner: model.forecast(inner, X))(self.model, state.inner)
        if not isinstance(p, Gaussian):
            raise ValueError(f"model must predict normal distributions to be mixed; got {type(p).__name__}")
        s2 = jnp.exp(state.log_s2)[:, None]  # K×1×P
        return Gaussian(p.mean, s2 * p.variance, s2 * p.noise)

    def _judged(self, log_w: Array, error: Array, variance: Array, observed: Array, elapsed: Array) -> Array:
        common = jnp.exp(jnp.mean(jnp.log(variance), 0))  # P
        score = -0.5 * jnp.sum(error**2 / common, -1) / jnp.maximum(jnp.sum(observed), 1)  # K
        keep = self.memory**elapsed
        log_w = keep * log_w + (1.0 - keep) * self.log_prior + score
        return jnp.maximum(log_w - jnp.max(log_w), _LOWEST)

    # ---- for checkpoints and wrappers --------------------------------------------------------------------------------

    def essence(self, state: BankState) -> BankState:
        """Essence of every member."""
        return replace(state, inner=jax.vmap(lambda model, inner: model.essence(inner))(self.model, state.inner))

    def complete(self, state: BankState) -> BankState:
        """Undo `essence`, up to rounding."""
        return replace(state, inner=jax.vmap(lambda model, inner: model.complete(inner))(self.model, state.inner))

    def rescale(self, state: BankState, units: Units) -> BankState:
        """Every member in other units; weights and ratios of variances have none."""
        rescaled = jax.vmap(lambda model, inner: model.rescale(inner, units))(self.model, state.inner)
        return replace(state, inner=rescaled)


def _stacked(model: Model[Any], settings: dict[str, ArrayLike]) -> Model[Any]:
    """K copies of a model as one, in which the named settings differ."""
    arrays = {name: checks.real(name, values) for name, values in settings.items()}
    sizes = {name: array.shape[:1] for name, array in arrays.items()}
    if len(set(sizes.values())) != 1 or () in sizes.values():
        raise ValueError(f"settings must each have one value for every member; got {sizes}")
    (K,) = next(iter(sizes.values()))
    stacked = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (K, *np.shape(leaf))), model)
    for name, array in arrays.items():
        stacked = eqx.tree_at(lambda held, name=name: _setting(held, name), stacked, array)
    return stacked


def _setting(model: Any, name: str) -> Any:
    """A setting of the model, or of the model that it holds."""
    while not hasattr(model, name) and hasattr(model, "model"):
        model = model.model
    if not isinstance(getattr(model, name, None), np.ndarray):
        raise ValueError(f"{name} must be a numeric setting of {type(model).__name__} for its members to differ in it")
    return getattr(model, name)
