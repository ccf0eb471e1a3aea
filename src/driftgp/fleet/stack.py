"""Where the states of a fleet are kept and run: one array of records that grows, and slots in it that come and go."""

from collections.abc import Iterable

import numpy as np

from driftgp.essence import Essence, words_of
from driftgp.model import State
from driftgp.predictions import Forecast

START = 0  # slot of the state that new keys start from
_FIRST = 8  # slots to begin with


class Stack:
    """States of one model.

    The array at least doubles when it is full, and a slot that was given back is given out again.
    """

    def __init__(self, start: State) -> None:
        """Take the state that new keys start from."""
        self.model, self.layout = start.model, start.layout
        self.essence = Essence(start.model, start.layout)  # how the states are stored
        self._engine = start.engine()
        self._records = np.zeros(_FIRST, start.record.dtype)
        self._free = list(range(_FIRST))[:0:-1]
        self.restart(start)

    @property
    def words(self) -> np.ndarray:
        """The states as rows of whole numbers, the same memory: NumPy copies these sooner than nested records."""
        return words_of(self._records)

    def record(self, slot: int) -> np.ndarray:
        """The record in a slot, of shape (), the same memory."""
        return self._records[slot : slot + 1].reshape(())

    def state(self, slot: int) -> State:
        """A copy of the state in a slot."""
        return State.own(self.model, self.layout, self.record(slot).copy())

    # ---- coming and going --------------------------------------------------------------------------------------------

    def restart(self, start: State) -> None:
        """Have keys that come from now on start from another state."""
        self.words[START] = words_of(start.record.reshape(1))[0]

    def take(self, count: int) -> list[int]:
        """Slots for so many new keys; what is in them is of no account."""
        if len(self._free) < count:
            self._grow(count - len(self._free))
        return [self._free.pop() for _ in range(count)]

    def begin(self, count: int) -> list[int]:
        """Slots for so many new keys, each with the state to start from."""
        slots = self.take(count)
        self.words[slots] = self.words[START]
        return slots

    def admit(self, states: Iterable[np.ndarray], count: int) -> list[int]:
        """Slots with so many states, rows of words; none is taken where one is refused on the way."""
        slots = self.take(count)
        try:
            for slot, words in zip(slots, states, strict=True):
                self.words[slot] = words
        except BaseException:
            self.release(slots)
            raise
        return slots

    def release(self, slots: list[int]) -> None:
        """Give slots back."""
        self._free.extend(slots[::-1])

    def _grow(self, count: int) -> None:
        """Make room for so many more, and at least double."""
        size = len(self._records)
        larger = np.zeros(size + max(size, count), self._records.dtype)
        words_of(larger)[:size] = self.words
        self._records = larger
        self._free = [*range(len(larger) - 1, size - 1, -1), *self._free]

    # ---- rows --------------------------------------------------------------------------------------------------------

    def run(
        self, slots: np.ndarray, X: np.ndarray, y: np.ndarray | None = None, elapsed: np.ndarray | None = None
    ) -> Forecast:
        """Forecast each row by the state in its slot and, where there are targets, have that state learn from it then.

        Rows of one slot keep their order.
        """
        order = np.argsort(slots, kind="stable")
        in_order = slots[order]
        begins = np.flatnonzero(np.diff(in_order, prepend=-1))
        ends = np.append(begins[1:], len(slots))
        rows = (None if array is None else array[order] for array in (y, elapsed))
        made = self._engine.run(self._records, in_order[begins], ends, X[order], *rows)
        back = np.empty_like(made)
        words_of(back)[order] = words_of(made)
        return Forecast(self.model, back, flat=self.layout.outputs is None, solve=self._engine.solve)
