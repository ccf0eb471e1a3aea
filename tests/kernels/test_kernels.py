"""Kernels against their formulas, pair by pair, and the places where distances go wrong."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from driftgp import AGP, kernels
from driftgp.kernels.check import Numerical, check_kernel
from tests import dense_reference as dense

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
STATIONARY = [kernels.SE, kernels.Matern12, kernels.Matern32, kernels.Matern52, kernels.RationalQuadratic]


@pytest.mark.parametrize("name", PAIRS)
def test_gram_and_diagonal_are_the_formula(name):
    kernel, formula, width = PAIRS[name]
    X, Z = RNG.normal(size=(5, width)), RNG.normal(size=(4, width))
    np.testing.assert_allclose(kernel(X, Z), dense.gram(formula, X, Z), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(kernel(X), dense.diagonal(formula, X), rtol=1e-13)
    np.testing.assert_allclose(np.diagonal(kernel(X, X)), kernel(X), rtol=1e-7)


def test_sums_and_products_are_those_of_the_gram_matrices():
    X, Z = RNG.normal(size=(5, 2)), RNG.normal(size=(3, 2))
    a, b, c = kernels.SE(0.7, 1.9), kernels.Linear(0.3), kernels.Constant(0.4)
    k = (a + b) * c
    np.testing.assert_allclose(k(X, Z), (a(X, Z) + b(X, Z)) * 0.4, rtol=1e-14)
    np.testing.assert_allclose(k(X), (a(X) + b(X)) * 0.4, rtol=1e-14)


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
    np.testing.assert_allclose(np.diagonal(kernel(X + shift, X + shift)), kernel(X), rtol=1e-7)


@pytest.mark.parametrize("kernel", [kernels.SE(1.3, 1.9), kernels.Matern32(ARD5, 1.9)])
def test_timestamps_keep_their_gradient(kernel):
    X, Z = 2.0 * RNG.uniform(size=(6, 5)), 2.0 * RNG.uniform(size=(4, 5))
    X, Z = (X + 1.7e9) - 1.7e9, (Z + 1.7e9) - 1.7e9
    A = RNG.normal(size=(6, 4))
    np.testing.assert_allclose(
        kernel.pull_inputs(A, X + 1.7e9, Z + 1.7e9), kernel.pull_inputs(A, X, Z), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(kernel.pull(A, X + 1.7e9, Z + 1.7e9), kernel.pull(A, X, Z), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("width", [1, 5])
def test_squared_distances_are_never_negative(width):
    X = 1e3 + 1e-9 * RNG.uniform(size=(20, width))
    assert np.all(np.asarray(kernels.squared_distance(X, X)) >= 0.0)


# ---- derivatives -------------------------------------------------------------------------------------------


NESTED = {
    "a sum": (kernels.Linear(ARD3) + kernels.SE(0.7, 1.9), 3),
    "a product": (kernels.SE(ARD3, 0.6) * kernels.Periodic(1.3, 0.7, 1.9), 3),
    "of sums": ((kernels.Linear(0.3) + kernels.SE(0.7)) * (kernels.Constant(0.4) + kernels.Matern32(ARD3)), 3),
}
DERIVATIVES = {name: (kernel, width) for name, (kernel, _, width) in PAIRS.items()} | NESTED


@pytest.mark.parametrize("name", DERIVATIVES)
def test_the_derivative_is_that_of_finite_differences(name):
    kernel, width = DERIVATIVES[name]
    check_kernel(kernel, RNG.normal(size=(5, width)), RNG.normal(size=(4, width)), tolerance=1e-6)


@pytest.mark.parametrize("name", DERIVATIVES)
def test_parameters_go_through_a_vector_and_back(name):
    kernel, width = DERIVATIVES[name]
    X = RNG.normal(size=(5, width))
    theta = kernel.theta
    assert kernel.size == theta.size
    np.testing.assert_array_equal(kernel.at(theta)(X, X), kernel(X, X))
    np.testing.assert_array_equal(kernel.at(1.3 * theta).theta, 1.3 * theta)
    assert kernel.at(theta) == kernel
    assert kernel.at(1.3 * theta) != kernel


@pytest.mark.parametrize("family", STATIONARY)
@pytest.mark.parametrize("width", [1, 5])
def test_the_gradient_at_coincident_points_is_finite(family, width):
    """The square root of a distance has no derivative at 0, and an inducing point sits on a sample."""
    X = RNG.normal(size=(4, width))
    Z = np.concatenate([X[:2], X[:1] + 1e-9, X[:1] + 1e-170])
    A, kernel = np.cos(np.arange(16.0).reshape(4, 4)), family(0.7, 1.9)
    assert np.isfinite(kernel.pull(A, X, Z)).all()
    assert np.isfinite(kernel.pull_inputs(A, X, Z)).all()


@pytest.mark.parametrize("lengthscale", [0.9, [0.9]])
@pytest.mark.parametrize("family", STATIONARY)
def test_a_lengthscale_of_one_entry_is_a_number(family, lengthscale):
    """Also for one input, where a list of one lengthscale is ARD."""
    X = RNG.normal(size=(4, 1))
    kernel = family(lengthscale, 1.9)
    np.testing.assert_allclose(kernel(X, X), family(0.9, 1.9)(X, X), rtol=1e-14)
    np.testing.assert_allclose(np.diagonal(kernel(X, X)), 1.9, rtol=1e-14)
    check_kernel(kernel, X, RNG.normal(size=(3, 1)))


class Wrong(kernels.SE):
    """A kernel whose author forgot a factor."""

    def pull(self, A, X, Z):
        return 0.5 * super().pull(A, X, Z)


class Short(kernels.SE):
    """A kernel whose author forgot a parameter."""

    def pull(self, A, X, Z):
        return super().pull(A, X, Z)[:1]


def test_a_wrong_derivative_is_found_by_the_check():
    X = RNG.normal(size=(4, 2))
    with pytest.raises(ValueError, match=r"pull is wrong at \(0,\): it gives .*, and differences"):
        check_kernel(Wrong(0.7), X, X)
    with pytest.raises(ValueError, match=r"pull must return shape \(2,\); got shape \(1,\)"):
        check_kernel(Short(0.7), X, X)


@dataclass(frozen=True, eq=False, repr=False)
class Formula(kernels.Kernel):
    """A kernel whose author wrote no derivative."""

    width: Any = 1.0

    def gram(self, X, Z):
        return 1.0 / (1.0 + kernels.squared_distance(X, Z) / self.width**2)

    def diagonal(self, X):
        return np.ones(len(X))


def test_a_formula_alone_works_by_differences_and_says_so_without():
    X = RNG.normal(size=(30, 1))
    with pytest.raises(NotImplementedError, match=r"Formula has no pull: write it, or use .*Numerical\(Formula"):
        Formula().pull(np.ones((30, 30)), X, X)
    check_kernel(Numerical(Formula(0.7)), X[:4], X[4:9])
    model = AGP(Numerical(Formula()), inducing=4, window=20, warmup_iterations=5)
    state = model.update(model.init(X[:20], X[:20, 0]), X[20:], X[20:, 0])
    assert state.skipped == 0
    assert not np.allclose(state.theta, 1.0)


def test_differences_stand_in_for_a_derivative():
    X, Z, A = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=(4, 5))
    kernel = kernels.Linear(ARD3) + kernels.Matern52(0.7, 1.9)
    for method in ("pull", "pull_inputs"):
        np.testing.assert_allclose(
            getattr(Numerical(kernel), method)(A, X, Z), getattr(kernel, method)(A, X, Z), rtol=1e-7, atol=1e-8
        )


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
