"""The supervised sets of the paper's experiments, as the published runs had them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from driftgp.data.locate import Location, Source
from driftgp.data.stream import Floats, Stream
from experiments.data.daily import Daily
from experiments.data.isone import ISONE, ZONES, read_isone
from experiments.data.sales import read_online_retail, read_store_sales

WARMUP = 90
LAGS = 7
LEFT_OUT = 3  # the published runs stop three samples before the end of both sales series
LOAD_2020_2021 = Source(
    ISONE.title,
    ISONE.publisher,
    (
        "isone_zonal_paper_2020_2021.*",
        "202[01]_smd_hourly.xls*",
        "isone_zonal_hourly_wide_*",
        "*smd_hourly.xls*",
    ),
)


def load_streams(data: Location = None, zones: Collection[str] = ZONES) -> dict[str, Stream]:
    """Load: the 24 hourly loads of a day in GW → those of the next, 2020 and 2021, one stream a zone.

    `y` is N×24; `stream.output(hour - 1)` is the stream of one hour, for one model an hour. The first six
    days are dropped, and the published record has no 31 December 2020, which leaves 90 samples for warm-up
    and 633 online.
    """
    records = read_isone(data, zones, years=(2020, 2021), source=LOAD_2020_2021)
    return {zone: day_ahead(record.without("2020-12-31"), first=6) for zone, record in records.items()}


def day_ahead(record: Daily, first: int = 0, warmup: int = WARMUP) -> Stream:
    """The loads of a day → the loads of the next day on record, from day number `first` on; MW become GW."""
    if len(record) <= first + warmup + 1:
        raise ValueError(f"{record.name} has {len(record)} days: more than {first + warmup + 1} are needed")
    days, gigawatts = record.days[first:], record.values[first:] / 1000
    hours = tuple(f"hour {hour}" for hour in range(1, 25))
    return Stream(
        record.name,
        X=gigawatts[:-1],
        y=gigawatts[1:],
        warmup=warmup,
        unit="GW",
        times=days[1:],
        inputs=hours,
        lag_columns=tuple(range(24)),
    )


def store_sales_stream(data: Location = None) -> Stream:
    """Store Sales (SS): mean sales of seven days → the next, in standard deviations of the inputs.

    Shops are closed on 1 January, so its value is replaced by the one before it; the series begins on such
    a day, and the published run replaced that one by the last value of the series. 1584 samples are online.
    """
    record = read_store_sales(data)
    values = record.values.copy()
    for index in np.flatnonzero(record.days == record.days.astype("datetime64[Y]")):
        values[index] = values[index - 1]  # index 0 takes the last value
    X, _ = _lagged("SS", values)
    scale = float(X.std())
    return _sales("SS", record, values / scale, unit=f"{scale:.2f} {record.unit}")


def online_retail_stream(data: Location = None) -> Stream:
    """Online Retail (OR): revenue of seven trading days → the next, in units of 10 000 pounds; 205 online."""
    record = read_online_retail(data)
    return _sales("OR", record, record.values / 10_000, unit="10 000 GBP")


def _sales(name: str, record: Daily, values: Floats, unit: str) -> Stream:
    X, y = _lagged(name, values)
    return Stream(
        name,
        X=X,
        y=y,
        warmup=WARMUP,
        unit=unit,
        times=record.days[LAGS:-LEFT_OUT],
        inputs=tuple(f"{lag} days before" for lag in range(LAGS, 0, -1)),
        lag_columns=(LAGS - 1,),
    )


def _lagged(name: str, values: Floats) -> tuple[Floats, Floats]:
    """Seven values, the oldest first, N×7, and the one that follows them, N."""
    if len(values) <= LAGS + WARMUP + LEFT_OUT:
        raise ValueError(f"{name} has {len(values)} days: more than {LAGS + WARMUP + LEFT_OUT} are needed")
    windows = np.lib.stride_tricks.sliding_window_view(values, LAGS + 1)[:-LEFT_OUT]
    return windows[:, :LAGS], windows[:, LAGS]
