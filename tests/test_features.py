"""Inputs made of rows: what they are, and that none of them knows what nobody knew at the time."""

from datetime import date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftgp.features import Features, History


def inputs_of(features, columns, targets, start=datetime(2024, 1, 1), step=timedelta(hours=1)):
    """Inputs of every row, None where the past does not reach back far enough."""
    history, rows = History(features), []
    for t, (column, target) in enumerate(zip(columns, targets, strict=True)):
        known = [100.0 + t for _ in features.known]
        time = start + t * step if features.needs_time else None
        rows.append(history.inputs(column, known, time) if history.full else None)
        history.push(column, target)
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


def test_a_restored_history_goes_on_as_the_old_one():
    features = Features(columns=("x",), lags=2, horizon=2)
    old, new = History(features), History(features)
    for t in range(7):
        old.push([float(t)], float("nan") if t == 5 else float(t))
    new.restore(old.to_json())
    np.testing.assert_array_equal(old.inputs([9.0], [], None), new.inputs([9.0], [], None))
