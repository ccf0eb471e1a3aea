"""The rivals that keep statistics instead of samples, against theory: OSGP, WISKI and KRLS-T.

Compilation is the cost here: every test of a method has data of the same shapes, so that all share its programs.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the rivals need JAX: pip install 'driftgp[rivals]'")

import jax
import jax.numpy as jnp

from driftgp.kernels import SE
from driftgp.models.model import Units
from driftgp.rivals import KRLST, OSGP, WISKI, input_map, ski, streaming_bound
from driftgp.rivals.jax_inducing import Inducing
from driftgp.rivals.jax_kernels import register
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.ski import Grid
from tests import dense_reference as dense
from tests.rival_tools import assert_no_failure, double_precision, rescaled, with_tree

__all__ = ["double_precision"]  # a fixture

WARM, ROWS = 4, 6
N = WARM + ROWS
RNG = np.random.default_rng(11)
X = RNG.uniform(-1.0, 1.0, size=(N + 2 * ROWS, 2))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=len(X))
Y2 = np.stack([Y, 2.0 - Y**2], 1)
XS = RNG.uniform(-1.0, 1.0, size=(5, 2))
U = RNG.uniform(-1.0, 1.0, size=(4, 2))
LENGTHSCALE, VARIANCE, NOISE = [0.7, 1.3], 1.6, np.array([0.17, 0.4])
KERNEL = SE(LENGTHSCALE, VARIANCE)
register(KERNEL)
SAME = dense.se(LENGTHSCALE, VARIANCE)
STILL: dict[str, Any] = {"noise": NOISE, "warmup_iterations": 0}  # as it is started, without a climb


def gram(A, B, kernel=SAME):
    return dense.gram(kernel, np.asarray(A), np.asarray(B))


def assert_predicts(prediction, latents, noise=NOISE):
    """One latent distribution for each output."""
    for p, latent in enumerate(latents):
        np.testing.assert_allclose(prediction.mean[:, p], latent.mean, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(prediction.variance[:, p], np.diag(latent.covariance) + noise[p], rtol=1e-7)


def through(model, elapsed=1.0):
    """The state after a warm-up on some samples and an update with each of the others."""
    return model.update(model.init(X[:WARM], Y2[:WARM]), X[WARM:N], Y2[WARM:N], elapsed)


def one_more(model, state, x, y, elapsed=0.0):
    """The state after one sample, by the program that takes several: the others are not observed, at no time."""
    rows, targets, times = np.tile(x, (ROWS, 1)), np.full((ROWS, 2), np.nan), np.zeros(ROWS)
    targets[0], times[0] = y, elapsed
    return model.update(state, rows, targets, times)


# ---- OSGP --------------------------------------------------------------------------------------------------

NUGGET = 0.03
# neither the inducing inputs nor the hyperparameters move
FIXED = OSGP(KERNEL, inducing=4, rate=0.0, inducing_rate=0.0, novelty=1.0, nugget=NUGGET, inducing_inputs=U, **STILL)


@jax.jit
def bound_and_posterior(model, state, stays, h, points, x, y):
    """F for new points and hyperparameters, and the posterior that goes with them."""
    past = streaming_bound.past(state.points, stays, state.Kuu, state.posterior.inverse_L, state.Phi, state.b)
    carried = streaming_bound.carry(past, h, points, model.nugget, x, y)
    posterior, _ = streaming_bound.posterior(carried.Kuu, carried.Phi, carried.b)
    return streaming_bound.objective(carried, h.noise, y), posterior


def test_osgp_is_the_batch_approximation_while_nothing_moves():
    """Sample by sample, with the past in M pseudo-observations, it knows as much as Titsias' bound of all the data."""
    state = through(FIXED)
    Kuu = gram(U, U) + NUGGET * VARIANCE * np.eye(4)
    batch = [
        dense.sparse_posterior(Kuu, gram(U, X[:N]), gram(U, XS), gram(XS, XS), np.ones(N), y, noise)
        for y, noise in zip(Y2[:N].T, NOISE, strict=True)
    ]
    assert_predicts(FIXED.predict(state, XS), batch)
    assert_no_failure(state)


