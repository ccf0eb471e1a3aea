"""The commands of the tutorials run as they stand on the page, on the files that the pages make or name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

DOCS = Path(__file__).parents[2] / "docs"
DATA = os.environ.get("DRIFTGP_DATA")


def commands(page: str) -> list[str]:
    """What a reader would type."""
    blocks = re.findall(r"```console\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    return [command for block in blocks for command in block.replace("\\\n", " ").replace("$ ", "").splitlines()]


def typed(command: str, folder: Path) -> str:
    """Run a command as a shell would, with this Python's driftgp."""
    own = re.sub(r"driftgp (run|forecast)", rf"{sys.executable} -m driftgp \1", command)
    done = subprocess.run(
        own.replace("$(python", f"$({sys.executable}"),
        shell=True, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_bikes_of_a_file_are_forecast(tmp_path):
    (command,) = commands("tutorial.md")
    said = typed(command, tmp_path)
    assert "33.6" in said  # the page says so
    assert (tmp_path / "bikes.png").read_bytes().startswith(b"\x89PNG")


def test_the_zones_of_a_file_are_forecast(tmp_path):
    """The page makes the file from data that are elsewhere; the command needs its columns alone."""
    hours = pd.date_range("2020-06-01", periods=24 * 30, freq="h", name="time")
    level = {"CT": 3000.0, "VT": 600.0}
    shape = [1.0 + 0.2 * (8 <= hour.hour < 20) - 0.1 * (hour.dayofweek > 4) for hour in hours]
    wide = pd.DataFrame({zone: [size * part for part in shape] for zone, size in level.items()}, index=hours)
    wide.rename_axis(columns="zone").stack().rename("mw").to_csv(tmp_path / "load.csv")
    (command,) = commands("tutorials/load.md")
    assert "seasonal naive (a week before)" in typed(command, tmp_path)
    made = pd.read_csv(tmp_path / "zones.csv")
    assert len(made) == 2 * len(hours)


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="the air quality stream is in the folder DRIFTGP_DATA, which is not set")
def test_the_gas_of_a_file_is_forecast(tmp_path):
    (command,) = commands("tutorials/gas-sensor.md")
    assert "driftgp" in typed(command, tmp_path)
    assert (tmp_path / "co.png").read_bytes().startswith(b"\x89PNG")


def test_the_shops_of_a_file_get_their_orders(tmp_path):
    """The command of the page, on a file with its columns: two weeks below the last sales have the promotion alone."""
    lines = ["day,shop,sold,promotion"]
    for number, day in enumerate(pd.date_range("2024-01-01", periods=84, freq="D")):
        for shop, size in (("centre", 120), ("harbour", 45)):
            promotion = "half price" if day.isocalendar().week % 4 == 0 else ""
            sold = size + 20 * (day.dayofweek == 5) + 40 * bool(promotion) + number % 3
            lines.append(f"{day.date()},{shop},{sold if number < 70 else ''},{promotion}")
    (tmp_path / "shops.csv").write_text("\n".join(lines) + "\n")
    (command,) = commands("tutorials/shop.md")
    assert "Errors of past forecasts" in typed(command, tmp_path)
    orders = pd.read_csv(tmp_path / "orders.csv")
    assert list(orders.columns) == ["shop", "day", "mean", "low-50", "high-50", "low-95", "high-95"]
    assert len(orders) == 28
    assert (tmp_path / "shops.gp").exists()
