"""Error beside cost of the default and of other methods, on the ten streams of `benchmarks.defaults`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.defaults import store
from benchmarks.defaults.streams import TEN
from benchmarks.measured import number, table

OURS = ("low", "medium", "high")
UNIT = "LightGBM refitted"  # whose error is 1
Scores = dict[str, dict[str, dict[str, float]]]  # by method and stream
FREE = 0.1  # µs: what counts as costing no less


def scores() -> Scores:
    """Of the three efforts, and of each other method on the streams that it was run on."""
    return store.read("default") | store.read("rivals")


def ratio(found: Scores, method: str, stream: str) -> float:
    """RMSE over that of LightGBM; NaN where there is none."""
    mse = found[method].get(stream, {}).get("mse", np.nan)
    return float(np.sqrt(mse / found[UNIT][stream]["mse"]))


def cost(found: Scores, method: str, stream: str) -> float:
    """Microseconds of CPU per row."""
    return float(found[method].get(stream, {}).get("microseconds", np.nan))


def markdown(found: Scores) -> str:
    """Geometric means over the streams that a method was run on, the best first; then who is cheaper and better."""
    lines = []
    for method in found:
        there = [name for name in TEN if name in found[method]]
        error, crps = (
            np.exp(np.mean([np.log(found[method][name][key] / found[UNIT][name][key]) for name in there])) ** power
            for key, power in (("mse", 0.5), ("crps", 1.0))
        )
        spent = np.median([cost(found, method, name) for name in there])
        cells = [_title(method), f"{error:.2f}", f"{crps:.2f}", number(spent), str(len(there))]
        lines.append((error, cells))
    head = ["", f"RMSE / {UNIT}", "CRPS / the same", "µs per row, median", "streams"]
    return table(head, [cells for _, cells in sorted(lines, key=lambda line: line[0])]) + "\n\n" + _verdict(found)


def better(found: Scores) -> list[tuple[str, str]]:
    """Methods and streams where a method has both a smaller error and a smaller cost than every effort."""
    return [
        (method, name)
        for method in found
        if method not in OURS
        for name in TEN
        if name in found[method]
        and all(ratio(found, method, name) < ratio(found, effort, name) for effort in OURS)
        and all(cost(found, method, name) + FREE < cost(found, effort, name) for effort in OURS)
    ]


def _verdict(found: Scores) -> str:
    cases = better(found)
    if not cases:
        return "On no stream is any of these methods both cheaper and more accurate than all three efforts."
    said = "; ".join(f"{method} on {name}" for method, name in cases)
    return f"Both cheaper and more accurate than all three efforts: {said}."


def _title(method: str) -> str:
    return f"**driftgp, {method} effort**" if method in OURS else method


def draw(found: Scores, path: Path) -> None:
    """A panel for each stream: error against cost, each method a mark."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 5).ravel()
    others = [method for method in found if method not in OURS]
    for axis, name in zip(axes, TEN, strict=True):
        for i, method in enumerate(others):
            _mark(axis, found, [method], name, f"C{i % 10}", "osD^v"[i // 10 % 5] if i >= 10 else "o", method)
        _mark(axis, found, OURS, name, "black", "*-", "driftgp: low, medium, high effort")
        axis.set_xscale("log")
        axis.set_ylim(0.2, 2.0)
        axis.set_title(name)
        axis.grid(alpha=0.3)
    for axis in axes[5:]:
        axis.set_xlabel("µs of CPU per row")
    for axis in axes[::5]:
        axis.set_ylabel(f"RMSE / {UNIT}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    figure.savefig(path, dpi=110)


def _mark(axis: Any, found: Scores, methods: Sequence[str], name: str, colour: str, mark: str, label: str) -> None:
    x = [max(cost(found, method, name), FREE) for method in methods]
    y = [min(ratio(found, method, name), 1.98) for method in methods]
    size = 11 if "*" in mark else 6
    axis.plot(x, y, mark, color=colour, markersize=size, label=label)
