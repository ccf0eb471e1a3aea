"""No forecast is farther out than the targets give reason to, and nothing that is real is followed later for it."""

import numpy as np
import pytest

from driftgp import Online
from driftgp.contract.protocol import Units
from driftgp.members import Anchored, LastKMean, Persistence
from driftgp.members.heads import Heads, HeadsState, packed_size
from driftgp.models import plausible
from driftgp.models.plausible import Span
from driftgp.wrappers import Bank

ENVELOPE = 1.0 + 1e-6  # lengths of the range of all targets so far
FIRST = 10


def beyond(values, y):
    """How far values lie outside the range of the targets before them, in its lengths; from the tenth target on."""
    low, high = np.minimum.accumulate(y)[FIRST:-1], np.maximum.accumulate(y)[FIRST:-1]
    away = np.maximum(low - values[FIRST + 1 :], values[FIRST + 1 :] - high)
    return away / (high - low)


def judged(X, y, effort="low"):
    """The default on a stream, row by row; the largest distance of a mean or median from the targets so far."""
    online = Online(effort=effort)
    said = online.evaluate(X, y)
    mean, median = np.asarray(said.mean), np.asarray(said.quantile(0.5))
    low, high = said.interval(0.95)
    assert (low <= median).all()
    assert (median <= high).all()
    assert max(beyond(mean, y).max(), beyond(median, y).max()) <= ENVELOPE
    return online, said


def rmse(errors):
    return float(np.sqrt(np.mean(np.square(errors))))


# ---- the range -------------------------------------------------------------------------------------------------------


def span_of(targets):
    span = Span.empty(P=1)
    for y in targets:
        plausible.count(span, np.array([y]))
    return span


def test_the_range_holds_what_came_and_forgets_what_no_longer_comes():
    rng = np.random.default_rng(0)
    span = span_of([1000.0, *rng.normal(size=40)])
    assert span.high[0] > 900.0
    for y in rng.normal(size=40_000):
        plausible.count(span, np.array([y]))
    assert 2.0 < span.high[0] < 6.0
    assert -6.0 < span.low[0] < -2.0


@pytest.mark.parametrize("targets", [[1.0, 2.0], [3.0] * 50, []])
def test_everything_is_plausible_before_there_is_a_range(targets):
    low, high, std = plausible.limits(span_of(targets))
    assert np.isneginf(low).all()
    assert np.isposinf([high, std]).all()


def test_a_missing_target_changes_nothing():
    span, other = span_of([1.0, 5.0]), span_of([1.0, np.nan, 5.0])
    assert span.record.tobytes() == other.record.tobytes()


def test_the_range_is_that_of_the_same_targets_in_other_units():
    y = np.random.default_rng(1).normal(size=30)
    units = Units(np.zeros(0), np.ones(0), np.array([3.0]), np.array([0.2]))
    ours, theirs = span_of(y), span_of(units.targets(y))
    plausible.rescale(ours, units)
    np.testing.assert_allclose([ours.low, ours.high], [theirs.low, theirs.high], rtol=1e-12)


# ---- votes -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_engine")
def test_a_wild_member_has_no_vote_and_a_bank_of_wild_members_stays_at_the_limit():
    y = np.sin(np.arange(60.0))
    X = np.column_stack([-y, np.full(60, 0.5)])
    near, wild = Persistence(column=1), Persistence(column=0)
    for models, expected in (([near, wild], 0.5), ([wild, wild], 3.0)):
        check_wild(models, X, y, expected)


@pytest.mark.usefixtures("each_engine")
def test_a_wild_member_that_was_always_right_votes_from_the_limit():
    y = np.sin(np.arange(60.0))
    check_wild([Persistence(column=1), Persistence(column=0)], np.column_stack([y, np.full(60, 0.5)]), y, 3.0)


def check_wild(models, X, y, expected):
    """What a bank says of an input far beyond all before."""
    bank = Bank(models)
    state = bank.update(bank.init(X[:2], y[:2]), X[2:], y[2:])
    said = bank.predict(state, [[1e6, 0.5]])
    np.testing.assert_allclose(said.mean, expected, atol=0.05)
    np.testing.assert_allclose(said.quantile(0.5), expected, atol=0.05)
    assert np.isfinite(said.law.variance).all()


@pytest.mark.usefixtures("each_engine")
def test_a_spread_beyond_the_range_has_no_vote():
    bank = Bank([LastKMean(k=2), Persistence(noise=1e9, forgetting=1.0)])
    X, y = np.zeros((12, 1)), np.sin(np.arange(12.0))
    state = bank.init(X, y)
    assert bank.predict(state, X[:1]).std[0] < 2.0


