"""Limits for inputs far outside their earlier range."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.base import checks
from driftgp.contract.protocol import LARGEST
from driftgp.contract.records import View, floats, part, whole, wholes
from driftgp.models.model import Model, Units
from driftgp.wrappers.holding import Transparent

# Before this number of values, the range of an input is unknown.
_FIRST = 10
# A model has a record once it has hit so many targets running, up to this share of the spread of so many targets.
_RECORD, _SHARE, _SPREAD = 50, 0.01, 500
# Once it has followed in vain, it has to hit so many more.
_DOUBT = 200
# No square is larger, whatever the units become.
_MOST = 1e120


class WithinState(View):
    """The range of each input so far, zeros before the first, and the held model's state."""

    low: np.ndarray = floats("D")
    high: np.ndarray = floats("D")
    last: np.ndarray = floats("D")  # as it came
    count: np.ndarray = wholes("D")
    limited: np.ndarray = wholes("D")  # how often an input that was learned from lay beyond the limits
    follow: int = whole(low=-1, high=1)  # whether inputs are seen as they are: 1, −1 for no, 0 where the record decides
    judged: int = whole()  # targets so far
    hits: int = whole(low=-_DOUBT)  # targets running that were hit, negative while a doubt lasts
    mean: np.ndarray = floats("P")  # of the targets of late
    variance: np.ndarray = floats("P", low=0.0)
    inner: Any = part()


@dataclass(frozen=True)
class Within(Transparent):
    """Hold a model, and limit its inputs to their range so far, plus a margin.

        low − margin · (high − low)  ≤  x  ≤  high + margin · (high − low)

    The cause may be a faulty meter or a wrong unit. With a linear kernel such an input would give a wild forecast and a
    wrong slope, which is forgotten slowly. The limits follow a lasting change. If an input is beyond the limit twice in
    succession, the range reaches there at once; a single such input widens the range up to the limit. Of a row with an
    input farther beyond the limit than the range is long, the held model does not learn the target: at the limit it
    would learn a wrong law. An input that never changed has no range, and its first other value is not limited.

    A model that has hit 50 targets running, up to 1 % of their spread, has found a law, and sees inputs as they are. So
    does any other once a target has shown that it follows such an input (`Contract.follow_inputs`). Both end with a
    target that is nearer to the forecast at the limit than to the one that followed its input; 250 hits open it again.

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

    def start(self, state: WithinState, X: np.ndarray, y: np.ndarray) -> None:
        """Find the range of the batch, and start the held model on it as it is."""
        for x, target in zip(X, y, strict=True):
            self._extend(state, x, target)
        self.model.start(state.inner, X, y)

    def learn(
        self, state: WithinState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Let the held model learn from the input within the limits, then widen them."""
        near = self._limit(state, x)
        beyond = np.isfinite(x) & (near != x)
        known = self.heard(state, x, forecast)
        vain = beyond.any() and self.follows_inputs(state) and not self._confirmed(state, known, near, y)
        if vain:
            state.follow = -1
        seen = self._seen(state, x)
        far = np.abs(x - seen) > state.high - state.low  # false where an input is missing, or seen as it is
        learned = np.full_like(y, np.nan) if vain or far.any() else y  # a wrong input says nothing of its target
        self.model.learn(state.inner, seen, learned, elapsed, None if vain else known)
        state.limited += beyond & (seen != x) & np.isfinite(y).any()
        self._extend(state, x, y)
        if not vain:
            self._note(state, y, known["mean"][0])
        if state.follow < 0:
            state.follow, state.hits = 0, -_DOUBT

    def _confirmed(self, state: WithinState, known: np.ndarray, near: np.ndarray, y: np.ndarray) -> bool:
        """Whether targets (P) are no farther from a forecast that followed its inputs than from one at the limit."""
        held = self.model.forecast(state.inner, near[None])
        here = np.isfinite(y)
        return bool(np.all(np.abs(y - known["mean"][0])[here] <= np.abs(y - held["mean"][0])[here]))

    def _note(self, state: WithinState, y: np.ndarray, mean: np.ndarray) -> None:
        """Count the hits, and the spread of the targets (P), if they are all there."""
        if not (np.isfinite(y).all() and np.isfinite(mean).all()):
            return
        state.judged += 1
        y, mean = np.clip(y, -LARGEST, LARGEST), np.clip(mean, -LARGEST, LARGEST)
        step = y - state.mean
        gain = 1.0 / min(state.judged, _SPREAD)
        state.mean += gain * step
        state.variance[...] = (1.0 - gain) * (state.variance + gain * step**2)
        hit = bool(np.all((y - mean) ** 2 < _SHARE**2 * state.variance))
        state.hits = state.hits + 1 if hit else min(state.hits, 0)

    def follows_inputs(self, state: WithinState) -> bool:
        """Whether inputs are seen as they are."""
        return state.follow == 1 or (state.follow == 0 and state.hits >= _RECORD)

    def follow_inputs(self, state: WithinState, how: int) -> int | None:
        """Follow inputs beyond the limits, or not, or let the record decide."""
        before, state.follow = state.follow, how
        return before

    def rescale(self, state: WithinState, units: Units) -> None:
        """Express the range in the new units too."""
        for place in (state.low, state.high, state.last):
            place[...] = np.where(state.count > 0, units.inputs(place), 0.0)
        here = state.judged > 0
        state.mean[...] = np.where(here, units.targets(state.mean), 0.0)
        state.variance[...] = np.minimum(state.variance / units.y_scale**2, _MOST)
        self.model.rescale(state.inner, units)

    def check(self, state: WithinState) -> None:
        """Refuse a range whose ends are in the wrong order, and more hits than targets."""
        super().check(state)
        if (state.low > state.high).any():
            raise ValueError("low must not be above high")
        if state.hits > state.judged:
            raise ValueError(f"hits must be at most judged; got {state.hits} and {state.judged}")

    def _seen(self, state: WithinState, X: np.ndarray) -> np.ndarray:
        """Inputs (D, or N×D) as the held model sees them."""
        return X if self.follows_inputs(state) else self._limit(state, X)

    def _limit(self, state: WithinState, X: np.ndarray) -> np.ndarray:
        """Inputs (D, or N×D) within the limits."""
        margin = self.margin * (state.high - state.low)
        known = (state.count >= _FIRST) & (state.high > state.low)
        return np.where(known, np.clip(X, state.low - margin, state.high + margin), X)

    def _extend(self, state: WithinState, x: np.ndarray, y: np.ndarray) -> None:
        """Widen the range by one more sample, if it has a target."""
        here = np.isfinite(x) & np.isfinite(y).any()
        first = here & (state.count == 0)
        near = self._seen(state, x)
        low = np.minimum(state.low, np.minimum(near, np.maximum(x, state.last)))
        high = np.maximum(state.high, np.maximum(near, np.minimum(x, state.last)))
        state.low[...] = np.where(first, x, np.where(here, low, state.low))
        state.high[...] = np.where(first, x, np.where(here, high, state.high))
        state.last[...] = np.where(here, x, state.last)
        state.count += here
