"""The one gate for states from outside: a checkpoint, a fleet's bytes, a state store.

What comes through has the layout of the model's records and numbers that a step could have left, so that no engine, and
no C++, ever sees a count or a cursor that points beyond an array.
"""

from typing import Any

import numpy as np

from driftgp.model import Layout, Model, State
from driftgp.records import entries

# A record from outside may not be larger than this, in bytes, whatever its settings say.
_LARGEST = 1 << 30
# Rows of the warm-up that a state has behind it: nobody knows, and it was enough.
_ROWS = 1 << 30


def admitted(model: Model, layout: Layout, record: np.ndarray) -> State:
    """Return a record (of shape ()) from outside as a state of this model, or refuse it.

    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8)
    >>> state = model.init(np.zeros((0, 1)), np.zeros(0))
    >>> admitted(model, state.layout, state.record).samples
    0
    """
    expected = record_dtype(model, layout)
    if record.dtype != expected or record.shape != ():
        raise ValueError(
            f"state is not one of {type(model).__name__} for {layout.inputs} inputs and {layout.columns} outputs: its "
            f"layout is another. Give the model that it was saved with"
        )
    state = State(model, layout, record)
    check(state)
    return state


def check(state: State) -> None:
    """Refuse numbers that no step could have left."""
    try:
        state.model.check(state.view)
    except ValueError as error:
        name = type(state.model).__name__
        raise ValueError(
            f"state is not one that {name} could have left: {error}. Take an older copy of it, or start anew with init"
        ) from error


def record_dtype(model: Model, layout: Layout) -> np.dtype:
    """Layout of this model's records, or a refusal if there can be no such record."""
    if layout.gaps != model.fills_gaps:
        raise ValueError(f"layout is not one of {type(model).__name__}: whether inputs may be NaN differs")
    try:
        model.accept(layout.inputs, layout.columns, _ROWS)
    except ValueError as error:
        raise ValueError(f"layout is not one of {type(model).__name__}: {error}") from error
    try:
        dtype = model.record_dtype(layout.inputs, layout.columns)
    except (ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"state would be too large for {layout.inputs} inputs: {error}") from error
    size = sum(8 * field.numbers for field in entries(dtype))  # NumPy's own count wraps around at 2 GiB
    if size > _LARGEST:
        raise ValueError(f"state would be too large: {size} bytes, of at most {_LARGEST}")
    return dtype


def layout_from(stored: Any) -> Layout:
    """A layout as it was written down."""
    try:
        layout = Layout(**stored)
    except TypeError as error:
        raise ValueError(f"{stored!r} is no layout") from error
    sizes = (layout.inputs, 1 if layout.outputs is None else layout.outputs)
    if not all(type(size) is int and 0 < size < 1 << 31 for size in sizes) or type(layout.gaps) is not bool:
        raise ValueError(f"{stored!r} is no layout")
    return layout
