"""Tables as text, and cells as numbers and times, so that a bad cell is named by file, sheet, row, column.

Every file is read as strings first and parsed here: a reader that guesses types would turn a bad cell into
a null or into a message without a place. Nothing in a file is executed; of a formula only its stored value
is read.
"""

from __future__ import annotations

import csv
import gzip
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from driftgp.base.extras import needs
from driftgp.tables.lines import Lines

with needs("reading tables", extra="cli"):
    import fastexcel
    import polars as pl

Floats = NDArray[np.float64]
WORKBOOKS = (".xlsx", ".xls")
SERIAL_1970, SERIAL_2100 = 25569, 73051  # 1 January of these years, counted as a spreadsheet counts days
FIRST_ROW = 2  # the header is row 1, as a spreadsheet counts
# Limits for files that are read whole, since they have to fit into memory several times.
MOST_BYTES = 1 << 31  # of a workbook or an archive, unpacked
MOST_CELLS = 1 << 28  # of a Parquet file


class _Named(Protocol):
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, eq=False)
class TextTable:
    """The cells of one sheet or file as text; `rows` are their row numbers as a spreadsheet shows them."""

    path: Path
    sheet: str | None
    header: tuple[str, ...]  # every column of the file, also those that were not read
    cells: pl.DataFrame
    rows: NDArray[np.int64]

    @property
    def place(self) -> str:
        """The file and the sheet, as messages name them."""
        return f"{self.path}" if self.sheet is None else f"{self.path}, sheet {self.sheet!r}"

    def has(self, name: str) -> bool:
        """Whether the file has such a column, in capitals or not."""
        return _plain(name) in map(_plain, self.header)

    def column(self, *names: str) -> str:
        """The name in the file of a column that may have any of `names`."""
        for held in self.cells.columns:
            if _plain(held) in map(_plain, names):
                return held
        wanted = " or ".join(map(repr, names))
        raise ValueError(f"{self.place}, row 1: no column {wanted}; the columns are {', '.join(self.header)}")

    def fault(self, index: int, column: str, expected: str) -> ValueError:
        """The error for one cell."""
        cell = self.cells[column][index]
        given = "is blank" if cell is None else f"is {cell!r}"
        return ValueError(f"{self.place}, row {self.rows[index]}, column {column!r} {given}: expected {expected}")

    def text(self, column: str) -> NDArray[np.str_]:
        """The cells of a column as they are, none of them blank."""
        cells = self._filled(column, "a value")
        return np.asarray(cells.to_list(), dtype=np.str_)

    def numbers(self, column: str, *, blank: bool = False) -> Floats:
        """A column of finite numbers; with `blank`, an empty cell is NaN."""
        cells = self.cells[column] if blank else self._filled(column, "a number")
        values = cells.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy(writable=True)
        bad = ~np.isfinite(values) & cells.is_not_null().to_numpy()
        if bad.any():
            raise self.fault(int(np.argmax(bad)), column, "a number")
        return values

    def times(self, column: str) -> NDArray[np.datetime64]:
        """A column of dates or times, to the second; in a workbook also as serial numbers of days."""
        from driftgp.tables.dates import as_times

        found = as_times(self._filled(column, "a date"), "month-first")
        serial = ~found.dated & (found.at >= SERIAL_1970) & (found.at <= SERIAL_2100) & (self.sheet is not None)
        seconds = np.where(serial, np.round((found.at - SERIAL_1970) * 86400.0), found.wall // 1e6)
        if np.isnan(seconds).any():
            raise self.fault(int(np.argmax(np.isnan(seconds))), column, "a date such as 2020-01-31")
        return seconds.astype("datetime64[s]")

    def days(self, column: str) -> NDArray[np.datetime64]:
        """A column of dates; a time of day is cut off."""
        return self.times(column).astype("datetime64[D]")

    def _filled(self, column: str, expected: str) -> pl.Series:
        cells = self.cells[column]
        if cells.null_count():
            raise self.fault(_first(cells.is_null()), column, expected)
        return cells


def read_table(path: Path, sheet: str | None = None, columns: Collection[str] | None = None) -> TextTable:
    """Read a CSV (also gzipped), a Parquet file or a sheet of a workbook, whole or the `columns` named."""
    with _named_errors(path):
        _refuse_too_large(path)
        if path.suffix.lower() in WORKBOOKS:
            return _read_sheet(path, sheet, columns)
        if path.suffix.lower() == ".parquet":
            header = list(pl.read_parquet_schema(path))
            cells = _as_text(pl.read_parquet(path, columns=_wanted(header, columns)))
        else:
            header = pl.read_csv(path, infer_schema=False, n_rows=0).columns
            cells = pl.read_csv(path, infer_schema=False, columns=_wanted(header, columns))
        return _table(path, None, header, cells)


def _refuse_too_large(path: Path) -> None:
    """Refuse a file that is too large to be read whole, by its own numbers or once it is unpacked."""
    suffix, instead = path.suffix.lower(), "write it as CSV, which driftgp run reads row by row"
    if suffix == ".parquet":
        rows, width = parquet_rows(path), len(pl.read_parquet_schema(path))
        if rows * max(width, 1) > MOST_CELLS:
            raise ValueError(f"{path} has {rows} rows of {width} columns, more than {MOST_CELLS} cells: {instead}")
    if _unpacked(path) > MOST_BYTES:
        raise ValueError(f"{path} unpacks to more than {MOST_BYTES >> 20} MiB: {instead}")


def parquet_rows(path: Path) -> int:
    """Rows that a Parquet file says it has."""
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def _unpacked(path: Path) -> int:
    """Unpacked size of a workbook or an archive in bytes; 0 for other files."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return sum(part.file_size for part in archive.infolist())
    size = 0
    if path.suffix.lower() == ".gz":
        with gzip.open(path, "rb") as file:
            while size <= MOST_BYTES and (block := file.read(1 << 20)):
                size += len(block)
    return size


def _as_text(table: pl.DataFrame) -> pl.DataFrame:
    """Every column as a CSV file would hold it: times without empty fractions, with their offset; flags as 1 and 0."""
    columns = []
    for column in table:
        if isinstance(column.dtype, pl.Datetime):
            columns.append(column.dt.to_string(f"%Y-%m-%d %H:%M:%S%.f{'%:z' if column.dtype.time_zone else ''}"))
        else:
            columns.append((column.cast(pl.Int8) if column.dtype == pl.Boolean else column).cast(pl.String))
    return pl.DataFrame(columns)


def read_cells(path: Path, sheet: str | None) -> tuple[str, Lines]:
    """A sheet of a workbook as it is: the place, and each row that is not blank as text, with its number."""
    with path.open("rb") as file:
        start = file.read(2)
    if start not in (b"PK", b"\xd0\xcf"):
        raise ValueError(f"{path} is not a workbook, although its name says so: if it is text, give it the ending .csv")
    with _named_errors(path):
        _refuse_too_large(path)
    names = sheet_names(path)
    if sheet is None and len(names) > 1:
        raise ValueError(f"{path} has {len(names)} sheets: choose one with --sheet. They are {', '.join(names)}")
    name = names[0] if sheet is None else sheet
    if name not in names:
        raise ValueError(f"{path} has no sheet {name!r}: its sheets are {', '.join(names)}")
    with _named_errors(path):
        loaded = fastexcel.read_excel(path).load_sheet(name, header_row=None, skip_rows=0, dtypes="string")
        cells = loaded.to_polars().fill_null("")
    return f"{path}, sheet {name!r}", Lines(np.arange(1, len(cells) + 1), cells).filled()


def sheet_names(path: Path) -> list[str]:
    """The names of a workbook's sheets."""
    with _named_errors(path):
        return fastexcel.read_excel(path).sheet_names


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Turn what the parsers raise on a damaged file, a panic included, into an error that names the file."""
    try:
        yield
    except (pl.exceptions.PolarsError, fastexcel.FastExcelError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise _unreadable(path, error) from error
    except OSError as error:
        if error.errno is not None:  # the system's own error, such as a lack of permission, is clearer
            raise
        raise _unreadable(path, error) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # each of the two libraries has one of its own
            raise
        raise _unreadable(path, error) from error


def _read_sheet(path: Path, sheet: str | None, columns: Collection[str] | None) -> TextTable:
    book = fastexcel.read_excel(path)
    name = book.sheet_names[0] if sheet is None else sheet
    header: list[str] = []

    def wanted(column: _Named) -> bool:  # sees every column, so the sheet is parsed once
        header.append(column.name)
        return bool(_wanted([column.name], columns))

    cells = book.load_sheet(name, dtypes="string", use_columns=wanted).to_polars()
    return _table(path, name, header, cells)


def _table(path: Path, sheet: str | None, header: Sequence[str], cells: pl.DataFrame) -> TextTable:
    """The table without its blank rows; the other rows keep their numbers."""
    cells = cells.with_columns(pl.all().str.strip_chars().replace("", None))
    filled = np.zeros(cells.height, dtype=np.bool_)
    for column in cells:
        filled |= column.is_not_null().to_numpy()
    table = TextTable(path, sheet, tuple(header), cells.filter(filled), np.flatnonzero(filled) + FIRST_ROW)
    if not header or (cells.width and not filled.any()):
        raise ValueError(f"{table.place} has no rows: expected a header and at least one row of data")
    return table


def _wanted(header: Sequence[str], columns: Collection[str] | None) -> list[str]:
    """The columns to read: those asked for, or all."""
    asked = set(map(_plain, header if columns is None else columns))
    return [name for name in header if _plain(name) in asked]


def _plain(name: str) -> str:
    return name.strip().casefold()


def _first(flags: pl.Series) -> int:
    return int(np.argmax(flags.to_numpy()))


def _unreadable(path: Path, error: BaseException) -> ValueError:
    kind = "a workbook" if path.suffix.lower() in WORKBOOKS else f"{path.suffix or 'CSV'} data"
    row = _ragged_row(path) if "more fields" in str(error) else None
    reason = f"row {row} has more cells than the header" if row else str(error).partition("\n")[0]
    return ValueError(f"{path} cannot be read as {kind}: {reason}")


def _ragged_row(path: Path) -> int | None:
    """The first row that is longer than the header, which polars refuses without naming it."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="replace", newline="") as lines:
        rows = csv.reader(lines)
        width = len(next(rows))
        return next((number for number, row in enumerate(rows, start=FIRST_ROW) if len(row) > width), None)
