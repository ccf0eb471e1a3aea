"""Inducing points: relevance against its definition, slots that come and go, and those that are not in use."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftgp import bound, inducing, window
from driftgp.inducing import Inducing
from driftgp.kernels import SE, Linear, Matern32
from tests import dense_reference as dense

pytestmark = pytest.mark.usefixtures("x64")

M, T = 4, 9
RNG = np.random.default_rng(7)
X, Y = RNG.normal(size=(T, 2)), RNG.normal(size=(T, 2))
W = 0.9 ** np.arange(T - 1.0, -1.0, -1.0)
KERNEL = Matern32([0.6, 1.4], 1.9)
U = RNG.normal(size=(M, 2))
ALL, THREE = np.ones(M, bool), np.arange(M) < 3
NO_JITTER = (jnp.zeros(()), jnp.zeros(()))
GREEDY = jax.jit(inducing.greedy, static_argnums=3)


def grams_of(points):
    """Kuu, Kux and kxx of the points in use, by their definition."""
    inside = np.asarray(points.U)[np.asarray(points.used)]
    return np.asarray(KERNEL(inside, inside)), np.asarray(KERNEL(inside, X)), np.asarray(KERNEL(X))


@jax.jit
def everything(points, newest=None):
    """Kuu, Kux and the statistics as the model computes them."""
    Kuu, Kux = inducing.grams(KERNEL, points, X, *NO_JITTER, newest)
    return Kuu, Kux, bound.statistics(Kux, KERNEL(X), jnp.asarray(W), jnp.asarray(Y))


@partial(jax.jit, static_argnums=0)
def relevance(rule, points):
    Kuu, _, s = everything(points)
    return inducing.relevance(rule, bound.inverse_root(Kuu)[0], KERNEL(points.U), s.Phi)


# ---- relevance ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("used", [ALL, THREE], ids=["all in use", "one free"])
@pytest.mark.parametrize("rule", inducing.RULES)
def test_relevance_is_its_definition(rule, used):
    points = Inducing(U, used)
    Kuu, Kux, kxx = grams_of(points)
    if rule == "diagonal":
        expected = dense.relevance_diagonal(Kuu, Kux, W)
    else:
        definition = {"leave-one-out": dense.relevance_leave_one_out, "cholesky": dense.relevance_cholesky}[rule]
        expected = definition(Kuu, Kux, kxx, W)
    np.testing.assert_allclose(np.asarray(relevance(rule, points))[used], expected, rtol=1e-9)


def test_leave_one_out_is_how_much_stays_unexplained_without_the_point():
    """With the library's own R_tot, before and after the library's own removal."""

    @jax.jit
    def total(points):
        Kuu, _, s = everything(points)
        return inducing.unexplained(bound.inverse_root(Kuu)[0], s)

    points = Inducing(U, ALL)
    growth = [total(inducing.remove(points, jnp.arange(M) != m)) - total(points) for m in range(M)]
    np.testing.assert_allclose(relevance("leave-one-out", points), growth, rtol=1e-9)


def test_order_of_the_points_changes_nothing_under_leave_one_out():
    order = np.array([2, 0, 3, 1])
    for rule, alike in (("leave-one-out", True), ("diagonal", True), ("cholesky", False)):
        R, shuffled = relevance(rule, Inducing(U, ALL)), relevance(rule, Inducing(U[order], ALL))
        assert np.allclose(np.asarray(R)[order], shuffled, rtol=1e-10) is alike


def test_cholesky_relevance_sums_to_what_is_explained():
    points = Inducing(U, ALL)
    Kuu, _, s = everything(points)
    total = inducing.unexplained(bound.inverse_root(Kuu)[0], s)
    np.testing.assert_allclose(jnp.sum(relevance("cholesky", points)), s.kappa - total, rtol=1e-10)


def test_what_is_unexplained_is_its_definition():
    points = Inducing(U, THREE)
    Kuu, _, s = everything(points)
    Kuu_used, Kux_used, kxx = grams_of(points)
    expected = dense.unexplained(Kuu_used, Kux_used, kxx, W)
    np.testing.assert_allclose(inducing.unexplained(bound.inverse_root(Kuu)[0], s), expected, rtol=1e-10)


# ---- who stays ---------------------------------------------------------------------------------------------


def kept(rule, R, used, threshold, most):
    return np.flatnonzero(rule(jnp.asarray(R), jnp.asarray(used), threshold, most)).tolist()


@pytest.mark.parametrize(
    ("R", "used", "most", "stay"),
    [
        ([4.0, 1.0, 3.0, 2.0], 4, 4, [0, 1, 2, 3]),  # nobody is useless and there is room
        ([4.0, 1.0, 3.0, 2.0], 4, 3, [0, 2, 3]),  # no room: the weakest goes
        ([4.0, 0.01, 3.0, 0.02], 4, 4, [0, 2]),  # all under a tenth of the largest go
        ([4.0, 0.01, 3.0, 2.0], 4, 3, [0, 2, 3]),  # the useless one has made the room already
        ([4.0, 0.01, 3.0, 0.0], 3, 3, [0, 2]),  # what lies in an unused slot counts for nothing
        ([4.0, 1.0, 9.0, 9.0], 2, 2, [0, 1]),  # nor does it set the threshold
        ([4.0, 0.0, 0.0, 0.0], 1, 0, []),  # M = 1: the newcomer replaces the only point
        ([0.0, 0.0, 0.0, 0.0], 0, 3, []),  # a cold start
        ([0.0, 0.0, 0.0, 0.0], 4, 3, [1, 2, 3]),  # nothing explained: nobody is below the threshold, one goes
    ],
)
def test_survivors(R, used, most, stay):
    assert kept(inducing.survivors, R, np.arange(4) < used, 0.1, most) == stay


@pytest.mark.parametrize(
    ("R", "used", "most", "stay"),
    [
        ([4.0, 1.0, 3.0, 2.0], 4, 5, [0, 1, 2, 3]),  # room left
        ([4.0, 1.0, 3.0, 2.0], 4, 4, [0, 2, 3]),  # full is too full: the weakest goes
        ([4.0, 0.01, 3.0, 0.02], 4, 4, [0, 2]),  # the useless go
        ([4.0, 0.01, 3.0, 2.0], 4, 4, [0, 2, 3]),  # and if there are any, nobody else does
    ],
)
def test_survivors_of_the_published_runs(R, used, most, stay):
    assert kept(inducing.survivors_published, R, np.arange(4) < used, 0.1, most) == stay


# ---- coming and going --------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [1, 0, 1, 1]])
def test_compaction_keeps_the_order_and_closes_the_gaps(keep):
    keep = np.array(keep, bool)
    points = inducing.remove(Inducing(U, ALL), keep)
    np.testing.assert_array_equal(points.used, np.arange(M) < keep.sum())
    np.testing.assert_array_equal(points.U[: keep.sum()], U[keep])


def test_append_takes_the_first_free_slot_and_the_newest_moves_alone():
    x, z = np.array([5.0, 6.0]), np.array([7.0, 8.0])
    points = inducing.append(Inducing(U, THREE), x)
    np.testing.assert_array_equal(points.U, np.vstack([U[:3], x]))
    np.testing.assert_array_equal(points.used, ALL)
    moved = inducing.move_newest(inducing.append(Inducing(U, np.arange(M) < 1), x), z)
    np.testing.assert_array_equal(moved.U[:2], np.vstack([U[:1], z]))
    assert int(moved.count) == 2


def test_admit_then_remove_is_the_identity():
    """Statistics, Kux and points come back as they were, and in between they are those of a recomputation."""
    ring = window.Window(X, Y, W, jnp.zeros((), jnp.int32))
    points, x = Inducing(U, THREE), np.array([0.3, -0.4])
    _, Kux, s = everything(points)
    wide = inducing.widen(KERNEL, points, Kux, s, ring, x, jnp.asarray(True))
    grown = Inducing(jnp.vstack([U, x]), jnp.append(THREE, True))
    Kux_grown, kxx = inducing.cross(KERNEL, grown, X), KERNEL(X)
    close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-14)
    jax.tree.map(close, wide, inducing.Wide(grown, Kux_grown, bound.statistics(Kux_grown, kxx, W, Y)))
    again, Kux_again, s_again = inducing.narrow(wide, jnp.append(THREE, False))
    np.testing.assert_array_equal(again.used, THREE)
    np.testing.assert_array_equal(again.U[:3], U[:3])
    jax.tree.map(np.testing.assert_array_equal, (Kux_again, s_again), (Kux, s))


@pytest.mark.parametrize("removed", range(M + 1))
def test_admit_then_remove_another_is_a_recomputation(removed):
    ring = window.Window(X, Y, W, jnp.zeros((), jnp.int32))
    points, x = Inducing(U, ALL), np.array([0.3, -0.4])
    _, Kux, s = everything(points)
    wide = inducing.widen(KERNEL, points, Kux, s, ring, x, jnp.asarray(True))
    after = inducing.narrow(wide, jnp.arange(M + 1) != removed)
    expected = Inducing(np.delete(np.vstack([U, x]), removed, axis=0), ALL)
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-14), after, (expected, *everything(expected)[1:])
    )


def test_who_is_not_admitted_leaves_no_trace():
    ring = window.Window(X, Y, W, jnp.zeros((), jnp.int32))
    points = Inducing(U, THREE)
    _, Kux, s = everything(points)
    wide = inducing.widen(KERNEL, points, Kux, s, ring, np.array([0.3, -0.4]), jnp.asarray(False))
    np.testing.assert_array_equal(wide.Kux[-1], 0.0)
    again, *rest = inducing.narrow(wide, wide.points.used)
    np.testing.assert_array_equal(again.used, THREE)
    jax.tree.map(np.testing.assert_array_equal, tuple(rest), (Kux, s))


# ---- slots that are not in use -----------------------------------------------------------------------------


@pytest.mark.parametrize("junk", [0.0, 1e6, "a copy"])
def test_what_lies_in_an_unused_slot_changes_nothing(junk):
    """Bound, gradient and predictions are those of three points alone."""
    filler = U[:1] if junk == "a copy" else np.full((1, 2), junk)
    masked, alone = Inducing(np.vstack([U[:3], filler]), THREE), Inducing(U[:3], np.ones(3, bool))

    @jax.jit
    def value(kernel, points):
        Kuu, Kux = inducing.grams(kernel, points, X, 1e-6, 1e-6)
        s = bound.statistics(Kux, kernel(X), jnp.asarray(W), jnp.asarray(Y))
        return bound.bound(Kuu, s, jnp.array([0.3, 0.7]))

    @jax.jit
    def predictions(points):
        Kuu, Kux = inducing.grams(KERNEL, points, X, 1e-6, 1e-6)
        s = bound.statistics(Kux, KERNEL(X), jnp.asarray(W), jnp.asarray(Y))
        q = bound.posterior(bound.inverse_root(Kuu)[0], s, jnp.array([0.3, 0.7]))
        return bound.predict(q, inducing.cross(KERNEL, points, X[:3]), KERNEL(X[:3]))

    close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-12)
    gradient = jax.jit(jax.grad(value))
    close(value(KERNEL, masked), value(KERNEL, alone))
    jax.tree.map(close, gradient(KERNEL, masked), gradient(KERNEL, alone))
    jax.tree.map(close, predictions(masked), predictions(alone))


def test_the_jitter_is_relative_to_the_points_in_use():
    kernel = Linear(0.3)
    points = Inducing(np.vstack([U[:3], np.full((1, 2), 1e6)]), THREE)
    Kuu = np.asarray(inducing.gram(kernel, points, 1e-3, 0.02))
    plain = np.asarray(kernel(U[:3], U[:3]))
    np.testing.assert_allclose(Kuu[:3, :3], plain + (1e-3 * np.mean(np.diag(plain)) + 0.02) * np.eye(3), rtol=1e-12)
    np.testing.assert_array_equal(Kuu[3], [0.0, 0.0, 0.0, 1.0])


# ---- one evaluation for both Gram matrices -----------------------------------------------------------------


@pytest.mark.parametrize("used", [ALL, THREE], ids=["all in use", "one free"])
def test_grams_are_gram_and_cross(used):
    points = Inducing(U, used)
    Kuu, Kux, _ = everything(points)
    np.testing.assert_allclose(Kuu, inducing.gram(KERNEL, points, *NO_JITTER), rtol=1e-13)
    np.testing.assert_allclose(Kux, inducing.cross(KERNEL, points, X), rtol=1e-13)


@pytest.mark.parametrize("used", [ALL, THREE], ids=["all in use", "one free"])
def test_the_newest_point_has_the_derivative_it_would_have_among_all(used):
    points = Inducing(U, used)
    last = int(points.count) - 1

    def value(points, newest):
        Kuu, _, s = everything(points, newest)
        return bound.bound(Kuu + 1e-6 * jnp.eye(M), s, jnp.array([0.3, 0.7]))

    among_all = jax.grad(lambda U: value(Inducing(U, used), None))(U)[last]
    alone = jax.grad(lambda newest: value(points, newest))(U[last])
    np.testing.assert_allclose(value(points, U[last]), value(points, None), rtol=1e-12)
    np.testing.assert_allclose(alone, among_all, rtol=1e-9)


# ---- a first set -------------------------------------------------------------------------------------------


def test_greedy_takes_at_each_turn_the_sample_explained_least():
    kernel = SE(0.9, 1.9)
    points = GREEDY(kernel, X, W, 5)
    K = np.asarray(kernel(X, X))
    chosen: list[int] = []
    for _ in range(5):
        explained = K[:, chosen] @ np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen]) if chosen else 0.0 * K
        chosen.append(int(np.argmax(np.diag(K - explained))))
    np.testing.assert_array_equal(points.U, X[chosen])
    assert np.all(points.used)


def test_greedy_takes_no_point_twice_and_none_that_is_explained():
    """Three different inputs, each several times, give three points and leave the other slots free."""
    points = GREEDY(SE(0.9, 1.9), np.tile(X[:3], (3, 1)), np.ones(9), 5)
    assert int(points.count) == 3
    assert {tuple(u) for u in np.asarray(points.U[:3])} == {tuple(x) for x in X[:3]}


def test_greedy_goes_on_with_other_points_where_the_kernel_has_no_more_rank():
    """A linear kernel on two inputs is explained by two points; what comes after them is at least different."""
    points = GREEDY(Linear(0.7), X, np.ones(T), 5)
    chosen = {tuple(u) for u in np.asarray(points.U[: int(points.count)])}
    assert len(chosen) == int(points.count)
    assert chosen <= {tuple(x) for x in X}


def test_greedy_passes_over_samples_that_are_not_there():
    w = np.where(np.arange(T) < 6, 0.0, 1.0)
    points = GREEDY(SE(0.9, 1.9), X, w, 5)
    assert int(points.count) == 3
    assert {tuple(u) for u in np.asarray(points.U[:3])} == {tuple(x) for x in X[6:]}


def test_recent_takes_every_second_of_the_last():
    points = inducing.recent(X, W, 3)
    np.testing.assert_array_equal(points.U, X[[3, 5, 7]])
    few = inducing.recent(X, np.where(np.arange(T) == 5, 0.0, W), 6)
    np.testing.assert_array_equal(few.U[: int(few.count)], X[[1, 3, 7]])
