"""From rows with names to numbers: the one encoding that every entry point uses.

number, bool    one input; true is 1, false is 0; a blank, or a mark such as "NA" or "-", is missing
yes and no      a column with these words alone is one input: 1, 0, or missing
text            one input per category: 1 where the row has it, else 0. All of them are 0 for a blank, for a category
                that was not among the first rows of its series, and for one beyond the first 20
no value yet    one input, which is missing; the first value decides whether the column holds numbers or text

A fleet has one plan of columns. Each series has the categories that its own rows have shown.
"""

import re
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from driftgp.base.frames import Column, Table
from driftgp.stream.settings import Settings

MOST = 20  # categories of one column that have an input each
_LABELS = 10_000  # different texts of one column that are told apart
_UNSEEN = -1.0
BLANK = frozenset({"", "na", "nan", "n/a", "#n/a", "null", "none", "-", "--"})
YES, NO = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off"})
_FLAGS = {"yes": 0, "no": 1}  # either word adds both categories

Labels = dict[str, int]  # of a column of text: each text and its code
Kind = Labels | bool  # True: numbers; False: nothing has come yet
Categories = tuple[tuple[int, ...], ...]  # of a series: the codes of each column that have an input; () for numbers


def input_name(column: str, category: str) -> str:
    """What the input of a category is called.

    >>> input_name("sky", "clear")
    'sky = clear'
    """
    return f"{column} = {category}"


