"""driftgp's model as a river regressor."""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from driftgp.adapters import Configured
from driftgp.base import checks, frames
from driftgp.base.extras import needs
from driftgp.base.frames import Column, Table
from driftgp.forecasting import Forecaster
from driftgp.online import Online
from driftgp.stream.begin import FIRST

with needs("driftgp.river", extra="river"):
    from river import base, proba, time_series, utils

_NOTHING = {"no feature": 0.0}  # the row of a sample without features: a model has one input at least

Columns = dict[Hashable, str]  # the features that have come so far, and the names of their columns


class AGPRegressor(Configured, base.MiniBatchRegressor):
    """Sparse Gaussian process regression that follows a drifting stream, for river.

    Without settings it is `driftgp.Online()` on rows whose columns are sorted by name, or are those of `features`, and
    gives the same numbers.
    Numbers, bools and text are taken; features and targets are seen in units of their own spread, which follow the
    stream, so that no scaler is needed before it.

    Features may appear and vanish, unless `features` says which there are. A feature that is absent, None or NaN is
    missing, as in `Online`. When a new feature appears, the stream starts anew with one more column, from the last 400
    samples.

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
        start = self._start()
        if start is not None:
            start.choose(np.zeros((0, 1)), np.zeros(0))  # refuses what is wrong
        self._stream = self._online()
        fixed = () if self.features is None else (*self.features, *(() if self.time is None else (self.time,)))
        self._columns: Columns = {feature: feature for feature in fixed}
        # samples from which a stream with more columns starts
        self._recent: deque[tuple[dict[Hashable, Any], float]] = deque(maxlen=FIRST if start is None else start.first)

    # ---- one sample

    def learn_one(self, x: Mapping[Hashable, Any], y: float) -> None:
        """Learn from one sample, features x and target y; a target of NaN means that only time has passed."""
        online, columns = self._ready_for(x)
        online.update(_row(columns, x), y)
        self._stream, self._columns = online, columns
        self._recent.append((dict(x), y))

    def predict_one(self, x: Mapping[Hashable, Any], with_dist: bool = False) -> Any:
        """Mean of the target at x, or if `with_dist`, a normal distribution with the forecast's mean and variance.

        Features not learned from yet are passed over.
        """
        columns = self._columns if self._stream.begun else self._with(x)
        prediction = self._stream.predict(_row(columns, x))
        mean = prediction.mean.item()
        if not with_dist:
            return mean
        gaussian: Any = proba.Gaussian
        return gaussian._from_state(n=1, m=mean, var=prediction.variance.item(), ddof=0)  # noqa: SLF001

    # ---- frames of samples

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a frame X (pandas, polars, …) and their targets y, one after another."""
        table = _table(X)
        if not len(table):
            return
        online, columns = self._ready_for(table.columns)
        targets = np.asarray(utils.dataframe.into_series(y).to_numpy(), np.float64)
        online.update(_completed(columns, table), targets)
        self._stream, self._columns = online, columns
        last = range(max(len(table) - (self._recent.maxlen or 0), 0), len(table))
        samples: list[dict[Hashable, Any]] = [
            {name: column.values[row] for name, column in table.columns.items()} for row in last
        ]
        self._recent.extend(zip(samples, targets[last.start :].tolist(), strict=True))

    def predict_many(self, X: Any) -> Any:
        """Mean of the target at the rows of a frame X, as a series of the same library."""
        frame = utils.dataframe.into_frame(X)
        table = _table(X)
        columns = self._columns if self._stream.begun else self._with(table.columns)
        means = self._stream.predict(_completed(columns, table)).mean if len(table) else np.zeros(0)
        return utils.dataframe.to_native_series(means, name=None, like=frame)

    # ---- features that appear

    def _ready_for(self, features: Iterable[Hashable]) -> tuple[Online, Columns]:
        """A stream with a column for each of these features: the one at work, or one that learned recent samples."""
        columns = self._with(features)
        if len(columns) == len(self._columns):
            return self._stream, columns
        online = self._online()
        if self._recent:
            rows = [_row(columns, x) for x, _ in self._recent]
            online.update(rows, np.array([y for _, y in self._recent], np.float64))
        return online, columns

    def _with(self, features: Iterable[Hashable]) -> Columns:
        """The columns, and one more for each new feature, unless the settings say which there are."""
        new = [] if self.features is not None else [feature for feature in features if feature not in self._columns]
        if not new:
            return self._columns
        columns = dict(self._columns)
        for feature in sorted(new, key=str):  # whichever order they come in
            name = str(feature)
            columns[feature] = repr(feature) if name in columns.values() else name
        return columns

    # ---- files

    def _learned(self) -> tuple[Any, Online]:
        recent = [[[[feature, _plain(value)] for feature, value in x.items()], float(y)] for x, y in self._recent]
        return {"columns": [[feature, name] for feature, name in self._columns.items()], "recent": recent}, self._stream

    def _restore(self, fitted: Any, online: Online | None) -> None:
        assert online is not None  # noqa: S101
        self._stream = online
        self._columns = {feature: str(name) for feature, name in fitted["columns"]}
        self._recent.extend((dict(map(tuple, x)), float(y)) for x, y in fitted["recent"])


def _row(columns: Columns, x: Mapping[Hashable, Any]) -> dict[str, Any]:
    """A sample with all columns; absent features are missing."""
    return {name: x.get(feature) for feature, name in columns.items()} or _NOTHING


def _table(X: Any) -> Table:
    table = frames.table(X)
    if table is None or table.single:
        raise ValueError(f"X must be a frame; got {type(X).__name__}")
    return table


def _completed(columns: Columns, table: Table) -> Table:
    """Samples with all columns; absent features are missing."""
    nothing = np.full(len(table), np.nan)
    found = {
        name: table.columns.get(str(feature), Column(name, "numbers", nothing)) for feature, name in columns.items()
    }
    found = found or {name: Column(name, "numbers", np.zeros(len(table))) for name in _NOTHING}
    return Table(found, single=False, beside=table.beside, source=table.source)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class FanForecaster(time_series.base.Forecaster):
    """Forecasts of the next steps of a stream, for river: `driftgp.Forecaster` behind river's interface.

    >>> import math
    >>> model = FanForecaster(horizon=6, season=12)
    >>> for t in range(200):
    ...     model.learn_one(math.sin(2 * math.pi * t / 12))
    >>> [round(value, 1) for value in model.forecast(horizon=3)]
    [-0.9, -1.0, -0.9]

    Args:
        horizon: largest number of steps for `forecast`.
        season: rows of a season; None for no season.
    """

    def __init__(self, horizon: int = 24, season: int | None = None) -> None:
        """Start without rows."""
        self.horizon = horizon
        self.season = season
        self._forecaster = Forecaster(horizon, season=season)
        self._last = 0.0

    def learn_one(self, y: float, x: Mapping[Hashable, Any] | None = None) -> None:  # noqa: ARG002
        """Take in the next value y, NaN for one that is missing; features x are passed over."""
        y = checks.number("y", y)
        self._forecaster.update(y)
        if y == y:
            self._last = y

    def forecast(self, horizon: int, xs: list[dict[Hashable, Any]] | None = None) -> list[float]:  # noqa: ARG002
        """Means of the next `horizon` steps; the last value until there are more rows than steps.

        `xs` is there for river, and not used: the forecaster knows the series alone.
        """
        if horizon > self.horizon:
            raise ValueError(f"horizon must be at most {self.horizon}, as the forecaster was made for; got {horizon}")
        if self._forecaster.rows <= self.horizon:
            return [self._last] * horizon
        return self._forecaster.forecast().mean[:horizon].tolist()
