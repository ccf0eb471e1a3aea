"""What is decided once for all rows: late and wild times, columns and categories, keys, and calls that are refused."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from driftgp import AGP, Fleet, Online
from driftgp.stream.begin import Choice
from driftgp.wrappers import Gaps, Standardize

pytest.importorskip("pandas")
pytest.importorskip("narwhals")

MODEL = Gaps(Standardize(AGP(inducing=4, window=12, step="scaled", prior=3.0), adapt=0.99))
START = datetime(2024, 1, 1)
HOUR = timedelta(hours=1)
N = 60
RNG = np.random.default_rng(5)
XS, YS = RNG.normal(size=N), RNG.normal(size=N)


class Small:
    """A model that is quick, chosen by 25 rows."""

    first, gaps = 25, True

    def choose(self, X: np.ndarray, y: np.ndarray) -> Choice:
        return Choice(MODEL)


def rows(count: int = N, **changes: Any) -> list[dict[str, Any]]:
    return [{"at": START + i * HOUR, "x": float(XS[i]), "y": float(YS[i]), **changes} for i in range(count)]


def online(**options: Any) -> Online:
    return Online(Small(), **{"target": "y", "time": "at", "features": ["x"], **options})


def by_parts(given: list[dict[str, Any]], size: int, **options: Any) -> Any:
    """What was said of rows that come so many at a time."""
    stream = online(**options)
    return np.concatenate([stream.evaluate(given[i : i + size]).mean for i in range(0, len(given), size)])


def flags(prediction: Any) -> list[str]:
    remarks: list[str] = prediction.source.evaluated.remarks
    return remarks


# ---- times -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [3, 9, 20, 50])
@pytest.mark.parametrize("size", [1, 7, N + 1])
def test_a_late_row_is_predicted_and_not_learned_and_flagged(place, size):
    late = {"at": START + (place - 2) * HOUR - HOUR / 2, "x": 0.3, "y": 1e3}
    given = rows()
    given.insert(place + 1, late)
    found, plain = by_parts(given, size), by_parts(rows(), size)
    np.testing.assert_array_equal(np.delete(found, place + 1), plain)
    assert np.isfinite(found[place + 1])
    remarks = flags(online().evaluate(given))
    assert [i for i, remark in enumerate(remarks) if "late" in remark] == [place + 1]


@pytest.mark.parametrize("place", [0, 1, 4, 9, 12, 40])
@pytest.mark.parametrize("size", [1, N])
def test_one_stamp_of_2099_is_harmless(place, size):
    """Before ten steps are known no time can be doubted; ten rows running that are much too late then put it right."""
    given = rows()
    given[place] = {**given[place], "at": datetime(2099, 1, 1)}
    stream = online()
    remarks = [remark for i in range(0, N, size) for remark in flags(stream.evaluate(given[i : i + size]))]
    late = [i for i, remark in enumerate(remarks) if "late" in remark]
    assert len(late) <= (20 if place < 10 else 0), late
    assert stream._streams.series[None].learned == N - len(late)
    clock = stream._streams.series[None].clock
    assert clock.latest == (given[-1]["at"] - datetime(1970, 1, 1)) / timedelta(microseconds=1)
    stream.update({"at": START + (N + 1) * HOUR, "x": 0.0, "y": 0.0})


@pytest.mark.parametrize("size", [1, 7, N])
def test_a_long_pause_is_believed_once_a_second_row_confirms_it(size):
    given = rows()
    for row in given[40:]:
        row["at"] += timedelta(days=365 * 3)
    stream = online()
    remarks = [remark for i in range(0, N, size) for remark in flags(stream.evaluate(given[i : i + size]))]
    assert [i for i, remark in enumerate(remarks) if remark] == [40]
    assert "jump" in remarks[40]


@pytest.mark.parametrize("first", [True, False])
def test_times_with_and_without_a_zone_do_not_mix(first):
    naive, aware = START, START.replace(tzinfo=UTC)
    one, other = (aware, naive) if first else (naive, aware)
    stream = online()
    stream.update({"at": one, "x": 1.0, "y": 1.0})
    before = stream.to_bytes()
    words = ("with", "without") if first else ("without", "with")
    message = f"time must come {words[0]} a time zone, as in the rows before; .* comes {words[1]} one: convert it first"
    with pytest.raises(ValueError, match=message):
        stream.update({"at": other + HOUR, "x": 1.0, "y": 1.0})
    with pytest.raises(ValueError, match="zone"):
        online().evaluate([{"at": one, "x": 1.0, "y": 1.0}, {"at": other + HOUR, "x": 1.0, "y": 1.0}])
    with pytest.raises(ValueError, match="time must hold dates, as in the rows before"):
        stream.update({"at": 7.0, "x": 1.0, "y": 1.0})
    assert stream.to_bytes() == before


# ---- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 40])
def test_a_column_that_appears_later_is_refused_and_named(count):
    stream = online(others="ignored")
    stream.evaluate(rows(count))
    before = stream.to_bytes()
    for call in (stream.update, stream.predict, lambda row: stream.evaluate([row])):
        with pytest.raises(ValueError, match="X must have the columns of the start, 'x'; 'wind' is new: leave it out"):
            call({"at": START + 50 * HOUR, "x": 1.0, "y": 1.0, "wind": 3.0})
    assert stream.to_bytes() == before


def test_categories_that_come_and_go_have_at_most_twenty_inputs():
    given = [{**row, "who": f"w{i % 3 if i < 24 else i}"} for i, row in enumerate(rows())]
    stream = Online(effort="low", target="y", time="at", features=["x", "who"])
    with pytest.warns(UserWarning, match="more than 20 different values"):
        found = stream.evaluate(given)
    assert len(stream.inputs) == 21
    assert np.isfinite(found.mean).all()


def test_a_category_that_is_new_changes_no_forecast_before_it_was_learned():
    given = [{**row, "who": "a"} for row in rows()]
    other = [dict(row) for row in given]
    given[10]["who"] = "b"
    options = {"features": ["x", "who"]}
    np.testing.assert_array_equal(by_parts(given, N, **options)[:10], by_parts(other, N, **options)[:10])


@pytest.mark.parametrize("columns", [60, 150])
def test_many_columns_of_noughts_and_ones_are_taken(columns):
    hot = [{f"c{j}": float(i % columns == j) for j in range(columns)} for i in range(30)]
    stream = Online(effort="low")
    found = stream.evaluate(hot, YS[:30])
    assert len(stream.inputs) == columns
    assert np.isfinite(found.mean).all()
    assert np.isfinite(np.stack(found.interval(0.9))[:, 1:]).all()  # before any target there are no ends


@pytest.mark.filterwarnings("ignore:X. column 'late' has had no value")
@pytest.mark.parametrize("value", [3.5, "wet", True, None])
def test_a_column_is_undecided_until_its_first_value(value):
    given = [{**row, "late": None if i < 12 else value} for i, row in enumerate(rows())]
    options = {"features": ["x", "late"]}
    expected = by_parts(given, N, **options)
    for size in (1, 5, 12, 13):
        np.testing.assert_array_equal(by_parts(given, size, **options), expected)
    assert np.isfinite(expected).all()


def test_a_target_that_is_missing_is_flagged_and_lets_time_pass():
    given = rows()
    for i in (0, 1, 30):
        given[i]["y"] = [None, float("nan")][i % 2]
    found = online().evaluate(given)
    assert np.isfinite(found.mean).all()
    assert [i for i, remark in enumerate(flags(found)) if "missing" in remark] == [0, 1, 30]


def test_a_blank_input_is_carried_skipped_or_refused():
    given = rows()
    given[30]["x"] = None
    carried, skipped = online().evaluate(given), online(missing="skip").evaluate(given)
    assert (flags(carried)[30], flags(skipped)[30]) == ("carried", "missing skipped")
    assert np.isfinite(carried.mean).all()
    assert np.isfinite(skipped.mean).all()
    unlabelled = [dict(row) for row in given]
    unlabelled[30]["y"] = None
    np.testing.assert_array_equal(skipped.mean, online().evaluate(unlabelled).mean)
    stream = online(missing="refuse")
    with pytest.raises(ValueError, match="column 'x' must not be blank, since missing is 'refuse'; row 30 has none"):
        stream.evaluate(given)
    assert stream.to_bytes() == online(missing="refuse").to_bytes()


# ---- blocks ----------------------------------------------------------------------------------------------------------

SETTINGS: dict[str, dict[str, Any]] = {
    "columns": {"features": ["x", "sky"]},
    "late": {"features": ["x"], "lags": [1, 2, 24], "calendar": True},
    "horizon": {"features": ["x"], "lags": [5, 24], "horizon": 5},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("size", [1, 2, 5, 24, 25, 26])
def test_blocks_of_any_size_give_the_same_bits(name, size):
    given = [{**row, "sky": ["clear", "rain", "NA", "fog"][(i // 9) % 4]} for i, row in enumerate(rows())]
    del given[33:36]
    given[45]["y"] = None
    expected, stream = online(**SETTINGS[name]), online(**SETTINGS[name])
    whole = expected.evaluate(given)
    parts = [stream.evaluate(given[i : i + size]) for i in range(0, len(given), size)]
    np.testing.assert_array_equal(np.concatenate([part.mean for part in parts]), whole.mean)
    np.testing.assert_array_equal(np.concatenate([part.interval(0.9) for part in parts], 1), whole.interval(0.9))
    assert stream.to_bytes() == expected.to_bytes()


def test_a_fleet_cut_anywhere_gives_the_same_bits():
    given = [{**row, "who": "abc"[i % 3], "sky": ["clear", "rain"][i // 20 % 2]} for i, row in enumerate(rows())]
    options: dict[str, Any] = {"key": "who", "target": "y", "time": "at", "features": ["x", "sky"], "lags": 2}
    whole = Fleet(MODEL, **options)
    expected = whole.evaluate(given).mean
    for cuts in ([0, 1, 2, 3, 40, N], [0, 30, 31, N]):
        fleet = Fleet(MODEL, **options)
        found = np.concatenate([fleet.evaluate(given[a:b]).mean for a, b in pairwise(cuts)])
        np.testing.assert_array_equal(found, expected)
        assert fleet.to_bytes() == whole.to_bytes()


# ---- calls that are refused ------------------------------------------------------------------------------------------

GOOD = {"at": START + 70 * HOUR, "x": 1.0, "y": 1.0}
WRONG: dict[str, Callable[[], Any]] = {
    "no column": lambda: [{**GOOD}, {"at": START + 71 * HOUR, "y": 1.0}],
    "new column": lambda: [{**GOOD, "z": 1.0}],
    "infinite input": lambda: [{**GOOD}, {**GOOD, "x": np.inf}],
    "text for a number": lambda: [{**GOOD, "x": "warm"}],
    "infinite target": lambda: [{**GOOD}, {**GOOD, "y": np.inf}],
    "text for a target": lambda: [{**GOOD, "y": "many"}],
    "no time": lambda: [{**GOOD, "at": None}],
    "text for a time": lambda: [{**GOOD, "at": "monday"}],
    "number for a time": lambda: [{**GOOD, "at": 3.0}],
    "other zone": lambda: [{**GOOD}, {**GOOD, "at": GOOD["at"].replace(tzinfo=UTC)}],  # type: ignore[attr-defined]
    "array": lambda: np.zeros((2, 1)),
    "nothing": lambda: None,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("count", [0, 5, 30])
def test_a_refused_call_of_a_stream_changes_nothing(wrong, count):
    stream = online(lags=2)
    if count:
        stream.evaluate(rows(count))
        stream.predict(GOOD, id="waits")
    if count == 0 and wrong in ("new column", "text for a number", "number for a time", "no column"):
        pytest.skip("a first row may have any columns")
    before = stream.to_bytes()
    for call in (stream.update, stream.evaluate):
        with pytest.raises(ValueError, match=r"must|missing|zone|needs"):
            call(WRONG[wrong]())
        assert stream.to_bytes() == before
    if count:
        stream.update(y=1.0, id="waits")
    stream.evaluate([GOOD])


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("count", [0, 30])
def test_a_refused_call_of_a_fleet_changes_nothing(wrong, count):
    """Though rows of other keys in the same call are in order."""
    fleet = Fleet(MODEL, key="who", target="y", time="at", features=["x"], lags=2)
    if count:
        fleet.evaluate([{**row, "who": "ab"[i % 2]} for i, row in enumerate(rows(count))])
    if count == 0 and wrong in ("new column", "text for a number", "number for a time", "no column"):
        pytest.skip("a first row may have any columns")
    before = fleet.to_bytes()
    bad = WRONG[wrong]()
    given = [{**GOOD, "who": "a"}, *({**row, "who": "b"} for row in bad)] if isinstance(bad, list) else bad
    for call in (fleet.update, fleet.evaluate):
        with pytest.raises(ValueError, match=r"must|missing|zone|needs"):
            call(given)
        assert fleet.to_bytes() == before
    fleet.evaluate([{**GOOD, "who": "c"}])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([1.5], r"keys must be text or whole numbers; got 1\.5"),
        ([None], "keys must not be null"),
        ([True], "keys must be text or whole numbers; got True|got both|and the fleet has"),
        ([7], "keys must be all text or all whole numbers; got 7, and the fleet has 'a'"),
        ([START], "keys must be text or whole numbers"),
    ],
)
def test_keys_of_other_types_are_refused_in_columns_as_in_lists(keys, message):
    fleet = Fleet(MODEL, key="who", target="y", time="at", features=["x"])
    fleet.evaluate([{**row, "who": "a"} for row in rows(5)])
    before = fleet.to_bytes()
    with pytest.raises(ValueError, match=message):
        fleet.evaluate([{**GOOD, "who": key} for key in keys])
    listed = Fleet(MODEL)
    listed.update(["a"], [[1.0]], [1.0])
    with pytest.raises(ValueError, match=message):
        listed.update(keys, [[1.0]], [1.0])
    assert fleet.to_bytes() == before
