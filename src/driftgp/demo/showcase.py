"""The default model on the bikes that come with the package, beside persistence and the seasonal naive forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from driftgp.comparison import OURS, Backtest, backtest
from driftgp.comparison.contest import Report
from driftgp.data import bike_sharing_stream
from driftgp.plots import base as plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

WEATHER = ("temp", "hum", "windspeed", "weathersit")
KNOWN = ("holiday", "workingday")
WEEK = 168  # hours
LAGS = (1, 2, 3, 24, WEEK)
WARMUP = 500
METHODS = ("persistence", "seasonal naive")


class Shown(NamedTuple):
    """What the methods gave."""

    found: Backtest
    times: NDArray[np.datetime64]  # of the scored hours
    y: np.ndarray

    def picture(self) -> Figure:
        """Draw the default model's last days, and the error of every method over the two years."""
        ours = self.found.laws[OURS]
        others = {method: self.y - self.found.errors[method] for method in METHODS}
        last, window = (10 * 24, "the last ten days"), (4 * WEEK, "the last four weeks")
        return plots.beside(self.times, self.y, ours.mean, ours.interval(0.95), others, "bikes per hour", last, window)


def bikes(report: Report | None = None, rows: int | None = None) -> Shown:
    """Predict the bikes of each hour from the weather, the calendar and the hours before; of the first rows, or of all.

    >>> shown = bikes(rows=1000)
    >>> [line.method for line in shown.found.lines]
    ['driftgp', 'seasonal naive', 'persistence']
    """
    stream = bike_sharing_stream(features=(*WEATHER, *KNOWN))
    assert stream.times is not None  # noqa: S101 (hours have times)
    X, y, times = stream.X[:rows], stream.y[:rows], stream.times[:rows]
    names = ("time", "bikes", *WEATHER, *KNOWN)
    hours = zip(times.astype("datetime64[s]").tolist(), y.tolist(), X.tolist(), strict=True)
    found = backtest(
        [dict(zip(names, (hour, bikes, *values), strict=True)) for hour, bikes, values in hours],
        methods=METHODS,
        warmup=WARMUP,
        season=WEEK,
        report=report,
        target="bikes",
        time="time",
        known=KNOWN,
        lags=LAGS,
        calendar=True,
    )
    return Shown(found, times[found.warmup :], y[found.warmup :])
