"""A model for several values of its settings at once, mixed by how well each has predicted of late."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from driftgp import checks
from driftgp.mixture import Mixture
from driftgp.model import Layout, Model, Units
from driftgp.prediction import Gaussian, traced
from driftgp.wrappers.holding import Holding, HoldingState

# Memories in samples, 1/(1 − λ), of the members when no settings are given.
MEMORIES = (20.0, 40.0, 80.0, 160.0, 1000.0)
# A member's weight never falls below e^−12 of the best one's, so that it can come back within a few samples.
_LOWEST = -12.0


class BankState(HoldingState):
    """The members' states, and how they have fared."""

    inner: Any  # every array with a leading axis K
    log_weights: Array  # K
    layout: Layout = eqx.field(static=True)

    @property
    def weights(self) -> Array:
        """The members' shares in the mixture, K."""
        if traced(self.log_weights):
            return jax.nn.softmax(self.log_weights, axis=-1)
        with jax.enable_x64(True):
            return np.asarray(jax.nn.softmax(self.log_weights, axis=-1))  # type: ignore[return-value]


class Bank(Holding[BankState]):
    """Hold K copies of a model that differ in some settings, by default in λ, and predict their mixture.

    The weight of member k is its recent predictive likelihood (dynamic model averaging: Raftery, Kárný, Ettler 2010),

        log w_k ← a^Δt log w_k + (1 − a^Δt) log π_k + log N(y | m_k, s_k²)

    averaged over the outputs, which share the weights. So no λ has to be chosen, and the λ in use may change: short
    memories lead where the stream has just turned, long ones where it is calm.

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

    def __init__(
        self,
        model: Model[Any],
        *,
        memory: ArrayLike = 0.98,
        prior: ArrayLike | Sequence[float] | None = None,
        **settings: ArrayLike | Sequence[float],
    ) -> None:
        """Hold copies of a model.

        Args:
            model: any model with Gaussian predictions.
            memory: a, the factor by which the past counts less in the weights with each unit of time; 1 never forgets.
            prior: π, the weights to start from and to return to; equal by default.
            settings: names of numeric settings of the model, each with K values; by default `forgetting`, for memories
                1/(1 − λ) of 20 to 1000 samples.
        """
        if not settings:
            settings = {"forgetting": 1.0 - 1.0 / np.array(MEMORIES)}
        self.model = _stacked(model, settings)
        K = np.shape(next(iter(settings.values())))[0]
        self.memory = checks.between("memory", memory, 0.0, 1.0)
        shares = checks.between("prior", np.ones(K) if prior is None else prior, 0.0, np.inf)
        if np.shape(shares) != (K,):
            raise ValueError(f"prior must have one weight for each of the {K} members; got shape {np.shape(shares)}")
        self.log_prior = np.log(shares / np.sum(shares))

    @property
    def size(self) -> int:
        """Number of members K."""
        return self.log_prior.shape[-1]

    def member(self, k: int) -> Model[Any]:
        """Member k by itself."""
        one: Model[Any] = jax.tree.map(lambda leaf: leaf[k], self.model)
        return one

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, layout: Layout, X: Array, y: Array) -> BankState:
        """Start every member on the batch."""
        inner = jax.vmap(lambda model: model.start(layout, X, y))(self.model)
        return BankState(inner=inner, log_weights=jnp.asarray(self.log_prior, layout.dtype), layout=layout)

    def forecast(self, state: BankState, X: Array) -> Mixture:
        """Mixture of the members' forecasts."""
        p = self._members(state, X)
        weights = jax.nn.softmax(state.log_weights)
        return Mixture(
            weights=tuple(jnp.broadcast_to(weight, p.mean.shape[1:]) for weight in weights),
            means=tuple(p.mean),
            variances=tuple(p.variance),
            noises=tuple(p.noise),
        )

    def learn(self, state: BankState, x: Array, y: Array, elapsed: Array) -> BankState:
        """Judge the members by the sample, then let each learn from it."""
        observed = jnp.isfinite(y) & jnp.all(jnp.isfinite(x) | self.fills_gaps)  # P
        p = self._members(state, x[None])
        density = jnp.where(observed, p.log_prob(jnp.where(observed, y, 0.0))[:, 0], 0.0)  # K×P
        score = jnp.sum(density, -1) / jnp.maximum(jnp.sum(observed), 1)  # K
        keep = self.memory**elapsed
        log_w = keep * state.log_weights + (1.0 - keep) * self.log_prior + score
        return replace(
            state,
            inner=jax.vmap(lambda model, inner: model.learn(inner, x, y, elapsed))(self.model, state.inner),
            log_weights=jnp.maximum(log_w - jnp.max(log_w), _LOWEST),
        )

    def _members(self, state: BankState, X: Array) -> Gaussian:
        """Forecast of each member, K×N×P."""
        p = jax.vmap(lambda model, inner: model.forecast(inner, X))(self.model, state.inner)
        if not isinstance(p, Gaussian):
            raise ValueError(f"model must predict normal distributions to be mixed; got {type(p).__name__}")
        return p

    # ---- for checkpoints and wrappers --------------------------------------------------------------------------------

    def essence(self, state: BankState) -> BankState:
        """Essence of every member."""
        return replace(state, inner=jax.vmap(lambda model, inner: model.essence(inner))(self.model, state.inner))

    def complete(self, state: BankState) -> BankState:
        """Undo `essence`, up to rounding."""
        return replace(state, inner=jax.vmap(lambda model, inner: model.complete(inner))(self.model, state.inner))

    def rescale(self, state: BankState, units: Units) -> BankState:
        """Every member in other units, which change no weight."""
        rescaled = jax.vmap(lambda model, inner: model.rescale(inner, units))(self.model, state.inner)
        return replace(state, inner=rescaled)


def _stacked(model: Model[Any], settings: dict[str, Any]) -> Model[Any]:
    """K copies of a model as one, in which the named settings differ."""
    arrays = {name: checks.real(name, values) for name, values in settings.items()}
    sizes = {name: array.shape[:1] for name, array in arrays.items()}
    if len(set(sizes.values())) != 1 or () in sizes.values():
        raise ValueError(f"settings must each have one value for every member; got {sizes}")
    (K,) = next(iter(sizes.values()))
    stacked = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (K, *np.shape(leaf))), model)
    for name, array in arrays.items():
        stacked = eqx.tree_at(partial(_follow, path=_path(model, name)), stacked, array.astype(np.float64))
    return stacked


def _path(model: Any, name: str) -> tuple[str, ...]:
    """Where a setting is: in the innermost model that has it, so that λ is never a wrapper's own."""
    chain = [model]
    while hasattr(chain[-1], "model"):
        chain.append(chain[-1].model)
    for depth, held in reversed(list(enumerate(chain))):
        if isinstance(getattr(held, name, None), np.ndarray | np.floating | float):
            return (*["model"] * depth, name)
    raise ValueError(f"{name} must be a numeric setting of {type(chain[-1]).__name__} for its members to differ in it")


def _follow(model: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        model = getattr(model, name)
    return model
