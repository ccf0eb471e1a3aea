"""How wide a law should be in this row: a factor g for its scale, learned from the scores of earlier targets.

    log g = w · ψᵀφ(x)

φ are features known before the target: from the inputs, the mean and the scale of the law, and the last scores. ψ
follows from recursive least squares with forgetting, so that scores have their usual size in every row. With u the
normal score that a target would have if g counted in full,

    ψ ← ψ + k r,   r = min(1.25 |u|, 4) − 1,   k = C φ / (λ + φᵀC φ),   C ← (C − k φᵀC) / λ

E|u| = 0.8 if u is standard normal, so that r has mean 0 there. r is at most 3, even for a wild target. w is the
probability that g is better than 1, by the likelihoods of both so far. If g does not help, w falls to 0.

Every feature is c T_k(z/c), a Chebyshev polynomial of a value z limited to |z| ≤ c. z is centred and scaled by the mean
and spread of some 2000 recent samples, so nothing depends on the user's units. Polynomials of the sine and cosine of an
hour are the next harmonics of the day.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from driftgp.contract.protocol import LARGEST
from driftgp.contract.records import View, floats
from driftgp.members.heads import packed, packed_size, unpacked
from driftgp.models.model import Units
from driftgp.wrappers.standardize import ROUNDING, Moments, count

FEWEST, MOST = 10, 4096  # features: at least those of the law, and one for the inputs
_LAW = 9  # features besides those of the inputs
_DEGREES = 3
_WIDTH = 1.75  # c, in spreads
_FORGETTING = 0.9995  # λ, and that of the units
_RIDGE = 50.0  # information of the prior about each feature, in samples
_FIRST = 10.0  # samples before which a value has no units yet
_NEAREST = 0.1  # a size is at least this share of the spread of the means
_BOUND = 2.3  # |log g|: a factor of ten
_USUAL, _FARTHEST = 1.25, 4.0  # 1/E|u|, and where a score ends
_CAP = 9.0  # of u² in a likelihood, as in calibrate.py
_MEMORY = 0.998  # of the likelihoods
_SUREST = 10.0  # |log odds|
_GAINS = np.array([0.2, 0.02])  # of the averages of |u|, over 5 and 50 samples
_SHARPNESS = np.array([1.5, 3.0])  # of their logarithms, which then have spreads near 1
_LEAST = 0.05  # and no average counts as less than this share of the usual one
_LONGEST = 1e-6  # least power of λ: after a pause this long everything is forgotten
_FARTHEST_OUT = 100.0  # of ψ
_FAR = LARGEST**2  # of the units of the values


class RowScaleState(View):
    """Units of the values, ψ with its covariance, and averages of the last scores."""

    weight: np.ndarray = floats("C", low=0.0, high=_FAR)  # of each recent value: its weight, mean and variance
    mean: np.ndarray = floats("C", low=-_FAR, high=_FAR)
    variance: np.ndarray = floats("C", low=0.0, high=_FAR)
    psi: np.ndarray = floats("P", "F", low=-_FARTHEST_OUT, high=_FARTHEST_OUT)
    covariance: np.ndarray = floats(
        "P", "H", low=-1.001 / _RIDGE, high=1.001 / _RIDGE
    )  # C of each output, its upper triangle row after row
    recent: np.ndarray = floats(2, "P", low=0.0, high=_FARTHEST)  # averages of |u|
    log_odds: np.ndarray = floats("P", low=-_SUREST, high=_SUREST)  # of g against 1


@dataclass(frozen=True)
class RowScale:
    """The scale model for at most this number of features.

    Args:
        features: at most. Nine are of the law; then come the inputs, their second and their third polynomials, as many
            as there is room for. Inputs share places where there are too many of them.
    """

    features: int

    def places(self, inputs: int) -> tuple[int, ...]:
        """How many features there are of each degree for D inputs."""
        room = self.features - _LAW
        places = min(inputs, room)
        return tuple(min(max(room - degree * places, 0), places) for degree in range(_DEGREES))

    def dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state."""
        F = _LAW + sum(self.places(inputs))
        return RowScaleState.dtype(C=inputs + 1 + 3 * outputs, P=outputs, F=F, H=packed_size(F))

    # ---- the steps ---------------------------------------------------------------------------------------------------

    def start(self, state: RowScaleState, X: np.ndarray, y: np.ndarray) -> None:
        """Take the units from a batch, with its targets as the means; g is 1 at first."""
        outputs, F = state.psi.shape
        state.covariance[...] = packed(np.eye(F) / _RIDGE)
        state.recent[...] = 1.0 / _USUAL
        for x, target in zip(X, y, strict=True):
            values = self._values(state, x[None], target[None], np.full((1, outputs), np.nan))[0]
            self._count(state, values, np.isfinite(target))

    def log_factor(self, state: RowScaleState, X: np.ndarray, held: np.ndarray) -> np.ndarray:
        """log g for forecasts of the held model at the rows of X, N×P."""
        phi = self._features(state, self._of(state, X, held), state.recent)
        return expit(state.log_odds) * np.clip(_times(phi, state.psi), -_BOUND, _BOUND)

    def learn(
        self,
        state: RowScaleState,
        x: np.ndarray,
        held: np.ndarray,
        recent: np.ndarray,
        u: np.ndarray,
        log_g: np.ndarray,
        observed: np.ndarray,
        elapsed: float,
    ) -> None:
        """Follow one sample.

        Args:
            state: to be changed.
            x: inputs, D.
            held: the held model's forecast that was issued, 1.
            recent: the averages as they were then, 2×P.
            u: size of each target's normal score under the final law that was issued, P.
            log_g: logarithm of the factor that was issued, P.
            observed: which targets are there, P.
            elapsed: time since the last sample.
        """
        values = self._of(state, x[None], held)
        phi = self._features(state, values, recent)[0]  # P×F
        raw = _times(phi, state.psi)
        whole = np.clip(raw, -_BOUND, _BOUND)  # log g with w = 1, by what is known now
        score = u * np.exp(log_g - whole)
        pull = np.minimum(_USUAL * score, _FARTHEST) - 1.0
        outwards = (np.abs(raw) > _BOUND) & (pull * raw > 0.0)
        step = np.where(observed & ~outwards, pull, 0.0)
        for p in range(len(step)):
            self._regress(state, p, phi[p] * observed[p], step[p], elapsed)
        better = -whole - 0.5 * (np.minimum(score**2, _CAP) - np.minimum((u * np.exp(log_g)) ** 2, _CAP))
        log_odds = _MEMORY**elapsed * state.log_odds + np.where(observed, better, 0.0)
        state.log_odds[...] = np.clip(log_odds, -_SUREST, _SUREST)
        moved = state.recent + _GAINS[:, None] * (np.minimum(u, _FARTHEST) - state.recent)
        state.recent[...] = np.where(observed, moved, state.recent)
        self._count(state, values[0], observed)

    def rescale(self, state: RowScaleState, units: Units) -> None:
        """Values of targets and inputs in other units; logarithms of sizes move by that of the unit."""
        D, P = len(units.x_centre), len(units.y_centre)
        centre, scale = np.zeros(len(state.mean)), np.ones(len(state.mean))
        centre[:D], scale[:D] = units.x_centre, units.x_scale
        centre[D + 1 : D + 1 + P], scale[D + 1 : D + 1 + P] = units.y_centre, units.y_scale
        centre[D + 1 + P :] = np.tile(np.log(units.y_scale), 2)
        known = state.weight > 0.0
        state.mean[...] = np.where(known, np.clip((state.mean - centre) / scale, -LARGEST, LARGEST), 0.0)
        state.variance[...] = np.clip(state.variance / scale**2, 0.0, LARGEST)

    def move_level(self, state: RowScaleState, step: np.ndarray) -> None:
        """The means of the laws so far, had all targets been larger by a step."""
        means = slice(len(state.mean) - 3 * len(step), len(state.mean) - 2 * len(step))
        state.mean[means] = np.where(state.weight[means] > 0.0, state.mean[means] + step, 0.0)

    # ---- values and features -----------------------------------------------------------------------------------------

    def _of(self, state: RowScaleState, X: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Values of N rows with the held model's forecasts of them, N×C."""
        return self._values(state, X, held["mean"], held["variance"])

    def _values(self, state: RowScaleState, X: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Inputs, the share of them that is missing, and mean, log size and log scale of each law; NaN for none."""
        missing = np.mean(~np.isfinite(X), 1, keepdims=True)
        outputs = mean.shape[1]
        of_means = np.sqrt(state.variance[X.shape[1] + 1 :][:outputs])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            size = np.where(of_means > 0.0, np.log(np.abs(mean) + _NEAREST * of_means), np.nan)
            spread = 0.5 * np.log(variance)
        Z = np.concatenate([X, missing, mean, size, spread], 1)
        return np.where(np.isfinite(Z), np.clip(Z, -LARGEST, LARGEST), np.nan)

    def _features(self, state: RowScaleState, Z: np.ndarray, recent: np.ndarray) -> np.ndarray:
        """φ of N rows for each output, N×P×F."""
        N, P = len(Z), recent.shape[1]
        D = Z.shape[1] - 1 - 3 * P
        std = _spread(state)
        known = (state.weight >= _FIRST) & np.isfinite(std)
        z = np.where(known & np.isfinite(Z), (Z - state.mean) / np.where(known, std, 1.0), 0.0)  # N×C
        places = self.places(D)
        shared = _shared(z[:, :D], places[0])
        late = _SHARPNESS[:, None] * np.log(_USUAL * recent + _LEAST)  # 2×P
        missing, mean, size, spread = z[:, D], z[:, D + 1 :][:, :P], z[:, D + 1 + P :][:, :P], z[:, D + 1 + 2 * P :]
        phi = np.empty((N, P, _LAW + sum(places)))
        phi[..., 0] = 1.0
        phi[..., 1:4] = np.moveaxis(_polynomials(mean), 0, -1)
        phi[..., 4], phi[..., 5] = _held_in(size), _held_in(spread)
        phi[..., 6:8] = _held_in(late).T
        phi[..., 8] = _held_in(missing)[:, None]
        of_inputs = [degree[:, :room] for degree, room in zip(_polynomials(shared), places, strict=True)]
        phi[..., _LAW:] = np.concatenate(of_inputs, 1)[:, None]
        return phi

    def _count(self, state: RowScaleState, values: np.ndarray, observed: np.ndarray) -> None:
        """Count the values of a sample for their units: those of a law if its target is there."""
        of_inputs = np.full(len(values) - 3 * len(observed), observed.any())
        z = np.where(np.concatenate([of_inputs, np.tile(observed, 3)]), values, np.nan)
        moments, scale = Moments(state.weight, state.mean, state.variance), np.minimum(_spread(state), LARGEST)
        state.weight[...], state.mean[...], state.variance[...] = count(moments, z, _FORGETTING, scale)

    # ---- recursive least squares -------------------------------------------------------------------------------------

    def _regress(self, state: RowScaleState, p: int, phi: np.ndarray, step: float, elapsed: float) -> None:
        """Follow one sample with the ψ of one output; φ = 0 where time passes only."""
        C = unpacked(state.covariance[p], len(phi))
        keep = max(_FORGETTING**elapsed, _LONGEST)
        k = C @ phi
        total = keep + max(float(phi @ k), 0.0)
        state.psi[p] = np.clip(state.psi[p] + k * (step / total), -_FARTHEST_OUT, _FARTHEST_OUT)
        # forgetting makes C grow in directions without data: rows and columns are scaled back to the limit of the ridge
        widened = (np.diag(C) - k**2 / total) / keep
        back = np.where(widened > 1.0 / _RIDGE, np.sqrt(1.0 / _RIDGE / np.maximum(widened, 1.0 / _RIDGE)), 1.0)
        state.covariance[p] = packed((C - np.outer(k, k / total)) * np.outer(back, back / keep))


def _times(phi: np.ndarray, psi: np.ndarray) -> np.ndarray:
    """ψᵀφ of each output, …×P."""
    return np.sum(phi * psi, -1)


def _spread(state: RowScaleState) -> np.ndarray:
    """Standard deviation of each value that varies; infinite for the others."""
    std = np.sqrt(state.variance)
    return np.where(std > ROUNDING * np.abs(state.mean), std, np.inf)


def _shared(z: np.ndarray, places: int) -> np.ndarray:
    """Inputs (N×D) in this number of places: sums of several, with the spread of one, where there are more inputs."""
    sums = np.stack([np.sum(z[:, place::places], 1) for place in range(places)], 1)
    return sums / np.sqrt([len(range(place, z.shape[1], places)) for place in range(places)])


def _held_in(z: Any) -> Any:
    return np.clip(z, -_WIDTH, _WIDTH)


def _polynomials(z: np.ndarray) -> np.ndarray:
    """c T_k(z/c) for k = 1, 2, 3, where |z| ≤ c at most."""
    t = _held_in(z) / _WIDTH
    return _WIDTH * np.stack([t, 2.0 * t**2 - 1.0, t * (4.0 * t**2 - 3.0)])
