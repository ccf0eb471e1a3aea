"""skpro's own checks of the regressor, and what they do not ask."""

import numpy as np
import pandas as pd
import pytest
from skpro.utils import check_estimator

from driftgp.sklearn import AGPRegressor as ForScikitLearn
from driftgp.skpro import AGPRegressor, Predicted

pytestmark = pytest.mark.filterwarnings("ignore")  # skpro's checks warn of skpro's own matters


def test_passes_the_checks_of_skpro():
    results = check_estimator(AGPRegressor, raise_exceptions=True, verbose=False)
    assert len(results) >= 50  # they ran; how many there are depends on the version of skpro
    assert set(results.values()) == {"PASSED"}


def test_its_distributions_pass_the_quick_checks_of_skpro():
    slow = ["test_methods_scalar"]  # draws thousands of samples
    results = check_estimator(Predicted, tests_to_exclude=slow, raise_exceptions=True, verbose=False)
    assert len(results) >= 100
    assert set(results.values()) == {"PASSED"}


@pytest.mark.slow
def test_its_distributions_pass_all_checks_of_skpro():
    results = check_estimator(Predicted, raise_exceptions=True, verbose=False)
    assert len(results) >= 140
    assert set(results.values()) == {"PASSED"}


@pytest.fixture(scope="module")
def stream():
    X = np.random.default_rng(0).normal(size=(150, 3))
    return pd.DataFrame(X, columns=["a", "b", "c"]), pd.DataFrame({"y": np.sin(X[:, 0]) + 0.1 * X[:, 1]})


def test_is_the_model_that_scikit_learn_gets(stream):
    X, y = stream
    distribution = AGPRegressor().fit(X[:120], y[:120]).update(X[120:], y[120:]).predict_proba(X[:9])
    other = ForScikitLearn().fit(X[:120], y[:120]["y"]).partial_fit(X[120:], y[120:]["y"])
    mean, std = other.predict(X[:9], return_std=True)
    np.testing.assert_allclose(distribution.mean()["y"], mean)
    np.testing.assert_allclose(distribution.var()["y"], std**2)


def test_intervals_and_quantiles_are_the_calibrated_ones(stream):
    X, y = stream
    model = AGPRegressor().fit(X, y)
    bounds = model.predict_interval(X[:9], coverage=0.9).to_numpy()
    quantiles = model.predict_quantiles(X[:9], alpha=[0.05, 0.95]).to_numpy()
    np.testing.assert_allclose(bounds, quantiles)
    np.testing.assert_allclose(bounds.T, np.squeeze(model.online_.predict(X[:9].to_numpy()).interval(0.9)))
    assert np.all((bounds[:, 0] < model.predict(X[:9])["y"]) & (model.predict(X[:9])["y"] < bounds[:, 1]))


def test_a_distribution_is_the_prediction_at_some_of_its_rows(stream):
    X, y = stream
    both = y.assign(z=-y["y"])
    distribution = AGPRegressor(window=20, inducing=4, learn_every=0).fit(X, both).predict_proba(X[:9])
    cdf, ppf = distribution.cdf(0.3), distribution.ppf(0.3)
    some = distribution.iloc[[4, 2], [1]]
    assert (some.index.tolist(), some.columns.tolist()) == ([4, 2], ["z"])
    pd.testing.assert_frame_equal(some.cdf(0.3), cdf.iloc[[4, 2], [1]])
    pd.testing.assert_frame_equal(distribution.loc[[7]].ppf(0.3), ppf.loc[[7]])
    assert distribution.iat[4, 1].cdf(0.3) == pytest.approx(cdf.iloc[4, 1])
    np.testing.assert_allclose(distribution.cdf(ppf), 0.3)
    np.testing.assert_allclose(np.exp(distribution.log_pdf(0.3)), distribution.pdf(0.3))
