"""E-detectors: evidence of every row that something has changed, and its sum, which is rarely large if nothing has.

Every row gives evidence e_t ≥ 0 whose mean, given the past, is at most 1 while nothing has changed. Its
Shiryaev–Roberts sum is an e-detector (Shin, Ramdas and Rinaldo 2024):

    M_t = (M_{t−1} + 1) e_t,   alarm if M_t ≥ c,   then M = 0

M_t − t is a supermartingale, so n rows of any distribution have at most n/c false alarms in the mean.
A mean of detectors is a detector. Four kinds with the threshold c = 4 · patience each have together at most one false
alarm in `patience` rows.

The evidence comes from p-values: the rank of a row's score s among the scores since the last alarm. These p-values are
exactly uniform and independent while the scores are exchangeable, even if the scores are not calibrated. Scores are
counted in bins of 0.1, and ties are broken at random, so that memory is bounded and nothing is approximate (smoothed
conformal p-values: Vovk, Gammerman and Shafer 2005). With u = Φ⁻¹(p):

    level     exp(δu − δ²/2), δ = ±0.5, ±1, ±2: the targets lie above or below what is forecast
    noise     exp(u² (1 − 1/s²)/2)/s, s = 0.5, 1.5, 2, 3: they scatter more, or less, around it
    input     κ p^(κ−1), κ = 0.1, 0.3, 0.5, with p the rank of how far an input is outside the range of all before it
    error     q/0.05 for a target outside its 95 % interval and (1 − q)/0.95 for one inside, q = 0.1, 0.2, 0.4: the
              intervals hold fewer targets than they promise

A model that follows quickly is wrong for a few rows only. For these, level and noise also bet on bursts: a share a of
the next rows is among the extreme share ε of all n since the last alarm,

    a/ε if p ≤ ε, else (1 − a)/(1 − ε),   a = 0.7, ε = max(1/50, 4/n)   and   a = 0.9, ε = max(1/500, 4/n)

with p from above and from below for level, from both sides for noise. The most extreme of n rows has a probability of
1/n. So no test that holds for every distribution can alarm at a single row before n reaches c.

Level, noise and input need exchangeable scores or inputs; error needs intervals that hold what they promise. Scores
that depend on one another (errors that last, noise that follows the hour) are not exchangeable, and may raise more
alarms.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from driftgp.alarms.stored import array_from

Kind = Literal["level", "noise", "input", "error"]
KINDS: tuple[Kind, ...] = ("level", "noise", "input", "error")

_SHIFTS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)  # δ
_SPREADS = (0.5, 1.5, 2.0, 3.0)  # s
_BURSTS = ((0.7, 0.02), (0.9, 0.002))  # a, ε
_OF_A_BURST, _WIDEST = 4.0, 0.3  # rows of a burst that ε leaves room for, and the largest ε
_POWERS = (0.1, 0.3, 0.5)  # κ
_SHARES = (0.1, 0.2, 0.4)  # q
_REACH = 1.959963984540054  # of the 95 % interval: a target with a larger |z| is outside
_BIN, _FARTHEST = 0.1, 8.0  # of scores
_BINS = round(2 * _FARTHEST / _BIN) + 1
_LEAST = 1e-12  # p

_FEATURES = ("u", "u²", "up 0", "down 0", "far 0", "up 1", "down 1", "far 1", "outside", "log p")


class Part(NamedTuple):
    """One detector: log e = base + slope · feature, and 0 in rows without a target, or without a range of inputs."""

    kind: Kind
    direction: str  # "up" or "down" for level and noise, else ""
    feature: str
    base: float = 0.0
    slope: float = 1.0


def _outside(q: float) -> Part:
    """A share q is outside, where 0.05 should be."""
    inside = float(np.log((1.0 - q) / 0.95))
    return Part("error", "", "outside", inside, float(np.log(q / 0.05)) - inside)


def _spread(s: float) -> Part:
    return Part("noise", "up" if s > 1.0 else "down", "u²", -float(np.log(s)), 0.5 * (1.0 - 1.0 / s**2))


PARTS = (
    *(Part("level", "up" if d > 0.0 else "down", "u", -0.5 * d * d, d) for d in _SHIFTS),
    *(Part("level", side, f"{side} {place}") for place in range(len(_BURSTS)) for side in ("up", "down")),
    *map(_spread, _SPREADS),
    *(Part("noise", "up", f"far {place}") for place in range(len(_BURSTS))),
    *(Part("input", "", "log p", float(np.log(k)), k - 1.0) for k in _POWERS),
    *map(_outside, _SHARES),
)
_BASE, _SLOPE = (np.array([getattr(part, name) for part in PARTS]) for name in ("base", "slope"))
_FEATURE = np.array([_FEATURES.index(part.feature) for part in PARTS])
_OF_INPUTS = np.array([part.kind == "input" for part in PARTS])
_FIRST = np.array([[part.kind for part in PARTS].index(kind) for kind in KINDS])  # part of each kind
_COUNT = np.diff(_FIRST, append=len(PARTS))


class Found(NamedTuple):
    """A kind that has reached the threshold."""

    place: int  # of the row, among those that were taken in together
    kind: Kind
    direction: str
    since: int
    M: float


def log_evidence(p: np.ndarray, total: np.ndarray, outside: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Log evidence of each part, N×parts.

    Args:
        p: rank of each score, N.
        total: number of scores among which it is.
        outside: whether the target is outside its 95 % interval.
        rank: rank of the excess.
    """
    u = ndtri(p)
    features = [u, u * u]
    for a, least in _BURSTS:
        epsilon = np.minimum(np.maximum(least, _OF_A_BURST / total), _WIDEST)
        hit, miss = np.log(a / epsilon), np.log((1.0 - a) / (1.0 - epsilon))
        features += [np.where(tail <= epsilon, hit, miss) for tail in (1.0 - p, p, 2.0 * np.minimum(p, 1.0 - p))]
    features += [outside, np.log(rank)]
    return np.asarray(_BASE + _SLOPE * np.stack(features, 1)[:, _FEATURE])


