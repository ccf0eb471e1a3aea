"""The stretched distribution: its intervals reach as far as they were told, and it is one distribution."""

from typing import Any

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtri

from driftgp.predictions import Gaussian, Mixture, Recalibrated, nominal_reach, quadrature, recalibrated

LEVELS = (0.5, 0.8, 0.95, 0.99)
NORMAL = Gaussian(np.array([1.0]), np.array([4.0]), np.array([2.0]))
REACH = np.array([[0.5], [2.0], [2.5], [6.0]])
LOWER = np.array([[0.9], [1.0], [1.5], [2.0]])


@pytest.fixture(scope="module", params=[None, LOWER], ids=["symmetric", "one-sided"])
def stretched(request) -> Any:
    return Recalibrated(NORMAL, REACH, request.param, LEVELS)


def test_intervals_reach_as_far_as_they_were_told(stretched):
    below = REACH if stretched.lower is None else LOWER
    for i, level in enumerate(LEVELS):
        np.testing.assert_allclose(stretched.interval(level), [1.0 - 2.0 * below[i], 1.0 + 2.0 * REACH[i]], rtol=1e-9)


def test_beyond_the_levels_the_tail_is_longer_than_the_normal_one(stretched):
    t, z = nominal_reach(0.99), nominal_reach(1.0 - 1e-9)
    np.testing.assert_allclose(stretched.from_normal(z), 1.0 + 2.0 * REACH[-1] * np.exp(z / t - 1.0), rtol=1e-12)
    edge = stretched.from_normal(t + np.array([-1e-6, 0.0, 1e-6]))
    slopes = np.diff(edge) / 1e-6
    assert slopes[1] > 0.0
    np.testing.assert_allclose(slopes[1], 2.0 * REACH[-1] / t, rtol=1e-4)


def test_with_levels_far_below_one_the_ratio_stays_until_the_tail_begins():
    half = Recalibrated(NORMAL, np.array([[1.0]]), None, (0.5,))
    z = 2.5
    np.testing.assert_allclose(half.from_normal(z), 1.0 + 2.0 * z / nominal_reach(0.5), rtol=1e-12)


def test_a_target_far_out_is_a_surprise_of_bounded_size(stretched):
    far = stretched.log_prob([1.0 + 2.0 * 60.0])[0]
    assert -100.0 < far < NORMAL.log_prob([3.0])[0]
    assert np.isfinite(stretched.log_prob([1e100])).all()
    assert np.isfinite(stretched.from_normal(1e6)).all()


def test_density_and_moments_are_those_of_one_distribution(stretched):
    grid = np.linspace(-60.0, 120.0, 800_001)
    p = np.exp(stretched.log_prob(grid))
    mass = integrate.trapezoid(p, grid)
    mean = integrate.trapezoid(p * grid, grid)
    np.testing.assert_allclose(mass, 1.0, rtol=1e-4)
    np.testing.assert_allclose(stretched.mean, mean, rtol=1e-3)
    np.testing.assert_allclose(stretched.variance, integrate.trapezoid(p * (grid - mean) ** 2, grid), rtol=1e-3)
    np.testing.assert_allclose(stretched.noise, 0.5 * stretched.variance, rtol=1e-12)


def test_crps_is_its_integral(stretched):
    grid = np.linspace(-60.0, 80.0, 200_001)
    for y in (-2.0, 1.3, 9.0):
        square = (stretched.cdf(grid) - (grid >= y)) ** 2
        np.testing.assert_allclose(stretched.crps(y), integrate.trapezoid(square, grid), rtol=5e-3)


def test_the_quantile_undoes_the_cdf(stretched):
    for y in (-4.0, 0.9, 1.1, 3.0, 15.0):
        np.testing.assert_allclose(stretched.quantile(stretched.cdf(y)), y, rtol=1e-6)


def test_nominal_reaches_change_nothing_but_the_tails():
    means, ones = np.array([[-1.0, 3.0], [2.0, 3.5]]), np.ones((2, 2))
    mixture = Mixture(0.5 * ones, means, ones, ones)
    nominal = np.broadcast_to(nominal_reach(LEVELS)[:, None], (4, 2))
    y = np.array([0.3, 5.0])
    for lower in (None, nominal):
        same = Recalibrated(mixture, nominal, lower, LEVELS)
        for score in ("log_prob", "cdf", "to_normal"):
            np.testing.assert_allclose(getattr(same, score)(y), getattr(mixture, score)(y), rtol=1e-12)
        np.testing.assert_allclose(same.crps(y), mixture.crps(y), rtol=1e-3)
        np.testing.assert_allclose(same.mean, mixture.mean, rtol=1e-12)
        np.testing.assert_allclose(same.variance, mixture.variance, rtol=1e-2)


def test_reaches_may_be_the_same_at_all_rows():
    pair = Gaussian(np.zeros((3, 2)), np.ones((3, 2)), np.ones((3, 2)))
    alike = Recalibrated(pair, REACH[:, None], LOWER[:, None], LEVELS)
    one: Any = alike.rows([1])
    assert one.upper.shape == one.lower.shape == (4, 1, 2)
    np.testing.assert_allclose(alike.output(1).interval(0.95)[0], -1.5)


def test_moments_are_integrals_over_the_normal_law():
    u = ndtri((np.arange(1_000_000) + 0.5) / 1_000_000)
    z, reach = np.append(0.0, nominal_reach(LEVELS)), np.stack([LOWER, REACH], 1)  # L×S×1
    sides = [np.append(0.0, side[:, 0]) for side in (LOWER, REACH)]
    tail = np.exp(np.maximum(np.abs(u) / z[-1] - 1.0, 0.0))
    lines = [np.interp(np.abs(u), z, c) * tail for c in sides]
    h = np.where(u < 0.0, -lines[0], lines[1])
    first, second = recalibrated.moments(reach, LEVELS)
    assert first.shape == second.shape == (1,)
    np.testing.assert_allclose([first[0], second[0]], [h.mean(), (h**2).mean()], rtol=1e-4)
    first, second = recalibrated.moments(reach[:, 1:], LEVELS)
    np.testing.assert_allclose([first[0], second[0]], [0.0, (lines[1] ** 2).mean()], rtol=1e-4)


@pytest.mark.parametrize("targets", [(50,), (7, 50), (3, 2, 50), (400, 1)])
def test_scores_of_many_rows_do_not_depend_on_how_many_there_are(monkeypatch, targets):
    """They are computed in pieces that bound the memory."""
    rng, sizes, N = np.random.default_rng(2), [], targets[-1]
    many = Recalibrated(Gaussian(rng.normal(size=N), np.ones(N), np.ones(N)), REACH, LOWER, LEVELS)
    y = rng.normal(size=targets)
    whole = many.crps(y)
    assert whole.shape == targets
    found = Recalibrated.from_normal

    def from_normal(law, z):
        sizes.append(z.size)
        return found(law, z)

    monkeypatch.setattr(Recalibrated, "from_normal", from_normal)
    for at_once in (1, 700, 5000):
        sizes.clear()
        monkeypatch.setattr(quadrature, "_AT_ONCE", at_once)
        np.testing.assert_allclose(many.crps(y), whole, rtol=1e-12)
        assert max(sizes) <= max(at_once, 96)
