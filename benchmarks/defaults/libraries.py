"""Rivals of three more libraries: CapyMOA's SOKNL, GPyTorch on a window, and ARIMA models of statsforecast.

SOKNL runs in Java; the library brings its classes along, and a Java runtime has to be there.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.defaults.quantiles import EVERY, HALF
from benchmarks.defaults.streams import WARMUP, Floats, Stream
from driftgp.predictions import Gaussian

WINDOW = 500  # rows that GPyTorch and ARIMA see
LEARN_EVERY = 10  # rows from one gradient step of GPyTorch to the next
CLIMB = 100  # gradient steps on the warm-up
NORMAL_95 = 1.959963984540054  # standard deviations from the mean to an end of a 95 % interval


def standardised(stream: Stream) -> Floats:
    """Inputs in units of the warm-up."""
    known = stream.X[:WARMUP]
    scale = known.std(0)
    return (stream.X - known.mean(0)) / np.where(scale > 0.0, scale, 1.0)


def soknl(stream: Stream) -> Floats:
    """Self-optimising k nearest leaves (Sun, Pfahringer, Gomes, Bifet 2022), 100 trees: means from row HALF on."""
    from capymoa.core import RegressionInstance
    from capymoa.regressor import SOKNL
    from capymoa.stream import Schema

    names = [f"x{d}" for d in range(stream.X.shape[1])]
    schema = Schema.from_custom(features=[*names, "y"], target="y")
    model, found = SOKNL(schema), np.empty(len(stream.y))
    for i, (x, y) in enumerate(zip(stream.X, stream.y, strict=True)):
        row = RegressionInstance.from_array(schema, x, y)
        found[i] = model.predict(row) or 0.0
        model.train(row)
    return found[HALF:]


def gpytorch_window(stream: Stream) -> Gaussian:
    """Exact process on the last 500 rows, a lengthscale per input; a step of Adam at every tenth row."""
    from benchmarks.outside import GPyTorchExact

    centre, scale = stream.y[:WARMUP].mean(), stream.y[:WARMUP].std() or 1.0
    X, y = standardised(stream), (stream.y - centre) / scale
    process = GPyTorchExact(X[WARMUP - WINDOW : WARMUP], y[WARMUP - WINDOW : WARMUP], 1, climb=CLIMB, every=LEARN_EVERY)
    laws = np.empty((len(y) - WARMUP, 2))
    for i, (x, target) in enumerate(zip(X[WARMUP:], y[WARMUP:], strict=True)):
        laws[i] = process.law(x)
        process.learn(x, target)
    return Gaussian(centre + scale * laws[:, 0], scale**2 * laws[:, 1], np.zeros(len(laws)))


def arima(stream: Stream) -> Gaussian:
    """AutoARIMA, chosen and fitted anew on the last 500 rows every 168 rows; all inputs are regressors.

    Where there are lags among the inputs, they alone are: with weather beside them its forecasts are worse. Between two
    fits its parameters stay, and it goes on from the rows before each forecast: statsforecast's `forward`.
    """
    from statsforecast.models import AutoARIMA

    lags = [column for column, name in enumerate(stream.names) if name.startswith("lag ")]
    X, y = standardised(stream)[:, lags or slice(None)], stream.y
    laws = np.empty((len(y) - WARMUP, 2))
    for start, end in pairwise([*range(WARMUP, len(y), EVERY), len(y)]):
        past = slice(start - WINDOW, start)
        columns = independent(X[past])
        model = AutoARIMA(season_length=1).fit(y[past], X=X[past, columns])
        for row in range(start, end):
            past = slice(row - WINDOW, row)
            known: dict[str, Any] = {"X": X[past, columns], "X_future": X[row : row + 1, columns]}
            said = model.forward(y=y[past], h=1, level=[95], **known)
            laws[row - WARMUP] = said["mean"][0], (said["hi-95"][0] - said["mean"][0]) / NORMAL_95
    return Gaussian(laws[:, 0], np.maximum(laws[:, 1] ** 2, 1e-12), np.zeros(len(laws)))


def independent(X: Floats) -> np.ndarray:
    """Columns that are neither constant nor a sum of others: those on which a pivoted factorisation has a say.

    >>> independent(np.array([[1.0, 1.0, 2.0], [1.0, 2.0, 4.0], [1.0, 4.0, 8.0]])).tolist()
    [2]
    """
    from scipy.linalg import qr

    centred = X - X.mean(0)
    factor, order = qr(centred, mode="r", pivoting=True)
    diagonal = np.abs(np.diagonal(factor))
    kept: np.ndarray = np.sort(order[: int((diagonal > 1e-6 * max(diagonal.max(), 1e-12)).sum())])
    return kept
