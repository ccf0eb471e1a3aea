"""The settings that every adapter takes under the same names, and the model that they describe."""

import math
from dataclasses import dataclass, fields
from typing import Any

from driftgp.agp import AGP
from driftgp.expressions import parse_kernel
from driftgp.kernels import Covariance
from driftgp.model import Model
from driftgp.wrappers import Standardize

UNITS = 10  # windows until a sample hardly counts for the units in which the model sees the stream


@dataclass(frozen=True)
class Settings:
    """Settings of an adapter, as the user gave them.

    >>> from types import SimpleNamespace
    >>> Settings.of(SimpleNamespace(window=50, verbose=True)).window
    50
    """

    kernel: str | Covariance = "se"
    noise: float = 0.1
    inducing: int = 10
    window: int = 100
    forgetting: float | None = None
    learn_every: int = 1
    prior: float | None = 3.0
    warmup_iterations: int = 200
    standardize: bool = True

    @classmethod
    def of(cls, estimator: Any) -> "Settings":
        """Those of an estimator, which has attributes of the same names."""
        names = (field.name for field in fields(cls))
        return cls(**{name: getattr(estimator, name) for name in names if hasattr(estimator, name)})

    def model(self, inputs: int) -> Model[Any]:
        """The model for so many inputs."""
        model = AGP(
            parse_kernel(self.kernel, inputs) if isinstance(self.kernel, str) else self.kernel,
            noise=self.noise,
            inducing=self.inducing,
            window=self.window,
            forgetting=self.forgetting,
            learn_every=self.learn_every,
            prior=self.prior,
            warmup_iterations=self.warmup_iterations,
        )
        return Standardize(model, adapt=0.1 ** (1.0 / (UNITS * self.window))) if self.standardize else model

    def room(self, inputs: int) -> int:
        """Columns to keep for so many inputs: the next power of four, so that few shapes are compiled.

        A column of zeros adds nothing to a distance or a product. A kernel that is no text may count its inputs and
        gets just as many.

        >>> [Settings().room(inputs) for inputs in (1, 2, 4, 5, 24)]
        [1, 4, 4, 16, 64]
        """
        return 4 ** math.ceil(math.log(inputs, 4)) if isinstance(self.kernel, str) else inputs
