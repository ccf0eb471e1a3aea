"""Standardising: the held model's units, how they follow the stream, and that nothing it holds is left behind."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from driftgp import AGP, FastAGP, prequential
from driftgp.contract import forecasts
from driftgp.contract.records import View, floats, part
from driftgp.gp.window import WindowState, observed
from driftgp.kernels import SE
from driftgp.models.model import Model, Units
from driftgp.wrappers import Standardize

RNG = np.random.default_rng(5)
N, T = 200, 16
X = np.stack([1.7e9 + 3600.0 * np.arange(N), RNG.normal(size=N), np.full(N, 4.0)], 1)  # a clock, a signal, a constant
Y = 5e4 + 30.0 * X[:, 1] + RNG.normal(size=N)


class MeanState(View):
    window: WindowState = part(WindowState)
    w: np.ndarray = floats("T")


@dataclass(frozen=True)
class WindowMean(Model):
    """A model as plain as can be: mean and spread of the last T targets, plus a slope of x."""

    slope: float = 0.0

    def record_dtype(self, inputs, outputs):
        return MeanState.dtype(T=T, D=inputs, P=outputs)

    def view(self, record):
        return MeanState(record)

    def forecast_dtype(self, outputs):
        return forecasts.layout(outputs)

    def law(self, made):
        return forecasts.normal_law(made)

    def start(self, state, X, y):
        state.w[...] = state.window.fill(X, y, 1.0)

    def forecast(self, state, X):
        w, y = state.w, state.window.y
        n = max(np.sum(w), 1.0)
        mean = w @ y / n + self.slope * np.sum(X, 1)[:, None]
        variance = np.broadcast_to(1.0 + w @ y**2 / n, mean.shape)
        return forecasts.normal(mean, variance, 0.5 * variance)

    def learn(self, state, x, y, elapsed, forecast=None):
        if observed(x, y):
            state.w[state.window.push(x, y).slot] = 1.0

    def rescale(self, state, units):
        state.window.rescale(units, np.ones(T, bool))


class Stubborn(WindowMean):
    """The same, but it cannot change its units."""

    def rescale(self, state, units):
        return Model.rescale(self, state, units)


FOLLOWING = Standardize(WindowMean(0.25), adapt=0.95)
NOTHING: Any = (None, None)
PLAIN = Standardize(WindowMean(0.0), adapt=0.95)


def run_cold(y: Any = Y, model: Any = FOLLOWING, factor: float = 1.0) -> Any:
    """A run without a warm-up batch, with the units before every sample."""
    return prequential(model, model.init(X[:0], y[:0]), factor * X, factor * y, watch=_units)


@pytest.fixture(scope="module")
def cold():
    return run_cold()


def _units(state: Any) -> Any:
    return state.centre, state.scale, state.renewals


# ---- units of the warm-up batch --------------------------------------------------------------------------------------


def test_the_held_model_sees_columns_of_mean_0_and_spread_1():
    model = Standardize(WindowMean())
    inner = model.init(X[:T], Y[:T]).inner.window
    seen = np.concatenate([inner.X, inner.y], 1)
    np.testing.assert_allclose(seen.mean(0), 0.0, atol=1e-9)
    np.testing.assert_allclose(seen.std(0), [1.0, 1.0, 0.0, 1.0], rtol=1e-9)


def test_answers_are_those_of_a_model_that_was_given_standardised_data_by_hand():
    inner = FastAGP(kernel=SE(1.0), inducing=4, window=T, warmup_iterations=5)
    model = Standardize(inner)
    centre, scale = Y[:T].mean(), Y[:T].std()
    x_scale = np.where(np.ptp(X[:T], axis=0) > 0, X[:T].std(0), X[0])
    Z, z = (X - X[:T].mean(0)) / x_scale, (Y - centre) / scale
    by_hand = prequential(inner, inner.init(Z[:T], z[:T]), Z[T:], z[T:]).prediction
    answer = prequential(model, model.init(X[:T], Y[:T]), X[T:], Y[T:]).prediction
    np.testing.assert_allclose(answer.mean, centre + scale * by_hand.mean, rtol=1e-9)
    np.testing.assert_allclose(answer.variance, scale**2 * by_hand.variance, rtol=1e-7)
    np.testing.assert_allclose(answer.noise, scale**2 * by_hand.noise, rtol=1e-7)


def test_fixed_units_stay_and_need_nothing_of_the_held_model():
    model = Standardize(Stubborn())
    state = model.init(X[:T], Y[:T])
    later = model.update(state, X[T:], 1e6 * Y[T:])
    for name in ("centre", "scale"):
        np.testing.assert_array_equal(getattr(later, name), getattr(state, name))


@pytest.mark.parametrize("value", [0.0, 7.0, -1e9, 1e-9])
def test_a_constant_column_has_the_size_of_its_value_for_a_scale(value):
    state = Standardize(WindowMean()).init(np.full((T, 1), value), np.full(T, value))
    np.testing.assert_allclose(state.scale, abs(value) if value else 1.0, rtol=1e-15)
    np.testing.assert_allclose(state.inner.window.y, 0.0, atol=1e-15)


def test_rounding_is_no_spread():
    """0.1 + 0.2 beside 0.3 must not be blown up to a signal."""
    column = np.where(np.arange(T) % 2 == 0, 0.1 + 0.2, 0.3)
    state = Standardize(WindowMean()).init(column[:, None], column)
    np.testing.assert_allclose(state.scale, 0.3)


def test_missing_targets_and_their_inputs_do_not_count():
    model = Standardize(WindowMean())
    gappy_X, gappy = np.concatenate([X[:T], 100.0 * X[T : T + 4]]), np.concatenate([Y[:T], np.full(4, np.nan)])
    np.testing.assert_allclose(model.init(gappy_X, gappy).scale, model.init(X[:T], Y[:T]).scale, rtol=1e-12)


# ---- units that follow -----------------------------------------------------------------------------------------------


def test_all_that_the_held_model_remembers_is_in_todays_units(cold):
    """After many renewals its window is the last T raw samples in the present units, not in those of their day."""
    state = cold.state
    assert int(state.renewals) > 5
    order = np.arange(N - T, N)[np.argsort(np.arange(N - T, N) % T)]
    raw = np.concatenate([X, Y[:, None]], 1)[order]
    seen = np.concatenate([state.inner.window.X, state.inner.window.y], 1)
    np.testing.assert_allclose(seen, (raw - state.centre) / state.scale, rtol=1e-9, atol=1e-7)


def test_a_renewal_changes_no_forecast_of_a_model_without_prior():
    """The mean of the last T targets is the same in all units."""
    recent = np.stack([Y[t - T : t].mean() for t in range(T, N)])
    np.testing.assert_allclose(run_cold(model=PLAIN).prediction.mean[T:], recent, rtol=1e-12)


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**30, 1e-9, 1e9])
def test_a_stream_in_other_units_gives_the_same_answers_in_those_units(cold, factor):
    run = run_cold(factor=factor)
    exact = np.log2(factor) % 1 == 0
    np.testing.assert_allclose(run.prediction.mean[1:], factor * cold.prediction.mean[1:], rtol=0 if exact else 1e-6)
    np.testing.assert_allclose(run.prediction.variance[1:], factor**2 * cold.prediction.variance[1:], rtol=1e-6)


def test_useful_from_the_first_samples():
    """No warm-up batch: after one sample the forecast is at the level of the data, after ten it knows their spread."""
    prediction, spread = run_cold(model=PLAIN).prediction, np.std(Y)
    assert prediction.mean[1] == Y[0]
    assert np.all((prediction.std[10:] > 0.5 * spread) & (prediction.std[10:] < 5.0 * spread))


def test_a_first_input_near_0_is_no_scale_for_the_second():
    model = Standardize(WindowMean(slope=1.0), adapt=0.9)
    state = model.update(model.init(np.zeros((0, 3)), np.zeros(0)), [1e-16, 1.0, 1.0], 3.0)
    assert abs(model.predict(state, [[1.0, 1.0, 1.0]]).mean[0]) < 100.0


def test_a_category_that_comes_back_after_thousands_of_rows_does_not_decide_the_forecast():
    model = Standardize(WindowMean(slope=1.0), adapt=0.9)
    flag, y = np.zeros((200, 1)), RNG.normal(size=200)
    flag[5] = 1.0
    state = model.init(flag, y)
    level, scale = model.predict(state, [[0.0]]).mean[0], state.scale[1]
    assert abs(model.predict(state, [[1.0]]).mean[0] - level) <= 10.1 * scale


def test_a_lone_outlier_changes_no_units():
    y = Y.copy()
    y[100] += 1e8
    _, scale, _ = run_cold(y).trace
    assert scale[101:, -1].max() <= 2.0 * scale[100, -1]


def test_a_change_that_lasts_is_followed_within_a_few_samples():
    y = np.where(np.arange(N) < 100, Y, 1e6 * Y)
    _, scale, _ = run_cold(y).trace
    assert scale[130, -1] > 1e5 * scale[99, -1]


def test_a_warm_up_batch_and_then_following_agree_with_a_cold_start_in_the_end(cold):
    run = prequential(FOLLOWING, FOLLOWING.init(X[:T], Y[:T]), X[T:], Y[T:])
    np.testing.assert_allclose(run.prediction.mean[-20:], cold.prediction.mean[-20:], rtol=1e-3)


def test_agp_changes_its_units_consistently():
    """Window, inducing inputs and everything computed from them are those of the samples in the new units."""
    model = AGP(SE(1.0), inducing=4, window=T, warmup_iterations=5)
    state = model.update(model.init(Y[:0, None], Y[:0]), RNG.normal(size=(8, 1)), RNG.normal(size=8))
    moved = state.copy()
    model.rescale(moved.view, Units(*np.array([[3.0], [0.5], [-2.0], [4.0]])))
    filled = state.w > 0
    np.testing.assert_allclose(moved.window.X[filled], (state.window.X[filled] - 3.0) / 0.5)
    np.testing.assert_allclose(moved.window.y[filled], (state.window.y[filled] + 2.0) / 4.0)
    np.testing.assert_allclose(moved.U[: moved.points], (state.U[: state.points] - 3.0) / 0.5)
    np.testing.assert_array_equal(moved.window.X[~filled], 0.0)
    again = moved.copy()
    model.complete(again.view)
    assert again.record.tobytes() == moved.record.tobytes()
    assert moved.noise[0] == state.noise[0]


def test_held_by_another_of_its_kind_it_changes_its_own_units_alone(cold):
    moved, x_scale = cold.state.copy(), np.array([2.0, 4.0, 8.0])
    FOLLOWING.rescale(moved.view, Units(np.ones(3), x_scale, np.array([5e4]), np.array([16.0])))
    before = FOLLOWING.predict(cold.state, X[:3])
    after = FOLLOWING.predict(moved, (X[:3] - 1.0) / x_scale)
    np.testing.assert_allclose(after.mean, (before.mean - 5e4) / 16.0, rtol=1e-7)
    np.testing.assert_allclose(after.std, before.std / 16.0, rtol=1e-7)


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Standardize(WindowMean()).init(X[:0], Y[:0]), "X must hold a warm-up batch"),
        (lambda: Standardize(WindowMean(), adapt=True), "adapt must be a number for WindowMean"),
        (lambda: Standardize(WindowMean(), adapt=1.5), r"adapt must lie in \(0, 1\]; got 1.5"),
        (lambda: run_cold(model=Standardize(Stubborn(), adapt=0.9)), "Stubborn cannot change the units"),
        (lambda: FastAGP(window=None, forgetting=0.9).rescale_on(*NOTHING), "window must be a number"),
    ],
)
def test_refuses_what_it_cannot_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_true_stands_for_the_forgetting_of_the_held_model():
    assert Standardize(AGP(forgetting=0.9), adapt=True).forgetting == 0.9
