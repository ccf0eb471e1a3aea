"""The figures that are kept, by method and stream, and how methods rank."""

import numpy as np

from benchmarks.defaults import store
from benchmarks.defaults.score import Scores
from benchmarks.defaults.streams import TEN

Kept = dict[str, dict[str, Scores]]  # by method and stream
BASELINE = "version 0.1"
LIGHTGBM = "LightGBM refitted"
OURS = ("low", "medium", "high")


def kept() -> Kept:
    """Scores of all methods that were measured."""
    return store.read("baseline") | store.read("default") | store.read("rivals")


def names_of(found: Kept) -> list[str]:
    """The default at its efforts first, then version 0.1's, then the rivals."""
    return [*(effort for effort in OURS if effort in found), *(name for name in found if name not in OURS)]


def mean_rank(found: Kept, method: str, score: str) -> float:
    """Mean over the streams of a method's rank, 1 for the best, among the rivals, version 0.1's default and one effort.

    That effort is the method itself, or medium for the others: the efforts do not compete with one another.
    """
    ours = method if method in OURS else "medium"
    field = [name for name in found if (name not in OURS or name == ours) and len(found[name]) == len(TEN)]
    ranks = [sum(found[name][at][score] < found[method][at][score] for name in field) + 1 for at in TEN]
    return float(np.mean(ranks))
