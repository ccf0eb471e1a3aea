"""Recursive least squares: linear regressions on the same features, each with its own rate of forgetting.

Head h explains a target by w_hᵀφ for features φ (F) and forgets at rate λ_h. With C = (Σ λ^age φφᵀ + q I)⁻¹, q the
variance of the noise over that of a weight, a sample (φ, y) changes

    g = C φ,   s = φᵀ g,   w ← w + g (y − wᵀφ) / (λ + s),   C ← (C − g gᵀ / (λ + s)) / λ

and a new target has mean wᵀφ and variance σ² (1 + s), with σ² the recent mean of (y − wᵀφ)² / (1 + s). Changes of C
wait until there are B of them, and are then applied together in one pass through memory. With C₀ the matrix before
these changes,

    C = (C₀ − Σ_j γ_j g_j g_jᵀ) / κ,   and a sample adds g = C φ with γ = κ / (λ + s), and then κ ← κ λ
"""

from dataclasses import dataclass

import numpy as np

from driftgp.contract.protocol import Units
from driftgp.contract.records import View, floats, number, whole

# Errors over which the noise is averaged.
_NOISE_MEMORY = 100.0
# In a direction without data, forgetting makes C grow. This limits C to a multiple of its first value.
_GROWTH = 1e4
# A variance stays above zero.
LEAST = float(np.finfo(float).tiny) ** 0.5
# Largest number that a step may leave, so that products of two such numbers are finite.
LARGEST = 1e150
_LEAST_RATE = 0.5  # of forgetting
WAITING = 8  # changes of a large C that are carried out together


class HeadsState(View):
    """H regressions on F features."""

    C: np.ndarray = floats("H", "packed", low=-LARGEST, high=LARGEST)  # C₀: upper triangles, row after row
    g: np.ndarray = floats("H", "B", "F", low=-LARGEST, high=LARGEST)  # the changes of C that wait
    gain: np.ndarray = floats("H", "B", low=0.0, high=1.0 / _LEAST_RATE)  # γ
    keep: np.ndarray = floats("H")  # κ
    waiting: int = whole()  # how many there are
    trace: np.ndarray = floats("H", low=-LARGEST, high=LARGEST)  # of C
    w: np.ndarray = floats("H", "F", "P", low=-LARGEST, high=LARGEST)
    noise: np.ndarray = floats("H", "P", low=0.0, high=LARGEST**2)  # σ²
    errors: float = number(low=1.0, high=_NOISE_MEMORY)  # how many errors σ² stands for

    def check(self, path: str = "") -> None:
        """Refuse numbers that no step could have left."""
        super().check(path)
        if self.waiting >= self.g.shape[1]:
            raise ValueError(f"{path}waiting must lie in [0, {self.g.shape[1]}); got {self.waiting}")
        if not np.all((self.keep >= _LEAST_RATE**self.waiting) & (self.keep <= 1.0)):
            raise ValueError(f"{path}keep must lie in [0.5, 1] for each change that waits; got {self.keep}")


def packed_size(features: int) -> int:
    """Numbers in the upper triangle of an F×F matrix."""
    return features * (features + 1) // 2


def packed(A: np.ndarray) -> np.ndarray:
    """Upper triangle of a symmetric matrix, row after row."""
    triangle: np.ndarray = A[np.triu_indices(len(A))]
    return triangle


def unpacked(triangle: np.ndarray, features: int) -> np.ndarray:
    """The symmetric matrix of an upper triangle."""
    A = np.zeros((features, features))
    A[np.triu_indices(features)] = triangle
    return A + np.triu(A, 1).T


