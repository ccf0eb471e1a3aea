"""`python -m experiments`: that it stops and goes on, keeps to what it was asked, and says all that it knows."""

import gzip
import json
import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from driftgp import AGP
from driftgp.data import toy_stream
from driftgp.engine.reference import ReferenceEngine
from driftgp.members import Persistence
from experiments import batch, methods, order, published, report, reproduce, store, summary
from experiments.__main__ import app
from experiments.batch import Case, Meter
from experiments.data import ZONES
from experiments.experiment import Experiment
from experiments.load import Load
from experiments.sales import Sales
from experiments.tasks import Method, Selection, Task, per_output
from experiments.toy import Toy, toy_tasks
from tests import without_jax
from tests.data_files import real_data

KEYS = ["experiment", "series", "method", "mse", "coverage", "mape", "nlpd", "seconds"]
TIMES = ["seconds", "warmup_seconds"]
NAIVE = Method("persistence", lambda stream: Persistence(column=stream.lag_columns or None), shared=True)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRIFTGP_DATA", raising=False)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def plan(tmp_path, seeds=6, method=NAIVE):
    return reproduce.Plan("toy", method, toy_tasks(tuple(range(seeds))), tmp_path)


def make_load(folder, zones=("CT", "VT"), days=110):
    """A tidy file of hourly loads of both years, only as many days as the warm-up and a few more need."""
    dates = np.datetime64("2020-09-25") + np.arange(days)
    hours = np.random.default_rng(0).uniform(500, 3000, (days, 24, len(zones))).round(1)
    lines = [
        f"{date},{hour + 1},{zone},{hours[i, hour, k]}"
        for i, date in enumerate(dates)
        for hour in range(24)
        for k, zone in enumerate(zones)
    ]
    text = "\n".join(["date,hour_ending,zone,load_mw", *lines])
    (folder / "isone_zonal_paper_2020_2021.csv.gz").write_bytes(gzip.compress(text.encode()))


def made_up(method, names, outputs=(1,), samples=5, mse=0.5):
    """Rows as if a method had run."""
    values = np.zeros(samples, np.float32)
    rows = [
        {"key": f"{method} {name} {output}", "series": name, "output": output, "seconds": 0.25, "mse": mse}
        | {"coverage": 0.95, "mape": 3.0, "nlpd": 0.1, "y": values, "mean": values, "std": values + 1}
        for name in names
        for output in outputs
    ]
    return pl.DataFrame(rows, schema=store.SCHEMA)


# ---- the paper's numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["mse", "coverage", "seconds"])
def test_no_digit_of_the_load_table_was_mistyped(what):
    for method in published.LOAD["average"]:
        cells = [getattr(published.LOAD[zone][method], what) for zone in ZONES]
        average = getattr(published.LOAD["average"][method], what)
        if average is not None:
            # the printed cells are rounded, and so is the average of what they were rounded from
            assert abs(np.mean(cells) - average) < {"mse": 1.1e-4, "coverage": 0.011, "seconds": 0.11}[what], method


def test_every_method_of_the_paper_is_run():
    for experiment in ("toy", "load", "sales"):
        names = {method.name.removesuffix(" (map 0)") for method in methods.methods(experiment)}
        for cells in published.TABLES[experiment].values():
            told = {name for name, cell in cells.items() if cell.mse is not None}
            assert told <= names
            assert {f"{name} (printed)" for name in told - {"persistence"}} <= names


# ---- running, stopping and going on --------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    interrupted, done = plan(tmp_path), []

    def stop():
        done.append(1)
        if len(done) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        batch.run(
            interrupted.missing(),
            save=lambda rows: store.write(store.folder(tmp_path, "toy", "persistence"), rows),
            done=stop,
            chunk=2,
        )
    again = plan(tmp_path)
    left = again.missing()
    assert 0 < len(left) < 6
    again.run(left, lambda: None, threads=2, minutes=1)
    whole = plan(tmp_path / "elsewhere")
    whole.run(whole.missing(), lambda: None, threads=1, minutes=1)
    assert again.missing() == []
    assert again.rows().drop(TIMES).equals(whole.rows().drop(TIMES))


def test_what_is_on_disk_is_not_run_again(tmp_path, monkeypatch):
    first = plan(tmp_path, seeds=2)
    first.run(first.missing(), lambda: None, threads=1, minutes=1)
    assert len(plan(tmp_path, seeds=3).missing()) == 1
    monkeypatch.setattr(batch, "run", lambda *_, **__: pytest.fail("ran again"))
    assert (
        run("toy", "--seeds", "2", "--methods", "persistence", "--output", str(tmp_path), "--no-report").exit_code == 0
    )


