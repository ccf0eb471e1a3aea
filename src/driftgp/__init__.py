"""Regression on streams that drift: predictions with honest intervals, sample by sample."""

from driftgp.agp import AGP, FastAGP
from driftgp.evaluate import prequential
from driftgp.online import Online

__all__ = ["AGP", "FastAGP", "Online", "prequential"]
