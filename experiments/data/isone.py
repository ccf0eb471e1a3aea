"""Hourly load of the eight zones of ISO New England, from the publisher's workbooks or from tidy files.

Hours are hour-ending local time, 24 a day. Of the two days a year that have 23 or 25 hours the publisher
says: in March hour 2, which does not exist, is the mean of hours 1 and 3; in November hour 2, which occurs
twice, is the mean of its two readings. The workbooks come so repaired; a file that leaves March's hour out,
or keeps November's second hour as a row of its own ('02X'), is repaired here in the same way (`clock.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from driftgp.data.locate import Location, Source, find
from driftgp.data.stream import Times
from experiments.data.clock import HourlyRows, whole_days
from experiments.data.daily import Daily

if TYPE_CHECKING:  # polars is imported when a file is read, not before
    from driftgp.tables.tables import TextTable

ZONES = ("CT", "ME", "NEMA", "NH", "RI", "SEMA", "VT", "WCMA")
OLD_SHEETS = {"NEMASSBOST": "NEMA", "SEMASS": "SEMA", "WCMASS": "WCMA"}  # names in the older workbooks
HOUR_COLUMNS, LOAD_COLUMNS = ("Hr_End", "Hour"), ("RT_Demand", "DEMAND")
ISONE = Source(
    "ISO New England hourly load by zone",
    "ISO New England (ISO Express, 'Energy, Load, and Demand Reports', 'Zonal Information': the yearly "
    "'SMD Hourly Data' workbooks, a sheet a zone)",
    ("isone_zonal_hourly_wide_*", "*smd_hourly.xls*", "isone_zonal_paper_2020_2021.*"),
)


def read_isone(
    data: Location = None,
    zones: Collection[str] = ZONES,
    years: Collection[int] | None = None,
    source: Source = ISONE,
) -> dict[str, Daily]:
    """The hourly load of each zone in MW, N days × 24, from the longest record in `data`, or from that file.

    `years` keeps those years alone, and spares the reading of workbooks whose names begin with another year.
    """
    unknown = [zone for zone in zones if zone not in ZONES]
    if unknown:
        raise ValueError(f"zones has {unknown[0]!r}: choose from {', '.join(ZONES)}")
    paths = [path for path in find(source, data) if years is None or _year(path) in (None, *years)]
    records: dict[str, dict[Path, Daily]] = {zone: {} for zone in zones}
    for path in paths:
        for zone, record in _read(path, zones):
            records[zone][path] = record
    joined = {zone: _joined(zone, parts) for zone, parts in records.items()}
    return joined if years is None else {zone: _in_years(joined[zone], years, source) for zone in joined}


def _year(path: Path) -> int | None:
    """The year that a file's name begins with, if it does ('2020_smd_hourly.xlsx')."""
    match = re.match(r"(\d{4})_", path.name)
    return int(match[1]) if match else None


def _read(path: Path, zones: Collection[str]) -> Iterator[tuple[str, Daily]]:
    from driftgp.tables.tables import WORKBOOKS

    if path.suffix.lower() in WORKBOOKS:
        return _from_workbook(path, zones)
    return _from_tidy(path, zones)


def _from_workbook(path: Path, zones: Collection[str]) -> Iterator[tuple[str, Daily]]:
    """A sheet a zone, beside sheets of notes and of the whole system, which are left alone."""
    from driftgp.tables.tables import read_table, sheet_names

    sheets = {OLD_SHEETS.get(name.strip(), name.strip()): name for name in sheet_names(path)}
    for zone in zones:
        if zone not in sheets:
            raise ValueError(f"{path}: no sheet {zone!r}; the sheets are {', '.join(sheets.values())}")
        table = read_table(path, sheets[zone], {"Date", *HOUR_COLUMNS, *LOAD_COLUMNS})
        days, hours = _days_and_hours(table, "Date", *HOUR_COLUMNS)
        yield zone, _daily(zone, table, table.column(*LOAD_COLUMNS), days, hours)


def _from_tidy(path: Path, zones: Collection[str]) -> Iterator[tuple[str, Daily]]:
    """A row a zone and hour (date, hour_ending, zone, load_mw), or a row an hour and a column a zone."""
    from driftgp.tables.tables import read_table

    table = read_table(path, columns={"date", "hour_ending", "zone", "load_mw", *zones})
    days, hours = _days_and_hours(table, "date", "hour_ending")
    if not table.has("zone"):
        for zone in zones:
            yield zone, _daily(zone, table, table.column(zone), days, hours)
        return
    held = table.text(table.column("zone"))
    for zone in zones:
        index = np.flatnonzero(held == zone)
        if not index.size:
            raise ValueError(f"{path}, column 'zone': no {zone!r}; the zones are {', '.join(np.unique(held))}")
        yield zone, _daily(zone, table, table.column("load_mw"), days, hours, index)


def _daily(
    zone: str,
    table: TextTable,
    column: str,
    days: Times,
    hours: NDArray[np.int64],
    index: NDArray[np.int64] | None = None,
) -> Daily:
    """One zone of a table as days; `index` are the rows that belong to it, all unless given."""
    index = np.arange(len(table.rows)) if index is None else index
    loads = table.numbers(column, blank=True)[index]
    dates, values = whole_days(HourlyRows(table, column, index, days[index], hours[index], loads))
    return Daily(zone, dates, values, unit="MW")


def _days_and_hours(table: TextTable, day: str, *hour: str) -> tuple[Times, NDArray[np.int64]]:
    """Days, and hours ending 1 to 24 from labels such as '01', '1' and '02X' (hour 2, the second time)."""
    column = table.column(*hour)
    labels, inverse = np.unique(table.text(column), return_inverse=True)
    hours = np.zeros(len(labels), dtype=np.int64)
    for position, label in enumerate(labels):
        match = re.fullmatch(r"0?2X|([0-9]{1,2})(\.0)?", label, re.IGNORECASE)
        hours[position] = 0 if match is None else int(match[1] or 2)
    wrong = ((hours < 1) | (hours > 24))[inverse]
    if wrong.any():
        raise table.fault(int(np.argmax(wrong)), column, "an hour ending, 01 to 24 (or 02X)")
    return table.days(table.column(day)), hours[inverse]


def _joined(zone: str, parts: dict[Path, Daily]) -> Daily:
    """The records of several files, one after another."""
    if not parts:
        return Daily(zone, np.empty(0, "datetime64[D]"), np.empty((0, 24)), unit="MW")
    days = np.concatenate([part.days for part in parts.values()])
    values = np.concatenate([part.values for part in parts.values()])
    files = np.repeat([path.name for path in parts], [len(part) for part in parts.values()])
    order = np.argsort(days, kind="stable")
    days, values, files = days[order], values[order], files[order]
    twice = np.flatnonzero(days[1:] == days[:-1])
    if twice.size:
        first, second = files[twice[0]], files[twice[0] + 1]
        raise ValueError(f"{zone}: {days[twice[0]]} is both in {first} and in {second}: keep one of the files")
    return Daily(zone, days, values, unit="MW")


def _in_years(record: Daily, years: Collection[int], source: Source) -> Daily:
    held = record.days.astype("datetime64[Y]").astype(np.int64) + 1970
    for year in years:
        if year not in held:
            remedy = f"add '{year}_smd_hourly.xlsx', from {source.publisher}"
            raise FileNotFoundError(f"{source.title}: the files have no day of {year} for {record.name}; {remedy}")
    kept = np.isin(held, list(years))
    return Daily(record.name, record.days[kept], record.values[kept], record.unit)
