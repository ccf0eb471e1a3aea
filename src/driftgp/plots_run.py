"""The picture of a run: its last stretch, and how error and coverage went; of several series, the worst ones first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from driftgp.extras import needs
from driftgp.plots import BLACK, BLUE, GREEN, GREY, SKY, STYLE, VERMILION, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from driftgp.data.predictions import Predictions

STRETCH = 24 * 10  # rows shown as they are
PANELS = 40  # series shown at most
FEW = 8  # series that have room in two columns


def run_figure(predictions: Predictions, target: str, level: float, horizon: int = 1) -> Figure:
    """Draw one series: the last stretch above; rolling error and coverage of the whole run below."""
    with needs("drawing", extra="cli"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

    shown = _predicted(predictions)
    window = max(min(500, len(shown.mean) // 8), len(shown.mean) // 50, 10)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 7.0), layout="constrained")
        top, middle, bottom = figure.subplots(3, 1, height_ratios=(2.4, 1.0, 1.0))
        _stretch(top, shown, level)
        top.set_title(f"{_short(target)}: last {min(STRETCH, len(shown.mean))} rows, each predicted before it came")
        _legend_above(top, row=0.06)
        error = np.abs(shown.actual - shown.mean)
        naive = np.abs(shown.actual - np.concatenate([np.full(horizon, np.nan), shown.actual])[: len(shown.actual)])
        middle.plot(shown.at, rolling(error, window), color=BLUE, label="prediction")
        middle.plot(shown.at, rolling(naive, window), "--", color=GREY, label="the last known row")
        middle.set_ylabel("mean abs. error")
        middle.set_ylim(bottom=0.0)
        middle.set_title(f"Mean of the last {window} rows, over the whole run")
        _legend_above(middle)
        _coverage(bottom, shown, window, level)
        middle.sharex(bottom)
        middle.tick_params(labelbottom=False)
    return figure


def groups_figure(
    predictions: Predictions, target: str, level: float, scores: Mapping[str, Mapping[str, Any]], most: int = PANELS
) -> Figure:
    """Draw the last stretch of several series, those with the worst relative error first."""
    with needs("drawing", extra="cli"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

    groups = worst_first(predictions, list(scores))[:most]
    few = len(groups) <= FEW
    columns, width, height = (2, 9.0, 1.9) if few else (4, 13.0, 1.5)
    rows = -(-len(groups) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 1.0 + height * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, group in zip(panels, groups, strict=False):
            _stretch(axes, _predicted(predictions.of(group)), level, rows=STRETCH // 3)
            own = scores[group]
            axes.set_title(
                f"{_short(group, 30 if few else 14)}: RMSE {own['rmse']:.3g}, coverage {own['coverage']:.1%}",
                fontsize=None if few else 9,
            )
            axes.tick_params(axis="both" if not few else "x", labelsize=8 if few else 7)
        for axes in panels[len(groups) :]:
            axes.set_axis_off()
        shown = f"{len(groups)} of {len(scores)} series" if len(scores) > len(groups) else "all series"
        figure.suptitle(f"{target}: {shown}, worst first", x=0.01, ha="left", fontsize=10)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=4)
    return figure


def worst_first(predictions: Predictions, groups: Sequence[str]) -> list[str]:
    """Groups by mean squared error relative to the variance of their targets, largest first."""

    def badness(group: str) -> float:
        own = _predicted(predictions.of(group))
        there = np.isfinite(own.actual)
        if there.sum() < 2:
            return -1.0
        spread = float(np.var(own.actual[there])) or 1.0
        return float(np.mean((own.actual - own.mean)[there] ** 2)) / spread

    return sorted(groups, key=badness, reverse=True)


def rolling(values: Floats, window: int) -> Floats:
    """Mean of the last `window` values that are there, NaN until there are as many.

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


def _predicted(predictions: Predictions) -> Predictions:
    """Rows for which there is a prediction."""
    here = np.isfinite(predictions.mean)
    return type(predictions)(
        *(getattr(predictions, name)[here] for name in ("at", "group", "mean", "low", "high", "actual"))
    )


def _short(name: str, most: int = 30) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _legend_above(axes: Axes, row: float = 0.0) -> None:
    """Above the axes, where it hides nothing; beside the title, or a row above it."""
    place = {"bbox_to_anchor": (1.0, 1.0 + row), "borderaxespad": 0.0}
    axes.legend(loc="lower right", ncols=4, columnspacing=1.2, **place)


