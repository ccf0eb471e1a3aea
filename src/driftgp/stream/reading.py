"""Rows of any form as a block of numbers, by the plan of a stream: the first step of every entry point."""

from typing import Any, NamedTuple

import numpy as np

from driftgp.base import checks, frames
from driftgp.base.frames import Column, Source, Table
from driftgp.stream.plan import Plan, example, listed
from driftgp.stream.settings import Settings


class Block(NamedTuple):
    """Rows of any form, read."""

    codes: np.ndarray  # N×C
    times: Column | None
    wall: np.ndarray  # N, times of the clock on the wall; NaN without
    single: bool  # one row by itself, not a table of one row
    source: Source | None
    plan: Plan  # once these rows have come
    named: bool
    table: Table | None

    def part(self, some: slice) -> "Block":
        """Some of the rows."""
        places = np.arange(len(self.codes))[some]
        times = None if self.times is None else self.times.rows(places)
        source = None if self.source is None else self.source.taken(places)
        return self._replace(codes=self.codes[some], times=times, wall=self.wall[some], source=source, table=None)


class Reader(NamedTuple):
    """How the rows of a stream are read.

    Attributes:
        settings: of the stream.
        plan: its columns; None before the first row.
        named: whether rows have had names so far.
        gaps: whether inputs may be NaN.
    """

    settings: Settings
    plan: Plan | None
    named: bool
    gaps: bool

    def read(self, x: Any, *, learn: bool) -> Block:
        """Rows as an array, a dict, a list of dicts or a frame."""
        table = frames.table(x)
        return self._of_array(x) if table is None else self._of_table(table, learn=learn)

    def _of_table(self, table: Table, *, learn: bool) -> Block:
        """Rows of a table."""
        plan = Plan.of(table, self.settings) if self.plan is None else self._named(table, self.plan)
        codes, grown = plan.read(table, learn=learn or self.plan is None)
        if not learn:
            grown = plan
        times = self._times(table)
        wall = np.full(len(codes), np.nan) if times is None else times.clock
        if self.settings.needs_dates and (times is None or times.kind != "times"):
            raise ValueError("the calendar needs the dates of the rows: name their column with time=…")
        if np.isinf(codes).any():
            row, place = np.argwhere(np.isinf(codes))[0]
            raise ValueError(
                f"column {plan.names[place]!r} must hold finite numbers, or NaN where nothing was observed; got "
                f"{codes[row, place]} in row {row}"
            )
        return Block(codes, times, wall, table.single, table.source, grown, True, table)

    def _named(self, table: Table, plan: Plan) -> Plan:
        """The plan, with the names of this table if rows have been arrays so far."""
        if self.named:
            return plan
        beside = frozenset(name for name in (self.settings.time, self.settings.key, self.settings.target) if name)
        names = tuple(name for name in table.columns if name not in beside)
        if len(names) != len(plan.names):
            raise ValueError(
                f"X must have {len(plan.names)} inputs, as the model was started with; got {listed(names)}"
            )
        return plan._replace(names=names, beside=beside)

    def _times(self, table: Table) -> Column | None:
        """The times of these rows: in the column of that name, or beside the columns."""
        name = self.settings.time
        if name is None:
            return table.beside
        if name not in table.columns:
            raise ValueError(f"X must have the column {name!r} for the time; it has {listed(table.columns)}")
        column = table.columns[name]
        if column.kind not in ("times", "numbers"):
            raise ValueError(
                f"column {name!r} must hold times or numbers, since it is the time; it holds {column.kind}, such as "
                f"{example(column)!r}. Parse it first, such as with pandas.to_datetime"
            )
        return column

    def _of_array(self, x: Any) -> Block:
        X = checks.real("X", x)
        if self.plan is not None and any(isinstance(kind, dict) for kind in self.plan.kinds):
            raise ValueError(
                f"X must be a dict or a frame with the columns {', '.join(map(repr, self.plan.names))}: some of "
                f"them hold text, which an array cannot"
            )
        named = [name for name in ("target", "time", "base") if isinstance(getattr(self.settings, name), str)]
        if named:
            name = named[0]
            raise ValueError(
                f"X must be a dict or a frame, since {name} names a column; got an array of shape {X.shape}"
            )
        width = None if self.plan is None else len(self.plan.names)
        X = checks.inputs("X", X, width, ndim=1 if X.ndim == 1 else 2, gaps=self.gaps)
        if isinstance(self.settings.base, int) and self.settings.base >= X.shape[-1]:
            raise ValueError(f"base must be the index of one of the {X.shape[-1]} inputs; got {self.settings.base}")
        single = X.ndim == 1
        X = X.reshape(-1, X.shape[-1])
        if self.settings.needs_dates:
            raise ValueError("the calendar needs the dates of the rows: give dicts or a frame, with time=…")
        if self.plan is not None:
            plan = self.plan
        else:
            plan = Plan(tuple(map(str, range(X.shape[1]))), X.shape[1], (True,) * X.shape[1])
        return Block(X, None, np.full(len(X), np.nan), single, None, plan, self.named, None)


def refuse_gaps(codes: np.ndarray, plan: Plan) -> None:
    """Refuse rows that have a blank among the inputs that are known with them."""
    if np.isnan(codes).any():
        row, place = np.argwhere(np.isnan(codes))[0]
        raise ValueError(
            f"column {plan.names[place]!r} must not be blank, since missing is 'refuse'; row {row} has none"
        )
