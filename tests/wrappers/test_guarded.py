"""Targets within limits: a lone wild one costs little, a jump is followed, and nothing is hidden."""

import numpy as np
import pytest

from driftgp import FastAGP, Online, recommended
from driftgp.kernels import SE
from driftgp.members import LastKMean, Persistence
from driftgp.wrappers import Bounded, Guarded, Standardize
from tests.fuzz import grammar, judge
from tests.fuzz.__main__ import generator

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
    assert online.state.moves == 0
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


# ---- absurd targets, from the first row on ---------------------------------------------------------------------------


@pytest.fixture
def compiled(each_engine):
    """For tests of many rows: the engines agree row by row (test_native_wrappers.py)."""
    if each_engine != "native":
        pytest.skip("many rows are for the compiled engine")


FILLS = [9.969209968386869e36, 1e20, -9999.0, 1e300, -1e300]


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("at", [[0], [1], [3], [0, 5], [12], [25, 27], [60, 75]])
@pytest.mark.usefixtures("compiled")
def test_a_fill_value_among_the_first_targets_leaves_no_trace(fill, at):
    y = 20.0 + Y[:100]
    spoiled = y.copy()
    spoiled[at] = fill
    said = Online(effort="low").evaluate(X[:100], spoiled)
    rows = np.setdiff1d(np.arange(4, 100), at)
    assert np.abs(said.mean - y)[rows].max() < 20.0, "the largest without a fill value is 12"
    low, high = said.rows(rows[-15:]).interval(0.95)
    assert (high - low).max() < 15.0, "and 8"


@pytest.mark.parametrize("at", [[1], [6], [5, 12], [40], [6, 100]])
@pytest.mark.usefixtures("compiled")
def test_a_fill_value_among_targets_that_are_all_0_leaves_no_trace(at):
    y = np.where(np.arange(120) < 60, 0.0, np.arange(120) % 3)
    spoiled = y.copy()
    spoiled[at] = FILLS[0]
    said = Online(effort="low").evaluate(X[:120], spoiled)
    rows = np.setdiff1d(np.arange(2, 120), at)
    assert np.abs(said.mean - y)[rows].max() < 10.0
    assert said.variance[rows].max() < 100.0


@pytest.mark.usefixtures("compiled")
def test_after_zeros_a_large_target_is_believed_at_once():
    y = np.where(np.arange(60) < 30, 0.0, 1e12)
    said = Online(effort="low").evaluate(X[:60], y)
    assert np.abs(said.mean - y)[-20:].max() < 1e10


@pytest.mark.usefixtures("compiled")
def test_the_median_of_a_law_that_is_narrower_than_the_held_one_is_drawn_in_too():
    given = grammar.stream(generator("grammar", 101, 1679))
    said = Online(effort="low").evaluate(given.X[:240], given.y[:240])
    median = said.quantile(0.5)
    assert judge.distances(median, given.y[:240])[judge.FIRST :].max() <= 1.0 + 1e-6


@pytest.mark.parametrize("fill", FILLS)
def test_a_fill_value_in_the_first_batch_leaves_no_trace(fill):
    y = 20.0 + Y[:200]
    for at in ([0], [7], [30, 60], [99]):
        spoiled = y.copy()
        spoiled[at] = fill
        default = recommended(X[:100], spoiled[:100], effort="low")
        assert np.abs(default.predict(default.init(X[:100], spoiled[:100]), X[100:200]).mean - y[100:200]).max() < 5.0


@pytest.mark.usefixtures("compiled")
def test_sparse_targets_are_guarded_as_others_are():
    y = np.full(400, np.nan)
    y[::10] = 20.0 + Y[::10]
    spoiled = y.copy()
    spoiled[[50, 230]] = FILLS[0]
    said = Online(effort="low").evaluate(X, spoiled)
    here = np.isfinite(y) & (np.arange(400) > 40)
    assert np.abs(said.mean - y)[here].max() < 25.0


