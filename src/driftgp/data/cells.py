"""Columns of cells as numbers and as times, all cells of a block at once.

What is plain is read by NumPy and polars; a cell that these do not read is read by itself, by the same rules.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from driftgp.data.dates import Moment, as_hours, as_moment
from driftgp.data.numbers import Decimal, as_number

_FEW = 8  # cells that are read one by one
_ISO = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?$"
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def as_numbers(cells: list[str], decimal: Decimal = "point") -> tuple[np.ndarray, np.ndarray]:
    """Cells as numbers, NaN where they are blank, and which of them are neither.

    >>> values, bad = as_numbers(["1.5", "", "n/a", "1,234", "soon"])
    >>> values.tolist(), bad.tolist()
    ([1.5, nan, nan, 1234.0, nan], [False, False, False, False, True])
    """
    N = len(cells)
    values, bad = np.full(N, np.nan), np.zeros(N, bool)
    left = range(N)
    if N > _FEW:
        plain = _cast(cells, decimal)
        values[...] = plain
        left = np.flatnonzero(~np.isfinite(plain)).tolist()  # type: ignore[assignment]
    for i in left:
        value = as_number(cells[i], decimal)
        values[i], bad[i] = (np.nan, True) if value is None else (value, False)
    return values, bad


def _cast(cells: list[str], decimal: Decimal) -> np.ndarray:
    """Plain numbers; NaN for anything else."""
    import polars as pl

    column = pl.Series(cells, dtype=pl.String).str.strip_chars()
    if decimal == "comma":
        pointed = column.str.contains(".", literal=True)
        column = column.str.replace(",", ".", literal=True)
        column = pl.select(pl.when(~pointed).then(column)).to_series()
    return np.asarray(column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy(), np.float64)


class Times(NamedTuple):
    """Cells as times."""

    at: np.ndarray  # N, microseconds since 1970 where they are dates, else the numbers themselves
    wall: np.ndarray  # N, the same as the clock on the wall has it
    offset: np.ndarray  # N, seconds ahead of UTC; NaN where that is not given
    dated: np.ndarray  # N, whether it is a date
    bad: np.ndarray  # N, whether it is no time


def as_times(cells: list[str], form: str | None, decimal: Decimal = "point") -> Times:
    """Cells as times; `form` as in `as_moment`.

    >>> times = as_times(["1970-01-02 01:00", "17", "soon"], None)
    >>> times.at.tolist(), times.dated.tolist(), times.bad.tolist()
    ([90000000000.0, 17.0, nan], [True, False, False], [False, False, True])
    """
    N = len(cells)
    if form is None and N > _FEW:
        plain = _iso(cells)
        if plain is not None:
            nothing = np.full(N, np.nan)
            return Times(plain, plain, nothing, np.ones(N, bool), np.zeros(N, bool))
    different: dict[str, tuple[float, float, float, float, float]] = {}
    rows = []
    for cell in cells:
        if cell not in different:
            different[cell] = _parts(as_moment(cell, form, decimal))
        rows.append(different[cell])
    at, wall, offset, dated, bad = np.array(rows, np.float64).reshape(N, 5).T
    return Times(at, wall, offset, dated > 0.0, bad > 0.0)


def _parts(moment: Moment | None) -> tuple[float, float, float, float, float]:
    if moment is None:
        return np.nan, np.nan, np.nan, 0.0, 1.0
    if moment.clock is None:
        return moment.at, np.nan, np.nan, 0.0, 0.0
    wall = float((moment.clock - _EPOCH) // _MICROSECOND)
    if moment.offset is None:
        return wall, wall, np.nan, 1.0, 0.0
    return wall - round(1e6 * moment.offset), wall, moment.offset, 1.0, 0.0


def _iso(cells: list[str]) -> np.ndarray | None:
    """Times of ISO 8601 without an offset, if all of them are."""
    import polars as pl

    column = pl.Series(cells, dtype=pl.String)
    if not column.str.contains(_ISO).all():
        return None
    try:
        return np.array(cells, "datetime64[us]").astype(np.int64).astype(np.float64)
    except ValueError:  # such as 30 February
        return None


def as_spans(cells: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Cells as hours of a day in microseconds, and which of them are none."""
    hours = {cell: as_hours(cell) for cell in dict.fromkeys(cells)}
    found = [hours[cell] for cell in cells]
    spans = np.array([np.nan if value is None else np.rint(3.6e9 * value) for value in found], np.float64)
    return spans, np.isnan(spans)
