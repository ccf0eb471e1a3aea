"""The settings of a series, known before its first row."""

from dataclasses import dataclass

import numpy as np

EFFORTS = ("low", "medium", "high")
MOST_STEPS = 2000  # of a horizon: memory grows by its square


@dataclass(frozen=True)
class Settings:
    """The settings of a series, known before its first row.

    Args:
        horizon: H, the largest number of steps.
        effort: low, medium or high.
        known: K, columns that are known ahead.
        past: columns that are known up to the present row.
        step: seconds between rows; None without times.
        season: rows of each season, where they are given; otherwise they are found.
        low: the least value that the series can have.
        high: the greatest.
    """

    horizon: int
    effort: str = "medium"
    known: int = 0
    past: int = 0
    step: float | None = None
    season: tuple[int, ...] = ()
    low: float = -np.inf
    high: float = np.inf
