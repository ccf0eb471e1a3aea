"""Gaps in the inputs: the last value that was seen stands in."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.contract import FARTHEST
from driftgp.model import Units
from driftgp.records import View, floats, part, wholes
from driftgp.wrappers.holding import Holding

_LARGEST = np.finfo(np.float64).max


class CarryForwardState(View):
    """The last value of each input, how often it stood in for a missing one, and the held model's state."""

    last: np.ndarray = floats("D")  # less the origin; 0 before the first value
    origin: np.ndarray = floats("D")  # the first value, of an input that began with a gap; else 0
    seen: np.ndarray = wholes("D")  # 1 once there was a value
    filled: np.ndarray = wholes("D")
    inner: Any = part()

    @property
    def samples(self) -> int:
        """What the held model has learned from, if it counts that."""
        return int(self.inner.samples)


@dataclass(frozen=True)
class CarryForward(Holding):
    """Hold a model, and give it the last value seen of every input that is NaN.

    A model by itself refuses inputs that are NaN; held by this wrapper it predicts and learns as if the input had not
    changed, and `state.filled` counts how often that was so. An input that begins with a gap is as if it had had its
    first value all along: the model sees it as its distance from that value, which is 0 until it comes. One that never
    comes stays 0, and the model learns from the others.

    Args:
        model: any model.

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
        X = X.copy()
        for i in range(len(X)):
            X[i] = self._fill(state, X[i])
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
        self.model.learn(state.inner, self._fill(state, x), y, elapsed, forecast)

    def rescale(self, state: CarryForwardState, units: Units) -> None:
        """Express the last values in the new units too."""
        state.last[...] = units.inputs(state.last)
        state.origin[...] = (state.origin / units.x_scale).clip(-FARTHEST, FARTHEST)
        self.model.rescale(state.inner, units)

    def check(self, state: CarryForwardState) -> None:
        """Refuse last values that are not finite, and counts out of range."""
        if not (np.isfinite(state.last).all() and np.isfinite(state.origin).all()):
            raise ValueError("last and origin must be finite")
        if (state.filled < 0).any() or not np.isin(state.seen, (0, 1)).all():
            raise ValueError("filled must not be negative, and seen must be 0 or 1")
        self.model.check(state.inner)

    @staticmethod
    def _carried(state: CarryForwardState, X: np.ndarray) -> np.ndarray:
        begins = (state.seen == 0) & (state.filled > 0)  # what comes first is what would have been there
        with np.errstate(over="ignore"):
            distance = (X - state.origin).clip(-_LARGEST, _LARGEST)
        return np.where(np.isnan(X) | begins, state.last, distance)

    def _fill(self, state: CarryForwardState, x: np.ndarray) -> np.ndarray:
        missing = np.isnan(x)
        first = ~missing & (state.seen == 0)
        state.last[...] = self._carried(state, x)
        state.origin[first] = x[first] - state.last[first]
        state.seen |= ~missing
        state.filled += missing
        return state.last.copy()
