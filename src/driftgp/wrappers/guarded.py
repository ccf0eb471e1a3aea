"""Limits for wild targets and forecasts, jumps of the level, and a new start when the past no longer applies."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftgp.base import checks
from driftgp.contract import forecasts
from driftgp.contract.protocol import LARGEST
from driftgp.contract.records import View, floats, part, whole, wholes
from driftgp.models import plausible
from driftgp.models.model import Model, Units
from driftgp.models.plausible import Span
from driftgp.predictions import Prediction, Stretched
from driftgp.wrappers.holding import Moved, moved, stretched

# Before this number of targets, their range is unknown.
_FIRST = 30
# A single target this many reaches out is not learned from, unless another one was among this many targets before it.
_WILD, _CALM = 2.0, 1000
# Two successive targets beyond the limit show a new level if their errors differ by at most this many deviations.
_ALIKE = 4.0
# A forecast explains a target beyond the limit if it leaves at most this share of the error.
_EXPLAINED = 0.25
# A step back of nearly the size of the last step (to within this share), after at most this many samples, shows a
# spike.
_BACK, _SOON = 0.25, 100
# An input with one value for this many samples, and another one since the level jumped, is the cause of the jump.
_STEADY = 5
# Even if wild targets repeat, one counts as at most this many standard deviations, so that squares stay finite.
_FARTHEST = 1e8
# Samples of a trial: the model is judged by them once its errors are large, and starts anew from them.
SUSPECT = 20
# An error this many times the usual size is large.
_LARGE = 10.0
# A model is useless if its errors are this many times the spread of the targets.
_USELESS = 2.0
# After a first error of this many times the usual size the conditions are weaker. Errors four times the usual size that
# are most of the spread are enough, or errors four times the spread.
_ABRUPT, _LASTING, _MOST = 50.0, 4.0, 0.6
# Largest number of new starts within 1000 samples: one at the beginning of bad data, and one at their end.
_OFTEN = 2
# A row with a gap belongs to no trial, since the gap explains its error; unless the input was missing for longer than
# this.
_ABSENT = 100
# Share by which one error moves the usual size of errors up or down.
_PACE = 0.02
# Least usual size of an error, so that its square is not 0.
_SMALLEST = 1e-140


class GuardedState(View):
    """Targets far out so far, the samples of a trial, and the held model's state."""

    seen: int = whole()  # targets so far
    beyond: np.ndarray = wholes(
        "P", low=-1, high=1
    )  # side on which the last target lay beyond the limit: −1, 1, or 0 for neither
    error_beyond: np.ndarray = floats(
        "P", low=-LARGEST, high=LARGEST
    )  # error of that target, 0 if it was within the limit
    guarded: np.ndarray = wholes("P")  # how often a target was learned from at the limit, or not at all
    last: int = whole()  # targets before the last wild one, 0 without
    moves: int = whole()  # how often the past was moved to another level
    step: np.ndarray = floats("P", low=-LARGEST, high=LARGEST)  # step of the last time
    moved: int = whole()  # targets before that
    returned: int = whole()  # targets before it was last moved back soon, 0 without
    span: Span = part(Span)  # range of the believed targets
    x: np.ndarray = floats("D")  # the last inputs
    run: np.ndarray = wholes("D")  # samples for which each of them has had this value, 0 before the first
    run_before: np.ndarray = wholes("D")  # and had the value before it
    absent: np.ndarray = wholes("D")  # samples for which each of them has been missing
    held: np.ndarray = wholes(
        "P", low=-np.inf
    )  # successive absurd targets up to the last one; negative if they lie below
    first: int = whole(high=SUSPECT)  # how many of these samples are the first of the stream, 0 once there were more
    X: np.ndarray = floats(SUSPECT, "D", checked=False)  # the samples of the trial, or the first samples
    y: np.ndarray = floats(SUSPECT, "P", low=-LARGEST, high=LARGEST)
    error: np.ndarray = floats(SUSPECT, "P", low=-LARGEST, high=LARGEST)
    suspect: int = whole(high=SUSPECT - 1)  # number of these samples
    usual: np.ndarray = floats("P", low=0.0, high=LARGEST)  # size of an error, 0 before the first
    restarts: int = whole()  # how often the model started anew
    anew: np.ndarray = wholes(_OFTEN)  # number of targets at the last new starts, the latest first, 0 without
    inner: Any = part()

    @property
    def samples(self) -> int:
        """Targets so far, warm-up included. A sample is counted once, or not at all."""
        return self.seen


