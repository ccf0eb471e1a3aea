"""A quick way for one plain row at a time, as in most calls of a service.

A row is compared with what was prepared. If it does not fit, it takes the usual way, and gives the same numbers.
"""

import math
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

import numpy as np

from driftgp.predictions import Forecast
from driftgp.stream.plan import NO, YES
from driftgp.stream.runtime import Streams
from driftgp.stream.series import Series
from driftgp.stream.settings import promised

_FLOAT = np.dtype(np.float64)
_NUMBERS = frozenset((float, int, bool))
_ONE = (1,)
_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)


class Quick:
    """One series whose model is chosen and whose inputs are columns alone."""

    def __init__(self, streams: Streams, series: Series) -> None:
        """Prepare what every call needs."""
        assert series.slot is not None and series.encoder is not None  # noqa: S101, PT018
        stack, number = series.slot
        self._series, self._stack = series, stack
        self._one = stack.engine.single(stack.record(number))
        self._flat = stack.layout.outputs is None
        D = stack.layout.inputs
        self._shape = (D,)
        self._small = np.full(D, 1e-16)  # a sum of these small shares is finite if all numbers are
        self._target = np.empty(1)
        self._known: tuple[bytes, np.ndarray] | None = None  # the last input predicted for since the last update
        self._time = streams.settings.time
        self._least, self._largest = promised(streams.settings.support) or (-math.inf, math.inf)
        self._prepare_names(streams, series)

    def _prepare_names(self, streams: Streams, series: Series) -> None:
        """Where each column of a dict goes."""
        plan, encoder = streams.plan, series.encoder
        assert encoder is not None  # noqa: S101
        self._arrays = encoder.plain and self._time is None
        self._names = frozenset(plan.names) if streams.named else None
        self._timed = None if self._time is None or self._names is None else self._names | {self._time}
        self._numbers = [place for place, texts in enumerate(encoder.labels) if texts is None]
        self._all = len(self._numbers) == len(plan.names)
        self._pick = itemgetter(*plan.names) if len(plan.names) > 1 else None
        self._only = plan.names[0]
        self._at = np.array([encoder.first[place] for place in self._numbers], np.int64)
        self._texts: list[tuple[int, dict[str, tuple[int, float]], bool]] = []  # place of a column, input of each text
        for place, texts in enumerate(encoder.labels):
            if texts is None:
                continue
            first, flag = encoder.first[place], encoder.flags[place]
            inputs = {text: (first + i, 1.0) for i, text in enumerate(texts)}
            if flag:
                inputs = {word: (first, float(word in YES)) for word in YES | NO}
                inputs |= {word.title(): found for word, found in inputs.items()}
            self._texts.append((place, inputs, flag))

    # ---- rows --------------------------------------------------------------------------------------------------------

    def row(self, x: Any) -> np.ndarray | None:
        """The inputs of a row that fits the quick way; None for any other row."""
        if type(x) is dict:
            try:
                x = self._of_dict(x)
            except OverflowError:  # a whole number beyond all floats, to be refused on the usual way
                return None
            if x is None:
                return None
        elif type(x) is not np.ndarray or x.shape != self._shape or x.dtype is not _FLOAT or not self._arrays:
            return None
        return x if math.isfinite(x.item() if self._shape == _ONE else x.dot(self._small)) else None

    def _of_dict(self, row: dict[str, Any]) -> np.ndarray | None:
        if row.keys() != self._names and row.keys() != self._timed:
            return None
        values = (row[self._only],) if self._pick is None else self._pick(row)
        if self._all:
            return np.array(values, np.float64) if _NUMBERS.issuperset(map(type, values)) else None
        numbers = [values[place] for place in self._numbers]
        if not _NUMBERS.issuperset(map(type, numbers)):
            return None
        x = np.zeros(self._shape)
        x[self._at] = numbers
        for place, inputs, flag in self._texts:
            found = inputs.get(values[place]) if type(values[place]) is str else None
            if found is not None:
                x[found[0]] = found[1]
            elif flag or not inputs or type(values[place]) is not str:
                return None
        return x

    def predict(self, x: np.ndarray) -> Forecast:
        """Distribution of the target at such a row."""
        made = self._one.predict(x)
        self._known = x.tobytes(), made
        return Forecast(self._stack.model, made, self._flat, self._stack.engine.solve, self._series.generation)

    def learn(self, x: np.ndarray, y: float, row: Any) -> bool:
        """Learn from such a row with the last forecast for it; return whether that was possible."""
        if y < self._least or y > self._largest:  # to be warned of
            return False
        elapsed = 1.0
        series = self._series
        clock = series.clock
        if self._time is not None:
            time = row.get(self._time)
            if type(time) is not datetime or time.tzinfo is not None or clock.zoned is not False or not clock.dated:
                return False
            span, jumped, clock = clock.row(float((time - _EPOCH) // _MICROSECOND))
            if span < 0.0 or jumped:
                return False
            elapsed = span / clock.size
        elif not math.isnan(clock.latest):
            return False
        known, self._known = self._known, None
        self._target[0] = y
        issued = known[1] if known is not None and known[0] == x.tobytes() else None
        lesson = self._one.lesson
        lesson.done = 0
        try:
            self._one.learn(x, self._target, elapsed, issued)
        finally:
            # A signal handler raises only at calls. There are no calls here, so state and clock change together.
            if lesson.done:
                series.learned += 1
                series.clock = clock
        return True

    @property
    def flat(self) -> bool:
        """Whether a target is a plain number."""
        return self._flat


def quick(streams: Streams, series: Series | None) -> Quick | None:
    """The quick way for a series; None if its rows always need the usual way."""
    if series is None or series.slot is None or series.buffer is not None or streams.derived.any or series.learned == 0:
        return None
    if series.queue is not None or streams.settings.missing != "carry" or streams.settings.target is not None:
        return None
    return Quick(streams, series)
