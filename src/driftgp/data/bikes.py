"""UCI Bike Sharing: hourly counts with weather, and 165 hours of two years that are simply not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from driftgp.data.locate import Location, Source, find
from driftgp.data.stream import Floats, Stream

if TYPE_CHECKING:  # polars is imported when a file is read, not before
    from driftgp.data.tables import Table

BIKE_SHARING = Source(
    "Bike Sharing",
    "the UCI Machine Learning Repository, data set 'Bike Sharing' (file 'hour.csv')",
    ("bike_sharing_hour.*", "hour.csv"),
)
FEATURES = ("hr", "weekday", "workingday", "holiday", "weathersit", "temp", "atemp", "hum", "windspeed")
CHOICES = ("season", "yr", "mnth", *FEATURES)
Clock = Callable[[NDArray[np.datetime64]], NDArray[np.int64]]
FROM_CLOCK: dict[str, Clock] = {  # the inputs that follow from the time alone
    "hr": lambda times: times.astype(np.int64) % 24,
    "weekday": lambda times: (times.astype("datetime64[D]").astype(np.int64) + 4) % 7,  # 0 is Sunday
    "mnth": lambda times: times.astype("datetime64[M]").astype(np.int64) % 12 + 1,
    "yr": lambda times: times.astype("datetime64[Y]").astype(np.int64) + 1970 - 2011,
}
Missing = Literal["rows", "elapsed"]


def bike_sharing_stream(
    data: Location = None, missing: Missing = "rows", features: tuple[str, ...] = FEATURES, warmup: int = 336
) -> Stream:
    """The number of bikes hired in an hour from its weather and calendar, in the order of time.

    With `missing="rows"` every hour has a row, and an absent one the target NaN: hour, weekday, month and
    year are those of the clock, and the other inputs the last ones seen, which is what a service would
    know. With `missing="elapsed"` only recorded hours have rows, and `elapsed` is the hours since the row
    before.
    """
    if missing not in ("rows", "elapsed"):
        raise ValueError(f"missing is {missing!r}: choose 'rows' (NaN targets) or 'elapsed' (times between rows)")
    wrong = [name for name in features if name not in CHOICES]
    if wrong or not features:
        raise ValueError(f"features has {wrong or 'nothing'}: choose from {', '.join(CHOICES)}")
    from driftgp.data.tables import read_table

    table = read_table(find(BIKE_SHARING, data)[0], columns={"timestamp", "dteday", "hr", "cnt", *features})
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


def _times(table: Table) -> NDArray[np.datetime64]:
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
