"""What wrappers have in common: a model that holds a model, and a state that holds its state."""

from dataclasses import replace
from typing import Any, Generic, TypeVar

import equinox as eqx

from driftgp.model import Model, State


class HoldingState(State):
    """A wrapper's state: the held model's, and what the wrapper adds."""

    inner: eqx.AbstractVar[Any]


H = TypeVar("H", bound=HoldingState)


class Holding(Model[H], Generic[H]):
    """A model that holds a model: what it does not say itself, the held one says."""

    model: eqx.AbstractVar[Model[Any]]

    @property
    def fills_gaps(self) -> bool:
        """Whether the held model can do with inputs that are NaN."""
        return self.model.fills_gaps

    @property
    def light(self) -> bool:
        """Whether the held model is."""
        return self.model.light

    def essence(self, state: H) -> H:
        """The held model's essence, and all that the wrapper adds."""
        return replace(state, inner=self.model.essence(state.inner))

    def complete(self, state: H) -> H:
        """Undo `essence`, up to rounding."""
        return replace(state, inner=self.model.complete(state.inner))
