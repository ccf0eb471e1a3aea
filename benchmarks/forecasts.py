"""Forecasts of all leads at every row, against the seasonal naive forecast and LightGBM refitted weekly per lead.

    python -m benchmarks.forecasts load             # CT load, 24 hours ahead at every hour of 2022 and 2023
    python -m benchmarks.forecasts bikes            # bike rentals, 24 hours ahead at every hour of 2012
    python -m benchmarks.forecasts sales            # daily sales, 28 days ahead at every day of the last two years
    python -m benchmarks.forecasts load --lightgbm 1,6,12,24    # these leads of LightGBM (all: 24 minutes of CPU)

The data are those of DRIFTGP_DATA. Tables are printed as Markdown.
"""

import argparse
import time
from typing import NamedTuple

import numpy as np

from driftgp import Forecaster, Online, recommended
from driftgp.data import load_bikes
from experiments.data import read_isone, read_store_sales

SUMS = 7  # every so many rows the sum of all leads is scored, by so many paths
PATHS = 500


class Series(NamedTuple):
    """A series, and what is forecast of it."""

    times: np.ndarray
    y: np.ndarray
    horizon: int
    season: int
    first: np.datetime64  # the first row from which forecasts are scored


def load() -> Series:
    record = read_isone(None, ("CT",), years=range(2020, 2024))["CT"]
    times = (record.days[:, None] + np.arange(24).astype("timedelta64[h]")).reshape(-1)
    return Series(times.astype("datetime64[h]"), record.values.reshape(-1), 24, 24, np.datetime64("2022-01-01T00"))


def bikes() -> Series:
    table = load_bikes("numpy")
    at = table["time"].astype("datetime64[h]")
    times = np.arange(at[0], at[-1] + 1)
    y = np.full(len(times), np.nan)
    y[(at - at[0]).astype(int)] = table["count"]
    return Series(times, y, 24, 24, np.datetime64("2012-01-01T00"))


def sales() -> Series:
    record = read_store_sales(None)
    return Series(record.days, record.values.reshape(-1), 28, 7, record.days[-730])


SERIES = {"load": load, "bikes": bikes, "sales": sales}


def truths(series: Series) -> np.ndarray:
    """Targets of each origin's leads, N×H."""
    N, H = len(series.y), series.horizon
    Y = np.full((N, H), np.nan)
    for h in range(1, H + 1):
        Y[: N - h, h - 1] = series.y[h:]
    return Y


