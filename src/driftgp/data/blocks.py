"""Rows of a table as blocks of columns: numbers, text and times. A bad cell is named by file, line and column."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta, timezone
from itertools import islice
from typing import NamedTuple

import numpy as np

from driftgp.data.ahead import Ahead
from driftgp.data.cells import Times, as_numbers, as_spans, as_times
from driftgp.data.deciding import every_row
from driftgp.data.numbers import BLANK, Decimal
from driftgp.data.rows import Row, Rows
from driftgp.data.written import Kind, Written, most_are_numbers
from driftgp.frames import Column, Table

_DAY = 86_400_000_000  # microseconds
_AT_ONCE = 1 << 16  # rows whose order is looked at in one go
_FILLED = "(blanks are refused: see the setting missing)"
_SKIP = "or leave such rows out with --malformed skip"

Complain = Callable[[str], None]


class Block(NamedTuple):
    """Rows that were read, N of them."""

    table: Table
    lines: np.ndarray  # N, where each row begins in the file
    cells: list[str]  # N, times as the file has them; empty without
    offsets: np.ndarray  # N, seconds ahead of UTC where times say it, else NaN

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, some: np.ndarray) -> "Block":
        """Some of the rows, by their numbers."""
        columns = {name: column.rows(some) for name, column in self.table.columns.items()}
        cells = [self.cells[i] for i in some.tolist()] if self.cells else []
        return Block(Table(columns, single=False), self.lines[some], cells, self.offsets[some])

    @classmethod
    def joined(cls, blocks: Sequence["Block"]) -> "Block":
        """Blocks of one table, one after another."""
        columns = {name: _together([block.table.columns[name] for block in blocks]) for name in blocks[0].table.columns}
        cells = [cell for block in blocks for cell in block.cells]
        lines, offsets = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("lines", "offsets"))
        return cls(Table(columns, single=False), lines, cells, offsets)


class Source(Iterator[Row]):
    """Rows that one can look ahead in; malformed ones are refused when their turn comes, or passed over.

    Args:
        rows: from the beginning.
        skip: pass over malformed rows, rather than stop at the first one.
        complain: called with a line about each of those.
    """

    def __init__(self, rows: Rows, *, skip: bool = False, complain: Complain | None = None) -> None:
        """Begin with the first row."""
        self.rows, self.skip, self._complain = rows, skip, complain or (lambda _: None)
        self.left_out = 0  # rows that were passed over
        self._ahead = Ahead(self._readable())

    def look(self, count: int) -> list[Row]:
        """The next rows, which stay where they are; refuses a table without any."""
        found = self._ahead.look(count)
        if not found:
            next(self._ahead, None)  # raises what is wrong with the first row, if anything is
            raise ValueError(f"{self.rows.place} has a header and no rows: there is nothing to predict")
        return found

    def __next__(self) -> Row:
        return next(self._ahead)

    def _readable(self) -> Iterator[Row]:
        return self.rows if not self.skip else _Readable(self)

    def pass_over(self, error: ValueError) -> None:
        """Leave a row out."""
        self.left_out += 1
        self._complain(f"left out: {error}")


class _Readable(Iterator[Row]):
    """The rows that can be split into cells."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __next__(self) -> Row:
        while True:
            try:
                return next(self.source.rows)
            except ValueError as error:
                self.source.pass_over(error)


