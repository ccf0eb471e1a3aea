"""Naive forecasts: the last value, an earlier value given as an input, the mean of the last k values.

Their variance comes from their own errors e in the past, forgotten at rate λ. With n the number of errors that the
variance v stands for,

    at the start    n = 1, v = `noise`
    time passes     n ← max(λ^elapsed n, 1)
    an error        n ← n + 1, v ← v + (e² − v)/n

Before the first sample the variance is that of the settings. With more samples it becomes the λ-weighted mean of the
squared errors. After a long pause the earlier errors still count as one error. λ is 0.98 by default, a memory of about
50 errors: short enough to follow a change of scale, and long enough to know the variance to about 20 %. All of the
variance counts as noise, since there is no latent function. Cost per sample: O(1), or O(k) for the mean.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.base import checks
from driftgp.contract import forecasts
from driftgp.contract.records import View, floats, number, whole
from driftgp.models.model import Model, Units

# Targets that never change leave no error: a variance has to stay above zero.
_LEAST = float(np.finfo(float).tiny) ** 0.5
# The first errors, this many, count in full even if they are large.
_FIRST = 10.0
# A value, and an error, count as no larger than this: their sums and squares stay finite.
_FARTHEST, _LARGEST = 1e300, 1e150


class NaiveState(View):
    """The last values, and the variance of the errors."""

    values: np.ndarray = floats("k", "P")
    cursor: int = whole(high="k")  # where the next value goes
    count: int = whole(high="k")  # of values so far, k at most
    variance: np.ndarray = floats("P", low=0.0)  # of the errors
    errors: float = number(low=1.0)  # how many errors that variance stands for

    @property
    def mean(self) -> np.ndarray:
        """Mean of the values there are, P; 0 before the first."""
        return np.sum(self.values, 0) / max(self.count, 1)


@dataclass(frozen=True, kw_only=True)
class Naive(Model):
    """The common base of both."""

    noise: float = 1.0
    forgetting: float = 0.98

    def __post_init__(self) -> None:
        """Check the settings."""
        object.__setattr__(self, "noise", checks.between("noise", self.noise, 0.0, np.inf))
        object.__setattr__(self, "forgetting", checks.between("forgetting", self.forgetting, 0.0, 1.0))

    @property
    def length(self) -> int:
        """Number of values kept."""
        return 1

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:  # noqa: ARG002
        """Layout of a state."""
        return NaiveState.dtype(k=self.length, P=outputs)

    def view(self, record: np.ndarray) -> NaiveState:
        """The fields of a state."""
        return NaiveState(record)

    def check(self, state: NaiveState) -> None:
        """Refuse fields out of range, and a count that does not fit the cursor."""
        state.check()
        if state.cursor == self.length or state.cursor != state.count < self.length:
            raise ValueError(f"cursor must be count until all places are filled; got {state.cursor} and {state.count}")

    def joint(self, state: NaiveState, X: np.ndarray) -> np.ndarray:
        """Errors of the same size, each by itself."""
        return np.maximum(state.variance, _LEAST)[:, None, None] * np.eye(len(X))

    def start(self, state: NaiveState, X: np.ndarray, y: np.ndarray) -> None:
        """Walk through the batch."""
        state.variance[...], state.errors = self.noise, 1.0
        for x, target in zip(X, y, strict=True):
            self.learn(state, x, target, 1.0)

    def forecast(self, state: NaiveState, X: np.ndarray) -> np.ndarray:
        """The value, with the variance of the errors."""
        variance = np.maximum(state.variance, _LEAST)
        mean = np.broadcast_to(self._value(state, X), (len(X), len(variance)))
        return forecasts.normal(mean, np.broadcast_to(variance, mean.shape), variance)

    def learn(
        self, state: NaiveState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Compare the forecast with the target."""
        said = self._value(state, x[None])[0] if forecast is None else forecast["mean"][0]
        errors = max(self.forgetting**elapsed * state.errors, 1.0)
        if np.isfinite(y).all():
            if self._known(state):  # the first value has no forecast to be compared with
                errors += 1.0
                state.variance += (self._square(y - said, state, errors) - state.variance) / errors
            state.values[state.cursor] = np.clip(y, -_FARTHEST, _FARTHEST)
            state.cursor = (state.cursor + 1) % self.length
            state.count = min(state.count + 1, self.length)
        state.errors = errors

    def _square(self, error: np.ndarray, state: NaiveState, errors: float) -> np.ndarray:
        """Square of an error; once there are some, one error makes the variance at most a hundred times as large."""
        square = np.clip(error, -_LARGEST, _LARGEST) ** 2
        return square if errors <= _FIRST else np.minimum(square, 99.0 * errors * np.maximum(state.variance, _LEAST))

    def rescale(self, state: NaiveState, units: Units) -> None:
        """The last values and the errors in other units."""
        here = (np.arange(self.length) < state.count)[:, None]
        state.values[...] = np.where(here, units.targets(state.values), 0.0)
        state.variance /= units.y_scale**2

    def _value(self, state: NaiveState, X: np.ndarray) -> np.ndarray:
        """The forecast at the rows of X, N×P or 1×P."""
        return np.broadcast_to(state.mean, (len(X), len(state.variance)))

    def _known(self, state: NaiveState) -> bool:
        return state.count > 0


