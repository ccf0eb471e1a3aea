"""Targets no farther out than a model has reason to follow them."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp import checks
from driftgp.model import Model
from driftgp.records import View, part, whole, wholes
from driftgp.wrappers.holding import Holding

# Until so many targets have come nobody knows how far they go.
_FIRST = 30
# However often it comes, a target counts as at most so many standard deviations: their squares stay finite.
_FARTHEST = 1e8


class GuardedState(View):
    """Which targets lay far out, and the held model's state."""

    seen: int = whole()  # targets so far
    beyond: np.ndarray = wholes("P")  # side on which the last target lay beyond the limit: −1, 1, or 0 for neither
    guarded: np.ndarray = wholes("P")  # how often a target was learned from at the limit
    inner: Any = part()


@dataclass(frozen=True)
class Guarded(Holding):
    """Hold a model, and let it learn from a lone wild target as if it lay at a limit.

        mean − reach · std  ≤  y  ≤  mean + reach · std

    with mean and standard deviation as the held model forecast them. One target 50 standard deviations off would spoil
    the forecasts of many rows; at six it costs a few. A target that goes beyond the limit on the same side twice
    running is taken for real and counts in full, so a jump of the level is followed one row later.

    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = Guarded(AGP(inducing=6, window=40))
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> wild = model.update(state, X[40], 1e9)
    >>> bool(abs(model.predict(wild, X[41:42]).mean[0]) < 3.0), wild.guarded.tolist()
    (True, [1])

    Args:
        model: any model; its forecasts say how far out a target is.
        reach: standard deviations beyond which a lone target is not believed.
    """

    model: Model
    reach: float = 6.0
    State: ClassVar[type[View]] = GuardedState

    def __post_init__(self) -> None:
        """Check the reach."""
        object.__setattr__(self, "reach", checks.between("reach", self.reach, 1.0, _FARTHEST))

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        return GuardedState.dtype(P=outputs, inner=self.model.record_dtype(inputs, outputs))

    def start(self, state: GuardedState, X: np.ndarray, y: np.ndarray) -> None:
        """Start the held model on the batch as it is."""
        state.seen = int(np.isfinite(y).all(1).sum())
        self.model.start(state.inner, X, y)

    def forecast(self, state: GuardedState, X: np.ndarray) -> np.ndarray:
        """Forecast of the held model."""
        return self.model.forecast(state.inner, X)

    def joint(self, state: GuardedState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model."""
        return self.model.joint(state.inner, X)

    def learn(
        self, state: GuardedState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Bring a lone wild target to the limit, then let the held model learn."""
        known = self.model.forecast(state.inner, x[None]) if forecast is None else forecast
        self.model.learn(state.inner, x, self._near(state, y, known), elapsed, known)
        state.seen += bool(np.isfinite(y).all())

    def check(self, state: GuardedState) -> None:
        """Refuse sides that are none, and counts that are negative."""
        if not np.isin(state.beyond, (-1, 0, 1)).all():
            raise ValueError("beyond must be -1, 0 or 1")
        if state.seen < 0 or (state.guarded < 0).any():
            raise ValueError("seen and guarded must not be negative")
        self.model.check(state.inner)

    def _near(self, state: GuardedState, y: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The target as the held model is to see it, P."""
        mean, std = known["mean"][0], np.sqrt(known["variance"][0])
        here = np.isfinite(y) & np.isfinite(mean) & np.isfinite(std) & (state.seen >= _FIRST)
        side = np.where(here & (np.abs(y - mean) > self.reach * std), np.sign(y - mean), 0.0).astype(int)
        lone = (side != 0) & (side != state.beyond)
        state.guarded += lone
        state.beyond[...] = np.where(np.isfinite(y), side, state.beyond)
        limit = np.where(lone, self.reach, _FARTHEST)
        return np.where(here, np.clip(y, mean - limit * std, mean + limit * std), y)
