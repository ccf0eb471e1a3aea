"""The common parts of wrappers: a model that holds a model, and a state that holds its state."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.contract.records import View
from driftgp.models.model import Model, Units
from driftgp.predictions import Prediction


@dataclass(frozen=True)
class Holding(Model):
    """A model that holds a model, and passes on to it what it does not do itself."""

    model: Model
    State: ClassVar[type[View]]  # the wrapper's own fields, and `inner`

    def view(self, record: np.ndarray) -> Any:
        """The wrapper's fields, and those of the held model under `inner`."""
        return self.State(record, inner=self.model.view(record["inner"]))

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of the held model's forecast."""
        return self.model.forecast_dtype(outputs)

    def law(self, made: np.ndarray) -> Prediction:
        """The held model's."""
        return self.model.law(made)

    @property
    def normal(self) -> bool:  # type: ignore[override]
        """Whether the held model's law is a normal distribution."""
        return self.model.normal

    @property
    def sees_raw_numbers(self) -> bool:
        """Whether the held model takes numbers as they are."""
        return self.model.sees_raw_numbers

    @property
    def fills_gaps(self) -> bool:
        """Whether the held model accepts inputs that are NaN."""
        return self.model.fills_gaps

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse what the held model refuses."""
        self.model.accept(inputs, outputs, rows)

    def check(self, state: Any) -> None:
        """Refuse what the held model refuses."""
        self.model.check(state.inner)

    def facts(self, state: Any) -> dict[str, Any]:
        """What the held model has learned."""
        return self.model.facts(state.inner)

    def derived(self) -> tuple[str, ...]:
        """Fields of the held model."""
        return tuple(f"inner.{path}" for path in self.model.derived())

    def complete(self, state: Any) -> None:
        """Complete the held model's state."""
        self.model.complete(state.inner)

    def expect_units(self, state: Any, units: Units) -> None:
        """Tell the held model."""
        self.model.expect_units(state.inner, units)

    def rescale(self, state: Any, units: Units) -> None:
        """Rescale the held model's state."""
        self.model.rescale(state.inner, units)

    def move_level(self, state: Any, step: np.ndarray) -> None:
        """Move the held model's past targets."""
        self.model.move_level(state.inner, step)

    def follow_inputs(self, state: Any, how: int) -> int | None:
        """Tell the held model."""
        return self.model.follow_inputs(state.inner, how)

    def follows_inputs(self, state: Any) -> bool:
        """As the held model does."""
        return self.model.follows_inputs(state.inner)


def inner(forecast: np.ndarray | None) -> np.ndarray | None:
    """The held model's part of a forecast, or None."""
    return None if forecast is None else forecast["inner"]
