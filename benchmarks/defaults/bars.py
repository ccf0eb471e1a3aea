"""What the default must show, from the figures that are kept: one figure with its bar for each sentence of the list."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.defaults import store
from benchmarks.defaults.cases import SOKNL
from benchmarks.defaults.cost import KEY
from benchmarks.defaults.score import Scores
from benchmarks.defaults.streams import SHARED, TEN
from benchmarks.figures import Figure, exactly

Kept = dict[str, dict[str, Scores]]  # by method and stream
BASELINE = "version 0.1"
LIGHTGBM = "LightGBM refitted"
OURS = ("low", "medium", "high")
COST = {"low": 1.5, "medium": 4.5, "high": 12.0}  # AGPs
FIRST = {"low": 0.6, "medium": 2.0}  # s


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


def bars(found: Kept) -> list[Figure]:
    """All figures that can be told from what was measured."""
    return [*_by_stream(found), *_by_part(store.read("parts"))]


def most(name: str, value: float, target: float | None) -> Figure:
    """A figure that may be at most its bar."""
    return Figure(name, exactly(value), target)


def least(name: str, value: float, target: float) -> Figure:
    """A figure that must be at least its bar."""
    return Figure(name, exactly(value), target, least=True)


def _values(found: Kept, method: str, score: str, names: Sequence[str] = TEN) -> np.ndarray:
    return np.array([found[method][name][score] for name in names])


def _geometric(values: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _by_stream(found: Kept) -> Iterator[Figure]:
    whole = {method for method, scores in found.items() if set(scores) >= set(TEN)}
    if {"medium", BASELINE} <= whole:
        ratio = _values(found, "medium", "mse") / _values(found, BASELINE, "mse")
        better = _values(found, "medium", "nlpd") - _values(found, BASELINE, "nlpd")
        yield most("MSE / version 0.1, geometric mean", _geometric(ratio), 0.38)
        yield most("NLPD − version 0.1, mean", float(better.mean()), -0.45)
    for score in ("mse", "nlpd", "crps") if "medium" in whole else ():
        others = [mean_rank(found, name, score) for name in whole - set(OURS)]
        if others:
            best = f"mean rank by {score.upper()}, against the best of the others"
            yield most(best, mean_rank(found, "medium", score), min(others))
    if "medium" in whole:
        inside, window = _values(found, "medium", "coverage_95"), _values(found, "medium", "worst_window")
        yield least("coverage of the 95 % interval, the least of the streams", float(inside.min()), 0.94)
        yield most("coverage of the 95 % interval, the most of the streams", float(inside.max()), 0.96)
        yield least("coverage of the worst 500 rows of all streams", float(window.min()), 0.9)
    if {"medium", LIGHTGBM} <= whole:
        ratio = np.sqrt(_values(found, "medium", "mse", list(SHARED)) / _values(found, LIGHTGBM, "mse", list(SHARED)))
        yield most("RMSE / LightGBM refitted, the worst of the seven", float(ratio.max()), 0.97)
        yield most("RMSE / LightGBM refitted, geometric mean of the seven", _geometric(ratio), 0.72)
    if {"low", BASELINE} <= whole:
        ratio = _values(found, "low", "mse") / _values(found, BASELINE, "mse")
        yield most("low effort: MSE / version 0.1, the worst stream", float(ratio.max()), 1.0)
        yield most("low effort: MSE / version 0.1, geometric mean", _geometric(ratio), 0.6)


def _by_part(parts: dict[str, Any]) -> Iterator[Figure]:
    for name, told in PARTS.items():
        if name in parts:
            yield from told(parts[name])
    yield from _costs(parts)


def _fried(part: Any) -> Iterator[Figure]:
    yield most("Fried: RMSE after row 1000", part["after_1000"], 1.15)
    yield most("Fried: RMSE of the first 1000 rows, against SOKNL's", part["first_1000"], SOKNL)


def _toy(part: Any) -> Iterator[Figure]:
    yield most("toy: MSE / AGP with the published settings", part["default"]["mse"] / part["AGP"]["mse"], 0.97)
    yield least("toy: coverage of the 95 % interval", part["default"]["coverage_95"], 0.947)
    yield most("toy: coverage of the 95 % interval", part["default"]["coverage_95"], 0.953)


def _zones(part: Any) -> Iterator[Figure]:
    ratio = [zone["mse"] / zone["beyond"] for zone in part.values()]
    yield most("zones: MSE / the better of AGP and fast-AGP, mean", float(np.mean(ratio)), 0.9)
    yield most("zones: MSE / the better of AGP and fast-AGP, the worst zone", max(ratio), 1.0)


def _one_hot(part: Any) -> Iterator[Figure]:
    ratio = part["default"]["mse"] / part["Ridge fitted once"]["mse"]
    yield most("one-hot hours: MSE / Ridge fitted on the warm-up", ratio, 1.0)


def _wild(part: Any) -> Iterator[Figure]:
    for kind, said in (("target", "wild target"), ("input", "wild input"), ("lags", "wild target and its lags")):
        worst = max(row[kind] for row in part.values() if kind in row)
        bar = None if kind == "lags" else 1.3
        yield most(f"{said}: MSE of the next 50 rows / undisturbed, the worst stream", worst, bar)


def _jump(part: Any) -> Iterator[Figure]:
    median = float(np.median([row["median"] for row in part.values()]))
    yield most("jump of 10 sd: rows to recover, median of the streams", median, None)
    yield most("jump of 10 sd: rows to recover, the worst place", max(row["most"] for row in part.values()), 50.0)


def _late(part: Any) -> Iterator[Figure]:
    worst = max(row["mse"] / row["persistence"] for row in part.values())
    yield most("labels 24 rows late: MSE / persistence with that delay, the worst stream", worst, 1.0)


def _long(part: Any) -> Iterator[Figure]:
    _, second, *_, last = part.values()  # the first year begins with the warm-up
    for key, said, bar in (("microseconds", "time per row", 1.1), ("bytes", "memory", 1.05)):
        yield most(f"CT load of all years: {said}, last year / second", last[key] / second[key], bar)


PARTS: dict[str, Callable[[Any], Iterator[Figure]]] = {
    "fried": _fried,
    "toy": _toy,
    "zones": _zones,
    "onehot": _one_hot,
    "wild": _wild,
    "jump": _jump,
    "late": _late,
    "long": _long,
}


def _costs(parts: dict[str, Any]) -> Iterator[Figure]:
    for effort in OURS:
        measured = [row[effort] for row in parts.get("cost", {}).values() if effort in row]
        if measured:
            dearest = max(row["ratio"] for row in measured)
            slowest = max(row["slowest_row"] / row["median_row"] for row in measured)
            yield most(f"{effort} effort: cost per row / {KEY}, the dearest stream", dearest, COST[effort])
            yield most(f"{effort} effort: slowest row / median", slowest, 20.0)
        if effort in parts.get("fresh", {}):
            seconds = parts["fresh"][effort]["seconds"]
            yield most(
                f"{effort} effort: CPU s of a fresh process until its first prediction", seconds, FIRST.get(effort)
            )
        if effort in parts.get("bytes", {}):
            key = parts["bytes"][effort]["24"]
            for kind, size in key.items():
                said = f"{effort} effort: KB per key, D = 24, {'in memory' if kind == 'memory' else kind}"
                yield most(said, size / 1e3, 175.0 if effort == "low" else None)
