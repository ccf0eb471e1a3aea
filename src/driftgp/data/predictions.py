"""Predictions in a file: written as they come, cut back to a known length when a run resumes, read again for a picture.

A CSV file is written line by line. A Parquet file cannot grow, so that its rows are kept in a CSV journal beside it,
from which the whole is made, in one step, at the end; the journal stays as long as there is a checkpoint to go on from.
"""

from __future__ import annotations

import csv
import io
import math
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftgp.data.dates import as_moment
from driftgp.data.rows import csv_rows
from driftgp.data.stream import Floats
from driftgp.extras import needs
from driftgp.files import write_atomically

NUMBERS = ("mean", "std", "low", "high", "actual")
_OURS = ("line", *NUMBERS, "flags")


class Header(NamedTuple):
    """The columns of a file of predictions: those of the table for time and key, under their own names, and ours.

    >>> Header("when", "zone").names
    ('line', 'when', 'zone', 'mean', 'std', 'low', 'high', 'actual', 'flags')
    """

    time: str | None = None
    key: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called; a column of the table whose name is one of ours is called time, or key."""
        time = "time" if self.time in _OURS else self.time
        key = "key" if self.key in _OURS else self.key
        return ("line", *(name for name in (time, key) if name is not None), *NUMBERS, "flags")


class Journal:
    """CSV text in a file or on standard output. Numbers are written such that reading them gives the same bits."""

    def __init__(self, path: Path | None, header: Header, resume_at: int | None = None) -> None:
        """Begin a file (None: standard output), or go on with one after its first `resume_at` bytes."""
        self.header = header
        self._stream: IO[bytes]
        if path is None:
            self._stream = sys.stdout.buffer
        elif resume_at is None:
            self._stream = path.open("wb")
        else:
            self._stream = _cut(path, resume_at)
        if not resume_at:
            self._write([header.names])

    def write(self, answers: Any) -> None:
        """Write the answers of a run: columns of one length."""
        self._write(zip(*_cells(self.header, answers), strict=True))

    def _write(self, rows: Iterable[Sequence[str]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._stream.write(text.getvalue().encode())
        if self._stream is sys.stdout.buffer:
            self._stream.flush()

    def sync(self) -> int:
        """Have all that was written reach the disk; return how many bytes that is."""
        self._stream.flush()
        if self._stream is sys.stdout.buffer:
            return 0
        os.fsync(self._stream.fileno())
        return self._stream.tell()

    def close(self) -> None:
        """Finish."""
        if self._stream is not sys.stdout.buffer:
            self._stream.close()


def _cut(path: Path, length: int) -> IO[bytes]:
    """Open a file to go on after its first bytes; what was written after the checkpoint is written again."""
    size = path.stat().st_size if path.exists() else 0
    if size < length:
        raise ValueError(
            f"{path} has {size} bytes, and had {length} when the checkpoint was written: put it back, or start anew"
        )
    stream = path.open("r+b")
    stream.truncate(length)
    stream.seek(length)
    return stream


def _cells(header: Header, answers: Any) -> list[Sequence[str]]:
    """Each column as text."""
    columns: list[Sequence[str]] = [list(map(str, answers.lines.tolist()))]
    columns += [answers.times] if header.time is not None else []
    columns += [answers.keys] if header.key is not None else []
    for name in NUMBERS:
        values = np.asarray(getattr(answers, name), np.float64).tolist()
        columns.append(["" if value != value else repr(value) for value in values])
    return [*columns, answers.flags]


def journal_of(output: Path) -> Path:
    """The CSV file behind an output: itself, or the journal beside a Parquet file."""
    return output.with_name(f".{output.name}.journal.csv") if output.suffix.lower() == ".parquet" else output


def make_parquet(output: Path) -> None:
    """Make a Parquet file of its journal."""
    with needs("writing Parquet files", extra="cli"):
        import polars as pl

    kinds = {"line": pl.Int64(), **dict.fromkeys(NUMBERS, pl.Float64())}
    table = pl.read_csv(journal_of(output), infer_schema=False)
    table = table.with_columns(pl.col(name).cast(kinds[name]) for name in table.columns if name in kinds)
    data = io.BytesIO()
    table.with_columns(pl.col("flags").fill_null("")).write_parquet(data)
    write_atomically(output, data.getvalue())


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a file of predictions has, row by row."""

    at: NDArray[Any]  # dates, numbers, or line numbers
    key: NDArray[np.str_]
    mean: Floats
    low: Floats
    high: Floats
    actual: Floats
    alarm: NDArray[np.bool_]  # whether an alarm was raised

    def of(self, key: str) -> Predictions:
        """Rows of one key."""
        return self.rows(self.key == key)

    def rows(self, some: NDArray[np.bool_] | slice) -> Predictions:
        """Some of the rows."""
        return Predictions(**{name: array[some] for name, array in vars(self).items()})


def read_predictions(journal: Path, header: Header) -> Predictions:
    """Read what a journal has written."""
    with journal.open("rb") as stream:
        rows = csv_rows(str(journal), stream, delimiter=",", encoding="utf-8")
        cells = list(zip(*(row.cells for row in rows), strict=True)) or [()] * len(rows.header)
    return _predictions(header, cells)


def from_answers(header: Header, answers: Sequence[Any]) -> Predictions:
    """What a journal of these answers, block by block, would be read as."""
    blocks = [_cells(header, block) for block in answers]
    cells = [tuple(cell for block in blocks for cell in block[place]) for place in range(len(header.names))]
    return _predictions(header, cells)


def _predictions(header: Header, cells: Sequence[tuple[str, ...]]) -> Predictions:
    first = len(header.names) - len(NUMBERS) - 1
    numbers = [np.array([float(cell) if cell else math.nan for cell in column]) for column in cells[first:-1]]
    lines = cells[0]
    key = np.array(cells[first - 1] if header.key is not None else [""] * len(lines), dtype=np.str_)
    alarm = np.array([any(flag.startswith("alarm") for flag in flags.split()) for flags in cells[-1]], dtype=np.bool_)
    mean, _, low, high, actual = numbers
    times = cells[1] if header.time is not None else ()
    return Predictions(_axis(lines, times), key, mean, low, high, actual, alarm)


def _axis(lines: Sequence[str], times: Sequence[str]) -> NDArray[Any]:
    """The times as dates if they all are, as numbers if they all are; else the lines."""
    moments = [as_moment(cell) for cell in times]
    if moments and all(moment is not None and moment.clock is not None for moment in moments):
        return np.array([moment.clock for moment in moments if moment is not None], dtype="datetime64[us]")
    if moments and all(moment is not None for moment in moments):
        return np.array([moment.at for moment in moments if moment is not None])
    return np.array([int(line) for line in lines], dtype=np.float64)
