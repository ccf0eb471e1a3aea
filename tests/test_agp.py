"""AGP, fast-AGP and the hybrid: against the dense reference, the published runs, and each other."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tinygp

from driftgp import bound, evaluate
from driftgp.agp import AGP, FastAGP
from driftgp.kernels import SE, Matern12, Matern32
from driftgp.settings import default_jitter
from tests import dense_reference as dense

M, T, N = 4, 12, 40
RNG = np.random.default_rng(99)
X = RNG.uniform(size=(N, 2))
Y = np.sin(5.0 * X[:, 0]) * (1.0 + X[:, 1]) + 0.1 * RNG.normal(size=N)
PROBES = RNG.uniform(size=(3, 2))
KERNEL = Matern32([0.5, 0.8], 1.9)
SMALL: dict[str, Any] = {"inducing": M, "window": T, "noise": 0.2, "warmup_iterations": 0}
JITTER = default_jitter(np.float64)


def assert_close(a, b, tolerance):
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def dense_forecast(model, state, X):
    """Mean and variance of a new y from the state's window, points and hyperparameters by dense matrices."""
    h, memory = state.hyperparameters, state.window
    U = np.asarray(state.points.U)[np.asarray(state.points.used)]
    with jax.enable_x64(True):
        gram = lambda A, B: np.asarray(h.kernel(np.asarray(A), np.asarray(B)))  # noqa: E731
        Kuu, Kux, Kus, Kss = gram(U, U), gram(U, memory.X), gram(U, X), gram(X, X)
    relative = JITTER if model.jitter is None else float(model.jitter)
    Kuu = Kuu + (relative * np.mean(np.diag(Kuu)) + float(model.absolute_jitter)) * np.eye(len(U))
    moments = []
    for output, noise in enumerate(np.asarray(h.noise)):
        y = np.asarray(memory.y)[:, output]
        latent = dense.sparse_posterior(Kuu, Kux, Kus, Kss, np.asarray(memory.w), y, noise)
        moments.append((latent.mean, np.diag(latent.covariance) + noise))
    return np.stack([mean for mean, _ in moments], 1), np.stack([variance for _, variance in moments], 1)


# ---- theory ------------------------------------------------------------------------------------------------


def test_without_forgetting_and_with_a_full_window_it_is_titsias():
    U = PROBES + 0.1
    model = FastAGP(kernel=KERNEL, **SMALL | {"window": N}, forgetting=1.0, jitter=0.0, inducing_inputs=U)
    state = model.init(X, Y)
    formula = dense.matern32([0.5, 0.8], 1.9)
    gram = partial(dense.gram, formula)
    Kuu, Kux, kxx = gram(U, U), gram(U, X), dense.diagonal(formula, X)
    np.testing.assert_allclose(_bound_of(model, state), dense.titsias_bound(Kuu, Kux, kxx, Y, 0.2), rtol=1e-8)
    latent = dense.sparse_posterior(Kuu, Kux, gram(U, PROBES), gram(PROBES, PROBES), np.ones(N), Y, 0.2)
    prediction = model.predict(state, PROBES)
    np.testing.assert_allclose(prediction.mean, latent.mean, rtol=1e-8)
    np.testing.assert_allclose(prediction.variance, np.diag(latent.covariance) + 0.2, rtol=1e-8)


def _bound_of(model, state):
    with jax.enable_x64(True):
        return float(model.evidence_bound(state))


