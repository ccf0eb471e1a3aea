"""The methods of every predictive distribution."""

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from driftgp.base import frames
from driftgp.base.frames import Source
from driftgp.predictions import quadrature
from driftgp.predictions.normal import nominal_reach

_ROWS_SHOWN = 3


class Prediction(abc.ABC):
    """A predictive distribution at N points: arrays of shape N, or N×P for P outputs.

    Arguments (targets, probabilities, normal scores) are broadcast against this shape; further axes may come
    in front: `quantile(q)` for q of shape Q×1 gives Q×N.

    >>> from driftgp.predictions import Gaussian
    >>> prediction = Gaussian(mean=np.array([0.0, 10.0]), variance=np.array([1.0, 4.0]), noise=np.array([0.5, 0.5]))
    >>> prediction.std.tolist()
    [1.0, 2.0]
    >>> low, high = prediction.interval(0.95)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([-1.96, 6.08], [1.96, 13.92])
    >>> prediction.quantile(0.8).round(2).tolist()
    [0.84, 11.68]
    """

    __slots__ = ()

    # ---- what a distribution provides --------------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def mean(self) -> np.ndarray:
        """Mean of a new target."""

    @property
    @abc.abstractmethod
    def variance(self) -> np.ndarray:
        """Variance of a new target, noise included."""

    @property
    @abc.abstractmethod
    def noise(self) -> np.ndarray:
        """The share of the variance that is observation noise."""

    @abc.abstractmethod
    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """Log density at y."""

    @abc.abstractmethod
    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """Normal score of y: the z for which Φ(z) = cdf(y), without a loss of digits far out in a tail."""

    @abc.abstractmethod
    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """Value whose normal score is z: the quantile at Φ(z), without a loss of digits far out in a tail."""

    @abc.abstractmethod
    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Prediction":
        """Distribution of scale · y + shift, for a positive scale."""

    def each(self, function: Callable[[np.ndarray], np.ndarray]) -> "Prediction":
        """The same distribution with a function applied to each of its arrays, and to those of a law that it holds.

        Their last axes are N×P, or N; axes of members or levels come before.
        """
        parts = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return type(self)(**{name: _applied(function, part) for name, part in parts.items()})

    # ---- what follows from it ----------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """N, or N×P."""
        return self.mean.shape

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of a new target."""
        return np.sqrt(self.variance)

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """Probability that a new target is at most y."""
        return ndtr(self.to_normal(y))

    def crps(self, y: ArrayLike) -> np.ndarray:
        """Continuous ranked probability score at y: ∫ (cdf(z) − [z ≥ y])² dz, smaller is better."""
        return quadrature.crps(self, y)  # where there is no formula

    @property
    def has_crps_formula(self) -> bool:
        """Whether `crps` is a formula, and not a sum over many quantiles."""
        return type(self).crps is not Prediction.crps

    def quantile(self, q: ArrayLike) -> np.ndarray:
        """Value that a new target stays below with probability q."""
        q = np.asarray(q, np.float64)
        outside = (q < 0.0) | (q > 1.0)
        if outside.any():
            raise ValueError(f"q must lie between 0 and 1; got {q[outside][0]}")
        return self.from_normal(ndtri(q))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Central interval that holds a new target with probability `level`."""
        if not 0.0 < float(level) < 1.0:
            raise ValueError(f"level must lie strictly between 0 and 1; got {level!r}")
        z = nominal_reach(float(level))
        return around_the_median(*self.from_normal(np.array([-z, 0.0, z]).reshape(3, *(1 for _ in self.shape))))

    def sample(self, size: int = 1, seed: int | np.random.Generator | None = None) -> np.ndarray:
        """Draw `size` targets at each point by a seed, size×N or size×N×P, independently of each other."""
        z = np.random.default_rng(seed).standard_normal((size, *self.shape))
        return self.from_normal(z)

    def to_frame(self, level: float | Sequence[float] = 0.95, *, library: str | None = None) -> Any:
        """Mean, standard deviation and interval of each row as a frame; needs the extra ``driftgp[frames]``.

        The frame is of the library that the rows came from, and has their index.

        >>> from driftgp.predictions import Gaussian
        >>> p = Gaussian(mean=np.zeros(2), variance=np.ones(2), noise=np.ones(2))
        >>> p.to_frame(library="pandas").round(2)
           mean  std   low  high
        0   0.0  1.0 -1.96  1.96
        1   0.0  1.0 -1.96  1.96

        Args:
            level: of the interval, "low" and "high"; of several, the names have the level: "low-50", "high-50".
            library: "pandas", "polars" or "pyarrow"; by default that of the rows, else the first that is installed.
        """
        if isinstance(level, str):
            raise ValueError(f"level must be a number or several; got {level!r}: name a library by library={level!r}")
        levels = {"": level} if isinstance(level, float | int) else {f"-{100 * one:g}": one for one in level}
        columns = {"mean": self.mean, "std": self.std}
        for which, one in levels.items():
            columns[f"low{which}"], columns[f"high{which}"] = self.interval(one)
        if len(self.shape) == 2:
            columns = {f"{name} {i}": values[:, i] for i in range(self.shape[1]) for name, values in columns.items()}
        evaluated = None if self.source is None else self.source.evaluated
        if evaluated is not None:
            columns = {**evaluated.before(), **columns, **evaluated.after()}
        return frames.made({name: np.atleast_1d(values) for name, values in columns.items()}, self.source, library)

    def scores(self) -> Any:
        """Errors beside persistence and seasonal naive forecasts, CRPS, coverage in all, by hour and by decile.

        For predictions from `evaluate` of an `Online` or a `Fleet`: see `driftgp.stream.scores.Scores`.
        """
        evaluated = None if self.source is None else self.source.evaluated
        if evaluated is None:
            raise ValueError(
                "scores need targets: use the result of evaluate, or driftgp.evaluate.scores(prediction, y)"
            )
        return evaluated.scores(self)

    @property
    def source(self) -> Source | None:
        """Where the rows came from, if that was a frame."""
        return None

    def output(self, i: int) -> "Prediction":
        """Distribution of output i alone."""
        if len(self.shape) < 2:
            raise ValueError(f"output(i) needs several outputs; got i = {i} for one output of shape {self.shape}")
        return self.each(lambda array: array[..., i])

    def rows(self, index: slice | ArrayLike) -> "Prediction":
        """Distribution at some of the points; `index` is a slice, numbers or a mask of rows."""
        chosen = row_index(index)
        if len(self.shape) < 2:
            return self.each(lambda array: array[..., chosen])
        return self.each(lambda array: array[..., chosen, :])

    @property
    def called(self) -> str:
        """Its name in `repr`."""
        return type(self).__name__

    def __repr__(self) -> str:
        N, *P = np.shape(np.atleast_1d(self.mean))
        count = f"{N} row{'s' if N != 1 else ''}" + (f" × {P[0]} outputs" if P else "")
        first = self.rows(slice(_ROWS_SHOWN)) if self.shape else self
        rows = zip(*(_shown(values) for values in (first.mean, *first.interval(0.95))), strict=True)
        shown = [f"{mean} ({below} to {above})" for mean, below, above in rows]
        more = ", …" if N > _ROWS_SHOWN else ""
        return f"<{self.called} of {count}: mean (95% interval) {', '.join(shown)}{more}>"


