"""A table of methods: each on the same streams, one step ahead, scored and timed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftgp import evaluate
from driftgp.data import Stream
from driftgp.demo import measure
from driftgp.evaluate import Run
from driftgp.models.model import Model

Report = Callable[[str], None]


class Method(NamedTuple):
    """A model under the name that tables give it, and what to keep of its states on the first stream."""

    name: str
    model: Model
    watch: measure.Watch | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    method: str
    mse: float
    coverage: float  # share of samples within mean ± 2 standard deviations
    nlpd: float
    us_per_step: float  # all samples in one call
    us_per_call: float  # sample by sample
    inducing: float  # points in use after the last sample, NaN for a model without


class Result(NamedTuple):
    """What one method gave: its line of the table, and its run on every stream."""

    row: Row
    runs: list[Run]


def steps(methods: Sequence[Method], streams: Sequence[Stream]) -> int:
    """How often `compare` reports: after every run, and after every method's timing."""
    return len(methods) * (len(streams) + 1)


def compare(methods: Sequence[Method], streams: Sequence[Stream], report: Report) -> dict[str, Result]:
    """Run every method on every stream; `report` is called after each, with its name."""
    return {method.name: _result(method, streams, report) for method in methods}


def _result(method: Method, streams: Sequence[Stream], report: Report) -> Result:
    states = [measure.warm_up(method.model, stream) for stream in streams]
    runs = []
    for i, (state, stream) in enumerate(zip(states, streams, strict=True)):
        runs.append(measure.follow(method.model, state, stream, method.watch if i == 0 else None))
        report(method.name)
    scores = [
        evaluate.scores(run.prediction, stream.y[stream.warmup :], evaluate.TWO_SIGMA)
        for run, stream in zip(runs, streams, strict=True)
    ]
    row = Row(
        method=method.name,
        mse=float(np.mean([score["mse"] for score in scores])),
        coverage=float(np.mean([score["coverage"] for score in scores])),
        nlpd=float(np.mean([score["nlpd"] for score in scores])),
        us_per_step=measure.microseconds_per_step(method.model, states[0], streams[0]),
        us_per_call=measure.microseconds_per_call(method.model, states[0], streams[0]),
        inducing=float(np.mean([measure.inducing_in_use(run.state) for run in runs])),
    )
    report(method.name)
    return Result(row, runs)
