"""A model and its state as one object: the same numbers as the contract's functions, and states that stay put."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from driftgp.evaluate import prequential
from driftgp.gp.agp import AGP, FastAGP
from driftgp.kernels import SE
from driftgp.online import Online
from driftgp.wrappers import Calibrated, Watched

RNG = np.random.default_rng(8)
X = RNG.uniform(size=(24, 2))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=24)
SMALL: dict[str, Any] = {"inducing": 4, "window": 12, "noise": 0.1, "warmup_iterations": 0}
MODELS = {
    "AGP": AGP(SE(0.5), **SMALL),
    "fast-AGP": FastAGP(kernel=SE(0.5), **SMALL),
    "wrapped": Watched(Calibrated(AGP(SE(0.5), **SMALL))),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.fixture
def state(model):
    return model.init(X[:12], Y[:12])


def assert_same(one, other):
    """Bit for bit."""
    assert one.record.tobytes() == other.record.tobytes()


def test_it_does_what_the_functions_do(model, state):
    online = Online(model, state)
    for x, y in zip(X[12:], Y[12:], strict=True):
        assert online.predict(x).records.tobytes() == model.predict(state, x[None]).records.tobytes()
        online.update(x, y)
        state = model.update(state, x, y)
        assert_same(online.state, state)


def test_it_does_what_a_pass_over_the_stream_does(model, state):
    run = prequential(model, state, X[12:], Y[12:])
    online, made = Online(model, state), []
    for x, y in zip(X[12:], Y[12:], strict=True):
        made.append(online.predict(x).records)
        online.update(x, y)
    assert np.concatenate(made).tobytes() == run.prediction.records.tobytes()
    assert_same(online.state, run.state)


def test_a_state_taken_out_stays_readable_and_unchanged(model, state):
    """Updates change the state within, never one that was handed in or out."""
    given = state.copy()
    online = Online(model, state)
    taken = online.state
    before = taken.copy()
    for x, y in zip(X[12:15], Y[12:15], strict=True):
        online.update(x, y)
    assert_same(taken, before)
    assert_same(state, given)


def test_a_state_that_was_handed_out_is_the_callers_to_change(model, state):
    online = Online(model, state)
    online.state.record.reshape(1).view(np.uint64)[...] = 0
    state_before = state.copy()
    state.record.reshape(1).view(np.uint64)[...] = 0
    assert_same(online.state, state_before)


def test_two_that_start_from_one_state_go_their_own_ways(model, state):
    one, other = Online(model, state), Online(model, state)
    one.update(X[12], Y[12])
    assert_same(other.state, state)
    one.update(X[13], Y[13])
    assert_same(other.state, state)


def test_going_on_from_a_state_taken_out_is_never_having_stopped(model, state):
    online = Online(model, state)
    online.update(X[12], Y[12])
    resumed = Online(model, online.state)
    online.update(X[13], Y[13])
    resumed.update(X[13], Y[13])
    assert_same(online.state, resumed.state)


def test_a_copy_and_a_pickle_go_on_alike(model, state):
    online = Online(model, state)
    online.update(X[12], Y[12])
    others = [copy.deepcopy(online), pickle.loads(pickle.dumps(online))]
    for each in (online, *others):
        each.update(X[13], Y[13])
    for other in others:
        assert_same(online.state, other.state)


def test_what_is_learned_is_learned_at_once(model, state):
    """No sample waits for the next call."""
    online = Online(model, state)
    online.update(X[12], Y[12])
    assert_same(online.state, model.update(state, X[12], Y[12]))


def test_a_state_has_the_same_bits_whether_its_samples_were_predicted_or_not(model, state):
    """A forecast that is known already is not computed again: that must not show."""
    silent, asked, asked_else = (Online(model, state) for _ in range(3))
    for i, (x, y) in enumerate(zip(X[12:18], Y[12:18], strict=True)):
        silent.update(x, y)
        asked.predict(x)
        asked.update(x, y)
        asked_else.predict(x)
        asked_else.predict(X[i])
        asked_else.update(x, y)
    assert_same(silent.state, asked.state)
    assert_same(silent.state, asked_else.state)
    assert silent.predict(X[:5]).records.tobytes() == asked.predict(X[:5]).records.tobytes()


def test_a_forecast_is_the_callers_to_change(model, state):
    kept, changed = Online(model, state), Online(model, state)
    kept.predict(X[12])
    before = changed.predict(X[12])
    after = changed.predict(X[13])
    assert before.records.tobytes() == model.predict(state, X[12:13]).records.tobytes()
    kept.update(X[13], Y[13])
    changed.update(X[13], Y[13])
    assert_same(kept.state, changed.state)
    assert after.records.tobytes() == model.predict(state, X[13:14]).records.tobytes()


def test_a_sample_is_the_callers_to_change_once_it_was_handed_in(model, state):
    kept, changed = Online(model, state), Online(model, state)
    x = X[12].copy()
    kept.update(X[12], Y[12])
    changed.predict(x)
    changed.update(x, Y[12])
    x[:] = 100.0
    assert_same(kept.state, changed.state)


def test_a_sample_that_changed_since_it_was_predicted_is_another_one(model, state):
    online, x = Online(model, state), X[12].copy()
    online.predict(x)
    x[:] = X[13]
    online.update(x, Y[13])
    assert_same(online.state, model.update(state, X[13], Y[13]))


def test_a_refusal_leaves_what_was_learned(model, state):
    one, other = Online(model, state), Online(model, state)
    for online in (one, other):
        online.update(X[12], Y[12])
    with pytest.raises(ValueError, match="y must"):
        one.update(X[13], np.inf)
    assert_same(one.state, other.state)


def test_several_rows_and_gaps(model, state):
    online = Online(model, state)
    gappy = np.where(np.arange(8) == 3, np.nan, Y[12:20])
    online.update(X[12:20], gappy, elapsed=2.0)
    for x, y in zip(X[12:20], gappy, strict=True):
        state = model.update(state, x, y, 2.0)
    assert_same(online.state, state)
    assert online.predict(X[:5]).mean.shape == (5,)


def test_threads_take_turns(model, state):
    """Whatever the order, no update is lost and none is made by halves."""
    online = Online(model, state)
    switch = sys.getswitchinterval()

    def work(_: int) -> None:
        online.predict(X[12])
        online.update(X[12], Y[12])

    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(20)))
    finally:
        sys.setswitchinterval(switch)
    for _ in range(20):
        state = model.update(state, X[12], Y[12])
    assert_same(online.state, state)


@pytest.mark.parametrize(
    "call",
    [
        lambda online: online.update(X[12], np.inf),
        lambda online: online.update(X[12, :1], Y[12]),
        lambda online: online.update([0.1, [0.2]], Y[12]),
        lambda online: online.update(X[12], Y[12], elapsed=np.nan),
        lambda online: online.predict(np.zeros((2, 3))),
        lambda online: online.predict(np.zeros((0, 2))),
        lambda online: online.predict([np.nan, 0.0]),
        lambda online: online.predict([0.1, [0.2]]),
    ],
)
def test_a_refused_call_damages_nothing(model, state, call):
    online = Online(model, state)
    with pytest.raises(ValueError, match=r"^(x|X|y|elapsed) must"):
        call(online)
    assert_same(online.state, state)


def test_a_state_of_another_model_is_refused():
    state = MODELS["AGP"].init(X[:12], Y[:12])
    with pytest.raises(ValueError, match="its layout is another"):
        Online(AGP(SE(0.5), **SMALL | {"inducing": 3}), state)


@pytest.mark.parametrize("kind", [np.asarray, list])
def test_one_input_without_its_axis_is_refused_and_not_taken_for_one_row_with_many_outputs(kind):
    x = kind(np.arange(50.0))
    with pytest.raises(ValueError, match="X must have a row for each target; got one dimension of 50 numbers"):
        Online().evaluate(x, x)


@pytest.mark.parametrize("effort", ["low", "high"])
def test_a_stream_that_is_saved_within_its_first_rows_comes_back_with_its_effort(effort):
    online = Online(effort=effort, support=(-50.0, None))
    X = np.random.default_rng(0).normal(size=(410, 2))
    online.update(X[:20], X[:20, 0])
    back = Online.from_bytes(online.to_bytes())
    for stream in (online, back):
        stream.update(X[20:], X[20:, 0])
    assert back.to_bytes() == online.to_bytes()
