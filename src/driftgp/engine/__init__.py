"""One way to run a model: natively where C++ knows all its parts, else by the model's own NumPy methods.

The environment variable DRIFTGP_ENGINE chooses: "auto" (the default), "native" (an error where that is not possible) or
"reference". Models that bring an engine of their own, such as the rivals in JAX, are run by that one.
"""

import os
import sys
import warnings
from functools import cache, lru_cache
from typing import Any

from driftgp.base import checks
from driftgp.contract.protocol import Contract
from driftgp.engine import native
from driftgp.engine.base import Batch, Engine, Single
from driftgp.engine.description import Unknown
from driftgp.engine.library import library as shared_library
from driftgp.engine.reference import ReferenceEngine

__all__ = ["Batch", "Engine", "Single", "compiled", "describe", "engine"]

CHOICES = ("auto", "native", "reference")


def engine(model: Contract, inputs: int, outputs: int) -> Engine:
    """The engine for a model with these numbers of inputs and outputs.

    >>> from driftgp import AGP
    >>> engine(AGP(), inputs=3, outputs=1).kind in ("native", "reference")
    True
    """
    own: Any = model.engine(inputs, outputs)
    if own is not None:
        return own
    return _engine(model, inputs, outputs, _choice())


def compiled() -> Any:
    """The compiled library, or None where NumPy is to run, which is said once unless DRIFTGP_ENGINE asks for it."""
    choice = _choice()
    if choice == "reference":
        return None
    try:
        return shared_library()
    except native.NoLibrary as missing:
        if choice == "native":
            raise ValueError(f"DRIFTGP_ENGINE is 'native', but {missing}") from missing
        _say_missing(missing)
        return None


def _say_missing(missing: native.NoLibrary) -> None:
    _say_once(
        f"driftgp runs by NumPy, many times slower than its compiled engine: {missing}. "
        "DRIFTGP_ENGINE=reference says that this is meant."
    )


def _choice() -> str:
    return checks.choice("DRIFTGP_ENGINE", os.environ.get("DRIFTGP_ENGINE") or "auto", CHOICES)


@lru_cache(maxsize=64)  # engines hold no state: whoever asks again for the same model gets the same one
def _engine(model: Contract, inputs: int, outputs: int, choice: str) -> Engine:
    if choice == "reference":
        return ReferenceEngine(model, inputs, outputs)
    try:
        return native.NativeEngine(model, inputs, outputs)
    except native.NoLibrary as missing:
        if choice == "native":
            raise ValueError(f"DRIFTGP_ENGINE is 'native', but {missing}") from missing
        _say_missing(missing)
    except Unknown as unknown:
        if choice == "native":
            raise ValueError(f"DRIFTGP_ENGINE is 'native', but {unknown}") from unknown
    return ReferenceEngine(model, inputs, outputs)


@cache
def _say_once(text: str) -> None:
    warnings.warn(text, stacklevel=_first_outside())


def _first_outside() -> int:
    """How far up the first caller is that is not driftgp, as `warnings.warn` counts it."""
    frame, level = sys._getframe(1), 1  # noqa: SLF001 (as the module `warnings` does it)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "driftgp":
        frame, level = frame.f_back, level + 1
    return level


def describe(model: Contract) -> str:
    """Which engine runs a model, and if it is not the native one, why.

    Args:
        model: any model, wrappers included.

    >>> from driftgp import AGP
    >>> describe(AGP()).split(":")[0] in ("native", "reference")
    True
    """
    if not isinstance(model, Contract):
        raise TypeError(f"model must be a model, such as AGP() or the model of an Online that has begun; got {model!r}")
    if model.engine(1, 1) is not None:
        return "scan: the model brings an engine of its own"
    choice = _choice()
    if choice == "reference":
        return "reference: DRIFTGP_ENGINE asks for it"
    found = native.describe(model)
    if choice == "native" and not found.startswith("native"):
        return f"none: DRIFTGP_ENGINE asks for the native one, and there is only the {found}"
    return found
