"""How a stream of an adapter starts that has settings of an AGP: the model that they describe."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from driftgp.base import checks
from driftgp.defaults import LEARNING, kernel, sizes, wrapped
from driftgp.gp.agp import AGP
from driftgp.kernels import Kernel
from driftgp.kernels.expressions import parse_kernel
from driftgp.stream.begin import FIRST, Choice
from driftgp.wrappers import Calibrated, Gaps, Guarded


@dataclass(frozen=True)
class AGPStart:
    """A start (`driftgp.stream.begin.Start`) by the settings of an AGP, as the user gave them: see `Configured`.

    >>> from types import SimpleNamespace
    >>> AGPStart.of(SimpleNamespace(window=50, verbose=True)).window
    50
    """

    kernel: str | Kernel | None = None
    noise: float | None = None
    inducing: int | None = None
    window: int | None = None
    forgetting: float | None = None
    learn_every: int | None = None
    prior: float | None = None
    warmup_iterations: int | None = None
    standardize: bool = True

    @classmethod
    def of(cls, estimator: Any) -> "AGPStart":
        """Those of an estimator, which has attributes of the same names."""
        names = (field.name for field in fields(cls))
        return cls(**{name: getattr(estimator, name) for name in names if hasattr(estimator, name)})

    @property
    def first(self) -> int:
        """Rows until the model is chosen for good: enough to fill the window, too."""
        return FIRST if self.window is None else max(FIRST, checks.whole("window", self.window, 1))

    @property
    def gaps(self) -> bool:
        """Inputs may be NaN."""
        return True

    def choose(self, X: np.ndarray, y: np.ndarray) -> Choice:
        """An AGP with these settings in the wrappers of the default, for a stream that begins so."""
        model = self._agp(X.shape[1], y)
        T = model.window or 0
        bare = Guarded(Calibrated(Gaps(model)), widen_first=True)
        return Choice(wrapped(model, T) if self.standardize else bare, warmup=T)

    def _agp(self, inputs: int, y: np.ndarray) -> AGP:
        """An AGP with these settings; omitted ones are as in the default."""
        T, M = sizes(y, inputs)
        if self.window is not None:
            T = checks.whole("window", self.window, 1)
        elif self.inducing is not None:
            T = max(T, checks.whole("inducing", self.inducing, 1))
        names = ("noise", "forgetting", "learn_every", "warmup_iterations", "prior")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.prior == np.inf:
            given["prior"] = None
        M = min(M, T) if self.inducing is None else self.inducing
        return AGP(self._kernel(inputs), inducing=M, window=T, **LEARNING | given)

    def _kernel(self, inputs: int) -> Kernel:
        if self.kernel is None:
            return kernel(inputs)
        return parse_kernel(self.kernel, inputs) if isinstance(self.kernel, str) else self.kernel
