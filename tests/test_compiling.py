"""One kernel for a whole step: the same numbers as the libraries give, and no kernel where it would be slower."""

from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax

from driftgp import AGP, FastAGP, native
from driftgp.compiling import cholesky, compile_outer, in_one_piece, small, suits
from driftgp.model import Model
from driftgp.wrappers import Bank, Calibrated, Standardize, Within

pytestmark = pytest.mark.usefixtures("x64")


@pytest.fixture(scope="module")
def matrices() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(2, 6, 6))
    return A @ A.swapaxes(-1, -2) + np.eye(6), rng.normal(size=(2, 6, 3))


def test_factor_is_that_of_lapack(matrices: tuple[np.ndarray, np.ndarray]) -> None:
    K, _ = matrices
    np.testing.assert_allclose(cholesky(jnp.asarray(K)), np.linalg.cholesky(K), atol=1e-14)


@pytest.mark.parametrize("K", [np.diag([1.0, -1.0, 1.0]), np.zeros((3, 3)), np.full((3, 3), np.nan)])
def test_missing_factor_cannot_pass_for_one(K: np.ndarray) -> None:
    assert np.isnan(cholesky(jnp.asarray(K))[-1, -1])


def test_every_kind_of_triangular_system_is_solved(matrices: tuple[np.ndarray, np.ndarray]) -> None:
    A, B = matrices

    def solutions(A: Array, B: Array) -> list[Array]:
        return [
            lax.linalg.triangular_solve(
                A, B if left else B.mT, left_side=left, lower=lower, transpose_a=transposed, unit_diagonal=unit
            )
            for left, lower, transposed, unit in product([True, False], repeat=4)
        ]

    for expected, found in zip(
        solutions(jnp.asarray(A), jnp.asarray(B)), compile_outer(in_one_piece(solutions), whole=True)(A, B), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_loops_conditions_and_sums_keep_their_meaning() -> None:
    def mixed(x: Array) -> tuple[Array, ...]:
        total = lax.while_loop(lambda t: t < 10.0, lambda t: t + jnp.sum(x), 0.0)
        last, steps = lax.scan(lambda c, row: (c + row, c * row), total, x, reverse=True)
        chosen = lax.cond(last > 0, jnp.sin, jnp.cos, last)
        turns = jax.vmap(lambda x: lax.while_loop(lambda t: t < 9.0, lambda t: t * (x + 1.0), x))(x)
        return turns, total, last, steps, chosen, jnp.sum(x > 1.0), jnp.sum(x[:, None] * x, 0), jnp.linalg.norm(x)

    x = np.arange(1.0, 4.0)
    for expected, found in zip(mixed(jnp.asarray(x)), compile_outer(in_one_piece(mixed), whole=True)(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        assert found.dtype == expected.dtype


def _scattered(A: Array) -> Array:
    return A.at[jnp.arange(3)].add(1.0)


@pytest.mark.parametrize(
    "function", [lambda A: A @ A, jnp.linalg.cholesky, jnp.linalg.eigh, jnp.linalg.inv, jnp.sort, _scattered]
)
def test_large_products_and_library_calls_stay_with_the_library(function: object) -> None:
    assert not suits(jax.make_jaxpr(function)(jnp.eye(130)).jaxpr)  # type: ignore[arg-type]


def test_an_argument_without_a_use_does_not_stop_the_process() -> None:
    """XLA would: at what is passed and not read, read in vain inside a loop, or has no entries."""

    def steps(x: Array, rows: Array, nothing: Array) -> tuple[Array, ...]:
        def turn(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            total, kept = carry
            in_vain = rows[i] * jnp.zeros((0,)).sum()  # noqa: F841
            return total + 1.0, kept

        return *lax.fori_loop(0, 3, turn, (jnp.zeros(()), x)), nothing, jnp.where(True, x, rows[0])

    found = compile_outer(in_one_piece(steps), whole=True)(np.ones(4), np.ones((5, 4)), np.ones((3, 0)))
    assert [np.shape(value) for value in found] == [(), (4,), (3, 0), (4,)]
    assert float(found[0]) == 3.0
    assert compile_outer(in_one_piece(lambda: jnp.ones(3)), whole=True)().shape == (3,)


def test_a_stack_is_written_to_as_its_members_are() -> None:
    def written(A: Array, i: Array, values: Array) -> tuple[Array, ...]:
        rows = jax.vmap(lambda A, i, value: A.at[i].set(value))(A, i, values)
        columns = jax.vmap(lambda A, i, value: A.at[:, i + 1].set(value, mode="drop"))(A, i, values)
        return rows, columns, lax.cummax(A, axis=1, reverse=True), jax.scipy.special.erfc(A)

    A, i, values = jnp.arange(18.0).reshape(2, 3, 3) % 7, jnp.array([2, 0]), jnp.array([[9.0, 8.0, 7.0]] * 2)
    assert suits(jax.make_jaxpr(written)(A, i, values).jaxpr)
    expected, found = written(A, i, values), compile_outer(in_one_piece(written), whole=True)(A, i, values)
    for right, own in zip(expected, found, strict=True):
        np.testing.assert_allclose(own, right, rtol=1e-14)


def test_a_stack_of_one_stack_is_left_to_the_library_and_comes_out_right() -> None:
    def written(A: Array, i: Array) -> Array:
        return jax.vmap(jax.vmap(lambda A, i: A.at[i].set(9.0)))(A, i)

    A, i = jnp.zeros((1, 1, 3, 2)), jnp.array([[1]])
    np.testing.assert_array_equal(compile_outer(in_one_piece(written), whole=True)(A, i), written(A, i))


@pytest.mark.usefixtures("by_jax")
@pytest.mark.parametrize(
    "model", [AGP(), FastAGP(), Calibrated(Standardize(Within(Bank(AGP(), forgetting=[0.9, 0.98]))))]
)
def test_step_of_a_small_model_is_one_kernel(model: Model[Any]) -> None:
    """Without this, a new operation in a step would go unnoticed until somebody measures its time."""
    x = np.zeros(1)
    state = model.init(np.linspace(0.0, 1.0, 20)[:, None], np.linspace(1.0, 0.0, 20))

    def step(state: Any, x: Array) -> Any:
        return model.update(state, x, x[0])

    assert "xla_cpu_small_call" in jax.jit(in_one_piece(step)).lower(state, x).as_text()


@pytest.mark.skipif(native.library() is None, reason="driftgp was installed without its C++ library")
def test_a_call_of_a_library_has_a_kernel_on_either_side() -> None:
    model = Calibrated(Standardize(Within(Bank(AGP(), forgetting=[0.9, 0.98]))))
    X = np.linspace(0.0, 1.0, 24)[:, None]
    state = model.init(X[:20], X[:20, 0])

    def step(state: Any, x: Array) -> Any:
        learned = model.update(state, x, x[0])
        return learned, model.predict(learned, x[None]).mean

    pieces = compile_outer(in_one_piece(step, around_calls=True), whole=True)
    assert "xla_cpu_small_call" in pieces.lower(state, X[20]).as_text()
    assert "xla_cpu_small_call" not in compile_outer(in_one_piece(step), whole=True).lower(state, X[20]).as_text()
    for own, right in zip(
        jax.tree.leaves(pieces(state, X[20])), jax.tree.leaves(jax.jit(step)(state, X[20])), strict=True
    ):
        np.testing.assert_allclose(own, right, rtol=1e-9, atol=1e-12)


def test_a_large_model_keeps_its_libraries() -> None:
    assert small(AGP().init(np.zeros((0, 1)), np.zeros(0)))
    large = AGP(inducing=50, window=500)
    state = large.init(np.zeros((0, 1)), np.zeros(0))
    assert not small(state, light=large.light)
    many_points = FastAGP(inducing=60, window=500)
    assert not small(many_points.init(np.zeros((0, 1)), np.zeros(0)), light=many_points.light)


@pytest.mark.usefixtures("by_jax")
def test_a_long_window_is_no_reason_for_fast_agp_to_leave_the_kernel() -> None:
    fast = Standardize(FastAGP(inducing=20, window=3000))
    X = np.linspace(0.0, 1.0, 20)[:, None]
    state = fast.init(X, X[:, 0])
    assert small(state, light=fast.light)
    assert "xla_cpu_small_call" in jax.jit(in_one_piece(fast.learn)).lower(state, X[0], X[0], jnp.ones(())).as_text()
