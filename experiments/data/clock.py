"""Hourly rows to days of 24 hours: what is done on the two days a year when the clocks change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from driftgp.data.stream import Floats, Times

if TYPE_CHECKING:  # polars is imported when a file is read, not before
    from driftgp.tables.tables import TextTable

CHANGED = 1  # the column of hour ending 2: spring lacks it, autumn has it twice


@dataclass(frozen=True, eq=False)
class HourlyRows:
    """Rows of a table, one an hour, in any order: which rows (`index`), their days, hours and values."""

    table: TextTable
    column: str  # that of the values, for messages
    index: NDArray[np.int64]
    days: Times
    hours: NDArray[np.int64]  # hours ending, 1 to 24
    values: Floats  # NaN where blank


def whole_days(rows: HourlyRows) -> tuple[Times, Floats]:
    """The days, N, and their 24 values, N×24.

    Spring's absent hour (no row, a blank, or a zero) is the mean of its neighbours, autumn's doubled one
    the mean of its two readings. Any other hour that is absent or doubled is an error that names its place.
    """
    days, position = np.unique(rows.days, return_inverse=True)
    spring, autumn = clocks_go_forward(days), clocks_go_back(days)
    hour = rows.hours - 1
    blank = np.isnan(rows.values) | ((rows.values == 0) & spring[position] & (hour == CHANGED))
    cell = position * 24 + hour
    count = np.bincount(cell[~blank], minlength=days.size * 24).reshape(-1, 24)
    total = np.bincount(cell[~blank], rows.values[~blank], minlength=days.size * 24).reshape(-1, 24)

    least, most = np.ones_like(count), np.ones_like(count)
    least[spring, CHANGED] = 0
    most[autumn, CHANGED] = 2
    _refuse_doubled(rows, cell, np.flatnonzero(count > most))
    _refuse_absent(rows, cell, days, np.flatnonzero(count < least))

    values = total / np.maximum(count, 1)
    imputed = count[:, CHANGED] == 0
    values[imputed, CHANGED] = (values[imputed, CHANGED - 1] + values[imputed, CHANGED + 1]) / 2
    return days, values


def _refuse_doubled(rows: HourlyRows, cell: NDArray[np.int64], doubled: NDArray[np.int64]) -> None:
    if doubled.size:
        found = rows.index[cell == doubled[0]]
        day, hour, first = rows.days[cell == doubled[0]][0], doubled[0] % 24 + 1, rows.table.rows[found[0]]
        expected = f"hour {hour} of {day} once, but row {first} has it already"
        raise rows.table.fault(int(found[-1]), rows.column, expected)


def _refuse_absent(rows: HourlyRows, cell: NDArray[np.int64], days: Times, absent: NDArray[np.int64]) -> None:
    if not absent.size:
        return
    blank = rows.index[cell == absent[0]]
    if blank.size:
        raise rows.table.fault(int(blank[0]), rows.column, "a load in MW")
    near = rows.table.rows[rows.index[cell // 24 == absent[0] // 24]]
    day, hour = days[absent[0] // 24], absent[0] % 24 + 1
    where = f"{rows.table.place}, rows {near.min()} to {near.max()}, column {rows.column!r}"
    raise ValueError(f"{where}: {day} has no hour {hour}; expected 24 hours a day")


def clocks_go_forward(days: Times) -> NDArray[np.bool_]:
    """Which days lack an hour: the second Sunday of March (the rule of the United States since 2007).

    >>> clocks_go_forward(np.array(["2020-03-08", "2020-03-15", "2020-11-01"], dtype="datetime64[D]"))
    array([ True, False, False])
    """
    return _sunday(days, month=3, first=8)


def clocks_go_back(days: Times) -> NDArray[np.bool_]:
    """Which days have an hour twice: the first Sunday of November.

    >>> clocks_go_back(np.array(["2020-11-01", "2020-11-08", "2021-11-07"], dtype="datetime64[D]"))
    array([ True, False,  True])
    """
    return _sunday(days, month=11, first=1)


def _sunday(days: Times, month: int, first: int) -> NDArray[np.bool_]:
    """Whether a day is the Sunday among the seven days from `first` on of a month."""
    months = days.astype("datetime64[M]")
    day_of_month = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
    weekday = (days.astype(np.int64) + 4) % 7  # 0 is Sunday: day 0, 1 January 1970, was a Thursday
    in_month = months.astype(np.int64) % 12 + 1 == month
    found = in_month & (weekday == 0) & (day_of_month >= first) & (day_of_month < first + 7)
    return np.asarray(found, dtype=np.bool_)
