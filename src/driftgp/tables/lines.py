"""Rows of cells, each with the line on which it begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.base.extras import needs

with needs("reading tables", extra="cli"):
    import polars as pl


Item = tuple[int, Sequence[str] | ValueError]  # a row with its line, or the reason why it cannot be read


@dataclass(frozen=True, eq=False)
class Lines:
    """Rows of cells in the order of the file, and the error of the row after them, if any."""

    numbers: np.ndarray  # N, where each row begins: a line of text, or a row of a sheet
    cells: pl.DataFrame  # N × columns, text
    fault: ValueError | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def joined(cls, parts: Sequence[Lines]) -> Lines:
        """Rows one after another, with the error of the last part."""
        if len(parts) == 1:
            return parts[0]
        numbers, cells = np.concatenate([part.numbers for part in parts]), pl.concat([part.cells for part in parts])
        return cls(numbers, cells, parts[-1].fault)

    def where(self, some: np.ndarray) -> Lines:
        """Those of the rows for which this is true."""
        return Lines(self.numbers[some], self.cells.filter(pl.Series(some)), self.fault)

    def filled(self) -> Lines:
        """Those that are not blank."""
        return self.where(self.cells.select(pl.any_horizontal(pl.all().str.contains(r"\S"))).to_series().to_numpy())

    def split(self, count: int) -> tuple[Lines, Lines]:
        """The first rows, and the others with the error after them."""
        first = Lines(self.numbers[:count], self.cells[:count])
        return first, Lines(self.numbers[count:], self.cells[count:], self.fault)

    def columns(self) -> list[pl.Series]:
        """The columns, without blanks around the cells."""
        return [column.str.strip_chars() for column in self.cells]


def gathered(items: Iterable[Item], width: int) -> Iterator[Lines]:
    """Rows that are read one by one, up to each that cannot be read."""
    numbers: list[int] = []
    rows: list[Sequence[str]] = []

    def so_far(fault: ValueError | None = None) -> Lines:
        cells = pl.DataFrame(rows, schema=schema(width), orient="row")
        return Lines(np.array(numbers, np.int64), cells, fault)

    for number, row in items:
        if isinstance(row, ValueError):
            yield so_far(row)
            numbers, rows = [], []
        else:
            numbers.append(number)
            rows.append(row)
    yield so_far()


def schema(width: int) -> dict[str, Any]:
    """Columns of text."""
    return {str(place): pl.String for place in range(width)}
