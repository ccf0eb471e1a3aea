"""Missing inputs: what stands in, how much wider the law is, what is learned, and what must stay as it was."""

import numpy as np
import pytest

from driftgp import FastAGP, Online, prequential, recommended
from driftgp.kernels import SE, Linear
from driftgp.members import Lagged
from driftgp.wrappers import Gaps, Standardize, Within

HELD = FastAGP(kernel=SE(1.0), inducing=3, window=6, warmup_iterations=0)
MODEL = Gaps(HELD)
LINEAR = Gaps(Lagged(lags=0, forgetting=(0.9995,)))
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=12)
GAPPY = X.copy()
GAPPY[[2, 3, 9], 0] = np.nan
GAPPY[9, 1] = np.nan


def bits(state):
    """Bytes of a state, or of the part of one."""
    return state.record.tobytes()


def line(rows, share, seed=0):
    """y = 2a + b + noise 0.1, with a share of a missing; X, y, which rows have the gap, and X without gaps."""
    rng = np.random.default_rng(seed)
    full = rng.normal(size=(rows, 2))
    y = full @ [2.0, 1.0] + 0.1 * rng.normal(size=rows)
    gap = rng.random(rows) < share
    made = full.copy()
    made[gap, 0] = np.nan
    return made, y, gap, full


def rmse(error):
    return float(np.sqrt(np.mean(error**2)))


# ---- nothing changes where nothing is missing ------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [0, 6])
def test_without_gaps_the_wrapper_is_as_if_it_were_not_there(batch):
    made = prequential(MODEL, MODEL.init(X[:batch], Y[:batch]), X[batch:], Y[batch:])
    alone = prequential(HELD, HELD.init(X[:batch], Y[:batch]), X[batch:], Y[batch:])
    assert bits(made.state.inner) == bits(alone.state)
    assert made.prediction.mean.tobytes() == alone.prediction.mean.tobytes()
    assert made.prediction.interval(0.9)[0].tobytes() == alone.prediction.interval(0.9)[0].tobytes()


# ---- what stands in --------------------------------------------------------------------------------------------------


def filled(stream, row):
    """What stands in for the gaps of a row after a stream of inputs."""
    state = LINEAR.init(stream, np.zeros(len(stream)))
    return LINEAR._fill(state, np.array(row))


def test_a_slow_input_stays_near_its_last_value_and_the_doubt_grows_with_the_gap():
    walk = np.zeros((500, 1))
    for i, step in enumerate(np.random.default_rng(2).normal(size=499)):
        walk[i + 1] = 0.99 * walk[i] + 0.1 * step
    state = LINEAR.init(walk, np.zeros(500))
    doubts = []
    for _ in range(20):
        x, covariance, _ = LINEAR._fill(state, np.array([np.nan]))
        doubts.append(covariance[0, 0])
        state = LINEAR.update(state, [np.nan], 0.0)
    assert 0.5 < x[0] / walk[-1, 0] < 1.0
    assert np.all(np.diff(doubts) > -1e-3)
    assert doubts[10] > 3.0 * doubts[0]
    assert 0.005 < doubts[0] < 0.03


def test_noise_goes_to_its_mean():
    x = filled(3.0 + np.random.default_rng(3).normal(size=(800, 1)), [np.nan]).x
    assert abs(x[0] - 3.0) < 0.2


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_what_the_other_inputs_determine_is_found_however_often_it_was_missing(share):
    rng = np.random.default_rng(4)
    a = rng.normal(size=1500)
    stream = np.stack([a, 5.0 - 2.0 * a + 0.1 * rng.normal(size=1500), rng.normal(size=1500)], 1)
    stream[rng.random(1500) < share, 0] = np.nan
    stream[rng.random(1500) < share, 1] = np.nan
    stream[0, 0] = np.nan  # so that covariances are counted
    x, covariance, _ = filled(stream, [1.0, np.nan, 0.0])
    assert x[1] == pytest.approx(3.0, abs=0.1)
    assert 0.01 < covariance[1, 1] < 0.08  # of 4, with what few rows leave open


