"""What the paper's prose claims: its number, ours, and whether the claim holds in these runs.

Times are those of the stream alone. A claim is judged by the published setup, unless it says otherwise.
"""

from collections.abc import Callable, Iterable

import numpy as np
import polars as pl

from driftgp.data import toy_signal, toy_times
from driftgp.data.toy import WARMUP
from experiments import summary
from experiments.report import Table
from experiments.summary import Lines, Results

HEAD = ["the paper says", "its number", "here", "verdict"]
TOY = ("w-VSGP", "OSGP", "WISKI", "AGP-VSI", "fast-AGP", "AGP")
CHANGE = 3.0  # when the frequency doubles
HOLDS, FAILS = "holds", "does not hold"
Row = list[str]
Claim = Callable[[Lines, Results], Row | None]


def table(lines: Lines, results: Results, claims: Iterable[Claim]) -> list[Table]:
    """The claims for which all methods were run; no table without any."""
    rows = []
    for claim in claims:
        try:
            rows.append(claim(lines, results))
        except (KeyError, ValueError, IndexError):  # a method that was not run
            continue
    found = [row for row in rows if row is not None]
    return [Table("Claims of the paper's prose", HEAD, found)] if found else []


def _verdict(right: bool) -> str:
    return HOLDS if right else FAILS


def _listed(values: dict[str, float], form: str = "{:.4f}") -> str:
    return ", ".join(f"{name} {form.format(value)}" for name, value in values.items())


# ---- toy -----------------------------------------------------------------------------------------------------------


def _scores(lines: Lines, what: str, methods: Iterable[str] = TOY, series: str = "toy") -> dict[str, float]:
    return {name: float(getattr(lines[name][series], what)) for name in methods}


def toy_best_error(lines: Lines, _: Results) -> Row:
    """AGP has the lowest MSE, then OSGP, then fast-AGP."""
    mse = _scores(lines, "mse")
    order = sorted(mse, key=mse.__getitem__)
    right = order[:3] == ["AGP", "OSGP", "fast-AGP"]
    claim = "AGP has the lowest MSE, followed by OSGP and fast-AGP"
    verdict = HOLDS if right else "AGP is first; the next are not in this order" if order[0] == "AGP" else FAILS
    return [claim, "0.0630, 0.1333, 0.1960", _listed({name: mse[name] for name in order[:3]}), verdict]


def toy_best_interval(lines: Lines, _: Results) -> Row:
    """AGP has the best interval."""
    off = {name: abs(100 * value - 95.0) for name, value in _scores(lines, "coverage").items()}
    best, second = sorted(off, key=off.__getitem__)[:2]
    here = f"AGP off by {off['AGP']:.2f} points; best {best} by {off[best]:.2f}, then {second} by {off[second]:.2f}"
    return ["AGP has the best estimate of the 95 % interval", "95.02", here, _verdict(best == "AGP")]


def toy_two_parts(_: Lines, results: Results) -> Row:
    """Before the change all methods work, after it all but AGP fail."""
    before = toy_times()[WARMUP:] < CHANGE
    parts = {}
    for name in TOY:
        errors = (summary.array(results[name], "mean") - summary.array(results[name], "y")) ** 2
        parts[name] = float(np.nanmean(errors[:, before])), float(np.nanmean(errors[:, ~before]))
    first = {name: part[0] for name, part in parts.items()}
    second = {name: part[1] for name, part in parts.items()}
    others = min(value for name, value in second.items() if name != "AGP")
    right = max(first.values()) < 0.2 and others > 2.0 * second["AGP"]
    here = f"before: {min(first.values()):.3f} to {max(first.values()):.3f}; after: {_listed(second, '{:.3f}')}"
    return ["all methods work until the frequency changes, then all but AGP fail", "–", here, _verdict(right)]


