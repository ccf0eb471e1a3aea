"""AGP and fast-AGP from the inside, on one toy stream: bound, hyperparameters, inducing points, R_tot."""

import numpy as np

from driftgp import diagnostics
from driftgp.data import Stream
from driftgp.demo import measure
from driftgp.diagnostics import Trace
from driftgp.gp.agp import AGP
from experiments import figures, settings
from experiments.report import Picture


def followed(model: AGP, stream: Stream) -> Trace:
    """What `diagnostics.trace` sees of every state after the warm-up."""
    run = measure.follow(model, measure.warm_up(model, stream), stream, diagnostics.trace)
    trace: Trace = run.trace
    return trace


def pictures(stream: Stream) -> list[Picture]:
    """Hyperparameters and bound of AGP, and the inducing points of AGP and fast-AGP over time."""
    times = stream.X[stream.warmup :, 0]
    models = {"AGP": AGP(**settings.published("toy")), "fast-AGP": AGP(**settings.published_fast("toy"))}
    seen = {name: followed(model, stream) for name, model in models.items()}
    agp = seen["AGP"]
    curves = {
        "lengthscale": np.asarray(agp.theta)[:, 0],
        "variance": np.asarray(agp.theta)[:, 1],
        "noise variance": np.asarray(agp.noise)[:, 0],
        "bound F": np.asarray(agp.bound),
    }
    return [
        Picture(
            "toy-hyperparameters",
            "AGP's hyperparameters and bound after every sample of one stream; fast-AGP keeps those of the warm-up.",
            figures.traces(times, curves),
        ),
        Picture(
            "toy-inducing",
            "Inducing inputs, how many are in use, and R_tot over the noise variance with its threshold for admission.",
            figures.inducing(times, seen),
        ),
    ]
