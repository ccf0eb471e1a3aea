"""The contract: the methods that a model provides for engines, wrappers and users.

A model is a frozen set of settings. What it learns is in a state: one NumPy record whose layout the model declares.
A new model says what its records look like and writes its mathematics in `start`, `forecast` and `learn`, which work on
views of records and take targets with P columns.
"""

import abc
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftgp.contract import forecasts
from driftgp.predictions import Prediction

# Inputs and targets beyond this count as this, so that squares of values and of scales stay finite.
LARGEST = 1e40
# Largest number in scaled units, so that products of several numbers stay finite.
FARTHEST = 1e60


@dataclass(frozen=True)
class Layout:
    """Shapes that a state was started with."""

    inputs: int  # D
    outputs: int | None  # P, or None where a target is a plain number
    gaps: bool = False  # whether an input may be NaN

    @property
    def columns(self) -> int:
        """Number of target columns inside the model."""
        return self.outputs or 1

    @property
    def target_shape(self) -> tuple[int, ...]:
        """Shape of one target as the user gives it."""
        return () if self.outputs is None else (self.outputs,)


class Units(NamedTuple):
    """A centre and a scale for every input and every target: x in these units is (x − centre) / scale."""

    x_centre: np.ndarray  # D
    x_scale: np.ndarray  # D
    y_centre: np.ndarray  # P
    y_scale: np.ndarray  # P

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """Inputs in these units."""
        return ((X - self.x_centre) / self.x_scale).clip(-FARTHEST, FARTHEST)  # a method that JAX's arrays have too

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Targets in these units."""
        return ((y - self.y_centre) / self.y_scale).clip(-FARTHEST, FARTHEST)


class Contract(abc.ABC):
    """The methods of a model. Its fields are settings; what it learns is in the state.

    Users call the methods of `Model`, which check what they are given. A model of your own is a frozen dataclass that
    inherits from `Model` and provides the methods below: see "Kernels and models of your own". There, `inputs` is D and
    `outputs` P; a `record` holds the numbers of a state, of which `state` is a view; `made` are N forecasts.

    >>> from driftgp.members import Persistence
    >>> model = Persistence()
    >>> model.record_dtype(inputs=2, outputs=1).names[0] in dir(model.view(np.zeros((), model.record_dtype(2, 1))))
    True
    """

    # ---- what a new model provides: D inputs, targets with P columns -------------------------------------------------

    @abc.abstractmethod
    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""

    @abc.abstractmethod
    def view(self, record: np.ndarray) -> Any:
        """The fields of a state as attributes."""

    @abc.abstractmethod
    def start(self, state: Any, X: np.ndarray, y: np.ndarray) -> None:
        """Fill a state, all zeros so far, from a warm-up batch X (N×D), y (N×P); N = 0 is a cold start."""

    @abc.abstractmethod
    def forecast(self, state: Any, X: np.ndarray) -> np.ndarray:
        """Distribution of new targets at X (N×D): N records of `forecast_dtype`."""

    @abc.abstractmethod
    def learn(
        self, state: Any, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Let time `elapsed` pass, then learn from one sample x (D), y (P); where y is NaN only time has passed.

        `forecast` is what `forecast` says of this state at x, 1 record, where it is known already.
        """

    # ---- what a model may provide ------------------------------------------------------------------------------------

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of a forecast at one point; begins with mean, variance and noise, P each."""
        return forecasts.layout(outputs)

    def law(self, made: np.ndarray) -> Prediction:
        """The distributions that N forecasts describe, arrays N×P: normal ones, unless a model says otherwise."""
        return forecasts.normal_law(made)

    normal: ClassVar[bool] = True  # whether its law is a normal distribution, as a bank asks of its members

    @property
    def voices(self) -> int:
        """Normal distributions that a forecast holds, of which the first is the model's own (`forecasts.voices`)."""
        return forecasts.voices(np.zeros(1, self.forecast_dtype(1))).shape[1]

    @property
    def sees_raw_numbers(self) -> bool:
        """Whether it does not scale inputs and targets, and its settings are made for numbers near unit scale."""
        return False

    @property
    def fills_gaps(self) -> bool:
        """Whether inputs may be NaN."""
        return False

    def accept(self, inputs: int, outputs: int, rows: int) -> None:  # noqa: ARG002
        """Refuse numbers of inputs D, outputs P or warm-up rows that do not fit the settings.

        Called before a start; raises a ValueError.
        """
        return

    def engine(self, inputs: int, outputs: int) -> Any:  # noqa: ARG002
        """An engine made for this model; None for the usual engines."""
        return None

    def check(self, state: Any) -> None:  # noqa: ARG002
        """Refuse a state from outside with impossible numbers: counts and cursors out of range."""
        return

    def derived(self) -> tuple[str, ...]:
        """Paths of fields that `complete` computes from the others: a checkpoint leaves them out."""
        return ()

    def complete(self, state: Any) -> None:  # noqa: ARG002
        """Compute the derived fields, up to rounding."""
        return

    def facts(self, state: Any) -> dict[str, Any]:  # noqa: ARG002
        """The learned values, as plain numbers by name (see `summary.Summary`)."""
        return {}

    def expect_units(self, state: Any, units: Units) -> None:  # noqa: ARG002
        """Called before `start`: samples will come in these units. Most models need not know."""
        return

    def rescale(self, state: Any, units: Units) -> None:  # noqa: ARG002
        """Change the state to new units, as if every sample had come in them."""
        raise ValueError(f"{type(self).__name__} cannot change the units of what it has learned")

    def move_level(self, state: Any, step: np.ndarray) -> None:  # noqa: ARG002
        """Move all past targets by a step (P); a model without units of its own does nothing."""
        return

    def follow_inputs(self, state: Any, how: int) -> int | None:  # noqa: ARG002
        """Choose how inputs far beyond all before are seen, for the next forecast of this state.

        Args:
            state: a state of this model.
            how: 1 as they are, −1 at a limit, 0 as the record of the state says.

        Returns:
            What was chosen until now; None for a model that has no such limit.
        """
        return None

    def follows_inputs(self, state: Any) -> bool:  # noqa: ARG002
        """Whether a state sees inputs far beyond all before as they are; False for a model that has no such limit."""
        return False

    def usual_std(self, made: np.ndarray) -> np.ndarray:
        """Standard deviations of N forecasts, N×P, without what a model adds or takes away for single rows.

        They decide whether a target is wild, so that all rows count alike when a mean is learned.
        """
        return np.sqrt(made["variance"])

    def median_reach(self, made: np.ndarray) -> np.ndarray:
        """How far the medians of N forecasts lie from their means at most, N×P: a standard deviation, as in any law."""
        return np.sqrt(made["variance"])

    def joint(self, state: Any, X: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Covariance of new targets at all pairs of rows of X (N×D), P×N×N; its diagonal is the forecast's variance."""
        raise ValueError(f"{type(self).__name__} has no joint covariance of several targets")
