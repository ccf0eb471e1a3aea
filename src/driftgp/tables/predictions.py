"""Predictions in a file: written as they come, cut back to a known length when a run resumes, read again for a picture.

A CSV file is written line by line. A Parquet file cannot grow. So its rows are kept in a CSV journal beside it, from
which the whole file is made in one step at the end. The journal stays as long as there is a checkpoint to continue
from.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftgp.base.extras import needs
from driftgp.base.files import write_atomically
from driftgp.tables.dates import as_times

with needs("files of predictions", extra="cli"):
    import polars as pl

Floats = NDArray[np.float64]
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
    """CSV text in a file or on standard output. Numbers are written with enough digits to read back the same bits."""

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
            self._write(pl.DataFrame(schema=_schema(header)), include_header=True)

    def write(self, answers: Any) -> None:
        """Write the answers of a run: columns of one length."""
        self._write(_frame(self.header, answers))

    def _write(self, rows: pl.DataFrame, *, include_header: bool = False) -> None:
        self._stream.write(rows.write_csv(include_header=include_header).encode())
        if self._stream is sys.stdout.buffer:
            self._stream.flush()

    def sync(self) -> int:
        """Write everything to the disk; return the number of bytes."""
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
    """Open a file to continue after its first bytes; rows after the checkpoint are written again."""
    size = path.stat().st_size if path.exists() else 0
    if size < length:
        raise ValueError(
            f"{path} has {size} bytes, and had {length} when the checkpoint was written: put it back, or start anew"
        )
    stream = path.open("r+b")
    stream.truncate(length)
    stream.seek(length)
    return stream


def _schema(header: Header) -> dict[str, Any]:
    """The type of each column."""
    kinds: dict[str, Any] = {"line": pl.Int64(), **dict.fromkeys(NUMBERS, pl.Float64())}
    return {name: kinds.get(name, pl.String()) for name in header.names}


def _frame(header: Header, answers: Any) -> pl.DataFrame:
    """Answers as columns; missing values are null."""
    texts = [answers.times] * (header.time is not None) + [answers.keys] * (header.key is not None)
    numbers = [np.asarray(getattr(answers, name), np.float64) for name in NUMBERS]
    columns = zip(header.names, (answers.lines, *texts, *numbers, answers.flags), strict=True)
    frame = pl.DataFrame(dict(columns), schema=_schema(header))
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None), pl.col(pl.String).replace("", None))


def journal_of(output: Path) -> Path:
    """The CSV file behind an output: itself, or the journal beside a Parquet file."""
    return output.with_name(f".{output.name}.journal.csv") if output.suffix.lower() == ".parquet" else output


def make_parquet(output: Path) -> None:
    """Make a Parquet file of its journal."""
    table = pl.read_csv(journal_of(output), infer_schema=False)
    table = table.with_columns(pl.col("line").cast(pl.Int64), pl.col(NUMBERS).cast(pl.Float64))
    data = io.BytesIO()
    table.with_columns(pl.col("flags").fill_null("")).write_parquet(data)
    write_atomically(output, data.getvalue())


@dataclass(frozen=True, eq=False)
class Predictions:
    """The contents of a file of predictions, row by row."""

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
    """Read a journal."""
    return _predictions(header, pl.read_csv(journal, schema=_schema(header)))


def from_answers(header: Header, answers: Sequence[Any]) -> Predictions:
    """Answers, block by block, as if read back from a journal."""
    return _predictions(header, pl.concat([_frame(header, block) for block in answers]))


def _predictions(header: Header, frame: pl.DataFrame) -> Predictions:
    texts = frame.select(pl.col(pl.String).fill_null("")).get_columns()
    key = texts[-2].to_list() if header.key is not None else [""] * len(frame)
    alarm = texts[-1].str.contains(r"(^|\s)alarm").to_numpy()
    at = frame["line"] if header.time is None else texts[0]
    mean, low, high, actual = (
        frame[name].fill_null(np.nan).to_numpy(writable=True) for name in ("mean", "low", "high", "actual")
    )
    lines = frame["line"].cast(pl.Float64).to_numpy()
    return Predictions(_axis(lines, at), np.array(key, np.str_), mean, low, high, actual, alarm)


def _axis(lines: Floats, cells: pl.Series) -> NDArray[Any]:
    """The times as dates if they all are, as numbers if they all are; else the lines."""
    times = None if cells.dtype != pl.String or cells.is_empty() else as_times(cells, None)
    if times is None or times.bad.any() or times.dated.any() != times.dated.all():
        return lines
    return times.wall.astype(np.int64).view("datetime64[us]") if times.dated.all() else times.at
