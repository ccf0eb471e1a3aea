"""sktime's own checks of the forecaster, and what they do not ask."""

import numpy as np
import pandas as pd
import pytest
from sktime.utils.estimator_checks import check_estimator

from driftgp.sktime import AGPForecaster

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
    results = check_estimator(AGPForecaster, tests_to_run=QUICK, raise_exceptions=True, verbose=False)
    assert set(results.values()) == {"PASSED"}


@pytest.mark.slow
def test_passes_all_checks_of_sktime():
    results = check_estimator(AGPForecaster, raise_exceptions=True, verbose=False)
    assert len(results) >= 700
    assert set(results.values()) == {"PASSED"}


@pytest.fixture(scope="module")
def series():
    y = pd.Series(np.sin(np.arange(160) / 3), index=pd.period_range("2020-01-01", periods=160, freq="D"), name="load")
    X = pd.DataFrame({"weekday": np.arange(160) % 7, "warmth": np.cos(np.arange(160) / 50)}, index=y.index)
    return y + 0.1 * X["weekday"], X


def test_update_goes_on_where_fit_would_have_been(series):
    y, X = series
    at_once = AGPForecaster(lags=8).fit(y[:150], X[:150], fh=[1, 3])
    in_parts = AGPForecaster(lags=8).fit(y[:120], X[:120], fh=[1, 3])
    engines = [model._engine for model in in_parts.models_.values()]
    in_parts.update(y[120:140], X[120:140]).update(y[130:150], X[130:150])  # the second overlaps with the first
    assert [model._engine for model in in_parts.models_.values()] == engines  # nothing was fitted again
    np.testing.assert_allclose(in_parts.predict(X=X[150:]), at_once.predict(X=X[150:]), rtol=1e-6)
    np.testing.assert_allclose(at_once.predict(X=X[150:]), y.iloc[[150, 152]], atol=0.2)


def test_values_that_come_without_learning_still_move_the_lags(series):
    y, _ = series
    forecaster = AGPForecaster(lags=8).fit(y[:120], fh=[1])
    before = forecaster.predict().iloc[0]
    after = forecaster.update(y[120:125], update_params=False).predict()
    assert after.index[0] == y.index[125]
    assert abs(after.iloc[0] - y.iloc[125]) < abs(before - y.iloc[125])


def test_intervals_of_a_random_walk_widen_with_the_horizon():
    y = pd.Series(np.random.default_rng(0).normal(size=180).cumsum())
    bounds = AGPForecaster(lags=4).fit(y, fh=[1, 10]).predict_interval(coverage=0.9).to_numpy()
    assert bounds[1, 1] - bounds[1, 0] > bounds[0, 1] - bounds[0, 0]


def test_a_horizon_that_fit_was_not_told_of_is_refused(series):
    y, _ = series
    with pytest.raises(ValueError, match="steps that fit was told of"):
        AGPForecaster(lags=8).fit(y[:120], fh=[1])._model(4)
    with pytest.raises(ValueError, match="lags must be a whole number"):
        AGPForecaster(lags=0).fit(y[:120], fh=[1])
