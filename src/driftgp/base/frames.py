"""Rows that have names: dicts, rows and frames of pandas, polars and others, as columns of numbers, text or times.

Frames are read with narwhals, of the extra ``driftgp[frames]``. Dicts and arrays need nothing, and never touch it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np

from driftgp.base import checks
from driftgp.base.extras import needs

_FINER = ("ns", "ps", "fs", "as")  # units of NumPy shorter than a microsecond
_EXACT = 2.0**53  # floats below are whole numbers without a gap between them
Kind = Literal["numbers", "text", "times", "spans", "other"]


@dataclass(frozen=True, eq=False)
class Column:
    """N values of one kind under a name."""

    name: str
    kind: Kind
    values: Any  # N floats, NaN where missing; of text: N of str or None; times and spans are in microseconds
    categories: tuple[str, ...] = ()  # of text: the categories that the column declares, used or not
    zoned: bool = False  # of times: whether they have a time zone
    wall: Any = None  # of times with a zone: the same by the clock on the wall
    zone: str | None = None  # its name, or its offset from UTC
    unit: str | None = None  # of times in a frame: "ns", "us", "ms", "s", or "date"
    exact: list[Any] | None = None  # whole numbers that floats would round, as they came

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, some: np.ndarray) -> "Column":
        """The same for some of the rows, by their numbers."""
        values = [self.values[i] for i in some.tolist()] if isinstance(self.values, list) else self.values[some]
        exact = None if self.exact is None else [self.exact[i] for i in some.tolist()]
        return replace(self, values=values, wall=None if self.wall is None else self.wall[some], exact=exact)

    @property
    def keys(self) -> list[Any]:
        """The values as keys: whole numbers with all their digits, and others as they are."""
        if self.exact is not None:
            return self.exact
        if self.kind == "numbers":
            return [int(value) if value.is_integer() else value for value in self.values.tolist()]
        return list(self.values)

    @property
    def clock(self) -> np.ndarray:
        """Times as the clock on the wall had them, in microseconds; NaN where the values are no times."""
        if self.kind != "times":
            return np.full(len(self), np.nan)
        return np.asarray(self.values if self.wall is None else self.wall, np.float64)

    @property
    def blank(self) -> np.ndarray:
        """Which values are missing, N."""
        if isinstance(self.values, list):
            return np.array([value is None for value in self.values], bool)
        blank: np.ndarray = np.isnan(self.values)
        return blank

    def shown(self, value: Any) -> Any:
        """A value as people write it."""
        if value != value:
            return None
        if self.kind == "spans":
            return str(timedelta(microseconds=value))
        if self.kind == "times":
            return str(np.datetime64(int(value), "us")).removesuffix(".000000").replace("T", " ")
        return value


class Source(NamedTuple):
    """The origin of rows, so that results can have the same form."""

    backend: Any  # narwhals' name of the library
    index: Any = None  # of a pandas frame
    evaluated: Any = None  # the rows of an evaluation, with their targets

    def taken(self, rows: Any) -> "Source":
        """The same for some of the rows."""
        index = None if self.index is None else self.index[rows]
        evaluated = None if self.evaluated is None else self.evaluated.taken(rows)
        return self._replace(index=index, evaluated=evaluated)


class Table(NamedTuple):
    """Rows with names."""

    columns: dict[str, Column]
    single: bool  # one row by itself, not a table of one row
    beside: Column | None = None  # times beside the columns: a DatetimeIndex, or the name of a row
    source: Source | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0


def table(x: Any) -> Table | None:
    """Rows with names as columns; None if x is an array, or a list of numbers.

    >>> table({"temp": 20.5, "holiday": False, "sky": "clear"}).columns["sky"].values
    ['clear']
    >>> table([20.5, 0.0]) is None
    True
    """
    if isinstance(x, np.ndarray):
        return None
    if isinstance(x, Table):
        return x
    if isinstance(x, Mapping):
        return _row(x.items(), None)
    if hasattr(type(x), "columns"):
        return _frame(x)
    if hasattr(x, "_asdict"):  # a row of itertuples
        fields = dict(x._asdict())
        return _row(((name, value) for name, value in fields.items() if name != "Index"), fields.get("Index"))
    if hasattr(x, "items") and hasattr(x, "index"):  # a row of a pandas frame
        names = list(x.index)
        return _row(x.items(), x.name) if all(isinstance(name, str) for name in names) else None
    if isinstance(x, (list, tuple)) and x and isinstance(x[0], Mapping):
        return _rows(x)
    return None


def targets(y: Any) -> Any:
    """Targets of a frame or a series as an array of N or N×P numbers; anything else as it is."""
    if isinstance(y, (np.ndarray, float, int, list, tuple)):
        return y
    found = _frame(y) if hasattr(type(y), "columns") else None
    if found is not None:
        columns = [numbers(column, "y") for column in found.columns.values()]
        return np.column_stack(columns)
    if hasattr(y, "to_series") and hasattr(y, "to_numpy"):  # an index of pandas
        y = y.to_series()
    if hasattr(y, "to_numpy") and hasattr(y, "name"):
        return numbers(
            _series("y" if y.name is None else str(y.name), _narwhals().from_native(y, series_only=True)), "y"
        )
    return y


def same_index(X: Any, y: Any) -> None:
    """Refuse a frame and a series of pandas with different indices: their rows would be paired by position."""
    ours, theirs = getattr(X, "index", None), getattr(y, "index", None)
    if ours is None or theirs is None or callable(ours) or callable(theirs) or not hasattr(type(X), "columns"):
        return
    if len(ours) == len(theirs) and not ours.equals(theirs):
        raise ValueError(
            f"y must have the index of X; at row {int(np.argmax(ours != theirs))} they differ: align them first, or "
            f"pass y.to_numpy() to pair the rows by their places"
        )


def times(name: str, values: Any) -> Column | None:
    """Times, or spans of time, in microseconds; None where the values are plain numbers.

    >>> times("time", np.array(["2024-01-01", "2024-01-02"], "datetime64[D]")).values.tolist()
    [1704067200000000.0, 1704153600000000.0]
    >>> times("elapsed", 1.5) is None
    True
    """
    if hasattr(values, "to_timestamp") and not hasattr(values, "iloc"):  # an index of periods
        values = values.to_timestamp()
    if isinstance(values, np.ndarray) and values.dtype.kind in "Mm":
        return Column(name, "times" if values.dtype.kind == "M" else "spans", _microseconds(values))
    if isinstance(values, (np.ndarray, Real)):
        return None
    if hasattr(values, "to_numpy"):
        series = values.to_series() if hasattr(values, "to_series") else values
        column = _series(name, _narwhals().from_native(series, series_only=True))
    else:
        column = _of_values(name, values if isinstance(values, (list, tuple)) else [values])
    return None if column.kind == "numbers" else column


def made(columns: Mapping[str, np.ndarray], source: Source | None, backend: str | None) -> Any:
    """A frame with these columns: of the library and with the index that the rows came with, or of a named library."""
    if backend is None:
        backend = _installed() if source is None or source.backend is None else source.backend
    frame = _narwhals().from_dict(dict(columns), backend=backend).to_native()
    if source is not None and source.index is not None and hasattr(frame, "set_index"):
        frame.index = source.index
    return frame


class When(NamedTuple):
    """A column of times: microseconds since 1970, in UTC where there is a zone."""

    name: str
    unit: str | None = None  # as in `Column`
    zone: str | None = None


def frame_of(columns: Mapping[str, np.ndarray], backend: str | None, when: When | None, indexed: str | None) -> Any:
    """A frame of a library with these columns. One of them may hold times, and one may become the index."""
    nw, named = _narwhals(), dict(columns)
    if when is not None:
        unit = "us" if when.unit in (None, "date") else when.unit
        named[when.name] = np.asarray(named[when.name], np.int64).astype("datetime64[us]").astype(f"datetime64[{unit}]")
    frame = nw.from_dict(named, backend=backend or _installed())
    if when is not None and when.unit == "date":
        frame = frame.with_columns(nw.col(when.name).cast(nw.Date))
    if when is not None and when.zone is not None:
        utc = nw.col(when.name).dt.replace_time_zone("UTC")
        try:
            frame = frame.with_columns(utc.dt.convert_time_zone(when.zone))
        except Exception:  # noqa: BLE001 (each library has its own error for a zone that it does not know)
            frame = frame.with_columns(utc)
    made = frame.to_native()
    return made.set_index(indexed) if indexed is not None and hasattr(made, "set_index") else made


# ---- one row ---------------------------------------------------------------------------------------------------------


def _row(items: Iterable[tuple[Any, Any]], name: Any) -> Table:
    columns = {str(key): _of_values(str(key), [value]) for key, value in items}
    beside = _of_values("the index", [name]) if isinstance(name, (datetime, np.datetime64)) else None
    return Table(columns, single=True, beside=beside)


def _rows(dicts: Sequence[Mapping[Any, Any]]) -> Table:
    """A list of dicts: all of them with the same names."""
    names = list(dicts[0])
    for number, row in enumerate(dicts):
        if set(row) != set(names):
            odd = sorted(map(str, set(row) ^ set(names)))
            raise ValueError(f"X must have the same names in every row; row {number} and row 0 differ in {odd[0]!r}")
    return Table({str(name): _of_values(str(name), [row[name] for row in dicts]) for name in names}, single=False)


def _of_values(name: str, values: Sequence[Any]) -> Column:
    """A column of Python's own values: all numbers, all text, or all times; None, NaN and their like are missing."""
    known = [value for value in values if not _missing(value)]
    first = known[0] if known else 0.0
    for types, read in _READ:
        if isinstance(first, types):
            odd = [value for value in known if not isinstance(value, types)]
            if odd:
                raise ValueError(f"column {name!r} must hold values of one kind; got {first!r} and {odd[0]!r}")
            return read(name, values)
    return Column(name, "other", values)


