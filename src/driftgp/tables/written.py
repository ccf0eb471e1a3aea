"""How the columns of a table are written: found once, at the first rows, and kept as long as the table is read."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from driftgp.base.extras import needs
from driftgp.tables.dates import DAY, are_dates, as_spans, as_times
from driftgp.tables.deciding import decide_decimal, decide_order
from driftgp.tables.lines import Lines
from driftgp.tables.numbers import Decimal, are_blank, as_numbers
from driftgp.tables.rows import FileRows

with needs("reading tables", extra="cli"):
    import polars as pl

Kind = Literal["number", "text", "open"]  # open: the column has had no value yet


@dataclass(frozen=True)
class Written:
    """The format of a table, for readers."""

    header: tuple[str, ...]
    kinds: dict[str, Kind]  # of the columns that are read, except those of time
    time: tuple[str, ...] = ()  # the column of times, or of dates and the one of hours
    decimal: Decimal = "point"
    form: str | None = None  # format of dates, if they are not in ISO 8601
    dated: bool = False  # whether times are dates
    zoned: bool = False  # whether times have an offset from UTC
    days: bool = False  # whether times are days without an hour
    unit: str = ""  # of the target
    notes: tuple[str, ...] = ()  # how the file is written
    left_out: tuple[str, ...] = ()  # columns that are not read, with the reason

    def to_json(self) -> dict[str, Any]:
        """The parts, as JSON holds them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Written":
        """What `to_json` gave, or an error if it is anything else."""
        given = {field.name: stored[field.name] for field in fields(cls)}
        for name, value in given.items():
            if isinstance(value, list):
                given[name] = tuple(map(_text, value))
        for name in ("dated", "zoned", "days"):
            given[name] = stored[name] is True
        found = cls(**given)
        kinds = set(found.kinds.values()) - {"number", "text", "open"}
        if found.decimal not in ("point", "comma") or kinds or {*found.kinds, *found.time} - {*found.header}:
            raise ValueError("its columns do not fit together")
        return found


def find_written(
    rows: FileRows,
    first: Lines,
    *,
    target: str,
    time: tuple[str, ...] | None = None,
    key: str | None = None,
    features: Collection[str] = (),
    decimal: Decimal | None = None,
    time_format: str | None = None,
) -> Written:
    """The format of each column, from the options and the first rows, or from all rows if these do not decide.

    Args:
        rows: of the table, to be read again where the first rows leave something open.
        first: the first ones.
        target: name of the column to predict.
        time: name of the column of times, or of that and of one with hours; None to find it.
        key: name of the column of keys.
        features: columns that were asked for by name.
        decimal: decimal mark, if it is known.
        time_format: how dates are written, if that is known.
    """
    for name in (target, *features, *(time or ()), *([key] if key else [])):
        rows.index(name)
    if time is None:
        time = _time_columns(rows, first, {target, key})
    form, *notes = (time_format, "") if time_format or not time else decide_order(rows, first, rows.index(time[0]))
    numeric = [i for i, name in enumerate(rows.header) if name not in time and name != key]
    mark, comma = (decimal, "") if decimal else decide_decimal(rows, first, numeric)
    if len(time) == 2:
        notes.append(f"times from {time[0]!r} and {time[1]!r}")
    kinds: dict[str, Kind] = {}
    left_out: list[str] = []
    for name in rows.header:
        if name == key:
            kinds[name] = "text"
        elif name not in time:
            kind, reason = _kind(rows, first, name, mark, asked=name == target or name in features)
            if reason:
                left_out.append(f"{name} ({reason})")
            else:
                kinds[name] = kind
    _check_target(rows, first, target, kinds)
    dated, zoned, days = _times(rows, first, time, form, mark)
    kinds[target] = "number"
    return Written(
        rows.header,
        kinds,
        time,
        mark,
        form,
        dated,
        zoned,
        days,
        rows.unit(target),
        tuple(note for note in (*rows.notes, comma, *notes) if note),
        tuple(left_out),
    )


def most_are_numbers(cells: pl.Series, decimal: Decimal) -> bool | None:
    """Whether most of the cells that are not blank are numbers; None where all are blank."""
    values, bad = as_numbers(cells, decimal)
    numbers, others = int((~np.isnan(values)).sum()), int(bad.sum())
    return numbers > others if numbers + others else None


# ---- one column ------------------------------------------------------------------------------------------------------


def _kind(rows: FileRows, first: Lines, name: str, decimal: Decimal, *, asked: bool) -> tuple[Kind, str]:
    """The kind of a column, or the reason why it is not read."""
    unnamed = rows.head is not None and name in rows.head.unnamed
    cells = first.columns()[rows.index(name)]
    numbers = most_are_numbers(cells, decimal)
    if unnamed and not asked:
        return "open", "it has no name"
    if numbers is None:
        return "open", ""
    if numbers:
        return "number", ""
    filled = cells.filter(pl.Series(~are_blank(cells)))
    if 2 * are_dates(filled).sum() > len(filled):
        if asked:
            raise ValueError(
                f"{rows.place}, column {name!r} holds dates, such as {filled[0]!r}, which are no input: name it with "
                "--time, or leave it out of --features"
            )
        return "open", "a date, and not the time"
    return "text", ""


def _check_target(rows: FileRows, first: Lines, target: str, kinds: dict[str, Kind]) -> None:
    if kinds.get(target) == "text":
        place = rows.index(target)
        row = int(np.argmax(as_numbers(first.columns()[place])[1]))
        expected = "a number, as this column is the target: choose another one, or correct the column"
        raise rows.fault(int(first.numbers[row]), first.cells[row, place], place, expected)


# ---- columns of time -------------------------------------------------------------------------------------------------


def _time_columns(rows: FileRows, first: Lines, taken: set[str | None]) -> tuple[str, ...]:
    """The first column of dates; with a column of clocks, if the dates have no time of day."""
    columns = first.columns()
    free = [i for i, name in enumerate(rows.header) if name not in taken]
    for index in free:
        cells = columns[index].filter(columns[index] != "")
        if len(cells) and 2 * are_dates(cells).sum() > len(cells):
            bare = not cells.str.contains(":", literal=True).any()
            clocks = [i for i in free if bare and i != index and _are_clocks(columns[i])]
            return (rows.header[index], *(rows.header[i] for i in clocks[:1]))
    return ()


def _are_clocks(cells: pl.Series) -> bool:
    """Whether cells are times of day that are not numbers: 18:00 or 18.00.00."""
    return not np.isnan(as_spans(cells)).any() and bool(as_numbers(cells)[1].all())


def _times(
    rows: FileRows, first: Lines, time: tuple[str, ...], form: str | None, decimal: Decimal
) -> tuple[bool, bool, bool]:
    """Whether times are dates, whether they have an offset from UTC, and whether they are days without an hour."""
    if not time:
        return False, False, False
    cells = first.columns()[rows.index(time[0])]
    times = as_times(cells, form, decimal)
    known = np.flatnonzero(~times.bad)
    if not len(known) or not times.dated[known[0]]:
        return False, False, False
    wall = times.wall[times.dated]
    several = len(np.unique(wall)) > 1 or not cells.str.contains(":", literal=True).any()
    days = not (wall % DAY).any() and several and len(time) == 1
    return True, not np.isnan(times.offset[known[0]]), days


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a name must be text; got {value!r}")
    return value
