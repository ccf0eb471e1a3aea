"""What a series learns: each lead its own least squares, whatever the horizon, and the same by C++ and NumPy."""

import numpy as np
import pytest

from driftgp.forecasting import mixture
from driftgp.forecasting.by_slot import BySlot, Robust
from driftgp.forecasting.dependence import Dependence
from driftgp.forecasting.regression import Regression
from driftgp.forecasting.seasons import Seasons, found, of_clock
from driftgp.forecasting.series import Series, Settings
from driftgp.forecasting.smoothers import Rates, Smoothers


def times(count: int, step: str = "h") -> np.ndarray:
    return (np.datetime64("2024-01-01T00", step) + np.arange(count)).astype("datetime64[us]")


def curve(count: int, seed: int = 0, noise: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 100.0 + 10.0 * np.sin(2 * np.pi * np.arange(count) / 24) + noise * rng.normal(size=count)


def followed(settings: Settings, y: np.ndarray, **columns: np.ndarray) -> Series:
    series = Series(settings)
    series.take(y, times(len(y)) if settings.step else None, **columns)
    return series


# ---- what is learned -------------------------------------------------------------------------------------------------


def test_each_lead_is_weighted_least_squares_over_the_origins_whose_label_has_come():
    H, D, N, memory = 3, 4, 60, 20.0
    rng = np.random.default_rng(0)
    Phi, y = rng.normal(size=(N, D)), rng.normal(size=N)
    prior = rng.uniform(0.5, 2.0, D)
    regression = Regression(prior, H, memory)
    for row in range(N):
        if row:
            targets = np.where(np.arange(1, H + 1) <= row, y[row], np.nan)
            regression.learn(row, targets, np.full(H, np.inf))
        regression.observe(row, Phi[row])
    forgetting = 1.0 - 1.0 / memory
    for h in range(1, H + 1):
        origins = np.arange(N - h)  # the label of origin t is y[t + h]
        last = origins[-1]
        weight = forgetting ** (last - origins)
        A = forgetting ** (last + 1) * np.diag(1.0 / prior) + (Phi[origins] * weight[:, None]).T @ Phi[origins]
        b = (Phi[origins] * weight[:, None]).T @ y[origins + h]
        np.testing.assert_allclose(regression.w[h - 1], np.linalg.solve(A, b), rtol=1e-7, atol=1e-9)


def test_weights_are_the_least_over_the_simplex():
    rng = np.random.default_rng(1)
    for _ in range(20):
        J = int(rng.integers(2, 9))
        B = rng.normal(size=(J, J))
        A = B @ B.T + 0.01 * np.eye(J)
        w = mixture.simplex(A)
        assert w.min() >= 0.0
        assert abs(w.sum() - 1.0) < 1e-12
        others = rng.dirichlet(np.full(J, 0.3), size=4000)
        assert w @ A @ w <= np.einsum("nj,jk,nk->n", others, A, others).min() + 1e-9


def test_a_member_that_fails_loses_its_weight():
    rng, mixed = np.random.default_rng(0), mixture.Mixture(3, np.ones(3))
    for _ in range(60):
        errors = rng.normal(size=(3, 3)) * np.array([1.0, 1.0, 30.0])
        mixed.learn(errors)
    for b in range(len(mixed.starts)):
        mixed.solve(b)
    assert mixed.of_leads()[:, 2].max() < 0.01
    np.testing.assert_allclose(mixed.of_leads().sum(1), 1.0)


def test_a_smoother_begins_with_plain_means():
    smoother = Smoothers([Rates(0.01)], (), 2)
    y = np.array([3.0, 5.0, np.nan, 10.0])
    for value in y:
        smoother.learn(value, np.zeros(0, int))
    np.testing.assert_allclose(smoother.forecasts(np.zeros((0, 2), int)), 6.0)


def test_seasons_are_found_and_not_invented():
    t, rng = np.arange(700), np.random.default_rng(0)
    assert found(np.sin(2 * np.pi * t / 24) + (t // 24 % 7 > 4) + 0.3 * rng.normal(size=700)) == (24, 168)
    assert found(10.0 * (t[:120] % 5 == 3) + rng.normal(size=120)) == (5,)
    invented = [found(np.cumsum(np.random.default_rng(seed).normal(size=400))) for seed in range(40)]
    assert sum(lengths != () for lengths in invented) <= 4
    assert found(np.full(100, 3.0)) == ()


def test_slots_are_those_of_the_clock():
    slots = of_clock(3600.0).slots(0, times(200), 200)
    assert slots[:, 0].tolist() == [0, 0]  # a Monday at midnight
    assert slots[:, 25].tolist() == [1, 25]
    assert slots[:, 168 + 5].tolist() == [5, 5]
    assert Seasons((5,), None, False).slots(7, None, 2).tolist() == [[2, 3]]


# ---- forecasts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effort", ["low", "medium"])
def test_a_step_does_not_depend_on_the_horizon(effort):
    y = curve(500)
    fans = [followed(Settings(horizon, effort, step=3600.0), y).fan(np.arange(3)) for horizon in (3, 28)]
    np.testing.assert_allclose(fans[0].mean, fans[1].mean, rtol=1e-9)
    np.testing.assert_allclose(fans[0].quantile(0.9), fans[1].quantile(0.9), rtol=1e-9)


def test_fewer_steps_than_the_horizon_are_the_first_ones():
    series = followed(Settings(12), curve(300))
    few, all_ = series.fan(np.arange(5)), series.fan(np.arange(12))
    np.testing.assert_array_equal(few.mean, all_.mean[:5])
    np.testing.assert_array_equal(few.interval()[1], all_.interval()[1][:5])
    assert few.correlation.shape == (5, 5)


def test_effects_known_ahead_come_near_to_least_squares():
    rng, n = np.random.default_rng(0), 600
    day, promotion = np.arange(n), (rng.uniform(size=n) < 0.2).astype(float)
    y = (
        200.0
        + np.array([0.0, 5.0, 10.0, 20.0, 40.0, 80.0, 60.0])[day % 7]
        + 80.0 * promotion
        + 10.0 * rng.normal(size=n)
    )
    X = np.column_stack([np.eye(7)[day % 7], promotion])
    series = Series(Settings(14, known=1, step=86400.0))
    ours, least_squares = [], []
    for origin in range(300, n - 14, 20):
        rows = slice(series.rows, origin)
        series.take(y[rows], times(n, "D")[rows], promotion[rows, None])
        steps = slice(origin, origin + 14)
        fan = series.fan(day[steps], times(n, "D")[steps], promotion[steps, None])
        ours.append(np.abs(fan.mean - y[steps]).mean())
        beta = np.linalg.lstsq(X[:origin], y[:origin], rcond=None)[0]
        least_squares.append(np.abs(X[steps] @ beta - y[steps]).mean())
    assert np.mean(ours) < 1.06 * np.mean(least_squares)


def test_a_random_walk_is_forecast_by_its_last_value_with_the_width_it_has():
    rng = np.random.default_rng(3)
    y = np.cumsum(rng.normal(size=1500))
    series, widths, errors, naive = Series(Settings(6)), [], [], []
    for origin in range(800, 1490, 3):
        series.take(y[series.rows : origin + 1])
        fan = series.fan(np.arange(6))
        low, high = fan.interval(0.95)
        widths.append((high - low) / (2 * 1.96 * np.sqrt(np.arange(1, 7))))
        errors.append(np.abs(fan.mean - y[origin + 1 : origin + 7]))
        naive.append(np.abs(y[origin] - y[origin + 1 : origin + 7]))
    assert np.all(np.abs(np.mean(widths, 0) - 1.0) < 0.15)
    assert np.mean(errors) < 1.03 * np.mean(naive)


def test_a_series_that_goes_below_0_after_its_first_rows_is_followed():
    y = np.append(np.abs(np.random.default_rng(0).normal(size=60)), 1.0 - np.cumsum(np.ones(300)) / 10.0)
    y += 0.1 * np.random.default_rng(1).normal(size=360) * (np.arange(360) >= 60)
    series, errors = Series(Settings(3)), []
    for row in range(60, 357):
        series.take(y[series.rows : row + 1])
        errors.append(np.abs(series.fan(np.arange(3)).mean - y[row + 1 : row + 4]).mean())
    assert np.mean(errors[150:]) < 0.3


def test_one_negative_value_changes_nothing_for_counts():
    y = np.random.default_rng(0).poisson(1.0, 400).astype(float)
    y[300] = -1.0
    fan = followed(Settings(3), y).fan(np.arange(3))
    assert fan.interval()[0].min() >= 0.0


def test_a_straight_ramp_goes_on():
    fan = followed(Settings(5), np.arange(140.0)).fan(np.arange(5))
    np.testing.assert_allclose(fan.mean, np.arange(140.0, 145.0), atol=1.5)


def test_an_almost_exact_season_is_not_lost():
    y = np.tile(np.array([1.0, 5.0, 2.0, 8.0, 3.0, 4.0, 9.0]), 40)
    fan = followed(Settings(7), y).fan(np.arange(7))
    np.testing.assert_allclose(fan.mean, y[:7], atol=0.05)


def test_what_forecasts_were_worth_is_counted():
    worth = followed(Settings(4), curve(600)).worth()
    assert np.all(worth.error < worth.naive)
    assert np.all(np.abs(worth.inside - 0.95) < 0.03)
    assert np.all(np.diff(worth.judged) == -1.0)


# ---- states ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [[1, 2, 49, 50, 51, 127, 200], list(range(1, 260))])
def test_a_block_of_rows_equals_its_rows_one_by_one(cuts):
    y, known = curve(260), np.random.default_rng(1).normal(size=(260, 2))
    y[[70, 71, 150]] = np.nan
    y[180] = 1e6  # a wild value
    whole = followed(Settings(6, known=2, step=3600.0), y, known=known)
    parts = Series(Settings(6, known=2, step=3600.0))
    for rows in np.split(np.arange(260), cuts):
        parts.take(y[rows], times(260)[rows], known[rows])
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(parts.arrays()[name], array, err_msg=name)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(5, "low"),
        Settings(8, known=2, past=1, step=3600.0),
        Settings(30, "high", step=3600.0),
        Settings(4, season=(12,)),
    ],
)
def test_the_compiled_rows_are_those_of_the_reference(settings, monkeypatch):
    rng = np.random.default_rng(0)
    y = curve(190)
    y[100:103] = np.nan
    columns = {"known": rng.normal(size=(190, settings.known)), "past": rng.normal(size=(190, settings.past))}
    monkeypatch.setenv("DRIFTGP_ENGINE", "auto")
    compiled = followed(settings, y, **columns).arrays()
    monkeypatch.setenv("DRIFTGP_ENGINE", "reference")
    reference = followed(settings, y, **columns).arrays()
    for name, array in reference.items():
        size = np.nanmax(np.abs(array), initial=1e-9) if np.isfinite(array).any() else 1.0
        np.testing.assert_allclose(compiled[name], array, rtol=0.0, atol=1e-8 * size, err_msg=name)


@pytest.mark.parametrize("rows", [20, 60, 300])
def test_a_series_goes_on_from_its_arrays(rows):
    y = curve(400)
    settings = Settings(6, step=3600.0)
    first = followed(settings, y[:rows])
    again = Series.of(settings, {name: array.copy() for name, array in first.arrays().items()})
    for series in (first, again):
        series.take(y[rows:], times(400)[rows:])
    np.testing.assert_array_equal(first.fan(np.arange(6)).interval(), again.fan(np.arange(6)).interval())


@pytest.mark.parametrize("name", ["core.m", "core.reach.v", "core.few.P", "core.frame", "kept", "core.lengths"])
def test_arrays_that_no_row_could_have_left_are_refused(name):
    settings = Settings(6, step=3600.0)
    arrays = followed(settings, curve(100)).arrays()
    for bad in (np.zeros(3), np.full(arrays[name].shape, -np.inf), None):
        damaged = {key: array for key, array in arrays.items() if key != name} | ({} if bad is None else {name: bad})
        with pytest.raises(ValueError, match="damaged"):
            Series.of(settings, damaged)


def test_a_copy_goes_on_by_itself():
    y = curve(300)
    first = followed(Settings(6), y[:200])
    before = first.fan(np.arange(6)).mean
    second = first.copy()
    second.take(y[200:])
    np.testing.assert_array_equal(first.fan(np.arange(6)).mean, before)
    first.take(y[200:])
    np.testing.assert_array_equal(first.fan(np.arange(6)).mean, second.fan(np.arange(6)).mean)


def test_too_few_targets_for_a_forecast_are_named():
    with pytest.raises(ValueError, match="a forecast needs 3 targets or more; there are 2"):
        followed(Settings(3), np.array([1.0, np.nan, 2.0])).fan(np.arange(3))


# ---- regressions by slot ---------------------------------------------------------------------------------------------


def by_slot(known: np.ndarray, horizon: int = 30) -> BySlot:
    """Of days of 12 rows and weeks, with columns that say only what they are."""
    return BySlot((12, 84), horizon, 1000.0, known.shape[1], known, yearly=False)


def test_a_slot_is_weighted_least_squares_over_its_rows():
    rng = np.random.default_rng(0)
    prior = rng.uniform(0.1, 0.5, 9)
    model = Robust(prior, 12)
    Phi, z = rng.normal(size=(20, 9)), rng.normal(size=20)
    for phi, value in zip(Phi, z, strict=True):
        model.learn(value, phi, 3)
    weight = model.forgetting ** (19 - np.arange(20))
    A = model.forgetting**20 * np.diag(1.0 / prior) + (Phi * weight[:, None]).T @ Phi
    b = (Phi * weight[:, None]).T @ z
    np.testing.assert_allclose(model.theta[3], np.linalg.solve(A, b), rtol=1e-7, atol=1e-10)
    assert not model.theta[np.arange(12) != 3].any()


def test_one_far_value_moves_a_slot_no_more_than_a_usual_error():
    rng, moved = np.random.default_rng(0), []
    for far in (5.0, 5e6):
        model = Robust(np.full(30, 0.2), 12)
        Phi = rng.normal(size=(60, 30))
        for phi in Phi:
            model.learn(float(phi[0]) + rng.normal(), phi, 0)
        before = model.theta[0].copy()
        model.learn(far, Phi[0], 0)
        moved.append(np.abs(model.theta[0] - before).max())
    assert max(moved) < 0.2


def test_values_that_a_slot_looks_back_to_are_known_at_the_origin():
    values = np.arange(500.0)
    model = by_slot(np.zeros((0, 0)), horizon=100)
    slots = (500 + np.arange(100)) % np.array([[12], [84]])
    phi, level = model.features(values, slots, np.zeros(100))
    later = np.append(values, [1e9])[:-1]
    np.testing.assert_array_equal(model.features(later, slots, np.zeros(100))[0], phi)
    assert level.max() <= 499.0
    np.testing.assert_allclose(phi[:12, 0] + level[:12], values[-12:])  # a season before each of the next rows
    np.testing.assert_allclose(phi[12:24, 0] + level[12:24], values[-12:])  # the last one that is known
    np.testing.assert_allclose(phi[:84, len(model.lags)] + level[:84], values[-84:])


def test_the_season_before_is_used_where_all_of_it_is_known():
    values = np.arange(500.0)
    model = by_slot(np.zeros((0, 0)))
    slots = (500 + np.arange(30)) % 12
    season, known = model.last_season(values, slots, np.zeros(30))
    assert known.tolist() == [True] * 4 + [False] * 26  # row 500 has slot 8: the season ends with row 503
    np.testing.assert_array_equal(season[0], np.arange(480.0, 492.0))
    np.testing.assert_array_equal(season[3], season[0])
    season, known = model.last_season(np.arange(504.0), (504 + np.arange(12)) % 12, np.zeros(12))
    assert known.all()
    np.testing.assert_array_equal(season[-1], np.arange(492.0, 504.0))


def test_columns_count_by_slot_of_the_season():
    rng, n = np.random.default_rng(0), 2400
    known = rng.normal(size=(n, 1))
    hour = np.arange(n) % 24
    y = 100.0 + 20.0 * np.where(hour < 12, 1.0, -1.0) * known[:, 0] + rng.normal(size=n)
    series = followed(Settings(24, known=1, step=3600.0), y[:-24], known=known[:-24])
    fan = series.fan(np.arange(24), times(n)[-24:], known[-24:])
    assert np.abs(fan.mean - y[-24:]).mean() < 2.0
    assert series.weights()["slots"].sum() + series.weights()["slots and last errors"].sum() > 12.0


# ---- dependence between leads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", [1.0, 3.0])
def test_sums_of_all_leads_are_as_often_inside_as_they_should_be(largest):
    H, N = 6, 6000
    rng = np.random.default_rng(0)
    between, outside = Dependence(H, 0.02), []
    C = 0.5 + 0.5 * np.eye(H)
    half = np.quantile(np.abs(rng.uniform(1.0 / largest, largest, 100_000) * rng.normal(size=100_000)), 0.95)
    s = np.full(H, half)
    for _ in range(N):
        size = rng.uniform(1.0 / largest, largest)  # of all errors of an origin
        errors = size * rng.multivariate_normal(np.zeros(H), C)
        between.begin(0)
        between.z[0], between.size[0], between.error[0] = 1.96 / half * errors, half, errors.sum()
        correlation = between.correlation(s)
        outside.append(abs(errors.sum()) > np.sqrt(s @ correlation @ s))
        between.learn(0)
    np.testing.assert_allclose(np.diag(correlation), 1.0)
    assert np.linalg.eigvalsh(correlation)[0] > 0.0
    assert abs(np.mean(outside[1000:]) - 0.05) < 0.01


def test_inputs_of_any_size_leave_a_regression_finite():
    rng = np.random.default_rng(0)
    regression = Regression(np.full(6, 0.1), 3, 1000.0)
    for row in range(2000):
        phi = rng.normal(size=6) * 10.0 ** rng.uniform(-3.0, 35.0)
        assert np.isfinite(regression.means(phi)).all()
        regression.observe(row, phi)
        regression.learn(row, rng.normal(size=3), np.full(3, 2.0))


# ---- seasons without times -------------------------------------------------------------------------------------------


def test_a_part_of_a_day_is_no_season_of_its_own():
    rng, t = np.random.default_rng(0), np.arange(700)
    y = np.sin(2 * np.pi * t / 4) + 0.4 * np.sin(2 * np.pi * t / 24) + 0.1 * rng.normal(size=700)
    assert found(y) == (24, 168)
    assert found(y, (4,))[0] == 4  # unless the user says so


def test_a_week_is_found_as_soon_as_the_rows_show_it():
    t = np.arange(760)
    busy = (t // 24 % 7 < 5) & (t > 100) & (t < 200) | (t // 24 % 7 < 5) & (t > 240)
    y = 10.0 * busy * (1.0 + np.sin(2 * np.pi * t / 24)) + np.random.default_rng(0).normal(size=760)
    assert followed(Settings(6), y).seasons == (24, 168)
