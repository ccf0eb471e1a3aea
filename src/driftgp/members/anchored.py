"""Sparse regression on many points that stay where they are, refreshed from recent rows.

See `evidence.py` for the features, `heads.py` for the recursion. Long computations are done in small pieces, one per
row: a fit of the hyperparameters (L-BFGS on the bound of some rows), and then a replay of the rows kept. The replay
gives the regressions their sums on the new features. Until it is done, the old regressions stay in use.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.base import checks
from driftgp.contract import forecasts
from driftgp.contract.records import View, floats, part, whole
from driftgp.contract.summary import memory, shares
from driftgp.gp.window import observed
from driftgp.members import descent, evidence
from driftgp.members.descent import DescentState
from driftgp.members.heads import LARGEST, WAITING, Heads, HeadsState, packed, packed_size, unpacked
from driftgp.models.model import Model, Units

# Stages of the work beside the recursion.
NOTHING, FACTOR, SUMS, SOLVE, SLOPE, FINISH, PLACE, REPLAY, HEADS = range(9)
# Rows in one piece of a sum over the rows of a fit, of its gradient, and of a replay.
_SUMS_ROWS, _SLOPE_ROWS, _REPLAY_ROWS = 100, 100, 64
# Points that L-BFGS accepts in the first fit, and in later ones, which begin where the last ended and know its steps.
_FIRST_POINTS, _LATER_POINTS = 26, 11
_FEWEST = 32  # rows before the first fit
_LONGEST = 4000  # rows from one fit to the next, at most
# The shortest memory replaces the longest when its recent error is below `_TAKEOVER` times that of the longest.
_ERROR_RATE = 0.02  # of the running mean of squared errors
_TAKEOVER = 0.7
_APART = 100  # rows from one such change to the next
# Least log q: with a smaller q, the sums of some hundred rows have no digits left.
_LEAST_NOISE = math.log(1e-10)
_SINCE = 50  # rows since an abrupt change, when it is noticed


class AnchoredState(View):
    """Rows kept, features and regressions in use, and the work on those to come."""

    X: np.ndarray = floats("R", "D", low=-LARGEST, high=LARGEST)  # row i of the stream is in slot i mod R
    y: np.ndarray = floats("R", "P", low=-LARGEST, high=LARGEST)
    rows: int = whole()  # so far
    fresh: int = whole()  # rows since the last abrupt change
    due: int = whole()  # row at which the next fit begins
    refresh: int = whole()  # and the next replay without a fit
    theta: np.ndarray = floats("K")
    Z: np.ndarray = floats("D", "M", low=-LARGEST, high=LARGEST)  # a column for each point
    N: np.ndarray = floats("triangle", low=-LARGEST, high=LARGEST)  # L⁻¹, row after row up to the diagonal
    points: int = whole(high="M")
    heads: HeadsState = part(HeadsState)
    squares: np.ndarray = floats(2)  # recent squared error of the first head, and of the last
    stage: int = whole(high=HEADS)
    at: int = whole()  # next row of the fit, row of the stream, or head
    first: int = whole()  # rows of the stream from which those of the fit are taken: the first of them,
    span: int = whole()  # and how many
    fit: DescentState = part(DescentState)
    next_Z: np.ndarray = floats("D", "M", low=-LARGEST, high=LARGEST)
    next_N: np.ndarray = floats("triangle", low=-LARGEST, high=LARGEST)
    next_points: int = whole(high="M")
    sums: np.ndarray = floats("S", "packed")  # of the fit: ΦᵀΦ, and C of `Reach`; of the replay: one for each head
    moments: np.ndarray = floats("H", "F", "P")  # of the fit: Φᵀy, and then c of `Reach`
    totals: np.ndarray = floats("totals")  # yᵀy, what the points leave out, value, by log q, and the slopes


@dataclass(frozen=True, kw_only=True)
class Anchored(Model):
    """Regression on M fixed points with one lengthscale per input, at several rates of forgetting.

    It has a voice for each rate. After an abrupt change the shortest memory takes over the sums of the longest. That
    happens when its recent squared error is below 0.7 of the longest's. Hyperparameters are then learned from the rows
    since. Forgetting counts rows with a target, not time.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(300, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = Anchored(points=30, ring=300)
    >>> state = model.init(X[:250], y[:250])
    >>> error = model.predict(state, X[250:]).mean - y[250:]
    >>> bool(np.mean(error**2) < 0.02)
    True

    Args:
        points: M, at most; fewer while there are fewer rows.
        ring: rows kept, from which points and sums are renewed.
        forgetting: λ of each regression, the longest memory first.
        sample: rows on which hyperparameters are learned.
        refresh: rows from one replay to the next.
    """

    points: int = 200
    ring: int = 4000
    forgetting: tuple[float, ...] = (0.9995, 0.998, 0.99)
    sample: int = 500
    refresh: int = 1000

    def __post_init__(self) -> None:
        """Check the settings."""
        for name, least in (("points", 1), ("ring", 2), ("sample", 2), ("refresh", 1)):
            object.__setattr__(self, name, checks.whole(name, getattr(self, name), least))
        rates = checks.all_between("forgetting", self.forgetting, 0.5, 1.0)
        object.__setattr__(self, "forgetting", tuple(float(rate) for rate in rates))

    @property
    def heads(self) -> Heads:
        """The recursion of all regressions."""
        return Heads(self.forgetting, unit=True)

    @property
    def voices(self) -> int:
        """One for each rate of forgetting."""
        return len(self.forgetting)

    # ---- records -----------------------------------------------------------------------------------------------------

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        M, H, F, K = self.points, self.voices, 1 + inputs + self.points, 2 * inputs + 2
        sizes = {
            "R": self.ring,
            "D": inputs,
            "P": outputs,
            "K": K,
            "M": M,
            "H": H,
            "F": F,
            "S": max(H, 2),
            "B": WAITING,
        }
        return AnchoredState.dtype(**sizes, triangle=packed_size(M), packed=packed_size(F), totals=5 + inputs)

    def view(self, record: np.ndarray) -> AnchoredState:
        """The fields of a state."""
        return AnchoredState(record)

    def forecast_dtype(self, outputs: int) -> np.dtype:
        """Layout of a forecast: that of the longest memory, and the others'."""
        return forecasts.layout(outputs, *forecasts.more_voices(self.voices, outputs))

    def check(self, state: AnchoredState) -> None:
        """Refuse counts out of range, and numbers that are not finite."""
        state.check()
        if state.fresh > state.rows:
            raise ValueError(f"fresh must be at most rows; got {state.fresh} and {state.rows}")
        self._check_work(state)
        evidence.check(state.theta)

    def _check_work(self, state: AnchoredState) -> None:
        """Refuse work on rows or heads that do not exist."""
        if FACTOR <= state.stage <= FINISH:
            kept = max(state.rows - self.ring, 0) <= state.first <= state.rows - state.span
            if not (kept and 0 < state.span and state.next_points <= state.span and state.at <= self._sampled(state)):
                raise ValueError("first, span and at must describe rows that are kept")
            if state.fit.left < 1:
                raise ValueError("left must be a number of points during a fit")
        if state.stage in (REPLAY, HEADS) and state.at > state.rows:
            raise ValueError("at must be a row of the stream")
        if state.stage == HEADS and not (state.span < self.voices and state.rows - state.at <= self.voices):
            raise ValueError("span must be the number of a head")

    def facts(self, state: AnchoredState) -> dict[str, Any]:
        """Its memories, and how much the function changes with each input: √(v + s²/ℓ²) for each."""
        p = evidence.parameters(state.theta)
        change = np.sqrt(p.linear**2 + p.variance / p.lengthscale**2)
        return {"memory": memory(self.forgetting), "relevance": shares(change), "points": state.points}

    # ---- the contract ------------------------------------------------------------------------------------------------

    def start(self, state: AnchoredState, X: np.ndarray, y: np.ndarray) -> None:
        """Learn hyperparameters and sums from the batch, all at once."""
        state.theta[...], _ = evidence.prior(X.shape[1])
        self._learn_again(state)
        state.due, state.refresh = _FEWEST, self.refresh
        here = observed(X, y)
        for x, target in zip(X[here], y[here], strict=True):
            self._keep(state, x, target)
        if state.rows < _FEWEST:
            self._learn_again(state)
            return
        self._begin_fit(state)
        while state.stage != NOTHING:
            self._work(state)
        state.heads.noise[...] = evidence.parameters(state.theta).noise

    def forecast(self, state: AnchoredState, X: np.ndarray) -> np.ndarray:
        """The voices' normal distributions."""
        said = self.heads.forecast(state.heads, self._features(state, X), float(np.exp(state.theta[-1])))
        return forecasts.with_voices(self.forecast_dtype(state.y.shape[1]), said)

    def joint(self, state: AnchoredState, X: np.ndarray) -> np.ndarray:
        """Joint covariance of new targets by the longest memory."""
        return self.heads.joint(state.heads, self._features(state, X))

    def learn(
        self,
        state: AnchoredState,
        x: np.ndarray,
        y: np.ndarray,
        elapsed: float,  # noqa: ARG002
        forecast: np.ndarray | None = None,  # noqa: ARG002
    ) -> None:
        """Learn one sample, and do the next piece of work."""
        if not observed(x, y):
            return
        errors = self._recur(state, x, y)
        ends = np.mean(errors[[0, -1]] ** 2, 1)
        state.squares += _ERROR_RATE * (ends - state.squares)
        self._keep(state, x, y)
        if state.fresh >= _APART + _SINCE and state.squares[1] < _TAKEOVER * state.squares[0]:
            self._take_over(state)
        if state.stage != NOTHING:
            self._work(state)
        elif state.rows >= state.due:
            self._begin_fit(state)
        elif state.rows >= state.refresh:
            self._place(state)

    def rescale(self, state: AnchoredState, units: Units) -> None:
        """Express rows, points and lengthscales in other units; forecasts of the regressions stay the same.

        Unfinished work begins again, since its sums are in the old units. Before the first fit the hyperparameters are
        the standard ones for scaled data: they stay, and the rows so far are learned again.
        """
        D = len(units.x_scale)
        kept = (np.arange(self.ring) < state.rows)[:, None]
        state.X[...] = np.where(kept, units.inputs(state.X), 0.0)
        state.y[...] = np.where(kept, units.targets(state.y), 0.0)
        if state.points == 0:
            self._learn_again(state)
        else:
            state.Z[:, : state.points] = units.inputs(state.Z[:, : state.points].T).T
            p = evidence.parameters(state.theta)
            self.heads.rescale(state.heads, p.linear * units.x_centre, np.ones(D), p.noise, units)
            state.theta[:D] -= np.log(units.x_scale)
            state.theta[D + 1 : -1] += 2.0 * np.log(units.x_scale)
            state.squares /= np.mean(units.y_scale) ** 2
        if FACTOR <= state.stage <= FINISH:
            state.due = state.rows
        elif state.stage != NOTHING:
            state.refresh = state.rows
        state.stage = NOTHING

    # ---- rows and regressions ----------------------------------------------------------------------------------------

    def _features(self, state: AnchoredState, X: np.ndarray) -> np.ndarray:
        m, F = state.points, state.heads.w.shape[1]
        return evidence.features(evidence.parameters(state.theta), state.Z[:, :m].T, _square(state.N, m), X, F)

    def _recur(self, state: AnchoredState, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        phi = self._features(state, x[None])[0]
        return self.heads.learn(state.heads, phi, y, float(np.exp(state.theta[-1])), state.rows)

    def _learn_again(self, state: AnchoredState) -> None:
        """New regressions, taught the last few rows."""
        q = evidence.parameters(state.theta).noise
        self.heads.start(state.heads, q, q)
        state.squares[...] = q
        for row in range(max(state.rows - min(self.ring, _FEWEST), 0), state.rows):
            self._recur(state, state.X[row % self.ring], state.y[row % self.ring])

    def _keep(self, state: AnchoredState, x: np.ndarray, y: np.ndarray) -> None:
        slot = state.rows % self.ring
        state.X[slot], state.y[slot] = x, y
        state.rows, state.fresh = state.rows + 1, state.fresh + 1

    def _take_over(self, state: AnchoredState) -> None:
        """Let the shortest memory be the longest one's from here on."""
        heads = state.heads
        for field in (heads.C, heads.g, heads.gain, heads.keep, heads.trace, heads.w, heads.noise):
            field[0] = field[-1]
        state.squares[0] = state.squares[1]
        state.fresh = _SINCE
        state.due = state.rows + 4 * _SINCE

    # ---- work in pieces ----------------------------------------------------------------------------------------------

    def _begin_fit(self, state: AnchoredState) -> None:
        """Choose recent rows, evenly spread without a period, and points among them."""
        # rows that are not overwritten before the fit is done
        state.span = min(state.fresh, state.rows, max(self.ring - self.ring // 4, 1))
        state.first = state.rows - state.span
        state.due = state.rows + min(max(state.fresh // 2, _FEWEST), _LONGEST)
        self._take_points(state)
        descent.begin(state.fit, state.theta, _FIRST_POINTS if state.points == 0 else _LATER_POINTS)
        state.stage, state.at = FACTOR, 0

    def _take_points(self, state: AnchoredState) -> None:
        """Points to come: the first rows of the sample."""
        state.next_points = min(self.points, self._sampled(state))
        state.next_Z[...] = 0.0
        state.next_Z[:, : state.next_points] = self._sample(state, 0, state.next_points)[0].T

    def _sampled(self, state: AnchoredState) -> int:
        """Rows of the fit."""
        return min(self.sample, state.span)

    def _sample(self, state: AnchoredState, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Some rows of the fit, in steps of a golden section: every row comes once before any comes again."""
        stride = max(round(0.6180339887498949 * state.span), 1)
        while math.gcd(stride, state.span) > 1:
            stride += 1
        slots = (state.first + np.arange(begin, end) * stride % state.span) % self.ring
        return state.X[slots], state.y[slots]

    def _place(self, state: AnchoredState) -> None:
        """Take points from recent rows, and begin to replay the rows that are kept."""
        if FACTOR <= state.stage <= FINISH:  # after a fit the points are there
            state.fit.theta[-1] = max(state.fit.theta[-1], _LEAST_NOISE)
        else:
            state.span = min(state.fresh, state.rows, self.ring)
            state.first = state.rows - state.span
            self._take_points(state)
            state.fit.theta[...] = state.theta
        state.stage = PLACE
        state.refresh = state.rows + self.refresh

    def _work(self, state: AnchoredState) -> None:
        """One piece."""
        if FACTOR <= state.stage <= FINISH and state.first < state.rows - self.ring:
            self._place(state)  # rows of the fit are being overwritten: the best point so far is used
            return
        work = {
            FACTOR: self._factor,
            SUMS: self._sum,
            SOLVE: self._solve,
            SLOPE: self._slope,
            FINISH: self._finish,
            PLACE: self._replay_from,
            REPLAY: self._replay,
            HEADS: self._solve_head,
        }
        work[state.stage](state)

    def _trial(self, state: AnchoredState) -> tuple[evidence.Parameters, np.ndarray, np.ndarray]:
        m = state.next_points
        return evidence.parameters(state.fit.trial), state.next_Z[:, :m].T, _square(state.next_N, m)

    def _factor(self, state: AnchoredState) -> None:
        p, Z, _ = self._trial(state)
        found = evidence.factor(p, Z)
        if found is None:
            self._tell(state, np.inf, state.fit.gradient)
            return
        _put_triangle(state.next_N, found)
        state.sums[...], state.moments[...], state.totals[...] = 0.0, 0.0, 0.0
        state.stage, state.at = SUMS, 0

    def _sum(self, state: AnchoredState) -> None:
        p, Z, N = self._trial(state)
        end = min(state.at + _SUMS_ROWS, self._sampled(state))
        m = evidence.moments(p, Z, N, *self._sample(state, state.at, end))
        F = len(m.b)
        state.sums[0, : packed_size(F)] += packed(m.S)
        state.moments[0, :F] += m.b
        state.totals[:2] += m.squares, m.left_out
        state.at = end
        if end == self._sampled(state):
            state.stage = SOLVE

    def _solve(self, state: AnchoredState) -> None:
        p, Z, N = self._trial(state)
        F = 1 + Z.shape[1] + len(Z)
        S = unpacked(state.sums[0, : packed_size(F)], F)
        sums = evidence.Moments(S, state.moments[0, :F], *state.totals[:2])
        solved = evidence.value(p, sums, self._sampled(state))
        if solved is None:
            self._tell(state, np.inf, state.fit.gradient)
            return
        value = solved.value + evidence.prior_value(state.fit.trial)
        if descent.refuses(state.fit, value):  # no gradient is needed there
            self._tell(state, value, state.fit.gradient)
            return
        r = evidence.reach(N, solved)
        state.sums[1, : packed_size(F)] = packed(r.C)
        state.moments[0, :F] = r.c
        state.totals[2:4] = solved.value, solved.by_noise
        state.stage, state.at = SLOPE, 0

    def _slope(self, state: AnchoredState) -> None:
        p, Z, _ = self._trial(state)
        end = min(state.at + _SLOPE_ROWS, self._sampled(state))
        s = evidence.slope(p, Z, *self._sample(state, state.at, end), self._reach(state))
        state.totals[4:-1] += s.by_lengthscale
        state.totals[-1] += s.by_variance
        state.at = end
        if end == self._sampled(state):
            state.stage = FINISH

    def _reach(self, state: AnchoredState) -> evidence.Reach:
        F = 1 + len(state.Z) + state.next_points
        return evidence.Reach(unpacked(state.sums[1, : packed_size(F)], F), state.moments[0, :F])

    def _finish(self, state: AnchoredState) -> None:
        _, Z, N = self._trial(state)
        F = 1 + Z.shape[1] + len(Z)
        S = unpacked(state.sums[0, : packed_size(F)], F)
        s = evidence.Slope(state.totals[4:-1], float(state.totals[-1]))
        theta, by_noise = state.fit.trial, float(state.totals[3])
        by = evidence.gradient(theta, Z, N, S, self._reach(state), s, by_noise, self._sampled(state))
        self._tell(state, *evidence.with_prior(theta, float(state.totals[2]), by))

    def _tell(self, state: AnchoredState, value: float, gradient: np.ndarray) -> None:
        if descent.tell(state.fit, value, gradient):
            state.stage = FACTOR
        else:
            self._place(state)

    def _replay_from(self, state: AnchoredState) -> None:
        m = state.next_points
        found = evidence.factor(evidence.parameters(state.fit.theta), state.next_Z[:, :m].T)
        if found is None:  # the old features stay
            state.stage = NOTHING
            return
        _put_triangle(state.next_N, found)
        state.sums[...], state.moments[...] = 0.0, 0.0
        state.stage, state.at = REPLAY, max(state.rows - self.ring, 0)

    def _replay(self, state: AnchoredState) -> None:
        begin, change = max(state.at, state.rows - self.ring), state.rows - state.fresh
        end = min(begin + _REPLAY_ROWS, change if begin < change else state.rows)
        rows = np.arange(begin, end)
        Phi, y = self._next_features(state, state.X[rows % self.ring]), state.y[rows % self.ring]
        S, b = packed(Phi.T @ Phi), Phi.T @ y
        rates = np.array(self.forgetting)
        if begin < change:  # rows before an abrupt change are forgotten at the rate of the shortest memory
            rates[0] = rates[-1]
        for h, rate in enumerate(rates):
            past, mean = rate ** len(rows), float(np.mean(rate ** np.arange(len(rows))))
            state.sums[h] = past * state.sums[h] + mean * S
            state.moments[h] = past * state.moments[h] + mean * b
        state.at = end
        if end == state.rows:
            state.stage, state.span = HEADS, 0  # the number of heads that are solved

    def _solve_head(self, state: AnchoredState) -> None:
        h, F, q = state.span, state.heads.w.shape[1], float(np.exp(state.fit.theta[-1]))
        A = unpacked(state.sums[h], F) + q * np.eye(F)
        found = evidence.inverse(A)
        if found is None or not np.all(np.abs(w := found[0] @ state.moments[h]) <= LARGEST):  # the old features stay
            state.stage = NOTHING
            return
        state.sums[h], state.moments[h], state.span = packed(found[0]), w, h + 1
        if state.span == self.voices:
            self._change(state)

    def _change(self, state: AnchoredState) -> None:
        """Use the new features from here on, and learn the rows that came meanwhile."""
        state.theta[...], state.Z[...], state.N[...] = state.fit.theta, state.next_Z, state.next_N
        state.points = state.next_points
        for h in range(self.voices):
            self.heads.put(state.heads, h, unpacked(state.sums[h], state.heads.w.shape[1]))
            state.heads.w[h] = state.moments[h]
        noise, errors = state.heads.noise.copy(), state.heads.errors
        for row in range(state.at, state.rows):
            self._recur(state, state.X[row % self.ring], state.y[row % self.ring])
        state.heads.noise[...], state.heads.errors = noise, errors  # these rows were counted
        # zeros need no room in a checkpoint
        state.sums[...], state.moments[...], state.totals[...], state.next_N[...] = 0.0, 0.0, 0.0, 0.0
        state.stage = NOTHING

    def _next_features(self, state: AnchoredState, X: np.ndarray) -> np.ndarray:
        m, F = state.next_points, state.heads.w.shape[1]
        p = evidence.parameters(state.fit.theta)
        return evidence.features(p, state.next_Z[:, :m].T, _square(state.next_N, m), X, F)


def _square(triangle: np.ndarray, m: int) -> np.ndarray:
    """The lower triangular matrix m×m whose rows lie one after the other."""
    A = np.zeros((m, m))
    A[np.tril_indices(m)] = triangle[: packed_size(m)]
    return A


def _put_triangle(triangle: np.ndarray, A: np.ndarray) -> None:
    triangle[...] = 0.0
    triangle[: packed_size(len(A))] = A[np.tril_indices(len(A))]
