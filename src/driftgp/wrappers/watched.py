"""A model under observation: its predictions are scored before it learns."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from driftgp.contract.records import View, part
from driftgp.models.monitor import Monitor, MonitorState
from driftgp.wrappers.holding import Holding

_LARGEST = 1e150  # largest score in a state from outside, so that its square is finite


class WatchedState(View):
    """The monitor's state and the held model's."""

    monitor: MonitorState = part(MonitorState)
    inner: Any = part()


@dataclass(frozen=True)
class Watched(Holding):
    """Hold a model, score each of its predictions before it learns from the sample, and keep a `Monitor` of the scores.

    The predictions are the held model's own.

    >>> from driftgp import AGP
    >>> model = Watched(AGP(inducing=3, window=8))
    >>> state = model.init(np.zeros((0, 1)), np.zeros(0))
    >>> model.update(state, [0.0], 1.0).monitor.scored
    1

    Args:
        model: any model.
        monitor: how it is watched, by default with a monitor's default settings.
    """

    monitor: Monitor = field(default_factory=Monitor)
    State: ClassVar[type[View]] = WatchedState

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        sizes = {"P": outputs, "lags": self.monitor.lags}
        return WatchedState.dtype(**sizes, inner=self.model.record_dtype(inputs, outputs))

    def start(self, state: WatchedState, X: np.ndarray, y: np.ndarray) -> None:
        """Start the held model; the warm-up batch is not scored."""
        self.model.start(state.inner, X, y)

    def forecast(self, state: WatchedState, X: np.ndarray) -> np.ndarray:
        """Forecast of the held model."""
        return self.model.forecast(state.inner, X)

    def joint(self, state: WatchedState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model."""
        return self.model.joint(state.inner, X)

    def learn(
        self, state: WatchedState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Score the forecast, then let the held model learn."""
        known = self.model.forecast(state.inner, x[None]) if forecast is None else forecast
        self.monitor.update(state.monitor, self.model.law(known), y)
        self.model.learn(state.inner, x, y, elapsed, known)

    def check(self, state: WatchedState) -> None:
        """Refuse a negative count and scores that are not finite."""
        monitor = state.monitor
        if monitor.scored < 0:
            raise ValueError("scored of the monitor must not be negative")
        numbers = (monitor.residual, monitor.before, monitor.mean, monitor.square, monitor.products)
        scalars = (monitor.weight, monitor.score)
        if not all(np.all(np.abs(score) < _LARGEST) for score in (*numbers, scalars)):
            raise ValueError(f"scores of the monitor must be finite, and smaller than {_LARGEST:g}")
        if min(monitor.weight, monitor.square.min()) < 0.0:
            raise ValueError("weight and square of the monitor must not be negative")
        self.model.check(state.inner)
