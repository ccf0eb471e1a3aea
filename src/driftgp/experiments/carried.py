"""AGP as the published load and sales runs had it: Adam's averages go on from the warm-up.

The paper and the published toy runs start Adam afresh at every sample, so that a step is ±rate in every logarithm. The
figures of the load and sales tables come from runs in which the hyperparameters kept the optimiser of the warm-up: its
averages still hold the large gradients of the first iterations, and the steps are shorter. Only the position of the
newest inducing point, a parameter that did not exist before, starts afresh.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import optax
from jax import Array

from driftgp import learning
from driftgp.agp import AGP, AGPState
from driftgp.learning import Hyperparameters
from driftgp.model import Layout, Model
from driftgp.prediction import Prediction

RATE = 0.05
WARMUP = 200  # iterations


@lru_cache
def adam_for_old_parameters(rate: float) -> optax.GradientTransformation:
    """Adam on as many parameters as its state has averages for, and a first step of Adam on those behind them."""
    adam = optax.scale_by_adam()

    def update(gradient: Array, state: Any, _: Any = None) -> tuple[Array, Any]:
        old = state.mu.shape[0]
        move, state = adam.update(gradient[:old], state)
        fresh, _ = adam.update(gradient[old:], adam.init(gradient[old:]))
        return -rate * jnp.concatenate([move, fresh]), state

    return optax.GradientTransformation(adam.init, update)


class CarriedAGP(Model[AGPState]):
    """An AGP that starts from the averages of its warm-up."""

    model: AGP

    def __init__(self, **options: Any) -> None:
        """Take the settings of AGP, apart from those of its optimiser."""
        self.model = AGP(**options, optimizer=adam_for_old_parameters(RATE), restart=False, warmup_iterations=0)

    def start(self, layout: Layout, X: Array, y: Array) -> AGPState:
        """Warm up from where the model starts, and keep the averages."""
        begin = self.model.start(layout, X, y)

        def objective(h: Hyperparameters, _: Any) -> Array:
            return self.model.objective(h, begin.points, begin.window)

        adam = adam_for_old_parameters(RATE)
        h = begin.hyperparameters
        climb = learning.ascend(objective, h, (), adam, learning.begin(adam, h), WARMUP)
        found = (climb.positive.kernel, climb.positive.noise)
        warm = eqx.tree_at(lambda model: (model.kernel, model.noise), self.model, found).start(layout, X, y)
        return replace(warm, optimizer=climb.optimizer, skipped=climb.skipped)

    def forecast(self, state: AGPState, X: Array) -> Prediction:
        """Forecast as AGP does."""
        return self.model.forecast(state, X)

    def learn(self, state: AGPState, x: Array, y: Array, elapsed: Array) -> AGPState:
        """Learn as AGP does."""
        return self.model.learn(state, x, y, elapsed)
