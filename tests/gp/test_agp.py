"""AGP, fast-AGP and the hybrid: against the dense reference, the published runs, and each other."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from driftgp import evaluate
from driftgp.gp import bound
from driftgp.gp.agp import AGP, FastAGP
from driftgp.gp.settings import JITTER
from driftgp.kernels import SE, Matern12, Matern32
from driftgp.models.model import State
from tests import dense_reference as dense

M, T, N = 4, 12, 40
RNG = np.random.default_rng(99)
X = RNG.uniform(size=(N, 2))
Y = np.sin(5.0 * X[:, 0]) * (1.0 + X[:, 1]) + 0.1 * RNG.normal(size=N)
PROBES = RNG.uniform(size=(3, 2))
KERNEL = Matern32([0.5, 0.8], 1.9)
SMALL: dict[str, Any] = {"inducing": M, "window": T, "noise": 0.2, "warmup_iterations": 0}
pytestmark = pytest.mark.usefixtures("each_engine")


def assert_close(a, b, tolerance):
    """Two predictions, two states, or two tuples of arrays."""
    for one, other in zip(numbers(a), numbers(b), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def numbers(value):
    if isinstance(value, tuple):
        return value
    if hasattr(value, "record"):
        return tuple(value.record.reshape(1).view(np.float64))
    return value.mean, value.variance, value.noise


def kernel_of(state):
    return state.model.kernel.at(state.theta)


def dense_forecast(model, state, X):
    """Mean and variance of a new y from the state's window, points and hyperparameters by dense matrices."""
    kernel, U = kernel_of(state), state.U[: state.points]
    Kuu, Kux, Kus, Kss = kernel(U, U), kernel(U, state.window.X), kernel(U, X), kernel(X, X)
    Kuu = Kuu + (model.jitter * np.mean(np.diag(Kuu)) + model.absolute_jitter) * np.eye(len(U))
    moments = []
    for output, noise in enumerate(state.noise):
        latent = dense.sparse_posterior(Kuu, Kux, Kus, Kss, state.w, state.window.y[:, output], noise)
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
    return model.evidence_bound(state.view)


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
    w = dense.weights(times, elapsed.sum(), model.forgetting, T)[-T:]
    np.testing.assert_allclose(np.sort(state.w), np.sort(w), rtol=1e-12)


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
    kernel, noise = Matern32(np.exp(theta[:2]), np.exp(theta[2])), np.exp(theta[3])
    U = np.vstack([state.U[: M - 1], x])
    Kuu, Kux = kernel(U, U) + JITTER * np.exp(theta[2]) * np.eye(M), kernel(U, state.window.X)
    return dense.weighted_bound(Kuu, Kux, kernel(state.window.X), state.w, state.window.y[:, 0], noise)


@pytest.fixture(scope="module")
def climbed():
    """Log parameters before an update, and the derivative of F by them and by the newest point, by dense matrices."""
    model = AGP(KERNEL, **SMALL, rate=1e-12)
    after = model.update(model.init(X[:T], Y[:T]), X[T], Y[T])
    theta = np.log([0.5, 0.8, 1.9, 0.2])

    def slope(function, at, step=1e-5):
        moves = step * np.eye(len(at))
        return np.array([(function(at + move) - function(at - move)) / (2.0 * step) for move in moves])

    by_theta = slope(lambda theta: dense_climb(after, theta, X[T]), theta)
    return theta, by_theta, slope(lambda x: dense_climb(after, theta, x), X[T])


def log_parameters(state):
    return np.log(np.concatenate([state.theta, state.noise]))


def test_a_fresh_step_is_of_one_size_in_the_gradient_s_direction(climbed):
    """Adam afresh at every sample divides the gradient by its own size."""
    theta, by_theta, by_x = climbed
    model = AGP(KERNEL, **SMALL)
    after = model.update(model.init(X[:T], Y[:T]), X[T], Y[T])
    np.testing.assert_allclose(log_parameters(after) - theta, 0.05 * np.sign(by_theta), rtol=1e-5)
    np.testing.assert_allclose(after.U[M - 1] - X[T], 0.05 * np.sign(by_x), rtol=1e-5)


