"""The layout of a table: the encoding of its text, the delimiter, the line with the names of the columns.

All is found from the first lines. `notes` names what was left out: titles, comments, a row of units.
"""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

import numpy as np

from driftgp.base.extras import needs
from driftgp.tables.dates import are_dates, as_spans
from driftgp.tables.numbers import BLANK, are_blank, as_numbers

with needs("reading tables", extra="cli"):
    import polars as pl

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
DELIMITER_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "pipe": "|", "space": " "}
MARKS = (  # at the beginning of a file
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_STEADY = 5  # rows of data, one after the other, that are not lines of a title


@dataclass(frozen=True)
class Head:
    """The header, its line, the rows of `first` that come after it, and what was found."""

    names: tuple[str, ...]
    line: int
    after: int  # number of first rows, including the header and the units
    units: tuple[str, ...] = ()  # one per name, or none
    unnamed: frozenset[str] = frozenset()  # names made up here
    data_like: bool = False  # the header holds numbers, so it may be data
    notes: tuple[str, ...] = ()


# ---- text ------------------------------------------------------------------------------------------------------------


def find_encoding(start: bytes) -> str:
    r"""The encoding of a text by its first lines: its mark, UTF-8 if it is that, else the one of Western Europe.

    >>> find_encoding(b"caf\xc3\xa9"), find_encoding(b"caf\xe9,"), find_encoding(b"\xff\xfea\x00")
    ('utf-8', 'cp1252', 'utf-16')
    """
    for mark, encoding in MARKS:
        if start.startswith(mark):
            return encoding
    if b"\0" in start[:200]:
        return "utf-16-le" if start[1:2] == b"\0" else "utf-16-be" if start[:1] == b"\0" else "utf-8"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # may end in the middle of a character
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def find_delimiter(lines: Sequence[str]) -> str:
    """The delimiter of these lines: the mark that gives rows of one width, with readable cells.

    >>> find_delimiter(["day;load, MW", "01.02.2024;1,5", "02.02.2024;1,7"])
    ';'
    """
    best, most = ",", (0.0, 0)
    divided = {delimiter: [row for row in split(lines, delimiter) if row] for delimiter in DELIMITERS}
    values = _values_among(row for rows in divided.values() for row in rows)
    for delimiter, rows in divided.items():
        width, count = Counter(map(len, rows)).most_common(1)[0] if rows else (1, 0)
        if width < 2 or (delimiter == " " and (most[1] or len(rows[0]) != width)):
            continue
        sound = [cell for row in rows if len(row) == width for cell in row]
        sense = sum(_is_blank(cell) or cell.strip() in values for cell in sound) / len(sound)
        if (score := (round(count / len(rows) * (0.1 + sense), 3), width)) > most:
            best, most = delimiter, score
    return best


def split(lines: Iterable[str], delimiter: str) -> list[list[str]]:
    """Lines as rows of cells. Lines that are not CSV are left out; the reader will refuse them later."""
    rows: list[list[str]] = []
    for line in lines:
        try:
            rows.extend(csv.reader([line], delimiter=delimiter, skipinitialspace=delimiter == " "))
        except csv.Error:
            continue
    return rows


def is_comment(line: str) -> bool:
    """Whether a line is a comment."""
    return line.lstrip("\ufeff \t").startswith("#")


def _values_among(rows: Iterable[Sequence[str]]) -> frozenset[str]:
    """The cells that are numbers, dates or times of day, without the blanks around them."""
    cells = pl.Series([*{cell.strip() for row in rows for cell in row}], dtype=pl.String)
    numbers = (~as_numbers(cells)[1] | ~as_numbers(cells, "comma")[1]) & ~are_blank(cells)
    clocks = cells.str.contains(":", literal=True).to_numpy() & ~np.isnan(as_spans(cells))
    return frozenset(cells.filter(pl.Series(numbers | clocks | are_dates(cells))))


def _is_blank(cell: str) -> bool:
    return cell.strip().casefold() in BLANK


# ---- the header ------------------------------------------------------------------------------------------------------


def find_head(place: str, first: Sequence[tuple[int, Sequence[str]]]) -> Head:
    """Find the header among the first rows, each with its line: the fullest of the rows of words above the data."""
    if not first:
        raise ValueError(f"{place} is empty: expected a header and rows under it")
    cells = [[cell.strip() for cell in row] for _, row in first]
    values = _values_among(cells)
    begin, end = _words(cells, values)
    words = [i for i in range(begin, end) if values.isdisjoint(cells[i])] or [begin]
    chosen = max(words, key=lambda i: (sum(not _is_blank(cell) for cell in cells[i]), -i))
    units = chosen + 1 if chosen + 1 < end and _is_units(cells[chosen + 1], cells[end:], values) else None
    names, unnamed = _names(place, *first[chosen])
    notes = []
    if chosen:
        notes.append(f"header in line {first[chosen][0]}, after {chosen} line{'s' * (chosen > 1)} of other text")
    if units:
        notes.append(f"units in line {first[units][0]}")
    return Head(
        names,
        first[chosen][0],
        (units or chosen) + 1,
        tuple(cells[units]) if units else (),
        unnamed,
        data_like=2 * sum(cell in values for cell in cells[chosen]) > len(names),
        notes=tuple(notes),
    )


def _words(rows: Sequence[Sequence[str]], values: Set[str]) -> tuple[int, int]:
    """The rows among which the header is: rows of words, as wide as the data, followed by data."""
    width = Counter(map(len, rows)).most_common(1)[0][0]
    data = [len(row) == width and _is_data(row, values) for row in rows]
    begin = 0
    while begin < len(rows):
        if data[begin]:
            begin += 1
            continue
        end = next((i for i in range(begin, len(rows)) if data[i]), len(rows))
        steady = data[end : end + _STEADY]
        if end == len(rows) or all(steady):
            wide = [i for i in range(begin, end) if len(rows[i]) == width]
            return (wide[0], wide[-1] + 1) if wide and end < len(rows) else (0, 1)
        begin = end
    return 0, 1


def _is_data(row: Sequence[str], values: Set[str]) -> bool:
    """Whether a row has values: half of its cells or more, apart from blanks."""
    filled = [cell for cell in row if not _is_blank(cell)]
    return bool(filled) and 2 * sum(cell in values for cell in filled) >= len(filled)


def _is_units(row: Sequence[str], data: Sequence[Sequence[str]], values: Set[str]) -> bool:
    """Whether a row has words, and no value, where the rows after it have values."""
    places = [i for i in range(len(row)) if any(len(other) == len(row) and other[i] in values for other in data[:20])]
    return not any(row[i] in values for i in places) and any(not _is_blank(row[i]) for i in places)


def _names(place: str, line: int, cells: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names of the columns; one without a name is called by its place."""
    names = [cell.strip() for cell in cells]
    unnamed = {i: f"column {i + 1}" for i, name in enumerate(names) if not name}
    names = [unnamed.get(i, name) for i, name in enumerate(names)]
    doubled = [name for name in names if names.count(name) > 1]
    if doubled:
        raise ValueError(
            f"{place}, line {line}: the header has {doubled[0]!r} twice: give each column a name of its own"
        )
    return tuple(names), frozenset(unnamed.values())
