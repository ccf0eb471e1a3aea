"""The parts of a forecaster: objects whose arrays are their state."""

from typing import Any, Self

import numpy as np


class Part:
    """An object whose writable arrays, and those of the parts in it, are its whole state.

    Read-only arrays are settings. Copies share them, and share everything that is neither array nor part.

    >>> class Counter(Part):
    ...     def __init__(self):
    ...         self.count = np.zeros(1, np.int64)
    >>> counter = Counter()
    >>> other = counter.copy()
    >>> other.count[0] += 1
    >>> counter.arrays(), other.arrays()
    ({'count': array([0])}, {'count': array([1])})
    """

    def arrays(self, prefix: str = "") -> dict[str, np.ndarray]:
        """The state: each array by its name."""
        found: dict[str, np.ndarray] = {}
        for name, value in vars(self).items():
            if isinstance(value, Part):
                found |= value.arrays(f"{prefix}{name}.")
            elif isinstance(value, np.ndarray) and value.flags.writeable:
                found[prefix + name] = value
        return found

    def copy(self) -> Self:
        """A copy in the same state, which continues independently."""
        other = object.__new__(type(self))
        for name, value in vars(self).items():
            vars(other)[name] = _copied(value)
        return other


def _copied(value: Any) -> Any:
    if isinstance(value, Part):
        return value.copy()
    if isinstance(value, np.ndarray) and value.flags.writeable:
        return value.copy(order="K")
    return value


def constant(values: Any) -> np.ndarray:
    """An array that cannot be written: a setting."""
    array = np.array(values)
    array.flags.writeable = False
    return array


class Ring(Part):
    """Entries of the last H origins by lead: entry h − 1 is that of the origin h rows before.

    Each entry is kept twice, so that all of them are one slice.

    >>> ring = Ring(3, ())
    >>> for row in range(5):
    ...     ring.put(row, row)
    >>> ring.before(5)
    array([4., 3., 2.])
    """

    def __init__(self, size: int, shape: tuple[int, ...]) -> None:
        """Start with entries that are 0.

        Args:
            size: H.
            shape: of an entry.
        """
        self.size = size
        self.entries = np.zeros((2 * size, *shape))

    def put(self, row: int, entry: Any) -> None:
        """Keep the entry of an origin."""
        place = -row % self.size
        self.entries[place] = self.entries[place + self.size] = entry

    def before(self, row: int) -> np.ndarray:
        """Entries of the origins row − 1, row − 2, …, row − H."""
        place = (1 - row) % self.size
        return self.entries[place : place + self.size]
