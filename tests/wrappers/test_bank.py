"""A bank of models: its members are what they would be alone, and its weights follow who predicts well."""

from typing import Any

import numpy as np
import pytest

from driftgp import AGP, FastAGP, prequential
from driftgp.kernels import SE
from driftgp.members import Lagged, LastKMean, Persistence
from driftgp.predictions import Limited, Mixture
from driftgp.wrappers import Bank, Calibrated, Standardize

OPTIONS: dict[str, Any] = {"kernel": SE(0.5), "inducing": 4, "window": 12, "noise": 0.1, "warmup_iterations": 5}
RNG = np.random.default_rng(7)
X = RNG.uniform(size=(30, 1))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=30)
RATES = [0.7, 0.9, 0.98]


def member(forgetting=0.9, **options):
    return FastAGP(**OPTIONS | options, forgetting=forgetting)


def members(rates=RATES):
    return [member(rate) for rate in rates]


def run(model):
    return prequential(model, model.init(X[:12], Y[:12]), X[12:], Y[12:])


@pytest.fixture(scope="module")
def three():
    return run(Bank(members()))


def test_a_bank_of_one_is_the_member():
    alone, lone = run(member()), run(Bank([member()]))
    np.testing.assert_allclose(lone.prediction.mean, alone.prediction.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(lone.prediction.variance, alone.prediction.variance, rtol=1e-7)
    np.testing.assert_allclose(lone.prediction.interval(0.9), alone.prediction.interval(0.9), rtol=1e-6, atol=1e-9)


UNLIKE = [member(0.8), AGP(**OPTIONS | {"window": 7}, outliers=4.0), Persistence(), Standardize(member(0.95))]


@pytest.mark.parametrize("models", [members(), UNLIKE], ids=["alike but for λ", "of several kinds"])
def test_every_member_is_what_it_would_be_alone(models):
    together = run(Bank(models)).prediction
    for k, model in enumerate(models):
        alone = run(model).prediction
        said = together.records[f"member_{k}"]
        np.testing.assert_allclose(said["mean"][:, 0], alone.mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(said["variance"][:, 0], alone.variance, rtol=1e-6)


def test_members_that_see_the_same_samples_share_one_window():
    model = Bank([*members(), member(window=20), Persistence()])
    names = model.record_dtype(1, 1).names
    assert [name for name in names if name.startswith("window")] == ["window_0", "window_1"]
    state = run(model).state
    assert state.members[0].window is state.members[1].window
    assert state.members[3].window is not state.members[0].window
    alone = run(member()).state.window
    np.testing.assert_array_equal(state.members[1].window.X, alone.X)
    np.testing.assert_array_equal(state.members[1].window.y, alone.y)


def test_weights_sum_to_one_and_can_be_read(three):
    assert isinstance(three.prediction.law, Limited)
    assert isinstance(three.prediction.law.model, Mixture)
    assert three.state.weights.shape == (3,)
    np.testing.assert_allclose(np.sum(three.state.weights), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.sum(three.prediction.records["weights"], 1), 1.0, rtol=1e-12)


def test_the_order_of_members_means_nothing(three):
    other = run(Bank(members(RATES[::-1])))
    np.testing.assert_allclose(other.prediction.mean, three.prediction.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.state.weights, three.state.weights[::-1], rtol=1e-6)


def test_the_member_that_predicts_well_gets_the_weight_and_loses_it_again():
    model = Bank([member(noise=noise, warmup_iterations=0) for noise in (0.01, 100.0)])
    state = model.init(X[:0], Y[:0])
    for targets, best in ((np.zeros(30), 0), (10.0 * RNG.normal(size=30), 1), (np.zeros(30), 0)):
        state = model.update(state, X, targets)
        assert state.weights[best] > 0.9


def test_a_row_without_a_target_changes_no_weight(three):
    model = Bank(members(), prior=[1.0, 2.0, 1.0])
    state = model.update(three.state, X[0], np.nan, elapsed=1e4)
    np.testing.assert_array_equal(state.weights, three.state.weights)


def test_a_weight_never_falls_below_its_share_of_the_prior(three):
    assert np.min(three.state.weights) >= 0.002 / 3.0 * 0.99


def test_five_copies_of_one_member_are_as_good_as_one():
    """The fear: whoever comes five times outvotes the others."""
    rng = np.random.default_rng(3)
    x = np.cumsum(rng.normal(size=(400, 1)), 0) * 0.1
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=400)
    good, bad = Lagged(), LastKMean(k=30)
    errors = []
    for models in ([good, bad], [good, *[bad] * 5]):
        model = Bank(models)
        made = prequential(model, model.init(x[:0], y[:0]), x, y).prediction
        errors.append(np.mean((made.mean - y)[50:] ** 2))
    assert errors[1] < 1.05 * errors[0]


def test_a_twin_repairs_a_member_whose_errors_come_again():
    """Autocorrelated targets and inputs that say nothing: the twin does nearly as well as persistence."""
    rng = np.random.default_rng(4)
    y = np.cumsum(rng.normal(size=600))
    x = rng.normal(size=(600, 1))
    slow = LastKMean(k=50)
    plain, corrected, last = (
        prequential(model, model.init(x[:0], y[:0]), x, y).prediction
        for model in (Bank([slow]), Bank([slow], corrected=(0,)), Persistence())
    )
    error = [np.mean((made.mean - y)[100:] ** 2) for made in (plain, corrected, last)]
    assert error[1] < 0.2 * error[0]
    assert error[1] < 1.5 * error[2]


def test_a_twin_knows_of_no_error_before_its_label(each_engine):
    """Labels that come five rows late: the forecast issued for a row has the last error known at that moment."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(60, 2)), np.cumsum(rng.normal(size=60))
    model = Bank([Lagged(), LastKMean(k=3)], corrected=(1,))
    state = model.init(x[:0], y[:0])
    single = state.engine().single(state.record)
    issued = []
    for i in range(60):
        made = single.predict(x[i]).copy()
        known = y[: max(i - 5, 0)]
        expected = list(known[::-1][:2]) + [0.0] * (2 - min(len(known), 2))
        np.testing.assert_array_equal(made["member_0"]["last"][0, :, 0], expected)
        if i > 5:
            error = y[i - 6] - issued[i - 6]["member_1"]["mean"][0, 0]
            np.testing.assert_allclose(made["last"][0, 0, 0], error, rtol=1e-12)
        issued.append(made)
        if i >= 5:
            single.learn(x[i - 5], y[i - 5 : i - 4], 1.0, issued[i - 5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bank([]), "models must be a list of models"),
        (lambda: Bank([0.9, 0.8]), "models must be a list of models"),
        (lambda: Bank([member(), Calibrated(member())]), "models must predict normal distributions .* Calibrated"),
        (lambda: Bank(members(), prior=[1.0]), "prior must have one weight for each"),
        (lambda: Bank(members(), corrected=(3,)), "corrected must name some of the 3 members"),
    ],
)
def test_refuses_what_makes_no_bank(make, message):
    with pytest.raises(ValueError, match=message):
        make()
