"""scikit-learn's own checks of the regressor, and what they do not ask."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from driftgp.defaults import recommended
from driftgp.online import Online
from driftgp.sklearn import AGPRegressor


# scikit-learn skips the one of array libraries other than NumPy by itself
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([AGPRegressor()])
def test_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def stream():
    X = np.random.default_rng(0).normal(size=(150, 3))
    return X, np.sin(X[:, 0]) + 0.1 * X[:, 1]


@pytest.fixture(scope="module")
def fitted(stream):
    X, y = stream
    return AGPRegressor().fit(X[:120], y[:120])


def test_covariance_has_the_variances_on_its_diagonal(fitted, stream):
    X, _ = stream
    mean, std = fitted.predict(X[:70], return_std=True)
    again, covariance = fitted.predict(X[:70], return_cov=True)
    np.testing.assert_allclose(again, mean)
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > 0
    with pytest.raises(ValueError, match="return_cov must be False"):
        fitted.predict(X, return_std=True, return_cov=True)


def test_samples_have_the_mean_and_covariance_that_are_predicted(fitted, stream):
    X, _ = stream
    mean, covariance = fitted.predict(X[:5], return_cov=True)
    draws = fitted.sample_y(X[:5], 20_000, random_state=1)
    np.testing.assert_allclose(draws.mean(1), mean, atol=5 * np.sqrt(np.diag(covariance).max() / 20_000))
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.05 * np.diag(covariance).max())


def test_several_outputs_are_each_predicted_with_a_covariance_of_their_own(stream):
    X, y = stream
    model = AGPRegressor().fit(X, np.column_stack([y, -2 * y]))
    mean, covariance = model.predict(X[:4], return_cov=True)
    assert mean.shape == (4, 2)
    assert covariance.shape == (4, 4, 2)
    assert model.sample_y(X[:4], 3).shape == (4, 2, 3)


def test_streams_the_same_whether_rows_come_at_once_or_in_parts(stream):
    X, y = stream
    at_once = AGPRegressor().fit(X, y)
    in_parts = AGPRegressor().fit(X[:100], y[:100]).partial_fit(X[100:101], y[100:101]).partial_fit(X[101:], y[101:])
    streamed = AGPRegressor().partial_fit(X[:1], y[:1]).partial_fit(X[1:], y[1:])
    for other in (in_parts, streamed):
        np.testing.assert_array_equal(other.predict(X), at_once.predict(X))


def test_it_is_the_default_model_and_nothing_but_it(stream):
    X, y = stream
    estimator = AGPRegressor().fit(X, y)
    model = recommended(X, y)
    assert estimator.online_.model == model
    state = model.update(model.init(X[:0], y[:0]), X, y)
    mean, std = estimator.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(state, X).mean)
    np.testing.assert_array_equal(std, model.predict(state, X).std)


@pytest.mark.parametrize("settings", [{"effort": "low"}, {"effort": "low", "support": "real", "lags": 2, "horizon": 3}])
def test_it_is_online_to_the_last_bit_with_text_gaps_and_times(settings):
    rng = np.random.default_rng(3)
    N = 430
    X = pd.DataFrame(
        {
            "a": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "open": rng.random(N) < 0.5,
            "sky": rng.choice(["clear", "rain", None], N),
        },
        pd.date_range("2024-01-01", periods=N, freq="h"),
    )
    y = pd.Series(5.0 + np.sin(np.arange(N) / 4.0), X.index)
    y.iloc[17] = np.nan
    streamed, online = AGPRegressor(**settings), Online(**settings)
    for part in (slice(3), slice(3, 300), slice(300, N - 5)):
        streamed.partial_fit(X[part], y[part])
        online.update(X[part], y[part])
        mean, std = streamed.predict(X[N - 5 :], return_std=True)
        expected = online.predict(X[N - 5 :])
        np.testing.assert_array_equal(mean, expected.mean)
        np.testing.assert_array_equal(std, expected.std)
    _, covariance = streamed.predict(X[N - 5 :], return_cov=True)
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-9)
    batch = AGPRegressor(**settings).fit(X[20 : N - 5], y[20 : N - 5])
    online = Online(**settings)
    online.update(X[20 : N - 5], y[20 : N - 5])
    np.testing.assert_array_equal(batch.predict(X[N - 5 :]), online.predict(X[N - 5 :]).mean)


def test_with_settings_it_is_one_agp_that_warms_up_on_its_window(stream):
    X, y = stream
    estimator = AGPRegressor(inducing=5, window=32, learn_every=0, warmup_iterations=9).fit(X, y)
    model = estimator.online_.model
    state = model.update(model.init(X[:32], y[:32]), X[32:], y[32:])
    np.testing.assert_array_equal(estimator.predict(X), model.predict(state, X).mean)


def test_a_call_of_partial_fit_is_one_call_of_the_engine(stream, monkeypatch):
    """Rows handed over one by one would cost a call each."""
    X, y = stream
    estimator = AGPRegressor(inducing=3, window=8, learn_every=0, warmup_iterations=0).fit(X[:50], y[:50])
    calls = []
    monkeypatch.setattr(Online, "update", lambda self, x, y, elapsed=1.0: calls.append(len(x)))
    estimator.partial_fit(X[50:], y[50:])
    assert calls == [len(X) - 50]


def test_a_copy_from_a_pickle_goes_on_bit_for_bit(fitted, stream):
    X, y = stream
    copy = pickle.loads(pickle.dumps(fitted))
    other = pickle.loads(pickle.dumps(fitted))
    for model in (copy, other):
        model.partial_fit(X[120:], y[120:])
    np.testing.assert_array_equal(copy.predict(X), other.predict(X))


def test_is_tuned_in_a_pipeline_over_time(stream):
    X, y = stream
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), AGPRegressor())
    grid = {"agpregressor__forgetting": [0.9, 0.99]}
    search = GridSearchCV(pipeline, grid, cv=TimeSeriesSplit(2), error_score="raise").fit(frame, y)
    assert search.best_estimator_[-1].feature_names_in_.tolist() == ["a", "b", "c"]


def test_frames_are_taken_and_their_names_checked(stream):
    X, y = stream
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    model = AGPRegressor().fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), AGPRegressor().fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename({"a": "z"}))


def test_a_wrong_setting_is_refused_by_fit_and_named(stream):
    with pytest.raises(ValueError, match="inducing must be at most window"):
        clone(AGPRegressor(inducing=50, window=20)).fit(*stream)
