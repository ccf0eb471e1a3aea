"""A fleet as bytes, and back: bit for bit the same, and quick, since a state store may ask for it after every batch.

The payload of its envelope are the states' bytes as they are in memory, one dtype after another.
"""

import json
import zlib
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from driftgp.envelope import Envelope
from driftgp.fingerprint import first_difference
from driftgp.fleet.keys import Key, checked
from driftgp.model import Layout

VERSION = 1
_ENVELOPE = Envelope("fleet", b"\x89drfleet", VERSION, largest_header=1 << 30)


class Stored(NamedTuple):
    """What the bytes of a fleet hold."""

    layout: Layout
    keys: list[Key]
    times: np.ndarray  # of each key's last row, NaN where none was given
    states: tuple[np.ndarray, ...]  # one row a key for every dtype
    start: tuple[np.ndarray, ...] | None  # the state that new keys start from


def seal(portrait: Any, stored: Stored) -> bytes:
    """Return all of it as bytes."""
    vectors = [stored.states] if stored.start is None else [stored.states, stored.start]
    header = {
        "layout": asdict(stored.layout),
        "model": portrait,
        "keys": stored.keys,
        "times": [None if np.isnan(time) else time for time in stored.times.tolist()],
        "start": stored.start is not None,
        "vectors": [[str(rows.dtype), rows.shape[1]] for rows in stored.states],
    }
    text = zlib.compress(json.dumps(header, separators=(",", ":")).encode(), 1)
    return _ENVELOPE.seal(text, [_bytes_of(rows) for part in vectors for rows in part])


def _bytes_of(array: np.ndarray) -> memoryview:
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return little.reshape(-1).view(np.uint8).data


def unseal(portrait: Any, data: bytes) -> Stored:
    """Return what `seal` was given, or refuse bytes that are not whole or are of another model."""
    header, payload = _ENVELOPE.open(data)
    difference = first_difference(header.get("model"), portrait)
    if difference is not None:
        raise ValueError(f"fleet is of another model: {difference}")
    try:
        return _stored(header, payload)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"fleet is damaged: its header is not complete ({error})") from error


def _stored(header: dict[str, Any], payload: memoryview) -> Stored:
    keys = checked(header["keys"])
    times = np.array([np.nan if time is None else time for time in header["times"]], float)
    counts = [len(keys), 1] if header["start"] else [len(keys)]
    cuts = [(count, np.dtype(dtype), size) for count in counts for dtype, size in header["vectors"]]
    ends = np.cumsum([count * dtype.itemsize * size for count, dtype, size in cuts]).tolist()
    if ends[-1:] != [len(payload)] or times.shape != (len(keys),):
        raise ValueError("fleet is damaged: its parts do not add up")
    arrays = [
        np.ndarray((count, size), dtype.newbyteorder("<"), payload, end - count * dtype.itemsize * size)
        for (count, dtype, size), end in zip(cuts, ends, strict=True)
    ]
    arrays = [array.astype(array.dtype.newbyteorder("="), copy=False) for array in arrays]
    parts = len(header["vectors"])
    return Stored(
        layout=Layout(**header["layout"]),
        keys=keys,
        times=times,
        states=tuple(arrays[:parts]),
        start=tuple(row[0] for row in arrays[parts:]) if header["start"] else None,
    )