class Plan(NamedTuple):
    """The columns that are read from each row; an immutable value.

    >>> from driftgp.base import frames
    >>> table = frames.table([{"temp": 20.5, "sky": "clear"}, {"temp": 18.0, "sky": "rain"}])
    >>> plan = Plan.of(table, Settings())
    >>> codes, plan = plan.read(table)
    >>> codes.tolist()
    [[20.5, 0.0], [18.0, 1.0]]
    >>> encoder = plan.encoder(((), (0, 1)), ())
    >>> encoder.names
    ('temp', 'sky = clear', 'sky = rain')
    >>> encoder.expanded(codes).tolist()
    [[20.5, 1.0, 0.0], [18.0, 0.0, 1.0]]
    """

    names: tuple[str, ...]  # columns that are known with the row, then those that are known late
    known: int  # how many of them are known with the row
    kinds: tuple[Kind, ...]
    beside: frozenset[str] = frozenset()  # columns of a row that are not inputs: time, key, target

    @classmethod
    def of(cls, table: Table, settings: Settings) -> "Plan":
        """The columns of a stream that begins with this table."""
        beside = frozenset(name for name in (settings.target, settings.time, settings.key) if name is not None)
        there = [name for name in table.columns if name not in beside]
        first = _checked_base(table, settings)
        asked = None if settings.features is None else (*settings.features, *settings.known)
        if asked is None and settings.target is not None:
            asked = settings.known
        for name in asked or ():
            if name not in table.columns:
                raise ValueError(
                    f"features has {name!r}, but there is no such column: there are {listed(table.columns)}"
                )
        known = list(dict.fromkeys([*first, *(there if asked is None else asked)]))
        rest = [name for name in there if name not in known]
        if settings.target is None and rest:
            beside |= set(rest)
        late = rest if settings.target is not None and settings.others == "late" else []
        if settings.target is not None and settings.others == "ignored":
            beside |= set(rest)
        late = [name for name in late if table.columns[name].kind in ("numbers", "text")]
        beside |= {name for name in rest if name not in late}
        names = (*known, *late)
        if not names and not settings.derives:
            raise ValueError(
                "there are no inputs: name columns that are known with the row in features, or ask for lags or the "
                "calendar"
            )
        return cls(names, len(known), (False,) * len(names), beside)

    @property
    def late(self) -> int:
        """How many columns are known late."""
        return len(self.names) - self.known

    @property
    def text(self) -> bool:
        """Whether a column holds text, or may yet."""
        return any(kind is not True for kind in self.kinds)

    # ---- rows --------------------------------------------------------------------------------------------------------

    def read(self, table: Table, *, learn: bool = True) -> tuple[np.ndarray, "Plan"]:
        """Numbers as they are and texts as codes, N×C, and the plan after these rows.

        Args:
            table: the rows; refused where columns are missing, new, or of another kind than before.
            learn: whether new texts get a code. Without, columns that are known late need not be there.
        """
        self._check(table, learn=learn)
        N = len(table)
        codes, kinds = np.full((N, len(self.names)), np.nan), list(self.kinds)
        for place, name in enumerate(self.names):
            if not learn and place >= self.known:
                continue
            column = table.columns[name]
            kind = _decided(column, kinds[place]) if learn else kinds[place]
            if learn and isinstance(kind, dict):
                kind = _grown(kind, column)
            codes[:, place] = _coded(column, kind)
            kinds[place] = kind
        return codes, self if kinds == list(self.kinds) else self._replace(kinds=tuple(kinds))

    def _check(self, table: Table, *, learn: bool) -> None:
        needed = self.names if learn else self.names[: self.known]
        missing = [name for name in needed if name not in table.columns]
        if missing:
            raise ValueError(
                f"X must have the columns of the start; {listed(missing)} missing: it has {listed(table.columns)}"
            )
        unknown = [name for name in table.columns if name not in self.names and name not in self.beside]
        if unknown:
            raise ValueError(
                f"X must have the columns of the start, {listed(self.names)}; {listed(unknown)} is new: leave it out"
            )
        for name in needed:
            _usable(table.columns[name])

    # ---- categories of one series ------------------------------------------------------------------------------------

    def no_categories(self) -> Categories:
        """Those of a series before its first row."""
        return ((),) * len(self.names)

    def new_at(self, known: Categories, codes: np.ndarray) -> int:
        """The first of N rows with a category that is new to a series; N without one."""
        first = len(codes)
        for place, kind in enumerate(self.kinds):
            if isinstance(kind, dict) and len(known[place]) < MOST:
                column = codes[:first, place]
                new = ~np.isnan(column) & (column >= 0.0) & ~np.isin(column, known[place])
                first = int(new.argmax()) if new.any() else first
        return first

    def grown(self, known: Categories, row: np.ndarray) -> Categories:
        """The categories of a series after this row (C). "yes" adds "no" too, and the other way round."""
        grown = list(known)
        for place, kind in enumerate(self.kinds):
            code = row[place]
            if not isinstance(kind, dict) or not code >= 0.0 or code in known[place] or len(known[place]) >= MOST:
                continue
            flag = code in _FLAGS.values() and _began_with_a_flag(kind)
            new = tuple(_FLAGS.values()) if flag else (int(code),)
            grown[place] = (*known[place], *new)
        return tuple(grown)

    def encoder(self, categories: Categories, derived: tuple[str, ...], horizon: int = 1) -> "Encoder":
        """From codes to the inputs of the model of a series; `derived` are names of inputs that follow the columns."""
        texts = tuple(
            tuple(label for label, code in kind.items() if code in known) if isinstance(kind, dict) else None
            for kind, known in zip(self.kinds, categories, strict=True)
        )
        shown = tuple(
            name if place < self.known else f"{name} ({horizon} before)" for place, name in enumerate(self.names)
        )
        ordered = tuple(
            None
            if labels is None
            else tuple(sorted(labels, key=lambda text, p=place: categories[p].index(self.kinds[p][text])))  # type: ignore[index,misc]
            for place, labels in enumerate(texts)
        )
        return _encoder(shown, ordered, categories, derived)

    def together(self, other: "Plan") -> "Plan":
        """One plan for series of both; refuses columns, or codes of texts, that contradict each other."""
        if (self.names, self.known) != (other.names, other.known):
            raise ValueError(f"columns must be {listed(self.names)}; got {listed(other.names)}")
        kinds: list[Kind] = []
        for name, one, two in zip(self.names, self.kinds, other.kinds, strict=True):
            if isinstance(one, dict) and isinstance(two, dict):
                longer, shorter = (one, two) if len(one) >= len(two) else (two, one)
                if any(longer.get(label) != code for label, code in shorter.items()):
                    raise ValueError(f"column {name!r} has other texts: {listed(one)} and {listed(two)}")
                kinds.append(longer)
            elif one is False or two is False or one == two:
                kinds.append(two if one is False else one)
            else:
                raise ValueError(f"column {name!r} holds numbers in one and text in the other")
        return self._replace(kinds=tuple(kinds))

    # ---- files -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """What a file holds."""
        kinds = [list(kind) if isinstance(kind, dict) else kind for kind in self.kinds]
        return {"names": list(self.names), "known": self.known, "kinds": kinds, "beside": sorted(self.beside)}

    @classmethod
    def restored(cls, stored: dict[str, Any]) -> "Plan":
        """Take back what `to_json` gave; refuses what it cannot have given."""
        names, known, beside = (
            tuple(map(_text, stored["names"])),
            stored["known"],
            frozenset(map(_text, stored["beside"])),
        )
        kinds = tuple(
            {_text(label): code for code, label in enumerate(kind)} if isinstance(kind, list) else kind
            for kind in stored["kinds"]
        )
        sound = all(kind in (True, False) or (isinstance(kind, dict) and len(kind) <= _LABELS) for kind in kinds)
        if type(known) is not int or not 0 <= known <= len(names) or len(kinds) != len(names) or not sound:
            raise ValueError("its columns and their kinds do not fit together")
        return cls(names, known, kinds, beside)

    def checked_categories(self, stored: Any) -> Categories:
        """The categories of a series, from a file."""
        known = tuple(tuple(int(code) for code in codes) for codes in stored)
        sizes = [len(kind) if isinstance(kind, dict) else 0 for kind in self.kinds]
        if len(known) != len(sizes) or any(
            len(set(codes)) != len(codes) or len(codes) > MOST or not all(0 <= code < size for code in codes)
            for codes, size in zip(known, sizes, strict=True)
        ):
            raise ValueError("its categories are not those of its columns")
        return known


