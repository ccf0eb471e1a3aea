"""What was tried for the defaults: one member of their bank, with one thing changed at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np

from driftgp import defaults
from driftgp.data import Stream
from driftgp.gp.agp import AGP
from driftgp.kernels import SE, Linear
from driftgp.models.model import Model
from driftgp.wrappers import Standardize
from experiments.beyond import Beyond, in_units_of_the_defaults
from experiments.further import Further
from experiments.report import Section
from experiments.summary import Results
from experiments.tasks import Method

SHARE = 0.6  # memory 1/(1 − λ) over the window
SURPRISED = 1.5  # mean of z² that says: the stream has turned
SETTING = (
    f"One model of the defaults' bank, that with a memory of {SHARE} windows, not calibrated; in each row one thing is "
    "changed. The defaults take scaled steps, g / (n/2 + prior⁻²) and at most 0.2 in each logarithm; the published "
    "step is 0.05 in the direction of the gradient's sign."
)
Build = Callable[[Stream], Model]


class Trials(Beyond):
    """Every stream, every change."""

    name = "trials"
    title = "What was tried"

    def methods(self) -> list[Method]:
        """One for each change."""
        return [Method(name, build, fitted=True) for name, build in _changes().items()]

    def section(self, results: Results) -> Section:
        """One table a series."""
        section = super().section(results)
        return Section(
            title=self.title,
            command=f"python -m experiments trials --series {','.join(self.series)}",
            paragraphs=[SETTING],
            tables=section.tables,
        )


# ---- changes -------------------------------------------------------------------------------------------------------

_PUBLISHED: dict[str, Any] = {"step": "fresh", "rate": 0.05}


def _changes() -> dict[str, Build]:
    """Steps first, then what is learned, then sizes."""
    return {
        "defaults": _with(),
        "scaled steps of at most 0.05": _with(rate=0.05),
        "two scaled steps": _with(iterations=2),
        "a scaled step every 10 samples": _with(learn_every=10),
        "no steps": _with(learn_every=0),
        "published steps": _with(**_PUBLISHED),
        "published steps of 0.02": _with(**_PUBLISHED | {"rate": 0.02}),
        "two published steps": _with(**_PUBLISHED, iterations=2),
        "a second published step if surprised": _further(SURPRISED),
        "a second published step of all points": _further(0.0, points=True),
        "Adam that goes on": _with(step="carried", rate=0.05),
        "a lengthscale for each input": _with(kernel=lambda D: Linear(0.1 / D) + SE(np.full(D, D**0.5))),
        "no linear part": _with(kernel=lambda D: SE(D**0.5)),
        "linear part of variance 1/D": _with(kernel=lambda D: Linear(1.0 / D) + SE(D**0.5)),
        "wild targets limited (ν = 4)": _with(outliers=4.0),
        "wild inputs not limited": _unlimited,
        "window of 100": _with(window=100),
        "window of 400": _with(window=400),
        "twice the inducing points": _with(points=2.0),
        "half the inducing points": _with(points=0.5),
    }


def _with(**changes: Any) -> Build:
    """The defaults with these settings of AGP changed."""
    return lambda stream: in_units_of_the_defaults(_agp(stream, **changes), stream)


def _unlimited(stream: Stream) -> Model:
    units = in_units_of_the_defaults(_agp(stream), stream)
    return Standardize(_agp(stream), adapt=units.forgetting or False)


def _further(above: float, *, points: bool = False) -> Build:
    return lambda stream: in_units_of_the_defaults(Further(_agp(stream, **_PUBLISHED), above, points=points), stream)


def _agp(stream: Stream, **changes: Any) -> AGP:
    D = stream.X.shape[1]
    sizes = defaults.sizes(stream.y[: stream.warmup], D)
    kernel, T = changes.pop("kernel", defaults.kernel)(D), changes.pop("window", sizes.window)
    M = int(changes.pop("points", 1.0) * sizes.inducing)
    return AGP(kernel, inducing=M, window=T, forgetting=1.0 - 1.0 / (SHARE * T), **defaults.LEARNING | changes)
