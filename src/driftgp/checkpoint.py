"""A model's state as bytes, and back: small, checked, and bit for bit the same.

Much of a state can be computed from the rest of it: `Model.essence` leaves that out, `Model.complete` computes it. A
checkpoint holds the essence and, for every number of the state, the distance in units in its last place between what
it is and what `complete` makes of the essence. Where the computation gives the same bits again, and mostly it does,
those distances are zeros, which compress to nothing; where it does not, they are small, and adding them gives the same
bits.

On a machine whose arithmetic rounds differently (another processor, another release of XLA) the sum would not come
out. A digest of the state's bits tells; the state is then what `complete` gives there, equal up to rounding.

In the payload of its envelope the bytes of equal significance stand together, each such plane compressed if that helps.
"""

import functools
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import numpy as np

from driftgp.envelope import Envelope
from driftgp.files import write_atomically
from driftgp.fingerprint import first_difference, portrait
from driftgp.model import Layout, Model, State
from driftgp.packing import Packed, Packing, pack, packing_of, unpack

S = TypeVar("S", bound=State)
Vectors = tuple[np.ndarray, ...]

VERSION = 1
_ENVELOPE = Envelope("checkpoint", b"\x89driftgp", VERSION, largest_header=1 << 26)
# Rows of the pretended warm-up from which a state's shapes are found: enough for every model to start.
_ROWS = 16


class Restored(NamedTuple, Generic[S]):
    """What a checkpoint held."""

    state: S
    extra: Any
    exact: bool  # whether the state is the saved one bit for bit; if not, this machine rounds differently


def to_bytes(model: Model[S], state: S, extra: Any = None) -> bytes:
    """Return a state as bytes, with anything that JSON can hold beside it.

    >>> import numpy as np
    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8)
    >>> state = model.init(np.zeros((0, 1)), np.zeros(0))
    >>> restored = restore(model, to_bytes(model, state, extra={"row": 17}))
    >>> restored.extra, restored.exact
    ({'row': 17}, True)
    """
    packing = _packing(packing_of(model), state.layout)
    if packing_of(state) != packing:
        raise ValueError(f"state must be one that this {type(model).__name__} was started with; its shapes differ")
    with jax.enable_x64(True):
        essence = _essence(model, state)
        guess = _complete(packing, model, essence)
        vectors = _as_numpy(pack(state))
    distances = tuple(map(_distance, vectors, _as_numpy(guess)))
    blocks = [block for vector in (*_as_numpy(essence), *distances) for block in _compress(vector)]
    header = {
        "layout": asdict(state.layout),
        "model": portrait(model),
        "blocks": [len(block) for block in blocks],
        "bits": _bits(vectors),
        "extra": extra,
    }
    try:
        text = json.dumps(header, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"extra must be something that JSON can hold; got {extra!r}") from error
    return _seal(zlib.compress(text.encode(), 9), b"".join(blocks))


def from_bytes(model: Model[S], data: bytes) -> S:
    """Return the state that `to_bytes` was given, or refuse data that is not a whole checkpoint of this model."""
    return restore(model, data).state


def restore(model: Model[S], data: bytes) -> Restored[S]:
    """Do what `from_bytes` does, and return what was stored beside the state too."""
    header, payload = _open(data)
    difference = first_difference(header["model"], json.loads(json.dumps(portrait(model))))
    if difference is not None:
        raise ValueError(f"checkpoint is of another model: {difference}")
    packing = _packing(packing_of(model), _layout(header["layout"]))
    essence, distances = _decompress(packing, header["blocks"], payload)
    with jax.enable_x64(True):
        guess = _complete(packing, model, essence)
        vectors = tuple(map(_moved, _as_numpy(guess), distances))
        exact = _bits(vectors) == header["bits"]
        state: S = unpack(packing, jax.device_put(vectors) if exact else guess)
    return Restored(state, header["extra"], exact)


def save(path: str | os.PathLike[str], model: Model[S], state: S, extra: Any = None) -> None:
    """Write a checkpoint to a file, which at every moment is the old one or the new one."""
    write_atomically(path, to_bytes(model, state, extra))


def load(path: str | os.PathLike[str], model: Model[S]) -> Restored[S]:
    """Read a checkpoint of this model from a file."""
    return restore(model, Path(path).read_bytes())


def peek(data: bytes) -> dict[str, Any]:
    """Return a checkpoint's header without a model to load it into: `model` (its settings), `layout`, `extra`."""
    header, _ = _open(data)
    return {"version": VERSION, **{name: header[name] for name in ("model", "layout", "extra")}}


# ---- the state, split into what must be stored and what follows ------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _packing(model: Packing, layout: Layout) -> Packing:
    """How a state of this layout packs, found by tracing the start of the model without running it."""
    leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in model.leaves]
    X = jax.ShapeDtypeStruct((_ROWS, layout.inputs), layout.dtype)
    y = jax.ShapeDtypeStruct((_ROWS, *layout.target_shape), layout.dtype)
    with jax.enable_x64(True):
        start = jax.eval_shape(lambda model, X, y: model.init(X, y), jax.tree.unflatten(model.structure, leaves), X, y)
        return packing_of(start)


