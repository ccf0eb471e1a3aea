"""The picture of forecasts: the last rows, and the fan of the next ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from driftgp.plots.base import BLACK, BLUE, GREY, SKY, blank, short_dates, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATHS = 5  # drawn
MOST = 6  # series


@styled
def fans_figure(fans: Sequence[tuple[Any, Any]], level: float = 0.95) -> Figure:
    """Draw the last rows and the forecasts of the first few series, one below the other.

    Args:
        fans: of each series, what `driftgp.forecasting.tables.About` holds, and the forecast.
        level: of the outer interval; an inner one holds half of the targets.
    """
    shown = list(fans)[:MOST]
    one = len(shown) == 1
    figure = blank(9.0, 4.6 if one else 2.2 * len(shown) + 0.6)
    rows = figure.subplots(len(shown), squeeze=False)[:, 0]
    for axes, (about, fan) in zip(rows, shown, strict=True):
        _draw(axes, about, fan, level)
        steps = f"the next {len(fan)} steps" if len(fan) > 1 else "the next step"
        axes.set_title(f"{about.target}: {steps}" if about.key is None else f"{about.key}")
    figure.legend(*rows[0].get_legend_handles_labels(), loc="outside right upper")
    if not one:
        more = "" if len(fans) <= MOST else f", the first {MOST} of {len(fans)} series"
        figure.suptitle(f"{shown[0][0].target}: {steps}{more}")
    return figure


def _draw(axes: Any, about: Any, fan: Any, level: float) -> None:
    axes.plot(about.past, about.y, color=BLACK, linewidth=1.1, label="so far")
    for share, shade in ((level, 0.35), (0.5, 0.6)):
        low, high = fan.interval(share)
        label = f"{share:.0%} of the targets"
        axes.fill_between(about.wall, low, high, color=SKY, alpha=shade, linewidth=0, label=label)
    for i, path in enumerate(fan.sample(PATHS, seed=0)):
        axes.plot(about.wall, path, color=GREY, linewidth=0.6, label="possible paths" if i == 0 else None)
    axes.plot(about.wall, fan.mean, color=BLUE, linewidth=1.8, label="mean")
    axes.axvline(about.past[-1], color=GREY, linewidth=0.8, linestyle=":")
    axes.margins(x=0.01)
    short_dates(axes, np.concatenate([about.past, about.wall]))
