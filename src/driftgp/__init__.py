"""Regression on streams that drift: predictions with honest intervals, sample by sample."""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftgp.comparison import backtest
    from driftgp.defaults import recommended
    from driftgp.diagnostics import importance, show_versions
    from driftgp.engine import describe
    from driftgp.evaluate import prequential
    from driftgp.fleet import Fleet
    from driftgp.forecasting import Forecaster
    from driftgp.gp.agp import AGP, FastAGP
    from driftgp.online import Online

__all__ = [
    "AGP",
    "FastAGP",
    "Fleet",
    "Forecaster",
    "Online",
    "backtest",
    "describe",
    "importance",
    "prequential",
    "recommended",
    "show_versions",
]

# Where each name lives; a module is imported when its first name is asked for.
_MODULES = {
    "AGP": "gp.agp",
    "FastAGP": "gp.agp",
    "Fleet": "fleet",
    "Forecaster": "forecasting",
    "Online": "online",
    "backtest": "comparison",
    "describe": "engine",
    "importance": "diagnostics",
    "prequential": "evaluate",
    "recommended": "defaults",
    "show_versions": "diagnostics",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return metadata.version("driftgp")
    if name not in _MODULES:
        raise AttributeError(f"module 'driftgp' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"driftgp.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__", "__doc__", "__name__", "__path__"]
