"""The demonstration: AGP, fast-AGP, the hybrid and persistence on the toy stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftgp import evaluate
from driftgp.data import Stream
from driftgp.demo.settings import published_fast
from driftgp.demo.table import Method
from driftgp.evaluate import Run
from driftgp.gp.agp import AGP
from driftgp.members import Persistence
from driftgp.models.model import State
from driftgp.plots import base as plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Samples from one gradient step of the hybrid to the next, as the paper suggests.
HYBRID = 10


class Glimpse(NamedTuple):
    """What the picture shows of a state."""

    U: np.ndarray  # M×D
    points: int  # in use
    lengthscale: float
    variance: float
    noise: float


def glimpse(state: State) -> Glimpse:
    """Look at the inducing points and the hyperparameters."""
    lengthscale, variance = state.theta
    return Glimpse(state.U, state.points, lengthscale, variance, state.noise[0])


def methods(settings: dict[str, Any]) -> list[Method]:
    """List the methods; `settings` are those of AGP, which the picture is about."""
    jitter = {"absolute_jitter": published_fast()["absolute_jitter"]} if "absolute_jitter" in settings else {}
    fast = {"learn_every": 0} | jitter  # the notebook has another jitter there
    return [
        Method("AGP", AGP(**settings), glimpse),
        Method("fast-AGP", AGP(**settings | fast)),
        Method("hybrid", AGP(**settings, learn_every=HYBRID)),
        Method("persistence", Persistence()),
    ]


def picture(stream: Stream, run: Run, window: int) -> Figure:
    """Draw AGP's run: predictions, inducing points and hyperparameters over time."""
    seen: Glimpse = run.trace  # each field an array of as many rows as there are samples
    in_use = np.arange(seen.U.shape[1]) < np.asarray(seen.points)[:, None]
    low, high = run.prediction.interval(evaluate.TWO_SIGMA)
    return plots.tracking(
        times=stream.X[:, 0],
        y=stream.y,
        warmup=stream.warmup,
        mean=run.prediction.mean,
        interval=(low, high),
        inducing=np.where(in_use, seen.U[..., 0], np.nan),
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
