"""The rivals that keep a window, against theory: what each must equal, and where."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the rivals need JAX: pip install 'driftgp[rivals]'")

import equinox as eqx
import jax
import jax.numpy as jnp

from driftgp.kernels import SE, Matern32
from driftgp.models.model import Units
from driftgp.rivals import AGPVSI, DTC, FITC, SVGP, WVSGP, ExactWindow, exact_window, svgp, variational, vsi
from driftgp.rivals import jax_bound as bound
from driftgp.rivals.jax_inducing import Inducing
from driftgp.rivals.jax_kernels import register
from driftgp.rivals.jax_learning import Hyperparameters
from driftgp.rivals.jax_window import Window
from driftgp.rivals.variational import Whitened
from driftgp.rivals.windowed import points_of
from tests import dense_reference as dense
from tests.rival_tools import double_precision, rescaled, with_tree

__all__ = ["double_precision"]  # a fixture

T, M = 12, 4
RNG = np.random.default_rng(7)
X = RNG.uniform(-1.0, 1.0, size=(T, 2))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=T)
Y2 = np.stack([Y, 2.0 - Y**2], 1)
XS = RNG.uniform(-1.5, 1.5, size=(5, 2))
U = RNG.uniform(-1.0, 1.0, size=(M, 2))
LAMBDA, NOISE = 0.93, 0.17
KERNEL = Matern32([0.7, 1.3], 1.6)
register(KERNEL)
# as it is started, without a climb
FIXED: dict[str, Any] = {"noise": NOISE, "window": T, "warmup_iterations": 0, "jitter": 0.0}
WEIGHTS = LAMBDA ** np.arange(T - 1.0, -1.0, -1.0)


ELBO, BOUND, EVIDENCE = jax.jit(variational.elbo), jax.jit(bound.bound), jax.jit(exact_window.evidence)
OBJECTIVE = jax.jit(lambda model, h, points, memory: model.objective(h, points, memory))
FINISH = jax.jit(lambda model, tree: model.finish(tree))


def gram(A, B):
    return dense.gram(dense.matern32([0.7, 1.3], 1.6), A, B)


def collapsed(noise, w=WEIGHTS):
    return BOUND(KUU, bound.statistics(KUX, np.diag(KXX), w, Y2), noise)


KXX, KXS, KSS, KUU, KUX, KUS = gram(X, X), gram(X, XS), gram(XS, XS), gram(U, U), gram(U, X), gram(U, XS)
ROOT = np.linalg.inv(np.linalg.cholesky(KUU))


def assert_predicts(prediction, latent, noise=NOISE):
    np.testing.assert_allclose(prediction.mean, latent.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(prediction.variance, np.diag(latent.covariance) + noise, rtol=1e-8)


def window_of(w=WEIGHTS, y=Y2):
    return Window(X=jnp.asarray(X), y=jnp.asarray(y), w=jnp.asarray(w), cursor=jnp.zeros((), jnp.int32))


# ---- the exact process on the window -----------------------------------------------------------------------


@pytest.mark.parametrize("forgetting", [1.0, LAMBDA])
def test_exact_window_is_scikit_learns_process_with_inflated_noise(forgetting):
    gaussian_process = pytest.importorskip("sklearn.gaussian_process", reason="scikit-learn is not installed")
    kernels = gaussian_process.kernels
    model = ExactWindow(KERNEL, forgetting=forgetting, **FIXED)
    prediction = model.predict(model.init(X, Y), XS)
    theirs = gaussian_process.GaussianProcessRegressor(
        kernels.ConstantKernel(1.6) * kernels.Matern([0.7, 1.3], nu=1.5),
        alpha=NOISE / forgetting ** np.arange(T - 1.0, -1.0, -1.0),
        optimizer=None,
    ).fit(X, Y)
    mean, std = theirs.predict(XS, return_std=True)
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(prediction.variance, std**2 + NOISE, rtol=1e-8)


def test_exact_window_forgets_what_has_left_the_window_and_ages_the_rest():
    """Updates with gaps of any length, frozen hyperparameters: the dense posterior of the last T with their ages."""
    model = ExactWindow(KERNEL, forgetting=LAMBDA, **FIXED | {"window": 6}, rate=1e-300)
    elapsed = np.array([1.0, 0.5, 2.0, 0.0, 3.0, 1.0, 1.0, 0.7])
    state = model.update(model.init(X[:4], Y[:4]), X[4:], Y[4:], elapsed)
    times = np.concatenate([np.arange(4.0), 3.0 + np.cumsum(elapsed)])
    w = dense.weights(times, times[-1], LAMBDA, 6)
    assert_predicts(model.predict(state, XS), dense.weighted_exact_posterior(KXX, KXS, KSS, w, Y, NOISE))


def test_exact_evidence_is_the_dense_one_and_empty_slots_change_nothing():
    memory = window_of(np.where(np.arange(T) % 4 == 1, 0.0, WEIGHTS), Y[:, None])
    h = Hyperparameters(KERNEL, jnp.array([NOISE]))
    value = EVIDENCE(*exact_window.whitened(h, memory), jnp.sum(memory.w), h.noise)
    np.testing.assert_allclose(value, dense.weighted_evidence(KXX, np.asarray(memory.w), Y, NOISE), rtol=1e-11)


def test_exact_evidence_has_the_derivative_of_autodiff():
    """The rule by hand against plain differentiation of log N(z | 0, K̃ + σ²I), for two outputs of unequal noise."""
    noise, root = jnp.array([0.17, 0.9]), np.sqrt(WEIGHTS)

    def plain(K, z, n, noise):
        def one(z, noise):
            L = jnp.linalg.cholesky(jnp.eye(T) + K / noise)
            half = jnp.linalg.solve(L, z)
            return -0.5 * n * jnp.log(2 * jnp.pi * noise) - jnp.sum(jnp.log(jnp.diag(L))) - 0.5 * half @ half / noise

        return sum(one(z[:, p], noise[p]) for p in range(2))

    arguments = root[:, None] * KXX * root, root[:, None] * Y2, jnp.sum(WEIGHTS), noise
    ours, theirs = (jax.jit(jax.value_and_grad(f, argnums=(0, 1, 2, 3)))(*arguments) for f in (EVIDENCE, plain))
    symmetric = lambda K: K + K.T  # noqa: E731  (K̃ is symmetric: only that part of its derivative means anything)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-11)
    np.testing.assert_allclose(symmetric(ours[1][0]), symmetric(theirs[1][0]), rtol=1e-8, atol=1e-9)
    for one, other in zip(ours[1][1:], theirs[1][1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)


def test_outputs_that_share_a_window_are_each_alone():
    model = ExactWindow(KERNEL, forgetting=LAMBDA, **FIXED)
    both = model.predict(model.init(X, Y2), XS)
    for p in range(2):
        alone = model.predict(model.init(X, Y2[:, p]), XS)
        np.testing.assert_allclose(both.mean[:, p], alone.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(both.variance[:, p], alone.variance, rtol=1e-9)


# ---- an explicit q -----------------------------------------------------------------------------------------


def optimal_q(w=WEIGHTS, y=Y2, noise=(NOISE, 0.6)):
    """The collapsed optimum by dense algebra: S = (I + β A W Aᵀ)⁻¹, m = β S A W y; R lower triangular."""
    A = ROOT @ KUX
    S = [np.linalg.inv(np.eye(M) + A @ np.diag(w) @ A.T / sigma2) for sigma2 in noise]
    m = np.stack([S[p] @ A @ (w * y[:, p]) / sigma2 for p, sigma2 in enumerate(noise)], 1)
    return Whitened(jnp.asarray(m), jnp.asarray(np.linalg.cholesky(np.stack(S))))


def test_vsi_at_its_optimum_is_the_collapsed_bound():
    noise = jnp.array([NOISE, 0.6])
    value = ELBO(optimal_q(), ROOT @ KUX, np.diag(KXX), WEIGHTS, Y2, noise)
    np.testing.assert_allclose(value, collapsed(noise), rtol=1e-10)


def test_vsi_at_its_optimum_cannot_climb():
    noise = jnp.array([NOISE, 0.6])
    A, q = ROOT @ KUX, optimal_q()
    gradient = jax.jit(jax.grad(variational.elbo))(q, A, np.diag(KXX), WEIGHTS, Y2, noise)
    np.testing.assert_allclose(gradient.m, 0.0, atol=1e-9)
    np.testing.assert_allclose(jnp.tril(gradient.R), 0.0, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_no_q_is_above_the_collapsed_bound(seed):
    rng = np.random.default_rng(seed)
    R = np.tril(rng.normal(size=(2, M, M))) + np.eye(M)
    noise = jnp.array([NOISE, 0.6])
    q = Whitened(jnp.asarray(rng.normal(size=(M, 2))), jnp.asarray(R))
    assert ELBO(q, ROOT @ KUX, np.diag(KXX), WEIGHTS, Y2, noise) <= collapsed(noise)


@pytest.mark.parametrize(("make", "forgetting"), [(WVSGP, 1.0), (AGPVSI, LAMBDA)])
def test_vsi_with_the_optimal_q_predicts_as_the_collapsed_posterior(make, forgetting):
    settings = {} if make is WVSGP else {"forgetting": LAMBDA}
    model = make(KERNEL, inducing=M, inducing_inputs=U, **FIXED, **settings)
    state = model.init(X, Y2)
    w = forgetting ** np.arange(T - 1.0, -1.0, -1.0)
    np.testing.assert_allclose(state.window.w, w, rtol=1e-12)
    q = optimal_q(w, noise=(NOISE, NOISE))
    free = (state.fit.free[0], q.m, vsi.unwhitened(q.R))
    tree = FINISH(model, replace(state.tree, fit=replace(state.fit, free=free)))
    prediction = model.predict(with_tree(state, tree), XS)
    for p in range(2):
        latent = dense.sparse_posterior(KUU, KUX, KUS, KSS, w, Y2[:, p], NOISE)
        np.testing.assert_allclose(prediction.mean[:, p], latent.mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(prediction.variance[:, p], np.diag(latent.covariance) + NOISE, rtol=1e-8)


def test_vsi_climbs_towards_the_collapsed_bound():
    """Many iterations on an unchanging window: q's own bound comes up to the collapsed one at the same parameters."""
    model = AGPVSI(SE(0.8), inducing=M, inducing_inputs=U, noise=NOISE, window=T, warmup_iterations=1500)
    state = model.init(X, Y)

    @jax.jit
    def both(state):
        h, w, y = state.hyperparameters, state.window.w, state.window.y
        Kuu, Kux = model.grams(h, points_of(state.fit), state.window.X)
        kxx, A = h.kernel(state.window.X), variational.inverse_root(Kuu) @ Kux
        elbo = variational.elbo(vsi.whitened(state.fit.free), A, kxx, w, y, h.noise)
        return elbo, bound.bound(Kuu, bound.statistics(Kux, kxx, w, y), h.noise)

    value, best = both(state.tree)
    assert best - 0.1 < value <= best + 1e-6


