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
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from driftgp.data.dates import as_moment
from driftgp.data.rows import csv_rows
from driftgp.data.stream import Floats
from driftgp.extras import needs
from driftgp.files import write_atomically

NUMBERS = ("mean", "low", "high", "actual")


def columns(*, timed: bool, grouped: bool) -> tuple[str, ...]:
    """The header of a file of predictions."""
    return ("line", *(("time",) if timed else ()), *(("group",) if grouped else ()), *NUMBERS, "flags")


class Journal:
    """CSV text in a file or on standard output. Numbers are written such that reading them gives the same bits."""

    def __init__(self, path: Path | None, header: Sequence[str], resume_at: int | None = None) -> None:
        """Begin a file (None: standard output), or go on with one after its first `resume_at` bytes."""
        self.header = tuple(header)
        self._stream: IO[bytes]
        if path is None:
            self._stream = sys.stdout.buffer
        elif resume_at is None:
            self._stream = path.open("wb")
        else:
            self._stream = _cut(path, resume_at)
        if not resume_at:
            self._write([self.header])

    def write(self, answers: Iterable[Any]) -> None:
        """Write answers, which have the columns as attributes."""
        self._write([_text(name, getattr(answer, name)) for name in self.header] for answer in answers)

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


def _text(name: str, value: Any) -> str:
    if name in NUMBERS:
        return "" if math.isnan(value) else repr(float(value))
    return " ".join(value) if name == "flags" else str(value)


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
    group: NDArray[np.str_]
    mean: Floats
    low: Floats
    high: Floats
    actual: Floats
    alarm: NDArray[np.bool_]  # whether an alarm was raised

    def of(self, group: str) -> Predictions:
        """Rows of one group."""
        return self.rows(self.group == group)

    def rows(self, some: NDArray[np.bool_] | slice) -> Predictions:
        """Some of the rows."""
        return Predictions(**{name: array[some] for name, array in vars(self).items()})


def read_predictions(journal: Path) -> Predictions:
    """Read what a journal has written."""
    with journal.open("rb") as stream:
        rows = csv_rows(str(journal), stream, delimiter=",", encoding="utf-8")
        cells = list(zip(*(row.cells for row in rows), strict=True)) or [()] * len(rows.header)
    return _predictions(dict(zip(rows.header, cells, strict=True)))


def from_answers(header: Sequence[str], answers: Sequence[Any]) -> Predictions:
    """What a journal of these answers would be read as."""
    return _predictions({name: tuple(_text(name, getattr(answer, name)) for answer in answers) for name in header})


def _predictions(named: dict[str, tuple[str, ...]]) -> Predictions:
    numbers = [np.array([float(cell) if cell else math.nan for cell in named[name]]) for name in NUMBERS]
    group = np.array(named.get("group", [""] * len(numbers[0])), dtype=np.str_)
    alarm = np.array(
        [any(flag.startswith("alarm") for flag in flags.split()) for flags in named["flags"]], dtype=np.bool_
    )
    mean, low, high, actual = numbers
    return Predictions(_axis(named), group, mean, low, high, actual, alarm)


def _axis(named: dict[str, tuple[str, ...]]) -> NDArray[Any]:
    """The times as dates if they all are, as numbers if they all are; else the lines."""
    moments = [as_moment(cell) for cell in named.get("time", ())]
    if moments and all(moment is not None and moment.clock is not None for moment in moments):
        return np.array([moment.clock for moment in moments if moment is not None], dtype="datetime64[us]")
    if moments and all(moment is not None for moment in moments):
        return np.array([moment.at for moment in moments if moment is not None])
    return np.array([int(line) for line in named["line"]], dtype=np.float64)
