"""The cells of a row as numbers."""

import math
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from driftgp.data.dates import Moment, as_hours, as_moment
from driftgp.data.numbers import BLANK, as_flag, as_number
from driftgp.data.rows import Row, Rows
from driftgp.runner.schema import Input, Schema
from driftgp.runner.settings import SECONDS, Settings

_SKIP = "or leave such rows out with --malformed skip"


class Sample(NamedTuple):
    """A row, read."""

    line: int
    time: str  # or nothing
    at: float  # NaN without a time
    clock: datetime | None
    offset: float | None  # seconds ahead of UTC, where the time says it
    group: str
    columns: list[float]
    known: list[float]
    target: float
    unknown: str  # a text that has no input, with its column, or nothing


class Interpreter:
    """Rows to samples; a bad cell is named by line and column."""

    def __init__(self, settings: Settings, schema: Schema, rows: Rows) -> None:
        """Find the columns in the rows' header."""
        self._rows, self._settings, self._schema = rows, settings, schema
        self._target = rows.index(settings.target)
        self._group = None if settings.group is None else rows.index(settings.group)
        self._columns = [(rows.index(each.column), each) for each in schema.columns]
        self._known = [(rows.index(each.column), each) for each in schema.known]
        self._categories = _categories(rows, schema)
        self._time = tuple(rows.index(name) for name in schema.time)
        self._clocks = bool(settings.cycles or settings.holidays)
        half_life = settings.half_life_of
        self._dated = bool(schema.time) and half_life is not None and half_life[1] not in SECONDS

    def sample(self, row: Row) -> Sample:
        """Read a row."""
        moment = self._moment(row)
        return Sample(
            line=row.line,
            time=self._time_text(row, moment),
            at=moment.at,
            clock=moment.clock,
            offset=moment.offset,
            group=self._key(row),
            columns=[self._input(row, index, each) for index, each in self._columns],
            known=[self._input(row, index, each) for index, each in self._known],
            target=self._number(row, self._target),
            unknown=self._unknown(row) if self._categories else "",
        )

    def _key(self, row: Row) -> str:
        if self._group is None:
            return ""
        key = row.cells[self._group].strip()
        if key.casefold() in BLANK:
            raise self._rows.fault(row, self._group, "a key, which says whose row it is")
        return key

    # ---- numbers

    def _number(self, row: Row, column: int) -> float:
        """A cell as a number; a blank one is NaN."""
        value = as_number(row.cells[column], self._schema.decimal)
        if value is None:
            comma = " with a decimal comma" if self._schema.decimal == "comma" else ""
            raise self._rows.fault(row, column, f"a number{comma}, or nothing; correct it, {_SKIP}")
        return value

    def _input(self, row: Row, index: int, each: Input) -> float:
        if each.kind == "category":
            return float(row.cells[index].strip() == each.category)
        if each.kind == "mark":
            return float(row.cells[index].strip().casefold() not in BLANK)
        value = self._number(row, index) if each.kind == "number" else self._flag(row, index)
        if self._settings.missing == "refuse" and math.isnan(value):
            raise self._rows.fault(row, index, "a number (blanks are refused: see the setting missing)")
        return value

    def _flag(self, row: Row, column: int) -> float:
        value = as_flag(row.cells[column])
        if value is None:
            raise self._rows.fault(row, column, f"yes or no, as in the first rows; correct it, {_SKIP}")
        return value

    def _unknown(self, row: Row) -> str:
        """The first text that is no category of its column."""
        for index, categories in self._categories.items():
            cell = row.cells[index].strip()
            if cell not in categories and cell.casefold() not in BLANK:
                return f"{cell[:40]!r} in column {self._rows.header[index]!r}"
        return ""

    # ---- times

    def _moment(self, row: Row) -> Moment:
        if not self._time:
            return Moment(math.nan, None)
        moment = self._with_hours(row, self._day(row))
        if self._clocks and moment.clock is None:
            raise self._rows.fault(
                row,
                self._time[0],
                "a date such as 2020-01-31 13:00, for the calendar; for seconds since 1970 say --time-format seconds",
            )
        if self._dated and moment.clock is not None:
            raise self._rows.fault(row, self._time[0], "a number, as half-life has no unit; or give it one, such as 7d")
        return moment

    def _day(self, row: Row) -> Moment:
        """The time in one cell."""
        moment = as_moment(row.cells[self._time[0]], self._schema.form, self._schema.decimal)
        if moment is None:
            raise self._rows.fault(row, self._time[0], self._expected())
        if moment.clock is not None and (moment.offset is not None) != self._schema.zoned:
            has = "an offset from UTC" if self._schema.zoned else "no offset from UTC"
            raise self._rows.fault(row, self._time[0], f"a time with {has}, as the first row has; correct it, {_SKIP}")
        return moment

    def _expected(self) -> str:
        form = self._schema.form
        written = "a date such as 2020-01-31 13:00, or a number" if form is None else f"a date, {form}"
        return f"{written}; say how dates are written with --time-format, {_SKIP}"

    def _with_hours(self, row: Row, day: Moment) -> Moment:
        """The time with the hours that another cell adds to it."""
        if len(self._time) == 1:
            return day
        hours = as_hours(row.cells[self._time[1]])
        if hours is None or day.clock is None:
            raise self._rows.fault(row, self._time[1], "hours to add to a date, such as 13 or 13:00")
        return Moment(day.at + 3600.0 * hours, day.clock + timedelta(hours=hours), day.offset)

    def _time_text(self, row: Row, moment: Moment) -> str:
        """The time as the file has it; a date that is not ISO 8601, or has its hours apart, as ISO 8601."""
        if not self._time:
            return ""
        if moment.clock is None or (len(self._time) == 1 and self._schema.form is None):
            return row.cells[self._time[0]].strip()
        zone = None if moment.offset is None else timezone(timedelta(seconds=moment.offset))
        return moment.clock.replace(tzinfo=zone).isoformat(sep=" ")


def _categories(rows: Rows, schema: Schema) -> dict[int, set[str]]:
    """The categories of each column of text."""
    found: dict[int, set[str]] = {}
    for each in schema.inputs:
        if each.kind == "category":
            found.setdefault(rows.index(each.column), set()).add(each.category)
    return found
