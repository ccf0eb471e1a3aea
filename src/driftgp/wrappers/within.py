"""Limits for inputs far outside their earlier range."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.base import checks
from driftgp.contract.records import View, floats, part, wholes
from driftgp.models.model import Model, Units
from driftgp.wrappers.holding import Holding

# Before this number of values, the range of an input is unknown.
_FIRST = 10


class WithinState(View):
    """The range of each input so far, zeros before the first, and the held model's state."""

    low: np.ndarray = floats("D")
    high: np.ndarray = floats("D")
    last: np.ndarray = floats("D")  # as it came
    count: np.ndarray = wholes("D")
    limited: np.ndarray = wholes("D")  # how often an input that was learned from lay beyond the limits
    inner: Any = part()


@dataclass(frozen=True)
class Within(Holding):
    """Hold a model, and limit its inputs to their range so far, plus a margin.

        low − margin · (high − low)  ≤  x  ≤  high + margin · (high − low)

    The cause may be a faulty meter or a wrong unit. With a linear kernel such an input would give a wild forecast and a
    wrong slope, which is forgotten slowly. The limits follow a lasting change. If an input is beyond the limit twice in
    succession, the range reaches there at once; a single such input widens the range up to the limit. An input that
    never changed has no range, and its first other value is not limited.

    >>> from driftgp import AGP
    >>> from driftgp.kernels import Linear
    >>> x = np.sin(np.arange(40.0))
    >>> model = Within(AGP(Linear(), inducing=3, window=40))
    >>> state = model.init(x[:, None], 2 * x)
    >>> bool(model.predict(state, [[100.0]]).mean[0] < 4.0)
    True

    Args:
        model: any model.
        margin: how far beyond the range an input may go, as a share of the range.
    """

    model: Model
    margin: float = 0.25
    State: ClassVar[type[View]] = WithinState

    def __post_init__(self) -> None:
        """Check the margin."""
        object.__setattr__(self, "margin", checks.between("margin", self.margin, 0.0, np.inf, open_low=False))

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        return WithinState.dtype(D=inputs, inner=self.model.record_dtype(inputs, outputs))

    def start(self, state: WithinState, X: np.ndarray, y: np.ndarray) -> None:
        """Find the range of the batch, and start the held model on it as it is."""
        for x, target in zip(X, y, strict=True):
            self._extend(state, x, target)
        self.model.start(state.inner, X, y)

    def forecast(self, state: WithinState, X: np.ndarray) -> np.ndarray:
        """Forecast of the held model at inputs within the limits."""
        return self.model.forecast(state.inner, self._limit(state, X))

    def joint(self, state: WithinState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model there."""
        return self.model.joint(state.inner, self._limit(state, X))

    def learn(
        self, state: WithinState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Let the held model learn from the input within the limits, then widen them."""
        near = self._limit(state, x)
        self.model.learn(state.inner, near, y, elapsed, forecast)
        state.limited += np.isfinite(x) & (near != x) & np.isfinite(y).any()
        self._extend(state, x, y)

    def rescale(self, state: WithinState, units: Units) -> None:
        """Express the range in the new units too."""
        for place in (state.low, state.high, state.last):
            place[...] = np.where(state.count > 0, units.inputs(place), 0.0)
        self.model.rescale(state.inner, units)

    def check(self, state: WithinState) -> None:
        """Refuse a range that is not finite, or counts that are negative."""
        if not (np.isfinite(state.low).all() and np.isfinite(state.high).all() and np.isfinite(state.last).all()):
            raise ValueError("low, high and last must be finite")
        if (state.low > state.high).any():
            raise ValueError("low must not be above high")
        if (state.count < 0).any() or (state.limited < 0).any():
            raise ValueError("count and limited must not be negative")
        self.model.check(state.inner)

    def _limit(self, state: WithinState, X: np.ndarray) -> np.ndarray:
        """Inputs (D, or N×D) within the limits."""
        margin = self.margin * (state.high - state.low)
        known = (state.count >= _FIRST) & (state.high > state.low)
        return np.where(known, np.clip(X, state.low - margin, state.high + margin), X)

    def _extend(self, state: WithinState, x: np.ndarray, y: np.ndarray) -> None:
        """Widen the range by one more sample, if it has a target."""
        here = np.isfinite(x) & np.isfinite(y).any()
        first = here & (state.count == 0)
        near = self._limit(state, x)
        low = np.minimum(state.low, np.minimum(near, np.maximum(x, state.last)))
        high = np.maximum(state.high, np.maximum(near, np.minimum(x, state.last)))
        state.low[...] = np.where(first, x, np.where(here, low, state.low))
        state.high[...] = np.where(first, x, np.where(here, high, state.high))
        state.last[...] = np.where(here, x, state.last)
        state.count += here
