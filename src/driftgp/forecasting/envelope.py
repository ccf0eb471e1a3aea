"""Limits for forecasts, from the values of a series."""

import math


def envelope(low: float, high: float) -> tuple[float, float]:
    """The range of the values that still count, widened by its own length on both sides.

        [low − (high − low),  high + (high − low)]

    There is no limit while all values are the same, or none is known (NaN).

    >>> envelope(10.0, 14.0)
    (6.0, 18.0)
    >>> envelope(10.0, 10.0)
    (-inf, inf)
    """
    length = high - low
    return (low - length, high + length) if length > 0.0 else (-math.inf, math.inf)
