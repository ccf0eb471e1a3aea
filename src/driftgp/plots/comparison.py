"""The picture of a comparison: where, and by how much, the default model gained on each of the others."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from driftgp.comparison import OURS, Backtest
from driftgp.plots.base import BLACK, GREEN, ORANGE, PURPLE, VERMILION, blank, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEST = 4  # of the other methods that are drawn: those with the lowest errors
COLOURS = (VERMILION, GREEN, ORANGE, PURPLE)


@styled
def backtest_figure(found: Backtest, at: Sequence[Any] | NDArray[Any] | None = None, target: str = "target") -> Figure:
    """Draw the cumulative difference of squared errors to the best of the other methods.

    Each line is divided by the squared error of driftgp over all rows. If a line ends at 0.5, the other method's
    squared error was 1.5 times as large. It rises where driftgp was the better one.

    Args:
        found: the comparison.
        at: where the scored rows are on the axis; their numbers by default.
        target: name of the target.
    """
    total = float(np.nansum(np.square(found.errors[OURS])))
    x = np.arange(len(found.errors[OURS])) if at is None else np.asarray(at)
    gains = {method: gain / total for method, gain in found.gains.items() if np.isfinite(gain[-1])}
    best = sorted(gains, key=lambda method: float(gains[method][-1]))[:BEST]
    figure = blank(9.0, 4.8)
    axes = figure.subplots()
    axes.axhline(0.0, color=BLACK, linewidth=1.0)
    for method, colour in zip(best, COLOURS, strict=False):
        axes.plot(x, gains[method], color=colour, linewidth=1.5, label=method)
    _label_ends(axes, {method: float(gains[method][-1]) for method in best})
    axes.set_title(f"{target}: gain of driftgp on the best {len(best)} of the others (up: driftgp is better)")
    axes.set_ylabel("cumulative difference of squared\nerrors / squared error of driftgp")
    axes.set_xlabel("row" if at is None else "")
    axes.margins(x=0.01)
    figure.suptitle("\n".join(textwrap.wrap(found.verdict, 110)), x=0.01, ha="left", fontsize=10)
    return figure


def _label_ends(axes: Axes, ends: dict[str, float]) -> None:
    """Name each line at its end, apart from one another."""
    low, high = axes.get_ylim()
    gap, last = 0.055 * (high - low), -np.inf
    for line in sorted(axes.get_lines()[1:], key=lambda line: ends[str(line.get_label())]):
        method = str(line.get_label())
        last = max(ends[method], last + gap)
        axes.annotate(
            method,
            (1.01, last),
            xycoords=("axes fraction", "data"),
            color=line.get_color(),
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
