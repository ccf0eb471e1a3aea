"""Inputs made of rows: what they are, and that none of them knows what nobody knew at the time."""

from datetime import date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftgp.features import Features, History


def inputs_of(features, columns, targets, start=datetime(2024, 1, 1), step=timedelta(hours=1), cuts=()):
    """Inputs of every row, None where the past does not reach back far enough; rows come in one piece, or cut."""
    history, N = History(features), len(targets)
    columns, targets = np.reshape(np.array(columns, float), (N, -1)), np.array(targets, float)
    known = np.array([[100.0 + t for _ in features.known] for t in range(N)])
    times = [start + t * step if features.needs_time else None for t in range(N)]
    rows = []
    for begin, end in zip((0, *cuts), (*cuts, N), strict=True):
        some = slice(begin, end)
        found = history.extend(columns[some], known[some], targets[some], times[some])
        rows += [None] * (end - begin - len(found)) + list(found)
    return rows


def test_lags_are_the_targets_so_many_rows_back():
    features = Features(lags=2, seasonal=(5,))
    rows = inputs_of(features, [[]] * 8, list(range(8)))
    assert features.names == ("lag 1", "lag 2", "lag 5")
    assert rows[:5] == [None] * 5
    assert [row.tolist() for row in rows[5:]] == [[4, 3, 0], [5, 4, 1], [6, 5, 2]]


def test_a_horizon_moves_columns_and_lags_back_but_not_what_is_known_ahead():
    features = Features(columns=("temp",), known=("holiday",), lags=1, horizon=3)
    rows = inputs_of(features, [[10.0 * t] for t in range(6)], list(range(6)))
    assert features.names == ("temp", "holiday", "lag 3")
    assert rows[5].tolist() == [30.0, 105.0, 2.0]


def test_a_seasonal_lag_that_is_a_lag_already_comes_once():
    assert Features(lags=3, seasonal=(2, 7)).names == ("lag 1", "lag 2", "lag 3", "lag 7")


@given(
    st.integers(1, 5),
    st.integers(0, 3),
    st.lists(st.integers(5, 9), max_size=2),
    st.integers(0, 19),
    st.floats(-1e6, 1e6),
)
def test_no_input_knows_what_comes_later(horizon, lags, seasonal, changed, value):
    features = Features(columns=("x",), lags=lags, seasonal=tuple(seasonal), horizon=horizon)
    columns, targets = [[float(t)] for t in range(20)], [float(t * t) for t in range(20)]
    before = inputs_of(features, columns, targets)
    targets[changed] = value
    later_target = inputs_of(features, columns, targets)
    columns[changed] = [value]
    later_column = inputs_of(features, columns, targets)
    for t in range(20):
        if before[t] is None:
            continue
        if t < changed + horizon:  # target of `changed` is out at row changed + horizon
            assert before[t].tolist() == later_target[t].tolist()
        if t < changed + horizon - 1:
            assert before[t].tolist() == later_column[t].tolist()


def test_the_calendar_has_no_jump_at_midnight_or_on_monday():
    features = Features(cycles=("day", "week", "year"))
    night = datetime(2024, 3, 3, 23, 59, 59)  # a Sunday
    after = features.calendar(night + timedelta(seconds=1))
    np.testing.assert_allclose(features.calendar(night), after, atol=1e-3)


def test_the_calendar_comes_round():
    features = Features(cycles=("day", "week"))
    time = datetime(2024, 3, 3, 7, 30)
    np.testing.assert_allclose(features.calendar(time), features.calendar(time + timedelta(days=7)), atol=1e-12)
    assert abs(np.subtract(features.calendar(time), features.calendar(time + timedelta(days=3)))).max() > 0.1


def test_a_wave_that_is_0_is_exactly_0():
    assert Features(cycles=("day",)).calendar(datetime(2024, 3, 3, 6)) == [1.0, 0.0, 0.0, -1.0]


def test_holidays_are_ones():
    features = Features(holidays=frozenset([date(2024, 1, 2)]))
    rows = inputs_of(features, [[]] * 3, [0.0] * 3, step=timedelta(days=1))
    assert [row.tolist() for row in rows] == [[0.0], [1.0], [0.0]]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "no inputs"),
        ({"lags": -1}, "lags must be a whole number"),
        ({"lags": 1, "horizon": 0}, "horizon"),
        ({"seasonal": (3,), "horizon": 4}, "at least the horizon"),
        ({"cycles": ("month",)}, "cycles must be one of"),
    ],
)
def test_what_could_not_be_known_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Features(**wrong)


@given(
    st.integers(1, 4),
    st.integers(0, 3),
    st.lists(st.integers(4, 9), max_size=2),
    st.lists(st.integers(0, 15), max_size=6).map(sorted),
)
def test_how_rows_are_cut_changes_no_input(horizon, lags, seasonal, cuts):
    features = Features(("x", "z"), ("sure",), lags, tuple(seasonal), ("day",), horizon=horizon)
    columns, targets = np.random.default_rng(0).normal(size=(15, 2)), np.arange(15.0) ** 2
    whole, cut = inputs_of(features, columns, targets), inputs_of(features, columns, targets, cuts=cuts)
    assert [row is None for row in whole] == [row is None for row in cut]
    assert sum(row is None for row in whole) == features.memory
    for row, other in zip(whole, cut, strict=True):
        assert row is None or row.tolist() == other.tolist()


@pytest.mark.parametrize("seen", [0, 1, 2, 7])
def test_a_restored_history_goes_on_as_the_old_one(seen):
    features = Features(columns=("x",), lags=2, horizon=2)
    old, new = History(features), History(features)
    targets = np.where(np.arange(seen) == 5, np.nan, np.arange(seen))
    old.extend(np.arange(seen)[:, None], np.zeros((seen, 0)), targets, [None] * seen)
    new.restore(**old.to_json())
    more = np.full((3, 1), 9.0), np.zeros((3, 0)), np.ones(3), [None] * 3
    np.testing.assert_array_equal(old.extend(*more), new.extend(*more))


@pytest.mark.parametrize("past", [([], [1.0]), ([[1.0]], [1.0] * 9), ([[1.0], [2.0]], [1.0] * 3)])
def test_a_past_that_does_not_fit_the_features_is_refused(past):
    with pytest.raises(ValueError, match="the past must have"):
        History(Features(columns=("x",), lags=2, horizon=2)).restore(*past)