@dataclass(frozen=True, kw_only=True)
class Persistence(Naive):
    """The next value is the last one or, with `column`, the value in that column of the input.

    >>> model = Persistence()
    >>> state = model.init(np.zeros((3, 1)), np.array([1.0, 2.0, 5.0]))
    >>> float(model.predict(state, np.zeros((1, 1))).mean[0])
    5.0

    Args:
        noise: variance before there are errors.
        forgetting: λ of the errors, the factor by which their weight shrinks in one unit of time.
        column: index of an input with an earlier value of the target, such as the value a day before; or one index per
            output. None for the last value of the target.
    """

    column: Any = None  # a tuple of indices, or None

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        columns = (self.column,) if isinstance(self.column, (int, np.integer)) else self.column
        checked = None if columns is None else tuple(checks.whole("column", column, 0) for column in columns)
        object.__setattr__(self, "column", checked)

    def accept(self, inputs: int, outputs: int, rows: int) -> None:  # noqa: ARG002
        """Refuse columns that are not there."""
        if self.column is not None and (len(self.column) != outputs or max(self.column) >= inputs):
            raise ValueError(
                f"column must name one of the {inputs} inputs for each of the {outputs} outputs; got {self.column}"
            )

    def rescale(self, state: NaiveState, units: Units) -> None:
        """The last value and the errors in other units."""
        if self.column is not None:
            raise ValueError(
                f"Persistence by column {self.column} cannot change its units: its forecast is an input, which "
                "has to be in the units of the target"
            )
        super().rescale(state, units)

    def _value(self, state: NaiveState, X: np.ndarray) -> np.ndarray:
        return super()._value(state, X) if self.column is None else X[:, self.column]

    def _known(self, state: NaiveState) -> bool:
        return self.column is not None or super()._known(state)


@dataclass(frozen=True, kw_only=True)
class LastKMean(Naive):
    """The next value is the mean of the last k.

    >>> model = LastKMean(k=2)
    >>> state = model.init(np.zeros((3, 1)), np.array([1.0, 2.0, 5.0]))
    >>> float(model.predict(state, np.zeros((1, 1))).mean[0])
    3.5

    Args:
        noise: variance before there are errors.
        forgetting: λ of the errors, the factor by which their weight shrinks in one unit of time.
        k: values averaged.
    """

    k: int = 5

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        object.__setattr__(self, "k", checks.whole("k", self.k, 1))

    @property
    def length(self) -> int:
        """Number of values kept."""
        return self.k
