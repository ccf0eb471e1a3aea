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

import math
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

# What the log evidence of a row is linear in; of bursts it is itself. A row without a target, or without a range of
# inputs, has zeros.
_FEATURES = ("target", "u", "u²", "up 0", "down 0", "far 0", "up 1", "down 1", "far 1", "outside", "range", "log p")


class Part(NamedTuple):
    """One detector: log e is a sum of features, each times its number here."""

    kind: Kind
    direction: str  # "up" or "down" for level and noise, else ""
    log_e: dict[str, float]


def _outside(q: float) -> dict[str, float]:
    """Log evidence that a share q is outside, where 0.05 should be."""
    inside = math.log((1.0 - q) / 0.95)
    return {"target": inside, "outside": math.log(q / 0.05) - inside}


PARTS = (
    *(Part("level", "up" if d > 0.0 else "down", {"target": -0.5 * d * d, "u": d}) for d in _SHIFTS),
    *(Part("level", side, {f"{side} {place}": 1.0}) for place in range(len(_BURSTS)) for side in ("up", "down")),
    *(
        Part("noise", "up" if s > 1.0 else "down", {"target": -math.log(s), "u²": 0.5 * (1.0 - 1.0 / s**2)})
        for s in _SPREADS
    ),
    *(Part("noise", "up", {f"far {place}": 1.0}) for place in range(len(_BURSTS))),
    *(Part("input", "", {"range": math.log(k), "log p": k - 1.0}) for k in _POWERS),
    *(Part("error", "", _outside(q)) for q in _SHARES),
)
_A = np.array([[part.log_e.get(name, 0.0) for name in _FEATURES] for part in PARTS])  # parts × features
_FIRST = np.array([[part.kind for part in PARTS].index(kind) for kind in KINDS])  # part of each kind
_COUNT = np.diff(_FIRST, append=len(PARTS))


def _burst(p: float, a: float, least: float, n: int) -> tuple[float, float, float]:
    """Log evidence that rows like this one, with rank p among n, are a burst: above, below, and on either side."""
    epsilon = min(max(least, _OF_A_BURST / n), _WIDEST)
    hit, miss = math.log(a / epsilon), math.log((1.0 - a) / (1.0 - epsilon))
    near = min(p, 1.0 - p)
    return (hit if 1.0 - p <= epsilon else miss, hit if p <= epsilon else miss, hit if 2.0 * near <= epsilon else miss)


class Counts:
    """Scores in bins, and the next one's smoothed rank among them."""

    def __init__(self, counts: list[int] | None = None) -> None:
        """Start without counts, or with these."""
        self.counts = [0] * _BINS if counts is None else counts
        self.total = sum(self.counts)

    def rank(self, place: int, u: float) -> float:
        """Uniform in (0, 1] while the scores are exchangeable; u breaks ties."""
        same = self.counts[place]
        from_above = place > _BINS // 2  # fewer bins to add up
        below = self.total - sum(self.counts[place:]) if from_above else sum(self.counts[:place])
        self.counts[place] = same + 1
        self.total += 1
        return (below + u * (same + 1)) / self.total

    def rank_of_score(self, score: float, u: float) -> float:
        """Rank of a score from below."""
        return self.rank(round((min(max(score, -_FARTHEST), _FARTHEST) + _FARTHEST) / _BIN), u)

    def rank_of_excess(self, excess: float, u: float) -> float:
        """Rank of how far out a row is, from above: the farther out, the lower the rank."""
        place = round(10.0 * math.log1p(1e3 * max(excess, 0.0)))
        return self.rank(_BINS - 1 - min(place, _BINS - 1), u)


class Detectors:
    """All parts for one sequence of scores."""

    def __init__(self) -> None:
        """Start without any rows."""
        self.drawn = 0  # random numbers so far
        self.restart()

    def restart(self) -> None:
        """Forget the usual values."""
        self.scores, self.excesses = Counts(), Counts()
        self.M = np.zeros(len(PARTS))
        self.W = np.zeros(len(PARTS))  # log evidence since each part's change would have begun
        self.since = np.zeros(len(PARTS), np.int64)

    def weigh(self, row: int, score: float, z: float, excess: float, threshold: float) -> list[Kind]:
        """Take the evidence of a row; the kinds that reach the threshold.

        Args:
            row: its number.
            score: how far off its target is, by which rows are ranked; NaN without a target.
            z: the normal score of the target under the law that was issued.
            excess: how far its inputs are outside their range; NaN if that is not known.
            threshold: c.
        """
        log_e = _A @ np.array((*self._of_score(score, z), *self._of_excess(excess)))
        self.M += 1.0
        self.M *= np.exp(log_e)
        self.since[self.W == 0.0] = row
        self.W += log_e
        np.maximum(self.W, 0.0, out=self.W)
        if max(self.M.tolist()) < threshold:  # of so few numbers quicker than M.max()
            return []
        return [kind for kind, M in zip(KINDS, self.means(), strict=True) if M >= threshold]

    def means(self) -> np.ndarray:
        """M of each kind: the mean of its parts."""
        return np.add.reduceat(self.M, _FIRST) / _COUNT

    def says(self, kind: Kind) -> tuple[float, int, str]:
        """M of a kind, where its strongest part says that the change began, and its direction."""
        k = KINDS.index(kind)
        best = int(_FIRST[k] + np.argmax(self.M[_FIRST[k] : _FIRST[k] + _COUNT[k]]))
        return float(self.means()[k]), int(self.since[best]), PARTS[best].direction

    # ---- features of a row

    def _of_score(self, score: float, z: float) -> tuple[float, ...]:
        if math.isnan(score):
            return (0.0,) * 10
        p = min(max(self.scores.rank_of_score(score, self._draw()), _LEAST), 1.0 - _LEAST)
        u = float(ndtri(p))
        bursts = [log_e for a, least in _BURSTS for log_e in _burst(p, a, least, self.scores.total)]
        return (1.0, u, u * u, *bursts, abs(z) > _REACH)

    def _of_excess(self, excess: float) -> tuple[float, ...]:
        if math.isnan(excess):
            return (0.0, 0.0)
        return (1.0, math.log(max(self.excesses.rank_of_excess(excess, self._draw()), _LEAST)))

    def _draw(self) -> float:
        """The next of a fixed sequence of uniform numbers (splitmix64): a run that goes on is the same run."""
        self.drawn += 1
        mask = (1 << 64) - 1
        x = (self.drawn * 0x9E3779B97F4A7C15) & mask
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return ((x ^ (x >> 31)) >> 11) / float(1 << 53)

    # ---- as JSON

    def to_json(self) -> dict[str, Any]:
        """Everything that is needed to continue."""
        return {
            "drawn": self.drawn,
            "scores": self.scores.counts,
            "excesses": self.excesses.counts,
            "M": self.M.tolist(),
            "W": self.W.tolist(),
            "since": self.since.tolist(),
        }

    def restore(self, stored: dict[str, Any]) -> None:
        """Take back what `to_json` gave."""
        self.drawn = int(array_from(stored["drawn"], (), np.int64))
        scores, excesses = (array_from(stored[name], (_BINS,), np.int64) for name in ("scores", "excesses"))
        self.scores, self.excesses = Counts(scores.tolist()), Counts(excesses.tolist())
        self.M, self.W = (array_from(stored[name], (len(PARTS),)) for name in ("M", "W"))
        self.since = array_from(stored["since"], (len(PARTS),), np.int64)
        if not (np.isfinite([self.M, self.W]).all() and min(self.M.min(), self.W.min()) >= 0.0):
            raise ValueError("evidence of alarms must be finite and not negative")
