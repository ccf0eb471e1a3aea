"""Gaps in the inputs: what stands in, what is counted, and what is never made up."""

from typing import Any

import numpy as np
import pytest

from driftgp import FastAGP, Online, prequential
from driftgp.kernels import SE
from driftgp.wrappers import Gaps, Standardize

HELD = FastAGP(kernel=SE(1.0), inducing=3, window=6, warmup_iterations=0)
MODEL = Gaps(HELD)
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=12)
GAPPY = X.copy()
GAPPY[[2, 3, 9], 0] = np.nan
GAPPY[9, 1] = np.nan
FILLED = X.copy()
FILLED[2:4, 0] = X[1, 0]
FILLED[9] = X[8]


def bits(state):
    """Bytes of a state, or of the part of one."""
    return state.record.tobytes()


def test_a_gap_is_as_if_the_input_had_not_changed():
    state = MODEL.update(MODEL.init(X[:0], Y[:0]), GAPPY, Y)
    assert bits(state.inner) == bits(HELD.update(HELD.init(X[:0], Y[:0]), FILLED, Y))
    assert state.filled.tolist() == [3, 1]


def test_the_gaps_of_a_batch_are_filled_from_above():
    state = MODEL.init(GAPPY, Y)
    assert bits(state.inner) == bits(HELD.init(FILLED, Y))
    assert state.filled.tolist() == [3, 1]


def test_a_forecast_takes_the_last_value_too_and_counts_nothing():
    state = MODEL.update(MODEL.init(X[:0], Y[:0]), X, Y)
    gap = MODEL.predict(state, np.array([[np.nan, 0.5]]))
    assert gap.mean == MODEL.predict(state, np.array([[X[-1, 0], 0.5]])).mean
    run = prequential(MODEL, state, GAPPY, Y)
    assert np.all(np.isfinite(run.prediction.mean))


@pytest.mark.parametrize("batch", [0, 5, 9])
def test_an_input_that_comes_late_is_as_if_it_had_had_its_first_value_before(batch):
    """The held model sees distances from that value, and so may a shift of all of them be no difference to it."""
    late, known = X + np.array([0.0, 100.0]), X + np.array([0.0, 100.0])
    late[:7, 1], known[:7, 1] = np.nan, known[7, 1]
    made = prequential(MODEL, MODEL.init(late[:batch], Y[:batch]), late[batch:], Y[batch:])
    shifted = known - [0.0, known[7, 1]]
    expected = prequential(HELD, HELD.init(shifted[:batch], Y[:batch]), shifted[batch:], Y[batch:])
    np.testing.assert_array_equal(made.prediction.mean, expected.prediction.mean)
    assert bits(made.state.inner) == bits(expected.state)
    assert made.state.origin.tolist() == [0.0, known[7, 1]]


def test_an_input_that_never_comes_costs_nothing():
    """It used to keep every row from being learned."""
    never, without = X.copy(), X.copy()
    never[:, 1], without[:, 1] = np.nan, 0.0
    assert bits(MODEL.init(never, Y).inner) == bits(HELD.init(without, Y))
    online = Online(MODEL)
    online.update(never, Y)
    assert bits(online.state.inner) == bits(HELD.update(HELD.init(X[:0], Y[:0]), without, Y))


def test_a_late_input_that_is_far_out_stays_finite():
    wild = np.array([[np.nan, 1.0], [-1.7e308, 1.0], [1.7e308, 1.0]])
    state = Gaps(Standardize(HELD, adapt=1.0)).init(X[:0], Y[:0])
    state = state.model.update(state, wild, Y[:3])
    assert np.isfinite(state.last).all()
    assert np.isfinite(state.model.predict(state, wild).mean).all()


def test_without_the_wrapper_a_gap_is_refused_and_the_remedy_named():
    state = HELD.init(X[:0], Y[:0])
    for call in (
        lambda: HELD.update(state, GAPPY[2], 1.0),
        lambda: HELD.predict(state, GAPPY),
        lambda: HELD.init(GAPPY, Y),
    ):
        with pytest.raises(
            ValueError, match=r"must be finite \(fill gaps first, or let the Gaps wrapper do it\)"
        ):
            call()


def test_an_infinite_input_is_refused_all_the_same():
    state = MODEL.init(X[:0], Y[:0])
    with pytest.raises(ValueError, match="x must be finite, or NaN where nothing was observed; got inf at index 1"):
        MODEL.update(state, np.array([1.0, np.inf]), 1.0)


def test_works_inside_and_outside_of_standardising_and_sample_by_sample():
    models: list[Any] = [Standardize(MODEL, adapt=1.0), Gaps(Standardize(HELD, adapt=1.0))]
    for model in models:
        online = Online(model, model.init(X[:0], Y[:0]))
        for x, y in zip(GAPPY, Y, strict=True):
            assert np.isfinite(online.predict(x).mean)
            online.update(x, y)
        state = online.state
        carried = state if isinstance(model, Gaps) else state.inner
        assert carried.filled.tolist() == [3, 1]


def test_what_is_carried_changes_its_units_with_the_rest():
    """Inside `Standardize` the last value is kept in its units, and has to follow them."""
    model = Standardize(MODEL, adapt=0.5)
    state = model.update(model.init(X[:0], Y[:0]), X * np.geomspace(1.0, 1e6, 12)[:, None], Y)
    assert state.renewals > 3
    last = state.inner.last * state.scale[:2] + state.centre[:2]
    np.testing.assert_allclose(last, 1e6 * X[-1])
    late = X * np.geomspace(1.0, 1e6, 12)[:, None]
    late[:4, 1] = np.nan
    state = model.update(model.init(X[:0], Y[:0]), late, Y)
    last = (state.inner.last + state.inner.origin) * state.scale[:2] + state.centre[:2]
    np.testing.assert_allclose(last, 1e6 * X[-1])
