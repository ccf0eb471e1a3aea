"""`driftgp compare FILE`: a table of one's own, the table of methods, the verdict, the picture."""

import json
import re
from datetime import datetime, timedelta

import numpy as np
import pytest
from typer.testing import CliRunner

from driftgp import cli
from driftgp.base.season import season_of, usual_step


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("compare") / "load.csv"
    start = datetime(2024, 1, 1)
    rows = [
        f"{start + timedelta(hours=t)},{3000 + 500 * np.sin(t * np.pi / 12) + 20 * rng.normal():.1f}"
        for t in range(400)
    ]
    path.write_text("\n".join(["time,mw", *rows]) + "\n")
    return path


def run(*arguments):
    return CliRunner().invoke(cli.app, ["compare", *map(str, arguments)])


def test_a_person_reads_the_table_and_one_verdict(load, tmp_path):
    picture = tmp_path / "gain.png"
    result = run(load, "--target", "mw", "--lags", 3, "--calendar", "--methods", "persistence, seasonal naive",
                 "--plot", picture)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "seasonal naive" in result.stdout
    words = " ".join(result.stdout.split())
    assert re.search(r"driftgp (has the lowest error|loses on these rows): [^:]* more than noise \(p .*\)\.$", words), (
        words
    )
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_program_reads_json(load):
    result = run(
        load,
        "--target",
        "mw",
        "--lags",
        3,
        "--horizon",
        2,
        "--no-calendar",
        "--rows",
        300,
        "--methods",
        "RLS",
        "--json",
    )
    found = json.loads(result.stdout)
    assert found["horizon"] == 2
    assert found["inputs"][:3] == ["lag 2", "lag 3", "lag 4"]
    assert {line["method"] for line in found["methods"]} == {"driftgp", "RLS"}
    assert (found["warmup"], found["rows"]) == (150, 150)
    assert "warmup is 150 rows, not 500: half of the 300 rows are scored" in result.stderr


def test_a_missing_column_is_named(load):
    result = run(load, "--target", "gw", "--lags", 3)
    assert isinstance(result.exception, ValueError)
    assert "no column 'gw'" in str(result.exception)


def test_the_season_follows_from_the_times():
    assert season_of(usual_step(3600.0 * np.arange(50))) == 24
    assert season_of(usual_step(86400.0 * np.arange(50))) == 7
    assert season_of(usual_step(np.full(50, np.nan))) is None
    assert season_of(usual_step(np.cumsum(10.0 ** np.arange(12)))) is None  # no step is usual
