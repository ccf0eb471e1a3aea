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
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
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

    @property
    def names(self) -> tuple[str, ...]:
        """What each input is."""
        lags = dict.fromkeys([*range(self.horizon, self.horizon + self.lags), *self.seasonal])
        waves = [
            f"{wave} {f'{harmonic} ' if harmonic > 1 else ''}{cycle}"
            for cycle in self.cycles
            for harmonic in range(1, _HARMONICS[cycle] + 1)
            for wave in ("sin", "cos")
        ]
        return (
            *self.columns,
            *self.known,
            *(f"lag {lag}" for lag in lags),
            *waves,
            *(["holiday"] if self.holidays else []),
        )

    @property
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


@dataclass
class History:
    """The last rows of one series, as far back as its features reach.

    >>> history = History(Features(columns=("temp",), lags=1))
    >>> history.push([20.0], 5.0)
    >>> history.inputs([21.0], [], None).tolist()
    [21.0, 5.0]
    """

    features: Features
    columns: deque[list[float]] = field(init=False)
    targets: deque[float] = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing."""
        self.columns = deque(maxlen=max(self.features.horizon - 1, 1))
        self.targets = deque(maxlen=max(self.features.memory, 1))

    @property
    def full(self) -> bool:
        """Whether it reaches back as far as the inputs do."""
        return len(self.targets) >= self.features.memory

    def inputs(self, columns: list[float], known: list[float], time: datetime | None) -> np.ndarray:
        """Inputs of the row that comes next, whose own target is not asked for."""
        features = self.features
        past = self.columns[-(features.horizon - 1)] if features.horizon > 1 else columns
        lagged = [self.targets[-offset] for offset in features.offsets]
        calendar = features.calendar(time) if time is not None else []
        return np.array([*past, *known, *lagged, *calendar], dtype=np.float64)

    def push(self, columns: list[float], target: float) -> None:
        """Take a row in: its columns, and its target or NaN."""
        self.columns.append(columns)
        self.targets.append(target)

    def to_json(self) -> dict[str, Any]:
        """The rows, as JSON can hold them."""
        return {"columns": list(self.columns), "targets": list(self.targets)}

    def restore(self, stored: dict[str, Any]) -> None:
        """Take back what `to_json` gave."""
        self.columns.extend([float(value) for value in row] for row in stored["columns"])
        self.targets.extend(float(value) for value in stored["targets"])
