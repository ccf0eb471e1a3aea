"""A mixture of normal distributions against SciPy, and its quantiles against the function they invert."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from driftgp.predictions import Gaussian, Mixture

WEIGHTS = np.array([[0.2, 0.999], [0.5, 0.0005], [0.3, 0.0005]])  # members × points
MEANS = np.array([[0.0, 1.0], [2.0, -30.0], [-1.0, 40.0]])
STDS = np.array([[1.0, 0.1], [0.2, 2.0], [3.0, 0.01]])
NOISES = 0.5 * STDS**2
Y = np.array([0.7, 1.05])
MIXTURE = Mixture(WEIGHTS, MEANS, STDS**2, NOISES)


def cdf(y: float, point: int) -> float:
    return float(np.sum(WEIGHTS[:, point] * stats.norm.cdf(y, MEANS[:, point], STDS[:, point])))


def test_moments_are_those_of_samples_drawn_in_two_stages():
    mean = np.sum(WEIGHTS * MEANS, 0)
    np.testing.assert_allclose(MIXTURE.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(MIXTURE.variance, np.sum(WEIGHTS * (STDS**2 + MEANS**2), 0) - mean**2, rtol=1e-10)
    assert np.all(MIXTURE.noise <= MIXTURE.variance)


def test_density_and_distribution_are_weighted_sums():
    density = np.sum(WEIGHTS * stats.norm.pdf(Y, MEANS, STDS), 0)
    np.testing.assert_allclose(MIXTURE.log_prob(Y), np.log(density), rtol=1e-12)
    np.testing.assert_allclose(MIXTURE.cdf(Y), [cdf(Y[0], 0), cdf(Y[1], 1)], rtol=1e-12)


@pytest.mark.parametrize("q", [1e-6, 0.0004, 0.025, 0.3, 0.5, 0.9, 0.9997])
def test_a_quantile_is_the_root_that_bisection_finds(q):
    roots = [optimize.brentq(lambda y, point=point: cdf(y, point) - q, -200.0, 200.0, xtol=1e-13) for point in (0, 1)]
    np.testing.assert_allclose(MIXTURE.quantile(q), roots, rtol=1e-8, atol=1e-9)


def test_normal_scores_keep_their_digits_far_out():
    """Where cdf(y) is 0 or 1 to the last digit, the score still tells targets apart."""
    far = MIXTURE.to_normal(np.array([40.0, 80.0]))
    assert np.all(np.isfinite(far))
    np.testing.assert_allclose(MIXTURE.from_normal(far), [40.0, 80.0], rtol=1e-6)


def test_crps_is_its_integral():
    below, _ = integrate.quad(lambda z: cdf(z, 0) ** 2, -40.0, Y[0], limit=200)
    above, _ = integrate.quad(lambda z: (1.0 - cdf(z, 0)) ** 2, Y[0], 40.0, limit=200)
    np.testing.assert_allclose(MIXTURE.crps(Y)[0], below + above, rtol=1e-5)


def test_one_member_is_that_member():
    lone = Mixture(np.ones((1, 2)), MEANS[:1], STDS[:1] ** 2, NOISES[:1])
    member = Gaussian(MEANS[0], STDS[0] ** 2, NOISES[0])
    for score in ("log_prob", "cdf", "crps", "to_normal"):
        np.testing.assert_allclose(getattr(lone, score)(Y), getattr(member, score)(Y), rtol=1e-9)
    np.testing.assert_allclose(lone.interval(0.99), member.interval(0.99), rtol=1e-9)


def test_the_order_of_members_means_nothing():
    order = [2, 0, 1]
    other = Mixture(WEIGHTS[order], MEANS[order], STDS[order] ** 2, NOISES[order])
    np.testing.assert_allclose(other.quantile(0.3), MIXTURE.quantile(0.3), rtol=1e-9)
    np.testing.assert_allclose(other.crps(Y), MIXTURE.crps(Y), rtol=1e-9)


def test_a_member_without_weight_says_nothing():
    """Not even where it alone has any density: its logarithm must not win the sum."""
    weights = np.array([[1.0], [0.0]])
    mixture = Mixture(weights, np.array([[0.0], [50.0]]), np.ones((2, 1)), np.ones((2, 1)))
    alone = Gaussian(np.zeros(1), np.ones(1), np.ones(1))
    for score in ("log_prob", "cdf", "crps", "to_normal"):
        np.testing.assert_allclose(getattr(mixture, score)(50.0), getattr(alone, score)(50.0), rtol=1e-12)
    np.testing.assert_allclose(mixture.from_normal(1.5), 1.5, rtol=1e-12)


def test_quantiles_between_members_far_apart_settle():
    """Between them there is no density to speak of, so that Newton's steps overflow."""
    means, variances = np.array([[-1e6], [1e6]]), np.array([[1.0], [1e-12]])
    mixture = Mixture(np.full((2, 1), 0.5), means, variances, variances)
    for q, low, high in ((0.4999, -1e6 - 10.0, -1e6 + 10.0), (0.5001, 1e6 - 1.0, 1e6 + 1.0), (0.5, -1e6, 1e6)):
        assert low <= mixture.quantile(q)[0] <= high


@pytest.mark.parametrize("seed", range(5))
def test_scores_and_values_invert_each_other_for_any_mixture(seed):
    rng = np.random.default_rng(seed)
    means, variances = rng.normal(size=(4, 200)) * 10.0**seed, np.exp(3.0 * rng.normal(size=(4, 200)))
    mixture = Mixture(rng.dirichlet(np.full(4, 0.3), size=200).T, means, variances, variances)
    z = 3.0 * rng.normal(size=200)
    values = mixture.from_normal(z)
    below, above = (mixture.to_normal(values * (1.0 + sign * 1e-12) + sign * 1e-12) for sign in (-1.0, 1.0))
    assert np.all(np.minimum(below, above) <= z + 1e-9)
    assert np.all(np.maximum(below, above) >= z - 1e-9)
    assert np.all(np.diff(mixture.from_normal(np.linspace(-6.0, 6.0, 61)[:, None]), axis=0) > 0.0)
