"""The bound, its derivative and the posterior, against dense N×N matrices, plain autodiff and finite differences."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftgp import bound
from driftgp.kernels import SE, Matern12, Matern32
from tests import dense_reference as dense

pytestmark = pytest.mark.usefixtures("x64")

N, M, S = 14, 4, 5
NOISE = 0.27
F = jax.jit(bound.bound)
STATISTICS = jax.jit(bound.statistics)


@jax.jit
def infer(Kuu, s, noise, Kus, kss):
    """Mean and latent variance at new points, S×P each."""
    return bound.predict(bound.posterior(bound.inverse_root(Kuu)[0], s, noise), Kus, kss)


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
    return jnp.array(values)


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
    """An unused slot has the identity's row in Kuu and zeros in Kux, so that all of this is one compiled program."""
    p = Problem()
    values, expected = [], []
    for m in range(1, M + 1):
        used = np.arange(M) < m
        Kuu = np.where(used[:, None] & used, p.Kuu, np.eye(M))
        s = STATISTICS(np.where(used[:, None], p.Kux, 0.0), p.kxx, p.w, p.y[:, None])
        values.append(float(F(Kuu, s, noise(NOISE))))
        expected.append(dense.weighted_bound(p.Kuu[:m, :m], p.Kux[:m], p.kxx, p.w, p.y, NOISE))
    np.testing.assert_allclose(values, expected, rtol=1e-10)
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
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-13), full, fewer)


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


def symmetric(tree):
    """Only the symmetric part of a derivative with respect to a symmetric matrix means anything."""
    return jax.tree.map(lambda leaf: 0.5 * (leaf + leaf.T) if leaf.shape == (M, M) else leaf, tree)


def assert_close(got, expected, tolerance):
    """Compare by absolute value, scaled by the largest entry: small entries of a large matrix carry its rounding."""

    def compare(a, b):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert np.max(np.abs(a - b), initial=0.0) <= tolerance * (1.0 + np.max(np.abs(b), initial=0.0)), (a, b)

    jax.tree.map(compare, got, expected)


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_derivative_rule_of_the_bound_is_autodiff(outputs):
    """∂F/∂(Kuu, n, yy, b, Φ, κ, σ²) against autodiff through the Cholesky factors."""
    p = Problem()
    sigma2 = jnp.array([NOISE, 0.8])[:outputs]
    arguments = p.Kuu, p.statistics(p.y2[:, :outputs]), sigma2

    def plain(Kuu, s, sigma2):
        full = lambda K: 0.5 * (K + K.T)  # noqa: E731 (the factorisation reads one triangle only)
        s = bound.Statistics(s.n, s.yy, s.b, full(s.Phi), s.kappa)
        return sum(bound.terms(full(Kuu), s, sigma2))

    rule = jax.jit(jax.grad(bound.bound, argnums=(0, 1, 2)))(*arguments)
    autodiff = jax.jit(jax.grad(plain, argnums=(0, 1, 2)))(*arguments)
    assert_close(symmetric(rule), symmetric(autodiff), 1e-9)


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_derivative_rule_of_the_statistics_is_autodiff(outputs):
    """For any objective, also one whose derivative by Φ is not symmetric."""
    p, rng = Problem(), np.random.default_rng(5)

    def plain(Kux, kxx, w, y):
        weighted = Kux * w
        return bound.Statistics(jnp.sum(w), w @ y**2, weighted @ y, weighted @ Kux.T, w @ kxx)

    arguments = p.Kux, p.kxx, p.w, p.y2[:, :outputs]
    values, back = jax.vjp(plain, *arguments)
    ours, our_back = jax.vjp(bound.statistics, *arguments)
    assert_close(ours, values, 1e-14)
    cotangent = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), values)
    assert_close(our_back(cotangent), back(cotangent), 1e-12)


def test_statistics_with_one_new_row_are_those_from_scratch_and_so_is_their_derivative():
    p = Problem()
    new = np.arange(M) == 2
    known = p.statistics().Phi * ~new * ~new[:, None] + 7.0 * new
    data = p.Kux, p.kxx, p.w, p.y[:, None]
    weights = [np.random.default_rng(1).normal(size=leaf.shape) for leaf in jax.tree.leaves(p.statistics())]

    def score(statistics, data):
        return sum(jnp.sum(a * b) for a, b in zip(jax.tree.leaves(statistics(*data)), weights, strict=True))

    scratch = jax.value_and_grad(partial(score, bound.statistics))(data)
    renewed = jax.value_and_grad(partial(score, lambda *data: bound.renewed(*data, known, new)))(data)
    assert_close(renewed, scratch, 1e-12)


