"""The model of a series: the one that is recommended for its first rows, or one by name in its wrappers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from driftgp import rivals
from driftgp.agp import AGP
from driftgp.defaults import Effort, recommended
from driftgp.expressions import parse_kernel
from driftgp.members import LastKMean, Persistence
from driftgp.model import Model
from driftgp.runner.settings import DEFAULT, Named, Settings
from driftgp.wrappers import Calibrated, CarryForward, Standardize, Watched

HYBRID = 10  # samples from one gradient step of the hybrid to the next
NOISE = 0.1  # of a target with variance 1, to start with
PRIOR = 3.0  # standard deviation of the log parameters: a long quiet stretch must not carry them away
UNITS = 10  # windows until a sample hardly counts for the units in which the model sees the stream


def build_model(settings: Settings, X: np.ndarray, y: np.ndarray, forgetting: float | None) -> Watched:
    """The model for a series that begins with the batch X (N×D), y (N), which may be empty; its forecasts are watched.

    `forgetting` is what a half-life gives, for a model by name, or None for the usual one. A model by name is, from the
    inside, standardised in units that adapt, given the last value of an input that is missing, and calibrated.
    """
    default = settings.model == DEFAULT
    effort: Effort = "medium" if settings.group is None else "low"  # a group for each of many keys must fit in memory
    if default:
        model: Model = recommended(X, y, horizon=settings.horizon, effort=effort)
    else:
        model = _named(settings, X.shape[1], forgetting)
    return Watched(model)


def _named(settings: Settings, inputs: int, forgetting: float | None) -> Model:
    named = settings.named
    model = _BUILDERS[str(settings.model)](named, inputs, forgetting)
    if settings.standardise:
        model = Standardize(model, adapt=0.1 ** (1.0 / (UNITS * named.window)))
    if settings.missing != "skip":
        model = CarryForward(model)
    if not settings.calibrate:
        return model
    # forecasts h rows ahead are wrong h at a time: a tracker of the spread would take one error for h, and waver
    return Calibrated(model) if settings.horizon == 1 else Calibrated(model, gains=(0.0,))


Builder = Callable[[Named, int, float | None], Model]


def _forgets(named: Named, inputs: int, forgetting: float | None) -> dict[str, Any]:
    kernel = parse_kernel(named.kernel, inputs)
    return {"kernel": kernel, "noise": NOISE, "window": named.window, "forgetting": forgetting}


def _agp(learn_every: int) -> Builder:
    return lambda named, inputs, forgetting: AGP(
        **_forgets(named, inputs, forgetting), inducing=named.inducing, learn_every=learn_every, prior=PRIOR
    )


def _naive(kind: Callable[..., Model]) -> Builder:
    return lambda _named, _inputs, forgetting: kind() if forgetting is None else kind(forgetting=forgetting)


def _rival(name: str, *, sparse: bool = True, forgets: bool = True) -> Builder:
    """A model of `driftgp.rivals`, which are in JAX: imported when it is asked for."""

    def build(named: Named, inputs: int, forgetting: float | None) -> Model:
        shared = _forgets(named, inputs, forgetting)
        if not forgets:
            del shared["forgetting"]
        if sparse:
            shared["inducing"] = named.inducing
        model: Model = _kind(name)(**shared)
        return model

    return build


def _kind(name: str) -> Callable[..., Any]:
    try:
        return getattr(rivals, name)
    except ModuleNotFoundError:  # a mistake of ours
        raise
    except ImportError as missing:  # which says what to install
        raise ValueError(f"model {missing}") from missing


_BUILDERS: dict[str, Builder] = {
    "agp": _agp(1),
    "fast": _agp(0),
    "hybrid": _agp(HYBRID),
    "exact": _rival("ExactWindow", sparse=False),
    "fitc": _rival("FITC"),
    "svgp": _rival("SVGP", forgets=False),
    "w-vsgp": _rival("WVSGP", forgets=False),
    "agp-vsi": _rival("AGPVSI"),
    "persistence": _naive(Persistence),
    "mean": _naive(LastKMean),
}