@pytest.mark.parametrize("at", [5, 12, 22, 28])
@pytest.mark.parametrize("change", ["× 100", "× 1000", "+ 1000 sd", "− 1000 sd"])
@pytest.mark.usefixtures("compiled")
def test_a_true_change_among_the_first_targets_is_followed(at, change):
    y = {
        "× 100": np.where(np.arange(150) < at, 1.0, 100.0) * (20.0 + Y[:150]),
        "× 1000": np.where(np.arange(150) < at, 1.0, 1000.0) * (20.0 + Y[:150]),
        "+ 1000 sd": Y[:150] + 3000.0 * (np.arange(150) >= at),
        "− 1000 sd": Y[:150] - 3000.0 * (np.arange(150) >= at),
    }[change]
    error = np.abs(Online(effort="low").evaluate(X[:150], y).mean - y)
    assert np.median(error[at + 2 : at + 12]) < 0.3 * abs(np.median(y[at:])), "two rows later it is there"
    assert np.median(error[at + 60 :]) < 1.5 * np.std(y[at:])


def test_what_many_targets_running_say_is_believed_however_far_it_is():
    y = 20.0 + Y[:120]
    y[50:] += 1e12
    assert np.abs(Online(effort="low").evaluate(X[:120], y).mean[60:] / 1e12 - 1.0).max() < 0.1


def test_first_targets_that_turn_out_to_be_sound_are_learned_after_all():
    near_zero = np.array([1e-9, 2.0, -1.5, 0.7, 1.1])
    said = Online(effort="low")
    said.update(X[:5], near_zero)
    held = said.state
    assert (held.first, held.span.count.tolist()) == (5, [5])
    np.testing.assert_allclose([held.span.low[0], held.span.high[0]], [-1.5, 2.0], rtol=1e-3)


# ---- cold ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effort", ["low", "medium"])
def test_before_the_first_target_nothing_is_known(effort):
    cold = Online(effort=effort).predict(X[:3])
    for level in (0.01, 0.5, 0.95, 0.999):
        low, high = cold.interval(level)
        assert (low == -np.inf).all()
        assert (high == np.inf).all()
        assert all((end == each).all() for end, each in zip(cold.law.interval(level), (low, high), strict=True))
    for nought in (cold.mean, cold.quantile(0.5), cold.law.quantile(0.5), cold.to_normal(7.0), cold.law.to_normal(7.0)):
        assert (nought == 0.0).all()
    for endless in (cold.variance, cold.noise, cold.crps(7.0), -cold.log_prob(7.0), np.abs(cold.sample(5, seed=0))):
        assert (endless == np.inf).all()
    assert cold.cdf(7.0).tolist() == [0.5] * 3
    default = recommended(X[:0], Y[:0], effort=effort)
    with pytest.raises(ValueError, match="nothing is known"):
        default.predict(default.init(X[:0], Y[:0]), X[:3]).sample(2, seed=0, joint=True)


def test_a_cold_law_keeps_bounds_that_were_given():
    low, high = Online(effort="low", support=(100.0, 200.0)).predict(X[:1]).interval(0.5)
    assert (low.item(), high.item()) == (100.0, 200.0)
    low, high = Online(effort="low", support="positive").predict(X[:1]).interval(0.5)
    assert (low.item(), high.item()) == (0.0, np.inf)


def test_rows_without_a_target_leave_a_stream_cold(tmp_path):
    online = Online(effort="low")
    online.update(X[:5], np.full(5, np.nan))
    online.save(tmp_path / "cold.drift")
    again = Online.load(tmp_path / "cold.drift")
    for each in (online, again):
        assert np.isinf(each.predict(X[5:6]).variance).all()
        each.update(X[5], 3.0)
        assert np.isfinite(each.predict(X[6:7]).interval(0.999)).all()


