"""The default on data that others chose, beside the figures that they published: `python -m benchmarks.published`.

    python -m benchmarks.published              # all parts, an hour of CPU, and the tables of docs/published.md
    python -m benchmarks.published one-step     # one part: m4, prices, one-step or chaos
    python -m benchmarks.published --tables     # measure nothing: write the tables from what was measured

The data are those of DRIFTGP_DATA, in `benchmarks/`. Every model is the default as it is; nothing was chosen by these
data. `m4` and `prices` are those of `benchmarks.forecasts_published`.
"""

import argparse
import csv
import gzip
import json
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.forecasts_published import folder, read_m4
from benchmarks.measured import table
from driftgp import Online

Found = dict[str, Any]
PAGE, RESULTS = Path("docs/published.md"), Path("benchmarks/published.json")
PARTS = ("m4", "prices", "one-step", "chaos")
# M4 Hourly, one step ahead
LAGS = (1, 2, 3, 24, 48, 168)
SCORED, FLOOR = 300, -20.0  # last steps of a series; least log density
SCALES = [1.0 + k * 1e-9 for k in range(-5, 6)]
MONDAY = np.datetime64("2018-01-01T00", "us")  # the series are hourly and have no dates
# chaotic series, one step ahead: steps back that are inputs, rows before those that count, published MSE in dB
CHAOS: dict[str, tuple[int, dict[str, float]]] = {
    "lorenz": (6, {"KRLS-T": -56.82, "FB-KRLS": -55.00, "RLS": -48.16}),
    "mg30": (11, {"KRLS": -45.61, "KRLS-T": -44.26}),
}
LEARNED = 1000


# ---- M4 Hourly, one step ahead ---------------------------------------------------------------------------------------


def one_step() -> Found:
    """CRPS and log density of the changes of each series over its last 300 steps, with and without dates."""
    began, rows, found = time.process_time(), 0, {}
    for name, y in read_m4("train").items():
        change = np.diff(np.log(y) if np.all(y > 0.0) else y)
        hours = MONDAY + np.arange(len(change)) * np.timedelta64(1, "h")
        online = Online(target="change", time="hour", lags=LAGS, calendar=("day", "week"), support="real")
        said = online.evaluate(pl.DataFrame({"hour": hours, "change": change}))
        last = slice(len(change) - SCORED, None)
        prediction, truth = said.rows(np.arange(len(change))[last]), change[last]
        log_density = np.maximum(prediction.log_prob(truth), FLOOR)
        found[name] = {"crps": float(np.mean(prediction.crps(truth))), "log density": float(np.mean(log_density))}
        rows += len(change)
    return {"series": found, "microseconds": 1e6 * (time.process_time() - began) / rows}


def published_one_step() -> dict[str, dict[str, dict[str, float]]]:
    """Scores of each method for each series."""
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    with gzip.open(folder() / "m4_hourly_one_step_published.csv.gz", "rt") as lines:
        for row in csv.DictReader(lines):
            found[row["method"]][row["series"]] = {"crps": float(row["crps"]), "log density": float(row["logpdf"])}
    return found


def one_step_table(found: Found) -> str:
    """Each method beside the default, on the series that both have."""
    ours, lines = found["series"], []
    for method, theirs in published_one_step().items():
        both = [name for name in ours if name in theirs and theirs[name]["crps"] > 0.0]
        if not both:
            continue
        ratio = np.array([ours[name]["crps"] / theirs[name]["crps"] for name in both])
        dense = np.mean([[ours[name]["log density"], theirs[name]["log density"]] for name in both], 0)
        share = 100.0 * np.mean(ratio < 1.0)
        cells = [method, str(len(both)), f"{np.exp(np.mean(np.log(ratio))):.3f}", f"{share:.0f} %"]
        lines.append((np.mean(np.log(ratio)), [*cells, f"{dense[0]:.2f}", f"{dense[1]:.2f}"]))
    heads = ["method", "series", "CRPS, driftgp / method", "driftgp better", "log density, driftgp", "method"]
    return table(heads, [line for _, line in sorted(lines, key=lambda line: -line[0])])


# ---- chaotic series --------------------------------------------------------------------------------------------------


def chaos() -> Found:
    """Mean squared error of one-step forecasts after the first 1000 rows, for targets scaled by 1 ± k·10⁻⁹.

    Rounding alone decides how far off the few worst rows are, and these decide the mean.
    """
    found: Found = {}
    for name, (embedding, _) in CHAOS.items():
        with gzip.open(folder() / f"{name}.dat.gz", "rt") as lines:
            y = np.array([float(line) for line in lines if line.strip()])
        X = np.stack([y[embedding - back : len(y) - back] for back in range(1, embedding + 1)], 1)
        after, last, took = [], [], []
        for scale in SCALES:
            began = time.process_time()
            forecast = Online().evaluate(X, scale * y[embedding:])
            took.append(1e6 * (time.process_time() - began) / len(X))
            square = (np.asarray(forecast.mean).ravel() / scale - y[embedding:]) ** 2
            after.append(_decibel(square[LEARNED:]))
            last.append(_decibel(square[-len(square) // 4 :]))
        found[name] = {
            "all": float(np.median(after)),
            "lowest": min(after),
            "highest": max(after),
            "last": float(np.median(last)),
            "microseconds": float(np.median(took)),
            "rows": len(X),
        }
    return found


def _decibel(square: np.ndarray) -> float:
    return float(10.0 * np.log10(np.mean(square)))


def chaos_table(found: Found) -> str:
    """Each series with the best published figures."""
    lines = [
        [
            name,
            f"{found[name]['rows']}",
            f"{found[name]['all']:.1f} ({found[name]['lowest']:.1f} to {found[name]['highest']:.1f})",
            f"{found[name]['last']:.1f}",
            ", ".join(f"{method} {value:.1f}" for method, value in figures.items()),
            f"{found[name]['microseconds']:.0f}",
        ]
        for name, (_, figures) in CHAOS.items()
    ]
    after = f"driftgp after {LEARNED} rows, dB"
    return table(["series", "rows", after, "last quarter, dB", "published, dB", "µs per row"], lines)


# ---- forecasts -------------------------------------------------------------------------------------------------------


def forecasts(part: str) -> Found:
    """What `benchmarks.forecasts_published` prints."""
    command = [sys.executable, "-m", "benchmarks.forecasts_published", part]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"said": done.stdout.strip()}


# ---- the page --------------------------------------------------------------------------------------------------------


def measure(part: str) -> Found:
    """The figures of one part."""
    made = {"one-step": one_step, "chaos": chaos}
    return made[part]() if part in made else forecasts(part)


def write(found: dict[str, Found]) -> None:
    """Put each part between its marks on the page."""
    page = PAGE.read_text(encoding="utf-8")
    for part, figures in found.items():
        begin, end = f"<!-- {part} -->\n", f"<!-- end of {part} -->"
        text = {"one-step": one_step_table, "chaos": chaos_table}.get(part, lambda said: said["said"])(figures)
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{text.strip()}\n\n{end}{rest.split(end)[1]}"
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """Measure what was asked for, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=(*PARTS, []), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    found: dict[str, Found] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for part in [] if chosen.tables else chosen.parts or PARTS:
        found[part] = measure(part)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(part, "is measured", flush=True)
    write(found)


if __name__ == "__main__":
    main()
