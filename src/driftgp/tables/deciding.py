"""The format of numbers and dates in a file, from its first rows, or from all rows if these do not decide.

If no row decides, and the readings differ, the error shows both readings and the option that decides.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from driftgp.base.extras import needs
from driftgp.tables.dates import ORDERS, Dates
from driftgp.tables.lines import Lines
from driftgp.tables.numbers import Decimal, Marks, as_numbers, marks_of
from driftgp.tables.rows import FileRows

with needs("reading tables", extra="cli"):
    import polars as pl


def decide_decimal(rows: FileRows, first: Lines, columns: Sequence[int]) -> tuple[Decimal, str]:
    """The decimal mark of the numbers in these columns, and a note on it if it is a comma.

    Points in a file whose cells are not separated by semicolons are decimal points: who writes numbers with decimal
    commas cannot separate them by commas.
    """
    found = [_marks(rows, first, column) for column in columns]
    points, commas = (sum(int(marks[i].sum()) for marks in found) for i in range(2))
    unclear = [
        (int(np.argmax(marks.either)), column)
        for marks, column in zip(found, columns, strict=True)
        if marks.either.any()
    ]
    if unclear and not points + commas:
        points, commas = next(_decisive(rows, columns), (0, 0))
    if unclear and not points + commas:
        place, column = min(unclear)
        cell = first.columns()[column][place : place + 1]
        point, comma = as_numbers(cell)[0][0], as_numbers(cell, "comma")[0][0]
        raise ValueError(
            f"{rows.place}, line {first.numbers[place]}, column {rows.header[column]!r}: {cell[0]!r} is {point:g} with "
            f"--decimal point, and {comma:g} with --decimal comma. No row decides: say which it is"
        )
    return ("comma", "decimal commas") if commas > points else ("point", "")


def _marks(rows: FileRows, lines: Lines, column: int) -> Marks:
    """The marks that the cells of a column show."""
    cells = lines.columns()[column]
    marks = marks_of(cells)
    if rows.delimiter == ";":
        return marks
    decimal = marks.either & ~cells.str.contains(",", literal=True).to_numpy()
    return Marks(marks.point | decimal, marks.comma, marks.either & ~decimal)


def _decisive(rows: FileRows, columns: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Whether the first decisive mark in the whole file is a point, or a comma."""
    for lines in rows.every():
        found = [_marks(rows, lines, column) for column in columns]
        point, comma = (np.any([marks[i] for marks in found], 0) for i in range(2))
        for place in np.flatnonzero(point | comma)[:1].tolist():
            yield int(point[place]), int(comma[place] and not point[place])


def decide_order(rows: FileRows, first: Lines, column: int) -> tuple[str | None, str]:
    """The order of day and month in a column of dates, None if each has a single reading; and a note on the reason."""
    orders = Orders()
    orders.see(first.numbers, first.columns()[column])
    if len(orders.possible) > 1 and orders.matters:
        for lines in rows.every():
            orders.see(lines.numbers, lines.columns()[column])
            if len(orders.possible) < 2:
                break
    name = rows.header[column]
    if not orders.possible:
        raise ValueError(_contradiction(rows, name, orders))
    if orders.matters:
        raise ValueError(_unclear(rows, name, orders))
    if not orders.deciding:
        return (None, "") if len(orders.possible) == 3 else (orders.possible[0], "")
    line, cell = orders.deciding[-1]
    order = orders.possible[0]
    return order, f"dates of {name!r} are {order}, as {cell!r} in line {line} shows"


class Orders:
    """The possible orders of a column's dates; each cell may rule some out.

    Attributes:
        possible: those that no cell has ruled out.
        deciding: lines and cells after which one order was possible, or none.
        readings: of a cell with several readings, by their orders.
        cell: that cell.

    >>> orders = Orders()
    >>> orders.see(np.arange(2, 5), pl.Series(["03/02/2024", "04/02/2024", "13/02/2024"]))
    >>> orders.possible, orders.deciding
    (('day-first',), [(4, '13/02/2024')])
    """

    def __init__(self) -> None:
        """Begin with all orders."""
        self.possible: tuple[str, ...] = ORDERS
        self.deciding: list[tuple[int, str]] = []
        self.readings: dict[str, float] = {}
        self.cell = ""

    @property
    def matters(self) -> bool:
        """Whether the possible orders give different dates."""
        return len({self.readings[order] for order in self.possible if order in self.readings}) > 1

    def see(self, numbers: np.ndarray, cells: pl.Series) -> None:
        """Take in cells with their lines; those that are no date in any order rule nothing out."""
        found = Dates(cells)
        read = np.stack([found.read(order) for order in ORDERS])
        before = np.isin(ORDERS, self.possible)[:, None]
        left = np.logical_and.accumulate(np.concatenate([before, ~np.isnan(read) | np.isnan(read).all(0)], 1), axis=1)
        count = left.sum(0)
        self.deciding += [
            (int(numbers[i]), cells[i]) for i in np.flatnonzero((np.diff(count) < 0) & (count[1:] < 2)).tolist()
        ]
        self.possible = tuple(np.array(ORDERS)[left[:, -1]].tolist())
        if self.matters or len(self.possible) < 2:
            return
        open_to = read[left[:, -1]]
        for i in np.flatnonzero(np.fmin.reduce(open_to) < np.fmax.reduce(open_to))[:1].tolist():
            self.readings = {
                order: time for order, time in zip(ORDERS, read[:, i].tolist(), strict=True) if time == time
            }
            self.cell = cells[i]


def _contradiction(rows: FileRows, name: str, orders: Orders) -> str:
    *before, (line, cell) = orders.deciding
    other = "".join(f", unlike {one!r} in line {number}" for number, one in before[-1:])
    return (
        f"{rows.place}, line {line}, column {name!r}: {cell!r} is a date in one order of day and month only{other}. "
        "Correct it, or say --time-format day-first or month-first, and --malformed skip to leave the others out"
    )


def _unclear(rows: FileRows, name: str, orders: Orders) -> str:
    left = [order for order in orders.possible if order in orders.readings]
    days = [np.datetime64(int(orders.readings[order]), "us").item() for order in left]
    shown = [f"{day:%d %B %Y} with --time-format {order}" for day, order in zip(days, left, strict=True)]
    return (
        f"{rows.place}, column {name!r}: {orders.cell!r} is {', and '.join(shown)}. No row decides: say which it "
        "is, or give a format such as --time-format '%d/%m/%Y %H:%M'"
    )
