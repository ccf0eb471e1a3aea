"""Joint covariances of wrapped models: they agree with the variances, and with the law of total covariance."""

import numpy as np
import pytest

from driftgp import AGP, Online, prequential
from driftgp.wrappers import Bank, Calibrated, Gaps, Standardize, Watched, Within

RNG = np.random.default_rng(2)
X = RNG.uniform(size=(40, 2))
Y = np.column_stack([np.sin(5.0 * X[:, 0]), 10.0 * X[:, 1]]) + 0.1 * RNG.normal(size=(40, 2))
AT = RNG.uniform(size=(7, 2))
MEMBERS = [AGP(inducing=5, window=20, noise=0.1, forgetting=rate, warmup_iterations=9) for rate in (0.8, 0.99)]
BANK = Bank(MEMBERS, prior=[1.0, 3.0])


def learned(model):
    return model.update(model.init(X[:15], Y[:15]), X[15:], Y[15:])


@pytest.mark.parametrize(
    "model",
    [
        MEMBERS[0],
        BANK,
        Calibrated(MEMBERS[0]),
        Calibrated(BANK, symmetric=False),
        Gaps(Calibrated(Standardize(Within(BANK), adapt=0.99))),
        Watched(BANK),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_diagonal_is_the_variance_and_no_direction_has_a_negative_one(model):
    state = learned(model)
    covariance = model.covariance(state, AT)
    assert covariance.shape == (7, 7, 2)
    variance = model.predict(state, AT).variance
    np.testing.assert_allclose(np.diagonal(covariance).T, variance, rtol=1e-9)
    for C in np.moveaxis(covariance, -1, 0):
        np.testing.assert_allclose(C, C.T, rtol=1e-9, atol=1e-12)
        assert np.linalg.eigvalsh(C).min() > 0.0


def test_a_bank_has_the_covariance_of_draws_from_its_members():
    """Each draw is of one member, at all points together."""
    state = learned(BANK)
    covariance = BANK.covariance(state, AT)[..., 0]
    rng, draws = np.random.default_rng(0), []
    for model, member, weight in zip(MEMBERS, state.members, state.weights, strict=True):
        mean = model.forecast(member, AT)["mean"][:, 0]
        draws.append(rng.multivariate_normal(mean, model.joint(member, AT)[0], round(200_000 * weight)))
    np.testing.assert_allclose(np.cov(np.concatenate(draws).T), covariance, atol=0.02 * covariance.max())


def test_members_that_disagree_make_targets_vary_together():
    apart = Bank([AGP(inducing=3, window=9, noise=0.01, warmup_iterations=0, forgetting=rate) for rate in (0.3, 1.0)])
    level = np.append(np.zeros(9), np.ones(3))
    state = apart.update(apart.init(X[:0], level[:0]), X[:12], level)
    means = [
        model.forecast(member, AT)["mean"][:, 0] for model, member in zip(apart.models, state.members, strict=True)
    ]
    within = [model.joint(member, AT)[0] for model, member in zip(apart.models, state.members, strict=True)]
    a, b = state.weights
    between = a * b * np.outer(means[0] - means[1], means[0] - means[1])
    np.testing.assert_allclose(apart.covariance(state, AT), a * within[0] + b * within[1] + between, rtol=1e-9)


def test_calibration_stretches_a_covariance_and_keeps_its_correlations():
    model = Calibrated(MEMBERS[0])
    state = learned(model)
    stretched, own = model.joint(state, AT)[0], MEMBERS[0].joint(state.inner, AT)[0]
    np.testing.assert_allclose(correlations(stretched), correlations(own), rtol=1e-9)
    np.testing.assert_allclose(np.diag(stretched), model.forecast(state, AT)["variance"][:, 0], rtol=1e-9)
    assert not np.allclose(stretched, own)


def correlations(covariance: np.ndarray) -> np.ndarray:
    std = np.sqrt(np.diag(covariance))
    return covariance / np.outer(std, std)


# ---- draws ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [MEMBERS[0], Calibrated(BANK, symmetric=False)], ids=["AGP", "not normal"])
def test_joint_draws_have_the_covariance_and_the_quantiles(model):
    forecast = model.predict(learned(model), AT)
    draws = forecast.sample(20_000, seed=1, joint=True)
    assert draws.shape == (20_000, 7, 2)
    z = forecast.to_normal(draws[:2000])
    assert np.abs(z.mean(0)).max() < 0.1
    assert np.abs(z.std(0) - 1.0).max() < 0.1
    for p in range(2):
        correlation = forecast.covariance[p] / np.sqrt(np.outer(*2 * [forecast.covariance[p].diagonal()]))
        np.testing.assert_allclose(np.corrcoef(forecast.to_normal(draws)[..., p].T), correlation, atol=0.05)


def test_draws_of_the_function_leave_the_noise_out():
    model = MEMBERS[0]
    forecast = model.predict(learned(model), AT)
    drawn = forecast.sample(40_000, seed=2, latent=True)
    latent = forecast.variance - forecast.noise
    np.testing.assert_allclose(drawn.mean(0), forecast.mean, atol=0.02)
    np.testing.assert_allclose(drawn.var(0), latent, rtol=0.1, atol=1e-4)
    some = forecast.rows([0, 3])
    np.testing.assert_allclose(some.covariance, forecast.covariance[:, [0, 3]][:, :, [0, 3]])


def test_online_draws_what_it_knew_when_it_was_asked():
    online = Online(MEMBERS[0])
    online.warm(X[:30], Y[:30])
    forecast = online.predict(AT)
    before = online.predict(AT).covariance
    online.update(X[30:], Y[30:])
    np.testing.assert_array_equal(forecast.covariance, before)
    assert forecast.sample(3, seed=0, joint=True).shape == (3, 7, 2)


def test_forecasts_of_several_posteriors_have_no_covariance():
    model = MEMBERS[0]
    run = prequential(model, model.init(X[:15], Y[:15]), X[15:], Y[15:])
    with pytest.raises(ValueError, match="covariance must be that of one posterior"):
        run.prediction.sample(joint=True)
