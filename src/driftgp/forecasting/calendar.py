"""Where in its seasons a row is: the slot of the day and of the week, by the clock or by counting rows."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from driftgp.season import DAY, season_of

MOST_STEPS = 2000  # of a horizon: memory grows by its square
MOST_SLOTS = 24  # of a day; finer rows share them
_WEEK = 7
_YEAR = 365.25
_FIRST_MONDAY = 4  # day 4 of 1970 was one


@dataclass(frozen=True)
class Calendar:
    """The seasons of a series with rows so many seconds apart, or of one without times.

    >>> hourly = Calendar(3600.0, None)
    >>> hourly.season, hourly.long_season, hourly.slots, hourly.long_slots
    (24, 168, 24, 168)
    >>> daily = Calendar(86400.0, None)
    >>> daily.season, daily.long_season, daily.slots, daily.long_slots
    (7, 7, 7, 7)
    """

    step: float | None  # seconds between rows; None without dates
    given: int | None  # rows of a season, where it was given

    @property
    def season(self) -> int:
        """Rows of the short season; 1 if there is none."""
        return self.given or season_of(self.step) or 1

    @property
    def long_season(self) -> int:
        """Rows of the long season: a week, where the short one is a day."""
        return self.season * _WEEK if self._daily else self.season

    @property
    def slots(self) -> int:
        """Places in the short season that are told apart."""
        return min(self.season, MOST_SLOTS) if self.season <= 366 or self._daily else 1

    @property
    def long_slots(self) -> int:
        """Places in the long season that are told apart."""
        return self.slots * _WEEK if self._daily else self.slots

    @property
    def dated(self) -> bool:
        """Whether rows have dates."""
        return self.step is not None

    @property
    def _daily(self) -> bool:
        """Whether the short season is a day of several rows."""
        return self.step is not None and self.step <= DAY / 2 and self.given in (None, round(DAY / self.step))

    def places(self, rows: np.ndarray, first: datetime | None) -> tuple[np.ndarray, np.ndarray]:
        """Slot in the long season and phase of the year, for numbers of rows since the first one."""
        if first is None or self.step is None:
            return (rows % self.season) * self.slots // self.season, np.zeros(len(rows))
        seconds = (first - datetime(1970, 1, 1)) / timedelta(seconds=1) + rows * self.step
        days = seconds / DAY
        year = 2.0 * np.pi * (days % _YEAR) / _YEAR
        if self._daily:
            slot = np.floor((days - _FIRST_MONDAY) % _WEEK * self.slots + 1e-6).astype(np.int64) % self.long_slots
        elif self.season == _WEEK:
            slot = np.floor((days - _FIRST_MONDAY) % _WEEK + 1e-6).astype(np.int64) % _WEEK
        else:
            slot = (rows % self.season) * self.slots // self.season
        return slot, year
