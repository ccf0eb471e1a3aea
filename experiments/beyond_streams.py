"""The streams of the results beyond the paper: the paper's own, load with the calendar, and bike sharing."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from driftgp.data import Stream, bike_sharing_stream
from driftgp.data.locate import Location
from driftgp.data.stream import Floats
from experiments.data import ZONES, load_streams, online_retail_stream, store_sales_stream
from experiments.tasks import Selection, Task
from experiments.toy import toy_tasks

CALENDAR = " calendar"  # behind the name of a zone: with the calendar among the inputs
SERIES = ("toy", *ZONES, *(zone + CALENDAR for zone in ZONES), "SS", "OR", "bikes")
BIKE_LAGS = (1, 2, 24, 168)  # hours
BIKE_UNIT = 100.0  # bikes
_WEATHER = ("workingday", "holiday", "weathersit", "temp", "atemp", "hum", "windspeed")


def tasks(selection: Selection, series: tuple[str, ...]) -> list[Task]:
    """Tasks of the named series, for the seeds and hours of a selection."""
    return [task for name in series for task in _tasks(selection, name)]


def _tasks(selection: Selection, name: str) -> list[Task]:
    if name == "toy":
        return [replace(task, series=name, outputs=(_seed(task),)) for task in toy_tasks(selection.seeds)]
    if name in _SINGLE:
        return [Task(name, (1,), _SINGLE[name](selection.data))]
    zone = name.removesuffix(CALENDAR)
    stream = load_streams(selection.data, [zone])[zone]
    if name != zone:
        stream = with_calendar(stream)
    columns = [hour - 1 for hour in selection.hours]
    chosen = replace(stream, y=stream.y[:, columns], lag_columns=tuple(columns))
    return [Task(name, tuple(selection.hours), chosen)]


def _seed(task: Task) -> int:
    return int(task.series.removeprefix("seed "))


def with_calendar(stream: Stream) -> Stream:
    """Inputs with the day of the week (three harmonics tell all seven apart) and the time of the year of the target."""
    if stream.times is None:
        raise ValueError(f"{stream.name!r} has no times: the calendar needs them")
    days = stream.times.astype("datetime64[D]")
    week = _waves(days.astype(np.int64) / 7.0, 3)
    year = _waves((days - days.astype("datetime64[Y]")).astype(np.int64) / 365.25, 1)
    return replace(
        stream,
        name=stream.name + CALENDAR,
        X=np.concatenate([stream.X, week, year], 1),
        inputs=(*stream.inputs, *(f"calendar {i}" for i in range(8))),
    )


def bikes(data: Location = None) -> Stream:
    """Hundreds of bikes an hour from the weather, the clock and the counts of 1, 2, 24 and 168 hours before.

    A count that is missing is replaced, as an input, by the last one before it; as a target it stays missing.
    """
    stream = bike_sharing_stream(data, features=("hr", "weekday", *_WEATHER))
    y = stream.y / BIKE_UNIT
    clock = [_waves(stream.X[:, 0] / 24.0, 2), _waves(stream.X[:, 1] / 7.0, 1)]
    lags = np.stack([np.roll(_filled(y), lag) for lag in BIKE_LAGS], 1)
    first = max(BIKE_LAGS)
    X = np.concatenate([stream.X[:, 2:], *clock, lags], 1)
    return Stream(
        "bikes",
        X=X[first:],
        y=y[first:],
        warmup=stream.warmup,
        unit="100 bikes",
        times=None if stream.times is None else stream.times[first:],
        lag_columns=(X.shape[1] - len(BIKE_LAGS),),
    )


def _waves(phase: Floats, harmonics: int) -> Floats:
    """Sines and cosines of 2π · phase and its harmonics, N×2H."""
    angles = 2.0 * np.pi * phase[:, None] * np.arange(1, harmonics + 1)
    return np.concatenate([np.sin(angles), np.cos(angles)], 1)


def _filled(y: Floats) -> Floats:
    """Each missing value replaced by the last one before it."""
    newest = np.maximum.accumulate(np.where(np.isnan(y), 0, np.arange(len(y))))
    filled: Floats = y[newest]
    return filled


_SINGLE: dict[str, Callable[[Location], Stream]] = {
    "SS": store_sales_stream,
    "OR": online_retail_stream,
    "bikes": bikes,
}
