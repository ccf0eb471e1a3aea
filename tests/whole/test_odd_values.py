"""Values of every kind through every entry point: a right answer or one clear sentence, and nothing changed."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from driftgp import Fleet, Forecaster, Online

N = 12
RNG = np.random.default_rng(0)
A = RNG.normal(size=N).round(3)
Y = 2.0 * A + 1.0
X = np.column_stack([A, A**2])
HOURS = [dt.datetime(2026, 1, 1) + dt.timedelta(hours=i) for i in range(N)]


def begun() -> Online:
    online = Online(effort="low")
    online.update(X, Y)
    return online


def named() -> Online:
    online = Online(effort="low")
    online.update([{"a": a, "b": 1.0} for a in A.tolist()], Y)
    return online


def fleet() -> Fleet:
    made = Fleet(effort="low")
    made.update(["k", "l"] * 6, X, Y)
    return made


def forecaster() -> Forecaster:
    made = Forecaster(horizon=2, effort="low")
    made.update(Y)
    return made


ENTRIES = {
    "X": (begun, lambda each, v: each.evaluate(np.column_stack([v, v]), Y)),
    "list": (begun, lambda each, v: each.evaluate([[value, value] for value in v], Y)),
    "y": (begun, lambda each, v: each.update(X, v)),
    "one row": (named, lambda each, v: each.update({"a": v[0], "b": 1.0}, 1.0)),
    "one target": (begun, lambda each, v: each.update(X[0], v[0])),
    "rows": (named, lambda each, v: each.update([{"a": value, "b": 1.0} for value in v], Y)),
    "prediction": (begun, lambda each, v: each.predict([v[0], v[0]])),
    "elapsed": (begun, lambda each, v: each.update(X, Y, v)),
    "fleet": (fleet, lambda each, v: each.evaluate(["k", "l"] * 6, X, v)),
    "forecaster": (forecaster, lambda each, v: each.update(v)),
    "its times": (forecaster, lambda each, v: Forecaster(2, effort="low").update(Y, v)),
}

# ---- what is refused -------------------------------------------------------------------------------------------------

REFUSED = {
    "huge": [10**400, *range(1, N)],
    "too huge to be written": [10**5000, *range(1, N)],
    "a huge fraction": [Fraction(10**400, 3), *map(Fraction, range(1, N))],
    "signalling": [Decimal("sNaN"), *map(Decimal, range(1, N))],
    "infinite": [Decimal("Infinity"), *map(Decimal, range(1, N))],
    "complex": list(A + 1j),
    "nested": [{"a": 1.0}] * N,
    "bytes": [b"1"] * N,
    "moments": [each.time() for each in HOURS],
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", REFUSED)
def test_values_that_are_no_numbers_are_refused_in_a_sentence_and_change_nothing(kind, entry):
    make, act = ENTRIES[entry]
    each = make()
    before = each.to_bytes()
    with pytest.raises(ValueError, match=r"must|argument|got|needs") as error:
        act(each, REFUSED[kind])
    assert type(error.value) is ValueError
    assert len(str(error.value)) < 400
    assert each.to_bytes() == before


@pytest.mark.parametrize(
    ("support", "message"),
    [
        (("a", None), "support must hold real numbers"),
        ((1j, None), "support must hold real numbers"),
        ((np.nan, None), "a bound in support must lie in"),
        ((10**400, None), "at most 1.8e308 in size"),
        ((5.0, 1.0), "low bound below the high one"),
        ((0.0,), "or a pair"),
        (5, "or a pair"),
        (None, "or a pair"),
        ("posit", "or a pair"),
    ],
)
def test_a_support_is_refused_at_once_and_not_after_hundreds_of_rows(support, message):
    for make in (Online, Fleet, Forecaster):
        with pytest.raises(ValueError, match=message):
            make(support=support)


def test_keys_that_are_times_are_no_numbers():
    with pytest.raises(ValueError, match="keys must be text or whole numbers; got dtype datetime64"):
        Fleet(effort="low").update(np.array(HOURS, "M8[ns]"), X, Y)


def test_a_key_of_thousands_of_digits_is_refused():
    with pytest.raises(ValueError, match="at most 100 digits; got a whole number of 5001 digits"):
        Fleet(effort="low").update([10**5000] * N, X, Y)


# ---- what is right ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [A.astype(np.float32).astype(np.float64), A.astype(object), A.astype(np.longdouble), [Decimal(str(a)) for a in A]],
    ids=["float32", "object", "longdouble", "decimal"],
)
def test_numbers_of_every_type_are_the_same_numbers(values):
    expected, found = begun(), begun()
    expected.update(X, np.asarray(values, np.float64))
    found.update(X, values)
    assert found.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize("entry", ["X", "y", "prediction", "fleet", "forecaster"])
def test_a_masked_number_is_missing_and_not_what_is_behind_the_mask(entry):
    masked = np.ma.masked_array(A.copy(), mask=np.arange(N) == 0)
    masked.data[0] = 1e9
    gaps = np.where(np.arange(N) == 0, np.nan, A)
    make, act = ENTRIES[entry]
    first, second = make(), make()
    columns = entry in ("X", "prediction")
    given = np.ma.column_stack([masked, masked]) if columns else masked
    plain = np.column_stack([gaps, gaps]) if columns else gaps
    if entry == "X":
        first.update(given, Y)
        second.update(plain, Y)
    elif entry == "prediction":
        assert first.predict(given).mean.tolist() == second.predict(plain).mean.tolist()
    else:
        act(first, given)
        act(second, plain)
    assert first.to_bytes() == second.to_bytes()


IDS = [2**60 + 1, 2**60 + 2] * 6


@pytest.mark.parametrize("form", ["dicts", "pandas", "polars"])
def test_whole_numbers_that_floats_would_round_are_different_keys(form):
    rows = [{"id": key, "a": a, "y": y} for key, a, y in zip(IDS, A.tolist(), Y.tolist(), strict=True)]
    table = rows if form == "dicts" else pytest.importorskip(form).DataFrame(rows)
    many = Fleet(key="id", target="y", effort="low")
    many.update(table)
    ahead = Forecaster(2, key="id", target="y", effort="low")
    ahead.update(table)
    assert many.keys == ahead.keys == IDS[:2]


def test_a_frame_with_names_of_several_kinds_is_read_by_their_text():
    frame = pytest.importorskip("pandas").DataFrame({"a": A, "b": A**2, "y": Y})
    expected = Online(effort="low", target="y").evaluate(frame.rename(columns={"a": "0", "b": "(1, 2)"})).mean
    frame.columns = [0, (1, 2), "y"]
    assert Online(effort="low", target="y").evaluate(frame).mean.tolist() == expected.tolist()
    frame.columns = [1, "1", "y"]
    with pytest.raises(ValueError, match="a name for each column; '1' comes twice"):
        Online(effort="low", target="y").evaluate(frame)


# ---- times -----------------------------------------------------------------------------------------------------------


def timed(times) -> Online:
    online = Online(effort="low", time="at", target="y")
    online.update([{"at": at, "a": a, "y": y} for at, a, y in zip(times, A.tolist(), Y.tolist(), strict=True)])
    return online


def test_the_ends_of_the_calendar_with_a_zone_are_times_as_others_are():
    for year, hours in ((9999, -12), (1, 12)):
        zone = dt.timezone(dt.timedelta(hours=hours))
        first = dt.datetime(year, 12 if hours < 0 else 1, 31 if hours < 0 else 1, 0, tzinfo=zone)
        assert timed([first + dt.timedelta(hours=i) for i in range(N)]).begun


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (np.array([-(2**62), 2**62] * 6).astype("M8[s]"), "within 290 000 years of 1970"),
        (np.array([1e308, -1e308, *range(N - 2)]), "time must lie within"),
        (np.array([np.inf, *range(N - 1)]), "time must lie within"),
        (np.array(["NaT"] * N, "M8[s]"), "time must not be missing"),
    ],
)
def test_times_that_cannot_be_are_refused(times, message):
    for act in (lambda: timed(times), lambda: Forecaster(2, effort="low").update(Y, times)):
        with pytest.raises(ValueError, match=message):
            act()


def test_adapters_read_masks_and_refuse_what_no_float_holds():
    regressor = pytest.importorskip("driftgp.sklearn").AGPRegressor
    masked = np.ma.masked_array(X.copy(), mask=np.zeros_like(X, bool))
    masked.mask[3], masked.data[3] = True, 1e9
    gaps = np.where(masked.mask, np.nan, X)
    given, plain = (regressor(effort="low").fit(each, Y).predict(X).tolist() for each in (masked, gaps))
    assert given == plain
    with pytest.raises(ValueError, match=r"at most 1\.8e308 in size"):
        regressor(effort="low").fit([[10**400, 1.0]] * N, Y)


def test_a_value_that_river_s_forecaster_refuses_changes_nothing():
    model = pytest.importorskip("driftgp.river").FanForecaster(horizon=2)
    for y in Y:
        model.learn_one(y)
    expected = model.forecast(2)
    for value in ([1.0, 2.0], {"a": 1.0}, "x", 10**400):
        with pytest.raises(ValueError, match="y must hold"):
            model.learn_one(value)
    assert model.forecast(2) == expected
