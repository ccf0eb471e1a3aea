"""Gaps in the inputs: the last value that was seen stands in."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.model import Units
from driftgp.records import View, floats, part, wholes
from driftgp.wrappers.holding import Holding


class CarryForwardState(View):
    """The last value of each input, how often it stood in for a missing one, and the held model's state."""

    last: np.ndarray = floats("D")  # 0 before the first value
    seen: np.ndarray = wholes("D")  # 1 once there was one
    filled: np.ndarray = wholes("D")
    inner: Any = part()


@dataclass(frozen=True)
class CarryForward(Holding):
    """Hold a model, and give it the last value seen of every input that is NaN.

    A model by itself refuses inputs that are NaN; held by this wrapper it predicts and learns as if the input had not
    changed, and `state.filled` counts how often that was so. Before an input was seen at all there is nothing to carry:
    a prediction takes it as 0, and nothing is learned from the sample. Inside `Standardize`, 0 is the input's centre.

    >>> from driftgp import AGP
    >>> model = CarryForward(AGP(inducing=3, window=8))
    >>> state = model.init(np.zeros((0, 2)), np.zeros(0))
    >>> state = model.update(state, [1.0, 2.0], 3.0)
    >>> state = model.update(state, [np.nan, 2.5], 3.5)
    >>> state.inner.window.X[1].tolist(), state.filled.tolist()
    ([1.0, 2.5], [1, 0])
    """

    State: ClassVar[type[View]] = CarryForwardState

    @property
    def fills_gaps(self) -> bool:
        """Inputs may be NaN."""
        return True

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        return CarryForwardState.dtype(D=inputs, inner=self.model.record_dtype(inputs, outputs))

    def start(self, state: CarryForwardState, X: np.ndarray, y: np.ndarray) -> None:
        """Fill the gaps of the batch from above."""
        X, y = X.copy(), y.copy()
        for i in range(len(X)):
            X[i], y[i] = self._fill(state, X[i], y[i])
        self.model.start(state.inner, X, y)

    def forecast(self, state: CarryForwardState, X: np.ndarray) -> np.ndarray:
        """Forecast at the filled inputs."""
        return self.model.forecast(state.inner, self._carried(state, X))

    def joint(self, state: CarryForwardState, X: np.ndarray) -> np.ndarray:
        """Joint covariance at the filled inputs."""
        return self.model.joint(state.inner, self._carried(state, X))

    def learn(
        self, state: CarryForwardState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Fill the gaps, then let the held model learn."""
        self.model.learn(state.inner, *self._fill(state, x, y), elapsed, forecast)

    def rescale(self, state: CarryForwardState, units: Units) -> None:
        """Express the last values in the new units too."""
        state.last[...] = np.where(state.seen > 0, units.inputs(state.last), 0.0)
        self.model.rescale(state.inner, units)

    def check(self, state: CarryForwardState) -> None:
        """Refuse last values that are not finite, and counts out of range."""
        if not np.isfinite(state.last).all():
            raise ValueError("last must be finite")
        if (state.filled < 0).any() or not np.isin(state.seen, (0, 1)).all():
            raise ValueError("filled must not be negative, and seen must be 0 or 1")
        self.model.check(state.inner)

    @staticmethod
    def _carried(state: CarryForwardState, X: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(X), state.last, X)

    def _fill(self, state: CarryForwardState, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        missing = np.isnan(x)
        x = self._carried(state, x)
        state.last[...] = x
        state.seen |= ~missing
        state.filled += missing
        return x, y if state.seen.all() else np.full_like(y, np.nan)  # nothing is learned from what was made up
