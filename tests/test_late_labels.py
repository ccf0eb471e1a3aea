"""Predict now, learn when the label comes."""

import numpy as np
import pytest

from driftgp import FastAGP, Online
from driftgp.kernels import SE
from driftgp.online import LateLabels
from driftgp.wrappers import CarryForward

MODEL = FastAGP(kernel=SE(1.0), inducing=3, window=6, forgetting=0.9)
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=12)
GAPS = RNG.uniform(0.1, 2.0, size=12)


def service(most: int = 1000) -> LateLabels:
    return LateLabels(Online(MODEL, MODEL.init(X[:0], Y[:0])), most)


def assert_same(one: LateLabels, other: LateLabels) -> None:
    a, b = one.online.state.record, other.online.state.record
    for name in a.dtype.names or ():
        if name != "window":
            np.testing.assert_allclose(a[name], b[name], rtol=1e-12, atol=1e-14)
    for name in a["window"].dtype.names or ():
        np.testing.assert_array_equal(a["window"][name], b["window"][name])


def test_labels_that_come_in_order_however_late_teach_what_prompt_ones_do():
    prompt, late = service(), service()
    for i in range(12):
        prompt.predict(i, X[i], GAPS[i])
        prompt.learn(i, Y[i])
    for i in range(12):
        late.predict(i, X[i], GAPS[i])
        if i >= 5:
            late.learn(i - 5, Y[i - 5])
    for i in range(7, 12):
        late.learn(i, Y[i])
    assert_same(prompt, late)
    assert late.pending == 0


def test_a_label_that_never_comes_is_time_that_passed():
    with_gap, without = service(), service()
    for i in range(4):
        with_gap.predict(i, X[i], GAPS[i])
        if i != 2:
            with_gap.learn(i, Y[i])
    for i, elapsed in ((0, GAPS[0]), (1, GAPS[1]), (3, GAPS[2] + GAPS[3])):
        without.predict(i, X[i], elapsed)
        without.learn(i, Y[i])
    assert_same(with_gap, without)


def test_a_label_that_overtakes_takes_no_time_back():
    late = service()
    for i in range(3):
        late.predict(i, X[i])
    for i in (2, 0, 1):
        assert late.learn(i, Y[i])
    assert late.online.state.n == 3.0  # three samples of one and the same moment


def test_memory_is_bounded_and_what_was_given_up_is_counted():
    late = service(most=3)
    for i in range(5):
        late.predict(i, X[i])
    assert (late.pending, late.given_up) == (3, 2)
    assert [late.learn(i, Y[i]) for i in range(5)] == [False, False, True, True, True]
    assert late.online.state.samples == 3


def test_what_waits_is_a_copy():
    late, x = service(), X[0].copy()
    late.predict("a", x)
    x[:] = 99.0
    late.learn("a", 1.0)
    np.testing.assert_array_equal(late.online.state.window.X[0], X[0])


def test_gaps_in_the_inputs_are_the_models_to_refuse_or_to_fill():
    model = CarryForward(MODEL)
    late = LateLabels(Online(model, model.init(X[:0], Y[:0])))
    late.predict("a", X[0])
    late.predict("b", [np.nan, 1.0])
    assert late.learn("a", 1.0)
    assert late.learn("b", 2.0)
    assert late.online.state.filled.tolist() == [1, 0]


def test_a_refused_call_changes_nothing():
    late = service()
    late.predict("a", X[0])
    with pytest.raises(ValueError, match="key must be new, or its label known; 'a' still waits"):
        late.predict("a", X[1])
    for x, elapsed in ((X[:2], 1.0), ([1.0], 1.0), (X[1], -1.0), ([np.nan, 1.0], 1.0)):
        with pytest.raises(ValueError, match="must"):
            late.predict("b", x, elapsed)
    with pytest.raises(ValueError, match="y must"):
        late.learn("a", np.inf)
    assert late.pending == 1
    assert late.learn("a", 1.0)