def test_the_predictive_score_is_the_log_density_of_the_forecast():
    mean, variance = jnp.array([[0.3]]), jnp.array([[0.8]])
    value = variational.predictive_log_likelihood(mean, variance, jnp.array([[1.1]]), jnp.array([0.2]))
    np.testing.assert_allclose(value, jax.scipy.stats.norm.logpdf(1.1, 0.3, 1.0), rtol=1e-12)


def test_inverse_root_has_the_derivative_of_autodiff():
    stack = jnp.stack([KUU, KUU @ KUU + jnp.eye(M)])
    cotangent = jnp.asarray(np.tril(RNG.normal(size=stack.shape)))

    def plain(K):
        return jnp.linalg.inv(jnp.linalg.cholesky(K, symmetrize_input=True))

    ours, theirs = (
        jax.jit(lambda stack, f=f: jax.vjp(f, stack)[1](cotangent)[0])(stack) for f in (variational.inverse_root, plain)
    )
    np.testing.assert_allclose(ours, 0.5 * (theirs + theirs.mT), rtol=1e-8, atol=1e-10)


def test_natural_parameters_go_there_and_back():
    q = optimal_q()
    back = variational.from_natural(variational.to_natural(q.m, q.R @ q.R.mT))
    np.testing.assert_allclose(back.m, q.m, rtol=1e-9)
    np.testing.assert_allclose(back.R @ back.R.mT, q.R @ q.R.mT, rtol=1e-9, atol=1e-12)


