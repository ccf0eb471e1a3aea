"""UCI Bike Sharing: hourly counts with weather, and 165 hours of two years that are simply not there.

The file comes with the package, under CC BY 4.0: see BIKES-LICENSE.txt beside it.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from driftgp.base import checks
from driftgp.data.locate import Location, Source, find
from driftgp.data.stream import Floats, Stream

if TYPE_CHECKING:  # polars is imported when a file is read, not before
    from driftgp.tables.tables import TextTable

BIKE_SHARING = Source(
    "Bike Sharing",
    "the UCI Machine Learning Repository, data set 'Bike Sharing' (file 'hour.csv')",
    ("bike_sharing_hour.*", "hour.csv"),
)
FEATURES = ("hr", "weekday", "workingday", "holiday", "weathersit", "temp", "atemp", "hum", "windspeed")
CHOICES = ("season", "yr", "mnth", *FEATURES)
OfTheClock = Callable[[NDArray[np.datetime64]], NDArray[np.int64]]
FROM_CLOCK: dict[str, OfTheClock] = {  # the inputs that follow from the time alone
    "hr": lambda times: times.astype(np.int64) % 24,
    "weekday": lambda times: (times.astype("datetime64[D]").astype(np.int64) + 4) % 7,  # 0 is Sunday
    "mnth": lambda times: times.astype("datetime64[M]").astype(np.int64) % 12 + 1,
    "yr": lambda times: times.astype("datetime64[Y]").astype(np.int64) + 1970 - 2011,
}
Missing = Literal["rows", "elapsed"]


def bikes_file() -> Path:
    """Where the file is, for `driftgp run` and other programs that read files.

    >>> bikes_file().name
    'bikes.csv.gz'
    """
    return Path(__file__).with_name("bikes.csv.gz")


def load_bikes(library: str = "pandas") -> Any:
    """Bikes hired in Washington, D.C., in each hour of 2011 and 2012, with weather and calendar: 17 379 rows.

    `count` is the number of bikes, and `casual` + `registered` = `count`: use one of them as the target and none as an
    input. 165 hours are not in the table. The data are those of Fanaee-T and Gama, under CC BY 4.0.

    >>> bikes = load_bikes()
    >>> bikes.loc["2011-01-03 08:00", ["count", "temperature", "sky"]].to_dict()
    {'count': 154, 'temperature': -1.4, 'sky': 'clear'}

    Args:
        library: "pandas", with the times as index; "polars", with a column "time"; or "numpy" for a dict of arrays,
            "time" among them.
    """
    checks.choice("library", library, ("pandas", "polars", "numpy"))
    with gzip.open(bikes_file(), "rt", newline="") as file:
        header, *rows = csv.reader(file)
    text = dict(zip(header, np.array(rows).T, strict=True))
    columns = {"time": text["timestamp"].astype("datetime64[m]").astype("datetime64[us]")}
    columns |= {name: read(text[source]) for name, (source, read) in _COLUMNS.items()}
    if library == "numpy":
        return columns
    try:
        frames: Any = import_module(library)
    except ModuleNotFoundError as error:
        message = f'{library} is not installed: pip install {library}, or load_bikes("numpy") for arrays'
        raise ModuleNotFoundError(message, name=library) from error
    return frames.DataFrame(columns).set_index("time") if library == "pandas" else frames.DataFrame(columns)


def _whole(text: NDArray[Any]) -> NDArray[np.int64]:
    return text.astype(np.int64)


def _flag(text: NDArray[Any]) -> NDArray[np.bool_]:
    return text == "1"


def _named(*names: str) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda text: np.array(names, object)[text.astype(np.int64) - 1]


def _scaled(low: float, high: float) -> Callable[[NDArray[Any]], Floats]:
    """The published numbers are shares of a range: back to units, without digits that were never there."""
    return lambda text: np.round(low + (high - low) * text.astype(np.float64), 1)


# Column of the table, column of the file, and how to read it.
_COLUMNS: dict[str, tuple[str, Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "count": ("cnt", _whole),
    "casual": ("casual", _whole),
    "registered": ("registered", _whole),
    "temperature": ("temp", _scaled(-8.0, 39.0)),  # °C
    "humidity": ("hum", _scaled(0.0, 100.0)),  # %
    "windspeed": ("windspeed", _scaled(0.0, 67.0)),  # km/h
    "sky": ("weathersit", _named("clear", "mist", "rain", "storm")),
    "season": ("season", _named("winter", "spring", "summer", "autumn")),
    "holiday": ("holiday", _flag),
    "workingday": ("workingday", _flag),
}


def bike_sharing_stream(
    data: Location = None, missing: Missing = "rows", features: tuple[str, ...] = FEATURES, warmup: int = 336
) -> Stream:
    """The number of bikes hired in an hour from its weather and calendar, in the order of time.

    With `missing="rows"` every hour has a row, and the target of an absent hour is NaN. Its hour, weekday, month and
    year are those of the clock. Its other inputs are the last ones seen, which is what a service would know. With
    `missing="elapsed"` only recorded hours have rows, and `elapsed` is the hours since the row before. Without `data`
    it is the file that comes with the package.
    """
    if missing not in ("rows", "elapsed"):
        raise ValueError(f"missing is {missing!r}: choose 'rows' (NaN targets) or 'elapsed' (times between rows)")
    wrong = [name for name in features if name not in CHOICES]
    if wrong or not features:
        raise ValueError(f"features has {wrong or 'nothing'}: choose from {', '.join(CHOICES)}")
    from driftgp.tables.tables import read_table

    table = read_table(
        bikes_file() if data is None else find(BIKE_SHARING, data)[0],
        columns={"timestamp", "dteday", "hr", "cnt", *features},
    )
    times = _times(table)
    X = np.stack([table.numbers(table.column(name)) for name in features], axis=1)  # N×D
    y = table.numbers(table.column("cnt"))
    hours = (times - times[0]).astype(np.int64)
    elapsed = np.diff(hours, prepend=-1).astype(np.float64)
    if missing == "rows":
        times, X, y = _every_hour(hours, times, X, y, features)
        elapsed = np.ones(len(y))
    return Stream(
        "bike sharing",
        X=X,
        y=y,
        warmup=warmup,
        unit="bikes an hour",
        times=times,
        elapsed=elapsed,
        inputs=features,
    )


def _times(table: TextTable) -> NDArray[np.datetime64]:
    """The beginnings of the hours, increasing: one column of times, or the publisher's day and hour."""
    if table.has("timestamp"):
        column = table.column("timestamp")
        times = table.times(column).astype("datetime64[h]")
    else:
        column = table.column("hr")
        times = table.days(table.column("dteday")) + table.numbers(column).astype("timedelta64[h]")
    late = np.flatnonzero(np.diff(times) <= np.timedelta64(0, "h"))
    if late.size:
        raise table.fault(int(late[0]) + 1, column, f"an hour after {times[late[0]]}, one row an hour")
    return times


def _every_hour(
    hours: NDArray[np.int64], times: NDArray[np.datetime64], X: Floats, y: Floats, features: tuple[str, ...]
) -> tuple[NDArray[np.datetime64], Floats, Floats]:
    """One row for each hour from the first to the last."""
    every = np.arange(hours[-1] + 1)
    newest = np.searchsorted(hours, every, side="right") - 1  # the row of this hour, or the last before it
    recorded = hours[newest] == every
    clock = times[0] + every.astype("timedelta64[h]")
    filled = X[newest]
    for column, name in enumerate(features):
        if name in FROM_CLOCK:
            filled[~recorded, column] = FROM_CLOCK[name](clock[~recorded])
    return clock, filled, np.where(recorded, y[newest], np.nan)
