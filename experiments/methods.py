"""The methods of the tables in their setups: as the paper prints them, as the notebooks ran them, and at their best."""

from collections.abc import Callable
from typing import Any

from driftgp.data import Stream
from driftgp.defaults import recommended
from driftgp.demo.catalogue import rival
from driftgp.demo.picture import HYBRID
from driftgp.gp.agp import AGP
from driftgp.kernels import Matern52
from driftgp.members import Persistence
from driftgp.models.model import Model
from experiments import settings
from experiments.settings import Which
from experiments.tasks import Method

SHARED = "AGP (24 outputs shared)"
DEFAULT = "driftgp's default"
MAPS = 8  # random first maps of WISKI, where the inputs are more than two


def methods(which: Which) -> list[Method]:
    """All methods: those of the paper's tables as published, in their order, as printed, and others at their best."""
    return [*published(which), *printed(which), *ours(which)]


def wiski_map(seed: int) -> str:
    """Name of WISKI with this random first map.

    >>> wiski_map(3)
    'WISKI (map 3)'
    """
    return f"WISKI (map {seed})"


def published(which: Which) -> list[Method]:
    """By the authors' notebooks."""
    stochastic, wiski = settings.stochastic(which, "published"), settings.wiski(which)
    slow_rate: dict[str, Any] = {"rate": 0.005, "warmup_rate": 0.005} if which == "toy" else {"rate": 0.05}
    maps = {"WISKI": wiski} if which != "sales" else {wiski_map(k): wiski | {"seed": k} for k in range(MAPS)}
    vsi = stochastic | settings.forgetting(which, "published")
    return [
        Method("persistence", lambda stream: Persistence(column=stream.lag_columns or None), shared=True),
        Method("w-VSGP", _model(rival("WVSGP"), **slow_rate, **stochastic), slow=True),
        *(
            []
            if which == "load"
            else [Method("OSGP", _model(rival("ReferenceOSGP"), **settings.osgp(which)), slow=True)]
        ),
        *(Method(name, _model(rival("WISKI"), **options), slow=True) for name, options in maps.items()),
        Method("AGP-VSI", _model(rival("AGPVSI"), rate=0.05, **vsi), slow=True),
        Method("fast-AGP", _model(AGP, **settings.published_fast(which))),
        Method("AGP", _model(AGP, **settings.published(which))),
    ]


def printed(which: Which) -> list[Method]:
    """By the paper's text."""
    stochastic, agp = settings.stochastic(which, "printed"), settings.printed(which)
    points = _some(agp, "inducing", "inducing_inputs")
    grid: dict[str, Any] = {"grid": 40, "bounds": (0.0, 5.0)} if which == "toy" else {}
    vsi = stochastic | settings.forgetting(which, "printed")
    built: dict[str, tuple[Callable[..., Model], dict[str, Any]]] = {
        "w-VSGP": (rival("WVSGP"), {"rate": 0.05, **stochastic}),
        "OSGP": (rival("OSGP"), {"rate": 0.1, "inducing_rate": 0.2, **points}),
        "WISKI": (rival("WISKI"), {"rate": 0.05, "projection_rate": 0.05, **grid}),
        "AGP-VSI": (rival("AGPVSI"), {"rate": 0.05, **vsi}),
        "fast-AGP": (AGP, agp | {"learn_every": 0}),
        "AGP": (AGP, agp),
    }
    return [
        Method(f"{name} (printed)", _model(kind, **options), slow=kind is not AGP, setup="printed")
        for name, (kind, options) in built.items()
    ]


def ours(which: Which) -> list[Method]:
    """driftgp's default, AGP in more forms, the paper's rivals at their best, and rivals that the paper left out."""
    toy = which == "toy"
    sizes = settings.sizes(which)
    window, points = _some(sizes, "window"), _some(sizes, "inducing", "inducing_inputs")
    sparse = sizes | {"attenuation": 0.1}
    grid: dict[str, Any] = {"grid": 80, "bounds": (-5.6, 5.6)} if toy else {}
    column = 0 if toy else None  # where time is an input; else it is what elapses
    found = [
        Method(DEFAULT, lambda stream: recommended(stream.X[: stream.warmup], stream.y[: stream.warmup]), fitted=True),
        Method("AGP (fresh steps)", _model(AGP, **settings.published(which) | {"step": "fresh"})),
        Method("hybrid", _model(AGP, **settings.published(which) | {"learn_every": HYBRID})),
        *([Method(SHARED, _model(AGP, **settings.published(which)), shared=True)] if which == "load" else []),
        Method("OSGP (ours)", _model(rival("OSGP"), **points), slow=True),
        Method("WISKI (evidence)", _model(rival("WISKI"), **grid), slow=True),
        Method("state-space GP", _model(rival("StateSpaceGP"), kernel=None if toy else Matern52(7.0), column=column)),
        Method("basis ensemble", _model(rival("BasisEnsemble")), slow=True),
        Method("exact window", _model(rival("ExactWindow"), attenuation=0.1, **window), slow=True),
        Method("KRLS-T", _model(rival("KRLST"), dictionary=sizes["inducing"], forgetting=0.98 if toy else 0.99)),
        Method("SVGP", _model(rival("SVGP"), **sizes), slow=True),
        Method("FITC", _model(rival("FITC"), **sparse), slow=True),
        Method("DTC", _model(rival("DTC"), **sparse), slow=True),
    ]
    return [method.of("ours") for method in found]


def _some(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def _model(kind: Callable[..., Model], **options: Any) -> Callable[[Stream], Model]:
    return lambda _: kind(**options)
