"""From times in UTC to the clock on the wall, and back; all in microseconds since 1970."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})(?::(\d{2}))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo:
    """The zone of this name, or with this offset.

    >>> zone_of("Europe/Berlin").key, zone_of("UTC+02:00")
    ('Europe/Berlin', datetime.timezone(datetime.timedelta(seconds=7200)))
    """
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes, seconds = offset.groups()
        span = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds or 0))
        return timezone(span if sign == "+" else -span)
    if name in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError) as error:
        raise ValueError(f"there is no time zone {name!r} on this machine: convert the times to UTC first") from error


def to_wall(at: np.ndarray, name: str | None) -> np.ndarray:
    """What the clock on the wall of a zone shows at these times.

    >>> at = np.array([1711846800e6, 1711850400e6])  # the hours around the change to summer time in 2024
    >>> ((to_wall(at, "Europe/Berlin") - at) / 3.6e9).tolist()
    [2.0, 2.0]
    """
    if name is None:
        return at
    zone = zone_of(name)
    made = [
        (moment.replace(tzinfo=UTC) - _EPOCH) / _MICROSECOND
        for moment in ((_EPOCH + timedelta(microseconds=time)).astimezone(zone) for time in at.tolist())
    ]
    return np.array(made, np.float64).reshape(at.shape)


def from_wall(wall: np.ndarray, name: str | None) -> np.ndarray:
    """When the clock on the wall of a zone shows this: the first of two such times; a skipped one is an hour later."""
    if name is None:
        return wall
    zone = zone_of(name)
    made = [
        ((_EPOCH + timedelta(microseconds=time)).replace(tzinfo=zone).astimezone(UTC) - _EPOCH) / _MICROSECOND
        for time in wall.tolist()
    ]
    return np.array(made, np.float64).reshape(wall.shape)
