"""Targets and forecasts no farther out than there is reason to follow them, and no past that no longer applies."""

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
from driftgp.wrappers.holding import Holding, inner

# Until so many targets have come nobody knows how far they go.
_FIRST = 30
# A lone target so many times as far out as the reach is not learned from at all, if none of so many before it was.
_WILD, _CALM = 2.0, 1000
# Two such targets running whose errors differ by no more standard deviations than this tell of another level.
_ALIKE = 4.0
# A step back to within this share of the last one, after no more samples than this, was a spike and no level.
_BACK, _SOON = 0.25, 100
# An input that had one value for so many samples, and another one since the level jumped, is what made it jump.
_STEADY = 5
# However often it comes, a target counts as at most so many standard deviations: their squares stay finite.
_FARTHEST = 1e8
# Samples by which a model is judged once its errors are large, and from which it then starts anew.
SUSPECT = 20
# An error so many times as large as usual is large.
_LARGE = 10.0
# A model whose errors are so many times the spread of the targets themselves is of no use.
_USELESS = 2.0
# After a first error of so many times the usual size less is asked for: errors that stay four times as large as usual
# and are most of the spread, or that are four times the spread, however small they are.
_ABRUPT, _LASTING, _MOST = 50.0, 4.0, 0.6
# It starts anew at most so often among the last 1000 samples: into a stretch of nonsense, and out of it again.
_OFTEN = 2
# A row with a gap is part of no trial, unless the input has been missing for so many samples: the gap explains it.
_ABSENT = 100
# By this share the usual size of an error goes up or down with one error.
_PACE = 0.02
# The usual size of an error is no smaller than this, so that its square is a number.
_SMALLEST = 1e-140


class GuardedState(View):
    """Which targets lay far out, the samples since errors have become large, and the held model's state."""

    seen: int = whole()  # targets so far
    beyond: np.ndarray = wholes("P")  # side on which the last target lay beyond the limit: −1, 1, or 0 for neither
    error_beyond: np.ndarray = floats("P")  # its error, 0 for one within the limit
    guarded: np.ndarray = wholes("P")  # how often a target was learned from at the limit, or not at all
    last: int = whole()  # targets before the last wild one, 0 without
    moves: int = whole()  # how often the past was moved to another level
    step: np.ndarray = floats("P")  # by how much the last time
    moved: int = whole()  # targets before that
    returned: int = whole()  # targets before it was last moved back soon, 0 without
    span: Span = part(Span)  # of the targets that were believed, where they came
    x: np.ndarray = floats("D")  # the last inputs
    run: np.ndarray = wholes("D")  # samples for which each of them has had this value, 0 before the first
    run_before: np.ndarray = wholes("D")  # and had the one before
    absent: np.ndarray = wholes("D")  # samples for which each of them has been missing
    held: np.ndarray = wholes("P")  # absurd targets running, up to the last one; negative for those below
    first: int = whole()  # samples of those below that are the first of the stream, 0 once there were more
    X: np.ndarray = floats(SUSPECT, "D")  # the samples since then, or the first ones
    y: np.ndarray = floats(SUSPECT, "P")
    error: np.ndarray = floats(SUSPECT, "P")
    suspect: int = whole()  # how many of them there are
    usual: np.ndarray = floats("P")  # size of an error, 0 before the first
    restarts: int = whole()  # how often the model started anew
    anew: np.ndarray = wholes(_OFTEN)  # targets before the last times that it did, the latest first, 0 without
    inner: Any = part()

    @property
    def samples(self) -> int:
        """Targets so far, those of the warm-up included: a sample is in it once, or not at all."""
        return self.seen


