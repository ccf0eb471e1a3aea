"""Predict now, learn when the label comes: rows that wait under an id, and forecasts that are given back."""

import numpy as np
import pytest

from driftgp import FastAGP, Online, recommended
from driftgp.kernels import SE
from driftgp.stream import pending
from driftgp.wrappers import Calibrated, Gaps

MODEL = FastAGP(kernel=SE(1.0), inducing=3, window=6, forgetting=0.9)
JUDGED = Calibrated(MODEL)  # which is judged by what it has said
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=12)
AT = np.cumsum(RNG.uniform(0.1, 2.0, size=12))
ROWS = [{"a": float(a), "b": float(b)} for a, b in X]
TIMED = [{**row, "at": float(at)} for row, at in zip(ROWS, AT, strict=True)]


def service(model=MODEL, **options) -> Online:
    return Online(model, **options)


def bits(online: Online) -> bytes:
    return online.state.record.tobytes()


def assert_close(one: Online, other: Online) -> None:
    a, b = one.state.record, other.state.record
    for name in a.dtype.names or ():
        if name != "window":
            np.testing.assert_allclose(a[name], b[name], rtol=1e-12, atol=1e-14)
    for name in a["window"].dtype.names or ():
        np.testing.assert_array_equal(a["window"][name], b["window"][name])


def saved(online: Online) -> Online:
    return Online.from_bytes(online.to_bytes())


@pytest.mark.parametrize("options", [{}, {"time": "at"}], ids=["steps", "times"])
@pytest.mark.parametrize("reload", [False, True])
def test_labels_that_come_in_order_however_late_teach_what_prompt_ones_do(options, reload):
    rows = TIMED if options else ROWS
    prompt, late = service(**options), service(**options)
    for row, y in zip(rows, Y, strict=True):
        prompt.predict(row)
        prompt.update(row, y)
    for i, row in enumerate(rows):
        late.predict(row, id=i)
        if i >= 5:
            late.update(y=Y[i - 5], id=i - 5)
        late = saved(late) if reload else late
    for i in range(7, 12):
        late.update(y=Y[i], id=i)
    assert_close(prompt, late)
    assert late.pending == 0


@pytest.mark.parametrize("form", [lambda i: X[i], lambda i: ROWS[i]], ids=["arrays", "dicts"])
@pytest.mark.parametrize("reload", [False, True])
def test_an_id_and_the_forecast_given_back_are_the_same(form, reload):
    """Also after a reload, and from before the first row on."""
    by_id, by_forecast = service(JUDGED), service(JUDGED)
    made = []
    for i in range(12):
        made.append(by_forecast.predict(form(i)))
        by_id.predict(form(i), id=f"row {i}")
        if i >= 3:
            by_forecast.update(form(i - 3), Y[i - 3], issued=made[i - 3])
            by_id.update(y=Y[i - 3], id=f"row {i - 3}")
        if reload:
            by_id, by_forecast = saved(by_id), saved(by_forecast)
    assert bits(by_id) == bits(by_forecast)
    ignored = service(JUDGED)
    for i in range(9):
        ignored.update(form(i), Y[i])
    assert bits(ignored) != bits(by_id), "what was issued makes no difference"


@pytest.mark.parametrize("rows", [30, 420])
def test_the_default_is_judged_by_what_it_said_in_its_first_rows_and_after_them(rows):
    """The forecasts of a model that was replaced meanwhile judge nothing."""
    x = np.random.default_rng(2).normal(size=(rows, 2))
    y = x[:, 0] + 0.1 * x[:, 1]
    by_id, by_forecast, plain, made = Online(effort="low"), Online(effort="low"), Online(effort="low"), []
    for i in range(rows):
        made.append(by_forecast.predict(x[i]))
        by_id.predict(x[i], id=i)
        if i >= 4:
            by_forecast.update(x[i - 4], y[i - 4], issued=made[i - 4])
            by_id.update(y=y[i - 4], id=i - 4)
            plain.update(x[i - 4], y[i - 4])
    assert bits(by_id) == bits(by_forecast) != bits(plain)
    first = slice(400 if rows > 400 else 0)
    assert by_id.model == plain.model == recommended(x[first], y[first], effort="low")