def published(state, p, h, u, stays, x, y):
    """Bui's bound and posterior of output p, D = (S⁻¹ − K'⁻¹)⁻¹ inverted as printed; `stays`: who keeps its nugget."""
    a, old = np.asarray(state.points.U), np.asarray(state.Kuu)
    S = old @ np.linalg.inv(old + np.asarray(state.Phi[p])) @ old  # q(a) = N(m, S)
    m = S @ np.linalg.solve(old, np.asarray(state.b[:, p]))
    D = np.linalg.inv(np.linalg.inv(S) - np.linalg.inv(old))
    variance, sigma2 = float(h.kernel.variance), float(h.noise[p])
    kernel, own = dense.se(h.kernel.lengthscale, variance), NUGGET * variance * np.eye(len(u))
    Kuu, Kaa, Kau = gram(u, u, kernel) + own, gram(a, a, kernel) + own, gram(a, u, kernel) + own * stays
    K = np.concatenate([gram(x[None], u, kernel), Kau])  # new sample, pseudo-observations
    noise = np.zeros((len(K), len(K)))
    noise[0, 0], noise[1:, 1:] = sigma2, D
    targets = np.append(y, D @ np.linalg.solve(S, m))
    Q, Qs = K @ np.linalg.solve(Kuu, K.T), K @ np.linalg.solve(Kuu, gram(u, XS, kernel))
    left = Kaa - Kau @ np.linalg.solve(Kuu, Kau.T)
    F = dense.log_gaussian(targets, Q + noise) - 0.5 * (variance - Q[0, 0]) / sigma2
    F -= 0.5 * np.trace(np.linalg.solve(D, left))
    solved = np.linalg.solve(Q + noise, np.column_stack([targets, Qs]))
    return F, dense.Latent(Qs.T @ solved[:, 0], gram(XS, XS, kernel) - Qs.T @ solved[:, 1:])


def test_osgp_climbs_the_published_bound():
    """Points and hyperparameters elsewhere than the past's: bound and posterior against the printed formulas."""
    state = through(FIXED)
    x, y = X[N], Y2[N]
    stays = np.array([True, True, False, True])
    bounds = []
    for shift, factor in ((0.0, 1.0), (0.1, 0.8), (-0.2, 1.3)):
        h = Hyperparameters(SE(factor * np.array(LENGTHSCALE), factor**2 * VARIANCE), factor * NOISE)
        u = np.where(stays[:, None], U + shift, x)
        points = Inducing(jnp.asarray(u), state.points.used)
        F, q = bound_and_posterior(FIXED, state.tree, stays, h, points, x, y)
        printed, latents = zip(*(published(state, p, h, u, stays, x, y[p]) for p in range(2)), strict=True)
        bounds.append((sum(printed), float(F)))
        moved = with_tree(state, replace(state.tree, points=points, hyperparameters=h, posterior=q))
        assert_predicts(FIXED.predict(moved, XS), latents, h.noise)
    printed, ours = np.array(bounds).T
    np.testing.assert_allclose(np.diff(ours), np.diff(printed), rtol=1e-7)  # equal but for a constant


def test_osgp_takes_in_an_input_that_it_cannot_explain_and_lets_the_oldest_point_go():
    model = OSGP(KERNEL, inducing=4, inducing_rate=0.0, inducing_inputs=U, **STILL)
    state = model.init(X[:WARM], Y2[:WARM])
    known = one_more(model, state, U[2], Y2[0])
    np.testing.assert_array_equal(known.points.U, U)
    new = one_more(model, one_more(model, known, [9.0, 9.0], Y2[0]), [-9.0, 9.0], Y2[0])
    np.testing.assert_array_equal(new.points.U, [[9.0, 9.0], [-9.0, 9.0], *U[2:]])


def test_osgp_survives_points_on_top_of_each_other_and_next_to_no_noise():
    """What the published formulas fail on: the old posterior is as sharp as the old prior, or the same as it."""
    on_top = np.repeat(U[:1], 4, 0) + 1e-9 * U
    model = OSGP(
        KERNEL,
        inducing=4,
        noise=np.full(2, 1e-8),
        warmup_iterations=0,
        rate=0.05,
        inducing_rate=0.05,
        novelty=0.0,
        inducing_inputs=on_top,
    )
    state = model.init(X[:WARM], Y2[:WARM])
    for start in (0, 0, WARM, 0):  # the same inputs again and again
        state = model.update(state, X[start : start + ROWS], Y2[start : start + ROWS])
    assert_no_failure(state)
    prediction = model.predict(state, XS)
    assert np.all(np.isfinite(prediction.mean) & (prediction.variance > 0.0))


