"""The common parts of wrappers: a model that holds a model, and a state that holds its state."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.contract import forecasts
from driftgp.contract.records import View
from driftgp.models.model import Model, Units
from driftgp.predictions import Prediction


@dataclass(frozen=True)
class Holding(Model):
    """A model that holds a model, and passes on to it what it does not do itself."""

    model: Model
    State: ClassVar[type[View]]  # the wrapper's own fields, and `inner`
    adds: ClassVar[tuple[str, ...]] = ()  # its own fields of a forecast, P numbers each

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state: the wrapper's fields, and the held model's state."""
        return self.State.dtype(**self.sizes(inputs, outputs), inner=self.model.record_dtype(inputs, outputs))

    def sizes(self, inputs: int, outputs: int) -> dict[str, int]:
        """The sizes of the fields by name."""
        return {"D": inputs, "P": outputs}

    def view(self, record: np.ndarray) -> Any:
        """The wrapper's fields, and those of the held model under `inner`."""
        return self.State(record, inner=self.model.view(record["inner"]))

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of a forecast: the wrapper's fields, and the held model's forecast."""
        own = [(name, np.float64, (outputs,)) for name in self.adds]
        return forecasts.layout(outputs, *own, ("inner", self.model.forecast_dtype(outputs)))

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
        """Refuse fields out of range, and what the held model refuses."""
        state.check()
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

    def heard(self, state: Any, x: np.ndarray, forecast: np.ndarray | None) -> np.ndarray:
        """The held model's part of a forecast at x (D), or a new one where none is known."""
        return self.model.forecast(state.inner, x[None]) if forecast is None else forecast["inner"]


class Transparent(Holding):
    """A wrapper whose forecasts are the held model's own."""

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of the held model's forecast."""
        return self.model.forecast_dtype(outputs)

    def law(self, made: np.ndarray) -> Prediction:
        """The held model's."""
        return self.model.law(made)

    def start(self, state: Any, X: np.ndarray, y: np.ndarray) -> None:
        """Start the held model."""
        self.model.start(state.inner, X, y)

    def forecast(self, state: Any, X: np.ndarray) -> np.ndarray:
        """Forecast of the held model at the inputs that it sees."""
        return self.model.forecast(state.inner, self._seen(state, X))

    def joint(self, state: Any, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model there."""
        return self.model.joint(state.inner, self._seen(state, X))

    def heard(self, state: Any, x: np.ndarray, forecast: np.ndarray | None) -> np.ndarray:
        """The known forecast at x (D), or a new one of the held model."""
        return self.forecast(state, x[None]) if forecast is None else forecast

    def _seen(self, state: Any, X: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Inputs as the held model sees them."""
        return X


class Moved(Holding):
    """A wrapper whose law is the held model's, scaled and moved: y = scale · (the held one's) + shift."""

    adds: ClassVar[tuple[str, ...]] = ("scale", "shift")

    def law(self, made: np.ndarray) -> Prediction:
        """The held model's law, scaled and moved."""
        return moved(self.model.law(made["inner"]), made)

    def _moved(self, held: np.ndarray, scale: Any, shift: Any) -> np.ndarray:
        """Forecasts of the held model, scaled and moved."""
        made = forecasts.records(
            self.forecast_dtype(held["mean"].shape[1]),
            scale * held["mean"] + shift,
            scale**2 * held["variance"],
            scale**2 * held["noise"],
        )
        made["scale"], made["shift"], made["inner"] = scale, shift, held
        return made


def moved(law: Prediction, made: np.ndarray) -> Prediction:
    """A law, scaled and moved as forecasts say; as it is where it is neither."""
    if np.all(made["scale"] == 1.0) and not np.any(made["shift"]):
        return law
    return law.scaled(made["scale"], made["shift"])


def stretched(joint: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Joint covariances P×N×N of targets whose scales change by factors, N×P."""
    return factor.T[:, :, None] * joint * factor.T[:, None, :]


def inner(forecast: np.ndarray | None) -> np.ndarray | None:
    """The held model's part of a forecast, or None."""
    return None if forecast is None else forecast["inner"]
