"""Kernels against their formulas, pair by pair, and the places where distances go wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tinygp

from driftgp import kernels
from tests import dense_reference as dense

pytestmark = pytest.mark.usefixtures("x64")

RNG = np.random.default_rng(11)
ARD3, ARD5 = np.array([0.4, 1.3, 2.2]), np.array([0.4, 1.3, 2.2, 0.9, 3.0])

# No parameter is 1, where mistakes cancel. Three inputs take the sum of differences, five the matrix product.
PAIRS = {
    "SE": (kernels.SE(0.7, 1.9), dense.se(0.7, 1.9), 3),
    "SE, ARD": (kernels.SE(ARD3, 0.6), dense.se(ARD3, 0.6), 3),
    "SE, many inputs": (kernels.SE(1.7, 1.9), dense.se(1.7, 1.9), 5),
    "SE, ARD, many inputs": (kernels.SE(ARD5, 0.6), dense.se(ARD5, 0.6), 5),
    "Matern12": (kernels.Matern12(0.7, 1.9), dense.matern12(0.7, 1.9), 3),
    "Matern32": (kernels.Matern32(ARD3, 1.9), dense.matern32(ARD3, 1.9), 3),
    "Matern32, many inputs": (kernels.Matern32(ARD5, 1.9), dense.matern32(ARD5, 1.9), 5),
    "Matern52": (kernels.Matern52(0.7, 1.9), dense.matern52(0.7, 1.9), 3),
    "RationalQuadratic": (kernels.RationalQuadratic(0.7, 1.9, 2.5), dense.rational_quadratic(0.7, 1.9, 2.5), 3),
    "Periodic": (kernels.Periodic(1.3, 0.7, 1.9), dense.periodic(1.3, 0.7, 1.9), 3),
    "Periodic, ARD": (kernels.Periodic(1.3 * ARD3, ARD3, 1.9), dense.periodic(1.3 * ARD3, ARD3, 1.9), 3),
    "Linear": (kernels.Linear(0.3), dense.linear(0.3), 3),
    "Linear, ARD": (kernels.Linear(ARD5), dense.linear(ARD5), 5),
    "Constant": (kernels.Constant(0.3), dense.constant(0.3), 3),
}
EUCLIDEAN = tinygp.kernels.distance.L2Distance()
STATIONARY = [kernels.SE, kernels.Matern12, kernels.Matern32, kernels.Matern52, kernels.RationalQuadratic]


@pytest.mark.parametrize("name", PAIRS)
def test_gram_and_diagonal_are_the_formula(name):
    kernel, formula, width = PAIRS[name]
    X, Z = RNG.normal(size=(5, width)), RNG.normal(size=(4, width))
    np.testing.assert_allclose(kernel(X, Z), dense.gram(formula, X, Z), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(kernel(X), dense.diagonal(formula, X), rtol=1e-13)
    np.testing.assert_allclose(jnp.diagonal(kernel(X, X)), kernel(X), rtol=1e-7)


def test_sums_and_products_are_those_of_the_gram_matrices():
    X, Z = RNG.normal(size=(5, 2)), RNG.normal(size=(3, 2))
    a, b, c = kernels.SE(0.7, 1.9), kernels.Linear(0.3), kernels.Constant(0.4)
    k = (a + b) * c
    np.testing.assert_allclose(k(X, Z), (a(X, Z) + b(X, Z)) * 0.4, rtol=1e-14)
    np.testing.assert_allclose(k(X), (a(X) + b(X)) * 0.4, rtol=1e-14)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (kernels.SE(0.7, 1.9), 1.9 * tinygp.kernels.ExpSquared(0.7)),
        (kernels.Matern32(0.7, 1.9), 1.9 * tinygp.kernels.Matern32(0.7, EUCLIDEAN)),
        (kernels.RationalQuadratic(0.7, 1.9, 2.5), 1.9 * tinygp.kernels.RationalQuadratic(0.7, EUCLIDEAN, 2.5)),
        (kernels.Constant(0.3), tinygp.kernels.Constant(0.3)),
    ],
)
def test_tinygp_answers_the_same_two_calls_with_the_same_numbers(ours, theirs):
    X, Z = RNG.normal(size=(5, 2)), RNG.normal(size=(3, 2))
    np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-13)
    np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-13)


def test_a_tinygp_kernel_may_stand_in_a_sum_and_a_product():
    X, Z = RNG.normal(size=(5, 2)), RNG.normal(size=(3, 2))
    theirs = tinygp.kernels.ExpSquared(0.7)
    k = kernels.Constant(0.3) * theirs + theirs
    np.testing.assert_allclose(k(X, Z), 1.3 * theirs(X, Z), rtol=1e-13)
    np.testing.assert_allclose(k(X), 1.3 * theirs(X), rtol=1e-13)


# ---- far from the origin -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", STATIONARY)
@pytest.mark.parametrize("width", [1, 5])
def test_timestamps_do_not_lose_their_digits(family, width):
    """Seconds since 1970 with a lengthscale of an hour: moving the origin changes nothing."""
    X, Z = 7200.0 * RNG.uniform(size=(6, width)), 7200.0 * RNG.uniform(size=(4, width))
    kernel = family(3600.0, 1.9)
    shift = 1.7e9
    X, Z = (X + shift) - shift, (Z + shift) - shift  # what is left of them after the shift
    np.testing.assert_allclose(kernel(X + shift, Z + shift), kernel(X, Z), rtol=1e-9)
    np.testing.assert_allclose(jnp.diagonal(kernel(X + shift, X + shift)), kernel(X), rtol=1e-7)


@pytest.mark.parametrize("family", [kernels.SE, kernels.Matern32])
def test_timestamps_keep_their_gradient(family):
    X, Z = 2.0 * RNG.uniform(size=(6, 5)), 2.0 * RNG.uniform(size=(4, 5))
    X, Z = (X + 1.7e9) - 1.7e9, (Z + 1.7e9) - 1.7e9
    gradient = jax.grad(lambda X, Z: jnp.sum(family(1.3, 1.9)(X, Z)))
    np.testing.assert_allclose(gradient(X + 1.7e9, Z + 1.7e9), gradient(X, Z), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("width", [1, 5])
def test_squared_distances_are_never_negative(width):
    X = 1e3 + 1e-9 * RNG.uniform(size=(20, width))
    assert np.all(np.asarray(kernels.squared_distance(X, X)) >= 0.0)


# ---- coincident points -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", STATIONARY)
@pytest.mark.parametrize("width", [1, 5])
def test_the_gradient_at_coincident_points_is_finite(family, width):
    """The square root of a distance has no derivative at 0, and an inducing point sits on a sample."""
    X = RNG.normal(size=(4, width))
    Z = np.concatenate([X[:2], X[:1] + 1e-9, X[:1] + 1e-170])

    def total(kernel, X, Z):
        return jnp.sum(jnp.cos(jnp.arange(16.0).reshape(4, 4)) * kernel(X, Z))

    gradients = jax.grad(total, argnums=(0, 1, 2))(family(0.7, 1.9), X, Z)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize("width", [1, 5])
def test_the_gradient_of_a_gram_matrix_with_itself_is_that_of_finite_differences(width):
    X = RNG.normal(size=(4, width))
    weights = RNG.normal(size=(4, 4))

    def total(X):
        return jnp.sum(weights * kernels.Matern32(0.9, 1.9)(X, X))

    gradient = jax.grad(total)(X)
    step = 1e-6
    for i, d in np.ndindex(X.shape):
        move = np.zeros_like(X)
        move[i, d] = step
        difference = (total(X + move) - total(X - move)) / (2 * step)
        assert abs(gradient[i, d] - difference) <= 1e-6 * (1.0 + abs(difference))


# ---- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "wide", [[1.0]], [1.0, -2.0], None, 1j])
def test_refuses_a_parameter_that_is_not_positive(value):
    with pytest.raises(ValueError, match=r"lengthscale must be a positive number .* got"):
        kernels.SE(lengthscale=value)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (kernels.SE(ARD3), "lengthscale"),
        (kernels.Periodic(period=ARD3), "period"),
        (kernels.Periodic(lengthscale=ARD3), "lengthscale"),
        (kernels.Linear(ARD3), "variance"),
    ],
)
def test_refuses_a_parameter_of_another_width_than_the_inputs(kernel, name):
    with pytest.raises(ValueError, match=f"{name} must have one entry or one for each of the 2 inputs; got 3"):
        kernel(np.zeros((4, 2)), np.zeros((4, 2)))


def test_integers_are_taken_as_numbers():
    X = RNG.normal(size=(3, 1))
    np.testing.assert_array_equal(kernels.SE(2, 3)(X, X), kernels.SE(2.0, 3.0)(X, X))
