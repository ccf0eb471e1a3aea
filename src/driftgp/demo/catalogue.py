"""Every method of the library on the toy stream: AGP in its three forms and all the rivals."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from driftgp import rivals
from driftgp.base import checks
from driftgp.data import toy_stream
from driftgp.demo import settings, table
from driftgp.demo.picture import HYBRID
from driftgp.demo.table import Method, Report
from driftgp.gp.agp import AGP
from driftgp.kernels import SE
from driftgp.members import LastKMean, Persistence
from driftgp.models.model import Model


def rival(name: str) -> Callable[..., Model]:
    """The class of this name in `driftgp.rivals`, as a function of its settings."""

    def build(**settings: Any) -> Model:
        model: Model = _found(name)(**settings)
        return model

    return build


def _found(name: str) -> Any:
    try:
        return getattr(rivals, name)
    except ImportError as missing:
        if not isinstance(missing.__cause__, ModuleNotFoundError):  # a mistake of ours
            raise
        # a sentence that says what to install, for people who asked for a table
        raise ValueError(f"{missing}, or name methods that do not need it") from missing


class Entry(NamedTuple):
    """What a method is: a class, or a rival's that is imported when it is built, and settings."""

    kind: Callable[..., Model]
    settings: dict[str, Any]


TOY = settings.printed()  # T = 100, M = 10, λ^T = 0.1, inducing inputs evenly spaced on [0, 1]
_POINTS = {name: TOY[name] for name in ("inducing", "inducing_inputs")}
_SIZES = _POINTS | {"window": TOY["window"]}
_WINDOW = {name: TOY[name] for name in ("window", "attenuation")}

# KRLS-T cannot learn its hyperparameters online, so it has the best there are: those that maximise the evidence of
# whole streams, the doubled frequency included, of other seeds. With the hyperparameters of the warm-up it is worse,
# since the signal grows and turns faster later on. No other method here knows anything about later samples.
HINDSIGHT: dict[str, Any] = {"kernel": SE(0.23, 2.0), "noise": 0.039}
_KRLST = {"dictionary": TOY["inducing"]}

# The paper's settings where it has them, elsewhere those that serve a method best on this stream.
catalogue: dict[str, Entry] = {
    "AGP": Entry(AGP, TOY),
    "fast-AGP": Entry(AGP, TOY | {"learn_every": 0}),
    "hybrid": Entry(AGP, TOY | {"learn_every": HYBRID}),
    "persistence": Entry(Persistence, {}),
    "last-k mean": Entry(LastKMean, {"k": 3}),
    "exact window": Entry(rival("ExactWindow"), _WINDOW),
    "w-VSGP": Entry(rival("WVSGP"), _SIZES | {"rate": 0.005}),
    "AGP-VSI": Entry(rival("AGPVSI"), TOY),
    "OSGP": Entry(rival("OSGP"), _POINTS),
    "WISKI": Entry(rival("WISKI"), {"grid": 40, "bounds": (0.0, 5.0)}),
    "KRLS-T": Entry(rival("KRLST"), HINDSIGHT | _KRLST | {"forgetting": 0.995, "warmup_iterations": 0}),
    "KRLS-T (warm-up)": Entry(rival("KRLST"), _KRLST | {"forgetting": 0.98}),
    "SVGP": Entry(rival("SVGP"), _SIZES),
    "FITC": Entry(rival("FITC"), TOY),
    "DTC": Entry(rival("DTC"), TOY),
}


def chosen(names: Iterable[str] | None = None) -> list[Method]:
    """Methods of these names, all of them by default; "name@λ" is a method with another forgetting factor.

    >>> [method.name for method in chosen(["AGP", "fast-AGP@0.99"])]
    ['AGP', 'fast-AGP@0.99']
    """
    return [Method(name, _named(name)) for name in (catalogue if names is None else names)]


def _named(text: str) -> Model:
    name, at, forgetting = text.partition("@")
    if name not in catalogue:
        raise ValueError(f"methods must be among {', '.join(map(repr, catalogue))}; got {name!r}")
    kind, options = catalogue[name]
    if not at:
        return kind(**options)
    factor = _factor(text, forgetting)
    if not hasattr(kind(**options), "forgetting"):
        raise ValueError(f"methods with @λ must be ones that forget; got {text!r}")
    others = {option: value for option, value in options.items() if option != "attenuation"}
    return kind(**others | {"forgetting": factor})


def _factor(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"methods must have a number behind the @, such as KRLS-T@0.99; got {text!r}") from None
    return checks.between("forgetting", number, 0.0, 1.0)


def compare(
    methods: Iterable[str] | None = None, seeds: Sequence[int] = (0,), report: Report | None = None
) -> list[dict[str, Any]]:
    """One row a method: method, mse, coverage (± 2 standard deviations) and nlpd, all means over the seeds, and times.

    The rows have the columns of `table.Row`; `us_per_step` is what a sample takes when all are handed in at once.
    """
    streams = [toy_stream(seed) for seed in seeds]
    if not streams:
        raise ValueError("seeds must name at least one stream; got none")
    results = table.compare(chosen(methods), streams, report or (lambda _: None))
    return [asdict(result.row) for result in results.values()]
