"""The format of numbers and dates in a file, from its first rows, or from all rows if these do not decide.

If no row decides, and the readings differ, the error shows both readings and the option that decides.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from driftgp.tables import numbers
from driftgp.tables.dates import Orders
from driftgp.tables.numbers import Decimal, as_number
from driftgp.tables.rows import FileRows, Row


def decide_decimal(rows: FileRows, first: Sequence[Row], columns: Sequence[int]) -> tuple[Decimal, str]:
    """The decimal mark of the numbers in these columns, and a note on it if it is a comma.

    Points in a file whose cells are not separated by semicolons are decimal points: who writes numbers with decimal
    commas cannot separate them by commas.
    """
    marks: Counter[str] = Counter()
    unclear: tuple[Row, int] | None = None
    for row in first:
        for column in columns:
            mark = _mark(row.cells[column], rows.delimiter)
            if mark == "either" and unclear is None:
                unclear = row, column
            elif mark is not None:
                marks[mark] += 1
    if unclear is not None and not marks["point"] + marks["comma"]:
        marks.update(_first_mark(rows, columns))
    if unclear is not None and not marks["point"] + marks["comma"]:
        row, column = unclear
        cell = row.cells[column].strip()
        raise ValueError(
            f"{rows.place}, line {row.line}, column {rows.header[column]!r}: {cell!r} is {as_number(cell):g} with "
            f"--decimal point, and {as_number(cell, 'comma'):g} with --decimal comma. No row decides: say which it is"
        )
    return ("comma", "decimal commas") if marks["comma"] > marks["point"] else ("point", "")


def _mark(cell: str, delimiter: str) -> str | None:
    mark = numbers.decides(cell)
    return "point" if mark == "either" and delimiter != ";" and "," not in cell else mark


def _first_mark(rows: FileRows, columns: Sequence[int]) -> Iterator[str]:
    """The first decisive mark in the whole file, if any."""
    for taken in rows.every():
        for cell in dict.fromkeys(row[column] for row in taken.cells for column in columns):
            mark = _mark(cell, rows.delimiter)
            if mark in ("point", "comma"):
                yield mark
                return


def decide_order(rows: FileRows, first: Iterable[Row], column: int) -> tuple[str | None, str]:
    """The order of day and month in a column of dates, None if each has a single reading; and a note on the reason."""
    orders = Orders()
    for row in first:
        orders.see(row.line, row.cells[column])
    if len(orders.possible) > 1 and orders.matters:
        _see_all(rows, column, orders)
    name = rows.header[column]
    if not orders.possible:
        raise ValueError(_contradiction(rows, name, orders))
    if orders.matters:
        raise ValueError(_unclear(rows, name, orders))
    if orders.deciding is None:
        return (None, "") if len(orders.possible) == 3 else (orders.possible[0], "")
    line, cell = orders.deciding
    order = orders.possible[0]
    return order, f"dates of {name!r} are {order}, as {cell!r} in line {line} shows"


def _see_all(rows: FileRows, column: int, orders: Orders) -> None:
    """Search a file, as far as necessary, for the order of its dates."""
    for taken in rows.every():
        for line, cells in zip(taken.lines, taken.cells, strict=True):
            orders.see(line, cells[column])
            if len(orders.possible) < 2:
                return


def _contradiction(rows: FileRows, name: str, orders: Orders) -> str:
    (line, cell), before = orders.deciding or (0, ""), orders.before
    other = "" if before is None else f", unlike {before[1]!r} in line {before[0]}"
    return (
        f"{rows.place}, line {line}, column {name!r}: {cell!r} is a date in one order of day and month only{other}. "
        "Correct it, or say --time-format day-first or month-first, and --malformed skip to leave the others out"
    )


def _unclear(rows: FileRows, name: str, orders: Orders) -> str:
    left = [order for order in orders.possible if order in orders.open]
    shown = [f"{orders.open[order]:%d %B %Y} with --time-format {order}" for order in left]
    return (
        f"{rows.place}, column {name!r}: {orders.cell!r} is {', and '.join(shown)}. No row decides: say which it "
        "is, or give a format such as --time-format '%d/%m/%Y %H:%M'"
    )