def test_an_input_that_comes_late_is_as_if_it_had_had_its_first_value_before():
    model = Standardize(MODEL, adapt=0.9)
    late = X + np.array([0.0, 100.0])
    late[:7, 1] = np.nan
    state = model.update(model.init(X[:0], Y[:0]), late[:8], Y[:8])
    window = state.inner.inner.window.X
    assert len(set(window[:, 1])) == 1  # no jump from a made-up value


def test_an_input_that_never_comes_costs_nothing():
    never = X.copy()
    never[:, 1] = np.nan
    without = np.where(np.isnan(never), 0.0, never)
    assert bits(MODEL.init(never, Y).inner) == bits(HELD.init(without, Y))
    online = Online(MODEL)
    online.update(never, Y)
    assert bits(online.state.inner) == bits(HELD.update(HELD.init(X[:0], Y[:0]), without, Y))


def test_wild_inputs_and_targets_stay_finite():
    wild = np.array([[np.nan, 1.0], [-1.7e308, 1.0], [1.7e308, np.nan], [np.nan, np.nan]])
    for model in (MODEL, Standardize(MODEL, adapt=1.0)):
        state = model.update(model.init(X[:0], Y[:0]), wild, [1e300, -1e300, 0.0, 1.0])
        assert np.isfinite(model.predict(state, wild).mean).all()
        model.check(state)


# ---- what it costs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [0, 500])
def test_complete_rows_are_as_good_as_without_gaps_and_rows_with_a_gap_are_wide(batch):
    X, y, gap, full = line(3000, 0.2)
    model = recommended(X[:500], y[:500], effort="low")
    made, alone = (prequential(model, model.init(x[:batch], y[:batch]), x[batch:], y[batch:]) for x in (X, full))
    here = np.arange(batch, 3000) >= 700
    error, other = y[batch:] - made.prediction.mean, y[batch:] - alone.prediction.mean
    low, high = made.prediction.interval(0.95)
    inside = (low <= y[batch:]) & (y[batch:] <= high)
    complete, gaps = here & ~gap[batch:], here & gap[batch:]
    assert rmse(error[complete]) < 1.03 * rmse(other[complete])
    assert np.mean((high - low)[complete]) < 0.5
    assert rmse(error[gaps]) < 1.03 * 2.0
    assert 0.93 < np.mean(inside[complete]) < 0.97
    assert 0.92 < np.mean(inside[gaps]) < 0.98


@pytest.mark.parametrize("effort", ["low", "medium"])
def test_the_first_gap_ever_is_as_wide_as_the_input_matters(effort):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    online = Online(effort=effort)
    online.update(X, 2 * X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=1000))
    for row, std in (([np.nan, np.nan], 5.0**0.5), ([np.nan, 0.0], 2.0), ([0.0, np.nan], 1.0)):
        low, high = online.predict(row).interval(0.95)
        assert 0.8 < (high - low).item() / (2 * 1.96 * std) < 1.3


def test_a_row_without_any_input_is_about_as_uncertain_as_the_targets_are():
    X, y, _, _ = line(1000, 0.0)
    state = LINEAR.init(X, y)
    nothing = LINEAR.predict(state, [[np.nan, np.nan]])
    assert float(nothing.variance[0]) == pytest.approx(np.var(y), rel=0.2)


def test_what_a_gap_itself_says_moves_the_mean():
    X, y, gap, _ = line(1500, 0.2)
    y = y + 3.0 * gap
    state = LINEAR.update(LINEAR.init(X[:0], y[:0]), X, y)
    means = LINEAR.predict(state, [[0.0, 0.0], [np.nan, 0.0]]).mean
    assert means[0] == pytest.approx(0.0, abs=0.1)
    assert means[1] == pytest.approx(3.0, abs=0.6)


