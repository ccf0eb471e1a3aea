"""river's own checks of the regressor, and what they do not ask."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import checks, compose, datasets, drift, evaluate, linear_model, metrics, preprocessing

from driftgp.defaults import recommended
from driftgp.online import Online
from driftgp.river import AGPRegressor, FanForecaster

CHECKS = list(checks.yield_checks(AGPRegressor()))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_passes_the_checks_of_river(check):
    assert check.__name__ not in AGPRegressor()._unit_test_skips()
    check(AGPRegressor())


def test_beats_bayesian_linear_regression_on_river_s_own_stream():
    errors = [
        evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE()).get()
        for model in (AGPRegressor(), linear_model.BayesianLinearRegression())
    ]
    assert errors[0] < errors[1]


def test_works_in_a_pipeline_and_answers_with_a_distribution():
    model = compose.Select("gallup", "ipsos") | preprocessing.StandardScaler() | AGPRegressor()
    for x, y in datasets.TrumpApproval().take(60):
        model.learn_one(x, y)
    distribution = model.predict_one(x, with_dist=True)
    assert distribution.mu == pytest.approx(model.predict_one(x))
    assert 0 < distribution.sigma < 5


def test_a_drift_detector_may_have_it_start_anew():
    model, detector, restarts = AGPRegressor(), drift.ADWIN(), []
    random = np.random.default_rng(0)
    for i in range(300):
        x = {"a": random.uniform(), "b": random.uniform()}
        y = random.normal() * (0.1 if i < 200 else 5.0)
        detector.update(abs(y - model.predict_one(x)))
        model.learn_one(x, y)
        if detector.drift_detected:
            restarts.append(i)
            model = model.clone()
    assert restarts
    assert restarts[0] > 200


def test_a_feature_that_is_absent_is_missing_and_its_doubt_is_told():
    model = AGPRegressor()
    for i in range(60):
        model.learn_one({"a": i * i % 7, "b": i % 5}, float(i * i % 7))
    known, gap, nothing = ({"a": 2, "b": 4}, {"b": 4}, {})
    assert model.predict_one(gap | {"unheard of": 7}) == model.predict_one(gap | {"a": None})
    assert model.predict_one(nothing) == model.predict_one({"a": None, "b": np.nan})
    assert model.predict_one(known) == pytest.approx(2.0, abs=0.5)
    assert 1.0 < model.predict_one(gap) < 4.0  # near the mean of the targets


def test_a_new_feature_does_not_cost_what_was_learned():
    model = AGPRegressor()
    for i in range(60):
        model.learn_one({"a": np.sin(i), "b": np.cos(i), "c": 0, "d": 1}, 10 + 3 * np.sin(i))
    model.learn_one({"a": 0.5, "b": 0.1, "c": 0, "d": 1, "e": 2}, 11.5)
    assert model.predict_one({"a": -0.5, "b": 0.3, "e": 0}) == pytest.approx(8.5, abs=0.5)


def test_every_sample_counts_though_features_come_one_after_another():
    """The model that starts anew has learned what one would have that knew the features beforehand."""
    rows = [{"a": float(i % 3), **({"b": float(i % 5)} if i >= 10 else {})} for i in range(20)]
    model, knowing = AGPRegressor(), AGPRegressor()
    for i, x in enumerate(rows):
        model.learn_one(x, float(i % 3))
        knowing.learn_one({"b": None} | x, float(i % 3))
    assert model.predict_one({"a": 1, "b": 2}) == knowing.predict_one({"a": 1, "b": 2})


def test_samples_without_any_feature_are_learned_from():
    model = AGPRegressor()
    for i in range(30):
        model.learn_one({}, 5.0 + 0.1 * (i % 2))
    assert model.predict_one({}) == pytest.approx(5.05, abs=0.1)
    model.learn_one({"a": 1.0}, 5.0)
    assert model.predict_one({"a": 1.0}) == pytest.approx(5.05, abs=0.2)


def test_it_is_the_default_model_and_nothing_but_it():
    samples = list(datasets.TrumpApproval().take(420))
    names = sorted(samples[0][0])
    X, y = np.array([[x[name] for name in names] for x, _ in samples]), np.array([y for _, y in samples])
    one, many = AGPRegressor(), AGPRegressor()
    for x, target in samples:
        one.learn_one(x, target)
    many.learn_many(pd.DataFrame([x for x, _ in samples]), pd.Series(y))
    default = recommended(X[:400], y[:400])
    prediction = default.predict(default.update(default.init(X[:0], y[:0]), X, y), X[-1:])
    assert default != recommended(X[:0], y[:0])  # so that it was started anew after 400 samples
    for model in (one, many):
        distribution = model.predict_one(samples[-1][0], with_dist=True)
        assert (distribution.mu, distribution.sigma) == (prediction.mean[0], pytest.approx(prediction.std[0]))


def test_a_value_that_is_no_number_is_refused_and_what_was_learned_stays():
    model = AGPRegressor()
    for i in range(10):
        model.learn_one({"a": i}, i)
    before = model.predict_one({"a": 3})
    for wrong in ("three", "3", np.inf):
        with pytest.raises(ValueError, match="column 'a' must hold"):
            model.learn_one({"a": wrong, "new": 1.0}, 3.0)
    assert model.predict_one({"a": 3}) == before


ROWS = [
    {
        "a": i % 7,
        "b": None if i % 11 == 3 else float(i % 5),
        "holiday": i % 6 == 0,
        "sky": ["clear", "rain", None][i % 3],
    }
    for i in range(430)
]
TARGETS = [10.0 + 3.0 * np.sin(i / 5.0) + (i % 7) for i in range(430)]


@pytest.mark.parametrize(
    "settings", [{"effort": "low"}, {"effort": "low", "support": "real", "lags": [2, 5], "horizon": 2}]
)
def test_it_is_online_to_the_last_bit_with_text_gaps_and_lags(settings):
    model, online = AGPRegressor(**settings), Online(**settings)
    for x, y in zip(ROWS, TARGETS, strict=True):
        assert model.predict_one(x) == online.predict(x).mean.item()
        model.learn_one(x, y)
        online.update(x, y)
    many = AGPRegressor(**settings)
    many.learn_many(pd.DataFrame(ROWS), pd.Series(TARGETS))
    assert many.predict_one(ROWS[0]) == model.predict_one(ROWS[0])


def test_a_refused_sample_leaves_no_feature_behind():
    model = AGPRegressor(effort="low")
    model.learn_one({"a": 1.0}, 1.0)
    with pytest.raises(ValueError, match="must"):
        model.learn_one({"a": 1.0, "b": np.inf}, 1.0)
    model.learn_one({"a": 2.0}, 2.0)
    assert model._stream.inputs == ("a",)


def test_effort_belongs_to_the_default():
    with pytest.raises(ValueError, match="effort, support and base belong to the default model"):
        AGPRegressor(window=50, effort="low")


def test_gaps_in_a_frame_are_those_of_its_rows():
    one, many = AGPRegressor(), AGPRegressor()
    rows = [{"a": 1.0, "b": 2.0}, {"a": np.nan, "b": 3.0}, {"a": 4.0, "b": np.nan}] * 4
    targets = np.arange(12.0)
    for x, y in zip(rows, targets, strict=True):
        one.learn_one(x, y)
    many.learn_many(pd.DataFrame(rows), pd.Series(targets))
    assert many.predict_one({"a": 2.0, "b": 2.0}) == one.predict_one({"a": 2.0, "b": 2.0})


def test_a_frame_s_predictions_are_a_series_of_its_library():
    model = AGPRegressor()
    frame = pd.DataFrame({"a": np.arange(8.0), "b": np.ones(8)}, index=range(10, 18))
    assert model.predict_many(frame).tolist() == [0.0] * 8
    model.learn_many(frame, pd.Series(np.arange(8.0)))
    means = model.predict_many(frame)
    assert means.index.tolist() == frame.index.tolist()
    in_polars = pl.DataFrame({"a": np.arange(8.0), "b": np.ones(8)})
    assert isinstance(model.predict_many(in_polars), pl.Series)
    np.testing.assert_allclose(model.predict_many(in_polars).to_numpy(), means.to_numpy())


def test_a_copy_from_a_pickle_goes_on_bit_for_bit():
    model = AGPRegressor()
    for x, y in datasets.TrumpApproval().take(40):
        model.learn_one(x, y)
    copy = pickle.loads(pickle.dumps(model))
    for x, y in datasets.TrumpApproval().take(60):
        assert copy.predict_one(x) == model.predict_one(x)
        copy.learn_one(x, y)
        model.learn_one(x, y)


def test_a_wrong_setting_is_refused_and_named():
    with pytest.raises(ValueError, match="inducing must be at most window"):
        AGPRegressor(inducing=50, window=20)


# ---- forecasts -------------------------------------------------------------------------------------------------------

OF_FORECASTERS = list(checks.yield_checks(FanForecaster()))


@pytest.mark.parametrize("check", OF_FORECASTERS, ids=lambda check: check.__name__)
def test_the_forecaster_passes_the_checks_of_river(check):
    check(FanForecaster())


def test_the_forecaster_beats_the_year_before_on_river_s_own_stream():
    """Airline passengers, twelve months ahead."""
    y = np.array([target for _, target in datasets.AirlinePassengers()])
    model, errors = FanForecaster(horizon=12, season=12), []
    for t, value in enumerate(y[:-12]):
        model.learn_one(value)
        if t >= 60:
            truth = y[t + 1 : t + 13]
            errors.append([np.abs(forecast - truth).mean() for forecast in (model.forecast(12), y[t - 11 : t + 1])])
    ours, naive = np.mean(errors, 0)
    assert ours < 0.8 * naive


def test_the_forecaster_refuses_more_steps_than_it_was_made_for():
    with pytest.raises(ValueError, match="horizon must be at most 3"):
        FanForecaster(horizon=3).forecast(4)
