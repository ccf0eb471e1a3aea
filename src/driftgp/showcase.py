"""The default model on the bikes that come with the package, beside persistence and the seasonal naive forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from driftgp import plots
from driftgp.comparison import OURS, Backtest, backtest
from driftgp.comparison.contest import Report
from driftgp.data import bike_sharing_stream
from driftgp.frames import Column, Table
from driftgp.stream.begin import Default
from driftgp.stream.runtime import Streams
from driftgp.stream.settings import settings

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

    >>> shown = bikes(rows=800)
    >>> [line.method for line in shown.found.lines]
    ['driftgp', 'seasonal naive', 'persistence']
    """
    names = (*WEATHER, *KNOWN)
    stream = bike_sharing_stream(features=names)
    assert stream.times is not None  # noqa: S101 (hours have times)
    columns = {name: Column(name, "numbers", values) for name, values in zip(names, stream.X.T, strict=True)}
    columns["hour"] = Column("hour", "times", stream.times.astype("datetime64[us]").astype(np.float64))
    columns["bikes"] = Column("bikes", "numbers", stream.y)
    said = settings(target="bikes", time="hour", features=names, lags=LAGS, calendar=True)
    streams = Streams(said, Default())
    block = streams.of_table(Table(columns, single=False), learn=True)
    _, X = streams.inputs(block, streams.targets(block, None))
    X, y, times = X[WEEK:][:rows], stream.y[WEEK:][:rows], stream.times[WEEK:][:rows]
    found = backtest(X, y, methods=METHODS, warmup=WARMUP, season=WEEK, report=report)
    return Shown(found, times[WARMUP:], y[WARMUP:])
