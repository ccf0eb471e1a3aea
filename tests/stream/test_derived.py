"""Inputs that follow from the past: what they are, and that none of them knows what nobody knew at the time."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftgp import Online
from driftgp.base.frames import Column, Table
from driftgp.stream import calendar
from driftgp.stream.begin import Default
from driftgp.stream.runtime import Streams
from driftgp.stream.settings import settings

HOUR = 3_600_000_000  # microseconds


def inputs_of(columns, targets, at=None, **given):
    """Names and values of the inputs of every row."""
    table = {name: Column(name, "numbers", np.array(values, float)) for name, values in columns.items()}
    table["y"] = Column("y", "numbers", np.array(targets, float))
    if at is not None:
        table["t"] = Column("t", "times", np.array(at, float))
        given["time"] = "t"
    streams = Streams(settings(target="y", **given), Default())
    block = streams.of_table(Table(table, single=False), learn=True)
    return streams.inputs(block, streams.targets(block, None))


def test_lags_are_the_targets_so_many_rows_back():
    names, X = inputs_of({}, range(8), lags=[1, 2, 5])
    assert names == ("lag 1", "lag 2", "lag 5")
    np.testing.assert_array_equal(X[5:], [[4, 3, 0], [5, 4, 1], [6, 5, 2]])
    assert np.isnan(X[0]).all()  # rows without a past have missing inputs


def test_lags_follow_the_clock_where_times_lie_on_a_grid():
    hours = [t for t in range(200) if t != 150]
    _, X = inputs_of({}, hours, [t * HOUR for t in hours], lags=[1, 24])
    row = hours.index(151)
    assert np.isnan(X[row, 0])  # hour 150 is not there
    assert X[row, 1] == 127
    assert X[hours.index(174)].tolist()[:1] == [173.0]
    assert np.isnan(X[hours.index(174), 1])


def test_a_horizon_moves_lags_and_late_columns_back_but_not_what_is_known():
    columns = {"holiday": [100.0 + t for t in range(8)], "temp": [10.0 * t for t in range(8)]}
    names, X = inputs_of(columns, range(8), known=["holiday"], lags=1, horizon=3)
    assert names == ("holiday", "temp (3 before)", "lag 3")
    assert X[5].tolist() == [105.0, 20.0, 2.0]


@given(
    st.integers(1, 5),
    st.lists(st.integers(5, 9), max_size=2),
    st.integers(0, 19),
    st.floats(-1e6, 1e6),
    st.booleans(),
)
def test_no_input_knows_what_comes_later(horizon, lags, changed, value, timed):
    columns, targets = {"x": [float(t) for t in range(20)]}, [float(t * t) for t in range(20)]
    at = [t * HOUR for t in range(20)] if timed else None
    _, before = inputs_of(columns, targets, at, lags=lags or 1, horizon=horizon)
    targets[changed] = value
    _, later_target = inputs_of(columns, targets, at, lags=lags or 1, horizon=horizon)
    columns["x"][changed] = value
    _, later_column = inputs_of(columns, targets, at, lags=lags or 1, horizon=horizon)
    known = slice(0, changed + horizon)  # the row `changed` is known at row changed + horizon
    np.testing.assert_array_equal(before[known], later_target[known])
    np.testing.assert_array_equal(before[known], later_column[known])


def waves(time, cycles):
    moment = (time.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return calendar.inputs(np.array([float(moment)]), cycles, ())[0]


def test_the_calendar_has_no_jump_at_midnight_or_on_monday():
    night = datetime(2024, 3, 3, 23, 59, 59)  # a Sunday
    cycles = ("day", "week", "year")
    np.testing.assert_allclose(waves(night, cycles), waves(night + timedelta(seconds=1), cycles), atol=1e-3)


def test_the_calendar_comes_round():
    time, cycles = datetime(2024, 3, 3, 7, 30), ("day", "week")
    np.testing.assert_allclose(waves(time, cycles), waves(time + timedelta(days=7), cycles), atol=1e-12)
    assert abs(np.subtract(waves(time, cycles), waves(time + timedelta(days=3), cycles))).max() > 0.1


def test_a_wave_that_is_0_is_exactly_0():
    assert waves(datetime(2024, 3, 3, 6), ("day",)).tolist() == [1.0, 0.0, 0.0, -1.0]


def test_holidays_are_ones():
    _, X = inputs_of({}, range(3), [t * 24 * HOUR for t in range(3)], holidays=["1970-01-02"])
    assert X.tolist() == [[0.0], [1.0], [0.0]]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"lags": -1}, "lags must be a whole number"),
        ({"lags": 1, "horizon": 0}, "horizon"),
        ({"lags": [3], "horizon": 4}, "at least the horizon"),
        ({"calendar": ["month"]}, "calendar must be one of"),
    ],
)
def test_what_could_not_be_known_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Online(target="y", **wrong)
