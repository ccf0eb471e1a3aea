"""From a file to forecasts of its next rows: reading (with a checkpoint only new rows), and the summary."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np

from driftgp import Forecaster
from driftgp.base.files import read_whole, write_atomically
from driftgp.base.frames import Column, Table
from driftgp.base.season import usual_step
from driftgp.base.wording import figure
from driftgp.forecasting import tables
from driftgp.forecasting.fan import Fan, Fans
from driftgp.forecasting.record import Record
from driftgp.runs.inputs import FullTable, read_full_table
from driftgp.runs.settings import SECONDS, RunSettings, settings_from

_DAY = 86400.0
FEW = 20  # with fewer judged forecasts, the record of a series is uncertain
_NAMED_KEY = re.compile(r"say key='(.+)'")
_SAME_TIME = "the same time as the row before"


def reading(given: Mapping[str, Any], file: str) -> RunSettings:
    """The settings for reading the file; without a target, an error with the columns to choose from."""
    more = {"others": "ignored", "lags": 1, "calendar": False}
    if "target" in given or file == "-":
        return settings_from({**given, **more})
    with settings_from({**given, **more, "target": "?"}).open(file) as rows:
        columns = ", ".join(rows.header)
    raise ValueError(f"target is not given: name the column to forecast with --target. The columns are {columns}")


@dataclass(frozen=True)
class Answer:
    """Forecasts, with notes and warnings."""

    forecaster: Forecaster
    fan: Fan | Fans
    whole: FullTable
    target: str
    remarks: list[str]
    resumed: bool

    @property
    def steps(self) -> int:
        """How many of each series."""
        return max(len(fan) for _, fan in self._fans())

    def _fans(self) -> Iterator[tuple[Any, Fan]]:
        if isinstance(self.fan, Fans):
            yield from self.fan.items()
        else:
            yield None, self.fan

    @property
    def labels(self) -> list[str]:
        """The columns that say which row it is."""
        names = self.whole.settings
        time = names.time or "row"
        return [*([names.key] if names.key else []), "time" if time in ("mean", "low", "high") else time]

    def lines(self, levels: list[float]) -> list[dict[str, Any]]:
        """One line per series and step."""
        found = []
        for key, fan in self._fans():
            numbers = tables.columns([fan], levels)
            for place, at in enumerate(self._times(fan)):
                names = [*([key] if key is not None else []), at]
                line = dict(zip(self.labels, names, strict=True))
                found.append(line | {name: float(values[place]) for name, values in numbers.items()})
        return found

    def _times(self, fan: Fan) -> list[str]:
        assert fan.about is not None  # noqa: S101
        if not self.whole.written.dated:
            return [f"{value:g}" if value == value else "" for value in np.asarray(fan.index, np.float64).tolist()]
        days = self.whole.written.days and not self.whole.written.zoned
        texts = [str(moment.astype("datetime64[s]")).replace("T", " ") for moment in fan.about.wall]
        if days:
            return [text[:10] for text in texts]
        shifts = (fan.about.wall.astype(np.int64) - fan.about.at) / 1e6
        zoned = self.whole.written.zoned
        return [text + (_offset(shift) if zoned else "") for text, shift in zip(texts, shifts.tolist(), strict=True)]

    def caption(self, levels: list[float]) -> str:
        """The caption of the forecast."""
        return f"ends of the {' and '.join(f'{100 * level:g}%' for level in levels)} interval"

    @property
    def scores(self) -> Record:
        """Errors of past forecasts."""
        return self.forecaster.scores()

    def notes(self, level: float) -> list[tuple[str, str]]:
        """Names and sentences on the series."""
        keys, count, words = self.forecaster.keys, self.scores.forecasts, self.forecaster.words()
        found = []
        if isinstance(self.fan, Fan):
            total, least, most = self.fan.total(level)
            ends = f"{figure(least)} to {figure(most)} ({100 * level:g}% interval)"
            found.append(("Sum", f"of all steps: {figure(total)}, {ends}"))
        if count:
            judged = f"{count} forecasts, each made before its row was known; inside: the share in their 95% interval"
            found.append(("Past", judged))
        steps, read = self.forecaster.rows, len(history(self.whole, self.target))
        missing = (
            f": {read} in the table, {steps - read} missing between them" if read < steps and not self.resumed else ""
        )
        found.append(("Rows", f"{steps}{f' of {len(keys)} series' if keys else ''}{missing}"))
        return [*found, *([("Seasons", words.removeprefix("seasons: "))] if words else [])]

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the forecast."""
        forecaster = self.forecaster
        worse = []
        keys: list[Any] = list(forecaster.keys) or [None]
        for key in keys:
            worth = forecaster.scores(key).over(slice(None))
            if worth.judged[0] >= FEW and worth.error[0] > worth.naive[0]:
                worse.append(key)
        if not worse:
            return []
        if worse == [None]:
            return ["The seasonal naive forecast was better in the past: see the table"]
        one = len(worse) == 1
        which = f"{len(worse)} of {len(forecaster.keys)} series {'is' if one else 'are'}"
        return [f"{which} worse than the seasonal naive forecast, such as {worse[0]!r}"]

    def write(self, path: Path, lines: list[dict[str, Any]]) -> None:
        """Write the lines to a file: CSV or Parquet."""
        import polars as pl

        rows, data = pl.DataFrame(lines), io.BytesIO()
        if path.suffix.lower() == ".parquet":
            rows.write_parquet(data)
        else:
            rows.write_csv(data)
        write_atomically(path, data.getvalue())

    def backtest(self, origins: int) -> Any:
        """Against other methods, on the rows of the file, or on those that a checkpoint has kept."""
        rows = None if self.resumed else history(self.whole, self.target)
        return self.forecaster.backtest(rows, origins=origins)


