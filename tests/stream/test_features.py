"""Inputs that follow from the past and from the calendar: what they are, and that none knows what nobody knew."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from driftgp import Fleet, Online
from driftgp.stream import calendar
from driftgp.stream.settings import settings
from driftgp.wrappers import Gaps
from tests.catalogue import CATALOGUE

MODEL = Gaps(CATALOGUE["fast-AGP"].make().__class__(inducing=3, window=5))  # which takes gaps
START = datetime(2024, 1, 1)


def inputs_of(
    rows: list[dict[str, Any]], cuts: tuple[int, ...] = (), **options: Any
) -> tuple[tuple[str, ...], np.ndarray]:
    """Inputs of every row, and their names; rows come in one piece, or cut."""
    online = Online(MODEL, target="y", **options)
    seen = []
    streams = online._streams
    for begin, end in zip((0, *cuts), (*cuts, len(rows)), strict=True):
        if begin == end:
            continue
        prepared = streams._prepared

        def noted(*args: Any, prepared: Any = prepared) -> Any:
            made = prepared(*args)
            seen.append(made.rows.raw.copy())
            return made

        streams._prepared = noted  # type: ignore[method-assign]
        online.evaluate(rows[begin:end])
        streams._prepared = prepared  # type: ignore[method-assign]
    return online.inputs, np.concatenate(seen)


def hourly(
    targets: Any, missing: tuple[int, ...] = (), step: timedelta = timedelta(hours=1), **columns: Any
) -> list[Any]:
    """Rows one step apart, some of which are not there."""
    rows = [
        {"at": START + t * step, "y": float(y), **{name: values[t] for name, values in columns.items()}}
        for t, y in enumerate(targets)
    ]
    return [row for t, row in enumerate(rows) if t not in missing]


def assert_rows(found: np.ndarray, wanted: Any) -> None:
    np.testing.assert_array_equal(found, np.array(wanted, float))


GAP = np.nan


def test_lags_are_the_targets_so_many_rows_back():
    names, rows = inputs_of(hourly(range(8)), lags=[1, 2, 5], others="ignored")
    assert names == ("lag 1", "lag 2", "lag 5")
    assert_rows(rows[:3], [[GAP, GAP, GAP], [0, GAP, GAP], [1, 0, GAP]])
    assert_rows(rows[5:], [[4, 3, 0], [5, 4, 1], [6, 5, 2]])


def test_on_a_grid_lags_go_by_the_clock_and_an_hour_that_is_not_there_is_missing():
    missing = (20, 21, 30)
    _, rows = inputs_of(hourly(range(40), missing), lags=[1, 3], time="at")
    hours = [t for t in range(40) if t not in missing]
    for hour, row in list(zip(hours, rows, strict=True))[12:]:  # by then the grid is known
        wanted = [GAP if hour - lag in missing else hour - lag for lag in (1, 3)]
        assert_rows(row, wanted)


def test_times_off_the_grid_have_lags_by_rows():
    steps = np.random.default_rng(0).uniform(0.1, 3.0, 40)
    rows = [{"at": START + timedelta(hours=float(t)), "y": float(i)} for i, t in enumerate(np.cumsum(steps))]
    _, found = inputs_of(rows, lags=[1, 3], time="at")
    assert_rows(found[10:], [[i - 1, i - 3] for i in range(10, 40)])


def test_a_single_time_off_the_grid_has_no_lags_and_does_no_harm_to_others():
    rows = hourly(range(60))
    rows[40]["at"] += timedelta(minutes=20)
    _, found = inputs_of(rows, lags=[1, 3], time="at")
    assert np.isnan(found[40]).all()
    assert_rows(found[44:], [[i - 1, i - 3] for i in range(44, 60)])


def test_a_horizon_moves_late_columns_and_lags_back_but_not_what_is_known():
    temp, off = [10.0 * t for t in range(6)], [100.0 + t for t in range(6)]
    names, rows = inputs_of(hourly(range(6), temp=temp, off=off), known=["off"], lags=1, horizon=3, time="at")
    assert names == ("off", "temp (3 before)", "lag 3")
    assert_rows(rows[5], [105.0, 20.0, 2.0])
    assert_rows(rows[0], [100.0, GAP, GAP])


def test_columns_of_the_same_row_are_late_or_ignored_unless_they_are_features():
    rows = hourly(range(4), temp=[1.0, 2.0, 3.0, 4.0])
    assert inputs_of(rows, lags=1, time="at")[0] == ("temp (1 before)", "lag 1")
    assert inputs_of(rows, lags=1, time="at", others="ignored")[0] == ("lag 1",)
    names, found = inputs_of(rows, features=["temp"], time="at")
    assert names == ("temp",)
    assert_rows(found, [[1.0], [2.0], [3.0], [4.0]])


@given(
    st.integers(1, 5),
    st.integers(0, 3),
    st.lists(st.integers(5, 9), max_size=2),
    st.integers(0, 19),
    st.floats(-1e6, 1e6),
    st.booleans(),
)
@tries(max_examples=25, deadline=None)
def test_no_input_knows_what_comes_later(horizon, lags, more, changed, value, timed):
    options = {"lags": [*range(horizon, horizon + lags), *more], "horizon": horizon, "time": "at" if timed else None}
    columns, targets = [float(t) for t in range(20)], [float(t * t) for t in range(20)]
    _, before = inputs_of(hourly(targets, x=columns), **options)
    targets[changed] = value
    columns[changed] = value
    _, after = inputs_of(hourly(targets, x=columns), **options)
    assert_rows(before[: changed + horizon], after[: changed + horizon])


@given(
    st.integers(1, 4),
    st.integers(0, 3),
    st.lists(st.integers(4, 9), max_size=2),
    st.lists(st.integers(0, 15), max_size=6).map(sorted),
    st.sets(st.integers(0, 14), max_size=4),
)
@tries(max_examples=25, deadline=None)
def test_how_rows_are_cut_changes_no_input(horizon, lags, more, cuts, missing):
    rng = np.random.default_rng(0)
    rows = hourly(np.arange(18.0) ** 2, tuple(missing), x=rng.normal(size=18), z=rng.normal(size=18))
    options = {"lags": [*range(horizon, horizon + lags), *more], "calendar": "day", "horizon": horizon, "time": "at"}
    cuts = tuple(min(cut, len(rows)) for cut in cuts)
    _, whole = inputs_of(rows, known=["x"], **options)
    _, cut = inputs_of(rows, cuts, known=["x"], **options)
    assert_rows(whole, cut)


# ---- the calendar ----------------------------------------------------------------------------------------------------


def wave(moment: datetime, *cycles: str, holidays: Any = ()) -> np.ndarray:
    wall = (moment.replace(tzinfo=None) - datetime(1970, 1, 1)) / timedelta(microseconds=1)
    return calendar.inputs(np.array([wall]), cycles, holidays)[0]


def test_the_calendar_has_no_jump_at_midnight_or_on_monday():
    night = datetime(2024, 3, 3, 23, 59, 59)  # a Sunday
    cycles = ("day", "week", "year")
    np.testing.assert_allclose(wave(night, *cycles), wave(night + timedelta(seconds=1), *cycles), atol=1e-3)


def test_the_calendar_comes_round():
    time = datetime(2024, 3, 3, 7, 30)
    np.testing.assert_array_equal(wave(time, "day", "week"), wave(time + timedelta(days=7), "day", "week"))
    assert abs(wave(time, "day", "week") - wave(time + timedelta(days=3), "day", "week")).max() > 0.1


def test_a_wave_that_is_0_is_exactly_0():
    assert wave(datetime(2024, 3, 3, 6), "day").tolist() == [1.0, 0.0, 0.0, -1.0]


def test_the_calendar_goes_by_the_clock_on_the_wall():
    """Breakfast is at eight before and after the clocks change; the rows of other zones have other breakfasts."""
    berlin = ZoneInfo("Europe/Berlin")
    eight = [datetime(2024, 3, day, 8, tzinfo=berlin) for day in (30, 31)]  # the clocks change between
    _, local = inputs_of([{"at": at, "y": 1.0} for at in eight], calendar="day", time="at")
    assert_rows(local[0], local[1])
    _, world = inputs_of([{"at": at.astimezone(UTC), "y": 1.0} for at in eight], calendar="day", time="at")
    assert abs(world[0] - world[1]).max() > 0.1
    _, naive = inputs_of([{"at": at.replace(tzinfo=None), "y": 1.0} for at in eight], calendar="day", time="at")
    assert_rows(naive, local)


def test_holidays_are_ones():
    rows = hourly([0.0] * 3, step=timedelta(days=1))
    for day in (date(2024, 1, 2), "2024-01-02"):
        names, found = inputs_of(rows, holidays=[day], time="at")
        assert names == ("holiday",)
        assert_rows(found, [[0.0], [1.0], [0.0]])


def test_holidays_of_a_country():
    pytest.importorskip("holidays")
    rows = [{"at": datetime(2024, 7, day), "y": 1.0} for day in (3, 4, 5)]
    assert_rows(inputs_of(rows, holidays="US", time="at")[1], [[0.0], [1.0], [0.0]])


@pytest.mark.parametrize("options", [{"calendar": True}, {"holidays": ["2024-01-01"]}])
def test_a_calendar_without_dates_is_refused_with_the_remedy(options):
    for x in ([1.0], {"x": 1.0}):
        with pytest.raises(ValueError, match=r"the calendar needs the dates of the rows.*time=…"):
            Online(MODEL, **options).update(x, 1.0)
    with pytest.raises(ValueError, match="the calendar needs the dates"):
        Online(MODEL, time="t", **options).update({"t": 3.0, "x": 1.0}, 1.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"lags": -1}, "lags must be a whole number"),
        ({"lags": "3"}, r"lags must be a number, or a list of steps back such as \[1, 2, 24\]; got '3'"),
        ({"lags": [0]}, "lags must be a whole number"),
        ({"lags": 1, "horizon": 0}, "horizon must be a whole number"),
        ({"lags": [3], "horizon": 4}, r"lags must be at least the horizon \(4\).*got 3"),
        ({"lags": 10**7}, "lags must be at most a million"),
        ({"calendar": "month"}, "calendar must be one of"),
        ({"holidays": ["Easter"]}, "holidays must be dates such as '2026-12-25'; got 'Easter'"),
        ({"holidays": "Utopia"}, "holidays must be dates, or the code of a country"),
        ({"features": "x"}, r"features must be a list of names of columns; got 'x': write \['x'\]"),
        ({"features": ["y"], "target": "y"}, "features must not hold 'y', which is the target: ask for lags of it"),
        ({"known": ["t"], "time": "t"}, "features must not hold 't', which is the time: leave it out"),
        ({"others": "early"}, "others must be one of"),
        ({"missing": "guess"}, "missing must be one of"),
        ({"level": 95}, "level must lie strictly between 0 and 1; got 95"),
        ({"target": 3}, "target must be the name of a column; got 3"),
    ],
)
def test_what_could_not_be_known_is_refused(wrong, words):
    for make in (settings, Online, Fleet):
        with pytest.raises(ValueError, match=words):
            make(**wrong)


def test_a_half_life_is_refused_with_the_reason():
    for make in (Online, Fleet):
        with pytest.raises(ValueError, match=r"half_life is no setting of the default.*got 3: .*forgetting=…"):
            make(half_life=3)


def test_a_table_without_inputs_is_refused():
    with pytest.raises(ValueError, match=r"there are no inputs: name columns .* in features, or ask for lags"):
        Online(target="y", others="ignored").evaluate([{"y": 1.0, "x": 2.0}])
    with pytest.raises(ValueError, match="features has 'z', but there is no such column: there are 'y', 'x'"):
        Online(target="y", features=["z"]).evaluate([{"y": 1.0, "x": 2.0}])


def test_lags_of_several_outputs_are_refused():
    with pytest.raises(ValueError, match="lags are those of one target; got 2 outputs: take a stream for each"):
        Online(MODEL, lags=1).update({"x": 1.0}, [1.0, 2.0])
