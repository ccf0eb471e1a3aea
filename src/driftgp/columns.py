"""From columns with names to the inputs of a model: the one encoding that every way in uses.

number, bool    one input; true is 1, false is 0
text            one input for each category: 1 where the row has it, else 0. A category that was not there in the
                first rows has 0 in all of them, and a missing one has NaN, as a missing number has
nothing yet     one input, which is NaN. The first value that comes decides whether the column holds numbers or text
time            none: the column named as the time, or a DatetimeIndex, says how far apart the rows are
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftgp.frames import Column, Table

MOST = 50  # categories of one column that have an input each
_UNSEEN = -1.0


def input_name(column: str, category: str) -> str:
    """What the input of a category is called.

    >>> input_name("sky", "clear")
    'sky = clear'
    """
    return f"{column} = {category}"


def never_there(names: Sequence[str], rows: int) -> str:
    """What to say of columns that had no value in any of so many rows.

    >>> never_there(["wind"], 400)
    "column 'wind' has had no value in 400 rows, and says nothing so far: leave it out if none will come"
    """
    one = len(names) == 1
    return (
        f"column{'s' * (not one)} {_listed(names)} {'has' if one else 'have'} had no value in {rows} rows, and "
        f"{'says' if one else 'say'} nothing so far: leave {'it' if one else 'them'} out if none will come"
    )


@dataclass(frozen=True)
class Columns:
    """The columns of a stream, in the order in which they came first.

    Attributes:
        names: of the columns.
        categories: of each column; None for numbers, () where nothing has come yet.
        time: the column that is the time; None if there is none.

    >>> from driftgp import frames
    >>> table = frames.table([{"temp": 20.5, "sky": "clear"}, {"temp": 18.0, "sky": "rain"}])
    >>> columns = Columns.of(table)
    >>> columns.inputs
    ('temp', 'sky = clear', 'sky = rain')
    >>> columns.expanded(columns.codes(frames.table({"sky": "rain", "temp": 12.0}))).tolist()
    [[12.0, 0.0, 1.0]]
    """

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...] | None, ...]
    time: str | None = None

    @classmethod
    def of(cls, table: Table, time: str | None = None) -> "Columns":
        """The columns of the first rows of a stream."""
        return cls.named(table, time).grown(table, len(table))

    @classmethod
    def named(cls, table: Table, time: str | None = None) -> "Columns":
        """The columns of a table by their names, before any of its rows."""
        names = tuple(name for name in table.columns if name != time)
        if not names:
            raise ValueError("X must have at least one column besides the time: name the inputs")
        return cls(names, ((),) * len(names), time)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What each input of the model is."""
        pairs = zip(self.names, self.categories, strict=True)
        return tuple(
            input_name(name, category) if category else name for name, known in pairs for category in known or ("",)
        )

    @property
    def width(self) -> int:
        """D, the number of inputs."""
        return sum(len(known or ("",)) for known in self.categories)

    @property
    def plain(self) -> bool:
        """Whether no column has categories."""
        return not any(self.categories)

    def grown(self, table: Table, rows: int | None = None) -> "Columns":
        """The columns once these rows have come.

        Args:
            table: the rows.
            rows: how many of them may bring categories, as long as there are few; then those that a column declares
                are known too. None: no category is added.
        """
        self._check(table)
        grown = tuple(
            self._with_more(known, table.columns[name], rows)
            for name, known in zip(self.names, self.categories, strict=True)
        )
        return self if grown == self.categories else replace(self, categories=grown)

    def stages(self, before: "Columns", codes: np.ndarray) -> list[tuple[int, "Columns"]]:
        """Rows of codes N×C at which a category comes first, and the columns as they are known from there on.

        >>> before, after = Columns(("sky",), (("clear",),)), Columns(("sky",), (("clear", "rain"),))
        >>> [(row, known.inputs) for row, known in after.stages(before, np.array([[0.0], [0.0], [1.0], [0.0]]))]
        [(2, ('sky = clear', 'sky = rain'))]
        """
        first = np.array([[len(known or ()) for known in before.categories]])
        numbers = np.array([not known for known in self.categories])
        come = np.where(numbers | np.isnan(codes), -1.0, codes).astype(int) + 1
        counts = np.maximum.accumulate(np.concatenate([first, come]))
        news = np.flatnonzero(np.diff(counts, axis=0).any(axis=1))
        return [(row, self._among(counts[row + 1])) for row in news.tolist()]

    def _among(self, counts: np.ndarray) -> "Columns":
        """The columns with the first so many categories of each."""
        pairs = zip(self.categories, counts.tolist(), strict=True)
        return replace(self, categories=tuple(known and known[:count] for known, count in pairs))

    def codes(self, table: Table) -> np.ndarray:
        """Numbers as they are and categories by their number, N×C; refuses columns that are not those of the start."""
        self._check(table)
        pairs = zip(self.names, self.categories, strict=True)
        return np.column_stack([_coded(table.columns[name], known) for name, known in pairs])

    def expanded(self, codes: np.ndarray) -> np.ndarray:
        """The inputs of a model, N×D, for codes N×C."""
        if self.plain:
            return codes
        return np.column_stack([_expanded(code, known) for code, known in zip(codes.T, self.categories, strict=True)])

    def times(self, table: Table) -> Column | None:
        """The times of these rows: in the column of that name, or beside the columns."""
        if self.time is None:
            return table.beside
        if self.time not in table.columns:
            raise ValueError(f"X must have the column {self.time!r} for the time; it has {_listed(table.columns)}")
        column = table.columns[self.time]
        if column.kind not in ("times", "numbers"):
            raise ValueError(
                f"column {self.time!r} must hold times or numbers, since it is the time; it holds {column.kind}: "
                f"{_example(column)!r}. Parse it first, such as with pandas.to_datetime"
            )
        return column

    # ---- checks ------------------------------------------------------------------------------------------------------

    def _check(self, table: Table) -> None:
        """Refuse columns that are missing, new, or of another kind than at the start."""
        expected = {*self.names, self.time} - {None}
        missing = [name for name in self.names if name not in table.columns]
        if missing:
            raise ValueError(
                f"X must have the columns of the start; {_listed(missing)} missing: it has {_listed(table.columns)}"
            )
        unknown = [name for name in table.columns if name not in expected]
        if unknown:
            raise ValueError(
                f"X must have the columns of the start, {_listed(self.names)}; {_listed(unknown)} is new: leave it out"
            )
        for name, known in zip(self.names, self.categories, strict=True):
            column = _usable(table.columns[name])
            if known is None and column.kind == "text" and any(value is not None for value in column.values):
                raise ValueError(f"column {name!r} must hold numbers, as at the start; got {_example(column)!r}")

    def _with_more(self, known: tuple[str, ...] | None, column: Column, rows: int | None) -> tuple[str, ...] | None:
        """Categories of a column once these rows have come."""
        if known is None or len(known) >= MOST:
            return known
        if not known and column.kind == "numbers":
            return known if column.empty else None
        if rows is None:
            return known
        if not known:
            _refuse_unread(column)
        column = column.head(rows)
        new = dict.fromkeys([*column.categories, *(value for value in _labels(column) if value is not None)])
        grown = (*known, *(value for value in new if value not in known))
        if len(grown) > MOST:
            warnings.warn(
                f"column {column.name!r} holds text with more than {MOST} different values, such as {grown[-1]!r}: the "
                f"first {MOST} have an input each, and all others none. Convert it to numbers or to times, group its "
                f"values, or leave it out",
                UserWarning,
                stacklevel=7,  # the caller of Online
            )
        return grown[:MOST]


