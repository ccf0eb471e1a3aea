"""Forecasts of the next steps of streams from the grammar: whole, in order and near their data at every origin."""

import time
from typing import Any

import numpy as np

from driftgp import Forecaster
from tests.fuzz.grammar import DAY, stream
from tests.fuzz.judge import FIRST, reach_so_far

LONGEST = 1200
ORIGINS = 12  # moments at which a forecast is asked for


def case(rng: np.random.Generator, longest: int = LONGEST) -> dict[str, Any]:
    """A series, and what was said of its next steps on the way."""
    given = stream(rng, longest)
    y, horizon = given.y, int(rng.choice([1, 6, DAY]))
    season = None if rng.random() < 0.5 else DAY
    forecaster = Forecaster(horizon, season=season)
    low, high = reach_so_far(np.append(y, np.nan))
    ends = np.unique(rng.integers(1, len(y) + 1, ORIGINS))
    not_finite, crossed, beyond, farthest, begin = [], [], [], 0.0, 0
    began = time.perf_counter()
    for end in ends.tolist():
        forecaster.update(y[begin:end])
        begin = end
        if np.isfinite(y[:end]).sum() < FIRST or end < 60:
            continue
        fan = forecaster.forecast()
        numbers = np.stack([fan.mean, *fan.interval(0.95), fan.quantile(0.5)])
        if not np.isfinite(numbers).all():
            not_finite.append(end)
            continue
        mean, bottom, top, median = numbers
        crossed += [end] * bool(((bottom > median) | (median > top)).any())
        length = max(high[end] - low[end], 1e-3 * max(abs(high[end]), abs(low[end])), 1e-12)
        centres = np.stack([mean, median])
        away = float(np.maximum(np.maximum(centres - high[end], low[end] - centres), 0.0).max()) / length
        beyond += [end] * bool(away > 1.0 + 1e-6)
        farthest = max(farthest, away)
    return {
        "not_finite": not_finite,
        "crossed": crossed,
        "beyond": beyond,
        "farthest": farthest,
        "ratios": [],
        "description": f"horizon {horizon}, season {season}; " + "; ".join(given.description),
        "rows": len(y),
        "seconds": time.perf_counter() - began,
    }
