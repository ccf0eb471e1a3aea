"""What `predict` returns: records of forecasts, read as a distribution."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from driftgp.frames import Source
from driftgp.predictions.base import Prediction, around_the_median, row_index
from driftgp.predictions.normal import nominal_reach

# An engine's own `from_normal`: values of N forecasts at Q normal scores, or at Q of their own each (Q×N): Q×N×P.
Solve = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Lawful(Protocol):
    """A model, as far as its forecasts need it."""

    def law(self, forecasts: np.ndarray) -> Prediction:
        """The distributions that N forecasts describe, arrays N×P."""


class Forecast(Prediction):
    """A model's forecasts at N points.

    Mean, variance and noise are read from the records as they are. Everything else is asked of `law`, the distribution
    that the model says they describe, which is built on first use. Other fields are in the records:
    `forecast.records["weights"]`. Methods are those of `Prediction`.

    >>> from driftgp import Online
    >>> online = Online()
    >>> online.update([[0.0], [1.0], [2.0]], [5.0, 6.0, 7.0])
    >>> forecast = online.predict([[3.0], [4.0]])
    >>> forecast.mean.shape, forecast.interval(0.9)[0].shape
    ((2,), (2,))
    """

    __slots__ = ("_law", "_solve", "flat", "generation", "model", "records", "source")

    def __init__(
        self, model: Lawful, records: np.ndarray, flat: bool, solve: Solve | None = None, generation: int = 0
    ) -> None:
        """Take N records of the model's layout.

        Args:
            model: the model whose forecasts they are.
            records: of shape N.
            flat: whether a target is a plain number, so that arrays have shape N instead of N×1.
            solve: an engine's own `from_normal`, where it has one.
            generation: which of the models of a stream it is, if it had several.
        """
        self.model, self.records, self.flat, self.generation = model, records, flat, generation
        self._solve = solve
        self._law: Prediction | None = None
        self.source: Source | None = None  # where the rows came from, if that was a frame

    @property
    def law(self) -> Prediction:
        """The distribution by itself: a `Gaussian`, a `Mixture`, a `Recalibrated`."""
        if self._law is None:
            law = self.model.law(self.records)
            self._law = law.output(0) if self.flat else law
        return self._law

    # ---- from the records --------------------------------------------------------------------------------------------

    @property
    def mean(self) -> np.ndarray:
        """Mean of a new target."""
        return self._field("mean")

    @property
    def variance(self) -> np.ndarray:
        """Variance of a new target, noise included."""
        return self._field("variance")

    @property
    def noise(self) -> np.ndarray:
        """The share of the variance that is observation noise."""
        return self._field("noise")

    def rows(self, index: slice | ArrayLike) -> "Forecast":
        """Forecasts at some of the points: a slice, numbers or a mask of rows."""
        chosen = row_index(index)
        some = Forecast(self.model, self.records[chosen], self.flat, self._solve, self.generation)
        some.source = self.source and self.source.taken(chosen)
        return some

    # ---- from the law ------------------------------------------------------------------------------------------------

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """Probability that a new target is at most y."""
        return self.law.cdf(y)

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """Log density at y."""
        return self.law.log_prob(y)

    def crps(self, y: ArrayLike) -> np.ndarray:
        """Continuous ranked probability score at y: ∫ (cdf(z) − [z ≥ y])² dz, smaller is better."""
        if type(self.law).crps is Prediction.crps:  # no formula: many quantiles, by the engine
            return super().crps(y)
        return self.law.crps(y)

    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """Normal score of y."""
        return self.law.to_normal(y)

    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """Value whose normal score is z: by the engine, or by the law where outputs have scores of their own."""
        z = np.asarray(z, np.float64)
        of_all = ((), (1,))  # axes along which a score is the same for all
        by_row = z if self.flat or z.shape[-1:] != (1,) else z[..., 0]
        by_output = not self.flat and z.shape[-1:] not in of_all
        if self._solve is None or by_output or by_row.shape[-1:] not in (*of_all, self.records.shape) or z.size == 0:
            return self.law.from_normal(z)
        alike = by_row.shape[-1:] in of_all
        scores = by_row.reshape(-1) if alike else by_row.reshape(-1, len(self.records))
        values = self._solve(self.records, scores)  # Q×N×P
        if self.flat:
            values = values[..., 0]
        return values.reshape(*by_row.shape[:-1], *values.shape[1:])

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Central interval that holds a new target with probability `level`."""
        if self._solve is None:
            return super().interval(level)
        values = self._solve(self.records, _ends(float(level)))  # 3×N×P
        return around_the_median(*(values[..., 0] if self.flat else values))

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> Prediction:
        """Distribution of scale · y + shift, for a positive scale."""
        return self.law.scaled(scale, shift)

    def each(self, function: Callable[[np.ndarray], np.ndarray]) -> Prediction:
        """The law with a function applied to each of its arrays."""
        return self.law.each(function)

    def _field(self, name: str) -> np.ndarray:
        values = self.records[name]  # N×P
        return values[:, 0] if self.flat else values

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the model and the numbers: an engine belongs to its process."""
        return _restored, (self.model, self.records, self.flat, self.generation)


@lru_cache(maxsize=64)
def _ends(level: float) -> np.ndarray:
    """Normal scores of an interval of this level: its lower end, the median, its upper end."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1; got {level!r}")
    z = nominal_reach(level)
    return np.array([-z, 0.0, z])


def _restored(model: Lawful, records: np.ndarray, flat: bool, generation: int) -> Forecast:
    return Forecast(model, records, flat, None, generation)
