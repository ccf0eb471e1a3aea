"""The models of many series at work together: one stack of them, one compiled loop, all the cores."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from driftgp.fleet.blocks import Blocks, Place
from driftgp.packing import pack, packing_of
from driftgp.runner.loop import Forecast, Step, follow
from driftgp.wrappers import Watched


class Member(NamedTuple):
    """A series whose model is in the crew."""

    crew: "Crew"
    place: Place

    @property
    def state(self) -> Any:
        """The model's state as it is now."""
        return self.crew.state(self.place)


class Crew:
    """Models of one kind; each keeps settings of its own, since series differ in the usual time between their rows."""

    def __init__(self, level: float) -> None:
        """Take the level of the intervals."""
        self._level = level
        self._blocks: Blocks | None = None

    def enrol(self, model: Watched, state: Any) -> Member:
        """Take a model and its state in."""
        with jax.enable_x64(True):
            packed = [np.asarray(vector) for vector in pack((model, state))]
        if self._blocks is None:
            self._blocks = Blocks(_look, _step, np.float64(self._level), packing_of((model, state)), packed)
        place = self._blocks.admit()
        self._blocks.write([place], [vector[None] for vector in packed])
        return Member(self, place)

    def advance(self, members: Sequence[Member], steps: Sequence[Sequence[Step]]) -> list[list[Forecast]]:
        """Take the steps of each one after another."""
        counts = [len(own) for own in steps]
        if not sum(counts) or self._blocks is None:
            return [[] for _ in members]
        which = np.repeat(np.arange(len(members)), counts)
        rows = Step(
            *(np.asarray(column, np.float64) for column in zip(*(s for own in steps for s in own), strict=True))
        )
        numbers = self._blocks.step([member.place for member in members], which, rows).tolist()
        ends = np.cumsum(counts).tolist()
        return [[Forecast(*row) for row in numbers[end - count : end]] for count, end in zip(counts, ends, strict=True)]

    def state(self, place: Place) -> Any:
        """State of the model at a place."""
        assert self._blocks is not None  # noqa: S101
        return self._blocks.tree(place)[1]


def _step(level: Any, tree: tuple[Watched, Any], row: Step) -> tuple[tuple[Watched, Any], Any]:
    model, state = tree
    state, numbers = follow(model, state, row, level)
    return (model, state), numbers


def _look(level: Any, tree: tuple[Watched, Any], row: Step) -> Any:
    return _step(level, tree, row)[1]
