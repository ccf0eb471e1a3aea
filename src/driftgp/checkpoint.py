"""A model and its state as bytes, and back: checked, and bit for bit the same.

A checkpoint is a file like that of a stream (`driftgp.stream.store`): a header with the model's settings, and the whole
record of the state. `driftgp.models.admission` checks a state from outside. Fields that do not follow from the others
are computed anew, and `Restored.exact` says so.
"""

import json
import os
from typing import Any, NamedTuple

import numpy as np

from driftgp.base import sealed
from driftgp.base.files import loaded, write_atomically
from driftgp.models.model import Model, State
from driftgp.stream import store
from driftgp.stream.model_json import model_of
from driftgp.stream.stacks import words_of

KIND = "checkpoint"


class Restored(NamedTuple):
    """The contents of a checkpoint.

    Attributes:
        state: with its model, `state.model`.
        extra: what was saved beside it; None if nothing was.
        exact: whether the state is the saved one bit for bit. If not, fields of it did not follow from the others.

    >>> from driftgp import AGP
    >>> state = AGP(inducing=3, window=8).init(np.zeros((0, 1)), np.zeros(0))
    >>> restore(None, to_bytes(state.model, state)).exact
    True
    """

    state: State
    extra: Any
    exact: bool


def to_bytes(model: Model, state: State, extra: Any = None) -> bytes:
    """Return a model and its state as bytes, with anything that JSON can hold beside them.

    Args:
        model: the model.
        state: a state of it.
        extra: what to keep beside them, such as the number of the last row: anything that JSON can hold.

    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8)
    >>> state = model.init(np.zeros((0, 1)), np.zeros(0))
    >>> restored = restore(None, to_bytes(model, state, extra={"row": 17}))
    >>> restored.state.model == model, restored.extra, restored.exact
    (True, {'row': 17}, True)
    """
    if not isinstance(state, State):
        remedy = "write it with its own save(path)" if hasattr(state, "save") else "give what the model's init returned"
        raise ValueError(f"state must be a State of the model; got {type(state).__name__}: {remedy}")
    if state.record.dtype != model.record_dtype(state.layout.inputs, state.layout.columns):
        raise ValueError(f"state must be one that this {type(model).__name__} was started with; its layout differs")
    try:
        beside = json.dumps(extra)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"extra must be something that JSON can hold; got {extra!r}") from error
    return sealed.seal(KIND, store.state_to_json(State.own(model, state.layout, state.record)) | {"extra": beside})


def from_bytes(model: Model | None, data: bytes) -> State:
    """Return the state that `to_bytes` was given, or refuse data that is not a whole checkpoint of this model.

    Args:
        model: the model, or None for the one that the data describe.
        data: what `to_bytes` gave.

    >>> from driftgp import AGP
    >>> state = AGP(inducing=3, window=8).init(np.zeros((0, 1)), np.zeros(0))
    >>> from_bytes(None, to_bytes(state.model, state)).record.tobytes() == state.record.tobytes()
    True

    Without a model it is the one that the checkpoint describes.
    """
    return restore(model, data).state


def restore(model: Model | None, data: bytes) -> Restored:
    """Do what `from_bytes` does, and return what was stored beside the state too.

    Args:
        model: the model, or None for the one that the data describe.
        data: what `to_bytes` gave.

    >>> from driftgp import AGP
    >>> state = AGP(inducing=3, window=8).init(np.zeros((0, 1)), np.zeros(0))
    >>> restore(None, to_bytes(state.model, state, extra="row 17")).extra
    'row 17'
    """
    tree = sealed.opened(KIND, data)
    try:
        model_of(KIND, tree["model"], model)
        (state,), extra = store.states_of(KIND, tree, model), json.loads(tree["extra"])
    except ValueError as error:
        text = str(error)
        named = text.startswith((f"{KIND} ", "state "))
        raise ValueError(text if named else f"checkpoint is damaged: {text}") from error
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"checkpoint is damaged: its header is not complete ({error})") from error
    return Restored(state, extra, np.array_equal(words_of(state.record.reshape(1)), tree["records"]))


def save(path: str | os.PathLike[str], model: Model, state: State, extra: Any = None) -> None:
    """Write a checkpoint to a file, which is replaced in one step.

    Args:
        path: the file.
        model: the model.
        state: a state of it.
        extra: what to keep beside them: anything that JSON can hold.

    >>> import tempfile
    >>> from driftgp import AGP
    >>> state = AGP(inducing=3, window=8).init(np.zeros((0, 1)), np.zeros(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.gp", state.model, state, extra={"row": 17})
    ...     load(f"{folder}/model.gp").extra
    {'row': 17}
    """
    write_atomically(path, to_bytes(model, state, extra))


def load(path: str | os.PathLike[str], model: Model | None = None) -> Restored:
    """Read a checkpoint from a file: of this model, or of the one that it describes itself.

    Args:
        path: the file that `save` wrote.
        model: the model, or None for the one that the file describes.

    >>> import tempfile
    >>> from driftgp import AGP
    >>> state = AGP(inducing=3, window=8).init(np.zeros((0, 1)), np.zeros(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.gp", state.model, state)
    ...     load(f"{folder}/model.gp").state.model == state.model
    True

    A model with a part that is not in the library (a kernel of your own, a rival) has to be given.
    """
    restored: Restored = loaded(path, lambda data: restore(model, data))
    return restored


def peek(data: bytes) -> dict[str, Any]:
    """Return the `model` (its settings), the `layout` and the `extra` of a checkpoint, without its state.

    Args:
        data: what `to_bytes` gave.

    >>> from driftgp import AGP
    >>> state = AGP(inducing=3, window=8).init(np.zeros((0, 1)), np.zeros(0))
    >>> sorted(peek(to_bytes(state.model, state)))
    ['extra', 'layout', 'model', 'version']
    """
    tree = sealed.opened(KIND, data)
    try:
        return {"version": sealed.VERSION, **{name: tree[name] for name in ("model", "layout")}} | {
            "extra": json.loads(tree["extra"])
        }
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"checkpoint is damaged: its header is not complete ({error})") from error
