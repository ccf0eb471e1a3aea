"""The methods of the tables, each with the settings of the published runs, so far as they are known."""

from collections.abc import Callable
from typing import Any

from driftgp.agp import AGP
from driftgp.data import Stream
from driftgp.demo import settings
from driftgp.demo.extra import rival
from driftgp.demo.settings import Setup
from driftgp.members import Persistence
from driftgp.model import Model
from experiments.tasks import Method

HYBRID = 10  # samples from one gradient step of the hybrid to the next, as the paper suggests
SHARED = "AGP (24 outputs shared)"
FRESH = "AGP (fresh steps)"
LEARNING = "WISKI (rate 0.02)"


def methods(setup: Setup) -> list[Method]:
    """All methods: those of the paper's tables in their order, then those that the paper leaves out."""
    toy = setup == "toy"
    paper = settings.paper(setup)
    # The published figures of load and sales come from runs that went on with the warm-up's averages of Adam.
    learned = paper if toy else paper | {"step": "carried"}
    stochastic = _stochastic(setup)
    window, points = _some(paper, "window", "attenuation"), _some(paper, "inducing", "inducing_inputs")
    sparse = _some(paper, "window", "attenuation", "inducing", "inducing_inputs", "placement")
    grid = {"grid": 80, "bounds": (-5.6, 5.6)} if toy else {}
    return [
        Method("persistence", lambda stream: Persistence(column=stream.lag_columns or None), shared=True),
        Method("w-VSGP", _model(rival("WVSGP"), rate=0.005 if toy else 0.05, **stochastic), slow=True),
        Method("OSGP", _model(rival("OSGP"), **points), slow=True),
        # The authors' warm-up anneals Adam's rate to 1e-4. That it stayed there is inferred: 0.02 is far off.
        Method("WISKI", _model(rival("WISKI"), **grid, **({"rate": 1e-4} if toy else {})), slow=True),
        Method(
            "AGP-VSI", _model(rival("AGPVSI"), rate=0.05, attenuation=paper["attenuation"], **stochastic), slow=True
        ),
        Method("fast-AGP", _model(AGP, learn_every=0, **paper)),
        Method("AGP", _model(AGP, **learned)),
        *([] if toy else [Method(FRESH, _model(AGP, **paper))]),
        Method("hybrid", _model(AGP, learn_every=HYBRID, **learned)),
        *([Method(SHARED, _model(AGP, **learned), shared=True)] if setup == "load" else []),
        *([Method(LEARNING, _model(rival("WISKI"), **grid), slow=True)] if toy else []),
        Method("exact window", _model(rival("ExactWindow"), **window), slow=not toy),
        Method("KRLS-T", _model(rival("KRLST"), dictionary=paper["inducing"], forgetting=0.98 if toy else 0.99)),
        Method(
            "SVGP",
            _model(rival("SVGP"), **_some(sparse, "window", "inducing", "inducing_inputs", "placement")),
            slow=True,
        ),
        Method("FITC", _model(rival("FITC"), **sparse), slow=True),
        Method("DTC", _model(rival("DTC"), **sparse), slow=True),
    ]


def _stochastic(setup: Setup) -> dict[str, Any]:
    """What w-VSGP and AGP-VSI share: AGP's sizes and first inducing inputs, 50 iterations a sample, no true bound."""
    sizes = _some(settings.paper(setup), "window", "inducing", "inducing_inputs", "placement")
    return sizes | {"jitter": 0.0, "absolute_jitter": 1e-3, "iterations": 50, "score": "predictive", "restart": False}


def _some(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def _model(kind: Callable[..., Model], **options: Any) -> Callable[[Stream], Model]:
    return lambda _: kind(**options)
