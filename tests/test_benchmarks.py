"""The benchmark's own logic: statistics, figures, the page; and that the limit computes what the library computes."""

import doctest
import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from benchmarks import figures as must_show
from benchmarks import limit, report, streams, timing
from benchmarks.__main__ import summary
from benchmarks.figures import Figure, best, figures, power
from benchmarks.plan import plan
from benchmarks.sizes import GRID, LOAD, TOY, Size
from benchmarks.timing import in_turn, ratio, spread
from driftgp.agp import AGP, FastAGP
from driftgp.evaluate import prequential

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


def grid_row(name, how, size, *microseconds):
    return {
        "group": "grid", "name": name, "how": how, "M": size.M, "T": size.T, "D": size.D,
        "microseconds": list(microseconds), "peak": 1e8,
    }  # fmt: skip


def test_the_faster_limit_counts():
    rows = [grid_row("limit", "C++ loops", TOY, 9.0), grid_row("limit", "C++ BLAS", TOY, 14.0)]
    assert best(rows, "grid", "limit", TOY) == [9.0]


def test_what_was_not_measured_is_short_and_not_ok():
    assert all(not figure.ok for figure in figures([]) if figure.target is not None)


def test_a_line_says_name_value_target_and_verdict():
    found = {
        figure.name: figure
        for figure in figures([grid_row("AGP", "scan", TOY, 30.0), grid_row("AGP", "calls", TOY, 60.0)])
    }
    assert found["agp_calls_over_scan_(10,100,1)"].line() == "agp_calls_over_scan_(10,100,1) 2 <=3 ok"
    assert Figure("x", 2.0, 3.0, least=True).line().endswith("short")


def test_every_size_of_the_grid_has_its_limit():
    names = [figure.name for figure in figures([])]
    for size in GRID:
        assert f"agp_scan_over_cpp_limit_({size.M},{size.T},{size.D})" in names


def test_the_quick_run_measures_all_that_the_figures_need():
    groups = {group for group, _, _ in plan(quick=True)}
    assert groups == {"grid", "accuracy", "outside", "rivals", "fleet", "length", "scaling", "repairs", "fresh"}
    assert groups < {group for group, _, _ in plan(quick=False)}


# ---- the page --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept():
    rows = [
        grid_row("AGP", "scan", TOY, 30.0, 33.0, 36.0) | {"mse": 0.05, "bytes": 2e4},
        grid_row("limit", "C++ loops", TOY, 10.0, 11.0, 12.0),
        {
            "group": "outside",
            "name": "slow one",
            "how": "calls",
            "M": 10,
            "T": 100,
            "D": 1,
            "microseconds": [5000.0],
            "peak": 3e8,
        },
        {"group": "fleet", "name": "AGP", "how": "all cores", "models": 1000, "microseconds": [9.0], "peak": 5e8},
        {"group": "scaling", "name": "AGP", "along": "T", "M": 20, "T": 100, "D": 8, "microseconds": [3.0]},
        {"group": "outside", "name": "gone", "failed": "no such module"},
    ]
    return json.loads(json.dumps({"machine": {"cores": "2"}, "quick": False, "rows": rows}))


def test_the_page_has_ratios_figures_and_what_failed(kept):
    page = report.markdown(kept)
    assert "| AGP in the scan / limit in C++ | 3 (3–3) |" in page
    assert "`agp_scan_over_cpp_limit_(10,100,1)` | 3 | ≤ 1.5 | **short**" in page
    assert "| slow one | sample by sample | 152" in page
    assert "no such module" in page
    assert page.index("## Ratios") < page.index("## Absolute figures")


def test_the_page_is_written_with_its_pictures(kept, tmp_path):
    pytest.importorskip("matplotlib")
    report.write(kept, tmp_path / "benchmarks.md")
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == ["bench-grid.png", "bench-scaling.png"]


def test_a_failure_is_said_in_one_line(kept):
    assert summary(kept["rows"][-1]) == "failed: no such module"


# ---- streams ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [TOY, LOAD])
def test_a_longer_stream_begins_like_a_shorter_one(size):
    short, long = streams.stream(size, 700), streams.stream(size, 800)
    if size == TOY:
        np.testing.assert_array_equal(short.y, long.y[: len(short.y)])
    assert short.warmup == size.T
    assert np.all(np.isfinite(long.X))
    assert np.all(np.isfinite(long.y))


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
    with jax.enable_x64(True):
        last = int(np.sum(state.points.used)) - 1
        slope = jax.jit(jax.grad(lambda h, u: model.objective(h, state.points, state.window, newest=u), argnums=(0, 1)))
        dh, du = slope(state.hyperparameters, state.points.U[last])
    h = state.hyperparameters
    pairs = (
        (dh.kernel.lengthscale, h.kernel.lengthscale),
        (dh.kernel.variance, h.kernel.variance),
        (dh.noise, h.noise),
    )
    return np.concatenate([np.ravel(np.asarray(d) * np.asarray(value)) for d, value in pairs] + [np.asarray(du)])


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
    h = run.state.hyperparameters
    np.testing.assert_allclose(found.parameters, [h.kernel.lengthscale, h.kernel.variance, h.noise[0]], rtol=1e-6)
    assert found.points == int(np.sum(run.state.points.used))


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
    with pytest.raises(ValueError, match="full window"):
        limit.Problem.of(model, replace(state, window=replace(state.window, w=np.zeros(SMALL.T))), X, y)
