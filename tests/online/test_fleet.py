"""A fleet of n gives what n single models give, whatever the order in which rows arrive."""

import copy
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftgp import AGP, FastAGP, Fleet, Online, recommended
from driftgp.base import sealed
from driftgp.engine.reference import ReferenceEngine
from driftgp.kernels import SE
from driftgp.stream import runtime
from driftgp.stream.one_each import one_each
from driftgp.wrappers import Gaps, Standardize, Watched
from tests.catalogue import CATALOGUE

MODEL = FastAGP(inducing=3, window=5)


def table(seed: int, rows: int, keys: int, *, gaps: float = 0.1) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=rows) < gaps, np.nan, rng.normal(size=rows))
    return rng.integers(0, keys, rows), rng.normal(size=(rows, 2)), y, np.sort(rng.uniform(0.0, 9.0, rows))


def alone(model, X, y, time=None, start=None):
    """Forecasts of one model by itself, and its state."""
    cold = np.zeros((0, X.shape[1])), np.zeros((0, *y.shape[1:]))
    online = Online(model, model.init(*(start or cold))) if time is None else Online(model, time="at")
    seen = []
    for i in range(len(y)):
        row = X[i] if time is None else {"a": X[i, 0], "b": X[i, 1], "at": time[i]}
        seen.append(online.predict(row).records)
        online.update(row, y[i])
    return np.concatenate(seen), online.state


def assert_as_alone(model, records, keys, X, y, time=None, start=None):
    """Bit for bit."""
    for key in np.unique(keys):
        own = keys == key
        expected, _ = alone(model, X[own], y[own], None if time is None else time[own], start)
        assert records[own].tobytes() == expected.tobytes()


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 40), max_size=3), timed=st.booleans())
@settings(max_examples=10, deadline=None)
def test_no_order_of_arrival_and_no_cut_into_calls_changes_a_prediction(seed, cuts, timed):
    keys, X, y, time = table(seed, 40, 4)
    fleet = Fleet(MODEL)
    edges = sorted({0, 40, *cuts})
    parts = [fleet.evaluate(keys[a:b], X[a:b], y[a:b], time[a:b] if timed else None) for a, b in pairwise(edges)]
    assert_as_alone(MODEL, np.concatenate([p.records for p in parts]), keys, X, y, time if timed else None)


def test_a_row_of_each_key_takes_the_quick_way_and_gives_the_bits_of_single_models(monkeypatch):
    quick = []
    monkeypatch.setattr(runtime, "one_each", lambda *given: quick.append(given) or one_each(*given))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 5, 2)), np.where(rng.uniform(size=(6, 5)) < 0.2, np.nan, rng.normal(size=(6, 5)))
    X[3, 2, 0] = np.nan
    model, keys = Gaps(MODEL), np.array(["d", "a", "c", "e", "b"])
    fleet, seen = Fleet(model), []
    for i in range(6):
        order = rng.permutation(5)
        made = fleet.evaluate(keys[order], X[i, order], y[i, order])
        seen.append(made.records[np.argsort(order)])
    assert len(quick) == 5  # all calls but the first, in which the keys are new
    for place in range(5):
        expected, state = alone(model, X[:, place], y[:, place])
        assert np.concatenate([records[place : place + 1] for records in seen]).tobytes() == expected.tobytes()
        assert fleet.state(str(keys[place])).record.tobytes() == state.record.tobytes()


def test_a_row_of_each_key_by_models_of_their_own():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    together, one_by_one = Fleet(effort="low"), Fleet(effort="low")
    for key in "ab":  # keys of their own models, and then one that is new
        for fleet in (together, one_by_one):
            fleet.evaluate([key] * 420, *first_rows(key))
    for _ in range(2):
        made = together.evaluate(["b", "a", "c"], X[:3], y[:3]).mean
        expected = [one_by_one.evaluate([key], X[i : i + 1], y[i : i + 1]).mean[0] for i, key in enumerate("bac")]
        np.testing.assert_array_equal(made, expected)
    assert together.to_bytes() == one_by_one.to_bytes()


def first_rows(key: str) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(ord(key)).normal(size=(420, 2))
    return X, np.sin(X[:, 0]) if key == "a" else np.cumsum(X[:, 1])