def dense_objective(p, theta, U, y):
    """F of hyperparameters and inducing inputs by N×N matrices, differentiable throughout."""
    kernel = Matern32(jnp.exp(theta[:2]), jnp.exp(theta[2]))
    Kuu, Kux = kernel(U, U), kernel(U, p.X)
    Q = Kux.T @ jnp.linalg.solve(Kuu, Kux)
    total = 0.0
    for output in range(y.shape[1]):
        sigma2 = jnp.exp(theta[3 + output])
        covariance = Q + jnp.diag(sigma2 / p.w)
        fit = -0.5 * (jnp.linalg.slogdet(covariance)[1] + y[:, output] @ jnp.linalg.solve(covariance, y[:, output]))
        weights = -0.5 * jnp.sum(jnp.log(p.w) + p.w * jnp.log(2 * jnp.pi) + (p.w - 1.0) * jnp.log(sigma2))
        total += fit + weights - 0.5 / sigma2 * jnp.sum(p.w * (kernel(p.X) - jnp.diagonal(Q)))
    return total


def objective(p, theta, U, y):
    """F of hyperparameters and inducing inputs as the model computes it."""
    kernel = Matern32(jnp.exp(theta[:2]), jnp.exp(theta[2]))
    s = bound.statistics(kernel(U, p.X), kernel(p.X), jnp.asarray(p.w), jnp.asarray(y))
    return bound.bound(kernel(U, U), s, jnp.exp(theta[3:]))


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_gradient_of_the_whole_objective_is_autodiff_and_finite_differences(outputs):
    """Through kernel, statistics and bound, by log parameters and inducing inputs, at values that are not 1."""
    p = Problem()
    y = p.y2[:, :outputs]
    theta = np.log([0.6, 1.4, 1.9, NOISE, 0.8])[: 3 + outputs]
    fast, slow = jax.jit(partial(objective, p, y=y)), partial(dense_objective, p, y=y)
    np.testing.assert_allclose(fast(theta, p.U), slow(theta, p.U), rtol=1e-10)
    gradient = jax.jit(jax.grad(fast, argnums=(0, 1)))(theta, p.U)
    assert_close(gradient, jax.jit(jax.grad(slow, argnums=(0, 1)))(theta, p.U), 1e-8)
    flat = np.concatenate([gradient[0], gradient[1].ravel()])
    step = 1e-5
    for i in range(flat.size):
        move = np.zeros(flat.size)
        move[i] = step
        ahead, behind = (
            fast(theta + sign * move[: theta.size], p.U + sign * move[theta.size :].reshape(p.U.shape))
            for sign in (1.0, -1.0)
        )
        difference = float(ahead - behind) / (2.0 * step)
        assert abs(flat[i] - difference) <= 1e-7 * (1.0 + abs(difference) + np.max(np.abs(flat)))


@pytest.mark.parametrize("level", [1.0, 1e6])
def test_many_outputs_by_one_eigendecomposition_are_those_by_a_factor_each(level, monkeypatch):
    """Value, derivative and predictions, also where the noise is far below the signal."""
    p, rng = Problem(), np.random.default_rng(1)
    y, noises = level * rng.normal(size=(N, bound.MANY)), np.exp(rng.normal(size=bound.MANY))

    def everything(Kuu, s, noise):
        derivative = jax.grad(bound.bound, argnums=(0, 1, 2))(Kuu, s, noise)
        return bound.terms(Kuu, s, noise), derivative, infer.__wrapped__(Kuu, s, noise, p.Kus, np.diag(p.Kss))

    given = p.Kuu, p.statistics(y), noises  # a partial for each program: jit keeps what it has traced by the function
    by_eigenvalues = jax.jit(partial(everything))(*given)
    monkeypatch.setattr(bound, "MANY", bound.MANY + 1)
    assert_close(by_eigenvalues, jax.jit(partial(everything))(*given), 1e-10)


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


CHOLESKY = jax.jit(bound.cholesky)


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


def test_one_bad_matrix_of_a_stack_is_repaired():
    L, repairs = CHOLESKY(np.stack([np.eye(3), np.ones((3, 3))]))
    assert int(repairs) > 0
    assert np.all(np.isfinite(L))


def test_nan_ends_the_repairs():
    _, repairs = CHOLESKY(np.full((3, 3), np.nan))
    assert int(repairs) == bound._REPAIRS


def test_the_bound_does_not_hide_a_matrix_that_has_no_factor():
    p = Problem()
    assert np.isnan(F(-p.Kuu, p.statistics(), noise(NOISE)))


def test_rounding_never_makes_a_variance_negative():
    """Noise of 1e-12 and predictions at the samples themselves: the true variance is about 1e-12."""
    p = Problem(kernel=SE(3.0, 1.9), U="the samples")
    Kuu = p.Kuu + 1e-10 * np.eye(N)
    _, variance = infer(Kuu, p.statistics(), noise(1e-12), p.Kux, p.kxx)
    assert np.all(np.asarray(variance) >= 0.0)
    assert np.all(np.asarray(variance) < 1e-4)


# ---- single precision --------------------------------------------------------------------------------------


def test_single_precision_agrees_as_far_as_it_can():
    p = Problem()
    single = lambda tree: jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)  # noqa: E731
    arguments = p.Kuu, p.statistics(), noise(NOISE)
    both = jax.jit(jax.value_and_grad(bound.bound, argnums=(0, 1, 2)))
    (value, gradient), (value32, gradient32) = both(*arguments), both(*single(arguments))
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves((value32, gradient32)))
    np.testing.assert_allclose(value32, value, rtol=1e-4)
    assert_close(gradient32, gradient, 1e-3)
