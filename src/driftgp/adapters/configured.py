"""The settings of an adapter as arguments: written once, since each library reads them off `__init__`."""

import os
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self

from driftgp.adapters import files
from driftgp.adapters.agp_start import AGPStart
from driftgp.defaults import Effort, Support
from driftgp.kernels import Kernel
from driftgp.online import Online
from driftgp.stream import store
from driftgp.stream.base_column import Base

_OF_THE_STREAM = ("effort", "support", "base", "time", "features", "lags", "calendar", "horizon")


class Configured:
    """The settings that the estimators of all libraries share, and how they are saved.

    >>> from driftgp.sklearn import AGPRegressor
    >>> AGPRegressor(window=200).get_params()["window"]
    200
    """

    def __init__(
        self,
        kernel: str | Kernel | None = None,
        *,
        noise: float | None = None,
        inducing: int | None = None,
        window: int | None = None,
        forgetting: float | None = None,
        learn_every: int | None = None,
        prior: float | None = None,
        warmup_iterations: int | None = None,
        standardize: bool = True,
        effort: Effort = "medium",
        support: Support = "auto",
        base: Base = None,
        time: str | None = None,
        features: Iterable[str] | None = None,
        lags: int | Iterable[int] = 0,
        calendar: bool | str | Iterable[str] = False,
        horizon: int = 1,
    ) -> None:
        """Keep the settings; they are checked when a model is made of them.

        If no setting up to `standardize` is given, the estimator is `driftgp.Online` with the other settings. Otherwise
        the model is one AGP in the wrappers of the default, and omitted settings are as in the default. It warms up on
        the rows of one window.

        Args:
            kernel: an expression such as "linear + matern32", or a kernel with its starting parameters; linear +
                squared exponential if left out. One that has a lengthscale for each feature fixes their number.
            noise: starting variance of the noise, as a share of the targets' if these are standardised; 0.1.
            inducing: most inducing points M; 10 or 20, by the first rows.
            window: samples kept T; 100, 200 or 400, by the first rows.
            forgetting: λ, the weight of a sample relative to the one after it; λ^T = 0.1.
            learn_every: samples from one gradient step to the next: 1 is AGP, 0 fast-AGP, others the hybrid; 1.
            prior: standard deviation of each log parameter around its starting value, inf for no prior; 3.
            warmup_iterations: gradient steps in the warm-up; 200.
            standardize: see features and targets in units of their own spread, which follow the stream.
            effort: of the default model, as in `Online`: "low", "medium" or "high".
            support: range of the targets: "auto", "real", "positive" or (low, high).
            base: column, or index of the input, that holds a forecast of the target from elsewhere, as in `Online`.
            time: name of the column that has the times, as in `Online`.
            features: columns that are inputs, in this order; all of them by default.
            lags: past targets that are inputs too: how many, or how many steps back each of them is.
            calendar: True for waves of the day and the week, or the cycles: "day", "week", "year".
            horizon: how many rows after the last known target the predicted row is.
        """
        self.kernel = kernel
        self.noise = noise
        self.inducing = inducing
        self.window = window
        self.forgetting = forgetting
        self.learn_every = learn_every
        self.prior = prior
        self.warmup_iterations = warmup_iterations
        self.standardize = standardize
        self.effort = effort
        self.support = support
        self.base = base
        self.time = time
        self.features = features
        self.lags = lags
        self.calendar = calendar
        self.horizon = horizon
        super().__init__()
        self._prepare()

    def _prepare(self) -> None:
        """Further preparations of an adapter."""

    # ---- the stream

    def _start(self) -> AGPStart | None:
        """How the stream starts: with an AGP of these settings; None for the default."""
        start = AGPStart.of(self)
        return None if start == AGPStart() else start

    def _online(self) -> Online:
        """A stream before its first row."""
        return Online(self._start(), **{name: getattr(self, name) for name in _OF_THE_STREAM})

    def _begun(self, X: Any, y: Any) -> Online:
        """A stream that has learned from a batch: row by row, after the warm-up of a model with settings."""
        online = self._online()
        if self._start() is None:
            online.update(X, y)
        else:
            online.warm(X, y)
        return online

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write settings and all that was learned to the file at `path`, without pickle; any process can `load` it."""
        fitted, online = self._learned()
        names = (*(field.name for field in fields(AGPStart)), *_OF_THE_STREAM)
        settings = {name: getattr(self, name) for name in names}
        stream = None if online is None else {"kind": "online", **store.to_tree(online.streams)}
        files.save(path, type(self), files.StoredEstimator(settings, fitted, stream))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The estimator that `save` wrote to `path`; it continues where that one stopped."""
        return files.load(path, cls, cls._of_file)

    @classmethod
    def _of_file(cls, stored: files.StoredEstimator) -> Self:
        estimator, stream = cls(**stored.settings), stored.stream
        online = None if stream is None else Online.of(store.from_tree(stream, estimator._start()))
        estimator._restore(stored.fitted, online)
        return estimator

    def _learned(self) -> tuple[Any, Online | None]:
        """The learned values for JSON, and the stream."""
        raise NotImplementedError

    def _restore(self, fitted: Any, online: Online | None) -> None:
        """Take back what `_learned` gave."""
        raise NotImplementedError
