"""Several models at once, mixed by how well each has predicted recently."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from driftgp.base import checks
from driftgp.contract import forecasts
from driftgp.contract.records import View, floats, number, part
from driftgp.gp.window import Leaving, Windowed, WindowState, observed
from driftgp.models import plausible
from driftgp.models.model import Model, Units
from driftgp.models.plausible import Span
from driftgp.predictions import Limited, Mixture
from driftgp.predictions.normal import log_pdf
from driftgp.wrappers.holding import stretched

# Soft Bayes: how far one sample moves the weights, and the share of them that is given back to the prior each time.
_RATE, _SHARE = 0.4, 0.002
# The least weight of a voice, as a share of its prior weight. A voice whose forecasts are always wrong falls to it.
_GIVEN = _SHARE / (1.0 - (1.0 - _SHARE) * (1.0 - _RATE))
# Errors over which a twin learns the share of the last error that comes again, and its gain from correcting it.
_TWIN_MEMORY = 100.0
_TWIN_RATE = 1.0 - 1.0 / _TWIN_MEMORY
_CAUTION = 5.0  # uncorrelated errors that a twin is assumed to have seen at the start
# The stacked mean: forgetting of its regression, and its ridge in units of the mixture's squared error.
_STACK_RATE, _RIDGE = 0.998, 100.0
_HALFWAY = 0.5  # how far the mixture moves towards it
_LARGEST = 1e140  # errors count as no larger than this: sums of their squares stay finite
_LARGEST_SUM = 1e285  # which no such sum exceeds
_FARTHEST = 2.0  # and at most this many usual errors of the mixture
# Rows over which the stacked mean is judged, by the mean of log (its squared error / that of the mixture). Below the
# first of these two numbers it counts in full, above the second not at all.
_HARM_MEMORY, _HARMLESS, _HARMFUL = 50.0, 0.5, 0.7
_NO_ERROR = 1e-300
# A voice whose standard deviation is at most this share of the largest plausible one is sure of its mean; voices that
# have more than this share of the weights, and are sure of something beyond the limits, vote from there.
_SURE, _MAJORITY = 0.1, 0.5


class BankState(View):
    """The record of the members' forecasts, the windows that they share, and their states."""

    weights: np.ndarray = floats("V", low=0.0)  # the voices' shares in the mixture
    count: float = number(low=0.0, high=_TWIN_MEMORY)  # of errors
    last: np.ndarray = floats("C", "P", low=-_LARGEST_SUM, high=_LARGEST_SUM)  # known error of each corrected voice
    products: np.ndarray = floats("C", "P", low=-_LARGEST_SUM, high=_LARGEST_SUM)  # Σ λ^age of error · last
    squares: np.ndarray = floats("C", "P", low=0.0)  # and of last²
    own: np.ndarray = floats("C", "P", low=0.0)  # recent squared error without correction
    twin: np.ndarray = floats("C", "P", low=0.0)  # and with it
    A: np.ndarray = floats("P", "V", "V", low=-_LARGEST_SUM, high=_LARGEST_SUM)  # sums of the stacking regression
    b: np.ndarray = floats("P", "V", low=-_LARGEST_SUM, high=_LARGEST_SUM)
    error: np.ndarray = floats("P", low=0.0)  # recent squared error of the mixture
    stack: np.ndarray = floats("P", "V", low=-_LARGEST_SUM, high=_LARGEST_SUM)  # coefficients of the regression
    harm: np.ndarray = floats("P", low=-1.0, high=1.0)  # recent mean of log (squared error moved by it / not moved)
    span: Span = part(Span)  # of the targets

    def __init__(self, record: np.ndarray, models: tuple[Model, ...], shared: dict[int, int]) -> None:
        """Look at a record; `shared` says which windows there are: the size of each, and its number."""
        super().__init__(record)
        self.windows = {size: WindowState(record[f"window_{i}"]) for size, i in shared.items()}
        self.members = [self._member(record[f"member_{k}"], model) for k, model in enumerate(models)]

    def _member(self, record: np.ndarray, model: Model) -> Any:
        window = shared_window(model)
        if window is None:
            return model.view(record)
        assert isinstance(model, Windowed)  # noqa: S101 (only these share)
        return model.view_on(record, self.windows[window])

    @property
    def rho(self) -> np.ndarray:
        """Share of a voice's last error that its twin expects to come again, C×P in [0, 1]."""
        scale = self.squares + _CAUTION * self.own
        share: np.ndarray = np.clip(self.products / np.where(scale > 0.0, scale, 1.0), 0.0, 1.0)
        return share

    @property
    def trust(self) -> np.ndarray:
        """How far the mixture follows the stacked mean, P in [0, 1]."""
        share: np.ndarray = np.clip((_HARMFUL - self.harm) / (_HARMFUL - _HARMLESS), 0.0, 1.0)
        return share

    @property
    def ratio(self) -> np.ndarray:
        """A twin's recent squared error over that of its original, C×P, at most 1."""
        ratio: np.ndarray = np.clip(self.twin / np.where(self.own > 0.0, self.own, 1.0), 1e-3, 1.0)
        return np.where(self.own > 0.0, ratio, 1.0)


