"""Prequential evaluation: predict each sample before learning from it, and score what was predicted."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from driftgp.base import checks, frames
from driftgp.models.model import Model, State
from driftgp.online import Online
from driftgp.predictions import Prediction

# The paper calls mean ± 2 standard deviations its 95 % interval; this is that interval's level under a normal law.
TWO_SIGMA = 0.954499736103642


class Run(NamedTuple):
    """The results of a pass over a stream.

    Attributes:
        prediction: what was predicted of each row before it was learned from, N (or N×P).
        state: after the last row.
        trace: what `watch` gave, before each row or each `every`-th; None without `watch`.

    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8)
    >>> run = prequential(model, model.init(np.zeros((0, 1)), np.zeros(0)), [[0.0], [1.0]], [0.5, 0.7])
    >>> run.prediction.mean.shape, run.trace is None
    ((2,), True)
    """

    prediction: Prediction
    state: State
    trace: Any


def prequential(
    model: Model,
    state: State,
    X: Any,
    y: Any,
    elapsed: Any = None,
    watch: Callable[[State], Any] | None = None,
    every: int = 1,
) -> Run:
    """Predict, then learn, sample after sample; the given state stays as it is.

    `driftgp.Online().evaluate(X, y)` does the same with the default model, without a state to begin with.

    >>> from driftgp import AGP
    >>> from driftgp.data import toy_stream
    >>> stream = toy_stream(seed=0)
    >>> X, y = stream.X, stream.y
    >>> model = AGP()
    >>> run = prequential(model, model.init(X[:100], y[:100]), X[100:], y[100:])
    >>> bool(mse(run.prediction, y[100:]) < 0.09)
    True

    Args:
        model: the model.
        state: a state of it.
        X: the rows, N×D, or a frame whose columns are D numbers (see `driftgp.stream.plan`).
        y: the target of each row; NaN where it is missing.
        elapsed: time since the row before, in units of a usual step, or as spans of time (`index.diff()`). Left out it
            follows from the DatetimeIndex of a frame; without one every row is one step after the one before.
        watch: a function of the state that gives a number, an array or a tuple of them. What it gives is kept.
        every: samples from one call of `watch` to the next; the first call is before the first sample.
    """
    every = checks.whole("every", every, 1)
    online = Online(model, state)
    if not hasattr(X, "columns") and np.ndim(X) == 1 and not (len(X) and isinstance(X[0], Mapping)):
        raise ValueError(f"X must have shape N×D, one row per sample; got shape {np.shape(X)}")
    if watch is None:
        prediction = online.evaluate(X, y, elapsed)
        return Run(prediction, online.state, None)
    seen: list[Any] = []
    prediction = online.evaluate_watched(X, y, elapsed, every, lambda now: seen.append(_copied(watch(now))))
    return Run(prediction, online.state, _stacked(seen))


def _copied(seen: Any) -> Any:
    """A copy of a value: arrays of a state change with the state."""
    if isinstance(seen, tuple):
        parts = [_copied(part) for part in seen]
        return type(seen)(*parts) if hasattr(seen, "_fields") else tuple(parts)
    return np.array(seen)


def _stacked(seen: list[Any]) -> Any:
    """One array for all samples, or a tuple of them."""
    if seen and isinstance(seen[0], tuple):
        parts = [_stacked(list(part)) for part in zip(*seen, strict=True)]
        return type(seen[0])(*parts) if hasattr(seen[0], "_fields") else tuple(parts)
    return np.array(seen)


# ---- scores: samples whose target is NaN do not count ----------------------------------------------------------------


def _targets(prediction: Prediction, y: ArrayLike) -> np.ndarray:
    """Targets of the predictions' shape: N×1 against N would broadcast to a score of every pair."""
    return checks.targets("y", frames.targets(y), np.shape(prediction.mean))


def _error(prediction: Prediction, y: ArrayLike) -> np.ndarray:
    return _targets(prediction, y) - np.asarray(prediction.mean)


def mse(prediction: Prediction, y: ArrayLike) -> float:
    """Mean squared error."""
    return float(np.nanmean(_error(prediction, y) ** 2))


def mae(prediction: Prediction, y: ArrayLike) -> float:
    """Mean absolute error."""
    return float(np.nanmean(np.abs(_error(prediction, y))))


def mape(prediction: Prediction, y: ArrayLike) -> float:
    """Mean absolute error as a share of the target, in per cent; targets of 0 do not count."""
    y = _targets(prediction, y)
    return 100.0 * float(np.nanmean(np.abs(_error(prediction, y)) / np.where(y == 0.0, np.nan, np.abs(y))))


def coverage(prediction: Prediction, y: ArrayLike, level: float = 0.95) -> float:
    """Share of targets inside the central interval of a level."""
    low, high = prediction.interval(level)
    y = _targets(prediction, y)
    inside = ((low <= y) & (y <= high)).astype(float)
    return float(np.nanmean(np.where(np.isnan(y), np.nan, inside)))


def width(prediction: Prediction, level: float = 0.95) -> float:
    """Mean width of the central interval of a level."""
    low, high = prediction.interval(level)
    return float(np.mean(high - low))


def nlpd(prediction: Prediction, y: ArrayLike) -> float:
    """Mean negative log predictive density."""
    return -float(np.nanmean(prediction.log_prob(_targets(prediction, y))))


def crps(prediction: Prediction, y: ArrayLike) -> float:
    """Mean continuous ranked probability score."""
    return float(np.nanmean(prediction.crps(_targets(prediction, y))))


def scores(prediction: Prediction, y: ArrayLike, level: float = 0.95) -> dict[str, float]:
    """All of the scores by name; rows whose target is NaN do not count.

    Args:
        prediction: N distributions (or N×P).
        y: the targets, in the same shape.
        level: of the interval behind "coverage" (a share) and "width" (in units of y).

    >>> from driftgp.predictions import Gaussian
    >>> prediction = Gaussian(mean=np.zeros(2), variance=np.ones(2), noise=np.ones(2))
    >>> {name: round(value, 2) for name, value in scores(prediction, [1.0, -1.0]).items()}
    {'mse': 1.0, 'mae': 1.0, 'mape': 100.0, 'coverage': 1.0, 'width': 3.92, 'nlpd': 1.42, 'crps': 0.6}
    """
    return {
        "mse": mse(prediction, y),
        "mae": mae(prediction, y),
        "mape": mape(prediction, y),
        "coverage": coverage(prediction, y, level),
        "width": width(prediction, level),
        "nlpd": nlpd(prediction, y),
        "crps": crps(prediction, y),
    }
