"""Predictions that stay within the bounds of the targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp import checks, forecasts
from driftgp.model import Model, Units
from driftgp.predictions import Bounded as BoundedLaw
from driftgp.predictions import bounded
from driftgp.records import View, floats, part, wholes
from driftgp.wrappers.holding import Holding, inner

Bounds = float | None | Sequence[float | None]


class BoundedState(View):
    """How often a target lay outside, the bounds in the present units (0 where there is none), and the held state."""

    outside: np.ndarray = wholes("P")
    low: np.ndarray = floats("P")
    high: np.ndarray = floats("P")
    slack: np.ndarray = floats("P")
    inner: Any = part()


@dataclass(frozen=True)
class Bounded(Holding):
    """Hold a model and restrict its predictive distribution to [low − slack, high + slack].

        G(y) = (1 − leak) T(y) + leak F(y)

    F is the held model's law and T that law given that the target is inside. Predictions are `predictions.Bounded`:
    their intervals, quantiles and density are those of G, those of the held model are in `law.model`. What the held
    model learns is not changed.

    With a leak the bounds are a guess: the share `leak` of the law stays as it was, and once a target has come that
    lies outside, the bounds of that output do not count any more. Without a leak they are certain, and a target
    outside them has the density 0.

    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> rain = np.maximum(np.sin(30 * X[:, 0]), 0.0)
    >>> model = Bounded(AGP(inducing=6, window=40), low=0.0)
    >>> prediction = model.predict(model.init(X, rain), X[:5])
    >>> bool((prediction.interval(0.95)[0] >= 0.0).all()), bool((prediction.law.model.interval(0.95)[0] < 0.0).all())
    (True, True)

    Args:
        model: any model.
        low: least target, one number or one per output; None where there is none.
        high: largest target, likewise.
        slack: how far beyond a bound the law reaches; half a unit for counts. Values that are reported there are
            brought to the bound.
        leak: share of the law that is not restricted, in [0, 1).
    """

    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    slack: tuple[float, ...]
    leak: tuple[float, ...]
    State: ClassVar[type[View]] = BoundedState
    normal: ClassVar[bool] = False

    def __init__(
        self,
        model: Model,
        low: Bounds = 0.0,
        high: Bounds = None,
        slack: float | Sequence[float] = 0.0,
        leak: float | Sequence[float] = 0.0,
    ) -> None:
        """Take the settings: see the class."""
        settings: dict[str, Any] = {
            "model": model,
            "low": _checked("low", low),
            "high": _checked("high", high),
            "slack": checks.all_between("slack", slack, 0.0, np.inf, open_low=False),
            "leak": checks.all_between("leak", leak, 0.0, 1.0 - 1e-9, open_low=False),
        }
        for name, value in settings.items():
            object.__setattr__(self, name, value)
        counts = {name: len(settings[name]) for name in ("low", "high", "slack", "leak")}
        if len(set(counts.values()) - {1}) > 1:
            raise ValueError(f"low, high, slack and leak must have one number, or one per output each; got {counts}")
        lows, highs = self._bounds(max(counts.values()))
        if not np.all(lows < highs):
            raise ValueError(f"low must be below high; got low = {low!r} and high = {high!r}")

    # ---- records -----------------------------------------------------------------------------------------------------

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        return BoundedState.dtype(P=outputs, inner=self.model.record_dtype(inputs, outputs))

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of a forecast: the bounds that count (infinite where none does), and the held model's forecast."""
        bounds = [(name, np.float64, (outputs,)) for name in ("low", "high", "slack")]
        return forecasts.layout(outputs, *bounds, ("inner", self.model.forecast_dtype(outputs)))

    def law(self, made: np.ndarray) -> BoundedLaw:
        """The held model's law, restricted."""
        return BoundedLaw(
            self.model.law(made["inner"]), made["low"], made["high"], made["slack"], np.asarray(self.leak)
        )

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse bounds for another number of outputs."""
        for name in ("low", "high", "slack", "leak"):
            given = len(getattr(self, name))
            if given not in (1, outputs):
                raise ValueError(f"{name} must have one number, or one for each of {outputs} outputs; got {given}")
        self.model.accept(inputs, outputs, rows)

    def check(self, state: BoundedState) -> None:
        """Refuse counts that are negative, and bounds that are none."""
        if (state.outside < 0).any():
            raise ValueError("outside must not be negative")
        for name in ("low", "high", "slack"):
            if not np.isfinite(getattr(state, name)).all():
                raise ValueError(f"{name} must be finite")
        if (state.slack < 0.0).any():
            raise ValueError("slack must not be negative")
        self.model.check(state.inner)

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, state: BoundedState, X: np.ndarray, y: np.ndarray) -> None:
        """Count what lies outside, and start the held model."""
        low, high = self._bounds(y.shape[1])
        state.low[...], state.high[...] = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
        state.slack[...] = self.slack
        self._count(state, y)
        self.model.start(state.inner, X, y)

    def forecast(self, state: BoundedState, X: np.ndarray) -> np.ndarray:
        """Forecast of the held model, restricted."""
        held = self.model.forecast(state.inner, X)
        low, high = self._in_force(state)
        mean, share = bounded.moments(held["mean"], np.sqrt(held["variance"]), low, high, state.slack)
        made = forecasts.records(self.forecast_dtype(len(low)), mean, share * held["variance"], share * held["noise"])
        made["low"], made["high"], made["slack"], made["inner"] = low, high, state.slack, held
        return made

    def joint(self, state: BoundedState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model, each point narrowed as its variance is: the correlations stay."""
        held = self.model.forecast(state.inner, X)
        std = np.sqrt(held["variance"])
        _, share = bounded.moments(held["mean"], std, *self._in_force(state), state.slack)  # N×P
        root = np.sqrt(share).T
        return root[:, :, None] * self.model.joint(state.inner, X) * root[:, None, :]

    def learn(
        self, state: BoundedState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Let the held model learn, and count the target if it lies outside."""
        self.model.learn(state.inner, x, y, elapsed, inner(forecast))
        self._count(state, y[None])

    def rescale(self, state: BoundedState, units: Units) -> None:
        """Express the bounds in the new units too."""
        low, high = self._bounds(len(state.low))
        state.low[...] = np.where(np.isfinite(low), units.targets(state.low), 0.0)
        state.high[...] = np.where(np.isfinite(high), units.targets(state.high), 0.0)
        state.slack /= units.y_scale
        self.model.rescale(state.inner, units)

    # ---- bounds ------------------------------------------------------------------------------------------------------

    def _bounds(self, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """The settings low and high, infinite where there is none, P each."""
        low = [-np.inf if bound is None else bound for bound in self.low]
        high = [np.inf if bound is None else bound for bound in self.high]
        return np.broadcast_to(low, outputs), np.broadcast_to(high, outputs)

    def _now(self, state: BoundedState) -> tuple[np.ndarray, np.ndarray]:
        """Low and high in the present units, infinite where there is none, P each."""
        low, high = self._bounds(len(state.low))
        return np.where(np.isfinite(low), state.low, low), np.where(np.isfinite(high), state.high, high)

    def _in_force(self, state: BoundedState) -> tuple[np.ndarray, np.ndarray]:
        """Low and high as they count, P each: not where a target has shown that a guess was wrong."""
        low, high = self._now(state)
        wrong = (np.asarray(self.leak) > 0.0) & (state.outside > 0)
        return np.where(wrong, -np.inf, low), np.where(wrong, np.inf, high)

    def _count(self, state: BoundedState, y: np.ndarray) -> None:
        """Count the targets of N×P that lie outside."""
        low, high = self._now(state)
        state.outside += ((y < low - state.slack) | (y > high + state.slack)).sum(0)


def _checked(name: str, value: Any) -> tuple[float | None, ...]:
    """One finite number or None, or several."""
    several = list(value) if isinstance(value, (tuple, list, np.ndarray)) and np.ndim(value) else [value]
    if not several:
        raise ValueError(f"{name} must be one number or None, or one per output; got {value!r}")
    return tuple(None if one is None else _finite(name, one, value) for one in several)


def _finite(name: str, one: Any, value: Any) -> float:
    number = checks.real(name, one)
    if number.ndim != 0 or not np.isfinite(number):
        raise ValueError(f"{name} must be finite numbers, or None where there is no bound; got {value!r}")
    return float(number)
