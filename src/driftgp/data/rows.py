"""Rows of a table one at a time, as they are needed or as they arrive; a bad cell is named by line and column."""

from __future__ import annotations

import codecs
import csv
import difflib
import gzip
import math
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NamedTuple, TypedDict, cast

from driftgp.data import layout
from driftgp.data.ahead import Ahead
from driftgp.data.layout import DELIMITERS, Head

LONGEST_LINE = 1 << 24  # bytes: a longer line is no row of a table
_COUNTED = 1 << 28  # bytes of an archive that are unpacked to count its rows
_START = 1 << 16  # bytes by which an encoding is known
_HEAD = 100  # lines of a file by which its layout is known
_TABLES = (".parquet", ".xlsx", ".xls")
_JSON = (".json", ".jsonl", ".ndjson")
_OTHERS = {  # first bytes of files that are no text
    b"PK\x03\x04": "a zip archive or a workbook: unpack it, or give it its ending .xlsx",
    b"\xd0\xcf\x11\xe0": "a workbook: give it its ending .xls",
    b"PAR1": "a Parquet file: give it its ending .parquet",
    b"%PDF": "a PDF document: export the table as CSV",
    b"<": "a web page or XML: export the table as CSV",
}


class Row(NamedTuple):
    """One row: the line of the file on which it begins (of a workbook or Parquet file, its row), and its cells."""

    line: int
    cells: tuple[str, ...]


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
    head: Head | None = None  # where the header was found
    notes: tuple[str, ...] = ()  # how the file is written, as far as that is not what one would expect
    delimiter: str = ","
    again: Callable[[], Rows] | None = None  # opens the same rows from the beginning, where that can be done

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
        """The next row; a comment that is no row is passed over."""
        row = next(self.source)
        while len(row.cells) != len(self.header):
            if not row.cells[0].startswith("#"):
                raise ValueError(f"{self.place}, line {row.line} has {self._ragged(len(row.cells))}")
            row = next(self.source)
        return row

    def _ragged(self, count: int) -> str:
        cells = f"{count} cells" if count != 1 else "1 cell"
        hint = ""
        if count > len(self.header) and self.delimiter == ",":
            hint = "; if commas stand in numbers too, put those into quotation marks, or export with semicolons"
        return f"{cells}: expected {len(self.header)}, as in line {self.line}{hint}"

    @property
    def line(self) -> int:
        """Line of the header."""
        return 1 if self.head is None else self.head.line

    def unit(self, column: str) -> str:
        """The unit of a column, if the file says it, in a row of units or in brackets at the end of the name.

        >>> Rows("here", ("load [MW]", "temp (°C)", "y"), iter(())).unit("load [MW]")
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

    def fault(self, row: Row, column: int, expected: str) -> ValueError:
        """The error for one cell."""
        cell = row.cells[column]
        given = f"is {cell[:60]!r}" if cell.strip() else "is blank"
        return ValueError(f"{self.place}, line {row.line}, column {self.header[column]!r} {given}: expected {expected}")


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


class _Told(TypedDict):
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
) -> Rows:
    """Open a CSV (also gzipped), JSON lines, a Parquet file, a workbook, or standard input for `-`.

    Args:
        path: the file.
        growing: whether more is expected: a last line without its newline is then left for later, since it may be half
            a line. A live source always is growing.
        delimiter: what stands between cells; found from the first lines if not given.
        encoding: of the text; found from the first lines if not given.
        sheet: of a workbook with several.
    """
    live = is_live(path)
    told = _Told(growing=growing or live, delimiter=delimiter, encoding=encoding)
    if path == "-":
        return csv_rows("standard input", sys.stdin.buffer, live=True, **told)
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    if suffix in _TABLES:
        rows = _table_rows(Path(path), sheet)
    else:
        file = _open_binary(path)
        try:
            _refuse_others(path, _start_of(file))
            rows = replace(csv_rows(path, file, live=live, json=suffix in _JSON, **told), file=file)
        except BaseException:
            file.close()
            raise
    return rows if live else replace(rows, again=lambda: open_rows(path, sheet=sheet, **told))


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


def _start_of(stream: Any) -> bytes:
    """The first bytes of a stream, which are read again; nothing where they cannot be."""
    try:
        if hasattr(stream, "peek"):
            start: bytes = stream.peek(_START)
            return start
        if hasattr(stream, "seek") and stream.seekable():
            start, _ = stream.read(_START), stream.seek(0)
            return start
    except (EOFError, gzip.BadGzipFile, zlib.error):  # damaged, as reading it will say
        pass
    return b""


def _refuse_others(path: str, start: bytes) -> None:
    for magic, what in _OTHERS.items():
        if start.lstrip(b"\xef\xbb\xbf \r\n").startswith(magic):
            raise ValueError(f"{path} is not text with one row per line. It looks like {what}")


def count_rows(path: str) -> int:
    """About how many rows a file has: its rows, or its lines below the header; 0 where to count is to read."""
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        from driftgp.data.tables import parquet_rows

        return parquet_rows(Path(path))
    if suffix in _TABLES:
        return 0
    with _open_binary(path) as file:
        try:
            return max(_count_lines(file, _COUNTED if _is_packed(path) else math.inf) - 1, 0)
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
) -> Rows:
    r"""Rows of CSV text, each given out as soon as its line is there; of a `growing` one, its newline too.

    Of a `live` stream no line is read before it is asked for, but for the header. With `json`, each line is an object.

    >>> rows = csv_rows("here", [b"a;b\n", b"1;2,5\n", b"\n", b"3;4,5\n"])
    >>> rows.header, list(rows), rows.notes
    (('a', 'b'), [Row(line=2, cells=('1', '2,5')), Row(line=4, cells=('3', '4,5'))], ('semicolons between cells',))
    """
    remarks: list[str] = []
    encoding = encoding or layout.find_encoding(_start_of(stream))
    lines = Ahead(_Lines(place, stream, growing, remarks.append, encoding))
    notes = [] if encoding.startswith("utf-8") else [f"text in {encoding}"]
    if json:
        from driftgp.data.json_lines import json_rows

        header, objects = json_rows(place, lines, 1 if live else _HEAD)
        return Rows(place, header, map(Row._make, objects), remarks=remarks, notes=tuple(notes))
    first = _first_lines(lines, 1 if live else _HEAD)
    delimiter = delimiter or layout.find_delimiter(first)
    rows = Ahead(_CSV(place, lines, delimiter))
    head = _head(place, rows, first, delimiter, 1 if live else _HEAD)
    if delimiter != ",":
        notes.append(f"{DELIMITERS.get(delimiter, repr(delimiter))} between cells")
    return Rows(place, head.names, rows, None, remarks, head, (*notes, *head.notes), delimiter)


def _first_lines(lines: Ahead[str], count: int) -> list[str]:
    """The first lines that are no comments, as many as there are up to a number, without taking them."""
    looked = 0
    while True:
        looked += count
        seen = lines.look(looked)
        found = [line for line in seen if line.strip() and not layout.is_comment(line)]
        if found or len(seen) < looked:
            return found


def _head(place: str, rows: Ahead[Row], first: list[str], delimiter: str, count: int) -> Head:
    """Find the header, and take the rows up to it; a comment above data without a header may be it."""
    comment: Row | None = None
    while (seen := rows.look(1)) and seen[0].cells[0].lstrip("\ufeff ").startswith("#"):
        comment = next(rows)
    seen = rows.look(count) if first else []
    if not seen and comment is None:
        next(rows, None)  # raises what is wrong with the first line, if anything is
    if comment is not None and (not seen or len(comment.cells) == len(seen[0].cells)):
        named = Row(comment.line, tuple(layout.split([delimiter.join(comment.cells).lstrip("\ufeff# ")], delimiter)[0]))
        head = layout.find_head(place, [named, *seen])
        if head.line == comment.line and not head.data_like:
            _take(rows, head.after - 1)
            return head
    head = layout.find_head(place, seen)
    _take(rows, head.after)
    return head


def _take(rows: Iterator[Row], count: int) -> None:
    for _ in range(count):
        next(rows)


class _CSV(Iterator[Row]):
    """Rows of a stream of lines; an iterator that outlives its own errors."""

    def __init__(self, place: str, lines: Ahead[str], delimiter: str) -> None:
        self.place, self.lines, self.delimiter = place, lines, delimiter
        self.rows = self._reader()

    def _reader(self) -> Iterator[list[str]]:
        spaces = self.delimiter == " "
        lines = map(str.strip, self.lines) if spaces else self.lines
        return csv.reader(lines, strict=True, delimiter=self.delimiter, skipinitialspace=spaces)

    def __next__(self) -> Row:
        while True:
            line = self.lines.given + 1
            try:
                cells = next(self.rows)
            except csv.Error as error:
                self.rows = self._reader()  # the old one is in the middle of a cell
                if _left(self.lines):  # the cell ends with the line that was left for later
                    raise StopIteration from error
                raise ValueError(f"{self.place}, line {line} cannot be read as CSV: {error}") from error
            if any(cell.strip() for cell in cells):
                return Row(line, tuple(cells))


def _left(lines: Ahead[str]) -> bool:
    return not lines.seen and cast("_Lines", lines.source).left


class _Lines(Iterator[str]):
    """Lines as text. After damage there is no next line: what follows would be read from the middle of something."""

    def __init__(
        self,
        place: str,
        stream: Iterable[bytes] | IO[bytes],
        growing: bool,
        remark: Callable[[str], None],
        encoding: str = "utf-8",
    ) -> None:
        self.place, self.growing, self.remark = place, growing, remark
        self.number, self.ended, self.left = 0, False, False
        self.encoding = encoding
        if not encoding.startswith("utf-8"):
            stream = cast("IO[bytes]", codecs.EncodedFile(cast("Any", stream), "utf-8", encoding))
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
                f"{self.place}, line {self.number} is not UTF-8 text: byte {error.start + 1} of it. Name the encoding "
                "with --encoding, such as cp1252"
            ) from error

    def _bytes(self) -> bytes:
        try:
            line: bytes = self.read(LONGEST_LINE + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self.ended = True
            raise ValueError(f"{self.place} is damaged after line {self.number}: {error}") from error
        except UnicodeError as error:
            self.ended = True
            raise ValueError(
                f"{self.place} is not text in {self.encoding} after line {self.number}: name the right encoding with "
                "--encoding"
            ) from error
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


# ---- tables ----------------------------------------------------------------------------------------------------------


def _table_rows(path: Path, sheet: str | None) -> Rows:
    from driftgp.data.tables import WORKBOOKS, read_cells, read_table

    if path.suffix.lower() in WORKBOOKS:
        place, cells = read_cells(path, sheet)
        head = layout.find_head(place, cells[:_HEAD])
        return Rows(place, head.names, _rows_of(cells[head.after :]), head=head, notes=head.notes)
    table = read_table(path)
    filled = table.cells.fill_null("").iter_rows()
    return Rows(table.place, table.header, _rows_of(zip(table.rows.tolist(), filled, strict=True)))


def _rows_of(cells: Iterable[tuple[int, Sequence[str]]]) -> Iterator[Row]:
    return (Row(line, tuple(values)) for line, values in cells)
