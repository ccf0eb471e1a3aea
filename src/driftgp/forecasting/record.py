"""What the forecasts of the past were worth, lead by lead, beside the seasonal naive forecast."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Record(NamedTuple):
    """The record of each lead, H each; NaN where nothing was judged."""

    judged: np.ndarray  # forecasts whose row has come
    error: np.ndarray  # mean absolute error
    naive: np.ndarray  # that of the seasonal naive forecast, of the same rows
    inside: np.ndarray  # share in the 95 % interval

    @property
    def forecasts(self) -> int:
        """How many forecasts were judged."""
        return int(self.judged.sum())

    def over(self, leads: slice) -> "Record":
        """The same over several leads, as arrays of one number."""
        count = self.judged[leads]
        total = max(float(count.sum()), 1.0)
        means = [float(np.nansum(count * part[leads])) / total for part in (self.error, self.naive, self.inside)]
        nothing = not count.sum()
        return Record(
            *(np.array([np.nan if nothing and place else value]) for place, value in enumerate([count.sum(), *means]))
        )


def record_of(series: Mapping[Any, Any], horizon: int) -> Record:
    """The record of several series together: each forecast counts once."""
    count, sums = np.zeros(horizon), np.zeros((3, horizon))
    for placed in series.values():
        if placed.series is None:
            continue
        own = placed.series.worth()
        judged = np.asarray(own.judged, np.float64)
        count += judged
        sums += np.where(judged > 0.0, judged * np.array([own.error, own.naive, own.inside]), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Record(count, *(sums / count))