def answered(
    settings: RunSettings,
    file: str,
    steps: str,
    *,
    checkpoint: Path | None,
    past: str,
    season: int | None,
    complain: Callable[[str], None],
) -> Answer:
    """Read a file, learn from its new rows, keep them, and forecast."""
    with settings.open(file) as table:
        whole = read_full_table(settings, table, complain=complain, keyed=True)
    whole = whole._replace(table=_zoned(whole))
    rows = history(whole, settings.target)
    if not len(rows):
        raise ValueError(f"target {settings.target!r} has no numbers: there is nothing to forecast from")
    asked: dict[str, Any] = {
        "target": settings.target,
        "time": whole.settings.time,
        "key": settings.key,
        "known": settings.known,
        "past": tuple(name.strip() for name in past.split(",") if name.strip()),
        "season": season,
        "holidays": settings.holidays,
        "effort": settings.effort or "medium",
        "support": settings.support or "auto",
    }
    horizon = horizon_of(steps, whole)
    resumed = checkpoint is not None and checkpoint.exists()
    remarks = list(dict.fromkeys(whole.remarks))
    if checkpoint is not None and resumed:
        forecaster = _resumed(checkpoint, horizon, asked)
        new = newer(forecaster, rows, whole)
        remarks.append(f"resumed after {forecaster.rows} rows: {len(new)} new of {len(rows)} rows")
        rows = new
    else:
        forecaster = Forecaster(horizon, **asked)
    if len(rows):
        remarks = _updated(forecaster, rows, remarks)
    fan = _forecast(forecaster, horizon, whole, settings)
    if checkpoint is not None:
        write_atomically(checkpoint, forecaster.to_bytes())
    return Answer(forecaster, fan, whole, settings.target, remarks, resumed)


def _forecast(forecaster: Forecaster, horizon: int, whole: FullTable, settings: RunSettings) -> Fan | Fans:
    if not settings.known:
        made: Fan | Fans = forecaster.forecast(horizon)
        return made
    try:
        made = forecaster.forecast(horizon, future=coming(whole, settings.target))
    except ValueError as error:
        if not str(error).startswith("future"):
            raise
        raise ValueError(
            f"{error}. The file must have rows below the last target for the steps to come, with the target blank and "
            "the known columns filled"
        ) from error
    return made


