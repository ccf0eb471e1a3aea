"""The season of a series by the time between its rows: a day of hours, a week of days, a year of months."""

import numpy as np
from numpy.typing import ArrayLike

DAY, WEEK = 86400.0, 604800.0
MONTH, _YEAR = 2629746.0, 31556952.0  # seconds, in the mean


def usual_step(at: ArrayLike) -> float | None:
    """The usual time between rows, in the units of their times; None without times, or without a usual step.

    >>> usual_step([0.0, 3600.0, 7200.0, 14400.0, 18000.0])
    3600.0
    """
    at = np.asarray(at, np.float64)
    steps = np.diff(at[np.isfinite(at)])
    steps = steps[steps > 0.0]
    if not len(steps):
        return None
    usual = float(np.median(steps))
    return usual if np.mean(np.abs(steps - usual) <= 0.12 * usual) > 0.5 else None


def season_of(step: float | None) -> int | None:
    """Rows of a season, by the seconds between rows: a day, a week of days, or a year of weeks, months or quarters.

    >>> season_of(3600.0), season_of(600.0), season_of(86400.0), season_of(604800.0), season_of(2.6e6), season_of(None)
    (24, 144, 7, 52, 12, None)
    """
    if step is None:
        return None
    for length, largest in ((DAY, DAY / 2), (WEEK, DAY), (_YEAR, 3.3 * MONTH)):
        if step <= 1.01 * largest:
            return round(length / step)
    return None
