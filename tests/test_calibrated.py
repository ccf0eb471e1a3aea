"""Calibrated intervals: they hold their share whatever the stream does, and belong to one distribution."""

from typing import Any

import numpy as np
import pytest
from scipy import integrate

from driftgp import evaluate, prequential
from driftgp.prediction import Gaussian
from driftgp.rivals import LastKMean
from driftgp.wrappers import Calibrated
from driftgp.wrappers.recalibrated import Recalibrated

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
    assert abs(evaluate.coverage(prediction.model, y, 0.95) - 0.95) < 0.05  # right on average over both noises
    low, high = prediction.model.interval(0.95)
    inside = ((low <= y) & (y <= high)).reshape(-1, STRETCH).mean(-1)[1:]
    assert np.min(inside) < 0.90
    assert evaluate.nlpd(prediction, y) < evaluate.nlpd(prediction.model, y)


def test_a_model_that_is_right_is_left_nearly_alone():
    rng = np.random.default_rng(3)
    X, y = np.zeros((4000, 1)), rng.normal(size=4000)
    model = Calibrated(LastKMean(k=200, forgetting=0.999))
    prediction: Any = prequential(model, model.init(X[:0], y[:0]), X, y).prediction
    ours, before = (evaluate.width(p, 0.95) for p in (prediction, prediction.model))
    assert abs(ours / before - 1.0) < 0.03


def test_each_side_holds_its_half_where_errors_lean_to_one_side():
    rng = np.random.default_rng(4)
    X, y = np.zeros((8000, 1)), rng.exponential(size=8000)
    model = Calibrated(LastKMean(k=200, forgetting=0.999), symmetric=False)
    prediction: Any = prequential(model, model.init(X[:0], y[:0]), X, y).prediction
    low, high = prediction.interval(0.95)
    np.testing.assert_allclose([np.mean(y < low), np.mean(y > high)], 0.025, atol=0.005)


# ---- the stretched distribution ------------------------------------------------------------------------------------

NORMAL = Gaussian(np.array([1.0]), np.array([4.0]), np.array([2.0]))  # type: ignore[arg-type]
REACH: Any = (np.array([0.5]), np.array([2.0]), np.array([2.5]), np.array([6.0]))
LOWER: Any = (np.array([0.9]), np.array([1.0]), np.array([1.5]), np.array([2.0]))


@pytest.fixture(scope="module", params=[(), LOWER], ids=["symmetric", "one-sided"])
def stretched(request) -> Any:
    return Recalibrated(NORMAL, REACH, request.param, LEVELS)


def density(prediction: Any, y: np.ndarray) -> np.ndarray:
    return np.exp(np.array(prediction.log_prob(y)))


def test_intervals_reach_as_far_as_they_were_told(stretched):
    for level, reach in zip(LEVELS, REACH, strict=True):
        np.testing.assert_allclose(stretched.interval(level)[1], 1.0 + 2.0 * reach, rtol=1e-9)


def test_density_and_moments_are_those_of_one_distribution(stretched):
    grid = np.linspace(-30.0, 60.0, 400_001)
    p = density(stretched, grid)
    mass = integrate.trapezoid(p, grid)
    mean = integrate.trapezoid(p * grid, grid)
    np.testing.assert_allclose(mass, 1.0, rtol=1e-4)
    np.testing.assert_allclose(stretched.mean, mean, rtol=1e-3)
    np.testing.assert_allclose(stretched.variance, integrate.trapezoid(p * (grid - mean) ** 2, grid), rtol=1e-3)


def test_crps_is_its_integral(stretched):
    grid = np.linspace(-60.0, 80.0, 200_001)
    for y in (-2.0, 1.3, 9.0):
        square = (np.array(stretched.cdf(grid)) - (grid >= y)) ** 2
        np.testing.assert_allclose(stretched.crps(y), integrate.trapezoid(square, grid), rtol=2e-3)


def test_the_quantile_undoes_the_cdf(stretched):
    for y in (-4.0, 0.9, 1.1, 3.0, 15.0):
        np.testing.assert_allclose(stretched.quantile(stretched.cdf(y)), y, rtol=1e-6)


@pytest.mark.parametrize("levels", [(), (0.9, 0.5), (0.5, 1.0), (0.0, 0.5), (0.5, 0.5)])
def test_refuses_levels_out_of_order(levels):
    with pytest.raises(ValueError, match="levels must increase"):
        Calibrated(LastKMean(), levels=levels)


def test_refuses_a_prior_that_fits_no_trackers():
    with pytest.raises(ValueError, match="prior must have one weight for each"):
        Calibrated(LastKMean(), prior=[1.0, 1.0])