# ---- WISKI -------------------------------------------------------------------------------------------------

BOUNDS, SIZE = np.array([[-1.0, 1.1], [-1.2, 1.0]]), 6
ON_GRID = WISKI(KERNEL, grid=SIZE, bounds=BOUNDS, rate=0.0, **STILL)
interpolation = jax.jit(ski.interpolation)


@pytest.fixture(scope="module")
def grid(double_precision):
    return Grid(jnp.asarray(BOUNDS[:, 0]), jnp.asarray(BOUNDS[:, 1]), SIZE)


def grid_points():
    axes = [np.linspace(low, high, SIZE) for low, high in BOUNDS]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], -1)


def interpolated_gram(grid, A, B, kernel=SAME):
    K = gram(grid_points(), grid_points(), kernel)
    return np.asarray(interpolation(grid, A)) @ K @ np.asarray(interpolation(grid, B)).T


def test_interpolation_is_exact_for_quadratics_up_to_the_edge_of_the_grid(grid):
    """Keys' weights are of third order, in the outermost cells too, and add up to 1."""

    def quadratic(Z):
        return 1.0 + Z[:, 0] - 2.0 * Z[:, 1] ** 2 + 3.0 * Z[:, 0] * Z[:, 1] ** 2

    inside = RNG.uniform(size=(34, 2)) * np.diff(BOUNDS).T + BOUNDS[:, 0]
    Z = np.concatenate([inside, BOUNDS.T])
    W = np.asarray(interpolation(grid, Z))
    np.testing.assert_allclose(W @ quadratic(grid_points()), quadratic(Z), atol=1e-12)
    np.testing.assert_allclose(W.sum(1), 1.0, atol=1e-13)
    np.testing.assert_allclose(interpolation(grid, grid_points()), np.eye(36), atol=1e-13)


def test_beyond_the_grid_is_on_its_edge(grid):
    W = interpolation(grid, np.array([[7.0, -9.0], [1.1, -1.2]]))
    np.testing.assert_array_equal(W[0], W[1])


def test_wiski_is_the_dense_interpolated_process_of_all_the_data(grid):
    state = through(ON_GRID)
    Kxx, Kxs, Kss = (interpolated_gram(grid, A, B) for A, B in ((X[:N], X[:N]), (X[:N], XS), (XS, XS)))
    exact = [dense.exact_posterior(Kxx, Kxs, Kss, y, noise) for y, noise in zip(Y2[:N].T, NOISE, strict=True)]
    assert_predicts(ON_GRID.predict(state, XS), exact)
    assert_no_failure(state)


def test_wiskis_gradient_is_that_of_the_dense_evidence(grid):
    """By central differences of the dense evidence, in every hyperparameter, with two outputs."""
    state = through(ON_GRID)

    def evidence(theta):
        K = interpolated_gram(grid, X[:N], X[:N], dense.se(theta[:2], theta[2]))
        return sum(dense.exact_evidence(K, y, noise) for y, noise in zip(Y2[:N].T, theta[3:], strict=True))

    theta = np.array([*LENGTHSCALE, VARIANCE, *NOISE])
    steps = 1e-5 * np.diag(theta)
    expected = [(evidence(theta + step) - evidence(theta - step)) / (2.0 * step.sum()) for step in steps]
    gradient = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(state.gradient)])
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_few_eigenvectors_of_a_smooth_kernel_are_all_of_it(grid):
    """The root is exact at full rank; at 20 of 36 it leaves out the sum of the eigenvalues behind them."""
    whole = gram(grid_points(), grid_points())
    F = np.asarray(jax.jit(lambda grid: ski.root(ski.axis_grams(grid, KERNEL), 36))(grid))
    np.testing.assert_allclose(F @ F.T, whole, atol=1e-10)
    np.testing.assert_allclose(
        np.trace(whole - F[:, :20] @ F[:, :20].T), np.linalg.eigvalsh(whole)[:16].sum(), rtol=1e-6
    )
    np.testing.assert_allclose(F[:, :20] @ F[:, :20].T, whole, atol=5e-3)


