"""The standard normal density and the reach of its intervals; the rest is in `scipy.special`.

`scipy.stats` has these functions too, but its import takes most of a second.
"""

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from scipy.special import ndtri

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


def log_pdf(z: Any) -> Any:
    """log φ(z) = −½ z² − ½ log 2π.

    >>> round(float(log_pdf(0.0)), 4)
    -0.9189
    """
    return -0.5 * np.square(z) - _LOG_ROOT


def pdf(z: Any) -> Any:
    """φ(z).

    >>> round(float(pdf(0.0)), 4)
    0.3989
    """
    return np.exp(log_pdf(z))


@overload
def nominal_reach(level: float) -> float: ...
@overload
def nominal_reach(level: Sequence[float] | np.ndarray) -> np.ndarray: ...
def nominal_reach(level: Any) -> Any:
    """z of a level, or of several: a standard normal number lies within ±z with that probability.

    >>> round(float(nominal_reach(0.95)), 4)
    1.96
    """
    return -ndtri(0.5 * (1.0 - np.asarray(level)))  # from the lower tail, which keeps the digits of a level near 1
