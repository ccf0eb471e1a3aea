"""The default measured: inputs known in time, rivals that do not see what they predict, figures told right."""

import doctest

import numpy as np
import pytest
from river.linear_model import LinearRegression
from scipy.special import ndtri

from benchmarks.defaults import (
    cases,
    disturbed,
    kept,
    libraries,
    quantiles,
    ratios,
    rivals,
    score,
    store,
    streams,
    tables,
)
from benchmarks.defaults.streams import WARMUP, with_lags
from driftgp.predictions import Gaussian

RNG = np.random.default_rng(0)
TIME = np.datetime64("2024-01-01T00") + np.arange(700).astype("timedelta64[h]")
SERIES = np.sin(np.arange(700) / 4.0) + RNG.normal(0.0, 0.1, 700)
SMALL = with_lags("small", SERIES, (1, 3), (RNG.normal(size=(700, 1)), ("other",)), time=TIME)


@pytest.mark.parametrize("module", [streams, score, store, quantiles, libraries, disturbed, tables])
def test_the_examples_run(module):
    assert doctest.testmod(module).failed == 0


# ---- streams ---------------------------------------------------------------------------------------------------------


def test_a_lag_is_the_target_of_so_many_rows_before():
    np.testing.assert_array_equal(SMALL.y, SERIES[3:])
    np.testing.assert_array_equal(SMALL.X[:, 0], SERIES[2:-1])
    np.testing.assert_array_equal(SMALL.X[:, 1], SERIES[:-3])


def test_delayed_inputs_hold_no_target_that_is_not_known_yet():
    late = cases.delayed(SMALL, rows=2)
    np.testing.assert_array_equal(late.y, SMALL.y[1:])
    np.testing.assert_array_equal(late.X[1:, 0], SMALL.y[:-2])  # two rows back
    np.testing.assert_array_equal(late.X[:, 1], SMALL.X[1:, 1])  # three rows back are in time
    np.testing.assert_array_equal(late.X[:, 2], SMALL.X[1:, 2])


def test_monday_is_the_first_day_of_the_week_and_hours_are_those_of_the_clock():
    waves, names = streams.clock(np.array(["2024-01-01T06", "2024-01-02T00"], "datetime64[h]"))
    found = dict(zip(names, waves.T, strict=True))
    np.testing.assert_allclose(found["sin hour"], [1.0, 0.0])
    np.testing.assert_allclose(found["sin weekday"], [0.0, np.sin(2 * np.pi / 7)])
    assert streams.one_hot(np.array(["2024-01-01T06"], "datetime64[h]"))[0].argmax() == 6


def test_a_jump_reaches_the_lags_when_they_reach_the_jump():
    step = np.where(np.arange(len(SMALL.y)) >= 10, 5.0, 0.0)
    jumped = disturbed.with_steps(SMALL, step, lagged=True)
    moved = jumped.X - SMALL.X
    assert moved[10:12, 0].tolist() == [0.0, 5.0]
    assert moved[10:14, 1].tolist() == pytest.approx([0.0, 0.0, 0.0, 5.0])
    assert not moved[:, 2].any()


# ---- rivals ----------------------------------------------------------------------------------------------------------

QUICK = {name: rivals.MEANS[name] for name in ("persistence", "linear regression", "Ridge fitted once")}
QUICK |= {"refitted": rivals.refitted(rivals._ridge), "by river": rivals.by_river(LinearRegression)}


@pytest.mark.parametrize("name", QUICK)
def test_a_rival_does_not_see_the_targets_that_it_predicts(name):
    later = SMALL._replace(y=np.where(np.arange(len(SMALL.y)) >= 600, 99.0, SMALL.y))
    one, other = (QUICK[name](given) for given in (SMALL, later))
    assert len(one) == len(SMALL.y) - quantiles.HALF
    np.testing.assert_array_equal(one[: 601 - quantiles.HALF], other[: 601 - quantiles.HALF])


