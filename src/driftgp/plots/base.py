"""Pictures: one function a figure, each from arrays to a matplotlib figure that no display needs.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; lines differ in style as well.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.typing import NDArray

from driftgp.base.extras import needs
from driftgp.base.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.floating[Any]]

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
GREY = "#777777"
LINES = ((BLUE, "-"), (VERMILION, "--"), (GREEN, "-."), (PURPLE, ":"))  # for curves that share axes

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E5E5",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 1.6,
    "legend.borderaxespad": 0.3,
}


P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Have a function draw in the style of the house, and leave matplotlib's own settings alone."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with needs("drawing", extra="cli"):
            import matplotlib as mpl

        with mpl.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def blank(width: float, height: float) -> Figure:
    """A figure of this size in inches, with nothing on it yet."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


@styled
def tracking(
    times: Floats,
    y: Floats,
    warmup: int,
    mean: Floats,
    interval: tuple[Floats, Floats],
    inducing: Floats,
    window: int,
    hyperparameters: Mapping[str, Floats],
    model: str = "the model",
    truth: Mapping[str, float] | None = None,
    events: Mapping[float, str] | None = None,
) -> Figure:
    """Draw a stream and a model's predictions, inducing inputs and hyperparameters on one time axis.

    Args:
        times: time of every sample, N.
        y: target of every sample, N.
        warmup: samples before the first prediction; the arguments below have N − warmup rows.
        mean: one-step-ahead mean.
        interval: lower and upper end of the predictive interval.
        inducing: inducing inputs before each sample, on the same scale as the times, NaN where a slot is empty,
            (N − warmup)×M.
        window: samples in the window.
        hyperparameters: their values by name.
        model: its name.
        truth: known values of some of the hyperparameters.
        events: what happened, by time.
    """
    online = times[warmup:]
    left = times[np.maximum(np.arange(warmup, len(times)) - window, 0)]  # oldest sample of the window
    figure = blank(9.0, 8.0)
    panels = figure.subplots(3, 1, sharex=True, height_ratios=(3.0, 1.7, 1.7))
    _predictions(panels[0], times, y, warmup, mean, interval)
    _last_inducing(panels[0], inducing[-1])
    panels[0].set_title(f"The stream, and what {model} said of each sample before it came")
    panels[0].legend(loc="upper left")
    _ages(panels[1], online, online[:, None] - inducing, online - left)
    _curves(panels[2], online, hyperparameters, truth or {})
    for axes in panels:
        axes.axvspan(times[0], times[warmup], color="#F2F2F2", zorder=0, linewidth=0)
        for time in events or {}:
            axes.axvline(time, color=GREY, linestyle=(0, (1, 2)), linewidth=1.2)
    for time, event in (events or {}).items():
        panels[0].annotate(event, (time, 0.0), (-4, 4), **_AT_THE_BOTTOM, ha="right", color=GREY)
    panels[0].annotate("warm-up", (times[0], 0.0), (4, 4), **_AT_THE_BOTTOM, ha="left", color=GREY)
    panels[0].set_xlim(times[0], times[-1])
    panels[2].set_xlabel("time t")
    return figure


_AT_THE_BOTTOM: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "bottom"}


def _predictions(
    axes: Axes, times: Floats, y: Floats, warmup: int, mean: Floats, interval: tuple[Floats, Floats]
) -> None:
    online = times[warmup:]
    axes.fill_between(online, *interval, color=SKY, alpha=0.45, linewidth=0, label="95 % interval")
    axes.plot(times, y, ".", color=BLACK, markersize=3, label="samples y")
    axes.plot(online, mean, color=BLUE, linewidth=1.6, label="predictive mean")
    axes.set_ylabel("target y")


def _last_inducing(axes: Axes, inducing: Floats) -> None:
    height = np.full(inducing.shape, 0.02)  # just above the lower edge
    axes.plot(
        inducing,
        height,
        "^",
        transform=axes.get_xaxis_transform(),
        color=VERMILION,
        markersize=5,
        label="last inducing points",
    )


