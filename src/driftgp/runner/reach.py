"""How far intervals must reach to hold their share of the targets: what the model says, corrected by what came.

A model counts its samples as independent, and takes its noise and kernel for the right ones. Twenty-four hours of one
weather are not twenty-four samples, and a forecast a day ahead is wrong all day: its intervals are too narrow. So each
interval is stretched about its mean by a factor c, which an integral controller (adaptive conformal inference: Gibbs
and Candès, 2021) sets by the intervals whose targets have come:

    log c ← log c + γ ([target outside] − (1 − level))

Summed over n targets, the share outside differs from 1 − level by (change of log c) / (γ n), whatever the stream does,
as long as c is within its limits. Forecasts are judged as they were given out, `horizon` rows before their target.
"""

import math
from collections import deque
from statistics import NormalDist
from typing import Any

from driftgp.runner.loop import Forecast
from driftgp.runner.stored import number, numbers

_RATE = 0.005  # one over the controller's time constant, in targets
_LIMIT = math.log(100.0)  # of |log c|: a stretch without a single miss (or hit) must be over soon


class Reach:
    """The factor c of one series.

    >>> reach = Reach(level=0.95, horizon=1)
    >>> forecast = Forecast(mean=0.0, low=-1.0, high=1.0, log_density=0.0, alarms=0.0)
    >>> _ = reach.stretch(forecast, actual=5.0)
    >>> reach.stretch(forecast, actual=0.5).high > 1.0
    True
    """

    def __init__(self, level: float, horizon: int) -> None:
        """Start with the model's word."""
        self._level, self._horizon = level, horizon
        self._z = NormalDist().inv_cdf(0.5 * (1.0 + level))
        self._gain = _RATE / (2.0 * self._z * NormalDist().pdf(self._z))  # all levels have one time constant
        self._log_c = 0.0
        self._waiting: deque[float] = deque()  # scores of forecasts whose targets are not out yet

    @property
    def factor(self) -> float:
        """c, as it is now."""
        return math.exp(self._log_c)

    def stretch(self, forecast: Forecast, actual: float) -> Forecast:
        """Stretch the forecast of a row; its own target, or NaN, counts when it is out."""
        if len(self._waiting) == self._horizon:
            self._learn(self._waiting.popleft())
        score = _score(forecast, actual)
        self._waiting.append(score)
        c = self.factor
        z = self._z * score
        return forecast._replace(
            low=forecast.mean - c * (forecast.mean - forecast.low),
            high=forecast.mean + c * (forecast.high - forecast.mean),
            # the normal density of c times the width
            log_density=forecast.log_density + 0.5 * z * z * (1.0 - 1.0 / (c * c)) - self._log_c,
        )

    def _learn(self, score: float) -> None:
        if math.isnan(score):
            return
        outside = score > self.factor
        moved = self._log_c + self._gain * (outside - (1.0 - self._level))
        self._log_c = min(max(moved, -_LIMIT), _LIMIT)

    def to_json(self) -> dict[str, Any]:
        """The controller, as JSON holds it."""
        return {"log_c": self._log_c, "waiting": list(self._waiting)}

    def restore(self, stored: dict[str, Any]) -> None:
        """Take back what `to_json` gave."""
        log_c = number(stored["log_c"])
        self._log_c = min(max(log_c, -_LIMIT), _LIMIT)
        self._waiting.extend(numbers(stored["waiting"])[-self._horizon :])


def _score(forecast: Forecast, actual: float) -> float:
    """Distance of a target from the mean, as a share of the way to the interval's end; NaN where either is missing."""
    error = actual - forecast.mean
    way = forecast.high - forecast.mean if error > 0.0 else forecast.mean - forecast.low
    return abs(error) / way if way > 0.0 else math.nan
