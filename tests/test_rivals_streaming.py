"""The rivals that keep statistics instead of samples, against theory: OSGP, WISKI and KRLS-T."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftgp import evaluate
from driftgp.data import load_streams, online_retail_stream, store_sales_stream, toy_streams
from driftgp.inducing import Inducing
from driftgp.kernels import SE
from driftgp.learning import Hyperparameters
from driftgp.model import Units
from driftgp.rivals import KRLST, OSGP, WISKI, osgp, ski
from driftgp.rivals.ski import Grid
from tests import dense_reference as dense
from tests.data_files import real_data

pytestmark = pytest.mark.usefixtures("x64")

N, WARM = 30, 10
RNG = np.random.default_rng(11)
X = RNG.uniform(-1.0, 1.0, size=(N, 2))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=N)
Y2 = np.stack([Y, 2.0 - Y**2], 1)
XS = RNG.uniform(-1.0, 1.0, size=(5, 2))
U = RNG.uniform(-1.0, 1.0, size=(4, 2))
LENGTHSCALE, VARIANCE, NOISE = [0.7, 1.3], 1.6, np.array([0.17, 0.4])
KERNEL = SE(LENGTHSCALE, VARIANCE)
STILL: dict[str, Any] = {"noise": NOISE, "warmup_iterations": 0}  # as it is started, without a climb


SAME = dense.se(LENGTHSCALE, VARIANCE)


def gram(A, B, kernel=SAME):
    return dense.gram(kernel, A, B)


def assert_predicts(prediction, latents, noise=NOISE):
    """One latent distribution for each output."""
    for p, latent in enumerate(latents):
        np.testing.assert_allclose(prediction.mean[:, p], latent.mean, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(prediction.variance[:, p], np.diag(latent.covariance) + noise[p], rtol=1e-7)


def through(model, y=Y2, elapsed=1.0):
    """The state after a warm-up on some samples and an update with each of the others."""
    return model.update(model.init(X[:WARM], y[:WARM]), X[WARM:], y[WARM:], elapsed)


def mean_score(model, seeds=10):
    """Mean squared error over toy streams, and the states they ended in."""
    T, targets = toy_streams(range(seeds))
    runs = [evaluate.prequential(model, model.init(T[:100], y[:100]), T[100:], y[100:]) for y in targets]
    scores = [evaluate.mse(run.prediction, y[100:]) for run, y in zip(runs, targets, strict=True)]
    return np.mean(scores), [run.state for run in runs]


def assert_no_failure(state):
    """No factorisation was repaired, no gradient left out."""
    assert int(np.sum(state.repaired)) == 0
    assert int(np.sum(state.skipped)) == 0


# ---- OSGP --------------------------------------------------------------------------------------------------

NUGGET = 0.03
# neither the inducing inputs nor the hyperparameters move
FIXED = OSGP(KERNEL, inducing=4, rate=0.0, inducing_rate=0.0, novelty=1.0, nugget=NUGGET, inducing_inputs=U, **STILL)


def test_osgp_is_the_batch_approximation_while_nothing_moves():
    """Sample by sample, with the past in M pseudo-observations, it knows as much as Titsias' bound of all the data."""
    state = through(FIXED)
    Kuu = gram(U, U) + NUGGET * VARIANCE * np.eye(4)
    batch = [
        dense.sparse_posterior(Kuu, gram(U, X), gram(U, XS), gram(XS, XS), np.ones(N), y, noise)
        for y, noise in zip(Y2.T, NOISE, strict=True)
    ]
    assert_predicts(FIXED.predict(state, XS), batch)
    assert_no_failure(state)


