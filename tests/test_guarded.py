"""Targets within limits: a lone wild one costs little, a jump is followed, and nothing is hidden."""

import numpy as np
import pytest

from driftgp import FastAGP, Online, recommended
from driftgp.kernels import SE
from driftgp.members import LastKMean
from driftgp.wrappers import Guarded

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


def test_a_lone_wild_target_is_learned_from_at_the_limit():
    state = model().init(X[:60], Y[:60])
    p = model().predict(state, X[60:61])
    wild = model().update(state, X[60], 1e12)
    limit = model().update(state, X[60], p.mean[0] + 6.0 * p.std[0])
    np.testing.assert_allclose(
        model().predict(wild, X[61:62]).mean, model().predict(limit, X[61:62]).mean, rtol=1e-9, atol=1e-12
    )
    assert (wild.guarded.tolist(), wild.beyond.tolist()) == ([1], [1])


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


def test_refuses_a_reach_that_is_none():
    with pytest.raises(ValueError, match="reach must lie in"):
        model(reach=0.5)