@pytest.mark.parametrize("largest", [10.0, 0.01])
def test_a_scaled_step_is_the_gradient_over_the_samples_information_within_a_limit(climbed, largest):
    """And leaves the newest point at its sample."""
    theta, by_theta, _ = climbed
    model = AGP(KERNEL, **SMALL, step="scaled", rate=largest, prior=3.0)
    after = model.update(model.init(X[:T], Y[:T]), X[T], Y[T])  # at its centre the prior adds nothing to the gradient
    step = np.clip(by_theta / (np.sum(after.w) / 2 + 1 / 9), -largest, largest)
    np.testing.assert_allclose(log_parameters(after) - theta, step, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(after.U[M - 1], X[T])


def test_a_carried_step_goes_on_with_the_averages_of_the_warm_up(climbed):
    """Without a warm-up its first step is a fresh one; then the averages count. The newest point stays where it is."""
    theta, by_theta, _ = climbed
    model = AGP(KERNEL, **SMALL, step="carried")
    first = model.update(model.init(X[:T], Y[:T]), X[T], Y[T])
    np.testing.assert_allclose(log_parameters(first) - theta, 0.05 * np.sign(by_theta), rtol=1e-5)
    np.testing.assert_array_equal(first.U[M - 1], X[T])
    np.testing.assert_allclose(first.adam_mean, 0.1 * by_theta, rtol=1e-6)
    np.testing.assert_allclose(first.adam_square, 0.001 * by_theta**2, rtol=1e-6)
    second = model.update(first, X[T + 1], Y[T + 1])
    assert (first.adam_steps, second.adam_steps) == (1, 2)
    gradient = (second.adam_mean - 0.9 * first.adam_mean) / 0.1
    size = np.sqrt(second.adam_square / (1.0 - 0.999**2)) + 1e-8
    move = 0.05 * (0.9 * first.adam_mean + 0.1 * gradient) / (1.0 - 0.9**2) / size
    np.testing.assert_allclose(log_parameters(second) - log_parameters(first), move, rtol=1e-6)
    warm = AGP(KERNEL, **SMALL | {"warmup_iterations": 7}, step="carried")
    assert warm.init(X[:T], Y[:T]).adam_steps == 7


def test_the_other_points_stay_where_they_are():
    model = AGP(KERNEL, **SMALL)
    before = model.init(X[:T], Y[:T])
    after = model.update(before, X[T], Y[T])
    old = {tuple(u) for u in before.U}
    assert all(tuple(u) in old for u in after.U[: M - 1])


def test_more_iterations_climb_higher():
    bounds = []
    for iterations in (1, 20):
        model = AGP(KERNEL, **SMALL, iterations=iterations)
        bounds.append(_bound_of(model, model.update(model.init(X[:T], Y[:T]), X[T], Y[T])))
    assert bounds[1] > bounds[0]


def test_a_step_that_is_not_finite_is_left_out_and_counted():
    """A target whose square overflows is no sample: all that was known stays, and it leaves nothing behind."""
    model = AGP(KERNEL, **SMALL)
    before = model.init(X[:T], Y[:T])
    struck = model.update(before, X[T], 1e200)
    assert int(struck.skipped) == 1
    np.testing.assert_array_equal(log_parameters(struck), log_parameters(before))
    assert np.all(np.isfinite(model.predict(struck, PROBES).mean))
    recovered = model.update(struck, X[T:], Y[T:])
    assert recovered.skipped == 1
    assert recovered.record.tobytes() != struck.record.tobytes()
    assert np.isfinite(recovered.record.reshape(1).view(np.float64)).all()
    assert not np.allclose(recovered.noise, before.noise)


def test_fast_agp_recovers_from_a_target_whose_square_overflows():
    model = FastAGP(kernel=KERNEL, **SMALL)
    state = model.update(model.init(X[:T], Y[:T]), X[T], 1e200)
    recovered = model.update(state, X[T:], Y[T:])
    assert np.isfinite(recovered.record.reshape(1).view(np.float64)).all()


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
    np.testing.assert_allclose(after.w[slot], 5.0 / (4.0 + 900.0), rtol=1e-7)
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
        moved.append(bool(following.noise[0] != state.noise[0]))
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
    same = State(agp, state.layout, state.record)
    assert_close(hybrid.update(state, X[T + 1], Y[T + 1]), agp.update(same, X[T + 1], Y[T + 1]), 1e-9)


@pytest.mark.parametrize("forgetting", [1.0, 0.95])
def test_without_a_window_it_is_the_window_that_nothing_has_left(forgetting):
    """A fixed inducing set, and all samples still inside the window of the other."""
    U = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    options = SMALL | {"kernel": SE(2.0, 1.9), "forgetting": forgetting, "inducing_inputs": U, "threshold": 0.0}
    windowless, windowed = FastAGP(**options | {"window": None}), FastAGP(**options | {"window": N})
    runs = [evaluate.prequential(m, m.init(X[:T], Y[:T]), X[T:], Y[T:]) for m in (windowless, windowed)]
    np.testing.assert_array_equal(runs[1].state.U, U)
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
        assert state.points == 1
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
        assert_close(together.law.output(output), run.prediction, 1e-9)


def test_a_column_is_a_plain_target():
    model = AGP(KERNEL, **SMALL)
    plain = evaluate.prequential(model, model.init(X[:T], Y[:T]), X[T:], Y[T:]).prediction
    column = evaluate.prequential(model, model.init(X[:T], Y[:T, None]), X[T:], Y[T:, None]).prediction
    assert column.mean.shape == (N - T, 1)
    assert_close(column.law.output(0), plain, 1e-10)


# ---- kernels -----------------------------------------------------------------------------------------------


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
    kernel, U, X = kernel_of(state), state.U[: state.points], state.window.X
    return bound.statistics(kernel(U, X), kernel(X), state.w, state.window.y)


def relative_error(got, expected):
    pairs = zip(got, expected, strict=True)
    return max(np.max(np.abs(np.asarray(a) - np.asarray(b))) / np.max(np.abs(b)) for a, b in pairs)


@pytest.fixture
def long_stream(each_engine):
    """A walk that brings new inducing points all the time; its length ends a sample before the ring turns over."""
    rng = np.random.default_rng(5)
    steps = (100_000 if each_engine == "native" else 5_000) // T * T + T - 1
    long_X = np.cumsum(rng.normal(scale=0.1, size=(steps, 2)), axis=0)
    return long_X, np.sin(long_X[:, 0]) + rng.normal(scale=0.1, size=steps)


@pytest.mark.parametrize("forgetting", [1.0, 0.83])
def test_the_recursion_is_a_recomputation_after_very_many_steps(long_stream, forgetting):
    model = FastAGP(kernel=KERNEL, **SMALL, forgetting=forgetting)
    state = model.update(model.init(X[:T], Y[:T]), *long_stream)
    assert int(state.samples) == len(long_stream[1])
    assert int(state.window.cursor) == T - 1, "as long ago as can be since the sums were last made anew"
    assert relative_error(state.statistics, from_the_window(state)) < 1e-8


def test_without_a_window_the_recursion_is_a_recomputation_after_very_many_steps(long_stream):
    """The last 400 samples carry all the weight there is: 0.9⁴⁰⁰ is 5e-19."""
    long_X, long_Y = np.tanh(long_stream[0]), long_stream[1]
    model = FastAGP(kernel=KERNEL, **SMALL | {"window": None}, forgetting=0.9)
    state = model.update(model.init(X[:T], Y[:T]), long_X, long_Y)
    w = 0.9 ** np.arange(399.0, -1.0, -1.0)
    Kux = KERNEL(state.U, long_X[-400:])
    expected = bound.statistics(Kux, KERNEL(long_X[-400:]), w, long_Y[-400:, None])
    assert relative_error(state.statistics, expected) < 1e-8
