"""`driftgp forecast`: the rows after the end of a file."""

import csv
import json
import re
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


def test_missing_rows_are_counted_apart_from_those_of_the_table(load, tmp_path):
    lines = load.read_text().splitlines()
    (tmp_path / "gaps.csv").write_text("\n".join(lines[:101] + lines[121:]) + "\n")
    said = " ".join(run(tmp_path / "gaps.csv", "--target", "mw", "--next", 2).stdout.split())
    assert "Rows 300: 280 in the table, 20 missing between them" in said


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


# ---- many series, checkpoints, and files as people have them ---------------------------------------------------------


def shops(path, days, first=0, ahead=0):
    """Two shops, one row per day and shop, with a promotion that is known ahead."""
    rng = np.random.default_rng(0)
    lines = ["shop;tag;verkauft;aktion"]
    for day in range(days + ahead):
        for shop, size in (("nord", 50), ("süd west", 90)):
            promo = int(rng.uniform() < 0.3)
            sold = size + 10 * (day % 7 > 4) + 30 * promo + rng.normal()
            cell = f"{sold:.1f}".replace(".", ",") if day < days else ""
            if day >= first:
                lines.append(f"{shop};{START + timedelta(days=day):%d.%m.%Y};{cell};{promo}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


OF_SHOPS = ("--target", "verkauft", "--key", "shop", "--known", "aktion", "--next", "5d", "--effort", "low")


def test_a_file_of_several_shops_in_german_is_forecast_by_shop(tmp_path):
    output = tmp_path / "next.csv"
    result = run(shops(tmp_path / "shops.csv", 90, ahead=5), *OF_SHOPS, "--level", "80,95", "--output", output)
    assert result.exit_code == 0, result.output
    assert "Errors of past forecasts" in result.stdout
    assert "180 of 2 series" in result.stdout
    rows = list(csv.DictReader(output.read_text(encoding="utf-8").splitlines()))
    assert list(rows[0]) == ["shop", "tag", "mean", "low-80", "high-80", "low-95", "high-95"]
    assert [row["tag"] for row in rows if row["shop"] == "süd west"] == [
        f"{START + timedelta(days=90 + h):%Y-%m-%d}" for h in range(5)
    ]


def test_a_checkpoint_takes_new_rows_only_and_says_the_same(tmp_path):
    checkpoint = tmp_path / "shops.gp"
    first = run(shops(tmp_path / "a.csv", 80, ahead=5), *OF_SHOPS, "--checkpoint", checkpoint, "--json")
    assert first.exit_code == 0, first.output
    for name, begin in (("all.csv", 0), ("new.csv", 80)):
        (tmp_path / name).unlink(missing_ok=True)
        data = checkpoint.read_bytes()
        resumed = run(shops(tmp_path / name, 90, begin, ahead=5), *OF_SHOPS, "--checkpoint", checkpoint, "--json")
        assert resumed.exit_code == 0, resumed.output
        whole = run(shops(tmp_path / "whole.csv", 90, ahead=5), *OF_SHOPS, "--json")
        assert json.loads(resumed.stdout)["forecast"] == json.loads(whole.stdout)["forecast"]
        assert "resumed after 160 rows: 20 new of" in resumed.stderr
        checkpoint.write_bytes(data)
    other = run(tmp_path / "all.csv", *OF_SHOPS, "--checkpoint", checkpoint, "--effort", "high")
    assert "effort is 'high', and the checkpoint has 'low'" in str(other.exception)


def test_two_shops_without_a_key_are_named_with_the_option(tmp_path):
    result = run(shops(tmp_path / "shops.csv", 40), "--target", "verkauft")
    assert "'shop' tells them apart: say --key shop" in str(result.exception)


def test_an_hour_that_comes_twice_is_said_once_and_offsets_are_kept(tmp_path):
    rows = [f"2023-10-{28 + hour // 24} {hour % 24:02}:00" for hour in range(48)]
    rows.insert(27, rows[26])
    twice = tmp_path / "twice.csv"
    twice.write_text("time,mw\n" + "".join(f"{time},{100 + i % 24}\n" for i, time in enumerate(rows)))
    result = run(twice, "--target", "mw", "--next", "2h", "--effort", "low")
    assert result.exit_code == 0, result.output
    assert (result.stderr + result.stdout).count("2023-10-29 02:00") == 1
    zoned = tmp_path / "zoned.csv"
    times = [START + timedelta(hours=hour) for hour in range(60)]
    zoned.write_text("time,mw\n" + "".join(f"{time:%Y-%m-%dT%H:%M}+02:00,{100 + time.hour}\n" for time in times))
    lines = json.loads(run(zoned, "--target", "mw", "--next", "2h", "--effort", "low", "--json").stdout)["forecast"]
    assert [line["time"] for line in lines] == ["2024-01-03 12:00:00+02:00", "2024-01-03 13:00:00+02:00"]


def test_a_backtest_prints_its_verdict(tmp_path):
    result = run(table(tmp_path / "load.csv", 120), "--target", "mw", "--next", 4, "--effort", "low", "--backtest", 3)
    assert result.exit_code == 0, result.output
    assert "Backtest: 3 origins, 4 steps from each" in result.stdout
    verdict = " ".join(result.stdout.split()[-30:])
    assert re.search(r"driftgp (has the lowest error|loses)|difference between driftgp and", verdict)
    assert verdict.endswith((".", ")."))