def _missing(value: Any) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _of_numbers(name: str, values: Sequence[Any]) -> Column:
    whose = f"column {name!r}"
    floats = np.array([np.nan if _missing(value) else checks.number(whose, value) for value in values])
    return Column(name, "numbers", floats, exact=_exact(values) if _rounded(floats) else None)


def _rounded(floats: np.ndarray) -> bool:
    """Whether some of these numbers are so large that whole numbers may have been rounded."""
    return bool(np.any(np.abs(floats) >= _EXACT))


def _exact(values: Sequence[Any]) -> list[Any]:
    """Whole numbers with all their digits, NaN where they are missing; other numbers as floats."""
    return [
        np.nan if _missing(value) else int(value) if isinstance(value, Integral) else float(value) for value in values
    ]


def _of_text(name: str, values: Sequence[Any]) -> Column:
    return Column(name, "text", [None if _missing(value) else str(value) for value in values])


def _of_times(name: str, values: Sequence[Any]) -> Column:
    zoned = {_zoned(value) for value in values if not _missing(value)}
    if len(zoned) > 1:
        raise ValueError(f"column {name!r} must have times all with a time zone, or all without one; got both")
    wall = None
    if True in zoned:
        wall = np.array([_moment(value if _missing(value) else value.replace(tzinfo=None)) for value in values])
    zone = next((str(value.tzinfo) for value in reversed(values) if not _missing(value) and _zoned(value)), None)
    moments = np.array([_moment(value) for value in values])
    return Column(name, "times", moments, zoned=True in zoned, wall=wall, zone=zone)


