"""driftgp's model as a scikit-learn regressor."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from driftgp.adapters import Configured, Settings
from driftgp.extras import needs
from driftgp.online import Online

with needs("driftgp.sklearn", extra="sklearn"):
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data


class AGPRegressor(Configured, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Sparse Gaussian process regression that follows a drifting stream, for scikit-learn.

    Without settings it is the default model, `driftgp.defaults.recommended` for the first rows. The order of the rows
    is their order in time: of two rows the later one counts more, and what left the window counts no more. `fit` starts
    anew, `partial_fit` goes on.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 80)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = AGPRegressor().fit(X[:60], y[:60])
    >>> model.partial_fit(X[60:], y[60:]).score(X[40:], y[40:]) > 0.9
    True
    >>> mean, std = model.predict(X[-3:], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))

    Attributes:
        online_: the model at work, a `driftgp.Online`: `online_.model` is the model, `online_.state` what it has
            learned, and `online_.predict(X)` the whole distribution, intervals and quantiles included.
        n_features_in_: number of features.
        feature_names_in_: their names, where X had any.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start anew, and learn from the rows of X (N×D) and their targets y (N, or N×P) one after another."""
        X, y = self._checked(X, y, reset=True)
        self.online_ = Online(Settings.of(self))
        self.online_.warm(X, y)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Go on: learn from more rows X and targets y, one after another.

        The first call begins a stream of which nothing is known.
        """
        begins = not hasattr(self, "online_")
        X, y = self._checked(X, y, reset=begins)
        if begins:
            self.online_ = Online(Settings.of(self))
        self.online_.update(X, y)
        return self

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean of new targets and, if asked for, their standard deviation or joint covariance, noise included.

        Args:
            X: N×D.
            return_std: return (mean, std), both N or N×P.
            return_cov: return (mean, covariance), the latter N×N or N×N×P.
        """
        if return_std and return_cov:
            raise ValueError(
                "return_cov must be False where return_std is True: the diagonal of one is the other squared"
            )
        check_is_fitted(self)
        rows: np.ndarray = validate_data(self, X, reset=False, dtype=np.float64)
        prediction = self.online_.predict(rows)
        if return_std:
            return prediction.mean, prediction.std
        return (prediction.mean, self._covariance(rows)) if return_cov else prediction.mean

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw new targets at the rows of X together, N×n_samples, or N×P×n_samples.

        The draws are normal, with the mean and the covariance that `predict` gives. `random_state` is a seed, or a
        random generator of NumPy.
        """
        mean, covariance = self.predict(X, return_cov=True)
        random = check_random_state(random_state)
        if mean.ndim == 1:
            return random.multivariate_normal(mean, covariance, n_samples).T
        outputs = [random.multivariate_normal(m, C, n_samples).T for m, C in zip(mean.T, covariance.T, strict=True)]
        return np.stack(outputs, axis=1)

    def _learned(self) -> tuple[Any, list[Online]]:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return {"features": self.n_features_in_, "names": None if names is None else list(names)}, [self.online_]

    def _restore(self, fitted: Any, streams: list[Online]) -> None:
        (self.online_,) = streams
        self.n_features_in_ = int(fitted["features"])
        if fitted["names"] is not None:
            self.feature_names_in_ = np.array(fitted["names"], object)

    def _covariance(self, rows: np.ndarray) -> np.ndarray:
        return self.online_.model.covariance(self.online_.state, rows)

    def _checked(self, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        checked = validate_data(self, X, y, reset=reset, dtype=np.float64, multi_output=True, y_numeric=True)
        return checked[0], np.asarray(checked[1], np.float64)
