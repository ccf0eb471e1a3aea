"""Precision: float64 inside whatever JAX's default is, float32 for those who ask, and nobody else's changed."""

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftgp import evaluate
from driftgp.agp import AGP, FastAGP
from driftgp.kernels import SE
from driftgp.online import Online

RNG = np.random.default_rng(12)
X = RNG.uniform(size=(24, 2))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=24)
SMALL: dict[str, Any] = {"inducing": 4, "window": 12, "noise": 0.1, "warmup_iterations": 3}


def floats(tree):
    return {np.asarray(leaf).dtype.name for leaf in jax.tree.leaves(tree) if np.asarray(leaf).dtype.kind == "f"}


@pytest.fixture(scope="module")
def model():
    return AGP(SE(0.5), **SMALL)


def test_the_import_changes_nobody_s_precision():
    """Neither JAX's default nor that of arrays made afterwards; in a process of its own, since others import too."""
    code = (
        "import jax, jax.numpy as jnp\n"
        "import driftgp\n"
        "assert not jax.config.jax_enable_x64\n"
        "assert jnp.ones(2).dtype == jnp.float32\n"
    )
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_direct_calls_compute_in_double_and_leave_the_default_alone(model):
    state = model.init(X[:12], Y[:12])
    state = model.update(state, X[12], Y[12])
    run = evaluate.prequential(model, state, X[13:], Y[13:])
    online = Online(model, state)
    online.update(X[12], Y[12])
    predictions = model.predict(state, X[:2]), run.prediction, online.predict(X[0])
    assert floats((state, run.state, online.state, predictions)) == {"float64"}
    assert floats([p.interval() for p in predictions]) == {"float64"}
    assert jax.config.jax_enable_x64 is False
    assert jnp.ones(2).dtype == jnp.float32


@pytest.mark.parametrize("dtype", [np.float16, np.int64, np.int8, bool])
def test_numbers_of_other_kinds_become_double(model, dtype):
    state = model.init((10.0 * X[:12]).astype(dtype), (10.0 * Y[:12]).astype(dtype))
    assert floats(state) == {"float64"}


def test_lists_and_jax_arrays_are_inputs_like_others(model):
    state = model.init(X[:12], Y[:12])
    expected = model.predict(state, X[:2]).mean
    np.testing.assert_array_equal(model.predict(state, X[:2].tolist()).mean, expected)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(model.predict(state, jnp.asarray(X[:2])).mean, expected)


def test_the_inputs_decide_and_the_targets_follow(model):
    assert floats(model.init(X[:12].astype(np.float32), Y[:12])) == {"float32"}
    assert floats(model.init(X[:12], Y[:12].astype(np.float32))) == {"float64"}


def test_single_precision_is_single_in_the_loop_and_online(model):
    state = model.init(X[:12].astype(np.float32), Y[:12].astype(np.float32))
    run = evaluate.prequential(model, state, X[12:], Y[12:])
    online = Online(model, state)
    online.update(X[12], Y[12])
    assert floats((state, run.state, run.prediction, online.state, online.predict(X[0]))) == {"float32"}


def test_single_precision_predicts_like_double():
    """With the same jitter and without gradient steps, whose sign can turn on a rounding."""
    model = FastAGP(kernel=SE(0.5), **SMALL | {"warmup_iterations": 0}, jitter=1e-3)
    means = []
    for dtype in (np.float32, np.float64):
        state = model.init(X[:12].astype(dtype), Y[:12].astype(dtype))
        means.append(evaluate.prequential(model, state, X[12:], Y[12:]).prediction.mean)
    np.testing.assert_allclose(*means, atol=2e-3)


def test_inside_a_user_s_own_float32_program_it_is_float32(model):
    """Traced without x64, the whole life of a model runs in the user's precision, settings and all."""

    @jax.jit
    def life(X, Y):
        state = model.init(X[:12], Y[:12])
        state = model.update(state, X[12], Y[12])
        return state, model.predict(state, X[:2])

    assert floats(life(X, Y)) == {"float32"}


def test_inside_a_user_s_own_float64_program_it_is_the_direct_call(model):
    state = model.init(X[:12], Y[:12])
    with jax.enable_x64(True):
        traced = jax.jit(lambda state: model.update(state, X[12], Y[12]))(state)
    for one, other in zip(jax.tree.leaves(traced), jax.tree.leaves(model.update(state, X[12], Y[12])), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