def test_a_row_that_says_little_is_not_learned_from_but_its_target_is_known():
    held = Lagged(lags=1)
    model = Gaps(held)
    X, y, _, _ = line(300, 0.0)
    state = model.init(X, y)
    after = model.update(state, [np.nan, 0.0], 5.0)
    assert after.inner.rows == state.inner.rows
    assert after.inner.last[0, 0] == 5.0


def test_a_gap_that_does_not_matter_keeps_no_row_from_being_learned():
    X, y, _, _ = line(600, 0.0)
    X = np.concatenate([X, RNG.normal(size=(600, 1))], 1)
    X[::2, 2] = np.nan
    state = LINEAR.update(LINEAR.init(X[:0], y[:0]), X, y)
    assert state.inner.rows > 550


def test_learning_goes_on_where_every_row_has_a_gap_from_some_row_on():
    X, y, _, _ = line(1500, 0.0)
    X[500:, 0] = np.nan
    state = LINEAR.update(LINEAR.init(X[:0], y[:0]), X, y)
    later = LINEAR.update(state, X[-100:], y[-100:])
    assert later.inner.rows == state.inner.rows + 100


def test_inputs_that_had_gaps_are_named_with_what_they_cost():
    X, y, _, _ = line(600, 0.2)
    model = Standardize(Gaps(Within(Lagged(lags=0))), adapt=0.999)
    state = model.update(model.init(X[:0], y[:0]), X, y)
    (gap,) = model.summary(state)["gaps"]
    assert gap["input"] == 0
    assert gap["rows"] == int(np.isnan(X[:, 0]).sum())
    assert gap["wider"] > 5.0
    assert "input 0 was missing in" in str(model.summary(state))
    assert "gaps" not in model.summary(model.init(X[:0], y[:0]))


# ---- units, bad input ------------------------------------------------------------------------------------------------


def test_all_that_is_known_of_inputs_follows_their_units():
    """The same stream in units that change by a million on the way: what stands in is the same."""
    X, y, _, _ = line(300, 0.1)
    model = Standardize(Gaps(FastAGP(kernel=Linear(), inducing=3, window=20, warmup_iterations=0)), adapt=0.9)
    factors = np.geomspace(1.0, 1e6, 300)[:, None]
    state = model.update(model.init(X[:0], y[:0]), X * factors, y)
    assert state.renewals > 3
    previous = state.inner.previous * state.scale[:2] + state.centre[:2]
    seen = ~np.isnan(X[-1])
    np.testing.assert_allclose(previous[seen], (X * factors)[-1][seen])
    assert np.all(state.inner.variance < 10.0)


def test_without_the_wrapper_a_gap_is_refused_and_the_remedy_named():
    state = HELD.init(X[:0], Y[:0])
    for call in (
        lambda: HELD.update(state, GAPPY[2], 1.0),
        lambda: HELD.predict(state, GAPPY),
        lambda: HELD.init(GAPPY, Y),
    ):
        with pytest.raises(ValueError, match=r"must be finite \(fill gaps first, or let the Gaps wrapper do it\)"):
            call()


def test_an_infinite_input_is_refused_all_the_same():
    state = MODEL.init(X[:0], Y[:0])
    with pytest.raises(ValueError, match="x must be finite, or NaN where nothing was observed; got inf at index 1"):
        MODEL.update(state, np.array([1.0, np.inf]), 1.0)


def test_many_inputs_are_filled_by_their_own_past_alone():
    wide = np.random.default_rng(5).normal(size=(60, 70))
    wide[30:, 3] = np.nan
    state = LINEAR.update(LINEAR.init(wide[:0], np.zeros(0)), wide, wide[:, 0])
    assert state.T.size == 0
    assert np.isfinite(LINEAR.predict(state, wide[-1:]).mean).all()
