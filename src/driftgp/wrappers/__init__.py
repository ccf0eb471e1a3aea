"""Models that hold a model."""

from driftgp.wrappers.carry import CarryForward
from driftgp.wrappers.standardize import Standardize
from driftgp.wrappers.watched import Watched

__all__ = ["CarryForward", "Standardize", "Watched"]
