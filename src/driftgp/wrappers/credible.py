"""One input that counts as missing where it is not credible."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.base import checks
from driftgp.contract.records import View, part, whole
from driftgp.models import plausible
from driftgp.models.model import Model, Units
from driftgp.models.plausible import Span
from driftgp.wrappers.holding import Transparent

# Values far out in this many successive rows are believed: the level has changed.
_LASTING = 3


class CredibleState(View):
    """The range of the believed values, how many of the last values were not believed, and the held model's state."""

    span: Span = part(Span)
    doubts: int = whole()
    inner: Any = part()


@dataclass(frozen=True)
class Credible(Transparent):
    """Hold a model that fills gaps, and let one input be a gap where it is far outside its own recent range.

    A model around a forecast from elsewhere depends much on that forecast. A single wrong value of it, a 0 or a 999999,
    must not decide a row. The range [low − ℓ, high + ℓ] is that of `plausible`, with ℓ = high − low. It is known once
    ten values have come. A value beyond it is believed if the two before it were beyond it too.

    >>> from driftgp import AGP
    >>> from driftgp.wrappers import Gaps
    >>> X = np.sin(np.arange(40.0))[:, None]
    >>> model = Credible(Gaps(AGP(inducing=3, window=40)), column=0)
    >>> state = model.init(X, X[:, 0])
    >>> model.predict(state, [[1e6]]).mean == model.predict(state, [[np.nan]]).mean
    array([ True])

    Args:
        model: a model that takes inputs that are NaN.
        column: index of the input.
    """

    model: Model
    column: int
    State: ClassVar[type[View]] = CredibleState

    def __post_init__(self) -> None:
        """Check the settings."""
        object.__setattr__(self, "column", checks.whole("column", self.column, 0))
        if not self.model.fills_gaps:
            raise ValueError(f"model must take inputs that are NaN; {type(self.model).__name__} does not")

    def sizes(self, inputs: int, outputs: int) -> dict[str, int]:  # noqa: ARG002
        """One column has a range."""
        return {"P": 1}

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse a column that is not there."""
        if self.column >= inputs:
            raise ValueError(f"column must name one of the {inputs} inputs; got {self.column}")
        self.model.accept(inputs, outputs, rows)

    def start(self, state: CredibleState, X: np.ndarray, y: np.ndarray) -> None:
        """Walk through the batch, then start the held model on the believed values."""
        X = X.copy()
        for i in range(len(X)):
            x, X[i] = X[i].copy(), self._seen(state, X[i : i + 1])[0]
            self._count(state, x[self.column])
        self.model.start(state.inner, X, y)

    def learn(
        self, state: CredibleState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Let the held model learn from the believed values, then count the value."""
        self.model.learn(state.inner, self._seen(state, x[None])[0], y, elapsed, forecast)
        self._count(state, x[self.column])

    def rescale(self, state: CredibleState, units: Units) -> None:
        """Express the range in the new units too."""
        own = [self.column]
        plausible.rescale(state.span, units._replace(y_centre=units.x_centre[own], y_scale=units.x_scale[own]))
        self.model.rescale(state.inner, units)

    def _seen(self, state: CredibleState, X: np.ndarray) -> np.ndarray:
        """Rows N×D with NaN for a value that is not believed."""
        X = X.copy()
        if state.doubts + 1 < _LASTING:
            X[self._far(state, X[:, self.column]), self.column] = np.nan
        return X

    @staticmethod
    def _far(state: CredibleState, values: np.ndarray) -> np.ndarray:
        limits = plausible.limits(state.span)
        far: np.ndarray = (values < limits.low) | (values > limits.high)
        return far

    def _count(self, state: CredibleState, value: float) -> None:
        """Count one more value; a gap changes nothing."""
        if not np.isfinite(value):
            return
        state.doubts = state.doubts + 1 if self._far(state, np.array([value]))[0] else 0
        if state.doubts == 0 or state.doubts >= _LASTING:
            plausible.count(state.span, np.array([value]))
