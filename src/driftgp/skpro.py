"""driftgp's model as a skpro probabilistic regressor."""

from typing import Any, ClassVar, Self

import numpy as np

from driftgp.adapters import Configured
from driftgp.base.extras import needs
from driftgp.online import Online
from driftgp.predictions import Forecast, Gaussian, Mixture, Prediction

with needs("driftgp.skpro", extra="skpro"):
    import pandas as pd
    from skpro.distributions.base import BaseDistribution
    from skpro.regression.base import BaseProbaRegressor


class AGPRegressor(Configured, BaseProbaRegressor):
    """Sparse Gaussian process regression that follows a drifting stream, for skpro.

    Without settings it is `driftgp.Online()`, and gives the same numbers. The order of the rows is their order in time.
    `fit` starts anew, `update` goes on, and predictions are the model's own distributions of new targets, noise
    included, with calibrated intervals. Inputs may be missing, and may be text.

    >>> import numpy as np
    >>> import pandas as pd
    >>> from driftgp.skpro import AGPRegressor
    >>> X = pd.DataFrame({"x": np.linspace(0, 1, 80)})
    >>> y = np.sin(6 * X)
    >>> model = AGPRegressor().fit(X[:60], y[:60]).update(X[60:70], y[60:70])
    >>> bounds = model.predict_interval(X[70:72], coverage=0.95)
    >>> bounds.shape
    (2, 2)

    Attributes:
        online_: the model at work, a `driftgp.Online`.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": "The driftgp developers",
        "capability:update": True,
        "capability:multioutput": True,
        "capability:missing": True,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> Self:
        self.online_ = self._begun(_named(X), y.to_numpy(np.float64))
        return self

    def _update(self, X: pd.DataFrame, y: pd.DataFrame) -> Self:
        self.online_.update(_named(X), y.to_numpy(np.float64))
        return self

    def _predict_proba(self, X: pd.DataFrame) -> "Predicted":
        prediction = self.online_.predict(_named(X))
        law = prediction.law if isinstance(prediction, Forecast) else prediction
        return Predicted(law, index=X.index, columns=self._get_columns(method="predict"))

    def _learned(self) -> tuple[Any, Online]:
        self.check_is_fitted()
        names = [list(map(str, self._X_metadata["feature_names"])), list(map(str, self._y_metadata["feature_names"]))]
        return names, self.online_

    def _restore(self, fitted: Any, online: Online | None) -> None:
        inputs, outputs = (pd.DataFrame(np.zeros((2, len(names))), columns=names) for names in fitted)
        self.fit(inputs, outputs)  # skpro takes note of the names
        assert online is not None  # noqa: S101
        self.online_ = online

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Settings that skpro's checks try."""
        return [{}, {"forgetting": 0.99, "noise": 0.2}]


class Predicted(BaseDistribution):
    """A `driftgp.predictions.Prediction` as a distribution of skpro.

    >>> import numpy as np
    >>> from driftgp.predictions import Gaussian
    >>> from driftgp.skpro import Predicted
    >>> normal = Gaussian(mean=np.zeros((2, 1)), variance=np.ones((2, 1)), noise=np.ones((2, 1)))
    >>> Predicted(normal, index=["a", "b"], columns=["y"]).cdf(0.0).to_numpy().tolist()
    [[0.5], [0.5]]
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": "The driftgp developers",
        "capabilities:approx": ["energy", "pdfnorm"],
        "capabilities:exact": ["mean", "var", "pdf", "log_pdf", "cdf", "ppf"],
        "distr:measuretype": "continuous",
        "distr:paramtype": "general",
    }

    def __init__(self, prediction: Prediction, index: Any = None, columns: Any = None) -> None:
        """Keep the prediction.

        Args:
            prediction: N×P, or of shape () for one target by itself.
            index: names of its rows; numbers by default.
            columns: names of its outputs; numbers by default.
        """
        self.prediction = prediction
        if prediction.shape:
            index = pd.RangeIndex(prediction.shape[0]) if index is None else index
            columns = pd.RangeIndex(prediction.shape[1]) if columns is None else columns
        super().__init__(index=index, columns=columns)

    def _mean(self) -> np.ndarray:
        return self.prediction.mean

    def _var(self) -> np.ndarray:
        return self.prediction.variance

    def _log_pdf(self, x: np.ndarray) -> np.ndarray:
        return self.prediction.log_prob(x)

    def _pdf(self, x: np.ndarray) -> np.ndarray:
        return np.exp(self.prediction.log_prob(x))

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        return self.prediction.cdf(x)

    def _ppf(self, p: np.ndarray) -> np.ndarray:
        return self.prediction.quantile(p)

    def _subset_param(self, val: Prediction, rowidx: Any, colidx: Any, coerce_scalar: bool = False) -> Prediction:
        """Some rows and outputs of the prediction, or one target by itself."""
        rows, outputs = (slice(None) if index is None else np.atleast_1d(index) for index in (rowidx, colidx))
        some = val.each(lambda array: array[..., rows, :][..., outputs])
        return some.each(lambda array: array[..., 0, 0]) if coerce_scalar else some

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Settings that skpro's checks try."""
        two = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
        half = np.full((2, 3, 2), 0.5)
        return [
            {"prediction": Gaussian(two, np.ones((3, 2)), np.ones((3, 2)))},
            {"prediction": Mixture(half, np.stack([two, two + 1.0]), np.ones((2, 3, 2)), half), "columns": ["a", "b"]},
            {"prediction": Gaussian(np.array(1.0), np.array(4.0), np.array(1.0))},
        ]


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose columns are called by text."""
    return frame.rename(columns=str)
