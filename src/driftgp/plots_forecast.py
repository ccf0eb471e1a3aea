"""The picture of a forecast: the last rows, and the fan of the next ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from driftgp.extras import needs
from driftgp.forecasting import Fan
from driftgp.plots import BLACK, BLUE, GREY, SKY, STYLE, Floats, short_dates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATHS = 5  # drawn


def fan_figure(at: NDArray[Any], y: Floats, fan: Fan, target: str, level: float = 0.95) -> Figure:
    """Draw the last rows and the forecast.

    Args:
        at: where the last rows are on the axis.
        y: their targets, NaN where missing.
        fan: the forecast.
        target: its name.
        level: of the outer interval; an inner one holds half of the targets.
    """
    with needs("drawing", extra="cli"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 4.6), layout="constrained")
        axes = figure.subplots()
        axes.plot(at, y, color=BLACK, linewidth=1.1, label="so far")
        for share, shade in ((level, 0.35), (0.5, 0.6)):
            low, high = fan.interval(share)
            axes.fill_between(
                fan.index, low, high, color=SKY, alpha=shade, linewidth=0, label=f"{share:.0%} of the targets"
            )
        paths = fan.sample(PATHS, seed=0)
        for i, path in enumerate(paths):
            axes.plot(fan.index, path, color=GREY, linewidth=0.6, label="possible paths" if i == 0 else None)
        axes.plot(fan.index, fan.mean, color=BLUE, linewidth=1.8, label="mean")
        axes.axvline(at[-1], color=GREY, linewidth=0.8, linestyle=":")
        axes.set_title(f"{target}: the next {len(fan)} steps")
        axes.margins(x=0.01)
        figure.legend(loc="outside right upper")
        short_dates(axes, np.asarray(fan.index))
    return figure
