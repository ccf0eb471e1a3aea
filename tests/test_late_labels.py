"""Predict now, learn when the label comes: rows wait under an id."""

import pickle

import numpy as np
import pytest

from driftgp import FastAGP, Online
from driftgp.kernels import SE
from driftgp.stream import pending
from driftgp.wrappers import CarryForward

MODEL = FastAGP(kernel=SE(1.0), inducing=3, window=6, forgetting=0.9)
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=12)


def service(model=MODEL) -> Online:
    return Online(model, model.init(X[:0], Y[:0]))


def bits(online: Online) -> bytes:
    return online.state.record.tobytes()


@pytest.mark.parametrize("timed", [False, True])
def test_labels_that_come_in_order_however_late_teach_what_prompt_ones_do(timed):
    times = np.cumsum(RNG.uniform(0.1, 2.0, size=12))
    rows = [{"a": a, "b": b, "t": t} for (a, b), t in zip(X.tolist(), times.tolist(), strict=True)] if timed else X
    prompt, late = (Online(MODEL, time="t" if timed else None) for _ in range(2))
    for i in range(12):
        prompt.predict(rows[i], id=i)
        prompt.update(y=Y[i], id=i)
    for i in range(12):
        late.predict(rows[i], id=i)
        if i >= 5:
            late.update(y=Y[i - 5], id=i - 5)
    for i in range(7, 12):
        late.update(y=Y[i], id=i)
    assert bits(prompt) == bits(late)
    assert late.pending == 0


def test_a_label_that_never_comes_is_time_that_passed():
    with_gap, without = service(), service()
    for i in range(4):
        with_gap.predict(X[i], id=i)
        if i != 2:
            with_gap.update(y=Y[i], id=i)
    for i, elapsed in ((0, 1.0), (1, 1.0), (3, 2.0)):
        without.update(X[i], Y[i], elapsed)
    assert bits(with_gap) == bits(without)


def test_a_label_that_overtakes_takes_no_time_back():
    late = service()
    for i in range(3):
        late.predict(X[i], id=i)
    for i in (2, 0, 1):
        late.update(y=Y[i], id=i)
    assert late.state.n == 3.0  # three samples of one and the same moment


def test_intervals_are_judged_by_what_was_said_when_the_row_was_predicted():
    """An id keeps the forecast: the same as handing it back."""
    by_id, by_hand = Online(effort="low"), Online(effort="low")
    for online in (by_id, by_hand):
        online.update(X[:6], Y[:6])
    said = [by_hand.predict(x) for x in X[6:9]]
    for i in range(6, 9):
        by_id.predict(X[i], id=i)
    for i in range(6, 9):
        by_id.update(y=Y[i], id=i)
        by_hand.update(X[i], Y[i], issued=said[i - 6])
    assert bits(by_id) == bits(by_hand)
    prompt = Online(effort="low")
    prompt.update(X[:9], Y[:9])
    assert bits(prompt) != bits(by_id)


def test_rows_wait_in_the_file_too(tmp_path):
    stays = Online(effort="low")
    for i in range(6):
        stays.predict(X[i], id=f"order {i}")
    stays.update(y=Y[0], id="order 0")
    stays.save(tmp_path / "service.gp")
    back = [Online.load(tmp_path / "service.gp"), pickle.loads(pickle.dumps(stays))]
    for i in (3, 1):
        for online in (stays, *back):
            online.update(y=Y[i], id=f"order {i}")
    assert [online.pending for online in back] == [3, 3]
    assert bits(back[0]) == bits(back[1]) == bits(stays)


def test_memory_is_bounded_and_the_oldest_row_is_given_up(monkeypatch):
    monkeypatch.setattr(pending, "MOST", 3)
    late = service()
    for i in range(5):
        late.predict(X[i], id=i)
    assert late.pending == 3
    with pytest.raises(ValueError, match=r"no row waits under 1: give the row, update\(x, y\)"):
        late.update(y=Y[1], id=1)
    for i in (2, 3, 4):
        late.update(y=Y[i], id=i)
    assert late.state.samples == 3


def test_what_waits_is_a_copy():
    late, x = service(), X[0].copy()
    late.predict(x, id="a")
    x[:] = 99.0
    late.update(y=1.0, id="a")
    np.testing.assert_array_equal(late.state.window.X[0], X[0])


def test_gaps_in_the_inputs_are_the_models_to_refuse_or_to_fill():
    late = service(CarryForward(MODEL))
    late.predict(X[0], id="a")
    late.predict([np.nan, 1.0], id="b")
    late.update(y=1.0, id="a")
    late.update(y=2.0, id="b")
    assert late.state.filled.tolist() == [1, 0]


def test_a_refused_call_changes_nothing():
    late = service()
    late.predict(X[0], id="a")
    with pytest.raises(ValueError, match="id must be new, or its label known; 'a' still waits"):
        late.predict(X[1], id="a")
    with pytest.raises(ValueError, match="id names one row; got 2 rows"):
        late.predict(X[:2], id="b")
    for x in ([1.0], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="must"):
            late.predict(x, id="b")
    with pytest.raises(ValueError, match="id must be text or a whole number"):
        late.predict(X[1], id=1.5)  # type: ignore[arg-type]
    for y, elapsed in ((np.inf, None), (1.0, -1.0)):
        with pytest.raises(ValueError, match="must"):
            late.update(y=y, id="a", elapsed=elapsed)
    with pytest.raises(ValueError, match="x must be left out"):
        late.update(X[0], 1.0, id="a")
    assert late.pending == 1
    late.update(y=1.0, id="a")
    assert late.pending == 0
