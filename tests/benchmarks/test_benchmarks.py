"""The benchmark's own logic: statistics, figures, the page; and that what it compares with computes the same."""

import doctest
import json
import os
import time
from typing import get_args

import numpy as np
import pytest

from benchmarks import errors, limit, machine, measured, process, published, report, steps, streams, timing
from benchmarks.__main__ import NAMES, save, summary, what
from benchmarks.defaults import rivals
from benchmarks.measured import best, find, power
from benchmarks.plan import PARTS, Level, plan
from benchmarks.streams import LOAD, TOY, Size
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


@pytest.mark.parametrize("module", [timing, measured, report])
def test_the_examples_of_the_benchmarks_run(module):
    assert doctest.testmod(module).failed == 0


# ---- what was measured -----------------------------------------------------------------------------------------------


def row(group, name, how, size, *microseconds, **more):
    return {
        "group": group, "name": name, "how": how, "M": size.M, "T": size.T, "D": size.D,
        "microseconds": list(microseconds), "peak": 1e8,
    } | more  # fmt: skip


def test_the_faster_limit_counts():
    rows = [row("grid", "limit", "C++ loops", TOY, 9.0), row("grid", "limit", "C++ BLAS", TOY, 14.0)]
    assert best(rows, "grid", "limit", TOY) == [9.0]


def test_what_failed_is_no_measurement():
    failed = {"group": "default", "name": "low", "how": "calls", "D": 1, "failed": "no luck"}
    assert find([failed], group="default") is None


# ---- the plan --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", get_args(Level))
def test_every_run_measures_something_of_every_group(level):
    groups = {group for group, _, _ in plan(level)}
    assert groups == {group for parts in PARTS.values() for group in parts} == set(process.MODULES)


def test_every_method_of_errors_says_how_it_was_run():
    assert set(errors.METHODS) == {*errors.OURS, *rivals.RIVALS}


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


def test_what_failed_is_forgotten_when_it_is_tried_again(tmp_path):
    path = tmp_path / "results.json"
    old = [{"group": "errors", "name": "theirs", "failed": "no Java"}, {"group": "grid", "failed": "no compiler"}]
    save(path, [], old, [{"group": "errors", "name": "theirs", "how": "CT", "mse": 0.123456789}])
    kept = json.loads(path.read_text())["rows"]
    assert kept == [old[1], {"group": "errors", "name": "theirs", "how": "CT", "mse": 0.12346}]


def test_other_work_is_told_from_our_own():
    if not machine.STAT.exists():
        pytest.skip("no /proc/stat on this machine")
    used = machine.others()
    began = time.process_time()
    while time.process_time() - began < 0.3:
        pass
    assert 0.0 <= used() <= (os.cpu_count() or 1)


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


def scored(name, mse, microseconds, rows=4000):
    return {
        "group": "errors", "name": name, "how": "fried", "rows": rows,
        "mse": mse, "crps": mse, "coverage_95": 0.95, "microseconds": [microseconds],
    }  # fmt: skip


EFFORTS = [scored("low", 4.0, 8.0), scored("medium", 1.0, 90.0), scored("high", 0.9, 400.0)]
OTHERS = [scored(errors.UNIT, 2.0, 800.0), scored("persistence", 5.0, 1.0)]


@pytest.fixture(scope="module")
def kept():
    shape = Size(0, 0, 8)
    rows = [
        row("grid", "AGP", "prequential", TOY, 30.0, 33.0, 36.0, mse=0.05, bytes=2e4),
        row("grid", "limit", "C++ loops", TOY, 10.0, 11.0, 12.0),
        row("default", "low", "calls", Size(0, 0, 1), 13.0, 13.0),
        row("outside", "slow one", "calls", TOY, 5000.0),
        row("fleet", "low", "all cores", shape, 9.0, models=1000, bytes=47e3),
        row("fleet", "low", "one model, CPU", shape, 7.0, models=1000),
        row("stored", "low", "to_bytes", shape, stored=5e3, bytes=8e4),
        row("scaling", "AGP", "prequential", Size(20, 100, 8), 3.0, along="T"),
        row("exchange", "fast-AGP", "exchanges", SMALL, 6.0, exchanged=1.0),
        row("exchange", "fast-AGP", "stays", SMALL, 3.0, exchanged=0.0),
        row("length", "medium", "first tenth", shape, 50.0, samples=1000),
        row("length", "medium", "last tenth", shape, 60.0, samples=1000, others=0.25),
        {"group": "fresh", "name": "low", "how": "first prediction", "D": 8, "seconds": [0.5], "bytes": 6e7},
        *EFFORTS,
        *OTHERS,
        {"group": "outside", "name": "gone", "failed": "no such module"},
    ]
    return json.loads(json.dumps({"machine": {"cores": "2", "torch": "absent"}, "made": ["by hand"], "rows": rows}))


