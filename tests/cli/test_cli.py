"""The command line: what reaches standard output, and what is refused. The numbers themselves are tested elsewhere."""

import json
import math
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from driftgp import cli
from driftgp.cli import console
from driftgp.cli.demo import Relevance
from driftgp.demo import measure, picture, settings, showcase, table
from driftgp.demo.table import Method
from driftgp.gp.inducing import RULES
from driftgp.members import Persistence

METHODS = ["AGP", "fast-AGP", "hybrid", "persistence"]
KEYS = ["method", "mse", "coverage", "nlpd", "us_per_step", "us_per_call"]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """Run where a forgotten picture does no harm."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _quick(monkeypatch):
    """Have in place of every method what takes no time."""

    def look(_):
        return picture.Glimpse(np.ones((2, 1)), 1, 1.0, 1.0, 1.0)

    monkeypatch.setattr(measure, "MOST_PASSES", 1)
    methods = [Method(name, Persistence(), look if name == "AGP" else None) for name in METHODS]
    monkeypatch.setattr(picture, "methods", lambda _: methods)
    monkeypatch.setattr(showcase, "bikes", partial(showcase.bikes, rows=1200))


@pytest.fixture
def _nothing_computed(monkeypatch):
    def refuse(*_):
        raise AssertionError("computed before the options were checked")

    monkeypatch.setattr(table, "compare", refuse)


def run(*arguments):
    return CliRunner().invoke(cli.app, list(arguments))


def test_the_demo_compares_what_it_promises():
    assert [method.name for method in picture.methods({})] == METHODS
    assert [getattr(method.model, "learn_every", None) for method in picture.methods({})] == [1, 0, 10, None]


def test_the_picture_finds_in_a_state_what_it_shows():
    agp = picture.methods(settings.printed())[0]
    X, y = np.zeros((100, 1)), np.zeros(100)
    seen = picture.glimpse(agp.model.init(X, y))
    assert agp.watch is picture.glimpse
    assert [np.shape(part) for part in seen] == [(10, 1), (), (), (), ()]


@pytest.mark.parametrize(
    ("arguments", "relevance", "admission"),
    [
        ((), None, None),
        (("--relevance", "diagonal"), "diagonal", None),
        (("--paper",), "cholesky", "published"),
        (("--paper", "--relevance", "diagonal"), "diagonal", "published"),
    ],
)
def test_an_option_reaches_the_model(monkeypatch, arguments, relevance, admission):
    chosen = {}

    def remember(settings):
        chosen.update(settings)
        return []

    monkeypatch.setattr(picture, "methods", remember)
    assert json.loads(run("demo", "--only", "toy", "--no-plot", "--json", *arguments).stdout) == {"toy": []}
    assert chosen["window"] == 100
    assert (chosen.get("relevance"), chosen.get("admission")) == (relevance, admission)


@pytest.mark.usefixtures("_quick")
def test_brackets_in_a_name_are_shown(capsys):
    """A target called load [MW] is common, and rich would take the unit for a style."""
    console.print_table([console.ShownColumn("key", "key [x]")], [{"key": "zone [y]"}], "load [MW]", "all [z]")
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("load [MW]", "zone [y]", "all [z]"))


def test_a_program_reading_json_meets_nothing_else_on_standard_output(tmp_path):
    result = run("demo", "--json", "--seeds", "2", "--output", "picture.png")
    assert result.exit_code == 0, result.stderr
    parts = json.loads(result.stdout)
    assert {row["method"] for row in parts["bikes"]} == {"driftgp", "persistence", "seasonal naive"}
    rows = parts["toy"]
    assert [row["method"] for row in rows] == METHODS
    assert all(list(row) == KEYS for row in rows)
    assert all(math.isfinite(row[key]) and row[key] > 0 for row in rows for key in KEYS[1:] if key != "nlpd")
    assert all(0 <= row["coverage"] <= 1 for row in rows)
    assert "picture.png" in result.stderr
    assert (tmp_path / "picture.png").read_bytes().startswith(PNG)
    assert {path.name for path in tmp_path.iterdir()} == {"picture.png", "picture-bikes.png"}


@pytest.mark.usefixtures("_quick")
def test_a_reader_of_the_table_finds_every_method_and_no_picture_that_was_not_asked_for(tmp_path):
    result = run("demo", "--no-plot", "--seed", "7")
    assert result.exit_code == 0, result.stderr
    assert all(name in result.stdout for name in METHODS)
    assert "seed 7" in result.stdout
    assert "Bikes hired per hour" in result.stdout
    assert "driftgp has the lowest error" in result.stdout.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def unboxed(message: str) -> str:
    """An error message without the frame that typer draws around it and the breaks that fit it in."""
    return "".join(character for character in message if character not in "│╭╮╰╯─\n ")


@pytest.mark.usefixtures("_nothing_computed")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--seeds", "0"], "--seeds"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "one"], "--seed"),
        (["--relevance", "guess"], "leave-one-out"),
        (["--output", "nowhere/demo.png"], "nowhere"),
        (["--output", "demo.txt"], ".png"),
        (["--frobnicate"], "--frobnicate"),
    ],
)
def test_a_bad_option_is_refused_by_name_before_anything_is_computed(arguments, named):
    result = run("demo", *arguments)
    assert result.exit_code == 2
    assert named in unboxed(result.stderr)
    assert result.stdout == ""


@pytest.mark.usefixtures("_nothing_computed")
def test_an_error_that_the_library_explains_comes_without_a_traceback(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["driftgp", "demo", "--seed", str(2**32)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    output = capsys.readouterr()
    assert stopped.value.code == 2
    assert "seed is 4294967296" in output.err
    assert "Traceback" not in output.err
    assert output.out == ""


def test_the_rules_that_the_command_offers_are_those_of_the_library():
    assert tuple(Relevance) == RULES


def test_help_and_version_answer():
    assert "demo" in run("--help").stdout
    assert "--seeds" in run("demo", "--help").stdout
    assert run("--version").stdout.startswith("driftgp ")


def test_help_does_not_wait_for_heavy_libraries():
    heavy = "{'matplotlib', 'polars', 'rich.progress', 'driftgp.demo', 'driftgp.rivals', 'driftgp.plots.base'}"
    script = f"import sys, driftgp.cli; print(sorted({heavy} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_json_has_null_where_there_is_no_number(capsys):
    columns = [console.ShownColumn("value", "value"), console.ShownColumn("hidden", "", screen_only=True)]
    console.print_json(columns, [{"value": float("nan"), "hidden": 1}, {"value": 0.5, "hidden": 2}])
    assert json.loads(capsys.readouterr().out) == [{"value": None}, {"value": 0.5}]


@pytest.mark.slow
@pytest.mark.parametrize("setting", [(), ("--relevance", "cholesky"), ("--paper",)], ids=" ".join)
def test_the_demo_shows_what_the_paper_shows(setting):
    result = run("demo", "--only", "toy", "--json", "--no-plot", "--seeds", "20", *setting)
    rows = {row["method"]: row for row in json.loads(result.stdout)["toy"]}
    assert rows["AGP"]["mse"] <= 0.062
    assert 0.945 <= rows["AGP"]["coverage"] <= 0.965
    assert 0.19 <= rows["fast-AGP"]["mse"] <= 0.23
    assert 0.69 <= rows["fast-AGP"]["coverage"] <= 0.75
