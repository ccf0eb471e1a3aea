"""The scale that depends on the row: as wide as the errors of this row, and never a reason for wild intervals."""

from typing import Any

import numpy as np
import pytest

from driftgp import evaluate, prequential
from driftgp.members import LastKMean, Persistence
from driftgp.predictions import nominal_reach
from driftgp.predictions.normal import pdf
from driftgp.wrappers import Calibrated, Standardize

ROWS = 6000
MEMBER = LastKMean(k=400, forgetting=0.9995)  # one noise for all rows


def stream(noise: Any, seed: int = 0, inputs: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, targets whose mean is 0, and the standard deviation of each of them, a function of the inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, inputs))
    sd = noise(X)
    return X, sd * rng.normal(size=ROWS), sd


def followed(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    return prequential(model, model.init(X[:0], y[:0]), X, y).prediction


def widths(prediction: Any) -> np.ndarray:
    low, high = prediction.interval(0.95)
    return np.asarray(high - low)


# ---- what it is for --------------------------------------------------------------------------------------------------


def test_intervals_are_as_wide_as_the_noise_of_their_inputs():
    X, y, sd = stream(lambda X: np.exp(0.8 * X[:, 0]))
    prediction: Any = followed(Calibrated(MEMBER), X, y)
    late = np.arange(ROWS) >= 2000
    low, high = prediction.interval(0.95)
    for group in (X[:, 0] < -1.0, np.abs(X[:, 0]) < 0.3, X[:, 0] > 1.0):
        rows = late & group & (np.abs(X[:, 0]) < 1.75)  # beyond it the features end
        assert abs(np.mean(widths(prediction)[rows]) / np.mean(3.92 * sd[rows]) - 1.0) < 0.15
        assert abs(np.mean((low <= y)[rows] & (y <= high)[rows]) - 0.95) < 0.03
    plain = followed(Calibrated(MEMBER, features=0), X, y)
    assert evaluate.crps(prediction, y) < 0.95 * evaluate.crps(plain, y)


def test_every_hour_holds_its_share_where_the_noise_has_a_day():
    hour = np.arange(ROWS) % 24
    angle = 2.0 * np.pi * hour[:, None] * np.array([1, 2]) / 24.0
    X = np.concatenate([np.sin(angle), np.cos(angle)], 1)
    sd = np.exp(np.sin(angle[:, 0]) + 0.5 * np.cos(3.0 * angle[:, 0]))  # a third harmonic, which is no input
    y = sd * np.random.default_rng(1).normal(size=ROWS)
    low, high = followed(Calibrated(MEMBER), X, y).interval(0.95)
    inside = ((low <= y) & (y <= high))[ROWS - 4800 :].reshape(-1, 24).mean(0)
    assert inside.min() > 0.88
    plain_low, plain_high = followed(Calibrated(MEMBER, features=0), X, y).interval(0.95)
    assert ((plain_low <= y) & (y <= plain_high))[ROWS - 4800 :].reshape(-1, 24).mean(0).min() < inside.min()


def test_nothing_is_lost_where_all_rows_are_alike():
    X, y, _ = stream(lambda X: np.ones(len(X)), inputs=8)
    ours, plain = (evaluate.crps(followed(Calibrated(MEMBER, features=n), X, y), y) for n in (128, 0))
    assert ours < 1.005 * plain


# ---- robust by itself ------------------------------------------------------------------------------------------------


def test_a_lone_wild_target_moves_the_factor_little():
    X, y, _ = stream(lambda X: np.exp(0.5 * X[:, 0]))
    model = Calibrated(MEMBER)
    state = prequential(model, model.init(X[:0], y[:0]), X[:2000], y[:2000]).state
    after = model.update(state, X[2000], 1e9)
    factor = [model.forecast(s, X[2001:2101])["log_g"] for s in (state, after)]
    assert np.max(np.abs(factor[1] - factor[0])) < 0.25


@pytest.mark.parametrize("target", [0.0, 7.0], ids=["zero", "seven"])
def test_constant_targets_leave_finite_intervals_in_order(target):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(1500, 3)), np.full(1500, target)
    y[-1] = target + 1.0
    prediction = followed(Calibrated(Persistence()), X, y)
    low, middle, high = (np.asarray(prediction.quantile(p)) for p in (0.025, 0.5, 0.975))
    assert np.isfinite([low, middle, high]).all()
    assert ((low <= middle) & (middle <= high)).all()


