"""Kernels written down: each expression is the kernel it looks like, and nothing else gets through."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftgp.kernels import SE, Constant, Kernel, Linear, Matern32, Periodic
from driftgp.kernels.expressions import KERNELS, parse_kernel

X = np.linspace(-1.0, 2.0, 10).reshape(5, 2)
EXAMPLES = {
    "se": SE(lengthscale=2**0.5),
    "linear + se": Linear(0.5) + SE(2**0.5),
    "se(lengthscale=3) * periodic(period=24, lengthscale=2) + constant": SE(3.0) * Periodic(24.0, 2.0) + Constant(),
    "se(lengthscale=3) * (linear(variance=1) + constant(variance=2e-1))": SE(3.0) * (Linear(1.0) + Constant(0.2)),
    "constant+matern32( variance = .5 )*linear": Constant() + Matern32(2**0.5, 0.5) * Linear(0.5),
    "((SE))": SE(2**0.5),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_expression_is_the_kernel_it_looks_like(text):
    kernel = parse_kernel(text, inputs=2)
    np.testing.assert_allclose(kernel(X, X), EXAMPLES[text](X, X), rtol=1e-6)
    np.testing.assert_allclose(kernel(X), EXAMPLES[text](X), rtol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_of_the_table_can_be_made(name):
    assert isinstance(parse_kernel(name), KERNELS[name])


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("", "column 1", "expected one of se"),
        ("linear +", "column 9", "found the end"),
        ("linear se", "column 8", "expected '+', '*' or the end; found 'se'"),
        ("cosine", "column 1", "found 'cosine'"),
        ("se(width=2)", "column 4", "a parameter of se (lengthscale, variance)"),
        ("se(lengthscale=1, lengthscale=2)", "column 19", "each once"),
        ("se(lengthscale=-1)", "column 16", "a positive number"),
        ("se + linear(variance=0)", "column 6", "variance must be a positive number"),
        ("(se", "column 4", "expected ')'"),
        ("se; import os", "column 3", "';' means nothing here"),
        ("__import__('os')", "column 12", "means nothing here"),
    ],
)
def test_what_is_no_kernel_is_named_by_its_place(text, place, expected):
    with pytest.raises(ValueError, match="kernel") as refusal:
        parse_kernel(text)
    assert place in str(refusal.value)
    assert expected in str(refusal.value)


@pytest.mark.parametrize("text", ["(" * 60 + "se" + ")" * 60, "se" + " + se" * 400])
def test_an_expression_without_end_is_refused_before_the_stack_is(text):
    with pytest.raises(ValueError, match="kernel"):
        parse_kernel(text)


@given(
    st.text()
    | st.lists(st.sampled_from(["se", "linear", "+", "*", "(", ")", "=", ",", "2", "variance", " "])).map("".join)
)
def test_any_text_is_a_kernel_or_a_clean_error(text):
    with contextlib.suppress(ValueError):  # any other error is a fault of the parser
        assert isinstance(parse_kernel(text, inputs=3), Kernel)
