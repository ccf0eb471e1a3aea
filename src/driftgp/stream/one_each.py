"""A quick way for a row of each of many series, as they come from all meters at once.

The rows of all series that have one model go to the engine as they are, in one call. If a series or a row does not fit,
all take the usual way, and get the same numbers.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from driftgp.engine import Batch
from driftgp.predictions import Prediction
from driftgp.stream.keys import SeriesKey
from driftgp.stream.rows import ForecastRecords
from driftgp.stream.series import Series
from driftgp.stream.together import assembled

if TYPE_CHECKING:
    from driftgp.stream.reading import Block
    from driftgp.stream.runtime import Streams


def settled(streams: "Streams", block: "Block", keys: Sequence[SeriesKey]) -> list[Series] | None:
    """The series of all rows, one each, if nothing of them but their states changes; None otherwise."""
    same = block.plan is streams.planned and block.named == streams.named and block.times is None
    if not same or streams.plan.text or streams.derived.any or streams.settings.missing != "carry":
        return None
    if len(keys) < 2 or len(set(keys)) < len(keys):
        return None
    found = []
    for key in keys:
        series = streams.series.get(key)
        if series is None or series.slot is None or series.buffer is not None or series.queue is not None:
            return None
        if series.learned == 0 or not math.isnan(series.clock.latest):
            return None
        found.append(series)
    return found


def one_each(series: list[Series], block: "Block", y: np.ndarray) -> Prediction:
    """Predict the row of each series, and then learn it."""
    rows: dict[int, list[int]] = {}
    for row, one in enumerate(series):
        rows.setdefault(id(one.slot.stack), []).append(row)  # type: ignore[union-attr]
    made, places = [], []
    for own in rows.values():
        stack, N = series[own[0]].slot.stack, len(own)  # type: ignore[union-attr]
        slots = np.array([series[row].slot.number for row in own])  # type: ignore[union-attr]
        batch = Batch(block.codes[own], y[own], np.ones(N))
        records = stack.engine.run(stack.records, slots, np.arange(1, N + 1), batch)
        for row in own:
            series[row].learned += 1
        made.append([ForecastRecords(stack, records)])
        places.append(np.array(own))
    return assembled(made, places, block.source)