@dataclass(frozen=True)
class Guarded(Holding):
    """Hold a model, and let it learn little from a lone wild target: as if it lay at a limit, or nothing.

        mean − reach · std  ≤  y  ≤  mean + reach · std

    with mean and standard deviation as the held model forecast them. One target 50 standard deviations off would spoil
    the forecasts of many rows; at six it costs a few. Twice as far out it is left out, unless another was so
    among the last 1000: a stream with many such targets is to have intervals that show it.

    An absurd target (`plausible`), such as a fill value of 10³⁷, is left out from the first row on. It counts once
    `plausible.confirming` targets in a row are absurd on the same side. Of the first 20 samples all are judged again
    when one comes: if another turns out to be absurd, or not to be, the held model starts again without it, or with it.

    A target that goes beyond the limit on the same side twice running is taken for real and counts in full. Where both
    are wild and their errors are alike, it is the level that has jumped: the past is moved there, and all that was
    learned about the inputs still applies (`Contract.move_level`). Where the level is soon back, it was a spike, and
    the past stays where it is for the next 1000 samples.

    Where an input that had not changed for five samples has done so in this one or the one before, it may be why a
    target is far out: a machine was switched off. Such a target moves no past, and counts in full if it is more than
    fifty standard deviations out, so that the model learns what the switch does.

    Where the past no longer applies, the held model starts anew: a sensor whose unit has changed, the calm after a
    stretch of nonsense. Two errors running of more than ten times the usual size begin a trial of 20 samples. If by the
    end of it the errors are large and worse than the median of these targets would have been,

        median |yᵢ − meanᵢ|  >  max( 10 · usual, 2 · median |yᵢ − median y| )

    or, where the first of them was more than fifty times the usual one,

        median |yᵢ − meanᵢ|  >  max( 4 · usual, 0.6 · median |yᵢ − median y| )   or   > 4 · median |yᵢ − median y|

    the held model starts from the 20 samples alone; not so where these targets are all the same, as those of a sensor
    that is stuck. It does so at most twice in 1000 samples. A stream that keeps switching, such as a machine that goes
    on and off, needs a model that knows both. Only errors of 1e8 times the median |yᵢ − median y| are a reason to do it
    more often, since sums of numbers that far apart have no digits left. The usual size is a median that moves by 2 %
    with each error. The errors of a trial are those of the model as it is, not of forecasts that were issued before it
    began to follow.

    No forecast is farther out than the targets give reason to (`plausible`). Where mean or median lie beyond

        [low − ℓ, high + ℓ]

    with ℓ = high − low the length of the range of the targets so far (10⁻³ of them where they are all the same), the
    whole law is drawn in towards the middle of that range until both are within: y becomes c + κ (y − c), with
    c = (low + high)/2. What holds of all targets, such as that they are not negative, holds of the law as before.

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
        candid: widen the intervals of the first rows (`plausible.least_std`). Before the first target every interval is
            (−∞, ∞). Up to the ninth the law is stretched around its median to what that few targets can tell
            (`predictions.Stretched`). For the model that answers a user: a wrapper around this one could make nothing
            of an infinite variance.
    """

    model: Model
    reach: float = 6.0
    candid: bool = False
    State: ClassVar[type[View]] = GuardedState

    def __post_init__(self) -> None:
        """Check the settings."""
        object.__setattr__(self, "reach", checks.between("reach", self.reach, 1.0, _FARTHEST))
        object.__setattr__(self, "candid", bool(self.candid))

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        return GuardedState.dtype(D=inputs, P=outputs, inner=self.model.record_dtype(inputs, outputs))

    def view(self, record: np.ndarray) -> GuardedState:
        """Its own fields, and those of the held model."""
        return GuardedState(record, inner=self.model.view(record["inner"]))

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of a forecast: how far it is stretched, and drawn in by κ and (1 − κ) c, and the held model's."""
        drawn = [(name, np.float64, (outputs,)) for name in ("stretch", "scale", "shift")]
        return forecasts.layout(outputs, *drawn, ("inner", self.model.forecast_dtype(outputs)))

    def law(self, made: np.ndarray) -> Prediction:
        """The held model's law, as it is where it is plausible."""
        held = self.model.law(made["inner"])
        if np.any(made["stretch"] != 1.0):
            wider = made["variance"] / (made["scale"] ** 2 * made["inner"]["variance"])
            held = Stretched(held, made["stretch"], wider)
        if np.all(made["scale"] == 1.0) and not np.any(made["shift"]):
            return held
        return held.scaled(made["scale"], made["shift"])

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
        """The factor of a held law's scores, and that of its variance, so that it is wide enough for what is known.

        Both are N×P: 1 from the tenth target on, and infinite before the first.
        """
        stretch = np.ones_like(held["mean"])
        if not self.candid or np.all(state.span.count > plausible.FEW):
            return stretch, stretch
        least = plausible.least_std(state.span)
        wider = np.maximum(1.0, least**2 / held["variance"])
        law = self.model.law(held)
        with np.errstate(invalid="ignore"):
            ends = (law.to_normal(law.from_normal(0.0) + side * 1.96 * least) for side in (-1.0, 1.0))
            far = np.max([np.where(np.isfinite(end), np.abs(end), 0.0) for end in ends], 0)  # beyond a bound nothing is
        return np.where(np.isinf(least), np.inf, np.maximum(1.0, far / 1.96)), wider

    def joint(self, state: GuardedState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model, stretched and drawn in at each point."""
        held = self.model.forecast(state.inner, X)
        factor = (self._drawn(state, held)[0] * np.sqrt(self._stretched(state, held)[1])).T  # P×N
        return factor[:, :, None] * self.model.joint(state.inner, X) * factor[:, None, :]

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
        known = self.model.forecast(state.inner, x[None]) if forecast is None else inner(forecast)
        assert known is not None  # noqa: S101 (a forecast has that part)
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
        now = known
        if forecast is not None and (state.suspect > 0 or side.any()):  # what was issued may be older than the model
            now = self.model.forecast(state.inner, x[None])
        moved = self._follow_level(state, y, side, now)
        near = self._near(state, y, known, side)
        self._count_range(state, y, near)
        self.model.learn(state.inner, x, near, elapsed, known)
        state.seen += complete
        if moved:
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
        """The targets (P), NaN for one that is absurd and that not enough others have confirmed."""
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

    def _follow_level(self, state: GuardedState, y: np.ndarray, side: np.ndarray, now: np.ndarray) -> bool:
        """Move the past to where two wild targets running say that the level is; whether they do."""
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
        """Whether a step (P) leads back to where the level was before it last moved, soon after that."""
        soon = state.moves > 0 and state.seen - state.moved <= _SOON
        return soon & (np.abs(step + state.step) <= _BACK * np.abs(state.step))

    def _near(self, state: GuardedState, y: np.ndarray, known: np.ndarray, side: np.ndarray) -> np.ndarray:
        """The targets as the held model is to see them, P."""
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
        """Whether an input that had not changed for some samples has another value in this one, or since the last."""
        return bool(np.any((state.run <= 2) & (state.run_before >= _STEADY)))

    def _count_range(self, state: GuardedState, y: np.ndarray, near: np.ndarray) -> None:
        """Widen the range by a target as the held model sees it, but by no more than the target itself would."""
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
        """Note an error, and start anew where the last ones were too large to go on."""
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
            useless &= spread > 0.0  # a sensor that is stuck tells of no new world
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
        """Refuse sides that are none, and counts that are negative."""
        if not np.isin(state.beyond, (-1, 0, 1)).all():
            raise ValueError("beyond must be -1, 0 or 1")
        counts = (state.seen, state.last, state.moves, state.moved, state.returned, state.restarts)
        if min(*counts, state.guarded.min(), state.anew.min()) < 0:
            raise ValueError("seen, guarded, last, moves, moved, returned, restarts and anew must not be negative")
        runs = np.concatenate([state.run, state.run_before, state.absent])
        if runs.min(initial=0) < 0 or not np.isfinite(state.x).all():
            raise ValueError("run, run_before and absent must not be negative, and x must be finite")
        plausible.check(state.span)
        if not (0 <= state.suspect < SUSPECT and 0 <= state.first <= min(SUSPECT, state.seen)):
            raise ValueError(f"suspect and first must lie in [0, {SUSPECT}]; got {state.suspect} and {state.first}")
        if np.isinf(state.X).any() or not np.all(np.abs([state.y, state.error]) <= LARGEST):
            raise ValueError("X, y and error must be finite, but for gaps in X")
        if not np.all(np.abs([state.error_beyond, state.step]) <= LARGEST):
            raise ValueError(f"error_beyond and step must be finite; got {state.error_beyond} and {state.step}")
        if not np.all((state.usual >= 0.0) & (state.usual <= LARGEST)):
            raise ValueError(f"usual must be finite and not negative; got {state.usual}")
        self.model.check(state.inner)
