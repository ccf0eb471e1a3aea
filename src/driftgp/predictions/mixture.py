"""A mixture of normal distributions: what several models together say of the next target."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri_exp

from driftgp.predictions import normal
from driftgp.predictions.base import Prediction

# At least every eighth turn halves the bracket, so this many turns are enough for any bracket.
_MOST_TURNS = 400


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(Prediction):
    """A mixture Σ_k w_k N(m_k, s_k²) of normal distributions at each point.

    The weights may be the same at all points: K×1×1 is broadcast to the shape of the means.

    >>> import numpy as np
    >>> half, one = np.full((2, 1), 0.5), np.ones((2, 1))
    >>> p = Mixture(weights=half, means=np.array([[-1.0], [1.0]]), variances=one, noises=one)
    >>> float(p.mean[0]), float(p.variance[0]), float(p.cdf(0.0)[0])
    (0.0, 2.0, 0.5)
    """

    weights: np.ndarray  # K×N×P; they sum to 1 over K
    means: np.ndarray  # K×N×P
    variances: np.ndarray  # K×N×P
    noises: np.ndarray  # K×N×P

    def __post_init__(self) -> None:
        if self.weights.shape != self.means.shape:
            object.__setattr__(self, "weights", np.broadcast_to(self.weights, self.means.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """N, or N×P."""
        return self.means.shape[1:]

    @cached_property
    def mean(self) -> np.ndarray:
        """Σ w_k m_k."""
        return self._members.mixed(self._members.means)

    @cached_property
    def variance(self) -> np.ndarray:
        """Σ w_k (s_k² + (m_k − m)²): what the members expect, and how far they disagree."""
        members = self._members
        return members.mixed(_last(self.variances) + (members.means - self.mean[..., None]) ** 2)

    @cached_property
    def noise(self) -> np.ndarray:
        """Σ w_k σ_k², the mean of the members' noises."""
        return self._members.mixed(_last(self.noises))

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """Σ w_k Φ((y − m_k)/s_k)."""
        return np.minimum(self._members.mixed(ndtr(self._members.z(y))), 1.0)  # weights sum to 1 up to rounding

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """log Σ w_k N(y | m_k, s_k²)."""
        return self._members.log_density(self._members.z(y))

    def crps(self, y: ArrayLike) -> np.ndarray:
        """Σ_k w_k A(y − m_k, s_k²) − ½ Σ_jk w_j w_k A(m_j − m_k, s_j² + s_k²), with A(m, s²) the mean of |N(m, s²)|."""
        members = self._members
        m, s2 = members.means, _last(self.variances)  # N×P×K
        error = _absolute_mean(np.asarray(y)[..., None] - m, s2)
        spread = _absolute_mean(m[..., :, None] - m[..., None, :], s2[..., :, None] + s2[..., None, :])  # N×P×K×K
        return members.mixed(error - 0.5 * (members.weights[..., None, :] * spread).sum(-1))

    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """Computed from the logarithm of the nearer tail, which keeps its digits however far out y is."""
        return self._members.score(self._members.z(y))

    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """Value at which the normal score is z, found by root search: there is no formula."""
        z = np.asarray(z, np.float64)
        z = np.broadcast_to(z, np.broadcast_shapes(z.shape, self.shape))
        members = _Members(
            *(np.broadcast_to(a, (*z.shape, a.shape[-1])).reshape(-1, a.shape[-1]) for a in self._members)
        )
        finite = np.isfinite(z)
        roots = _roots(members, np.where(finite, z, 0.0).reshape(-1)).reshape(z.shape)
        return np.where(finite, roots, z)

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Mixture":
        """Scale and shift every member."""
        scale = np.asarray(scale)
        return Mixture(self.weights, scale * self.means + shift, scale**2 * self.variances, scale**2 * self.noises)

    @cached_property
    def _members(self) -> "_Members":
        weights = _last(self.weights)
        with np.errstate(divide="ignore"):  # a weight may be 0
            return _Members(weights, np.log(weights), _last(self.means), np.sqrt(_last(self.variances)))


