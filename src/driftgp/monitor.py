"""Following predictions as they are scored: is the model right, and did something just change?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp import checks
from driftgp.predictions import Prediction
from driftgp.records import View, floats, number, whole

# No alarm before so many scores: until then nobody knows what is usual.
_USUAL = 30
# A score is taken to be at most so many nats below that of the forecast's mean: one wild target is one bad score.
_WORST = 20.0
# A residual counts as at most so many standard deviations.
_FARTHEST = 1e6
# Log scores that all but agree are taken to spread by this much (those of a normal law by 0.71).
_LEAST_SPREAD = 0.5


class MonitorState(View):
    """What the scores have been like."""

    scored: int = whole()  # how many predictions
    residual: np.ndarray = floats("P")  # the last (y − mean) / std
    before: np.ndarray = floats("lags", "P")  # those before it, latest first
    weight: float = number()  # Σ γ^age
    mean: np.ndarray = floats("P")  # of the residuals
    square: np.ndarray = floats("P")
    products: np.ndarray = floats("lags", "P")  # of residuals so many samples apart
    score: float = number()  # mean log score of late
    usual: float = number()  # mean log score since the last alarm
    variance: float = number()  # of it
    since: int = whole()  # scores since the last alarm
    shortfall: float = number()  # Page–Hinkley statistic, in standard deviations of the log score
    alarms: int = whole()
    alarmed: int = whole()  # `scored` at the last alarm; 0 before the first


@dataclass(frozen=True)
class Monitor:
    """Standardised residuals, their running mean, square and autocorrelation, and a drift alarm on the log score.

    With e = (y − mean)/std and running means of memory 1/(1 − γ), a model that is right has mean 0, square 1 and no
    autocorrelation. The alarm is Page and Hinkley's test for a fall of the log score s_t below s̄, its mean since the
    last alarm, in units of its standard deviation d:

        g ← max(0, g + (s̄ − s_t)/d − slack),   alarm if g > threshold,   then g = 0 and s̄ and d start anew

    A score counts as no lower than 20 nats below that of the forecast's own mean, and one sample for a quarter of the
    threshold at most, so that a single outlier raises no alarm. A model that is right has a false alarm in about 10⁵
    samples; errors that are suddenly twice as large raise one after about 18, three times as large after 10.

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
        slack: fall of the log score, in standard deviations, that is not worth an alarm.
        threshold: accumulated fall, in standard deviations, that raises it.
        lags: autocorrelations at 1, 2, …, lags samples.
    """

    forgetting: float = 0.99
    slack: float = 0.4
    threshold: float = 15.0
    lags: int = 1

    def __post_init__(self) -> None:
        """Check the settings."""
        checks.between("forgetting", self.forgetting, 0.0, 1.0)
        checks.between("slack", self.slack, 0.0, np.inf, open_low=False)
        checks.between("threshold", self.threshold, 0.0, np.inf)
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
        self._test(state, score)

    def _test(self, state: MonitorState, score: float) -> None:
        """One step of Page and Hinkley's test."""
        most = self.threshold / 4.0
        since = state.since + 1
        fall = state.usual - score if state.since > 0 else 0.0
        standardised = min(max(fall / max(state.variance**0.5, _LEAST_SPREAD), -most), most)
        shortfall = max(state.shortfall + standardised - self.slack, 0.0) if since > _USUAL else 0.0
        state.usual = state.usual - fall / since if since > 1 else score
        state.variance = (1.0 - 1.0 / since) * (state.variance + fall * fall / since) if since > 1 else 0.0
        alarm = shortfall > self.threshold
        state.since, state.shortfall = (0, 0.0) if alarm else (since, shortfall)
        if alarm:
            state.alarms, state.alarmed = state.alarms + 1, state.scored

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
            "usual_log_score": state.usual,
            "shortfall": state.shortfall,
            "shortfall_for_alarm": self.threshold,
            "alarms": state.alarms,
            "since_alarm": state.scored - state.alarmed if state.alarms else None,
        }
