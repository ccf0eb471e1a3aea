"""Plain values and arrays as bytes with a type, a version and a checksum: the one format of all files that are saved.

Layout, little-endian: magic, version, length of the header, length of the payload; header (JSON, compressed); payload;
SHA-256 of everything before it. The header is a tree of plain values in which a dict stands for each array. Arrays are
the payload, one after another, as in memory. Nothing in it is ever executed.
"""

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

VERSION = 3
_MAGIC = b"\x89drstrm\n"  # not ASCII, so that no text file begins like it
_FRAME = struct.Struct("<8sHIQ")
_DIGEST = 32
_ARRAY = "array"  # key of a dict that stands for an array in the header
_KINDS: dict[str, np.dtype[Any]] = {
    "f8": np.dtype("<f8"),
    "u8": np.dtype("<u8"),
    "i8": np.dtype("<i8"),
    "u1": np.dtype("u1"),
    "b1": np.dtype("bool"),
}
# How files of earlier versions begin: of a model and its state, a fleet, a run, an estimator.
_EARLIER = (b"\x89driftgp", b"\x89drfleet", b"\x89driftrn", b"\x89drestim")
_NAMES = {
    "online": "an Online",
    "fleet": "a Fleet",
    "run": "a run",
    "checkpoint": "a model and its state",
    "estimator": "an estimator",
    "forecaster": "a Forecaster",
}

# Limits of the memory for a file, in bytes. A header may become thirty times as large in memory, so its limit is hardly
# more than the file. Numbers may take a few times the size of the file, or a few megabytes for a small file.
_TEXT = 1 << 16
_TIMES, _NUMBERS = 8, 24 << 20


def affordable(what: str, size: int, length: int) -> None:
    """Refuse to take `size` bytes of memory because a file of `length` bytes asks for it.

    >>> affordable("a state", 1 << 30, 500)
    Traceback (most recent call last):
    ValueError: a state of 1073741824 bytes is too large for a file of 500 bytes: at most 25169824 bytes are accepted
    """
    most = _TIMES * length + _NUMBERS
    if size > most:
        raise ValueError(
            f"{what} of {size} bytes is too large for a file of {length} bytes: at most {most} bytes are accepted"
        )


# ---- trees with arrays -----------------------------------------------------------------------------------------------


def seal(kind: str, tree: dict[str, Any]) -> bytes:
    """A tree of plain values and arrays as bytes.

    >>> opened("run", seal("run", {"row": 17, "sums": np.array([1.0, 2.0])}))["sums"].tolist()
    [1.0, 2.0]
    """
    arrays: list[bytes] = []
    header = _without_arrays({"kind": kind, **tree}, arrays)
    return framed(header, arrays)


def opened(kind: str, data: bytes) -> dict[str, Any]:
    """What `seal` was given, and its kind under "kind", once the bytes are whole and of the given kind."""
    if data[:8] in _EARLIER:
        raise ValueError(
            "this file was written by an earlier version of driftgp, whose files this one cannot read: start anew on "
            "recent rows, or go on with the version that wrote it"
        )
    header, payload = unframed(data)
    found = header.get("kind")
    if found != kind:
        raise ValueError(f"this is a file of {_NAMES.get(str(found), f'a {str(found)[:40]}')}, not of {_NAMES[kind]}")
    try:
        tree, used = _with_arrays(header, payload, 0)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"{kind} is damaged: its header is not complete ({error})") from error
    if used != len(payload):
        raise ValueError(f"{kind} is damaged: its parts do not add up")
    return dict(tree)


def kind_of(data: bytes) -> str | None:
    """What a file is of, "online", "fleet", "run" and so on; None if it is no file of this format."""
    return str(unframed(data)[0].get("kind")) if data.startswith(_MAGIC) else None


def _without_arrays(value: Any, arrays: list[bytes]) -> Any:
    if isinstance(value, np.ndarray):
        code = "u1" if value.dtype == np.uint8 else {"f": "f8", "u": "u8", "i": "i8", "b": "b1"}[value.dtype.kind]
        arrays.append(np.ascontiguousarray(value, _KINDS[code]).tobytes())
        return {_ARRAY: [code, *value.shape]}
    if isinstance(value, dict):
        return {name: _without_arrays(inner, arrays) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_arrays(inner, arrays) for inner in value]
    return value