def test_the_same_rows_in_other_company_give_the_same_bits():
    keys, X, y, time = table(0, 60, 5)
    many, few = Fleet(MODEL), Fleet(MODEL)
    everyone = many.evaluate(keys, X, y, time)
    own = keys == 3
    one = few.evaluate(keys[own], X[own], y[own], time[own])
    assert everyone.records[own].tobytes() == one.records.tobytes()
    assert many.state(3).record.tobytes() == few.state(3).record.tobytes()


def test_states_and_predictions_are_those_of_single_models():
    keys, X, y, _ = table(10, 30, 3)
    fleet = Fleet(MODEL)
    fleet.update(keys, X, y)
    for key in range(3):
        _, state = alone(MODEL, X[keys == key], y[keys == key])
        assert fleet.state(key).record.tobytes() == state.record.tobytes()
        said = fleet.predict([key] * 4, X[:4])
        assert said.records.tobytes() == MODEL.predict(state, X[:4]).records.tobytes()
        np.testing.assert_array_equal(said.interval(0.9), MODEL.predict(state, X[:4]).interval(0.9))


def test_the_array_grows_while_keys_come_and_go():
    """Slots double; what was left is taken again; no state moves into another's place."""
    count = 70
    keys = np.tile(np.arange(count), 2)
    _, X, y, _ = table(1, keys.size, 1)
    fleet = Fleet(MODEL)
    prediction = fleet.evaluate(keys, X, y)
    assert len(fleet) == count
    some = np.isin(keys, [0, 1, 8, 63, count - 1])
    assert_as_alone(MODEL, prediction.records[some], keys[some], X[some], y[some])
    kept = {key: fleet.state(key).record.tobytes() for key in range(count)}
    room = fleet.nbytes
    away = fleet.evict(range(0, count, 2))
    fleet.update([1000 + i for i in range(10)], X[:10], y[:10])
    fleet.admit(away)
    assert {key: fleet.state(key).record.tobytes() for key in range(count)} == kept
    assert len(fleet) == count + 10
    assert room <= fleet.nbytes <= 2 * (count + 11) * fleet.state(0).record.nbytes


def test_a_state_taken_out_is_the_callers_own():
    fleet = Fleet(MODEL)
    fleet.update(["a"], [[0.0]], [1.0])
    before = fleet.to_bytes()
    fleet.state("a").record["noise"] = 7.0
    assert fleet.to_bytes() == before


