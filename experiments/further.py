"""A trial: gradient steps beyond AGP's own, at every sample or only when errors say that the stream has turned."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.contract.records import View, number, part
from driftgp.gp.agp import AGP
from driftgp.gp.bound import NoFactor
from driftgp.gp.learning import Adam, moved
from driftgp.gp.objective import Jitter, Objective
from driftgp.gp.state import AGPState
from driftgp.wrappers.holding import Transparent

_MEMORY = 0.9  # of the mean of squared errors, in units of the variances that were predicted
_RATE = 0.05


class FurtherState(View):
    """The recent size of AGP's errors, and AGP's state."""

    surprise: float = number()  # mean of z²; 1 if the model is right
    inner: Any = part()


@dataclass(frozen=True)
class Further(Transparent):
    """AGP with a published step more: of the hyperparameters, and of all inducing points if `points`.

    Args:
        model: an AGP with a window.
        above: the recent mean of z² above which the step is taken.
        points: whether the inducing points move too.
    """

    model: AGP
    above: float = 0.0
    points: bool = False
    State: ClassVar[type[View]] = FurtherState

    def start(self, state: FurtherState, X: np.ndarray, y: np.ndarray) -> None:
        """Start the model."""
        state.surprise = 1.0
        self.model.start(state.inner, X, y)

    def learn(
        self, state: FurtherState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Learn as AGP does, then take the further step if it is due."""
        p = self.heard(state, x, forecast)
        z2 = float(np.mean((y - p["mean"][0]) ** 2 / p["variance"][0]))
        self.model.learn(state.inner, x, y, elapsed, p)
        if np.isfinite(z2):
            state.surprise = _MEMORY * state.surprise + (1.0 - _MEMORY) * z2
            if state.surprise > self.above:
                self._step(state.inner)

    def _step(self, state: AGPState) -> None:
        agp, U, H = self.model, state.U[: state.points].copy(), len(state.theta)
        noise = np.broadcast_to(agp.noise, state.noise.shape)
        objective = Objective(agp.kernel, noise, Jitter(agp.jitter, agp.absolute_jitter), prior=None)  # of F alone
        slope = objective.slope(state.theta, state.noise, U, state.samples_in_window)
        if slope is None:
            state.skipped += 1
            return
        before = state.record.copy()
        move = _adam(slope.hyperparameters)
        state.theta[...], state.noise[...] = moved(state.theta, move[:H]), moved(state.noise, move[H:])
        if self.points:
            state.U[: state.points] += _adam(slope.inputs(slice(None)).reshape(-1)).reshape(U.shape)
        try:
            agp.complete(state)
        except NoFactor:  # as in AGP: what was known stays
            state.record[...] = before
            state.skipped += 1


def _adam(gradient: np.ndarray) -> np.ndarray:
    """The first step of Adam uphill."""
    return Adam.begin(gradient.size).step(gradient, _RATE)[0]
