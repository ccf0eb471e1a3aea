"""Error beside cost of the default and of other methods, on the ten streams of `benchmarks.defaults`."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.defaults.score import EFFORTS as OURS
from benchmarks.measured import NOTHING, number, table
from benchmarks.process import Row
from benchmarks.timing import spread

UNIT = "LightGBM refitted"  # whose error is 1
Scores = dict[str, dict[str, dict[str, float]]]  # by method and stream
FREE = 0.1  # µs: what counts as costing no less
HIGHEST = 2.0  # error that the picture shows

# How each method was run, for the page; the rest has its library's settings.
SETTINGS = {
    UNIT: "200 trees, fitted anew on all rows so far every 168 rows",
    "LightGBM mean and scale": "the same, and a second LightGBM for the size of the errors",
    "LightGBM quantiles, conformal": "LightGBM for 15 quantiles, corrected after each row by conformal inference",
    "random forest refitted": "scikit-learn, 100 trees, fitted anew every 500 rows",
    "linear regression": "recursive least squares on all rows so far",
    "Ridge fitted once": "scikit-learn, fitted to the first 500 rows, then left as it is",
    "ARF (river)": "adaptive random forest, row by row",
    "kNN (river)": "nearest neighbours behind a scaler, row by row",
    "SOKNL (CapyMOA)": "self-optimising k nearest leaves, 100 trees, row by row",
    "GPyTorch, last 500 rows": "exact process, a lengthscale per input, one step of Adam on every tenth row",
    "AutoARIMA (statsforecast)": "chosen and fitted anew on the last 500 rows every 168 rows, `forward` between; "
    "regressors are the lags where there are any, else all inputs",
    "persistence": "the last target",
}
METHODS = (*OURS, *SETTINGS)

# ---- measuring -------------------------------------------------------------------------------------------------------


def errors(name: str, streams: list[str], rows: int) -> list[Row]:
    """A method over the first rows of some streams; the first 500 start it and are not scored."""
    from benchmarks.defaults import rivals, score
    from benchmarks.defaults.streams import stream

    found: list[Row] = []
    for place in streams:
        given = stream(place).first(rows)
        effort = next((effort for effort in OURS if effort == name), None)
        followed = score.follow(given, effort) if effort else rivals.follow(name, given)
        scores = score.scores(followed)
        kept = {key: scores[key] for key in ("mse", "crps", "coverage_95")}
        found.append({"name": name, "how": place, "rows": rows, "microseconds": [followed.microseconds]} | kept)
    return found


# ---- tables ----------------------------------------------------------------------------------------------------------


def scores(rows: Sequence[Row]) -> Scores:
    """What was measured, by method and stream; of several lengths of a stream, that which most methods have."""
    found: Scores = {}
    there = [row for row in rows if row.get("group") == "errors" and "mse" in row]
    common = _common_lengths(there)
    for row in there:
        if row["rows"] == common[row["how"]]:
            kept = {key: row[key] for key in ("mse", "crps", "coverage_95")}
            found.setdefault(row["name"], {})[row["how"]] = kept | {"microseconds": spread(row["microseconds"]).median}
    return {name: found[name] for name in METHODS if name in found}


def _common_lengths(there: Sequence[Row]) -> dict[str, int]:
    """For each stream the number of rows at which most methods were measured, the greatest of equals."""
    methods = Counter((row["how"], row["rows"]) for row in there)
    return {stream: rows for (stream, rows), _ in sorted(methods.items(), key=lambda one: (one[1], one[0][1]))}


def streams_of(found: Scores) -> list[str]:
    """Streams that all others are compared on: those of the unit, in their order."""
    return [*found.get(UNIT, {})]


def ratio(found: Scores, method: str, stream: str, score: str = "mse") -> float:
    """RMSE or CRPS over that of LightGBM; NaN where there is none."""
    mine = found[method].get(stream, {}).get(score, np.nan)
    share = mine / found[UNIT][stream][score]
    return float(np.sqrt(share) if score == "mse" else share)


def cost(found: Scores, method: str, stream: str) -> float:
    """Microseconds of CPU per row."""
    return float(found[method].get(stream, {}).get("microseconds", np.nan))


def markdown(rows: Sequence[Row]) -> str:
    """Geometric means over the streams that a method was run on, the best first; then who is cheaper and better."""
    found = scores(rows)
    if UNIT not in found:
        return ""
    lines = []
    for method in found:
        there = [name for name in streams_of(found) if name in found[method]]
        error, crps = (
            np.exp(np.mean([np.log(ratio(found, method, name, score)) for name in there])) for score in ("mse", "crps")
        )
        spent = [cost(found, method, name) for name in there]
        inside = [found[method][name]["coverage_95"] for name in there]
        cells = [
            f"{error:.2f}",
            f"{crps:.2f}",
            f"{100 * min(inside):.1f}–{100 * max(inside):.1f}",
            number(float(np.median(spent))),
        ]
        lines.append((error, [_title(method), *cells, str(len(there))]))
    heads = [f"RMSE / {UNIT}", "CRPS / the same", "in 95 % intervals, %", "µs per row, median", "streams"]
    return "\n\n".join(
        [
            table(["", *heads], [cells for _, cells in sorted(lines, key=lambda line: line[0])]),
            _verdict(found),
            "RMSE over that of LightGBM, stream by stream:",
            _by_stream(found),
            "How the others were run:",
            "\n".join(f"- **{name}**: {said}." for name, said in SETTINGS.items() if name in found),
            *_failures(rows),
        ]
    )


def _by_stream(found: Scores) -> str:
    there = streams_of(found)
    return table(["", *there], [[_title(name), *(_cell(ratio(found, name, at)) for at in there)] for name in found])


def _cell(value: float) -> str:
    return NOTHING if np.isnan(value) else f"{value:.2f}"


def _failures(rows: Sequence[Row]) -> list[str]:
    failed = [row for row in rows if row.get("group") == "errors" and "failed" in row]
    cases = (f"{row['name']} on {', '.join(row['streams'])} ({row['failed']})" for row in failed)
    return [f"Not measured: {'; '.join(cases)}."] * bool(failed)


def better(found: Scores) -> list[tuple[str, str]]:
    """Methods and streams where a method has both a smaller error and a smaller cost than every effort."""
    return [
        (method, name)
        for method in found
        if method not in OURS
        for name in streams_of(found)
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


# ---- the picture -----------------------------------------------------------------------------------------------------


def draw(rows: Sequence[Row], path: Path) -> None:
    """A panel for each stream: error against cost, each method a mark."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = scores(rows)
    there = streams_of(found)
    if not there:
        return
    across = min(5, len(there))
    down = -(-len(there) // across)
    figure = Figure(figsize=(2.6 * max(across, 3), 2.7 * down + 1.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    others = [method for method in found if method not in OURS]
    for axis, name in zip(axes.ravel(), there, strict=False):
        for i, method in enumerate(others):
            _mark(axis, found, [method], name, f"C{i % 10}", "osD^v"[i // 10 % 5] if i >= 10 else "o", method)
        _mark(axis, found, [m for m in OURS if m in found], name, "black", "*-", "driftgp: low, medium, high effort")
        axis.axhline(1.0, color="grey", linewidth=0.6)
        axis.set_xscale("log")
        axis.set_ylim(0.2, HIGHEST)
        axis.set_title(name)
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("µs of CPU per row")
    for axis in axes[:, 0]:
        axis.set_ylabel("RMSE / LightGBM")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=max(across - 1, 2), fontsize=9)
    figure.savefig(path, dpi=110)


def _mark(axis: Any, found: Scores, methods: Sequence[str], name: str, colour: str, mark: str, label: str) -> None:
    x = [max(cost(found, method, name), FREE) for method in methods]
    y = [min(ratio(found, method, name), 0.99 * HIGHEST) for method in methods]
    size = 11 if "*" in mark else 6
    axis.plot(x, y, mark, color=colour, markersize=size, label=label)
