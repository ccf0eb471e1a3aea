"""Rivals with a spread of their own for each row: LightGBM by quantiles, and LightGBM with a model of its errors.

Both are refitted on all rows so far, every 168 rows from the end of the warm-up on, and both are corrected after each
row by what has come. The second half of the warm-up is predicted by a fit on the first half, so that there are errors
to begin with.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from benchmarks.defaults.streams import WARMUP, Floats, Stream
from driftgp.predictions import Prediction
from driftgp.predictions.normal import log_pdf

HALF = WARMUP // 2
EVERY = 168  # rows from one refit to the next
RECENT = 500  # rows by whose errors quantiles are corrected
LEVELS = np.array([0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99])
STEP = 0.01  # of adaptive conformal inference
CLOSEST = 1e-3  # of its range: no two quantiles of a row are nearer than that
POINTS = 400  # of the levels over which the CRPS is averaged


class Quantiles(Prediction):
    """Laws given by their quantiles, straight lines in the normal score between them and beyond the last.

    >>> law = Quantiles(np.zeros(1), ndtri(LEVELS)[:, None])
    >>> [round(float(value[0]), 3) for value in (law.log_prob([0.5]), law.crps([0.5]), law.quantile(0.999))]
    [-1.044, 0.331, 3.09]
    """

    __slots__ = ("_mean", "values")

    def __init__(self, mean: Floats, values: Floats) -> None:
        """Take the means, N, and the values at `LEVELS`, K×N, in any order."""
        values = np.sort(values, 0)
        apart = np.maximum(CLOSEST * (values[-1] - values[0]), 1e-9)
        rising = np.arange(len(values))[:, None] * apart
        self._mean, self.values = mean, np.maximum.accumulate(values - rising, 0) + rising

    @property
    def mean(self) -> Floats:
        """As it was given."""
        return self._mean

    @property
    def variance(self) -> Floats:
        """From the quantiles, at 400 levels."""
        return self._at_all_levels().var(0)

    @property
    def noise(self) -> Floats:
        """Nothing is said of it."""
        return np.zeros_like(self._mean)

    def _line(self, place: Any) -> tuple[Floats, Floats, Floats]:
        """Where a line begins, and its slope: value over normal score."""
        scores, rows = ndtri(LEVELS), np.arange(len(self._mean))
        low, high = self.values[place, rows], self.values[place + 1, rows]
        return scores[place], low, (high - low) / (scores[place + 1] - scores[place])

    def from_normal(self, z: ArrayLike) -> Floats:
        """Value of each row at a normal score."""
        z = np.broadcast_to(z, np.broadcast_shapes(np.shape(z), self.shape))
        begin, low, slope = self._line(np.clip(np.searchsorted(ndtri(LEVELS), z) - 1, 0, len(LEVELS) - 2))
        value: Floats = low + slope * (z - begin)
        return value

    def _place(self, y: ArrayLike) -> Any:
        return np.clip((self.values <= np.asarray(y)).sum(0) - 1, 0, len(LEVELS) - 2)

    def to_normal(self, y: ArrayLike) -> Floats:
        """Normal score of one target per row."""
        begin, low, slope = self._line(self._place(y))
        score: Floats = begin + (np.asarray(y) - low) / slope
        return score

    def log_prob(self, y: ArrayLike) -> Floats:
        """Log density of one target per row."""
        return np.asarray(log_pdf(self.to_normal(y))) - np.log(self._line(self._place(y))[2])

    def _at_all_levels(self) -> Floats:
        return self.from_normal(ndtri((np.arange(POINTS) + 0.5) / POINTS)[:, None])

    def crps(self, y: ArrayLike) -> Floats:
        """Twice the mean pinball loss over all levels."""
        levels, error = ((np.arange(POINTS) + 0.5) / POINTS)[:, None], np.asarray(y) - self._at_all_levels()
        score: Floats = 2.0 * np.maximum(levels * error, (levels - 1.0) * error).mean(0)
        return score

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Quantiles":
        """In other units."""
        return self.each(lambda array: array * np.asarray(scale) + shift)

    def each(self, function: Callable[[Floats], Floats]) -> "Quantiles":
        """With a function applied to its arrays."""
        return Quantiles(function(self._mean), function(self.values))


# ---- LightGBM --------------------------------------------------------------------------------------------------------


def refits(rows: int) -> Iterator[tuple[int, int]]:
    """Rows that each fit predicts, on all rows before them."""
    return pairwise([HALF, *range(WARMUP, rows, EVERY), rows])


def _booster(**settings: Any) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(**({"n_estimators": 200} | settings), n_jobs=1, verbose=-1)


def _means(stream: Stream) -> Floats:
    """Of the rows from HALF on."""
    return np.concatenate(
        [
            _booster().fit(stream.X[:start], stream.y[:start]).predict(stream.X[start:end])
            for start, end in refits(len(stream.y))
        ]
    )


def conformal(stream: Stream) -> Quantiles:
    """LightGBM for the mean and for each of 15 quantiles, corrected online.

    Conformalised quantile regression, one side at a time (Romano, Patterson, Candès 2019): a quantile q of level τ is
    moved by the quantile of level a of (y − q) / w over the last 500 rows, in units of the row's own interquartile
    width w; a follows τ by adaptive conformal inference (Gibbs, Candès 2021), a ← a + 0.01 (τ − [y ≤ moved q]). Then
    the quantiles of a row are sorted.
    """
    quantiles = np.concatenate(
        [
            np.stack(
                [
                    _booster(objective="quantile", alpha=level, n_estimators=100)
                    .fit(stream.X[:start], stream.y[:start])
                    .predict(stream.X[start:end])
                    for level in LEVELS
                ],
                1,
            )
            for start, end in refits(len(stream.y))
        ]
    )
    return Quantiles(_means(stream)[WARMUP - HALF :], corrected(quantiles, stream.y[HALF:]).T)


def corrected(quantiles: Floats, y: Floats) -> Floats:
    """Quantiles N×K of the rows from HALF on, moved by what came before each; those from the warm-up's end on."""
    quantiles = np.sort(quantiles, 1)
    width = quantiles[:, np.searchsorted(LEVELS, 0.8)] - quantiles[:, np.searchsorted(LEVELS, 0.2)]
    width = np.maximum(width, 1e-3 * np.median(width) + 1e-12)[:, None]
    scores, aim, moved = (y[:, None] - quantiles) / width, LEVELS.copy(), quantiles.copy()
    for row in range(WARMUP - HALF, len(y)):
        recent = np.sort(scores[max(row - RECENT, 0) : row], 0)
        at = np.clip(aim, 0.0, 1.0) * (len(recent) - 1)
        low = np.floor(at).astype(int)
        high, columns = np.minimum(low + 1, len(recent) - 1), np.arange(len(LEVELS))
        shift = recent[low, columns] + (at - low) * (recent[high, columns] - recent[low, columns])
        moved[row] += shift * width[row]
        aim += STEP * (LEVELS - (y[row] <= moved[row]))
    return moved[WARMUP - HALF :]


