"""driftgp's model as a river regressor."""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from driftgp import checks
from driftgp.adapters import Configured, Settings
from driftgp.extras import needs
from driftgp.forecasting import Forecaster
from driftgp.online import Online

with needs("driftgp.river", extra="river"):
    from river import base, proba, time_series, utils

_GAP = float("nan")


class AGPRegressor(Configured, base.MiniBatchRegressor):
    """Sparse Gaussian process regression that follows a drifting stream, for river.

    Without settings it is the default model: at first the one for a stream of which nothing is known, and after 400
    samples `driftgp.defaults.recommended` for these.

    Features may appear and vanish. One that is absent, None or NaN keeps the value it had last, and counts as 0 before
    it was ever seen. Where a new one appears, the model starts anew with one more input, from the last 400 samples.
    Features and targets are seen in units of their own spread, which follow the stream, so that no scaler is needed
    before it.

    >>> model = AGPRegressor()
    >>> for i in range(40):
    ...     model.learn_one({"day": i, "warm": i % 2}, 20.0 + i % 2)
    >>> abs(model.predict_one({"day": 40, "warm": 1}) - 21.0) < 0.3
    True
    >>> distribution = model.predict_one({"day": 40, "warm": 1}, with_dist=True)
    >>> distribution.cdf(18.0) < 0.01
    True
    """

    def _prepare(self) -> None:
        settings = Settings.of(self)
        settings.plan(np.zeros((0, 1)), np.zeros(0))  # refuses what is wrong
        self._columns: dict[Hashable, int] = {}  # of the features, in their order
        self._last = np.zeros(0)  # value in each
        self._recent: deque[tuple[np.ndarray, float]] = deque(maxlen=settings.first)
        self._online: Online | None = None

    # ---- one sample

    def learn_one(self, x: Mapping[Hashable, Any], y: float) -> None:
        """Learn from one sample, features x and target y; a target of NaN means that only time has passed."""
        online = self._with_columns_for(x)
        row = self._row(x)
        online.update(row, y)
        self._last = row
        self._recent.append((row, y))

    def predict_one(self, x: Mapping[Hashable, Any], with_dist: bool = False) -> Any:
        """Mean of the target at x, or if `with_dist`, a normal distribution with the forecast's mean and variance.

        Features not learned from yet are passed over.
        """
        online = self._online
        if online is None:
            return self._unlearned(x).predict_one(x, with_dist)
        prediction = online.predict(self._row(x))
        mean = prediction.mean.item()
        if not with_dist:
            return mean
        gaussian: Any = proba.Gaussian
        return gaussian._from_state(n=1, m=mean, var=prediction.variance.item(), ddof=0)  # noqa: SLF001

    def _row(self, x: Mapping[Hashable, Any]) -> np.ndarray:
        """The values of a sample in the order of the columns; what is absent keeps the value that it had last."""
        values = [_GAP if (value := x.get(feature)) is None else value for feature in self._columns]
        row = checks.real("x", values or [0.0])  # a model has one input at least
        return row if checks.surely_finite(row) else np.where(np.isnan(row), self._last, row)

    # ---- frames of samples

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a frame X (pandas, polars, …) and their targets y, one after another."""
        frame = utils.dataframe.into_frame(X)
        online = self._with_columns_for(frame.columns)
        rows = self._rows(frame)
        targets = np.asarray(utils.dataframe.into_series(y).to_numpy(), np.float64)
        if len(rows):
            online.update(rows, targets)
            recent = slice(-Settings.of(self).first, None)
            self._recent.extend(zip(rows[recent].copy(), targets[recent].tolist(), strict=True))
            self._last = rows[-1].copy()

    def predict_many(self, X: Any) -> Any:
        """Mean of the target at the rows of a frame X, as a series of the same library."""
        frame = utils.dataframe.into_frame(X)
        means = self._means(frame) if len(frame) else np.zeros(0)
        return utils.dataframe.to_native_series(means, name=None, like=frame)

    def _means(self, frame: Any) -> np.ndarray:
        if self._online is None:
            return self._unlearned(frame.columns)._means(frame)  # noqa: SLF001
        return self._online.predict(self._rows(frame, carry=False)).mean

    def _rows(self, frame: Any, *, carry: bool = True) -> np.ndarray:
        """A frame's values in the columns of their features; what is absent keeps the value that it had last.

        Args:
            frame: its columns that have no place yet are passed over.
            carry: whether a value lasts from row to row.
        """
        rows = np.tile(self._last, (len(frame), 1))
        names = [name for name in frame.columns if name in self._columns]
        values = utils.dataframe.to_numpy(frame.select(names)).astype(np.float64)
        for place, column in zip((self._columns[name] for name in names), values.T, strict=True):
            if carry and np.isnan(column).any():
                last = np.maximum.accumulate(np.where(np.isnan(column), -1, np.arange(len(column))))
                column = np.where(last < 0, np.nan, column[last])  # noqa: PLW2901
            rows[:, place] = np.where(np.isnan(column), rows[:, place], column)
        return rows

    # ---- files

    def _learned(self) -> tuple[Any, list[Online | None]]:
        recent = [[row.tolist(), float(y)] for row, y in self._recent]
        return {"features": list(self._columns), "last": self._last.tolist(), "recent": recent}, [self._online]

    def _restore(self, fitted: Any, streams: list[Online]) -> None:
        self._columns = {feature: place for place, feature in enumerate(fitted["features"])}
        self._last = np.array(fitted["last"], np.float64)
        self._recent.extend((np.array(row, np.float64), y) for row, y in fitted["recent"])
        (online,) = streams
        self._online = online if online.begun or self._columns else None

    # ---- features that appear

    def _with_columns_for(self, features: Iterable[Hashable]) -> Online:
        """The model at work, with a column for each of these features."""
        new = [feature for feature in features if feature not in self._columns]
        if new or self._online is None:
            for feature in sorted(new, key=str):  # whichever order they come in
                self._columns[feature] = len(self._columns)
            self._online = self._begin()
        return self._online

    def _begin(self) -> Online:
        """Start with a column for every feature, from the samples at hand."""
        X = np.zeros((len(self._recent), max(len(self._columns), 1)))
        for row, (x, _) in zip(X, self._recent, strict=True):
            row[: x.size] = x
        self._last = np.append(self._last, np.zeros(X.shape[1] - self._last.size))
        y = np.array([y for _, y in self._recent], np.float64)
        online = Online(Settings.of(self))
        if len(X):
            online.update(X, y)
        return online

    def _unlearned(self, features: Iterable[Hashable]) -> "AGPRegressor":
        """What predicts before anything was learned."""
        fresh: AGPRegressor = self.clone()
        fresh._with_columns_for(features)
        return fresh


class FanForecaster(time_series.base.Forecaster):
    """Forecasts of the next steps of a stream, for river: `driftgp.Forecaster` behind river's interface.

    >>> import math
    >>> model = FanForecaster(horizon=6, season=12)
    >>> for t in range(200):
    ...     model.learn_one(math.sin(2 * math.pi * t / 12))
    >>> [round(value, 1) for value in model.forecast(horizon=3)]
    [-0.9, -1.0, -0.9]

    Args:
        horizon: most steps that `forecast` will be asked for.
        season: rows of a season; without one, the last values alone tell the next.
    """

    def __init__(self, horizon: int = 24, season: int | None = None) -> None:
        """Start without rows."""
        self.horizon = horizon
        self.season = season
        self._forecaster = Forecaster(horizon, season=season)
        self._last = 0.0

    def learn_one(self, y: float, x: Mapping[Hashable, Any] | None = None) -> None:  # noqa: ARG002
        """Take in the next value y, NaN for one that is missing; features x are passed over."""
        self._forecaster.update(y)
        if y == y:
            self._last = float(y)

    def forecast(self, horizon: int, xs: list[dict[Hashable, Any]] | None = None) -> list[float]:  # noqa: ARG002
        """Means of the next `horizon` steps; the last value until there are more rows than steps.

        `xs` is there for river, and not used: the forecaster knows the series alone.
        """
        if horizon > self.horizon:
            raise ValueError(f"horizon must be at most {self.horizon}, as the forecaster was made for; got {horizon}")
        if self._forecaster.rows <= self.horizon:
            return [self._last] * horizon
        return self._forecaster.forecast().mean[:horizon].tolist()
