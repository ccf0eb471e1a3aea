"""The models that are measured, and the two ways to run one: call by call, and as a whole stream."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.process import Row
from benchmarks.streams import Size
from benchmarks.timing import Run, timed
from driftgp import AGP, Online, prequential
from driftgp.data import Stream
from driftgp.defaults import Effort, recommended
from driftgp.models.model import Model, State

HYBRID = 10  # samples from one gradient step of the hybrid to the next, as the paper suggests
EVERY = {"AGP": 1, "hybrid": HYBRID, "fast-AGP": 0}
MOST_CALLS = 500  # samples handed in one by one in a run

# ---- models ----------------------------------------------------------------------------------------------------------


def agp(name: str, size: Size, **options: Any) -> AGP:
    """AGP, the hybrid or fast-AGP with the library's defaults."""
    return AGP(inducing=size.M, window=size.T, learn_every=EVERY[name], **options)


def default(stream: Stream, effort: Effort = "medium") -> Model:
    """The default model that the warm-up of a stream chooses."""
    return recommended(stream.X[: stream.warmup], stream.y[: stream.warmup], effort=effort)


# ---- streams ---------------------------------------------------------------------------------------------------------


def warm(model: Model, stream: Stream) -> State:
    """State after the warm-up."""
    return model.init(stream.X[: stream.warmup], stream.y[: stream.warmup])


def after(stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """The samples after the warm-up."""
    return stream.X[stream.warmup :], stream.y[stream.warmup :]


def standardised(stream: Stream) -> Stream:
    """The same stream in units of its warm-up, as the default model hands it to its members."""
    X, y = stream.X[: stream.warmup], stream.y[: stream.warmup]
    return Stream(
        stream.name, X=(stream.X - X.mean(0)) / X.std(0), y=(stream.y - y.mean()) / y.std(), warmup=stream.warmup
    )


# ---- ways to run -----------------------------------------------------------------------------------------------------

Clock = Callable[[], float]


def in_stream(
    models: Sequence[Model], states: Sequence[State], stream: Stream, clock: Clock = time.process_time
) -> Run:
    """`prequential` over all samples after the warm-up, by each of the models."""
    X, y = after(stream)

    def follow() -> None:
        for model, state in zip(models, states, strict=True):
            prequential(model, state, X, y)

    return lambda: timed(len(y), follow, clock)


def by_calls(models: Sequence[Model], states: Sequence[State], stream: Stream, level: float | None = None) -> Run:
    """One call to predict and one to update for each sample, and each of the models; with an interval if so asked."""
    X, y = after(stream)
    handed = list(zip(X[:MOST_CALLS], y[:MOST_CALLS], strict=True))

    def run() -> float:
        at_work = [Online(model, state) for model, state in zip(models, states, strict=True)]

        def follow() -> None:
            for x, target in handed:
                for online in at_work:
                    online.predict(x)
                    online.update(x, target)

        def follow_with_intervals() -> None:
            for x, target in handed:
                for online in at_work:
                    online.predict(x).interval(level or 0.95)
                    online.update(x, target)

        return timed(len(handed), follow if level is None else follow_with_intervals)

    return run


def rows_of(measured: dict[tuple[str, str], list[float]], size: Size, **notes: Any) -> list[Row]:
    """Rows of the measurements at one size."""
    return [
        {"name": name, "how": how, "M": size.M, "T": size.T, "D": size.D, "microseconds": values} | notes
        for (name, how), values in measured.items()
    ]
