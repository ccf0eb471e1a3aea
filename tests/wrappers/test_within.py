"""Inputs within limits: what is limited, what is let through, and how the limits give way."""

import numpy as np
import pytest

from driftgp import FastAGP
from driftgp.kernels import SE
from driftgp.members import Lagged
from driftgp.models.model import State, Units
from driftgp.wrappers import Within

HELD = FastAGP(kernel=SE(1.0), inducing=3, window=6, warmup_iterations=0)
MODEL = Within(HELD, margin=0.5)
RNG = np.random.default_rng(1)
X = np.stack([np.linspace(0.0, 1.0, 12), np.full(12, 7.0)], 1)
Y = RNG.normal(size=12)
START = MODEL.init(X, Y)


def bits(state):
    """Bytes of a state, or of the part of one."""
    return state.record.tobytes()


def held(state):
    """The held model's part of a state as a state of its own."""
    return State(HELD, state.layout, state.inner.record.copy())


def reached(state):
    return float(state.low[0]), float(state.high[0])


def test_inputs_that_are_near_change_nothing():
    rows = np.stack([RNG.uniform(-0.4, 1.4, 20), np.full(20, 7.0)], 1)
    state = MODEL.update(START, rows, rows[:, 0])
    assert bits(state.inner) == bits(HELD.update(HELD.init(X, Y), rows, rows[:, 0]))
    assert state.limited.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("wild", "learned"),
    [(2.0, 1.0), (50.0, np.nan), (-50.0, np.nan)],
    ids=["a little beyond the limit", "far above it", "far below it"],
)
def test_a_lone_wild_input_is_seen_at_the_limit_and_far_from_it_its_target_is_not_learned(wild, learned):
    limit = np.array([1.5 if wild > 0.0 else -0.5, 7.0])
    row = np.array([wild, 7.0])
    assert MODEL.predict(START, row[None]).mean == HELD.predict(held(START), limit[None]).mean
    state = MODEL.update(START, row, 1.0)
    assert bits(state.inner) == bits(HELD.update(held(START), limit, learned))
    assert state.limited.tolist() == [1, 0]
    assert reached(state) == (min(limit[0], 0.0), max(limit[0], 1.0))


def test_what_comes_twice_is_believed_at_once():
    state = MODEL.update(START, np.array([[50.0, 7.0], [40.0, 7.0]]), np.zeros(2))
    assert reached(state) == (0.0, 40.0)
    state = MODEL.update(START, np.array([[50.0, 7.0], [-40.0, 7.0]]), np.zeros(2))
    low, high = reached(state)
    assert (low, high) == (-0.75, 1.5)  # one after the other, but not on one side


def test_an_input_that_never_changed_has_no_limits():
    other = np.array([[0.5, 9.0]])
    assert MODEL.predict(START, other).mean == HELD.predict(held(START), other).mean


def test_the_first_few_inputs_have_no_limits():
    rows = np.stack([3.0 ** np.arange(11), np.zeros(11)], 1)
    state = MODEL.update(MODEL.init(X[:0], Y[:0]), rows[:10], np.zeros(10))
    assert reached(state) == (1.0, 3.0**9)
    assert reached(MODEL.update(state, rows[10], 0.0))[1] == pytest.approx(1.5 * 3.0**9 - 0.5)


def test_a_sample_without_a_target_or_an_input_widens_nothing():
    assert reached(MODEL.update(START, np.array([50.0, 7.0]), np.nan)) == (0.0, 1.0)
    gap = START.copy()
    MODEL.learn(gap.view, np.array([np.nan, 7.0]), np.zeros(1), 1.0)
    assert reached(gap) == (0.0, 1.0)
    assert gap.limited.tolist() == [0, 0]


def test_other_units_limit_the_same_inputs():
    units = Units(x_centre=np.array([1.0, 0.0]), x_scale=np.array([2.0, 1.0]), y_centre=np.zeros(1), y_scale=np.ones(1))
    state = START.copy()
    MODEL.rescale(state.view, units)
    assert reached(state) == (-0.5, 0.0)


# ---- a law that has been found ---------------------------------------------------------------------------------------

LINEAR = Within(Lagged(lags=0, forgetting=(0.99,), ridge=1e-6))
PLACES = np.random.default_rng(3).normal(size=(120, 2))
FAR = np.array([40.0, 0.5])
AT_LIMIT = 1.0 + 2.0 * (1.25 * PLACES[:, 0].max() - 0.25 * PLACES[:, 0].min()) - 0.5


def law(X):
    return 1.0 + X @ [2.0, -1.0]


def said(state, x=FAR):
    return float(LINEAR.predict(state, x[None]).mean[0])


@pytest.mark.usefixtures("each_engine")
def test_who_has_hit_every_target_follows_an_input_far_beyond_all_before():
    state = LINEAR.update(LINEAR.init(PLACES[:0], PLACES[:0, 0]), PLACES, law(PLACES))
    assert said(state) == pytest.approx(law(FAR), abs=0.1)
    after = LINEAR.update(state, FAR, law(FAR))
    assert float(after.high[0]) == 40.0
    assert after.limited.tolist() == [0, 0]


@pytest.mark.usefixtures("each_engine")
def test_who_has_not_stays_at_the_limit():
    noise = np.random.default_rng(4).normal(size=len(PLACES))
    state = LINEAR.update(LINEAR.init(PLACES[:0], PLACES[:0, 0]), PLACES, law(PLACES) + 0.3 * noise)
    assert said(state) == pytest.approx(AT_LIMIT, abs=2.0)


@pytest.mark.usefixtures("each_engine")
def test_one_target_that_did_not_follow_its_input_closes_the_limits_for_some_time():
    state = LINEAR.update(LINEAR.init(PLACES[:0], PLACES[:0, 0]), PLACES, law(PLACES))
    state = LINEAR.update(state, FAR, law(PLACES[0]))  # a meter that is wrong
    assert state.limited.tolist() == [1, 0]
    assert said(state) < 20.0
    for _ in range(4):
        state = LINEAR.update(state, PLACES, law(PLACES))
    assert said(state) == pytest.approx(law(FAR), abs=1.0)


def test_refuses_a_margin_that_is_none():
    with pytest.raises(ValueError, match="margin must"):
        Within(HELD, margin=-1.0)
