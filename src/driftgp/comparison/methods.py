"""The methods of a comparison: each one from the rows of a trial to forecasts, without a look ahead."""

from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from driftgp.comparison import outside
from driftgp.comparison.trial import Forecasts, Run, Trial
from driftgp.online import Online
from driftgp.predictions import Gaussian
from driftgp.stream.base_column import place_of
from driftgp.stream.naive import Season, forecasts

ERRORS = 500  # the last errors, by which a naive forecast knows its spread
FORGETTING = 0.998  # of recursive least squares: a memory of 500 rows


class Method(NamedTuple):
    """A method of the table: what runs it, and the module of another library that it needs."""

    run: Run
    module: str | None = None

    @property
    def missing(self) -> str | None:
        """The library that is not installed, None if all is there."""
        library = (self.module or "").partition(".")[0]
        return library if library and find_spec(library) is None else None

    def prepare(self) -> None:
        """Import what it needs, so that no time per row has that in it."""
        if self.module is not None:
            import_module(self.module)


def default(trial: Trial) -> Forecasts:
    """The default model from the first row on, as `Online` runs it."""
    online = Online(**trial.settings | {"horizon": trial.horizon})
    if trial.given is None:
        prediction = online.evaluate(trial.X, trial.y)
    else:
        prediction = online.evaluate(trial.given, None if online.settings.target is not None else trial.y)
    law = prediction.rows(slice(trial.warmup, None))
    return Forecasts(np.asarray(law.mean), law)


def base_alone(trial: Trial) -> Forecasts:
    """The forecast from elsewhere as it is, the last known target where it is missing; its spread by its own errors."""
    place = place_of(trial.settings["base"])
    wall = np.full(trial.rows, np.nan)
    last = forecasts(trial.y, wall, (), trial.horizon)[:, -1]
    given = trial.X[:, 0 if place is None else place]
    return _spread(trial, np.where(np.isnan(given), last, given))


def persistence(trial: Trial) -> Forecasts:
    """The last known target."""
    return _naive(trial, ())


def seasonal_naive(trial: Trial) -> Forecasts:
    """The target a season before, by the clock where rows have dates; the last known one where there was none."""
    assert trial.season is not None  # noqa: S101 (the contest asks)
    return _naive(trial, (trial.season,))


def _naive(trial: Trial, seasons: tuple[Season, ...]) -> Forecasts:
    """The last of the naive forecasts; before any target is known, the mean of the first ones that are."""
    wall = np.full(trial.rows, np.nan) if trial.wall is None else trial.wall
    return _spread(trial, forecasts(trial.y, wall, seasons, trial.horizon)[:, -1])


def _spread(trial: Trial, mean: np.ndarray) -> Forecasts:
    """Means with the spread of their last errors; the mean of the first targets where one is missing."""
    known = trial.y[trial.known_before(trial.warmup)]
    mean = np.where(np.isnan(mean), known.mean() if len(known) else 0.0, mean)
    variance = _recent(np.square(trial.y - mean), trial.horizon)
    law = Gaussian(mean=mean, variance=variance, noise=variance).rows(slice(trial.warmup, None))
    return Forecasts(law.mean, law)


def _recent(squares: np.ndarray, horizon: int) -> np.ndarray:
    """Mean of the last known squares before each row, and a small number before the first one."""
    there = np.isfinite(squares)
    total = np.concatenate([[0.0], np.cumsum(np.where(there, squares, 0.0))])
    count = np.concatenate([[0], np.cumsum(there)])
    end = np.maximum(np.arange(len(squares)) - horizon + 1, 0)
    begin = np.maximum(end - ERRORS, 0)
    mean = (total[end] - total[begin]) / np.maximum(count[end] - count[begin], 1)
    return np.maximum(mean, np.finfo(np.float64).tiny ** 0.5)


def least_squares(trial: Trial) -> Forecasts:
    """Recursive least squares with forgetting λ on the standardised inputs and a constant.

    k = P x / (λ + xᵀ P x),  w ← w + k (y − xᵀ w),  P ← (P − k xᵀ P) / λ.

    The variance is v (1 + xᵀ P x), with v the mean of recent squared errors.
    """
    known = trial.known_before(trial.warmup)
    X, y = trial.filled, trial.y
    batch = X[known] if len(known) else np.zeros((1, X.shape[1]))
    scale = batch.std(0)
    X = np.column_stack([np.ones(trial.rows), (X - batch.mean(0)) / np.where(scale > 0.0, scale, 1.0)])
    D = X.shape[1]
    w, P, v, n = np.zeros(D), np.eye(D), 0.0, 0.0
    mean, variance = np.zeros(trial.rows), np.zeros(trial.rows)
    for row in range(trial.rows):
        label = row - trial.horizon
        if label >= 0 and np.isfinite(y[label]):
            x = X[label]
            Px = P @ x
            error = y[label] - x @ w
            k = Px / (FORGETTING + x @ Px)
            n = FORGETTING * n + 1.0
            v += (error**2 / (1.0 + x @ Px) - v) / n
            w += k * error
            P = (P - np.outer(k, Px)) / FORGETTING
            P = 0.5 * (P + P.T)
            if np.trace(P) > 1e6 * D:  # an input that stopped varying: its variance would grow without end
                P *= 1e6 * D / np.trace(P)
        x = X[row]
        mean[row], variance[row] = x @ w, v * (1.0 + x @ P @ x)
    variance = np.maximum(variance, np.finfo(np.float64).tiny ** 0.5)
    law = Gaussian(mean=mean, variance=variance, noise=variance).rows(slice(trial.warmup, None))
    return Forecasts(law.mean, law)


BASE = "base"
METHODS: dict[str, Method] = {
    "driftgp": Method(default),
    "persistence": Method(persistence),
    "seasonal naive": Method(seasonal_naive),
    "RLS": Method(least_squares),
    "Ridge": Method(outside.ridge, "sklearn.linear_model"),
    "LightGBM": Method(outside.lightgbm, "lightgbm"),
    "river linear": Method(outside.river_linear, "river.linear_model"),
    "river tree": Method(outside.river_tree, "river.tree"),
    "river forest": Method(outside.river_forest, "river.forest"),
    "river kNN": Method(outside.river_neighbours, "river.neighbors"),
}
ALL = METHODS | {BASE: Method(base_alone)}  # the last one only where there is a base