class Encoder:
    """From codes to the inputs of a model, for one choice of categories.

    Attributes:
        names: what each input is.
        plain: whether codes are inputs as they are.
    """

    def __init__(
        self,
        columns: tuple[str, ...],
        labels: tuple[tuple[str, ...] | None, ...],
        categories: Categories,
        derived: tuple[str, ...],
    ) -> None:
        """Take the columns, their texts (None for numbers) with the codes of these, and names of inputs after them."""
        self.columns, self.labels, self.categories = columns, labels, categories
        self.flags = tuple(bool(texts) and all(map(_is_flag, texts)) for texts in labels)  # type: ignore[arg-type]
        names: list[str] = []
        self.first: list[int] = []  # input of each column that is its first
        for name, texts, flag in zip(columns, labels, self.flags, strict=True):
            self.first.append(len(names))
            names += [name] if not texts or flag else [input_name(name, text) for text in texts]
        self.names = (*names, *derived)
        self.width = len(self.names)
        self.plain = all(texts is None for texts in labels)

    def expanded(self, rows: np.ndarray) -> np.ndarray:
        """The inputs N×D of rows N×R: codes of the columns, then what was derived."""
        if self.plain:
            return rows
        N, C = len(rows), len(self.columns)
        made = np.empty((N, self.width))
        for place, (texts, flag, at) in enumerate(zip(self.labels, self.flags, self.first, strict=True)):
            code = rows[:, place]
            if texts is None:
                made[:, at] = code
            elif flag:
                made[:, at] = np.nan
                for text, own in zip(texts, self.categories[place], strict=True):
                    made[code == own, at] = float(text.casefold() in YES)
            elif texts:
                made[:, at : at + len(texts)] = code[:, None] == np.array(self.categories[place])
            else:
                made[:, at] = np.nan
        made[:, self.width - (rows.shape[1] - C) :] = rows[:, C:]
        return made


@lru_cache(maxsize=256)
def _encoder(
    columns: tuple[str, ...],
    labels: tuple[tuple[str, ...] | None, ...],
    categories: Categories,
    derived: tuple[str, ...],
) -> Encoder:
    return Encoder(columns, labels, categories, derived)


def _is_flag(label: str) -> bool:
    return label.strip().casefold() in YES | NO


def _checked_base(table: Table, settings: Settings) -> list[str]:
    """The column of a forecast from elsewhere, which is the first of all columns; none without."""
    base = settings.base
    if base is None:
        return []
    if not isinstance(base, str):
        raise ValueError(f"base must be the name of a column, since rows have names; got {base!r}")
    if base not in table.columns:
        raise ValueError(f"base is {base!r}, but there is no such column: there are {listed(table.columns)}")
    column = table.columns[base]
    if column.kind != "numbers" and any(label is not None for label in _labels(column).values()):
        raise ValueError(f"base must hold numbers; column {base!r} holds {column.kind}, such as {example(column)!r}")
    return [base]


# ---- values ----------------------------------------------------------------------------------------------------------


def _decided(column: Column, kind: Kind) -> Kind:
    """What a column holds once these values have come."""
    if kind is not False:
        return kind
    if column.kind == "numbers":
        return not column.blank.all()
    labels = [label for label in _labels(column).values() if label is not None]
    if not labels:
        return False
    refuse_unread(column.name, labels[0])
    return dict(_FLAGS) if _is_flag(labels[0]) else {}