@dataclass(frozen=True, eq=False, repr=False)
class Held(Prediction):
    """A distribution made from another one, which it holds. Mean, variance and noise are the held ones by default."""

    model: Prediction  # as it was before

    @property
    def has_crps_formula(self) -> bool:
        """Whether this law has a formula, and the held one too."""
        return super().has_crps_formula and self.model.has_crps_formula

    def _broadcast(self, *names: str) -> None:
        """Give arrays of these names the shape of the held law."""
        for name in names:
            array = np.asarray(getattr(self, name))
            if array.shape != self.model.shape:
                object.__setattr__(self, name, np.broadcast_to(array, self.model.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """N, or N×P."""
        return self.model.shape

    @property
    def mean(self) -> np.ndarray:
        """The held one's."""
        return self.model.mean

    @property
    def variance(self) -> np.ndarray:
        """The held one's."""
        return self.model.variance

    @property
    def noise(self) -> np.ndarray:
        """The held one's."""
        return self.model.noise


def _applied(function: Callable[[np.ndarray], np.ndarray], part: Any) -> Any:
    """A function of an array, or of the arrays of a held law; settings stay as they are."""
    if isinstance(part, Prediction):
        return part.each(function)
    return function(np.asarray(part)) if isinstance(part, np.ndarray | np.generic) else part


def around_the_median(low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of an interval that contains the median, even if the interval is narrower than the rounding of its ends."""
    return np.minimum(low, middle), np.maximum(middle, high)


def row_index(index: Any) -> Any:
    """An index that keeps the axis of the rows: one number is one row."""
    return index if isinstance(index, slice) else np.atleast_1d(index)


def _shown(values: np.ndarray) -> list[str]:
    """Rows with four digits."""
    return [
        f"[{', '.join(f'{value:.4g}' for value in row)}]" if np.ndim(row) else f"{row:.4g}"
        for row in np.atleast_1d(values)
    ]
