"""Rows of CSV, in blocks of the lines that are there.

A block whose lines have a row each, without a delimiter or a quotation mark inside a cell, is read by columns. Any
other block is read row by row, by Python's `csv`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from driftgp.base.extras import needs
from driftgp.tables.lines import Item, Lines, gathered, schema
from driftgp.tables.text import Text

with needs("reading tables", extra="cli"):
    import polars as pl

# its line, the lines looked at up to its end, and its cells, or the reason why it cannot be read
FirstRow = tuple[int, int, Sequence[str] | ValueError]
_QUOTED = r'^"[^"]*"$'


def csv_lines(text: Text, delimiter: str, width: int, ragged: Callable[[int, int], ValueError]) -> Iterator[Lines]:
    """Rows of CSV, without blank ones and comments.

    Args:
        text: below the header.
        delimiter: between cells.
        width: number of columns.
        ragged: makes the error for the row in a line with another number of cells.
    """
    for first, data in text.blocks():
        if isinstance(data, ValueError):
            yield from gathered([(first, data)], width)
            continue
        cells = _regular(data, delimiter, width)
        if cells is None:
            yield from gathered(_one_by_one(text, data, first, delimiter, width, ragged), width)
        else:
            yield Lines(np.arange(first, first + len(cells)), cells).filled()


def _regular(data: bytes, delimiter: str, width: int) -> pl.DataFrame | None:
    """The cells of regular lines; None for others."""
    rows, mark = data.count(b"\n") + (not data.endswith(b"\n")), delimiter.encode()
    if mark == b" " or len(mark) > 1 or data.count(mark) != rows * (width - 1):
        return None
    if data.count(b"\r") != data.count(b"\r\n"):
        return None
    try:
        cells = pl.read_csv(data, has_header=False, separator=delimiter, quote_char=None, schema=schema(width))
    except pl.exceptions.PolarsError:  # a row is longer than the others
        return None
    cells = cells.with_columns(pl.all().fill_null(""))
    if b'"' in data:
        odd = pl.all().str.contains('"', literal=True) & ~pl.all().str.contains(_QUOTED)
        if cells.select(pl.any_horizontal(odd.any())).item():
            return None
        cells = cells.with_columns(pl.all().str.strip_chars('"'))
    return cells if len(cells) == rows else None


def _one_by_one(
    text: Text, data: bytes, first: int, delimiter: str, width: int, ragged: Callable[[int, int], ValueError]
) -> Iterator[Item]:
    """Rows with their lines. Where a cell goes on after these lines, those of the next blocks belong to them."""
    source = _Source(text, data)
    reader = _reader(source, delimiter)
    while source.left:
        line = first + source.used
        try:
            row = next(reader)
        except csv.Error as error:
            if text.left:  # the cell ends with the line that was left for later
                return
            yield line, _unread(text, line, error)
        except ValueError as error:  # of a line that cannot be decoded
            yield line, error
        else:
            if any(map(str.strip, row)) and (len(row) == width or not row[0].startswith("#")):
                yield line, row if len(row) == width else ragged(line, len(row))
            continue
        reader = _reader(source, delimiter)


class _Source(Iterator[str]):
    """The lines of a block, and those of the next blocks if more are asked for."""

    def __init__(self, text: Text, data: bytes) -> None:
        self._text, self._lines, self.used = text, _split(data), 0

    @property
    def left(self) -> bool:
        """Whether lines are there that were not used."""
        return self.used < len(self._lines)

    def __next__(self) -> str:
        if not self.left:
            self._lines += _split(next(self._text))
        self.used += 1
        return self._lines[self.used - 1]


def first_rows(text: Text, delimiter: str) -> Iterator[FirstRow]:
    """The next rows that are not blank, without taking them: the line of each, the number of lines up to it, and it."""

    def looked() -> Iterator[str]:
        count = 0
        while len(lines := text.look(count + 1)) > count:
            count += 1
            yield lines[count - 1]

    reader, end = _reader(looked(), delimiter), 0
    try:
        for row in reader:
            begin, end = end, reader.line_num
            if any(map(str.strip, row)):
                yield text.line + begin + 1, end, row
    except csv.Error as error:
        line = text.line + end + 1
        yield line, reader.line_num, _unread(text, line, error)


def _split(data: bytes) -> list[str]:
    return list(io.StringIO(data.decode(), newline="\n"))


def _reader(lines: Iterator[str], delimiter: str) -> Any:
    spaces = delimiter == " "
    given = map(str.strip, lines) if spaces else lines
    return csv.reader(given, strict=True, delimiter=delimiter, skipinitialspace=spaces)


def _unread(text: Text, line: int, error: csv.Error) -> ValueError:
    unread = ValueError(f"{text.place}, line {line} cannot be read as CSV: {error}")
    unread.__cause__ = error
    return unread
