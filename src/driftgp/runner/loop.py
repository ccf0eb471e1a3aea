"""The compiled loop of a run: learn from the label that has come, then predict the next row.

It takes any number of steps up to `CAPACITY` in arrays of that fixed size and turns as many times as there are steps.
So one compiled program does all the work, and how rows are cut into blocks cannot change a bit of what comes out.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from driftgp.compiling import compile_outer, in_one_piece, small
from driftgp.wrappers import Watched
from driftgp.wrappers.watched import WatchedState

CAPACITY = 128


class Step(NamedTuple):
    """A sample to learn from, and a row to predict afterwards."""

    x_learn: Any  # D
    y_learn: Any
    elapsed: Any
    x: Any  # D
    y: Any  # for the log density alone


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
    loop = _whole_loop if small(state, light=model.light) else _compiled_loop
    for start in range(0, len(steps), CAPACITY):
        block = steps[start : start + CAPACITY]
        with jax.enable_x64(True):
            state, values = loop(model, state, len(block), *map(_padded, zip(*block, strict=True)), level=level)
        forecasts += [Forecast(*row) for row in np.asarray(values)[: len(block)].tolist()]
    return state, forecasts


def _padded(values: tuple[Any, ...]) -> np.ndarray:
    rows = np.asarray(values, np.float64)
    padded = np.zeros((CAPACITY, *rows.shape[1:]))
    padded[: len(rows)] = rows
    return padded


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
    whole: Callable[..., Any] = lambda step: step,
) -> tuple[WatchedState, Array]:
    @whole
    def step(model: Watched, state: WatchedState, i: Array, rows: Step) -> tuple[WatchedState, Array]:
        return follow(model, state, jax.tree.map(lambda array: array[i], rows), level)

    def turn(i: Array, carry: tuple[WatchedState, Array]) -> tuple[WatchedState, Array]:
        state, values = carry
        state, numbers = step(model, state, i, Step(X_learn, y_learn, elapsed, X, y))
        return state, values.at[i].set(numbers)

    return lax.fori_loop(0, count, turn, (state, jnp.zeros((CAPACITY, len(Forecast._fields)), X.dtype)))


def follow(model: Watched, state: WatchedState, row: Step, level: Any) -> tuple[WatchedState, Array]:
    """One step: learn from the label that has come, then predict, as the numbers of a `Forecast`."""
    state = model.update(state, row.x_learn, row.y_learn, row.elapsed)
    prediction = model.predict(state, row.x[None])
    low, high = prediction.interval(level)
    numbers = (prediction.mean, low, high, prediction.log_prob(row.y[None]), state.monitor.alarms[None])
    return state, jnp.concatenate([jnp.asarray(number, row.x.dtype) for number in numbers])


_compiled_loop = compile_outer(_loop, static_argnames="level")
_whole_loop = compile_outer(partial(_loop, whole=in_one_piece), whole=True, static_argnames="level")