def _ages(axes: Axes, online: Floats, ages: Floats, window: Floats) -> None:
    axes.fill_between(online, 0.0, window, color=YELLOW, alpha=0.35, linewidth=0, label="inside the window")
    axes.plot(online, ages, ".", color=VERMILION, markersize=1.6)
    axes.plot([], [], ".", color=VERMILION, label="inducing point")
    axes.set_ylabel("age t − x")
    axes.set_title("Inducing points: each comes with a new sample, grows older, and goes when others do its work")
    axes.legend(loc="upper left")


def _curves(axes: Axes, online: Floats, curves: Mapping[str, Floats], truth: Mapping[str, float]) -> None:
    for (name, values), (colour, style) in zip(curves.items(), LINES, strict=False):
        axes.plot(online, values, style, color=colour, linewidth=1.6, label=name)
        if name in truth:
            axes.axhline(truth[name], color=colour, linewidth=0.8, label=f"true {name}")
    axes.set_yscale("log")
    axes.set_ylabel("value")
    axes.set_title("Hyperparameters")
    axes.legend(loc="center left")


@styled
def beside(
    times: NDArray[np.datetime64],
    y: Floats,
    mean: Floats,
    interval: tuple[Floats, Floats],
    others: Mapping[str, Floats],
    name: str,
    last: tuple[int, str],
    window: tuple[int, str],
) -> Figure:
    """Draw a model beside others: its last predictions with their interval, and the error of each method over time.

    Args:
        times: time of every row, N.
        y: target of every row, NaN where it is missing.
        mean: the model's predictions.
        interval: lower and upper end of its 95 % interval.
        others: predictions of other methods by their names.
        name: what the target is, with its unit.
        last: rows that the upper panel shows, and their name: "the last ten days".
        window: rows over which errors are averaged, and their name: "four weeks".
    """
    shown = slice(len(y) - last[0], None)
    count, span = window
    figure = blank(9.0, 6.4)
    upper, lower = figure.subplots(2, height_ratios=(3, 2))
    low, high = interval
    upper.fill_between(times[shown], low[shown], high[shown], color=SKY, alpha=0.35, lw=0, label="95 % interval")
    upper.plot(times[shown], mean[shown], color=BLUE, lw=1.5, label="driftgp, one row ahead")
    upper.plot(times[shown], y[shown], ".", color=BLACK, ms=3.5, label="what came")
    upper.set_title(last[1])
    upper.set_ylabel(name)
    for (colour, style), (label, mean_of_one) in zip(LINES, {"driftgp": mean, **others}.items(), strict=False):
        error = np.sqrt(_moving_mean(np.square(y - mean_of_one), count))
        lower.plot(times[count - 1 :], error, style, color=colour, lw=1.5, label=label)
    lower.set_ylim(bottom=0.0)
    lower.set_title(f"error (RMSE) over {span}, one row ahead")
    lower.set_ylabel(name)
    for axes in (upper, lower):
        axes.margins(x=0.01)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=2.6)
        short_dates(axes, times)
    return figure


def short_dates(axes: Axes, at: NDArray[Any]) -> None:
    """Write few and short dates below a picture, if its rows have times.

    A day has its month beside it: what Matplotlib writes below the axis is the month of the last day alone.
    """
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    if at.dtype.kind != "M":
        return
    locator = AutoDateLocator(minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    # for years, months, days, hours, minutes and seconds; `zero_formats` for the first of its kind
    formatter = ConciseDateFormatter(  # type: ignore[no-untyped-call]
        locator,
        formats=["%Y", "%b", "%d %b", "%H:%M", "%H:%M", "%S.%f"],
        zero_formats=["", "%Y", "%d %b", "%d %b", "%H:%M", "%H:%M"],
        offset_formats=["", "%Y", "%Y", "%d %b %Y", "%d %b %Y", "%d %b %Y, %H:%M"],
    )
    axes.xaxis.set_major_formatter(formatter)


def _moving_mean(values: Floats, window: int) -> Floats:
    """Mean of the last `window` values that are there, N − window + 1."""
    there = np.isfinite(values)
    sums = np.cumsum(np.stack([np.where(there, values, 0.0), there]), axis=1)
    ends = sums[:, window - 1 :] - np.pad(sums, ((0, 0), (1, 0)))[:, : len(values) - window + 1]
    return ends[0] / np.maximum(ends[1], 1.0)


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a file in one step, in the format of its ending."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110, format=path.suffix.lstrip("."))
    write_atomically(path, picture.getvalue())