def test_the_page_says_what_was_measured_and_nothing_of_what_was_not(kept):
    page = report.markdown(kept)
    assert "| AGP in `prequential` / limit in C++ | 3 (3–3) |" in page
    assert "| low effort, `predict` and `update`, row by row | 13 (13–13) | – | – |" in page
    assert "| 1000 keys, low effort, 8 inputs | 7 |" in page
    assert "| medium effort, 8 inputs, 1000 rows | 50 | 60 | 1.2" in page
    assert "| low effort, 8 inputs: until the first forecast | 0.5 | 60 |" in page
    assert "| slow one | calls | 152" in page
    assert "6 µs for a step that exchanges a point (at 100% of the samples" in page
    assert "| **driftgp, low effort** | 1.41 | 2.00 | 95.0–95.0 | 8 | 1 |" in page
    assert "other work used 0.25 of the 2 cores in the median, and 0.25 at the most (in the group `length`)" in page
    assert "high effort, `predict`" not in page
    assert "absent" not in page
    assert "no such module" not in page


def test_who_is_cheaper_and_better_than_all_efforts_is_named():
    usual, winner = [*EFFORTS, *OTHERS], scored("Ridge fitted once", 0.8, 5.0)
    assert errors.better(errors.scores([*usual, scored("ARF (river)", 0.5, 9.0)])) == []
    assert errors.better(errors.scores([*usual, winner])) == [("Ridge fitted once", "fried")]
    assert "Ridge fitted once on fried" in errors.markdown([*usual, winner])


def test_errors_on_longer_streams_are_not_compared_with_those_on_shorter_ones():
    longer = [scored("low", 40.0, 8.0, 8000), scored(errors.UNIT, 20.0, 800.0, 8000)]
    assert errors.scores([*EFFORTS, *OTHERS, *longer])["low"]["fried"]["mse"] == 4.0
    assert errors.scores([*EFFORTS[:1], *OTHERS[:1], *longer])["low"]["fried"]["mse"] == 40.0


def test_a_method_that_could_not_run_is_named_with_its_reason():
    failed = {"group": "errors", "name": "SOKNL (CapyMOA)", "streams": ["fried", "CT"], "failed": "no Java"}
    assert "Not measured: SOKNL (CapyMOA) on fried, CT (no Java)." in errors.markdown([*EFFORTS, *OTHERS, failed])


def test_the_page_is_written_with_its_pictures(kept, tmp_path):
    pytest.importorskip("matplotlib")
    report.write(kept, tmp_path / "benchmarks.md")
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == [
        "bench-errors.png",
        "bench-grid.png",
        "bench-growth.png",
        "bench-scaling.png",
    ]


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


# ---- figures of others -----------------------------------------------------------------------------------------------


def test_each_published_method_is_compared_on_the_series_that_both_have(monkeypatch):
    theirs = {
        "worse": {"H2": {"crps": 2.0, "log density": 1.0}, "H4": {"crps": 8.0, "log density": 3.0}},
        "better, on one": {"H2": {"crps": 0.5, "log density": 2.0}, "H6": {"crps": 1.0, "log density": 2.0}},
        "elsewhere": {"H6": {"crps": 1.0, "log density": 2.0}},
    }
    monkeypatch.setattr(published, "published_one_step", lambda: theirs)
    ours = {name: {"crps": 1.0, "log density": 1.5} for name in ("H2", "H4")}
    lines = published.one_step_table({"series": ours}).splitlines()[2:]
    assert lines == [
        "| better, on one | 1 | 2.000 | 0 % | 1.50 | 2.00 |",
        "| worse | 2 | 0.250 | 100 % | 1.50 | 2.00 |",
    ]


def test_a_part_is_put_between_its_marks_on_the_page(monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- m4 -->\nold\n<!-- end of m4 -->\nafter\n", encoding="utf-8")
    monkeypatch.setattr(published, "PAGE", page)
    published.write({"m4": {"said": "new"}})
    assert page.read_text(encoding="utf-8") == "before\n<!-- m4 -->\n\nnew\n\n<!-- end of m4 -->\nafter\n"
