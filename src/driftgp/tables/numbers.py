"""Columns of cells as numbers: with a decimal point or a decimal comma, with thousands apart, with a currency.

Which mark is the decimal one is decided for a whole file. A cell decides if it is a number one way and not the other:
`12,5` is one with a decimal comma alone, `1,234.5` with a point alone. `1,234` is two different numbers, and decides
nothing. Cells have no blanks around them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from driftgp.base.extras import needs

with needs("reading tables", extra="cli"):
    import polars as pl

Decimal = Literal["point", "comma"]

BLANK = ("", "na", "nan", "n/a", "#n/a", "null", "none", "-", "--")
_NUMBER = r"^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$"
_APART = {"point": ",'’ \u00a0\u202f", "comma": ".'’ \u00a0\u202f"}  # marks between thousands
_MONEY = "[$€£¥]"


def are_blank(cells: pl.Series) -> np.ndarray:
    """Which cells are blank, or hold a word for a missing value."""
    return cells.str.to_lowercase().is_in(BLANK).to_numpy()


def as_numbers(cells: pl.Series, decimal: Decimal = "point") -> tuple[np.ndarray, np.ndarray]:
    """Cells as finite numbers, NaN where they are blank, and which of them are neither.

    >>> values, bad = as_numbers(pl.Series(["1.5", "", "n/a", "1,234", "$2,511.62", "soon"]))
    >>> values.tolist(), bad.tolist()
    ([1.5, nan, nan, 1234.0, 2511.62, nan], [False, False, False, False, False, True])
    >>> as_numbers(pl.Series(["1.234,5", "12,50 €", "12.5"]), "comma")[0].tolist()
    [1234.5, 12.5, nan]
    """
    values = floats(cells if decimal == "point" else _with_point(cells))
    values[~np.isfinite(values)] = np.nan
    left = np.isnan(values)
    if left.any():
        left &= ~are_blank(cells)
        values[left] = _as_people_write(cells.filter(pl.Series(left)), decimal)
    return values, left & np.isnan(values)


def _as_people_write(cells: pl.Series, decimal: Decimal) -> np.ndarray:
    """Numbers with thousands apart, a currency, or a minus of typographers; NaN for other cells."""
    cells = cells.str.replace_all("\u2212", "-", literal=True)
    cells = cells.str.replace(rf"^([+-]?){_MONEY} ?", "${1}").str.replace(rf"\s?{_MONEY}$", "")
    marks, point = _APART[decimal], r"\." if decimal == "point" else ","
    apart = "|".join(rf"(?:[{mark}]\d{{3}})+" for mark in marks)
    grouped = cells.str.contains(rf"^[+-]?[1-9]\d{{0,2}}(?:{apart})(?:{point}\d*)?$")
    cells = cells.set(grouped, None).fill_null(cells.str.replace_all(rf"[{marks}]", ""))
    cells = cells if decimal == "point" else _with_point(cells)
    values = floats(cells.set(~cells.str.contains(_NUMBER), None))
    return np.where(np.isfinite(values), values, np.nan)


def _with_point(cells: pl.Series) -> pl.Series:
    """Numbers with a decimal point instead of a comma; null where there is a point already."""
    return cells.set(cells.str.contains(".", literal=True), None).str.replace(",", ".", literal=True)


class Marks(NamedTuple):
    """Which cells show their decimal mark: those with one reading, and those with two."""

    point: np.ndarray
    comma: np.ndarray
    either: np.ndarray


def marks_of(cells: pl.Series) -> Marks:
    """The decimal marks that cells show.

    >>> marks = marks_of(pl.Series(["12,5", "0.5", "1,234", "12", "sun"]))
    >>> marks.comma.tolist(), marks.either.tolist()
    ([True, False, False, False, False], [False, False, True, False, False])
    """
    (point, not_point), (comma, not_comma) = as_numbers(cells), as_numbers(cells, "comma")
    return Marks(~not_point & not_comma, not_point & ~not_comma, ~np.isnan(point) & ~np.isnan(comma) & (point != comma))


def floats(values: pl.Series) -> np.ndarray:
    """Numbers, NaN for other cells."""
    return values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy(writable=True)
