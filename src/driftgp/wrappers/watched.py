"""A model under observation: its predictions are scored before it learns."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from driftgp.contract.records import View, part
from driftgp.models.monitor import Monitor, MonitorState
from driftgp.wrappers.holding import Transparent


class WatchedState(View):
    """The monitor's state and the held model's."""

    monitor: MonitorState = part(MonitorState)
    inner: Any = part()


@dataclass(frozen=True)
class Watched(Transparent):
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

    def sizes(self, inputs: int, outputs: int) -> dict[str, int]:  # noqa: ARG002
        """The sizes of the monitor."""
        return {"P": outputs, "lags": self.monitor.lags}

    def learn(
        self, state: WatchedState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Score the forecast, then let the held model learn."""
        known = self.heard(state, x, forecast)
        self.monitor.update(state.monitor, self.model.law(known), y)
        self.model.learn(state.inner, x, y, elapsed, known)