class Reader:
    """Blocks of a table, from its first row on.

    Attributes:
        read: rows that were read.
        kinds: what each column holds, as far as is known by now.
    """

    def __init__(
        self, source: Source, written: Written, *, key: str | None = None, filled: Collection[str] = ()
    ) -> None:
        """Take the rows and how they are written.

        Args:
            source: the rows. Columns that they have not are passed over.
            written: how each column is written.
            key: name of the column of keys, none of which may be blank.
            filled: columns of which no cell may be blank.
        """
        self.source, self._rows, self.written, self._key, self._filled = source, source.rows, written, key, filled
        self.kinds: dict[str, Kind] = dict(written.kinds)
        rows = self._rows
        self._places = {name: rows.header.index(name) for name in self.kinds if name in rows.header}
        self._time = [rows.index(name) for name in written.time]
        self._digest = hashlib.blake2b(digest_size=16)
        self.read = 0

    @property
    def digest(self) -> str:
        """A digest of all rows that were read."""
        return self._digest.hexdigest()

    def add_to_digest(self, text: str) -> None:
        """Have the digest depend on what came before these rows."""
        self._digest.update(text.encode())

    def block(self, most: int) -> tuple[Block | None, ValueError | None]:
        """The next rows, None if there are no more; and what is wrong with the row after them, if anything is."""
        rows, fault = self._take(most)
        while rows:
            block, bad = self._parsed(rows)
            if not bad:
                self._digest.update(
                    "".join("\x1f".join(row.cells) + "\n" for row in rows).encode("utf-8", "surrogatepass")
                )
                self.read += len(rows)
                return block, fault
            if not self.source.skip:
                first = min(bad)
                rows, fault = rows[:first], bad[first]
                continue
            for place in sorted(bad):
                self.source.pass_over(bad[place])
            rows = [row for place, row in enumerate(rows) if place not in bad]
            if not rows:
                rows, fault = self._take(most)
        return None, fault

    def blocks(self, size: int) -> Iterator[Block]:
        """All blocks from here on."""
        fault: ValueError | None = None
        while fault is None:
            block, fault = self.block(size)
            if block is not None:
                yield block
            elif fault is None:
                return
        raise fault

    def _take(self, most: int) -> tuple[list[Row], ValueError | None]:
        rows: list[Row] = []
        try:
            rows.extend(islice(self.source, most))
        except ValueError as error:
            return rows, error
        return rows, None

    def sample(self, rows: list[Row]) -> Block | None:
        """Rows as a block, without those that are malformed, of which no notice is taken; None if none is left."""
        kinds = dict(self.kinds)
        while rows:
            block, bad = self._parsed(rows)
            if not bad:
                self.kinds = kinds
                return block
            rows = [row for place, row in enumerate(rows) if place not in bad]
        return None

    # ---- columns -----------------------------------------------------------------------------------------------------

    def _parsed(self, rows: list[Row]) -> tuple[Block, dict[int, ValueError]]:
        """Rows as columns, and what is wrong with some of them."""
        bad: dict[int, ValueError] = {}
        by_column = list(zip(*(row.cells for row in rows), strict=True))

        def refuse(which: np.ndarray, place: int, expected: str) -> None:
            for i in np.flatnonzero(which).tolist():
                bad.setdefault(i, self._rows.fault(rows[i], place, expected))

        columns: dict[str, Column] = {}
        offsets = np.full(len(rows), np.nan)
        if self._time:
            columns[self.written.time[0]], offsets = self._times(by_column, refuse)
        for name, place in self._places.items():
            columns[name] = self._column(name, list(by_column[place]), place, refuse)
        cells = [cell.strip() for cell in by_column[self._time[0]]] if self._time else []
        lines = np.array([row.line for row in rows], np.int64)
        return Block(Table(columns, single=False), lines, cells, offsets), bad

    def _column(self, name: str, cells: list[str], place: int, refuse: Callable[..., None]) -> Column:
        kind = self.kinds[name]
        if kind == "open":
            kind = self._decided(name, cells)
        if kind == "text":
            column = Column(name, "text", [cell.strip() for cell in cells])
            if name == self._key or name in self._filled:
                blank = np.array([value.casefold() in BLANK for value in column.values])
                what = "a key, which says whose row it is" if name == self._key else f"a text {_FILLED}"
                refuse(blank, place, what)
            return column
        values, wrong = as_numbers(cells, self.written.decimal)
        refuse(wrong, place, _a_number(self.written.decimal))
        if name in self._filled:
            refuse(np.isnan(values) & ~wrong, place, f"a number {_FILLED}")
        return Column(name, "numbers", values)

    def _decided(self, name: str, cells: list[str]) -> Kind:
        """What a column holds that had no cell so far."""
        numbers = most_are_numbers(cells, self.written.decimal)
        if numbers is not None:
            self.kinds[name] = "number" if numbers else "text"
        return "number" if numbers is None else self.kinds[name]

    def _times(self, by_column: list[tuple[str, ...]], refuse: Callable[..., None]) -> tuple[Column, np.ndarray]:
        written, place = self.written, self._time[0]
        times = as_times(list(by_column[place]), written.form, written.decimal)
        refuse(times.bad, place, self._a_time())
        other = ~times.bad & (times.dated != written.dated)
        if other.any():
            kind = "a date" if written.dated else "a number"
            refuse(other, place, f"{kind}, as the first row has; correct it, {_SKIP}")
        if written.dated:
            has = "an offset from UTC" if written.zoned else "no offset from UTC"
            mixed = times.dated & (np.isnan(times.offset) == written.zoned)
            refuse(mixed, place, f"a time with {has}, as the first row has; correct it, {_SKIP}")
        if len(self._time) == 2:
            times = self._with_hours(times, list(by_column[self._time[1]]), refuse)
        name = written.time[0]
        if not written.dated:
            return Column(name, "numbers", times.at), times.offset
        wall = times.wall if written.zoned else None
        return Column(name, "times", times.at, zoned=written.zoned, wall=wall), times.offset

    def _with_hours(self, times: Times, cells: list[str], refuse: Callable[..., None]) -> Times:
        """Times with the hours that another column adds to them."""
        spans, wrong = as_spans(cells)
        refuse(wrong | ~times.dated, self._time[1], "hours to add to a date, such as 13 or 13:00")
        return times._replace(at=times.at + spans, wall=times.wall + spans)

    def _a_time(self) -> str:
        form = self.written.form
        written = "a date such as 2020-01-31 13:00, or a number" if form is None else f"a date, {form}"
        return f"{written}; say how dates are written with --time-format, {_SKIP}"


