"""What one would use instead, with the settings of each library unless said.

A rival gives means. Its distribution is normal, with the mean square of its last 500 residuals as the variance. So that
there are some at the first row that is scored, each rival predicts the second half of the warm-up as well, and those
that are refitted are fitted on the first half for it. Rivals that give distributions are in `quantiles`.
"""

from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.defaults import libraries, quantiles
from benchmarks.defaults.quantiles import EVERY, HALF
from benchmarks.defaults.score import Followed
from benchmarks.defaults.streams import WARMUP, Floats, Stream
from benchmarks.timing import timed
from driftgp.predictions import Gaussian, Prediction

RESIDUALS = 500
SELDOM = 500  # the same for random forests, which take seconds each
Means = Callable[[Stream], Floats]  # of the rows from HALF on, each without its own target


def persistence(stream: Stream) -> Floats:
    """The last target."""
    return stream.y[HALF - 1 : -1]


def linear(stream: Stream) -> Floats:
    """Least squares on all rows so far, by recursion; inputs in units of the warm-up."""
    X = np.column_stack([libraries.standardised(stream), np.ones(len(stream.y))])
    w, P = np.zeros(X.shape[1]), 1e4 * np.eye(X.shape[1])
    means = np.empty(len(X))
    for i, (x, y) in enumerate(zip(X, stream.y, strict=True)):
        means[i] = x @ w
        Px = P @ x
        gain = Px / (1.0 + x @ Px)
        w = w + gain * (y - means[i])
        P = P - np.outer(gain, Px)
    return means[HALF:]


def refitted(build: Callable[[], Any], every: int = EVERY) -> Means:
    """A batch method, fitted on all rows so far, after the warm-up and then at regular intervals of rows."""

    def means(stream: Stream) -> Floats:
        starts = [HALF, *range(WARMUP, len(stream.y), every), len(stream.y)]
        parts = [
            build().fit(stream.X[:start], stream.y[:start]).predict(stream.X[start:end])
            for start, end in pairwise(starts)
        ]
        return np.concatenate(parts)

    return means


def by_river(build: Callable[[], Any]) -> Means:
    """A regressor of river, row by row from the first."""

    def means(stream: Stream) -> Floats:
        model = build()
        found = np.empty(len(stream.y))
        for i, (row, y) in enumerate(zip(stream.X.tolist(), stream.y.tolist(), strict=True)):
            x = dict(zip(stream.names, row, strict=True))
            found[i] = model.predict_one(x)
            model.learn_one(x, y)
        return found[HALF:]

    return means


def _ridge() -> Any:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), Ridge())


def _lightgbm() -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=200, n_jobs=1, verbose=-1)


def _forest() -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_jobs=1, random_state=0)


def _arf() -> Any:
    from river.forest import ARFRegressor

    return ARFRegressor(seed=0)


def _knn() -> Any:
    from river.neighbors import KNNRegressor
    from river.preprocessing import StandardScaler

    return StandardScaler() | KNNRegressor()


ONCE = 10**9  # rows: never again
MEANS: dict[str, Means] = {
    "persistence": persistence,
    "linear regression": linear,
    "Ridge fitted once": refitted(_ridge, ONCE),
    "LightGBM refitted": refitted(_lightgbm),
    "ARF (river)": by_river(_arf),
    "kNN (river)": by_river(_knn),
    "random forest refitted": refitted(_forest, SELDOM),
    "SOKNL (CapyMOA)": libraries.soknl,
}
LAWS: dict[str, Callable[[Stream], Prediction]] = {
    **quantiles.LAWS,
    "GPyTorch, last 500 rows": libraries.gpytorch_window,
    "AutoARIMA (statsforecast)": libraries.arima,
}
RIVALS = (*MEANS, *LAWS)
MODULES = {  # what a rival imports: neither that nor the start of Java counts as its time
    "Ridge": "sklearn.linear_model",
    "LightGBM": "lightgbm",
    "ARF": "river.forest",
    "kNN": "river.neighbors",
    "random forest": "sklearn.ensemble",
    "SOKNL": "capymoa.regressor",
    "GPyTorch": "gpytorch",
    "AutoARIMA": "statsforecast.models",
}


def follow(name: str, stream: Stream) -> Followed:
    """A rival on the rows after the warm-up; its time is that of all rows, those of the warm-up too."""
    for begins, module in MODULES.items():
        if name.startswith(begins):
            import_module(module)
    found: list[Prediction] = []
    rows = len(stream.y) - WARMUP
    microseconds = timed(len(stream.y), lambda: found.append(_law(name, stream, rows)))
    return Followed(found[0], stream.y[WARMUP:], microseconds)


def _law(name: str, stream: Stream, rows: int) -> Prediction:
    if name in LAWS:
        return LAWS[name](stream)
    return with_residuals(MEANS[name](stream), stream.y[HALF:], rows)


def with_residuals(means: Floats, y: Floats, rows: int) -> Gaussian:
    """Normal laws of the last rows, each with the mean square of at most 500 residuals before it as the variance."""
    sums = np.concatenate([[0.0], np.cumsum((y - means) ** 2)])
    ends = np.arange(len(y) - rows, len(y))
    starts = np.maximum(ends - RESIDUALS, 0)
    variance = (sums[ends] - sums[starts]) / (ends - starts)
    return Gaussian(means[-rows:], np.maximum(variance, 1e-12), np.zeros(rows))
