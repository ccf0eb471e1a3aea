"""A model on a stream: one pass, and how long a sample takes."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from driftgp.data import Stream
from driftgp.evaluate import Run, prequential
from driftgp.models.model import Model, State
from driftgp.online import Online

T = TypeVar("T")
Watch = Callable[[State], Any]

# The quickest of several passes, since other work on the machine can only slow a pass down. Slow models get fewer.
MOST_PASSES = 15
ENOUGH_SECONDS = 2.0


def warm_up(model: Model, stream: Stream) -> State:
    """State after the warm-up samples of a stream."""
    return model.init(stream.X[: stream.warmup], stream.y[: stream.warmup])


def follow(model: Model, state: State, stream: Stream, watch: Watch | None = None) -> Run:
    """Predict and learn from the samples after the warm-up, one step ahead."""
    online = slice(stream.warmup, None)
    return prequential(model, state, stream.X[online], stream.y[online], stream.elapsed[online], watch)


def microseconds_per_step(model: Model, state: State, stream: Stream) -> float:
    """Time of a sample among all of them in one call, predicting and learning."""
    return _least_microseconds(lambda: None, lambda _: follow(model, state, stream), stream.online)


def microseconds_per_call(model: Model, state: State, stream: Stream) -> float:
    """Time of a sample that is handed in by itself: one call to predict and one to update."""
    samples = list(zip(stream.X[stream.warmup :], stream.y[stream.warmup :], strict=True))

    def one_by_one(online: Online) -> None:
        for x, y in samples:
            online.predict(x)
            online.update(x, y)

    return _least_microseconds(lambda: Online(model, state), one_by_one, stream.online)


def inducing_in_use(state: State) -> float:
    """Inducing points of a state, NaN for a model without them."""
    points = getattr(state, "points", None)
    return float("nan") if points is None else float(np.sum(getattr(points, "used", points)))  # a rival has a mask


def _least_microseconds(begin: Callable[[], T], run: Callable[[T], object], samples: int) -> float:
    """Time of `run` for one of its samples; what it starts from is made by `begin`, untimed."""
    run(begin())  # a rival in JAX is compiled by now
    seconds: list[float] = []
    while not seconds or (len(seconds) < MOST_PASSES and sum(seconds) < ENOUGH_SECONDS):
        beginning = begin()
        start = time.perf_counter()
        run(beginning)
        seconds.append(time.perf_counter() - start)
    return 1e6 * min(seconds) / samples