def test_several_outputs():
    keys, X, y, _ = table(11, 20, 2)
    Y = np.stack([y, 2.0 * y], 1)
    fleet = Fleet(MODEL)
    prediction = fleet.evaluate(keys, X, Y)
    assert prediction.mean.shape == (20, 2)
    assert_as_alone(MODEL, prediction.records, keys, X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_model_of_the_contract_can_be_a_fleet(name):
    model = CATALOGUE[name].make()
    keys, X, y, _ = table(2, 40, 3)
    X = np.abs(X) % 1.0
    start = X[:16], np.nan_to_num(y[:16])
    fleet = Fleet(model)
    fleet.warm(*start)
    assert_as_alone(model, fleet.evaluate(keys[16:], X[16:], y[16:]).records, keys[16:], X[16:], y[16:], start=start)
    fleet.predict(keys, X)
    assert Fleet.from_bytes(fleet.to_bytes(), model).to_bytes() == fleet.to_bytes()


def test_wrappers_work_in_a_fleet_and_gaps_are_carried_for_each_key_by_itself():
    model = Standardize(Gaps(MODEL), adapt=0.9)
    keys, X, y, _ = table(3, 30, 3)
    X[5:20:4, 1] = np.nan
    assert_as_alone(model, Fleet(model).evaluate(keys, X, y).records, keys, X, y)


def test_a_shared_warm_up_is_where_new_keys_start():
    model = AGP(inducing=3, window=5, warmup_iterations=3)
    _, X, y, _ = table(4, 12, 1, gaps=0.0)
    fleet = Fleet(model)
    fleet.warm(X[:8], y[:8])
    unseen = fleet.predict(["a", "z"], X[8:10])
    assert len(fleet) == 0
    assert unseen.records.tobytes() == model.predict(model.init(X[:8], y[:8]), X[8:10]).records.tobytes()
    fleet.update(["a", "b"], X[8:10], y[8:10])
    single = model.update(model.init(X[:8], y[:8]), X[9], y[9])
    np.testing.assert_array_equal(fleet.predict(["b"], X[10:11]).mean, model.predict(single, X[10:11]).mean)


def test_a_warm_up_that_comes_later_changes_only_keys_that_come_later_still():
    _, X, y, _ = table(12, 10, 2, gaps=0.0)
    fleet = Fleet(MODEL)
    fleet.update(["old"], X[:1], y[:1])
    before = fleet.state("old").record.tobytes()
    fleet.warm(X, y)
    assert fleet.state("old").record.tobytes() == before
    fleet.update(["new"], X[:1], y[:1])
    assert fleet.state("new").samples == 1
    assert fleet.state("new").n > 2.0


# ---- the recommended model -------------------------------------------------------------------------------------------


def test_without_a_model_it_is_the_recommended_one():
    keys, X, y, _ = table(13, 8, 2)
    fleet = Fleet(effort="low")
    with pytest.raises(ValueError, match="keys must be those of the fleet; it has no 0"):
        fleet.model(0)
    X[3, 0] = np.nan  # which the recommended model fills
    records = fleet.evaluate(keys, X, y).records
    for key in (0, 1):
        assert fleet.model(key) == recommended(X[:0], y[:0], effort="low")
        single: Any = Online(effort="low").evaluate(X[keys == key], y[keys == key])
        assert records[keys == key].tobytes() == single.records.tobytes()


@pytest.mark.parametrize("rows", [60, 450])
def test_with_a_warm_up_it_is_the_one_recommended_for_that_batch(rows):
    y = np.sin(np.arange(rows) / 10.0)
    X = np.arange(float(rows))[:, None]
    fleet = Fleet(effort="low")
    fleet.warm(X, y)
    fleet.update(["a"], X[:1], y[:1])
    assert fleet.model("a") == recommended(X, y, effort="low") != recommended(X[:0], y[:0], effort="low")


def test_each_key_chooses_its_model_by_its_own_first_rows():
    rng = np.random.default_rng(0)
    X, noise, wave = np.arange(410.0)[:, None], rng.normal(size=410), 9.0 + np.sin(np.arange(410) / 10.0)
    fleet = Fleet(effort="low")
    fleet.update(["noise", "wave"] * 410, np.repeat(X, 2, 0), np.stack([noise, wave], 1).ravel())
    for key, y in (("noise", noise), ("wave", wave)):
        assert fleet.model(key) == recommended(X[:400], y[:400], effort="low")
        single = Online(effort="low")
        single.update(X, y)
        assert fleet.state(key).record.tobytes() == single.state.record.tobytes()
    assert fleet.model("noise") != fleet.model("wave")


def test_a_fleet_that_began_by_itself_comes_back_without_a_model_given():
    keys, X, y, _ = table(14, 6, 2)
    fleet = Fleet(effort="low")
    fleet.update(keys, X, y)
    expected = fleet.model(0)
    for back in (Fleet.from_bytes(fleet.to_bytes()), Fleet(effort="low")):
        if len(back) == 0:
            back.admit(fleet.evict(fleet.keys))
        assert back.model(0) == expected
        assert back.predict([0], X[:1]).mean.shape == (1,)


# ---- bytes -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grown() -> Fleet:
    keys, X, y, time = table(5, 50, 6)
    fleet = Fleet(MODEL)
    fleet.update(keys, X, y, time)
    return fleet


@pytest.mark.parametrize("model", [MODEL, None], ids=["given", "described"])
def test_a_fleet_comes_back_from_bytes_bit_for_bit_and_goes_on_alike(grown, model):
    data = grown.to_bytes()
    back = Fleet.from_bytes(data, model)
    assert back.to_bytes() == data
    assert back.keys == grown.keys
    assert np.array_equal(back.times(back.keys), grown.times(grown.keys))
    for key in grown.keys:
        assert back.state(key).record.tobytes() == grown.state(key).record.tobytes()
    again = Fleet.from_bytes(data, MODEL)
    _, X, y, _ = table(6, 6, 1)
    one, other = (fleet.evaluate(grown.keys, X, y) for fleet in (back, again))
    assert np.array_equal(one.mean, other.mean)
    assert back.to_bytes() == again.to_bytes() != data


def test_a_fleet_can_be_copied_and_pickled(grown):
    for other in (pickle.loads(pickle.dumps(grown)), copy.deepcopy(grown)):
        assert other.to_bytes() == grown.to_bytes()
    assert len(pickle.loads(pickle.dumps(Fleet(MODEL)))) == 0


def test_a_fleet_without_keys_has_bytes_too(grown):
    fleet = grown.fresh()
    assert len(Fleet.from_bytes(fleet.to_bytes(), MODEL)) == 0
    fleet.warm(np.zeros((4, 2)), np.zeros(4))
    back = Fleet.from_bytes(fleet.to_bytes(), MODEL)
    one, other = (each.predict([1], [[1.0, 2.0]]) for each in (fleet, back))
    assert np.array_equal(one.variance, other.variance)
    assert np.array_equal(fleet.fresh().predict([1], [[1.0, 2.0]]).variance, one.variance)


def test_an_evicted_key_comes_back_as_it_was_and_its_place_is_as_new(grown):
    fleet = Fleet.from_bytes(grown.to_bytes(), MODEL)
    before = {key: fleet.evict([key])[key] for key in fleet.keys[:2]}
    assert len(fleet) == len(grown) - 2
    cold = Fleet(MODEL)
    _, X, y, _ = table(7, 1, 1, gaps=0.0)
    fleet.update([99], X, y)  # takes a place that was left
    cold.update([99], X, y)
    assert fleet.evict([99]) == cold.evict([99])
    fleet.admit(before)
    assert fleet.evict(list(before)) == before
    assert fleet.evict([]) == {}


def test_a_key_of_the_default_takes_little_room():
    """A hundred keys beyond their first rows: one input, low effort. Nothing of a key is written twice."""
    rng = np.random.default_rng(0)
    fleet = Fleet(effort="low")
    fleet.warm(rng.normal(size=(410, 1)), rng.normal(size=410))
    fleet.update(list(range(100)), rng.normal(size=(100, 1)), rng.normal(size=100))
    assert len(fleet.to_bytes()) < 101 * fleet.state(0).record.nbytes + 100_000


def test_another_machine_that_rounds_differently_gets_the_states_up_to_rounding(grown, monkeypatch):
    data = grown.to_bytes()
    monkeypatch.setenv("DRIFTGP_ENGINE", "reference")
    complete = ReferenceEngine.complete

    def elsewhere(engine: Any, record: np.ndarray) -> None:
        complete(engine, record)
        record["alpha"] *= 1.0 + 4.0 * np.finfo(float).eps

    monkeypatch.setattr(ReferenceEngine, "complete", elsewhere)
    back = Fleet.from_bytes(data, MODEL)
    for key in grown.keys:
        np.testing.assert_allclose(back.state(key).alpha, grown.state(key).alpha, rtol=1e-9, atol=1e-12)
        assert back.state(key).w.tobytes() == grown.state(key).w.tobytes()


def test_a_file_is_refused_by_name_if_it_is_of_another_model_or_damaged(grown, tmp_path):
    path = tmp_path / "fleet.bin"
    grown.save(path)
    assert Fleet.load(path, MODEL).keys == Fleet.load(path).keys == grown.keys
    with pytest.raises(ValueError, match=r"fleet\.bin.*another model: model\.inducing is 3 there and 2 here"):
        Fleet.load(path, FastAGP(inducing=2, window=5))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"fleet\.bin.*checksum"):
        Fleet.load(path, MODEL)
    with pytest.raises(ValueError, match="not a stream saved by driftgp"):
        Fleet.from_bytes(b"something else", MODEL)
    with pytest.raises(ValueError, match="truncated"):
        Fleet.from_bytes(grown.to_bytes()[:-5], MODEL)
    whole = grown.to_bytes()
    with pytest.raises(ValueError, match=r"stream has version 1"):
        Fleet.from_bytes(whole[:8] + b"\x01\0" + whole[10:], MODEL)


