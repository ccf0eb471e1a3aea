"""Cells as times: ISO 8601, numbers of the day, month and year in any order, month names, clocks, offsets from UTC.

Whether the day or the month comes first is decided for a whole column. A cell decides if it is a date one way and not
the other: `13/02/2024` has its day first. `03/02/2024` is two dates, and decides nothing.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from driftgp.tables.numbers import Decimal, as_number

ORDERS = ("day-first", "month-first", "year-first")
EPOCHS = {"seconds": 1.0, "milliseconds": 1e-3}  # since 1970, UTC
_EPOCH = datetime(1970, 1, 1)
_MONTHS = re.findall(r"\w+", "january february march april may june july august september october november december")
_NAMES = {form: number for number, name in enumerate(_MONTHS, start=1) for form in (name, name[:3], name[:4])}

_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?"
_NUMBERS = r"(?P<a>\d{4}|\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{4}|\d{1,2})"
_DAY_NAME = r"(?P<d>\d{1,2})(?P<gap>[-/ ]|\. ?)(?P<m>[a-z]{3,9})\.?[-/ ,]+(?P<y>\d{4}|\d{2})"
_NAME_DAY = r"(?P<m2>[a-z]{3,9})\.? (?P<d2>\d{1,2}),? (?P<y2>\d{4})"
_CLOCK = r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?)?"
_HALF = r"(?: ?(?P<half>[ap])\.?m\.?)?"
_OFFSET = r"(?: ?(?P<offset>z|utc|gmt|[+-]\d{2}(?::?\d{2})?))?"
_MONTH = r"(?:(?P<y3>\d{4})[-/](?P<m3>\d{1,2})|(?P<m4>[a-z]{3,9})[- ](?P<y4>\d{4}))"
_TIME = re.compile(rf"{_WEEKDAY}(?:{_NUMBERS}|{_DAY_NAME}|{_NAME_DAY})(?:(?:t|,? +|:){_CLOCK}{_HALF}{_OFFSET})?", re.I)
_MONTHLY = re.compile(_MONTH, re.I)
_HOURS = re.compile(_CLOCK + _HALF, re.I)


class Moment(NamedTuple):
    """A time: its place on an axis (seconds, or the number in the column) and, for a date, the clock on the wall."""

    at: float
    clock: datetime | None
    offset: float | None = None  # seconds ahead of UTC, where that is given


def as_moment(cell: str, form: str | None = None, decimal: Decimal = "point") -> Moment | None:
    """A cell as a time; None if it is not a time. Clocks without an offset from UTC are taken as they are.

    `form` says how dates are written: one of ORDERS or of EPOCHS, or a format such as `%d/%m/%Y %H:%M`. Without it,
    only a date with a single reading counts.

    >>> as_moment("1970-01-02 01:00").at, as_moment("17"), as_moment("soon")
    (90000.0, Moment(at=17.0, clock=None, offset=None), None)
    >>> as_moment("02/01/1970"), as_moment("02/01/1970", "day-first").at, as_moment("02-Jan-1970 1:00 AM").at
    (None, 86400.0, 90000.0)
    """
    cell = cell.strip()
    clock = _by_format(cell, form) if form is not None and form not in ORDERS else None
    if clock is None and (form is None or form in ORDERS):
        number = as_number(cell, decimal)
        if number is not None:
            return None if math.isnan(number) else Moment(number, None)
        clock = as_clock(cell, form)
    return None if clock is None else _moment(clock)


def _moment(clock: datetime) -> Moment:
    wall, offset = clock.replace(tzinfo=None), clock.utcoffset()
    seconds = (wall - _EPOCH).total_seconds()
    return (
        Moment(seconds, wall)
        if offset is None
        else Moment(seconds - offset.total_seconds(), wall, offset.total_seconds())
    )


def as_clock(cell: str, order: str | None = None) -> datetime | None:
    """A cell as a date and time of day; without an order, only a date with a single reading.

    A month stands for its first day.

    >>> as_clock("31/01/2024 24:00"), as_clock("03/02/2024"), as_clock("Jan 31, 2024 1:05 pm")
    (datetime.datetime(2024, 2, 1, 0, 0), None, datetime.datetime(2024, 1, 31, 13, 5))
    >>> as_clock("2024-02"), as_clock("Feb 2024"), as_clock("2024-13")
    (datetime.datetime(2024, 2, 1, 0, 0), datetime.datetime(2024, 2, 1, 0, 0), None)
    """
    cell = cell.strip()
    if len(cell) < 6 or not any(map(str.isdigit, cell[:12])):
        return None
    clock = _iso(cell) or _of_month(cell)
    if clock is not None:
        return clock
    if order is None:
        found = set(readings(cell).values())
        return found.pop() if len(found) == 1 else None
    return _parsed(cell, order)


def readings(cell: str) -> dict[str, datetime]:
    """The readings of a date, by the order of its numbers.

    >>> {order: str(day.date()) for order, day in readings("03/02/2024").items()}
    {'day-first': '2024-02-03', 'month-first': '2024-03-02'}
    """
    parsed = {order: _parsed(cell.strip(), order) for order in ORDERS}
    return {order: clock for order, clock in parsed.items() if clock is not None}


class Orders:
    """The possible orders of a column's dates; each cell may rule some out.

    >>> orders = Orders()
    >>> for line, cell in enumerate(["03/02/2024", "04/02/2024", "13/02/2024"], start=2):
    ...     orders.see(line, cell)
    >>> orders.possible, orders.deciding
    (('day-first',), (4, '13/02/2024'))
    """

    def __init__(self) -> None:
        """Begin with all orders."""
        self.possible: tuple[str, ...] = ORDERS
        self.deciding: tuple[int, str] | None = None  # line and cell after which one order was possible, or none
        # line and cell after which one order was possible, if a later cell ruled it out
        self.before: tuple[int, str] | None = None
        self.open: dict[str, datetime] = {}  # readings of a cell with several readings
        self.cell = ""  # that cell

    @property
    def matters(self) -> bool:
        """Whether the possible orders give different dates."""
        return len({self.open[order] for order in self.possible if order in self.open}) > 1

    def see(self, line: int, cell: str) -> None:
        """Take in a cell; one that is not a date, or is in ISO 8601, rules nothing out."""
        found = {} if _iso(cell.strip()) else readings(cell)
        left = tuple(order for order in self.possible if order in found) if found else self.possible
        if len(left) < len(self.possible) and len(left) < 2:
            self.before, self.deciding = self.deciding, (line, cell.strip())
        self.possible = left
        if not self.matters and len({found[order] for order in left if order in found}) > 1:
            self.open, self.cell = found, cell.strip()


def as_hours(cell: str) -> float | None:
    """Hours of a day, 0 to 24 (an hour ending may be 24), from 13, 13:30, 13:30:00 or 1:30 PM.

    >>> as_hours("13:30"), as_hours("24"), as_hours("25"), as_hours("1:30 pm"), as_hours("18.00.00")
    (13.5, 24.0, None, 13.5, 18.0)
    """
    match = _HOURS.fullmatch(cell.strip())
    time = None if match is None else _time(match)
    return None if time is None else time.total_seconds() / 3600.0


# ---- the parts -------------------------------------------------------------------------------------------------------


def _iso(cell: str) -> datetime | None:
    try:
        return datetime.fromisoformat(cell)
    except ValueError:
        return None


def _of_month(cell: str) -> datetime | None:
    """The first day of a month such as 2024-02 or Feb 2024."""
    match = _MONTHLY.fullmatch(cell)
    if match is None:
        return None
    month = int(match["m3"]) if match["m3"] else _NAMES.get(match["m4"].casefold())
    year = int(match["y3"] or match["y4"])
    return datetime(year, month, 1) if year and month and month <= 12 else None


def _by_format(cell: str, form: str) -> datetime | None:
    try:
        if form in EPOCHS:
            number = as_number(cell)
            return None if number is None or math.isnan(number) else datetime.fromtimestamp(number * EPOCHS[form], UTC)
        return datetime.strptime(cell, form)
    except (ValueError, OverflowError, OSError):
        return None


def _parsed(cell: str, order: str) -> datetime | None:
    match = _TIME.fullmatch(cell)
    if match is None:
        return None
    day = _named(match) if match["a"] is None else _numbered(match, order)
    time = timedelta() if match["hour"] is None else _time(match)
    if day is None or time is None:
        return None
    try:
        return datetime(*day, tzinfo=_zone(match["offset"])) + time
    except (ValueError, OverflowError):
        return None


def _numbered(match: re.Match[str], order: str) -> tuple[int, int, int] | None:
    """Year, month and day of three numbers."""
    a, b, c = match["a"], match["b"], match["c"]
    if len(a) == 4:  # 2024/01/31 has a single reading, in any order of other dates
        return None if len(c) == 4 else (int(a), int(b), int(c))
    if len(c) != 4 and order == "year-first" and match["mark"] == "-":
        return _year(a), int(b), int(c)
    if order == "year-first" or (order == "month-first" and match["mark"] == "."):  # 31.1.2024: always day first
        return None
    day, month = (a, b) if order == "day-first" else (b, a)
    return _year(c), int(month), int(day)


def _named(match: re.Match[str]) -> tuple[int, int, int] | None:
    name, day, year = (match[part] or match[f"{part}2"] for part in "mdy")
    month = _NAMES.get(name.casefold())
    return None if month is None else (_year(year), month, int(day))


def _year(text: str) -> int:
    """A year; of two digits, one from 1970 to 2069."""
    return int(text) if len(text) == 4 else 1900 + int(text) + 100 * (int(text) < 70)


def _time(match: re.Match[str]) -> timedelta | None:
    """The time of day, up to 24:00."""
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    if match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match["half"] in "pP" else 0)
    part = float(f"0.{match['part'] or 0}")
    time = timedelta(hours=hour, minutes=minute, seconds=second + part)
    return time if minute < 60 and second < 60 and time <= timedelta(days=1) else None


def _zone(offset: str | None) -> timezone | None:
    if offset is None:
        return None
    if offset[0] not in "+-":
        return UTC
    digits = offset[1:].replace(":", "").ljust(4, "0")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-ahead if offset[0] == "-" else ahead)