# ---- inducing points that come and go with an explicit q ---------------------------------------------------


def values_of(m, S, Z):
    """Mean and covariance of the values at the inducing inputs Z, for one output."""
    L = np.linalg.cholesky(gram(Z, Z))
    return L @ m[:, 0], L @ S[0] @ L.T


def test_a_renewed_point_leaves_what_is_known_of_the_others():
    q, after = optimal_q(), np.concatenate([U[1:], X[:1]])
    inverse = np.linalg.inv(np.linalg.cholesky(gram(after, after)))
    m, S = jax.jit(variational.carry_over)(q, np.linalg.cholesky(KUU), inverse)
    before, covariance = values_of(q.m, q.R @ q.R.mT, U)
    now, now_covariance = values_of(m, S, after)
    np.testing.assert_allclose(now[:-1], before[1:], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(now_covariance[:-1, :-1], covariance[1:, 1:], rtol=1e-8, atol=1e-10)
    project = np.linalg.solve(gram(after[:-1], after[:-1]), gram(after[:-1], X[:1]))[:, 0]
    np.testing.assert_allclose(now[-1], project @ now[:-1], rtol=1e-8)  # the new value follows from the others


@pytest.mark.parametrize("make", [AGPVSI, SVGP])
def test_the_newest_sample_becomes_an_inducing_input_when_it_is_time(make):
    model = make(KERNEL, inducing=M, inducing_inputs=U, renew=2, rate=1e-300, iterations=1, **FIXED)
    state = model.init(X[:10], Y[:10])
    once = model.update(state, X[10], Y[10])
    twice = model.update(once, X[11], Y[11])
    np.testing.assert_array_equal(points_of(once.fit).U, U)
    np.testing.assert_array_equal(points_of(twice.fit).U, np.concatenate([U[1:], X[11:]]))


@pytest.mark.parametrize("make", [FITC, AGPVSI, SVGP])
def test_a_cold_start_fills_the_slots_with_samples_that_are_new(make):
    model = make(SE(0.3), inducing=M, rate=1e-300, iterations=1, renew=0, **FIXED | {"jitter": None})
    state = model.init(X[:0], Y[:0])
    state = model.update(state, X[0], Y[0])
    state = model.update(state, X[0], Y[1])  # the same again: nothing new
    state = model.update(state, X[1], Y[1])
    assert int(points_of(state.fit).count) == 2
    np.testing.assert_array_equal(points_of(state.fit).U[:2], X[:2])
    state = model.update(state, X[2:], Y[2:])
    assert int(points_of(state.fit).count) == M


# ---- mini-batches ------------------------------------------------------------------------------------------


def test_svgp_with_the_whole_window_and_a_full_step_is_the_collapsed_posterior():
    settings = FIXED | {"warmup_iterations": 1}
    model = SVGP(KERNEL, inducing=M, inducing_inputs=U, batch=T, natural_rate=1.0, warmup_rate=1e-300, **settings)
    prediction = model.predict(model.init(X, Y), XS)
    assert_predicts(prediction, dense.sparse_posterior(KUU, KUX, KUS, KSS, np.ones(T), Y, NOISE))


def test_a_batch_as_large_as_the_window_is_the_window():
    memory = window_of(np.where(np.arange(T) < 3, 0.0, WEIGHTS))
    batch = svgp.draw(jax.random.PRNGKey(3), memory, T)
    np.testing.assert_allclose(jnp.sum(batch.w), jnp.sum(memory.w), rtol=1e-12)
    np.testing.assert_allclose(batch.w @ batch.y, memory.w @ memory.y, rtol=1e-12)


def test_mini_batches_estimate_sums_over_the_window_without_bias():
    memory = window_of(np.where(np.arange(T) < 3, 0.0, WEIGHTS))
    keys = jax.random.split(jax.random.PRNGKey(0), 20_000)

    def estimate(key):
        batch = svgp.draw(key, memory, 4)
        return batch.w @ batch.y

    sums = jax.jit(jax.vmap(estimate))(keys)
    error = jnp.std(sums, 0) / len(keys) ** 0.5
    assert np.all(np.abs(jnp.mean(sums, 0) - memory.w @ memory.y) < 5.0 * error)


def test_no_sample_is_twice_in_a_mini_batch():
    batch = svgp.draw(jax.random.PRNGKey(5), window_of(), 6)
    assert len(np.unique(np.asarray(batch.X), axis=0)) == 6


def test_another_seed_draws_other_batches_and_the_same_seed_the_same():
    settings: dict[str, Any] = {"inducing": M, "batch": 4, "window": T, "warmup_iterations": 3}
    means = [(model := SVGP(KERNEL, seed=seed, **settings)).predict(model.init(X, Y), XS).mean for seed in (0, 0, 1)]
    np.testing.assert_array_equal(means[0], means[1])
    assert not np.allclose(means[0], means[2])


# ---- FITC and DTC ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [FITC, DTC])
@pytest.mark.parametrize("forgetting", [1.0, LAMBDA])
def test_inducing_points_at_all_samples_give_the_exact_process(make, forgetting):
    model = make(KERNEL, inducing=T, inducing_inputs=X, forgetting=forgetting, **FIXED)
    state = model.init(X, Y)
    w = np.asarray(state.window.w)
    assert_predicts(model.predict(state, XS), dense.weighted_exact_posterior(KXX, KXS, KSS, w, Y, NOISE))
    evidence = OBJECTIVE(model, state.hyperparameters, points_of(state.fit), state.window)
    np.testing.assert_allclose(evidence, dense.weighted_evidence(KXX, w, Y, NOISE), rtol=1e-9)


@pytest.mark.parametrize("make", [FITC, DTC])
def test_the_evidence_is_that_of_the_approximate_prior(make):
    """log N(y | 0, Q + D + σ²W⁻¹) with dense matrices, D = diag(Kxx − Q) for FITC and 0 for DTC."""
    model = make(KERNEL, inducing=M, inducing_inputs=U, forgetting=LAMBDA, **FIXED)
    state = model.init(X, Y)
    Q = dense.nystrom(KUU, KUX)
    D = np.diag(np.diag(KXX - Q)) if make is FITC else 0.0
    evidence = OBJECTIVE(model, state.hyperparameters, points_of(state.fit), state.window)
    np.testing.assert_allclose(evidence, dense.weighted_evidence(Q + D, WEIGHTS, Y, NOISE), rtol=1e-9)
    Qxs, Qss = KUX.T @ np.linalg.solve(KUU, KUS), dense.nystrom(KUU, KUS)
    latent = dense.weighted_exact_posterior(Q + D, Qxs, Qss, WEIGHTS, Y, NOISE)
    latent = latent._replace(covariance=latent.covariance + KSS - Qss)
    assert_predicts(model.predict(state, XS), latent)


def test_dtc_is_the_variational_bound_without_its_trace():
    model = DTC(KERNEL, inducing=M, inducing_inputs=U, forgetting=LAMBDA, **FIXED)
    state = model.init(X, Y2)
    terms = bound.terms(KUU, bound.statistics(KUX, np.diag(KXX), WEIGHTS, Y2), state.hyperparameters.noise)
    evidence = OBJECTIVE(model, state.hyperparameters, points_of(state.fit), state.window)
    np.testing.assert_allclose(evidence, sum(terms) - terms.trace, rtol=1e-10)


@pytest.mark.parametrize("make", [FITC, DTC])
def test_the_evidence_has_the_derivative_of_finite_differences(make):
    model = make(KERNEL, inducing=M, inducing_inputs=U, forgetting=LAMBDA, **FIXED)
    state = model.init(X, Y2)

    @jax.jit
    def evidence(U, noise):
        h = Hyperparameters(KERNEL, noise)
        return model.objective(h, Inducing(U, jnp.ones(M, bool)), state.window)

    noise, step = jnp.array([NOISE, 0.6]), 1e-6
    dU, dnoise = jax.grad(evidence, argnums=(0, 1))(U, noise)
    along, direction = RNG.normal(size=U.shape), RNG.normal(size=2) * 0.1
    forward, backward = (evidence(U + s * along, noise + s * direction) for s in (step, -step))
    expected = jnp.sum(dU * along) + dnoise @ direction
    np.testing.assert_allclose((forward - backward) / (2 * step), expected, rtol=1e-6)


# ---- what wrappers need ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [FITC, AGPVSI, SVGP, ExactWindow])
def test_units_that_do_not_change_change_nothing(make):
    model = make(KERNEL, window=T, warmup_iterations=3)
    state = model.init(X, Y)
    same = Units(np.zeros(2), np.ones(2), np.zeros(1), np.ones(1))
    moved = rescaled(model, state, same)
    np.testing.assert_allclose(model.predict(moved, XS).mean, model.predict(state, XS).mean, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("make", [FITC, AGPVSI, SVGP, ExactWindow])
def test_a_shift_of_the_inputs_shifts_the_predictions(make):
    """A stationary kernel knows no origin: with shifted units, shifted inputs are predicted as before."""
    model = make(KERNEL, window=T, warmup_iterations=3)
    state = model.init(X, Y)
    shifted = Units(np.array([0.3, -2.0]), np.ones(2), np.zeros(1), np.full(1, 2.0))
    prediction = model.predict(rescaled(model, state, shifted), XS - np.array([0.3, -2.0]))
    np.testing.assert_allclose(2.0 * prediction.mean, model.predict(state, XS).mean, rtol=1e-6, atol=1e-8)


# ---- settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (ExactWindow, {"window": 0}, "window must be a whole number of at least 1"),
        (ExactWindow, {"forgetting": 1.5}, "forgetting must lie in"),
        (ExactWindow, {"forgetting": 0.9, "attenuation": 0.1}, "not both"),
        (AGPVSI, {"score": "best"}, "score must be one of"),
        (WVSGP, {"iterations": 0}, "iterations must be a whole number"),
        (SVGP, {"natural_rate": 0.0}, "natural_rate must lie in"),
        (SVGP, {"seed": 1.5}, "seed must be a whole number"),
        (FITC, {"inducing": 2, "inducing_inputs": U}, "inducing_inputs must have at most"),
        (DTC, {"renew": -1}, "renew must be a whole number"),
    ],
)
def test_bad_settings_are_refused_by_name(make, settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings)


def test_the_window_of_w_vsgp_does_not_forget_unless_told_to():
    assert float(WVSGP().forgetting) == 1.0
    assert float(SVGP().forgetting) == 1.0
    assert float(WVSGP(forgetting=0.9).forgetting) == 0.9
    assert eqx.tree_equal(AGPVSI(), AGPVSI(attenuation=0.1))
