"""Linear regression on the inputs and the last known targets, at several rates of forgetting."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.base import checks
from driftgp.contract import forecasts
from driftgp.contract.records import View, floats, part, whole
from driftgp.contract.summary import memory, shares
from driftgp.gp.window import observed
from driftgp.members.heads import LARGEST, Heads, HeadsState, packed_size
from driftgp.models.model import Model, Units


class LaggedState(View):
    """The last known targets, and the regressions."""

    last: np.ndarray = floats("lags", "P", low=-LARGEST, high=LARGEST)  # the latest first; zeros before there are any
    known: int = whole(high="lags")  # of them
    rows: int = whole()  # learned so far
    heads: HeadsState = part(HeadsState)


@dataclass(frozen=True, kw_only=True)
class Lagged(Model):
    """y ≈ w_0 + wᵀx + Σ_k a_k y_(k), with y_(k) the k-th last target that was known when the forecast was made.

    It has a voice for each rate of forgetting. With late labels, a regression learns from the targets that were known
    at its forecast, so its weights fit that distance. Forgetting counts rows with a target.

    >>> y = np.sin(np.arange(200) / 5.0)
    >>> X = np.zeros((200, 1))
    >>> model = Lagged()
    >>> state = model.init(X[:150], y[:150])
    >>> bool(abs(model.predict(state, X[150:151]).mean[0] - y[150]) < 0.05)
    True

    Args:
        lags: known targets among the features.
        forgetting: λ of each regression.
        ridge: variance of the noise over that of a weight. Below 1 the variance of a weight is no more than 1 where
            nothing is known, however large the noise turns out to be.
    """

    lags: int = 2
    forgetting: tuple[float, ...] = (0.998, 0.99)
    ridge: float = 1.0

    def __post_init__(self) -> None:
        """Check the settings."""
        object.__setattr__(self, "lags", checks.whole("lags", self.lags, 0))
        rates = checks.all_between("forgetting", self.forgetting, 0.5, 1.0)
        object.__setattr__(self, "forgetting", tuple(float(rate) for rate in rates))
        object.__setattr__(self, "ridge", checks.between("ridge", self.ridge, 0.0, np.inf))

    @property
    def heads(self) -> Heads:
        """The recursion of all regressions."""
        return Heads(self.forgetting, leak=True, unit=self.ridge < 1.0)

    @property
    def voices(self) -> int:
        """One for each rate of forgetting."""
        return len(self.forgetting)

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        F = 1 + inputs + self.lags * outputs
        return LaggedState.dtype(lags=self.lags, P=outputs, H=self.voices, F=F, B=1, packed=packed_size(F))

    def view(self, record: np.ndarray) -> LaggedState:
        """The fields of a state."""
        return LaggedState(record)

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of a forecast: the voices, and the targets that they knew."""
        known = ("last", np.float64, (self.lags, outputs))
        return forecasts.layout(outputs, *forecasts.more_voices(self.voices, outputs), known)

    def check(self, state: LaggedState) -> None:
        """Refuse fields out of range."""
        state.check()

    def facts(self, state: LaggedState) -> dict[str, Any]:
        """Its memories, and how much the forecast changes with each input: the mean |w| of the regressions."""
        D = state.heads.w.shape[1] - 1 - state.last.size
        slopes = np.abs(state.heads.w[:, 1 : 1 + D]).mean((0, 2))
        return {"memory": memory(self.forgetting), "relevance": shares(slopes)}

    def start(self, state: LaggedState, X: np.ndarray, y: np.ndarray) -> None:
        """Walk through the batch."""
        self.heads.start(state.heads, self.ridge, min(self.ridge, 1.0))
        for x, target in zip(X, y, strict=True):
            self.learn(state, x, target, 1.0)

    def forecast(self, state: LaggedState, X: np.ndarray) -> np.ndarray:
        """The voices' normal distributions."""
        said = self.heads.forecast(state.heads, self._features(state, X), self.ridge)
        made = forecasts.with_voices(self.forecast_dtype(state.last.shape[1]), said)
        made["last"] = state.last
        return made

    def joint(self, state: LaggedState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of new targets by the first voice."""
        return self.heads.joint(state.heads, self._features(state, X))

    def _features(self, state: LaggedState, X: np.ndarray) -> np.ndarray:
        last = np.broadcast_to(state.last.ravel(), (len(X), state.last.size))
        return np.concatenate([np.ones((len(X), 1)), X, last], 1)

    def learn(
        self,
        state: LaggedState,
        x: np.ndarray,
        y: np.ndarray,
        elapsed: float,  # noqa: ARG002
        forecast: np.ndarray | None = None,
    ) -> None:
        """Learn from the targets known at the forecast, then remember this target."""
        if observed(x, y):
            last = state.last if forecast is None else forecast["last"][0]
            phi = np.concatenate([[1.0], x, last.ravel()])
            self.heads.learn(state.heads, phi, y, self.ridge, state.rows)
            state.rows += 1
        if np.isfinite(y).all() and self.lags:
            state.last[1:] = state.last[:-1].copy()
            state.last[0] = y
            state.known = min(state.known + 1, self.lags)

    def rescale(self, state: LaggedState, units: Units) -> None:
        """Express the last targets and the weights in other units; before the first row nothing has to change."""
        here = (np.arange(self.lags) < state.known)[:, None]
        state.last[...] = np.where(here, units.targets(state.last), 0.0)
        if state.rows == 0:
            return
        u, a = (
            np.concatenate([of_x, np.tile(of_y, self.lags)])
            for of_x, of_y in ((units.x_centre, units.y_centre), (units.x_scale, units.y_scale))
        )
        self.heads.rescale(state.heads, u, a, self.ridge, units)
