"""Settings of the paper's toy experiment, as keyword arguments of `AGP`."""

from typing import Any

import numpy as np


def printed() -> dict[str, Any]:
    """What the paper prints: sizes, forgetting, first inducing inputs; all else is left to the library's defaults.

    >>> printed()["window"], printed()["inducing"]
    (100, 10)
    """
    return {"inducing": 10, "window": 100, "attenuation": 0.1, "inducing_inputs": np.linspace(0, 1, 10)[:, None]}


def published() -> dict[str, Any]:
    """What the authors' notebook does: other numbers than the text's, and what the text leaves out.

    λ = 0.98, r_th = 0.01, one Adam optimiser for warm-up and stream, and a jitter that is the same at every scale.
    Relevance follows the rows of the Cholesky factor. fast-AGP admits and drops points by another rule than Algorithm
    1.
    """
    sizes = {name: value for name, value in printed().items() if name != "attenuation"}
    return sizes | {
        "forgetting": 0.98,
        "threshold": 1e-2,
        "jitter": 0.0,
        "absolute_jitter": 1e-3,
        "relevance": "cholesky",
        "admission": "published",
        "step": "carried",
    }


def published_fast() -> dict[str, Any]:
    """The same for fast-AGP: no steps, and a smaller jitter."""
    return published() | {"absolute_jitter": 1e-4, "learn_every": 0}
