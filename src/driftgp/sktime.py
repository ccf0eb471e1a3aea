"""driftgp's forecaster behind sktime's interface."""

from typing import Any, ClassVar, Self

import numpy as np

from driftgp.adapters import files
from driftgp.base.extras import needs
from driftgp.forecasting import Fan, Forecaster
from driftgp.forecasting.grid import regular

with needs("driftgp.sktime", extra="sktime"):
    import pandas as pd
    from sktime.forecasting.base import BaseForecaster


class FanForecaster(BaseForecaster):
    """Forecasts of the next steps of a drifting series, for sktime: `driftgp.Forecaster` behind its interface.

    `update` learns from the new values alone. Exogenous columns count as known ahead: at `predict` they are given for
    the steps to come.

    >>> import numpy as np
    >>> import pandas as pd
    >>> from driftgp.sktime import FanForecaster
    >>> y = pd.Series(np.sin(np.arange(400) * np.pi / 6), index=pd.period_range("2020-01-01", periods=400, freq="h"))
    >>> forecaster = FanForecaster(season=12).fit(y[:300], fh=[1, 2])
    >>> bool(np.abs(forecaster.update(y[300:390]).predict() - y[390:392]).max() < 0.1)
    True
    >>> forecaster.predict_interval(coverage=0.9).shape
    (2, 2)

    Attributes:
        forecaster_: the `driftgp.Forecaster` at work.
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
    # `update` needs the new values alone
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}

    def __init__(self, season: int | None = None) -> None:
        """Keep the settings; `fit` checks them.

        Args:
            season: rows of a season; by default a day of hours, a week of days, a year of months, by the index.
        """
        self.season = season
        super().__init__()
        self._y = self._X = None  # where sktime keeps the data, if asked to

    def _fit(self, y: pd.Series, X: pd.DataFrame | None, fh: Any) -> Self:
        self.columns_ = [] if X is None else list(map(str, X.columns))
        self.forecaster_ = Forecaster(max(self._steps(fh)), season=self.season, known=self.columns_)
        self._dated = False  # whether rows have times
        return self._take(y, X)

    def _update(self, y: pd.Series, X: pd.DataFrame | None = None, update_params: bool = True) -> Self:  # noqa: ARG002
        """Take new values in; a forecast goes on from the last of them, so that they always count."""
        new = y.index > self.end_
        return self._take(y[new], None if X is None else X.loc[X.index.isin(y.index[new])]) if new.any() else self

    def _predict(self, fh: Any, X: pd.DataFrame | None) -> pd.Series:
        fan, at = self._fan(fh, X)
        return pd.Series(fan.mean[at], index=self._index(fh), name=self._y_name)

    def _predict_quantiles(self, fh: Any, X: pd.DataFrame | None, alpha: list[float]) -> pd.DataFrame:
        fan, at = self._fan(fh, X)
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return pd.DataFrame(np.array([fan.quantile(q)[at] for q in alpha]).T, index=self._index(fh), columns=columns)

    def _predict_var(self, fh: Any, X: pd.DataFrame | None = None, cov: bool = False) -> pd.DataFrame:  # noqa: ARG002
        fan, at = self._fan(fh, X)
        return pd.DataFrame({self._get_varnames()[0]: fan.variance[at]}, index=self._index(fh))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Settings that sktime's checks try."""
        return [{}, {"season": 4}]

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
        fitted = {
            "steps": self._steps(self.fh),
            "index": type(self.cutoff).__name__,
            "freq": getattr(self.cutoff, "freqstr", None),
            "end": int(self.end_) if isinstance(self.end_, (int, np.integer)) else str(self.end_),
            "name": None if self._y_name is None else str(self._y_name),
            "columns": self.columns_,
            "dated": self._dated,
        }
        stream = np.frombuffer(self.forecaster_.to_bytes(), np.uint8)
        files.save(path, type(self), files.StoredEstimator({"season": self.season}, fitted, stream))
        return None

    @classmethod
    def load(cls, path: Any) -> Self:
        """The forecaster that `save(path, "driftgp")` wrote; it continues where that one stopped."""
        return files.load(path, cls, cls._of_file)

    @classmethod
    def _of_file(cls, stored: files.StoredEstimator) -> Self:
        made, fitted = cls(**stored.settings), stored.fitted
        # sktime takes note of the horizon, the index and the columns
        end, columns = _last(fitted, 2), fitted["columns"]
        X = pd.DataFrame(0.0, end, columns) if columns else None
        made.fit(pd.Series(0.0, end, name=fitted["name"]), X=X, fh=fitted["steps"])
        made._dated = bool(fitted["dated"])
        made.forecaster_ = Forecaster.from_bytes(stored.stream.tobytes())
        return made

    # ---- rows in, fans out

    def _take(self, y: pd.Series, X: pd.DataFrame | None) -> Self:
        """Give the forecaster rows."""
        self.end_, self._y_name = y.index[-1], y.name
        known = None if X is None else X.to_numpy(np.float64)
        self.forecaster_.update(y.to_numpy(np.float64), self._times(y.index), known)
        return self

    def _fan(self, fh: Any, X: pd.DataFrame | None) -> tuple[Fan, np.ndarray]:
        """The forecasts of the steps up to the last one, and which of them are asked for."""
        steps, horizon = self._steps(fh), self.forecaster_.horizon
        if not 1 <= min(steps) <= max(steps) <= horizon:
            raise ValueError(f"fh must hold steps from 1 to {horizon}, the farthest that fit was given; got {steps}")
        future = None
        if X is not None:
            ahead = self._index(fh.__class__(range(1, max(steps) + 1)))
            future = X.reindex(ahead).ffill().bfill().to_numpy(np.float64)
        return self.forecaster_.forecast(max(steps), future), np.array(steps) - 1

    def _times(self, index: pd.Index) -> pd.Index | None:
        """Times of rows; None where they have none, or where steps of the index are not all of one length or months."""
        if not isinstance(index, (pd.DatetimeIndex, pd.PeriodIndex)):
            return None
        times = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
        if self.forecaster_.rows == 0:
            self._dated = regular(times.tz_localize(None).to_numpy("datetime64[us]"))
        return times if self._dated else None

    def _steps(self, fh: Any) -> list[int]:
        return [int(step) + 1 for step in fh.to_indexer(self.cutoff)]

    def _index(self, fh: Any) -> pd.Index:
        return fh.to_absolute_index(self.cutoff)


def _last(fitted: dict[str, Any], count: int) -> pd.Index:
    """The last places of a series, as it had them."""
    end, freq = fitted["end"], fitted["freq"]
    if fitted["index"] == "DatetimeIndex":
        return pd.date_range(end=end, periods=count, freq=freq)
    if fitted["index"] == "PeriodIndex":
        return pd.period_range(end=end, periods=count, freq=freq)
    return pd.RangeIndex(end + 1 - count, end + 1)
