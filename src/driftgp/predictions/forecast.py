"""What `predict` returns: records of forecasts, read as a distribution."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from driftgp.base.frames import Source
from driftgp.predictions.base import Prediction, around_the_median, row_index
from driftgp.predictions.normal import nominal_reach

# An engine's own `from_normal`: values of N forecasts at Q normal scores, or at Q×N scores, one column per forecast:
# Q×N×P.
Solve = Callable[[np.ndarray, np.ndarray], np.ndarray]
Joint = Callable[[], np.ndarray]


class Lawful(Protocol):
    """A model, as far as its forecasts need it."""

    def law(self, forecasts: np.ndarray) -> Prediction:
        """The distributions that N forecasts describe, arrays N×P."""


class Forecast(Prediction):
    """A model's forecasts at N points.

    Mean, variance and noise are read from the records as they are. Everything else comes from `law`, the distribution
    that the records describe, which is built on first use. Other fields are in the records, such as
    `forecast.records["weights"]`. Methods are those of `Prediction`.

    >>> from driftgp import Online
    >>> online = Online()
    >>> online.update([[0.0], [1.0], [2.0]], [5.0, 6.0, 7.0])
    >>> forecast = online.predict([[3.0], [4.0]])
    >>> forecast.mean.shape, forecast.interval(0.9)[0].shape
    ((2,), (2,))
    """

    __slots__ = ("_joint", "_law", "_solve", "flat", "generation", "model", "records", "source")

    def __init__(
        self,
        model: Lawful,
        records: np.ndarray,
        flat: bool,
        solve: Solve | None = None,
        generation: int = 0,
        joint: Joint | None = None,
    ) -> None:
        """Take N records of the model's layout.

        Args:
            model: the model whose forecasts they are.
            records: of shape N.
            flat: whether a target is a plain number, so that arrays have shape N instead of N×1.
            solve: an engine's own `from_normal`, where it has one.
            generation: number of the model, if the stream has had several.
            joint: a function that gives the covariance of new targets at the N points, P×N×N.
        """
        self.model, self.records, self.flat, self.generation = model, records, flat, generation
        self._solve, self._joint = solve, joint
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
        joint = None if self._joint is None else _taken(self._joint, chosen)
        some = Forecast(self.model, self.records[chosen], self.flat, self._solve, self.generation, joint)
        some.source = self.source and self.source.taken(chosen)
        return some

    def joined_by(self, joint: Joint) -> "Forecast":
        """The same forecasts, with a function that gives the covariance of new targets at their points."""
        return Forecast(self.model, self.records, self.flat, self._solve, self.generation, joint)

    # ---- together ----------------------------------------------------------------------------------------------------

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of new targets at all pairs of points, P×N×N; its diagonal is the variance."""
        if self._joint is None:
            raise ValueError(
                "covariance must be that of one posterior: predict several rows by one call of model.predict(state, X) "
                "or Online.predict(X), without learning in between"
            )
        return self._joint()

    def sample(
        self,
        size: int = 1,
        seed: int | np.random.Generator | None = None,
        *,
        joint: bool = False,
        latent: bool = False,
    ) -> np.ndarray:
        """Draw `size` targets at each point by a seed, size×N or size×N×P.

        Args:
            size: how many.
            seed: a number, or a generator of NumPy's.
            joint: draw the targets of all points together, with their `covariance`; else independently of each other.
                A law that is not normal keeps its quantiles: its normal scores are correlated (a Gaussian copula).
            latent: draw the function f itself, without the noise of new targets, from the normal distribution of its
                mean and covariance; together.

        >>> from driftgp import AGP
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> model = AGP(inducing=8, window=50, noise=0.1)
        >>> forecast = model.predict(model.init(X, np.sin(6 * X[:, 0])), X)
        >>> curves = forecast.sample(3, seed=0, latent=True)  # smooth ones
        >>> curves.shape, bool(np.abs(np.diff(curves)).max() < 0.5)
        ((3, 50), True)
        """
        if not (joint or latent):
            return super().sample(size, seed)
        C = self.covariance  # P×N×N
        P, N, _ = C.shape
        if np.isinf(C).any():
            raise ValueError("joint samples need a first target: before it nothing is known, and samples are infinite")
        noise, deviation = self.records["noise"].T, np.sqrt(np.diagonal(C, axis1=1, axis2=2))  # P×N
        C = C - noise[:, :, None] * np.eye(N) if latent else C / (deviation[:, :, None] * deviation[:, None, :])
        values, vectors = np.linalg.eigh(C)  # a covariance of many near points has no Cholesky factor
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        normal = np.random.default_rng(seed).standard_normal((size, P, N))
        z = np.einsum("pnk,spk->snp", roots, normal)
        if latent:
            drawn = self.records["mean"] + z
            return drawn[..., 0] if self.flat else drawn
        return self.from_normal(z[..., 0] if self.flat else z)

    # ---- from the law ------------------------------------------------------------------------------------------------

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """Probability that a new target is at most y."""
        return self.law.cdf(y)

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """Log density at y."""
        return self.law.log_prob(y)

    def crps(self, y: ArrayLike) -> np.ndarray:
        """Continuous ranked probability score at y: ∫ (cdf(z) − [z ≥ y])² dz, smaller is better."""
        if self.law.has_crps_formula:
            return self.law.crps(y)
        return super().crps(y)  # many quantiles, computed by the engine

    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """Normal score of y."""
        return self.law.to_normal(y)

    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """Value whose normal score is z: by the engine, or by the law where outputs have scores of their own."""
        z = np.asarray(z, np.float64)
        of_all = ((), (1,))  # axes along which all scores are the same
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


def _taken(joint: Joint, chosen: Any) -> Joint:
    """The covariance of some of the points."""
    return lambda: joint()[:, chosen][:, :, chosen]


@lru_cache(maxsize=64)
def _ends(level: float) -> np.ndarray:
    """Normal scores of an interval of this level: its lower end, the median, its upper end."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1; got {level!r}")
    z = nominal_reach(level)
    return np.array([-z, 0.0, z])


def _restored(model: Lawful, records: np.ndarray, flat: bool, generation: int) -> Forecast:
    return Forecast(model, records, flat, None, generation)
