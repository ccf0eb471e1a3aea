"""The settings of an adapter as arguments: written once, since each library reads them off `__init__`."""

import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

from driftgp.adapters import files
from driftgp.adapters.settings import Settings
from driftgp.kernels import Kernel
from driftgp.online import Online


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
    ) -> None:
        """Keep the settings; they are checked when a model is made of them.

        Without any, the model is `driftgp.recommended` for the first 400 rows. With any, it is one AGP in the
        same wrappers, and what is left out is as in the default. It warms up on as many rows as its window holds.

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
        super().__init__()
        self._prepare()

    def _prepare(self) -> None:
        """What else an adapter has to set up."""

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write settings and all that was learned to the file at `path`, without pickle; any process can `load` it."""
        fitted, streams = self._learned()
        names = (field.name for field in fields(Settings))
        settings = {name: getattr(self, name) for name in names}
        files.save(path, type(self), files.Stored(settings, fitted, files.bytes_of(*streams)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The estimator that `save` wrote to `path`, which goes on where that one was."""
        stored = files.load(path, cls)
        try:
            estimator = cls(**stored.settings)
            settings = Settings.of(estimator)
            estimator._restore(stored.fitted, [_stream(data, settings) for data in stored.streams])
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"{path}: estimator is damaged: it holds what no estimator could ({error})") from error
        return estimator

    def _learned(self) -> tuple[Any, Sequence[Online | None]]:
        """What JSON holds of what was learned, and the streams."""
        raise NotImplementedError

    def _restore(self, fitted: Any, streams: list[Online]) -> None:
        """Take back what `_learned` gave."""
        raise NotImplementedError


def _stream(data: bytes, settings: Settings) -> Online:
    return Online.from_bytes(data, settings) if data else Online(settings)
