"""A predictive distribution for targets that stay within bounds."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from driftgp.predictions import normal
from driftgp.predictions.base import Held, Prediction
from driftgp.predictions.rooted import Root, Rooted, carried_back

# If both bounds have normal scores beyond this, they change no digit: Φ(−8) is below 1e-15. Otherwise no target has a
# score beyond it.
_FARTHEST = 8.0
# With a smaller leak the user has promised the bounds: values outside have a density, but no quantile lies outside.
_PROMISED = 1e-9
# For the moments, a mean counts as at most this many standard deviations outside the bounds. For an interval narrower
# than this, they are computed by quadrature, since the differences in the formula lose digits.
_OUTSIDE, _NARROW, _LEAST, _NODES = 10.0, 0.3, 1e-12, 8


@dataclass(frozen=True, eq=False, repr=False)
class Restricted(Held):
    """The held law F, restricted to the interval [low − slack, high + slack], with a leak ε.

        G(y) = (1 − ε) T(y) + ε F(y),    T = (F − a)/D inside the interval, 0 below it and 1 above it

    with a = F(low − slack), b = F(high + slack) and D = b − a. G is piecewise linear in F, so its inverse and its
    density, f ((1 − ε)/D + ε) inside and f ε outside, have formulas.

    The slack is for targets that are rounded: a count of 0 stands for everything from −½ to ½. A value that is
    reported (a quantile, the end of an interval, a sample) and lies in the slack is brought to the bound.

    Where a and 1 − b are below 1e-15, the law is the held one, bit for bit. Where the mass of the held law inside the
    interval is too small for a float, values of the held law are brought to the nearer bound.

    Mean and variance are those of a normal law that has the held moments, restricted to the interval, without the leak.
    Where the held law is `Rooted`, it is the law of the root that counts as normal.

    >>> import numpy as np
    >>> from driftgp.predictions import Gaussian
    >>> held = Gaussian(mean=np.ones(1), variance=np.ones(1), noise=np.ones(1))
    >>> p = Restricted(held, low=np.zeros(1), high=np.full(1, np.inf), slack=np.zeros(1), leak=np.zeros(1))
    >>> [round(float(end[0]), 3) for end in p.interval(0.95) + held.interval(0.95)]
    [0.083, 3.033, -0.96, 2.96]
    """

    low: np.ndarray  # N×P, −inf without a bound
    high: np.ndarray  # N×P, inf without a bound
    slack: np.ndarray  # N×P
    leak: np.ndarray  # N×P, in [0, 1)

    def __post_init__(self) -> None:
        self._broadcast("low", "high", "slack", "leak")

    @property
    def mean(self) -> np.ndarray:
        """Mean of the restricted normal law, brought within the bounds."""
        return self._moments[0]

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance of the restricted normal law."""
        return self._moments[1] * self._of.variance

    @cached_property
    def noise(self) -> np.ndarray:
        """The same share of the variance as before."""
        return self._moments[1] * self._of.noise

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """log f(y) + log((1 − ε)/D + ε) inside, log f(y) + log ε outside."""
        y = np.asarray(y, np.float64)
        inside = (y >= self.low - self.slack) & (y <= self.high + self.slack)
        factor = np.where(inside, np.logaddexp(self._log_kept - self._log_D, self._log_leak), self._log_leak)
        held = self.model.log_prob(y)
        return np.where(self._counts, held + factor, held)

    def crps(self, y: ArrayLike) -> np.ndarray:
        """The held one where no bound is near, else 2 ∫ ([y < Q(q)] − q) (Q(q) − y) dq, by quadrature."""
        held = self.model.crps(y)
        return np.where(self._differs, super().crps(y), held) if self._differs.any() else held

    def to_normal(self, y: ArrayLike) -> np.ndarray:
        """Φ⁻¹(G(y)) from the nearer tail, which keeps its digits; without a leak, ±8 at the bounds and beyond."""
        z = self.model.to_normal(y)
        if not self._counts.any():
            return z
        alpha, beta = self._ends
        within = np.clip(z, alpha, beta)
        with np.errstate(invalid="ignore"):  # a target that is NaN has no score
            inside = log_between(alpha, within), log_between(within, beta)
            below = np.logaddexp(self._log_kept + inside[0] - self._log_D, self._log_leak + log_ndtr(z))
            above = np.logaddexp(self._log_kept + inside[1] - self._log_D, self._log_leak + log_ndtr(-z))
        lowest = np.where((self.leak == 0.0) & np.isfinite(alpha), -_FARTHEST, -np.inf)
        highest = np.where((self.leak == 0.0) & np.isfinite(beta), _FARTHEST, np.inf)
        return np.where(self._counts, np.clip(_nearer(below, above), lowest, highest), z)

    def from_normal(self, z: ArrayLike) -> np.ndarray:
        """Value of the held law where F = (p D + (1 − ε) a)/(1 − ε + ε D), or p/ε below the interval, p = Φ(z)."""
        z = np.asarray(z, np.float64)
        if not (self._counts.any() or self._lost.any()):
            return self._reported(self.model.from_normal(z), self._lost)
        alpha, beta = self._ends
        log_p, log_q = log_ndtr(z), log_ndtr(-z)
        log_a, log_c = log_ndtr(alpha), log_ndtr(-beta)  # c = 1 − b
        with np.errstate(invalid="ignore"):  # a score that is NaN has no value, and without a leak nothing lies outside
            whole = np.logaddexp(self._log_kept, self._log_leak + self._log_D)
            below = np.logaddexp(log_p + self._log_D, self._log_kept + log_a) - whole
            above = np.logaddexp(log_q + self._log_D, self._log_kept + log_c) - whole
            under, over = log_p < self._log_leak + log_a, log_q < self._log_leak + log_c
            guessed = self.leak > _PROMISED
            under, over = under & guessed, over & guessed
            score = np.where(under, ndtri_exp(np.minimum(log_p - self._log_leak, 0.0)), _nearer(below, above))
            score = np.where(over, -ndtri_exp(np.minimum(log_q - self._log_leak, 0.0)), score)
        value = self.model.from_normal(np.where(self._counts, score, z))
        return self._reported(value, (self._counts & ~(under | over)) | self._lost)

    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Restricted":
        """Scale and shift the held prediction and the bounds."""
        scale = np.asarray(scale)
        low, high = scale * self.low + shift, scale * self.high + shift
        return Restricted(self.model.scaled(scale, shift), low, high, scale * self.slack, self.leak)

    # ---- the interval in normal scores -------------------------------------------------------------------------------

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Normal scores α and β of both ends, infinite without a bound."""
        low, high = self.low - self.slack, self.high + self.slack
        alpha = self.model.to_normal(np.where(np.isfinite(low), low, 0.0))
        beta = self.model.to_normal(np.where(np.isfinite(high), high, 0.0))
        return np.where(np.isfinite(low), alpha, -np.inf), np.where(np.isfinite(high), beta, np.inf)

    @cached_property
    def _all_log_D(self) -> np.ndarray:
        return log_between(*self._ends)

    @cached_property
    def _lost(self) -> np.ndarray:
        """Where the held law has next to no mass inside."""
        return np.isneginf(self._all_log_D)

    @cached_property
    def _log_D(self) -> np.ndarray:
        return np.where(self._lost, 0.0, self._all_log_D)

    @cached_property
    def _counts(self) -> np.ndarray:
        """Where a bound changes the law."""
        alpha, beta = self._ends
        return ((alpha > -_FARTHEST) | (beta < _FARTHEST)) & ~self._lost

    @cached_property
    def _differs(self) -> np.ndarray:
        """Where reported values differ from those of the held law: the bounds are near, or a bound changes the law."""
        low = self.model.to_normal(np.where(np.isfinite(self.low), self.low, 0.0))
        high = self.model.to_normal(np.where(np.isfinite(self.high), self.high, 0.0))
        near = (np.isfinite(self.low) & (low > -_FARTHEST)) | (np.isfinite(self.high) & (high < _FARTHEST))
        return self._counts | self._lost | near

    def _reported(self, value: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Values with those in the slack, and those that are known to be inside, brought within the bounds."""
        inside = inside | (self.leak <= _PROMISED)
        near = (value >= self.low - self.slack) & (value <= self.high + self.slack)
        return np.where(inside | near, np.clip(value, self.low, self.high), value)

    @cached_property
    def _log_kept(self) -> np.ndarray:
        return np.log1p(-self.leak)

    @cached_property
    def _log_leak(self) -> np.ndarray:
        with np.errstate(divide="ignore"):  # log 0 is meant
            return np.log(self.leak)

    @property
    def _of(self) -> Prediction:
        """The law that counts as normal: the held one, or that of the root."""
        return self.model.model if isinstance(self.model, Rooted) else self.model

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        root = (self.model.root, self.model.gain) if isinstance(self.model, Rooted) else ()
        return restricted_moments(self._of.mean, self._of.std, self.low, self.high, self.slack, *root)