def published(state, h, u, stays, x, y):
    """Bui's bound and posterior with D = (S⁻¹ − K'⁻¹)⁻¹ inverted as printed; stays: points that keep their nugget."""
    a, old = np.asarray(state.points.U), np.asarray(state.Kuu)
    S = old @ np.linalg.inv(old + np.asarray(state.Phi[0])) @ old  # q(a) = N(m, S)
    m = S @ np.linalg.solve(old, np.asarray(state.b[:, 0]))
    D = np.linalg.inv(np.linalg.inv(S) - np.linalg.inv(old))
    kernel = dense.se(h.kernel.lengthscale, float(h.kernel.variance))
    own = NUGGET * float(h.kernel.variance) * np.eye(len(u))
    Kuu, Kaa, Kau = gram(u, u, kernel) + own, gram(a, a, kernel) + own, gram(a, u, kernel) + own * stays
    K = np.concatenate([gram(x[None], u, kernel), Kau])  # new sample, pseudo-observations
    noise = np.zeros((len(K), len(K)))
    noise[0, 0], noise[1:, 1:] = h.noise[0], D
    targets = np.append(y, D @ np.linalg.solve(S, m))
    Q = K @ np.linalg.solve(Kuu, K.T)
    left = Kaa - Kau @ np.linalg.solve(Kuu, Kau.T)
    kxx = float(h.kernel.variance)
    F = dense.log_gaussian(targets, Q + noise) - 0.5 * (kxx - Q[0, 0]) / h.noise[0]
    F -= 0.5 * np.trace(np.linalg.solve(D, left))
    solved = np.linalg.solve(Q + noise, np.column_stack([targets, K @ np.linalg.solve(Kuu, gram(u, XS, kernel))]))
    Qs = K @ np.linalg.solve(Kuu, gram(u, XS, kernel))
    latent = dense.Latent(Qs.T @ solved[:, 0], gram(XS, XS, kernel) - Qs.T @ solved[:, 1:])
    return F, latent


def test_osgp_climbs_the_published_bound():
    """Points and hyperparameters elsewhere than the past's: bound and posterior against the printed formulas."""
    state = FIXED.init(X[:WARM], Y[:WARM, None])
    x, y = X[WARM], Y[WARM]
    stays = np.array([True, True, False, True])
    past = osgp._past(state, jnp.asarray(stays))
    bounds = []
    for shift, factor in ((0.0, 1.0), (0.1, 0.8), (-0.2, 1.3)):
        h = Hyperparameters(SE(factor * np.array(LENGTHSCALE), factor**2 * VARIANCE), jnp.asarray(factor * NOISE[:1]))
        u = np.where(stays[:, None], U + shift, x)
        carried = FIXED._carry(past, h, Inducing(jnp.asarray(u), state.points.used), x, y[None])
        F, latent = published(state, h, u, stays, x, y)
        bounds.append((F, float(FIXED._bound(carried, h.noise, y[None]))))
        q = osgp._posterior(carried.Kuu, carried.Phi, carried.b)
        moved = replace(state, points=Inducing(jnp.asarray(u), state.points.used), hyperparameters=h, posterior=q)
        assert_predicts(FIXED.predict(moved, XS), [latent], h.noise)
    printed, ours = np.array(bounds).T
    np.testing.assert_allclose(np.diff(ours), np.diff(printed), rtol=1e-7)  # equal but for a constant


