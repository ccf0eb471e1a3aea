"""The demonstration: AGP, fast-AGP, the hybrid and persistence on the toy stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jax import Array

from driftgp import evaluate, plots
from driftgp.agp import AGP, AGPState
from driftgp.data import Stream
from driftgp.evaluate import Run
from driftgp.experiments.comparison import Method
from driftgp.rivals.persistence import Persistence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The hybrid takes a gradient step every so many samples, as the paper suggests.
HYBRID = 10


class Glimpse(NamedTuple):
    """What the picture shows of a state."""

    U: Array  # M×D
    used: Array  # M
    lengthscale: Array
    variance: Array
    noise: Array


def glimpse(state: AGPState) -> Glimpse:
    """Look at the inducing points and the hyperparameters."""
    h, points = state.hyperparameters, state.points
    return Glimpse(points.U, points.used, h.kernel.lengthscale, h.kernel.variance, h.noise[0])


def methods(settings: dict[str, Any]) -> list[Method]:
    """List the methods; `settings` are those of AGP, which the picture is about."""
    return [
        Method("AGP", AGP(**settings), glimpse),
        Method("fast-AGP", AGP(**settings, learn_every=0)),
        Method("hybrid", AGP(**settings, learn_every=HYBRID)),
        Method("persistence", Persistence()),
    ]


def picture(stream: Stream, run: Run, window: int) -> Figure:
    """Draw AGP's run: predictions, inducing points and hyperparameters over time."""
    seen: Glimpse = run.trace
    low, high = run.prediction.interval(evaluate.TWO_SIGMA)
    return plots.tracking(
        times=stream.X[:, 0],
        y=stream.y,
        warmup=stream.warmup,
        mean=np.asarray(run.prediction.mean),
        interval=(np.asarray(low), np.asarray(high)),
        inducing=np.where(seen.used, seen.U[..., 0], np.nan),
        window=window,
        hyperparameters={
            "lengthscale": np.asarray(seen.lengthscale),
            "variance": np.asarray(seen.variance),
            "noise variance": np.asarray(seen.noise),
        },
        model="AGP",
        truth={"noise variance": 0.04},
        events={3.0: "the frequency doubles"},
    )
