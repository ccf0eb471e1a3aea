"""Columns of cells as numbers and as times, all cells of a block at once.

Plain cells are read by expressions of polars. Cells that these cannot read are read one by one, by more general rules.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from driftgp.base.extras import needs
from driftgp.tables.dates import EPOCHS, Moment, as_hours, as_moment
from driftgp.tables.numbers import BLANK, Decimal, as_number

with needs("reading tables", extra="cli"):
    import polars as pl

_PLAIN = (
    r"^(\d{4}-\d{1,2}-\d{1,2})(?:[ T](\d{1,2}:\d{2})(:[0-5]\d(?:\.\d{1,6})?)?(?: ?(Z|[+-][01]\d(?::?[0-5]\d)?))?)?$"
)
_TURNED = {  # orders of day and month as an ISO date; the numbers of one are apart by one mark
    "day-first": [(rf"^(\d{{1,2}}){mark}(\d{{1,2}}){mark}(\d{{4}})\b", "${3}-${2}-${1}") for mark in ("/", r"\.", "-")],
    "month-first": [(rf"^(\d{{1,2}}){mark}(\d{{1,2}}){mark}(\d{{4}})\b", "${3}-${1}-${2}") for mark in ("/", "-")],
}
_LATEST = 253_402_300_800.0  # seconds from 1970 to the year 10 000
_EARLIEST = -62_135_596_800.0  # to the year 1
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def columns_of(rows: Sequence[Sequence[str]]) -> list[pl.Series]:
    """Rows of cells as columns, without blanks around the cells."""
    return [pl.Series(column, dtype=pl.String).str.strip_chars() for column in zip(*rows, strict=True)]


def are_blank(cells: pl.Series) -> np.ndarray:
    """Which cells are blank, or hold a word for a missing value."""
    return cells.str.to_lowercase().is_in(list(BLANK)).to_numpy()


def as_numbers(cells: pl.Series, decimal: Decimal = "point") -> tuple[np.ndarray, np.ndarray]:
    """Cells as numbers, NaN where they are blank, and which of them are neither.

    >>> values, bad = as_numbers(pl.Series(["1.5", "", "n/a", "1,234", "soon"]))
    >>> values.tolist(), bad.tolist()
    ([1.5, nan, nan, 1234.0, nan], [False, False, False, False, True])
    """
    column = cells
    if decimal == "comma":
        column = column.set(column.str.contains(".", literal=True), None).str.replace(",", ".", literal=True)
    values = _floats(column)
    left = ~np.isfinite(values)
    return _one_by_one(cells, values, left & ~are_blank(cells) if left.any() else left, decimal)


def _one_by_one(
    cells: pl.Series, values: np.ndarray, left: np.ndarray, decimal: Decimal
) -> tuple[np.ndarray, np.ndarray]:
    places = np.flatnonzero(left)
    found = _distinct(cells, places, lambda cell: as_number(cell, decimal))
    values[left] = [np.nan if value is None else value for value in found]
    bad = np.zeros(len(values), bool)
    bad[places[[value is None for value in found]]] = True
    values[~np.isfinite(values)] = np.nan
    return values, bad


def _distinct(cells: pl.Series, places: np.ndarray, read: Any) -> list[Any]:
    """The values of some cells; each different cell is read once."""
    some = cells.gather(places).to_list()
    known = {cell: read(cell) for cell in dict.fromkeys(some)}
    return [known[cell] for cell in some]


class Times(NamedTuple):
    """Cells as times."""

    at: np.ndarray  # N, microseconds since 1970 where they are dates, else the numbers themselves
    wall: np.ndarray  # N, the same by the clock on the wall
    offset: np.ndarray  # N, seconds ahead of UTC; NaN where that is not given
    dated: np.ndarray  # N, whether it is a date
    bad: np.ndarray  # N, whether it is not a time


def as_times(cells: pl.Series, form: str | None, decimal: Decimal = "point") -> Times:
    """Cells as times; `form` as in `as_moment`.

    >>> times = as_times(pl.Series(["1970-01-02 01:00", "17", "soon"]), None)
    >>> times.at.tolist(), times.dated.tolist(), times.bad.tolist()
    ([90000000000.0, 17.0, nan], [True, False, False], [False, False, True])
    """
    wall, offset = _epochs(cells, form) if form in EPOCHS else _dates(cells, form)
    dated = ~np.isnan(wall)
    at = wall - np.where(np.isnan(offset), 0.0, np.rint(1e6 * offset))
    bad = ~dated
    if bad.any() and (form is None or form in _TURNED):  # a number stands for itself
        numbers = _floats(cells)
        here = bad & np.isfinite(numbers) & (decimal == "point")
        at[here], bad = numbers[here], bad & ~here
    places = np.flatnonzero(bad)
    if len(places):
        rows = _distinct(cells, places, lambda cell: _parts(as_moment(cell, form, decimal)))
        at[places], wall[places], offset[places], dates, none = np.array(rows, np.float64).T
        dated[places], bad[places] = dates > 0.0, none > 0.0
    return Times(at, wall, offset, dated, bad)


def _epochs(cells: pl.Series, form: str) -> tuple[np.ndarray, np.ndarray]:
    """Seconds or milliseconds since 1970 as dates of UTC."""
    seconds = _floats(cells) * EPOCHS[form]
    wall = np.where((seconds >= _EARLIEST) & (seconds < _LATEST), np.rint(1e6 * seconds), np.nan)
    return wall, np.where(np.isnan(wall), np.nan, 0.0)


def _dates(cells: pl.Series, form: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Dates in ISO 8601, or in an order of day and month, by the clock on the wall, and their offsets from UTC."""
    if form is not None and "%" in form:
        return np.full(len(cells), np.nan), np.full(len(cells), np.nan)
    for pattern, iso in _TURNED.get(form or "", ()):
        cells = cells.str.replace(pattern, iso)
    day, clock, second, zone = cells.str.extract_groups(_PLAIN).struct.unnest()
    time = day + " " + clock.fill_null("00:00") + second.fill_null(":00")
    wall = time.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us").dt.epoch("us")
    zone = zone.str.replace("Z", "+00").str.replace(":", "").str.pad_end(5, "0").cast(pl.Int64, strict=False)  # ±hhmm
    hours, minutes = zone.abs() // 100, zone.abs() % 100
    offset = zone.sign() * (3600 * hours + 60 * minutes)
    return _floats(wall), _floats(offset)


def _floats(values: pl.Series) -> np.ndarray:
    """Numbers, NaN for other cells."""
    return values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy(writable=True)


def _parts(moment: Moment | None) -> tuple[float, float, float, float, float]:
    if moment is None:
        return np.nan, np.nan, np.nan, 0.0, 1.0
    if moment.clock is None:
        return moment.at, np.nan, np.nan, 0.0, 0.0
    wall = float((moment.clock - _EPOCH) // _MICROSECOND)
    if moment.offset is None:
        return wall, wall, np.nan, 1.0, 0.0
    return wall - round(1e6 * moment.offset), wall, moment.offset, 1.0, 0.0


def as_spans(cells: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Cells as hours of a day in microseconds, and which of them are not hours."""
    found = _distinct(cells, np.arange(len(cells)), as_hours)
    spans = np.array([np.nan if value is None else np.rint(3.6e9 * value) for value in found], np.float64)
    return spans, np.isnan(spans)