def test_with_an_inducing_point_on_every_sample_it_is_the_exact_process():
    model = FastAGP(
        kernel=Matern12(0.5, 1.9),
        **SMALL | {"window": N, "inducing": N},
        forgetting=0.97,
        jitter=0.0,
        inducing_inputs=X,
    )
    state = model.init(X, Y)
    gram = partial(dense.gram, dense.matern12(0.5, 1.9))
    w = 0.97 ** np.arange(N - 1.0, -1.0, -1.0)
    np.testing.assert_allclose(_bound_of(model, state), dense.weighted_evidence(gram(X, X), w, Y, 0.2), rtol=1e-8)
    exact = dense.weighted_exact_posterior(gram(X, X), gram(X, PROBES), gram(PROBES, PROBES), w, Y, 0.2)
    prediction = model.predict(state, PROBES)
    np.testing.assert_allclose(prediction.mean, exact.mean, rtol=1e-8)
    np.testing.assert_allclose(prediction.variance, np.diag(exact.covariance) + 0.2, rtol=1e-8)


@pytest.mark.parametrize("learn_every", [1, 0, 3])
def test_after_any_history_the_forecast_is_that_of_its_window(learn_every):
    """Samples, gaps, pauses, points that came and went: mean and variance are the dense ones of what is left."""
    model = AGP(KERNEL, **SMALL, learn_every=learn_every)
    y, elapsed = Y.copy(), np.ones(N)
    y[[3, 13, 14, 20, 37]], elapsed[[15, 38]] = np.nan, 2.5
    state = model.update(model.init(X[:T], y[:T]), X[T:], y[T:], elapsed[T:])
    prediction = model.predict(state, PROBES)
    mean, variance = dense_forecast(model, state, PROBES)
    np.testing.assert_allclose(prediction.mean, mean[:, 0], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(prediction.variance, variance[:, 0], rtol=1e-7)
    times = np.cumsum(elapsed)[~np.isnan(y)]
    w = dense.weights(times, elapsed.sum(), float(model.forgetting), T)[-T:]
    np.testing.assert_allclose(np.sort(state.window.w), np.sort(w), rtol=1e-12)


def test_order_of_inducing_points_changes_nothing_under_leave_one_out():
    runs = []
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        U = np.array([[0.1, 0.1], [0.1, 0.9], [0.9, 0.1], [0.8, 0.8]])[order]
        model = AGP(KERNEL, **SMALL, inducing_inputs=U)
        runs.append(evaluate.prequential(model, model.init(X[:T], Y[:T]), X[T:], Y[T:]).prediction)
    assert_close(*runs, 1e-6)


# ---- the gradient step -------------------------------------------------------------------------------------


def dense_climb(state, theta, x):
    """F of log parameters and the newest point, by N×N matrices, for a state's window and other points."""
    memory = state.window
    kernel = Matern32(jnp.exp(theta[:2]), jnp.exp(theta[2]))
    noise = jnp.exp(theta[3])
    U = jnp.concatenate([state.points.U[: M - 1], x[None]])
    Kuu, Kux = kernel(U, U), kernel(U, memory.X)
    Q = Kux.T @ jnp.linalg.solve(Kuu + JITTER * jnp.exp(theta[2]) * jnp.eye(M), Kux)
    w, y = memory.w, memory.y[:, 0]
    covariance = Q + jnp.diag(noise / w)
    fit = -0.5 * (jnp.linalg.slogdet(covariance)[1] + y @ jnp.linalg.solve(covariance, y))
    return (
        fit
        - 0.5 * jnp.sum((w - 1.0) * jnp.log(noise))
        - 0.5 / noise * jnp.sum(w * (kernel(memory.X) - jnp.diagonal(Q)))
    )


@pytest.fixture(scope="module")
def climbed():
    """A state before and after an update whose step is plain gradient ascent, and the gradient by dense matrices."""
    rate = 1e-3
    model = AGP(KERNEL, **SMALL, optimizer=optax.sgd(rate))
    before = model.init(X[:T], Y[:T])
    after = model.update(before, X[T], Y[T])
    with jax.enable_x64(True):
        theta = jnp.log(jnp.array([0.5, 0.8, 1.9, 0.2]))
        gradient = jax.jit(jax.grad(dense_climb, argnums=(1, 2)))(after, theta, jnp.asarray(X[T]))
    return after, np.asarray(theta), np.asarray(gradient[0]), np.asarray(gradient[1]), rate


def log_parameters(state):
    h = state.hyperparameters
    return np.log(np.concatenate([h.kernel.lengthscale, [h.kernel.variance], h.noise]))


def test_a_step_is_the_gradient_of_the_bound_by_log_parameters_and_the_newest_point(climbed):
    after, theta, by_theta, by_x, rate = climbed
    np.testing.assert_allclose((log_parameters(after) - theta) / rate, by_theta, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose((np.asarray(after.points.U[M - 1]) - X[T]) / rate, by_x, rtol=1e-6, atol=1e-8)


def test_the_published_step_is_of_one_size_in_the_gradient_s_direction(climbed):
    """Adam afresh at every sample divides the gradient by its own size."""
    _, theta, by_theta, by_x, _ = climbed
    model = AGP(KERNEL, **SMALL)
    after = model.update(model.init(X[:T], Y[:T]), X[T], Y[T])
    np.testing.assert_allclose(log_parameters(after) - theta, 0.05 * np.sign(by_theta), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(after.points.U[M - 1]) - X[T], 0.05 * np.sign(by_x), rtol=1e-5)


@pytest.mark.parametrize("largest", [10.0, 0.01])
def test_a_natural_step_is_the_gradient_over_the_samples_information_within_a_limit(climbed, largest):
    """And leaves the newest point at its sample."""
    _, theta, by_theta, _, _ = climbed
    model = AGP(KERNEL, **SMALL, natural=0.7, rate=largest, prior=3.0)
    after = model.update(model.init(X[:T], Y[:T]), X[T], Y[T])  # at its centre the prior adds nothing to the gradient
    n = np.sum(np.asarray(after.window.w))
    step = np.clip(0.7 * by_theta / (n / 2 + 1 / 9), -largest, largest)
    np.testing.assert_allclose(log_parameters(after) - theta, step, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(np.asarray(after.points.U[M - 1]), X[T])


def test_the_other_points_stay_where_they_are():
    model = AGP(KERNEL, **SMALL)
    before = model.init(X[:T], Y[:T])
    after = model.update(before, X[T], Y[T])
    old = {tuple(u) for u in np.asarray(before.points.U)}
    assert all(tuple(u) in old for u in np.asarray(after.points.U[: M - 1]))


def test_more_iterations_climb_higher():
    bounds = []
    for iterations in (1, 20):
        model = AGP(KERNEL, **SMALL, iterations=iterations)
        bounds.append(_bound_of(model, model.update(model.init(X[:T], Y[:T]), X[T], Y[T])))
    assert bounds[1] > bounds[0]


def test_a_step_that_is_not_finite_is_left_out_and_counted():
    """A target whose square overflows makes F infinite; the hyperparameters stay, and it passes with the window."""
    model = AGP(KERNEL, **SMALL)
    before = model.init(X[:T], Y[:T])
    struck = model.update(before, X[T], 1e200)
    assert int(struck.skipped) == 1
    assert_close(struck.hyperparameters, before.hyperparameters, 1e-14)
    assert np.all(np.isfinite(model.predict(struck, PROBES).mean))
    recovered = model.update(struck, X[T:], Y[T:])
    assert int(recovered.skipped) == T, "every step with that sample in the window, and none after it"
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(recovered))
    assert not np.allclose(recovered.hyperparameters.noise, before.hyperparameters.noise)


def test_fast_agp_recovers_from_a_target_whose_square_overflows():
    model = FastAGP(kernel=KERNEL, **SMALL)
    state = model.update(model.init(X[:T], Y[:T]), X[T], 1e200)
    recovered = model.update(state, X[T:], Y[T:])
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(recovered))


@pytest.mark.parametrize("learn_every", [1, 0])
def test_a_matrix_beyond_repair_by_jitter_is_repaired_and_counted(learn_every):
    """Four times the same point and no jitter at all."""
    model = AGP(SE(0.5, 1.9), **SMALL, learn_every=learn_every, jitter=0.0, inducing_inputs=np.repeat(X[:1], M, axis=0))
    state = model.init(X[:T], Y[:T])
    assert int(state.repaired) > 0
    state = model.update(state, X[T], Y[T])
    prediction = model.predict(state, PROBES)
    assert np.all(np.isfinite(prediction.mean))
    assert np.all(prediction.variance > 0.0)


def test_a_healthy_run_repairs_and_skips_nothing():
    model = AGP(KERNEL, **SMALL)
    state = model.update(model.init(X[:T], Y[:T]), X[T:], Y[T:])
    assert (int(state.skipped), int(state.repaired), int(state.samples)) == (0, 0, N - T)


# ---- settings that meet ------------------------------------------------------------------------------------


def test_the_pull_of_one_wild_target_is_limited():
    """A wild one enters with the weight of a Student law, one within a standard deviation in full."""
    wary, plain = (AGP(KERNEL, **SMALL, learn_every=0, outliers=nu) for nu in (4.0, None))
    state = wary.init(X[:T], Y[:T])
    p = wary.predict(state, X[T : T + 1])
    wild = float(p.mean[0] + 30.0 * p.std[0])
    after = wary.update(state, X[T], wild)
    slot = int(state.window.cursor)
    np.testing.assert_allclose(after.window.w[slot], 5.0 / (4.0 + 900.0), rtol=1e-7)
    kept, moved = (model.predict(model.update(state, X[T], wild), X[T : T + 1]).mean[0] for model in (wary, plain))
    assert abs(kept - p.mean[0]) < 0.1 * abs(moved - p.mean[0])
    assert_close(wary.update(state, X[T], p.mean[0]), plain.update(state, X[T], p.mean[0]), 1e-12)
    assert_close(from_the_window(after), after.statistics, 1e-9)


def test_a_hybrid_learns_when_it_is_due():
    """It moves its hyperparameters at every third sample and at no other; a gap does not count as a sample."""
    model = AGP(KERNEL, **SMALL, learn_every=3)
    state = model.init(X[:T], Y[:T])
    moved = []
    for x, y in zip(X[T : T + 8], np.insert(Y[T : T + 7], 4, np.nan), strict=True):
        following = model.update(state, x, y)
        moved.append(bool(following.hyperparameters.noise[0] != state.hyperparameters.noise[0]))
        state = following
    assert moved == [False, False, True, False, False, False, True, False]


def test_a_hybrid_that_is_never_due_is_fast_agp():
    rare, fast = AGP(KERNEL, **SMALL, learn_every=1000), FastAGP(kernel=KERNEL, **SMALL)
    runs = [evaluate.prequential(m, m.init(X[:T], Y[:T]), X[T:], Y[T:]).prediction for m in (rare, fast)]
    assert_close(*runs, 1e-9)


def test_a_hybrid_s_due_step_is_that_of_agp():
    """From the same state, the step that is due is Algorithm 2's."""
    hybrid, agp = AGP(KERNEL, **SMALL, learn_every=2), AGP(KERNEL, **SMALL)
    state = hybrid.update(hybrid.init(X[:T], Y[:T]), X[T], Y[T])
    assert_close(hybrid.update(state, X[T + 1], Y[T + 1]), agp.update(state, X[T + 1], Y[T + 1]), 1e-9)


@pytest.mark.parametrize("forgetting", [1.0, 0.95])
def test_without_a_window_it_is_the_window_that_nothing_has_left(forgetting):
    """A fixed inducing set, and all samples still inside the window of the other."""
    U = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    options = SMALL | {"kernel": SE(2.0, 1.9), "forgetting": forgetting, "inducing_inputs": U, "threshold": 0.0}
    windowless, windowed = FastAGP(**options | {"window": None}), FastAGP(**options | {"window": N})
    runs = [evaluate.prequential(m, m.init(X[:T], Y[:T]), X[T:], Y[T:]) for m in (windowless, windowed)]
    np.testing.assert_array_equal(runs[1].state.points.U, U)
    assert_close(runs[0].prediction, runs[1].prediction, 1e-8)
    assert_close(runs[0].state.statistics, runs[1].state.statistics, 1e-10)


def test_forgetting_may_be_given_as_the_attenuation_at_the_window_s_end():
    assert float(AGP(window=100).forgetting) == pytest.approx(0.1**0.01)
    assert float(AGP(window=50, attenuation=0.3).forgetting) ** 50 == pytest.approx(0.3)
    assert float(AGP(forgetting=0.9).forgetting) == 0.9


def test_a_warm_up_longer_than_the_window_keeps_its_end():
    model = FastAGP(kernel=KERNEL, **SMALL)
    assert_close(model.init(X, Y), model.init(X[-T:], Y[-T:]), 1e-12)


def test_a_warm_up_learns():
    """Two hundred iterations raise the bound; moving the inducing inputs too raises it further."""
    bounds = {}
    for name, options in {
        "none": {"warmup_iterations": 0},
        "hyperparameters": {"warmup_iterations": 200},
        "all": {"warmup_iterations": 200, "learn_inducing": True},
    }.items():
        model = FastAGP(**SMALL | {"window": N, "kernel": KERNEL} | options)
        state = model.init(X, Y)
        bounds[name] = _bound_of(model, state)
        assert int(state.skipped) == 0
    assert bounds["none"] + 1.0 < bounds["hyperparameters"] < bounds["all"]


def test_the_smallest_sizes_work():
    """One inducing point; one sample, or two, since with one alone no newcomer is above fast-AGP's threshold κ/T."""
    for learn_every, size in ((1, 1), (0, 2)):
        model = AGP(KERNEL, inducing=1, window=size, noise=0.2, warmup_iterations=0, learn_every=learn_every)
        state = model.update(model.init(X[:0], Y[:0]), X[:5], Y[:5])
        prediction = model.predict(state, X[4:5])
        assert int(state.points.count) == 1
        np.testing.assert_allclose(prediction.mean, dense_forecast(model, state, X[4:5])[0][:, 0], rtol=1e-7)


# ---- outputs -----------------------------------------------------------------------------------------------


def test_outputs_share_the_points_and_are_otherwise_alone():
    """Without gradient steps, two outputs are two models on the same inputs."""
    pair = np.stack([Y, Y**2 - 1.0], 1)
    model = FastAGP(kernel=KERNEL, **SMALL | {"noise": [0.2, 0.7]})
    together = evaluate.prequential(model, model.init(X[:T], pair[:T]), X[T:], pair[T:]).prediction
    for output, noise in enumerate((0.2, 0.7)):
        alone = FastAGP(kernel=KERNEL, **SMALL | {"noise": noise})
        run = evaluate.prequential(alone, alone.init(X[:T], pair[:T, output]), X[T:], pair[T:, output])
        assert_close(jax.tree.map(lambda leaf, p=output: leaf[:, p], together), run.prediction, 1e-9)


def test_a_column_is_a_plain_target():
    model = AGP(KERNEL, **SMALL)
    plain = evaluate.prequential(model, model.init(X[:T], Y[:T]), X[T:], Y[T:]).prediction
    column = evaluate.prequential(model, model.init(X[:T], Y[:T, None]), X[T:], Y[T:, None]).prediction
    assert column.mean.shape == (N - T, 1)
    assert_close(jax.tree.map(lambda leaf: leaf[:, 0], column), plain, 1e-10)


# ---- kernels -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (SE(0.7, 1.9), 1.9 * tinygp.kernels.ExpSquared(0.7)),
        (Matern32(0.7, 1.9), 1.9 * tinygp.kernels.Matern32(0.7, tinygp.kernels.distance.L2Distance())),
    ],
    ids=["SE", "Matern32"],
)
def test_a_tinygp_kernel_is_used_and_learned_as_it_is(ours, theirs):
    runs = []
    for kernel in (ours, theirs):
        model = AGP(kernel, **SMALL | {"warmup_iterations": 5})
        runs.append(evaluate.prequential(model, model.init(X[:T], Y[:T]), X[T:], Y[T:]))
        assert int(runs[-1].state.skipped) == 0
    assert_close(runs[0].prediction, runs[1].prediction, 1e-6)
    learned = sorted(float(leaf) for leaf in jax.tree.leaves(runs[1].state.hyperparameters.kernel))
    expected = sorted(float(leaf) for leaf in jax.tree.leaves(runs[0].state.hyperparameters.kernel))
    np.testing.assert_allclose(learned, expected, rtol=1e-6)
    assert not np.allclose(learned, [0.7, 1.9])