def _a_number(decimal: Decimal) -> str:
    comma = " with a decimal comma" if decimal == "comma" else ""
    return f"a number{comma}, or nothing; correct it, {_SKIP}"


def _together(columns: Sequence[Column]) -> Column:
    """Columns of one name, one after another; one that held nothing yet takes the kind of the others."""
    kinds = {column.kind for column in columns}
    if "text" in kinds:
        texts = [value for column in columns for value in (column.values if column.kind == "text" else _blank(column))]
        return Column(columns[0].name, "text", texts)
    walls = [column.wall for column in columns]
    wall = None if walls[0] is None else np.concatenate(walls)
    values = np.concatenate([column.values for column in columns])
    return Column(columns[0].name, columns[0].kind, values, zoned=columns[0].zoned, wall=wall)


def _blank(column: Column) -> list[str]:
    return [""] * len(column)


# ---- times as text ---------------------------------------------------------------------------------------------------


def time_texts(block: Block, written: Written) -> list[str]:
    """The time of each row as the file has it; a date that is not ISO 8601, or has its hours apart, as ISO 8601."""
    if not written.time:
        return [""] * len(block)
    if not written.dated or (len(written.time) == 1 and written.form is None and not written.days):
        return block.cells
    wall = block.table.columns[written.time[0]].clock.astype(np.int64)
    texts = []
    for time, offset in zip(wall.tolist(), block.offsets.tolist(), strict=True):
        text = str(np.datetime64(time, "us")).replace("T", " ").removesuffix(".000000")
        text = text[:10] if written.days and time % _DAY == 0 else text
        zone = "" if offset != offset else str(timezone(timedelta(seconds=offset)))[3:] or "+00:00"
        texts.append(text + zone)
    return texts


# ---- the order of rows -----------------------------------------------------------------------------------------------


class Order(NamedTuple):
    """What one look at all times of a file shows."""

    rows: int
    back: int  # rows that are older than the row before them, of the same series
    series: int = 0


def order_of(rows: Rows, written: Written, key: str | None) -> Order:
    """Read a file once for the order of its rows; those that cannot be read count for nothing."""
    if not written.time:
        return Order(0, 0)
    places = [rows.index(name) for name in written.time]
    whose = None if key is None else rows.index(key)
    last: dict[str, float] = {}
    count = back = 0
    some: list[Row] = []

    def look() -> None:
        nonlocal count, back
        at = as_times([row.cells[places[0]] for row in some], written.form, written.decimal).at
        if len(places) == 2:
            at = at + as_spans([row.cells[places[1]] for row in some])[0]
        keys = [""] * len(some) if whose is None else [row.cells[whose].strip() for row in some]
        for name, time in zip(keys, at.tolist(), strict=True):
            if time == time:
                back += time < last.get(name, time)
                last[name] = time
        count += len(some)
        some.clear()

    for row in every_row(rows):
        some.append(row)
        if len(some) == _AT_ONCE:
            look()
    look()
    return Order(count, back, len(last))


def in_order_of_time(blocks: Sequence[Block], written: Written) -> Block:
    """All rows of a table, sorted by time; rows of one time stay as they are."""
    whole = Block.joined(blocks)
    times = np.asarray(whole.table.columns[written.time[0]].values, np.float64)
    return whole.rows(np.argsort(times, kind="stable"))
