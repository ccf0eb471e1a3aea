"""Numbers of alarms as they come back from JSON."""

from typing import Any

import numpy as np


def array_from(stored: Any, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
    """Numbers of a shape, none of them negative where they count something."""
    try:
        array: np.ndarray = np.array(stored, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"alarms hold {str(stored)[:60]!r} where numbers should be") from error
    if array.shape != shape or (dtype is np.int64 and array.size and not 0 <= array.min() <= array.max() < 1 << 53):
        raise ValueError(f"alarms must hold {shape} numbers, counts not negative; got {str(stored)[:60]!r}")
    return array
