"""Every model of the library, small: what `test_contract.py` puts through its checks.

A new model enters with one line. Its sizes stay near M = 4 and T = 12 and its warm-up short: the suite compiles each
entry about a dozen times.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.agp import AGP, FastAGP
from driftgp.kernels import SE, Matern32
from driftgp.model import Model

SMALL: dict[str, Any] = {"inducing": 4, "window": 12, "noise": 0.1, "warmup_iterations": 5}
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
    "windowless fast-AGP": Entry(
        lambda: FastAGP(kernel=SE(0.5), **SMALL | {"window": None}, forgetting=0.9, inducing_inputs=CORNERS)
    ),
}
