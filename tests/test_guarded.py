"""Targets within limits: a lone wild one costs little, a jump is followed, and nothing is hidden."""

import numpy as np
import pytest

from driftgp import FastAGP, Online, recommended
from driftgp.kernels import SE
from driftgp.members import LastKMean, Persistence
from driftgp.wrappers import Bounded, Guarded, Standardize

pytestmark = pytest.mark.usefixtures("each_engine")
RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 1))
Y = 3.0 * X[:, 0] + RNG.normal(size=400)


def model(**options):
    return Guarded(FastAGP(kernel=SE(2.0), inducing=6, window=60, warmup_iterations=20), **options)


def test_a_target_that_is_near_changes_nothing():
    held = model().model
    guarded, plain = model().init(X[:60], Y[:60]), held.init(X[:60], Y[:60])
    guarded, plain = model().update(guarded, X[60:90], Y[60:90]), held.update(plain, X[60:90], Y[60:90])
    assert guarded.inner.record.tobytes() == plain.record.tobytes()
    assert guarded.guarded.tolist() == [0]


def test_a_lone_target_beyond_the_limit_is_learned_from_at_the_limit():
    state = model().init(X[:60], Y[:60])
    p = model().predict(state, X[60:61])
    beyond = model().update(state, X[60], p.mean[0] + 9.0 * p.std[0])
    limit = model().update(state, X[60], p.mean[0] + 6.0 * p.std[0])
    np.testing.assert_allclose(
        model().predict(beyond, X[61:62]).mean, model().predict(limit, X[61:62]).mean, rtol=1e-9, atol=1e-12
    )
    assert (beyond.guarded.tolist(), beyond.beyond.tolist()) == ([1], [1])


def test_a_wild_one_is_left_out_but_not_if_they_come_often():
    state = model().init(X[:60], Y[:60])
    wild = model().update(state, X[60], 1e12)
    assert wild.inner.record.tobytes() == model().update(state, X[60], np.nan).inner.record.tobytes()
    later = model().update(wild, X[61:70], Y[61:70])
    p = model().predict(later, X[70:71])
    again, limit = (model().update(later, X[70], y).inner for y in (1e12, p.mean[0] + 6.0 * p.std[0]))
    np.testing.assert_allclose(again.record["noise"], limit.record["noise"], rtol=1e-9)


def test_a_jump_of_the_level_moves_the_past_and_keeps_what_was_learned_of_the_inputs():
    level = Guarded(Standardize(model().model, adapt=0.999))
    state = level.update(level.init(X[:60], Y[:60]), X[60:150], Y[60:150])
    jumped = level.update(state, X[150:152], Y[150:152] + 1000.0)
    assert (jumped.moves, jumped.restarts) == (1, 0)
    usual, moved = (level.predict(each, X[152:200]) for each in (state, jumped))
    np.testing.assert_allclose(moved.mean - usual.mean, 1000.0, atol=2.0)
    back = level.update(jumped, X[152:154], Y[152:154])
    assert back.moves == 2, "a jump back"
    np.testing.assert_allclose(level.predict(back, X[154:200]).mean, level.predict(state, X[154:200]).mean, atol=2.0)


def test_spikes_that_last_two_rows_move_the_past_once_there_and_back_and_then_no_more():
    level = Guarded(Standardize(model().model, adapt=0.999))
    y = Y.copy()
    for row in (150, 200, 250, 300):
        y[row : row + 2] += 1000.0
    state = level.update(level.init(X[:60], y[:60]), X[60:350], y[60:350])
    assert state.moves == 2


def test_forecasts_issued_before_a_jump_move_the_past_once():
    """Labels that come ten rows late: ten more forecasts of the old level are judged after the jump is known."""
    level = Guarded(Standardize(model().model, adapt=0.999))
    y = np.where(np.arange(400) < 150, Y, Y + 1000.0)
    online = Online(level, level.init(X[:60], y[:60]))
    for row in range(60, 190):
        online.predict(X[row], id=row)
        if row >= 70:
            online.update(y=y[row - 10], id=row - 10)
    assert (online.state.moves, online.state.restarts) == (1, 0)


def test_a_switch_among_the_inputs_moves_no_past_and_is_learned():
    """A machine that is off for 50 rows in turn: from its third return on, the row of the switch is foreseen."""
    on = np.arange(600) // 50 % 2
    y = np.where(on == 1, 1000.0, 0.0) + RNG.normal(size=600)
    online = Online(effort="low")
    said = online.evaluate(np.column_stack([on, RNG.normal(size=600)]), y)
    switches = np.flatnonzero(np.diff(on)) + 1
    assert online.state.inner.moves == 0
    assert np.abs(np.asarray(said.mean) - y)[switches[5:]].max() < 300.0


def test_targets_that_jump_about_do_not_move_the_past():
    state = model().init(X[:60], Y[:60])
    assert model().update(state, X[60:62], [1000.0, 3000.0]).moves == 0
    assert model().update(state, X[60:62], [1000.0, -1000.0]).moves == 0


