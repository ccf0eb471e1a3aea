"""The ten streams of the protocol, and the variants that some of its figures need.

Rows are in the order of time, lags are rows back, a missing value is that of the row before, and a stream has its first
8000 rows with a full past. CT load is that of 2020 and 2021. FriedmanDrift is river's, with seed 1; its concepts change
at rows 2000, 4000 and 6000 (`lea`) or 2500 and 5000 (`gra`, `gsg`, whose changes take 1000 rows).

Files are looked for in the directory that DRIFTGP_DATA names. What was read stays in memory.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftgp.data import toy_streams
from driftgp.data.locate import Source, find
from driftgp.tables.tables import TextTable, read_table
from experiments.data import ZONES, load_streams, read_isone

Floats = NDArray[np.float64]
ROWS = 8000
WARMUP = 500  # rows that a model starts with, which are not scored
HEAVY_RAIN = 50.0  # mm per hour; the file has one of 9831
HOURLY = (1, 2, 3, 24, 168)  # lags
CLIMATE = (
    *(f"T{room}" for room in range(1, 10)),
    *(f"RH_{room}" for room in range(1, 10)),
    *("T_out", "Press_mm_hg", "RH_out", "Windspeed", "Visibility", "Tdewpoint"),
)
SENSORS = ("pt08_s1_co", "pt08_s2_nmhc", "pt08_s3_nox", "pt08_s4_no2", "pt08_s5_o3", "t", "rh", "ah")
DRIFTS: dict[str, dict[str, Any]] = {
    "lea": {"position": (2000, 4000, 6000)},
    "gra": {"position": (2500, 5000)},
    "gsg": {"position": (2500, 5000), "transition_window": 1000},
}


class Stream(NamedTuple):
    """Samples in the order in which they arrive."""

    name: str
    X: Floats  # N×D
    y: Floats  # N
    names: tuple[str, ...]  # D
    time: NDArray[np.datetime64] | None = None  # N

    def first(self, rows: int) -> "Stream":
        """The first rows alone."""
        return self._replace(X=self.X[:rows], y=self.y[:rows], time=None if self.time is None else self.time[:rows])


# ---- parts of inputs -------------------------------------------------------------------------------------------------


def filled(values: Floats) -> Floats:
    """Each NaN replaced by the value before it in its column; those of a beginning, by the first value.

    >>> filled(np.array([np.nan, 1.0, np.nan, 3.0])).tolist()
    [1.0, 1.0, 1.0, 3.0]
    """
    there = ~np.isnan(values)
    rows = np.arange(len(values)).reshape(-1, *[1] * (values.ndim - 1))
    newest = np.maximum.accumulate(np.where(there, rows, 0), axis=0)
    newest = np.where(newest < (first := there.argmax(0)), first, newest)
    return np.take_along_axis(values, newest, axis=0)


def clock(time: NDArray[np.datetime64]) -> tuple[Floats, tuple[str, ...]]:
    """Sine and cosine of hour and weekday, two harmonics each."""
    hour, weekday = hours(time) / 24.0, (time.astype("datetime64[D]").astype(np.int64) + 3) % 7 / 7.0
    angles = 2.0 * np.pi * np.stack([hour, 2.0 * hour, weekday, 2.0 * weekday], 1)  # N×4
    names = ("hour", "2 hour", "weekday", "2 weekday")
    waves = np.concatenate([np.sin(angles), np.cos(angles)], 1).round(12)
    return waves, tuple(f"{wave} {name}" for wave in ("sin", "cos") for name in names)


def hours(time: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """Hour of the day, 0 to 23."""
    return time.astype("datetime64[h]").astype(np.int64) % 24


def one_hot(time: NDArray[np.datetime64]) -> tuple[Floats, tuple[str, ...]]:
    """A column for each hour of the day."""
    return np.eye(24)[hours(time)], tuple(f"hour {hour}" for hour in range(24))


def with_lags(
    name: str,
    y: Floats,
    lags: Sequence[int],
    *others: tuple[Floats, tuple[str, ...]],
    time: NDArray[np.datetime64],
) -> Stream:
    """Rows with lagged targets and other inputs; the first ones, without a full past, left out."""
    start = max(lags)
    back = np.stack([y[start - lag : len(y) - lag] for lag in lags], 1)
    X = np.concatenate([back, *(part[start:] for part, _ in others)], 1)
    names = (*(f"lag {lag}" for lag in lags), *(label for _, labels in others for label in labels))
    return Stream(name, X, y[start:], names, time[start:])


# ---- the ten ---------------------------------------------------------------------------------------------------------


def _table(title: str, pattern: str) -> TextTable:
    source = Source(title, "where the README of the data says", (pattern, f"streams/{pattern}"))
    return read_table(find(source)[0])


def _columns(table: TextTable, names: Sequence[str]) -> tuple[Floats, tuple[str, ...]]:
    return filled(np.stack([table.numbers(name, blank=True) for name in names], 1)), tuple(names)


def _metro() -> Stream:
    table = _table("Metro Interstate Traffic Volume", "metro_traffic_hourly.*")
    time, kept = np.unique(table.times("date_time"), return_index=True)
    weather, names = _columns(table, ("temp", "rain_1h", "clouds_all"))
    weather[:, 1] = weather[:, 1].clip(max=HEAVY_RAIN)
    y = filled(table.numbers("traffic_volume", blank=True))[kept]
    return with_lags("metro", y, HOURLY, (weather[kept], names), clock(time), time=time)


def _bikes() -> Stream:
    table = _table("Bike Sharing", "bike_sharing_hour.*")
    time = table.times("timestamp")
    weather = _columns(table, ("temp", "hum", "windspeed", "holiday", "workingday"))
    return with_lags("bikes", filled(table.numbers("cnt")), HOURLY, weather, clock(time), time=time)


def _load(years: Sequence[int] | None) -> tuple[Floats, NDArray[np.datetime64]]:
    """Hourly load of Connecticut in MW, and the beginnings of the hours."""
    record = read_isone(zones=["CT"], years=years)["CT"]
    time = record.days.astype("datetime64[h]")[:, None] + np.arange(24).astype("timedelta64[h]")
    return filled(record.values.ravel()), time.ravel()


def _ct(years: Sequence[int] | None = (2020, 2021), name: str = "CT") -> Stream:
    y, time = _load(years)
    return with_lags(name, y, HOURLY, clock(time), time=time)


def _air() -> Stream:
    table = _table("Air Quality", "air_quality_hourly.*")
    X, names = _columns(table, SENSORS)
    return Stream("air", X, filled(table.numbers("co_gt", blank=True)), names, table.times("time"))


def _appliances() -> Stream:
    table = _table("Appliances Energy Prediction", "appliances_energy_10min.*")
    y = filled(table.numbers("Appliances", blank=True))
    return with_lags("appliances", y, (1, 2, 3, 144), _columns(table, CLIMATE), time=table.times("date"))


def _fried() -> Stream:
    table = _table("Fried", "fried.*")
    return Stream("fried", *_split(_columns(table, [f"attr_{i}" for i in range(10)]), table.numbers("target")))


def _kin40k() -> Stream:
    table = _table("kin40k", "kin40k_10k.*")
    return Stream("kin40k", *_split(_columns(table, [f"x{i}" for i in range(8)]), table.numbers("y")))


def _split(inputs: tuple[Floats, tuple[str, ...]], y: Floats) -> tuple[Floats, Floats, tuple[str, ...]]:
    return inputs[0], y, inputs[1]


def _drift(kind: str) -> Stream:
    from river.datasets import synth

    rows = list(synth.FriedmanDrift(drift_type=kind, seed=1, **DRIFTS[kind]).take(ROWS))
    X = np.array([list(x.values()) for x, _ in rows])
    return Stream(kind, X, np.array([target for _, target in rows]), tuple(f"x{i}" for i in range(X.shape[1])))


SHARED: dict[str, Callable[[], Stream]] = {
    "metro": _metro,
    "bikes": _bikes,
    "CT": _ct,
    "air": _air,
    "appliances": _appliances,
    "fried": _fried,
    "kin40k": _kin40k,
}
TEN = (*SHARED, *DRIFTS)


@cache
def stream(name: str) -> Stream:
    """One of the ten by its name.

    >>> TEN
    ('metro', 'bikes', 'CT', 'air', 'appliances', 'fried', 'kin40k', 'lea', 'gra', 'gsg')
    >>> stream("gra").X.shape
    (8000, 10)
    """
    return (SHARED[name]() if name in SHARED else _drift(name)).first(ROWS)


def ten() -> list[Stream]:
    """All ten."""
    return [stream(name) for name in TEN]


# ---- variants --------------------------------------------------------------------------------------------------------


@cache
def one_hot_load() -> Stream:
    """CT load from its last three hours and 24 columns that say which hour it is."""
    y, time = _load((2020, 2021))
    return with_lags("CT one-hot", y, (1, 2, 3), one_hot(time), time=time).first(ROWS)


@cache
def long_load() -> Stream:
    """CT load of all years on file, with the inputs of the short one; over 100 000 rows."""
    return _ct(None, "CT all years")


@cache
def zone(name: str) -> list[Stream]:
    """The 24 streams of a zone with the paper's inputs: the loads of the 24 hours of a day → one hour of the next (GW).

    The warm-up is the paper's, 90 days.
    """
    whole = load_streams(zones=[name])[name]
    labels = tuple(f"hour {hour}" for hour in range(1, 25))
    return [Stream(f"{name} hour {hour + 1}", whole.X, whole.y[:, hour], labels, whole.times) for hour in range(24)]


def zones() -> dict[str, list[Stream]]:
    """All eight zones."""
    return {name: zone(name) for name in ZONES}


def toys(seeds: Sequence[int]) -> list[Stream]:
    """The paper's toy stream, 501 rows for each seed; the first 100 are the warm-up."""
    X, Y = toy_streams(seeds)
    return [Stream(f"toy {seed}", X, y, ("t",)) for seed, y in zip(seeds, Y, strict=True)]
