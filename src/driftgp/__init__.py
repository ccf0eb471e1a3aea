"""Regression on streams that drift: predictions with honest intervals, sample by sample."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftgp.agp import AGP, FastAGP
    from driftgp.evaluate import prequential
    from driftgp.online import Online

__all__ = ["AGP", "FastAGP", "Online", "prequential"]

# Where each name lives. JAX takes most of a second to import: who only reads a table or asks for help need not wait.
_ROOMS = {"AGP": "agp", "FastAGP": "agp", "Online": "online", "prequential": "evaluate"}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'driftgp' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"driftgp.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
