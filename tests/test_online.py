"""A model and its state as one object: the same numbers as the contract's functions, and states that stay put."""

from typing import Any

import jax
import numpy as np
import pytest

from driftgp.agp import AGP, FastAGP
from driftgp.kernels import SE
from driftgp.online import Online
from driftgp.packing import pack, packing_of, unpack

RNG = np.random.default_rng(8)
X = RNG.uniform(size=(24, 2))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=24)
SMALL: dict[str, Any] = {"inducing": 4, "window": 12, "noise": 0.1, "warmup_iterations": 0}


@pytest.fixture(scope="module", params=["AGP", "fast-AGP"])
def model(request):
    return AGP(SE(0.5), **SMALL) if request.param == "AGP" else FastAGP(kernel=SE(0.5), **SMALL)


@pytest.fixture
def state(model):
    return model.init(X[:12], Y[:12])


def arrays(tree):
    return [np.array(leaf) for leaf in jax.tree.leaves(tree)]


def assert_same(a, b):
    for one, other in zip(arrays(a), arrays(b), strict=True):
        np.testing.assert_array_equal(one, other)


def test_it_does_what_the_functions_do(model, state):
    online = Online(model, state)
    for x, y in zip(X[12:], Y[12:], strict=True):
        mine, theirs = online.predict(x), model.predict(state, x[None])
        np.testing.assert_allclose(mine.mean, theirs.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mine.variance, theirs.variance, rtol=1e-9)
        online.update(x, y)
        state = model.update(state, x, y)
    assert jax.tree.structure(online.state) == jax.tree.structure(state)
    for one, other in zip(arrays(online.state), arrays(state), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_a_state_taken_out_stays_readable_and_unchanged(model, state):
    """Updates reuse the memory of the state within, never of one that was handed in or out."""
    given = arrays(state)
    online = Online(model, state)
    taken = online.state
    before = arrays(taken)
    for x, y in zip(X[12:15], Y[12:15], strict=True):
        online.update(x, y)
    assert_same(taken, before)
    assert_same(state, given)


def test_two_that_start_from_one_state_go_their_own_ways(model, state):
    one, other = Online(model, state), Online(model, state)
    one.update(X[12], Y[12])
    before = arrays(other.state)
    one.update(X[13], Y[13])
    assert_same(other.state, before)


def test_going_on_from_a_state_taken_out_is_never_having_stopped(model, state):
    online = Online(model, state)
    online.update(X[12], Y[12])
    resumed = Online(model, online.state)
    online.update(X[13], Y[13])
    resumed.update(X[13], Y[13])
    assert_same(online.state, resumed.state)


def test_a_state_has_the_same_bits_however_it_was_asked_for(model, state):
    """The learning is put off to the next call: which call that is must not show."""
    eager, lazy = Online(model, state), Online(model, state)
    for x, y in zip(X[12:18], Y[12:18], strict=True):
        eager.update(x, y)
        eager.settle()
        lazy.predict(x)
        lazy.update(x, y)
    assert_same(eager.state, lazy.state)
    assert_same(eager.predict(X[:5]), lazy.predict(X[:5]))


def test_a_sample_is_the_callers_to_change_once_it_was_handed_in(model, state):
    kept, changed = Online(model, state), Online(model, state)
    x = X[12].copy()
    kept.update(X[12], Y[12])
    changed.update(x, Y[12])
    x[:] = 100.0
    assert_same(kept.state, changed.state)


def test_a_refusal_leaves_what_waits_to_be_learned(model, state):
    one, other = Online(model, state), Online(model, state)
    for online in (one, other):
        online.update(X[12], Y[12])
    with pytest.raises(ValueError, match="y must"):
        one.update(X[13], np.inf)
    assert_same(one.state, other.state)


def test_several_rows_and_gaps(model, state):
    online = Online(model, state)
    online.update(X[12:20], np.where(np.arange(8) == 3, np.nan, Y[12:20]), elapsed=2.0)
    assert int(online.state.samples) == 7
    assert online.predict(X[:5]).mean.shape == (5,)


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


# ---- packing -----------------------------------------------------------------------------------------------


def test_what_is_packed_comes_out_again_bit_for_bit(state):
    with jax.enable_x64(True):
        vectors = pack(state)
        again = unpack(packing_of(state), vectors)
    assert [vector.ndim for vector in vectors] == [1] * len(vectors)
    assert jax.tree.structure(again) == jax.tree.structure(state)
    assert_same(again, state)
    assert [leaf.dtype for leaf in arrays(again)] == [leaf.dtype for leaf in arrays(state)]


def test_a_packing_is_equal_and_hashed_by_structure_shapes_and_dtypes(model, state):
    later = model.update(state, X[12], Y[12])
    assert packing_of(later) == packing_of(state)
    assert hash(packing_of(later)) == hash(packing_of(state))
    assert packing_of({"a": np.zeros(3)}) != packing_of({"a": np.zeros(4)})
    assert packing_of({"a": np.zeros(3)}) != packing_of({"a": np.zeros(3, np.float32)})