def _updated(forecaster: Forecaster, past: Table, remarks: list[str]) -> list[str]:
    """Take rows in; return the remarks, in which those of the forecaster replace others about the same rows."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        try:
            forecaster.update(past)
        except ValueError as error:
            raise ValueError(_NAMED_KEY.sub(r"say --key \1", str(error))) from error
    own = [str(warning.message) for warning in said]
    return [*(text for text in remarks if not own or _SAME_TIME not in text), *own]


# ---- rows ------------------------------------------------------------------------------------------------------------


def _ends(whole: FullTable, target: str) -> np.ndarray:
    """Which rows are history: those up to the last target of their series."""
    table = whole.table
    y = np.asarray(table.columns[target].values, np.float64)
    key = whole.settings.key
    which = np.zeros(len(y), np.int64)
    if key is not None:
        _, which = np.unique(np.array(table.columns[key].values, "U"), return_inverse=True)
    at = _order(whole)
    last = np.full(which.max(initial=0) + 1, -np.inf)
    there = np.isfinite(y)
    np.maximum.at(last, which[there], at[there])
    return np.asarray(at <= last[which])


def _order(whole: FullTable) -> np.ndarray:
    time = whole.settings.time
    if time is None:
        return np.arange(len(whole.table), dtype=np.float64)
    return np.asarray(whole.table.columns[time].values, np.float64)


def history(whole: FullTable, target: str) -> Table:
    """The rows up to the last target of each series."""
    return _rows(whole.table, np.flatnonzero(_ends(whole, target)))


def coming(whole: FullTable, target: str) -> Table:
    """The rows after the last target of each series."""
    return _rows(whole.table, np.flatnonzero(~_ends(whole, target)))


def _rows(table: Table, some: np.ndarray) -> Table:
    return Table({name: column.rows(some) for name, column in table.columns.items()}, single=False)


def _zoned(whole: FullTable) -> Table:
    """The table, its times with the zone of the last row where they have an offset from UTC."""
    time = whole.settings.time
    known = whole.offsets[np.isfinite(whole.offsets)]
    if time is None or not whole.written.zoned or not len(known):
        return whole.table
    column: Column = replace(whole.table.columns[time], zone="UTC" + _offset(float(known[-1])))
    return Table({**whole.table.columns, time: column}, single=False)


def _offset(seconds: float) -> str:
    return str(timezone(timedelta(seconds=round(seconds))))[3:] or "+00:00"


def _resumed(path: Path, horizon: int, asked: Mapping[str, Any]) -> Forecaster:
    data = read_whole(path)
    try:
        forecaster = Forecaster.from_bytes(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    before = forecaster.settings
    now = Forecaster(horizon, **asked).settings
    for name, value in before.to_json().items():
        given = now.to_json()[name]
        if given != value and not (name == "horizon" and given < value):
            raise ValueError(
                f"{'next' if name == 'horizon' else name} is {given!r}, and the checkpoint has {value!r}: resume with "
                "the same settings, or start a new checkpoint"
            )
    return forecaster


def newer(forecaster: Forecaster, past: Table, whole: FullTable) -> Table:
    """The rows that have not been taken in."""
    time, key = whole.settings.time, whole.settings.key
    keys = [None] * len(past) if key is None else list(past.columns[key].values)
    if time is not None:
        at = np.asarray(past.columns[time].values, np.float64)
        latest = {own: forecaster.latest(own) for own in set(keys)}
        return _rows(past, np.flatnonzero(at > np.array([latest[own] for own in keys])))
    seen: dict[Any, int] = {}
    some = []
    for row, own in enumerate(keys):
        seen[own] = seen.get(own, 0) + 1
        if seen[own] > forecaster.rows_of(own):
            some.append(row)
    short = [own for own in seen if seen[own] < forecaster.rows_of(own)]
    if short:
        whose = "" if short[0] is None else f" of {short[0]!r}"
        raise ValueError(
            f"the file has {seen[short[0]]} rows{whose}, and the checkpoint has taken in "
            f"{forecaster.rows_of(short[0])}: "
            "rows without times are counted, so give a file with all rows from the first one on"
        )
    return _rows(past, np.array(some, np.int64))


def horizon_of(text: str, whole: FullTable) -> int:
    """Rows from a number of them, or from a time."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in SECONDS else (text, "")
    try:
        length = float(number)
    except ValueError:
        length = 0.0
    if not 0.0 < length < 1e6:
        raise ValueError(f"next must be a number of rows, or a time such as 24h or 28d; got {text!r}")
    if not unit:
        return round(length)
    if not whole.written.dated or whole.settings.time is None:
        raise ValueError(f"next is {text!r}, and the rows have no dates: give a number of rows, or name --time")
    step = _step(whole)
    if step is None:
        raise ValueError(f"next is {text!r}, and the rows have no usual time between them: give a number of rows")
    rows = round(length * SECONDS[unit] / step)
    if rows < 1:
        raise ValueError(f"next is {text!r}, which is less than the {step:g} s between rows")
    return rows


def _step(whole: FullTable) -> float | None:
    """Seconds between rows, in the series with the most of them."""
    at = np.asarray(whole.table.columns[str(whole.settings.time)].values, np.float64)
    if whole.settings.key is not None:
        different, which = np.unique(np.array(whole.table.columns[whole.settings.key].values, "U"), return_inverse=True)
        at = at[which == np.bincount(which, minlength=len(different)).argmax()]
    return usual_step(np.unique(at) / 1e6)


# ---- how it has done -------------------------------------------------------------------------------------------------


def leads_of(worth: Record, *, every: bool = False) -> list[dict[str, Any]]:
    """The record by lead: for each lead or a few blocks of leads, and for all."""
    H = len(worth.judged)
    ends = np.arange(1, H + 1) if every or H <= 8 else np.unique(np.round(np.geomspace(1, H, 6)).astype(int))
    starts = np.concatenate([[0], ends[:-1]])
    blocks = [(f"{a + 1}" if b == a + 1 else f"{a + 1} to {b}", slice(a, b)) for a, b in zip(starts, ends, strict=True)]
    found = []
    for name, block in [*blocks, ("all", slice(None))]:
        own = worth.over(block)
        mae, naive, inside = (float(part[0]) for part in own[1:])
        better = 1.0 - mae / naive if naive > 0.0 else np.nan
        found.append({"lead": name, "mae": mae, "naive": naive, "better": better, "inside": inside})
    return found