def toy_widening(_: Lines, results: Results) -> Row:
    """OSGP's interval grows."""
    std = summary.array(results["OSGP"], "std")
    if not std.size:
        raise ValueError("OSGP was not run")
    first, last = float(std[:, :50].mean()), float(std[:, -50:].mean())
    here = f"mean standard deviation of the first 50 samples {first:.2f}, of the last 50 {last:.2f}"
    return ["OSGP's interval grows over time", "–", here, _verdict(last > 1.5 * first)]


def toy_delay(_: Lines, results: Results) -> Row:
    """WISKI is late, and too small."""
    late = slice(-120, None)
    mean, signal = summary.array(results["WISKI"], "mean").mean(0), toy_signal()[WARMUP:]
    if not mean[late].std() > 0.0:
        raise ValueError("WISKI was not run")
    lags = range(25)
    fits = [float(np.corrcoef(mean[late], np.roll(signal, lag)[late])[0, 1]) for lag in lags]
    ratio = float(mean[late].std() / signal[late].std())
    lag = int(np.argmax(fits))
    here = (
        f"{ratio:.0%} of the signal's amplitude in the mean over seeds, which fits the signal best {lag} samples late"
    )
    claim = "WISKI's predictions are delayed and have too small an amplitude"
    verdict = HOLDS if ratio < 0.9 and lag > 0 else "delayed, but not too small" if lag > 0 else FAILS
    return [claim, "–", here, verdict]


TOY_CLAIMS: tuple[Claim, ...] = (toy_best_error, toy_best_interval, toy_two_parts, toy_widening, toy_delay)


# ---- forgetting sweep ----------------------------------------------------------------------------------------------


def sweep(around: dict[float, float], tracking: dict[float, float]) -> list[Table]:
    """Claims about the sweep, from the errors of every v over t ∈ [2.5, 4] and over t ∈ [3.2, 3.4]."""
    if len(around) < 10:
        return []
    best, fastest = min(around, key=around.__getitem__), min(tracking, key=tracking.__getitem__)
    times, sharper = around[0.0] / around[best], tracking[0.0] / tracking[fastest]
    worst = max(value for v, value in around.items() if v > 0.0)
    level = tracking[4.0] < 1.02 * tracking[fastest]
    rows = [
        [
            "without forgetting AGP is similar to the baselines",
            "figure",
            f"{around[0.0]:.4f}, {times:.1f} times the best v; {sharper:.1f} times between 3.2 and 3.4",
            _verdict(times > 2.0),
        ],
        [
            "with any other λ it adapts to the new frequency",
            "figure",
            f"{around[best]:.4f} to {worst:.4f}",
            _verdict(worst < 0.5 * around[0.0]),
        ],
        [
            "the error between t = 3.2 and 3.4 falls until λ = 0.912 (v = 4)",
            "figure",
            f"lowest at v = {fastest:g} ({tracking[fastest]:.4f}), {tracking[4.0]:.4f} at v = 4",
            HOLDS if fastest == 4.0 else "level from v = 3 to v = 4" if level else FAILS,
        ],
        [
            "with λ of 0.9 or less it forgets too fast",
            "figure",
            f"{around[4.5]:.4f} and {around[5.0]:.4f} (v = 4.5, 5), {around[best]:.4f} at v = {best:g}",
            _verdict(min(around[4.5], around[5.0]) > 1.02 * around[best]),
        ],
    ]
    return [Table("Claims of the paper's prose", HEAD, rows)]


# ---- load ----------------------------------------------------------------------------------------------------------

LOAD = ("persistence", "w-VSGP", "WISKI", "AGP-VSI", "fast-AGP", "AGP")
AVERAGE = "average"


def load_best_error(lines: Lines, _: Results) -> Row:
    """fast-AGP has the lowest MSE."""
    mse = _scores(lines, "mse", LOAD, AVERAGE)
    order = sorted(mse, key=mse.__getitem__)
    here = _listed({name: mse[name] for name in order[:3]})
    return ["fast-AGP has the lowest MSE (average of zones)", "0.0263", here, _verdict(order[0] == "fast-AGP")]


