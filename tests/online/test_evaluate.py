"""Scores against their definitions, and the prequential loop's promises."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from driftgp import evaluate
from driftgp.gp.agp import FastAGP
from driftgp.kernels import SE
from driftgp.predictions import Gaussian

RNG = np.random.default_rng(4)
MEAN: Any = RNG.normal(size=50)
STD: Any = RNG.uniform(0.5, 2.0, size=50)
Y = MEAN + STD * RNG.normal(size=50)
PREDICTION = Gaussian(MEAN, STD**2, 0.1 * STD**2)
X = RNG.uniform(size=(30, 2))
TARGET = np.sin(4.0 * X[:, 0])


@pytest.fixture(scope="module")
def model():
    return FastAGP(kernel=SE(0.5), inducing=4, window=12, noise=0.1, warmup_iterations=0)


@pytest.fixture(scope="module")
def state(model):
    return model.init(X[:12], TARGET[:12])


# ---- scores ------------------------------------------------------------------------------------------------


def test_scores_are_their_definitions():
    error = Y - MEAN
    scores = evaluate.scores(PREDICTION, Y, level=0.9)
    z = stats.norm.ppf(0.95)
    assert scores == pytest.approx(
        {
            "mse": np.mean(error**2),
            "mae": np.mean(np.abs(error)),
            "mape": 100.0 * np.mean(np.abs(error / Y)),
            "coverage": np.mean(np.abs(error) <= z * STD),
            "width": np.mean(2.0 * z * STD),
            "nlpd": -np.mean(stats.norm.logpdf(Y, MEAN, STD)),
            "crps": np.mean(PREDICTION.crps(Y)),
        },
        rel=1e-9,
    )


@pytest.mark.parametrize("score", ["mse", "mae", "mape", "coverage", "nlpd", "crps"])
def test_a_gap_does_not_count(score):
    """As if the sample were not there: its prediction is neither right nor wrong."""
    gappy = np.where(np.arange(50) % 4 == 0, np.nan, Y)
    seen = ~np.isnan(gappy)
    alone = Gaussian(MEAN[seen], STD[seen] ** 2, STD[seen] ** 2)
    function = getattr(evaluate, score)
    assert function(PREDICTION, gappy) == pytest.approx(function(alone, Y[seen]), rel=1e-12)


@pytest.mark.parametrize("score", ["mse", "mae", "mape", "coverage", "nlpd", "crps"])
def test_targets_of_another_shape_are_refused_and_not_broadcast(score):
    """A column against a vector would score every pair, and look plausible."""
    with pytest.raises(ValueError, match=r"y must have shape \(50,\); got shape \(50, 1\)"):
        getattr(evaluate, score)(PREDICTION, Y[:, None])


def test_a_target_of_zero_does_not_make_the_percentage_infinite():
    with_zero = np.where(np.arange(50) == 7, 0.0, Y)
    rest = np.arange(50) != 7
    expected = 100.0 * np.mean(np.abs((Y - MEAN) / Y)[rest])
    assert evaluate.mape(PREDICTION, with_zero) == pytest.approx(expected)


def test_lists_are_taken():
    assert evaluate.scores(PREDICTION, Y.tolist()) == evaluate.scores(PREDICTION, Y)


def test_coverage_is_honest_for_an_honest_prediction():
    mean: Any = RNG.normal(size=20_000)
    y = mean + RNG.normal(size=20_000)
    honest = Gaussian(mean, mean**0, mean**0)
    assert evaluate.coverage(honest, y, 0.8) == pytest.approx(0.8, abs=0.01)


def test_two_sigma_is_two_standard_deviations():
    low, high = PREDICTION.interval(evaluate.TWO_SIGMA)
    np.testing.assert_allclose(high - low, 4.0 * STD, rtol=1e-9)


# ---- the loop ----------------------------------------------------------------------------------------------


def noise_and_count(state):
    return state.noise[0], state.samples


def test_every_prediction_is_made_before_its_sample_is_seen(model, state):
    """Changing a target changes later predictions and no earlier or present one."""
    changed = TARGET.copy()
    changed[20] += 5.0
    one = evaluate.prequential(model, state, X[12:], TARGET[12:]).prediction
    other = evaluate.prequential(model, state, X[12:], changed[12:]).prediction
    np.testing.assert_array_equal(one.mean[:9], other.mean[:9])
    assert np.all(one.mean[9:12] != other.mean[9:12])


def test_watch_sees_the_state_before_each_sample(model, state):
    run = evaluate.prequential(model, state, X[12:], TARGET[12:], watch=noise_and_count)
    noise, count = run.trace
    np.testing.assert_array_equal(count, np.arange(18))
    np.testing.assert_allclose(noise, 0.1)
    assert run.state.samples == 18


def test_watching_now_and_then_sees_the_same_and_changes_no_prediction(model, state):
    always = evaluate.prequential(model, state, X[12:], TARGET[12:], watch=noise_and_count)
    sometimes = evaluate.prequential(model, state, X[12:], TARGET[12:], watch=noise_and_count, every=7)
    for seen, all_seen in zip(sometimes.trace, always.trace, strict=True):
        np.testing.assert_allclose(seen, all_seen[::7], rtol=1e-12)
    np.testing.assert_allclose(sometimes.prediction.mean, always.prediction.mean, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="every"):
        evaluate.prequential(model, state, X[12:], TARGET[12:], watch=noise_and_count, every=0)


def test_two_halves_are_the_whole(model, state):
    whole = evaluate.prequential(model, state, X[12:], TARGET[12:])
    first = evaluate.prequential(model, state, X[12:21], TARGET[12:21])
    second = evaluate.prequential(model, first.state, X[21:], TARGET[21:])
    halves = np.concatenate([first.prediction.mean, second.prediction.mean])
    np.testing.assert_allclose(halves, whole.prediction.mean, rtol=1e-9, atol=1e-12)


def test_elapsed_may_differ_from_row_to_row(model, state):
    elapsed = np.where(np.arange(18) == 4, 7.0, 1.0)
    run = evaluate.prequential(model, state, X[12:], TARGET[12:], elapsed)
    by_hand = state
    for x, y, time in zip(X[12:], TARGET[12:], elapsed, strict=True):
        by_hand = model.update(by_hand, x, y, time)
    np.testing.assert_allclose(run.state.w, by_hand.w, rtol=1e-12)


def test_one_elapsed_time_for_all_rows_may_be_watched(model, state):
    plain = evaluate.prequential(model, state, X[12:], TARGET[12:], 2.0)
    watched = evaluate.prequential(model, state, X[12:], TARGET[12:], 2.0, noise_and_count, 7)
    np.testing.assert_array_equal(watched.prediction.mean, plain.prediction.mean)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[12], TARGET[12]), r"X must have shape N×D, one row per sample; got shape \(2,\)"),
        ((X[12:, :1], TARGET[12:]), "X must have 2 inputs, as the model was started with; got 1"),
        ((X[12:], TARGET[13:]), r"y must have shape \(18,\); got shape \(17,\)"),
        ((X[12:], TARGET[12:], np.ones(3)), r"elapsed must be one number or have shape \(18,\); got shape \(3,\)"),
    ],
)
def test_refuses_rows_that_do_not_fit(model, state, arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate.prequential(model, state, *arguments)
