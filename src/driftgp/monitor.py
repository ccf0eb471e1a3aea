"""Following predictions as they are scored: is the model right, and did something just change?"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftgp import checks
from driftgp.prediction import Prediction, traced

# No alarm before so many scores: until then nobody knows what is usual.
_USUAL = 30
# A score is taken to be at most so many nats below that of the forecast's mean: one wild target is one bad score.
_WORST = 20.0
# Log scores that all but agree are taken to spread by this much (those of a normal law by 0.71).
_LEAST_SPREAD = 0.5


class MonitorState(eqx.Module):
    """What the scores have been like."""

    scored: Array  # how many predictions
    residual: Array  # P, the last (y − mean) / std
    before: Array  # lags×P, those before it, latest first
    weight: Array  # Σ γ^age
    mean: Array  # P, of the residuals
    square: Array  # P
    products: Array  # lags×P, of residuals so many samples apart
    score: Array  # mean log score of late
    usual: Array  # mean log score since the last alarm
    variance: Array  # of it
    since: Array  # scores since the last alarm
    shortfall: Array  # Page–Hinkley statistic, in standard deviations of the log score
    alarms: Array
    alarmed: Array  # `scored` at the last alarm; 0 before the first


class Monitor(eqx.Module):
    """Standardised residuals, their running mean, square and autocorrelation, and a drift alarm on the log score.

    With e = (y − mean)/std and running means of memory 1/(1 − γ), a model that is right has mean 0, square 1 and no
    autocorrelation. The alarm is Page and Hinkley's test for a fall of the log score s_t below s̄, its mean since the
    last alarm, in units of its standard deviation d:

        g ← max(0, g + (s̄ − s_t)/d − slack),   alarm if g > threshold,   then g = 0 and s̄ and d start anew

    A score counts as no lower than 20 nats below that of the forecast's own mean, and one sample for a quarter of the
    threshold at most, so that a single outlier raises no alarm. A model that is right has a false alarm in about 10⁵
    samples; errors that are suddenly twice as large raise one after about 18, three times as large after 10.

    >>> import numpy as np
    >>> from driftgp.prediction import Gaussian
    >>> monitor = Monitor()
    >>> state = monitor.init()
    >>> standard = Gaussian(np.zeros(()), np.ones(()), np.ones(()))
    >>> for y in [0.5, -1.0, 0.25]:
    ...     state = monitor.update(state, standard, y)
    >>> float(state.residual[0]), int(state.scored)
    (0.25, 3)
    """

    forgetting: Array
    slack: Array
    threshold: Array
    lags: int = eqx.field(static=True)

    def __init__(self, *, forgetting: float = 0.99, slack: float = 0.4, threshold: float = 15.0, lags: int = 1) -> None:
        """Take the settings.

        Args:
            forgetting: γ of the running means.
            slack: fall of the log score, in standard deviations, that is not worth an alarm.
            threshold: accumulated fall, in standard deviations, that raises it.
            lags: autocorrelations at 1, 2, …, lags samples.
        """
        self.forgetting = checks.between("forgetting", forgetting, 0.0, 1.0)
        self.slack = checks.between("slack", slack, 0.0, np.inf, open_low=False)
        self.threshold = checks.between("threshold", threshold, 0.0, np.inf)
        self.lags = checks.whole("lags", lags, 1)

    def init(self, columns: int = 1, dtype: Any = np.float64) -> MonitorState:
        """State before the first score, for P = `columns` outputs."""
        with jax.enable_x64(True):
            number, column = jnp.zeros((), dtype), jnp.zeros(columns, dtype)
            lagged, count = jnp.zeros((self.lags, columns), dtype), jnp.zeros((), jnp.int32)
        return MonitorState(
            scored=count,
            residual=column,
            before=lagged,
            weight=number,
            mean=column,
            square=column,
            products=lagged,
            score=number,
            usual=number,
            variance=number,
            since=count,
            shortfall=number,
            alarms=count,
            alarmed=count,
        )

    def update(self, state: MonitorState, prediction: Prediction, y: Any) -> MonitorState:
        """Score one prediction; where y is NaN there is nothing to score."""
        if traced(self, state, prediction, y):
            return _score(self, state, prediction, y)
        with jax.enable_x64(True):
            return _compiled_score(self, state, prediction, np.asarray(y, state.residual.dtype))

    def report(self, state: MonitorState) -> dict[str, Any]:
        """What the state says, in plain numbers."""
        s = jax.tree.map(np.asarray, state)
        spread = np.maximum(s.square - s.mean**2, np.finfo(s.square.dtype).tiny)
        return {
            "scored": int(s.scored),
            "residual": s.residual.tolist(),
            "residual_mean": s.mean.tolist(),
            "residual_square": s.square.tolist(),
            "autocorrelation": ((s.products - s.mean**2) / spread).tolist(),
            "log_score": float(s.score),
            "usual_log_score": float(s.usual),
            "shortfall": float(s.shortfall),
            "shortfall_for_alarm": float(self.threshold),
            "alarms": int(s.alarms),
            "since_alarm": int(s.scored - s.alarmed) if s.alarms else None,
        }


def _score(monitor: Monitor, state: MonitorState, prediction: Prediction, y: Array) -> MonitorState:
    residual = jnp.ravel((y - prediction.mean) / prediction.std)  # P
    worst = prediction.log_prob(prediction.mean) - _WORST
    score = jnp.mean(jnp.where(jnp.isnan(y), jnp.nan, jnp.maximum(prediction.log_prob(y), worst)))
    before = jnp.concatenate([state.residual[None], state.before[:-1]])  # lags×P
    weight = monitor.forgetting * state.weight + 1.0

    def towards(old: Array, new: Array) -> Array:
        return old + (new - old) / weight

    updated = MonitorState(
        scored=state.scored + 1,
        residual=residual,
        before=before,
        weight=weight,
        mean=towards(state.mean, residual),
        square=towards(state.square, residual**2),
        products=towards(state.products, residual * before),
        score=towards(state.score, score),
        **_test(monitor, state, score),
    )
    scored = jnp.isfinite(score)  # not where y is missing
    return jax.tree.map(lambda new, old: jnp.where(scored, new.astype(old.dtype), old), updated, state)


def _test(monitor: Monitor, state: MonitorState, score: Array) -> dict[str, Array]:
    """One step of Page and Hinkley's test."""
    most = monitor.threshold / 4.0
    since = state.since + 1
    fall = jnp.where(state.since > 0, state.usual - score, 0.0)
    standardised = jnp.clip(fall / jnp.maximum(jnp.sqrt(state.variance), _LEAST_SPREAD), -most, most)
    shortfall = jnp.where(since > _USUAL, jnp.maximum(state.shortfall + standardised - monitor.slack, 0.0), 0.0)
    alarm = shortfall > monitor.threshold
    return {
        "usual": jnp.where(state.since > 0, state.usual - fall / since, score),
        "variance": jnp.where(state.since > 0, (1.0 - 1.0 / since) * (state.variance + fall**2 / since), 0.0),
        "since": jnp.where(alarm, 0, since),
        "shortfall": jnp.where(alarm, 0.0, shortfall),
        "alarms": state.alarms + alarm,
        "alarmed": jnp.where(alarm, state.scored + 1, state.alarmed),
    }


_compiled_score = jax.jit(_score)