def _usable(column: Column) -> Column:
    """Refuse a column that can be no input."""
    if column.kind in ("numbers", "text"):
        return column
    remedy = {
        "times": "name it as the time (time=…), or leave it out and give its hour, weekday and so on as numbers",
        "spans": "give it as a number, such as hours",
    }
    raise ValueError(
        f"column {column.name!r} must hold numbers, true and false, or text; it holds {column.kind}, such as "
        f"{_example(column)!r}: {remedy.get(column.kind, 'convert it, or leave it out')}"
    )


_NUMBER = re.compile(r"[-+]?\d+[.,]\d+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")


def _refuse_unread(column: Column) -> None:
    """Refuse text that is numbers or times which nobody has parsed: as categories they would say nothing."""
    first = next((value for value in column.values if value is not None), "")
    if _DATE.fullmatch(first):
        raise ValueError(
            f"column {column.name!r} holds times as text, such as {first!r}: parse it with pandas.to_datetime and "
            f"name it as the time, Online(time={column.name!r}), or leave it out"
        )
    if _NUMBER.fullmatch(first):
        raise ValueError(
            f"column {column.name!r} holds numbers as text, such as {first!r}: convert it first, for decimal commas "
            f"with pandas.read_csv(…, decimal=','); or leave it out"
        )


def _coded(column: Column, known: tuple[str, ...] | None) -> np.ndarray:
    if known is None:
        return np.asarray(column.values, np.float64) if column.kind == "numbers" else np.full(len(column), np.nan)
    if not known:  # a text among values that never came has none of their categories
        values = column.values if column.kind == "numbers" else [None if v is None else 0.0 for v in column.values]
        return np.array(values, np.float64)
    places = {value: float(place) for place, value in enumerate(known)}
    return np.array([np.nan if value is None else places.get(value, _UNSEEN) for value in _labels(column)])


def _labels(column: Column) -> list[str | None]:
    """Values of a column of text; numbers that come in one are written out."""
    if column.kind == "text":
        return list(column.values)
    return [None if value != value else f"{value:g}" for value in np.asarray(column.values, np.float64).tolist()]


def _expanded(code: np.ndarray, known: tuple[str, ...] | None) -> np.ndarray:
    if not known:
        return code
    return np.where(np.isnan(code)[:, None], np.nan, (code[:, None] == np.arange(len(known))).astype(np.float64))


def _example(column: Column) -> Any:
    return next((column.shown(value) for value in column.values if value is not None), None)


def _listed(names: Any) -> str:
    names = [repr(name) for name in names]
    return ", ".join(names if len(names) <= 8 else [*names[:8], f"… ({len(names)} in all)"])
