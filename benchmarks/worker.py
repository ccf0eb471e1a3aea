"""`python -m benchmarks.worker KIND ARGUMENTS`: make one measurement and print its rows as JSON."""

import json
import resource
import sys
from collections.abc import Callable
from importlib import import_module

from benchmarks.process import Row


def peak_bytes() -> int:
    """The most memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


ROOMS = {"fleet": "many", "outside": "streaming", "parts": "parts"}  # the others are in `ours`


def measurement(kind: str) -> Callable[..., list[Row]]:
    """The function that makes a kind of measurement; a process loads only what it measures."""
    room = import_module(f"benchmarks.{ROOMS.get(kind, 'ours')}")
    function: Callable[..., list[Row]] = getattr(room, kind)
    return function


def main(kind: str, arguments: str) -> None:
    rows = measurement(kind)(**json.loads(arguments))
    for row in rows:
        row.setdefault("group", kind)
        row["peak"] = peak_bytes()
    print(json.dumps(rows, default=float))


if __name__ == "__main__":
    main(*sys.argv[1:])
