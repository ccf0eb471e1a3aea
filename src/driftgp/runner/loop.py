"""The compiled loop of a run: learn from the label that has come, then predict the next row.

It takes any number of steps up to `CAPACITY` in arrays of that fixed size and turns as many times as there are steps.
So one compiled program does all the work, and how rows are cut into blocks cannot change a bit of what comes out.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from driftgp.loops import compile_outer
from driftgp.wrappers import Watched
from driftgp.wrappers.watched import WatchedState

CAPACITY = 128


class Step(NamedTuple):
    """A sample to learn from, and a row to predict afterwards."""

    x_learn: Any  # D
    y_learn: float
    elapsed: float
    x: Any  # D
    y: float  # for the log density alone


class Forecast(NamedTuple):
    """What was predicted for a row."""

    mean: float
    low: float
    high: float
    log_density: float  # of what came
    alarms: float  # of the monitor, so far


def advance(model: Watched, state: Any, steps: list[Step], level: float) -> tuple[Any, list[Forecast]]:
    """Take the steps one after another."""
    forecasts: list[Forecast] = []
    for start in range(0, len(steps), CAPACITY):
        block = steps[start : start + CAPACITY]
        with jax.enable_x64(True):
            state, values = _loop(model, state, len(block), *map(_padded, zip(*block, strict=True)), level=level)
        forecasts += [Forecast(*row) for row in np.asarray(values)[: len(block)].tolist()]
    return state, forecasts


def _padded(values: tuple[Any, ...]) -> np.ndarray:
    rows = np.asarray(values, np.float64)
    padded = np.zeros((CAPACITY, *rows.shape[1:]))
    padded[: len(rows)] = rows
    return padded


@partial(compile_outer, static_argnames="level")
def _loop(
    model: Watched,
    state: WatchedState,
    count: Array,
    X_learn: Array,
    y_learn: Array,
    elapsed: Array,
    X: Array,
    y: Array,
    level: float,
) -> tuple[WatchedState, Array]:
    def turn(i: Array, carry: tuple[WatchedState, Array]) -> tuple[WatchedState, Array]:
        state, values = carry
        state = model.update(state, X_learn[i], y_learn[i], elapsed[i])
        prediction = model.predict(state, X[i][None])
        low, high = prediction.interval(level)
        numbers = (prediction.mean, low, high, prediction.log_prob(y[i][None]), state.monitor.alarms[None])
        return state, values.at[i].set(jnp.concatenate([jnp.asarray(number, values.dtype) for number in numbers]))

    return lax.fori_loop(0, count, turn, (state, jnp.zeros((CAPACITY, len(Forecast._fields)), X.dtype)))