def load_interval(lines: Lines, _: Results) -> Row:
    """AGP's interval is the accurate one."""
    coverage = {name: 100 * value for name, value in _scores(lines, "coverage", LOAD[1:], AVERAGE).items()}
    right = (
        min(coverage, key=lambda name: abs(coverage[name] - 95.0)) == "AGP"
        and max(value for name, value in coverage.items() if name != "AGP") < 94.0
    )
    claim = "AGP alone has an accurate 95 % interval, around 96 %; the others are around 90 or 91 %"
    return [claim, "96.51; 90.81 to 91.77", _listed(coverage, "{:.2f}"), _verdict(right)]


def load_points(_: Lines, results: Results) -> Row:
    """Points in use."""
    points = {name: results[name]["points"].drop_nulls().to_numpy() for name in ("fast-AGP", "AGP")}
    ends = {name: (float(np.quantile(p, 0.05)), float(np.quantile(p, 0.95))) for name, p in points.items()}
    here = "; ".join(
        f"{name}: 5 to 95 % of runs end with {low:.0f} to {high:.0f}" for name, (low, high) in ends.items()
    )
    right = all(8 <= low and high <= 10 for low, high in ends.values())
    return ["AGP and fast-AGP select between 8 and 10 inducing points of M = 20", "8 to 10", here, _verdict(right)]


def _ratio(lines: Lines, one: str, other: str) -> float:
    return lines[one][AVERAGE].seconds / lines[other][AVERAGE].seconds


def load_stochastic_times(lines: Lines, _: Results) -> Row:
    """25 times AGP, 100 times fast-AGP."""
    found = [_ratio(lines, one, other) for one in ("w-VSGP", "AGP-VSI") for other in ("AGP", "fast-AGP")]
    here = f"w-VSGP {found[0]:.0f} and {found[1]:.0f}, AGP-VSI {found[2]:.0f} and {found[3]:.0f} times"
    claim = "w-VSGP and AGP-VSI cost 25 times AGP and 100 times fast-AGP"
    near = all(0.5 * paper < ratio < 2.0 * paper for ratio, paper in zip(found, (25, 100, 25, 100), strict=True))
    verdict = HOLDS if near else "by more here" if min(found) > 25 else FAILS
    return [claim, "25, 100", here, verdict]


def load_wiski_times(lines: Lines, _: Results) -> Row:
    """WISKI against AGP and fast-AGP."""
    to_agp, to_fast = _ratio(lines, "WISKI", "AGP"), _ratio(lines, "WISKI", "fast-AGP")
    here = f"{to_agp:.1f} times AGP, {to_fast:.0f} times fast-AGP"
    right = 0.5 < to_agp < 2.0 and 3.0 < to_fast < 10.0
    verdict = HOLDS if right else "fast-AGP is faster by more; WISKI is slower than AGP"
    return ["WISKI costs about as much as AGP, and 5.7 times fast-AGP", "1.4, 5.7", here, verdict]


def load_mape(lines: Lines, _: Results) -> Row:
    """MAPE in two zones."""
    here, right = [], True
    for zone in ("CT", "WCMA"):
        mape = {name: lines[name][zone].mape for name in LOAD}
        here.append(f"{zone}: {_listed(mape, '{:.2f}')}")
        right = right and {"AGP", "fast-AGP"} == set(sorted(mape, key=mape.__getitem__)[:2])
    return [
        "the best MAPE are those of fast-AGP and AGP; WISKI's is about persistence's",
        "figure",
        "; ".join(here),
        _verdict(right),
    ]


def load_unstable(_: Lines, results: Results) -> Row:
    """WISKI is behind persistence in some hours."""

    def worse(zone: str) -> int:
        hours = [
            results[name].filter(pl.col("series") == zone).sort("output")["mape"].to_numpy()
            for name in ("WISKI", "persistence")
        ]
        if min(map(len, hours)) < 24:
            raise ValueError(zone)
        return int(np.sum(hours[0] > hours[1]))

    found = {zone: worse(zone) for zone in ("CT", "WCMA")}
    here = ", ".join(f"{count} of 24 hours in {zone}" for zone, count in found.items())
    claim = "WISKI is unstable: in some hours its MAPE is above persistence's"
    return [claim, "figure", here, _verdict(sum(found.values()) > 0)]


