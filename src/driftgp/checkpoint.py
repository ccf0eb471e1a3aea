"""A model and its state as bytes, and back: small, checked, and bit for bit the same.

A checkpoint holds the model's settings, the essential part of the state, and the bits in which the rest differs from
what follows from it (`essence.py`). On a machine whose arithmetic rounds differently (another processor, the other
engine) those bits would not fit. A digest of the state tells; the state is then what is computed there, equal up to
rounding.
"""

import os
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from driftgp import essence, gate
from driftgp.envelope import Envelope, packed_numbers
from driftgp.essence import Essence
from driftgp.files import read_whole, write_atomically
from driftgp.model import Layout, Model, State
from driftgp.settings_json import model_of, portrait

VERSION = 2
_ENVELOPE = Envelope("checkpoint", b"\x89driftgp", VERSION)


class Restored(NamedTuple):
    """What a checkpoint held.

    Attributes:
        state: with its model, `state.model`.
        extra: what was saved beside it; None if nothing was.
        exact: whether the state is the saved one bit for bit. If not, this machine rounds differently.

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
    parts = Essence(model, state.layout)
    if state.record.dtype != parts.dtype:
        raise ValueError(f"state must be one that this {type(model).__name__} was started with; its layout differs")
    cut = parts.cut(state.record)
    blocks = [packed_numbers(essence.to_bytes(words)) if words.any() else b"" for words in cut]
    header = {
        "layout": asdict(state.layout),
        "model": portrait(model),
        "blocks": [len(block) for block in blocks],
        "bits": essence.digest_of(essence.words_of(state.record.reshape(1))),
        "extra": extra,
    }
    try:
        return _ENVELOPE.seal(header, blocks, level=9)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"extra must be something that JSON can hold; got {extra!r}") from error


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
    header, payload = _open(data)
    described, model = model is None, model_of("checkpoint", header["model"], model)
    layout = _layout(header["layout"])
    if described:
        gate.believe("checkpoint", model, layout, len(data))
    parts = Essence(model, layout)
    try:
        essential, difference = _words(parts, header["blocks"], payload)
    except ValueError as error:
        raise ValueError(f"checkpoint is damaged: {error}") from error
    joined = parts.join(essential, difference, header["bits"])
    return Restored(parts.state(joined.words), header["extra"], joined.exact)


def save(path: str | os.PathLike[str], model: Model, state: State, extra: Any = None) -> None:
    """Write a checkpoint to a file, which at every moment is the old one or the new one.

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
    data = read_whole(path)
    try:
        return restore(model, data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def peek(data: bytes) -> dict[str, Any]:
    """Return what a checkpoint is of, without its state: `model` (its settings), `layout`, `extra`.

    Args:
        data: what `to_bytes` gave.

    >>> from driftgp import AGP
    >>> state = AGP(inducing=3, window=8).init(np.zeros((0, 1)), np.zeros(0))
    >>> sorted(peek(to_bytes(state.model, state)))
    ['extra', 'layout', 'model', 'version']
    """
    header, _ = _open(data)
    return {"version": VERSION, **{name: header[name] for name in ("model", "layout", "extra")}}


# ---- bytes -----------------------------------------------------------------------------------------------------------


def _words(parts: Essence, lengths: list[int], payload: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Essential and differing words out of the payload; an empty block is one of zeros."""
    if len(lengths) != 2 or sum(lengths) != len(payload):
        raise ValueError("its parts do not add up")
    blocks = payload[: lengths[0]], payload[lengths[0] :]
    sizes = parts.size, parts.rest
    essential, difference = (
        essence.from_bytes(essence.inflated(block, 8 * size), size)[0] if block else np.zeros(size, np.uint64)
        for block, size in zip(blocks, sizes, strict=True)
    )
    return essential, difference


def _open(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and payload, once the envelope is whole and the header has what a checkpoint's has."""
    header, payload = _ENVELOPE.open(data)
    if not {"layout", "model", "blocks", "bits", "extra"} <= set(header):
        raise ValueError("checkpoint is damaged: its header is not complete")
    blocks = header["blocks"]
    if not isinstance(blocks, list) or not all(type(length) is int and length >= 0 for length in blocks):
        raise ValueError("checkpoint is damaged: its header has no list of parts")
    return header, bytes(payload)


def _layout(stored: Any) -> Layout:
    try:
        return gate.layout_from(stored)
    except ValueError as error:
        raise ValueError(f"checkpoint is damaged: {error}") from error
