"""Errors of past forecasts, lead by lead, beside those of the seasonal naive forecast."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftgp.base.wording import figure
from driftgp.comparison.verdict import as_text

_BLOCKS = 6  # of leads, in the table


class Record(NamedTuple):
    """The record of each lead, H each; NaN before the first judged forecast."""

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

    def __repr__(self) -> str:
        """A table: mean absolute errors and shares of targets in the 95 % interval, by how far ahead."""
        parts = {
            f"step {end}" if end == first + 1 else f"steps {first + 1} to {end}": slice(first, end)
            for first, end in blocks(len(self.judged))
        }
        found = {name: self.over(leads) for name, leads in (parts | {"all steps": slice(None)}).items()}
        return as_text(
            ["MAE", "naive", "inside, %"],
            [(name, [figure(float(x[0])) for x in (r.error, r.naive, 100.0 * r.inside)]) for name, r in found.items()],
        )


def blocks(steps: int) -> list[tuple[int, int]]:
    """A few blocks of leads, first and end: short ones near, long ones far ahead.

    >>> blocks(24)
    [(0, 1), (1, 2), (2, 4), (4, 7), (7, 13), (13, 24)]
    """
    ends = np.unique(np.round(np.geomspace(1, steps, min(_BLOCKS, steps))).astype(int)).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


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
