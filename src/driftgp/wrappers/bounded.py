"""Predictions that stay within the bounds of the targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.base import checks
from driftgp.contract import forecasts
from driftgp.contract.records import View, floats, part, wholes
from driftgp.models.model import Model, Units
from driftgp.predictions import Restricted, Root, Rooted
from driftgp.predictions.restricted import restricted_moments
from driftgp.wrappers.holding import Holding, inner, stretched

Bounds = float | None | Sequence[float | None]
# For the gain γ of the mean: its forgetting per target, and its largest value. At the start γ is a half, with the
# weight of some fifty usual targets. An error counts as at most this many standard deviations.
_MEMORY, _LARGEST, _DOUBT, _FARTHEST = 0.9995, 3.0, 5.0, 6.0
# Roots are given up once targets below the bound make up this share of the size of recent targets; with this
# forgetting.
_NEGATIVE, _LATE = 0.1, 0.995
# Share of the way to each new target by which the level goes.
_PACE = 0.05
_PER_OUTPUT = ("low", "high", "slack", "leak", "root")


class BoundedState(View):
    """What is known of the bounds in the present units, of the roots, and the held state."""

    outside: np.ndarray = wholes("P")  # how often a target lay outside
    low: np.ndarray = floats("P")  # 0 without a bound
    high: np.ndarray = floats("P")
    slack: np.ndarray = floats("P", low=0.0)
    offset: np.ndarray = floats("P", low=0.0)  # c of the roots, 0 for targets as they are
    learned: np.ndarray = wholes("P")  # targets whose roots were learned
    level: np.ndarray = floats("P")  # of these targets
    size: np.ndarray = floats("P", low=0.0)  # recent mean of |y − low|
    deficit: np.ndarray = floats("P", low=0.0)  # and of max(low − y, 0)
    excess: np.ndarray = floats("P")  # sum of y − y(m) for the mean root m, in standard deviations
    curved: np.ndarray = floats("P", low=0.0)  # sum of E[y] − y(m), likewise
    lag_base: np.ndarray = floats("D")  # of the inputs that are earlier targets
    lag_offset: np.ndarray = floats("D", low=0.0)  # c of these, 0 for inputs as they are
    inner: Any = part()


@dataclass(frozen=True)
class Bounded(Holding):
    """Hold a model and restrict its predictive distribution to [low − slack, high + slack].

        G(y) = (1 − leak) T(y) + leak F(y)

    F is the held model's law and T that law given that the target is inside. Predictions are `predictions.Bounded`:
    their intervals, quantiles and density are those of G. Those of the held model are in `law.model`. What the held
    model learns is not changed.

    With `root` = c the held model sees t = √(y − low + c) − √c in place of y. Inputs that are earlier targets (the
    setting `lags`) become roots too. Large amounts and counts vary more than small ones; their roots vary alike. The
    law of y follows from that of t: it is wide for large y and narrow near the bound. Its mean is

        y(m) + γ (E[y] − y(m))

    with m the held model's mean and E[y] the mean of y if t has a normal law. γ in [0, 3] is learned, so that recent
    targets lie neither above nor below the mean. A target below the bound has a root too (`predictions.Root`). Once
    such targets make up a tenth of the size of all recent targets, the roots are given up: the held model starts anew,
    with targets as they are.

    With a leak the bounds are a guess. The share `leak` of the law stays as it was. Once a target is below `low` or
    above `high`, the bounds of that output no longer count. Without a leak they are certain, and a target outside the
    interval has the density 0.

    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> rain = np.maximum(np.sin(30 * X[:, 0]), 0.0)
    >>> model = Bounded(AGP(inducing=6, window=40), low=0.0)
    >>> prediction = model.predict(model.init(X, rain), X[:5])
    >>> bool((prediction.interval(0.95)[0] >= 0.0).all()), bool((prediction.law.model.interval(0.95)[0] < 0.0).all())
    (True, True)

    Args:
        model: any model.
        low: least target, one number or one per output; None without a bound.
        high: largest target, likewise.
        slack: how far beyond a bound the law reaches; half a unit for counts. Quantiles and samples there are brought
            to the bound.
        leak: share of the law that is not restricted, in [0, 1).
        root: c in units of the targets, a small share of their usual size, so that targets at the bound have a finite
            density; 0 for targets as they are.
        lags: indices of inputs that are earlier targets; with several outputs, pairs of an input and its output.
    """

    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    slack: tuple[float, ...]
    leak: tuple[float, ...]
    root: tuple[float, ...]
    lags: tuple[tuple[int, int], ...]  # of an input and an output each
    State: ClassVar[type[View]] = BoundedState
    # the bounds that count (infinite where none does), the root, and the gain
    adds: ClassVar[tuple[str, ...]] = ("low", "high", "slack", "base", "offset", "gain")
    normal: ClassVar[bool] = False

    def __init__(
        self,
        model: Model,
        low: Bounds = 0.0,
        high: Bounds = None,
        slack: float | Sequence[float] = 0.0,
        leak: float | Sequence[float] = 0.0,
        root: float | Sequence[float] = 0.0,
        lags: Sequence[int | Sequence[int]] = (),
    ) -> None:
        """Take the settings: see the class."""
        settings: dict[str, Any] = {
            "model": model,
            "low": _checked("low", low),
            "high": _checked("high", high),
            "slack": checks.all_between("slack", slack, 0.0, np.inf, open_low=False),
            "leak": checks.all_between("leak", leak, 0.0, 1.0 - 1e-9, open_low=False),
            "root": checks.all_between("root", root, 0.0, np.inf, open_low=False),
            "lags": tuple(_lag(lag) for lag in lags),
        }
        for name, value in settings.items():
            object.__setattr__(self, name, value)
        counts = {name: len(settings[name]) for name in _PER_OUTPUT}
        if len(set(counts.values()) - {1}) > 1:
            raise ValueError(f"{', '.join(counts)} must have one number, or one per output each; got {counts}")
        lows, highs = self._bounds(max(counts.values()))
        if not np.all(lows < highs):
            raise ValueError(f"low must be below high; got low = {low!r} and high = {high!r}")
        if np.any(np.isinf(lows) & (np.array(self.root) > 0.0)):
            raise ValueError(f"root must be 0 where there is no low bound; got root = {root!r} and low = {low!r}")

    # ---- records -----------------------------------------------------------------------------------------------------

    def law(self, made: np.ndarray) -> Restricted:
        """The held model's law, carried back from the roots and restricted."""
        held = self.model.law(made["inner"])
        if any(self.root):
            held = Rooted(held, made["base"], made["offset"], made["gain"])
        return Restricted(held, made["low"], made["high"], made["slack"], np.asarray(self.leak))

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse bounds for another number of outputs."""
        for name in _PER_OUTPUT:
            given = len(getattr(self, name))
            if given not in (1, outputs):
                raise ValueError(f"{name} must have one number, or one for each of {outputs} outputs; got {given}")
        for x, of in self.lags:
            if x >= inputs or of >= outputs:
                raise ValueError(
                    f"lags must be among {inputs} inputs, of {outputs} outputs; got input {x} of output {of}"
                )
        self.model.accept(inputs, outputs, rows)

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, state: BoundedState, X: np.ndarray, y: np.ndarray) -> None:
        """Count what lies outside, and start the held model."""
        low, high = self._bounds(y.shape[1])
        state.low[...], state.high[...] = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
        state.slack[...], state.offset[...] = self.slack, self.root
        for x, of in self.lags:
            state.lag_base[x], state.lag_offset[x] = state.low[of], state.offset[of]
        self._count(state, y)
        for target in y:
            self._note_size(state, target)
        self._drop_roots(state)
        self.model.start(state.inner, *self._seen(state, X, y))

    def forecast(self, state: BoundedState, X: np.ndarray) -> np.ndarray:
        """Forecast of the held model, carried back from the roots and restricted."""
        held = self.model.forecast(state.inner, self._seen_inputs(state, X))
        low, high = self._in_force(state)
        mean, share = self._restricted(state, held)
        made = forecasts.records(self.forecast_dtype(len(low)), mean, share * held["variance"], share * held["noise"])
        made["low"], made["high"], made["slack"], made["inner"] = low, high, state.slack, held
        made["base"], made["offset"], made["gain"] = *self._root(state), _gain(state)
        return made

    def joint(self, state: BoundedState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model, each point scaled as its variance is: the correlations stay."""
        seen = self._seen_inputs(state, X)
        _, share = self._restricted(state, self.model.forecast(state.inner, seen))  # N×P
        return stretched(self.model.joint(state.inner, seen), np.sqrt(share))

    def learn(
        self, state: BoundedState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Let the held model learn, note how the target lies to its mean, and count it if it lies outside."""
        known = inner(forecast)
        if any(self.root):
            if known is None or forecast is None or not np.array_equal(forecast["offset"][0], state.offset):
                known = self.model.forecast(state.inner, self._seen_inputs(state, x[None]))
            self._follow_gain(state, y, known)
            self._note_size(state, y)
            if self._drop_roots(state):
                known = None
                state.inner.record[...] = np.zeros((), state.inner.record.dtype)
                self.model.start(state.inner, np.zeros((0, len(x))), np.zeros((0, len(y))))
        self.model.learn(state.inner, *self._seen(state, x, y), elapsed, known)
        self._count(state, y[None])

    def rescale(self, state: BoundedState, units: Units) -> None:
        """Express the bounds in the new units too; roots grow with the root of a scale."""
        low, high = self._bounds(len(state.low))
        rooted, lagged = state.offset > 0.0, state.lag_offset > 0.0
        state.low[...] = np.where(np.isfinite(low), units.targets(state.low), 0.0)
        state.high[...] = np.where(np.isfinite(high), units.targets(state.high), 0.0)
        state.level[...] = np.where(state.learned > 0, units.targets(state.level), 0.0)
        for name in ("slack", "offset", "size", "deficit"):
            getattr(state, name)[...] /= units.y_scale
        state.lag_base[...] = np.where(lagged, units.inputs(state.lag_base), 0.0)
        state.lag_offset /= units.x_scale
        x_scale = np.where(lagged, np.sqrt(units.x_scale), units.x_scale)
        y_scale = np.where(rooted, np.sqrt(units.y_scale), units.y_scale)
        x_centre, y_centre = np.where(lagged, 0.0, units.x_centre), np.where(rooted, 0.0, units.y_centre)
        self.model.rescale(state.inner, Units(x_centre, x_scale, y_centre, y_scale))

    def move_level(self, state: BoundedState, step: np.ndarray) -> None:
        """Move the held model's past. Roots move as far as the root of a target at the present level."""
        root = self._root(state)
        moved = root.of(state.level + step) - root.of(state.level)
        self.model.move_level(state.inner, np.where(state.offset > 0.0, moved, step))
        state.level += np.where(state.learned > 0, step, 0.0)

    # ---- roots -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _root(state: BoundedState) -> Root:
        return Root(np.where(state.offset > 0.0, state.low, 0.0), state.offset)

    def _seen(self, state: BoundedState, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets as the held model sees them."""
        return self._seen_inputs(state, X), self._root(state).of(y) if any(self.root) else y

    def _seen_inputs(self, state: BoundedState, X: np.ndarray) -> np.ndarray:
        return Root(state.lag_base, state.lag_offset).of(X) if self.lags else X

    def _restricted(self, state: BoundedState, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean, and variance as a share of the held one, N×P each."""
        root = (self._root(state), _gain(state)) if any(self.root) else ()
        return restricted_moments(held["mean"], np.sqrt(held["variance"]), *self._in_force(state), state.slack, *root)

    def _follow_gain(self, state: BoundedState, y: np.ndarray, known: np.ndarray) -> None:
        """Learn γ: sum how far targets lie above the value of the mean root, and how far they should."""
        middle, above, spread = self._root(state).moments(known["mean"][0], known["variance"][0])
        std = np.sqrt(spread)
        here = np.isfinite(y) & np.isfinite(middle) & (state.offset > 0.0) & (std > 0.0) & np.isfinite(std)
        std = np.where(here, std, 1.0)
        error = np.clip(np.where(here, y - middle, 0.0) / std, -_FARTHEST, _FARTHEST)
        state.excess[...] = np.where(here, _MEMORY * state.excess + error, state.excess)
        state.curved[...] = np.where(here, _MEMORY * state.curved + above / std, state.curved)

    @staticmethod
    def _note_size(state: BoundedState, y: np.ndarray) -> None:
        """Follow the level and the size of the targets whose roots are learned."""
        here = np.isfinite(y) & (state.offset > 0.0)
        y = np.where(here, y, state.level)
        above = np.where(here, y - state.low, 0.0)
        pace, late = (np.where(state.learned > 0, share, 1.0) for share in (_PACE, 1.0 - _LATE))
        state.level += pace * (y - state.level)
        state.size += np.where(here, late * (np.abs(above) - state.size), 0.0)
        state.deficit += np.where(here, late * (np.maximum(-above, 0.0) - state.deficit), 0.0)
        state.learned += here

    def _drop_roots(self, state: BoundedState) -> bool:
        """Give up the roots of outputs whose targets have gone well below the bound; return whether there are any."""
        dropped = (state.offset > 0.0) & (state.deficit > _NEGATIVE * state.size)
        state.offset[dropped] = 0.0
        for x, of in self.lags:
            if dropped[of]:
                state.lag_base[x] = state.lag_offset[x] = 0.0
        return bool(dropped.any())

    # ---- bounds ------------------------------------------------------------------------------------------------------

    def _bounds(self, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """The settings low and high, infinite without a bound, P each."""
        low = [-np.inf if bound is None else bound for bound in self.low]
        high = [np.inf if bound is None else bound for bound in self.high]
        return np.broadcast_to(low, outputs), np.broadcast_to(high, outputs)

    def _now(self, state: BoundedState) -> tuple[np.ndarray, np.ndarray]:
        """Low and high in the present units, infinite without a bound, P each."""
        low, high = self._bounds(len(state.low))
        return np.where(np.isfinite(low), state.low, low), np.where(np.isfinite(high), state.high, high)

    def _in_force(self, state: BoundedState) -> tuple[np.ndarray, np.ndarray]:
        """The bounds that count, P each: a guessed bound no longer counts once a target was beyond it."""
        low, high = self._now(state)
        wrong = (np.asarray(self.leak) > 0.0) & (state.outside > 0)
        return np.where(wrong, -np.inf, low), np.where(wrong, np.inf, high)

    def _count(self, state: BoundedState, y: np.ndarray) -> None:
        """Count the targets of N×P that lie outside."""
        low, high = self._now(state)
        state.outside += ((y < low) | (y > high)).sum(0)


def _gain(state: BoundedState) -> np.ndarray:
    """γ of each output, P."""
    return np.clip((state.excess + 0.5 * _DOUBT) / (state.curved + _DOUBT), 0.0, _LARGEST)


def _lag(value: Any) -> tuple[int, int]:
    """An input and its output."""
    x, of = value if isinstance(value, (tuple, list)) and len(value) == 2 else (value, 0)
    return checks.whole("lags", x, 0), checks.whole("lags", of, 0)


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
