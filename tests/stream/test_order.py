"""Tables whose rows are of several series or out of order are warned of, once per call."""

import warnings

import numpy as np
import pytest

from driftgp import Fleet, Online

pd = pytest.importorskip("pandas")
HOURS = pd.date_range("2024-01-01", periods=60, freq="h")


def rows(shops=("a", "b")):
    rng = np.random.default_rng(0)
    parts = [pd.DataFrame({"when": HOURS, "shop": shop, "y": rng.normal(size=len(HOURS))}) for shop in shops]
    return pd.concat(parts).sort_values("when", kind="stable").reset_index(drop=True)


def test_rows_of_several_series_are_told_apart_by_the_warning():
    with pytest.warns(UserWarning, match=r"60 of 120 rows have the time of another row\. 'shop' tells them apart"):
        Online(target="y", time="when", lags=1, effort="low").evaluate(rows())
    with pytest.warns(UserWarning, match="If there are several series, use Fleet"):
        Online(target="y", time="when", lags=1, effort="low").evaluate(rows().drop(columns="shop"))


def test_a_frame_with_its_newest_row_first_is_warned_of_and_its_scores_say_that_nothing_was_scored():
    frame = rows(["a"])[::-1]
    with pytest.warns(UserWarning, match="59 of 60 rows are older than a row before them"):
        found = Online(target="y", time="when", lags=1, effort="low").evaluate(frame)
    assert str(found.scores()).startswith("no row was scored")


def test_tables_in_order_fleets_and_few_late_rows_have_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Online(target="y", time="when", lags=1, effort="low").evaluate(rows(["a"]))
        Fleet(key="shop", target="y", time="when", lags=1, effort="low").evaluate(rows())
        late = rows(["a"]).iloc[[0, 1, 3, 2, *range(4, 60)]]
        Online(target="y", time="when", lags=1, effort="low").evaluate(late)