def shared_window(model: Model) -> int | None:
    """Size of the window that a member shares with others of that size; None if it shares none."""
    return model.window if isinstance(model, Windowed) else None


@dataclass(frozen=True)
class Bank(Model):
    """Hold several models of any kind and predict their mixture.

    Every voice k of every member (most have one) has a weight. Each sample moves weight to the voices under which it
    was likely (soft Bayes: Orseau, Lattimore, Legg 2017),

        w_k ← (1 − α) w_k (1 − η + η p_k/p̄) + α π_k,   p_k = N(y | m_k, s_k²),   p̄ = Σ w_k p_k,   η = 0.4

    with p_k the geometric mean over the outputs, which share the weights. The weight of a voice under which all samples
    are unlikely falls to α π_k / (1 − (1 − α)(1 − η)), so that it can come back. On exact targets even this small
    weight would cause most of the error. So in a forecast this part of the weights counts only as far as it does not
    double the variance of the rest. The mixture Σ w_k N(m_k, s_k²) is then moved halfway to a stacked mean. Its weights
    sum to 1, and follow from recursive ridge regression of y − m̄ on m_k − m̄. The mixture moves less far, or not at
    all, if stacking has made errors larger over the last 50 rows. It does so while targets become exact.

    A corrected voice has a twin, which adds a share ρ of the voice's last known error: m_k + ρ (y − m_k)_last. ρ in [0,
    1] follows from recursive least squares. The variance of the twin is smaller by the recent gain of this correction.
    If targets are autocorrelated and no lags are inputs, the twins get most of the weight.

    Forecasts stay within the limits of `plausible`. With ℓ the length of the recent range of the targets, mean and
    median lie in [low − ℓ, high + ℓ], and the standard deviation of a voice is at most ℓ. A voice beyond these limits
    is brought to the limit and has no vote in this row. If all voices are beyond, all of them vote from the limits. So
    do voices that have most of the weight and a standard deviation of at most ℓ/10.

    Members that keep windows of the same size share one.

    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = Bank([AGP(inducing=6, window=40, forgetting=rate) for rate in (0.9, 0.95, 0.99)])
    >>> state = model.update(model.init(X[:40], y[:40]), X[40:59], y[40:59])
    >>> state.weights.shape, bool(abs(model.predict(state, X[59:]).mean[0] - y[59]) < 0.1)
    ((3,), True)

    Args:
        models: the members, each with normal predictions.
        corrected: indices of the members whose voices have twins.
        prior: π, the members' weights at the start, to which weights return; equal for all voices by default.
    """

    models: tuple[Model, ...]
    corrected: tuple[int, ...]
    prior: tuple[float, ...]  # V

    def __init__(
        self, models: Sequence[Model], *, corrected: Sequence[int] = (), prior: Sequence[float] | None = None
    ) -> None:
        """Take the settings: see the class."""
        models = tuple(models)
        if not models or not all(isinstance(model, Model) for model in models):
            raise ValueError(f"models must be a list of models, such as [AGP(), FastAGP()]; got {models!r}")
        wrong = [model for model in models if not model.normal]
        if wrong:
            name = type(wrong[0]).__name__
            raise ValueError(f"models must predict normal distributions to be mixed; {name} does not")
        twins = tuple(checks.whole("corrected", k, 0) for k in corrected)
        if len(set(twins)) != len(twins) or any(k >= len(models) for k in twins):
            raise ValueError(f"corrected must name some of the {len(models)} members, each once; got {twins}")
        voices = [model.voices for model in models]
        counts = np.array([*voices, *(voices[k] for k in twins)])
        if prior is None:
            shares = np.ones(int(counts.sum()))
        else:
            given = np.array(checks.all_between("prior", prior, 0.0, np.inf))
            if len(given) == len(models):  # a member's weight is shared by its voices and their twins
                all_of = given / [v * (1 + (k in twins)) for k, v in enumerate(voices)]
                given = np.repeat(np.array([*all_of, *(all_of[k] for k in twins)]), counts)
            shares = given
            if len(shares) != counts.sum():
                raise ValueError(f"prior must have one weight for each of the {len(models)} members; got {len(given)}")
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "corrected", twins)
        object.__setattr__(self, "prior", tuple((shares / np.sum(shares)).tolist()))

    @property
    def normal(self) -> bool:  # type: ignore[override]
        """A mixture is not normal."""
        return False

    @property
    def fills_gaps(self) -> bool:
        """Whether all members accept inputs that are NaN."""
        return all(model.fills_gaps for model in self.models)

    @property
    def twins(self) -> np.ndarray:
        """The voices that have a twin: their places among all members' voices, C."""
        firsts = np.cumsum([0, *(model.voices for model in self.models)])
        places = [np.arange(firsts[k], firsts[k] + self.models[k].voices) for k in self.corrected]
        return np.concatenate([np.zeros(0, np.int64), *places])

    # ---- records -----------------------------------------------------------------------------------------------------

    @property
    def shared(self) -> dict[int, int]:
        """Sizes of the windows that members share, and the number of each."""
        sizes = (shared_window(model) for model in self.models)
        return {size: i for i, size in enumerate(dict.fromkeys(size for size in sizes if size is not None))}

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state: weights, twins, stacking, shared windows, members."""
        own = BankState.dtype(V=len(self.prior), C=len(self.twins), P=outputs).descr
        windows = [(f"window_{i}", WindowState.dtype(T=size, D=inputs, P=outputs)) for size, i in self.shared.items()]
        members = [(f"member_{k}", own_dtype(model, inputs, outputs)) for k, model in enumerate(self.models)]
        return np.dtype([*own, *windows, *members])

    def view(self, record: np.ndarray) -> BankState:
        """Weights, windows and members."""
        return BankState(record, self.models, self.shared)

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of a forecast: weights, twins with the errors they correct, the shift, and every member's forecast."""
        C = len(self.twins)
        own = [
            ("weights", np.float64, (len(self.prior),)),
            ("shift", np.float64, (outputs,)),
            ("last", np.float64, (C, outputs)),
            ("twins", np.float64, (C, 3, outputs)),
        ]
        members = [(f"member_{k}", model.forecast_dtype(outputs)) for k, model in enumerate(self.models)]
        return forecasts.layout(outputs, *own, *members)

    def law(self, made: np.ndarray) -> Limited:
        """Mixture of the voices' normal distributions, moved by the shift, its tails limited."""
        weights = np.moveaxis(made["weights"], 1, 0)[:, :, None]  # V×N×1
        mean, variance, noise = np.moveaxis(self._voices(made), 0, 2).swapaxes(0, 1)  # 3 of V×N×P
        return Limited(Mixture(weights, mean + made["shift"], variance, noise))

    def derived(self) -> tuple[str, ...]:
        """Fields of the members."""
        return tuple(f"member_{k}.{path}" for k, model in enumerate(self.models) for path in model.derived())

    def check(self, state: BankState) -> None:
        """Refuse fields out of range, weights that are all 0, and what a member refuses."""
        state.check()
        if not np.sum(state.weights) > 0.0:
            raise ValueError("weights must not all be 0")
        for model, member in self._each(state):
            model.check(member)

    def facts(self, state: BankState) -> dict[str, Any]:
        """Every member with its weight, in which those of its voices and of their twins are counted."""
        total = self._weights(state)
        each = zip(self.models, state.members, total.tolist(), strict=True)
        members = [{"member": model.outline, "weight": weight} | model.facts(own) for model, own, weight in each]
        return {"members": members}

    def _weights(self, state: BankState) -> np.ndarray:
        """Weight of each member."""
        firsts = np.cumsum([0, *(model.voices for model in self.models)])
        share = state.weights[: firsts[-1]].copy()
        np.add.at(share, self.twins, state.weights[firsts[-1] :])
        total: np.ndarray = np.add.reduceat(share, firsts[:-1]) / np.sum(share)
        return total

    def complete(self, state: BankState) -> None:
        """Complete every member."""
        for model, member in self._each(state):
            model.complete(member)

    # ---- the contract ------------------------------------------------------------------------------------------------

    def accept(self, inputs: int, outputs: int, rows: int) -> None:
        """Refuse what a member refuses."""
        for model in self.models:
            model.accept(inputs, outputs, rows)

    def expect_units(self, state: BankState, units: Units) -> None:
        """Tell every member."""
        for model, member in self._each(state):
            model.expect_units(member, units)

    def start(self, state: BankState, X: np.ndarray, y: np.ndarray) -> None:
        """Start every member on the batch."""
        state.weights[...] = self.prior
        for target in y:
            plausible.count(state.span, target)
        for model, member in self._each(state):
            model.start(member, X, y)

    def forecast(self, state: BankState, X: np.ndarray) -> np.ndarray:
        """Mixture of the voices: Σ w_k m_k + shift, and Σ w_k (s_k² + (m_k − m̄)²)."""
        P = len(state.error)
        limits = plausible.limits(state.span)
        made = np.zeros(len(X), self.forecast_dtype(P))
        wild, sure = (np.zeros((len(X), len(self.prior)), bool) for _ in range(2))  # N×V
        at = 0
        for k, (model, member) in enumerate(self._each(state)):
            said = forecasts.voices(heard := model.forecast(member, X))
            own = slice(at, at + model.voices)
            wild[:, own], sure[:, own] = _limit(said, limits)
            made[f"member_{k}"] = forecasts.put_voices(heard, said)
            at += model.voices
        originals = self._voices(made, twins=False)[:, self.twins]  # N×C×3×P
        made["last"] = state.last
        twins = originals * np.stack([np.ones_like(state.own), state.ratio, state.ratio], 1)
        twins[:, :, 0] += state.rho * state.last
        beyond, certain = _limit(twins, limits)
        wild[:, at:], sure[:, at:] = wild[:, self.twins] | beyond, sure[:, self.twins] | certain
        made["twins"] = twins
        mean, variance, noise = np.moveaxis(self._voices(made), 2, 0)  # N×V×P each
        weights = state.weights / np.sum(state.weights)
        sure &= ~wild
        wild |= sure & ((sure @ weights) <= _MAJORITY)[:, None]
        w = _votes(weights, _GIVEN * np.array(self.prior), wild, mean, variance)  # N×V
        made["weights"] = w
        middle = np.einsum("nv,nvp->np", w, mean)
        apart = mean - middle[:, None]
        here = w[:, :, None] > 0.0
        shift = state.trust * _moved(state, np.where(here, apart, 0.0))
        # no voting voice is moved beyond the limits, so the median stays within them too
        lowest, highest = np.min(mean, 1, where=here, initial=np.inf), np.max(mean, 1, where=here, initial=-np.inf)
        made["shift"] = np.clip(shift, np.minimum(limits.low - lowest, 0.0), np.maximum(limits.high - highest, 0.0))
        made["mean"] = middle + made["shift"]
        made["variance"] = np.einsum("nv,nvp->np", w, variance + apart**2)
        made["noise"] = np.einsum("nv,nvp->np", w, noise)
        return made

    def joint(self, state: BankState, X: np.ndarray) -> np.ndarray:
        """Σ w_k (C_k + (m_k − m)(m_k − m)ᵀ) over members: what they expect, and how far they disagree together.

        Only correlations are taken from it. Variances are those of the forecast, which has voices and twins too.
        """
        weights = self._weights(state)
        means = [model.forecast(member, X)["mean"].T for model, member in self._each(state)]  # K of P×N
        within = [model.joint(member, X) for model, member in self._each(state)]  # K of P×N×N
        apart = [m - _mixed(weights, means) for m in means]
        joint = _mixed(weights, [C + d[:, :, None] * d[:, None, :] for C, d in zip(within, apart, strict=True)])
        return stretched(joint, np.sqrt(self.forecast(state, X)["variance"] / np.einsum("pnn->np", joint)))

    def learn(
        self, state: BankState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Judge the voices by the sample, then let each member learn from it."""
        if forecast is None:
            forecast = self.forecast(state, x[None])
        counts = np.isfinite(y) & (self.fills_gaps or np.isfinite(x).all())  # P
        if counts.any():
            said = self._voices(forecast)[0]  # V×3×P
            self._weigh(state, said, y, counts)
            self._stack(state, forecast["weights"][0], said[:, 0], y, counts)
            self._correct(state, said, forecast["last"][0], y, counts)
            plausible.count(state.span, np.where(counts, y, np.nan))
        leaving: dict[int, Leaving] = {}
        if observed(x, y):
            leaving = {size: window.push(x, y) for size, window in state.windows.items()}
        for k, (model, member) in enumerate(self._each(state)):
            window, p = shared_window(model), forecast[f"member_{k}"]
            if isinstance(model, Windowed) and window is not None:
                model.learn_on(member, leaving.get(window), x, y, elapsed, p)
            else:
                model.learn(member, x, y, elapsed, p)

    def rescale(self, state: BankState, units: Units) -> None:
        """Every window and every member in other units, which change no weight."""
        square = units.y_scale**2
        state.last /= units.y_scale
        for name in ("products", "squares", "own", "twin", "error"):
            state.record[name][...] /= square
        state.A /= square[:, None, None]
        state.b /= square[:, None]
        plausible.rescale(state.span, units)
        for size, window in state.windows.items():
            here = [member.w > 0.0 for model, member in self._each(state) if shared_window(model) == size]
            window.rescale(units, np.any(here, 0))
        for model, member in self._each(state):
            if isinstance(model, Windowed) and model.window is not None:
                model.rescale_on(member, units)
            else:
                model.rescale(member, units)

    # ---- what a sample says ------------------------------------------------------------------------------------------

    def _weigh(self, state: BankState, said: np.ndarray, y: np.ndarray, counts: np.ndarray) -> None:
        """Soft Bayes, by the densities of the outputs that are there."""
        with np.errstate(over="ignore", invalid="ignore"):
            z = (y - said[:, 0]) / np.sqrt(said[:, 1])
            scores = np.mean((log_pdf(z) - 0.5 * np.log(said[:, 1]))[:, counts], 1)  # V
        scores[np.isnan(scores)] = -np.inf
        w = state.weights / np.sum(state.weights)
        if np.max(scores) > -np.inf:  # a target at which no voice has a density teaches nothing
            p = np.exp(scores - np.max(scores))
            expected = w @ p
            if expected > 0.0:
                w = w * (1.0 - _RATE + _RATE * p / expected)
        w = (1.0 - _SHARE) * w + _SHARE * np.array(self.prior)
        state.weights[...] = w / np.sum(w)

    def _stack(self, state: BankState, w: np.ndarray, means: np.ndarray, y: np.ndarray, counts: np.ndarray) -> None:
        """Recursive ridge regression of y − m̄ on m_k − m̄, for each output by itself."""
        state.count = min(state.count + 1.0, _TWIN_MEMORY)
        for p in np.flatnonzero(counts):
            middle = w @ means[:, p]
            d, e = _limited(means[:, p] - middle), _limited(y[p] - middle)
            moved = e - _moved(state, np.where(w > 0.0, d, 0.0)[None, :, None])[0, p]
            ratio = np.log((moved**2 + _NO_ERROR) / (e**2 + _NO_ERROR))
            state.harm[p] += (np.clip(ratio, -1.0, 1.0) - state.harm[p]) / _HARM_MEMORY
            state.error[p] += (e**2 - state.error[p]) / state.count
            state.A[p] = _STACK_RATE * state.A[p] + np.outer(d, d)
            state.b[p] = _STACK_RATE * state.b[p] + d * e
            ridge = _RIDGE * state.error[p]
            if ridge > 0.0 and np.isfinite(ridge):
                try:
                    factor = cho_factor(state.A[p] + ridge * np.eye(len(d)))
                except np.linalg.LinAlgError:  # numbers too far apart: the coefficients stay
                    continue
                state.stack[p] = cho_solve(factor, state.b[p])

    def _correct(self, state: BankState, said: np.ndarray, last: np.ndarray, y: np.ndarray, counts: np.ndarray) -> None:
        """Learn how much of the error that each twin knew came again."""
        C, places = len(self.twins), self.twins
        if C == 0:
            return
        error, rest = _limited(y - said[places, 0]), _limited(y - said[-C:, 0])  # C×P
        for sums, value in ((state.products, last * error), (state.squares, last**2)):
            sums[:, counts] = (_TWIN_RATE * sums + value)[:, counts]
        for mean, value in ((state.own, error**2), (state.twin, rest**2)):
            mean[:, counts] += ((value - mean) / state.count)[:, counts]
        state.last[:, counts] = error[:, counts]

    def _voices(self, made: np.ndarray, *, twins: bool = True) -> np.ndarray:
        """Mean, variance and noise of every voice, N×V×3×P: the members', and after them their twins."""
        said = [forecasts.voices(made[f"member_{k}"]) for k in range(len(self.models))]
        return np.concatenate([*said, made["twins"]] if twins else said, 1)

    def _each(self, state: BankState) -> Iterator[tuple[Model, Any]]:
        return zip(self.models, state.members, strict=True)


def own_dtype(model: Model, inputs: int, outputs: int) -> np.dtype:
    """Layout of a member's state, without the window that it shares."""
    if isinstance(model, Windowed) and model.window is not None:
        return model.own_dtype(inputs, outputs, window=False)
    return model.record_dtype(inputs, outputs)


def _limit(said: np.ndarray, limits: plausible.Limits) -> tuple[np.ndarray, np.ndarray]:
    """Bring voices (N×K×3×P) within the limits; which were beyond them in some output, and which surely, N×K each.

    A voice is sure of a mean beyond the limits if its standard deviation is a tenth of the largest that is plausible;
    at the limit it is as uncertain as it was far from there.
    """
    mean, variance = said[:, :, 0], said[:, :, 1]
    wild = limits.wild(mean, variance)
    if not wild.any():
        return np.any(wild, -1), np.any(wild, -1)
    near = np.clip(mean, limits.low, limits.high)
    with np.errstate(over="ignore", invalid="ignore"):
        sure = wild & (variance <= (_SURE * limits.std) ** 2) & np.isfinite(mean)
        said[:, :, 1] = np.where(sure, variance + (mean - near) ** 2, variance)
    said[:, :, 0] = near
    said[:, :, 1:] = np.minimum(said[:, :, 1:], limits.std**2)
    return np.any(wild & ~sure, -1), np.any(sure, -1)


def _votes(
    weights: np.ndarray, given: np.ndarray, wild: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """Shares of the voices in the mixture, N×V: none for one that is wild, unless all of them are.

    The part of a weight that comes from the prior counts less where it would cause most of the mixture's variance.

    Args:
        weights: of the voices, V.
        given: the part of each weight that comes from the prior alone, V.
        wild: which voices have no vote, N×V.
        mean: of each voice, N×V×P.
        variance: of each voice, N×V×P.
    """
    kept = np.where(wild, 0.0, weights)
    kept = np.where(np.sum(kept, 1, keepdims=True) > 0.0, kept, weights)
    unearned = np.minimum(kept, given)
    earned = kept - unearned
    total = np.sum(earned, 1, keepdims=True)
    middle = np.einsum("nv,nvp->np", earned / np.where(total > 0.0, total, 1.0), mean)
    squares = variance + (mean - middle[:, None]) ** 2
    own, more = np.einsum("nv,nvp->np", earned, squares), np.einsum("nv,nvp->np", unearned, squares)
    share = np.min(np.where(more > own, own / np.where(more > 0.0, more, 1.0), 1.0), 1, keepdims=True)
    kept = earned + np.where(total > 0.0, share, 1.0) * unearned
    votes: np.ndarray = kept / np.sum(kept, 1, keepdims=True)
    return votes


def _moved(state: BankState, apart: np.ndarray) -> np.ndarray:
    """How far the stacked mean moves the mixtures, N×P; `apart` has the distance of each voice from the mean, N×V×P."""
    limit = _FARTHEST * np.sqrt(state.error)
    found: np.ndarray = np.clip(_HALFWAY * np.einsum("pv,nvp->np", state.stack, apart), -limit, limit)
    return found


def _limited(error: np.ndarray) -> np.ndarray:
    limited: np.ndarray = np.clip(error, -_LARGEST, _LARGEST)
    return limited


def _mixed(weights: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    return np.sum([w * value for w, value in zip(weights, values, strict=True)], 0)
