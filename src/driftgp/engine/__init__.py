"""One way to run a model: natively where C++ knows all its parts, else by the model's own NumPy methods.

The environment variable DRIFTGP_ENGINE chooses: "auto" (the default), "native" (an error where that is not possible) or
"reference". Models that bring an engine of their own, such as the rivals in JAX, are run by that one.
"""

import os
import warnings
from functools import cache, lru_cache
from typing import Any

from driftgp import checks
from driftgp.contract import Contract
from driftgp.engine import native
from driftgp.engine.base import Engine, Single
from driftgp.engine.description import Unknown
from driftgp.engine.reference import ReferenceEngine

__all__ = ["Engine", "Single", "describe", "engine"]

CHOICES = ("auto", "native", "reference")


def engine(model: Contract, inputs: int, outputs: int) -> Engine:
    """The engine for a model with so many inputs and outputs.

    >>> from driftgp import AGP
    >>> engine(AGP(), inputs=3, outputs=1).kind in ("native", "reference")
    True
    """
    own: Any = model.engine(inputs, outputs)
    if own is not None:
        return own
    choice = checks.choice("DRIFTGP_ENGINE", os.environ.get("DRIFTGP_ENGINE", "auto"), CHOICES)
    return _engine(model, inputs, outputs, choice)


@lru_cache(maxsize=64)  # engines hold no state: whoever asks again for the same model gets the same one
def _engine(model: Contract, inputs: int, outputs: int, choice: str) -> Engine:
    if choice == "reference":
        return ReferenceEngine(model, inputs, outputs)
    try:
        return native.NativeEngine(model, inputs, outputs)
    except native.NoLibrary as missing:
        if choice == "native":
            raise ValueError(f"DRIFTGP_ENGINE is 'native', but {missing}") from missing
        _say_once(
            f"driftgp runs by NumPy, many times slower than its compiled engine: {missing}. "
            "DRIFTGP_ENGINE=reference says that this is meant."
        )
    except Unknown as unknown:
        if choice == "native":
            raise ValueError(f"DRIFTGP_ENGINE is 'native', but {unknown}") from unknown
    return ReferenceEngine(model, inputs, outputs)


@cache
def _say_once(text: str) -> None:
    warnings.warn(text, stacklevel=5)


def describe(model: Contract) -> str:
    """Which engine runs a model, and if it is not the native one, why.

    Args:
        model: any model, wrappers included.

    >>> from driftgp import AGP
    >>> describe(AGP()).split(":")[0] in ("native", "reference")
    True
    """
    if model.engine(1, 1) is not None:
        return "scan: the model brings an engine of its own"
    if os.environ.get("DRIFTGP_ENGINE") == "reference":
        return "reference: DRIFTGP_ENGINE asks for it"
    return native.describe(model)
