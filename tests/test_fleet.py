"""A fleet of n gives what n single models give, whatever the order in which rows arrive."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftgp import AGP, FastAGP, Online
from driftgp.fleet import Fleet
from driftgp.fleet.blocks import SIZE
from driftgp.wrappers import CarryForward, Standardize
from tests.catalogue import CATALOGUE

MODEL = FastAGP(inducing=3, window=5)
AT_MOST = 1e-10


def table(seed: int, rows: int, keys: int, *, gaps: float = 0.1) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=rows) < gaps, np.nan, rng.normal(size=rows))
    return rng.integers(0, keys, rows), rng.normal(size=(rows, 2)), y, np.sort(rng.uniform(0.0, 9.0, rows))


def alone(model, X, y, time=None, start=None):
    """Means and variances of one model by itself, and its state."""
    cold = np.zeros((0, X.shape[1])), np.zeros(0)
    online = Online(model, model.init(*(start or cold)))
    seen = []
    for i in range(len(y)):
        seen.append(online.predict(X[i]))
        online.update(X[i], y[i], 1.0 if time is None or i == 0 else time[i] - time[i - 1])
    return np.array([(p.mean[0], p.variance[0]) for p in seen]), online.state


def assert_as_alone(model, fleet_prediction, keys, X, y, time=None, start=None):
    for key in np.unique(keys):
        own = keys == key
        numbers, _ = alone(model, X[own], y[own], None if time is None else time[own], start)
        answered = np.stack([fleet_prediction.mean[own], fleet_prediction.variance[own]], 1)
        np.testing.assert_allclose(answered, numbers, rtol=AT_MOST, atol=AT_MOST)


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 40), max_size=3), timed=st.booleans())
@settings(max_examples=10, deadline=None)
def test_no_order_of_arrival_and_no_cut_into_calls_changes_a_prediction(seed, cuts, timed):
    keys, X, y, time = table(seed, 40, 4)
    fleet = Fleet(MODEL)
    edges = sorted({0, 40, *cuts})
    parts = [fleet.evaluate(keys[a:b], X[a:b], y[a:b], time[a:b] if timed else None) for a, b in pairwise(edges)]
    together = type(parts[0])(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("mean", "variance", "noise")))
    assert_as_alone(MODEL, together, keys, X, y, time if timed else None)


def test_the_same_rows_in_other_company_give_the_same_bits():
    keys, X, y, time = table(0, 60, 5)
    many, few = Fleet(MODEL), Fleet(MODEL)
    everyone = many.evaluate(keys, X, y, time)
    own = keys == 3
    one = few.evaluate(keys[own], X[own], y[own], time[own])
    assert np.array_equal(everyone.mean[own], one.mean)
    assert np.array_equal(everyone.variance[own], one.variance)


def test_more_keys_than_a_block_holds_and_more_rows_than_a_batch_holds():
    count = 2 * SIZE + 40
    keys = np.tile(np.arange(count), 3)
    _, X, y, _ = table(1, keys.size, 1)
    fleet = Fleet(MODEL)
    prediction = fleet.evaluate(keys, X, y)
    assert len(fleet) == count
    some = np.isin(keys, [0, 1, SIZE, count - 1])
    picked = type(prediction)(prediction.mean[some], prediction.variance[some], prediction.noise[some])
    assert_as_alone(MODEL, picked, keys[some], X[some], y[some])


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_model_of_the_contract_can_be_a_fleet(name):
    model = CATALOGUE[name].make()
    keys, X, y, _ = table(2, 40, 3)
    X = np.abs(X) % 1.0
    start = X[:16], np.nan_to_num(y[:16])
    fleet = Fleet(model)
    fleet.warm(*start)
    assert_as_alone(model, fleet.evaluate(keys[16:], X[16:], y[16:]), keys[16:], X[16:], y[16:], start=start)
    fleet.predict(keys, X)
    assert Fleet.from_bytes(model, fleet.to_bytes()).to_bytes() == fleet.to_bytes()


def test_wrappers_work_in_a_fleet_and_gaps_are_carried_for_each_key_by_itself():
    model = Standardize(CarryForward(MODEL), adapt=0.9)
    keys, X, y, _ = table(3, 30, 3)
    X[5:20:4, 1] = np.nan
    assert_as_alone(model, Fleet(model).evaluate(keys, X, y), keys, X, y)


def test_a_shared_warm_up_is_where_new_keys_start():
    model = AGP(inducing=3, window=5, warmup_iterations=3)
    _, X, y, _ = table(4, 12, 1, gaps=0.0)
    fleet = Fleet(model)
    fleet.warm(X[:8], y[:8])
    unseen = fleet.predict(["a"], X[8:9])
    assert len(fleet) == 0
    np.testing.assert_allclose(unseen.mean, model.predict(model.init(X[:8], y[:8]), X[8:9]).mean, rtol=AT_MOST)
    fleet.update(["a", "b"], X[8:10], y[8:10])
    single = model.update(model.init(X[:8], y[:8]), X[9], y[9])
    np.testing.assert_allclose(fleet.predict(["b"], X[10:11]).mean, model.predict(single, X[10:11]).mean, rtol=AT_MOST)


# ---- bytes -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grown() -> Fleet:
    keys, X, y, time = table(5, 50, 6)
    fleet = Fleet(MODEL)
    fleet.update(keys, X, y, time)
    return fleet


def test_a_fleet_comes_back_from_bytes_bit_for_bit_and_goes_on_alike(grown):
    data = grown.to_bytes()
    back = Fleet.from_bytes(MODEL, data)
    assert back.to_bytes() == data
    assert back.keys == grown.keys
    assert np.array_equal(back.times(back.keys), grown.times(grown.keys))
    again = Fleet.from_bytes(MODEL, data)
    _, X, y, _ = table(6, 6, 1)
    one, other = (fleet.evaluate(grown.keys, X, y) for fleet in (back, again))
    assert np.array_equal(one.mean, other.mean)
    assert back.to_bytes() == again.to_bytes() != data


def test_a_fleet_without_keys_has_bytes_too(grown):
    fleet = grown.fresh()
    assert len(Fleet.from_bytes(MODEL, fleet.to_bytes())) == 0
    fleet.warm(np.zeros((4, 2)), np.zeros(4))
    back = Fleet.from_bytes(MODEL, fleet.to_bytes())
    one, other = (each.predict([1], [[1.0, 2.0]]) for each in (fleet, back))
    assert np.array_equal(one.variance, other.variance)


def test_an_evicted_key_comes_back_as_it_was_and_its_place_is_as_new(grown):
    fleet = Fleet.from_bytes(MODEL, grown.to_bytes())
    before = {key: fleet.evict([key])[key] for key in fleet.keys[:2]}
    assert len(fleet) == len(grown) - 2
    cold = Fleet(MODEL)
    _, X, y, _ = table(7, 1, 1, gaps=0.0)
    fleet.update([99], X, y)  # takes a place that was left
    cold.update([99], X, y)
    assert fleet.evict([99]) == cold.evict([99])
    fleet.admit(before)
    assert fleet.evict(list(before)) == before


def test_a_file_is_refused_by_name_if_it_is_of_another_model_or_damaged(grown, tmp_path):
    path = tmp_path / "fleet.bin"
    grown.save(path)
    assert Fleet.load(path, MODEL).keys == grown.keys
    with pytest.raises(ValueError, match=r"fleet\.bin.*another model: model\.inducing is 3 there and 2 here"):
        Fleet.load(path, FastAGP(inducing=2, window=5))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"fleet\.bin.*checksum"):
        Fleet.load(path, MODEL)
    with pytest.raises(ValueError, match="must be a driftgp fleet"):
        Fleet.from_bytes(MODEL, b"something else")
    with pytest.raises(ValueError, match="truncated"):
        Fleet.from_bytes(MODEL, grown.to_bytes()[:-5])


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": ["a", None]}, r"keys must not be null; got None in row 1"),
        ({"keys": ["a", float("nan")]}, r"keys must not be null; got nan in row 1"),
        ({"keys": [1.5, 2.0]}, r"keys must be text or whole numbers; got 1\.5 in row 0"),
        ({"keys": [True, False]}, r"keys must be text or whole numbers; got True"),
        ({"keys": ["a", 1]}, r"all text or all whole numbers"),
        ({"keys": ["a", "b"]}, r"all text or all whole numbers"),
        ({"keys": [0]}, r"keys must have 2 entries"),
        ({"keys": "ab"}, r"one key a row"),
        ({"X": [[1.0], [2.0]]}, r"X must have 2 inputs"),
        ({"X": [[1.0, np.nan], [2.0, 0.0]]}, r"X must be finite"),
        ({"X": [["a", "b"], ["c", "d"]]}, r"X must hold real numbers"),
        ({"y": [1.0]}, r"y must have shape \(2,\)"),
        ({"y": [1.0, np.inf]}, r"y must be finite"),
        ({"time": [1.0, np.nan]}, r"time must not be missing; got NaN in row 1"),
        ({"time": [100.0, 0.5]}, r"time must not run backwards within a key; row 1 of key 1 has 0\.5"),
        ({"time": [1.0]}, r"time must have shape"),
    ],
)
def test_what_is_refused_changes_nothing(grown, change, message):
    before = grown.to_bytes()
    rows = {"keys": [0, 1], "X": [[1.0, 2.0], [3.0, 4.0]], "y": [1.0, 2.0], "time": [100.0, 100.0]} | change
    with pytest.raises(ValueError, match=message):
        grown.evaluate(**rows)
    assert grown.to_bytes() == before


def test_what_is_not_there_is_named(grown):
    with pytest.raises(ValueError, match="it has no 77"):
        grown.evict([0, 77])
    with pytest.raises(ValueError, match="is: evict it first"):
        grown.admit(grown.to_bytes())
    with pytest.raises(ValueError, match="update it or warm it up first"):
        Fleet(MODEL).to_bytes()