def test_linear_regression_by_recursion_is_least_squares_on_all_rows_so_far():
    X = np.column_stack([SMALL.X, np.ones(len(SMALL.y))])
    w = np.linalg.lstsq(X[:650], SMALL.y[:650], rcond=None)[0]
    assert rivals.linear(SMALL)[650 - quantiles.HALF] == pytest.approx(X[650] @ w, abs=1e-4)


def test_the_variance_of_a_rival_is_that_of_the_residuals_before_the_row():
    means, y = np.zeros(4), np.array([1.0, 3.0, 2.0, 7.0])
    law = rivals.with_residuals(means, y, rows=2)
    np.testing.assert_allclose(law.variance, [(1 + 9) / 2, (1 + 9 + 4) / 3])


# ---- rivals with laws of their own -----------------------------------------------------------------------------------


def normal_quantiles(mean, std):
    return quantiles.Quantiles(mean, mean + std * ndtri(quantiles.LEVELS)[:, None])


def test_a_law_by_quantiles_of_a_normal_one_is_that_law():
    rng = np.random.default_rng(3)
    mean, std, y = rng.normal(size=9), np.exp(rng.normal(size=9)), rng.normal(size=9)
    here, there = normal_quantiles(mean, std), Gaussian(mean, std**2, std**2)
    for ask in (lambda law: law.to_normal(y), lambda law: law.log_prob(y), lambda law: law.interval(0.8)):
        np.testing.assert_allclose(ask(here), ask(there), rtol=1e-6)
    np.testing.assert_allclose(here.crps(y), there.crps(y), rtol=2e-3)
    np.testing.assert_allclose(here.variance, there.variance, rtol=2e-2)


def test_quantiles_that_cross_are_put_in_order():
    values = np.repeat(np.sin(np.arange(len(quantiles.LEVELS)))[:, None], 2, 1)
    law = quantiles.Quantiles(np.zeros(2), values)
    assert (np.diff(law.values, axis=0) > 0.0).all()
    np.testing.assert_allclose(law.values, np.sort(values, 0), atol=0.05)


@pytest.mark.parametrize("name", quantiles.LAWS)
def test_a_law_of_a_rival_does_not_see_the_targets_that_it_predicts(name, monkeypatch):
    monkeypatch.setattr(quantiles, "LEVELS", np.array([0.025, 0.2, 0.5, 0.8, 0.975]))
    later = SMALL._replace(y=np.where(np.arange(len(SMALL.y)) >= 600, 99.0, SMALL.y))
    one, other = (rivals.follow(name, given).prediction for given in (SMALL, later))
    assert one.values.shape == (5, len(SMALL.y) - WARMUP)
    np.testing.assert_array_equal(one.values[:, : 601 - WARMUP], other.values[:, : 601 - WARMUP])


def test_corrected_quantiles_hold_their_levels_where_the_first_ones_do_not():
    rng = np.random.default_rng(0)
    y = rng.normal(size=3000) * np.linspace(1.0, 3.0, 3000)
    wrong = np.tile(0.3 * ndtri(quantiles.LEVELS), (3000, 1))
    held = (y[WARMUP - quantiles.HALF :, None] <= quantiles.corrected(wrong, y)).mean(0)
    np.testing.assert_allclose(held, quantiles.LEVELS, atol=0.015)


def test_groups_find_the_rows_whose_intervals_are_too_narrow():
    rows, rng = 4000, np.random.default_rng(0)
    time = np.datetime64("2024-01-01T00") + np.arange(rows).astype("timedelta64[h]")
    X = rng.normal(size=(rows, 2))
    spread = np.where((streams.hours(time) == 17) | (X[:, 0] > 1.0), 2.0, 1.0)
    given = streams.Stream("rows", X, spread * rng.normal(size=rows), ("a", "b"), time)
    blind, exact = (
        score.by_group(score.Followed(Gaussian(np.zeros(rows), width**2, width**2), given.y, 1.0), given)
        for width in (np.ones(rows), spread)
    )
    assert blind["worst_hour"] < 0.75 < 0.9 < exact["worst_hour"]
    assert blind["worst_leaf"] < 0.75 < 0.9 < exact["worst_leaf"]
    assert exact["worst_decile"] > 0.92


