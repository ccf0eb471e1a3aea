"""The Gaussian prediction against SciPy and against the definitions of its scores; forecasts as views of records."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr

from driftgp import Online
from driftgp.predictions import (
    Forecast,
    Gaussian,
    Limited,
    Mixture,
    Prediction,
    Recalibrated,
    Restricted,
    Rooted,
    Stretched,
    mixture,
    nominal_reach,
)

MEAN = np.array([0.3, -2.0, 50.0])
VARIANCE = np.array([0.04, 9.0, 1e-4])
Y = np.array([0.1, 4.0, 50.02])
PREDICTION = Gaussian(MEAN, VARIANCE, 0.5 * VARIANCE)
LAW = stats.norm(MEAN, np.sqrt(VARIANCE))


def test_it_is_the_normal_law():
    np.testing.assert_allclose(PREDICTION.std, LAW.std(), rtol=1e-14)
    np.testing.assert_allclose(PREDICTION.log_prob(Y), LAW.logpdf(Y), rtol=1e-12)
    np.testing.assert_allclose(PREDICTION.cdf(Y), LAW.cdf(Y), rtol=1e-12)
    for q in (1e-6, 0.025, 0.5, 0.9):
        np.testing.assert_allclose(PREDICTION.quantile(q), LAW.ppf(q), rtol=1e-10)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_an_interval_holds_its_level_in_the_middle(level):
    low, high = PREDICTION.interval(level)
    np.testing.assert_allclose(PREDICTION.cdf(high) - PREDICTION.cdf(low), level, rtol=1e-9)
    np.testing.assert_allclose(0.5 * (low + high), MEAN, rtol=1e-12)


def test_the_reach_of_a_level_keeps_its_digits_near_one():
    levels = (0.5, 0.95, 1.0 - 1e-12)
    np.testing.assert_allclose(2.0 * ndtr(-nominal_reach(levels)), 1.0 - np.array(levels), rtol=1e-12)


def test_the_quantile_undoes_the_cdf():
    np.testing.assert_allclose(PREDICTION.quantile(PREDICTION.cdf(Y)), Y, rtol=1e-9)


def test_crps_is_its_integral():
    for i in range(3):
        law = stats.norm(MEAN[i], np.sqrt(VARIANCE[i]))
        reach = 12.0 * np.sqrt(VARIANCE[i])
        below, _ = integrate.quad(lambda z, law=law: law.cdf(z) ** 2, MEAN[i] - reach, Y[i])
        above, _ = integrate.quad(lambda z, law=law: law.sf(z) ** 2, Y[i], max(MEAN[i], Y[i]) + reach)
        np.testing.assert_allclose(PREDICTION.crps(Y)[i], below + above, rtol=1e-6)


def test_plain_numbers_and_lists_are_taken_and_numpy_is_given_back():
    for got in (PREDICTION.log_prob(Y.tolist()), PREDICTION.log_prob(y=Y), PREDICTION.cdf(0.3), PREDICTION.crps(Y)):
        assert isinstance(got, np.ndarray)
        assert got.dtype == np.float64
        assert got.shape == (3,)


def test_a_gap_has_no_score():
    assert np.isnan(PREDICTION.log_prob(np.array([0.1, np.nan, 50.0]))).tolist() == [False, True, False]


def test_several_outputs_keep_their_shape():
    ones = np.ones((4, 2))
    pair = Gaussian(0.0 * ones, ones, ones)
    low, high = pair.interval()
    assert low.shape == high.shape == pair.log_prob(np.ones((4, 2))).shape == (4, 2)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, np.nan])
def test_refuses_a_level_that_is_no_probability(level):
    with pytest.raises(ValueError, match=r"level must lie strictly between 0 and 1; got"):
        PREDICTION.interval(level)


def test_refuses_a_quantile_in_percent():
    with pytest.raises(ValueError, match=r"q must lie between 0 and 1; got 95"):
        PREDICTION.quantile([0.5, 0.9, 95])


def test_the_numbers_are_shown():
    assert repr(PREDICTION) == (
        "<Gaussian of 3 rows: mean (95% interval) 0.3 (-0.09199 to 0.692), -2 (-7.88 to 3.88), 50 (49.98 to 50.02)>"
    )
    ones = np.ones((4, 2))
    row = "[1, 1] ([-0.96, -0.96] to [2.96, 2.96])"
    assert repr(Gaussian(ones, ones, ones)) == (
        f"<Gaussian of 4 rows × 2 outputs: mean (95% interval) {row}, {row}, {row}, …>"
    )
    alone = Gaussian(np.array(1.0), np.array(4.0), np.array(1.0))
    assert repr(alone) == "<Gaussian of 1 row: mean (95% interval) 1 (-2.92 to 4.92)>"


def test_importing_predictions_brings_neither_jax_nor_scipy_stats():
    program = "import sys, driftgp.predictions; print([m in sys.modules for m in ('jax', 'scipy.stats')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[False, False]"


# ---- what every distribution does alike ----------------------------------------------------------------------------

RNG = np.random.default_rng(5)
N, P, K, LEVELS = 4, 2, 3, (0.5, 0.95)
MEANS, VARIANCES = RNG.normal(size=(K, N, P)), RNG.uniform(0.5, 2.0, size=(K, N, P))
MIXTURE = Mixture(np.array([0.5, 0.2, 0.3])[:, None, None], MEANS, VARIANCES, 0.5 * VARIANCES)
REACH = np.cumsum(RNG.uniform(0.5, 1.5, size=(2, 2, N, P)), 0)  # levels × sides × N×P
ONES = np.ones((N, P))
LAWS: dict[str, Prediction] = {
    "gaussian": Gaussian(MEANS[0], VARIANCES[0], 0.5 * VARIANCES[0]),
    "mixture": MIXTURE,
    "recalibrated": Recalibrated(MIXTURE, REACH[:, 1], None, LEVELS),
    "one-sided": Recalibrated(MIXTURE, REACH[:, 1], REACH[:, 0], LEVELS),
    "limited": Limited(MIXTURE),
    "stretched": Stretched(MIXTURE, np.array([[1.0, 1.5], [2.0, 1.0], [1.0, 1.0], [3.0, 1.1]]), 2.0 * ONES),
    "rooted": Rooted(MIXTURE, -2.0 * ONES, np.array([0.0, 0.5]) * ONES, ONES),
    "restricted": Restricted(MIXTURE, -2.0 * ONES, np.inf * ONES, 0.1 * ONES, 0.05 * ONES),
}
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
SCORES = ("cdf", "log_prob", "crps", "to_normal")
TARGETS = RNG.normal(size=(N, P))


def everything(law: Prediction, y: np.ndarray) -> np.ndarray:
    """All that a distribution says, one after another."""
    scores = [getattr(law, score)(y) for score in SCORES]
    return np.stack([law.mean, law.variance, law.noise, law.std, *scores, law.from_normal(y), *law.interval(0.9)])


@every_law
def test_an_output_is_its_column(law):
    for i in range(P):
        np.testing.assert_allclose(
            everything(law.output(i), TARGETS[:, i]), everything(law, TARGETS)[..., i], rtol=1e-12
        )


@every_law
@pytest.mark.parametrize("index", [slice(1, 3), [3, 0], np.array([True, False, False, True]), -1, 0])
def test_rows_can_be_taken_out_with_and_without_outputs(law, index):
    rows = np.arange(N)[index].reshape(-1)
    some = law.rows(index)
    np.testing.assert_allclose(everything(some, TARGETS[rows]), everything(law, TARGETS)[:, rows], rtol=1e-12)
    flat = law.output(1).rows(index)
    np.testing.assert_allclose(everything(flat, TARGETS[rows, 1]), everything(law, TARGETS)[:, rows, 1], rtol=1e-12)


def test_a_row_by_itself_is_the_same_to_the_last_bit():
    """Sums over many members must not depend on how many rows there are, or doors that predict row by row differ."""
    means, variances = RNG.normal(size=(20, N, P)), RNG.uniform(0.5, 2.0, size=(20, N, P))
    mixture = Mixture(RNG.dirichlet(np.ones(20))[:, None, None], means, variances, variances)
    for law in (mixture, Recalibrated(mixture, REACH[:, 1], REACH[:, 0], LEVELS)):
        y = TARGETS
        for i in range(N):
            one, several = law.rows(i).output(0), law.output(0)
            for name in ("mean", "variance", "noise"):
                np.testing.assert_array_equal(getattr(one, name), getattr(several, name)[i])
            for name in ("cdf", "log_prob", "to_normal", "from_normal"):
                np.testing.assert_array_equal(getattr(one, name)(y[i, 0]), getattr(several, name)(y[:, 0])[i])


@every_law
def test_axes_in_front_are_as_many_calls(law):
    several = RNG.normal(size=(3, N, P))
    for name in (*SCORES, "from_normal"):
        method = getattr(law, name)
        np.testing.assert_allclose(method(several), [method(one) for one in several], rtol=1e-10, atol=1e-12)
    q = np.array([0.1, 0.5, 0.99])
    np.testing.assert_allclose(law.quantile(q[:, None, None]), [law.quantile(one) for one in q], rtol=1e-10)


@every_law
def test_scaling_by_row_and_output_scales_everything(law):
    scale, shift = RNG.uniform(0.5, 4.0, size=(N, P)), RNG.normal(size=(N, P))
    scaled, y = law.scaled(scale, shift), scale * TARGETS + shift
    np.testing.assert_allclose(scaled.mean, scale * law.mean + shift, rtol=1e-10)
    np.testing.assert_allclose(scaled.std, scale * law.std, rtol=1e-10)
    np.testing.assert_allclose(scaled.noise, scale**2 * law.noise, rtol=1e-10)
    np.testing.assert_allclose(scaled.cdf(y), law.cdf(TARGETS), rtol=1e-10)
    np.testing.assert_allclose(scaled.log_prob(y), law.log_prob(TARGETS) - np.log(scale), rtol=1e-10)
    np.testing.assert_allclose(scaled.crps(y), scale * law.crps(TARGETS), rtol=1e-9)


@every_law
def test_draws_have_the_law_they_are_drawn_from(law):
    draws = law.sample(4000, seed=1)
    assert draws.shape == (4000, N, P)
    np.testing.assert_array_equal(draws[:3], law.sample(4000, np.random.default_rng(1))[:3])
    np.testing.assert_allclose((draws <= law.quantile(0.8)).mean(0), 0.8, atol=0.03)


@every_law
def test_gaps_and_infinite_targets_do_not_spread(law):
    y = TARGETS.copy()
    y[0, 0], y[1, 1], y[2, 0] = np.nan, np.inf, -np.inf
    cdf = law.cdf(y)
    assert np.isnan(cdf[0, 0])
    assert cdf[1, 1] == 1.0
    assert cdf[2, 0] == 0.0
    for name in (*SCORES, "from_normal"):
        got, whole = getattr(law, name)(np.where(np.isnan(y), y, TARGETS)), getattr(law, name)(TARGETS)
        assert np.isnan(got[0, 0])
        np.testing.assert_allclose(got.reshape(-1)[1:], whole.reshape(-1)[1:], rtol=1e-10)


@every_law
def test_the_ends_of_probability_are_infinite(law):
    assert np.all(law.quantile(0.0) == -np.inf)
    assert np.all(law.quantile(1.0) == np.inf)


@every_law
def test_a_pickle_and_a_copy_say_the_same(law):
    for other in (pickle.loads(pickle.dumps(law)), copy.copy(law), copy.deepcopy(law)):
        np.testing.assert_array_equal(everything(other, TARGETS), everything(law, TARGETS))


def test_refuses_an_output_of_one_output():
    """The last axis is then the rows: output(2) would silently be row 2."""
    with pytest.raises(ValueError, match=r"output\(i\) needs several outputs; got i = 2"):
        PREDICTION.output(2)


# ---- forecasts: records read as a distribution ---------------------------------------------------------------------


class Mixing:
    """As much of a model as a forecast asks for; counts how often its law is built."""

    def __init__(self) -> None:
        self.built = 0

    def law(self, forecasts: np.ndarray) -> Prediction:
        self.built += 1
        weights = np.moveaxis(forecasts["weights"], -1, 0)[..., None]
        return Mixture(weights, *(np.moveaxis(forecasts[name], 1, 0) for name in ("means", "variances", "noises")))


def records(outputs: int) -> np.ndarray:
    """Forecasts of MIXTURE's first outputs."""
    numbers = [("mean", "f8", (outputs,)), ("variance", "f8", (outputs,)), ("noise", "f8", (outputs,))]
    members = [(name, "f8", (K, outputs)) for name in ("means", "variances", "noises")]
    made = np.zeros(N, [*numbers, ("weights", "f8", (K,)), *members])
    for name in ("mean", "variance", "noise"):
        made[name] = getattr(MIXTURE, name)[:, :outputs]
    made["weights"] = MIXTURE.weights[:, 0, 0]
    for name in ("means", "variances", "noises"):
        made[name] = np.moveaxis(getattr(MIXTURE, name), 0, 1)[..., :outputs]
    return made


