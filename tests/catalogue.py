"""Every model of the library, small: what `test_contract.py` puts through its checks.

A new model enters with one line. Its sizes stay near M = 4 and T = 12 and its warm-up short: the suite compiles each
entry about a dozen times.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.agp import AGP, FastAGP
from driftgp.experiments.carried import CarriedAGP
from driftgp.kernels import SE, Matern32
from driftgp.model import Model
from driftgp.rivals import AGPVSI, DTC, FITC, KRLST, OSGP, SVGP, WISKI, WVSGP, ExactWindow, LastKMean, Persistence
from driftgp.wrappers import Bank, Calibrated, CarryForward, Standardize, Watched, Within

SMALL: dict[str, Any] = {"inducing": 4, "window": 12, "noise": 0.1, "warmup_iterations": 5}
PLACED = {name: value for name, value in SMALL.items() if name != "warmup_iterations"}
DENSE = {name: value for name, value in SMALL.items() if name != "inducing"}
CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


@dataclass(frozen=True)
class Entry:
    """A model, and what the contract leaves open for it."""

    make: Callable[[], Model[Any]]
    outputs: bool = True  # takes several outputs; a model that does not must refuse them
    forgets: bool = True  # `elapsed` is time: k units at once are k times one unit


CATALOGUE: dict[str, Entry] = {
    "AGP": Entry(lambda: AGP(SE(0.5), **SMALL)),
    "fast-AGP": Entry(lambda: FastAGP(kernel=Matern32([0.5, 0.8]), **SMALL)),
    "hybrid": Entry(lambda: AGP(SE(0.5), learn_every=3, relevance="cholesky", **SMALL)),
    "AGP with Adam carried along": Entry(lambda: AGP(SE(0.5), restart=False, **SMALL)),
    "AGP with the averages of its warm-up": Entry(lambda: CarriedAGP(kernel=SE(0.5), **PLACED)),
    "windowless fast-AGP": Entry(
        lambda: FastAGP(kernel=SE(0.5), **SMALL | {"window": None}, forgetting=0.9, inducing_inputs=CORNERS)
    ),
    "Standardize": Entry(lambda: Standardize(AGP(SE(1.0), **SMALL), adapt=0.95)),
    "CarryForward": Entry(lambda: CarryForward(FastAGP(kernel=SE(0.5), **SMALL))),
    "Within": Entry(lambda: Within(FastAGP(kernel=SE(0.5), **SMALL))),
    "Watched": Entry(lambda: Watched(FastAGP(kernel=SE(0.5), **SMALL))),
    # what these two hold is judged by what it said before the time of the sample had passed
    "Bank": Entry(lambda: Bank(FastAGP(kernel=SE(0.5), **SMALL), forgetting=[0.8, 0.95]), forgets=False),
    "Calibrated": Entry(lambda: Calibrated(FastAGP(kernel=SE(0.5), **SMALL)), forgets=False),
    "persistence": Entry(Persistence),
    "persistence by column": Entry(lambda: Persistence(column=1), outputs=False),
    "last-k mean": Entry(lambda: LastKMean(k=3)),
    "exact window": Entry(lambda: ExactWindow(SE(0.5), **DENSE)),
    "w-VSGP": Entry(lambda: WVSGP(SE(0.5), iterations=3, score="predictive", **SMALL)),
    "AGP-VSI": Entry(lambda: AGPVSI(SE([0.5, 0.8]), iterations=3, renew=3, **SMALL)),
    "SVGP": Entry(lambda: SVGP(SE(0.5), iterations=2, batch=5, **SMALL)),
    "FITC": Entry(lambda: FITC(Matern32(0.5), **SMALL)),
    "DTC": Entry(lambda: DTC(SE(0.5), restart=False, **SMALL)),
    "OSGP": Entry(lambda: OSGP(SE(0.5), inducing=4, noise=0.1, warmup_iterations=5), forgets=False),
    "WISKI": Entry(
        lambda: WISKI(SE(0.5), grid=6, bounds=[[-1.0, 2.0], [-1.0, 2.0]], noise=0.1, warmup_iterations=5), forgets=False
    ),
    "KRLS-T": Entry(lambda: KRLST(SE(0.5), dictionary=4, noise=0.1, warmup_iterations=5)),
}
