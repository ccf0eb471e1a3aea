"""The file that comes with the package: whole, attributed, and read alike in every form."""

import sys

import numpy as np
import pytest

import driftgp.data
from driftgp.data import bike_sharing_stream, bikes_file, load_bikes
from driftgp.demo import showcase


@pytest.fixture(scope="module")
def bikes():
    return load_bikes("numpy")


def test_it_has_the_published_sums(bikes):
    assert len(bikes["time"]) == 17379
    assert bikes["count"].sum() == 3_292_679
    np.testing.assert_array_equal(bikes["casual"] + bikes["registered"], bikes["count"])
    assert str(bikes["time"][0]) == "2011-01-01T00:00:00.000000"
    assert str(bikes["time"][-1]) == "2012-12-31T23:00:00.000000"
    assert np.unique(np.diff(bikes["time"]) > np.timedelta64(0, "h")).tolist() == [True]


def test_numbers_have_units_and_categories_have_names(bikes):
    assert -8.0 <= bikes["temperature"].min() < 0.0 < 35.0 < bikes["temperature"].max() <= 39.0
    assert bikes["humidity"].max() == 100.0
    assert set(bikes["sky"]) == {"clear", "mist", "rain", "storm"}
    january = bikes["time"].astype("datetime64[M]").astype(int) % 12 == 0
    assert set(bikes["season"][january]) == {"winter"}
    assert bikes["holiday"].dtype == bool


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_has_the_same_numbers(bikes, library):
    pytest.importorskip(library)
    frame = load_bikes(library)
    times = frame.index.to_numpy() if library == "pandas" else frame["time"].to_numpy()
    np.testing.assert_array_equal(times, bikes["time"])
    for name in set(bikes) - {"time"}:
        np.testing.assert_array_equal(np.asarray(frame[name], bikes[name].dtype), bikes[name])


def test_a_library_that_is_missing_or_unknown_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r'pandas is not installed: .*load_bikes\("numpy"\)'):
        load_bikes()
    with pytest.raises(ValueError, match="library must be one of 'pandas', 'polars', 'numpy'"):
        load_bikes("excel")


def test_the_licence_is_beside_the_file():
    text = bikes_file().with_name("BIKES-LICENSE.txt").read_text()
    assert "CC BY 4.0" in text
    assert "10.24432/C5W894" in text
    assert bikes_file().stat().st_size < 250_000


def test_the_stream_of_the_package_is_the_one_of_the_file(bikes):
    pytest.importorskip("polars")
    stream = bike_sharing_stream(missing="elapsed")
    np.testing.assert_array_equal(stream.y, bikes["count"])
    assert driftgp.data.bikes_file().name == "bikes.csv.gz"


def test_the_default_beats_both_naive_forecasts_in_the_first_months():
    pytest.importorskip("polars")
    found = showcase.bikes(rows=2000).found
    assert found["driftgp"].rmse < 0.9 * min(found["persistence"].rmse, found["seasonal naive"].rmse)
    assert found["driftgp"].coverage > 0.9