# ---- the standard normal law between two ends ------------------------------------------------------------------------


def log_between(alpha: Any, beta: Any) -> Any:
    """log(Φ(β) − Φ(α)) for α ≤ β, from the tail in which they are.

    >>> float(np.exp(log_between(-np.inf, 0.0))), float(log_between(3.0, 3.0))
    (0.5, -inf)
    """
    upper = np.asarray(alpha) > 0.0
    first, last = log_ndtr(np.where(upper, -beta, alpha)), log_ndtr(np.where(upper, -alpha, beta))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(first < last, last + np.log(-np.expm1(first - last)), -np.inf)


def restricted_moments(
    mean: Any, std: Any, low: Any, high: Any, slack: Any, root: Root | None = None, gain: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of a target within [low − slack, high + slack], and its variance as a share of s².

    Before the restriction, the target has the law N(m, s²), or its root has this law (see `Rooted`).
    """
    if root is None:
        return moments(mean, std, low, high, slack)
    rooted = root.offset > 0.0
    ends = np.where(rooted, root.of(low - slack), low), np.where(rooted, root.of(high + slack), high)
    mean, share = moments(mean, std, *ends, np.where(rooted, 0.0, slack))
    mean, variance = carried_back(root, gain, mean, share * std**2)
    return np.clip(mean, low, high), variance / std**2


def moments(mean: Any, std: Any, low: Any, high: Any, slack: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean of N(m, s²) restricted to [low − slack, high + slack], and its variance as a share of s².

    With α and β the ends in standard deviations from m, and λ = φ/(Φ(β) − Φ(α)) at either of them:

        E[z] = λ_α − λ_β,    Var[z] = 1 + α λ_α − β λ_β − E[z]²

    Both are as they were where no end is within 8 standard deviations, and the mean is brought within [low, high].

    >>> mean, share = moments(0.0, 1.0, 0.0, np.inf, 0.0)
    >>> bool(np.isclose(mean, np.sqrt(2 / np.pi))), bool(np.isclose(share, 1 - 2 / np.pi))
    (True, True)
    """
    alpha, beta = (low - slack - mean) / std, (high + slack - mean) / std
    counts = (alpha > -_FARTHEST) | (beta < _FARTHEST)
    moved = np.maximum(alpha - _OUTSIDE, 0.0) + np.minimum(beta + _OUTSIDE, 0.0)
    moved = np.where(counts, moved, 0.0)
    # φ is 0 at ±40
    a, b = np.clip(alpha - moved, -40.0, 40.0), np.clip(beta - moved, -40.0, 40.0)
    narrow = b - a < _NARROW
    log_D = log_between(np.where(narrow, -1.0, a), np.where(narrow, 1.0, b))
    at_a, at_b = np.exp(normal.log_pdf(a) - log_D), np.exp(normal.log_pdf(b) - log_D)
    first, second = at_a - at_b, 1.0 + a * at_a - b * at_b - (at_a - at_b) ** 2
    if np.any(narrow):
        exact = _narrow_moments(a, b)
        first, second = np.where(narrow, exact[0], first), np.where(narrow, exact[1], second)
    return (
        np.clip(np.where(counts, mean + std * (first + moved), mean), low, high),
        np.where(counts, np.clip(second, _LEAST, 1.0), 1.0),
    )


def _narrow_moments(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the standard normal law between two ends that are close together."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    centre, half = 0.5 * (a + b)[..., None], np.minimum(0.5 * (b - a), _NARROW)[..., None]
    at = half * nodes
    share = weights * np.exp(-at * (centre + 0.5 * at))
    share /= share.sum(-1, keepdims=True)
    mean = (share * at).sum(-1, keepdims=True)
    return (centre + mean)[..., 0], (share * (at - mean) ** 2).sum(-1)


def _nearer(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Normal score of a value from the logarithms of its two tails."""
    score = ndtri_exp(np.minimum(np.minimum(below, above), 0.0))
    return np.where(below < above, score, -score)
