"""Admission of states from outside: a checkpoint, a fleet's bytes, a state store, a pickle, a user's own record.

A state that is accepted has the layout of the model's records, and numbers that a step could have left. So no engine
ever sees a count or a cursor that points beyond an array. Derived fields agree with the fields from which they follow,
so no factor belongs to other points.
"""

from typing import Any

import numpy as np

from driftgp.base.sealed import affordable
from driftgp.contract.protocol import Contract, Layout
from driftgp.contract.records import Entry, entries
from driftgp.engine import Batch, Engine, engine

# Largest record from outside, in bytes.
_LARGEST = 1 << 30
# Rows of the warm-up that a state from outside has had: unknown, and taken as enough.
_ROWS = 1 << 30
# Largest counter in a state from outside, so that counters never overflow.
_MOST = 1 << 62
# Largest deviation of a derived field by rounding, as a share of its largest number.
_ROUNDING = 1e-3

# Fields of a forecast that may be infinite: an absent bound, and the spread before the first target.
_INFINITE = ("low", "high", "variance", "noise", "stretch")


def admitted(model: Contract, layout: Layout, record: np.ndarray) -> np.ndarray:
    """Return a record (of shape ()) from outside if it can be a state of this model, or refuse it.

    If derived fields do not agree with the others, the result is a copy in which they do.

    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8)
    >>> state = model.init(np.zeros((0, 1)), np.zeros(0))
    >>> admitted(model, state.layout, state.record) is state.record
    True
    """
    expected = record_dtype(model, layout)
    if record.dtype != expected or record.shape != ():
        raise ValueError(
            f"state is not one of {type(model).__name__} for {layout.inputs} inputs and {layout.columns} outputs: its "
            f"layout is another. Give the model that it was saved with"
        )
    check(model, record)
    at_work = engine(model, layout.inputs, layout.columns)
    again: np.ndarray | None = np.array(record)
    try:
        with np.errstate(all="ignore"):
            at_work.complete(again)  # type: ignore[arg-type]
    except (ArithmeticError, ValueError):
        again = None
    taken = record if again is None or follows(derived_fields(model, expected), record, again) else again
    try_out(at_work, taken, layout)
    return taken


def check(model: Contract, record: np.ndarray) -> None:
    """Refuse numbers that no step could have left."""
    for field in entries(record.dtype):
        if field.kind == "i8" and np.any(_numbers(record, field, np.int64) >= _MOST):
            raise _refusal(model, f"{field.path} must be below 2^62")
    try:
        with np.errstate(all="ignore"):  # numbers from outside may be of any size
            model.check(model.view(record))
    except ValueError as error:
        raise _refusal(model, str(error)) from error


def try_out(at_work: Engine, record: np.ndarray, layout: Layout) -> None:
    """Refuse a state whose forecasts at two plain inputs are not finite."""
    if at_work.kind == "scan":  # of a rival in JAX, which would compile a program for it
        return
    try:
        X = np.repeat([[0.0], [2.0]], layout.inputs, 1)
        made = at_work.run(record.reshape(1), np.array([0]), np.array([len(X)]), Batch(X))
    except ValueError as error:
        raise _refusal(at_work.model, str(error)) from error
    cold = np.isinf(made["variance"]) & (made["mean"] == 0.0)  # before the first target nothing is known
    sound = cold | np.isfinite(made["variance"])
    if not (np.isfinite(made["mean"]).all() and np.all((made["variance"] > 0.0) & sound)):
        raise _refusal(at_work.model, "its forecasts are not finite")


def sound_forecasts(forecasts: np.ndarray) -> bool:
    """Whether forecasts from outside, N records, can be those of a model: numbers, of which some may be infinite."""
    words = np.ascontiguousarray(forecasts).view(np.float64).reshape(len(forecasts), -1)
    finite = np.isfinite(words)
    for field in entries(forecasts.dtype):
        if field.kind == "i8" or field.path.rpartition(".")[2] in _INFINITE:
            place = slice(field.offset // 8, field.offset // 8 + field.numbers)
            finite[:, place] = (field.kind == "i8") | ~np.isnan(words[:, place])
    return bool(finite.all())


def _refusal(model: Contract, reason: str) -> ValueError:
    return ValueError(
        f"state is not one that {type(model).__name__} could have left: {reason}. Take an older copy of it, or start "
        "anew with init"
    )


def follows(fields: list[Entry], record: np.ndarray, again: np.ndarray) -> bool:
    """Whether these fields of a record are those that were computed `again`, up to rounding."""
    for field in fields:
        value, expected = _numbers(record, field, np.float64), _numbers(again, field, np.float64)
        finite = np.isfinite(expected)
        if not np.array_equal(np.isfinite(value), finite):
            return False
        near = np.abs(value[finite] - expected[finite]) <= _ROUNDING * np.max(np.abs(expected[finite]), initial=0.0)
        if not np.all(near):
            return False
    return True


def derived_fields(model: Contract, dtype: np.dtype) -> list[Entry]:
    """The fields of a record that follow from the others."""
    derived = set(model.derived())
    return [field for field in entries(dtype) if field.path in derived]


def _numbers(record: np.ndarray, field: Entry, kind: type) -> np.ndarray:
    """A field as a flat array, the record's own memory."""
    start = field.offset // 8
    return record.reshape(1).view(kind)[start : start + field.numbers]


def record_dtype(model: Contract, layout: Layout) -> np.dtype:
    """Layout of this model's records; refuses a layout that is impossible."""
    if layout.gaps != model.fills_gaps:
        raise ValueError(
            f"layout is not one of {type(model).__name__}: one of them takes missing inputs and the other does not"
        )
    try:
        model.accept(layout.inputs, layout.columns, _ROWS)
    except ValueError as error:
        raise ValueError(f"layout is not one of {type(model).__name__}: {error}") from error
    try:
        dtype = model.record_dtype(layout.inputs, layout.columns)
    except (ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"state would be too large for {layout.inputs} inputs: {error}") from error
    size = _size(dtype)
    if size > _LARGEST:
        raise ValueError(f"state would be too large: {size} bytes, of at most {_LARGEST}")
    return dtype


def believe(kind: str, model: Contract, layout: Layout, length: int) -> None:
    """Refuse a model from a file if its states would be far larger than the file."""
    try:
        affordable("a state", _size(record_dtype(model, layout)), length)
    except ValueError as error:
        raise ValueError(f"{kind} is damaged, or of a very large model: {error}. If it is, give the model") from error


def _size(dtype: np.dtype) -> int:
    return sum(8 * field.numbers for field in entries(dtype))  # NumPy's own count wraps around at 2 GiB


def layout_from(stored: Any) -> Layout:
    """A layout as it was written down."""
    try:
        layout = Layout(**stored)
    except TypeError as error:
        raise ValueError(f"{stored!r} is not a layout") from error
    sizes = (layout.inputs, 1 if layout.outputs is None else layout.outputs)
    if not all(type(size) is int and 0 < size < 1 << 31 for size in sizes) or type(layout.gaps) is not bool:
        raise ValueError(f"{stored!r} is not a layout")
    return layout