@jax.jit
def _essence(model: Model[S], state: S) -> Packed:
    return pack(model.essence(state))


@functools.partial(jax.jit, static_argnums=0)
def _complete(packing: Packing, model: Model[Any], essence: Packed) -> Packed:
    """Save and load call this one compiled function, so that its bits are the same in both."""
    return pack(model.complete(unpack(packing, essence)))


def _as_numpy(vectors: Packed) -> Vectors:
    return tuple(np.asarray(vector) for vector in vectors)


def _bits(vectors: Vectors) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for vector in vectors:
        digest.update(_little_endian(vector).tobytes())
    return digest.hexdigest()


# ---- distances in units in the last place ----------------------------------------------------------------------------


def _signed(vector: np.ndarray) -> np.ndarray:
    """Integers in the order of the numbers, neighbours for neighbours; a float's own bits run backwards below zero."""
    bits = vector.view(f"i{vector.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits) if vector.dtype.kind == "f" else bits


def _distance(vector: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Whole numbers 0, −1, 1, −2, 2, … as 0, 1, 2, 3, 4, …, so that what is near zero has zeros in its high bytes."""
    difference = _signed(vector) - _signed(guess)  # wraps around, and back in `_moved`
    size = difference.dtype.itemsize
    return ((difference << 1) ^ (difference >> (8 * size - 1))).view(f"u{size}")


def _moved(guess: np.ndarray, distance: np.ndarray) -> np.ndarray:
    half = (distance >> 1).view(f"i{distance.dtype.itemsize}")
    order = _signed(guess) + (half ^ -(distance & 1).view(half.dtype))
    if guess.dtype.kind == "f":
        order = np.where(order < 0, order ^ np.iinfo(order.dtype).max, order)
    return order.view(guess.dtype) if guess.dtype != bool else (order & 1).astype(bool)


# ---- bytes -----------------------------------------------------------------------------------------------------------


def _little_endian(vector: np.ndarray) -> np.ndarray:
    return vector.astype(vector.dtype.newbyteorder("<"), copy=False)


def _compress(vector: np.ndarray) -> Iterator[bytes]:
    """The bytes of each significance, compressed where that makes them fewer."""
    planes = _little_endian(vector).view(np.uint8).reshape(vector.size, vector.dtype.itemsize).T
    for plane in planes:
        raw, packed = plane.tobytes(), zlib.compress(plane.tobytes(), 9)
        yield packed if len(packed) < len(raw) else raw


def _decompress(packing: Packing, lengths: list[int], payload: bytes) -> tuple[Vectors, Vectors]:
    """Essence and distances out of the payload."""
    sizes = dict.fromkeys(packing.dtypes, 0)
    for shape, dtype in packing.leaves:
        sizes[dtype] += int(np.prod(shape))
    dtypes = [np.dtype(dtype) for dtype in packing.dtypes]
    dtypes += [np.dtype(f"u{dtype.itemsize}") for dtype in dtypes]
    if sum(lengths) != len(payload) or len(lengths) != sum(dtype.itemsize for dtype in dtypes):
        raise ValueError("checkpoint is damaged: its parts do not add up")
    starts = iter(np.cumsum([0, *lengths]).tolist())
    blocks = (payload[start : start + length] for start, length in zip(starts, lengths, strict=False))
    counts = [*sizes.values()] * 2
    vectors = tuple(_inflate(blocks, dtype, count) for dtype, count in zip(dtypes, counts, strict=True))
    return vectors[: len(vectors) // 2], vectors[len(vectors) // 2 :]


def _inflate(blocks: Iterator[bytes], dtype: np.dtype, count: int) -> np.ndarray:
    planes = [_bounded(next(blocks), count) for _ in range(dtype.itemsize)]
    interleaved = np.stack([np.frombuffer(plane, np.uint8) for plane in planes], -1)
    return interleaved.reshape(-1).view(dtype.newbyteorder("<")).astype(dtype, copy=False)


def _bounded(block: bytes, size: int) -> bytes:
    """A block of a known size, decompressed if it is shorter; never more than that is unpacked."""
    if len(block) == size:
        return block
    inflator = zlib.decompressobj()
    try:
        plane = inflator.decompress(block, size + 1)
    except zlib.error as error:
        raise ValueError(f"checkpoint is damaged: {error}") from error
    if len(plane) != size or not inflator.eof or inflator.unused_data:
        raise ValueError("checkpoint is damaged: a part of it has the wrong size")
    return plane


def _seal(header: bytes, payload: bytes) -> bytes:
    return _ENVELOPE.seal(header, [payload])


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
        layout = Layout(**stored)
    except TypeError as error:
        raise ValueError(f"checkpoint is damaged: {stored!r} is no layout") from error
    sizes = (layout.inputs, 1 if layout.outputs is None else layout.outputs)
    sane = all(type(size) is int and 0 < size < 1 << 31 for size in sizes) and type(layout.gaps) is bool
    if not sane or layout.dtype not in ("float32", "float64"):
        raise ValueError(f"checkpoint is damaged: {stored!r} is no layout")
    return layout