# ---- what once broke -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effort", ["low", "medium"])
@pytest.mark.parametrize(("off", "on", "lags"), [(0.001, 100.0, False), (0.001, 300.0, True), (1.0, 50.0, False)])
def test_a_machine_that_is_on_and_off_in_turn_is_forecast_within_its_range(off, on, lags, effort):
    rng = np.random.default_rng(10)
    running = np.arange(600) // 50 % 2
    X = np.column_stack([running, rng.normal(size=(600, 2))])
    y = np.where(running == 1, 1000.0 + on * X[:, 1] + 0.3 * on * rng.normal(size=600), off * rng.normal(size=600))
    if lags:
        X, y = np.column_stack([X[1:], y[:-1]]), y[1:]
    online, said = judged(X, y, effort)
    assert rmse((said.mean - y)[100:]) < rmse(np.diff(y)[100:])
    assert online.state.restarts <= 2


def test_a_flag_that_returns_after_a_thousand_rows_of_exact_targets_costs_nothing():
    rng = np.random.default_rng(1)
    t = np.arange(3000)
    angle = t * 2.0 * np.pi / 24.0
    parts = np.stack([rng.poisson(size * (1.0 + np.sin(angle))) for size in (20.0, 80.0)], 1).astype(float)
    y = parts.sum(1)
    flag = ((t % 1500 < 30) & (t > 100)).astype(float)
    X = np.column_stack([parts, flag, np.append(0.0, y[:-1]), np.sin(angle), np.cos(angle)])
    X, y = X[:1600], y[:1600]
    _, said = judged(X, y)
    assert np.abs(said.mean - y)[1500:1530].max() < 30.0
    low, high = said.interval(0.95)
    assert (high - low)[1500:1530].max() < 2.0 * np.ptp(y)


def test_inputs_in_another_unit_move_no_forecast_out_of_the_range():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = 100.0 * (X @ [1.0, 0.5, -0.5] + np.sin(X[:, 0])) + 5.0 * rng.normal(size=1000)
    X[800:] *= 100.0
    _, said = judged(X, y)
    assert rmse((said.mean - y)[800:830]) < 2.0 * np.std(y)


def test_bursts_do_not_make_a_model_start_anew_again_and_again():
    rng = np.random.default_rng(0)
    walk = np.zeros(2000)
    for i in range(1, 2000):
        walk[i] = 0.95 * walk[i - 1] + 0.5 * rng.normal()
    y = np.exp(11.0 + 1.2 * walk + 0.5 * rng.normal(size=2000)) * np.where(rng.random(2000) < 0.01, 300.0, 1.0)
    online, _ = judged(np.column_stack([y[:-2], y[1:-1]]), y[2:])
    assert online.state.restarts <= 4


def test_ends_of_intervals_are_in_order_on_a_constant_and_wide_again_after_it():
    rng = np.random.default_rng(3)
    y = np.append(np.zeros(1000), rng.normal(size=500))
    said = Online(effort="low").evaluate(rng.normal(size=(1500, 1)), y)
    low, high = said.interval(0.95)
    median = said.quantile(0.5)
    assert (low <= median).all()
    assert (median <= high).all()
    assert np.mean(((low <= y) & (y <= high))[1100:]) > 0.9


# ---- causes ----------------------------------------------------------------------------------------------------------


def test_a_regression_that_knows_nothing_has_the_variance_of_its_prior_however_small_its_ridge():
    q, noise = 8e-16, 5e-7
    for unit, most in ((True, noise + 2.0), (False, noise * (1.0 + 2.0 / q))):
        heads = Heads((0.99,), unit=unit)
        state = HeadsState.empty(H=1, F=2, P=1, B=1, packed=packed_size(2))
        heads.start(state, q, noise)
        made = heads.forecast(state, np.ones((1, 2)), q)
        np.testing.assert_allclose(made[0, 0, 1], most, rtol=1e-6)


@pytest.mark.usefixtures("each_engine")
def test_exact_targets_leave_a_noise_that_has_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    model = Anchored(points=20, ring=300, sample=200)
    state = model.init(X, X @ [0.5, -0.5])
    assert np.exp(state.theta[-1]) > 0.999e-10


def test_the_first_forecasts_stay_near_the_few_targets_so_far():
    """A machine that has just been switched on: the sixth forecast was thirteen ranges away from all targets."""
    rng = np.random.default_rng(1090)
    y = np.r_[np.zeros(3), np.full(9, 14.0)] + 1e-3 * rng.normal(size=12)
    X = np.column_stack([y > 7.0, np.r_[np.nan, np.nan, y[:-2]]])
    forecast = Online(effort="low").evaluate(X, y)
    for n in range(4, 12):  # targets before the row, one of which may wait to be confirmed
        low, high = y[:n].min(), y[:n].max()
        reach = max(1.0, 8.0 / (n - 1)) * (high - low)
        for value in (forecast.mean[n], forecast.quantile(0.5)[n]):
            assert low - 1.001 * reach <= value <= high + 1.001 * reach
