"""What a checkpoint holds, read with suspicion: a checksum tells damage, not forgery."""

import math
from typing import Any


def whole(value: Any) -> int:
    """A count."""
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise _damaged(value, "a count")
    return value


def number(value: Any) -> float:
    """A number, which may be NaN."""
    if type(value) not in (int, float) or (type(value) is int and abs(value) >= 1 << 62):
        raise _damaged(value, "a number")
    return float(value)


def positive(value: Any) -> float:
    """A finite number above 0."""
    if not 0.0 < number(value) < math.inf:
        raise _damaged(value, "a positive number")
    return float(value)


def numbers(value: Any, size: int | None = None) -> list[float]:
    """A list of numbers as a table may hold them, finite or NaN; of a given size, or of any."""
    if not isinstance(value, list) or (size is not None and len(value) != size):
        raise _damaged(value, "a list of numbers" if size is None else f"a list of {size} numbers")
    found = [number(entry) for entry in value]
    if any(map(math.isinf, found)):
        raise _damaged(value, "a list of finite numbers")
    return found


def text(value: Any) -> str:
    """Text."""
    if not isinstance(value, str):
        raise _damaged(value, "text")
    return value


def _damaged(value: Any, expected: str) -> ValueError:
    return ValueError(f"the checkpoint is damaged: it has {str(value)[:60]!r} where {expected} should be")
