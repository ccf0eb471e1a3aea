"""The paper's figures, one function each, from arrays to a matplotlib figure.

A method has one colour and one style of line in all of them. The colours are those of Okabe and Ito; the ten curves of
the forgetting sweep, which have an order, take theirs from viridis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftgp.plots.base import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, Floats, blank, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES: dict[str, tuple[str, Any]] = {
    "persistence": (GREY, (0, (1, 1.5))),
    "w-VSGP": (GREEN, "--"),
    "OSGP": (ORANGE, "-."),
    "WISKI": (SKY, (0, (5, 1, 1, 1, 1, 1))),
    "AGP-VSI": (PURPLE, (0, (6, 2))),
    "fast-AGP": (VERMILION, "-"),
    "AGP": (BLUE, "-"),
    "exact window": (BLACK, ":"),
}


class Band(NamedTuple):
    """One-step-ahead mean and standard deviation."""

    mean: Floats
    std: Floats


def _new(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, list[Axes]]:
    figure = blank(*size)
    return figure, list(np.ravel(figure.subplots(rows, columns, squeeze=False, **options)))


def smooth(values: Floats, width: int) -> Floats:
    """Moving average, shorter at the ends.

    >>> smooth(np.array([0.0, 3.0, 0.0]), 3).tolist()
    [1.5, 1.0, 1.5]
    """
    kernel = np.ones(width)
    return np.convolve(values, kernel, "same") / np.convolve(np.ones(len(values)), kernel, "same")


@styled
def toy_data(times: Floats, y: Floats, signal: Floats, warmup: int) -> Figure:
    """Draw one toy stream: what it is without noise, the samples of the warm-up, and those after it."""
    figure, (axes,) = _new(1, 1, (9.0, 3.4))
    axes.plot(times, signal, color=GREY, linewidth=1.0, label="signal without noise")
    axes.plot(times[:warmup], y[:warmup], ".", color=BLACK, markersize=4, label=f"warm-up, {warmup} samples")
    axes.plot(times[warmup:], y[warmup:], ".", color=BLUE, markersize=4, label=f"online, {len(y) - warmup} samples")
    axes.axvline(3.0, color=GREY, linewidth=0.8, linestyle="--")
    axes.text(3.0, 0.02, " frequency doubles", transform=axes.get_xaxis_transform(), fontsize=8, color=GREY)
    axes.set(xlabel="time t", ylabel="target y", xlim=(times[0], times[-1]))
    axes.legend(loc="upper left")
    return figure


@styled
def mse_over_time(times: Floats, errors: Mapping[str, Floats], runs: Mapping[str, int], noise: float) -> Figure:
    """Draw squared errors over time, a curve a method: means over its runs and over 11 samples in a row."""
    figure, (axes,) = _new(1, 1, (9.0, 4.6))
    for name, (colour, style) in LINES.items():
        if name in errors:
            label = f"{name} ({runs[name]} seeds)"
            axes.plot(times, smooth(errors[name], 11), color=colour, linestyle=style, linewidth=1.6, label=label)
    axes.axhline(noise, color=GREY, linewidth=0.8)
    axes.text(times[0], noise, " variance of the noise: no method can be below", va="top", fontsize=8, color=GREY)
    axes.axvline(3.0, color=GREY, linewidth=0.8, linestyle="--")
    axes.set(yscale="log", xlabel="time t", ylabel="MSE (log scale)", xlim=(times[0], times[-1]))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


@styled
def predictive_panels(times: Floats, y: Floats, forecasts: Mapping[str, Band], truth: str = "sample") -> Figure:
    """Draw mean and interval of every method, a panel each, all on the same axes; `y` is the truth of that name."""
    columns = 2
    rows = -(-len(forecasts) // columns)
    figure, panels = _new(rows, columns, (10.0, 2.3 * rows + 0.6), sharex=True, sharey=True)
    for axes, (name, (mean, std)) in zip(panels, forecasts.items(), strict=False):
        colour = LINES.get(name, (BLUE, "-"))[0]
        axes.fill_between(
            times,
            mean - 2 * std,
            mean + 2 * std,
            color=colour,
            alpha=0.25,
            linewidth=0,
            label="± 2 standard deviations",
        )
        axes.plot(times, y, ".", color=BLACK, markersize=2, label=truth)
        axes.plot(times, mean, color=colour, linewidth=1.4, label="predicted mean")
        axes.set_title(f"{name}: MSE {np.mean((mean - y) ** 2):.3f}")
    for axes in panels[len(forecasts) :]:
        axes.set_visible(False)
    panels[0].set(xlim=(times[0], times[-1]), ylim=(-4.5, 4.5))
    panels[0].legend(loc="lower left", ncols=3, fontsize=8)
    for axes in panels[max(len(forecasts) - columns, 0) : len(forecasts)]:  # the lowest of each column
        axes.set_xlabel("time t")
        axes.tick_params(labelbottom=True)
    for axes in panels[::columns]:
        axes.set_ylabel("target y")
    return figure


@styled
def forgetting(times: Floats, errors: Mapping[float, Floats], factors: Mapping[float, float]) -> Figure:
    """Draw AGP's squared errors around the change of frequency, a curve for each rate of forgetting."""
    import matplotlib as mpl

    figure, (axes,) = _new(1, 1, (9.0, 4.6))
    colours = mpl.colormaps["viridis"](np.linspace(0.0, 0.92, len(errors)))
    styles = ("-", "--", "-.", ":")
    for i, (v, values) in enumerate(sorted(errors.items())):
        label = f"v = {v:g}, λ = {factors[v]:.3f}"
        axes.plot(times, smooth(values, 3), color=colours[i], linestyle=styles[i % 4], linewidth=1.5, label=label)
    axes.axvline(3.0, color=GREY, linewidth=0.8, linestyle="--")
    axes.set(yscale="log", xlabel="time t", ylabel="MSE (log scale)", xlim=(times[0], times[-1]))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", title="λ^T = 10^(−v)")
    return figure