# ---- figures ---------------------------------------------------------------------------------------------------------


def test_the_default_is_scored_after_the_warm_up():
    found = score.follow(SMALL)
    assert len(found.y) == len(SMALL.y) - WARMUP
    told = score.scores(found)
    assert told["mse"] == pytest.approx(np.mean(found.errors**2))
    assert 0.0 <= told["worst_window"] <= told["coverage_95"] <= 1.0


def test_a_wild_target_is_compared_with_the_same_rows_undisturbed(monkeypatch):
    monkeypatch.setattr(disturbed, "PLACES", (520, 600))
    monkeypatch.setattr(disturbed, "WILD", 0.0)
    told = disturbed._wild(SMALL, "medium")
    assert [told[kind] for kind in ("target", "lags", "input")] == pytest.approx([1.0, 1.0, 1.0], rel=1e-12)


def scores_of(mse: float) -> dict[str, dict[str, float]]:
    one = {"mse": mse, "nlpd": mse, "crps": mse, "coverage_95": 0.95, "worst_window": 0.92, "microseconds": 1.0}
    return {name: one | {"coverage_50": 0.5, "coverage_80": 0.8} for name in streams.TEN}


def test_efforts_do_not_compete_with_one_another():
    found = {"low": scores_of(3.0), "medium": scores_of(2.0), "high": scores_of(1.0), "rival": scores_of(2.5)}
    assert [kept.mean_rank(found, name, "mse") for name in found] == [2.0, 1.0, 1.0, 2.0]


def test_the_tables_go_between_their_marks_and_leave_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FOLDER", tmp_path / "results")
    for source, method, mse in (("rivals", kept.LIGHTGBM, 4.0), ("default", "medium", 1.0), ("rivals", "other", 2.0)):
        store.add(source, method, scores_of(mse))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n", encoding="utf-8")
    tables.write(page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| default, medium effort |" + 11 * " 0.250 |" + " 1.0 |" in text
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="put them where the tables belong"):
        tables.write(page)


def test_the_summary_for_users_divides_errors_by_those_of_lightgbm(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FOLDER", tmp_path / "results")
    store.add("default", "medium", scores_of(1.0))
    store.add("rivals", kept.LIGHTGBM, scores_of(4.0))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{tables.SUMMARY_BEGIN}\nold\n{tables.SUMMARY_END}\nafter\n", encoding="utf-8")
    tables.write_summary(page)
    lines = page.read_text(encoding="utf-8").splitlines()
    assert "| RMSE, medium effort |" + 11 * " 0.50 |" in lines
    assert "| CRPS, medium effort |" + 11 * " 0.25 |" in lines
    assert "old" not in lines


def test_figures_are_put_beside_those_that_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    store.add("rivals", "a", {"CT": {"mse": 1.0}})
    store.add("rivals", "a", {"air": {"mse": 2.0}})
    assert store.read("rivals") == {"a": {"CT": {"mse": 1.0}, "air": {"mse": 2.0}}}
    assert store.read("nothing") == {}


def test_ratios_are_of_root_mean_squares_and_leave_gaps_where_nothing_was_run():
    base = {name: {"mse": 4.0} for name in streams.TEN}
    found = {
        kept.LIGHTGBM: base,
        "medium": {name: {"mse": 1.0} for name in streams.TEN},
        "persistence": {"metro": {"mse": 16.0}},
    }
    lines = ratios.markdown(found, list(ratios.COLUMNS)).splitlines()
    assert lines[0] == "|  | driftgp | persistence |"
    assert lines[2:4] == ["| metro | 0.50 | 2.00 |", "| bikes | 0.50 | – |"]
