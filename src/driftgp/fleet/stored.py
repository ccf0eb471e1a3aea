"""A fleet as bytes, and back: bit for bit the same, and quick, since a state store may ask for it after every batch.

The payload of its envelope is the essential part of each state, one after another as they are in memory, and then,
compressed, the bits in which the rest of some of them differs from what follows from its essential part: see
`essence.py`.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from driftgp import essence, gate
from driftgp.envelope import Envelope
from driftgp.essence import WORD, Essence
from driftgp.fleet.clock import Clock
from driftgp.fleet.keys import Key, checked
from driftgp.intake import Intake
from driftgp.model import Layout, State

VERSION = 2
_ENVELOPE = Envelope("fleet", b"\x89drfleet", VERSION)


class Keys(NamedTuple):
    """What is known of each key besides its state."""

    names: list[Key]
    times: np.ndarray  # of each one's last row, NaN where none was given


class Stored(NamedTuple):
    """The bytes of a fleet, opened."""

    model: Any  # its settings
    layout: Layout
    keys: Keys
    started: bool  # whether the state that new keys start from follows those of the keys
    differing: dict[int, str]  # states that are more than follows from their essential part, and their digests
    payload: memoryview
    intake: Intake  # the form of its rows
    clock: Clock  # without keys


class Piece(NamedTuple):
    """One state as it is stored."""

    essential: bytes
    difference: bytes  # empty where there is none
    digest: str


def piece_of(parts: Essence, record: np.ndarray) -> Piece:
    """A record (of shape ()) as it is stored."""
    cut = parts.cut(record)
    if not cut.difference.any():
        return Piece(essence.to_bytes(cut.essential), b"", "")
    digest = essence.digest_of(essence.words_of(record.reshape(1)))
    return Piece(essence.to_bytes(cut.essential), essence.to_bytes(cut.difference), digest)


def seal(
    parts: Essence,
    model: Any,
    keys: Keys,
    pieces: Sequence[Piece],
    form: dict[str, Any],
    *,
    started: bool,
) -> bytes:
    """Return all of it as bytes; `pieces` are the states in the order of the keys."""
    essentials = [piece.essential for piece in pieces]
    differences = [piece.difference for piece in pieces if piece.difference]
    differing = [[i, piece.digest] for i, piece in enumerate(pieces) if piece.difference]
    header = {
        "layout": asdict(parts.layout),
        "model": model,
        "keys": keys.names,
        "times": [None if np.isnan(time) else time for time in keys.times.tolist()],
        "started": started,
        "differing": differing,
        **form,
    }
    rest = [zlib.compress(b"".join(differences), 1)] if differences else []
    return _ENVELOPE.seal(header, [*essentials, *rest], level=1)


def opened(data: bytes) -> Stored:
    """Return what `seal` was given, as far as it can be read without the model."""
    header, payload = _ENVELOPE.open(data)
    try:
        return _stored(header, payload)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"fleet is damaged: its header is not complete ({error})") from error


def _stored(header: dict[str, Any], payload: memoryview) -> Stored:
    names = checked(header["keys"])
    times = np.array([np.nan if time is None else time for time in header["times"]], float)
    if times.shape != (len(names),) or len(set(names)) != len(names):
        raise ValueError("one time for each key, and no key twice")
    differing = {int(i): str(digest) for i, digest in header["differing"]}
    if len(differing) != len(header["differing"]) or type(header["started"]) is not bool:
        raise ValueError("no state twice")
    layout = gate.layout_from(header["layout"])
    clock = Clock()
    clock.restore(header["clock"])
    intake = Intake.from_json(header["intake"])
    if intake.columns is not None and intake.columns.width != layout.inputs:
        raise ValueError("columns and inputs differ in number")
    return Stored(header["model"], layout, Keys(names, times), header["started"], differing, payload, intake, clock)


class Reader:
    """The states in the bytes of a fleet, as rows of words. Each passes the gate as it is read."""

    def __init__(self, parts: Essence, stored: Stored) -> None:
        """Take opened bytes, once the model is known; refuse those whose parts do not add up."""
        self._parts, self._digests = parts, stored.differing
        self._keys, self._started = len(stored.keys.names), stored.started
        count = self._keys + self._started
        size = count * parts.size * WORD.itemsize
        if not all(0 <= i < count for i in stored.differing) or len(stored.payload) < size:
            raise ValueError("fleet is damaged: its parts do not add up")
        self._essentials = essence.from_bytes(stored.payload[:size], parts.size)
        self._differences = dict(zip(stored.differing, _differences(parts, stored, stored.payload[size:]), strict=True))

    def states(self) -> Iterator[np.ndarray]:
        """Those of the keys, in their order."""
        return map(self._state, range(self._keys))

    def start(self) -> State | None:
        """The one that new keys start from, if it was stored."""
        return self._parts.state(self._state(self._keys)) if self._started else None

    def _state(self, i: int) -> np.ndarray:
        return self._parts.join(self._essentials[i], self._differences.get(i), self._digests.get(i)).words


def _differences(parts: Essence, stored: Stored, block: memoryview) -> np.ndarray:
    if not stored.differing and not block:
        return np.zeros((0, parts.rest), np.uint64)
    try:
        data = essence.inflated(block, len(stored.differing) * parts.rest * WORD.itemsize)
    except ValueError as error:
        raise ValueError(f"fleet is damaged: {error}") from error
    return essence.from_bytes(data, parts.rest)
