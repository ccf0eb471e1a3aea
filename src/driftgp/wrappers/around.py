"""A model around a forecast from elsewhere, which is one of the inputs."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.base import checks
from driftgp.contract import forecasts
from driftgp.contract.protocol import FARTHEST
from driftgp.contract.records import View, number, part
from driftgp.models.model import Model, Units
from driftgp.wrappers.holding import Transparent


class AroundState(View):
    """What the forecast is in the present units, and the held model's state."""

    offset: float = number(low=-FARTHEST, high=FARTHEST)
    slope: float = number(low=-FARTHEST, high=FARTHEST)  # 0 before the units are known; it then counts as 1
    inner: Any = part()


@dataclass(frozen=True)
class Around(Transparent):
    """Hold a model that learns what is left of the target when a forecast b, one of the inputs, is subtracted.

        y ≈ b + f(x)

    Before anything is learned f = 0, so forecasts begin at b. Later f learns the systematic errors of b. In a stream
    whose units change, b = offset + slope · x_column follows the units of the input and those of the target.

    >>> from driftgp.members import Lagged
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = Around(Lagged(), column=1)
    >>> state = model.init(X[:30], X[:30, 1] + 0.5)
    >>> bool(abs(model.predict(state, X[30:31]).mean[0] - X[30, 1] - 0.5) < 0.1)
    True

    Args:
        model: any model with a normal prediction.
        column: index of the input that is the forecast.
        reach: how far from 0 the forecast may be, in the model's units. A forecast farther out is brought to that
            distance, so that y − b stays near the targets.
    """

    model: Model
    column: int
    reach: float = FARTHEST
    State: ClassVar[type[View]] = AroundState

    def __post_init__(self) -> None:
        """Check the settings."""
        object.__setattr__(self, "column", checks.whole("column", self.column, 0))
        object.__setattr__(self, "reach", checks.between("reach", self.reach, 0.0, FARTHEST))
        if not self.model.normal:
            raise ValueError(f"model must predict a normal distribution; {type(self.model).__name__} does not")

    @property
    def fills_gaps(self) -> bool:
        """False: the forecast must be there."""
        return False

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse a column that is not there, and several outputs."""
        if self.column >= inputs:
            raise ValueError(f"column must name one of the {inputs} inputs; got {self.column}")
        if outputs != 1:
            raise ValueError(f"column holds the forecast of one target; got {outputs} outputs")
        self.model.accept(inputs, outputs, rows)

    def expect_units(self, state: AroundState, units: Units) -> None:
        """Know the forecast in these units."""
        self._change(state, units)
        self.model.expect_units(state.inner, _of_the_rest(units))

    def start(self, state: AroundState, X: np.ndarray, y: np.ndarray) -> None:
        """Start the held model on what is left."""
        state.slope = state.slope or 1.0
        self.model.start(state.inner, X, y - self._forecast(state, X))

    def forecast(self, state: AroundState, X: np.ndarray) -> np.ndarray:
        """The held model's, moved by the forecast."""
        return _moved(self.model.forecast(state.inner, X), self._forecast(state, X))

    def learn(
        self, state: AroundState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Let the held model learn from what is left."""
        known = self._forecast(state, x[None])
        held = None if forecast is None else _moved(forecast.copy(), -known)
        self.model.learn(state.inner, x, y - known[0], elapsed, held)

    def rescale(self, state: AroundState, units: Units) -> None:
        """The forecast and the rest in other units."""
        self._change(state, units)
        self.model.rescale(state.inner, _of_the_rest(units))

    def _forecast(self, state: AroundState, X: np.ndarray) -> np.ndarray:
        """b at the rows of X, N×1."""
        return np.clip(state.offset + state.slope * X[:, [self.column]], -self.reach, self.reach)

    def _change(self, state: AroundState, units: Units) -> None:
        """b = o + s x with x = u + a x' and b = c + k b' is b' = (o + s u − c)/k + (s a/k) x'."""
        slope, scale = state.slope or 1.0, units.y_scale[0]
        offset = (state.offset + slope * units.x_centre[self.column] - units.y_centre[0]) / scale
        state.offset = np.clip(offset, -FARTHEST, FARTHEST)
        state.slope = np.clip(slope * units.x_scale[self.column] / scale, -FARTHEST, FARTHEST)


def _moved(made: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Forecasts with every voice moved by a step, N×1."""
    said = forecasts.voices(made)
    said[:, :, 0] += step[:, None]
    return forecasts.put_voices(made, said)


def _of_the_rest(units: Units) -> Units:
    """Units of y − b: the centre of both is the same."""
    return units._replace(y_centre=np.zeros_like(units.y_centre))
