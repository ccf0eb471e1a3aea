"""The bound, its derivative and the posterior, against dense N×N matrices and finite differences."""

import numpy as np
import pytest

from driftgp.gp import bound
from driftgp.gp.inducing import gram
from driftgp.gp.objective import Jitter, Samples, Slope
from driftgp.kernels import SE, Linear, Matern12, Matern32
from tests import dense_reference as dense

N, M, S = 14, 4, 5
NOISE = 0.27
F = bound.bound
STATISTICS = bound.statistics


def infer(Kuu, s, noise, Kus, kss):
    """Mean and latent variance at new points, S×P each."""
    return bound.predict(bound.posterior(bound.inverse_root(Kuu)[0], s, noise)[0], Kus, kss)


class Problem:
    """Gram matrices, targets and weights of a small random problem."""

    def __init__(self, seed=0, forgetting=0.93, kernel=None, U=None, inducing=M):
        rng = np.random.default_rng(seed)
        self.kernel = Matern32([0.6, 1.4], 1.9) if kernel is None else kernel
        self.X, self.Xs = rng.normal(size=(N, 2)), rng.normal(size=(S, 2))
        self.U = (rng.normal(size=(inducing, 2)) if U is None else self.X) * 1.0
        self.y = rng.normal(size=N) + 0.4
        self.y2 = np.stack([self.y, 3.0 * rng.normal(size=N)], 1)
        self.w = forgetting ** np.arange(N - 1.0, -1.0, -1.0)
        gram = lambda A, B: np.asarray(self.kernel(A, B))  # noqa: E731
        self.Kuu, self.Kux, self.Kxx = gram(self.U, self.U), gram(self.U, self.X), gram(self.X, self.X)
        self.Kus, self.Kss, self.Kxs = gram(self.U, self.Xs), gram(self.Xs, self.Xs), gram(self.X, self.Xs)
        self.kxx = np.diag(self.Kxx)

    def statistics(self, y=None):
        return STATISTICS(self.Kux, self.kxx, self.w, self.y[:, None] if y is None else y)

    def dense_bound(self, y=None, noise=NOISE):
        return dense.weighted_bound(self.Kuu, self.Kux, self.kxx, self.w, self.y if y is None else y, noise)


def noise(*values):
    return np.array(values)