def test_wiskis_map_is_normalised_over_all_the_inputs_seen():
    """Its moments, updated input by input, are those of all of them, so that what it maps is spread over the grid."""
    Z = RNG.normal(size=(20, 5)) * np.array([1.0, 10.0, 0.1, 3.0, 1.0]) + 50.0
    A = RNG.normal(size=(2, 5))
    start = input_map.Projection(A, jnp.zeros(()), jnp.zeros(5), jnp.zeros((5, 5)))

    @jax.jit
    def mapped(start, Z):
        end = jax.lax.scan(lambda projection, z: (input_map.with_input(projection, z), None), start, Z)[0]
        return end, input_map.mapped(end, Z)

    end, features = mapped(start, Z)
    np.testing.assert_allclose(end.mean, Z.mean(0), rtol=1e-10)
    np.testing.assert_allclose(end.covariance, np.cov(Z.T, ddof=0), rtol=1e-8, atol=1e-10)
    linear = (Z - Z.mean(0)) @ A.T
    np.testing.assert_allclose(features, np.tanh(0.5 * linear / linear.std(0)), rtol=1e-8)


@pytest.mark.slow
def test_wiskis_map_learns():
    Z = RNG.normal(size=(N, 5))
    model = WISKI(grid=5, noise=0.1, warmup_iterations=3)
    begun = model.init(Z[:WARM], Y[:WARM])
    state = model.update(begun, Z[WARM:], Y[WARM:N])
    assert np.any(state.projection.A != begun.projection.A)
    assert_no_failure(state)


# ---- KRLS-T ------------------------------------------------------------------------------------------------

JITTER, ELAPSED = 1e-6, RNG.uniform(0.2, 2.0, size=ROWS)
WHOLE = KRLST(KERNEL, dictionary=N, jitter=JITTER, estimate_scale=False, **STILL)


def forgetting(model, factor):
    return replace(model, forgetting=factor)


@pytest.mark.parametrize("factor", [1.0, 0.95])
def test_krlst_that_prunes_nothing_is_an_exact_process(factor):
    """Without forgetting the GP of the kernel; with it, that of k(x, x') λ^(|t − t'|/2), whatever the times."""
    model = forgetting(WHOLE, factor)
    state = through(model, elapsed=ELAPSED)
    assert int(state.points.count) == N
    t = np.concatenate([np.arange(WARM), WARM - 1 + np.cumsum(ELAPSED)])
    now = t[-1] + 1.0  # a forecast is one unit of time ahead
    Kxx = gram(X[:N], X[:N]) * factor ** (0.5 * np.abs(t[:, None] - t))
    Kxs = gram(X[:N], XS) * factor ** (0.5 * (now - t))[:, None]
    inflated = NOISE + JITTER * VARIANCE
    exact = [
        dense.exact_posterior(Kxx, Kxs, gram(XS, XS), y, noise) for y, noise in zip(Y2[:N].T, inflated, strict=True)
    ]
    assert_predicts(model.predict(state, XS), exact)
    assert_no_failure(state)


def printed_step(members, mu, Sigma, x, y, factor):
    """A step of the algorithm as printed, for N + 1 members, then without the one that changes the means least."""
    Q = np.linalg.inv(gram(members, members) + JITTER * VARIANCE * np.eye(N))
    mu, Sigma = np.sqrt(factor) * mu, factor * Sigma + (1.0 - factor) * np.linalg.inv(Q)
    k = gram(members, x[None])[:, 0]
    q = Q @ k
    gamma2 = VARIANCE * (1.0 + JITTER) - k @ q
    means, covariances = [], []
    for p in range(2):
        h = Sigma[p] @ q
        s_f2 = gamma2 + q @ h
        s_y2, e, direction = NOISE[p] + s_f2, y[p] - q @ mu[:, p], np.append(h, s_f2)
        means.append(np.append(mu[:, p], q @ mu[:, p]) + e / s_y2 * direction)
        larger = np.block([[Sigma[p], h[:, None]], [h[None], np.array([[s_f2]])]])
        covariances.append(larger - np.outer(direction, direction) / s_y2)
    members, mu = np.concatenate([members, x[None]]), np.stack(means, 1)
    K = gram(members, members) + JITTER * VARIANCE * np.eye(N + 1)
    changes = []
    for m in range(N + 1):
        others = np.arange(N + 1) != m
        change = mu[m] - K[m, others] @ np.linalg.solve(K[np.ix_(others, others)], mu[others])
        changes.append(np.sum(change**2))
    kept = np.arange(N + 1) != np.argmin(changes)
    return members[kept], mu[kept], np.stack(covariances)[:, kept][:, :, kept]


