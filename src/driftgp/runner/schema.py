"""Which column of a table is what, and the cells of a row as numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from driftgp.data.rows import BLANK, Row, Rows, as_date, as_moment, as_number
from driftgp.features import Features
from driftgp.runner.settings import SECONDS, Settings


class Sample(NamedTuple):
    """A row, read."""

    line: int
    time: str  # or nothing
    at: float  # NaN without a time
    clock: datetime | None
    group: str
    columns: list[float]
    known: list[float]
    target: float


@dataclass(frozen=True)
class Schema:
    """Names of the columns that a run reads; found once, at its first rows."""

    header: tuple[str, ...]
    columns: tuple[str, ...]
    known: tuple[str, ...]
    time: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The names, as JSON holds them."""
        return {name: list(value) for name, value in vars(self).items()}


def find_schema(settings: Settings, rows: Rows, first: Sequence[Row]) -> Schema:
    """Decide what each column is, by the settings and by the first rows."""
    named = [settings.target, *settings.known, *(settings.features or ()), *(settings.time or ())]
    for name in [*named, *([settings.group] if settings.group else [])]:
        rows.index(name)
    if settings.target in (*settings.known, *(settings.features or ())):
        raise ValueError(f"features must not hold the target {settings.target!r}: ask for lags of it")
    time = _time_column(rows, first) if settings.time is None else settings.time
    columns = settings.features
    if columns is None:
        taken = {settings.target, settings.group, *settings.known, *time}
        columns = tuple(name for name in rows.header if name not in taken and _numeric(rows.index(name), first))
    columns = tuple(dict.fromkeys(name for name in columns if name not in settings.known))
    return Schema(rows.header, columns, tuple(dict.fromkeys(settings.known)), time)


def features_of(settings: Settings, schema: Schema) -> Features:
    """The inputs that a run gives its models."""
    features = Features(
        columns=schema.columns,
        known=schema.known,
        lags=settings.lags,
        seasonal=settings.seasonal_lags,
        cycles=settings.cycles,  # type: ignore[arg-type]
        holidays=frozenset(map(as_date, settings.holidays)),
        horizon=settings.horizon,
    )
    if features.needs_time and not schema.time:
        raise ValueError("the calendar needs a column of dates, and there is none: name one with time")
    if settings.half_life_of is not None and settings.half_life_of[1] in SECONDS and not schema.time:
        raise ValueError(
            f"half-life {settings.half_life!r} needs a column of times, and there is none: name one with time"
        )
    return features


class Interpreter:
    """Rows to samples; a bad cell is named by line and column."""

    def __init__(self, settings: Settings, schema: Schema, rows: Rows) -> None:
        """Find the columns in the rows' header."""
        self._rows, self._settings = rows, settings
        self._target = rows.index(settings.target)
        self._group = None if settings.group is None else rows.index(settings.group)
        self._columns = [rows.index(name) for name in schema.columns]
        self._known = [rows.index(name) for name in schema.known]
        self._time = tuple(rows.index(name) for name in schema.time)
        self._clocks = bool(settings.cycles or settings.holidays)
        half_life = settings.half_life_of
        self._dated = bool(schema.time) and half_life is not None and half_life[1] not in SECONDS

    def sample(self, row: Row) -> Sample:
        """Read a row."""
        at, clock = self._moment(row)
        return Sample(
            line=row.line,
            time=self._time_text(row, clock),
            at=at,
            clock=clock,
            group=self._key(row),
            columns=[self._input(row, index) for index in self._columns],
            known=[self._input(row, index) for index in self._known],
            target=self._rows.number(row, self._target),
        )

    def _key(self, row: Row) -> str:
        if self._group is None:
            return ""
        key = row.cells[self._group].strip()
        if key.casefold() in BLANK:
            raise self._rows.fault(row, self._group, "a key, which says whose row it is")
        return key

    def _time_text(self, row: Row, clock: datetime | None) -> str:
        """The time as the file has it, or what a date and its hours come to."""
        if len(self._time) == 2 and clock is not None:
            return clock.isoformat(sep=" ")
        return row.cells[self._time[0]].strip() if self._time else ""

    def _moment(self, row: Row) -> tuple[float, datetime | None]:
        if not self._time:
            return math.nan, None
        moment = self._rows.moment(row, self._time)
        if self._clocks and moment.clock is None:
            raise self._rows.fault(row, self._time[0], "a date such as 2020-01-31 13:00, for the calendar")
        if self._dated and moment.clock is not None:
            raise self._rows.fault(row, self._time[0], "a number, as half-life has no unit; or give it one, such as 7d")
        return moment

    def _input(self, row: Row, index: int) -> float:
        value = self._rows.number(row, index)
        if self._settings.missing == "refuse" and math.isnan(value):
            raise self._rows.fault(row, index, "a number (blanks are refused: see the setting missing)")
        return value


# Most of the first cells decide what a column is: a bad cell is then an error with a place, not another kind of column.


def _time_column(rows: Rows, first: Sequence[Row]) -> tuple[str, ...]:
    """The first column whose cells are mostly dates."""
    for index, name in enumerate(rows.header):
        moments = [as_moment(row.cells[index]) for row in first if row.cells[index].strip()]
        dates = sum(moment is not None and moment.clock is not None for moment in moments)
        if 2 * dates > len(moments):
            return (name,)
    return ()


def _numeric(index: int, first: Sequence[Row]) -> bool:
    """Whether a column has mostly numbers, apart from blanks."""
    values = [as_number(row.cells[index]) for row in first]
    numbers, others = sum(value is not None and value == value for value in values), values.count(None)
    return numbers > others
