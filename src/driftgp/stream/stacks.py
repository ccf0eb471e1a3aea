"""The states of all series: an array of records for each model and layout, and the engine that runs it."""

from typing import NamedTuple

import numpy as np

from driftgp.engine import Engine, engine
from driftgp.models.model import Layout, Model, State
from driftgp.predictions import Forecast

_FIRST = 1  # records that a stack has room for, before it doubles


class Stack:
    """The states of the series that have one model. Free slots are used again."""

    def __init__(self, model: Model, layout: Layout) -> None:
        """Have room for one."""
        self.model, self.layout = model, layout
        self.engine: Engine = engine(model, layout.inputs, layout.columns)
        self.records = np.zeros(_FIRST, model.record_dtype(layout.inputs, layout.columns))
        self._free = [0]

    def take(self) -> int:
        """A slot, whose record is all zeros."""
        if not self._free:
            size = len(self.records)
            larger = np.zeros(max(2 * size, _FIRST), self.records.dtype)
            words_of(larger)[:size] = words_of(self.records)
            self.records = larger
            self._free = list(range(len(larger) - 1, size - 1, -1))
        slot = self._free.pop()
        words_of(self.records)[slot] = 0
        return slot

    def release(self, slot: int) -> None:
        """Free a slot; when all slots are free, the memory is freed too."""
        self._free.append(slot)
        if len(self._free) == len(self.records):
            self.records, self._free = self.records[:0].copy(), []

    def record(self, slot: int) -> np.ndarray:
        """The record in a slot, of shape (), the same memory until another series comes."""
        return self.records[slot : slot + 1].reshape(())

    def state(self, slot: int) -> State:
        """A copy of the state in a slot."""
        return State.own(self.model, self.layout, self.record(slot).copy())

    def forecast(self, records: np.ndarray) -> Forecast:
        """What forecasts of this stack say."""
        return Forecast(self.model, records, flat=self.layout.outputs is None, solve=self.engine.solve)

    @property
    def nbytes(self) -> int:
        """Memory that the states take."""
        return int(self.records.nbytes)


class Slot(NamedTuple):
    """Where the state of a series is."""

    stack: Stack
    number: int


class Stacks:
    """A stack for each model: series that are much alike have models of the same settings."""

    def __init__(self) -> None:
        """Start with none."""
        self._stacks: dict[tuple[Model, Layout], Stack] = {}

    def admit(self, model: Model, layout: Layout) -> Slot:
        """A place for a series that has this model, which accepts this layout."""
        stack = self._stacks.get((model, layout))
        if stack is None:
            stack = self._stacks[model, layout] = Stack(model, layout)
        return Slot(stack, stack.take())

    @property
    def nbytes(self) -> int:
        """Memory that all states take."""
        return sum(stack.nbytes for stack in self._stacks.values())


def words_of(records: np.ndarray) -> np.ndarray:
    """Records as rows of whole numbers, the same memory: NumPy copies these sooner than nested records."""
    return records.view(np.uint64).reshape(len(records), records.dtype.itemsize // 8)