def test_an_old_result_never_meets_a_new_setting_or_other_data(tmp_path):
    first = plan(tmp_path, seeds=1)
    first.run(first.missing(), lambda: None, threads=1, minutes=1)
    changed = Method("persistence", lambda _: Persistence(forgetting=0.9), shared=True)
    assert len(plan(tmp_path, 1, changed).missing()) == 1
    stream = toy_stream(0, noise=0.1)
    other = reproduce.Plan("toy", NAIVE, [Task("seed 0", (1,), stream)], tmp_path)
    assert len(other.missing()) == 1


def test_a_file_that_is_no_parquet_is_named_with_the_remedy(tmp_path):
    place = store.folder(tmp_path, "toy", "persistence")
    place.mkdir(parents=True)
    (place / "broken.parquet").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"broken\.parquet.*remove it"):
        plan(tmp_path).missing()


def test_no_run_is_begun_when_the_time_is_over(tmp_path):
    late = plan(tmp_path)
    late.run(late.missing(), lambda: None, threads=2, minutes=-1)
    assert len(late.missing()) == 6


def test_results_are_those_of_the_model_alone(tmp_path):
    one = plan(tmp_path, seeds=2)
    one.run(one.missing(), lambda: None, threads=2, minutes=1)
    stream = toy_stream(1)
    row = one.rows().row(1, named=True)
    error = stream.y[99:-1] - stream.y[100:]
    assert row["series"] == "seed 1"
    assert row["mse"] == pytest.approx(np.mean(error**2))
    np.testing.assert_allclose(row["mean"], stream.y[99:-1], rtol=1e-6)


def test_a_model_for_all_outputs_gives_a_row_for_each():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(40.0).reshape(20, 2) + 0.5
    stream = toy_stream(0).__class__("two", X=X, y=y, warmup=10, lag_columns=(0, 1))
    task, rows = Task("two", (7, 8), stream), []
    batch.run([Case(NAIVE.build(stream), task, "k")], save=rows.extend, done=lambda: None)
    assert [row["output"] for row in rows] == [7, 8]
    assert [row["mse"] for row in rows] == pytest.approx([0.25, 0.25])
    assert [single.stream.lag_columns for single in per_output(task)] == [(0,), (1,)]


def test_time_is_shared_out_among_the_runs_under_way():
    meter = Meter()
    with meter.measure() as one:
        with meter.measure() as other:
            sum(i * i for i in range(200_000))
        inside = other[0]
        sum(i * i for i in range(200_000))
    assert 0 < inside == other[0] < one[0]


# ---- the command line ----------------------------------------------------------------------------------------------


def test_json_has_the_promised_keys_and_nothing_else_is_on_standard_output(tmp_path):
    result = run("toy", "--seeds", "2", "--methods", "persistence", "--jobs", "2", "--json")
    assert result.exit_code == 0
    (row,) = json.loads(result.stdout)
    assert list(row) == KEYS
    assert row["method"] == "persistence"
    assert row["experiment"] == "toy"
    assert 0.05 < row["mse"] < 0.12
    assert (tmp_path / "results" / "results.md").is_file()
    assert "data:image/png;base64," in (tmp_path / "results" / "report.html").read_text()


def test_load_of_chosen_zones_and_hours(tmp_path):
    make_load(tmp_path)
    options = ("--zones", "CT,VT", "--hours", "1-2", "--methods", "persistence", "--data", str(tmp_path))
    result = run("load", *options, "--json")
    assert result.exit_code == 0, result.output
    assert [row["series"] for row in json.loads(result.stdout)] == ["CT", "VT", "average"]


