"""`backtest`: no method sees a label before it is known, chance is told from skill, and the verdict says who won."""

import numpy as np
import pytest
from scipy.signal import lfilter

import driftgp
from driftgp.comparison import METHODS, OURS, Backtest, Line
from driftgp.comparison.significance import difference
from driftgp.comparison.trial import Trial

ROWS, WARMUP = 260, 120
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
    means = [METHODS[name].run(Trial(X, targets, WARMUP, horizon, 24, 16)).mean for targets in (y, other)]
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
    means = [METHODS[name].run(Trial(inputs, y, WARMUP, 1, 24, 16)).mean for inputs in (X, other)]
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
    mean = METHODS["seasonal naive"].run(Trial(X, y, WARMUP, 30, 24, 1)).mean
    assert mean[0] == y[WARMUP - 48]  # 24 rows back is not known yet
    assert mean[49] == y[WARMUP + 49 - 72]  # and 48 rows back is missing


def test_least_squares_finds_the_coefficients_of_a_line():
    X, y = stream(rows=2000)
    errors = y[WARMUP:] - METHODS["RLS"].run(Trial(X, y, WARMUP, 1, None, 1)).mean
    assert np.std(errors[500:]) < 0.31


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
    assert "are level" in verdict(1.0, 1.1, 0.2)
    assert "p = 0.200" in verdict(1.0, 1.1, 0.2)


def test_the_verdict_says_by_how_much_driftgp_wins():
    assert "the lowest error: RMSE 1 against 2 for Ridge" in verdict(1.0, 2.0, 1e-9)


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_an_unknown_method_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"methods must be among 'driftgp', 'persistence'.*got 'XGBoost'"):
        driftgp.backtest(*stream(), methods=["XGBoost"])


def test_a_method_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(METHODS, "Ridge", METHODS["Ridge"]._replace(module="no_such_library.linear"))
    with pytest.raises(ValueError, match=r'no_such_library is not installed: pip install "driftgp\[compare\]"'):
        driftgp.backtest(*stream(), methods=["Ridge"])
    for name in set(METHODS) - {OURS, "persistence", "Ridge"}:
        monkeypatch.setitem(METHODS, name, METHODS[name]._replace(module="no_such_library"))
    found = driftgp.backtest(*stream(), warmup=WARMUP)
    assert "no_such_library is not installed" in found.left_out["Ridge"]
    assert {line.method for line in found.lines} == {OURS, "persistence"}


def test_without_a_season_the_seasonal_naive_says_what_it_needs():
    with pytest.raises(ValueError, match="'seasonal naive', which cannot run: no season is known"):
        driftgp.backtest(*stream(), methods=["seasonal naive"])


def test_too_few_rows_are_refused_with_how_many_are_needed():
    with pytest.raises(ValueError, match="y must have 50 targets to score after the warm-up"):
        driftgp.backtest(*stream(rows=60))