class Own(SE):
    """A kernel of the user's own."""


def test_a_model_with_a_part_outside_the_library_has_to_be_given():
    model = FastAGP(kernel=Own(0.5), inducing=2, window=3)
    fleet = Fleet(model)
    fleet.update(["a"], [[0.0]], [1.0])
    assert Fleet.from_bytes(fleet.to_bytes(), model).keys == ["a"]
    with pytest.raises(ValueError, match=r"fleet cannot be read without its model: .*\.Own is not a part of driftgp"):
        Fleet.from_bytes(fleet.to_bytes())


# ---- what comes from outside -----------------------------------------------------------------------------------------


def forged(fleet: Fleet, change: Any) -> bytes:
    """Bytes of a fleet with another header, and a checksum that is right."""
    header, payload = sealed.unframed(fleet.to_bytes())
    change(header)
    return sealed.framed(header, [payload])


def series(header: dict[str, Any], number: int = 0) -> dict[str, Any]:
    """What a header says of one series."""
    found: dict[str, Any] = header["series"][number][2]
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.pop("series"), "fleet is damaged"),
        (lambda h: h.update(kind="online"), "this is a file of an Online, not of a Fleet"),
        (lambda h: h["series"][1].__setitem__(0, h["series"][0][0]), "fleet is damaged.*there twice"),
        (lambda h: h["series"][0].__setitem__(0, 1.5), "fleet is damaged.*key must be text or a whole number"),
        (lambda h: h["series"][0].__setitem__(1, [7, 0]), "fleet is damaged"),
        (lambda h: h["series"][0].__setitem__(1, [0, 99]), "fleet is damaged"),
        (lambda h: series(h)["clock"].pop(), "fleet is damaged"),
        (lambda h: series(h)["clock"].__setitem__(6, 0.0), "fleet is damaged.*clock"),
        (lambda h: series(h)["clock"].__setitem__(0, "a"), "fleet is damaged"),
        (lambda h: series(h).update(learned=-1), "fleet is damaged.*a count must be a whole number"),
        (lambda h: series(h).update(categories=[[0], []]), "fleet is damaged.*categories"),
        (lambda h: series(h).update(buffer=[5]), None),
        (lambda h: series(h).update(issued=[None]), "fleet is damaged.*differ in number"),
        (lambda h: series(h)["past"].update(count=-1), "fleet is damaged.*past"),
        (lambda h: h.update(outputs=2), "fleet is damaged"),
        (lambda h: h.update(plan=7), "fleet is damaged"),
        (lambda h: h["plan"].update(known=9), "fleet is damaged.*columns"),
        (lambda h: h["settings"].update(lags=[0]), "fleet is damaged.*lags"),
        (lambda h: h["settings"].update(colour="red"), "fleet is damaged.*'colour' is not a setting"),
        (lambda h: h["stacks"][0].update(records={"array": ["u8", 1 << 40, 86]}), "fleet is damaged"),
        (lambda h: h["stacks"][0].update(records={"array": ["u8", -1, 86]}), "fleet is damaged"),
        (lambda h: h["stacks"][0].update(records=7), "fleet is damaged"),
        (
            lambda h: h["stacks"][0].update(layout={"inputs": 10**9, "outputs": None, "gaps": False}),
            "state would be too large",
        ),
        (lambda h: h["stacks"][0].update(layout={"inputs": 0, "outputs": None, "gaps": False}), "is not a layout"),
        (lambda h: h["stacks"][0].update(layout=[2]), "is not a layout"),
        (lambda h: h["stacks"][0]["model"].update(window=10**9), "too large|another model"),
        (lambda h: h["stacks"][0].update(model=3), "another model|must describe a model"),
    ],
)
@pytest.mark.parametrize("model", [MODEL, None], ids=["given", "described"])
def test_forged_bytes_are_refused(grown, change, message, model):
    if message is None:  # what is allowed must at least go on
        back = Fleet.from_bytes(forged(grown, change), model)
        back.update(grown.keys, np.zeros((len(grown), 2)), np.zeros(len(grown)))
        return
    with pytest.raises(ValueError, match=message):
        Fleet.from_bytes(forged(grown, change), model)


