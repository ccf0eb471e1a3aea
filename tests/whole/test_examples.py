"""The example programs run, and do what they say."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_hourly_load_from_a_frame_to_intervals_and_a_plot_takes_ten_lines(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    hours = pd.date_range("2024-01-01", periods=24 * 40, freq="h", name="time")
    noise = np.random.default_rng(0).normal(size=len(hours))
    load = 3000 + 500 * np.sin(hours.hour / 24 * 2 * np.pi) - 300 * (hours.dayofweek > 4) + 30 * noise
    pd.DataFrame({"load": load}, index=hours).drop(hours[500:505]).to_csv(tmp_path / "load.csv")
    script = EXAMPLES / "hourly_load.py"
    code = [line for line in script.read_text().splitlines()[1:] if line]
    assert len(code) <= 10
    subprocess.run([sys.executable, script, "load.csv"], cwd=tmp_path, check=True)
    predicted = pd.read_csv(tmp_path / "predicted.csv", index_col="time", parse_dates=True)
    later = predicted[400:]
    inside = (later["low"] <= later["load"]) & (later["load"] <= later["high"])
    assert 0.85 < inside.mean() <= 1.0
    assert np.sqrt(np.mean((later["mean"] - later["load"]) ** 2)) < 0.75 * later["load"].diff().std()
    assert (tmp_path / "predicted.png").read_bytes().startswith(b"\x89PNG")