def test_krlst_drops_the_member_whose_removal_changes_the_mean_least():
    """Every number of the state, sample after sample, against the printed algorithm; and the inverse stays one."""
    factor = 0.97
    model = forgetting(WHOLE, factor)
    state = through(model)
    left = 0
    for x, y in zip(X[N:], Y2[N:], strict=True):
        before = (state.points.U, state.mu, state.Sigma)
        members, mu, Sigma = printed_step(*before, x, y, factor)
        state = one_more(model, state, x, y, elapsed=1.0)
        place = [int(np.flatnonzero(np.all(state.points.U == member, 1))[0]) for member in members]
        np.testing.assert_allclose(state.mu[place], mu, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(state.Sigma[:, place][:, :, place], Sigma, rtol=1e-6, atol=1e-8)
        left += np.any(before[0] != state.points.U)
    assert left > 3  # it was not always the newcomer that went
    K = gram(state.points.U, state.points.U) + JITTER * VARIANCE * np.eye(N)
    np.testing.assert_allclose(state.Q @ K, np.eye(N), atol=1e-6)
    assert np.linalg.eigvalsh(state.Sigma).min() > 0.0


def test_krlst_goes_back_to_the_prior_in_silence():
    model = forgetting(WHOLE, 0.9)
    silent = model.update(through(model), X[:ROWS], np.full((ROWS, 2), np.nan), 1e5)
    prediction = model.predict(silent, XS)
    np.testing.assert_allclose(prediction.mean, 0.0, atol=1e-10)
    np.testing.assert_allclose(prediction.variance, np.broadcast_to(VARIANCE + NOISE, (5, 2)), rtol=1e-5)


# ---- other units -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [FIXED, ON_GRID, WHOLE], ids=["OSGP", "WISKI", "KRLS-T"])
def test_targets_in_other_units_are_predicted_in_them(model):
    """With inputs as they were, a change of the targets' scale changes the mean alone: hyperparameters are shares."""
    state = through(model)
    units = Units(np.zeros(2), np.ones(2), np.zeros(2), np.array([2.0, 5.0]))
    one, other = model.predict(state, XS), model.predict(rescaled(model, state, units), XS)
    np.testing.assert_allclose(other.mean * units.y_scale, one.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(other.variance, one.variance, rtol=1e-6)


@pytest.mark.parametrize("model", [FIXED, ON_GRID, WHOLE], ids=["OSGP", "WISKI", "KRLS-T"])
def test_a_change_of_units_there_and_back_changes_nothing(model):
    state = through(model)
    there = Units(np.array([3.0, -1.0]), np.array([0.5, 4.0]), np.array([1.0, 2.0]), np.array([2.0, 5.0]))
    back = Units(-there.x_centre / there.x_scale, 1 / there.x_scale, -there.y_centre / there.y_scale, 1 / there.y_scale)
    moved = rescaled(model, rescaled(model, state, there), back)
    one, other = model.predict(state, XS), model.predict(moved, XS)
    np.testing.assert_allclose(other.mean, one.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.variance, one.variance, rtol=1e-5)


# ---- settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: OSGP(nugget=0.0), "nugget"),
        (lambda: OSGP(novelty=1.5), "novelty"),
        (lambda: OSGP(rate=-0.1), "rate"),
        (lambda: OSGP(inducing=3, inducing_inputs=U), "inducing_inputs"),
        (lambda: WISKI(grid=3), "grid"),
        (lambda: WISKI(bounds=(1.0, 0.0)), "bounds"),
        (lambda: WISKI(bounds=(0.0, 1.0, 2.0)), "bounds"),
        (lambda: WISKI(rank=0), "rank"),
        (lambda: KRLST(forgetting=0.0), "forgetting"),
        (lambda: KRLST(dictionary=0), "dictionary"),
        (lambda: KRLST(novelty=2.0), "novelty"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(make, word):
    with pytest.raises(ValueError, match=f"{word} must"):
        make()
