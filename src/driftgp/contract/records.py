"""States as NumPy records: one declaration gives the layout in memory and a view with the fields as attributes.

    class Ring(View):
        values = floats("T", "P")
        cursor = whole()

    Ring.dtype(T=12, P=1)        # [("values", f8, (12, 1)), ("cursor", i8)]
    ring = Ring(np.zeros((), Ring.dtype(T=12, P=1)))
    ring.values[0] = 1.0         # an array of the record's own memory
    ring.cursor += 1             # a number that is read from and written to the record

Every field is eight bytes wide, shapes are fixed, and a record may hold the record of another model. A declaration also
says which numbers a field may hold, and `View.check` refuses others:

    weights = floats("V", low=0.0)       # finite and not negative
    cursor = whole(high="T")             # in [0, T]
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

FLOAT, WHOLE = np.dtype(np.float64), np.dtype(np.int64)


ABOVE_0 = 5e-324  # the least positive number


@dataclass(frozen=True)
class Field:
    """One field of a record: numbers of one kind, or the record of a part."""

    kind: np.dtype | None  # None for a part
    sizes: tuple[str | int, ...] = ()
    low: float = -np.inf
    high: float | str = np.inf  # a number, or the name of a size
    checked: bool = True
    view: "type[View] | None" = None  # of a part, where it is always the same one

    def shape(self, sizes: dict[str, Any]) -> tuple[int, ...]:
        """Numbers in place of names."""
        return tuple(sizes[size] if isinstance(size, str) else size for size in self.sizes)

    def check(self, name: str, values: np.ndarray, sizes: dict[str, int]) -> None:
        """Refuse values that are not finite, or out of range."""
        high = sizes[self.high] if isinstance(self.high, str) else self.high
        wrong = ~(np.isfinite(values) & (values >= self.low) & (values <= high))
        if not (self.checked and wrong.any()):
            return
        if high == -self.low:
            expected = f"be finite, and at most {high:g} in size" if high < np.inf else "be finite"
        elif high < np.inf:
            expected = f"lie in [{self.low:g}, {high:g}]"
        elif self.kind == WHOLE:
            expected = "not be negative"
        else:
            expected = f"be finite and {'positive' if self.low > 0.0 else 'not negative'}"
        raise ValueError(f"{name} must {expected}; got {values[wrong][0]}")


def floats(*sizes: str | int, low: float = -np.inf, high: float = np.inf, checked: bool = True) -> Any:
    """Declare an array of floats whose sizes have these names: finite, and within [low, high].

    Where they are not `checked`, they may be anything, such as NaN for a gap, or they follow from other fields.
    """
    return Field(FLOAT, sizes, low, high, checked)


def wholes(*sizes: str | int, low: float = 0, high: float | str = np.inf, checked: bool = True) -> Any:
    """Declare an array of whole numbers within [low, high]."""
    return Field(WHOLE, sizes, low, high, checked)


def number(*, low: float = -np.inf, high: float = np.inf, checked: bool = True) -> Any:
    """Declare one float."""
    return floats(low=low, high=high, checked=checked)


def whole(*, low: float = 0, high: float | str = np.inf) -> Any:
    """Declare one whole number."""
    return wholes(low=low, high=high)


def part(view: "type[View] | None" = None) -> Any:
    """Declare the record of a part: of a given view, or of the held model."""
    return Field(None, view=view)


class _Number:
    """A field of one number as an attribute."""

    def __init__(self, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, view: Any, owner: type) -> Any:
        return self if view is None else getattr(view, self.name).item()

    def __set__(self, view: Any, value: float) -> None:
        getattr(view, self.name)[...] = value


class View:
    """The fields of a record as attributes: arrays are the record's own memory, numbers are read and written there."""

    fields: ClassVar[dict[str, Field]] = {}

    def __init_subclass__(cls) -> None:
        """Collect the declared fields."""
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        cls.fields = cls.fields | own
        for name, field in own.items():
            if field.kind is not None and not field.sizes:
                setattr(cls, name, _Number(name))
            else:
                delattr(cls, name)

    def __init__(self, record: np.ndarray, **parts: Any) -> None:
        """Look at a record; `parts` are the views of parts that differ from model to model, or lie elsewhere."""
        self.record = record
        for name, field in self.fields.items():
            if field.kind is None:
                view = parts[name] if name in parts else field.view(record[name])  # type: ignore[misc]
                setattr(self, name, view)
            else:
                setattr(self, name if field.sizes else f"_{name}", record[name])

    @classmethod
    def dtype(cls, **sizes: Any) -> np.dtype:
        """Layout of a record: a number for each size by its name, and a dtype for each part that is a model's.

        A part with the dtype None is left out; its record lies elsewhere.
        """
        layout: list[Any] = []
        for name, field in cls.fields.items():
            if field.kind is not None:
                layout.append((name, field.kind, field.shape(sizes)))
                continue
            inner = sizes[name] if name in sizes else field.view.dtype(**sizes)  # type: ignore[union-attr]
            if inner is not None:
                layout.append((name, inner))
        return np.dtype(layout)

    def check(self, path: str = "") -> None:
        """Refuse a field with numbers that its declaration does not allow, here or in a part of a given view."""
        own = {name: field for name, field in self.fields.items() if field.kind is not None}
        shapes = ((field.sizes, self.record[name].shape) for name, field in own.items())
        sizes = {str(size): count for names, shape in shapes for size, count in zip(names, shape, strict=True)}
        for name, field in own.items():
            field.check(path + name, np.atleast_1d(self.record[name]), sizes)
        for name, field in self.fields.items():
            if field.view is not None:
                getattr(self, name).check(f"{path}{name}.")

    @classmethod
    def empty(cls, **sizes: Any) -> Self:
        """View of a new record, all zeros."""
        return cls(np.zeros((), cls.dtype(**sizes)))


class Entry(NamedTuple):
    """Where a field lies in a record: what both engines must agree on."""

    path: str  # names from the outermost record inwards, joined by dots
    kind: str  # "f8" or "i8"
    offset: int  # in bytes
    numbers: int


def entries(dtype: np.dtype, path: str = "", offset: int = 0) -> Iterator[Entry]:
    """All fields of a record, those of its parts included.

    >>> [entry.path for entry in entries(np.dtype([("a", "f8", 3), ("inner", [("b", "i8")])]))]
    ['a', 'inner.b']
    """
    for name in dtype.names or ():
        kind, start = dtype.fields[name][:2]  # type: ignore[index]
        here = f"{path}.{name}" if path else name
        if kind.fields is not None:
            yield from entries(kind, here, offset + start)
        else:
            yield Entry(here, kind.base.str[1:], offset + start, int(np.prod(kind.shape)))
