"""The benchmark's own logic: statistics, figures, the page; and that what it compares with computes the same."""

import doctest
import json

import numpy as np
import pytest

from benchmarks import figures as must_show
from benchmarks import limit, models, process, report, steps, streams, timing
from benchmarks.__main__ import NAMES, save, summary, what
from benchmarks.figures import Figure, best, exactly, figures, power
from benchmarks.plan import PARTS, plan
from benchmarks.streams import DEFAULTS, GRID, LOAD, TOY, Size
from benchmarks.timing import in_turn, ratio, spread, timed
from driftgp import AGP, FastAGP, prequential
from driftgp.gp.objective import Jitter, Objective
from driftgp.models.model import State

SMALL = Size(6, 30, 2)


# ---- statistics ------------------------------------------------------------------------------------------------------


def test_a_round_that_is_slow_for_all_changes_no_ratio():
    assert ratio([2.0, 20.0, 4.0], [1.0, 10.0, 2.0]) == (2.0, 2.0, 2.0)


def test_rounds_of_different_number_are_compared_by_the_median():
    assert ratio([4.0], [1.0, 2.0, 3.0]).median == 2.0


def test_one_wild_round_does_not_move_the_median():
    assert spread([1.0, 1.0, 1.0, 1.0, 900.0]).median == 1.0


def test_runs_take_turns_and_the_first_does_not_count():
    seen = []

    def run(name):
        seen.append(name)
        return float(len(seen))

    results = in_turn({"a": lambda: run("a"), "b": lambda: run("b")}, rounds=2)
    assert seen == ["a", "b"] * 3
    assert results == {"a": [3.0, 5.0], "b": [4.0, 6.0]}


def test_a_flat_cost_has_power_zero():
    assert power([(100, 5.0), (200, 5.0), (3200, 5.0)]) == pytest.approx(0.0)


@pytest.mark.parametrize("module", [timing, must_show, report])
def test_the_examples_of_the_benchmarks_run(module):
    assert doctest.testmod(module).failed == 0


# ---- figures ---------------------------------------------------------------------------------------------------------


def row(group, name, how, size, *microseconds, **more):
    return {
        "group": group, "name": name, "how": how, "M": size.M, "T": size.T, "D": size.D,
        "microseconds": list(microseconds), "peak": 1e8,
    } | more  # fmt: skip


def test_the_faster_limit_counts():
    rows = [row("grid", "limit", "C++ loops", TOY, 9.0), row("grid", "limit", "C++ BLAS", TOY, 14.0)]
    assert best(rows, "grid", "limit", TOY) == [9.0]


def test_what_was_not_measured_is_short_and_not_ok():
    assert all(not figure.ok for figure in figures([]) if figure.target is not None)


def test_a_line_says_name_value_target_verdict_and_spread():
    calls, stream = row("grid", "AGP", "calls", TOY, 60.0, 90.0), row("grid", "AGP", "prequential", TOY, 30.0, 30.0)
    found = {figure.name: figure for figure in figures([stream, calls])}
    line = found["agp_calls_over_prequential_(10,100,1)"].line()
    assert line == "agp_calls_over_prequential_(10,100,1) 2.5 <=1.5 short (2.25 to 2.75)"
    assert Figure("x", exactly(2.0), 3.0, least=True).line() == "x 2 >=3 short"


def test_what_failed_is_no_measurement():
    failed = {"group": "default", "name": "default", "how": "calls", "M": 20, "T": 100, "D": 1, "failed": "no luck"}
    assert all(figure.value != figure.value for figure in figures([failed]))


def test_a_figure_for_every_line_of_what_must_be_shown():
    names = [figure.name for figure in figures([])]
    for size in GRID:
        assert f"agp_prequential_over_cpp_limit_({size.M},{size.T},{size.D})" in names
    for size in DEFAULTS:
        for label in (
            "default_over_three_agps_calls", "default_over_three_agps_prequential", "river_one_by_one_over_online",
            "default_with_interval_over_without", "sklearn_partial_fit_over_prequential",
        ):  # fmt: skip
            assert f"{label}_D{size.D}" in names


def test_a_stream_of_two_lengths_has_a_figure_for_each():
    rows = [
        row("length", "AGP", how, TOY, value, samples=samples)
        for samples in (1000, 2000)
        for how, value in (("first tenth", 10.0), ("last tenth", 10.0 * samples / 1000))
    ]
    found = {figure.name: figure.value for figure in figures(rows)}
    assert found["agp_last_tenth_over_first_of_1000"] == 1.0
    assert found["agp_last_tenth_over_first_of_2000"] == 2.0