def test_osgp_takes_in_an_input_that_it_cannot_explain_and_lets_the_oldest_point_go():
    model = OSGP(KERNEL, inducing=4, inducing_rate=0.0, inducing_inputs=U, **STILL)
    state = model.init(X[:WARM], Y2[:WARM])
    known = model.update(state, U[2], Y2[0])
    np.testing.assert_array_equal(known.points.U, U)
    new = model.update(model.update(known, [9.0, 9.0], Y2[0]), [-9.0, 9.0], Y2[0])
    np.testing.assert_array_equal(new.points.U, [[9.0, 9.0], [-9.0, 9.0], *U[2:]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_osgp_survives_inducing_points_on_top_of_each_other_and_next_to_no_noise(dtype):
    """What the published formulas fail on: the old posterior is as sharp as the old prior, or the same as it."""
    T = np.repeat(np.linspace(0.0, 1.0, 15), 4)[:, None].astype(dtype)
    y = np.sin(6.0 * T[:, 0])
    model = OSGP(noise=1e-4, inducing=10, warmup_iterations=20, rate=0.05, inducing_rate=0.05, novelty=0.0)
    state = model.update(model.init(T[:12], y[:12]), T[12:], y[12:])
    assert_no_failure(state)
    prediction = model.predict(state, T)
    assert np.all(np.isfinite(prediction.mean) & (prediction.variance > 0.0))


def test_osgp_on_the_toy_stream():
    """Ten seeds, not one failure; published .1333 and, of those seeds that it survived, .18 (see the issue)."""
    score, states = mean_score(OSGP())
    assert score <= 0.075
    for state in states:
        assert_no_failure(state)


@pytest.mark.slow
def test_osgp_runs_through_every_load_series_without_a_failure():
    streams = load_streams(real_data("isone_zonal_paper_2020_2021.csv.gz"))
    model = OSGP(inducing=20)
    run = jax.jit(lambda X, y: evaluate.scan(model, model.init(X[:90], y[:90]), X[90:], y[90:], jnp.ones(len(X) - 90)))
    for stream in streams.values():
        for hour in range(24):
            outcome = run(stream.X, stream.y[:, hour])
            assert_no_failure(outcome.state)
            assert np.all(np.isfinite(outcome.prediction.mean))
            assert evaluate.mse(outcome.prediction, stream.y[90:, hour]) < np.var(stream.y[90:, hour])


@pytest.mark.parametrize(
    ("read", "file"),
    [(store_sales_stream, "store_sales_daily.csv.gz"), (online_retail_stream, "online_retail_daily.csv.gz")],
)
def test_osgp_runs_through_every_sales_series_without_a_failure(read, file):
    stream = read(real_data(file))
    model = OSGP(inducing=20)
    state = model.init(stream.X[:90], stream.y[:90])
    outcome = evaluate.prequential(model, state, stream.X[90:], stream.y[90:])
    assert_no_failure(outcome.state)
    assert evaluate.mse(outcome.prediction, stream.y[90:]) < np.var(stream.y[90:])


# ---- WISKI -------------------------------------------------------------------------------------------------

GRID = Grid(jnp.array([-1.0, -1.2]), jnp.array([1.1, 1.0]), 6)
ON_GRID = WISKI(KERNEL, grid=6, bounds=[[-1.0, 1.1], [-1.2, 1.0]], rate=0.0, **STILL)


def grid_points():
    axes = [np.linspace(low, high, 6) for low, high in zip(GRID.lower, GRID.upper, strict=True)]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], -1)


def interpolated_gram(A, B, kernel):
    K = gram(grid_points(), grid_points(), kernel)
    return np.asarray(ski.interpolation(GRID, A) @ K @ ski.interpolation(GRID, B).T)


def test_interpolation_is_exact_for_quadratics_up_to_the_edge_of_the_grid():
    """Keys' weights are of third order, in the outermost cells too, and add up to 1."""

    def quadratic(Z):
        return 1.0 + Z[:, 0] - 2.0 * Z[:, 1] ** 2 + 3.0 * Z[:, 0] * Z[:, 1] ** 2

    inside = RNG.uniform(size=(40, 2)) * np.asarray(GRID.upper - GRID.lower) + np.asarray(GRID.lower)
    corners = np.array([[-1.0, -1.2], [1.1, 1.0]])
    Z = np.concatenate([inside, corners])
    W = np.asarray(ski.interpolation(GRID, jnp.asarray(Z)))
    np.testing.assert_allclose(W @ quadratic(grid_points()), quadratic(Z), atol=1e-12)
    np.testing.assert_allclose(W.sum(1), 1.0, atol=1e-13)
    np.testing.assert_allclose(ski.interpolation(GRID, jnp.asarray(grid_points())), np.eye(36), atol=1e-13)


def test_beyond_the_grid_is_on_its_edge():
    W = ski.interpolation(GRID, jnp.array([[7.0, -9.0], [1.1, -1.2]]))
    np.testing.assert_array_equal(W[0], W[1])


def test_wiski_is_the_dense_interpolated_process_of_all_the_data():
    state = through(ON_GRID)
    Kxx, Kxs, Kss = (interpolated_gram(A, B, SAME) for A, B in ((X, X), (X, XS), (XS, XS)))
    exact = [dense.exact_posterior(Kxx, Kxs, Kss, y, noise) for y, noise in zip(Y2.T, NOISE, strict=True)]
    assert_predicts(ON_GRID.predict(state, XS), exact)
    assert_no_failure(state)


