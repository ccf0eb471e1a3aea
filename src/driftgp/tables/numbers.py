"""Cells as numbers: with a decimal point or a decimal comma, with thousands apart, or yes and no.

Which mark is the decimal one is decided for a whole file. A cell decides if it is a number one way and not the other:
`12,5` is one with a decimal comma alone, `1,234.5` with a point alone. `1,234` is two different numbers, and decides
nothing.
"""

from __future__ import annotations

import math
import re
from typing import Literal

Decimal = Literal["point", "comma"]

BLANK = frozenset({"", "na", "nan", "n/a", "#n/a", "null", "none", "-", "--"})
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_APART = r"[+-]?[1-9]\d{{0,2}}([{marks}'’ \u00a0\u202f])\d{{3}}(\1\d{{3}})*({decimal}\d*)?"
_GROUPED = {
    "point": re.compile(_APART.format(marks=",", decimal=r"\.")),
    "comma": re.compile(_APART.format(marks=".", decimal=",")),
}
_MONEY = re.compile(r"^([+-]?)[$€£¥] ?|()\s?[$€£¥]$")
_GROUPS = {"point": re.compile(r"[,'’ \u00a0\u202f]"), "comma": re.compile(r"[.'’ \u00a0\u202f]")}


def as_number(cell: str, decimal: Decimal = "point") -> float | None:
    """A cell as a finite number; NaN if it is blank, None for other cells.

    >>> as_number(" 2.5e3 "), as_number("NA"), as_number("inf"), as_number("1_000")
    (2500.0, nan, None, None)
    >>> as_number("1,234.5"), as_number("1.234,5", "comma"), as_number("12.5", "comma"), as_number("1 234")
    (1234.5, 1234.5, None, 1234.0)
    >>> as_number("$2,511.62"), as_number("12,50 €", "comma")
    (2511.62, 12.5)
    """
    cell = cell.strip()
    if decimal == "point" and _PLAIN.fullmatch(cell):
        return _finite(cell)
    if cell.casefold() in BLANK:
        return math.nan
    cell = _MONEY.sub(r"\1", cell.replace("\u2212", "-"))
    if _GROUPED[decimal].fullmatch(cell):
        cell = _GROUPS[decimal].sub("", cell)
    elif decimal == "comma" and "." in cell:
        return None
    if decimal == "comma":
        cell = cell.replace(",", ".")
    return _finite(cell) if _PLAIN.fullmatch(cell) else None


def _finite(cell: str) -> float | None:
    value = float(cell)
    return value if math.isfinite(value) else None


def decides(cell: str) -> Decimal | Literal["either"] | None:
    """The decimal mark that a cell shows: that of its only reading, `either` for two, None if both are the same.

    >>> decides("12,5"), decides("0.5"), decides("1,234"), decides("12"), decides("sun")
    ('comma', 'point', 'either', None, None)
    """
    if "," not in cell and "." not in cell:
        return None
    point, comma = as_number(cell), as_number(cell, "comma")
    if point is None or comma is None:
        return None if point is comma else "comma" if point is None else "point"
    return "either" if point != comma else None
