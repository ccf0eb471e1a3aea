"""A model under observation: its predictions are scored before it learns."""

from dataclasses import replace
from typing import Any

import equinox as eqx
from jax import Array

from driftgp.model import Layout, Model, Units
from driftgp.monitor import Monitor, MonitorState
from driftgp.prediction import Prediction
from driftgp.wrappers.holding import Holding, HoldingState


class WatchedState(HoldingState):
    """The held model's state and the monitor's."""

    inner: Any
    monitor: MonitorState
    layout: Layout = eqx.field(static=True)


class Watched(Holding[WatchedState]):
    """Hold a model, score each of its predictions before it learns from the sample, and keep a `Monitor` of the scores.

    The predictions are the held model's own. In a prequential loop the one that is scored is the one just made, and the
    compiler computes it once.

    >>> import numpy as np
    >>> from driftgp import AGP
    >>> from driftgp.diagnostics import describe
    >>> model = Watched(AGP(inducing=3, window=8))
    >>> state = model.init(np.zeros((0, 1)), np.zeros(0))
    >>> state = model.update(state, [0.0], 1.0)
    >>> describe(model, state)["scored"]
    1
    """

    model: Model[Any]
    monitor: Monitor

    def __init__(self, model: Model[Any], monitor: Monitor | None = None) -> None:
        """Hold a model and watch it with a monitor, by default one with its default settings."""
        self.model = model
        self.monitor = Monitor() if monitor is None else monitor

    def start(self, layout: Layout, X: Array, y: Array) -> WatchedState:
        """Start the held model; the warm-up batch is not scored."""
        inner = self.model.start(layout, X, y)
        return WatchedState(inner=inner, monitor=self.monitor.init(layout.columns, layout.dtype), layout=layout)

    def forecast(self, state: WatchedState, X: Array) -> Prediction:
        """Forecast of the held model."""
        return self.model.forecast(state.inner, X)

    def learn(self, state: WatchedState, x: Array, y: Array, elapsed: Array) -> WatchedState:
        """Score the forecast, then let the held model learn."""
        monitor = self.monitor.update(state.monitor, self.model.forecast(state.inner, x[None]), y)
        return replace(state, inner=self.model.learn(state.inner, x, y, elapsed), monitor=monitor)

    def rescale(self, state: WatchedState, units: Units) -> WatchedState:
        """Residuals have no units; the held model has."""
        return replace(state, inner=self.model.rescale(state.inner, units))
