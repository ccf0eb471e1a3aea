"""`driftgp demo --methods`: which methods it takes, and what it prints. The numbers are tested elsewhere."""

import json
import math

import pytest
from typer.testing import CliRunner

from driftgp import cli
from driftgp.demo import catalogue, measure
from tests import without_jax

KEYS = ["method", "mse", "coverage", "nlpd", "us_per_step", "us_per_call"]
RIVALS = [
    "persistence",
    "last-k mean",
    "exact window",
    "w-VSGP",
    "AGP-VSI",
    "OSGP",
    "WISKI",
    "KRLS-T",
    "SVGP",
    "FITC",
    "DTC",
]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(measure, "MOST_PASSES", 1)


def run(*arguments):
    return CliRunner().invoke(cli.app, ["demo", *arguments])


def test_every_rival_is_there_under_its_name():
    pytest.importorskip("jax")
    names = [method.name for method in catalogue.chosen()]
    assert names == list(dict.fromkeys(names))
    assert set(RIVALS) <= set(names)
    assert {"AGP", "fast-AGP", "hybrid"} <= set(names)


def test_a_program_reading_json_meets_the_chosen_methods_and_nothing_else():
    result = run("--methods", "last-k mean, persistence", "--seeds", "2", "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [row["method"] for row in rows] == ["last-k mean", "persistence"]
    assert all(list(row) == KEYS for row in rows)
    assert all(math.isfinite(row[key]) for row in rows for key in KEYS[1:])


def test_a_reader_of_the_table_finds_the_methods_and_the_seed():
    result = run("--methods", "persistence", "--seed", "7")
    assert result.exit_code == 0, result.stderr
    assert "persistence" in result.stdout
    assert "seed 7" in result.stdout


def test_a_method_runs_at_the_forgetting_behind_its_name():
    pytest.importorskip("jax")
    methods = catalogue.chosen(["KRLS-T", "KRLS-T@0.98", "AGP@1"])
    assert [method.name for method in methods] == ["KRLS-T", "KRLS-T@0.98", "AGP@1"]
    assert [float(method.model.forgetting) for method in methods] == [0.995, 0.98, 1.0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("KRLST", "methods must be among .*'KRLS-T'.* got 'KRLST'"),
        ("OSGP@0.9", "must be ones that forget; got 'OSGP@0.9'"),
        ("KRLS-T@", "must have a number behind the @"),
        ("KRLS-T@little", "must have a number behind the @"),
        ("KRLS-T@1.5", "forgetting must lie in"),
    ],
)
def test_a_method_that_there_is_not_is_refused_by_name(name, message):
    pytest.importorskip("jax")
    with pytest.raises(ValueError, match=message):
        catalogue.chosen([name])


def test_a_table_of_no_stream_is_refused():
    with pytest.raises(ValueError, match="seeds must name at least one stream"):
        catalogue.compare(["persistence"], seeds=())


def test_without_jax_one_sentence_says_what_to_install(monkeypatch):
    without_jax.hide(monkeypatch)
    with pytest.raises(ValueError, match=r'needs .*: pip install "driftgp\[rivals\]"'):
        CliRunner().invoke(cli.app, ["demo", "--methods", "all"], catch_exceptions=False)
    assert run("--methods", "persistence,last-k mean", "--json").exit_code == 0
