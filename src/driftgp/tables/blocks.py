"""Rows of a table as blocks of columns: numbers, text and times. A bad cell is named by file, line and column."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta, timezone
from typing import NamedTuple

import numpy as np

from driftgp.base.extras import needs
from driftgp.base.frames import Column, Table
from driftgp.tables.dates import DAY, Times, as_spans, as_times
from driftgp.tables.lines import Lines
from driftgp.tables.numbers import Decimal, are_blank, as_numbers
from driftgp.tables.rows import FileRows
from driftgp.tables.written import Kind, Written, most_are_numbers

with needs("reading tables", extra="cli"):
    import polars as pl

_AT_ONCE = 1 << 14  # rows whose order is examined at a time
_FILLED = "(blanks are refused: see the setting missing)"
_SKIP = "or leave such rows out with --malformed skip"


class Block(NamedTuple):
    """Rows that were read, N of them."""

    table: Table
    lines: np.ndarray  # N, where each row begins in the file
    times: Sequence[str]  # N, as the file has them; empty without
    offsets: np.ndarray  # N, seconds ahead of UTC where times say it, else NaN

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, some: np.ndarray) -> "Block":
        """Some of the rows, by their numbers."""
        columns = {name: column.rows(some) for name, column in self.table.columns.items()}
        times = [self.times[i] for i in some.tolist()] if len(self.times) else []
        return Block(Table(columns, single=False), self.lines[some], times, self.offsets[some])

    @classmethod
    def joined(cls, blocks: Sequence["Block"]) -> "Block":
        """Blocks of one table, one after another."""
        columns = {name: _together([block.table.columns[name] for block in blocks]) for name in blocks[0].table.columns}
        times = [time for block in blocks for time in block.times]
        lines, offsets = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("lines", "offsets"))
        return cls(Table(columns, single=False), lines, times, offsets)


class Reader:
    """Blocks of a table, from its first row on.

    Attributes:
        read: rows that were read.
        kinds: the kind of each column, as far as known.
    """

    def __init__(
        self, rows: FileRows, written: Written, *, key: str | None = None, filled: Collection[str] = ()
    ) -> None:
        """Take the rows and how they are written.

        Args:
            rows: of the table. Columns that it does not have are skipped.
            written: how each column is written.
            key: name of the column of keys, none of which may be blank.
            filled: columns of which no cell may be blank.
        """
        self._rows, self.written, self._key, self._filled = rows, written, key, filled
        self.kinds: dict[str, Kind] = dict(written.kinds)
        self._places = {name: rows.header.index(name) for name in self.kinds if name in rows.header}
        self._time = [rows.index(name) for name in written.time]
        self._digest = hashlib.blake2b(digest_size=16)
        self.read = 0

    @property
    def digest(self) -> str:
        """A digest of all rows that were read."""
        return self._digest.hexdigest()

    def add_to_digest(self, text: str) -> None:
        """Make the digest depend on earlier rows."""
        self._digest.update(text.encode())

    def block(self, most: int) -> tuple[Block | None, ValueError | None]:
        """The next rows, None at the end; and the error of the row after them, if any."""
        lines = self._rows.take(most)
        while len(lines):
            block, bad = self._parsed(lines)
            if not bad:
                # each row as a line, whose cells are apart by a mark that is in none
                self._digest.update(
                    lines.cells.write_csv(include_header=False, separator="\x1f", quote_style="never").encode()
                )
                self.read += len(lines)
                return block, lines.fault
            good = self._good(lines, bad)
            lines = self._rows.take(most) if good is None else good
        return None, lines.fault

    def _good(self, lines: Lines, bad: dict[int, ValueError]) -> Lines | None:
        """The rows before the first bad one; or all good rows, if malformed rows are left out; None without any."""
        first = min(bad)
        if self._rows.complain is None:
            return replace(lines.split(first)[0], fault=bad[first])
        for place in sorted(bad):
            self._rows.pass_over(bad[place])
        return _without(lines, bad) if len(bad) < len(lines) else None

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

    def sample(self, lines: Lines) -> Block | None:
        """Rows as a block, silently without malformed ones; None if no row is left."""
        kinds = dict(self.kinds)
        while len(lines):
            block, bad = self._parsed(lines)
            if not bad:
                self.kinds = kinds
                return block
            lines = _without(lines, bad)
        return None

    # ---- columns -----------------------------------------------------------------------------------------------------

    def _parsed(self, lines: Lines) -> tuple[Block, dict[int, ValueError]]:
        """Rows as columns, and the errors of some of them."""
        bad: dict[int, ValueError] = {}
        cells = lines.columns()

        def refuse(which: np.ndarray, place: int, expected: str) -> None:
            for i in np.flatnonzero(which).tolist():
                line, cell = int(lines.numbers[i]), lines.cells[i, place]
                bad.setdefault(i, self._rows.fault(line, cell, place, expected))

        columns: dict[str, Column] = {}
        offsets, texts = np.full(len(lines), np.nan), []
        if self._time:
            columns[self.written.time[0]], offsets = self._times(cells, refuse)
            texts = cells[self._time[0]].to_list()
        for name, place in self._places.items():
            columns[name] = self._column(name, cells[place], place, refuse)
        return Block(Table(columns, single=False), lines.numbers, texts, offsets), bad

    def _column(self, name: str, cells: pl.Series, place: int, refuse: Callable[..., None]) -> Column:
        kind = self.kinds[name]
        if kind == "open":
            kind = self._decided(name, cells)
        if kind == "text":
            if name == self._key or name in self._filled:
                what = "a key, which says whose row it is" if name == self._key else f"a text {_FILLED}"
                refuse(are_blank(cells), place, what)
            return Column(name, "text", cells.to_list())
        values, wrong = as_numbers(cells, self.written.decimal)
        refuse(wrong, place, _a_number(self.written.decimal))
        if name in self._filled:
            refuse(np.isnan(values) & ~wrong, place, f"a number {_FILLED}")
        return Column(name, "numbers", values)

    def _decided(self, name: str, cells: pl.Series) -> Kind:
        """The kind of a column that had no value so far."""
        numbers = most_are_numbers(cells, self.written.decimal)
        if numbers is not None:
            self.kinds[name] = "number" if numbers else "text"
        return "number" if numbers is None else self.kinds[name]

    def _times(self, cells: list[pl.Series], refuse: Callable[..., None]) -> tuple[Column, np.ndarray]:
        written, place = self.written, self._time[0]
        times = as_times(cells[place], written.form, written.decimal)
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
            times = self._with_hours(times, cells[self._time[1]], refuse)
        name = written.time[0]
        if not written.dated:
            return Column(name, "numbers", times.at), times.offset
        wall = times.wall if written.zoned else None
        return Column(name, "times", times.at, zoned=written.zoned, wall=wall), times.offset

    def _with_hours(self, times: Times, cells: pl.Series, refuse: Callable[..., None]) -> Times:
        """Times with the hours that another column adds to them."""
        spans = as_spans(cells)
        refuse(np.isnan(spans) | ~times.dated, self._time[1], "hours to add to a date, such as 13 or 13:00")
        return times._replace(at=times.at + spans, wall=times.wall + spans)

    def _a_time(self) -> str:
        form = self.written.form
        written = "a date such as 2020-01-31 13:00, or a number" if form is None else f"a date, {form}"
        return f"{written}; say how dates are written with --time-format, {_SKIP}"


def _without(lines: Lines, bad: Collection[int]) -> Lines:
    good = np.ones(len(lines), bool)
    good[list(bad)] = False
    return lines.where(good)


def _a_number(decimal: Decimal) -> str:
    comma = " with a decimal comma" if decimal == "comma" else ""
    return f"a number{comma}, or nothing; correct it, {_SKIP}"


def _together(columns: Sequence[Column]) -> Column:
    """Columns of one name, joined; a column without values takes the kind of the others."""
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


def time_texts(block: Block, written: Written) -> Sequence[str]:
    """The time of each row as the file has it; a date that is not ISO 8601, or has its hours apart, as ISO 8601."""
    if not written.time:
        return [""] * len(block)
    if not written.dated or (len(written.time) == 1 and written.form is None and not written.days):
        return block.times
    wall = block.table.columns[written.time[0]].clock.astype(np.int64)
    texts = []
    for time, offset in zip(wall.tolist(), block.offsets.tolist(), strict=True):
        text = str(np.datetime64(time, "us")).replace("T", " ").removesuffix(".000000")
        text = text[:10] if written.days and time % DAY == 0 else text
        zone = "" if offset != offset else str(timezone(timedelta(seconds=offset)))[3:] or "+00:00"
        texts.append(text + zone)
    return texts


# ---- the order of rows -----------------------------------------------------------------------------------------------


class Order(NamedTuple):
    """The order of the rows of a file, from one look at all times."""

    rows: int
    back: int  # rows that are older than the row before them, of the same series
    series: int = 0


def order_of(rows: FileRows, written: Written, key: str | None) -> Order:
    """Read a file once for the order of its rows; those that cannot be read count for nothing."""
    if not written.time:
        return Order(0, 0)
    places = [rows.index(name) for name in written.time]
    whose = None if key is None else rows.index(key)
    last = pl.DataFrame(schema={"key": pl.String, "at": pl.Float64})  # of each series
    count = back = 0
    for lines in rows.every(_AT_ONCE):
        cells = lines.columns()
        at = as_times(cells[places[0]], written.form, written.decimal).at
        if len(places) == 2:
            at = at + as_spans(cells[places[1]])
        keys = pl.repeat("", len(at), eager=True) if whose is None else cells[whose]
        own = last.vstack(pl.DataFrame({"key": keys, "at": at}).filter(pl.col("at").is_not_nan()))
        back += own.select((pl.col("at") < pl.col("at").shift().over("key")).sum()).item()
        last = own.group_by("key", maintain_order=True).last()
        count += len(at)
    return Order(count, back, len(last))


def in_order_of_time(blocks: Sequence[Block], written: Written) -> Block:
    """All rows of a table, sorted by time; rows of one time stay as they are."""
    whole = Block.joined(blocks)
    times = np.asarray(whole.table.columns[written.time[0]].values, np.float64)
    return whole.rows(np.argsort(times, kind="stable"))
