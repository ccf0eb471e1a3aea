"""driftgp's model as a skpro probabilistic regressor."""

from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from skpro.distributions import Normal
from skpro.regression.base import BaseProbaRegressor

from driftgp.adapters import Configured, Settings, Stream


class AGPRegressor(Configured, BaseProbaRegressor):
    """Sparse Gaussian process regression that follows a drifting stream, for skpro.

    The order of the rows is their order in time. `fit` starts anew, `update` goes on, and predictions are normal
    distributions of new targets, noise included.

    >>> import numpy as np
    >>> import pandas as pd
    >>> from driftgp.skpro import AGPRegressor
    >>> X = pd.DataFrame({"x": np.linspace(0, 1, 80)})
    >>> y = np.sin(6 * X)
    >>> model = AGPRegressor().fit(X[:60], y[:60]).update(X[60:70], y[60:70])
    >>> bounds = model.predict_interval(X[70:72], coverage=0.95)
    >>> bounds.shape
    (2, 2)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": "The driftgp developers",
        "capability:update": True,
        "capability:multioutput": True,
        "capability:missing": False,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> Self:
        self.stream_ = Stream(Settings.of(self), _values(X), _values(y))
        return self

    def _update(self, X: pd.DataFrame, y: pd.DataFrame) -> Self:
        self.stream_.learn(_values(X), _values(y))
        return self

    def _predict_proba(self, X: pd.DataFrame) -> Normal:
        prediction = self.stream_.predict(_values(X))
        return Normal(
            mu=np.asarray(prediction.mean),
            sigma=np.asarray(prediction.std),
            index=X.index,
            columns=self._get_columns(method="predict"),
        )

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Settings that skpro's checks try."""
        return [{}, {"forgetting": 0.99, "noise": 0.2}]


def _values(frame: pd.DataFrame) -> np.ndarray:
    return frame.to_numpy(np.float64)
