"""Rows of a table in blocks, as they are needed or as they arrive; a bad cell is named by line and column."""

from __future__ import annotations

import difflib
import gzip
import math
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import IO, TypedDict, cast

from driftgp.tables import layout
from driftgp.tables.csv_lines import FirstRow, csv_lines, first_rows
from driftgp.tables.layout import DELIMITERS, Head
from driftgp.tables.lines import Lines, gathered
from driftgp.tables.text import Text, start_of

_COUNTED = 1 << 28  # bytes of an archive that are unpacked to count its rows
_START = 1 << 16  # bytes from which the encoding is found
_HEAD = 100  # lines of a file from which its layout is found
_TABLES = (".parquet", ".xlsx", ".xls")
_JSON = (".json", ".jsonl", ".ndjson")
_OTHERS = {  # first bytes of files that are not text
    b"PK\x03\x04": "a zip archive or a workbook: unpack it, or give it its ending .xlsx",
    b"\xd0\xcf\x11\xe0": "a workbook: give it its ending .xls",
    b"PAR1": "a Parquet file: give it its ending .parquet",
    b"%PDF": "a PDF document: export the table as CSV",
    b"<": "a web page or XML: export the table as CSV",
}

Complain = Callable[[str], None]


@dataclass
class FileRows:
    """A header and the rows under it, in one pass.

    A malformed row ends a block with an error, and the rows after it can still be read; or it is left out.
    """

    place: str
    header: tuple[str, ...]
    source: Iterator[Lines]
    file: IO[bytes] | None = None  # closed at the end
    remarks: list[str] = field(default_factory=list)  # remarks for the user once the rows are read
    head: Head | None = None  # where the header was found
    notes: tuple[str, ...] = ()  # unusual properties of the format
    delimiter: str = ","
    again: Callable[[], FileRows] | None = None  # opens the same rows from the beginning, if possible
    live: bool = False  # rows are given as they come
    complain: Complain | None = None  # called with a line about each malformed row, which is then left out
    left_out: int = 0  # rows that were
    _ahead: list[Lines] = field(default_factory=list)  # rows that were read and not yet taken

    def __enter__(self) -> FileRows:
        """Use the rows in a `with` statement, which closes their file."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file of the rows, if any."""
        if self.file is not None:
            self.file.close()

    def take(self, most: int) -> Lines:
        """The next rows, up to a number; of a live stream, only rows that have come."""
        parts: list[Lines] = []
        left = most
        while left and not (self.live and left < most):
            part = self._ahead.pop() if self._ahead else next(self.source, None)
            if part is None:
                break
            if len(part) > left:
                part, rest = part.split(left)
                self._ahead.append(rest)
            left -= len(part)
            parts.append(part)
            if part.fault is not None and self.complain is None:
                break
            if part.fault is not None:
                self.pass_over(part.fault)
                parts[-1] = replace(part, fault=None)
        return Lines.joined(parts) if parts else next(gathered([], len(self.header)))

    def pass_over(self, error: ValueError) -> None:
        """Leave a row out."""
        self.left_out += 1
        if self.complain is not None:
            self.complain(f"left out: {error}")

    def look(self, count: int) -> Lines:
        """The next rows, without taking them; refuses a table without rows."""
        lines = self.take(count)
        if not len(lines):
            raise lines.fault or ValueError(f"{self.place} has a header and no rows: there is nothing to predict")
        self._ahead.append(lines)
        return lines

    def every(self, most: int = 1 << 14) -> Iterator[Lines]:
        """All rows of a file except malformed ones; no rows of a stream, which cannot be read twice."""
        if self.again is not None:
            with self.again() as others:
                others.complain = lambda _: None  # they are refused, or left out, later
                while len(lines := others.take(most)):
                    yield lines

    def ragged(self, line: int, count: int) -> ValueError:
        """The error for a row with this number of cells."""
        cells = f"{count} cells" if count != 1 else "1 cell"
        hint = ""
        if count > len(self.header) and self.delimiter == ",":
            hint = "; if commas stand in numbers too, put those into quotation marks, or export with semicolons"
        expected = f"expected {len(self.header)}, as in line {self.line}"
        return ValueError(f"{self.place}, line {line} has {cells}: {expected}{hint}")

    @property
    def line(self) -> int:
        """Line of the header."""
        return 1 if self.head is None else self.head.line

    def unit(self, column: str) -> str:
        """The unit of a column, from a row of units or from brackets at the end of the name.

        >>> FileRows("here", ("load [MW]", "temp (°C)", "y"), iter(())).unit("load [MW]")
        'MW'
        """
        units = () if self.head is None else self.head.units
        text = units[self.header.index(column)] if units else column
        bare = text.strip("()[] ")
        if units:
            return bare
        opening = max(text.rfind("("), text.rfind("["))
        return text[opening + 1 : -1].strip() if text.endswith((")", "]")) and opening > 0 else ""

    def index(self, column: str) -> int:
        """Where a column is."""
        if column in self.header:
            return self.header.index(column)
        raise ValueError(
            f"{self.place}, line {self.line}: no column {column!r}; the columns are {', '.join(self.header)}"
            f"{self._hint(column)}"
        )

    def _hint(self, column: str) -> str:
        plain = {name.casefold(): name for name in self.header}
        close = difflib.get_close_matches(column.casefold(), plain, n=1)
        if close:
            return f". Did you mean {plain[close[0]]!r}?"
        if self.head is not None and self.head.data_like:
            return ". That line looks like data: put a line with the names of the columns above it"
        if len(self.header) == 1:
            return ". If there are several, say what stands between them with --delimiter"
        return ""

    def fault(self, line: int, cell: str, column: int, expected: str) -> ValueError:
        """The error for one cell."""
        given = f"is {cell[:60]!r}" if cell.strip() else "is blank"
        return ValueError(f"{self.place}, line {line}, column {self.header[column]!r} {given}: expected {expected}")