class Counts:
    """Scores in bins, those of each track by themselves, and the smoothed ranks of the next ones among them."""

    def __init__(self, counts: np.ndarray) -> None:
        """Go on from these counts, tracks × bins."""
        self.counts = counts

    def ranks(self, track: np.ndarray, place: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rank of each score in its track, and the number of scores among which it is; both include itself.

        Ranks are uniform in (0, 1] while the scores are exchangeable; u breaks ties.
        """
        earlier = np.tri(len(track), k=-1, dtype=bool)
        if len(self.counts) > 1:
            earlier &= track[:, None] == track
        below = np.cumsum(self.counts, 1)[track, place] - self.counts[track, place]
        below += (earlier & (place[:, None] > place)).sum(1)
        same = self.counts[track, place] + (earlier & (place[:, None] == place)).sum(1) + 1
        total = self.counts.sum(1)[track] + earlier.sum(1) + 1
        np.add.at(self.counts, (track, place), 1)
        return (below + u * same) / total, total

    def ranks_of_scores(self, track: np.ndarray, score: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ranks of scores from below."""
        clipped = np.minimum(np.maximum(score, -_FARTHEST), _FARTHEST)
        return self.ranks(track, np.rint((clipped + _FARTHEST) / _BIN).astype(np.int64), u)

    def ranks_of_excesses(self, track: np.ndarray, excess: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Ranks of how far out rows are, from above: the farther out, the lower the rank."""
        place = np.rint(10.0 * np.log1p(1e3 * np.maximum(excess, 0.0)))
        return self.ranks(track, _BINS - 1 - np.minimum(place, _BINS - 1).astype(np.int64), u)[0]


class Detectors:
    """All parts for sequences of scores: row i belongs to track i modulo their number."""

    def __init__(self, tracks: int) -> None:
        """Start without any rows."""
        self.drawn = np.zeros(tracks, np.int64)  # random numbers so far
        self.restart()

    def restart(self) -> None:
        """Forget the usual values."""
        h = len(self.drawn)
        self.scores, self.excesses = Counts(np.zeros((h, _BINS), np.int64)), Counts(np.zeros((h, _BINS), np.int64))
        self.M = np.zeros((h, len(PARTS)))
        self.W = np.zeros((h, len(PARTS)))  # log evidence since each part's change would have begun
        self.since = np.zeros((h, len(PARTS)), np.int64)

    def weigh(self, row: int, score: np.ndarray, z: np.ndarray, excess: np.ndarray, threshold: float) -> list[Found]:
        """Take the evidence of rows, up to the first one at which a kind reaches the threshold; those that do.

        Args:
            row: number of the first row.
            score: how far off each target is, by which rows are ranked; NaN without a target.
            z: the normal scores of the targets under the laws that were issued.
            excess: how far the inputs are outside their range; NaN if that is not known.
            threshold: c.
        """
        N, h = len(score), len(self.drawn)
        numbers = row + np.arange(N)
        log_e, draws = self._log_evidence(numbers % h, score, z, excess)
        M, W, since = self._sums(row, log_e)
        for place in np.flatnonzero(M[h : h + N].max(1) >= threshold).tolist():
            found = _reached(place, M[h + place], since[h + place], threshold)
            if found:
                np.add.at(self.drawn, numbers[: place + 1] % h, draws[: place + 1])
                return found
        np.add.at(self.drawn, numbers % h, draws)
        after = (row + N + np.arange(h)) % h
        self.M[after], self.W[after], self.since[after] = M[N : N + h], W[N : N + h], since[N : N + h]
        return []

    def _log_evidence(
        self, track: np.ndarray, score: np.ndarray, z: np.ndarray, excess: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Log evidence of rows, N×parts, 0 without a target or a range of inputs; and the random numbers of each."""
        scored, ranged = ~np.isnan(score), ~np.isnan(excess)
        draws = scored.astype(np.int64) + ranged
        drawn = self.drawn[track] + _before(draws, len(self.drawn)) + 1
        p, rank, total = np.full((3, len(track)), 0.5)
        p[scored], total[scored] = self.scores.ranks_of_scores(track[scored], score[scored], _uniform(drawn[scored]))
        u = _uniform((drawn + scored)[ranged])
        rank[ranged] = self.excesses.ranks_of_excesses(track[ranged], excess[ranged], u)
        p = np.minimum(np.maximum(p, _LEAST), 1.0 - _LEAST)
        log_e = log_evidence(p, total, np.abs(z) > _REACH, np.maximum(rank, _LEAST))
        return np.where(np.where(_OF_INPUTS, ranged[:, None], scored[:, None]), log_e, 0.0), draws

    def _sums(self, row: int, log_e: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """M, W and `since` before each of these rows and after them; row i + h is one step after row i."""
        (N, parts), h = log_e.shape, len(self.drawn)
        steps = -(-N // h)
        turn = (row + np.arange(h)) % h
        log_e = np.concatenate([log_e, np.zeros((steps * h - N, parts))]).reshape(steps, h, parts)
        M, W = np.empty((2, steps + 1, h, parts))
        M[0], W[0] = self.M[turn], self.W[turn]
        for before, now, e in zip(M[:-1], M[1:], np.exp(log_e), strict=True):
            np.multiply(before + 1.0, e, out=now)
        for before, now, more in zip(W[:-1], W[1:], log_e, strict=True):
            np.add(before, more, out=now)
            np.maximum(now, 0.0, out=now)
        numbers = row + np.arange(steps * h).reshape(steps, h, 1)
        began = np.concatenate([self.since[turn][None], np.where(W[:-1] == 0.0, numbers, 0)])
        since = np.maximum.accumulate(began)
        return M.reshape(-1, parts), W.reshape(-1, parts), since.reshape(-1, parts)

    def means(self) -> np.ndarray:
        """M of each kind, the mean of its parts: the largest of all tracks."""
        return np.max([_means(M) for M in self.M], 0)

    # ---- as JSON

    def to_json(self) -> list[dict[str, Any]]:
        """Everything that is needed to continue, track by track."""
        arrays = {name: array.tolist() for name, array in self._arrays().items()}
        return [dict(zip(arrays, values, strict=True)) for values in zip(*arrays.values(), strict=True)]

    def restore(self, stored: list[dict[str, Any]]) -> None:
        """Take back what `to_json` gave."""
        if len(stored) != len(self.drawn):
            raise ValueError(f"tracks must be {len(self.drawn)} of the alarms' detectors; got {len(stored)}")
        for name, array in self._arrays().items():
            array[...] = array_from([track[name] for track in stored], array.shape, array.dtype.type)
        if not (np.isfinite([self.M, self.W]).all() and min(self.M.min(), self.W.min()) >= 0.0):
            raise ValueError("evidence of alarms must be finite and not negative")

    def _arrays(self) -> dict[str, np.ndarray]:
        counts = {"scores": self.scores.counts, "excesses": self.excesses.counts}
        return {"drawn": self.drawn, **counts, "M": self.M, "W": self.W, "since": self.since}


def _means(M: np.ndarray) -> np.ndarray:
    """M of each kind: the mean of its parts."""
    return np.asarray(np.add.reduceat(M, _FIRST) / _COUNT)


def _reached(place: int, M: np.ndarray, since: np.ndarray, threshold: float) -> list[Found]:
    """The kinds that reach the threshold in a row; the strongest part says since when, and in which direction."""
    found = []
    for kind, first, count, mean in zip(KINDS, _FIRST.tolist(), _COUNT.tolist(), _means(M).tolist(), strict=True):
        if mean >= threshold:
            best = first + int(np.argmax(M[first : first + count]))
            found.append(Found(place, kind, PARTS[best].direction, int(since[best]), mean))
    return found


def _before(counts: np.ndarray, tracks: int) -> np.ndarray:
    """Of each row, the sum of the earlier counts in its track.

    >>> _before(np.array([1, 2, 3, 4, 5]), 2).tolist()
    [0, 0, 1, 2, 4]
    """
    padded = np.concatenate([counts, np.zeros(-len(counts) % tracks, counts.dtype)]).reshape(-1, tracks)
    return np.asarray((padded.cumsum(0) - padded).ravel()[: len(counts)])


def _uniform(drawn: np.ndarray) -> np.ndarray:
    """Numbers of a fixed uniform sequence (splitmix64): a run that goes on is the same run."""
    x = drawn.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)) / float(1 << 53)