def test_wiskis_gradient_is_that_of_the_dense_evidence():
    """By central differences of the dense evidence, in every hyperparameter, with two outputs."""
    state = through(ON_GRID)

    def evidence(theta):
        K = interpolated_gram(X, X, dense.se(theta[:2], theta[2]))
        return sum(dense.exact_evidence(K, y, noise) for y, noise in zip(Y2.T, theta[3:], strict=True))

    theta = np.array([*LENGTHSCALE, VARIANCE, *NOISE])
    steps = 1e-5 * np.diag(theta)
    expected = [(evidence(theta + step) - evidence(theta - step)) / (2.0 * step.sum()) for step in steps]
    gradient = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(state.gradient)])
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_wiski_needs_few_of_the_eigenvectors_of_a_smooth_kernel():
    all_of_them, few = (replace(ON_GRID, rank=rank) for rank in (36, 20))
    one, other = (model.predict(through(model), XS) for model in (all_of_them, few))
    np.testing.assert_allclose(one.mean, other.mean, atol=5e-3)
    np.testing.assert_allclose(one.variance, other.variance, rtol=5e-3)


def test_wiskis_map_is_normalised_over_all_the_inputs_seen():
    """Its moments, updated input by input, are those of all of them, so that what it maps is spread over the grid."""
    Z = RNG.normal(size=(N, 5)) * np.array([1.0, 10.0, 0.1, 3.0, 1.0]) + 50.0
    model = WISKI(grid=5, noise=0.1, warmup_iterations=3)
    state = model.update(model.init(Z[:WARM], Y[:WARM]), Z[WARM:], Y[WARM:])
    np.testing.assert_allclose(state.projection.mean, Z.mean(0), rtol=1e-10)
    np.testing.assert_allclose(state.projection.covariance, np.cov(Z.T, ddof=0), rtol=1e-8, atol=1e-10)
    before_tanh = (Z - Z.mean(0)) @ np.asarray(state.projection.A).T
    features = np.tanh(0.5 * before_tanh / before_tanh.std(0))
    W = np.asarray(ski.interpolation(state.grid, jnp.asarray(features)))
    prediction = model.predict(state, Z)
    values = np.asarray(state.posterior.F @ state.posterior.alpha)[:, 0]
    np.testing.assert_allclose(prediction.mean, W @ values, rtol=1e-8)
    assert np.any(state.projection.A != model.init(Z[:WARM], Y[:WARM]).projection.A)  # and it learns
    assert_no_failure(state)


def test_wiski_on_the_toy_stream():
    score, states = mean_score(WISKI(grid=40, bounds=(0.0, 5.0)))
    assert score <= 0.08
    for state in states:
        assert_no_failure(state)


# ---- KRLS-T ------------------------------------------------------------------------------------------------

JITTER, ELAPSED = 1e-6, RNG.uniform(0.2, 2.0, size=N - WARM)
WHOLE = KRLST(KERNEL, dictionary=N, jitter=JITTER, estimate_scale=False, **STILL)


@pytest.mark.parametrize("forgetting", [1.0, 0.95])
def test_krlst_that_prunes_nothing_is_an_exact_process(forgetting):
    """Without forgetting the GP of the kernel; with it, that of k(x, x') λ^(|t − t'|/2), whatever the times."""
    model = replace(WHOLE, forgetting=np.asarray(forgetting))
    state = through(model, elapsed=ELAPSED)
    assert int(state.points.count) == N
    t = np.concatenate([np.arange(WARM), WARM - 1 + np.cumsum(ELAPSED)])
    now = t[-1] + 1.0  # a forecast is one unit of time ahead
    Kxx = gram(X, X) * forgetting ** (0.5 * np.abs(t[:, None] - t))
    Kxs = gram(X, XS) * forgetting ** (0.5 * (now - t))[:, None]
    inflated = NOISE + JITTER * VARIANCE
    exact = [dense.exact_posterior(Kxx, Kxs, gram(XS, XS), y, noise) for y, noise in zip(Y2.T, inflated, strict=True)]
    assert_predicts(model.predict(state, XS), exact)
    assert_no_failure(state)