# ---- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_statistics_are_their_sums(seed):
    p = Problem(seed)
    got, expected = p.statistics(), dense.statistics(p.Kux, p.kxx, p.w, p.y)
    for name, value in expected._asdict().items():
        np.testing.assert_allclose(np.squeeze(getattr(got, name)), value, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_the_dense_one(seed):
    p = Problem(seed)
    np.testing.assert_allclose(F(p.Kuu, p.statistics(), noise(NOISE)), p.dense_bound(), rtol=1e-10)


def test_the_bound_is_the_sum_of_its_terms():
    p = Problem()
    terms = bound.terms(p.Kuu, p.statistics(), noise(NOISE))
    np.testing.assert_allclose(sum(terms), p.dense_bound(), rtol=1e-10)
    assert terms.trace < 0.0, "the paper's misprint: the trace is a penalty"
    np.testing.assert_allclose(terms.trace, -0.5 / NOISE * dense.unexplained(p.Kuu, p.Kux, p.kxx, p.w), rtol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_without_forgetting_it_is_titsias(seed):
    p = Problem(seed, forgetting=1.0)
    s = p.statistics()
    titsias = dense.titsias_bound(p.Kuu, p.Kux, p.kxx, p.y, NOISE)
    np.testing.assert_allclose(F(p.Kuu, s, noise(NOISE)), titsias, rtol=1e-8)
    mean, variance = infer(p.Kuu, s, noise(NOISE), p.Kus, np.diag(p.Kss))
    latent = dense.sparse_posterior(p.Kuu, p.Kux, p.Kus, p.Kss, np.ones(N), p.y, NOISE)
    np.testing.assert_allclose(mean[:, 0], latent.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(variance[:, 0], np.diag(latent.covariance), rtol=1e-8)


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_inducing_points_on_every_sample_give_the_exact_process(forgetting):
    p = Problem(forgetting=forgetting, kernel=Matern12(0.8, 1.9), U="the samples")
    s = p.statistics()
    evidence = dense.weighted_evidence(p.Kxx, p.w, p.y, NOISE)
    np.testing.assert_allclose(F(p.Kuu, s, noise(NOISE)), evidence, rtol=1e-8)
    mean, variance = infer(p.Kuu, s, noise(NOISE), p.Kus, np.diag(p.Kss))
    exact = dense.weighted_exact_posterior(p.Kxx, p.Kxs, p.Kss, p.w, p.y, NOISE)
    np.testing.assert_allclose(mean[:, 0], exact.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(variance[:, 0], np.diag(exact.covariance), rtol=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_a_bound(seed):
    """F never exceeds the evidence of the weighted model, whatever the parameters."""
    rng = np.random.default_rng(1000 + seed)
    lengthscale, variance, sigma2, forgetting = np.exp(rng.normal(size=4) * [1.0, 1.0, 1.5, 0.0]) * [1, 1, 1, 0.8]
    p = Problem(seed, forgetting, SE(lengthscale, variance), inducing=3)
    value = F(p.Kuu + 1e-8 * variance * np.eye(3), p.statistics(), noise(sigma2))
    assert value <= dense.weighted_evidence(p.Kxx, p.w, p.y, sigma2) + 1e-9 * abs(value)


def test_another_inducing_point_never_loosens_it():
    p = Problem()
    values = []
    for m in range(1, M + 1):
        s = STATISTICS(p.Kux[:m], p.kxx, p.w, p.y[:, None])
        values.append(F(p.Kuu[:m, :m], s, noise(NOISE)))
        expected = dense.weighted_bound(p.Kuu[:m, :m], p.Kux[:m], p.kxx, p.w, p.y, NOISE)
        np.testing.assert_allclose(values[-1], expected, rtol=1e-10)
    assert np.all(np.diff(values) > 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_posterior_is_the_dense_one(seed):
    p = Problem(seed)
    mean, variance = infer(p.Kuu, p.statistics(), noise(NOISE), p.Kus, np.diag(p.Kss))
    for route in (dense.sparse_posterior, dense.sparse_posterior_dense):
        latent = route(p.Kuu, p.Kux, p.Kus, p.Kss, p.w, p.y, NOISE)
        np.testing.assert_allclose(mean[:, 0], latent.mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(variance[:, 0], np.diag(latent.covariance), rtol=1e-9)


def test_a_sample_of_weight_zero_is_not_there():
    p = Problem()
    p.w[:6] = 0.0
    full, fewer = p.statistics(), STATISTICS(p.Kux[:, 6:], p.kxx[6:], p.w[6:], p.y[6:, None])
    for one, other in zip(full, fewer, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_without_data_the_posterior_is_the_prior_and_the_bound_is_zero():
    p = Problem()
    p.w[:] = 0.0
    mean, variance = infer(p.Kuu, p.statistics(), noise(NOISE), p.Kus, np.diag(p.Kss))
    np.testing.assert_allclose(mean, 0.0)
    np.testing.assert_allclose(variance[:, 0], np.diag(p.Kss), rtol=1e-9)
    assert abs(float(F(p.Kuu, p.statistics(), noise(NOISE)))) < 1e-12


def test_outputs_share_inputs_and_nothing_else():
    """With two outputs F is the sum of both, and each has its own posterior and noise."""
    p, other = Problem(), 0.8
    s = p.statistics(p.y2)
    both = p.dense_bound(p.y2[:, 0], NOISE) + p.dense_bound(p.y2[:, 1], other)
    np.testing.assert_allclose(F(p.Kuu, s, noise(NOISE, other)), both, rtol=1e-10)
    mean, variance = infer(p.Kuu, s, noise(NOISE, other), p.Kus, np.diag(p.Kss))
    for output, sigma2 in enumerate((NOISE, other)):
        latent = dense.sparse_posterior(p.Kuu, p.Kux, p.Kus, p.Kss, p.w, p.y2[:, output], sigma2)
        np.testing.assert_allclose(mean[:, output], latent.mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(variance[:, output], np.diag(latent.covariance), rtol=1e-9)


# ---- derivatives -------------------------------------------------------------------------------------------


def assert_close(got, expected, tolerance):
    """Compare by absolute value, scaled by the largest entry: small entries of a large matrix carry its rounding."""
    for a, b in zip(got, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        assert np.max(np.abs(a - b), initial=0.0) <= tolerance * (1.0 + np.max(np.abs(b), initial=0.0)), (a, b)


def differences(function, value, step=1e-5):
    """Derivative of a function of an array, entry by entry; of a symmetric matrix, by both entries at once."""
    value = np.asarray(value, float)
    made = np.zeros(value.shape)
    for at in np.ndindex(value.shape):
        move = np.zeros(value.shape)
        move[at] += 0.5
        move[at[::-1]] += 0.5
        made[at] = (function(value + step * move) - function(value - step * move)) / (2.0 * step)
    return made


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_derivative_of_the_bound_is_that_of_finite_differences(outputs):
    """∂F/∂(Kuu, Φ, b, κ, σ²), at values that are not 1."""
    p = Problem()
    sigma2, s = np.array([NOISE, 0.8])[:outputs], p.statistics(p.y2[:, :outputs])
    g = bound.gradient(p.Kuu, s, sigma2)
    expected = (
        differences(lambda Kuu: F(Kuu, s, sigma2), p.Kuu),
        differences(lambda Phi: F(p.Kuu, s._replace(Phi=Phi), sigma2), s.Phi),
        _by_entry(lambda b: F(p.Kuu, s._replace(b=b), sigma2), s.b),
        _by_entry(lambda kappa: F(p.Kuu, s._replace(kappa=float(kappa)), sigma2), s.kappa),
        _by_entry(lambda sigma2: F(p.Kuu, s, sigma2), sigma2),
    )
    assert_close(g, expected, 1e-6)


def _by_entry(function, value, step=1e-5):
    value = np.asarray(value, float)
    made = np.zeros(value.shape)
    for at in np.ndindex(value.shape):
        move = np.zeros(value.shape)
        move[at] = step
        made[at] = (function(value + move) - function(value - move)) / (2.0 * step)
    return made


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_derivative_by_Kux_is_that_of_finite_differences(outputs):
    """Through the statistics."""
    p = Problem()
    sigma2, y = np.array([NOISE, 0.8])[:outputs], p.y2[:, :outputs]
    g = bound.gradient(p.Kuu, STATISTICS(p.Kux, p.kxx, p.w, y), sigma2)
    expected = _by_entry(lambda Kux: F(p.Kuu, STATISTICS(Kux, p.kxx, p.w, y), sigma2), p.Kux)
    assert_close([bound.through_Kux(g, p.Kux, p.w, y)], [expected], 1e-6)


JITTER = Jitter(1e-3, 1e-2)


def objective(p, kernel, theta, U, y):
    """F of log parameters and inducing inputs, as a gradient step sees it."""
    kernel = kernel.at(np.exp(theta[: kernel.size]))
    s = STATISTICS(kernel(U, p.X), kernel(p.X), p.w, y)
    return F(gram(kernel, U, *JITTER), s, np.exp(theta[kernel.size :]))


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("kernel", [Matern32([0.6, 1.4], 1.9), SE(0.9, 1.9) + Linear([0.3, 0.7])], ids=["one", "sum"])
def test_the_gradient_of_the_whole_objective_is_that_of_finite_differences(kernel, outputs):
    """Through kernel, jitter, statistics and bound, by log parameters and inducing inputs, at values that are not 1."""
    p = Problem()
    y, sigma2 = p.y2[:, :outputs], np.array([NOISE, 0.8])[:outputs]
    theta = np.log(np.concatenate([kernel.theta, sigma2]))
    slope = Slope(kernel, sigma2, p.U, Samples(p.X, y, p.w), JITTER)
    assert_close([slope.hyperparameters], [_by_entry(lambda theta: objective(p, kernel, theta, p.U, y), theta)], 1e-6)
    if isinstance(kernel, Matern32):  # the jitter of a kernel that is the same everywhere does not move with the points
        assert_close([slope.inputs(slice(None))], [_by_entry(lambda U: objective(p, kernel, theta, U, y), p.U)], 1e-6)
    assert_close([slope.inputs(slice(-1, None))], [slope.inputs(slice(None))[-1:]], 1e-14)


# ---- recursion ---------------------------------------------------------------------------------------------


def test_a_recursion_step_is_a_recomputation():
    """Forget, take a sample in, take the oldest out (eqs. data_add and data_remove)."""
    p, forgetting = Problem(forgetting=1.0), 0.9
    w = forgetting ** np.arange(N - 1.0, -1.0, -1.0)
    before = STATISTICS(p.Kux[:, :-1], p.kxx[:-1], w[1:], p.y2[:-1])
    after = bound.absorb(bound.forget(before, forgetting), p.Kux[:, -1], p.kxx[-1], p.y2[-1], 1.0)
    assert_close(after, STATISTICS(p.Kux, p.kxx, w, p.y2), 1e-13)
    removed = bound.absorb(after, p.Kux[:, 0], p.kxx[0], p.y2[0], -w[0])
    assert_close(removed, STATISTICS(p.Kux[:, 1:], p.kxx[1:], w[1:], p.y2[1:]), 1e-13)


# ---- factorisations ----------------------------------------------------------------------------------------


CHOLESKY = bound.repaired_factor


def test_a_healthy_matrix_is_left_alone():
    K = Problem().Kuu
    L, repairs = CHOLESKY(K)
    assert int(repairs) == 0
    np.testing.assert_allclose(L @ L.T, K, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(
    "K",
    [np.ones((3, 3)), np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])],
    ids=["singular", "indefinite"],
)
def test_a_matrix_that_has_no_factor_is_repaired_and_counted(K, scale):
    L, repairs = CHOLESKY(scale * K)
    assert int(repairs) > 0
    assert np.all(np.isfinite(L))
    added = np.asarray(L @ L.T) / scale - K
    np.testing.assert_allclose(added, added[0, 0] * np.eye(3), atol=1e-12 * max(1.0, added[0, 0]))
    assert added[0, 0] <= 10.0 * max(0.0, -np.linalg.eigvalsh(K)[0]) + 1e-12, "no more than ten times what was needed"


@pytest.mark.parametrize("K", [np.full((3, 3), np.nan), np.full((3, 3), np.inf), np.diag([1.0, np.nan, 1.0])])
def test_a_matrix_that_is_not_finite_is_refused(K):
    with pytest.raises(bound.NoFactor):
        CHOLESKY(K)


def test_a_matrix_of_zeros_has_a_factor_in_the_end():
    L, repairs = CHOLESKY(np.zeros((3, 3)))
    assert repairs > 0
    assert np.all(L.diagonal() > 0.0)


def test_the_bound_does_not_hide_a_matrix_that_has_no_factor():
    p = Problem()
    with pytest.raises(bound.NoFactor):
        F(-p.Kuu, p.statistics(), noise(NOISE))


def test_rounding_never_makes_a_variance_negative():
    """Noise of 1e-12 and predictions at the samples themselves: the true variance is about 1e-12."""
    p = Problem(kernel=SE(3.0, 1.9), U="the samples")
    Kuu = p.Kuu + 1e-10 * np.eye(N)
    _, variance = infer(Kuu, p.statistics(), noise(1e-12), p.Kux, p.kxx)
    assert np.all(np.asarray(variance) >= 0.0)
    assert np.all(np.asarray(variance) < 1e-4)