def test_a_cold_row_is_no_part_of_scores_and_does_no_harm_to_those_after_it():
    made = Online(effort="low").evaluate(X[:60], Y[:60])
    scores = made.scores()
    assert scores.rows == 59
    assert np.isfinite([scores.rmse, scores.crps, scores.nlpd, scores.width, scores.coverage]).all()


def random_stream(seed, rows):
    """One of four kinds with normal or t₃ noise, at any level and of any size."""
    rng = np.random.default_rng([17, seed])
    inputs, t = rng.normal(size=(rows, rng.integers(1, 5))), np.arange(rows)
    noise = rng.standard_t(3, rows) / np.sqrt(3.0) if seed // 4 % 2 else rng.normal(size=rows)
    kind = seed % 4
    if kind == 1:
        inputs[:, 0] = t
    signal = (
        inputs @ rng.normal(size=inputs.shape[1]),
        np.sin(2.0 * np.pi * t / rng.uniform(6.0, 60.0) + rng.uniform(0.0, 6.0)),
        np.cumsum(noise),
        np.exp(rng.uniform(0.2, 1.0) * inputs[:, 0]),
    )[kind]
    y = signal / np.std(signal) + (0.01 if kind == 2 else rng.choice([0.1, 0.3, 1.0])) * noise
    return inputs, y * 10.0 ** rng.uniform(-3.0, 4.0) + rng.choice([-1.0, 0.0, 1.0]) * 10.0 ** rng.uniform(-3.0, 5.0)


@pytest.mark.usefixtures("compiled")
def test_intervals_hold_their_level_from_the_first_target_on():
    inside, width = np.zeros((200, 51)), np.zeros((200, 51))
    for seed in range(200):
        inputs, y = random_stream(seed, 51)
        low, high = Online(effort="low").evaluate(inputs, y).interval(0.95)
        inside[seed], width[seed] = (low <= y) & (y <= high), (high - low) / np.std(y)
    shares = inside.mean(0)
    assert shares[1:5].min() >= 0.9, shares[1:5]
    assert 0.93 <= inside[:, 5:].mean() <= 0.97
    assert np.isfinite(width[:, 1:]).all()
    typical = np.median(width, 0)
    assert (np.diff(typical[1:6]) < 0.0).all(), "narrower as rows come"


# ---- inputs far beyond all before ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("compiled")
def test_a_target_that_follows_an_input_far_beyond_all_before_is_learned_from_as_it_is():
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(400, 2))
    inputs[[150, 300], 0] = 8.0, 10.0
    y = inputs @ [2.0, 1.0] + 0.2 * rng.normal(size=400)  # no exact law: the record alone opens no limit
    said = Online(effort="low").evaluate(inputs, y)
    error = np.abs(said.mean - y)
    assert error[150] > 5.0  # nobody knows yet whether it is to be believed
    assert error[300] < 3.0


@pytest.mark.parametrize("seed", [0, 3, 4])
@pytest.mark.usefixtures("compiled")
def test_exact_targets_of_inputs_with_heavy_tails_are_forecast_nearly_as_by_linear_regression(seed):
    rng = np.random.default_rng(seed)
    inputs = rng.standard_t(1.5, (800, 3))
    y = inputs @ [1.0, -0.5, 2.0]
    error = np.abs(Online(effort="low").evaluate(inputs, y).mean - y)[400:]
    assert np.sqrt(np.mean(error**2)) < 0.02 * np.std(y[400:])


@pytest.mark.usefixtures("compiled")
def test_one_switch_of_a_machine_with_exact_targets_is_learned_at_low_effort():
    rng = np.random.default_rng(2)
    inputs = np.column_stack([rng.normal(size=(400, 2)), np.arange(400) // 60 % 2])
    y = inputs[:, 2] * 1000.0 + inputs[:, :2] @ [1.0, -0.5]
    error = np.abs(Online(effort="low").evaluate(inputs, y).mean - y)
    assert error[[120, 180, 240, 300, 360]].max() < 100.0  # the first switch, at 60, is news