@styled
def mape_by_hour(hours: Sequence[int], zones: Mapping[str, Mapping[str, Floats]]) -> Figure:
    """Draw the mean absolute error in per cent of the load by hour of the day, a panel a zone, a curve a method."""
    figure, panels = _new(1, len(zones), (5.2 * len(zones) + 1.0, 4.2), sharey=True)
    for axes, (zone, curves) in zip(panels, zones.items(), strict=True):
        for name, (colour, style) in LINES.items():
            if name in curves:
                axes.plot(hours, curves[name], color=colour, linestyle=style, linewidth=1.6, label=name)
        axes.set(
            title=zone,
            xlabel="hour of the day (hour ending)",
            ylabel="MAPE (%)",
            xticks=hours[:: max(1, len(hours) // 8)],
        )
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")
    return figure


@styled
def traces(times: Floats, curves: Mapping[str, Floats]) -> Figure:
    """Draw quantities over time, a panel each."""
    figure, panels = _new(len(curves), 1, (9.0, 1.7 * len(curves)), sharex=True)
    for axes, (name, values) in zip(panels, curves.items(), strict=True):
        axes.plot(times, values, color=BLUE, linewidth=1.4)
        axes.axvline(3.0, color=GREY, linewidth=0.8, linestyle="--")
        axes.set_ylabel(name)
    panels[0].text(3.0, 0.9, " frequency doubles", transform=panels[0].get_xaxis_transform(), fontsize=8, color=GREY)
    panels[-1].set(xlabel="time t", xlim=(times[0], times[-1]))
    return figure


@styled
def inducing(times: Floats, seen: Mapping[str, Any]) -> Figure:
    """Draw inducing inputs, their number and R_tot/σ² over time, a column for each model's trace."""
    figure, panels = _new(3, len(seen), (5.2 * len(seen), 7.2), sharex=True, sharey="row")
    for column, (name, trace) in enumerate(seen.items()):
        inputs, counts, rest = panels[column], panels[column + len(seen)], panels[column + 2 * len(seen)]
        U = np.asarray(trace.U)[..., 0]  # N×M
        used = np.arange(U.shape[1]) < np.asarray(trace.points)[:, None]
        inputs.plot(times, np.where(used, U, np.nan), ".", color=BLUE, markersize=1.5)
        inputs.plot(times, times, color=GREY, linewidth=0.8)
        inputs.set_title(name)
        counts.step(times, trace.points, color=BLACK, linewidth=1.0)
        noise = np.asarray(trace.noise)[:, 0]
        rest.plot(times, np.asarray(trace.R_tot) / noise, color=VERMILION, linewidth=1.2, label="R_tot/σ²")
        rest.plot(times, np.asarray(trace.R_threshold), color=GREY, linestyle="--", linewidth=1.0, label="κ/T")
        rest.set(yscale="log", xlabel="time t", xlim=(times[0], times[-1]))
    for axes, label in zip(
        panels[:: len(seen)], ("inducing inputs", "points in use", "R_tot/σ² (log scale)"), strict=True
    ):
        axes.set_ylabel(label)
    panels[-1].legend(loc="upper right", fontsize=8)
    return figure