def _zoned(value: Any) -> bool:
    return getattr(value, "tzinfo", None) is not None


def _moment(value: Any) -> float:
    """Microseconds since 1970; a time without a zone is taken as it is."""
    if _missing(value) or (isinstance(value, np.datetime64) and np.isnat(value)):
        return np.nan
    if isinstance(value, np.datetime64):
        return float(_microseconds(np.array([value]))[0])
    offset = value.utcoffset() // timedelta(microseconds=1) if _zoned(value) else 0  # beyond year 9999 too
    wall = value.replace(tzinfo=None) if _zoned(value) else value
    return float(int(np.datetime64(wall, "us").astype(np.int64)) - offset)


def _of_spans(name: str, values: Sequence[Any]) -> Column:
    spans = [np.timedelta64("NaT") if _missing(value) else np.timedelta64(value) for value in values]
    return Column(name, "spans", _microseconds(np.array(spans, "m8[us]")))


_READ: tuple[tuple[tuple[type, ...], Callable[[str, Sequence[Any]], Column]], ...] = (
    ((Real, Decimal, np.bool_), _of_numbers),
    ((str,), _of_text),
    ((datetime, date, np.datetime64), _of_times),
    ((timedelta, np.timedelta64), _of_spans),
)


# ---- frames ----------------------------------------------------------------------------------------------------------


