"""`driftgp forecast`: the rows after the end of a file."""

import csv
import json
from datetime import datetime, timedelta

import numpy as np
import pytest
from typer.testing import CliRunner

from driftgp import cli

START = datetime(2024, 1, 1)


def table(path, rows, ahead=0):
    rng = np.random.default_rng(0)
    lines = ["time,mw,event"]
    for t in range(rows + ahead):
        event = int(rng.uniform() < 0.3)
        value = 300 + 50 * np.sin(t * np.pi / 12) + 40 * event + rng.normal()
        lines.append(f"{START + timedelta(hours=t)},{f'{value:.2f}' if t < rows else ''},{event}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    return table(tmp_path_factory.mktemp("forecast") / "load.csv", 300)


def run(*arguments):
    return CliRunner().invoke(cli.app, ["forecast", *map(str, arguments)])


def test_a_forecaster_finds_the_next_hours_in_a_file_and_a_picture(load, tmp_path):
    output, picture = tmp_path / "next.csv", tmp_path / "fan.png"
    result = run(load, "--target", "mw", "--next", "6h", "--output", output, "--plot", picture)
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(output.read_text().splitlines()))
    assert [row["time"] for row in rows] == [f"{START + timedelta(hours=300 + h)}" for h in range(6)]
    assert all(float(row["low"]) < float(row["mean"]) < float(row["high"]) for row in rows)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_program_reads_json_and_a_person_the_sum(load):
    assert len(json.loads(run(load, "--target", "mw", "--next", 4, "--json").stdout)["forecast"]) == 4
    assert "of all steps" in run(load, "--target", "mw", "--next", 4).stdout


def test_columns_that_are_known_ahead_come_from_the_rows_below(tmp_path):
    with_rows = run(
        table(tmp_path / "a.csv", 300, ahead=4), "--target", "mw", "--known", "event", "--next", 4, "--json"
    )
    assert len(json.loads(with_rows.stdout)["forecast"]) == 4
    short = run(table(tmp_path / "b.csv", 300, ahead=2), "--target", "mw", "--known", "event", "--next", 4)
    assert "future has no row for 2 of the 4 steps" in str(short.exception)
    assert "rows below the last target" in str(short.exception)


@pytest.mark.parametrize(
    ("steps", "message"),
    [("soon", "next must be a number of rows"), ("400", "h is 400, and there are"), ("1s", "is less than the")],
)
def test_what_cannot_be_forecast_is_said(load, steps, message):
    assert message in str(run(load, "--target", "mw", "--next", steps).exception)
