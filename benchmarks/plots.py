"""Pictures of how the cost grows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measured import along, best, power, times
from benchmarks.process import Row
from benchmarks.streams import GRID
from benchmarks.timing import spread

EFFORTS = {"low": "C4", "medium": "C5", "high": "C6"}
COLOURS = {"AGP": "C0", "fast-AGP": "C1", "limit": "C2", "step": "C3"} | EFFORTS
WAYS = (("AGP", "prequential"), ("AGP", "calls"), ("fast-AGP", "prequential"), ("fast-AGP", "calls"))
FIXED = {"M": "T = 500, D = 8", "T": "M = 20, D = 8", "D": "M = 20, T = 100"}


def draw(rows: Sequence[Row], folder: Path) -> None:
    """How the default grows with rows, inputs and keys; how AGP does with M, T and D; AGP at the sizes of the grid."""
    figure, axes = panels(3, sharey=True)
    tenths(axes[0], rows)
    by_inputs(axes[1], rows)
    by_keys(axes[2], rows)
    low, high = axes[0].get_ylim()
    axes[0].set(yscale="log", ylim=(min(low, 1.0), max(high, 1000.0)))  # that what stays the same looks so
    figure.savefig(folder / "bench-growth.png", dpi=110)

    figure, axes = panels(3)
    for axis, letter in zip(axes, FIXED, strict=True):
        for name in ("AGP", "fast-AGP"):
            line(axis, along(rows, letter, name), name)
        label(axis, f"{letter}   ({FIXED[letter]})")
    figure.savefig(folder / "bench-scaling.png", dpi=110)

    figure, (axis,) = panels(1)
    grid(axis, rows)
    figure.savefig(folder / "bench-grid.png", dpi=110)


def panels(count: int, **options: Any) -> tuple[Any, Any]:
    """A figure with this number of panels beside each other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8 if count == 1 else 12, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, count, squeeze=False, **options)[0]


def line(axis: Any, points: Sequence[tuple[float, float]], name: str) -> None:
    """A line with both axes logarithmic, and its slope in the legend."""
    if points:
        slope = f", power {power(points):.2f}" if len(points) > 2 else ""
        axis.loglog(*zip(*points, strict=True), "o-", color=COLOURS[name], label=titled(name) + slope)


def titled(name: str) -> str:
    """A name as a legend has it."""
    return f"{name} effort" if name in EFFORTS else name


def label(axis: Any, across: str) -> None:
    axis.set_xlabel(across)
    axis.set_ylabel("µs of CPU per row")
    axis.grid(alpha=0.3, which="both")
    if axis.has_data():
        axis.legend()


def tenths(axis: Any, rows: Sequence[Row]) -> None:
    """The first and the last tenth of long streams."""
    for name in (*EFFORTS, "AGP"):
        there = [row for row in rows if row.get("group") == "length" and row.get("name") == name]
        for samples in sorted({row["samples"] for row in there})[-1:]:
            ends = {row["how"]: spread(row["microseconds"]).median for row in there if row["samples"] == samples}
            across = [0.05 * samples, 0.95 * samples]
            axis.plot(across, [ends["first tenth"], ends["last tenth"]], "o-", color=COLOURS[name], label=titled(name))
    label(axis, "rows so far")


def by_inputs(axis: Any, rows: Sequence[Row]) -> None:
    """Time per row against the number of inputs."""
    for name in EFFORTS:
        there = [row for row in rows if row.get("group") == "inputs" and row.get("name") == name]
        line(axis, sorted((row["D"], spread(row["microseconds"]).median) for row in there), name)
    label(axis, "inputs")


def by_keys(axis: Any, rows: Sequence[Row]) -> None:
    """Time per row against the number of keys, with a row for each key in a call."""
    for name in EFFORTS:
        there = [
            (row["models"], spread(row["microseconds"]).median)
            for row in rows
            if row.get("group") == "fleet" and row.get("name") == name and row.get("how") == "one core, CPU"
        ]
        line(axis, sorted(there), name)
    label(axis, "keys of a fleet   (8 inputs)")


def grid(axis: Any, rows: Sequence[Row]) -> None:
    """Our models and the limit at the sizes of the grid."""
    for i, (name, how) in enumerate(WAYS):
        values = [times(rows, group="grid", name=name, how=how, size=size) for size in GRID]
        mark = "o-" if how == "prequential" else "o:"
        _across(axis, values, mark, f"C{i // 2}", f"{name}, {'one call' if how == 'prequential' else how}")
    for name, title in (("limit", "limit, C++"), ("step", "whole step, C++")):
        _across(axis, [best(rows, "grid", name, size) for size in GRID], "s--", COLOURS[name], title)
    axis.set_xticks(range(len(GRID)), [f"({size})" for size in GRID])
    label(axis, "(M, T, D)")


def _across(axis: Any, values: Sequence[list[float] | None], mark: str, colour: str, title: str) -> None:
    middle = [spread(found).median if found else float("nan") for found in values]
    if any(values):
        axis.semilogy(range(len(values)), middle, mark, color=colour, label=title)