def test_a_forecast_says_what_its_law_says():
    np.testing.assert_allclose(
        everything(Forecast(Mixing(), records(P), flat=False), TARGETS), everything(MIXTURE, TARGETS), rtol=1e-12
    )


def test_one_plain_target_comes_back_without_its_column():
    forecast = Forecast(Mixing(), records(1), flat=True)
    got = everything(forecast, TARGETS[:, 0])
    assert got.shape[1:] == (N,)
    np.testing.assert_allclose(got, everything(MIXTURE.output(0), TARGETS[:, 0]), rtol=1e-12)


def test_the_mean_is_read_without_building_a_law_and_the_law_is_built_once():
    model = Mixing()
    forecast = Forecast(model, records(1), flat=True)
    assert forecast.mean.shape == forecast.variance.shape == forecast.noise.shape == forecast.std.shape == (N,)
    assert model.built == 0
    assert "4 rows" in repr(forecast)
    model.built = 0
    forecast.interval(), forecast.log_prob(0.0)
    assert model.built == 1


def test_rows_of_a_forecast_are_forecasts_with_their_records():
    forecast = Forecast(Mixing(), records(P), flat=False)
    some = forecast.rows([2, 0])
    assert isinstance(some, Forecast)
    np.testing.assert_array_equal(some.records["means"], forecast.records["means"][[2, 0]])
    np.testing.assert_allclose(everything(some, TARGETS[[2, 0]]), everything(forecast, TARGETS)[:, [2, 0]], rtol=1e-12)
    assert forecast.rows(-1).mean.shape == (1, P)


