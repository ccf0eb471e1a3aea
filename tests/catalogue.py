"""Every model of the library, small: what `test_contract.py` puts through its checks.

A new model enters with one line. Its sizes stay near M = 4 and T = 12 and its warm-up short.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from driftgp.gp.agp import AGP, FastAGP
from driftgp.kernels import SE, Linear, Matern32, Periodic
from driftgp.members import Anchored, Lagged, LastKMean, Persistence
from driftgp.models.model import Model
from driftgp.wrappers import (
    Around,
    Bank,
    Bounded,
    Calibrated,
    Credible,
    Gaps,
    Guarded,
    Standardize,
    Watched,
    Within,
)

SMALL: dict[str, Any] = {"inducing": 4, "window": 12, "noise": 0.1, "warmup_iterations": 5}
DENSE = {name: value for name, value in SMALL.items() if name != "inducing"}
CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


@dataclass(frozen=True)
class Entry:
    """A model, and what the contract leaves open for it."""

    make: Callable[[], Model]
    outputs: bool = True  # takes several outputs; a model that does not must refuse them
    forgets: bool = True  # `elapsed` is time: k units at once are k times one unit


def rival(name: str, *args: Any, **options: Any) -> Callable[[], Model]:
    """A method that needs JAX; without it the tests say so."""

    def make() -> Model:
        pytest.importorskip("jax", reason="the rivals need JAX: pip install 'driftgp[rivals]'")
        from driftgp import rivals

        model: Model = getattr(rivals, name)(*args, **options)
        return model

    return make


def bank() -> Bank:
    """Members of several kinds, two of which share a window."""
    fast = [FastAGP(kernel=SE(0.5), **SMALL, forgetting=rate) for rate in (0.8, 0.95)]
    return Bank([*fast, Persistence(), AGP(Linear() + SE(0.5), **SMALL | {"window": 8})])


CATALOGUE: dict[str, Entry] = {
    "AGP": Entry(lambda: AGP(SE(0.5), **SMALL)),
    "fast-AGP": Entry(lambda: FastAGP(kernel=Matern32([0.5, 0.8]), **SMALL)),
    "hybrid": Entry(lambda: AGP(SE(0.5), learn_every=3, relevance="cholesky", **SMALL)),
    "AGP with Adam carried along": Entry(lambda: AGP(SE(0.5), step="carried", **SMALL)),
    "AGP with scaled steps": Entry(lambda: AGP(SE(0.5) * Periodic(2.0), step="scaled", prior=3.0, **SMALL)),
    "windowless fast-AGP": Entry(
        lambda: FastAGP(kernel=SE(0.5), **SMALL | {"window": None}, forgetting=0.9, inducing_inputs=CORNERS)
    ),
    "Standardize": Entry(lambda: Standardize(AGP(SE(1.0), **SMALL), adapt=0.95)),
    "Gaps": Entry(lambda: Gaps(FastAGP(kernel=SE(0.5), **SMALL))),
    "Within": Entry(lambda: Within(FastAGP(kernel=SE(0.5), **SMALL))),
    "Around": Entry(lambda: Around(FastAGP(kernel=SE(0.5), **SMALL), column=1), outputs=False),
    "Credible": Entry(lambda: Credible(Gaps(FastAGP(kernel=SE(0.5), **SMALL)), column=1)),
    "Guarded": Entry(lambda: Guarded(FastAGP(kernel=SE(0.5), **SMALL)), forgets=False),
    "Bounded": Entry(lambda: Bounded(FastAGP(kernel=SE(0.5), **SMALL), low=-0.5, slack=0.01)),
    "Bounded by a guess": Entry(lambda: Bounded(bank(), low=-2.0, high=3.5, leak=0.01), forgets=False),
    "Bounded, by roots": Entry(lambda: Bounded(bank(), low=-2.0, leak=0.01, root=0.5, lags=[0]), forgets=False),
    "Watched": Entry(lambda: Watched(FastAGP(kernel=SE(0.5), **SMALL))),
    # what these hold is judged by what it said before the time of the sample had passed
    "Bank": Entry(bank, forgets=False),
    "Calibrated": Entry(lambda: Calibrated(FastAGP(kernel=SE(0.5), **SMALL)), forgets=False),
    "Calibrated, each side": Entry(lambda: Calibrated(bank(), symmetric=False), forgets=False),
    "all wrappers": Entry(
        lambda: Watched(
            Guarded(Calibrated(Bounded(Standardize(Gaps(Within(bank())), adapt=0.95), low=-1.2, leak=0.01)))
        ),
        forgets=False,
    ),
    "Anchored": Entry(lambda: Anchored(points=4, ring=24, sample=12, refresh=10), forgets=False),
    "Lagged": Entry(Lagged, forgets=False),
    "Bank with twins": Entry(
        lambda: Bank([FastAGP(kernel=SE(0.5), **SMALL), Lagged(), Persistence()], corrected=(0, 1)), forgets=False
    ),
    "persistence": Entry(Persistence),
    "persistence by column": Entry(lambda: Persistence(column=1), outputs=False),
    "last-k mean": Entry(lambda: LastKMean(k=3)),
    "exact window": Entry(rival("ExactWindow", SE(0.5), **DENSE)),
    "w-VSGP": Entry(rival("WVSGP", SE(0.5), iterations=3, score="predictive", **SMALL)),
    "AGP-VSI": Entry(rival("AGPVSI", SE([0.5, 0.8]), iterations=3, renew=3, **SMALL)),
    "SVGP": Entry(rival("SVGP", SE(0.5), iterations=2, batch=5, **SMALL)),
    "FITC": Entry(rival("FITC", Matern32(0.5), **SMALL)),
    "DTC": Entry(rival("DTC", SE(0.5), restart=False, **SMALL)),
    "OSGP": Entry(rival("OSGP", SE(0.5), inducing=4, noise=0.1, warmup_iterations=5), forgets=False),
    "WISKI": Entry(
        rival("WISKI", SE(0.5), grid=6, bounds=[[-1.0, 2.0], [-1.0, 2.0]], noise=0.1, warmup_iterations=5),
        forgets=False,
    ),
    "KRLS-T": Entry(rival("KRLST", SE(0.5), dictionary=4, noise=0.1, warmup_iterations=5)),
    "OSGP, the paper's": Entry(
        rival("ReferenceOSGP", SE(0.5), inducing=4, noise=0.1, warmup_iterations=5), outputs=False, forgets=False
    ),
    "state-space GP": Entry(rival("StateSpaceGP", Matern32(3.0), noise=0.1, warmup_iterations=5)),
    "state-space GP on an input": Entry(
        rival("StateSpaceGP", Matern32(0.5), noise=0.1, column=1, warmup_iterations=5), forgets=False
    ),
    "basis ensemble": Entry(
        rival("BasisEnsemble", SE(0.5), features=5, noise=0.1, drifts=(0.0, 0.01), warmup_iterations=5)
    ),
}