@pytest.mark.parametrize("inputs", [1, 5])
def test_timestamps_change_nothing(inputs):
    """Inputs counted from 1970 in seconds, and from the first sample: the same predictions."""
    seconds = np.round(3600.0 * RNG.uniform(size=(N, inputs)))
    runs = []
    for origin in (0.0, 1.7e9):
        model = AGP(SE(1800.0), **SMALL)
        state = model.init(seconds[:T] + origin, np.where(np.arange(T) == 0, np.nan, Y[:T]))
        runs.append(evaluate.prequential(model, state, seconds[T:] + origin, Y[T:]).prediction)
    assert_close(*runs, 1e-5)


# ---- long runs ---------------------------------------------------------------------------------------------


def from_the_window(state):
    """Statistics recomputed from a state's own window."""
    h, memory = state.hyperparameters, state.window
    with jax.enable_x64(True):
        Kux = jnp.where(state.points.used[:, None], h.kernel(state.points.U, memory.X), 0.0)
        return bound.statistics(Kux, h.kernel(memory.X), memory.w, memory.y)


def relative_error(got, expected):
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True)
    return max(np.max(np.abs(np.asarray(a) - np.asarray(b))) / np.max(np.abs(b)) for a, b in pairs)


@pytest.fixture(scope="module")
def long_stream():
    """A walk that brings new inducing points all the time; its length ends a sample before the ring turns over."""
    rng = np.random.default_rng(5)
    steps = 100_000 // T * T + T - 1
    long_X = np.cumsum(rng.normal(scale=0.1, size=(steps, 2)), axis=0)
    return long_X, np.sin(long_X[:, 0]) + rng.normal(scale=0.1, size=steps)