def test_the_engine_answers_unless_outputs_have_scores_of_their_own():
    asked = []

    def solve(forecasts: np.ndarray, z: np.ndarray) -> np.ndarray:
        asked.append(z.tolist())
        return Mixing().law(forecasts).from_normal(z.reshape(len(z), -1, 1))

    for outputs in (1, P):
        plain = Forecast(Mixing(), records(outputs), flat=outputs == 1)
        quick = Forecast(Mixing(), records(outputs), flat=outputs == 1, solve=solve)
        several = np.linspace(0.1, 0.9, 6).reshape(3, 2, *(1 for _ in plain.shape))
        by_row = np.linspace(0.1, 0.9, 2 * N).reshape(2, N, *(1 for _ in plain.shape[1:]))
        for native in (0.5, several, by_row, by_row[0]):
            np.testing.assert_array_equal(quick.quantile(native), plain.quantile(native))
        np.testing.assert_array_equal(quick.interval(0.9), plain.interval(0.9))
        np.testing.assert_array_equal(quick.rows([1]).interval(), plain.rows([1]).interval())
        assert [np.shape(z) for z in asked] == [(1,), (6,), (2, N), (1, N), (3,), (3,)]
        asked.clear()
        if outputs > 1:
            by_output = np.linspace(0.1, 0.9, outputs)
            np.testing.assert_array_equal(quick.quantile(by_output), plain.quantile(by_output))
            assert asked == []


