"""Pictures of how the cost grows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measured import along, best, power, times
from benchmarks.process import Row
from benchmarks.streams import GRID
from benchmarks.timing import spread

COLOURS = {"AGP": "C0", "fast-AGP": "C1", "limit": "C2", "step": "C3", "low": "C4", "medium": "C5"}
WAYS = (("AGP", "prequential"), ("AGP", "calls"), ("fast-AGP", "prequential"), ("fast-AGP", "calls"))
FIXED = {"M": "T = 500, D = 8", "T": "M = 20, D = 8", "D": "M = 20, T = 100"}


def draw(rows: Sequence[Row], folder: Path) -> None:
    """One picture for M, T, D and the number of models, one for the grid."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2).ravel()
    for axis, letter in zip(axes, FIXED, strict=False):
        for name in ("AGP", "fast-AGP"):
            line(axis, along(rows, letter, name), name)
        label(axis, f"{letter}   ({FIXED[letter]})", "µs of CPU per row")
    models(axes[3], rows)
    figure.savefig(folder / "bench-scaling.png", dpi=110)

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    grid(figure.subplots(), rows)
    figure.savefig(folder / "bench-grid.png", dpi=110)


def line(axis: Any, points: Sequence[tuple[float, float]], name: str) -> None:
    """A line with both axes logarithmic, and its slope in the legend."""
    if points:
        slope = f", power {power(points):.2f}" if len(points) > 2 else ""
        axis.loglog(*zip(*points, strict=True), "o-", color=COLOURS[name], label=name + slope)


def label(axis: Any, across: str, up: str) -> None:
    axis.set_xlabel(across)
    axis.set_ylabel(up)
    axis.grid(alpha=0.3, which="both")
    if axis.has_data():
        axis.legend()


def models(axis: Any, rows: Sequence[Row]) -> None:
    """Time per row against the number of models."""
    for name in ("low", "medium"):
        there = [
            (row["models"], spread(row["microseconds"]).median)
            for row in rows
            if row.get("group") == "fleet" and row.get("name") == name and row.get("how") == "one core, CPU"
        ]
        if there:
            axis.loglog(*zip(*sorted(there), strict=True), "o-", color=COLOURS[name], label=f"{name} effort")
    label(axis, "keys of a fleet   (D = 8)", "µs of CPU per row")


def grid(axis: Any, rows: Sequence[Row]) -> None:
    """Our models and the limit at the sizes of the grid."""
    for i, (name, how) in enumerate(WAYS):
        values = [times(rows, group="grid", name=name, how=how, size=size) for size in GRID]
        middle = [spread(found).median if found else float("nan") for found in values]
        axis.semilogy(
            range(len(GRID)), middle, "o-" if how == "prequential" else "o:", color=f"C{i // 2}", label=f"{name}, {how}"
        )
    for name, title in (("limit", "limit, C++"), ("step", "whole step, C++")):
        found = [best(rows, "grid", name, size) for size in GRID]
        middle = [spread(values).median if values else float("nan") for values in found]
        axis.semilogy(range(len(GRID)), middle, "s--", color=COLOURS[name], label=title)
    axis.set_xticks(range(len(GRID)), [f"({size})" for size in GRID])
    label(axis, "(M, T, D)", "µs of CPU per row")
