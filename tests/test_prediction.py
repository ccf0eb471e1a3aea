"""The Gaussian prediction against SciPy and against the definitions of its scores."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from driftgp.prediction import Gaussian

MEAN: Any = np.array([0.3, -2.0, 50.0])
VARIANCE: Any = np.array([0.04, 9.0, 1e-4])
Y: Any = np.array([0.1, 4.0, 50.02])
PREDICTION = Gaussian(MEAN, VARIANCE, 0.5 * VARIANCE)
LAW = stats.norm(MEAN, np.sqrt(VARIANCE))


def test_it_is_the_normal_law():
    np.testing.assert_allclose(PREDICTION.std, LAW.std(), rtol=1e-14)
    np.testing.assert_allclose(PREDICTION.log_prob(Y), LAW.logpdf(Y), rtol=1e-12)
    np.testing.assert_allclose(PREDICTION.cdf(Y), LAW.cdf(Y), rtol=1e-12)
    for q in (1e-6, 0.025, 0.5, 0.9):
        np.testing.assert_allclose(PREDICTION.quantile(q), LAW.ppf(q), rtol=1e-10)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_an_interval_holds_its_level_in_the_middle(level):
    low, high = PREDICTION.interval(level)
    np.testing.assert_allclose(PREDICTION.cdf(high) - PREDICTION.cdf(low), level, rtol=1e-9)
    np.testing.assert_allclose(0.5 * (low + high), MEAN, rtol=1e-12)


def test_the_quantile_undoes_the_cdf():
    np.testing.assert_allclose(PREDICTION.quantile(PREDICTION.cdf(Y)), Y, rtol=1e-9)


def test_crps_is_its_integral():
    for i in range(3):
        law = stats.norm(MEAN[i], np.sqrt(VARIANCE[i]))
        reach = 12.0 * np.sqrt(VARIANCE[i])
        below, _ = integrate.quad(lambda z, law=law: law.cdf(z) ** 2, MEAN[i] - reach, Y[i])
        above, _ = integrate.quad(lambda z, law=law: law.sf(z) ** 2, Y[i], max(MEAN[i], Y[i]) + reach)
        np.testing.assert_allclose(PREDICTION.crps(Y)[i], below + above, rtol=1e-6)


def test_plain_numbers_and_lists_are_taken_and_numpy_is_given_back():
    """In double precision, although JAX's own default here is single."""
    for got in (PREDICTION.log_prob(Y.tolist()), PREDICTION.log_prob(y=Y), PREDICTION.cdf(0.3), PREDICTION.crps(Y)):
        assert isinstance(got, np.ndarray)
        assert got.dtype == np.float64
        assert got.shape == (3,)


def test_a_gap_has_no_score():
    assert np.isnan(PREDICTION.log_prob(np.array([0.1, np.nan, 50.0]))).tolist() == [False, True, False]


def test_it_works_inside_a_trace():
    with jax.enable_x64(True):
        total = jax.jit(lambda p, y: jnp.sum(p.log_prob(y)))(PREDICTION, Y)
        gradient = jax.grad(lambda y: jnp.sum(PREDICTION.log_prob(y)))(jnp.asarray(Y))
        low, _ = jax.jit(lambda p, level: p.interval(level))(PREDICTION, 0.9)
    np.testing.assert_allclose(total, LAW.logpdf(Y).sum(), rtol=1e-12)
    np.testing.assert_allclose(gradient, -(Y - MEAN) / VARIANCE, rtol=1e-10)
    np.testing.assert_allclose(low, LAW.ppf(0.05), rtol=1e-10)


def test_several_outputs_keep_their_shape():
    ones: Any = np.ones((4, 2))
    pair = Gaussian(0.0 * ones, ones, ones)
    low, high = pair.interval()
    assert low.shape == high.shape == pair.log_prob(np.ones((4, 2))).shape == (4, 2)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, np.nan])
def test_refuses_a_level_that_is_no_probability(level):
    with pytest.raises(ValueError, match=r"level must lie strictly between 0 and 1; got"):
        PREDICTION.interval(level)