def test_a_label_that_never_comes_is_time_that_passed():
    with_gap, without = service(time="at"), service(time="at")
    for i in range(4):
        with_gap.predict(TIMED[i], id=i)
        if i != 2:
            with_gap.update(y=Y[i], id=i)
            without.update(TIMED[i], Y[i])
    assert_close(with_gap, without)


def test_a_label_that_overtakes_takes_no_time_back():
    late = service()
    for i in range(3):
        late.predict(X[i], id=i)
    for i in (2, 0, 1):
        late.update(y=Y[i], id=i)
    assert late.state.samples == 3
    assert late.state.n == 3.0  # three samples of one and the same moment


def test_a_label_that_overtakes_by_the_clock_is_learned_too():
    late = service(time="at")
    for i in range(6):
        late.predict(TIMED[i], id=i)
    for i in (0, 1, 4, 2, 5, 3):
        late.update(y=Y[i], id=i)
    assert late.state.samples == 6


def test_memory_is_bounded_and_what_was_given_up_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(pending, "MOST", 3)
    late = service()
    for i in range(5):
        late.predict(X[i], id=i)
    assert late.pending == 3
    for i in (0, 1):
        with pytest.raises(ValueError, match=f"id must be one .* no row waits under {i}: give the row"):
            late.update(y=Y[i], id=i)
    for i in (2, 3, 4):
        late.update(y=Y[i], id=i)
    assert (late.pending, late.state.samples) == (0, 3)


def test_what_waits_is_a_copy():
    late, x = service(), X[0].copy()
    late.predict(x, id="a")
    x[:] = 99.0
    late.update(y=1.0, id="a")
    np.testing.assert_array_equal(late.state.window.X[0], X[0])


def test_gaps_in_the_inputs_are_the_models_to_refuse_or_to_fill():
    late = service(Gaps(MODEL))
    late.predict(X[0], id="a")
    late.predict([np.nan, 1.0], id="b")
    late.update(y=1.0, id="a")
    late.update(y=2.0, id="b")
    assert late.state.filled.tolist() == [1, 0]


def test_predictions_that_wait_change_no_other_prediction():
    one, other = service(), service()
    for online in (one, other):
        online.update(X[:4], Y[:4])
    one.predict(X[5], id="a")
    np.testing.assert_array_equal(one.predict(X[6]).mean, other.predict(X[6]).mean)


@pytest.mark.parametrize("begun", [False, True])
def test_a_refused_call_changes_nothing(begun):
    late = service()
    if begun:
        late.update(X[5:8], Y[5:8])
    late.predict(X[0], id="a")
    before = late.to_bytes()
    with pytest.raises(ValueError, match="id must be new, or its label known; 'a' still waits"):
        late.predict(X[1], id="a")
    for x in (X[:2], [1.0], [np.nan, 1.0]):
        with pytest.raises(ValueError, match=r"must|one row"):
            late.predict(x, id="b")
    for name in (True, 1.5, (1, 2)):
        with pytest.raises(ValueError, match="id must be text or a whole number"):
            late.predict(X[1], id=name)  # type: ignore[arg-type]
    for y in (np.inf, "many", *([[1.0, 2.0]] if begun else [])):  # the first row says how many outputs there are
        with pytest.raises(ValueError, match="y must"):
            late.update(y=y, id="a")
    with pytest.raises(ValueError, match="x must be left out where id names the row"):
        late.update(X[0], 1.0, id="a")
    with pytest.raises(ValueError, match="x is missing"):
        late.update(y=1.0)
    with pytest.raises(ValueError, match="issued must be what predict gave for this one row"):
        late.update(X[:2], Y[:2], issued=late.predict(X[0]))
    assert late.to_bytes() == before
    assert late.pending == 1
    late.update(y=1.0, id="a")


def test_a_label_that_is_missing_lets_time_pass():
    late = service()
    late.update(X[:3], Y[:3])
    late.predict(X[3], id="a")
    late.update(y=np.nan, id="a")
    assert late.state.samples == 3
    assert late.pending == 0
