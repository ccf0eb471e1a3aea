"""A whole run in one file: a header in JSON, then each series' checkpoint; versioned, checksummed, never executed.

Layout, little-endian: magic, version, length of the header; header (JSON, compressed); the parts one after another,
whose lengths the header has; SHA-256 of everything before it.
"""

import hashlib
import struct
from typing import Any

from driftgp.envelope import packed_header, unpacked_header

MAGIC = b"\x89driftrn"
VERSION = 2
_FRAME = struct.Struct("<8sHI")
_DIGEST = 32


def pack(header: dict[str, Any], parts: list[bytes]) -> bytes:
    """Return a header and parts as bytes.

    >>> unpack(pack({"rows": 3}, [b"one", b""]))
    ({'rows': 3}, [b'one', b''])
    """
    compressed = packed_header({"header": header, "parts": [len(part) for part in parts]}, sum(map(len, parts)))
    body = _FRAME.pack(MAGIC, VERSION, len(compressed)) + compressed + b"".join(parts)
    return body + hashlib.sha256(body).digest()


def unpack(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return what `pack` was given, or refuse data that is not a whole bundle of this version."""
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError(f"this is no checkpoint of a run, which begins with {MAGIC!r}; it begins with {data[:8]!r}")
    if len(data) < _FRAME.size + _DIGEST:
        raise ValueError(f"the checkpoint is truncated: it has {len(data)} bytes")
    _, version, length = _FRAME.unpack_from(data)
    if version == 1:
        raise ValueError(
            "the checkpoint was written by driftgp 0.1, whose models this release cannot go on with: "
            "end the run with 0.1, or start it anew with a new checkpoint"
        )
    if version != VERSION:
        raise ValueError(f"the checkpoint has version {version}; this release of driftgp reads version {VERSION}")
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise ValueError("the checkpoint is truncated or damaged: its checksum does not match")
    start = _FRAME.size + length
    header, lengths = _contents(data[_FRAME.size : start], len(data))
    if start + sum(lengths) + _DIGEST != len(data):
        raise ValueError("the checkpoint is damaged: its parts do not add up")
    parts = []
    for length in lengths:
        parts.append(data[start : start + length])
        start += length
    return header, parts


def _contents(compressed: bytes, length: int) -> tuple[dict[str, Any], list[int]]:
    try:
        stored = unpacked_header(compressed, length)
        header, lengths = stored["header"], stored["parts"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"the checkpoint is damaged: {error}") from error
    if not isinstance(header, dict) or not all(type(length) is int and length >= 0 for length in lengths):
        raise ValueError("the checkpoint is damaged: its header is not complete")
    return header, lengths