def with_scale(stream: Stream) -> Quantiles:
    """LightGBM for the mean, and a second one for log |error| from the inputs and the mean.

    The second one learns from errors of rows that the first had not seen. The quantiles of a row are those of the last
    500 errors, each in units of its row's expected size.
    """
    means, y = _means(stream), stream.y[HALF:]
    error = y - means
    size = np.log(np.maximum(np.abs(error), 1e-3 * np.median(np.abs(error[: WARMUP - HALF])) + 1e-12))
    X = np.column_stack([stream.X[HALF:], means])
    scale = np.full(len(y), np.exp(size[: WARMUP - HALF].mean()))
    for start, end in pairwise([*range(WARMUP - HALF, len(y), EVERY), len(y)]):
        scale[start:end] = np.exp(_booster(n_estimators=50).fit(X[:start], size[:start]).predict(X[start:end]))
    ratios, rows = error / scale, range(WARMUP - HALF, len(y))
    shapes = np.stack([np.quantile(ratios[max(row - RECENT, 0) : row], LEVELS) for row in rows], 1)
    return Quantiles(means[WARMUP - HALF :], means[WARMUP - HALF :] + scale[WARMUP - HALF :] * shapes)


LAWS: dict[str, Callable[[Stream], Quantiles]] = {
    "LightGBM quantiles, conformal": conformal,
    "LightGBM mean and scale": with_scale,
}