def _stretch(axes: Axes, shown: Predictions, level: float, rows: int = STRETCH) -> None:
    at: NDArray[Any] = shown.at[-rows:]
    axes.fill_between(
        at, shown.low[-rows:], shown.high[-rows:], color=SKY, alpha=0.45, linewidth=0, label=f"{level:.0%} interval"
    )
    axes.plot(at, shown.mean[-rows:], color=BLUE, linewidth=1.4, label="predicted mean")
    actual, outside = shown.actual[-rows:], (shown.actual < shown.low) | (shown.actual > shown.high)
    axes.plot(at, actual, ".", color=BLACK, markersize=3, label="actual")
    axes.plot(
        at[outside[-rows:]], actual[outside[-rows:]], "x", color=VERMILION, markersize=5, label="outside the interval"
    )
    axes.margins(x=0.01)
    _short_dates(axes, at)


def _coverage(axes: Axes, shown: Predictions, window: int, level: float) -> None:
    inside = ((shown.low <= shown.actual) & (shown.actual <= shown.high)).astype(float)
    share = rolling(np.where(np.isfinite(shown.actual), inside, np.nan), window)
    axes.axhline(level, color=GREY, linestyle="--", linewidth=1.0)
    axes.plot(shown.at, share, color=GREEN)
    axes.set_ylabel("coverage")
    least = float(np.nanmin(share)) - 0.02 if np.isfinite(share).any() else 0.8
    axes.set_ylim(max(0.0, min(0.8, least)), 1.005)
    axes.margins(x=0.01)
    _short_dates(axes, shown.at)


def _short_dates(axes: Axes, at: NDArray[Any]) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    if at.dtype.kind == "M":
        locator = AutoDateLocator(minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def health_figure(facts: Mapping[str, Any], targets: Sequence[float], name: str) -> Figure:
    """Draw what `describe` says of a series: what is usual in green, what calls for a look in red."""
    with needs("drawing", extra="cli"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

    gauges = _gauges(facts)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 2.2 + 0.42 * len(gauges)), layout="constrained")
        top, bottom = figure.subplots(2, 1, height_ratios=(1.6, 0.3 * len(gauges) + 0.3))
        top.plot(np.arange(-len(targets), 0), targets, ".-", color=BLACK, markersize=4, linewidth=0.8)
        top.set_title(f"{_short(name)}: last targets, as far back as the inputs reach")
        top.set_xlabel("rows before the checkpoint")
        for place, (_, share, text, fine) in enumerate(gauges):
            length = min(max(share, 0.0), 1.0)
            bottom.barh(place, length, color=GREEN if fine else VERMILION, height=0.6, alpha=0.75)
            beside = length < 0.7  # else inside, at the bar's end
            bottom.annotate(
                text,
                (length, place),
                xytext=(4 if beside else -4, 0),
                textcoords="offset points",
                va="center",
                ha="left" if beside else "right",
            )
        bottom.set_yticks(range(len(gauges)), [label for label, *_ in gauges])
        bottom.set_xlim(0.0, 1.0)
        bottom.set_xticks([])
        bottom.tick_params(left=False)
        bottom.grid(visible=False)
        bottom.invert_yaxis()
        bottom.set_title("Its health: a vermilion bar calls for a look")
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
    if facts.get("run_coverage") == facts.get("run_coverage") and facts.get("run_coverage") is not None:
        gauges.append(
            ("coverage of the run", facts["run_coverage"], f"{facts['run_coverage']:.1%}", facts["run_coverage"] > 0.8)
        )
    if facts.get("scored"):
        square, mean = facts["residual_square"][0], facts["residual_mean"][0]
        autocorrelation = facts["autocorrelation"][0][0]
        gauges += [
            ("mean squared residual (right: 1)", square / 4.0, f"{square:.2f}", 0.3 < square < 2.0),
            ("mean residual (right: 0)", abs(mean), f"{mean:+.2f}", abs(mean) < 0.5),
            (
                "autocorrelation (right: 0)",
                abs(autocorrelation),
                f"{autocorrelation:+.2f}",
                abs(autocorrelation) < 0.4,
            ),
        ]
        danger = facts["shortfall"] / facts["shortfall_for_alarm"]
        since = "" if facts["since_alarm"] is None else f", the last {facts['since_alarm']} rows ago"
        gauges.append(("way to a drift alarm", danger, f"{danger:.0%}; {facts['alarms']} so far{since}", danger < 0.5))
    return gauges


def _leading(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The facts of the member that weighs most, or those of the model itself if it has no members."""
    members, weights = facts.get("members"), facts.get("weights")
    return members[int(np.argmax(weights))] if members and weights else facts