@dataclass(frozen=True)
class Heads:
    """Rates of forgetting λ (H), and the prior to which the regressions return.

    With `leak`, the prior replaces what is forgotten: at each sample one of the features is seen once more with the
    target 0. Its weight adds up to (1 − λ) q per feature and sample. C then stays below its first value in every
    direction, even in directions that are long without data.

    With `unit`, the prior variance of a weight is 1 for any noise; without, it is σ²/q.
    """

    rates: tuple[float, ...]
    leak: bool = False
    unit: bool = False

    def start(self, state: HeadsState, q: float, noise: float) -> None:
        """The prior: w = 0, C = I/q."""
        F = state.w.shape[1]
        state.w[...], state.waiting = 0.0, 0
        for h in range(len(self.rates)):
            self.put(state, h, np.eye(F) / q)
        state.noise[...], state.errors = noise, 1.0

    def settle(self, state: HeadsState, h: int) -> np.ndarray:
        """C of a head with all changes carried out, F×F."""
        C, g, gain = unpacked(state.C[h], state.w.shape[1]), state.g[h, : state.waiting], state.gain[h, : state.waiting]
        return (C - (g.T * gain) @ g) / state.keep[h]

    def put(self, state: HeadsState, h: int, C: np.ndarray) -> None:
        """Give a head another C, for which no change waits."""
        state.C[h], state.trace[h] = packed(C), np.trace(C)
        state.g[h], state.gain[h], state.keep[h] = 0.0, 0.0, 1.0

    def forecast(self, state: HeadsState, Phi: np.ndarray, q: float) -> np.ndarray:
        """Mean, variance and noise of new targets at features Phi (N×F), by every head: N×H×3×P.

        A head that forgets becomes less certain about features that were long absent, such as a holiday. Its
        uncertainty is limited to that of the start: φᵀCφ is at most φᵀφ/q. With weights of unit variance, σ² φᵀCφ is at
        most φᵀφ too: on exact targets q is nearly 0, and the recent σ² may be far above it.
        """
        made = np.empty((len(Phi), len(self.rates), 3, state.noise.shape[1]))
        for h in range(len(self.rates)):
            s = np.einsum("nf,nf->n", Phi @ self.settle(state, h), Phi)
            made[:, h, 0] = Phi @ state.w[h]
            least = np.maximum(q, state.noise[h]) if self.unit else q  # P, or one number
            s = np.clip(s[:, None], 0.0, np.einsum("nf,nf->n", Phi, Phi)[:, None] / least)
            made[:, h, 1] = state.noise[h] * (1.0 + s)
            made[:, h, 2] = state.noise[h]
        made[:, :, 1:] = np.maximum(made[:, :, 1:], LEAST)
        return made

    def joint(self, state: HeadsState, Phi: np.ndarray) -> np.ndarray:
        """Covariance σ² (φᵢᵀ C φⱼ + [i = j]) of new targets at features Phi (N×F) by the first head, P×N×N."""
        inner = Phi @ self.settle(state, 0) @ Phi.T + np.eye(len(Phi))
        return state.noise[0][:, None, None] * inner

    def learn(self, state: HeadsState, phi: np.ndarray, y: np.ndarray, q: float, turn: int) -> np.ndarray:
        """Learn one sample, the `turn`-th; return the errors y − wᵀφ, H×P."""
        F, last = len(phi), state.waiting
        state.errors = min(state.errors + 1.0, _NOISE_MEMORY)
        errors = np.empty_like(state.noise)
        for h, rate in enumerate(self.rates):
            C, w = self.settle(state, h), state.w[h]
            if self.leak:
                i, weight = turn % F, F * (1.0 - rate) * q
                column, share = C[i].copy(), weight / (1.0 + weight * C[i, i])
                w -= share * np.outer(column, w[i])
                C -= share * np.outer(column, column)
                self.put(state, h, C)
            g = C @ phi
            s = phi @ g
            if not (np.isfinite(s) and s >= 0.0):  # rounding has made C indefinite: begin again
                C = np.eye(F) / q
                self.put(state, h, C)
                g = C @ phi
                s = phi @ g
            e = np.clip(y - phi @ w, -LARGEST, LARGEST)  # its square has to be finite
            keep = rate if state.trace[h] <= rate * _GROWTH * F / q else 1.0
            gain = 1.0 / (keep + s)
            w += gain * np.outer(g, e)
            state.noise[h] += (e**2 / (1.0 + s) - state.noise[h]) / state.errors
            state.g[h, last], state.gain[h, last] = g, gain * state.keep[h]
            state.keep[h] *= keep
            state.trace[h] = (state.trace[h] - gain * (g @ g)) / keep
            errors[h] = e
        state.waiting = last + 1
        if state.waiting == state.g.shape[1]:
            self._carry_out(state)
        return errors

    def _carry_out(self, state: HeadsState) -> None:
        for h in range(len(self.rates)):
            self.put(state, h, self.settle(state, h))
        state.waiting = 0

    def rescale(self, state: HeadsState, u: np.ndarray, a: np.ndarray, q: float, units: Units) -> None:
        """Features (φ_i − u_i φ_0)/a_i for i = 1 … len(u) and a constant φ_0 = 1, and targets in other units.

        wᵀφ stays what it was, in the new units: w_0 ← w_0 + Σ u_i w_i, w_i ← a_i w_i, and C ← E C Eᵀ with the same E.
        If C exceeds its limit in the new units, the regression returns to the prior.
        """
        changed = slice(1, 1 + len(u))
        for h in range(len(self.rates)):
            C, w = self.settle(state, h), state.w[h].copy()
            w[0] += u @ w[changed]
            w[changed] *= a[:, None]
            C[0] += u @ C[changed]
            C[:, 0] += C[:, changed] @ u
            C[changed] *= a[:, None]
            C[:, changed] *= a
            w /= units.y_scale
            w[0] -= units.y_centre / units.y_scale
            if not np.trace(C) <= _GROWTH * len(C) / q:
                C = np.eye(len(C)) / q
            self.put(state, h, C)
            state.w[h] = w
        state.noise /= units.y_scale**2