@dataclass(frozen=True)
class Guarded(Moved):
    """Hold a model, and limit what it learns from a single wild target: such a target counts as if it lay at a limit.

        mean − reach · std  ≤  y  ≤  mean + reach · std

    with mean and standard deviation from the held model's forecast. One target 50 standard deviations off would spoil
    the forecasts of many rows; at six it costs a few. A target beyond twice the limit is left out, unless another one
    was among the last 1000: a stream with many such targets needs wide intervals.

    An absurd target (`plausible`), such as a fill value of 10³⁷, is left out from the first row on. It counts once
    `plausible.confirming` successive targets are absurd on the same side. Each of the first 20 samples leads to a new
    judgement of all of them. If it changes which of them are absurd, the held model starts again from the others.

    The second of two successive targets beyond the limit on the same side counts in full. If their errors are alike,
    the level has jumped: the past is moved there, and all that was learned about the inputs still applies
    (`Contract.move_level`). If the level soon comes back, the jump was a spike, and the past is not moved again for the
    next 1000 samples.

    A target can be wild because an input is far beyond all before, and the held model sees it at a limit (`Within`), or
    because the model has followed such an input. The other forecast explains the target if it is within the reach and
    leaves at most a quarter of the error. The target then counts as it is, and the model follows such inputs from then
    on, or stops to.

    An input may be the reason for a wild target: a machine was switched off. That is assumed if the input changes in
    this sample or the one before, after five samples without a change. Such a target does not move the past. It counts
    in full if it is more than fifty standard deviations out, so that the model learns the effect of the switch.

    If the past no longer applies, the held model starts anew: the unit of a sensor has changed, or bad data have ended.
    Two successive errors of more than ten times the usual size begin a trial of 20 samples. At its end the errors are
    compared with the usual error and with the spread of these targets. If

        median |yᵢ − meanᵢ|  >  max( 10 · usual, 2 · median |yᵢ − median y| )

    or, after a first error of more than fifty times the usual size,

        median |yᵢ − meanᵢ|  >  max( 4 · usual, 0.6 · median |yᵢ − median y| )   or   > 4 · median |yᵢ − median y|

    the held model starts from the 20 samples alone. It does not if these targets are all the same, as those of a sensor
    that is stuck. It starts anew at most twice in 1000 samples: a stream that keeps switching, such as a machine that
    goes on and off, needs a model that knows both states. Only errors of 1e8 times the median |yᵢ − median y| allow
    more new starts, since sums of numbers that far apart lose all digits. The usual size is a median that moves by 2 %
    with each error. The errors of a trial are those of the present model, not of forecasts that were issued earlier.

    Forecasts stay within the limits of `plausible`. If mean or median lie beyond

        [low − ℓ, high + ℓ]

    the whole law is drawn in towards the middle c = (low + high)/2 until both are within: y becomes c + κ (y − c). Here
    ℓ = high − low is the length of the range of the targets so far, or 10⁻³ of their value if all are the same. If no
    target is negative, no value of the new law is.

    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = Guarded(AGP(inducing=6, window=40))
    >>> state = model.init(X[:40], np.sin(6 * X[:40, 0]))
    >>> wild = model.update(state, X[40], 1e9)
    >>> bool(abs(model.predict(wild, X[41:42]).mean[0]) < 3.0)
    True

    Args:
        model: any model; its forecasts say how far out a target is.
        reach: standard deviations beyond which a lone target is not believed.
        widen_first: widen the intervals of the first rows (`plausible.least_std`). Before the first target every
            interval is (−∞, ∞). Up to the ninth the law is stretched around its median, as wide as so few targets
            require (`predictions.Stretched`). Use it in the outermost wrapper only: a wrapper around this one could not
            work with an infinite variance.
    """

    model: Model
    reach: float = 6.0
    widen_first: bool = False
    State: ClassVar[type[View]] = GuardedState
    adds: ClassVar[tuple[str, ...]] = ("stretch", *Moved.adds)  # the factor of the stretch, κ and (1 − κ) c

    def __post_init__(self) -> None:
        """Check the settings."""
        object.__setattr__(self, "reach", checks.between("reach", self.reach, 1.0, _FARTHEST))
        object.__setattr__(self, "widen_first", bool(self.widen_first))

    def law(self, made: np.ndarray) -> Prediction:
        """The held model's law, as it is where it is plausible."""
        held = self.model.law(made["inner"])
        if np.any(made["stretch"] != 1.0):
            wider = made["variance"] / (made["scale"] ** 2 * made["inner"]["variance"])
            held = Stretched(held, made["stretch"], wider)
        return moved(held, made)

    def start(self, state: GuardedState, X: np.ndarray, y: np.ndarray) -> None:
        """Start the held model on the batch, without what is absurd."""
        state.seen = int(np.isfinite(y).all(1).sum())
        believed = np.where(plausible.absurd(y), np.nan, y)
        for x, target, near in zip(X, y, believed, strict=True):
            plausible.count(state.span, near)
            self._note_inputs(state, x, target)
        self.model.start(state.inner, X, believed)

    def forecast(self, state: GuardedState, X: np.ndarray) -> np.ndarray:
        """Forecast of the held model, drawn in where it is not plausible."""
        held = self.model.forecast(state.inner, X)
        (scale, shift), (stretch, wider) = self._drawn(state, held), self._stretched(state, held)
        made = forecasts.records(
            self.forecast_dtype(len(state.beyond)),
            scale * held["mean"] + shift,
            scale**2 * wider * held["variance"],
            scale**2 * wider * held["noise"],
        )
        made["stretch"], made["scale"], made["shift"], made["inner"] = stretch, scale, shift, held
        return made

    def _stretched(self, state: GuardedState, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The factors of a held law's scores and of its variance that make it wide enough for the number of targets.

        Both are N×P: 1 from the tenth target on, and infinite before the first.
        """
        stretch = np.ones_like(held["mean"])
        if not self.widen_first or np.all(state.span.count > plausible.FEW):
            return stretch, stretch
        least = plausible.least_std(state.span)
        wider = np.maximum(1.0, least**2 / held["variance"])
        law = self.model.law(held)
        with np.errstate(invalid="ignore"):
            ends = (law.to_normal(law.from_normal(0.0) + side * 1.96 * least) for side in (-1.0, 1.0))
            far = np.max([np.where(np.isfinite(end), np.abs(end), 0.0) for end in ends], 0)
            # no target is beyond a bound
        return np.where(np.isinf(least), np.inf, np.maximum(1.0, far / 1.96)), wider

    def joint(self, state: GuardedState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model, stretched and drawn in at each point."""
        held = self.model.forecast(state.inner, X)
        factor = self._drawn(state, held)[0] * np.sqrt(self._stretched(state, held)[1])
        return stretched(self.model.joint(state.inner, X), factor)

    def _drawn(self, state: GuardedState, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """κ and (1 − κ) c for forecasts of the held model, N×P each: 1 and 0 where they are plausible."""
        middle, reach = plausible.around(state.span)
        mean = np.abs(held["mean"] - middle)
        farthest = mean.copy()
        if np.any(mean + self.model.median_reach(held) > reach):
            farthest = np.maximum(mean, np.abs(self.model.law(held).from_normal(0.0) - middle))
        out = farthest > reach
        scale = np.where(out, reach / np.where(out, farthest, 1.0), 1.0)
        return scale, np.where(out, (1.0 - scale) * middle, 0.0)

    def learn(
        self, state: GuardedState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Bring a lone target to the limit, follow a jump of the level, let the held model learn, or start anew."""
        known = self.heard(state, x, forecast)
        self._note_inputs(state, x, y)
        complete = bool(np.isfinite(y).all())
        if complete and state.seen == state.first < SUSPECT and self._inputs_there(x):
            self._begin(state, x, y, elapsed, known)
            return
        if complete:
            state.first = 0
        given, sane = y, not np.any(plausible.far(state.span, y, first=False))
        y = self._believed(state, y)
        side = self._side(state, y, known)
        if side.any():
            known = self._explained(state, x, y, known)
            side = self._side(state, y, known)
        now = known
        if forecast is not None and (state.suspect > 0 or side.any()):
            # the issued forecast may be older than the model
            now = self.model.forecast(state.inner, x[None])
        jumped = self._follow_level(state, y, side, now)
        near = self._near(state, y, known, side)
        self._count_range(state, y, near)
        self.model.learn(state.inner, x, near, elapsed, known)
        state.seen += complete
        if jumped:
            state.suspect = 0
        elif complete and sane and self._inputs_there(x) and np.isfinite(now["mean"][0]).all():
            self._judge(state, x, given, now["mean"][0])

    # ---- absurd targets ----------------------------------------------------------------------------------------------

    def _begin(self, state: GuardedState, x: np.ndarray, y: np.ndarray, elapsed: float, known: np.ndarray) -> None:
        """Learn one of the first samples, and judge all of them again."""
        n = state.first
        state.X[n], state.y[n] = x, np.clip(y, -LARGEST, LARGEST)
        before, now = (plausible.absurd(state.y[:count]) for count in (n, n + 1))
        believed = np.where(now, np.nan, state.y[: n + 1])
        if np.array_equal(before, now[:n]):
            plausible.count(state.span, believed[n])
            self.model.learn(state.inner, x, believed[n], elapsed, known)
        else:
            state.inner.record[...] = np.zeros((), state.inner.record.dtype)
            state.span.record[...] = np.zeros((), state.span.record.dtype)
            state.usual[...] = 0.0
            self.model.start(state.inner, state.X[:0], state.y[:0])
            for i in range(n + 1):
                plausible.count(state.span, believed[i])
                self.model.learn(state.inner, state.X[i], believed[i], 1.0)
        state.seen, state.first = state.seen + 1, n + 1
        if not now.any() and np.isfinite(known["mean"][0]).all():
            self._judge(state, x, y, known["mean"][0])

    def _believed(self, state: GuardedState, y: np.ndarray) -> np.ndarray:
        """The targets (P), with NaN for an absurd one that not enough others have confirmed."""
        distance = plausible.far(state.span, y, first=state.seen < _FIRST)
        side = np.where(y > state.span.high, 1, -1)
        out = distance > 0.0
        running = np.where(np.sign(state.held) == side, state.held, 0) + side
        state.held[...] = np.where(np.isfinite(y), np.where(out, running, 0), state.held)
        return np.where(out & (np.abs(state.held) < plausible.confirming(distance)), np.nan, y)

    def _inputs_there(self, x: np.ndarray) -> bool:
        """Whether a sample can be judged by its inputs."""
        return self.fills_gaps or bool(np.isfinite(x).all())

    # ---- lone targets, and jumps of the level ------------------------------------------------------------------------

    def _side(self, state: GuardedState, y: np.ndarray, known: np.ndarray) -> np.ndarray:
        """On which side each target (P) lies beyond the limit: −1, 1, or 0 for neither."""
        mean, std = known["mean"][0], self.model.usual_std(known)[0]
        here = np.isfinite(y) & np.isfinite(mean) & np.isfinite(std) & (state.seen >= _FIRST)
        return np.where(here & (np.abs(y - mean) > self.reach * std), np.sign(y - mean), 0.0).astype(int)

    def _explained(self, state: GuardedState, x: np.ndarray, y: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return the forecast that follows far inputs, or that does not, if it explains the targets; else `known`."""
        here = np.isfinite(y)
        off = np.abs(y - known["mean"][0])[here]
        for how in (1, -1):
            before = self.model.follow_inputs(state.inner, how)
            if before is None:
                break
            other = self.model.forecast(state.inner, x[None])
            error, std = np.abs(y - other["mean"][0])[here], self.model.usual_std(other)[0][here]
            if np.all(error <= self.reach * std) and np.all(error <= _EXPLAINED * off):
                return other
            self.model.follow_inputs(state.inner, before)
        return known

    def _follow_level(self, state: GuardedState, y: np.ndarray, side: np.ndarray, now: np.ndarray) -> bool:
        """Move the past to the new level if two successive wild targets show one; return whether they do."""
        mean, std = now["mean"][0], self.model.usual_std(now)[0]
        error = np.where(side != 0, np.clip(y - mean, -LARGEST, LARGEST), 0.0)
        before = state.error_beyond.copy()
        wild = (side != 0) & (np.minimum(np.abs(error), np.abs(before)) > _WILD * self.reach * std)
        alike = wild & (side == state.beyond) & (np.abs(error - before) <= _ALIKE * std)
        state.error_beyond[...] = np.where(np.isfinite(y), np.where(alike, 0.0, error), before)
        step = np.where(alike, 0.5 * (error + before), 0.0)
        spiky = state.returned > 0 and state.seen - state.returned < _CALM
        if spiky or self._switched(state) or not alike.any():
            return False
        if self._is_back(state, step).all():
            state.returned = state.seen
        self.model.move_level(state.inner, step)
        state.step[...], state.moved = step, state.seen
        state.moves += 1
        return True

    def _is_back(self, state: GuardedState, step: np.ndarray) -> np.ndarray:
        """Whether a step (P) soon leads back to the level before the last move."""
        soon = state.moves > 0 and state.seen - state.moved <= _SOON
        return soon & (np.abs(step + state.step) <= _BACK * np.abs(state.step))

    def _near(self, state: GuardedState, y: np.ndarray, known: np.ndarray, side: np.ndarray) -> np.ndarray:
        """The targets within the limits, for the held model, P."""
        mean, std = known["mean"][0], self.model.usual_std(known)[0]
        switch = (np.abs(y - mean) > _ABRUPT * std) & self._switched(state)
        lone = (side != 0) & (side != state.beyond) & ~switch
        wild = lone & (np.abs(y - mean) > _WILD * self.reach * std)
        calm = state.last == 0 or state.seen - state.last >= _CALM
        back = self._is_back(state, y - mean)
        state.guarded += lone
        state.beyond[...] = np.where(np.isfinite(y), side, state.beyond)
        if wild.any():
            state.last = state.seen
        limit = np.where(lone, self.reach, _FARTHEST) * std
        near = np.where(side != 0, np.clip(y, mean - limit, mean + limit), y)
        return np.where(wild & (calm | back), np.nan, near)

    @staticmethod
    def _switched(state: GuardedState) -> bool:
        """Whether an input has a new value in this sample or the last one, after some samples without a change."""
        return bool(np.any((state.run <= 2) & (state.run_before >= _STEADY)))

    def _count_range(self, state: GuardedState, y: np.ndarray, near: np.ndarray) -> None:
        """Widen the range by a target as the held model sees it, but at most up to the target itself."""
        low, high = np.minimum(state.span.low, y), np.maximum(state.span.high, y)
        plausible.count(state.span, np.where(state.span.count > 0, np.clip(near, low, high), near))

    def _note_inputs(self, state: GuardedState, x: np.ndarray, y: np.ndarray) -> None:
        """Count for how long each input has had its value; a sample without all its targets counts for nothing."""
        here = np.isfinite(x) & np.isfinite(y).all()
        same = here & (x == state.x) & (state.run > 0)
        other = here & ~same
        state.run_before[...] = np.where(other, state.run, state.run_before)
        state.run[...] = np.where(other, 1, state.run + same)
        state.x[...] = np.where(here, x, state.x)
        if np.isfinite(y).all():
            state.absent[...] = np.where(np.isfinite(x), 0, state.absent + 1)

    # ---- a past that no longer applies -------------------------------------------------------------------------------

    def _judge(self, state: GuardedState, x: np.ndarray, y: np.ndarray, mean: np.ndarray) -> None:
        """Count an error, and start anew if the last errors were too large."""
        y = np.clip(y, -LARGEST, LARGEST)
        error = np.abs(np.clip(y - mean, -LARGEST, LARGEST))
        large = np.any(error > _LARGE * state.usual) and state.seen > _FIRST and not self._switched(state)
        pace = np.exp(max(_PACE, 1.0 / state.seen) * np.sign(error - state.usual))
        state.usual[...] = np.where(state.usual > 0.0, np.clip(state.usual * pace, _SMALLEST, LARGEST), error)
        if np.any(np.isnan(x) & (state.absent < _ABSENT)):
            return
        if state.suspect < 2 and not large:
            state.suspect = 0
            return
        state.X[state.suspect], state.y[state.suspect], state.error[state.suspect] = x, y, error
        state.suspect += 1
        if state.suspect == SUSPECT:
            state.suspect = 0
            spread = np.median(np.abs(state.y - np.median(state.y, 0)), 0)
            error, usual = np.median(state.error, 0), state.usual
            useless = error > np.maximum(_LARGE * usual, _USELESS * spread)
            lost = (error > np.maximum(_LASTING * usual, _MOST * spread)) | (error > _LASTING * spread)
            useless |= lost & (state.error[0] > _ABRUPT * usual)
            useless &= spread > 0.0  # equal targets come from a sensor that is stuck
            if state.anew[-1] > 0 and state.seen - state.anew[-1] < _CALM:
                useless &= error > _FARTHEST * spread
            if np.any(useless):
                self._start_anew(state)

    def _start_anew(self, state: GuardedState) -> None:
        """Forget all but the samples of the trial."""
        state.inner.record[...] = np.zeros((), state.inner.record.dtype)
        self.model.start(state.inner, state.X, state.y)
        state.beyond[...], state.error_beyond[...] = 0, 0.0
        state.anew[...] = [state.seen, *state.anew[:-1]]
        state.restarts += 1

    def rescale(self, state: GuardedState, units: Units) -> None:
        """The samples of the trial, or the first ones, in other units too; slots without one become zeros."""
        here = np.arange(SUSPECT)[:, None] < max(state.suspect, state.first)
        state.X[...] = np.where(here, units.inputs(state.X), 0.0)
        state.y[...] = np.where(here, units.targets(state.y), 0.0)
        state.error[...] = np.where(here, state.error / units.y_scale, 0.0)
        state.usual /= units.y_scale
        state.error_beyond /= units.y_scale
        state.step /= units.y_scale
        state.x[...] = np.where(state.run > 0, units.inputs(state.x), 0.0)
        plausible.rescale(state.span, units)
        self.model.rescale(state.inner, units)

    def check(self, state: GuardedState) -> None:
        """Refuse fields out of range, more first samples than there were, and inputs of a trial that are infinite."""
        super().check(state)
        if state.first > state.seen:
            raise ValueError(f"first must be at most seen; got {state.first} and {state.seen}")
        if np.isinf(state.X).any():
            raise ValueError("X must be finite, but for gaps")
