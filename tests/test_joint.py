"""Joint covariances of wrapped models: they agree with the variances, and with the law of total covariance."""

import numpy as np
import pytest

from driftgp import AGP
from driftgp.wrappers import Bank, Calibrated, CarryForward, Standardize, Watched, Within

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
        CarryForward(Calibrated(Standardize(Within(BANK), adapt=0.99))),
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
    stretched, own = model.covariance(state, AT), MEMBERS[0].joint(state.inner, AT)
    ratio = stretched / np.moveaxis(own, 0, -1)
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0, 0], ratio.shape), rtol=1e-9)
    assert not np.allclose(ratio, 1.0)