def _grown(labels: Labels, column: Column) -> Labels:
    known = dict.fromkeys(label for _, label in _read(column, labels))
    new = [label for label in known if label is not None and label not in labels]
    if not new:
        return labels
    if len(labels) < MOST <= len(labels) + len(new):
        warnings.warn(
            f"column {column.name!r} holds text with more than {MOST} different values, such as {new[-1]!r}: the first "
            f"{MOST} of a series have an input each, and the others none. Convert it to numbers or to times, group its "
            f"values, or leave it out",
            UserWarning,
            stacklevel=2,
        )
    return labels | {label: len(labels) + i for i, label in enumerate(new[: _LABELS - len(labels)])}


def _coded(column: Column, kind: Kind) -> np.ndarray:
    if isinstance(kind, dict):
        codes = {
            value: np.nan if label is None else float(kind.get(label, _UNSEEN)) for value, label in _read(column, kind)
        }
        return np.fromiter(map(codes.__getitem__, _texts(column)), np.float64, len(column))
    if column.kind == "numbers":
        return np.asarray(column.values, np.float64)
    odd = next((label for label in _labels(column).values() if label is not None), None)
    if odd is not None and kind is True:
        raise ValueError(f"column {column.name!r} must hold numbers, as at the start; got {odd!r}")
    return np.full(len(column), np.nan)


def _texts(column: Column) -> list[str | None]:
    """Values of a column of text; numbers in it become text."""
    if column.kind == "text":
        return list(column.values)
    return [None if value != value else f"{value:g}" for value in np.asarray(column.values, np.float64).tolist()]


def _labels(column: Column) -> dict[str | None, str | None]:
    """Each different value of a column of text as a category; None for marks of missing values."""
    values = dict.fromkeys(_texts(column))
    return {value: None if value is None or value.strip().casefold() in BLANK else value for value in values}


def _read(column: Column, labels: Labels) -> Iterable[tuple[str | None, str | None]]:
    """The same values. In a column that began with yes or no, every word for these becomes one of the two."""
    found = _labels(column).items()
    if not _began_with_a_flag(labels):
        return found
    return [(value, _flag(label) if label is not None and _is_flag(label) else label) for value, label in found]


def _began_with_a_flag(labels: Labels) -> bool:
    return labels.get("yes") == 0 and labels.get("no") == 1


def _flag(label: str) -> str:
    return "yes" if label.strip().casefold() in YES else "no"


def _usable(column: Column) -> None:
    """Refuse a column that cannot be an input."""
    if column.kind in ("numbers", "text"):
        return
    remedy = {
        "times": "name it as the time (time=…), or leave it out and give its hour, weekday and so on as numbers",
        "spans": "give it as a number, such as hours",
    }
    raise ValueError(
        f"column {column.name!r} must hold numbers, true and false, or text; it holds {column.kind}, such as "
        f"{example(column)!r}: {remedy.get(column.kind, 'convert it, or leave it out')}"
    )


_NUMBER = re.compile(r"[-+]?\d+[.,]\d+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")


def refuse_unread(name: str, first: str) -> None:
    """Refuse text that holds unparsed numbers or times, which would be useless as categories."""
    if _DATE.fullmatch(first):
        raise ValueError(
            f"column {name!r} holds times as text, such as {first!r}: parse it with pandas.to_datetime and "
            f"name it as the time, Online(time={name!r}), or leave it out"
        )
    if _NUMBER.fullmatch(first):
        raise ValueError(
            f"column {name!r} holds numbers as text, such as {first!r}: convert it first, for decimal commas "
            f"with pandas.read_csv(…, decimal=','); or leave it out"
        )


def never_there(names: Sequence[str], rows: int) -> str:
    """The sentence on columns that had no value in any row.

    >>> never_there(["wind"], 400)
    "column 'wind' has had no value in 400 rows, and says nothing so far: leave it out if none will come"
    """
    one = len(names) == 1
    return (
        f"column{'s' * (not one)} {listed(names)} {'has' if one else 'have'} had no value in {rows} rows, and "
        f"{'says' if one else 'say'} nothing so far: leave {'it' if one else 'them'} out if none will come"
    )


def example(column: Column) -> Any:
    """A value of a column, as people write it."""
    return next((column.shown(value) for value in column.values if value is not None and value == value), None)


def listed(names: Any) -> str:
    """Names for a sentence, the first few of them."""
    names = [repr(name) for name in names]
    return ", ".join(names if len(names) <= 8 else [*names[:8], f"… ({len(names)} in all)"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a name must be text; got {value!r}")
    return value
