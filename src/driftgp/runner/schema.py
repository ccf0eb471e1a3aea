"""Which column of a table is what: found once, at the first rows, and kept in the checkpoint."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from driftgp.columns import MOST, input_name
from driftgp.data.dates import as_clock, as_hours, as_moment, readings
from driftgp.data.numbers import BLANK, Decimal, as_flag, as_number
from driftgp.data.rows import Row, Rows
from driftgp.features import Features
from driftgp.runner.deciding import decide_decimal, decide_order
from driftgp.runner.settings import SECONDS, Settings
from driftgp.runner.stored import text

FEW = 10  # categories, at most, of a column of text that is used without being asked for
Kind = Literal["number", "flag", "mark", "category"]


class Input(NamedTuple):
    """An input that a column gives.

    number: the cell; flag: 1 for yes and 0 for no; mark: 1 where there is a text and 0 where there is none; category: 1
    where the cell is a certain text, else 0.
    """

    column: str
    kind: Kind = "number"
    category: str = ""

    @property
    def name(self) -> str:
        """What the input is called."""
        return input_name(self.column, self.category) if self.kind == "category" else self.column


@dataclass(frozen=True)
class Schema:
    """What a run reads, and how."""

    header: tuple[str, ...]
    columns: tuple[Input, ...]
    known: tuple[Input, ...]
    time: tuple[str, ...]
    decimal: Decimal = "point"
    form: str | None = None  # how dates are written, if not in a way that says it itself
    zoned: bool = False  # whether times have an offset from UTC
    unit: str = ""  # of the target
    notes: tuple[str, ...] = ()  # how the file is written
    left_out: tuple[str, ...] = ()  # columns that are not used, and why
    leaks: tuple[str, ...] = ()  # columns that explain the target too well to be honest
    leaks_used: bool = False  # as they were asked for

    def to_json(self) -> dict[str, Any]:
        """The parts, as JSON holds them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Schema":
        """What `to_json` gave, or an error if it is anything else."""
        names = ("header", "time", "notes", "left_out", "leaks")
        texts: dict[str, Any] = {name: tuple(map(text, stored[name])) for name in names}
        inputs: dict[str, Any] = {
            name: tuple(Input(*map(text, parts)) for parts in stored[name])  # type: ignore[arg-type]
            for name in ("columns", "known")
        }
        schema = cls(
            **texts,
            **inputs,
            decimal=text(stored["decimal"]),  # type: ignore[arg-type]
            form=None if stored["form"] is None else text(stored["form"]),
            zoned=stored["zoned"] is True,
            unit=text(stored["unit"]),
            leaks_used=stored["leaks_used"] is True,
        )
        kinds = {each.kind for each in schema.inputs} - set(get_args(Kind))
        if schema.decimal not in ("point", "comma") or kinds or {i.column for i in schema.inputs} - set(schema.header):
            raise TypeError("its columns do not fit together")
        return schema

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Those of all columns."""
        return self.columns + self.known


def find_schema(settings: Settings, rows: Rows, first: Sequence[Row]) -> Schema:
    """Decide what each column is, by the settings and by the first rows; what they leave open, by the whole file."""
    named = [settings.target, *settings.known, *(settings.features or ()), *(settings.time or ())]
    for name in [*named, *([settings.group] if settings.group else [])]:
        rows.index(name)
    if settings.target in (*settings.known, *(settings.features or ())):
        raise ValueError(f"features must not hold the target {settings.target!r}: ask for lags of it")
    time = _time_columns(settings, rows, first) if settings.time is None else settings.time
    form, *notes = (settings.time_format, "") if settings.time_format or not time else _order(rows, first, time)
    numeric = [i for i, name in enumerate(rows.header) if name not in time and name != settings.group]
    decimal, comma = (settings.decimal, "") if settings.decimal else decide_decimal(rows, first, numeric)
    if len(time) == 2 and settings.time is None:
        notes.append(f"times from {time[0]!r} and {time[1]!r}")
    finder = _Finder(settings, rows, first, decimal, time)
    known = finder.inputs(dict.fromkeys(settings.known), asked=True)
    asked = None if settings.features is None else dict.fromkeys(settings.features)
    columns = finder.inputs(
        [name for name in (rows.header if asked is None else asked) if name not in settings.known],
        asked=asked is not None,
    )
    return Schema(
        rows.header,
        columns,
        known,
        time,
        decimal,
        form,
        _zoned(rows, first, time, form),
        rows.unit(settings.target),
        tuple(note for note in (*rows.notes, comma, *notes) if note),
        tuple(finder.left_out),
    )


def features_of(settings: Settings, schema: Schema) -> Features:
    """The inputs that a run gives its models."""
    features = Features(
        columns=tuple(each.name for each in schema.columns),
        known=tuple(each.name for each in schema.known),
        lags=settings.lags,
        seasonal=settings.seasonal_lags,
        cycles=settings.cycles,  # type: ignore[arg-type]
        holidays=settings.days_off,
        horizon=settings.horizon,
    )
    if features.needs_time and not schema.time:
        raise ValueError("the calendar needs a column of dates, and there is none: name one with time")
    if settings.half_life_of is not None and settings.half_life_of[1] in SECONDS and not schema.time:
        raise ValueError(
            f"half-life {settings.half_life!r} needs a column of times, and there is none: name one with time"
        )
    return features


# ---- columns that are inputs -----------------------------------------------------------------------------------------


class _Finder:
    """Inputs from the first cells of columns. Most of them decide: a bad cell is then an error with a place."""

    def __init__(
        self, settings: Settings, rows: Rows, first: Sequence[Row], decimal: Decimal, time: tuple[str, ...]
    ) -> None:
        self.rows, self.first, self.decimal = rows, first, decimal
        self.taken = {settings.target, settings.group, *settings.known, *time}
        self.left_out: list[str] = []

    def inputs(self, names: Sequence[str] | dict[str, None], *, asked: bool) -> tuple[Input, ...]:
        """Inputs of these columns; of those that were not asked for, only where that is plain."""
        found: list[Input] = []
        for name in names:
            if asked or name not in self.taken:
                found += self._of(name, asked=asked)
        return tuple(found)

    def _of(self, name: str, *, asked: bool) -> list[Input]:
        unnamed = self.rows.head is not None and name in self.rows.head.unnamed
        cells = [row.cells[self.rows.index(name)].strip() for row in self.first]
        values = Counter(cell for cell in cells if cell.casefold() not in BLANK)
        if unnamed and not asked:
            return self._without(name, "it has no name") if values else []
        if not values:
            return [Input(name)] if asked else self._without(name, "blank in the first rows")
        numeric = sum(count for cell, count in values.items() if as_number(cell, self.decimal) is not None)
        if 2 * numeric > values.total():
            return [Input(name)]
        if all(as_flag(cell) is not None for cell in values):
            return [Input(name, "flag")]
        if 2 * values.total() < len(cells) and not any(map(_is_date, values)):
            return [Input(name, "mark")]  # such as the name of a holiday, on few days
        return self._categories(name, values, asked=asked)

    def _categories(self, name: str, values: Counter[str], *, asked: bool) -> list[Input]:
        """An input for each category, the most frequent first; a column of many is only used if that was asked for."""
        if len(self.first) == 1:  # of a live stream
            reason = "text, whose categories cannot be known from the first row of a live stream"
            if asked:
                raise ValueError(
                    f"{self.rows.place}, column {name!r} holds {reason}: give it as numbers, or leave it out"
                )
            return self._without(name, reason)
        if not asked and not 2 <= len(values) <= FEW:
            return self._without(name, _why_not(values))
        if len(values) > MOST:
            self.left_out.append(f"categories of {name!r} beyond the {MOST} most frequent, of {len(values)}")
        return [Input(name, "category", category) for category, _ in values.most_common(MOST)]

    def _without(self, name: str, reason: str) -> list[Input]:
        self.left_out.append(f"{name} ({reason})")
        return []


def _why_not(values: Counter[str]) -> str:
    some = next(iter(values))
    if readings(some) or as_clock(some) is not None:
        return "a date, and not the time"
    return f"text with {len(values)} different values" if len(values) > 1 else f"always {some[:20]!r}"


# ---- columns of time -------------------------------------------------------------------------------------------------


def _time_columns(settings: Settings, rows: Rows, first: Sequence[Row]) -> tuple[str, ...]:
    """The first column whose cells are mostly dates; with the one of clocks, if the dates have none."""
    free = [i for i, name in enumerate(rows.header) if name not in (settings.target, settings.group)]
    for index in free:
        cells = [row.cells[index] for row in first if row.cells[index].strip()]
        if 2 * sum(map(_is_date, cells)) > len(cells):
            bare = not any(":" in cell for cell in cells)
            clocks = [i for i in free if bare and i != index and _is_clock(i, first)]
            return (rows.header[index], *(rows.header[i] for i in clocks[:1]))
    return ()


def _is_date(cell: str) -> bool:
    if as_number(cell) is not None or as_number(cell, "comma") is not None:
        return False
    return as_clock(cell) is not None or bool(readings(cell))


def _is_clock(index: int, first: Sequence[Row]) -> bool:
    """Whether a column has times of day, which are no numbers: 18:00 or 18.00.00."""
    cells = [row.cells[index].strip() for row in first]
    return all(as_hours(cell) is not None and as_number(cell) is None for cell in cells)


def _order(rows: Rows, first: Sequence[Row], time: tuple[str, ...]) -> tuple[str | None, str]:
    return decide_order(rows, first, rows.index(time[0]))


def _zoned(rows: Rows, first: Sequence[Row], time: tuple[str, ...], form: str | None) -> bool:
    """Whether the first time that can be read has an offset from UTC."""
    moments = (as_moment(row.cells[rows.index(time[0])], form) for row in first if time)
    found = next((moment for moment in moments if moment is not None), None)
    return found is not None and found.offset is not None