@pytest.mark.parametrize("forgetting", [1.0, 0.83])
def test_the_recursion_is_a_recomputation_after_a_hundred_thousand_steps(long_stream, forgetting):
    model = FastAGP(kernel=KERNEL, **SMALL, forgetting=forgetting)
    state = model.update(model.init(X[:T], Y[:T]), *long_stream)
    assert int(state.samples) == len(long_stream[1])
    assert int(state.window.cursor) == T - 1, "as long ago as can be since the sums were last made anew"
    assert relative_error(state.statistics, from_the_window(state)) < 1e-8


def test_without_a_window_the_recursion_is_a_recomputation_after_a_hundred_thousand_steps(long_stream):
    """The last 400 samples carry all the weight there is: 0.9⁴⁰⁰ is 5e-19."""
    long_X, long_Y = np.tanh(long_stream[0]), long_stream[1]
    model = FastAGP(kernel=KERNEL, **SMALL | {"window": None}, forgetting=0.9)
    state = model.update(model.init(X[:T], Y[:T]), long_X, long_Y)
    w = 0.9 ** np.arange(399.0, -1.0, -1.0)
    with jax.enable_x64(True):
        Kux = KERNEL(state.points.U, long_X[-400:])
        expected = bound.statistics(Kux, KERNEL(long_X[-400:]), w, long_Y[-400:, None])
    assert relative_error(state.statistics, expected) < 1e-8