def test_a_pickled_forecast_leaves_the_engine_behind():
    def solve(forecasts: np.ndarray, z: np.ndarray) -> np.ndarray:
        raise AssertionError("the engine was asked")

    forecast = Forecast(Mixing(), records(P), flat=False, solve=solve)
    for other in (pickle.loads(pickle.dumps(forecast)), copy.copy(forecast), copy.deepcopy(forecast)):
        np.testing.assert_array_equal(other.records, forecast.records)
        np.testing.assert_allclose(everything(other, TARGETS), everything(MIXTURE, TARGETS), rtol=1e-12)


def test_a_library_in_place_of_a_level_is_refused_with_the_way_to_say_it():
    with pytest.raises(ValueError, match="level must be a number or several; got 'polars': name a library by library="):
        PREDICTION.to_frame("polars")
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1; got 95"):
        PREDICTION.to_frame(95)


def test_scores_of_a_stream_with_cold_rows_are_computed_by_the_engine(monkeypatch):
    """A few stretched laws at the beginning made CRPS forty times as slow: NumPy found the roots of all rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    forecast = Online(effort="low").evaluate(X, y)
    if forecast._solve is None:
        pytest.skip("there is no compiled engine here")
    expected = forecast.law.crps(y)[1:]
    monkeypatch.setattr(mixture, "_roots", None)
    np.testing.assert_allclose(forecast.crps(y)[1:], expected, rtol=1e-9)
