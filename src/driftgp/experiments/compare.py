"""Every method of the library on the toy stream: AGP in its three forms and all the rivals."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import equinox as eqx
import numpy as np

from driftgp import checks
from driftgp.agp import AGP
from driftgp.data import toy_stream
from driftgp.experiments import comparison, settings
from driftgp.experiments.comparison import Method, Report
from driftgp.experiments.demo import HYBRID
from driftgp.kernels import SE
from driftgp.model import Model
from driftgp.rivals import (
    AGPVSI,
    DTC,
    FITC,
    KRLST,
    OSGP,
    SVGP,
    WISKI,
    WVSGP,
    ExactWindow,
    LastKMean,
    Persistence,
)

TOY = settings.printed("toy")  # T = 100, M = 10, λ^T = 0.1, inducing inputs evenly spaced on [0, 1]
_POINTS = {name: TOY[name] for name in ("inducing", "inducing_inputs")}
_WINDOW = {name: TOY[name] for name in ("window", "attenuation")}

# KRLS-T cannot learn its hyperparameters online, so it has the best there are: those that maximise the evidence of
# whole streams, the doubled frequency included, of other seeds. With the warm-up's it comes out worse, since the
# signal grows and turns faster later on; no other method here is told anything of what is to come.
HINDSIGHT: dict[str, Any] = {"kernel": SE(0.23, 2.0), "noise": 0.039}

# The paper's settings where it has them, elsewhere those that serve a method best on this stream.
catalogue: dict[str, Callable[[], Model[Any]]] = {
    "AGP": lambda: AGP(**TOY),
    "fast-AGP": lambda: AGP(**TOY, learn_every=0),
    "hybrid": lambda: AGP(**TOY, learn_every=HYBRID),
    "persistence": Persistence,
    "last-k mean": lambda: LastKMean(k=3),
    "exact window": lambda: ExactWindow(**_WINDOW),
    "w-VSGP": lambda: WVSGP(**_POINTS, window=TOY["window"], rate=0.005),
    "AGP-VSI": lambda: AGPVSI(**TOY),
    "OSGP": lambda: OSGP(**_POINTS),
    "WISKI": lambda: WISKI(grid=40, bounds=np.array([0.0, 5.0])),
    "KRLS-T": lambda: KRLST(**HINDSIGHT, dictionary=TOY["inducing"], forgetting=0.995, warmup_iterations=0),
    "KRLS-T (warm-up)": lambda: KRLST(dictionary=TOY["inducing"], forgetting=0.98),
    "SVGP": lambda: SVGP(**_POINTS, window=TOY["window"]),
    "FITC": lambda: FITC(**TOY),
    "DTC": lambda: DTC(**TOY),
}


def chosen(names: Iterable[str] | None = None) -> list[Method]:
    """Methods of these names, all of them by default; "name@λ" is a method with another forgetting factor.

    >>> [method.name for method in chosen(["DTC", "KRLS-T@0.99"])]
    ['DTC', 'KRLS-T@0.99']
    """
    return [Method(name, _named(name)) for name in (catalogue if names is None else names)]


def _named(text: str) -> Model[Any]:
    name, at, forgetting = text.partition("@")
    if name not in catalogue:
        raise ValueError(f"methods must be among {', '.join(map(repr, catalogue))}; got {name!r}")
    model = catalogue[name]()
    return _with_forgetting(model, text, forgetting) if at else model


def _with_forgetting(model: Model[Any], text: str, value: str) -> Model[Any]:
    if not hasattr(model, "forgetting"):
        raise ValueError(f"methods with @λ must be ones that forget; got {text!r}")
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"methods must have a number behind the @, such as KRLS-T@0.99; got {text!r}") from None
    factor = checks.between("forgetting", number, 0.0, 1.0)
    changed: Model[Any] = eqx.tree_at(lambda model: model.forgetting, model, factor)
    return changed


def compare(
    methods: Iterable[str] | None = None, seeds: Sequence[int] = (0,), report: Report | None = None
) -> list[dict[str, Any]]:
    """One row a method: method, mse, coverage (± 2 standard deviations) and nlpd, all means over the seeds, and times.

    The rows have the columns of `comparison.Row`; `us_per_step` is what a sample takes in the compiled loop.
    """
    streams = [toy_stream(seed) for seed in seeds]
    if not streams:
        raise ValueError("seeds must name at least one stream; got none")
    results = comparison.compare(chosen(methods), streams, report or (lambda _: None))
    return [asdict(result.row) for result in results.values()]
