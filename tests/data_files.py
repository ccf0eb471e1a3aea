"""Small files in the layouts of the publishers, made for the tests, and the place of the real ones."""

import datetime as dt
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
Row = Sequence[Any]
NEW_HEADER = ("Date", "Hr_End", "DA_Demand", "RT_Demand", "DA_LMP")
OLD_HEADER = ("Date", "Hour", "DA_DEMD", "DEMAND", "DA_LMP")


def real_data(name: str) -> Path:
    """The directory of the real files, if it holds this one; the test is skipped if not."""
    directory = Path(os.environ.get("DRIFTGP_DATA") or SHARED / "data")
    if not (directory / name).is_file():
        pytest.skip(f"{name} is not in {directory}: set DRIFTGP_DATA to the directory that holds it")
    return directory


def published_run(seed: int) -> dict[str, np.ndarray]:
    """What was kept of the published toy run of a seed; the test is skipped where it is not."""
    path = SHARED / "reference" / f"toy_seed{seed}.npz"
    if not path.is_file():
        pytest.skip(f"the published toy runs are not at {path.parent}")
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def write_xlsx(path: Path, sheets: dict[str, Iterable[Row]], leave_dates_unformatted: bool = False) -> Path:
    """A workbook whose sheets hold these rows, dates as spreadsheets store them."""
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="xlsxwriter makes the workbooks of this test")
    form = None if leave_dates_unformatted else "mm/dd/yyyy hh:mm"
    with xlsxwriter.Workbook(path, {"default_date_format": form}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
    return path


def write_xls(path: Path, sheets: dict[str, Iterable[Row]]) -> Path:
    """The same in the old binary format."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an old library, used to write an old format
        xlwt = pytest.importorskip("xlwt", reason="xlwt makes the .xls workbooks of this test")
        book = xlwt.Workbook()
        date = xlwt.easyxf(num_format_str="M/D/YYYY")
        for name, rows in sheets.items():
            sheet = book.add_sheet(name)
            for number, row in enumerate(rows):
                for column, cell in enumerate(row):
                    style = (date,) if isinstance(cell, dt.date) else ()
                    sheet.write(number, column, cell, *style)
        book.save(str(path))
    return path


def day_rows(day: str, loads: Sequence[float | None], labels: Sequence[str] | None = None) -> list[Row]:
    """The rows of a day in an hourly workbook: loads by hours ending, 01 to 24 unless labelled otherwise."""
    date = dt.datetime.fromisoformat(day)
    labels = labels or [f"{hour:02d}" for hour in range(1, 25)]
    return [(date, label, 1.0, load, 30.5) for label, load in zip(labels, loads, strict=True)]


def year_rows(year: int, seed: int = 0) -> tuple[list[Row], np.ndarray]:
    """A whole year of hourly rows as the publisher has them, and their loads, N×24 in MW."""
    days = np.arange(np.datetime64(f"{year}-01-01"), np.datetime64(f"{year + 1}-01-01"))
    loads = np.random.default_rng(seed + year).uniform(500, 3000, (len(days), 24)).round(2)
    rows = [row for day, load in zip(days, loads, strict=True) for row in day_rows(str(day), load.tolist())]
    return rows, loads