def load_hybrid(lines: Lines, _: Results) -> Row:
    """A step of AGP every ten days."""
    coverage = {name: 100 * lines[name][AVERAGE].coverage for name in ("fast-AGP", "hybrid", "AGP")}
    time = lines["hybrid"][AVERAGE].seconds / lines["AGP"][AVERAGE].seconds
    here = f"coverage {_listed(coverage, '{:.2f}')}; {time:.2f} of AGP's time"
    right = abs(coverage["hybrid"] - 95) < abs(coverage["fast-AGP"] - 95) and time < 1.0
    return [
        "AGP at every tenth sample gives a better variance than fast-AGP, and is faster than AGP",
        "–",
        here,
        _verdict(right),
    ]


LOAD_CLAIMS: tuple[Claim, ...] = (
    load_best_error,
    load_interval,
    load_points,
    load_stochastic_times,
    load_wiski_times,
    load_mape,
    load_unstable,
    load_hybrid,
)


# ---- sales ---------------------------------------------------------------------------------------------------------

SALES = ("persistence", "w-VSGP", "OSGP", "WISKI", "AGP-VSI", "fast-AGP", "AGP")


def sales_best_error(lines: Lines, _: Results) -> Row:
    """fast-AGP has the best MSE."""
    best = {}
    for series in ("SS", "OR"):
        mse = {name: lines[name][series].mse for name in SALES if series in lines[name]}
        first = min(mse, key=mse.__getitem__)
        best[f"{series} {first}"] = mse[first]
    right = all(name.endswith("fast-AGP") for name in best)
    verdict = HOLDS if right else "does not hold, nor does it in the paper's own table (SS: w-VSGP, OR: WISKI)"
    return ["fast-AGP provides the best MSE", "0.1868, 2.1920", _listed(best), verdict]


def sales_fastest(lines: Lines, _: Results) -> Row:
    """fast-AGP is the fastest."""
    times = {
        f"{series} {name}": lines[name][series].seconds
        for series in ("SS", "OR")
        for name in ("fast-AGP", "AGP", "WISKI")
    }
    others = [name for name in SALES if name not in ("persistence", "fast-AGP")]
    right = all(
        lines["fast-AGP"][series].seconds < lines[name][series].seconds
        for series in ("SS", "OR")
        for name in others
        if series in lines[name]
    )
    return ["fast-AGP is the fastest", "39.6, 3.0 s", _listed(times, "{:.3g} s"), _verdict(right)]


def sales_interval(lines: Lines, _: Results) -> Row:
    """AGP has the best interval."""
    here, right = {}, True
    for series in ("SS", "OR"):
        off = {name: abs(100 * lines[name][series].coverage - 95.0) for name in SALES[1:] if series in lines[name]}
        right = right and min(off, key=off.__getitem__) == "AGP"
        here[f"{series} AGP"] = 100 * lines["AGP"][series].coverage
    return ["AGP has the best estimate of the interval", "95.45, 94.15", _listed(here, "{:.2f}"), _verdict(right)]


def sales_wiski(lines: Lines, _: Results) -> Row:
    """WISKI in OR."""
    mse = {name: lines[name]["OR"].mse for name in SALES}
    coverage = 100 * lines["WISKI"]["OR"].coverage
    right = min(mse, key=mse.__getitem__) == "WISKI" and coverage < 93.0
    maps = sum(name.startswith("WISKI (map") for name in lines)
    here = f"median of {maps} maps: {mse['WISKI']:.4f}, coverage {coverage:.2f}"
    return ["in OR WISKI has the lowest MSE, and no accurate interval", "2.0593, 89.27", here, _verdict(right)]


SALES_CLAIMS: tuple[Claim, ...] = (sales_best_error, sales_fastest, sales_interval, sales_wiski)
