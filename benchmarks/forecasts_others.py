"""Forecasts from past origins beside LightGBM, MSTL and Prophet, each fitted again at each origin.

    python -m benchmarks.forecasts_others load     # CT load, 168 hours from the end of each of the last 52 weeks
    python -m benchmarks.forecasts_others sales    # daily sales, 28 days from 22 origins, with known calendar columns
    python -m benchmarks.forecasts_others bikes    # daily bike rentals, 15 days from 22 origins, with actual weather

It needs lightgbm, statsforecast and prophet; a method whose library is not installed is left out. The data are those of
DRIFTGP_DATA.
"""

import argparse
import logging
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks.forecasts import load as hourly_load
from benchmarks.forecasts import sales as daily_sales
from driftgp.data import load_bikes
from driftgp.forecasting.rivals import METHODS, Rows
from driftgp.forecasting.series import Series
from driftgp.forecasting.settings import Settings

DAY = 86400.0


class Task(NamedTuple):
    """A series, its columns that are known ahead, and the origins."""

    times: np.ndarray  # N, datetime64[us]
    y: np.ndarray
    known: np.ndarray  # N×K
    steps: int
    origins: np.ndarray
    seasons: tuple[int, ...]


def load() -> Task:
    series = hourly_load()
    N = len(series.y)
    return Task(_times(series.times), series.y, np.zeros((N, 0)), 168, N - 168 * np.arange(52, 0, -1), (24, 168))


def sales() -> Task:
    """Known ahead: New Year, when shops are closed, the day before, and the days on which wages are paid."""
    series = daily_sales()
    day = series.times.astype("datetime64[D]")
    month = day.astype("datetime64[M]")
    into = (day - month.astype("datetime64[D]")).astype(int)
    last = (month + 1).astype("datetime64[D]") - 1
    first_of_year = day == day.astype("datetime64[Y]").astype("datetime64[D]")
    known = np.stack([first_of_year, np.roll(first_of_year, -1), (into == 14) | (day == last), into < 2], 1)
    N = len(series.y)
    return Task(_times(series.times), series.y, known.astype(float), 28, N - 28 * np.arange(22, 0, -1), (7,))


def bikes() -> Task:
    table = load_bikes("numpy")
    days, place = np.unique(table["time"].astype("datetime64[D]"), return_inverse=True)
    count = np.bincount(place)
    weather = ("temperature", "humidity", "windspeed", "holiday", "workingday")
    known = [np.bincount(place, np.asarray(table[name], float)) / count for name in weather]
    y = np.bincount(place, np.asarray(table["count"], float))
    N = len(y)
    return Task(_times(days), y, np.stack(known, 1), 15, N - 15 * np.arange(22, 0, -1), (7,))


TASKS: dict[str, Callable[[], Task]] = {"load": load, "sales": sales, "bikes": bikes}


def _times(times: np.ndarray) -> np.ndarray:
    return times.astype("datetime64[us]")


def ours(task: Task) -> np.ndarray:
    """Forecasts of driftgp, origins×steps; rows are learned once."""
    step = float((task.times[1] - task.times[0]) / np.timedelta64(1, "s"))
    series = Series(Settings(task.steps, known=task.known.shape[1], step=step))
    found = []
    for origin in task.origins.tolist():
        rows, ahead = slice(series.rows, origin), slice(origin, origin + task.steps)
        series.take(task.y[rows], task.times[rows], task.known[rows])
        found.append(series.fan(task.times[ahead], task.times[ahead], task.known[ahead]).mean)
    return np.array(found)


def theirs(task: Task, method: Callable[[Rows], Any]) -> np.ndarray:
    """Forecasts of another method, origins×steps."""
    wall = task.times.astype(np.int64).astype(float)
    found = []
    for origin in task.origins.tolist():
        past, ahead = slice(0, origin), slice(origin, origin + task.steps)
        given = Rows(task.y[past], wall[past], task.known[past], task.known[ahead], wall[ahead], task.seasons)
        found.append(method(given).mean)
    return np.array(found)


class Mean(NamedTuple):
    """What is compared of a forecast."""

    mean: np.ndarray


def prophet(rows: Rows) -> Mean:
    """Prophet with its own settings, and the known columns as regressors."""
    import pandas as pd
    from prophet import Prophet  # type: ignore[import-not-found]

    logging.getLogger("cmdstanpy").setLevel(logging.ERROR)
    model = Prophet()
    names = [f"known {k}" for k in range(rows.known.shape[1])]
    for name in names:
        model.add_regressor(name)
    frames = []
    for wall, known in ((rows.wall, rows.known), (rows.ahead_wall, rows.ahead)):
        times = wall.astype(np.int64).astype("datetime64[us]")
        frames.append(pd.DataFrame({"ds": times} | {name: known[:, k] for k, name in enumerate(names)}))
    model.fit(frames[0].assign(y=rows.y))
    return Mean(np.asarray(model.predict(frames[1])["yhat"], float))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=tuple(TASKS))
    task = TASKS[parser.parse_args().data]()
    truth = np.array([task.y[origin : origin + task.steps] for origin in task.origins.tolist()])
    said = {"driftgp": ours(task), "seasonal naive": theirs(task, METHODS["seasonal naive"].run)}
    for name in ("LightGBM", "MSTL"):
        if METHODS[name].missing is None:
            said[name] = theirs(task, METHODS[name].run)
    if find_spec("prophet") is not None and task.steps < 100:
        said["Prophet"] = theirs(task, prophet)
    errors = {name: np.abs(mean - truth).mean(1) for name, mean in said.items()}
    rivals = np.min([errors[name] for name in errors if name not in ("driftgp", "seasonal naive")], 0)
    print("| method | MAE | worst origin |\n|---|---:|---:|")
    for name, error in errors.items():
        print(f"| {name} | {error.mean():.4g} | {error.max():.4g} |")
    share = 100.0 * np.mean(errors["driftgp"] <= 1.3 * rivals)
    print(f"\nAt most 1.3 times the best of the others from {share:.0f} % of {len(rivals)} origins.")


if __name__ == "__main__":
    main()
