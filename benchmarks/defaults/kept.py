"""The figures that are kept, by method and stream, and how methods rank."""

import numpy as np

from benchmarks.defaults import store
from benchmarks.defaults.score import EFFORTS, Scores
from benchmarks.defaults.streams import TEN

Kept = dict[str, dict[str, Scores]]  # by method and stream
LIGHTGBM = "LightGBM refitted"


def kept() -> Kept:
    """Scores of all methods that were measured."""
    return store.read("default") | store.read("rivals")


def names_of(found: Kept) -> list[str]:
    """The default at its efforts first, then the rivals."""
    return [*(effort for effort in EFFORTS if effort in found), *(name for name in found if name not in EFFORTS)]


def mean_rank(found: Kept, method: str, score: str) -> float:
    """Mean over the streams of a method's rank, 1 for the best, among the rivals and one effort of the default.

    That effort is the method itself, or medium for the others: the efforts do not compete with one another.
    """
    ours = method if method in EFFORTS else "medium"
    field = [name for name in found if (name not in EFFORTS or name == ours) and len(found[name]) == len(TEN)]
    ranks = [sum(found[name][at][score] < found[method][at][score] for name in field) + 1 for at in TEN]
    return float(np.mean(ranks))
