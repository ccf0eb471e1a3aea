"""From tables to rows of series: which column is what, times, and the columns beside the target as numbers."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from driftgp.base import checks, frames
from driftgp.base.frames import Column, Table
from driftgp.forecasting.asked import NIXTLA, Asked
from driftgp.stream import keys as naming
from driftgp.stream.clock import Clock
from driftgp.stream.keys import Key
from driftgp.stream.plan import Plan, listed

_BLANK = -1.0  # the code of a blank cell of text, which is no category
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?|\d{1,2}[./]\d{1,2}[./]\d{4}.*")


class Look(NamedTuple):
    """The form of the user's rows, so that forecasts have the same form."""

    backend: str | None = None  # library of the frames: "pandas", "polars" or "pyarrow"
    place: str = "rows"  # where times are: "index", "column", or "rows" where there are none
    zone: str | None = None
    unit: str | None = None
    title: str = "time"  # of the times


class Names(NamedTuple):
    """Which column is what."""

    target: str
    time: str | None = None
    key: str | None = None

    @property
    def nixtla(self) -> bool:
        """Whether they are the names that Nixtla's libraries use."""
        return (self.target, self.time) == NIXTLA[:2] and self.key in (None, NIXTLA[2])


class Rows(NamedTuple):
    """N rows of one series or of several."""

    at: np.ndarray  # times in microseconds, or numbers; NaN without
    wall: np.ndarray  # the same by the clock on the wall
    y: np.ndarray  # targets, NaN where one is missing
    codes: np.ndarray  # N×C, the columns beside the target: numbers as they are, texts by their codes

    def __len__(self) -> int:
        return len(self.y)

    def some(self, which: Any) -> "Rows":
        """Some of the rows."""
        return Rows(*(array[which] for array in self))

    def then(self, other: "Rows") -> "Rows":
        """These rows, and others after them."""
        return Rows(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    @classmethod
    def none(cls, columns: int) -> "Rows":
        """No rows, with this number of columns."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, columns)))


class Reader(NamedTuple):
    """The form of the tables that a forecaster takes; an immutable value."""

    names: Names | None = None  # None before the first table, and where rows come as arrays
    plan: Plan | None = None
    clock: Clock = Clock()
    look: Look = Look()
    begun: bool = False
    blanks: tuple[str, ...] = ()  # columns of text with blank cells, where a blank is a value

    @property
    def dated(self) -> bool:
        """Whether rows have dates."""
        return self.clock.dated is True

    @property
    def timed(self) -> bool:
        """Whether rows have times, dates or numbers."""
        return self.clock.dated is not None

    # ---- history -----------------------------------------------------------------------------------------------------

    def history(self, settings: Asked, table: Table) -> tuple[Rows, list[Key] | None, "Reader"]:
        """The rows of a table that has the target, their keys, and what is known once they have come."""
        if self.begun and self.names is None:
            raise ValueError("rows must be numbers, as they were before: this table has names")
        names = self.names or _named(settings, table)
        for name in (names.target, names.time, names.key, *settings.columns):
            if name is not None:
                _there(table, name, settings, names)
        y = targets_of(table.columns[names.target])
        times = self._times(table, names)
        at, wall, clock = self._at(times, len(y))
        codes, plan, blanks = self._coded(settings, table)
        look = _look(self.look, table, names, times)
        keys = None if names.key is None else keys_of(table.columns[names.key])
        return Rows(at, wall, y, codes), keys, Reader(names, plan, clock, look, begun=True, blanks=blanks)

    def array(self, settings: Asked, y: Any, times: Any, beside: Mapping[str, Any]) -> tuple[Rows, "Reader"]:
        """The same for targets that come by themselves, with their times and the columns beside them."""
        self._refuse_names(settings)
        look = Look(*_series_look(y)) if not self.begun else self.look
        values = _values(y)
        column = None
        if times is None and _series_look(y)[1] == "index":
            times = y.index
        if times is not None:
            column = _column_of_times(times)
            if len(column) != len(values):
                raise ValueError(f"times must be one time per row; got {len(column)} for {len(values)} rows")
            if not self.begun:
                look = look._replace(place="index", zone=column.zone, unit=column.unit or look.unit)
        if self.begun and self.timed != (column is not None):
            when = "as they were before" if self.timed else "from the first row on, or not at all"
            raise ValueError(f"times must be given, {when}")
        at, wall, clock = self._at(column, len(values))
        codes, plan, blanks = self._coded(settings, _beside(settings, beside, len(values), column), rows=len(values))
        return Rows(at, wall, values, codes), Reader(None, plan, clock, look, begun=True, blanks=blanks)

    def _refuse_names(self, settings: Asked) -> None:
        if self.names is not None:
            raise ValueError("rows must have names, as they had before: give a frame or a dict, not values alone")
        if settings.key is not None:
            raise ValueError(f"key is {settings.key!r}, and these values have no columns: give a frame, or no key")

    # ---- what comes ahead --------------------------------------------------------------------------------------------

    def future(self, settings: Asked, table: Table, *, timed: bool) -> tuple[Rows, list[Key] | None, bool]:
        """The known columns of rows to come, their keys, and whether they are paired by their times."""
        names = self.names or Names("y")
        for name in settings.known:
            if name not in table.columns:
                raise ValueError(f"future must have the known column {name!r}; {_like(name, table.columns)}")
        if names.key is not None and names.key not in table.columns:
            raise ValueError(f"future must have the key {names.key!r}; {_like(names.key, table.columns)}")
        times = None
        if timed:
            times = table.columns.get(names.time) if names.time is not None else table.beside
            times = table.beside if times is None else times
            if times is None:
                what = f"the column {names.time!r}" if names.time is not None else "an index of times"
                raise ValueError(
                    f"future must have {what}, since rows are paired by their times; "
                    f"{_like(names.time or '', table.columns)}"
                )
        rows = len(table)
        at, wall, _ = self._at(times, rows, "future's ")
        assert self.plan is not None  # noqa: S101
        wanted = Table({name: table.columns[name] for name in settings.known}, single=False)
        codes, _ = self.plan.read(wanted, learn=False)
        codes, _ = _with_blanks(self.plan, codes, self.blanks)
        keys = None if names.key is None else keys_of(table.columns[names.key])
        return Rows(at, wall, np.full(rows, np.nan), codes), keys, times is not None

    # ---- parts -------------------------------------------------------------------------------------------------------

    def _times(self, table: Table, names: Names) -> Column | None:
        times = table.beside if names.time is None else table.columns[names.time]
        if self.begun and self.timed and times is None:
            raise ValueError("rows must have times, as they had before: give the index of times, or name its column")
        return times

    def _at(self, times: Column | None, rows: int, whose: str = "") -> tuple[np.ndarray, np.ndarray, Clock]:
        if times is None:
            return np.full(rows, np.nan), np.full(rows, np.nan), self.clock
        try:
            at = self.clock.checked(times)
        except ValueError as error:
            raise ValueError(f"{whose}{error}") from error
        wall = times.clock if times.kind == "times" else at
        return at, wall, self.clock._replace(dated=times.kind == "times", zoned=times.zoned)

    def _coded(
        self, settings: Asked, table: Table, rows: int | None = None
    ) -> tuple[np.ndarray, Plan | None, tuple[str, ...]]:
        """The columns beside the target, and which of text have blank cells."""
        names = settings.columns
        if not names:
            return np.zeros((len(table) if rows is None else rows, 0)), None, ()
        plan = self.plan or Plan(names, len(settings.known), (False,) * len(names))
        codes, plan = plan.read(Table({name: table.columns[name] for name in names}, single=False))
        if np.isinf(codes).any():
            raise ValueError(f"{names[int(np.isinf(codes).any(0).argmax())]} must be finite; it holds infinite numbers")
        codes, blank = _with_blanks(plan, codes, names)
        return codes, plan, tuple(dict.fromkeys((*self.blanks, *blank)))


def _with_blanks(plan: Plan, codes: np.ndarray, columns: tuple[str, ...]) -> tuple[np.ndarray, list[str]]:
    """Codes of some columns of text in which a blank is a value, and the columns that have blanks."""
    made, found = codes.copy(), []
    for place, (name, kind) in enumerate(zip(plan.names, plan.kinds, strict=True)):
        blank = np.isnan(codes[:, place])
        if isinstance(kind, dict) and name in columns and blank.any():
            made[blank, place] = _BLANK
            found.append(name)
    return made, found


# ---- names -----------------------------------------------------------------------------------------------------------


def _named(settings: Asked, table: Table) -> Names:
    """The role of each column, from the settings and the first table."""
    there = table.columns
    target, time, key = settings.target, settings.time, settings.key
    if target is None and NIXTLA[0] in there and NIXTLA[1] in there:
        target, time = NIXTLA[0], time or NIXTLA[1]
        key = key or (NIXTLA[2] if NIXTLA[2] in there else None)
    taken = {time, key, *settings.columns}
    if target is None:
        numbers = [name for name, column in there.items() if column.kind == "numbers" and name not in taken]
        if len(numbers) != 1:
            raise ValueError(f"target is not given: name the column to forecast, one of {listed(there)}")
        target = numbers[0]
    if time is None and table.beside is None:
        dates = [name for name, column in there.items() if column.kind == "times" and name not in {target, *taken}]
        if len(dates) > 1:
            raise ValueError(f"time is not given, and there are several columns of times: name one of {listed(dates)}")
        time = dates[0] if dates else None
        if time is None:
            _refuse_text_of_times(there, {target, *taken})
    return Names(target, time, key)


def _refuse_text_of_times(columns: dict[str, Column], taken: set[str | None]) -> None:
    for name, column in columns.items():
        first = next((value for value in column.values if value is not None), "") if column.kind == "text" else ""
        if name not in taken and _DATE.fullmatch(str(first).strip()):
            raise ValueError(
                f"column {name!r} holds times as text, such as {first!r}: parse it with pandas.to_datetime"
            )


def _there(table: Table, name: str, settings: Asked, names: Names) -> None:
    if name in table.columns:
        return
    roles = {names.target: "target", names.time: "time", names.key: "key"}
    role = roles.get(name, "known" if name in settings.known else "past")
    raise ValueError(f"{role} is {name!r}, but there is no such column; {_like(name, table.columns)}")


def _like(name: str, there: Any) -> str:
    close = get_close_matches(name, there, n=1, cutoff=0.6) or [n for n in there if n.casefold() == name.casefold()]
    return f"there are {listed(there)}{f'. Did you mean {close[0]!r}?' if close else ''}"


# ---- values ----------------------------------------------------------------------------------------------------------


def targets_of(column: Column) -> np.ndarray:
    """The targets in a column."""
    if column.kind != "numbers" and column.blank.all():
        return np.full(len(column), np.nan)
    return _finite(column.name, frames.numbers(column, "the target"))


def _finite(name: str, values: np.ndarray) -> np.ndarray:
    y = np.asarray(values, np.float64)
    if y.ndim != 1 or np.isinf(y).any():
        raise ValueError(f"{name} must be one finite number, or NaN, per row; got {_odd(y)}")
    return y


def _odd(y: np.ndarray) -> str:
    return f"shape {y.shape}" if y.ndim != 1 else f"{y[np.isinf(y)][0]} in row {int(np.isinf(y).argmax())}"


def _values(y: Any) -> np.ndarray:
    if hasattr(y, "to_numpy"):
        y = frames.targets(y)
    return _finite("y", np.atleast_1d(checks.real("y", y)))


def keys_of(column: Column) -> list[Key]:
    """The keys in a column: text, or whole numbers."""
    if column.kind not in ("numbers", "text"):
        raise ValueError(f"key {column.name!r} must be text or whole numbers; it holds {column.kind}")
    odd = [key for key in column.keys if isinstance(key, float)]
    if odd:
        raise ValueError(f"key {column.name!r} must be text or whole numbers; got {odd[0]}")
    return naming.checked(column.keys)


def _column_of_times(values: Any) -> Column:
    column = frames.times("times", values)
    if column is not None:
        return column
    numbers = np.atleast_1d(np.asanyarray(values))
    if numbers.dtype.kind == "O":
        column = frames.times("times", list(numbers))
        if column is not None:
            return column
    return Column("times", "numbers", checks.real("times", numbers))


def _beside(settings: Asked, beside: Mapping[str, Any], rows: int, times: Column | None) -> Table:
    """The columns beside an array of targets."""
    columns: dict[str, Column] = {}
    for role, given in beside.items():
        columns |= _columns_of(role, getattr(settings, role), given, rows, times)
    for name in settings.columns:
        if name not in columns:
            role = "known" if name in settings.known else "past"
            raise ValueError(
                f"{role} must have the column {name!r} of each of the {rows} rows: give {role}=, or a frame with all "
                "columns"
            )
    return Table(columns, single=False)


def _columns_of(role: str, wanted: tuple[str, ...], given: Any, rows: int, times: Column | None) -> dict[str, Column]:
    """Columns beside an array of targets: a frame by its names, an array by the places of the names in the settings."""
    if given is None:
        return {}
    table = frames.table(given)
    if table is None and hasattr(given, "name") and hasattr(given, "to_frame"):
        table = frames.table(given.to_frame())
    if table is None:
        array = np.asarray(given, np.float64)
        array = array.reshape(-1, 1) if array.ndim == 1 else array
        if array.shape != (rows, len(wanted)):
            more = ". Rows to come are given to forecast(h, future=…)" if role == "known" and len(array) > rows else ""
            raise ValueError(
                f"{role} must have the columns {', '.join(wanted)} of the {rows} rows; got shape {array.shape}{more}"
            )
        return {name: Column(name, "numbers", array[:, place]) for place, name in enumerate(wanted)}
    for name in wanted:
        if name not in table.columns:
            raise ValueError(f"{role} must have the column {name!r}; {_like(name, table.columns)}")
    return {name: _aligned(role, table.columns[name], table.beside, times, rows) for name in wanted}


def _aligned(role: str, column: Column, beside: Column | None, times: Column | None, rows: int) -> Column:
    """A column with one value per row, paired by time where both sides have times."""
    if beside is None or times is None:
        if len(column) != rows:
            raise ValueError(f"{role} must have {rows} rows, one for each target; {column.name!r} has {len(column)}")
        return column
    theirs, ours = np.asarray(beside.values, np.float64), np.asarray(times.values, np.float64)
    order = np.argsort(theirs, kind="stable")
    found = order[np.minimum(np.searchsorted(theirs[order], ours), len(theirs) - 1)]
    missing = theirs[found] != ours
    if missing.any():
        first = times.shown(times.clock[missing][0]) if times.kind == "times" else ours[missing][0]
        raise ValueError(
            f"{role} has no row for {int(missing.sum())} of the {rows} times of y, the first {first}: rows are "
            "paired by their index"
        )
    return column.rows(found)


# ---- how rows look ---------------------------------------------------------------------------------------------------


def _look(before: Look, table: Table, names: Names, times: Column | None) -> Look:
    if times is None:
        return before._replace(backend=_backend(table) or before.backend)
    place = "index" if names.time is None else "column"
    backend = _backend(table) or before.backend
    title = names.time or _index_name(table) or "time"
    return Look(backend, place, times.zone or before.zone, times.unit or before.unit, title)


def _backend(table: Table) -> str | None:
    source = table.source
    if source is None or source.backend is None:
        return None
    name = str(getattr(source.backend, "value", source.backend)).casefold()
    return name if name in ("pandas", "polars", "pyarrow") else None


def _index_name(table: Table) -> str | None:
    name = None if table.source is None else getattr(table.source.index, "name", None)
    return name if isinstance(name, str) else None


def _series_look(y: Any) -> tuple[Any, ...]:
    """How a series looks that brings its times with its index."""
    index = getattr(y, "index", None)
    if index is None or callable(index):
        backend = "polars" if type(y).__module__.startswith("polars") else None
        return backend, "rows"
    kind = getattr(getattr(index, "dtype", None), "kind", "")
    dated = kind == "M" or hasattr(index, "to_timestamp") or getattr(index, "tz", None) is not None
    title = index.name if isinstance(index.name, str) else "time"
    return "pandas", "index" if dated else "rows", None, None, title
