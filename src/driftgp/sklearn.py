"""driftgp's model as a scikit-learn regressor."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from driftgp.adapters import Configured
from driftgp.base import checks
from driftgp.base.extras import needs
from driftgp.online import Online

with needs("driftgp.sklearn", extra="sklearn"):
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    from sklearn.utils import check_array, check_consistent_length, check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data


class AGPRegressor(Configured, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Sparse Gaussian process regression that follows a drifting stream, for scikit-learn.

    Without settings it is `driftgp.Online()`, and gives the same numbers. The order of the rows is their order in time:
    of two rows the later one counts more. `fit` starts anew, `partial_fit` goes on. Inputs may be missing (NaN). Frames
    may have text and a DatetimeIndex, as in `Online`. In `partial_fit` a target may be NaN: only time has passed.

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
        self.online_ = self._begun(*self._checked(X, y, reset=True, gaps=False))
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Go on: learn from more rows X and targets y, one after another.

        The first call begins a new stream.
        """
        begins = not hasattr(self, "online_")
        X, y = self._checked(X, y, reset=begins, gaps=True)
        if begins:
            self.online_ = self._online()
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
        rows = self._rows(X, reset=False)
        prediction = self.online_.predict(rows)
        if return_std:
            return prediction.mean, prediction.std
        return (prediction.mean, self.online_.covariance(rows)) if return_cov else prediction.mean

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

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may give it."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _learned(self) -> tuple[Any, Online]:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return {"features": self.n_features_in_, "names": None if names is None else list(names)}, self.online_

    def _restore(self, fitted: Any, online: Online | None) -> None:
        assert online is not None  # noqa: S101
        self.online_ = online
        self.n_features_in_ = int(fitted["features"])
        if fitted["names"] is not None:
            self.feature_names_in_ = np.array(fitted["names"], object)

    def _checked(self, X: Any, y: Any, *, reset: bool, gaps: bool) -> tuple[Any, np.ndarray]:
        if y is None:
            validate_data(self, X, y, reset=reset, skip_check_array=True)  # declares that targets are required
        rows = self._rows(X, reset=reset)
        with _of_floats():
            y = check_array(
                _unmasked("y", y),
                ensure_2d=False,
                dtype=np.float64,
                ensure_all_finite="allow-nan" if gaps else True,
                input_name="y",
                estimator=self,
            )
        check_consistent_length(X, y)
        return rows, y

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Rows as `Online` takes them: a frame as it is, anything else as an array."""
        if hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        with _of_floats():
            return validate_data(self, _unmasked("X", X), reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")


def _unmasked(name: str, value: Any) -> Any:
    """An array whose masked numbers are NaN; scikit-learn would take what is behind the mask."""
    return checks.real(name, value) if isinstance(value, np.ma.MaskedArray) else value


@contextmanager
def _of_floats() -> Iterator[None]:
    """Have whole numbers beyond all floats refused as other values are."""
    try:
        yield
    except OverflowError as error:
        raise ValueError(f"X and y must hold numbers of at most 1.8e308 in size: {error}") from error
