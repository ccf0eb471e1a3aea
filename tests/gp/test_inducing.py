"""Inducing points: relevance against its definition, who stays, and where the first ones lie."""

import numpy as np
import pytest

from driftgp.gp import bound, inducing
from driftgp.kernels import SE, Linear, Matern32
from tests import dense_reference as dense

M, T = 4, 9
RNG = np.random.default_rng(7)
X, Y = RNG.normal(size=(T, 2)), RNG.normal(size=(T, 2))
W = 0.9 ** np.arange(T - 1.0, -1.0, -1.0)
KERNEL = Matern32([0.6, 1.4], 1.9)
U = RNG.normal(size=(M, 2))


def everything(U):
    """Kuu, Kux and the statistics."""
    Kux = KERNEL(U, X)
    return KERNEL(U, U), Kux, bound.statistics(Kux, KERNEL(X), W, Y)


def relevance(rule, U):
    Kuu, _, s = everything(U)
    return inducing.relevance(rule, bound.inverse_root(Kuu)[0], KERNEL(U), s.Phi)


def total(U):
    Kuu, _, s = everything(U)
    return inducing.unexplained(bound.inverse_root(Kuu)[0], s)


# ---- relevance ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [4, 3, 1])
@pytest.mark.parametrize("rule", inducing.RULES)
def test_relevance_is_its_definition(rule, points):
    Kuu, Kux, _ = everything(U[:points])
    definition = {
        "leave-one-out": lambda: dense.relevance_leave_one_out(Kuu, Kux, KERNEL(X), W),
        "cholesky": lambda: dense.relevance_cholesky(Kuu, Kux, KERNEL(X), W),
        "diagonal": lambda: dense.relevance_diagonal(Kuu, Kux, W),
    }[rule]
    np.testing.assert_allclose(relevance(rule, U[:points]), definition(), rtol=1e-9)


def test_leave_one_out_is_how_much_stays_unexplained_without_the_point():
    """With the library's own R_tot, before and after the point has gone."""
    growth = [total(np.delete(U, m, axis=0)) - total(U) for m in range(M)]
    np.testing.assert_allclose(relevance("leave-one-out", U), growth, rtol=1e-9)


def test_order_of_the_points_changes_nothing_under_leave_one_out():
    order = np.array([2, 0, 3, 1])
    for rule, alike in (("leave-one-out", True), ("diagonal", True), ("cholesky", False)):
        assert np.allclose(relevance(rule, U)[order], relevance(rule, U[order]), rtol=1e-10) is alike


def test_cholesky_relevance_sums_to_what_is_explained():
    _, _, s = everything(U)
    np.testing.assert_allclose(np.sum(relevance("cholesky", U)), s.kappa - total(U), rtol=1e-10)


def test_what_is_unexplained_is_its_definition():
    Kuu, Kux, _ = everything(U[:3])
    np.testing.assert_allclose(total(U[:3]), dense.unexplained(Kuu, Kux, KERNEL(X), W), rtol=1e-10)


# ---- who stays ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("R", "most", "stay"),
    [
        ([4.0, 1.0, 3.0, 2.0], 4, [0, 1, 2, 3]),  # nobody is useless and there is room
        ([4.0, 1.0, 3.0, 2.0], 3, [0, 2, 3]),  # no room: the weakest goes
        ([4.0, 0.01, 3.0, 0.02], 4, [0, 2]),  # all under a tenth of the largest go
        ([4.0, 0.01, 3.0, 2.0], 3, [0, 2, 3]),  # the useless one has made the room already
        ([4.0], 0, []),  # M = 1: the newcomer replaces the only point
        ([], 3, []),  # a cold start
        ([0.0, 0.0, 0.0, 0.0], 3, [1, 2, 3]),  # nothing explained: nobody is below the threshold, one goes
    ],
)
def test_survivors(R, most, stay):
    assert inducing.survivors(np.array(R), 0.1, most).tolist() == stay


@pytest.mark.parametrize(
    ("R", "most", "stay"),
    [
        ([4.0, 1.0, 3.0, 2.0], 5, [0, 1, 2, 3]),  # room left
        ([4.0, 1.0, 3.0, 2.0], 4, [0, 2, 3]),  # full is too full: the weakest goes
        ([4.0, 0.01, 3.0, 0.02], 4, [0, 2]),  # the useless go
        ([4.0, 0.01, 3.0, 2.0], 4, [0, 2, 3]),  # and if there are any, nobody else does
    ],
)
def test_survivors_of_the_published_runs(R, most, stay):
    assert inducing.survivors_published(np.array(R), 0.1, most).tolist() == stay


# ---- jitter ------------------------------------------------------------------------------------------------


def test_the_jitter_is_relative_to_the_mean_of_the_diagonal():
    kernel = Linear(0.3)
    plain = kernel(U, U)
    expected = plain + (1e-3 * np.mean(np.diag(plain)) + 0.02) * np.eye(M)
    np.testing.assert_allclose(inducing.gram(kernel, U, 1e-3, 0.02), expected, rtol=1e-12)


# ---- a first set -------------------------------------------------------------------------------------------


def test_greedy_takes_at_each_turn_the_sample_explained_least():
    kernel = SE(0.9, 1.9)
    K = kernel(X, X)
    chosen: list[int] = []
    for _ in range(5):
        explained = K[:, chosen] @ np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen]) if chosen else 0.0 * K
        chosen.append(int(np.argmax(np.diag(K - explained))))
    np.testing.assert_array_equal(inducing.greedy(kernel, X, W, 5), X[chosen])


def test_greedy_takes_no_point_twice_and_none_that_is_explained():
    """Three different inputs, each several times, give three points."""
    points = inducing.greedy(SE(0.9, 1.9), np.tile(X[:3], (3, 1)), np.ones(9), 5)
    assert len(points) == 3
    assert {tuple(u) for u in points} == {tuple(x) for x in X[:3]}


def test_greedy_goes_on_with_other_points_where_the_kernel_has_no_more_rank():
    """A linear kernel on two inputs is explained by two points; what comes after them is at least different."""
    points = inducing.greedy(Linear(0.7), X, np.ones(T), 5)
    chosen = {tuple(u) for u in points}
    assert len(chosen) == len(points) >= 2
    assert chosen <= {tuple(x) for x in X}


def test_greedy_passes_over_samples_that_are_not_there():
    points = inducing.greedy(SE(0.9, 1.9), X, np.where(np.arange(T) < 6, 0.0, 1.0), 5)
    assert len(points) == 3
    assert {tuple(u) for u in points} == {tuple(x) for x in X[6:]}


def test_recent_takes_every_second_of_the_last():
    np.testing.assert_array_equal(inducing.recent(X, W, 3), X[[3, 5, 7]])
    np.testing.assert_array_equal(inducing.recent(X, np.where(np.arange(T) == 5, 0.0, W), 6), X[[1, 3, 7]])