class _Members(NamedTuple):
    """The members with K as the last axis, so that any axes may come in front."""

    weights: np.ndarray  # …×K
    log_weights: np.ndarray
    means: np.ndarray
    stds: np.ndarray

    def mixed(self, values: np.ndarray) -> np.ndarray:
        """Σ w_k v_k for values …×K."""
        return (self.weights * values).sum(-1)

    def log_mixed(self, logs: np.ndarray) -> np.ndarray:
        """log Σ w_k exp(v_k) for logarithms v, …×K; SciPy's takes three times as long for a few numbers."""
        logs = self.log_weights + logs
        top = logs.max(-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):  # log 0 is meant
            return np.log(np.exp(logs - top).sum(-1)) + top[..., 0]

    def z(self, y: ArrayLike) -> np.ndarray:
        """Each member's own score of y, …×K."""
        return (np.asarray(y, np.float64)[..., None] - self.means) / self.stds

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """log Σ w_k φ(z_k)/s_k."""
        return self.log_mixed(normal.log_pdf(z) - np.log(self.stds))

    def score(self, z: np.ndarray) -> np.ndarray:
        """The normal score of the mixture, from the logarithm of the nearer tail."""
        below, above = self.log_mixed(log_ndtr(np.stack([z, -z])))
        nearer = ndtri_exp(np.minimum(below, above))
        return np.where(below < above, nearer, -nearer)


def _roots(members: _Members, target: np.ndarray) -> np.ndarray:
    """Values where the mixtures of E points have the normal scores `target`, E finite numbers.

    Each root lies between the members' own values of that score. The bracket is narrowed from there, for the points
    that are not yet settled.
    """
    values = members.means + members.stds * target[:, None]  # E×K
    low, high = values.min(-1), values.max(-1)
    narrowest = members.stds.min(-1)
    y = 0.5 * (low + high)
    for turn in range(_MOST_TURNS):
        tolerance = _tolerance(low, high, narrowest)
        left = np.flatnonzero(high - low > tolerance)
        if left.size == 0:
            break
        some = _Members(*(array[left] for array in members))
        brackets = low[left], high[left], y[left]
        low[left], high[left], y[left] = _narrowed(some, target[left], *brackets, tolerance[left], turn % 8 == 7)
    return 0.5 * (low + high)


def _tolerance(low: np.ndarray, high: np.ndarray, narrowest: np.ndarray) -> np.ndarray:
    """Rounding of the numbers in a bracket; near 0 the rounding of the narrowest member."""
    size = np.where(np.sign(low) == np.sign(high), np.minimum(np.abs(low), np.abs(high)), 0.0)
    return 8.0 * np.finfo(np.float64).eps * (size + narrowest)


def _narrowed(
    members: _Members,
    target: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    y: np.ndarray,
    tolerance: np.ndarray,
    halve: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One turn: narrower brackets, and where to look next.

    This is Newton's method on the normal score, which is nearly straight. If a step leaves the bracket, the bracket is
    halved.
    """
    z = members.z(y)
    score = members.score(z)
    low, high = np.where(score <= target, y, low), np.where(score >= target, y, high)
    middle = 0.5 * (low + high)
    if halve:
        return low, high, middle
    with np.errstate(over="ignore", invalid="ignore"):  # with next to no density, the step leaves the bracket
        step = (target - score) * np.exp(normal.log_pdf(score) - members.log_density(z))
    # a little past the root, so that the next turn closes the bracket from the other side
    newton = y + step + np.sign(step) * 0.25 * tolerance
    return low, high, np.where((newton > low) & (newton < high), newton, middle)


def _absolute_mean(mean: np.ndarray, variance: np.ndarray) -> Any:
    """Mean of |x| for x ~ N(m, s²): 2s φ(m/s) + m (2Φ(m/s) − 1)."""
    std = np.sqrt(variance)
    return 2.0 * std * normal.pdf(mean / std) + mean * (2.0 * ndtr(mean / std) - 1.0)


def _last(members: np.ndarray) -> np.ndarray:
    """K as the last axis, one after another in memory: sums over K are then the same for one row and for many."""
    return np.ascontiguousarray(np.moveaxis(members, 0, -1))