def _narwhals() -> Any:
    with needs("a frame as input or output", extra="frames"):
        import narwhals.stable.v2 as nw
    return nw


def _frame(x: Any) -> Table | None:
    nw = _narwhals()
    if hasattr(x, "iloc") and not x.columns.is_unique:
        raise ValueError(f"X must have a name for each column; {x.columns[x.columns.duplicated()][0]!r} comes twice")
    try:
        frame = nw.from_native(x, eager_only=True)
    except TypeError as error:
        raise ValueError(
            f"X must be a frame that holds its rows, such as one of pandas, polars or pyarrow; got {type(x).__name__}: "
            f"collect it first"
        ) from error
    names = list(frame.columns)
    if hasattr(x, "iloc") and not all(isinstance(name, str) for name in names):
        plain = not any(isinstance(name, str) for name in names) and len(set(map(str, x.dtypes))) <= 1
        return None if plain else _frame(x.set_axis([str(name) for name in names], axis=1))
    index = nw.maybe_get_index(frame)
    timed = None
    if index is not None and (getattr(index.dtype, "kind", "") == "M" or hasattr(index, "to_timestamp")):
        timed = times("the index", index)
    columns = {str(name): _series(str(name), frame[name]) for name in names}
    return Table(columns, single=False, beside=timed, source=Source(frame.implementation, index))


def _series(name: str, series: Any) -> Column:
    """One column of a frame."""
    nw, dtype = _narwhals(), series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        floats = np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
        exact = _exact(series.to_list()) if dtype.is_integer() and _rounded(floats) else None
        return Column(name, "numbers", floats, exact=exact)
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        declared = tuple(dtype.categories) if isinstance(dtype, nw.Enum) else ()
        return Column(name, "text", _of_text(name, series.to_list()).values, declared)
    if dtype in (nw.Datetime, nw.Date):
        zone = getattr(dtype, "time_zone", None)
        zoned = zone is not None
        values, wall = (
            np.asarray(each.dt.timestamp("us").cast(nw.Float64).to_numpy(), np.float64)
            for each in (series, series.dt.replace_time_zone(None) if zoned else series)
        )
        unit = "date" if dtype == nw.Date else dtype.time_unit
        return Column(name, "times", values, zoned=zoned, wall=wall if zoned else None, zone=zone, unit=unit)
    if dtype == nw.Duration:
        return Column(name, "spans", _microseconds(series.to_numpy()))
    return _of_values(name, series.to_list())


def _microseconds(values: np.ndarray) -> np.ndarray:
    """Times or differences of NumPy as numbers; NaT is NaN."""
    made = values.astype(f"{values.dtype.kind}8[us]")
    if np.datetime_data(values.dtype)[0] not in _FINER:
        wrapped = ~np.isnat(values) & (made.astype(values.dtype) != values)
        if wrapped.any():
            raise ValueError(
                f"times must lie within 290 000 years of 1970, and spans must be shorter than that; got "
                f"{values[wrapped].flat[0]!r}"
            )
    return np.where(np.isnat(values), np.nan, made.astype(np.int64))


def numbers(column: Column, argument: str) -> np.ndarray:
    """The values of a column of numbers; anything else is refused."""
    if column.kind != "numbers":
        shown = next((column.shown(value) for value in column.values if value is not None and value == value), None)
        raise ValueError(
            f"{argument} must hold real numbers; column {column.name!r} holds {column.kind}: {shown!r}. Convert it "
            f"first; for decimal commas, read the file with pandas.read_csv(…, decimal=',')"
        )
    return checks.real(argument, column.values)


def _installed() -> str:
    """A library to make a frame with, where the rows came as arrays."""
    from importlib.util import find_spec

    for name in ("pandas", "polars", "pyarrow"):
        if find_spec(name) is not None:
            return name
    raise ModuleNotFoundError(
        'a frame needs pandas, polars or pyarrow; none is installed: pip install "driftgp[frames]" pandas'
    )
