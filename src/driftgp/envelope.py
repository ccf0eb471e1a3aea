"""Bytes that know what they are and whether they are whole.

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


class Envelope(NamedTuple):
    """One kind of such bytes."""

    kind: str  # what errors call it
    magic: bytes  # eight bytes, not ASCII, so that no text file begins like it
    version: int
    largest_header: int  # bytes: never more than that is unpacked

    def seal(self, header: bytes, payload: Sequence[bytes | memoryview]) -> bytes:
        """Put a compressed header and the pieces of a payload into one."""
        frame = _FRAME.pack(self.magic, self.version, len(header), sum(map(len, payload)))
        digest = hashlib.sha256()
        for part in (frame, header, *payload):
            digest.update(part)
        return b"".join([frame, header, *payload, digest.digest()])

    def open(self, data: bytes) -> tuple[dict[str, Any], memoryview]:
        """Header and payload, once magic, version, length and checksum are right."""
        kind = self.kind
        if data[: len(self.magic)] != self.magic:
            raise ValueError(
                f"data must be a driftgp {kind}, which begins with {self.magic!r}; got {bytes(data[:8])!r}"
            )
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
            header = json.loads(zlib.decompressobj().decompress(view[_FRAME.size : end], self.largest_header))
        except (zlib.error, ValueError, RecursionError) as error:
            raise ValueError(f"{kind} is damaged: its header cannot be read ({error})") from error
        if not isinstance(header, dict):
            raise ValueError(f"{kind} is damaged: its header is not complete")
        return header, view[end:-_DIGEST]

    def _other(self, version: int) -> str:
        """What to say of another version."""
        if version == 1:
            return (
                ": it was written by driftgp 0.1, whose states this release cannot read. Go on with driftgp 0.1, or "
                "start the model anew on recent rows"
            )
        return f"; this release of driftgp reads version {self.version}"