def test_the_factor_is_bounded_and_the_covariance_does_not_grow_where_nothing_excites_it():
    """Ten thousand rows with a constant input: forgetting alone would take its entry beyond e⁵ times the first."""
    rng = np.random.default_rng(3)
    X = np.column_stack([np.ones(10_000), rng.normal(size=10_000)])
    y = np.exp(4.0 * X[:, 1]) * rng.normal(size=10_000)
    model = Calibrated(MEMBER)
    run = prequential(model, model.init(X[:0], y[:0]), X, y)
    model.check(run.state)
    assert np.max(np.abs(model.forecast(run.state, X[:500])["log_g"])) <= 2.3
    assert np.max(run.state.scale.covariance) <= 0.0200001


def test_units_change_nothing():
    X, y, _ = stream(lambda X: np.exp(0.5 * X[:, 0]))
    model = Calibrated(Standardize(MEMBER, adapt=0.999))
    one, other = (
        prequential(model, model.init(a * X[:100], b * y[:100]), a * X[100:800], b * y[100:800]).prediction
        for a, b in ((1.0, 1.0), (1024.0, 4.0))
    )
    np.testing.assert_allclose(4.0 * widths(one), widths(other), rtol=1e-9)


def test_an_inner_change_of_units_keeps_the_factor():
    X, y, _ = stream(lambda X: np.exp(0.5 * X[:, 0]))
    model = Standardize(Calibrated(MEMBER), adapt=0.99)
    prediction = followed(model, X[:1500], np.where(np.arange(1500) < 700, y[:1500], 300.0 * y[:1500]))
    assert np.isfinite(widths(prediction)).all()


def test_more_inputs_than_features_share_places():
    X, y, _ = stream(lambda X: np.exp(0.8 * X[:, 0]), inputs=20)
    model = Calibrated(MEMBER, features=16)
    prediction = followed(model, X[:3000], y[:3000])
    assert model.init(X[:0], y[:0]).scale.psi.shape == (1, 16)
    assert evaluate.crps(prediction, y[:3000]) < evaluate.crps(
        followed(Calibrated(MEMBER, features=0), X[:3000], y[:3000]), y[:3000]
    )


# ---- the promises of the calibration ---------------------------------------------------------------------------------


def test_the_share_outside_is_what_the_controllers_sum_says_with_a_factor_too():
    X, y, _ = stream(lambda X: np.exp(0.8 * X[:, 0]))
    model = Calibrated(MEMBER, levels=(0.8,), rate=0.05)
    run = prequential(model, model.init(X[:0], y[:0]), X, y)
    low, high = run.prediction.interval(0.8)
    z = nominal_reach((0.8,))[0]
    step = 0.05 / (2.0 * z * pdf(z))
    outside = np.sum((y < low) | (y > high))
    np.testing.assert_allclose(run.state.offset[-1].item(), step * (outside - 0.2 * ROWS), atol=step * 1.01)


def test_means_and_the_deviations_that_call_a_target_wild_are_those_without_a_factor():
    X, y, _ = stream(lambda X: np.exp(0.8 * X[:, 0]))
    with_factor, without = Calibrated(MEMBER), Calibrated(MEMBER, features=0)
    states = [prequential(m, m.init(X[:0], y[:0]), X[:1000], y[:1000]).state for m in (with_factor, without)]
    made = [m.forecast(s, X[1000:1050]) for m, s in zip((with_factor, without), states, strict=True)]
    np.testing.assert_allclose(made[0]["mean"], made[1]["mean"], rtol=1e-12)
    np.testing.assert_allclose(with_factor.usual_std(made[0]), without.usual_std(made[1]), rtol=1e-9)
    assert not np.allclose(made[0]["variance"], made[1]["variance"], rtol=0.01)


def test_a_late_label_is_judged_by_the_averages_and_the_factor_that_were_issued():
    X, y, _ = stream(lambda X: np.exp(0.8 * X[:, 0]))
    model = Calibrated(MEMBER)
    state = prequential(model, model.init(X[:0], y[:0]), X[:500], y[:500]).state
    issued = model.forecast(state, X[500:501])
    later = prequential(model, state, X[501:520], y[501:520]).state
    record = later.record.copy()
    known, anew = (model.view(np.array(record)) for _ in range(2))
    model.learn(known, X[500], y[500:501], 1.0, issued)
    model.learn(anew, X[500], y[500:501], 1.0)
    np.testing.assert_array_equal(later.record, record)
    assert not np.array_equal(known.scale.psi, anew.scale.psi)
    u = np.abs(model.law(issued).to_normal(y[500:501]))[0]
    expected = later.scale.recent + np.array([[0.2], [0.02]]) * (np.minimum(u, 4.0) - later.scale.recent)
    np.testing.assert_allclose(known.scale.recent, expected)


@pytest.mark.parametrize("features", [-1, 5, 1.5, 10**6])
def test_refuses_a_number_of_features_that_makes_no_model(features):
    with pytest.raises((ValueError, TypeError), match="features must be"):
        Calibrated(MEMBER, features=features)