def test_a_missing_file_is_asked_for():
    with pytest.raises(FileNotFoundError, match=r"--data.*DRIFTGP_DATA"):
        CliRunner().invoke(app, ["sales", "--methods", "persistence"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("toy", "--seeds", "0"), "seeds"),
        (("toy", "--seeds", "9-3"), "seeds"),
        (("toy", "--seeds", "many"), "seeds"),
        (("load", "--zones", "XX"), "zones must be among CT"),
        (("load", "--hours", "25"), "hours must lie between 1 and 24"),
        (("toy", "--methods", "AGB"), "methods must be among"),
        (("toy", "--setup", "pristine"), "setup must be among printed, published, ours"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CliRunner().invoke(app, list(arguments), catch_exceptions=False)


# ---- summing up and reporting --------------------------------------------------------------------------------------


def results_of(experiment: Experiment, names, outputs=(1,), samples=5):
    return {
        method.name: made_up(method.name, names, outputs, samples, 0.5 + 0.001 * i)
        for i, method in enumerate(experiment.methods())
    }


def reports():
    yield "toy", Toy(Selection(seeds=(0, 1))), ["seed 0", "seed 1"], (1,), 401
    yield "load", Load(Selection()), ZONES, tuple(range(1, 25)), 5
    yield "sales", Sales(Selection()), ("SS", "OR"), (1,), 5


@pytest.mark.parametrize(("name", "experiment", "series", "outputs", "samples"), list(reports()))
def test_the_report_has_every_cell_of_the_paper_beside_ours(name, experiment, series, outputs, samples):
    section = experiment.section(results_of(experiment, series, outputs, samples))
    text, page = report.markdown([section]), report.page([section])
    for cells in published.TABLES[name].values():
        for method, cell in cells.items():
            if cell.mse is not None:
                rows = [line for line in text.splitlines() if line.startswith(f"| {method} |")]
                assert any(f"({cell.mse:.4f})" in row for row in rows)
                assert cell.coverage is None or f"({cell.coverage:.2f})" in text
                assert cell.seconds is None or f"({cell.seconds:.4g})" in text
                assert f"({cell.mse:.4f})" in page
    assert text.count(section.command) == len(section.tables)
    assert all(f"images/{picture.name}.png" in text for picture in section.pictures)
    assert "http" not in page
    assert page.count("data:image/png;base64,") == len(section.pictures)


def test_half_a_zone_is_not_averaged():
    experiment = Load(Selection(zones=("CT", "VT"), hours=(1, 2)))
    rows = pl.concat([made_up("AGP", ["CT"], (1, 2)), made_up("AGP", ["VT"], (1,))])
    assert [line.series for line in experiment.summaries({"AGP": rows})] == ["CT"]


def test_a_run_that_failed_is_left_out_and_counted():
    rows = pl.concat([made_up("AGP", ["a"]), made_up("AGP", ["b"], mse=math.nan)])
    line = summary.summarise("toy", "toy", "AGP", rows)
    assert (line.runs, line.failed, line.mse) == (1, 1, 0.5)


def test_an_order_that_differs_is_told_with_both_numbers():
    whole, sentence = order.sentences("sales", {"OR": {"AGP": 2.5, "persistence": 2.0}}, ["SS", "OR"])
    assert "MSE: 1; in the same order here: 0" in whole
    assert all(part in sentence for part in ("OR", "2.2394", "3.9486", "2.5000", "2.0000"))


# ---- the figures themselves ----------------------------------------------------------------------------------------


def lines_of(what, output, *options):
    result = run(what, "--methods", "AGP,fast-AGP", "--output", str(output), "--no-report", "--json", *options)
    assert result.exit_code == 0, result.output
    return {(row["series"], row["method"]): row for row in json.loads(result.stdout)}


@pytest.mark.slow
def test_the_toy_figures_are_the_papers(tmp_path):
    lines = lines_of("toy", tmp_path, "--seeds", "50")
    agp, fast = lines["toy", "AGP"], lines["toy", "fast-AGP"]
    assert 0.061 <= agp["mse"] <= 0.065  # 1000 seeds: 0.0630, as in the paper
    assert 0.945 <= agp["coverage"] <= 0.956  # 0.9502
    assert 0.185 <= fast["mse"] <= 0.21  # 0.1972
    assert 0.70 <= fast["coverage"] <= 0.74


@pytest.fixture(scope="module")  # looked up before `_own_folder` takes the variable away
def sales_data():
    return real_data("store_sales_daily.csv.gz")


@pytest.mark.slow
def test_the_sales_figures_are_the_papers(tmp_path, sales_data):
    lines = lines_of("sales", tmp_path, "--data", str(sales_data))
    bars = {("SS", "AGP"): 0.225, ("SS", "fast-AGP"): 0.195, ("OR", "AGP"): 2.35, ("OR", "fast-AGP"): 2.3}
    for place, bar in bars.items():
        assert lines[place]["mse"] <= bar, place
    for series in ("SS", "OR"):
        assert 0.93 <= lines[series, "AGP"]["coverage"] <= 0.97


# ---- the setups ----------------------------------------------------------------------------------------------------


def built(experiment):
    stream = toy_stream(0)
    return {m.name: m.build(stream) for m in methods.methods(experiment) if "AGP" in m.name and "VSI" not in m.name}


def test_published_is_what_the_notebooks_do_and_printed_what_the_text_says():
    for experiment in ("toy", "load", "sales"):
        models = built(experiment)
        assert models["AGP"].step == "carried"
        assert models["AGP (printed)"].step == "fresh"
        assert models["AGP (printed)"].relevance == "diagonal"
        assert models["fast-AGP"].admission == "published"
        assert models["fast-AGP (printed)"].admission == "algorithm"
    toy = built("toy")
    assert (toy["AGP"].forgetting, toy["AGP"].threshold, toy["AGP"].absolute_jitter) == (0.98, 1e-2, 1e-3)
    assert toy["fast-AGP"].absolute_jitter == 1e-4
    assert round(toy["AGP (printed)"].forgetting, 5) == 0.97724


def test_a_name_stands_for_the_method_in_every_setup():
    asked = Toy(Selection()).wanted(("agp",))
    assert [method.name for method in asked] == ["AGP", "AGP (printed)"]
    asked = Toy(Selection(setups=("printed",))).wanted(None)
    assert {method.setup for method in asked} == {"printed"}
    assert len(Sales(Selection()).wanted(("WISKI",))) == 1 + methods.MAPS


def test_the_median_map_speaks_for_wiski():
    rows = {f"WISKI (map {k})": made_up(f"map {k}", ["OR"], mse=mse) for k, mse in enumerate((3.0, 2.0, 9.0, 2.5))}
    lines = summary.table(Sales(Selection()).summaries(rows))
    assert lines["WISKI"]["OR"].mse == 2.5


def test_a_stream_in_which_a_step_failed_is_left_out_and_counted():
    rows = pl.concat([made_up("OSGP", ["a"]), made_up("OSGP", ["b"]).with_columns(failed=pl.lit(1, pl.Int64))])
    line = summary.summarise("toy", "toy", "OSGP", rows)
    assert (line.runs, line.failed) == (1, 1)


# ---- without the extra -----------------------------------------------------------------------------------------------


@pytest.fixture
def _no_jax(monkeypatch):
    without_jax.hide(monkeypatch)


@pytest.mark.usefixtures("_no_jax")
def test_without_jax_one_sentence_says_what_to_install_before_anything_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(batch, "run", lambda *_, **__: pytest.fail("ran"))
    with pytest.raises(ValueError, match=r'needs .*: pip install "driftgp\[rivals\]"'):
        CliRunner().invoke(app, ["toy", "--seeds", "1"], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_no_jax")
def test_without_jax_the_papers_own_methods_run():
    result = run(
        "toy", "--seeds", "1", "--setup", "published", "--methods", "AGP,fast-AGP,persistence", "--no-report", "--json"
    )
    assert result.exit_code == 0, result.output
    assert [row["method"] for row in json.loads(result.stdout)] == ["persistence", "fast-AGP", "AGP"]


# ---- rivals in JAX ---------------------------------------------------------------------------------------------------


def test_what_compiles_is_run_once_for_each_shape_before_any_time_counts(monkeypatch):
    class Compiling(Persistence):
        """A model with an engine of its own."""

        def engine(self, inputs, outputs):
            return ReferenceEngine(self, inputs, outputs)

    followed = []
    follow = batch._follow
    monkeypatch.setattr(batch, "_follow", lambda case, meter: followed.append(case.key) or follow(case, meter))
    cases = [Case(Compiling(), task, task.series) for task in toy_tasks((0, 1))]
    batch.run(cases, save=lambda _: None, done=lambda: None)
    assert followed == ["seed 0", "seed 0", "seed 1"]
    followed.clear()
    batch.run([case._replace(model=Persistence()) for case in cases], save=lambda _: None, done=lambda: None)
    assert followed == ["seed 0", "seed 1"]


def test_times_of_one_engine_are_not_taken_for_those_of_another(monkeypatch):
    (task,) = toy_tasks((0,))
    model = AGP()
    monkeypatch.setattr(store, "engine", lambda *_: SimpleNamespace(kind="native"))
    native = store.keys(model)(task)
    monkeypatch.setattr(store, "engine", lambda *_: SimpleNamespace(kind="reference"))
    assert store.keys(model)(task) != native
