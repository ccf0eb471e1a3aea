"""The state-space GP, the ensemble of basis expansions, the paper's OSGP and WISKI: against what they should equal."""

import numpy as np
import pytest

pytest.importorskip("jax", reason="the rivals need JAX: pip install 'driftgp[rivals]'")

import jax.numpy as jnp

from driftgp.evaluate import prequential
from driftgp.kernels import SE, Matern12, Matern32, Matern52
from driftgp.models.model import Units
from driftgp.rivals import WISKI, BasisEnsemble, ReferenceOSGP, StateSpaceGP
from tests.rival_tools import double_precision, rescaled

__all__ = ["double_precision"]  # a fixture

RNG = np.random.default_rng(5)
N, NOISE = 300, 0.05
TIMES = np.sort(RNG.uniform(0.0, 10.0, N))
Y = np.stack([np.sin(TIMES), np.cos(2.0 * TIMES)], 1) + 0.2 * RNG.normal(size=(N, 2))
STILL = {"noise": NOISE, "warmup_iterations": 0}


def one_step_ahead(K, y, diagonal):
    """Mean and variance of each target given those before it, for targets of covariance K."""
    means, variances = np.zeros_like(y), np.zeros(len(y))
    for i in range(len(y)):
        weights = np.linalg.solve(K[:i, :i], K[:i, i]) if i else np.zeros(0)
        means[i], variances[i] = weights @ y[:i], diagonal[i] - weights @ K[:i, i]
    return means, variances


# ---- the state-space GP --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Matern12, Matern32, Matern52])
@pytest.mark.parametrize("by_input", [True, False], ids=["time is an input", "time elapses"])
def test_the_kalman_filter_is_the_exact_process(kind, by_input):
    kernel, elapsed = kind(0.8, 1.5), np.diff(TIMES, prepend=TIMES[0])
    model = StateSpaceGP(kernel, column=0 if by_input else None, **STILL)
    X = TIMES[:, None] if by_input else np.zeros((N, 1))
    rows = np.ones(N) if by_input else elapsed
    K = kernel.gram(TIMES[:, None], TIMES[:, None]) + NOISE * np.eye(N)
    if by_input:
        made = prequential(model, model.init(X[:0], Y[:0]), X, Y, rows).prediction
        means, variances = one_step_ahead(K, Y, K.diagonal())
        np.testing.assert_allclose(made.mean, means, atol=1e-8)
        np.testing.assert_allclose(made.variance, np.broadcast_to(variances[:, None], (N, 2)), atol=1e-8)
    state = model.update(model.init(X[:0], Y[:0]), X, Y, rows)
    now = TIMES[-1:] + 1.0  # a forecast by elapsed time is one unit ahead
    k = kernel.gram(TIMES[:, None], now[:, None])[:, 0]
    forecast = model.predict(state, now[:, None])
    np.testing.assert_allclose(forecast.mean[0], k @ np.linalg.solve(K, Y), atol=1e-8)
    np.testing.assert_allclose(forecast.variance[0], 1.5 + NOISE - k @ np.linalg.solve(K, k), atol=1e-8)


def test_a_filter_of_another_clock_gives_the_same_forecasts():
    model = StateSpaceGP(Matern52(0.8, 1.5), column=0, **STILL)
    state = model.update(model.init(TIMES[:0, None], Y[:0]), TIMES[:, None], Y)
    units = Units(np.zeros(1), np.ones(1), np.zeros(2), np.array([2.0, 5.0]))
    one, other = (model.predict(s, [[10.3]]) for s in (state, rescaled(model, state, units)))
    np.testing.assert_allclose(other.mean * units.y_scale, one.mean, rtol=1e-9)
    np.testing.assert_allclose(other.variance, one.variance, rtol=1e-9)


# ---- the ensemble --------------------------------------------------------------------------------------------------


