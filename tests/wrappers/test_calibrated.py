"""Calibrated intervals: they hold their share whatever the stream does, at every level at once."""

from typing import Any

import numpy as np
import pytest

from driftgp import evaluate, prequential
from driftgp.members import LastKMean
from driftgp.wrappers import Calibrated

LEVELS = (0.5, 0.8, 0.95, 0.99)
STRETCH = 500


def breaking_stream(seed: int, samples: int = 8000) -> tuple[np.ndarray, np.ndarray]:
    """A stream built to break calibration: noise ×5 and back every 500 samples, a shifted mean every 1000."""
    rng, t = np.random.default_rng(seed), np.arange(samples)
    noise = np.where(t // STRETCH % 2 == 0, 0.2, 1.0)
    return np.zeros((samples, 1)), 3.0 * (t // 1000 % 2) + noise * rng.normal(size=samples)


@pytest.fixture(scope="module", params=[0, 1])
def broken(request) -> tuple[Any, np.ndarray]:
    X, y = breaking_stream(request.param)
    # λ = 1 − 1/5000: a model that believes in one noise level for all of the stream
    model = Calibrated(LastKMean(k=5, forgetting=0.9998))
    return prequential(model, model.init(X[:0], y[:0]), X, y).prediction, y


def test_coverage_holds_overall_and_on_every_stretch(broken):
    prediction, y = broken
    low, high = prediction.interval(0.95)
    inside = (low <= y) & (y <= high)
    assert 0.945 <= np.mean(inside) <= 0.955
    sums = np.cumsum(np.append(0.0, inside))
    stretches = (sums[STRETCH:] - sums[:-STRETCH])[STRETCH:] / STRETCH  # every one after the first, wherever it begins
    assert np.min(stretches) >= 0.90
    assert np.max(stretches) <= 0.98


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_held_at_once(broken, level):
    prediction, y = broken
    assert abs(evaluate.coverage(prediction, y, level) - level) < 0.005


def test_the_models_own_interval_is_there_too_and_is_not_so_good(broken):
    prediction, y = broken
    assert abs(evaluate.coverage(prediction.law.model, y, 0.95) - 0.95) < 0.05  # right on average over both noises
    low, high = prediction.law.model.interval(0.95)
    inside = ((low <= y) & (y <= high)).reshape(-1, STRETCH).mean(-1)[1:]
    assert np.min(inside) < 0.90
    assert evaluate.nlpd(prediction, y) < evaluate.nlpd(prediction.law.model, y)


def test_a_model_that_is_right_is_left_nearly_alone():
    rng = np.random.default_rng(3)
    X, y = np.zeros((4000, 1)), rng.normal(size=4000)
    model = Calibrated(LastKMean(k=200, forgetting=0.999))
    prediction: Any = prequential(model, model.init(X[:0], y[:0]), X, y).prediction
    ours, before = (evaluate.width(p, 0.95) for p in (prediction, prediction.law.model))
    assert abs(ours / before - 1.0) < 0.03


def test_each_side_holds_its_half_where_errors_lean_to_one_side():
    rng = np.random.default_rng(4)
    X, y = np.zeros((8000, 1)), rng.exponential(size=8000)
    model = Calibrated(LastKMean(k=200, forgetting=0.999), symmetric=False)
    prediction: Any = prequential(model, model.init(X[:0], y[:0]), X, y).prediction
    low, high = prediction.interval(0.95)
    np.testing.assert_allclose([np.mean(y < low), np.mean(y > high)], 0.025, atol=0.005)


@pytest.mark.parametrize("levels", [(), (0.9, 0.5), (0.5, 1.0), (0.0, 0.5), (0.5, 0.5)])
def test_refuses_levels_out_of_order(levels):
    with pytest.raises(ValueError, match="levels must increase"):
        Calibrated(LastKMean(), levels=levels)


def test_refuses_a_prior_that_fits_no_trackers():
    with pytest.raises(ValueError, match="prior must have one weight for each"):
        Calibrated(LastKMean(), prior=[1.0, 1.0])
