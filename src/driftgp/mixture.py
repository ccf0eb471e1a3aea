"""A mixture of normal distributions: what several models together say of the next target."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import log_ndtr, logsumexp, ndtr, ndtri
from jax.typing import ArrayLike

from driftgp import normal
from driftgp.prediction import Prediction, outer_call

# Halving every eighth turn at the least, this many turns settle any bracket.
_MOST_TURNS = 400


class Mixture(Prediction):
    """A mixture Σ_k w_k N(m_k, s_k²) of normal distributions at each point.

    Each field holds K arrays of the shape of the mean, so that whatever is done to a prediction's arrays (a row taken
    out, outputs dropped) can be done to these.

    >>> import numpy as np
    >>> half, one = np.full(1, 0.5), np.ones(1)
    >>> p = Mixture(weights=(half, half), means=(-one, one), variances=(one, one), noises=(one, one))
    >>> float(p.mean[0]), float(p.variance[0]), float(p.cdf(0.0)[0])
    (0.0, 2.0, 0.5)
    """

    mean: Array
    variance: Array
    noise: Array
    weights: tuple[Array, ...]  # K, each N×P; they sum to 1
    means: tuple[Array, ...]
    variances: tuple[Array, ...]
    noises: tuple[Array, ...]

    def __init__(
        self,
        weights: Sequence[Array],
        means: Sequence[Array],
        variances: Sequence[Array],
        noises: Sequence[Array],
    ) -> None:
        """Take the members' shares, means, variances and noises.

        The mean is Σ w_k m_k, the variance Σ w_k (s_k² + (m_k − m)²): what the members expect, and how far they
        disagree. The noise is the mean of theirs.
        """
        self.weights, self.means, self.variances, self.noises = map(tuple, (weights, means, variances, noises))
        self.mean = _mixed(weights, means)
        self.variance = _mixed(weights, [s2 + (m - self.mean) ** 2 for s2, m in zip(variances, means, strict=True)])
        self.noise = _mixed(weights, noises)

    @outer_call
    def cdf(self, y: ArrayLike) -> Array:
        """Σ w_k Φ((y − m_k)/s_k)."""
        return jnp.sum(jnp.stack(self.weights) * ndtr(self._z(y)), 0)

    @outer_call
    def log_prob(self, y: ArrayLike) -> Array:
        """log Σ w_k N(y | m_k, s_k²)."""
        return self._log_density(self._z(y))

    @outer_call
    def quantile(self, q: ArrayLike) -> Array:
        """Root of the distribution function: there is no formula."""
        return self._at(ndtri(jnp.asarray(q, self.means[0].dtype)))

    @outer_call
    def to_normal(self, y: ArrayLike) -> Array:
        """From the logarithm of the nearer tail, which keeps its digits however far out y is."""
        return self._score(self._z(y))

    @outer_call
    def from_normal(self, z: ArrayLike) -> Array:
        """Root of the normal score."""
        return self._at(jnp.asarray(z, self.means[0].dtype))

    @outer_call
    def crps(self, y: ArrayLike) -> Array:
        """Σ_k w_k A(y − m_k, s_k²) − ½ Σ_jk w_j w_k A(m_j − m_k, s_j² + s_k²), with A(m, s²) the mean of |N(m, s²)|."""
        w, m, s2 = jnp.stack(self.weights), jnp.stack(self.means), jnp.stack(self.variances)  # K×N×P
        spread = _absolute_mean(m[:, None] - m[None, :], s2[:, None] + s2[None, :])  # K×K×N×P
        return jnp.sum(w * _absolute_mean(jnp.asarray(y) - m, s2), 0) - 0.5 * jnp.sum(
            w[:, None] * w[None, :] * spread, (0, 1)
        )

    @outer_call
    def scaled(self, scale: ArrayLike, shift: ArrayLike) -> "Mixture":
        """Scale and shift every member."""
        scale, shift = jnp.asarray(scale), jnp.asarray(shift)
        return Mixture(
            self.weights,
            tuple(scale * m + shift for m in self.means),
            tuple(scale**2 * s2 for s2 in self.variances),
            tuple(scale**2 * noise for noise in self.noises),
        )

    def _z(self, y: ArrayLike) -> Array:
        return (jnp.asarray(y) - jnp.stack(self.means)) / jnp.sqrt(jnp.stack(self.variances))  # K×N×P

    def _log_density(self, z: Array) -> Array:
        return self._log_sum(normal.log_pdf(z) - 0.5 * jnp.log(jnp.stack(self.variances)))

    def _log_sum(self, logs: Array) -> Array:
        return logsumexp(logs, 0, b=jnp.stack(self.weights))

    def _score(self, z: Array) -> Array:
        below, above = self._log_sum(log_ndtr(z)), self._log_sum(log_ndtr(-z))
        nearer = _lower_score(jnp.minimum(below, above))
        return jnp.where(below < above, nearer, -nearer)

    def _at(self, target: Array) -> Array:
        """Newton's method on the normal score, which is nearly straight; halving where it leaves the bracket.

        The root lies between the members' own values of that score.
        """
        target = jnp.broadcast_to(target, jnp.broadcast_shapes(target.shape, self.means[0].shape))
        values = jnp.stack([m + jnp.sqrt(s2) * target for m, s2 in zip(self.means, self.variances, strict=True)])
        low, high = jnp.min(values, 0), jnp.max(values, 0)
        tolerance = 8.0 * jnp.finfo(values.dtype).eps * (jnp.abs(low) + jnp.abs(high) + high - low)

        def unfinished(carry: tuple[Array, Array, Array, Array]) -> Array:
            low, high, _, turn = carry
            return jnp.any(high - low > tolerance) & (turn < _MOST_TURNS)

        def narrow(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            low, high, y, turn = carry
            z = self._z(y)
            score = self._score(z)
            low, high = jnp.where(score <= target, y, low), jnp.where(score >= target, y, high)
            step = (target - score) * jnp.exp(normal.log_pdf(score) - self._log_density(z))
            # a little past the root, so that the next turn closes the bracket from the other side
            newton = y + step + jnp.sign(step) * 0.25 * tolerance
            inside = (newton > low) & (newton < high) & (turn % 8 != 7)
            return low, high, jnp.where(inside, newton, 0.5 * (low + high)), turn + 1

        start = (low, high, 0.5 * (low + high), jnp.zeros((), jnp.int32))
        low, high, _, _ = lax.while_loop(unfinished, narrow, start)
        return jnp.where(jnp.isfinite(target), 0.5 * (low + high), target)


def _mixed(weights: Sequence[Array], values: Sequence[Array]) -> Any:
    return sum(w * value for w, value in zip(weights, values, strict=True))


def _absolute_mean(mean: Array, variance: Array) -> Array:
    """Mean of |x| for x ~ N(m, s²): 2s φ(m/s) + m (2Φ(m/s) − 1)."""
    std = jnp.sqrt(variance)
    return 2.0 * std * normal.pdf(mean / std) + mean * (2.0 * ndtr(mean / std) - 1.0)


def _lower_score(log_p: Array) -> Array:
    """The z ≤ 0 for which log Φ(z) = log_p: Newton's method from the tail's first term, −√(−2 log p)."""

    def newton(_: int, z: Array) -> Array:
        log_cdf = log_ndtr(z)
        return jnp.minimum(z - (log_cdf - log_p) * jnp.exp(log_cdf - normal.log_pdf(z)), 0.0)

    z = -jnp.sqrt(jnp.maximum(-2.0 * (log_p + jnp.log(2.0)), 0.0))
    return lax.fori_loop(0, 6, newton, z)
