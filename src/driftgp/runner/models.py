"""The model of a run, by name, with the wrappers that a forecaster wants around it."""

from collections.abc import Callable
from typing import Any

from driftgp.agp import AGP
from driftgp.expressions import parse_kernel
from driftgp.model import Model
from driftgp.rivals import AGPVSI, FITC, SVGP, WVSGP, ExactWindow, LastKMean, Persistence
from driftgp.runner.settings import Settings
from driftgp.wrappers import CarryForward, Standardize, Watched

HYBRID = 10  # samples from one gradient step of the hybrid to the next
NOISE = 0.1  # of a target with variance 1, to start with
PRIOR = 3.0  # standard deviation of the log parameters: a long quiet stretch must not carry them away
UNITS = 10  # windows until a sample hardly counts for the units in which the model sees the stream


def build_model(settings: Settings, inputs: int, forgetting: float | None) -> Watched:
    """The model for so many inputs, with the forgetting that a half-life gives or None for the usual one.

    Around it, from the inside: gaps are filled, units adapt, predictions are scored.
    """
    model = _BUILDERS[settings.model](settings, inputs, forgetting)
    if settings.missing != "skip":
        model = CarryForward(model)
    if settings.standardise:
        model = Standardize(model, adapt=0.1 ** (1.0 / (UNITS * settings.window)))
    return Watched(model)


def _forgets(settings: Settings, inputs: int, forgetting: float | None) -> dict[str, Any]:
    kernel = parse_kernel(settings.kernel, inputs)
    return {"kernel": kernel, "noise": NOISE, "window": settings.window, "forgetting": forgetting}


def _agp(learn_every: int) -> Callable[..., Model[Any]]:
    return lambda settings, inputs, forgetting: AGP(
        **_forgets(settings, inputs, forgetting), inducing=settings.inducing, learn_every=learn_every, prior=PRIOR
    )


def _sparse(kind: Callable[..., Model[Any]], *, forgets: bool = True) -> Callable[..., Model[Any]]:
    def build(settings: Settings, inputs: int, forgetting: float | None) -> Model[Any]:
        shared = _forgets(settings, inputs, forgetting)
        if not forgets:
            del shared["forgetting"]
        return kind(**shared, inducing=settings.inducing)

    return build


def _naive(kind: Callable[..., Model[Any]]) -> Callable[..., Model[Any]]:
    return lambda _settings, _inputs, forgetting: kind() if forgetting is None else kind(forgetting=forgetting)


_BUILDERS: dict[str, Callable[..., Model[Any]]] = {
    "agp": _agp(1),
    "fast": _agp(0),
    "hybrid": _agp(HYBRID),
    "exact": lambda settings, inputs, forgetting: ExactWindow(**_forgets(settings, inputs, forgetting)),
    "fitc": _sparse(FITC),
    "svgp": _sparse(SVGP, forgets=False),
    "w-vsgp": _sparse(WVSGP, forgets=False),
    "agp-vsi": _sparse(AGPVSI),
    "persistence": _naive(Persistence),
    "mean": _naive(LastKMean),
}
