"""Following predictions as they are scored: are the residuals those of a model that is right?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.base import checks
from driftgp.contract.records import View, floats, number, whole
from driftgp.predictions import Prediction

# A score counts as at most this many nats below that of the forecast's mean, so that one wild target is one bad score.
_WORST = 20.0
# A residual counts as at most this many standard deviations.
_FARTHEST = 1e6
_LARGEST = 1e150  # largest score in a state from outside, so that its square is finite


class MonitorState(View):
    """Running means of the scores."""

    scored: int = whole()  # how many predictions
    residual: np.ndarray = floats("P", low=-_LARGEST, high=_LARGEST)  # the last (y − mean) / std
    before: np.ndarray = floats("lags", "P", low=-_LARGEST, high=_LARGEST)  # those before it, latest first
    weight: float = number(low=0.0, high=_LARGEST)  # Σ γ^age
    mean: np.ndarray = floats("P", low=-_LARGEST, high=_LARGEST)  # of the residuals
    square: np.ndarray = floats("P", low=0.0, high=_LARGEST)
    products: np.ndarray = floats("lags", "P", low=-_LARGEST, high=_LARGEST)  # of residuals at each distance in samples
    score: float = number(low=-_LARGEST, high=_LARGEST)  # recent mean log score


@dataclass(frozen=True)
class Monitor:
    """Standardised residuals, and their running mean, square, autocorrelation and log score.

    With e = (y − mean)/std and running means of memory 1/(1 − γ), a model that is right has mean 0, square 1 and no
    autocorrelation. A log score counts as no lower than 20 nats below that of the forecast's own mean, so that a single
    outlier does not hide all others. To find changes, use `driftgp.alarms`.

    >>> from driftgp.predictions import Gaussian
    >>> monitor = Monitor()
    >>> state = monitor.init()
    >>> standard = Gaussian(np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    >>> for y in [0.5, -1.0, 0.25]:
    ...     monitor.update(state, standard, np.array([y]))
    >>> float(state.residual[0]), state.scored
    (0.25, 3)

    Args:
        forgetting: γ of the running means.
        lags: autocorrelations at 1, 2, …, lags samples.
    """

    forgetting: float = 0.99
    lags: int = 1

    def __post_init__(self) -> None:
        """Check the settings."""
        checks.between("forgetting", self.forgetting, 0.0, 1.0)
        checks.whole("lags", self.lags, 1)

    def init(self, outputs: int = 1) -> MonitorState:
        """State before the first score."""
        return MonitorState.empty(P=outputs, lags=self.lags)

    def update(self, state: MonitorState, prediction: Prediction, y: np.ndarray) -> None:
        """Score one prediction (1×P); where y (P) is NaN there is nothing to score."""
        worst = prediction.log_prob(prediction.mean)[0] - _WORST
        score = float(np.mean(np.maximum(prediction.log_prob(y)[0], worst)))
        if not np.isfinite(score):
            return
        residual = np.clip((y - prediction.mean[0]) / prediction.std[0], -_FARTHEST, _FARTHEST)  # P
        state.before[...] = np.concatenate([state.residual[None], state.before[:-1]])
        state.residual[...] = residual
        state.weight = weight = self.forgetting * state.weight + 1.0
        state.mean += (residual - state.mean) / weight
        state.square += (residual**2 - state.square) / weight
        state.products += (residual * state.before - state.products) / weight
        state.score += (score - state.score) / weight
        state.scored += 1

    def report(self, state: MonitorState) -> dict[str, Any]:
        """What the state says, in plain numbers."""
        spread = np.maximum(state.square - state.mean**2, np.finfo(float).tiny)
        return {
            "scored": state.scored,
            "residual": state.residual.tolist(),
            "residual_mean": state.mean.tolist(),
            "residual_square": state.square.tolist(),
            "autocorrelation": ((state.products - state.mean**2) / spread).tolist(),
            "log_score": state.score,
        }
