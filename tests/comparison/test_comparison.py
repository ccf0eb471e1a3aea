"""`backtest`: no method sees a label before it is known, chance is told from skill, and the verdict says who won."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from scipy.signal import lfilter

import driftgp
from driftgp.comparison import METHODS, OURS, Backtest, Line
from driftgp.comparison.significance import difference
from driftgp.comparison.trial import Trial
from driftgp.stream.naive import Season

ROWS, WARMUP = 260, 120
DAY = Season(24.0, 24, by_rows=True)
QUICK = ["persistence", "seasonal naive", "RLS", "Ridge", "river linear"]


def stream(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    return X, X @ [1.0, -2.0] + 0.3 * rng.normal(size=rows)


@pytest.fixture(scope="module")
def found():
    X, y = stream()
    X[7, 1] = np.nan
    y[150] = np.nan
    return driftgp.backtest(X, y, methods=QUICK, warmup=WARMUP, season=24, refit=40)


@pytest.mark.parametrize("horizon", [1, 5])
@pytest.mark.parametrize("name", METHODS)
def test_no_method_uses_a_label_before_it_is_known(name, horizon):
    if METHODS[name].missing:
        pytest.skip(f"{METHODS[name].missing} is not installed")
    X, y = stream()
    row = 200  # predicted when the labels up to row − horizon are known
    other = y.copy()
    other[row - horizon + 1 :] += 100.0
    means = [METHODS[name].run(Trial(X, targets, WARMUP, horizon, DAY, 16)).mean for targets in (y, other)]
    assert len(means[0]) == ROWS - WARMUP
    np.testing.assert_array_equal(means[0][: row - WARMUP + 1], means[1][: row - WARMUP + 1])
    assert not np.array_equal(means[0], means[1])


@pytest.mark.parametrize("name", METHODS)
def test_no_method_uses_the_inputs_of_a_later_row(name):
    if METHODS[name].missing:
        pytest.skip(f"{METHODS[name].missing} is not installed")
    X, y = stream()
    other = X.copy()
    other[201:] += 10.0
    means = [METHODS[name].run(Trial(inputs, y, WARMUP, 1, DAY, 16)).mean for inputs in (X, other)]
    np.testing.assert_array_equal(means[0][: 201 - WARMUP], means[1][: 201 - WARMUP])


def test_all_methods_are_scored_on_the_same_rows(found):
    assert found.rows == ROWS - WARMUP - 1  # one target is missing
    assert all(np.isfinite(e).sum() == found.rows for e in found.errors.values())
    assert {line.method for line in found.lines} == {OURS, *QUICK}
    assert [line.rmse for line in found.lines] == sorted(line.rmse for line in found.lines)


def test_scores_are_those_of_the_errors(found):
    for line in found.lines:
        assert line.rmse == pytest.approx(np.sqrt(np.nanmean(found.errors[line.method] ** 2)))
        assert line.ratio == pytest.approx(line.rmse / found[OURS].rmse)
    assert np.isfinite(found["RLS"].crps)
    assert np.isnan(found["Ridge"].crps)  # it has no distribution


def test_the_last_value_of_the_gains_is_the_difference_of_the_sums(found):
    squares = {name: np.nansum(e**2) for name, e in found.errors.items()}
    for name, gain in found.gains.items():
        assert gain[-1] == pytest.approx(squares[name] - squares[OURS])


def test_naive_methods_know_the_last_known_target():
    X, y = stream()
    mean = METHODS["persistence"].run(Trial(X, y, WARMUP, 3, None, 1)).mean
    np.testing.assert_array_equal(mean, y[WARMUP - 3 : -3])
    y[WARMUP + 1] = np.nan
    mean = METHODS["seasonal naive"].run(Trial(X, y, WARMUP, 3, DAY, 1)).mean
    assert mean[0] == y[WARMUP - 24]
    assert mean[25] == y[WARMUP + 22]  # 24 rows back is missing: the last known one


def test_least_squares_finds_the_coefficients_of_a_line():
    X, y = stream(rows=2000)
    errors = y[WARMUP:] - METHODS["RLS"].run(Trial(X, y, WARMUP, 1, None, 1)).mean
    assert np.std(errors[500:]) < 0.31


# ---- driftgp's own line ----------------------------------------------------------------------------------------------

SETTINGS = {"target": "mw", "time": "when", "features": ["sky"], "lags": [24, 25], "calendar": "day", "effort": "low"}


def table(rows=ROWS):
    """Hours with text, blanks, a missing day and a column that is known late."""
    rng = np.random.default_rng(5)
    start, skies = datetime(2024, 1, 1), ["clear", "rain", None]
    hours = [hour for hour in range(rows + 24) if not 100 <= hour < 124]
    return [
        {
            "when": start + timedelta(hours=hour),
            "mw": 500.0 + 100.0 * np.sin(hour * np.pi / 12) + rng.normal(),
            "sky": skies[rng.integers(3)],
            "wind": rng.normal() if hour % 7 else None,
        }
        for hour in hours
    ]


@pytest.mark.parametrize("horizon", [1, 24])
def test_its_own_line_is_that_of_online_from_the_first_row_on(horizon):
    given, settings = table(), {**SETTINGS, "horizon": horizon}
    found = driftgp.backtest(given, methods=["RLS"], warmup=WARMUP, **settings)
    expected = driftgp.Online(**settings).evaluate(given)
    y = np.array([row["mw"] for row in given])
    np.testing.assert_array_equal(found.errors[OURS], (y - expected.mean)[WARMUP:])
    np.testing.assert_array_equal(found.laws[OURS].interval(0.95), np.array(expected.interval(0.95))[:, WARMUP:])
    assert found.inputs[:3] == ("sky = clear", "sky = rain", f"wind ({horizon} before)")


def test_arrays_are_evaluated_as_online_does():
    X, y = stream()
    found = driftgp.backtest(X, y, methods=["persistence"], warmup=WARMUP, horizon=3, effort="low")
    expected = driftgp.Online(horizon=3, effort="low").evaluate(X, y)
    np.testing.assert_array_equal(found.errors[OURS], (y - expected.mean)[WARMUP:])


def test_other_methods_have_the_inputs_of_the_stream():
    given = table()
    inputs = driftgp.Online(**SETTINGS).inputs_of(given)
    y = np.array([row["mw"] for row in given])
    np.testing.assert_array_equal(inputs.y, y)
    lag = inputs.X[:, inputs.names.index("lag 24")]
    assert lag[30] == y[6]
    at = [row["when"] for row in given]
    for i in range(24, ROWS):
        before = at[i] - timedelta(hours=24)
        assert lag[i] == y[at.index(before)] if before in at else np.isnan(lag[i])


def test_the_season_goes_by_the_clock_where_rows_have_dates():
    """After a missing day the hour of the day before is 24 hours back, and not 24 rows."""
    given = table()
    found = driftgp.backtest(given, methods=["seasonal naive"], warmup=WARMUP, **SETTINGS)
    y, at = np.array([row["mw"] for row in given]), [row["when"] for row in given]
    mean = y[WARMUP:] - found.errors["seasonal naive"]
    for i in range(WARMUP, ROWS):
        before = at[i] - timedelta(days=1)
        assert mean[i - WARMUP] == pytest.approx(y[at.index(before)] if before in at else y[i - 1], abs=1e-9)


def test_a_warm_up_that_is_made_shorter_is_said():
    with pytest.warns(UserWarning, match="warmup is 130 rows, not 500: half of the 260 rows are scored"):
        found = driftgp.backtest(*stream(), methods=["persistence"], effort="low")
    assert found.warmup == 130
    assert found.to_json()["warmup"] == 130


# ---- chance or skill -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_equal_methods_are_told_apart_no_more_often_than_stated(rho):
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(400):
        noise = lfilter([1.0], [1.0, -rho], rng.normal(size=(2, 600)))
        rejected += difference(noise[0] ** 2, noise[1] ** 2).p < 0.05
    assert rejected / 400 < 0.09  # 5 %, and what autocorrelation adds


def test_a_method_that_is_worse_is_found_out():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(2, 2000)) ** 2
    assert difference(noise[0], 1.3 * noise[1]).p < 0.001
    assert difference(noise[0], 1.3 * noise[1]).mean < 0.0


def test_rows_without_a_loss_do_not_count():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 300)) ** 2
    gaps = np.insert(a, 100, np.nan), np.insert(b, 100, 1.0)
    assert difference(*gaps) == difference(a, b)
    assert np.isnan(difference(a[:5], b[:5]).p)
    assert difference(a, a).p == 1.0


# ---- the verdict -----------------------------------------------------------------------------------------------------


def verdict(ours, other, p):
    lines = [Line(OURS, ours, 0, 0, 0, 0, 1.0, np.nan), Line("Ridge", other, 0, 0, 0, 0, other / ours, p)]
    return Backtest(tuple(sorted(lines, key=lambda line: line.rmse)), {}, 100, 1, {}, {}).verdict


def test_the_verdict_says_so_when_driftgp_loses():
    assert verdict(2.0, 1.0, 0.0).startswith("driftgp loses on these rows: RMSE 2 against 1 for Ridge; 100% higher")


def test_the_verdict_claims_no_win_that_may_be_noise():
    assert "may be chance" in verdict(1.0, 1.1, 0.2)
    assert "p = 0.200" in verdict(1.0, 1.1, 0.2)


def test_the_verdict_says_by_how_much_driftgp_wins():
    assert "the lowest error: RMSE 1 against 2 for Ridge" in verdict(1.0, 2.0, 1e-9)


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_an_unknown_method_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"methods must be among 'driftgp', 'persistence'.*got 'XGBoost'"):
        driftgp.backtest(*stream(), methods=["XGBoost"], warmup=WARMUP)


def test_a_method_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(METHODS, "Ridge", METHODS["Ridge"]._replace(module="no_such_library.linear"))
    with pytest.raises(ValueError, match=r'no_such_library is not installed: pip install "driftgp\[compare\]"'):
        driftgp.backtest(*stream(), methods=["Ridge"], warmup=WARMUP)
    for name in set(METHODS) - {OURS, "persistence", "Ridge"}:
        monkeypatch.setitem(METHODS, name, METHODS[name]._replace(module="no_such_library"))
    found = driftgp.backtest(*stream(), warmup=WARMUP)
    assert "no_such_library is not installed" in found.left_out["Ridge"]
    assert {line.method for line in found.lines} == {OURS, "persistence"}


def test_without_a_season_the_seasonal_naive_says_what_it_needs():
    with pytest.raises(ValueError, match="'seasonal naive', which cannot run: no season is known"):
        driftgp.backtest(*stream(), methods=["seasonal naive"], warmup=WARMUP)


def test_too_few_rows_are_refused_with_how_many_are_needed():
    with pytest.raises(ValueError, match="y must have 50 targets to score after the warm-up"):
        driftgp.backtest(*stream(rows=60))