def test_numbers_that_no_step_could_have_left_are_refused_and_nothing_is_admitted():
    """A cursor beyond its window would have C++ write beyond an array."""
    model = Watched(MODEL)
    fleet = Fleet(model)
    fleet.update(["a", "b"], [[0.0], [1.0]], [1.0, 2.0])
    slot: Any = fleet._streams.series["b"].slot
    slot.stack.record(slot.number)["inner"]["window"]["cursor"] = 5
    away = fleet.evict(["a", "b"])
    other = Fleet(model)
    with pytest.raises(ValueError, match=r"state is not one that Watched could have left: window\.cursor must lie in"):
        other.admit(away)
    assert len(other) == 0


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
        ({"keys": "ab"}, r"one key per row"),
        ({"X": [[1.0], [2.0]]}, r"X must have 2 inputs"),
        ({"X": [[1.0, np.nan], [2.0, 0.0]]}, r"X must be finite"),
        ({"X": [["a", "b"], ["c", "d"]]}, r"X must hold real numbers"),
        ({"y": [1.0]}, r"y must have shape \(2,\)"),
        ({"y": [1.0, np.inf]}, r"y must be finite"),
        ({"time": [1.0, np.nan]}, r"time must not be missing; time has none in row"),
        ({"time": [1.0]}, r"time must have 2 entries, one for each row of X; got 1"),
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
    with pytest.raises(ValueError, match="it has no 77"):
        grown.state(77)
    with pytest.raises(ValueError, match=r"keys to admit must not be in the fleet; .* is: evict it first"):
        grown.admit(grown.to_bytes())
    one = Fleet(MODEL)
    one.update([0], [[1.0]], [1.0])
    other = Fleet(MODEL)
    other.update([77], [[1.0]], [1.0])
    with pytest.raises(ValueError, match="columns must be '0', '1'; got '0'"):
        grown.admit(other.to_bytes())
    before = grown.fresh().to_bytes()
    twice = grown.fresh()
    with pytest.raises(ValueError, match="keys to admit must not be in the fleet; 0 is"):
        twice.admit({0: one.to_bytes(), 1: one.to_bytes()})
    assert twice.to_bytes() == before


