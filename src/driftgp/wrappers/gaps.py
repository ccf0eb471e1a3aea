"""Missing inputs: what replaces them, how much wider the law becomes, and which of these rows are learned from."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from driftgp.contract.protocol import LARGEST
from driftgp.contract.records import ABOVE_0, View, floats, number, part, whole, wholes
from driftgp.members.heads import packed, packed_size, unpacked
from driftgp.models.model import Units
from driftgp.wrappers.holding import Moved, inner, stretched

# Up to this many inputs, a missing one is explained by the others too; beyond, by its own last value alone.
_MOST_INPUTS = 64
# Rows over which inputs and targets are averaged. At first it is a third of the rows so far, so that values filled in
# by averages of few rows are soon forgotten.
_MEMORY, _SOON = 1000.0, 3.0
# Age at the first gap, from which on covariances between inputs are counted.
_BEFORE = 60.0
# Ridge of the regressions on the other inputs, in rows without information; largest distance of a value, in deviations.
_RIDGE, _FARTHEST = 2.0, 5.0
# Ridge of the regression of the targets, so that inputs that are alike share a slope.
_SLOPE_RIDGE = 0.05
# Before this number of rows, the range of a column is unknown.
_FIRST = 10.0
# Largest ratio of a squared error to the expected one, and largest factor by which the usual ratio differs from 1.
_WILD, _RATIO = 16.0, 5.0
# Least and largest share of the variance that a missing input is assumed to explain.
_LEAST, _MOST = 1e-3, 4.0
# Slowest paces of h² and of the effect of a gap, and the number of errors by which the effect is shrunk.
_PACE, _EFFECT_PACE, _SHRUNK = 0.02, 0.01, 10.0
# A row is learned from if its information is at least this share of that of recent rows. At equal weights, a row with
# more than twice the noise variance makes the estimate of a mean worse.
_WORTH = 0.5
# Errors after which h follows from them alone, and no longer from the slope.
_FEW = 10
# h² follows more slowly if its part of the variance is small; that part counts as at least this share.
_CURIOUS = 0.1
# Paces of the usual ratio of squared errors, of the usual information of rows, and of the share of missing values.
_RATIO_PACE, _TRUST_PACE, _SHARE_PACE = 0.01, 0.02, 0.01
# In a gap of more rows than this, the usual information of rows follows faster the longer the gap lasts.
_LASTING = 8.0
_SMALLEST = 1e-300  # so that a quotient of variances is a number


class GapsState(View):
    """Means and covariances of the inputs, the cost of gaps, and the held model's state."""

    previous: np.ndarray = floats("D")  # the last inputs, as filled
    doubt: np.ndarray = floats("D", low=0.0)  # variance of what was filled there
    age: np.ndarray = wholes("D")  # rows for which each of them has been missing
    count: np.ndarray = floats("D", low=0.0)  # rows since the first value, 3000 at most
    mean: np.ndarray = floats("D")
    variance: np.ndarray = floats("D", low=0.0)
    echo: np.ndarray = floats("D")  # covariance of an input with its value before
    joint: int = whole(high=1)  # 1 once the covariances of different inputs are counted, from the first gap on
    S: np.ndarray = floats("packed")  # of inputs, upper triangle; 0 numbers for more than 64 inputs
    T: np.ndarray = floats("K", "K")  # of inputs with inputs of the row before
    targets: float = number(low=0.0, high=_MEMORY)  # how many, 1000 at most
    y_mean: np.ndarray = floats("P")
    y_variance: np.ndarray = floats("P", low=0.0)
    slope: np.ndarray = floats("D", "P")  # covariance of inputs and targets
    filled: np.ndarray = wholes("D")  # gaps so far
    judged: np.ndarray = wholes("D")  # gaps in rows whose error is known
    share: np.ndarray = floats("D", low=0.0)  # recent share of rows
    wider: np.ndarray = floats("D", low=0.0)  # by which factor the law was wider in these rows
    change: np.ndarray = floats("D", "P")  # h, by which the target changes with an input that is missing
    effect: np.ndarray = floats("D", "P")  # effect on the mean of a missing input
    ratio: np.ndarray = floats("P", low=0.0)  # of squared errors to variances in complete rows
    trust: float = number(low=ABOVE_0, high=1.0)  # recent share of the variance that is not due to gaps
    inner: Any = part()

    @property
    def samples(self) -> int:
        """The samples that the held model has learned from, if it counts them."""
        return int(self.inner.samples)