def naive(series: Series) -> np.ndarray:
    """The last known value at the same place in the season, N×H."""
    N, H = len(series.y), series.horizon
    M = np.full((N, H), np.nan)
    for h in range(1, H + 1):
        back = series.season * -(-h // series.season)
        origins = np.arange(back - h, N - h)
        M[origins, h - 1] = series.y[origins + h - back]
    return M


class Forecasts(NamedTuple):
    """What was forecast from each origin: means, ends of the 95 % interval, and those of the sum of all leads."""

    mean: np.ndarray  # N×H
    low: np.ndarray
    high: np.ndarray
    total: np.ndarray  # N×2
    microseconds: float  # of CPU per row, to learn and to issue all leads


def ours(series: Series) -> Forecasts:
    N, H = len(series.y), series.horizon
    first = int(np.searchsorted(series.times, series.first)) - 1
    mean, low, high, total = (np.full((N, width), np.nan) for width in (H, H, H, 2))
    forecaster = Forecaster(H)
    forecaster.update(series.y[:first], series.times[:first])
    seconds = 0.0
    for origin in range(first, N - 1):
        began = time.process_time()
        forecaster.update(series.y[origin : origin + 1], series.times[origin : origin + 1])
        fan = forecaster.forecast()
        seconds += time.process_time() - began
        mean[origin], (low[origin], high[origin]) = fan.mean, fan.interval(0.95)
        if origin % SUMS == 0:
            total[origin] = fan.total(size=PATHS, seed=origin)[1:]
    return Forecasts(mean, low, high, total, 1e6 * seconds / (N - 1 - first))


def lightgbm(series: Series, lead: int, back: int = 17_520, refit: int = 168) -> np.ndarray:
    """Means of one lead by LightGBM with its own settings, fitted every week on the last two years, N."""
    from lightgbm import LGBMRegressor

    y, H = series.y, series.horizon
    N, first = len(y), int(np.searchsorted(series.times, series.first)) - 1
    refit, back = (7, 10_000) if H == 28 else (refit, back)
    X = _inputs(series, lead)
    mean = np.full(N, np.nan)
    for origin in range(first, N - lead, refit):
        rows = np.arange(max(origin - back, 400 if H == 24 else 60), origin + 1)
        rows = rows[np.isfinite(y[rows])]
        model = LGBMRegressor(verbose=-1, n_jobs=1).fit(X[rows], y[rows])
        origins = np.arange(origin, min(origin + refit, N - lead))
        mean[origins] = model.predict(X[origins + lead])
    return mean


def _inputs(series: Series, lead: int) -> np.ndarray:
    """Inputs by target row: last values, the same hour of days and weeks before, their means, the calendar."""
    y, season = series.y, series.season
    N, long = len(y), 7 * season if season == 24 else season

    def back(rows: int) -> np.ndarray:
        return np.concatenate([np.full(rows, np.nan), y[: N - rows]])

    def season_back(length: int, more: int = 0) -> np.ndarray:
        return back(length * (-(-lead // length) + more))

    lags = [back(lead + k) for k in range(24)]
    means = [np.mean([back(lead + k) for k in range(length)], 0) for length in (season, long)]
    hours = series.times.astype("datetime64[h]").astype(np.int64)
    hour, weekday = hours % 24, (hours // 24 + 3) % 7
    days = series.times.astype("datetime64[D]")
    year = 2 * np.pi * (days - days.astype("datetime64[Y]").astype("datetime64[D]")).astype(float) / 365.25
    week = 2 * np.pi * (weekday + hour / 24) / 7
    waves = [wave(k * angle) for angle in (week * 7, week) for k in (1, 2, 3) for wave in (np.sin, np.cos)]
    calendar = [hour, weekday, np.sin(year), np.cos(year), *waves]
    return np.column_stack([*lags, season_back(season), season_back(season, 1), season_back(long),
                            season_back(long, 1), *means, *calendar])  # fmt: skip


def default_step(series: Series) -> float:
    """Microseconds of CPU of one step of the default model on the same series, with lags and calendar."""
    X = _inputs(series, 1)[600:]
    X, y = np.column_stack([X[:, :3], X[:, 24:25], X[:, 26:27], X[:, -12:]]), series.y[600:]
    model = recommended(X[:400], y[:400])
    online, rows = Online(model, model.init(X[:400], y[:400])), range(400, min(1200, len(y)))
    began = time.process_time()
    for row in rows:
        online.predict(X[row])
        online.update(X[row], float(y[row]))
    return 1e6 * (time.process_time() - began) / len(rows)


def report(name: str, leads: list[int]) -> None:
    """Print the table of a series; `leads` are those of LightGBM."""
    series = SERIES[name]()
    Y, said, base = truths(series), ours(series), naive(series)
    scored = np.isfinite(said.mean)
    own, other = (np.where(scored, np.abs(Y - mean), np.nan) for mean in (said.mean, base))
    inside = np.where(scored & np.isfinite(Y), (said.low <= Y) & (said.high >= Y), np.nan)
    errors = {h: np.abs(Y[:, h - 1] - lightgbm(series, h)) for h in leads}
    trees = {h: np.nanmean(np.where(scored[:, h - 1], error, np.nan)) for h, error in errors.items()}
    print("| lead | driftgp, MAE | seasonal naive | LightGBM | coverage of the 95 % interval |")
    print("|---:|---:|---:|---:|---:|")
    for h in range(1, series.horizon + 1):
        tree = f"{trees[h]:.4g}" if h in trees else "–"
        mae, naive_mae = np.nanmean(own[:, h - 1]), np.nanmean(other[:, h - 1])
        print(f"| {h} | {mae:.4g} | {naive_mae:.4g} | {tree} | {100 * np.nanmean(inside[:, h - 1]):.1f} % |")
    if trees:
        some = [h - 1 for h in trees]
        means = np.nanmean(own[:, some]), np.nanmean(other[:, some]), np.mean(list(trees.values()))
        print("| mean of LightGBM's leads | " + " | ".join(f"{mean:.4g}" for mean in means) + " | |")
    print(f"| mean | {np.nanmean(own):.4g} | {np.nanmean(other):.4g} | | {100 * np.nanmean(inside):.1f} % |\n")
    sums = Y.sum(1)
    there = np.isfinite(sums) & np.isfinite(said.total[:, 0])
    covered = np.mean((said.total[there, 0] <= sums[there]) & (sums[there] <= said.total[there, 1]))
    step = default_step(series)
    print(f"Sum of all leads inside its 95 % interval: {100 * covered:.1f} % of {there.sum()}.")
    ratio = said.microseconds / step
    print(f"CPU per row, all leads: {said.microseconds:.0f} µs, {ratio:.1f} steps of the default model.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", choices=SERIES)
    parser.add_argument("--lightgbm", default="", metavar="LEADS", help="leads of LightGBM, with commas, or all")
    chosen = parser.parse_args()
    every = range(1, SERIES[chosen.series]().horizon + 1)
    text = chosen.lightgbm
    report(chosen.series, list(every) if text == "all" else [int(lead) for lead in text.split(",") if lead])