def _with_arrays(value: Any, payload: memoryview, used: int) -> tuple[Any, int]:
    """The tree with its arrays, and how much of the payload they took; none is larger than the payload."""
    if isinstance(value, list):
        made = []
        for inner in value:
            one, used = _with_arrays(inner, payload, used)
            made.append(one)
        return made, used
    if not isinstance(value, dict):
        return value, used
    if _ARRAY in value:
        code, *shape = value[_ARRAY]
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError("the size of an array is not a whole number")
        end = used + _KINDS[code].itemsize * math.prod(shape)
        if end > len(payload):
            raise ValueError("an array is longer than the file")
        array = np.frombuffer(payload[used:end], _KINDS[code]).reshape(shape)
        return array.astype(array.dtype.newbyteorder("=")), end
    filled = {}
    for name, inner in value.items():
        filled[name], used = _with_arrays(inner, payload, used)
    return filled, used


# ---- the frame around them -------------------------------------------------------------------------------------------


def framed(header: dict[str, Any], payload: Sequence[bytes | memoryview]) -> bytes:
    """Put a header, which JSON can hold, and the pieces of a payload into one."""
    length = sum(map(len, payload))
    text = json.dumps(header, separators=(",", ":")).encode()
    block = zlib.compress(text, 1)
    if len(text) > len(block) + length + _TEXT:  # its reader would refuse it
        block = zlib.compress(text, 0)
    parts = [_FRAME.pack(_MAGIC, VERSION, len(block), length), block, *payload]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return b"".join([*parts, digest.digest()])


def unframed(data: bytes) -> tuple[dict[str, Any], memoryview]:
    """Header and payload, once magic, version, length and checksum are right."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError(f"this is not a stream saved by driftgp: {_looks_like(data)}")
    if len(data) < _FRAME.size:
        raise ValueError(f"stream is truncated: it has {len(data)} bytes")
    _, version, header_length, payload_length = _FRAME.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"stream has version {version}{_other(version)}")
    whole = _FRAME.size + header_length + payload_length + _DIGEST
    if len(data) != whole:
        raise ValueError(f"stream is truncated or has grown: it should have {whole} bytes and has {len(data)}")
    view = memoryview(data)
    if hashlib.sha256(view[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise ValueError("stream is damaged: its checksum does not match")
    end = _FRAME.size + header_length
    header = _header(view[_FRAME.size : end], len(data))
    return header, view[end:-_DIGEST]


def _header(block: memoryview, length: int) -> dict[str, Any]:
    """The header, in a file of this number of bytes."""
    try:
        text = zlib.decompressobj().decompress(block, length + _TEXT + 1)
        if len(text) > length + _TEXT:
            raise ValueError(f"it is longer than {length + _TEXT} bytes")
        header = json.loads(text)
    except (zlib.error, ValueError, RecursionError) as error:
        raise ValueError(f"stream is damaged: its header cannot be read ({error})") from error
    if not isinstance(header, dict):
        raise ValueError("stream is damaged: its header is not complete")
    return header


def _other(version: int) -> str:
    """The message about another version."""
    if version == 1:
        return (
            ": it was written by driftgp 0.1, whose states this release cannot read. Go on with driftgp 0.1, or "
            "start the model anew on recent rows"
        )
    return f"; this release of driftgp reads version {VERSION}"


def _looks_like(data: bytes) -> str:
    r"""The kind of a file by its first bytes, for a message.

    >>> _looks_like(b"time,load\n2024-01-01,3000\n"), _looks_like(b"")
    ("it is text that begins with 'time,load'", 'it is empty')
    """
    if not data:
        return "it is empty"
    known = {
        b"PK": "a zip file or workbook",
        b"\x1f\x8b": "a gzip file",
        b"PAR1": "a Parquet file",
        b"\x93NUMPY": "a NumPy file",
    }
    for magic, name in known.items():
        if data.startswith(magic):
            return f"it is {name}"
    line = bytes(data[:80]).split(b"\n", 1)[0].decode("latin-1").strip()
    if line and line.isascii() and line.isprintable():
        return f"it is text that begins with {line[:40]!r}"
    return "it is another kind of file, or damaged at its beginning"
