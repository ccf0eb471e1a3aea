"""A mixture of normal distributions against SciPy, and its quantiles against the function they invert."""

from typing import Any

import jax
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from driftgp.mixture import Mixture
from driftgp.prediction import Gaussian

WEIGHTS = np.array([[0.2, 0.999], [0.5, 0.0005], [0.3, 0.0005]])  # members × points
MEANS = np.array([[0.0, 1.0], [2.0, -30.0], [-1.0, 40.0]])
STDS = np.array([[1.0, 0.1], [0.2, 2.0], [3.0, 0.01]])
NOISES = 0.5 * STDS**2
Y: Any = np.array([0.7, 1.05])


def tuples(values: np.ndarray) -> Any:
    return tuple(values)


MIXTURE = Mixture(tuples(WEIGHTS), tuples(MEANS), tuples(STDS**2), tuples(NOISES))


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
    one: Any = np.ones(2)
    lone = Mixture((one,), (MEANS[0],), (STDS[0] ** 2,), (NOISES[0],))  # type: ignore[arg-type]
    member = Gaussian(MEANS[0], STDS[0] ** 2, NOISES[0])  # type: ignore[arg-type]
    for score in ("log_prob", "cdf", "crps", "to_normal"):
        np.testing.assert_allclose(getattr(lone, score)(Y), getattr(member, score)(Y), rtol=1e-9)
    np.testing.assert_allclose(lone.interval(0.99), member.interval(0.99), rtol=1e-9)


def test_the_order_of_members_means_nothing():
    order = [2, 0, 1]
    other = Mixture(tuples(WEIGHTS[order]), tuples(MEANS[order]), tuples(STDS[order] ** 2), tuples(NOISES[order]))
    np.testing.assert_allclose(other.quantile(0.3), MIXTURE.quantile(0.3), rtol=1e-9)
    np.testing.assert_allclose(other.crps(Y), MIXTURE.crps(Y), rtol=1e-9)


def test_other_units_are_other_units():
    scaled = MIXTURE.scaled(10.0, -3.0)
    np.testing.assert_allclose(scaled.mean, 10.0 * MIXTURE.mean - 3.0, rtol=1e-12)
    np.testing.assert_allclose(scaled.quantile(0.9), 10.0 * MIXTURE.quantile(0.9) - 3.0, rtol=1e-9)
    np.testing.assert_allclose(scaled.crps(10.0 * Y - 3.0), 10.0 * MIXTURE.crps(Y), rtol=1e-9)


def test_a_row_can_be_taken_out():
    row = jax.tree.map(lambda leaf: leaf[1:], MIXTURE)
    np.testing.assert_allclose(row.quantile(0.5), MIXTURE.quantile(0.5)[1:], rtol=1e-9)
