"""Settings of the paper's experiments, as keyword arguments of `AGP`."""

from typing import Any, Literal

import numpy as np

Setup = Literal["toy", "load", "sales"]  # whose settings: an experiment of the paper


def printed(setup: Setup) -> dict[str, Any]:
    """What the paper prints: sizes, forgetting, first inducing inputs; all else is left to the library's defaults.

    >>> printed("load")["window"], printed("load")["inducing"]
    (90, 20)
    """
    if setup == "toy":
        return {"inducing": 10, "window": 100, "attenuation": 0.1, "inducing_inputs": np.linspace(0, 1, 10)[:, None]}
    return {"inducing": 20, "window": 90, "attenuation": 0.1, "placement": "recent"}


def paper(setup: Setup) -> dict[str, Any]:
    """What the published runs did: the printed settings, and what the text leaves out or says otherwise.

    A jitter that is the same at every scale, relevance by the rows of the Cholesky factor, and another rule than
    Algorithm 1 for when fast-AGP admits and drops a point.
    """
    return printed(setup) | {
        "jitter": 0.0,
        "absolute_jitter": 1e-3 if setup == "toy" else 1e-4,
        "relevance": "cholesky",
        "admission": "published",
    }
