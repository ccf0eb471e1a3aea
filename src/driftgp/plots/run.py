"""The picture of a run: its last stretch, and error and coverage over time; of several series the worst ones first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from driftgp.plots.base import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LINES,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Floats,
    blank,
    short_dates,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from driftgp.tables.predictions import Predictions

STRETCH = 24 * 10  # rows shown as they are
PANELS = 40  # series shown at most
FEW = 8  # series that have room in two columns
BARS = 12  # inputs whose importance has a bar
CURVES = (*LINES, (ORANGE, "-"), (SKY, "--"), (BLACK, ":"))  # inputs whose importance has a line
_GAP = 2.5  # times the usual step: rows are missing


@dataclass(frozen=True)
class About:
    """What a picture says besides its curves."""

    target: str
    level: float
    unit: str = ""
    horizon: int = 1
    warnings: Sequence[str] = ()

    @property
    def axis(self) -> str:
        """The target with its unit, unless its name has it already."""
        bare = self.unit and f"{self.unit}]" not in self.target and f"{self.unit})" not in self.target
        return _short(f"{self.target} [{self.unit}]" if bare else self.target)


@styled
def run_figure(predictions: Predictions, about: About) -> Figure:
    """Draw one series: the last stretch above; rolling error and coverage of the whole run below."""
    shown = predictions.rows(np.isfinite(predictions.mean) & np.isfinite(predictions.high - predictions.low))
    window = max(min(500, len(shown.mean) // 8), len(shown.mean) // 50, 10)
    figure = blank(9.0, 7.0)
    top, middle, bottom = figure.subplots(3, 1, height_ratios=(2.4, 1.0, 1.0))
    _stretch(top, shown, about.level)
    top.set_title(f"Last {min(STRETCH, len(shown.mean))} rows, each predicted before it came")
    top.set_ylabel(about.axis)
    error, naive = np.abs(shown.actual - shown.mean), np.abs(shown.actual - _last_known(shown, about.horizon))
    _line(middle, shown.at, rolling(error, window), color=BLUE, label="driftgp")
    _line(middle, shown.at, rolling(naive, window), linestyle="--", color=GREY, label="persistence (the last value)")
    middle.set_ylabel(f"error{f' [{about.unit}]' if about.unit else ''}")
    middle.set_ylim(bottom=0.0)
    middle.set_title(f"Mean absolute error of the last {window} rows")
    _coverage(bottom, shown, window, about.level)
    for axes in (top, middle, bottom):
        _alarms(axes, shown.rows(slice(-STRETCH, None)) if axes is top else shown)
        _legend_above(axes, row=0.06 if axes is top else 0.0)
    middle.sharex(bottom)
    middle.tick_params(labelbottom=False)
    if shown.at.dtype.kind != "M":
        bottom.set_xlabel("time, or line of the file without one")
    _warnings_below(figure, about.warnings)
    return figure


@styled
def keys_figure(
    predictions: Predictions, about: About, scores: Mapping[str, Mapping[str, Any]], most: int = PANELS
) -> Figure:
    """Draw the last stretch of several series, those with the worst relative error first."""
    keys = worst_first(predictions, list(scores))[:most]
    few = len(keys) <= FEW
    columns, width, height = (2, 9.0, 1.9) if few else (4, 13.0, 1.5)
    rows = -(-len(keys) // columns)
    figure = blank(width, 1.0 + height * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, key in zip(panels, keys, strict=False):
        own = predictions.of(key)
        own = own.rows(np.isfinite(own.mean) & np.isfinite(own.high - own.low)).rows(slice(-(STRETCH // 3), None))
        _stretch(axes, own, about.level, rows=STRETCH // 3)
        _alarms(axes, own)
        axes.set_title(
            f"{_short(key, 30 if few else 14)}: RMSE {_figure(scores[key]['rmse'])}, "
            f"coverage {scores[key]['coverage']:.0%}",
            fontsize=None if few else 9,
        )
        axes.tick_params(axis="both" if not few else "x", labelsize=8 if few else 7)
    for axes in panels[len(keys) :]:
        axes.set_axis_off()
    shown = f"{len(keys)} of {len(scores)} series" if len(scores) > len(keys) else "all series"
    figure.supylabel(about.axis, fontsize=10)
    handles = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(),
        handles.keys(),
        title=f"{about.target}: {shown}, worst first",
        loc="outside upper left",
        ncols=len(handles),
        alignment="left",
    )
    _warnings_below(figure, about.warnings)
    return figure


def worst_first(predictions: Predictions, keys: Sequence[str]) -> list[str]:
    """Keys by mean squared error relative to the variance of their targets, largest first."""

    def badness(key: str) -> float:
        own = predictions.of(key)
        there = np.isfinite(own.actual) & np.isfinite(own.mean)
        if there.sum() < 2:
            return -1.0
        spread = float(np.var(own.actual[there])) or 1.0
        return float(np.mean((own.actual - own.mean)[there] ** 2)) / spread

    return sorted(keys, key=badness, reverse=True)


def rolling(values: Floats, window: int) -> Floats:
    """Mean of the last `window` values that are not missing; NaN before there are `window` of them.

    >>> rolling(np.array([1.0, np.nan, 3.0, 5.0]), 2).tolist()
    [nan, nan, 2.0, 4.0]
    """
    there = np.isfinite(values)
    total = np.concatenate([[0.0], np.cumsum(np.where(there, values, 0.0)[there])])
    means = np.full(there.sum(), np.nan)
    if len(means) >= window:
        means[window - 1 :] = (total[window:] - total[:-window]) / window
    result = np.full(values.shape, np.nan)
    result[there] = means
    return result


def _short(name: str, most: int = 30) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


def _legend_above(axes: Axes, row: float = 0.0) -> None:
    """Above the axes, where it hides nothing; beside the title, or a row above it."""
    place = {"bbox_to_anchor": (1.0, 1.0 + row), "borderaxespad": 0.0}
    axes.legend(loc="lower right", ncols=5, columnspacing=1.2, **place)


def _warnings_below(figure: Figure, warnings: Sequence[str]) -> None:
    """Below everything, where they hide nothing."""
    if warnings:
        width = round(16.5 * figure.get_figwidth())
        lines = [line for warning in warnings for line in wrap(f"Warning: {warning}", width, subsequent_indent="    ")]
        figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8, color=VERMILION)


def _alarms(axes: Axes, shown: Predictions) -> None:
    """A line at each alarm, the first of them with a name."""
    for place, at in enumerate(shown.at[shown.alarm]):
        axes.axvline(at, color=PURPLE, linestyle=":", linewidth=1.4, label=None if place else "alarm")


def _last_known(shown: Predictions, horizon: int) -> Floats:
    """The target this number of rows before each row."""
    return np.concatenate([np.full(horizon, np.nan), shown.actual])[: len(shown.actual)]


def with_gaps(at: NDArray[Any], *values: Floats) -> tuple[NDArray[Any], ...]:
    """Times and values with a NaN wherever rows are missing, so that no line is drawn over a gap.

    >>> with_gaps(np.array([0.0, 1.0, 2.0, 9.0]), np.ones(4))[1].tolist()
    [1.0, 1.0, 1.0, nan, 1.0]
    """
    steps = np.diff(at).astype(np.float64)
    forward = steps[steps > 0.0]
    usual = float(np.median(forward)) if len(forward) else 0.0
    places = np.flatnonzero((steps > _GAP * usual) | (steps < 0.0)) + 1
    return np.insert(at, places, at[places - 1]), *(np.insert(array, places, np.nan) for array in values)


def _line(axes: Axes, at: NDArray[Any], values: Floats, **style: Any) -> None:
    axes.plot(*with_gaps(at, values), **style)


def _stretch(axes: Axes, shown: Predictions, level: float, rows: int = STRETCH) -> None:
    shown = shown.rows(slice(-rows, None))
    at, low, high, mean = with_gaps(shown.at, shown.low, shown.high, shown.mean)
    axes.fill_between(at, low, high, color=SKY, alpha=0.45, linewidth=0, label=f"{level:.0%} interval")
    axes.plot(at, mean, color=BLUE, linewidth=1.4, label="predicted mean")
    axes.plot(shown.at, shown.actual, ".", color=BLACK, markersize=3, label="actual")
    outside = (shown.actual < shown.low) | (shown.actual > shown.high)
    axes.plot(
        shown.at[outside], shown.actual[outside], "x", color=VERMILION, markersize=5, label="outside the interval"
    )
    axes.margins(x=0.01)
    short_dates(axes, shown.at)


def _coverage(axes: Axes, shown: Predictions, window: int, level: float) -> None:
    inside = ((shown.low <= shown.actual) & (shown.actual <= shown.high)).astype(float)
    share = rolling(np.where(np.isfinite(shown.actual), inside, np.nan), window)
    axes.axhline(level, color=GREY, linestyle="--", linewidth=1.0, label=f"{level:.0%}, as asked for")
    _line(axes, shown.at, share, color=GREEN, label="share of targets in their interval")
    axes.set_ylabel("coverage")
    axes.set_title(f"Intervals: the last {window} rows")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    least = float(np.nanmin(share)) - 0.02 if np.isfinite(share).any() else 0.8
    axes.set_ylim(max(0.0, min(0.8, least)), 1.005)
    axes.margins(x=0.01)
    short_dates(axes, shown.at)


@styled
def health_figure(facts: Mapping[str, Any], targets: Sequence[float], name: str) -> Figure:
    """Draw the report of `describe` on a series: usual values in green, suspicious ones in red."""
    gauges = _gauges(facts)
    shares = dict(list(facts.get("importance", {}).items())[:BARS])
    heights = [1.6, 0.3 * len(gauges) + 0.3, *([0.22 * len(shares) + 0.3] if shares else [])]
    figure = blank(9.0, 0.6 + 1.4 * sum(heights))
    top, bottom, *rest = figure.subplots(len(heights), 1, height_ratios=heights)
    top.plot(np.arange(-len(targets), 0), targets, ".-", color=BLACK, markersize=4, linewidth=0.8)
    top.set_title(f"{_short(name)}: last targets, as far back as the inputs reach")
    top.set_xlabel("rows before the checkpoint")
    _bars(bottom, [(label, share, text, GREEN if fine else VERMILION) for label, share, text, fine in gauges])
    bottom.set_title("Its health: an orange-red bar calls for a look")
    for axes in rest:
        _bars(axes, [(_short(name), share, f"{share:.1%}", BLUE) for name, share in shares.items()])
        others = len(facts["importance"]) - len(shares)
        axes.set_title(f"Importance of the inputs now{f', the first {len(shares)} of them' if others else ''}")
    _warnings_below(figure, facts.get("warnings", ()))
    return figure


def _bars(axes: Axes, bars: Sequence[tuple[str, float, str, str]]) -> None:
    """Bars from 0 to 1 one below the other: label, length, text and colour of each."""
    for place, (_, share, text, colour) in enumerate(bars):
        length = min(max(share, 0.0), 1.0)
        axes.barh(place, length, color=colour, height=0.6, alpha=0.75)
        beside = length < 0.7  # else inside, at the bar's end
        axes.annotate(
            text,
            (length, place),
            xytext=(4 if beside else -4, 0),
            textcoords="offset points",
            va="center",
            ha="left" if beside else "right",
        )
    axes.set_yticks(range(len(bars)), [label for label, *_ in bars])
    axes.set_xlim(0.0, 1.0)
    axes.set_xticks([])
    axes.tick_params(left=False)
    axes.grid(visible=False)
    axes.invert_yaxis()


@styled
def importance_figure(at: NDArray[Any], shares: Floats, names: Sequence[str], target: str = "target") -> Figure:
    """Draw how much each input mattered over time: the largest ones as lines, the others as their sum.

    Args:
        at: times or row numbers, T.
        shares: importance of each input at each of them, T×D (see `driftgp.importance`).
        names: of the inputs, D.
        target: name of the target.
    """
    if shares.shape != (len(at), len(names)):
        raise ValueError(f"shares must have the shape {(len(at), len(names))}, times × inputs; got {shares.shape}")
    order = np.argsort(-shares.mean(0), kind="stable")
    alone = order[: len(CURVES)]
    figure = blank(9.0, 4.6)
    axes = figure.subplots()
    marker = "." if len(at) == 1 else ""
    for place, (colour, style) in zip(alone, CURVES, strict=False):
        label = _short(names[place])
        axes.plot(at, shares[:, place], style, color=colour, linewidth=1.6, marker=marker, label=label)
    if len(alone) < len(order):
        rest = shares[:, order[len(alone) :]].sum(1)
        label = f"{len(order) - len(alone)} others together"
        axes.plot(at, rest, color=GREY, linewidth=1.2, marker=marker, label=label)
    axes.set_ylim(0.0, None)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_ylabel("share of the relevance of all inputs")
    axes.set_title(f"{_short(target)}: importance of the inputs over time")
    axes.set_xlabel("" if at.dtype.kind == "M" else "row")
    axes.margins(x=0.01)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    short_dates(axes, at)
    return figure


def _gauges(facts: Mapping[str, Any]) -> list[tuple[str, float, str, bool]]:
    """Label, length of the bar, text, and whether all is well."""
    gauges: list[tuple[str, float, str, bool]] = []
    memory = _leading(facts)
    if memory.get("window"):
        effective, window = memory["effective_samples"], memory["window"]
        text = f"{effective:.1f} of a window of {window}"
        gauges.append(("effective samples", effective / window, text, effective / window > 0.02))
    if memory.get("inducing"):
        used, most = memory["inducing_in_use"], memory["inducing"]
        gauges.append(("inducing points", used / most, f"{used} of {most}", used > 0))
    coverage = facts.get("run_coverage", math.nan)
    if not math.isnan(coverage):
        gauges.append(("coverage of the run", coverage, f"{coverage:.1%}", coverage > 0.8))
    if "evidence" in facts:
        kind = max(facts["evidence"], key=facts["evidence"].__getitem__)
        danger = facts["evidence"][kind]
        since = "" if facts["since_alarm"] is None else f", the last {facts['since_alarm']} rows ago"
        text = f"{danger:.0%} ({kind}); {facts['run_alarms']} so far{since}"
        gauges.append(("way to an alarm", danger, text, danger < 0.7))  # on a log scale
    return gauges


def _leading(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The facts of the member that weighs most, or those of the model itself if it has no members."""
    return max(facts.get("members", [facts]), key=lambda member: float(member.get("weight", 0.0)))