# ---- where rows come from --------------------------------------------------------------------------------------------


def is_live(path: str) -> bool:
    """Whether rows may still come and can be read only once: standard input (`-`), a named pipe, a device.

    >>> is_live("-"), is_live(__file__), is_live("/nowhere")
    (True, False, False)
    """
    if path == "-":
        return True
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:  # opening it will explain the error
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


class _Options(TypedDict):
    growing: bool
    delimiter: str | None
    encoding: str | None


def open_rows(
    path: str,
    *,
    growing: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> FileRows:
    """Open a CSV (also gzipped), JSON lines, a Parquet file, a workbook, or standard input for `-`.

    Args:
        path: the file.
        growing: whether more rows are expected. A last line without its newline is then left for later, since it may be
            half a line. A live source is always growing.
        delimiter: between cells; found from the first lines if not given.
        encoding: of the text; found from the first lines if not given.
        sheet: of a workbook with several.
    """
    live = is_live(path)
    options = _Options(growing=growing or live, delimiter=delimiter, encoding=encoding)
    if path == "-":
        return csv_rows("standard input", sys.stdin.buffer, live=True, **options)
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    if suffix in _TABLES:
        rows = _table_rows(Path(path), sheet)
    else:
        file = _open_binary(path)
        try:
            _refuse_others(path, start_of(file, _START))
            rows = replace(csv_rows(path, file, live=live, json=suffix in _JSON, **options), file=file)
        except BaseException:
            file.close()
            raise
    return rows if live else replace(rows, again=lambda: open_rows(path, sheet=sheet, **options))


def _open_binary(path: str) -> IO[bytes]:
    if _is_packed(path):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return Path(path).open("rb", buffering=_START)


def _is_packed(path: str) -> bool:
    """Whether a file is gzipped, by its name or by its first bytes."""
    if path.lower().endswith(".gz") or is_live(path):
        return path.lower().endswith(".gz")
    with Path(path).open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _refuse_others(path: str, start: bytes) -> None:
    for magic, what in _OTHERS.items():
        if start.lstrip(b"\xef\xbb\xbf \r\n").startswith(magic):
            raise ValueError(f"{path} is not text with one row per line. It looks like {what}")


def count_rows(path: str) -> int:
    """Approximate number of rows, or of lines below the header, of a file; 0 if counting means reading it all."""
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        from driftgp.tables.tables import parquet_rows

        return parquet_rows(Path(path))
    if suffix in _TABLES:
        return 0
    with _open_binary(path) as file:
        try:
            return max(_count_lines(file, _COUNTED if _is_packed(path) else math.inf) - 1, 0)
        except (OSError, EOFError, zlib.error):  # damaged: reading it row by row will show where
            return 0


def _count_lines(file: IO[bytes], most: float) -> int:
    """Lines of a file; 0 if it is too long to be read for that."""
    lines = 0
    while block := file.read(1 << 20):
        lines, most = lines + block.count(b"\n"), most - len(block)
        if most < 0:
            return 0
    return lines


# ---- text ------------------------------------------------------------------------------------------------------------


def csv_rows(
    place: str,
    stream: Iterable[bytes] | IO[bytes],
    *,
    growing: bool = False,
    live: bool = False,
    json: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> FileRows:
    r"""Rows of CSV text; of a `growing` one, a last line without its newline is left for later.

    Of a `live` stream, only the header is read before rows are asked for. With `json`, each line is an
    object.

    >>> rows = csv_rows("here", [b"a;b\n", b"1;2,5\n", b"\n", b"3;4,5\n"])
    >>> rows.header, rows.take(9).cells.rows(), rows.notes
    (('a', 'b'), [('1', '2,5'), ('3', '4,5')], ('semicolons between cells',))
    """
    remarks: list[str] = []
    encoding = encoding or layout.find_encoding(start_of(stream, _START))
    text = Text(place, stream, growing=growing, remark=remarks.append, encoding=encoding)
    notes = [] if encoding.startswith("utf-8") else [f"text in {encoding}"]
    count = 1 if live else _HEAD
    if json:
        from driftgp.tables.json_lines import json_lines

        header, lines = json_lines(text, count)
        return FileRows(place, header, lines, remarks=remarks, notes=tuple(notes), live=live)
    first = _first_lines(text, count)
    delimiter = delimiter or layout.find_delimiter(first)
    head = _head(text, delimiter, count if first else 0)
    if delimiter != ",":
        notes.append(f"{DELIMITERS.get(delimiter, repr(delimiter))} between cells")
    rows = FileRows(place, head.names, iter(()), None, remarks, head, (*notes, *head.notes), delimiter, live=live)
    rows.source = csv_lines(text, delimiter, len(head.names), rows.ragged)
    return rows


def _first_lines(text: Text, count: int) -> list[str]:
    """The first lines without comments, up to a number, without taking them."""
    looked = 0
    while True:
        looked += count
        seen = text.look(looked)[:looked]
        found = [line for line in seen if line.strip() and not layout.is_comment(line)]
        if found or len(seen) < looked:
            return found


def _head(text: Text, delimiter: str, count: int) -> Head:
    """Take the header. If no line is a header, a comment above the data may be it."""
    rows = list(_first_rows(text, delimiter, count))
    comments = list(takewhile(lambda row: _is_remark(row[2]), rows))
    rows = rows[len(comments) :]
    seen: list[tuple[int, Sequence[str]]] = [(n, cells) for n, _, cells in rows if not isinstance(cells, ValueError)]
    if rows and not seen and not comments and isinstance(rows[0][2], ValueError):
        raise rows[0][2]
    for line, end, cells in comments[-1:]:
        if not isinstance(cells, ValueError) and (not seen or len(cells) == len(seen[0][1])):
            named = layout.split([delimiter.join(cells).lstrip("\ufeff# ")], delimiter)[0]
            head = layout.find_head(text.place, [(line, named), *seen])
            if head.line == line and not head.data_like:
                text.skip(([end] + [row[1] for row in rows])[head.after - 1])
                return head
    head = layout.find_head(text.place, seen)
    text.skip(rows[head.after - 1][1])
    return head


def _first_rows(text: Text, delimiter: str, count: int) -> Iterator[FirstRow]:
    """The next rows up to a number, and the comments before them."""
    for row in first_rows(text, delimiter):
        yield row
        count -= not _is_remark(row[2])
        if count < 1:
            return


def _is_remark(cells: Sequence[str] | ValueError) -> bool:
    return not isinstance(cells, ValueError) and cells[0].lstrip("\ufeff ").startswith("#")


# ---- tables ----------------------------------------------------------------------------------------------------------


def _table_rows(path: Path, sheet: str | None) -> FileRows:
    from driftgp.tables.tables import WORKBOOKS, read_cells, read_table

    if path.suffix.lower() in WORKBOOKS:
        place, lines = read_cells(path, sheet)
        first = lines.split(_HEAD)[0]
        head = layout.find_head(place, list(zip(first.numbers.tolist(), first.cells.rows(), strict=True)))
        return FileRows(place, head.names, iter([lines.split(head.after)[1]]), head=head, notes=head.notes)
    table = read_table(path)
    return FileRows(table.place, table.header, iter([Lines(table.rows, table.cells.fill_null(""))]))
