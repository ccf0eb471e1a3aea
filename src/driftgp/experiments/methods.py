"""The methods of the tables, each with the settings of the published runs, so far as they are known."""

from collections.abc import Callable
from typing import Any

from driftgp.agp import AGP
from driftgp.data import Stream
from driftgp.experiments import settings
from driftgp.experiments.settings import Experiment
from driftgp.experiments.tasks import Method
from driftgp.model import Model
from driftgp.rivals import AGPVSI, SVGP, WVSGP, ExactWindow, Persistence

HYBRID = 10  # samples from one gradient step of the hybrid to the next, as the paper suggests


def methods(experiment: Experiment) -> list[Method]:
    """All methods: those of the paper's tables in their order, then those that the paper leaves out."""
    paper = settings.paper(experiment)
    window, stochastic = paper["window"], _stochastic(experiment)
    return [
        Method("persistence", lambda stream: Persistence(column=stream.lag_columns or None), shared=True),
        Method("w-VSGP", _model(WVSGP, rate=0.005 if experiment == "toy" else 0.05, **stochastic), slow=True),
        Method("AGP-VSI", _model(AGPVSI, rate=0.05, **stochastic), slow=True),
        Method("fast-AGP", _model(AGP, learn_every=0, **paper)),
        Method("AGP", _model(AGP, **paper)),
        Method("hybrid", _model(AGP, learn_every=HYBRID, **paper)),
        Method("exact window", _model(ExactWindow, window=window, attenuation=paper["attenuation"])),
        Method("SVGP", _model(SVGP, window=window, inducing=paper["inducing"]), slow=True),
        *([Method("AGP, 24 outputs shared", _model(AGP, **paper), shared=True)] if experiment == "load" else []),
    ]


def _stochastic(experiment: Experiment) -> dict[str, Any]:
    """What w-VSGP and AGP-VSI share: AGP's sizes and first inducing inputs, 50 iterations a sample, no true bound."""
    names = ("window", "inducing", "inducing_inputs", "placement", "jitter", "absolute_jitter")
    shared = {name: value for name, value in settings.paper(experiment).items() if name in names}
    return shared | {"iterations": 50, "score": "predictive"}


def _model(kind: Callable[..., Model[Any]], **options: Any) -> Callable[[Stream], Model[Any]]:
    return lambda _: kind(**options)
