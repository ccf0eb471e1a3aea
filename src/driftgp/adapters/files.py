"""An estimator as one file: its settings, what it has learned, and what else its library asks of it; no pickle."""

import os
from typing import Any, NamedTuple

from driftgp.envelope import Envelope
from driftgp.files import read_whole, write_atomically
from driftgp.online import Online
from driftgp.settings_json import kernel_of, portrait

_ENVELOPE = Envelope("estimator", b"\x89drestim", 2)


class Stored(NamedTuple):
    """What a file holds."""

    settings: dict[str, Any]  # arguments of the estimator
    fitted: Any  # what JSON holds of the rest
    streams: list[bytes]  # of `Online.to_bytes`


def save(path: str | os.PathLike[str], kind: type, stored: Stored) -> None:
    """Write an estimator of this class to a file, which at every moment is the old one or the new one."""
    header = {
        "kind": _name(kind),
        "settings": portrait(stored.settings),
        "fitted": stored.fitted,
        "streams": [len(stream) for stream in stored.streams],
    }
    write_atomically(path, _ENVELOPE.seal(header, stored.streams))


def load(path: str | os.PathLike[str], kind: type) -> Stored:
    """Read what `save` wrote, or refuse what is no file of this class."""
    data = read_whole(path)
    try:
        header, payload = _ENVELOPE.open(data)
        if header.get("kind") != _name(kind):
            raise ValueError(f"estimator is a {header.get('kind')}, not a {_name(kind)}: load it with its own class")
        return _stored(header, bytes(payload))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _stored(header: dict[str, Any], payload: bytes) -> Stored:
    try:
        lengths = [int(length) for length in header["streams"]]
        settings = {str(name): kernel_of(value) for name, value in header["settings"].items()}
        fitted = header["fitted"]
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"estimator is damaged: its header is not complete ({error})") from error
    if min(lengths, default=0) < 0 or sum(lengths) != len(payload):
        raise ValueError("estimator is damaged: its parts do not add up")
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    streams = [payload[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    return Stored(settings, fitted, streams)


def bytes_of(*streams: Online | None) -> list[bytes]:
    """Streams as bytes; one that has not begun is none."""
    return [b"" if stream is None or not stream.begun else stream.to_bytes() for stream in streams]


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
