"""Methods of other libraries, as their own pages show them; each library is imported when its method runs."""

from typing import Any

import numpy as np

from driftgp.comparison.trial import Forecasts, Trial

TREES = 200  # of LightGBM; its other settings are the library's


def ridge(trial: Trial) -> Forecasts:
    """Ridge regression on standardised inputs, its penalty by leave-one-out, fitted again on all rows known so far."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return _refitted(trial, trial.filled, lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 6))))


def lightgbm(trial: Trial) -> Forecasts:
    """LightGBM, fitted again on all rows known so far; it takes gaps as they are."""
    from lightgbm import LGBMRegressor

    return _refitted(trial, trial.X, lambda: LGBMRegressor(n_estimators=TREES, verbose=-1, n_jobs=1))


def _refitted(trial: Trial, X: np.ndarray, make: Any) -> Forecasts:
    """Predictions of a batch learner that is fitted again after a number of rows; 0 until there are labels."""
    mean = np.zeros(trial.rows)
    for row in range(trial.warmup, trial.rows, trial.refit):
        known, block = trial.known_before(row), slice(row, row + trial.refit)
        if len(known) > 1:
            mean[block] = make().fit(X[known], trial.y[known]).predict(X[block])
    return Forecasts(mean[trial.warmup :])


def river_linear(trial: Trial) -> Forecasts:
    """Linear regression by stochastic gradient descent behind a scaler."""
    from river import linear_model, preprocessing

    return _followed(trial, preprocessing.StandardScaler() | linear_model.LinearRegression())


def river_tree(trial: Trial) -> Forecasts:
    """A Hoeffding tree that adapts."""
    from river import preprocessing, tree

    return _followed(trial, preprocessing.StandardScaler() | tree.HoeffdingAdaptiveTreeRegressor(seed=1))


def river_forest(trial: Trial) -> Forecasts:
    """An adaptive random forest."""
    from river import forest, preprocessing

    return _followed(trial, preprocessing.StandardScaler() | forest.ARFRegressor(seed=1))


def river_neighbours(trial: Trial) -> Forecasts:
    """Nearest neighbours in a window of the last 1000 rows."""
    from river import neighbors, preprocessing

    return _followed(trial, preprocessing.StandardScaler() | neighbors.KNNRegressor())


def _followed(trial: Trial, model: Any) -> Forecasts:
    """Predictions of a river model that learns from each label when it is known."""
    rows = [dict(enumerate(x)) for x in trial.filled.tolist()]
    y, mean = trial.y.tolist(), np.zeros(trial.rows)
    for row in range(trial.rows):
        label = row - trial.horizon
        if label >= 0 and y[label] == y[label]:
            model.learn_one(rows[label], y[label])
        if row >= trial.warmup:
            mean[row] = model.predict_one(rows[row]) or 0.0
    return Forecasts(mean[trial.warmup :])
