"""Rows that wait under an id for their labels. Labels may come in any order, even after a reload.

Rows are learned in the order of their labels. The time between two of them is the time between their rows, or 0 if a
label overtakes an earlier one.
"""

from typing import Any

import numpy as np

from driftgp.base.frames import Column
from driftgp.predictions import Forecast, Prediction
from driftgp.stream.keys import SeriesKey
from driftgp.stream.reading import Block
from driftgp.stream.rows import Waiting
from driftgp.stream.runtime import Streams
from driftgp.stream.series import Series

MOST = 1000  # rows of one series that may wait; beyond that the oldest is given up

Id = str | int


def check(streams: Streams, key: SeriesKey, name: Any, block: Block) -> None:
    """Refuse an id that cannot be one, or that is taken."""
    if len(block.codes) != 1:
        raise ValueError(f"id names one row; got {len(block.codes)} rows: predict them one at a time")
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise ValueError(f"id must be text or a whole number; got {name!r}")
    series = streams.series.get(key)
    if series is not None and name in series.waiting:
        raise ValueError(f"id must be new, or its label known; {name!r} still waits for its label")


def keep(streams: Streams, key: SeriesKey, name: Id, block: Block, prediction: Prediction) -> None:
    """Keep a row under its id, with the forecast that was issued for it."""
    streams.share(block.plan, named=block.named)
    series = streams.series.setdefault(key, Series(streams))
    series.now += 1.0
    time = np.nan if block.times is None else float(np.asarray(block.times.values, np.float64)[0])
    usable = isinstance(prediction, Forecast) and series.learned > 0
    issued = prediction.records.copy() if usable else None  # type: ignore[attr-defined]
    series.waiting[name] = Waiting(
        block.codes[0].copy(), time, float(block.wall[0]), series.now, issued, series.generation
    )
    while len(series.waiting) > MOST:
        del series.waiting[next(iter(series.waiting))]


def label(streams: Streams, key: SeriesKey, name: Id, y: Any, elapsed: Any) -> None:
    """Learn from the row that waits under an id and its target y."""
    series = streams.series.get(key)
    if series is None or name not in series.waiting:
        raise ValueError(
            f"id must be one that predict was given and whose label is new; no row waits under {name!r}: give the row, "
            f"update(x, y)"
        )
    row = series.waiting[name]
    times = None
    if not np.isnan(row.time):
        dated = not np.isnan(row.wall)
        zoned = bool(series.clock.zoned) if series.clock.zoned is not None else row.time != row.wall and dated
        times = Column("time", "times" if dated else "numbers", np.array([row.time]), (), zoned, np.array([row.wall]))
    block = Block(row.codes[None], times, np.array([row.wall]), True, None, streams.plan, streams.named, None)
    if elapsed is None and times is None:
        elapsed = max(row.now - series.done, 0.0)
    target = streams.targets(block, y)
    known = row.issued if row.generation == series.generation else None
    streams.take(block, target, [key], elapsed=elapsed, at_once=True, known=known, overtaken=True)
    series = streams.series[key]
    series.done = max(series.done, row.now)
    del series.waiting[name]