# ---- the plan --------------------------------------------------------------------------------------------------------


def test_the_quick_run_measures_all_that_the_figures_need():
    groups = {group for group, _, _ in plan(quick=True)}
    assert groups == {group for parts in PARTS.values() for group in parts} == set(process.MODULES)
    assert groups == {group for group, _, _ in plan(quick=False)}


def test_every_part_and_every_group_can_be_asked_for_by_itself():
    assert set(NAMES) == set(PARTS) | set(process.MODULES)
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize("kind", process.MODULES)
def test_each_kind_of_measurement_has_its_function(kind):
    assert callable(process.measurement(kind))


def test_a_library_that_is_missing_is_skipped_with_a_line(monkeypatch, capsys, tmp_path):
    def needs_it(**_):
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")

    monkeypatch.setattr(process, "measurement", lambda _: needs_it)
    process.main("outside", json.dumps({"name": "theirs", "seconds": 40.0}))
    (made,) = json.loads(capsys.readouterr().out)
    save(tmp_path / "results.json", [], [], [made])
    assert (made["group"], made["name"]) == ("outside", "theirs")
    assert summary(made) == "failed: skipped: nowhere is not installed"


def test_rows_of_other_lengths_are_kept_beside_each_other():
    assert what({"group": "length", "samples": 10}) != what({"group": "length", "samples": 20})


def test_what_is_measured_again_takes_the_place_of_what_was_kept(tmp_path):
    path = tmp_path / "results.json"
    old = [{"group": "grid", "name": "AGP", "microseconds": [1.0]}, {"group": "fresh", "seconds": [2.0]}]
    save(path, ["once", "again"], old, [{"group": "grid", "name": "AGP", "microseconds": [3.1234567]}])
    kept = json.loads(path.read_text())
    assert kept["rows"] == [old[1], {"group": "grid", "name": "AGP", "microseconds": [3.1235]}]
    assert kept["made"] == ["once", "again"]


# ---- the page --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept():
    rows = [
        row("grid", "AGP", "prequential", TOY, 30.0, 33.0, 36.0, mse=0.05, bytes=2e4),
        row("grid", "limit", "C++ loops", TOY, 10.0, 11.0, 12.0),
        row("default", "default", "calls", DEFAULTS[0], 130.0, 130.0),
        row("default", "three AGPs", "calls", DEFAULTS[0], 100.0, 100.0),
        row("outside", "slow one", "calls", TOY, 5000.0),
        row("fleet", "AGP", "all cores", LOAD, 9.0, models=1000, bytes=47e3),
        row("stored", "default", "to_bytes", DEFAULTS[0], stored=5e3, bytes=8e4),
        row("scaling", "AGP", "prequential", Size(20, 100, 8), 3.0, along="T"),
        row("exchange", "fast-AGP", "exchanges", SMALL, 6.0, exchanged=1.0),
        row("exchange", "fast-AGP", "stays", SMALL, 3.0, exchanged=0.0),
        {"group": "outside", "name": "gone", "failed": "no such module"},
    ]
    return json.loads(json.dumps({"machine": {"cores": "2"}, "made": ["by hand"], "rows": rows}))


def test_the_page_has_ratios_figures_and_what_failed(kept):
    page = report.markdown(kept)
    assert "| AGP in `prequential` / limit in C++ | 3 (3–3) |" in page
    assert "`agp_prequential_over_cpp_limit_(10,100,1)` | 3 | ≤ 1.2 | **no**" in page
    assert "`default_over_three_agps_calls_D1` | 1.3 | ≤ 1.25 | **no**" in page
    assert "`default_over_three_agps_calls_D8` | – | ≤ 1.25 | not measured" in page
    assert "| slow one | calls | 152" in page
    assert "6 µs for a step that exchanges a point (at 100% of the samples" in page
    assert "no such module" in page


def test_the_page_is_written_with_its_pictures(kept, tmp_path):
    pytest.importorskip("matplotlib")
    report.write(kept, tmp_path / "benchmarks.md")
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == ["bench-grid.png", "bench-scaling.png"]


def test_a_failure_is_said_in_one_line(kept):
    assert summary(kept["rows"][-1]) == "failed: no such module"


