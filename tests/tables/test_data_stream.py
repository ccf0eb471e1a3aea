"""The shapes in which data leave the room."""

import numpy as np
import pytest

from driftgp.data import Stream
from experiments.data import Daily


def small(**changes):
    fields = {"X": np.arange(8.0).reshape(4, 2), "y": [1.0, np.nan, 3.0, 4.0], "warmup": 1}
    return Stream("small", **{**fields, **changes})


def daily(*days):
    return Daily("shop", np.array(days, dtype="datetime64[D]"), np.arange(1.0, len(days) + 1))


def test_a_stream_cannot_be_changed_by_its_user_nor_through_its_source():
    source = np.ones((4, 2))
    stream = small(X=source)
    source[0] = 9.0
    assert stream.X[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        stream.y[0] = 0.0


def test_elapsed_is_one_unless_given():
    np.testing.assert_array_equal(small().elapsed, np.ones(4))
    np.testing.assert_array_equal(small(elapsed=[1, 3, 1, 2]).elapsed, [1, 3, 1, 2])


def test_persistence_is_the_last_observed_value_and_never_the_present_one():
    np.testing.assert_array_equal(small().persistence(), [np.nan, 1.0, 1.0, 3.0])
    np.testing.assert_array_equal(small(y=[np.nan, 2.0, 3.0, 4.0]).persistence(), [np.nan, np.nan, 2.0, 3.0])


def test_persistence_by_lag_column_for_one_and_for_several_outputs():
    both = small(y=np.zeros((4, 2)), lag_columns=(1, 0))
    np.testing.assert_array_equal(both.persistence(), both.X[:, [1, 0]])
    for index in (0, 1, -1, -2):
        one = both.output(index)
        assert one.y.shape == (4,)
        np.testing.assert_array_equal(one.persistence(), both.persistence()[:, index])


def test_persistence_of_several_outputs_without_lag_columns():
    y = np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, np.nan], [4.0, 8.0]])
    np.testing.assert_array_equal(small(y=y).persistence(), [[np.nan] * 2, [1, 5], [1, 6], [3, 6]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones(4)}, "X and y of 'small' have shapes"),
        ({"y": np.ones(3)}, "X and y of 'small' have shapes"),
        ({"warmup": 5}, "warmup of 'small' is 5"),
        ({"elapsed": np.ones(3)}, "elapsed of 'small'"),
        ({"times": np.ones(3)}, "times of 'small'"),
        ({"inputs": ("a",)}, "1 names for 2 columns"),
        ({"lag_columns": (0, 1)}, "one for each of 1 outputs"),
    ],
)
def test_a_stream_that_does_not_fit_together_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        small(**change)


@pytest.mark.parametrize("index", [2, -3])
def test_an_output_that_is_not_there_is_refused(index):
    with pytest.raises(ValueError, match=f"output {index} asked"):
        small(y=np.zeros((4, 2))).output(index)
    with pytest.raises(ValueError, match="output 0 asked"):
        small().output(0)


def test_daily_keeps_and_drops_days():
    record = daily("2020-12-30", "2020-12-31", "2021-01-01")
    np.testing.assert_array_equal(record.without("2020-12-31").values, [1, 3])
    np.testing.assert_array_equal(record.between("2020-12-31", "2021-01-01").values, [2, 3])


def test_daily_refuses_days_that_do_not_increase():
    with pytest.raises(ValueError, match="2020-01-01 follows 2020-01-01"):
        daily("2020-01-01", "2020-01-01")
    with pytest.raises(ValueError, match="one length"):
        Daily("shop", np.array(["2020-01-01"], dtype="datetime64[D]"), np.ones(2))
