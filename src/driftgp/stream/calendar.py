"""Inputs that follow from the time of a row alone: waves of the day, the week and the year, and holidays.

Times are those of the clock on the wall where the rows were written, in microseconds since 1970.
"""

import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from driftgp.base.extras import needs

_DAY = 86_400_000_000  # microseconds
_COUNTRY = re.compile(r"[A-Z]{2}(-[A-Z0-9]{1,3})?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _day(time: int) -> float:
    return (time % _DAY) / _DAY


def _week(time: int) -> float:
    return ((time // _DAY + 3) % 7 + _day(time)) / 7.0  # 1970 began on a Thursday


def _year(time: int) -> float:
    moment = _EPOCH + timedelta(microseconds=time)
    return (moment.timetuple().tm_yday - 1 + _day(time)) / 365.25


# Each cycle: the phase of a time in it, and its harmonics. Daily life has two peaks a day; a working week is no sine.
CYCLES: dict[str, tuple[Callable[[int], float], int]] = {"day": (_day, 2), "week": (_week, 2), "year": (_year, 1)}


def names(cycles: Iterable[str], holidays: Any) -> tuple[str, ...]:
    """What each input is.

    >>> names(["day"], ())
    ('sin day', 'cos day', 'sin 2 day', 'cos 2 day')
    """
    waves = [
        f"{wave} {f'{harmonic} ' if harmonic > 1 else ''}{cycle}"
        for cycle in cycles
        for harmonic in range(1, CYCLES[cycle][1] + 1)
        for wave in ("sin", "cos")
    ]
    return (*waves, *(["holiday"] if holidays else []))


def inputs(wall: np.ndarray, cycles: tuple[str, ...], holidays: tuple[str, ...] | str) -> np.ndarray:
    """The inputs of rows with these times, N×W; NaN where a time is missing.

    Each different time is computed once by the same scalar formula, so that a row by itself has the same bits.
    """
    width = len(names(cycles, holidays))
    if len(wall) == 1:
        return np.array([_row(float(wall[0]), cycles, holidays, width)])
    different, place = np.unique(wall, return_inverse=True)
    rows = [_row(time, cycles, holidays, width) for time in different.tolist()]
    return np.array(rows).reshape(len(rows), width)[place]


def _row(time: float, cycles: tuple[str, ...], holidays: tuple[str, ...] | str, width: int) -> tuple[float, ...]:
    if math.isnan(time):
        return (math.nan,) * width
    moment = int(time)
    waves = _waves_of_day(moment % (7 * _DAY), cycles) if "year" not in cycles else _waves(moment, cycles)
    return (*waves, float(is_holiday(moment // _DAY, holidays))) if holidays else waves


@lru_cache(maxsize=1 << 14)
def _waves_of_day(time: int, cycles: tuple[str, ...]) -> tuple[float, ...]:
    """Waves that come again after a week; the same week stands for all."""
    return _waves(time, cycles)


def _waves(time: int, cycles: tuple[str, ...]) -> tuple[float, ...]:
    waves = []
    for cycle in cycles:
        phase, harmonics = CYCLES[cycle]
        angle = 2.0 * math.pi * phase(time)
        for harmonic in range(1, harmonics + 1):
            # without the last digits: sin π is 0 and not 1e-16, which would pass for a scale
            waves += [round(math.sin(harmonic * angle), 12), round(math.cos(harmonic * angle), 12)]
    return tuple(waves)


# ---- holidays --------------------------------------------------------------------------------------------------------


def check_holidays(given: Any) -> tuple[str, ...] | str:
    """Dates as ISO 8601 text in their order, or the code of a country."""
    if given is None:
        return ()
    if isinstance(given, str):
        if not _COUNTRY.fullmatch(given):
            raise ValueError(f"holidays must be dates, or the code of a country such as 'US' or 'DE-BY'; got {given!r}")
        _country(given)
        return given
    return tuple(sorted({_iso(day) for day in given}))


def _iso(day: Any) -> str:
    try:
        return (day if isinstance(day, date) else date.fromisoformat(str(day)[:10])).isoformat()[:10]
    except ValueError:
        raise ValueError(f"holidays must be dates such as '2026-12-25'; got {day!r}") from None


def is_holiday(day: int, holidays: tuple[str, ...] | str) -> bool:
    """Whether a day, counted from 1970, is one of them.

    >>> is_holiday(0, ("1970-01-01",)), is_holiday(1, ("1970-01-01",))
    (True, False)
    """
    if isinstance(holidays, str):
        return (_EPOCH + timedelta(days=day)).date() in _country(holidays)
    return day in _days(holidays)


@lru_cache(maxsize=16)
def _days(holidays: tuple[str, ...]) -> frozenset[int]:
    return frozenset((date.fromisoformat(day) - _EPOCH.date()).days for day in holidays)


@lru_cache(maxsize=16)
def _country(code: str) -> Any:
    with needs("holidays of a country", extra="holidays"):
        import holidays
    country, _, region = code.partition("-")
    try:
        return holidays.country_holidays(country, subdiv=region or None)
    except NotImplementedError as error:
        raise ValueError(f"holidays has no country {code!r}: {error}") from error