# ---- streams and models ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [TOY, LOAD])
def test_a_longer_stream_begins_like_a_shorter_one(size):
    short, long = streams.stream(size, 700), streams.stream(size, 800)
    if size == TOY:
        np.testing.assert_array_equal(short.y, long.y[: len(short.y)])
    assert short.warmup == size.T
    assert np.all(np.isfinite(long.X))
    assert np.all(np.isfinite(long.y))


def test_fast_agp_exchanges_a_point_on_the_one_stream_and_none_on_the_other():
    found = {made["how"]: made["exchanged"] for made in steps.exchange(list(SMALL), rounds=1, samples=20)}
    assert found == {"exchanges": 1.0, "stays": 0.0}


def test_the_three_agps_are_those_of_the_default_model():
    model = models.default(DEFAULTS[0])
    assert list(model.model.model.model.models) == models.members(DEFAULTS[0])


def test_both_tenths_of_a_long_stream_are_followed_from_where_they_begin():
    first, last = steps.length(list(SMALL), "AGP", 1000)
    assert (first["how"], last["how"]) == ("first tenth", "last tenth")
    assert len(first["microseconds"]) == len(last["microseconds"]) == 1


def test_a_run_is_timed_per_row_by_the_clock_that_is_given():
    assert timed(4, lambda: None, iter([1.0, 3.0]).__next__) == 0.5e6


# ---- the limit is honest: it computes what the library computes ------------------------------------------------------


@pytest.fixture(scope="module")
def followed():
    """A model, its state after the warm-up, and the samples that follow."""
    stream = streams.stream(SMALL, 40)
    model = AGP(inducing=SMALL.M, window=SMALL.T, warmup_iterations=30)
    state = model.init(stream.X[: SMALL.T], stream.y[: SMALL.T])
    return model, state, stream.X[SMALL.T :], stream.y[SMALL.T :]


@pytest.fixture(scope="module")
def gradient(followed):
    """Of the library's objective, in the logarithms and in the last point."""
    model, state, _, _ = followed
    objective = Objective(model.kernel, np.ones(1), Jitter(model.jitter, model.absolute_jitter), model.prior)
    slope = objective.slope(state.theta, state.noise, state.U[: state.points], state.samples_in_window)
    return np.concatenate([slope.hyperparameters, slope.inputs(slice(-1, None))[0]])


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if limit.compiler() is None:
        pytest.skip("no C++ compiler on this machine")
    flags = ("-O0", "-march=native", "-std=c++17")  # compiling is what takes time here
    return limit.compile_program(tmp_path_factory.mktemp("limit"), flags)


def ways():
    return [False, True] if limit.openblas() else [False]


def test_the_limit_in_numpy_is_the_librarys_gradient(followed, gradient):
    found = limit.Straight(limit.Problem.of(*followed)).gradient()
    np.testing.assert_allclose(found, gradient, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("by_blas", ways())
def test_the_limit_in_cpp_is_the_librarys_gradient(program, followed, gradient, by_blas):
    found = limit.run(program, "bare", limit.Problem.of(*followed), 1, by_blas)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("by_blas", ways())
def test_the_whole_step_in_cpp_predicts_what_the_library_predicts(program, followed, by_blas):
    run = prequential(*followed)
    found = limit.run(program, "agp", limit.Problem.of(*followed), 1, by_blas)
    np.testing.assert_allclose(found.mean, run.prediction.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.variance, run.prediction.variance, rtol=1e-6)
    np.testing.assert_allclose(found.parameters, [*run.state.theta, *run.state.noise], rtol=1e-6)
    assert found.points == run.state.points


@pytest.mark.parametrize("by_blas", ways())
def test_the_fast_step_in_cpp_predicts_what_fast_agp_predicts(program, by_blas):
    stream = streams.still(SMALL, 40)
    model = FastAGP(inducing=SMALL.M, window=SMALL.T, warmup_iterations=0)
    state = model.init(stream.X[: SMALL.T], stream.y[: SMALL.T])
    run = prequential(model, state, stream.X[SMALL.T :], stream.y[SMALL.T :])
    found = limit.run(
        program, "fast", limit.Problem.of(model, state, stream.X[SMALL.T :], stream.y[SMALL.T :]), 1, by_blas
    )
    assert found.exchanges == 0
    np.testing.assert_allclose(found.mean, run.prediction.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.variance, run.prediction.variance, rtol=1e-8)


def test_a_problem_needs_a_full_window(followed):
    model, state, X, y = followed
    empty: State = state.copy()
    empty.w[...] = 0.0
    with pytest.raises(ValueError, match="full window"):
        limit.Problem.of(model, empty, X, y)
