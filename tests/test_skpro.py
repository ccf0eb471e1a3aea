"""skpro's own checks of the regressor, and what they do not ask."""

import numpy as np
import pandas as pd
import pytest
from skpro.utils import check_estimator

from driftgp.sklearn import AGPRegressor as ForScikitLearn
from driftgp.skpro import AGPRegressor

pytestmark = pytest.mark.filterwarnings("ignore")  # skpro's checks warn of skpro's own matters


def test_passes_the_checks_of_skpro():
    results = check_estimator(AGPRegressor, raise_exceptions=True, verbose=False)
    assert len(results) >= 60
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


def test_intervals_and_quantiles_are_those_of_its_distribution(stream):
    X, y = stream
    model = AGPRegressor().fit(X, y)
    bounds = model.predict_interval(X[:9], coverage=0.9).to_numpy()
    quantiles = model.predict_quantiles(X[:9], alpha=[0.05, 0.95]).to_numpy()
    np.testing.assert_allclose(bounds, quantiles)
    np.testing.assert_allclose(bounds.mean(1), model.predict(X[:9])["y"])
