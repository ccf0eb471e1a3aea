"""Rows of a table one at a time, as they are needed or as they arrive; a bad cell is named by line and column."""

from __future__ import annotations

import csv
import gzip
import math
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import IO, NamedTuple, cast

FORMATS = ("%m/%d/%Y", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S")
BLANK = frozenset({"", "na", "nan", "n/a", "null", "none"})
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_EPOCH = datetime(1970, 1, 1)
LONGEST_LINE = 1 << 24  # bytes: a longer line is no row of a table
_COUNTED = 1 << 28  # bytes of an archive that are unpacked to count its rows


class Row(NamedTuple):
    """One row: the line of the file on which it begins (of a workbook or Parquet file, its row), and its cells."""

    line: int
    cells: tuple[str, ...]


class Moment(NamedTuple):
    """A time: its place on an axis (seconds, or the number in the column) and, if it is a date, what clocks show."""

    at: float
    clock: datetime | None


@dataclass
class Rows:
    """A header and the rows under it, in one pass.

    Asking for a row that is malformed raises a ValueError that names its place; the next one can still be asked for.
    """

    place: str
    header: tuple[str, ...]
    source: Iterator[Row]
    file: IO[bytes] | None = None  # to close in the end
    remarks: list[str] = field(default_factory=list)  # what a reader should know once the rows are read

    def __enter__(self) -> Rows:
        """Use the rows in a `with` statement, which closes their file."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file that the rows come from, if there is one of their own."""
        if self.file is not None:
            self.file.close()

    def __iter__(self) -> Iterator[Row]:
        """Rows from here on."""
        return self

    def __next__(self) -> Row:
        """The next row."""
        row = next(self.source)
        if len(row.cells) != len(self.header):
            raise ValueError(
                f"{self.place}, line {row.line} has {len(row.cells)} cells: expected {len(self.header)}, as in line 1"
            )
        return row

    def index(self, column: str) -> int:
        """Where a column is."""
        if column in self.header:
            return self.header.index(column)
        raise ValueError(f"{self.place}, line 1: no column {column!r}; the columns are {', '.join(self.header)}")

    def fault(self, row: Row, column: int, expected: str) -> ValueError:
        """The error for one cell."""
        cell = row.cells[column]
        given = f"is {cell[:60]!r}" if cell.strip() else "is blank"
        return ValueError(f"{self.place}, line {row.line}, column {self.header[column]!r} {given}: expected {expected}")

    def number(self, row: Row, column: int) -> float:
        """A cell as a number; a blank one is NaN."""
        value = as_number(row.cells[column])
        if value is None:
            raise self.fault(row, column, "a number, or nothing")
        return value

    def moment(self, row: Row, columns: tuple[int, ...]) -> Moment:
        """A time from one cell, or from a date in one and the hours to add in another."""
        moment = as_moment(row.cells[columns[0]])
        if moment is None:
            raise self.fault(row, columns[0], "a date such as 2020-01-31 13:00, or a number")
        if len(columns) == 1:
            return moment
        hours = as_hours(row.cells[columns[1]])
        if hours is None or moment.clock is None:
            raise self.fault(row, columns[1], "hours to add to a date, such as 13 or 13:00")
        return Moment(moment.at + 3600.0 * hours, moment.clock + timedelta(hours=hours))


def as_number(cell: str) -> float | None:
    """A cell as a finite number, NaN if it is blank, None if it is neither.

    >>> as_number(" 2.5e3 "), as_number("NA"), as_number("inf"), as_number("1_000")
    (2500.0, nan, None, None)
    """
    cell = cell.strip()
    if _NUMBER.fullmatch(cell):
        value = float(cell)
        return value if math.isfinite(value) else None
    return math.nan if cell.casefold() in BLANK else None


def as_moment(cell: str) -> Moment | None:
    """A cell as a time, None if it is none. Clocks without an offset from UTC are taken as they are.

    >>> as_moment("1970-01-02 01:00").at, as_moment("01/02/1970").at, as_moment("17"), as_moment("soon")
    (90000.0, 86400.0, Moment(at=17.0, clock=None), None)
    """
    cell = cell.strip()
    number = as_number(cell)
    if number is not None:
        return None if math.isnan(number) else Moment(number, None)
    clock = _clock(cell)
    if clock is None:
        return None
    wall = clock.replace(tzinfo=None)
    offset = clock.utcoffset() or timedelta()
    return Moment(((wall - _EPOCH) - offset).total_seconds(), wall)


def _clock(cell: str) -> datetime | None:
    try:
        return datetime.fromisoformat(cell)
    except ValueError:
        pass
    for form in FORMATS:
        try:
            return datetime.strptime(cell, form)
        except ValueError:
            continue
    return None


def as_hours(cell: str) -> float | None:
    """Hours of a day, 0 to 24 (an hour ending may be 24), from 13, 13:30 or 13:30:00.

    >>> as_hours("13:30"), as_hours("24"), as_hours("25")
    (13.5, 24.0, None)
    """
    parts = [as_number(part) for part in cell.split(":")]
    if not 1 <= len(parts) <= 3 or any(part is None or math.isnan(part) for part in parts):
        return None
    hours = sum(part / 60.0**power for power, part in enumerate(parts) if part is not None)
    return hours if 0.0 <= hours <= 24.0 else None


def as_date(text: str) -> date:
    """A day such as 2020-01-31, or a ValueError that says so."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError as error:
        raise ValueError(f"{text!r} is no day: expected one such as 2020-01-31") from error


# ---- where rows come from --------------------------------------------------------------------------------------------


def is_live(path: str) -> bool:
    """Whether rows are still to come and can be read only once: standard input (`-`), a named pipe, a device.

    >>> is_live("-"), is_live(__file__), is_live("/nowhere")
    (True, False, False)
    """
    if path == "-":
        return True
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:  # which opening it will explain
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def open_rows(path: str, *, growing: bool = False) -> Rows:
    """Open a CSV (also gzipped), a Parquet file, a workbook, or standard input for `-`.

    Args:
        path: the file.
        growing: whether more is expected: a last line without its newline is then left for later, since it may be half
            a line. A live source always is growing.
    """
    growing = growing or is_live(path)
    if path == "-":
        return csv_rows("standard input", sys.stdin.buffer, growing=growing)
    suffix = Path(path).suffix.lower()
    if suffix in (".parquet", ".xlsx", ".xls"):
        return _table_rows(Path(path))
    file = _open_binary(path)
    try:
        return replace(csv_rows(path, file, growing=growing), file=file)
    except BaseException:
        file.close()
        raise


def _open_binary(path: str) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if path.lower().endswith(".gz") else Path(path).open("rb")


def count_rows(path: str) -> int:
    """About how many rows a file has: its rows, or its lines below the header; 0 where to count is to read."""
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        from driftgp.data.tables import parquet_rows

        return parquet_rows(Path(path))
    if suffix in (".xlsx", ".xls"):
        return 0
    with _open_binary(path) as file:
        try:
            return max(_count_lines(file, _COUNTED if path.lower().endswith(".gz") else math.inf) - 1, 0)
        except (OSError, EOFError, zlib.error):  # damaged: reading it row by row will say where
            return 0


def _count_lines(file: IO[bytes], most: float) -> int:
    """Lines of a file; 0 where it has more bytes than are worth to be read for that."""
    lines = 0
    while block := file.read(1 << 20):
        lines, most = lines + block.count(b"\n"), most - len(block)
        if most < 0:
            return 0
    return lines


def csv_rows(place: str, stream: Iterable[bytes] | IO[bytes], *, growing: bool = False) -> Rows:
    r"""Rows of CSV text, each given out as soon as its line is there; of a `growing` one, its newline too.

    >>> rows = csv_rows("here", [b"a,b\n", b"1,2\n", b"\n", b"3,4\n"])
    >>> rows.header, list(rows)
    (('a', 'b'), [Row(line=2, cells=('1', '2')), Row(line=4, cells=('3', '4'))])
    """
    remarks: list[str] = []
    source = _CSV(place, _Lines(place, stream, growing, remarks.append))
    first = next(source, None)
    if first is None:
        raise ValueError(f"{place} is empty: expected a header and rows under it")
    header = tuple(name.strip() for name in first.cells)
    doubled = [name for name in header if header.count(name) > 1]
    if doubled:
        raise ValueError(f"{place}, line {first.line}: the header has {doubled[0]!r} twice")
    return Rows(place, header, source, remarks=remarks)


class _CSV(Iterator[Row]):
    """Rows of a stream of lines; an iterator that outlives its own errors."""

    def __init__(self, place: str, lines: _Lines) -> None:
        self.place, self.lines = place, lines
        self.rows = csv.reader(self.lines, strict=True)

    def __next__(self) -> Row:
        while True:
            line = self.lines.number + 1
            try:
                cells = next(self.rows)
            except csv.Error as error:
                self.rows = csv.reader(self.lines, strict=True)  # the old one is in the middle of a cell
                if self.lines.left:  # the cell ends with the line that was left for later
                    raise StopIteration from error
                raise ValueError(f"{self.place}, line {line} cannot be read as CSV: {error}") from error
            if cells and not (len(cells) == 1 and not cells[0].strip()):
                return Row(line, tuple(cells))


class _Lines(Iterator[str]):
    """Lines as text. After damage there is no next line: what follows would be read from the middle of something."""

    def __init__(
        self, place: str, stream: Iterable[bytes] | IO[bytes], growing: bool, remark: Callable[[str], None]
    ) -> None:
        self.place, self.growing, self.remark = place, growing, remark
        self.number, self.ended, self.left = 0, False, False
        lines = iter(stream)
        # `readline` with a limit, where there is one: a line without an end would fill the memory
        self.read = getattr(stream, "readline", lambda _most: next(lines, b""))

    def __next__(self) -> str:
        line = b"" if self.ended else self._bytes()
        if line and not line.endswith(b"\n") and line.strip():
            self._torn()
        if not line or self.left:
            self.ended = True
            raise StopIteration
        self.number += 1
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.place}, line {self.number} is not UTF-8 text: byte {error.start + 1} of it"
            ) from error

    def _bytes(self) -> bytes:
        try:
            line: bytes = self.read(LONGEST_LINE + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self.ended = True
            raise ValueError(f"{self.place} is damaged after line {self.number}: {error}") from error
        if len(line) > LONGEST_LINE:
            self.ended = True
            raise ValueError(
                f"{self.place}, line {self.number + 1} is longer than {LONGEST_LINE >> 20} MiB, the most that a row "
                "may have: check that the file is CSV text with one row per line"
            )
        return line

    def _torn(self) -> None:
        """Say what is done with a last line that has no newline, and may be half a line."""
        place = f"{self.place}, line {self.number + 1}: the last line has no newline"
        self.left = self.growing
        if self.growing:
            self.remark(f"{place} and may be half a row: it was left for the next run")
        else:
            self.remark(f"{place}: it was read as it is")


def _table_rows(path: Path) -> Rows:
    from driftgp.data.tables import read_table

    table = read_table(path)
    cells = table.cells.fill_null("").iter_rows()
    rows = (Row(int(line), values) for line, values in zip(table.rows, cells, strict=True))
    return Rows(table.place, table.header, rows)