def test_what_comes_twice_on_one_side_is_believed():
    held = Guarded(LastKMean(k=1))
    state = held.init(np.zeros((50, 1)), RNG.normal(size=50))
    once = held.update(state, [0.0], 1000.0)
    assert abs(held.predict(once, [[0.0]]).mean[0]) < 20.0
    assert held.predict(held.update(once, [0.0], 1001.0), [[0.0]]).mean[0] == 1001.0
    assert abs(held.predict(held.update(once, [0.0], -1001.0), [[0.0]]).mean[0]) < 50.0, "the other side"


def test_the_first_targets_are_taken_as_they_are():
    cold = Guarded(LastKMean(k=1))
    state = cold.update(cold.init(np.zeros((0, 1)), np.zeros(0)), [0.0], 5000.0)
    assert cold.predict(state, [[0.0]]).mean[0] == 5000.0


@pytest.mark.parametrize("wild", [1e3, 1e154, 1.7e308, -1e160])
def test_the_default_is_back_a_few_rows_after_one_wild_target(wild):
    """Errors over the 50 rows after it, beside those without it."""
    default = recommended(X[:100], Y[:100])
    errors = {}
    for name, value in (("calm", Y[150]), ("struck", wild)):
        online = Online(default, default.init(X[:100], Y[:100]))
        online.update(X[100:150], Y[100:150])
        online.update(X[150], value)
        struck = []
        for x, y in zip(X[151:201], Y[151:201], strict=True):
            struck.append((online.predict(x).mean[0] - y) ** 2)
            online.update(x, y)
        errors[name] = np.mean(struck)
    assert errors["struck"] < 1.3 * errors["calm"]


def test_the_default_follows_a_jump_of_the_level():
    default = recommended(X[:100], Y[:100])
    online = Online(default, default.init(X[:100], Y[:100]))
    online.update(X[100:150], Y[100:150])
    errors = []
    for x, y in zip(X[150:300], Y[150:300] + 40.0, strict=True):
        errors.append(abs(online.predict(x).mean[0] - y))
        online.update(x, y)
    assert np.mean(errors[50:]) < 1.5 * np.mean(np.abs(RNG.normal(size=1000)))


def test_a_past_that_no_longer_applies_is_forgotten():
    """From the twentieth row of another unit on the model is the one that starts from these twenty."""
    state = model().update(model().init(X[:60], Y[:60]), X[60:150], Y[60:150])
    assert state.restarts == 0
    moved = model().update(state, X[150:170], 100.0 * Y[150:170] + 5000.0)
    assert moved.restarts == 1
    fresh = model().model.init(X[150:170], 100.0 * Y[150:170] + 5000.0)
    assert moved.inner.record.tobytes() == fresh.record.tobytes()


@pytest.mark.parametrize("stuck", [0.0, 40.0])
def test_a_sensor_that_is_stuck_is_no_new_world(stuck):
    state = model().update(model().init(X[:60], Y[:60]), X[60:150], Y[60:150])
    assert model().update(state, X[150:250], np.full(100, stuck)).restarts == 0


def test_errors_as_large_as_the_targets_are_no_reason_to_forget():
    """A stretch of noise: nobody could do better."""
    state = model().update(model().init(X[:60], Y[:60]), X[60:150], Y[60:150])
    noise = 5.0 * np.random.default_rng(0).normal(size=200)
    assert model().update(state, X[150:350], noise).restarts == 0


@pytest.mark.parametrize("held", [Persistence(column=0, noise=1e6), Bounded(Persistence(column=0, noise=1e6), low=0.0)])
@pytest.mark.parametrize("x", [1e9, 30.0, -1e3])
def test_a_law_beyond_the_targets_is_drawn_in_and_keeps_its_bounds(held, x):
    guarded, y = Guarded(held), 10.0 + np.sin(np.arange(40.0))
    state = guarded.init(y[:, None], y)
    said = guarded.predict(state, [[x]])
    low, high = y.min(), y.max()
    for value in (said.mean[0], said.quantile(0.5)[0]):
        assert low - (high - low) - 1e-6 <= value <= high + (high - low) + 1e-6
    if isinstance(held, Bounded):
        assert said.interval(0.999)[0][0] >= 0.0


def test_a_plausible_law_is_the_held_one_bit_for_bit():
    held = model().model
    said, held = (each.predict(each.init(X[:60], Y[:60]), X[60:80]) for each in (Guarded(held), held))
    for name in ("mean", "variance", "noise"):
        np.testing.assert_array_equal(getattr(said, name), getattr(held, name))
    np.testing.assert_array_equal(said.interval(0.9), held.interval(0.9))


def test_after_targets_that_are_all_the_same_no_forecast_is_far_from_them():
    guarded = Guarded(Persistence(column=0))
    state = guarded.init(np.full((20, 1), 4.0), np.full(20, 4.0))
    assert abs(guarded.predict(state, [[1e6]]).mean[0] - 4.0) < 0.0061


def test_refuses_a_reach_that_is_none():
    with pytest.raises(ValueError, match="reach must lie in"):
        model(reach=0.5)
