"""Pages whose data do not come with driftgp run where the data are, and say elsewhere why they do not."""

import os
from pathlib import Path

import pytest

NEEDED = {
    "load.md": "isone_zonal_hourly_wide_2011_2023.csv.gz",
    "gas-sensor.md": "streams/air_quality_hourly.csv.gz",
}


@pytest.fixture(autouse=True)
def _data_that_are_elsewhere(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip a page without its data; let it write its files into a folder of its own."""
    name = request.node.path.name
    if name in NEEDED:
        folder = os.environ.get("DRIFTGP_DATA")
        if folder is None or not (Path(folder) / NEEDED[name]).exists():
            pytest.skip(f"{NEEDED[name]} is not in the folder DRIFTGP_DATA ({folder}): its publisher has it")
        monkeypatch.chdir(tmp_path)
    if name == "shop.md":
        monkeypatch.chdir(tmp_path)