# ---- threads and interrupts ------------------------------------------------------------------------------------------


def test_threads_that_share_a_fleet_take_turns():
    """Each thread has keys of its own: every state is as if it had been alone, though the array grows under all."""
    keys, X, y, _ = table(20, 30, 3, gaps=0.0)
    fleet = Fleet(MODEL)

    def work(thread: int) -> None:
        for i in range(30):
            fleet.update([10 * thread + int(keys[i])], X[i : i + 1], y[i : i + 1])
            fleet.predict([0, 10 * thread + int(keys[i])], X[:2], unknown="start")
            assert len(Fleet.from_bytes(fleet.to_bytes(), MODEL)) > 0

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
    finally:
        sys.setswitchinterval(switch)
    for thread in range(4):
        for key in range(3):
            _, state = alone(MODEL, X[keys == key], y[keys == key])
            assert fleet.state(10 * thread + key).record.tobytes() == state.record.tobytes()


def test_an_interrupt_leaves_every_key_after_some_whole_number_of_its_rows(monkeypatch):
    monkeypatch.setenv("DRIFTGP_ENGINE", "reference")
    keys, X, y, _ = table(21, 12, 3, gaps=0.0)
    fleet = Fleet(MODEL)
    fleet.update([0, 1, 2], X[:3], y[:3])
    states = {key: [fleet.state(key)] for key in range(3)}
    for key, x, target in zip(keys, X, y, strict=True):
        states[key].append(MODEL.update(states[key][-1], x, target))
    learn = AGP.learn
    calls: list[None] = []

    def interrupted(self: Any, *row: Any) -> None:
        calls.append(None)
        learn(self, *row)
        if len(calls) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(AGP, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fleet.update(keys, X, y)
    monkeypatch.setattr(AGP, "learn", learn)
    for key in range(3):
        assert fleet.state(key).record.tobytes() in [state.record.tobytes() for state in states[key]]
    with ThreadPoolExecutor(1) as other:  # the lock is free again
        other.submit(fleet.update, keys, X, y).result(timeout=60)


def test_a_prediction_from_the_start_fixes_no_shapes():
    fleet = Fleet()
    for inputs in (3, 1):
        assert fleet.predict(["a"], np.zeros((1, inputs)), unknown="start").mean.shape == (1,)
    with pytest.raises(ValueError, match="must be finite"):
        fleet.predict(["a"], np.full((1, 2), np.inf), unknown="start")
    assert (len(fleet), fleet.nbytes) == (0, 0)
    fleet.update(["a"], np.zeros((1, 2)), [[1.0, 2.0]])
    assert fleet.predict(["a"], np.zeros((1, 2))).mean.shape == (1, 2)


def test_first_rows_that_are_refused_fix_no_shapes():
    fleet = Fleet(AGP(inducing=3, window=8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="Standardize"):
            fleet.update(["a"] * 3, np.full((3, 2), 1e6), [1e6, 2e6, 3e6])
    assert (len(fleet), fleet.nbytes) == (0, 0)
    fleet.update(["a"], np.zeros((1, 1)), [1.0])
