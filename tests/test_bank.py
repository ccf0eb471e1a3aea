"""A bank of models: its members are what they would be alone, and its weights follow who predicts well."""

import jax
import numpy as np
import pytest

from driftgp import FastAGP, prequential
from driftgp.kernels import SE
from driftgp.mixture import Mixture
from driftgp.wrappers import Bank, Standardize

MEMBER = FastAGP(kernel=SE(0.5), inducing=4, window=12, noise=0.1, warmup_iterations=5, forgetting=0.9)
RNG = np.random.default_rng(7)
X = RNG.uniform(size=(30, 1))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=30)
RATES = [0.7, 0.9, 0.98]


def run(model):
    return prequential(model, model.init(X[:12], Y[:12]), X[12:], Y[12:])


@pytest.fixture(scope="module")
def three():
    return run(Bank(MEMBER, forgetting=RATES))


def test_a_bank_of_one_is_the_member():
    alone, lone = run(MEMBER), run(Bank(MEMBER, forgetting=[0.9]))
    np.testing.assert_allclose(lone.prediction.mean, alone.prediction.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(lone.prediction.variance, alone.prediction.variance, rtol=1e-7)
    np.testing.assert_allclose(lone.prediction.interval(0.9), alone.prediction.interval(0.9), rtol=1e-6, atol=1e-9)


def test_every_member_is_what_it_would_be_alone(three):
    for k, forgetting in enumerate(RATES):
        alone = run(
            FastAGP(kernel=SE(0.5), inducing=4, window=12, noise=0.1, warmup_iterations=5, forgetting=forgetting)
        )
        np.testing.assert_allclose(three.prediction.means[k], alone.prediction.mean, rtol=1e-6, atol=1e-8)


def test_weights_sum_to_one_and_can_be_read(three):
    assert isinstance(three.prediction, Mixture)
    assert three.state.weights.shape == (3,)
    np.testing.assert_allclose(np.sum(three.state.weights), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.sum(three.prediction.weights, 0), 1.0, rtol=1e-9)


def test_the_order_of_members_means_nothing(three):
    other = run(Bank(MEMBER, forgetting=RATES[::-1]))
    np.testing.assert_allclose(other.prediction.mean, three.prediction.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.state.weights, three.state.weights[::-1], rtol=1e-6)


def test_the_member_that_predicts_well_gets_the_weight_and_loses_it_again():
    member = FastAGP(kernel=SE(0.5), inducing=4, window=12, warmup_iterations=0, forgetting=0.9)
    model = Bank(member, noise=[0.01, 100.0])
    state = model.init(X[:0], Y[:0])
    for targets, best in ((np.zeros(30), 0), (10.0 * RNG.normal(size=30), 1), (np.zeros(30), 0)):
        state = model.update(state, X, targets)
        assert state.weights[best] > 0.9


def test_without_targets_weights_return_to_the_prior(three):
    model = Bank(MEMBER, forgetting=RATES, prior=[1.0, 2.0, 1.0])
    state = model.update(three.state, X[0], np.nan, elapsed=1e4)
    np.testing.assert_allclose(state.weights, [0.25, 0.5, 0.25], rtol=1e-5)


def test_it_holds_a_wrapped_model():
    """λ is found inside the wrapper that holds the model."""
    model = Bank(Standardize(MEMBER), forgetting=RATES)
    assert np.shape(model.model.model.forgetting) == (3,)
    units = Bank(Standardize(MEMBER), forgetting=RATES).init(X[:12], 1000.0 * Y[:12])
    assert np.all(model.predict(units, X[12:15]).std > 10.0)


def test_it_is_cheap_to_differ_in_several_settings():
    model = Bank(MEMBER, forgetting=RATES, noise=[0.1, 0.2, 0.3])
    assert model.size == 3
    assert jax.tree.leaves(model.model.kernel)[0].shape == (3,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"forgetting": 0.9}, "settings must each have one value for every member"),
        ({"forgetting": [0.9, 0.8], "noise": [0.1]}, "settings must each have one value for every member"),
        ({"colour": [0.9, 0.8]}, "colour must be a numeric setting"),
        ({"inducing": [3, 4]}, "inducing must be a numeric setting"),
        ({"forgetting": [0.9, 0.8], "prior": [1.0]}, "prior must have one weight for each"),
        ({"forgetting": [0.9, 0.8], "memory": 1.5}, "memory must lie in"),
    ],
)
def test_refuses_what_makes_no_bank(settings, message):
    with pytest.raises(ValueError, match=message):
        Bank(MEMBER, **settings)
