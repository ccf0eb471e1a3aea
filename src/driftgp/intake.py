"""What a stream knows of the form of its rows: columns, their encoding, and the time of the last one.

A value that is never changed: reading rows gives another one, which is kept once all of a call is in order.
"""

from typing import Any, NamedTuple

import numpy as np

from driftgp import checks, frames
from driftgp.beginning import Rows
from driftgp.clock import Clock, Spans, Step, in_steps
from driftgp.columns import Columns
from driftgp.frames import Column, Source


class Read(NamedTuple):
    """Rows of any form, read."""

    codes: np.ndarray  # N×C, or C for one row; not checked yet
    before: Columns | None = None  # what was known of the columns before the first of these rows
    times: Column | None = None
    source: Source | None = None


class Intake(NamedTuple):
    """How the rows of one stream are read."""

    time: str | None = None  # name of the column that has the times
    columns: Columns | None = None  # None while rows come as arrays
    clock: Clock = Clock()

    def read(self, x: Any, *, grow: int | None = None, timed: bool = True) -> tuple[Read, "Intake"]:
        """Rows (an array, a dict, a frame) as codes, and what is known of their form from then on.

        Args:
            x: the rows.
            grow: how many of the rows may bring categories, which then get an input each. None: all of them where the
                columns are not known yet, and none afterwards.
            timed: whether the times of the rows matter; a prediction needs none.
        """
        table = frames.table(x)
        if table is None:
            if self.columns is not None and not self.columns.plain:
                raise ValueError(
                    f"X must be a dict or a frame with the columns {', '.join(map(repr, self.columns.names))}: some of "
                    f"them hold text, which an array cannot"
                )
            return Read(checks.real("X", x)), self
        if self.columns is None:
            known = Columns.named(table, self.time)
            grow = len(table) if grow is None else grow
        else:
            known = self.columns
        columns = known.grown(table, grow)
        codes = columns.codes(table)
        before = columns if grow is None else known.grown(table, 0)
        times = columns.times(table) if timed else None
        read = Read(codes[0] if table.single else codes, before, times, table.source)
        return read, self._replace(columns=columns)

    @property
    def unsettled(self) -> bool:
        """Whether a category may yet come: there is text, or a column of which no value has come."""
        return self.columns is not None and any(known is not None for known in self.columns.categories)

    def inputs(self, kept: Rows, step: float) -> Rows:
        """Rows that were kept, as a model takes them now that the typical step is known to be so long."""
        return kept._replace(X=self.expanded(kept.X), elapsed=in_steps(kept.elapsed, step))

    def expanded(self, codes: np.ndarray) -> np.ndarray:
        """The inputs of a model, N×D (or D), for codes."""
        if self.columns is None or self.columns.plain:
            return codes
        X = self.columns.expanded(np.atleast_2d(codes))
        return X if codes.ndim == 2 else X[0]

    def stages(self, before: Columns | None, codes: np.ndarray) -> list[tuple[int, "Intake"]]:
        """Rows (of codes N×C) at which the columns become known otherwise, and the form from each of them on.

        The first is row 0. No row is to be seen with categories that come after it.
        """
        if self.columns is None or before is None:
            return [(0, self)]
        news = self.columns.stages(before, codes)
        first = [] if news and news[0][0] == 0 else [(0, before)]
        return [(row, self._replace(columns=columns)) for row, columns in (*first, *news)]

    def elapsed(self, read: Read, given: Any) -> tuple[Spans, "Intake"]:
        """Time since the row before, for each row: as given, by the rows' own times, or one step each."""
        rows = len(read.codes) if read.codes.ndim == 2 else 1
        if given is not None:
            passed, clock = self.clock.given(given, read.codes.shape[:-1])
            if read.times is not None and rows:
                clock = clock._replace(last=float(read.times.values[-1]), zoned=read.times.zoned)
        elif read.times is None:
            clock = self.clock.skipped(rows)
            passed = Spans(np.full(rows, np.nan), np.full(rows, clock.step.size))
        else:
            passed, clock = self.clock.passed(read.times)
        return passed, self._replace(clock=clock)

    # ---- files -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The same, as JSON can hold it."""
        known = None if self.columns is None else [self.columns.names, self.columns.categories]
        return {"time": self.time, "columns": known, "clock": self.clock}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Intake":
        """Take back what `to_json` gave; refuses what it cannot have given."""
        time, known, (last, zoned, (seen, size, fixed)) = stored["time"], stored["columns"], stored["clock"]
        columns = None
        if known is not None:
            names = tuple(map(_text, known[0]))
            categories = tuple(None if entry is None else tuple(map(_text, entry)) for entry in known[1])
            if not names or len(names) != len(categories):
                raise ValueError("columns and their kinds differ in number")
            columns = Columns(names, categories, None if time is None else _text(time))
        if zoned not in (None, False, True) or not 0.0 < float(size) < np.inf:
            raise ValueError("times cannot be like that")
        step = Step(tuple(map(float, seen)), float(size), bool(fixed))
        return cls(time, columns, Clock(None if last is None else float(last), zoned, step))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a name must be text; got {value!r}")
    return value
