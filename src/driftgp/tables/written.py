"""How the columns of a table are written: found once, at the first rows, and kept as long as the table is read."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from driftgp.tables.dates import as_clock, as_hours, as_moment, readings
from driftgp.tables.deciding import decide_decimal, decide_order
from driftgp.tables.numbers import BLANK, Decimal, as_number
from driftgp.tables.rows import FileRows, Row

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
    first: Sequence[Row],
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


def most_are_numbers(cells: Collection[str], decimal: Decimal) -> bool | None:
    """Whether most of the cells that are not blank are numbers; None where all are blank."""
    values = Counter(cell for cell in map(str.strip, cells) if cell.casefold() not in BLANK)
    if not values:
        return None
    numeric = sum(count for cell, count in values.items() if as_number(cell, decimal) is not None)
    return 2 * numeric > values.total()


# ---- one column ------------------------------------------------------------------------------------------------------


def _kind(rows: FileRows, first: Sequence[Row], name: str, decimal: Decimal, *, asked: bool) -> tuple[Kind, str]:
    """The kind of a column, or the reason why it is not read."""
    unnamed = rows.head is not None and name in rows.head.unnamed
    cells = [row.cells[rows.index(name)] for row in first]
    numbers = most_are_numbers(cells, decimal)
    if unnamed and not asked:
        return "open", "it has no name"
    if numbers is None:
        return "open", ""
    if numbers:
        return "number", ""
    filled = [cell.strip() for cell in cells if cell.strip().casefold() not in BLANK]
    if 2 * sum(map(_is_date, filled)) > len(filled):
        if asked:
            raise ValueError(
                f"{rows.place}, column {name!r} holds dates, such as {filled[0]!r}, which are no input: name it with "
                "--time, or leave it out of --features"
            )
        return "open", "a date, and not the time"
    return "text", ""


def _check_target(rows: FileRows, first: Sequence[Row], target: str, kinds: dict[str, Kind]) -> None:
    if kinds.get(target) == "text":
        place = rows.index(target)
        row = next(row for row in first if as_number(row.cells[place]) is None)
        raise rows.fault(
            row, place, "a number, as this column is the target: choose another one, or correct the column"
        )


# ---- columns of time -------------------------------------------------------------------------------------------------


def _time_columns(rows: FileRows, first: Sequence[Row], taken: set[str | None]) -> tuple[str, ...]:
    """The first column of dates; with a column of clocks, if the dates have no time of day."""
    free = [i for i, name in enumerate(rows.header) if name not in taken]
    for index in free:
        cells = [row.cells[index] for row in first if row.cells[index].strip()]
        if cells and 2 * sum(map(_is_date, cells)) > len(cells):
            bare = not any(":" in cell for cell in cells)
            clocks = [i for i in free if bare and i != index and _is_clock(i, first)]
            return (rows.header[index], *(rows.header[i] for i in clocks[:1]))
    return ()


def _is_date(cell: str) -> bool:
    if as_number(cell) is not None or as_number(cell, "comma") is not None:
        return False
    return as_clock(cell) is not None or bool(readings(cell))


def _is_clock(index: int, first: Sequence[Row]) -> bool:
    """Whether a column has times of day that are not numbers: 18:00 or 18.00.00."""
    cells = [row.cells[index].strip() for row in first]
    return all(as_hours(cell) is not None and as_number(cell) is None for cell in cells)


def _times(
    rows: FileRows, first: Sequence[Row], time: tuple[str, ...], form: str | None, decimal: Decimal
) -> tuple[bool, bool, bool]:
    """Whether times are dates, whether they have an offset from UTC, and whether they are days without an hour."""
    if not time:
        return False, False, False
    cells = [row.cells[rows.index(time[0])] for row in first]
    moments = [moment for moment in (as_moment(cell, form, decimal) for cell in cells) if moment is not None]
    if not moments or moments[0].clock is None:
        return False, False, False
    clocks = [moment.clock for moment in moments if moment.clock is not None]
    midnight = all(clock.hour == clock.minute == clock.second == clock.microsecond == 0 for clock in clocks)
    several = len(set(clocks)) > 1 or not any(":" in cell for cell in cells)
    return True, moments[0].offset is not None, midnight and several and len(time) == 1


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a name must be text; got {value!r}")
    return value
