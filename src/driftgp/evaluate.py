"""Prequential evaluation: predict each sample before learning from it, and score what was predicted."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from driftgp import checks, compiling, loops
from driftgp.compiling import compile_outer, small
from driftgp.model import Model, State, checked_rows, follow
from driftgp.prediction import Prediction

S = TypeVar("S", bound=State)

# The paper calls mean ± 2 standard deviations its 95 % interval; this is that interval's level under a normal law.
TWO_SIGMA = 0.954499736103642


class Run(NamedTuple):
    """What a pass over a stream gave."""

    prediction: Prediction  # one step ahead, N (or N×P)
    state: Any  # after the last sample
    trace: Any  # what `watch` saw before each sample


def prequential(
    model: Model[S],
    state: S,
    X: ArrayLike,
    y: ArrayLike,
    elapsed: ArrayLike = 1.0,
    watch: Callable[[S], Any] | None = None,
) -> Run:
    """Predict, then learn, sample after sample, in one compiled loop.

    `watch` is a function of the state whose value is kept for every sample; give a named function rather than a new
    lambda each time, or each time is compiled anew.

    >>> from driftgp import AGP
    >>> from driftgp.data import toy_stream
    >>> stream = toy_stream(seed=0)
    >>> X, y = stream.X, stream.y
    >>> model = AGP()
    >>> run = prequential(model, model.init(X[:100], y[:100]), X[100:], y[100:])
    >>> bool(mse(run.prediction, y[100:]) < 0.09)
    True
    """
    X = checks.inputs("X", X, state.layout.inputs, gaps=state.layout.gaps)
    rows = checked_rows(state.layout, X, y, elapsed)
    with jax.enable_x64(True):
        loop = _whole if small(state, light=model.light) else _compiled
        prediction, state, trace = loop(model, state, *rows, watch=watch)
    return Run(jax.tree.map(np.asarray, prediction), state, jax.tree.map(np.asarray, trace))


def scan(
    model: Model[S],
    state: S,
    X: Array,
    y: Array,
    elapsed: Array,
    watch: Callable[[S], Any] | None = None,
    loop: Callable[..., Any] = loops.scan,
) -> Run:
    """Do what `prequential` does, as a pure function for use inside jit and vmap.

    A program that is compiled as a whole may hand in `compiling.scan` as its loop.
    """
    followed = follow(model, state, X, y, elapsed) if watch is None else None
    if followed is not None:
        return Run(*followed, None)

    def predict_and_learn(
        model: Model[S], state: S, row: tuple[Array, Array, Array]
    ) -> tuple[S, tuple[Prediction, Any]]:
        x, y, elapsed = row
        prediction = jax.tree.map(lambda value: value[0], model.predict(state, x[None]))
        seen = None if watch is None else watch(state)
        return model.update(state, x, y, elapsed), (prediction, seen)

    state, (prediction, trace) = loop(predict_and_learn, model, state, (X, y, elapsed))
    return Run(prediction, state, trace)


_compiled = compile_outer(scan, static_argnames="watch")
_whole = compile_outer(partial(scan, loop=compiling.scan), whole=True, static_argnames="watch")


# ---- scores: samples whose target is NaN do not count ----------------------------------------------------------------


def _targets(prediction: Prediction, y: ArrayLike) -> np.ndarray:
    """Targets of the predictions' shape: N×1 against N would broadcast to a score of every pair."""
    return checks.targets("y", y, np.shape(prediction.mean))


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
    """All of the scores by name."""
    return {
        "mse": mse(prediction, y),
        "mae": mae(prediction, y),
        "mape": mape(prediction, y),
        "coverage": coverage(prediction, y, level),
        "width": width(prediction, level),
        "nlpd": nlpd(prediction, y),
        "crps": crps(prediction, y),
    }
