"""Bytes with a type, a version and a checksum.

Layout, little-endian: magic, version, length of the header, length of the payload; header (JSON, compressed); payload;
SHA-256 of everything before it. Nothing in it is ever executed.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

_FRAME = struct.Struct("<8sHIQ")
_DIGEST = 32

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


def packed_header(header: Any, rest: int, level: int = 6) -> bytes:
    """A header as compressed JSON; uncompressed if a reader of it and `rest` more bytes would refuse its length."""
    text = json.dumps(header, separators=(",", ":")).encode()
    small = zlib.compress(text, level)
    return small if len(text) <= len(small) + rest + _TEXT else zlib.compress(text, 0)


def unpacked_header(block: bytes | memoryview, length: int) -> Any:
    """The header from `packed_header`, in a file of this number of bytes.

    >>> unpacked_header(packed_header({"row": 17}, 0), 25)
    {'row': 17}
    """
    try:
        text = zlib.decompressobj().decompress(block, length + _TEXT + 1)
        if len(text) > length + _TEXT:
            raise ValueError(f"it is longer than {length + _TEXT} bytes")
        return json.loads(text)
    except (zlib.error, ValueError, RecursionError) as error:
        raise ValueError(f"its header cannot be read ({error})") from error


class Envelope(NamedTuple):
    """One kind of such bytes."""

    kind: str  # what errors call it
    magic: bytes  # eight bytes, not ASCII, so that no text file begins like it
    version: int

    def seal(self, header: dict[str, Any], payload: Sequence[bytes | memoryview], level: int = 6) -> bytes:
        """Put a header, which JSON can hold, and the pieces of a payload into one."""
        length = sum(map(len, payload))
        text = packed_header(header, length, level)
        frame = _FRAME.pack(self.magic, self.version, len(text), length)
        digest = hashlib.sha256()
        for part in (frame, text, *payload):
            digest.update(part)
        return b"".join([frame, text, *payload, digest.digest()])

    def open(self, data: bytes) -> tuple[dict[str, Any], memoryview]:
        """Header and payload, once magic, version, length and checksum are right."""
        kind = self.kind
        if data[: len(self.magic)] != self.magic:
            raise ValueError(f"this is not a {kind} saved by driftgp: {_looks_like(data)}")
        if len(data) < _FRAME.size:
            raise ValueError(f"{kind} is truncated: it has {len(data)} bytes")
        _, version, header_length, payload_length = _FRAME.unpack_from(data)
        if version != self.version:
            raise ValueError(f"{kind} has version {version}{self._other(version)}")
        whole = _FRAME.size + header_length + payload_length + _DIGEST
        if len(data) != whole:
            raise ValueError(f"{kind} is truncated or has grown: it should have {whole} bytes and has {len(data)}")
        view = memoryview(data)
        if hashlib.sha256(view[:-_DIGEST]).digest() != data[-_DIGEST:]:
            raise ValueError(f"{kind} is damaged: its checksum does not match")
        end = _FRAME.size + header_length
        try:
            header = unpacked_header(view[_FRAME.size : end], len(data))
        except ValueError as error:
            raise ValueError(f"{kind} is damaged: {error}") from error
        if not isinstance(header, dict):
            raise ValueError(f"{kind} is damaged: its header is not complete")
        return header, view[end:-_DIGEST]

    def _other(self, version: int) -> str:
        """The message about another version."""
        if version == 1:
            return (
                ": it was written by driftgp 0.1, whose states this release cannot read. Go on with driftgp 0.1, or "
                "start the model anew on recent rows"
            )
        return f"; this release of driftgp reads version {self.version}"


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
