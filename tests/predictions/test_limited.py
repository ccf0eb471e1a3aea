"""Tails of a mixture: as they are where members agree, and not decided by members that have lost their weight."""

import numpy as np
import pytest
from scipy import integrate

from driftgp.predictions import Gaussian, Limited, Mixture
from driftgp.predictions.limited import FROM, SLOPE

Z = np.linspace(-9.0, 9.0, 73)[:, None]


def mixture(share: float, std: float, mean: float = 0.0) -> Mixture:
    """One law of spread 1, and another one with this share, spread and mean."""
    variances = np.array([[1.0], [std**2]])
    return Mixture(np.array([[1.0 - share], [share]]), np.array([[0.0], [mean]]), variances, variances)


def test_a_member_without_weight_to_speak_of_decides_no_interval():
    law = Limited(mixture(1e-9, 1000.0))
    assert law.model.from_normal(7.0).item() > 500.0
    assert law.from_normal(7.0).item() < FROM + (7.0 - FROM) * SLOPE * 1.01


def test_a_normal_law_and_members_that_agree_stay_as_they_are():
    normal = Gaussian(np.array([1.0]), np.array([4.0]), np.array([1.0]))
    for held in (normal, mixture(0.4, 1.5)):
        np.testing.assert_array_equal(Limited(held).from_normal(Z), held.from_normal(Z))
        y = np.linspace(-12.0, 12.0, 49)[:, None]
        np.testing.assert_array_equal(Limited(held).to_normal(y), held.to_normal(y))
        np.testing.assert_array_equal(Limited(held).log_prob(y), held.log_prob(y))


@pytest.mark.parametrize(("share", "std", "mean"), [(1e-9, 1000.0, 0.0), (1e-3, 20.0, -50.0), (0.02, 9.0, 3.0)])
def test_scores_and_values_invert_each_other_and_values_rise(share, std, mean):
    law = Limited(mixture(share, std, mean))
    values = law.from_normal(Z)
    assert np.all(np.diff(values, axis=0) > 0.0)
    np.testing.assert_allclose(law.to_normal(values), Z, rtol=1e-8, atol=1e-8)
    near = np.abs(Z) <= FROM
    np.testing.assert_array_equal(values[near], law.model.from_normal(Z)[near])


@pytest.mark.parametrize(("share", "std", "mean"), [(1e-9, 1000.0, 0.0), (0.02, 9.0, 3.0)])
def test_the_density_is_that_of_one_distribution(share, std, mean):
    law = Limited(mixture(share, std, mean))
    mass, _ = integrate.quad(lambda y: np.exp(law.log_prob(y)).item(), -300.0, 300.0, limit=400, points=[-10.0, 10.0])
    np.testing.assert_allclose(mass, 1.0, rtol=1e-4)
