"""Columns of cells as times: ISO 8601, numbers of day, month and year in any order, month names, clocks, offsets.

Whether the day or the month comes first is decided for a whole column. A cell decides if it is a date one way and not
the other: `13/02/2024` has its day first. `03/02/2024` is two dates, and decides nothing. Cells have no blanks around
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

import numpy as np

from driftgp.base.extras import needs
from driftgp.tables.numbers import Decimal, as_numbers, floats

with needs("reading tables", extra="cli"):
    import polars as pl

ORDERS = ("day-first", "month-first", "year-first")
EPOCHS = {"seconds": 1.0, "milliseconds": 1e-3}  # since 1970, UTC
_LATEST = 253_402_300_800.0  # seconds from 1970 to the year 10 000
_EARLIEST = -62_135_596_800.0  # to the year 1
DAY = 86_400_000_000  # microseconds
_SHORTEST = 6  # characters of a date
_EPOCH = datetime(1970, 1, 1)
_MONTHS = re.findall(r"\w+", "january february march april may june july august september october november december")
_NAMES = {form: str(number) for number, name in enumerate(_MONTHS, start=1) for form in (name, name[:3], name[:4])}

_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?"
_NUMBERS = r"(?P<a>\d{4}|\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P<same>[-/.])(?P<c>\d{4}|\d{1,2})"
_DAY_NAME = r"(?P<d>\d{1,2})(?:[-/ ]|\. ?)(?P<m>[a-z]{3,9})\.?[-/ ,]+(?P<y>\d{4}|\d{2})"
_NAME_DAY = r"(?P<m2>[a-z]{3,9})\.? (?P<d2>\d{1,2}),? (?P<y2>\d{4})"
_MONTH = r"(?P<y3>\d{4})[-/](?P<m3>\d{1,2})|(?P<m4>[a-z]{3,9})[- ](?P<y4>\d{4})"
_CLOCK = r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?)?"
_HALF = r"(?: ?(?P<half>[ap])\.?m\.?)?"
_OFFSET = r"(?: ?(?P<offset>z|utc|gmt|[+-]\d{2}(?::?\d{2})?))?"
_DATED = rf"{_WEEKDAY}(?:{_NUMBERS}|{_DAY_NAME}|{_NAME_DAY})(?:(?:t|,? +|:){_CLOCK}{_HALF}{_OFFSET})?"
_TIME = rf"(?i-u)^(?:{_DATED}|{_MONTH})$"
_HOURS = rf"(?i-u)^{_CLOCK}{_HALF}$"


class Times(NamedTuple):
    """Cells as times."""

    at: np.ndarray  # N, microseconds since 1970 where they are dates, else the numbers themselves; NaN for other cells
    wall: np.ndarray  # N, the same by the clock on the wall; NaN for numbers
    offset: np.ndarray  # N, seconds ahead of UTC; NaN where that is not given

    @property
    def dated(self) -> np.ndarray:
        """Which of them are dates."""
        return ~np.isnan(self.wall)

    @property
    def bad(self) -> np.ndarray:
        """Which of them are not times."""
        return np.isnan(self.at)


def as_times(cells: pl.Series, form: str | None, decimal: Decimal = "point") -> Times:
    """Cells as times. Clocks without an offset from UTC are taken as they are.

    `form` says how dates are written: one of ORDERS or of EPOCHS, or a format such as `%d/%m/%Y %H:%M`. Without it,
    only a date with a single reading counts. A number stands for itself.

    >>> times = as_times(pl.Series(["1970-01-02 01:00", "02-Jan-1970 1:00 AM", "17", "02/01/1970", "soon"]), None)
    >>> times.at.tolist(), times.dated.tolist()
    ([90000000000.0, 90000000000.0, 17.0, nan, nan], [True, True, False, False, False])
    >>> as_times(pl.Series(["02/01/1970"]), "day-first").at.tolist()
    [86400000000.0]
    """
    if form in EPOCHS:
        seconds = as_numbers(cells)[0] * EPOCHS[form]
        wall = np.where((seconds >= _EARLIEST) & (seconds < _LATEST), np.rint(1e6 * seconds), np.nan)
        return Times(wall, wall, np.where(np.isnan(wall), np.nan, 0.0))
    if form is not None and form not in ORDERS:
        return _one_by_one(cells, lambda cell: datetime.strptime(cell, form))
    found = Dates(cells)
    wall, offset = found.single() if form is None else found.read(form), found.offset
    at = wall - np.where(np.isnan(offset), 0.0, 1e6 * offset)
    left = np.isnan(wall)
    offset[left] = np.nan
    if left.any():
        at[left], left[left] = as_numbers(cells.filter(pl.Series(left)), decimal)
    if left.any():  # week dates, and dates without marks between their parts
        others = _one_by_one(cells.filter(pl.Series(left)), datetime.fromisoformat)
        at[left], wall[left], offset[left] = others
    return Times(at, wall, offset)


def are_dates(cells: pl.Series) -> np.ndarray:
    """Which cells are dates in some order, and no numbers."""
    found = Dates(cells)
    numbers = ~as_numbers(cells)[1] | ~as_numbers(cells, "comma")[1]
    return ~np.isnan([found.read(order) for order in ORDERS]).all(0) & ~numbers


def as_spans(cells: pl.Series) -> np.ndarray:
    """Cells as hours of a day in microseconds, from 13, 13:30, 13:30:00 or 1:30 PM up to 24; NaN for other cells.

    >>> (as_spans(pl.Series(["13:30", "24", "25", "1:30 pm", "18.00.00"])) / 3.6e9).tolist()
    [13.5, 24.0, nan, 13.5, 18.0]
    """
    parts = cells.str.extract_groups(_HOURS).struct.unnest()
    return floats(parts.select(pl.when(pl.col("hour").is_not_null()).then(_time_of_day())).to_series())


class Dates:
    """Cells that may be dates: taken apart once, and read in any order.

    >>> found = Dates(pl.Series(["31/01/2024 24:00", "03/02/2024", "Jan 31, 2024 1:05 pm", "2024-02", "2024-13"]))
    >>> for times in (found.read("day-first"), found.read("month-first"), found.single()):
    ...     print(*times.astype("M8[us]").astype("M8[m]"))
    2024-02-01T00:00 2024-02-03T00:00 2024-01-31T13:05 2024-02-01T00:00 NaT
    NaT 2024-03-02T00:00 2024-01-31T13:05 2024-02-01T00:00 NaT
    2024-02-01T00:00 NaT 2024-01-31T13:05 2024-02-01T00:00 NaT
    """

    def __init__(self, cells: pl.Series) -> None:
        """Take the cells apart."""
        long = cells.set(cells.str.len_chars() < _SHORTEST, None)
        self._parts = long.str.extract_groups(_TIME).struct.unnest().with_columns(_time_of_day().alias("time"))
        self.offset = floats(self._parts.select(_offset()).to_series())  # N, seconds ahead of UTC, NaN without

    def read(self, order: str) -> np.ndarray:
        """Times by the clock on the wall in microseconds, N; NaN where a cell is no date in this order."""
        day = pl.coalesce(*_KNOWN, _ORDERED[order]).str.to_date("%Y-%m-%d", strict=False).dt.epoch("us")
        wall = floats(self._parts.select(day + pl.col("time")).to_series())
        bad = self._parts["offset"].is_not_null().to_numpy() & np.isnan(self.offset)
        return np.where(bad | (wall < 1e6 * _EARLIEST), np.nan, wall)

    def single(self) -> np.ndarray:
        """The same where all orders in which a cell is a date agree; NaN where they differ."""
        read = np.stack([self.read(order) for order in ORDERS])
        low, high = np.fmin.reduce(read), np.fmax.reduce(read)
        return np.where(low == high, low, np.nan)


def _year(name: str) -> pl.Expr:
    """A year; of two digits, one from 1970 to 2069."""
    year = pl.col(name).cast(pl.Int64, strict=False)
    short = 1900 + year + 100 * (year < 70).cast(pl.Int64)
    return pl.when(pl.col(name).str.len_chars() == 4).then(year).otherwise(short)


def _month(name: str) -> pl.Expr:
    """The number of a month, from its name."""
    return pl.col(name).str.to_lowercase().replace_strict(_NAMES, default=None, return_dtype=pl.String)


def _day(year: pl.Expr | str, month: pl.Expr | str, day: pl.Expr | str) -> pl.Expr:
    return pl.concat_str(year, month, day, separator="-")


_A_LONG, _C_LONG = (pl.col(name).str.len_chars() == 4 for name in "ac")
_ONE_MARK = pl.col("mark") == pl.col("same")
_FIRST = pl.lit("1")
_KNOWN = (  # the same in any order: 2024/01/31 has a single reading
    pl.when(_ONE_MARK & _A_LONG & ~_C_LONG).then(_day("a", "b", "c")),
    _day(_year("y"), _month("m"), "d"),
    _day(_year("y2"), _month("m2"), "d2"),
    _day(_year("y3"), "m3", _FIRST),
    _day(_year("y4"), _month("m4"), _FIRST),
)
_ORDERED = {
    "day-first": pl.when(_ONE_MARK & ~_A_LONG).then(_day(_year("c"), "b", "a")),
    "month-first": pl.when(_ONE_MARK & ~_A_LONG & (pl.col("mark") != ".")).then(_day(_year("c"), "a", "b")),
    "year-first": pl.when(_ONE_MARK & ~_A_LONG & ~_C_LONG & (pl.col("mark") == "-")).then(_day(_year("a"), "b", "c")),
}


def _time_of_day() -> pl.Expr:
    """Microseconds since midnight, up to 24:00; 0 without a clock, null where it is none."""
    hour, minute, second = (pl.col(name).cast(pl.Int64).fill_null(0) for name in ("hour", "minute", "second"))
    part = pl.col("part").str.pad_end(9, "0").cast(pl.Int64).fill_null(0) // 1000
    half = pl.col("half").str.to_lowercase()
    hour_of_day = pl.when(half.is_null()).then(hour).otherwise(hour % 12 + 12 * (half == "p").cast(pl.Int64))
    time = ((hour_of_day * 60 + minute) * 60 + second) * 1_000_000 + part
    fits = (minute < 60) & (second < 60) & (time <= DAY) & (half.is_null() | hour.is_between(1, 12))
    return pl.when(fits).then(time)


def _offset() -> pl.Expr:
    """Seconds ahead of UTC, null without an offset or for one of a day or more."""
    text = pl.col("offset").str.replace(r"(?i-u)^(?:z|utc|gmt)$", "+00").str.replace(":", "", literal=True)
    number = text.str.pad_end(5, "0").cast(pl.Int64, strict=False)  # ±hhmm
    seconds = 3600 * (number.abs() // 100) + 60 * (number.abs() % 100)
    return pl.when(seconds < 86400).then(number.sign() * seconds)


def _one_by_one(cells: pl.Series, read: Callable[[str], datetime]) -> Times:
    """Times by a reader of Python's, which refuses other cells; each different cell is read once."""
    known = {cell: _moment(cell, read) for cell in cells.unique().to_list()}
    return Times(*np.array([known[cell] for cell in cells.to_list()], np.float64).reshape(-1, 3).T)


def _moment(cell: str, read: Callable[[str], datetime]) -> tuple[float, float, float]:
    """A time in UTC, and by the clock on the wall, and its offset."""
    try:
        clock = read(cell)
    except (ValueError, OverflowError):
        return np.nan, np.nan, np.nan
    offset = clock.utcoffset()
    wall = float((clock.replace(tzinfo=None) - _EPOCH) // _EPOCH.resolution)
    if offset is None:
        return wall, wall, np.nan
    return wall - 1e6 * offset.total_seconds(), wall, offset.total_seconds()
