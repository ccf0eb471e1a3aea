"""Models by name, in their wrappers, and the start of a series with one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp import rivals
from driftgp.gp.agp import AGP
from driftgp.kernels.expressions import parse_kernel
from driftgp.members import LastKMean, Persistence
from driftgp.models.model import Model
from driftgp.runs.settings import Named, RunSettings
from driftgp.stream.begin import Choice
from driftgp.wrappers import Calibrated, Gaps, Standardize

HYBRID = 10  # samples from one gradient step of the hybrid to the next
NOISE = 0.1  # of a target with variance 1, to start with
PRIOR = 3.0  # prior standard deviation of the log parameters, so that a long quiet stretch does not carry them away
UNITS = 10  # windows after which a sample hardly counts for the units of the model


@dataclass(frozen=True)
class ByName:
    """How a series begins with a model by name: cold, and warmed up once its first rows have come.

    `forgetting` is what a half-life gives, None for the model's usual one.
    """

    settings: RunSettings
    forgetting: float | None = None

    @property
    def first(self) -> int:
        """Rows that the model warms up on."""
        return self.settings.rows_of_warmup

    @property
    def gaps(self) -> bool:
        """Inputs may be NaN."""
        return True

    def choose(self, X: np.ndarray, y: np.ndarray) -> Choice:  # noqa: ARG002
        """The model, warmed up on these rows."""
        return Choice(self.model(X.shape[1]), len(X))

    def model(self, inputs: int) -> Model:
        """The model for this number of inputs, in its wrappers: units, gaps, calibration."""
        settings, named = self.settings, self.settings.named
        model: Model = Gaps(_BUILDERS[str(settings.model)](named, inputs, self.forgetting))
        if settings.standardise:
            model = Standardize(model, adapt=0.1 ** (1.0 / (UNITS * named.window)))
        if not settings.calibrate:
            return model
        # errors of forecasts h rows ahead come h at a time: a tracker of the spread would count one error h times
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
