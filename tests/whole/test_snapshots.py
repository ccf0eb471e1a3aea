"""What every entry point says today, on short streams: a change of numerics shows as a change of these numbers.

    python -m tests.whole.test_snapshots --write     write them anew, after a change that is meant

Other processors round otherwise, and rounding grows along a stream. These are short: targets scaled by 1 ± 10⁻¹², or
the other engine, move the numbers by up to 4·10⁻⁶ of the targets' standard deviation; five times that is allowed.
"""

import argparse
import csv
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from driftgp import Fleet, Forecaster, Online, backtest, cli, recommended

FILE = Path(__file__).with_name("snapshots.json")
ROWS = 120
EVERY = 12  # one row of so many is kept
TOLERANCE = 2e-5  # standard deviations of the targets

RNG = np.random.default_rng(7)
X = np.round(RNG.normal(size=(ROWS, 2)), 3)
Y = np.round(50.0 + 5.0 * np.sin(2.0 * X[:, 0]) + 3.0 * X[:, 1] + RNG.normal(size=ROWS), 3)
SKIES = [("clear", "rain", "snow")[i] for i in RNG.integers(0, 3, ROWS)]


def said(forecast: Any) -> np.ndarray:
    """Mean and ends of some of the rows."""
    return np.stack([forecast.mean, *forecast.interval(0.95)], axis=1)[EVERY - 1 :: EVERY]


def by_arrays(effort: Any) -> Callable[[], np.ndarray]:
    return lambda: said(Online(effort=effort).evaluate(X, Y))


def by_dicts() -> np.ndarray:
    """Text, missing inputs and a missing target, row by row."""
    online, found = Online(), []
    for i in range(ROWS):
        row = {"x": None if i % 9 == 4 else X[i, 0], "v": X[i, 1], "sky": SKIES[i]}
        if i:
            forecast = online.predict(row)
            found.append(np.concatenate([forecast.mean, *forecast.interval(0.95)]))
        online.update(row, np.nan if i % 11 == 5 else Y[i])
    return np.array(found[EVERY - 2 :: EVERY])


def by_fleet() -> np.ndarray:
    return said(Fleet().evaluate(["a", "b"] * (ROWS // 2), X, Y))


def by_recommended() -> np.ndarray:
    model = recommended(X[:40], Y[:40])
    return said(Online(model, model.init(X[:40], Y[:40])).evaluate(X[40:], Y[40:]))


def by_run() -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        table, output = Path(folder, "table.csv"), Path(folder, "said.csv")
        hours = np.datetime64("2024-01-01T00", "h") + np.arange(ROWS)
        lines = [f"{hours[i]}:00,{X[i, 0]},{SKIES[i]},{Y[i]}" for i in range(ROWS)]
        table.write_text("\n".join(["when,x,sky,y", *lines]) + "\n", encoding="utf-8")
        options = ["--target", "y", "--warmup", "40", "--lags", "2", "--output", str(output)]
        told = CliRunner().invoke(cli.app, ["run", str(table), *options])
        assert told.exit_code == 0, told.output
        with output.open(encoding="utf-8") as file:
            forecast = [row for row in csv.DictReader(file) if row["mean"]]
    rows = [[float(row[name]) for name in ("mean", "low", "high")] for row in forecast]
    return np.array(rows[EVERY - 1 :: EVERY])


def by_backtest() -> np.ndarray:
    found = backtest(X, Y, methods=["persistence", "RLS"], warmup=60)
    lines = [found[name] for name in ("driftgp", "RLS", "persistence")]
    return np.array([[line.rmse, line.mae, line.crps] for line in lines])


def by_forecaster() -> np.ndarray:
    forecaster = Forecaster(horizon=6, season=12)
    hours = np.arange(ROWS)
    forecaster.update(Y + 10.0 * np.sin(2 * np.pi * hours / 12))
    fan = forecaster.forecast()
    return np.stack([fan.mean, *fan.interval(0.95)], axis=1)


ENTRIES: dict[str, Callable[[], np.ndarray]] = {
    "Online, low": by_arrays("low"),
    "Online, medium": by_arrays("medium"),
    "Online, high": by_arrays("high"),
    "Online, dicts": by_dicts,
    "Fleet": by_fleet,
    "recommended and init": by_recommended,
    "run": by_run,
    "backtest": by_backtest,
    "Forecaster": by_forecaster,
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_point_says_what_it_said(entry):
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    np.testing.assert_allclose(ENTRIES[entry](), kept[entry], rtol=0.0, atol=TOLERANCE * Y.std())


def write() -> None:
    """Keep what the entry points say now."""
    rows = {name: [[float(f"{number:.10g}") for number in row] for row in entry()] for name, entry in ENTRIES.items()}
    entries = (f'"{name}": [\n ' + ",\n ".join(map(json.dumps, numbers)) + "\n]" for name, numbers in rows.items())
    FILE.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.whole.test_snapshots", description="Snapshots of entry points."
    )
    parser.add_argument("--write", action="store_true", required=True, help="write them anew")
    parser.parse_args()
    write()
