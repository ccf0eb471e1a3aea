"""How a stream begins: the model is chosen by the first rows, however they come."""

import copy
import pickle

import numpy as np
import pytest

from driftgp import AGP, Online
from driftgp.beginning import FIRST, Beginning, Plan, by_default
from driftgp.defaults import recommended
from driftgp.wrappers import CarryForward, Standardize

RNG = np.random.default_rng(3)
X = RNG.uniform(size=(40, 2))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=40)
ENOUGH = 25


def model(window: int) -> CarryForward:
    return CarryForward(Standardize(AGP(inducing=4, window=window, step="natural", prior=3.0), adapt=0.99))


def by_count(X, y):
    """A longer window the more rows there are."""
    return Plan(model(8 if len(X) < ENOUGH else 12))


def always(X, y):
    return Plan(model(8))


def warmed(X, y):
    return Plan(model(8), warmup=10)


def bits(beginning):
    return beginning.online.state.record.tobytes()


def in_parts(plan, at_once, *ends):
    """So many rows at the start, and the others in parts that end there."""
    beginning = Beginning(X[:at_once], Y[:at_once], plan, ENOUGH)
    for begin, end in zip((at_once, *ends), (*ends, len(X)), strict=True):
        beginning.learn(X[begin:end], Y[begin:end])
    return beginning


@pytest.mark.parametrize("plan", [by_count, always, warmed])
@pytest.mark.parametrize("parts", [(0,), (12,), (25,), (30,), (0, 1, 24, 25), (7, 26), (0, *range(1, 40))])
def test_once_the_first_rows_are_there_it_makes_no_difference_how_they_came(plan, parts):
    at_once = Beginning(X, Y, plan, ENOUGH)
    assert bits(in_parts(plan, *parts)) == bits(at_once)
    direct = plan(X[:ENOUGH], Y[:ENOUGH])
    state = direct.model.init(X[: direct.warmup], Y[: direct.warmup])
    assert direct.model.update(state, X[direct.warmup :], Y[direct.warmup :]).record.tobytes() == bits(at_once)


def test_single_samples_and_several_outputs_are_learned_from():
    both = np.column_stack([Y, -Y])
    one_by_one = Beginning(X[:0], both[:0], by_count, ENOUGH)
    for x, y in zip(X, both, strict=True):
        one_by_one.learn(x, y)
    assert bits(one_by_one) == bits(Beginning(X, both, by_count, ENOUGH))
    assert one_by_one.online.predict(X[:3]).mean.shape == (3, 2)


def test_a_model_is_at_work_before_the_first_rows_are_complete():
    beginning = Beginning(X[:0], Y[:0], by_count, ENOUGH)
    assert np.isfinite(beginning.online.predict(X[0]).mean).all()
    beginning.learn(X[:20], Y[:20])
    cold = model(8)
    assert beginning.online.model == cold
    assert cold.update(cold.init(X[:0], Y[:0]), X[:20], Y[:20]).record.tobytes() == bits(beginning)
    beginning.learn(X[20:], Y[20:])
    assert beginning.online.model == model(12)


def test_a_model_that_stays_the_right_one_is_not_started_again():
    beginning = Beginning(X[:10], Y[:10], always, ENOUGH)
    online = beginning.online
    beginning.learn(X[10:], Y[10:])
    assert beginning.online is online
    assert isinstance(online, Online)


def test_rows_that_are_refused_change_nothing():
    for count in (0, 10, ENOUGH):
        beginning = Beginning(X[:count], Y[:count], by_count, ENOUGH)
        before = bits(beginning)
        wrong = X.copy()
        wrong[-1, 0] = np.inf
        for rows, targets in ((wrong, Y), (X[:, :1], Y), (X, Y[:-1])):
            with pytest.raises(ValueError, match="must"):
                beginning.learn(rows, targets)
        assert bits(beginning) == before
        beginning.learn(X[count:], Y[count:])
        assert bits(beginning) == bits(Beginning(X, Y, by_count, ENOUGH))


def test_the_caller_s_arrays_are_not_kept():
    rows, targets = X[:10].copy(), Y[:10].copy()
    beginning = Beginning(rows, targets, by_count, ENOUGH)
    rows[...], targets[...] = 0.0, 0.0
    beginning.learn(X[10:], Y[10:])
    assert bits(beginning) == bits(Beginning(X, Y, by_count, ENOUGH))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda beginning: pickle.loads(pickle.dumps(beginning))])
def test_a_copy_goes_on_by_itself(copied):
    beginning = Beginning(X[:20], Y[:20], by_count, ENOUGH)
    other = copied(beginning)
    before = bits(beginning)
    other.learn(X[20:], Y[20:])
    assert bits(beginning) == before
    assert bits(other) == bits(Beginning(X, Y, by_count, ENOUGH))


def test_the_default_is_recommended_for_as_many_rows_as_the_longest_window_holds():
    assert FIRST == 400
    assert by_default(X, Y) == Plan(recommended(X, Y), 0)
    assert Beginning(X[:0], Y[:0]).online.model == recommended(X[:0], Y[:0])
