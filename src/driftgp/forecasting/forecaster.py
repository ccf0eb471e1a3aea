"""One series or many, and forecasts of their next steps at any moment."""

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from driftgp.base import checks, frames
from driftgp.base.files import read_whole, write_atomically
from driftgp.base.locks import turns
from driftgp.defaults import Effort, Support
from driftgp.forecasting import stored
from driftgp.forecasting.asked import Asked, asked
from driftgp.forecasting.fan import Fan, Fans
from driftgp.forecasting.future import Future, none_given
from driftgp.forecasting.placed import Placed, Repeated, Steps, instants, shown
from driftgp.forecasting.reading import Reader, Rows
from driftgp.forecasting.record import Record, record_of
from driftgp.forecasting.tables import About
from driftgp.stream.keys import Key, codes, key_column
from driftgp.stream.plan import listed

SHOWN, LEAST = 4, 30  # horizons of the past in a picture, and rows; a season too


class Forecaster:
    """Take rows in as they come; forecast the next steps at any moment, without a refit.

    Frames of pandas, polars and pyarrow, dicts, series and arrays go in. Rows of a table need not be sorted; a step
    without a row is a missing target.

    >>> t = np.arange(600)
    >>> y = 100.0 + 10.0 * np.sin(2 * np.pi * t / 24) + np.random.default_rng(0).normal(size=600)
    >>> forecaster = Forecaster(horizon=24, season=24)
    >>> forecaster.update(y)
    >>> fan = forecaster.forecast(12)
    >>> fan.index[0].item(), bool(np.abs(fan.mean - (100.0 + 10.0 * np.sin(2 * np.pi * fan.index / 24))).max() < 2.0)
    (600, True)
    >>> low, high = fan.interval(0.95)
    >>> fan.sample(size=10, seed=0).shape
    (10, 12)

    Several series, and a column that is known ahead:

    >>> rows = [
    ...     {"shop": shop, "day": day, "sold": 20.0 + 9.0 * (day % 5 == 0), "promo": day % 5 == 0}
    ...     for day in range(100)
    ...     for shop in ("east", "west")
    ... ]
    >>> forecaster = Forecaster(horizon=7, target="sold", time="day", key="shop", known=["promo"])
    >>> forecaster.update(rows)
    >>> future = [{"shop": s, "day": d, "promo": d % 5 == 0} for d in range(100, 107) for s in ("west", "east")]
    >>> fans = forecaster.forecast(7, future=future)
    >>> fans["west"].index.tolist()
    [100, 101, 102, 103, 104, 105, 106]

    Args:
        horizon: H, the largest number of steps ahead.
        target: column to forecast, in tables. Frames with the columns `unique_id`, `ds` and `y` need no names.
        time: column of times; by default an index of times, or the only column of times.
        key: column that says which series a row belongs to.
        known: columns that are known ahead, such as a promotion: `forecast` is given them for the steps to come.
        past: columns that are known up to the last row only, such as a measured temperature.
        holidays: dates, or the code of a country such as "DE-BY" (`pip install "driftgp[holidays]"`).
        effort: "low", "medium" or "high".
        frequency: time between rows, such as timedelta(hours=1), "15min" or "1M"; by default the usual one.
        season: rows of a season; by default those that the times and the rows show.
        support: where targets can lie: "auto", "real", "positive", or two numbers.
    """

    def __init__(
        self,
        horizon: int = 24,
        *,
        target: str | None = None,
        time: str | None = None,
        key: str | None = None,
        known: Iterable[str] = (),
        past: Iterable[str] = (),
        holidays: Any = (),
        effort: Effort = "medium",
        frequency: Any = None,
        season: int | None = None,
        support: Support = "auto",
    ) -> None:
        """Start without rows."""
        self._adopt(
            asked(
                horizon=horizon,
                target=target,
                time=time,
                key=key,
                known=known,
                past=past,
                holidays=holidays,
                effort=effort,
                frequency=frequency,
                season=season,
                support=support,
            )
        )

    def _adopt(self, chosen: Asked) -> None:
        self._settings = chosen
        self._reader = Reader()
        self._series: dict[Key | None, Placed] = {}
        self._outspoken = True  # whether rows that were left out are warned of; once
        self.lock = turns(self)

    # ---- what it holds -----------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Asked:
        """The settings it was made with."""
        return self._settings

    @property
    def horizon(self) -> int:
        """H."""
        return self._settings.horizon

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the columns that are known ahead."""
        return self._settings.known

    @property
    def keys(self) -> list[Key]:
        """The keys in the order of their coming; none where there is one series."""
        return [key for key in self._series if key is not None]

    @property
    def rows(self) -> int:
        """Rows taken in, missing ones included; of several series, all of them together."""
        return sum(placed.rows for placed in self._series.values())

    @property
    def seasons(self) -> dict[Key | None, tuple[int, ...]]:
        """Rows of each season that was found, by key; None is the key of a single series."""
        return {key: () if p.series is None else tuple(p.series.seasons) for key, p in self._series.items()}

    def scores(self, key: Key | None = None) -> Record:
        """Errors of past forecasts, lead by lead, beside those of the seasonal naive forecast.

        Args:
            key: of a series; without, all of them together.
        """
        return record_of(self._series if key is None else {key: self._one(key)}, self.horizon)

    def words(self, key: Key | None = None) -> str:
        """The seasons of a series in words; with several series, those of the first."""
        chosen = next(iter(self._series.values()), None) if key is None else self._one(key)
        return "" if chosen is None or chosen.series is None else chosen.series.words()

    def latest(self, key: Key | None = None) -> float:
        """Time of the last row of a series, in microseconds or as a number; −∞ before the first row."""
        placed = self._series.get(key)
        return placed.latest if placed is not None and placed.latest == placed.latest else -math.inf

    def rows_of(self, key: Key | None = None) -> int:
        """Rows of one series that were taken in."""
        placed = self._series.get(key)
        return 0 if placed is None else placed.rows

    def _one(self, key: Key) -> Placed:
        if key not in self._series:
            raise ValueError(f"key must be one of the series; there is no {key!r}: there are {listed(self.keys)}")
        return self._series[key]

    # ---- rows in -----------------------------------------------------------------------------------------------------

    def update(self, rows: Any, times: Any = None, known: Any = None, past: Any = None) -> None:
        """Take rows in: new ones, later than all before.

        A call is completed or has no effect: if it is refused or interrupted, none of its rows is taken in.

        Args:
            rows: a frame, dicts, or one dict with target, time, key and all columns. Or targets alone: an array, one
                number, or a series, whose index has its times. NaN stands for a missing target.
            times: of targets that come alone: datetimes, NumPy's, or numbers.
            known: for targets that come alone, the columns of these rows that are known ahead: an array N×K, or a
                frame that is read by its names and its index.
            past: for targets that come alone, the columns that are known up to now, in the same form.
        """
        with self.lock:
            said: list[str] = []
            rows_of, reader = self._read(self._reader, rows, times, known, past)
            changed = {}
            for key, own in rows_of.items():
                before = self._series.get(key) or Placed(Rows.none(own.codes.shape[1]))
                name = "" if key is None else f"{key!r}: "
                try:
                    changed[key] = before.taken(self._settings, reader, own, said, name)
                except Repeated as error:
                    raise _explained(error, rows, reader) from None
            if said and self._outspoken:
                more = f" ({len(said)} such remarks)" if len(said) > 1 else ""
                warnings.warn(said[0] + more, UserWarning, stacklevel=2)
            self._swap(reader, changed, outspoken=self._outspoken and not said)

    def _read(
        self, reader: Reader, rows: Any, times: Any = None, known: Any = None, past: Any = None
    ) -> tuple[dict[Key | None, Rows], Reader]:
        """Rows by their keys, and the reader after them."""
        table = frames.table(rows)
        if table is None:
            read, reader = reader.array(self._settings, rows, times, {"known": known, "past": past})
            return {None: read}, reader
        if times is not None or known is not None or past is not None:
            raise ValueError("times, known and past are columns of the table: name them, and give the table alone")
        read, keys, reader = reader.history(self._settings, table)
        return self._by_key(read, keys), reader

    def _swap(self, reader: Reader, changed: dict[Key | None, Placed], *, outspoken: bool) -> None:
        """Put the prepared parts in place in one step of the interpreter, so that no signal comes in between."""
        if reader == self._reader and outspoken == self._outspoken and changed.keys() <= self._series.keys():
            self._series.update(changed)
        else:
            vars(self).update(_reader=reader, _series={**self._series, **changed}, _outspoken=outspoken)

    @staticmethod
    def _by_key(rows: Rows, keys: list[Key] | None) -> dict[Key | None, Rows]:
        if keys is None:
            return {None: rows}
        different, which = codes(keys)
        if len(different) == 1:
            return {different[0]: rows}
        order = np.argsort(which, kind="stable")
        cuts = np.searchsorted(which[order], np.arange(1, len(different)))
        return {key: rows.some(own) for key, own in zip(different, np.split(order, cuts), strict=True)}

    # ---- forecasts out -----------------------------------------------------------------------------------------------

    def forecast(self, h: int | None = None, future: Any = None, *, keys: Sequence[Key] | None = None) -> Any:
        """The next h steps after the last row: a `Fan`; with keys, a `Fan` for each of them.

        Args:
            h: steps, at most the horizon; by default the horizon, or as many as `future` has.
            future: the known columns of these steps. A frame is read by names, times and keys, in any order of its
                rows. It is an array h×K where rows came as arrays.
            keys: some of the keys; by default all of them.
        """
        with self.lock:
            if h is not None and checks.whole("h", h, 1) > self.horizon:
                raise ValueError(f"h must be at most the horizon, {self.horizon}; got {h}: begin with Forecaster({h})")
            if not self._series:
                raise ValueError("there are no rows to forecast from: give some to update first")
            ahead = None if future is None else Future.of(self._settings, self._reader, future)
            if self._settings.key is None and (self._reader.names is None or self._reader.names.key is None):
                return self._fan(None, h, ahead)
            chosen = self.keys if keys is None else list(keys)
            fans, short = {}, []
            for key in chosen:
                try:
                    fans[key] = self._fan(key, h, ahead)
                except TooShort as error:
                    short.append((key, error))
        if short and not fans:
            raise short[0][1]
        if short:
            some = f"{short[0][0]!r} ({self._series[short[0][0]].rows} rows)"
            one = len(short) == 1
            warnings.warn(
                f"{len(short)} of {len(chosen)} series {'has' if one else 'have'} too few rows for a forecast, such as "
                f"{some}: {'it is' if one else 'they are'} left out",
                UserWarning,
                stacklevel=2,
            )
        return Fans(fans)

    def _fan(self, key: Key | None, h: int | None, ahead: Future | None) -> Fan:
        chosen, reader = self._settings, self._reader
        placed = self._series[None] if key is None else self._one(key)
        if ahead is None or h is not None:
            self._refuse_short(placed, h)
        placed = placed.settled(chosen, reader, [], "" if key is None else f"{key!r}: ")
        steps = self.horizon if h is None else h
        if h is None and ahead is not None:
            steps = min(ahead.steps(reader, placed, key), self.horizon)
            if steps == 0:
                raise ValueError(
                    f"future has no rows after the last row{'' if key is None else f' of {key!r}'}, "
                    f"{shown(placed.latest_wall(reader), reader) if reader.timed else placed.length}"
                )
            self._refuse_short(placed, steps)
        if ahead is None and chosen.known:
            raise none_given(chosen, reader, placed, steps)
        if ahead is None:
            known = np.zeros((steps, 0 if reader.plan is None else len(reader.plan.names)))
        else:
            known = ahead.known(chosen, reader, placed, key, steps)
        fan = placed.forecast(chosen, reader, known, steps)
        return replace(fan, about=self._about(placed, key, steps))

    def _refuse_short(self, placed: Placed, h: int | None) -> None:
        steps = self.horizon if h is None else h
        if placed.rows <= steps:
            what = "horizon" if h is None else "h"
            raise TooShort(
                f"{what} is {steps}, and there are {placed.rows} rows: a forecast needs more rows than it has steps, "
                "and good ones need several seasons. Ask for fewer steps, forecast(h), or give more rows"
            )

    def _about(self, placed: Placed, key: Key | None, steps: int) -> About:
        """The form of the rows, for tables and pictures of a forecast."""
        reader, last = self._reader, placed.last
        assert last is not None  # noqa: S101
        at, wall = placed.ahead(reader, steps)
        some = slice(-max(SHOWN * steps, LEAST, *placed.seasons), None)
        y = last.y[some]
        if reader.dated:
            return About(reader.names, reader.look, key, at, instants(wall), instants(last.wall[some]), y)
        before, _ = placed.when(reader, placed.length - np.arange(len(y), 0, -1))
        return About(reader.names, reader.look, key, at, at, before, y)

    # ---- backtests ---------------------------------------------------------------------------------------------------

    def backtest(
        self, rows: Any = None, *, origins: int = 20, h: int | None = None, methods: Iterable[str] | None = None
    ) -> Any:
        """Forecasts from several origins of the past against other methods, lead by lead.

        A forecaster with the same settings begins anew, takes in the rows up to the first origin and forecasts; then
        the rows up to the next one, and so on. Each other method is fitted again at each origin, to the same rows. This
        forecaster is not changed.

        Args:
            rows: a table as `update` takes it; by default the last rows of each series, some thousands of which it has.
            origins: how many, a horizon apart if there are enough rows, and closer together if not.
            h: steps from each origin; by default the horizon.
            methods: names of `driftgp.forecasting.backtest.METHODS`; by default all whose libraries are installed.
        """
        from driftgp.forecasting.backtest import backtest

        with self.lock:
            return backtest(self, rows, origins=origins, h=h, methods=methods)

    def steps(self, rows: Any = None) -> Iterator[tuple[Key | None, Placed, Reader, Steps]]:
        """Each series with rows on its grid: the last ones, which are kept, or all those of a table.

        Args:
            rows: a table as `update` takes it.
        """
        if rows is None:
            for key, placed in self._series.items():
                settled = placed.settled(self._settings, self._reader, [], "")
                if settled.last is not None:
                    yield key, settled, self._reader, settled.last
            return
        rows_of, reader = self._read(Reader(), rows)
        for key, own in rows_of.items():
            yield (
                key,
                *Placed(own.some(slice(0, 0))).gridded(
                    self._settings, reader, own, "" if key is None else f"{key!r}: "
                ),
            )

    # ---- copies and files --------------------------------------------------------------------------------------------

    def copy(self) -> "Forecaster":
        """A copy, which continues independently."""
        with self.lock:
            other = Forecaster.__new__(Forecaster)
            other._adopt(self._settings)  # noqa: SLF001
            vars(other).update(_reader=self._reader, _series=dict(self._series), _outspoken=self._outspoken)
            return other

    def __repr__(self) -> str:
        series = f" of {len(self.keys)} series" if self.keys else ""
        return f"<Forecaster of the next {self.horizon} steps: {self.rows} rows{series}>"

    def __copy__(self) -> "Forecaster":
        return self.copy()

    def __deepcopy__(self, _: Any) -> "Forecaster":
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles are the bytes."""
        return Forecaster.from_bytes, (self.to_bytes(),)

    def to_bytes(self, extra: Any = None) -> bytes:
        """All of it as bytes, without pickle.

        Args:
            extra: what to keep beside it: anything that JSON can hold.
        """
        with self.lock:
            return stored.to_bytes(
                stored.Stored(self._settings, self._reader, self._series, outspoken=self._outspoken, extra=extra)
            )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Forecaster":
        """The forecaster whose `to_bytes` gave `data`; it continues to the last bit as that one would have."""
        return cls.with_extra(data)[0]

    @classmethod
    def with_extra(cls, data: bytes) -> tuple["Forecaster", Any]:
        """The same, and what was kept beside it."""
        found = stored.from_bytes(data)
        forecaster = cls.__new__(cls)
        forecaster._adopt(found.settings)  # noqa: SLF001
        vars(forecaster).update(_reader=found.reader, _series=found.series, _outspoken=found.outspoken)
        return forecaster, found.extra

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to the file at `path`. The file is replaced in one step."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Forecaster":
        """Read what `save` wrote to `path`, in this process or another one."""
        data = read_whole(path)
        try:
            return cls.from_bytes(data)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


class TooShort(ValueError):
    """A series has too few rows for a forecast of this length."""


def _explained(error: Repeated, rows: Any, reader: Reader) -> ValueError:
    """The error for several rows of one time; it names the column that tells them apart, if any."""
    names, table = reader.names, frames.table(rows)
    if table is None or names is None or names.key is not None:
        return error
    times = table.beside if names.time is None else table.columns[names.time]
    if times is None:
        return error
    found = key_column(table.columns, np.asarray(times.values, np.float64), {names.target, names.time})
    if found is None:
        return error
    return ValueError(f"{str(error).removesuffix(error.remedy)}{found!r} tells them apart: say key={found!r}")