class Filled(NamedTuple):
    """Filled inputs, and the covariance of the filled values: 0 where there was a value."""

    x: np.ndarray  # D
    covariance: np.ndarray  # D×D
    before: np.ndarray  # D×D, with the filled values of the row before

    @property
    def doubt(self) -> np.ndarray:
        """Variances, D."""
        return np.diagonal(self.covariance)


@dataclass(frozen=True)
class Gaps(Moved):
    """Hold a model, and let it predict and learn where inputs are missing (NaN).

    **What replaces a missing input.** The linear regression x̂_m of x_m(t) on u replaces it, by running means and
    covariances over 1000 rows. u has the inputs x_o(t) of this row, and the last values x̂_m(t − 1) of the missing
    ones. So a temperature stays near its last value, noise goes to its mean, and an input that others determine follows
    them. The variance grows with the length of the gap.

    **How much wider.** The law of the target is stretched about its mean to the variance v + τ²,

        τ² = hᵀ Q h

    with Q the covariance of the filled values. h begins with the slopes of a linear regression of the target. Its size
    then follows the errors of rows with that gap: it grows while these errors, in units of the law, are larger than
    those of complete rows. If targets differ where an input is missing, the mean moves by an effect Σ_m b_m, which
    follows from the errors too.

    **What is learned.** The information of a row with a gap is a share ρ = v/(v + τ²) of that of a complete row. The
    held model learns from the row if its information is at least half that of recent rows. A row with more than twice
    the usual noise variance would do more harm than good to a mean. Of such rows the held model is told only the
    target, so that it knows the last value. So gaps do not make forecasts of complete rows worse, and where every row
    has gaps the model learns from all of them.

    Before its first value an input is 0. Inside of `Standardize` 0 is that first value, as if the input had had it from
    the start. An input that never has a value costs nothing.

    >>> from driftgp import AGP
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = 2 * X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=200)
    >>> X[::5, 0] = np.nan
    >>> model = Gaps(AGP(inducing=8, window=60))
    >>> state = model.init(X, y)
    >>> low, high = model.predict(state, [[0.5, 0.0], [np.nan, 0.0]]).interval(0.95)
    >>> (high - low > 6.0).tolist(), state.filled.tolist()
    ([False, True], [40, 0])

    Args:
        model: any model; in the default, the model inside of `Standardize`.
    """

    State: ClassVar[type[View]] = GapsState

    @property
    def fills_gaps(self) -> bool:
        """Inputs may be NaN."""
        return True

    def sizes(self, inputs: int, outputs: int) -> dict[str, int]:
        """With many inputs, no covariances are counted."""
        K = inputs if inputs <= _MOST_INPUTS else 0
        return {"D": inputs, "P": outputs, "K": K, "packed": packed_size(K)}

    def facts(self, state: GapsState) -> dict[str, Any]:
        """For each input that has had gaps: how many, their recent share, and how much wider the law was for them."""
        gaps = [
            {"input": int(d), "rows": int(state.filled[d]), "share": float(state.share[d]), "wider": wider}
            for d, wider in enumerate(np.where(state.judged > 0, state.wider, 1.0).tolist())
            if state.filled[d] > 0
        ]
        return self.model.facts(state.inner) | ({"gaps": gaps} if gaps else {})

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, state: GapsState, X: np.ndarray, y: np.ndarray) -> None:
        """Take means and covariances from the whole batch, then fill its gaps and start the held model."""
        state.ratio[...], state.trust = 1.0, 1.0
        missing = np.isnan(X)
        if missing.any():
            self._join(state)
        for x, target in zip(X, y, strict=True):
            self._count(state, x, self._fill(state, x), target)
        if missing.any():
            X = self._filled_batch(state, X, y)
        self.model.start(state.inner, X, y)

    def _filled_batch(self, state: GapsState, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The batch with its gaps filled, by the means and covariances of the whole batch."""
        explained = np.sum(state.slope * self._slopes(state), 0)  # P
        v = np.maximum(state.y_variance - explained, _LEAST * state.y_variance)
        h = self._changes(state, np.isnan(X).any(0))
        state.previous[...], state.doubt[...] = state.mean, state.variance
        made = X.copy()
        for i, x in enumerate(X):
            missing, filled = np.isnan(x), self._fill(state, x)
            state.previous[...], state.doubt[...] = filled.x, filled.doubt
            self._count_gaps(state, missing)
            if np.isfinite(y[i]).any():
                rho = v / np.maximum(v + _spread(filled, h), _SMALLEST)
                made[i] = filled.x if self._believed(state, rho) else x
        return made

    def forecast(self, state: GapsState, X: np.ndarray) -> np.ndarray:
        """Forecast of the held model at the filled inputs, wider and moved where some are missing."""
        missing = np.isnan(X)
        if not missing.any():
            return self._stretched(self.model.forecast(state.inner, X), 0.0, 0.0)
        filled = [self._fill(state, x) for x in X]
        held = self.model.forecast(state.inner, np.array([each.x for each in filled]))
        h = self._changes(state, missing.any(0))
        return self._stretched(held, np.array([_spread(each, h) for each in filled]), missing @ state.effect)

    def _stretched(self, held: np.ndarray, extra: Any, effect: Any) -> np.ndarray:
        """Forecasts of the held model with extra variance τ² about a mean that is moved, N×P each."""
        scale = np.sqrt(1.0 + extra / np.maximum(held["variance"], _SMALLEST))
        made = self._moved(held, scale, (1.0 - scale) * held["mean"] + effect)
        made["mean"] = held["mean"] + effect
        return made

    def joint(self, state: GapsState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of the held model at the filled inputs, stretched at each of them."""
        filled = np.array([self._fill(state, x).x for x in X]).reshape(X.shape)
        return stretched(self.model.joint(state.inner, filled), self.forecast(state, X)["scale"])

    def learn(
        self, state: GapsState, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Learn the cost of the gaps, then let the held model learn from the row, if it has enough information."""
        missing = np.isnan(x)
        filled = self._fill(state, x)
        given = filled.x
        if np.isfinite(y).any():
            if forecast is None:
                forecast = self.forecast(state, x[None])
            rho = self._judge(state, filled, y, forecast[0], missing)
            given = filled.x if self._believed(state, rho) else x
        if missing.any():
            self._join(state)
        self._count_gaps(state, missing)
        self._count(state, x, filled, y)
        self.model.learn(state.inner, given, y, elapsed, inner(forecast))

    def rescale(self, state: GapsState, units: Units) -> None:
        """Express all means and covariances in other units; an input without a value is 0 in any units."""
        seen = state.count > 0.0
        units = units._replace(x_centre=np.where(seen, units.x_centre, 0.0), x_scale=np.where(seen, units.x_scale, 1.0))
        a, b = units.x_scale, units.y_scale
        state.previous[...], state.mean[...] = units.inputs(state.previous), units.inputs(state.mean)
        for name in ("doubt", "variance", "echo"):
            state.record[name][...] /= a**2
        K = len(state.T)
        if K:
            state.S[...] = packed(unpacked(state.S, K) / np.outer(a, a))
            state.T /= np.outer(a, a)
        if state.targets > 0.0:
            state.y_mean[...] = units.targets(state.y_mean)
        state.y_variance /= b**2
        state.slope /= np.outer(a, b)
        state.change *= np.outer(a, 1.0 / b)
        state.effect /= b
        self.model.rescale(state.inner, units)

    # ---- what inputs are like ----------------------------------------------------------------------------------------

    def _join(self, state: GapsState) -> None:
        """Count covariances of different inputs from here on."""
        if state.joint == 1:
            return
        state.joint = 1
        state.count[...] = np.minimum(state.count, _BEFORE)
        if len(state.T):
            state.S[...] = packed(np.diag(state.variance))
            state.T[...] = np.diag(state.echo)

    def _fill(self, state: GapsState, x: np.ndarray) -> Filled:
        """Values for the gaps of a row (D)."""
        missing = np.isnan(x)
        covariance, before = np.zeros((2, len(x), len(x)))
        if not missing.any():
            return Filled(x, covariance, before)
        unit = _unit(state.variance)
        relative = state.doubt / unit**2
        z = _limited((np.where(missing, state.previous, x) - state.mean) / unit, _FARTHEST)
        W, B, C = self._weights(state, missing, unit)
        inherited = W[:, missing] * relative[missing]
        rest = C - W @ B.T + inherited @ W[:, missing].T
        np.fill_diagonal(rest, np.clip(np.diagonal(rest), 0.0, 1.0))
        scale = np.sqrt(state.variance[missing])
        covariance[np.ix_(missing, missing)] = rest * np.outer(scale, scale)
        before[np.ix_(missing, missing)] = inherited * np.outer(scale, scale)
        expected = state.mean[missing] + unit[missing] * _limited(W @ z, _FARTHEST)
        filled = x.copy()
        filled[missing] = np.where(state.variance[missing] > 0.0, expected, state.previous[missing])
        return Filled(filled, covariance, before)

    def _weights(
        self, state: GapsState, missing: np.ndarray, unit: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients of missing inputs on u, their covariances with u, m×D both, and with each other, m×m.

        All are in units of their own.
        """
        D, ridge = len(unit), _ridge(state)
        if state.joint == 1 and len(state.T):
            S, T = unpacked(state.S, D) / np.outer(unit, unit), state.T / np.outer(unit, unit)
            # rows of the past of the missing inputs, with the covariances T to the inputs of this row
            A = np.where(missing == missing[:, None], S, np.where(missing, T, T.T))
            np.fill_diagonal(A, 1.0 + ridge)
            B = np.where(missing, T, S)[missing]
            try:
                W = cho_solve(cho_factor(A), B.T).T
            except np.linalg.LinAlgError:  # covariances of few rows may contradict each other
                pass
            else:
                C = S[np.ix_(missing, missing)]
                np.fill_diagonal(C, 1.0)
                return W, B, C
        B = np.diag(state.echo / unit**2)[missing]
        return B / (1.0 + ridge), B, np.eye(len(B))

    def _slopes(self, state: GapsState) -> np.ndarray:
        """Slopes of a linear regression of the targets on the inputs, D×P."""
        unit, D = _unit(state.variance), len(state.variance)
        c = state.slope / unit[:, None]
        if state.joint == 1 and len(state.T):
            A = unpacked(state.S, D) / np.outer(unit, unit)
            np.fill_diagonal(A, 1.0 + _SLOPE_RIDGE)
            try:
                return cho_solve(cho_factor(A), c) / unit[:, None]
            except np.linalg.LinAlgError:
                pass
        return c / unit[:, None]

    def _changes(self, state: GapsState, missing: np.ndarray) -> np.ndarray:
        """h of the missing inputs, D×P: from the slopes while there are few errors.

        They are in units of the held model's variances. If the model's errors are smaller than its law says,
        calibration narrows the law in the end; the part of a gap must not shrink with it.
        """
        if (state.judged[missing] >= _FEW).all():
            return state.change
        slopes = self._slopes(state)
        least = np.sqrt(_LEAST * state.y_variance) / _unit(state.variance)[:, None]
        first = np.copysign(np.maximum(np.abs(slopes), least), slopes) / np.sqrt(_usual(state))
        return np.where(state.judged[:, None] >= _FEW, state.change, first)

    def _count(self, state: GapsState, x: np.ndarray, filled: Filled, y: np.ndarray) -> None:
        """One more row: running means and covariances of its inputs and targets."""
        seen = ~np.isnan(x)
        here = seen | (state.count > 0.0)
        state.count[...] = np.where(here, np.minimum(state.count + 1.0, _SOON * _MEMORY), 0.0)
        gain = np.where(here, _gain(state.count), 0.0)
        keep = 1.0 - gain
        limit = _limit(state.count, state.variance)
        a, before = _limited(filled.x - state.mean, limit), _limited(state.previous - state.mean, limit)
        state.mean += gain * a
        state.variance[...] = keep * (state.variance + gain * a**2) + gain * filled.doubt
        state.echo[...] = keep * (state.echo + gain * a * before) + gain * np.diagonal(filled.before)
        if state.joint == 1 and len(state.T):
            kept, root = np.sqrt(keep), np.sqrt(gain)
            h = root * kept
            known, new = np.outer(kept, kept), np.outer(root, root)
            S = known * unpacked(state.S, len(x)) + np.outer(h * a, h * a) + new * filled.covariance
            state.S[...] = packed(S)
            state.T[...] = known * state.T + np.outer(h * a, h * before) + new * filled.before
        state.previous[...], state.doubt[...] = _limited(filled.x, LARGEST), filled.doubt
        if np.isfinite(y).all():
            self._count_target(state, np.where(seen, a, 0.0), np.where(seen, gain, 0.0), y)

    def _count_target(self, state: GapsState, a: np.ndarray, gain: np.ndarray, y: np.ndarray) -> None:
        """The targets of a row, and their covariances with the inputs that are there."""
        state.targets = min(state.targets + 1.0, _MEMORY)
        e = _limited(y - state.y_mean, _limit(state.targets, state.y_variance))
        pace = 1.0 / state.targets
        state.slope[...] = (1.0 - gain)[:, None] * (state.slope + np.outer(gain * a, e))
        state.y_mean += pace * e
        state.y_variance[...] = (1.0 - pace) * (state.y_variance + pace * e**2)

    # ---- what gaps have cost -----------------------------------------------------------------------------------------

    def _judge(
        self, state: GapsState, filled: Filled, y: np.ndarray, made: np.ndarray, missing: np.ndarray
    ) -> np.ndarray:
        """Learn from the error of a forecast how much a gap costs; ρ of each output that has a target, else 1."""
        here = np.isfinite(y)
        v, total = np.maximum(made["inner"]["variance"], _SMALLEST), np.maximum(made["variance"], _SMALLEST)
        error = np.where(here, y - made["mean"], 0.0)
        ratio = np.minimum(_limited(error, LARGEST) ** 2 / total, _WILD)
        missing = missing & (state.count > 0.0)  # an input without any value yet costs nothing
        if not missing.any():
            state.ratio[...] = np.where(here, state.ratio + _RATIO_PACE * (ratio - state.ratio), state.ratio)
            return np.ones(len(y))
        h = self._changes(state, missing)  # D×P
        state.judged += missing
        n = np.maximum(state.judged, 1.0)
        relative = filled.doubt / _unit(state.variance) ** 2
        part = np.clip(h * (filled.covariance @ h) / total, _CURIOUS * relative[:, None], 1.0)
        step = 0.5 * np.maximum(1.0 / (n + 1.0), _PACE)[:, None] * np.sqrt(part) * (ratio / _usual(state) - 1.0) * here
        most = np.sqrt(_MOST * state.y_variance) / _unit(state.variance)[:, None]
        size = np.clip(np.abs(h) * np.exp(step), 1e-3 * most, most)
        state.change[...] = np.where(missing[:, None], np.copysign(size, h), state.change)
        pace = np.maximum(1.0 / (n + _SHRUNK), _EFFECT_PACE) * (1.0 - state.share) / np.sum(missing)
        pace /= state.age + 1.0  # errors within one gap are alike
        near = _limited(error, 3.0 * np.sqrt(total))
        state.effect += np.where(missing, pace, 0.0)[:, None] * near
        wider = np.mean(np.sqrt(total / v))
        state.wider += np.where(missing, np.maximum(1.0 / n, _PACE), 0.0) * (wider - state.wider)
        return np.where(here, np.minimum(v / total, 1.0), 1.0)

    @staticmethod
    def _count_gaps(state: GapsState, missing: np.ndarray) -> None:
        """Which inputs of a row are missing."""
        state.age[...] = np.where(missing, state.age + 1, 0)
        state.filled += missing
        state.share += _SHARE_PACE * (missing - state.share)

    @staticmethod
    def _believed(state: GapsState, rho: np.ndarray) -> bool:
        """Whether a row with these ρ (P) has enough information to be learned from."""
        share = float(np.mean(rho))
        lasting = max(1.0, float(np.max(state.age, initial=0)) / _LASTING)
        state.trust += min(_TRUST_PACE * lasting, 0.5) * (share - state.trust)
        return share >= _WORTH * state.trust


def _ridge(state: GapsState) -> float:
    return _RIDGE * float(_gain(np.max(state.count, initial=0.0)))


def _gain(count: Any) -> Any:
    """Weight of the last row in an average of this number of rows."""
    return np.minimum(_SOON / (count + _SOON - 1.0), 1.0)


def _usual(state: GapsState) -> np.ndarray:
    """Squared errors over variances in complete rows, P."""
    return np.clip(state.ratio, 1.0 / _RATIO, _RATIO)


def _spread(filled: Filled, h: np.ndarray) -> np.ndarray:
    """τ² = hᵀ Q h of each output, P."""
    spread: np.ndarray = np.maximum(np.einsum("dp,de,ep->p", h, filled.covariance, h), 0.0)
    return spread


def _unit(variance: np.ndarray) -> np.ndarray:
    """Standard deviations, with 1 for a column that has not varied."""
    return np.where(variance > 0.0, np.sqrt(variance), 1.0)


def _limit(count: Any, variance: np.ndarray) -> np.ndarray:
    """How far from the mean a value may be."""
    return np.where((count > _FIRST) & (variance > 0.0), 2.0 * _FARTHEST * np.sqrt(variance), LARGEST)


def _limited(value: np.ndarray, limit: Any) -> np.ndarray:
    limited: np.ndarray = np.clip(value, -limit, limit)
    return limited
