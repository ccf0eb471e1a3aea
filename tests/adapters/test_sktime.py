"""sktime's own checks of the forecaster, and what they do not ask."""

import numpy as np
import pandas as pd
import pytest
from sktime.utils.estimator_checks import check_estimator

from driftgp import Forecaster
from driftgp.sktime import FanForecaster

pytestmark = pytest.mark.filterwarnings("ignore")  # sktime's checks warn of sktime's own matters

QUICK = [
    "test_clone",
    "test_constructor",
    "test_create_test_instance",
    "test_get_params",
    "test_fit_idempotent",
    "test_non_state_changing_method_contract",
    "test_predict_time_index_with_X",
    "test_predict_interval",
    "test_predict_quantiles",
    "test__y_remember_data",
    "test_update_predict_single",
]


def test_passes_the_quick_checks_of_sktime():
    results = check_estimator(FanForecaster, tests_to_run=QUICK, raise_exceptions=True, verbose=False)
    assert set(results.values()) == {"PASSED"}


@pytest.mark.slow
def test_passes_all_checks_of_sktime():
    results = check_estimator(FanForecaster, raise_exceptions=True, verbose=False)
    assert len(results) >= 700
    assert set(results.values()) == {"PASSED"}


@pytest.fixture(scope="module")
def series():
    at = pd.period_range("2020-01-01", periods=260, freq="D")
    X = pd.DataFrame(
        {
            "open": (np.random.default_rng(1).uniform(size=260) > 0.1).astype(float),
            "warmth": np.cos(np.arange(260) / 50),
        },
        at,
    )
    noise = 0.1 * np.random.default_rng(0).normal(size=260)
    return pd.Series(3.0 + np.sin(np.arange(260) * 2 * np.pi / 7) + noise, at, name="load") + 2.0 * X["open"], X


@pytest.mark.parametrize("exogenous", [False, True])
def test_update_goes_on_where_fit_would_have_been(series, exogenous):
    y, X = series

    def known(rows: slice) -> pd.DataFrame | None:
        return X[rows] if exogenous else None

    at_once = FanForecaster().fit(y[:250], known(slice(250)), fh=[1, 3])
    in_parts = FanForecaster().fit(y[:220], known(slice(220)), fh=[1, 3])
    in_parts.update(y[220:240], known(slice(220, 240)))
    in_parts.update(y[230:250], known(slice(230, 250)))  # overlaps with what came before
    ahead = known(slice(250, None))
    pd.testing.assert_series_equal(in_parts.predict(X=ahead), at_once.predict(X=ahead))


def test_it_is_the_forecaster_of_the_library(series):
    y, _ = series
    mine = Forecaster(5)
    mine.update(y.to_numpy(), y.index.to_timestamp().to_numpy())
    theirs = FanForecaster().fit(y, fh=[1, 2, 5])
    fan, at = mine.forecast(), [0, 1, 4]
    np.testing.assert_array_equal(theirs.predict(), fan.mean[at])
    np.testing.assert_array_equal(theirs.predict_interval(coverage=0.9), np.array(fan.interval(0.9)).T[at])
    np.testing.assert_array_equal(theirs.predict_var().to_numpy()[:, 0], fan.variance[at])


def test_columns_that_are_known_ahead_matter(series):
    y, X = series
    forecaster = FanForecaster().fit(y[:250], X[:250], fh=[1, 2, 3, 4])
    open_, closed = X[250:254].assign(open=1.0), X[250:254].assign(open=0.0)
    difference = forecaster.predict(X=open_) - forecaster.predict(X=closed)
    assert np.all(np.abs(difference - 2.0) < 0.5), difference
    assert np.abs(forecaster.predict(X=X[250:254]) - y[250:254]).max() < 0.5


@pytest.mark.parametrize("freq", ["B", "ME", "W-SUN", "QS"])
def test_calendars_whose_steps_differ_in_length(freq):
    y = pd.Series(np.arange(150.0), pd.date_range("2000-01-03", periods=150, freq=freq))
    told = FanForecaster().fit(y[:140], fh=np.arange(1, 11)).predict()
    assert list(told.index) == list(y.index[140:])
    np.testing.assert_allclose(told, y[140:], rtol=0.15)


def test_intervals_of_a_random_walk_widen_with_the_horizon():
    y = pd.Series(np.random.default_rng(0).normal(size=400).cumsum())
    bounds = FanForecaster().fit(y, fh=[1, 10]).predict_interval(coverage=0.9).to_numpy()
    assert bounds[1, 1] - bounds[1, 0] > bounds[0, 1] - bounds[0, 0]


def test_what_cannot_be_is_refused_with_what_is_needed(series):
    y, _ = series
    with pytest.raises(ValueError, match="season must be a whole number"):
        FanForecaster(season=0).fit(y[:120], fh=[1])
    with pytest.raises(ValueError, match="a forecast needs more rows than it has steps"):
        FanForecaster().fit(y[:20], fh=[30]).predict()
