"""From rows to inputs: columns, lags of the target, seasonal lags, the calendar; all known when the prediction is made.

With a horizon h the target of row t is predicted when rows up to t − h have their targets and rows up to t − h + 1 have
their other columns. So its inputs are

    columns         those of row t − h + 1
    known columns   those of row t itself: what is known ahead, such as a holiday flag or a weather forecast
    lags            targets of rows t − h, t − h − 1, …, t − h − N + 1
    seasonal lags   the target of row t − k for each k, none smaller than h
    calendar        (sin, cos) of the phase of row t's own time in the day, the week, the year; whether it is a holiday

With h = 1, the default, all columns are those of the row itself.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np

from driftgp import checks

Cycle = Literal["day", "week", "year"]


def _day(time: datetime) -> float:
    return (time.hour + time.minute / 60.0 + time.second / 3600.0) / 24.0


def _week(time: datetime) -> float:
    return (time.weekday() + _day(time)) / 7.0


def _year(time: datetime) -> float:
    return (time.timetuple().tm_yday - 1 + _day(time)) / 365.25


def _clean(wave: float) -> float:
    """Without the last digits: sin π is 0 and not 1e-16, which would pass for a scale."""
    return round(wave, 12)


PHASES: dict[str, Callable[[datetime], float]] = {"day": _day, "week": _week, "year": _year}
_HARMONICS = {"day": 2, "week": 2, "year": 1}  # daily life has two peaks a day; a working week is no sine


@dataclass(frozen=True)
class Features:
    """Which inputs a row has.

    >>> Features(columns=("temp",), lags=2, seasonal=(24,), cycles=("week",)).names
    ('temp', 'lag 1', 'lag 2', 'lag 24', 'sin week', 'cos week', 'sin 2 week', 'cos 2 week')
    """

    columns: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    lags: int = 0
    seasonal: tuple[int, ...] = ()
    cycles: tuple[Cycle, ...] = ()
    holidays: frozenset[date] = frozenset()
    horizon: int = 1

    def __post_init__(self) -> None:
        """Refuse what could not be known in time."""
        checks.whole("lags", self.lags, 0)
        checks.whole("horizon", self.horizon, 1)
        for lag in self.seasonal:
            if checks.whole("seasonal lags", lag, 1) < self.horizon:
                raise ValueError(
                    f"seasonal lags must be at least the horizon ({self.horizon}): nothing later is known; got {lag}"
                )
        for cycle in self.cycles:
            checks.choice("cycles", cycle, tuple(PHASES))
        if not self.names:
            raise ValueError("there are no inputs: name some columns, or ask for lags or for the calendar")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each input is."""
        waves = [
            f"{wave} {f'{harmonic} ' if harmonic > 1 else ''}{cycle}"
            for cycle in self.cycles
            for harmonic in range(1, _HARMONICS[cycle] + 1)
            for wave in ("sin", "cos")
        ]
        return (
            *self.columns,
            *self.known,
            *(f"lag {offset}" for offset in self.offsets),
            *waves,
            *(["holiday"] if self.holidays else []),
        )

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Rows back to each lagged target, none twice."""
        return tuple(dict.fromkeys([*range(self.horizon, self.horizon + self.lags), *self.seasonal]))

    @property
    def memory(self) -> int:
        """How many rows before a row its inputs reach back."""
        return max((*self.offsets, self.horizon - 1))

    @property
    def needs_time(self) -> bool:
        """Whether any input comes from the calendar."""
        return bool(self.cycles or self.holidays)

    def calendar(self, time: datetime) -> list[float]:
        """The inputs that follow from the time."""
        waves = []
        for cycle in self.cycles:
            angle = 2.0 * math.pi * PHASES[cycle](time)
            for harmonic in range(1, _HARMONICS[cycle] + 1):
                waves += [_clean(math.sin(harmonic * angle)), _clean(math.cos(harmonic * angle))]
        return [*waves, float(time.date() in self.holidays)] if self.holidays else waves


class History:
    """The last rows of one series, as far back as its features reach.

    >>> history = History(Features(columns=("temp",), lags=1))
    >>> history.extend(np.array([[20.0], [21.0]]), np.zeros((2, 0)), np.array([5.0, 6.0]), [None, None]).tolist()
    [[21.0, 5.0]]
    """

    def __init__(self, features: Features) -> None:
        """Start with nothing."""
        self.features = features
        self.columns = np.zeros((0, len(features.columns)))  # of the last h − 1 rows
        self.targets = np.zeros(0)  # of as many rows as the inputs reach back, and one at least

    def extend(
        self, columns: np.ndarray, known: np.ndarray, targets: np.ndarray, times: Sequence[datetime | None]
    ) -> np.ndarray:
        """Take in N rows: their columns (N×C), columns known ahead (N×K), targets or NaN (N) and times.

        Returns the inputs of those whose past reaches back far enough, R×D: all but the first rows of a series, and so
        the last R of these. How rows are cut into calls changes nothing.
        """
        features, ahead = self.features, self.features.horizon - 1
        before, columns_before = len(self.targets), len(self.columns)
        columns, targets = np.concatenate([self.columns, columns]), np.concatenate([self.targets, targets])
        self.columns = columns[max(len(columns) - ahead, 0) :].copy()
        self.targets = targets[-max(features.memory, 1) :].copy()
        N = len(times)
        first = min(max(features.memory - before, 0), N)  # row that has inputs
        X = np.empty((N - first, len(features.names)))
        C, K, L = len(features.columns), len(features.known), len(features.offsets)
        X[:, :C] = _back(columns, columns_before + first, columns_before + N, ahead)
        X[:, C : C + K] = known[first:]
        for place, offset in enumerate(features.offsets, start=C + K):
            X[:, place] = _back(targets, before + first, before + N, offset)
        if features.needs_time and first < N:
            X[:, C + K + L :] = [features.calendar(time) for time in times[first:] if time is not None]
        return X

    def to_json(self) -> dict[str, Any]:
        """The rows, as JSON can hold them."""
        return {"columns": self.columns.tolist(), "targets": self.targets.tolist()}

    def restore(self, columns: Sequence[Sequence[float]], targets: Sequence[float]) -> None:
        """Take back what `to_json` gave."""
        features = self.features
        rows = min(len(targets), features.horizon - 1)
        most = max(features.memory, 1)
        if len(targets) > most or len(columns) != rows:
            raise ValueError(
                f"the past must have at most {most} targets, and here {rows} rows of columns; "
                f"got {len(targets)} and {len(columns)}"
            )
        self.columns = np.array(columns, np.float64).reshape(rows, len(features.columns))
        self.targets = np.array(targets, np.float64)


def _back(values: np.ndarray, begin: int, end: int, offset: int) -> np.ndarray:
    """The values so many rows before those from `begin` to `end`; there are none if there are no rows."""
    return values[begin - offset : end - offset] if begin < end else values[:0]
