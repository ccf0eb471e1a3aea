"""Keys of a fleet: text or whole numbers, never null."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from driftgp.base import checks
from driftgp.base.frames import Column

Key = str | int
SeriesKey = Key | None  # None: the one series of an `Online`
AnyKey = TypeVar("AnyKey", Key, SeriesKey)
_LARGEST = 10**100


def checked(keys: Iterable[Any], rows: int | None = None) -> list[Key]:
    """Return keys as plain text or plain whole numbers, or refuse them.

    >>> checked(np.array(["a", "b", "a"]))
    ['a', 'b', 'a']
    """
    if isinstance(keys, (str, bytes, int)):
        raise ValueError(f"keys must be a list or an array, one key per row; got {checks.shown(keys)}")
    dtype = getattr(keys, "dtype", None)
    if getattr(dtype, "kind", None) in ("m", "M"):
        raise ValueError(f"keys must be text or whole numbers; got dtype {dtype}: turn times into text first")
    listed = keys.tolist() if hasattr(keys, "tolist") else list(keys)
    if not isinstance(listed, list) or rows not in (None, len(listed)):
        raise ValueError(f"keys must have {rows} entries, one for each row of X; got {np.shape(listed)}")
    kinds = set(map(type, listed))
    plain = listed if kinds <= {str} or kinds <= {int} else _plain(listed)
    numbers: Any = plain if kinds and not isinstance(plain[0], str) else []
    if numbers and not -_LARGEST < min(numbers) <= max(numbers) < _LARGEST:
        longest = checks.shown(max(numbers, key=abs))
        raise ValueError(f"keys must be text, or whole numbers of at most 100 digits; got {longest}")
    return plain


def _plain(keys: list[Any]) -> list[Key]:
    """NumPy's own text and numbers, as they come out of arrays of objects."""
    plain = [key.item() if isinstance(key, np.generic) else key for key in keys]
    for row, key in enumerate(plain):
        if key is None or key != key:  # NaN and its like
            raise ValueError(
                f"keys must not be null; got {checks.shown(keys[row])} in row {row}: leave such rows out, or name them"
            )
        if type(key) not in (str, int):
            raise ValueError(f"keys must be text or whole numbers; got {checks.shown(keys[row])} in row {row}")
    if len(set(map(type, plain))) > 1:
        raise ValueError("keys must be all text or all whole numbers; got both")
    return plain


def codes(keys: Sequence[AnyKey]) -> tuple[list[AnyKey], np.ndarray]:
    """Return the different keys in the order of their coming, and for every row which of them it has.

    >>> codes(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    seen: dict[AnyKey, int] = {}
    which = np.fromiter((seen.setdefault(key, len(seen)) for key in keys), np.int64, len(keys))
    return list(seen), which


def one_kind(keys: list[Key], fleet: Iterable[Key]) -> None:
    """Refuse numbers in a fleet of text, and text in a fleet of numbers."""
    there = next(iter(fleet), None)
    if there is not None and keys and type(there) is not type(keys[0]):
        raise ValueError(
            f"keys must be all text or all whole numbers; got {checks.shown(keys[0])}, and the fleet has {there!r}"
        )


def key_column(columns: Mapping[str, Column], at: np.ndarray, beside: Collection[str | None]) -> str | None:
    """The column of text or whole numbers that tells rows of the same time apart, the one with the fewest values.

    Args:
        columns: of a table.
        at: times of its rows, N.
        beside: columns that are no keys.
    """
    best: tuple[int, str] | None = None
    for name, column in columns.items():
        values = column.values
        if name in beside or column.kind not in ("text", "numbers"):
            continue
        if column.kind == "numbers" and not np.all(values == np.round(values)):
            continue
        kind = "U" if column.kind == "text" else np.float64
        different, which = np.unique(np.array(values, kind), return_inverse=True)
        pairs = len(np.unique(np.stack([at, which.astype(np.float64)]), axis=1).T)
        if 1 < len(different) <= len(at) // 2 and pairs == len(at) and (best is None or len(different) < best[0]):
            best = len(different), name
    return None if best is None else best[1]
