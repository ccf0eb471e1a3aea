"""driftgp's model as a sktime forecaster, by reduction to regression on lags."""

from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from driftgp import checks
from driftgp.adapters import Settings, files
from driftgp.beginning import Default
from driftgp.extras import needs
from driftgp.online import Online
from driftgp.predictions import Prediction
from driftgp.settings_json import kernel_of, portrait

with needs("driftgp.sktime", extra="sktime"):
    import pandas as pd
    from sktime.forecasting.base import BaseForecaster

    from driftgp.sklearn import AGPRegressor


class AGPForecaster(BaseForecaster):
    """Forecasts with intervals from a sparse Gaussian process that follows a drifting series, for sktime.

    Each step h of the horizon has a model of its own, which learns y at t + h from the last `lags` values up to t and
    from the exogenous columns at t + h: so an interval h steps ahead is one that was learned h steps ahead. Without a
    regressor's settings it is the default model, `driftgp.defaults.recommended`, with calibrated intervals. `update`
    learns from the new values alone. Before its beginning, the series is taken to have had its first value.

    >>> import numpy as np
    >>> import pandas as pd
    >>> from driftgp.sktime import AGPForecaster
    >>> y = pd.Series(np.sin(np.arange(80) / 2))
    >>> forecaster = AGPForecaster(lags=4).fit(y[:60], fh=[1, 2])
    >>> bool(abs(forecaster.update(y[60:]).predict()[80] - np.sin(40)) < 0.1)
    True
    >>> forecaster.predict_interval(coverage=0.9).shape
    (2, 2)

    Attributes:
        models_: the model at work for each step, a `driftgp.Online`.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": "The driftgp developers",
        "maintainers": "The driftgp developers",
        "capability:exogenous": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:update": True,
        "capability:missing_values": False,
        "capability:categorical_in_X": False,
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "requires-fh-in-fit": True,
    }
    # `update` needs the last few values alone, which are kept
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}

    def __init__(self, lags: int = 10, regressor: AGPRegressor | None = None) -> None:
        """Keep the settings; `fit` checks them.

        Args:
            lags: how many of the last values a forecast starts from.
            regressor: the settings of the models, as a regressor of `driftgp.sklearn`.
        """
        self.lags = lags
        self.regressor = regressor
        super().__init__()
        self._y = self._X = None  # where sktime puts the data, should its user have it remembered

    def _fit(self, y: pd.Series, X: pd.DataFrame | None, fh: Any) -> Self:
        steps = self._steps(fh)
        settings = Settings.of(AGPRegressor() if self.regressor is None else self.regressor)
        values = y.to_numpy(np.float64)
        self.columns_ = None if X is None else list(map(str, X.columns))
        self.past_ = np.full(checks.whole("lags", self.lags, 1) - 1 + max(steps), values[0])
        rows = self._rows(values, X, steps)
        # rows of a later step are learned at once, and not when their labels come: nothing may echo the last target
        later = Default(echoes=False) if settings == Settings() else settings
        self.models_ = {h: Online(settings if h == 1 else later) for h in steps}
        for h, model in self.models_.items():
            if len(values) > h:  # the first h targets have made-up lags alone: nothing is learned from them
                model.warm(rows[h][h:], values[h:])
        return self._move_on(y, values)

    def _update(self, y: pd.Series, X: pd.DataFrame | None = None, update_params: bool = True) -> Self:
        new = y.index > self.end_
        y, X = y[new], None if X is None else X.loc[X.index.isin(y.index[new])]
        if len(y) == 0:
            return self
        values = y.to_numpy(np.float64)
        if update_params:
            for h, rows in self._rows(values, X, list(self.models_)).items():
                self.models_[h].update(rows, values)
        return self._move_on(y, values)

    def _predict(self, fh: Any, X: pd.DataFrame | None) -> pd.Series:
        means = [prediction.mean.item() for prediction in self._predictions(fh, X)]
        return pd.Series(means, index=self._index(fh), name=self._y_name)

    def _predict_quantiles(self, fh: Any, X: pd.DataFrame | None, alpha: list[float]) -> pd.DataFrame:
        quantiles = [[p.quantile(q).item() for q in alpha] for p in self._predictions(fh, X)]
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return pd.DataFrame(quantiles, index=self._index(fh), columns=columns)

    def _predict_var(self, fh: Any, X: pd.DataFrame | None = None, cov: bool = False) -> pd.DataFrame:  # noqa: ARG002
        variances = [prediction.variance.item() for prediction in self._predictions(fh, X)]
        return pd.DataFrame({self._get_varnames()[0]: variances}, index=self._index(fh))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Settings that sktime's checks try."""
        return [{}, {"lags": 3, "regressor": AGPRegressor(forgetting=0.99)}]

    # ---- files

    def save(self, path: Any = None, serialization_format: str = "pickle") -> Any:
        """Write the forecaster to a file: with the format "driftgp" to one without pickle, which `load` reads.

        Args:
            path: the file; None, for sktime's own formats, gives the bytes.
            serialization_format: "driftgp", or one of sktime's own, "pickle" and "cloudpickle".
        """
        if serialization_format != "driftgp":
            return super().save(path, serialization_format)
        self.check_is_fitted()
        regressor = None if self.regressor is None else portrait(asdict(Settings.of(self.regressor)))
        index = self.cutoff
        fitted = {
            "regressor": regressor,
            "steps": list(self.models_),
            "index": type(index).__name__,
            "freq": getattr(index, "freqstr", None),
            "end": int(self.end_) if isinstance(self.end_, (int, np.integer)) else str(self.end_),
            "name": None if self._y_name is None else str(self._y_name),
            "columns": self.columns_,
            "past": self.past_.tolist(),
        }
        streams = files.bytes_of(*self.models_.values())
        files.save(path, type(self), files.Stored({"lags": self.lags}, fitted, streams))
        return None

    @classmethod
    def load(cls, path: Any) -> Self:
        """The forecaster that `save(path, "driftgp")` wrote, which goes on where that one was."""
        stored = files.load(path, cls)
        fitted = stored.fitted
        given = fitted["regressor"]
        regressor = None if given is None else AGPRegressor(**{name: kernel_of(value) for name, value in given.items()})
        forecaster = cls(**stored.settings, regressor=regressor)
        # sktime takes note of the horizon, the index and the columns
        end, steps = _index(fitted), fitted["steps"]
        X = None if fitted["columns"] is None else pd.DataFrame(0.0, end, fitted["columns"])
        forecaster.fit(pd.Series(0.0, end, name=fitted["name"]), X=X, fh=steps)
        settings = Settings.of(AGPRegressor() if regressor is None else regressor)
        streams = zip(steps, stored.streams, strict=True)
        forecaster.models_ = {h: Online.from_bytes(data, settings) if data else Online(settings) for h, data in streams}
        forecaster.past_ = np.array(fitted["past"], np.float64)
        return forecaster

    # ---- the reduction

    def _rows(self, values: np.ndarray, X: pd.DataFrame | None, steps: list[int]) -> dict[int, np.ndarray]:
        """Inputs for new values, for each step h: the lags up to h before it, the latest first, and its own columns."""
        series = np.append(self.past_, values)
        lagged = sliding_window_view(series, self.lags)[:, ::-1]  # row j: the lags up to j + lags − 1
        count, first = len(values), len(self.past_) - self.lags + 1
        outside = np.zeros((count, 0)) if X is None else X.to_numpy(np.float64)
        return {h: np.hstack([lagged[first - h : first - h + count], outside]) for h in steps}

    def _move_on(self, y: pd.Series, values: np.ndarray) -> Self:
        self.past_ = np.append(self.past_, values)[-len(self.past_) :]
        self.end_, self._y_name = y.index[-1], y.name
        return self

    def _predictions(self, fh: Any, X: pd.DataFrame | None) -> list[Prediction]:
        lags = self.past_[: -self.lags - 1 : -1]
        index = self._index(fh)
        outside = np.zeros((len(index), 0)) if X is None else X.loc[index].to_numpy(np.float64)
        return [
            self._model(h).predict(np.append(lags, columns))
            for h, columns in zip(self._steps(fh), outside, strict=True)
        ]

    def _model(self, step: int) -> Online:
        if step not in self.models_:
            raise ValueError(f"fh must hold steps that fit was told of, {list(self.models_)}; got {step}: fit again")
        return self.models_[step]

    def _steps(self, fh: Any) -> list[int]:
        return [int(step) + 1 for step in fh.to_indexer(self.cutoff)]

    def _index(self, fh: Any) -> pd.Index:
        return fh.to_absolute_index(self.cutoff)


def _index(fitted: dict[str, Any]) -> pd.Index:
    """The last two places of a series, as it had them."""
    end, freq = fitted["end"], fitted["freq"]
    if fitted["index"] == "DatetimeIndex":
        return pd.date_range(end=end, periods=2, freq=freq)
    if fitted["index"] == "PeriodIndex":
        return pd.period_range(end=end, periods=2, freq=freq)
    return pd.RangeIndex(end - 1, end + 1)