def test_krlst_drops_the_member_whose_removal_changes_the_mean_least():
    """The closed form against the removal of each member, the newcomer among them, from the dense matrices."""
    model = replace(WHOLE, dictionary=WARM)
    state = model._forget(model.init(X[:WARM], Y[:WARM, None]), jnp.ones(()))
    for x, y in zip(X[WARM:], Y[WARM:, None], strict=True):
        arrival = model._see(state, jnp.asarray(x), jnp.asarray(y))
        gain = arrival.e / arrival.s_y2
        mu = np.append(state.mu + gain * arrival.h, y - arrival.e + gain * arrival.s_f2)
        members = np.concatenate([state.points.U, x[None]])
        K = gram(members, members) + JITTER * VARIANCE * np.eye(WARM + 1)
        changes = []
        for m in range(WARM + 1):
            others = np.arange(WARM + 1) != m
            changes.append(abs(mu[m] - K[m, others] @ np.linalg.solve(K[np.ix_(others, others)], mu[others])))
        dropped = int(np.argmin(changes))
        state = model.update(state, x, y)
        left = members[dropped]
        assert not np.any(np.all(np.asarray(state.points.U) == left, axis=1))


def test_krlsts_recursive_inverse_stays_an_inverse():
    T, targets = toy_streams([0])
    model = KRLST(SE(0.3), noise=0.04, dictionary=7, warmup_iterations=0)
    state = model.init(T, targets[0])
    np.testing.assert_allclose(np.asarray(state.Q) @ np.asarray(model._gram(state)), np.eye(7), atol=1e-6)
    assert np.linalg.eigvalsh(np.asarray(state.Sigma[0])).min() > 0.0


def test_krlst_goes_back_to_the_prior_in_silence():
    model = replace(WHOLE, forgetting=np.asarray(0.9), estimate_scale=True)
    silent = model.update(through(model), XS[0], [np.nan, np.nan], elapsed=1e5)
    prediction = model.predict(silent, XS)
    np.testing.assert_allclose(prediction.mean, 0.0, atol=1e-10)
    np.testing.assert_allclose(prediction.variance, np.broadcast_to(VARIANCE + NOISE, (5, 2)), rtol=1e-5)


def test_krlst_on_the_toy_stream():
    """At the best λ of three; with the hyperparameters of the warm-up it pays for having learned them too early."""
    given = [KRLST(SE(0.3), noise=0.04, forgetting=f, warmup_iterations=0) for f in (0.98, 0.99, 0.995)]
    best = min(mean_score(model)[0] for model in given)
    assert best <= 0.075
    assert mean_score(KRLST(forgetting=0.98), seeds=3)[0] <= 0.085


# ---- other units -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [FIXED, ON_GRID, WHOLE], ids=["OSGP", "WISKI", "KRLS-T"])
def test_targets_in_other_units_are_predicted_in_them(model):
    """With inputs as they were, a change of the targets' scale changes the mean alone: hyperparameters are shares."""
    state = through(model)
    units = Units(np.zeros(2), np.ones(2), np.zeros(2), np.array([2.0, 5.0]))
    rescaled = jax.jit(model.rescale)(state, units)
    one, other = model.predict(state, XS), model.predict(rescaled, XS)
    np.testing.assert_allclose(other.mean * units.y_scale, one.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(other.variance, one.variance, rtol=1e-6)


@pytest.mark.parametrize("model", [FIXED, ON_GRID, WHOLE], ids=["OSGP", "WISKI", "KRLS-T"])
def test_a_change_of_units_there_and_back_changes_nothing(model):
    state = through(model)
    there = Units(np.array([3.0, -1.0]), np.array([0.5, 4.0]), np.array([1.0, 2.0]), np.array([2.0, 5.0]))
    back = Units(-there.x_centre / there.x_scale, 1 / there.x_scale, -there.y_centre / there.y_scale, 1 / there.y_scale)
    rescale = jax.jit(model.rescale)
    one, other = model.predict(state, XS), model.predict(rescale(rescale(state, there), back), XS)
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
