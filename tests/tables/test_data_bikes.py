"""Bike sharing: hours that are not there must be seen, in either of two ways."""

import numpy as np
import pytest

from driftgp.data import bike_sharing_stream
from tests.data_files import real_data

HEADER = "dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed,casual,registered,cnt"
# Saturday 2011-01-01: hours 22 and 23, then, after a gap over midnight, hour 2 of Sunday.
RECORDED = [("2011-01-01", 22, 6, 0.24, 16), ("2011-01-01", 23, 6, 0.22, 40), ("2011-01-02", 2, 0, 0.20, 32)]


@pytest.fixture
def published(tmp_path):
    """The publisher's layout."""
    rows = [f"{n},{day},1,0,1,{hr},0,{weekday},0,1,{temp},0.28,0.81,0.1,3,13,{count}"
            for n, (day, hr, weekday, temp, count) in enumerate(RECORDED, 1)]  # fmt: skip
    (tmp_path / "hour.csv").write_text("\n".join([f"instant,{HEADER}", *rows]))
    return tmp_path


@pytest.fixture
def tidy(tmp_path):
    """The tidy layout, with one column of times."""
    rows = [f"{day} {hr:02d}:00,1,0,1,{hr},0,{weekday},0,1,{temp},0.28,0.81,0.1,3,13,{count}"
            for day, hr, weekday, temp, count in RECORDED]  # fmt: skip
    header = HEADER.replace("dteday", "timestamp")
    (tmp_path / "bike_sharing_hour.csv").write_text("\n".join([header, *rows]))
    return tmp_path


@pytest.mark.parametrize("layout", ["published", "tidy"])
def test_absent_hours_as_rows_without_a_target(layout, request):
    features = ("hr", "weekday", "temp")
    stream = bike_sharing_stream(request.getfixturevalue(layout), "rows", features, warmup=2)
    np.testing.assert_array_equal(stream.y, [16, 40, np.nan, np.nan, 32])
    np.testing.assert_array_equal(stream.X[:, 0], [22, 23, 0, 1, 2])
    np.testing.assert_array_equal(stream.X[:, 1], [6, 6, 0, 0, 0])  # the calendar goes on
    np.testing.assert_array_equal(stream.X[:, 2], [0.24, 0.22, 0.22, 0.22, 0.20])  # the weather is the last known
    np.testing.assert_array_equal(stream.elapsed, np.ones(5))
    assert stream.times is not None
    assert str(stream.times[3]) == "2011-01-02T01"
    assert stream.inputs == features


@pytest.mark.parametrize("layout", ["published", "tidy"])
def test_absent_hours_as_elapsed_time(layout, request):
    stream = bike_sharing_stream(request.getfixturevalue(layout), "elapsed", warmup=2)
    np.testing.assert_array_equal(stream.y, [16, 40, 32])
    np.testing.assert_array_equal(stream.elapsed, [1, 1, 3])


def test_parts_of_the_target_are_no_inputs(tidy):
    with pytest.raises(ValueError, match=r"features has \['casual'\]: choose from"):
        bike_sharing_stream(tidy, features=("temp", "casual"))
    with pytest.raises(ValueError, match="features has nothing"):
        bike_sharing_stream(tidy, features=())


def test_an_unknown_treatment_is_refused(tidy):
    with pytest.raises(ValueError, match="missing is 'drop'"):
        bike_sharing_stream(tidy, "drop")  # type: ignore[arg-type]


def test_an_hour_that_does_not_follow_is_named(tidy):
    path = tidy / "bike_sharing_hour.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[-1]]))
    with pytest.raises(ValueError, match=r"row 5, column 'timestamp' is '2011-01-02 02:00': expected an hour after"):
        bike_sharing_stream(tidy, warmup=1)


def test_real_bikes_lack_165_hours():
    directory = real_data("bike_sharing_hour.csv.gz")
    rows, elapsed = bike_sharing_stream(directory, "rows"), bike_sharing_stream(directory, "elapsed")
    assert np.isnan(rows.y).sum() == 165
    assert len(rows) == len(elapsed) + 165 == elapsed.elapsed.sum() == 731 * 24
    assert np.isfinite(rows.X).all()
    recorded = ~np.isnan(rows.y)
    np.testing.assert_array_equal(rows.X[recorded], elapsed.X)
    np.testing.assert_array_equal(rows.y[recorded], elapsed.y)


def test_the_calendar_we_fill_in_is_that_of_the_real_rows():
    from driftgp.data.bikes import FROM_CLOCK

    names = tuple(FROM_CLOCK)
    stream = bike_sharing_stream(real_data("bike_sharing_hour.csv.gz"), "elapsed", names)
    assert stream.times is not None
    for column, name in enumerate(names):
        np.testing.assert_array_equal(stream.X[:, column], FROM_CLOCK[name](stream.times))
