"""Forecasts against published figures of others: M4 Hourly, and day-ahead prices of Nord Pool.

    python -m benchmarks.forecasts_published m4              # 48 hours of each series of the file, from its last hour
    python -m benchmarks.forecasts_published m4 --part 0 4   # every fourth series, from the first
    python -m benchmarks.forecasts_published prices          # 24 prices a day, for 728 days
    python -m benchmarks.forecasts_published prices --before # the 728 days before those, to develop on

The data are those of DRIFTGP_DATA, in `benchmarks/`. MASE is the mean absolute error in units of that of the seasonal
naive forecast (24 hours) on the history; MSIS the width of the 95 % interval plus 40 times the misses, in the same
units.
"""

import argparse
import csv
import gzip
import os
import time
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from driftgp.forecasting.series import Series
from driftgp.forecasting.settings import Settings

FLOOR = 0.1  # of the naive forecast's MASE, where series are compared with it
FIRST_DAY = np.datetime64("2016-12-27")
DAYS = 728


def folder() -> Path:
    return Path(os.environ.get("DRIFTGP_DATA", ".")) / "benchmarks"


def read_m4(part: str) -> dict[str, np.ndarray]:
    with gzip.open(folder() / f"m4_hourly_even_{part}.csv.gz", "rt") as lines:
        rows = [line.strip().split(",") for line in lines]
    return {row[0]: np.array([float(value) for value in row[1:] if value not in ("", "NA")]) for row in rows}


def m4(first: int, every: int, effort: str) -> None:
    train, test = read_m4("train"), read_m4("test")
    scores, rows, began = [], 0, time.process_time()
    for name in list(train)[first::every]:
        y, truth = train[name], test[name]
        series = Series(Settings(len(truth), effort))
        series.take(y)
        rows += len(y)
        fan = series.fan(len(y) + np.arange(len(truth)))
        low, high = fan.interval(0.95)
        scale = np.mean(np.abs(y[24:] - y[:-24]))
        error = np.abs(fan.mean - truth)
        smape = 200.0 * np.mean(error / (np.abs(truth) + np.abs(fan.mean)))
        misses = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
        naive = np.mean(np.abs(np.tile(y[-24:], 2) - truth)) / scale
        inside = np.mean((low <= truth) & (truth <= high))
        scores.append((error.mean() / scale, smape, np.mean(high - low + 40.0 * misses) / scale, 100.0 * inside, naive))
    means = np.array(scores)
    ratio = means[:, 0] / np.maximum(means[:, 4], FLOOR)
    print("| series | MASE | sMAPE | MSIS | coverage of 95 % | MASE, seasonal naive |\n|---:|---:|---:|---:|---:|---:|")
    mase, smape, msis, coverage, naive = means.mean(0)
    print(f"| {len(means)} | {mase:.3f} | {smape:.2f} | {msis:.2f} | {coverage:.1f} % | {naive:.3f} |\n")
    print(f"Series above 1.5 times the naive MASE: {np.sum(ratio > 1.5)}; the worst {ratio.max():.2f} times.")
    print(f"CPU per row: {1e6 * (time.process_time() - began) / rows:.0f} µs.")


def read_prices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, prices, and the forecasts of load and wind."""
    with gzip.open(folder() / "nord_pool_prices_hourly.csv.gz", "rt") as lines:
        rows = list(csv.reader(lines))[1:]
    at = np.array([row[0].replace(" ", "T") for row in rows], "datetime64[us]")
    numbers = np.array([[float(value) for value in row[1:]] for row in rows])
    return at, numbers[:, 0], numbers[:, 1:]


def read_published() -> dict[str, np.ndarray]:
    with gzip.open(folder() / "nord_pool_forecasts_published.csv.gz", "rt") as lines:
        rows = list(csv.DictReader(lines))
    return {name: np.array([float(row[name]) for row in rows]) for name in ("lear_ensemble", "dnn_ensemble")}


def prices(before: bool, effort: str) -> None:
    at, y, known = read_prices()
    first = int(np.searchsorted(at, FIRST_DAY)) - 24 * DAYS * before
    series = Series(Settings(24, effort, known=2, step=3600.0))
    said, inside = [], []
    for origin in range(first, first + 24 * DAYS, 24):
        rows, steps = slice(series.rows, origin), slice(origin, origin + 24)
        series.take(y[rows], at[rows], known[rows])
        fan = series.fan(at[steps], at[steps], known[steps])
        low, high = fan.interval(0.9)
        said.append(fan.mean)
        inside.append((low <= y[steps]) & (y[steps] <= high))
    truth = y[first : first + 24 * DAYS]
    error = np.abs(np.concatenate(said) - truth).reshape(-1, 24).mean(1)
    by_hour = 100.0 * np.mean(inside, 0)
    print(f"MAE {error.mean():.3f}; 90 % interval: {100.0 * np.mean(inside):.1f} % of all hours, ", end="")
    print(f"{by_hour.min():.1f} to {by_hour.max():.1f} % by hour of the day.")
    if before:
        return
    for name, forecast in read_published().items():
        other = np.abs(forecast - truth).reshape(-1, 24).mean(1)
        gain = other - error  # by day; Diebold and Mariano
        t = gain.mean() / (gain.std() / np.sqrt(len(gain)))
        print(f"{name}: MAE {other.mean():.3f}; p of no gain over it {1.0 - ndtr(t):.3g}.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=("m4", "prices"))
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("FIRST", "EVERY"))
    parser.add_argument("--before", action="store_true", help="prices: the 728 days before the test")
    parser.add_argument("--effort", default="medium", choices=("low", "medium", "high"))
    chosen = parser.parse_args()
    if chosen.data == "m4":
        first, every = chosen.part
        m4(first, every, chosen.effort)
    else:
        prices(chosen.before, chosen.effort)