def test_an_expert_that_does_not_drift_is_regression_on_its_features():
    model = BasisEnsemble(SE(0.8, 1.5), features=20, lengthscales=[1.0], drifts=[0.0], switch=0.0, **STILL)
    state = model.init(TIMES[:0, None], Y[:0])
    phi = np.asarray(model._features(state.view.tree, jnp.asarray(TIMES[:, None])))[0]
    K = phi @ phi.T + NOISE * np.eye(N)
    means, variances = one_step_ahead(K, Y, K.diagonal())
    made = prequential(model, state, TIMES[:, None], Y).prediction
    np.testing.assert_allclose(made.mean, means, atol=1e-8)
    np.testing.assert_allclose(made.variance, np.broadcast_to(variances[:, None], (N, 2)), atol=1e-8)


def test_the_mixture_is_that_of_bayes_rule():
    """Weights are the products of what each expert alone said of every target."""
    options = {"features": 20, "lengthscales": [1.0], "switch": 0.0, **STILL}
    drifts = (0.0, 1e-2)
    mixture = BasisEnsemble(SE(0.8, 1.5), drifts=drifts, **options)
    state = mixture.update(mixture.init(TIMES[:0, None], Y[:0]), TIMES[:100, None], Y[:100])
    scores = []
    for q in drifts:
        alone = BasisEnsemble(SE(0.8, 1.5), drifts=[q], **options)
        made = prequential(alone, alone.init(TIMES[:0, None], Y[:0]), TIMES[:100, None], Y[:100]).prediction
        scores.append(made.log_prob(Y[:100]).sum(0))
    weights = np.exp(scores - np.logaddexp(*scores))
    np.testing.assert_allclose(np.exp(state.log_weights), weights, rtol=1e-6, atol=1e-12)


def test_random_features_have_the_kernel_for_their_mean():
    X = TIMES[:5, None]
    model = BasisEnsemble(SE(0.8, 1.5), features=500, lengthscales=[1.0], drifts=[0.0], **STILL)
    state = model.init(X[:0], Y[:0, 0])
    phi = np.asarray(model._features(state.view.tree, jnp.asarray(X)))[0, :, :-1]
    np.testing.assert_allclose(phi @ phi.T, SE(0.8, 1.5).gram(X, X), atol=0.2)


# ---- the paper's rivals as they were run ---------------------------------------------------------------------------


def test_the_reference_osgp_widens_where_ours_does_not_and_counts_what_fails():
    from driftgp.data import toy_stream

    stream = toy_stream(0)
    model = ReferenceOSGP(SE(0.6931, 0.6931), inducing_inputs=np.linspace(0.0, 1.0, 10)[:, None])
    run = prequential(model, model.init(stream.X[:100], stream.y[:100]), stream.X[100:], stream.y[100:])
    width = run.prediction.std
    assert run.state.failed == 0
    assert width[-50:].mean() > 2.5 * width[:50].mean()


def test_the_notebooks_wiski_learns_nothing_but_its_noise():
    X = np.linspace(0.0, 1.0, 60)[:, None]
    y = np.sin(6.0 * X[:, 0])
    model = WISKI(SE(0.3), grid=20, bounds=(0.0, 1.0), rate=0.01, learns="noise", warmup_iterations=5)
    before = model.init(X[:40], y[:40])
    after = model.update(before, X[40:], y[40:])
    one, other = before.hyperparameters, after.hyperparameters
    assert one.kernel.lengthscale == other.kernel.lengthscale
    assert one.kernel.variance == other.kernel.variance
    assert one.noise != other.noise


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StateSpaceGP(SE()), "kernel must be Matern12"),
        (lambda: StateSpaceGP(Matern32([0.5, 0.7])), "kernel must be Matern12"),
        (lambda: StateSpaceGP(column=2).init(TIMES[:, None], Y), "column must be less than the number of inputs"),
        (lambda: BasisEnsemble(Matern32()), "kernel must be SE"),
        (lambda: BasisEnsemble(drifts=[-1.0]), "drifts must lie"),
        (lambda: ReferenceOSGP().init(TIMES[:, None], Y), "takes one output"),
        (lambda: WISKI(learns="nothing"), "learns must be one of"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
