"""Alarms with a stated rate of false ones: something has changed, what kind of change, since when, in which inputs.

Every row gives evidence e_t ≥ 0 whose mean, given the past, is at most 1 while nothing has changed. Its
Shiryaev–Roberts sum is an e-detector (Shin, Ramdas and Rinaldo 2024):

    M_t = (M_{t−1} + 1) e_t,   alarm if M_t ≥ c,   then M = 0

M_t − t is a supermartingale, so that n rows have at most n/c false alarms in the mean, whatever their distribution is.
A mean of detectors is a detector. Four kinds with the threshold c = 4 · patience each have together at most one false
alarm in `patience` rows.

The evidence comes from p-values that are exactly uniform and independent while the scores are exchangeable, whether
they are calibrated or not: the rank of a row's normal score z among those since the last alarm. Scores are counted in
bins of 0.1, and ties are broken at random, so that memory is bounded and nothing is approximate (smoothed conformal
p-values: Vovk, Gammerman and Shafer 2005). With u = Φ⁻¹(p):

    level     exp(δu − δ²/2), δ = ±0.5, ±1, ±2: the targets lie above or below what is forecast
    noise     exp(u² (1 − 1/s²)/2)/s, s = 0.5, 1.5, 2, 3: they scatter more, or less, around it
    input     κ p^(κ−1), κ = 0.1, 0.3, 0.5, with p the rank of how far an input is outside the range of all before it
    error     q/0.05 for a target outside its 95 % interval and (1 − q)/0.95 for one inside, q = 0.1, 0.2, 0.4: the
              intervals hold fewer targets than they promise

Level, noise and input need exchangeable scores or inputs; error needs intervals that hold what they promise. Scores
that depend on one another (errors that last, noise that follows the hour) are not exchangeable, and may raise more
alarms.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from driftgp import checks
from driftgp.predictions import Prediction

Kind = Literal["level", "noise", "input", "error"]
KINDS: tuple[Kind, ...] = ("level", "noise", "input", "error")
PATIENCE = 10_000  # rows per false alarm, at least

_SHIFTS = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])  # δ
_SPREADS = np.array([0.5, 1.5, 2.0, 3.0])  # s
_POWERS = np.array([0.1, 0.3, 0.5])  # κ
_SHARES = np.array([0.1, 0.2, 0.4])  # q
_PARTS = np.cumsum([0, len(_SHIFTS), len(_SPREADS), len(_POWERS), len(_SHARES)])
_HALF_SQUARES, _CURVES = 0.5 * _SHIFTS**2, 0.5 * (1.0 - 1.0 / _SPREADS**2)
_LOG_SPREADS, _LOG_POWERS = np.log(_SPREADS), np.log(_POWERS)
_LOG_OUTSIDE, _LOG_INSIDE = np.log(_SHARES / 0.05), np.log((1.0 - _SHARES) / 0.95)
_REACH = 1.959963984540054  # of the 95 % interval: a target with a larger |z| is outside
_BIN, _FARTHEST = 0.1, 8.0  # of scores
_BINS = round(2 * _FARTHEST / _BIN) + 1
_RECENT = 64  # rows by which inputs are blamed
_LATE = 20  # rows after which a row counts for the range of the inputs: so long a new range is news
_FIRST = 30  # rows before the first evidence of a range
_LEAST = 3.0  # of the t statistics by which an input is blamed


class Alarm(NamedTuple):
    """What an alarm says."""

    row: int  # number of the row that raised it, from 0
    kind: Kind
    direction: str  # "up" or "down" for level and noise, else ""
    since: int  # the row at which the change most likely began
    inputs: tuple[str, ...]  # most likely concerned, first the likeliest; empty if none stands out
    evidence: float  # M / c at the alarm

    @property
    def flag(self) -> str:
        """A word for tables: alarm:level-up:temp,lag_1."""
        parts = ("alarm", "-".join(filter(None, (self.kind, self.direction))), ",".join(self.inputs).replace(" ", "_"))
        return ":".join(filter(None, parts))

    def __str__(self) -> str:
        """A sentence for people."""
        what = {
            ("level", "up"): "targets are higher than forecast",
            ("level", "down"): "targets are lower than forecast",
            ("noise", "up"): "targets scatter more than before",
            ("noise", "down"): "targets scatter less than before",
            ("input", ""): "inputs are outside the range of all rows before",
            ("error", ""): "more targets than promised are outside their intervals",
        }[self.kind, self.direction]
        concerned = f"; inputs most likely concerned: {', '.join(self.inputs)}" if self.inputs else ""
        return f"row {self.row}: {what}, since about row {self.since}{concerned}"


@dataclass
class _Counts:
    """Scores in bins, and the next one's smoothed rank among them."""

    counts: np.ndarray
    total: int = 0

    def rank(self, place: int, u: float) -> float:
        """Uniform in (0, 1] while the scores are exchangeable; u breaks ties."""
        below, same = int(self.counts[:place].sum()), int(self.counts[place])
        self.counts[place] += 1
        self.total += 1
        return (below + u * (same + 1)) / self.total


class Alarms:
    """Watch forecasts as their targets come, and say when something has changed.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=1000)
    >>> z[800:] += 3.0
    >>> watch = Alarms()
    >>> found = [alarm for score in z for alarm in watch.update(score)]
    >>> found[0].kind, found[0].direction, 800 <= found[0].since <= found[0].row < 815
    ('level', 'up', True)

    Args:
        inputs: names of the inputs; without them, none is watched or blamed.
        patience: rows per false alarm in the mean, at least.
        horizon: rows from a forecast to its label. Forecasts h rows ahead are wrong h at a time, so that every h-th row
            has detectors of its own; together they keep the same rate.
        call: called with each alarm.
    """

    def __init__(
        self,
        inputs: Sequence[str] = (),
        *,
        patience: float = PATIENCE,
        horizon: int = 1,
        call: Callable[[Alarm], None] | None = None,
    ) -> None:
        """Start with nothing seen."""
        self.inputs = tuple(inputs)
        self.patience = checks.between("patience", patience, 1.0, np.inf)
        self.horizon = checks.whole("horizon", horizon, 1)
        self.call = call
        D = len(self.inputs)
        self.rows = 0
        self.last: int | None = None  # the row of the last alarm
        self._tracks = [_Track() for _ in range(self.horizon)]
        self._recent = np.zeros((_RECENT, D + 1))  # inputs and scores of the last rows
        self._low, self._high, self._scale = np.full(D, np.inf), np.full(D, -np.inf), np.ones(D)
        self._moments = np.zeros((3, D))  # count, mean and squares of the inputs before the recent ones

    def update(self, z: float, x: Sequence[float] | np.ndarray | None = None) -> list[Alarm]:
        """Take the normal score of a row's target, NaN if there is none, and the row's inputs; the alarms it raises."""
        row, track = self.rows, self._tracks[self.rows % self.horizon]
        self.rows += 1
        z = min(max(float(z), -_FARTHEST), _FARTHEST) if not math.isnan(z) else math.nan
        excess = math.nan if x is None or not self.inputs else self._excess(row, np.asarray(x, np.float64), z)
        found = []
        for kind in track.weigh(row, z, excess, len(KINDS) * self.patience):
            alarm = self._alarm(row, track, kind)
            found.append(alarm)
            if self.call is not None:
                self.call(alarm)
        if found:  # what comes now is the new normal
            self.last = row
            for each in self._tracks:
                each.restart()
        return found

    @property
    def evidence(self) -> dict[Kind, float]:
        """How near each kind is to an alarm, M / c: 1 raises it."""
        means = np.max([track.means() for track in self._tracks], 0) / (len(KINDS) * self.patience)
        return dict(zip(KINDS, means.tolist(), strict=True))

    # ---- inputs ------------------------------------------------------------------------------------------------------

    def _excess(self, row: int, x: np.ndarray, z: float) -> float:
        """How far a row is outside the range of the rows before the last few, in ranges; NaN before there is one."""
        place = row % _RECENT
        if row >= _RECENT:
            self._remember(self._recent[place, :-1])
        if row >= _LATE:
            self._widen(self._recent[(row - _LATE) % _RECENT, :-1])
        self._recent[place, :-1] = x
        self._recent[place, -1] = z
        return float(np.fmax.reduce(self._beyond(x), initial=0.0)) if row >= _LATE + _FIRST else math.nan

    def _beyond(self, x: np.ndarray) -> np.ndarray:
        """Of each input, how far it is outside its range, in ranges; negative inside, NaN where it is missing."""
        return np.maximum(x - self._high, self._low - x) / self._scale

    def _widen(self, x: np.ndarray) -> None:
        if ((x < self._low) | (x > self._high)).any():
            self._low, self._high = np.fmin(self._low, x), np.fmax(self._high, x)
            self._rescale()

    def _rescale(self) -> None:
        """Ranges; of an input that never changed, its size."""
        there = self._high >= self._low
        width = np.where(there, self._high, 0.0) - np.where(there, self._low, 0.0)
        size = np.maximum(np.abs(np.where(there, self._high, 0.0)), 1.0)
        self._scale = np.where(width > 0.0, width, size)

    def _remember(self, x: np.ndarray) -> None:
        """Welford's sums of the inputs that are there."""
        count, mean, squares = self._moments
        there = x == x
        count += there
        before = np.where(there, x - mean, 0.0)
        mean += before / np.maximum(count, 1.0)
        squares += before * np.where(there, x - mean, 0.0)

    def _blamed(self, kind: Kind, since: int) -> tuple[str, ...]:
        """Inputs out of range; or those that moved, or went with the scores, since the change: the three likeliest."""
        count = min(max(self.rows - since, 3), self.rows, _RECENT)
        recent = self._recent[(self.rows - 1 - np.arange(count)) % _RECENT]
        X, z = recent[:, :-1], recent[:, -1]
        if kind == "input":
            strength = 1e6 * np.fmax.reduce(self._beyond(X), axis=0, initial=0.0)
        else:
            strength = np.fmax(_moved(X, self._moments), _together(X, z))
        order = np.argsort(-np.nan_to_num(strength), kind="stable")[:3]
        return tuple(self.inputs[i] for i in order if strength[i] > _LEAST)

    def _alarm(self, row: int, track: "_Track", kind: Kind) -> Alarm:
        evidence, since, direction = track.says(kind)
        inputs = self._blamed(kind, since) if self.inputs else ()
        return Alarm(row, kind, direction, since, inputs, evidence / (len(KINDS) * self.patience))

    # ---- as JSON -----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """All that is needed to go on, as JSON holds it."""
        return {
            "rows": self.rows,
            "last": self.last,
            "tracks": [track.to_json() for track in self._tracks],
            "recent": self._recent.tolist(),
            "range": [self._low.tolist(), self._high.tolist()],
            "moments": self._moments.tolist(),
        }

    def restore(self, stored: dict[str, Any]) -> None:
        """Take back what `to_json` gave, or refuse what it could not have given."""
        tracks, D = stored["tracks"], len(self.inputs)
        if len(tracks) != self.horizon:
            raise ValueError(f"tracks must be {self.horizon} of the alarms' detectors; got {len(tracks)}")
        self.rows = int(_array(stored["rows"], (), np.int64))
        self.last = None if stored["last"] is None else int(_array(stored["last"], (), np.int64))
        for track, own in zip(self._tracks, tracks, strict=True):
            track.restore(own)
        self._recent = _array(stored["recent"], (_RECENT, D + 1))
        self._low, self._high = _array(stored["range"], (2, D))
        self._rescale()
        self._moments = _array(stored["moments"], (3, D))


class _Track:
    """The detectors of every h-th row."""

    def __init__(self) -> None:
        self.drawn = 0  # random numbers so far
        self.restart()

    def restart(self) -> None:
        """Forget what was usual."""
        self.scores, self.excesses = _Counts(np.zeros(_BINS, np.int64)), _Counts(np.zeros(_BINS, np.int64))
        self.M = np.zeros(_PARTS[-1])
        self.W = np.zeros(_PARTS[-1])  # log evidence since each part's change would have begun
        self.since = np.zeros(_PARTS[-1], np.int64)

    def weigh(self, row: int, z: float, excess: float, threshold: float) -> list[Kind]:
        """Take the evidence of a row; the kinds that reach the threshold."""
        log_e = np.zeros(_PARTS[-1])
        if not math.isnan(z):
            p = self.scores.rank(round((z + _FARTHEST) / _BIN), self._draw())
            u = float(ndtri(min(max(p, 1e-12), 1.0 - 1e-12)))
            log_e[: _PARTS[1]] = _SHIFTS * u - _HALF_SQUARES
            log_e[_PARTS[1] : _PARTS[2]] = _CURVES * (u * u) - _LOG_SPREADS
            log_e[_PARTS[3] :] = _LOG_OUTSIDE if abs(z) > _REACH else _LOG_INSIDE
        if not math.isnan(excess):
            place = min(round(10.0 * math.log1p(1e3 * excess)), _BINS - 1)  # the farther out, the lower the rank
            p = max(self.excesses.rank(_BINS - 1 - place, self._draw()), 1e-12)
            log_e[_PARTS[2] : _PARTS[3]] = _LOG_POWERS + (_POWERS - 1.0) * math.log(p)
        self.M = (self.M + 1.0) * np.exp(log_e)
        self.since[self.W == 0.0] = row
        self.W = np.maximum(self.W + log_e, 0.0)
        if self.M.max() < threshold:
            return []
        return [kind for kind, M in zip(KINDS, self.means(), strict=True) if M >= threshold]

    def means(self) -> np.ndarray:
        """M of each kind: the mean of its parts."""
        return np.add.reduceat(self.M, _PARTS[:-1]) / np.diff(_PARTS)

    def says(self, kind: Kind) -> tuple[float, int, str]:
        """M of a kind, where its strongest part says that the change began, and its direction."""
        k = KINDS.index(kind)
        own = slice(_PARTS[k], _PARTS[k + 1])
        best = int(np.argmax(self.M[own]))
        direction = ""
        if kind == "level":
            direction = "up" if _SHIFTS[best] > 0.0 else "down"
        elif kind == "noise":
            direction = "up" if _SPREADS[best] > 1.0 else "down"
        return float(np.mean(self.M[own])), int(self.since[own][best]), direction

    def _draw(self) -> float:
        """The next of a fixed sequence of uniform numbers (splitmix64): a run that goes on is the same run."""
        self.drawn += 1
        mask = (1 << 64) - 1
        x = (self.drawn * 0x9E3779B97F4A7C15) & mask
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return ((x ^ (x >> 31)) >> 11) / float(1 << 53)

    def to_json(self) -> dict[str, Any]:
        return {
            "drawn": self.drawn,
            "scores": self.scores.counts.tolist(),
            "excesses": self.excesses.counts.tolist(),
            "M": self.M.tolist(),
            "W": self.W.tolist(),
            "since": self.since.tolist(),
        }

    def restore(self, stored: dict[str, Any]) -> None:
        self.drawn = int(_array(stored["drawn"], (), np.int64))
        scores, excesses = (_array(stored[name], (_BINS,), np.int64) for name in ("scores", "excesses"))
        self.scores, self.excesses = _Counts(scores, int(scores.sum())), _Counts(excesses, int(excesses.sum()))
        self.M, self.W = (_array(stored[name], (_PARTS[-1],)) for name in ("M", "W"))
        self.since = _array(stored["since"], (_PARTS[-1],), np.int64)
        if not (np.isfinite([self.M, self.W]).all() and min(self.M.min(), self.W.min()) >= 0.0):
            raise ValueError("evidence of alarms must be finite and not negative")


def _array(stored: Any, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
    """Numbers of a shape, none of them negative where they count something."""
    try:
        array: np.ndarray = np.array(stored, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"alarms hold {str(stored)[:60]!r} where numbers should be") from error
    if array.shape != shape or (dtype is np.int64 and array.size and not 0 <= array.min() <= array.max() < 1 << 53):
        raise ValueError(f"alarms must hold {shape} numbers, counts not negative; got {str(stored)[:60]!r}")
    return array


def find_alarms(prediction: Prediction, y: np.ndarray, X: np.ndarray | None = None, **settings: Any) -> list[Alarm]:
    """Alarms of a whole run: forecasts (N), targets (N, NaN where missing), inputs (N×D); settings as in `Alarms`.

    >>> from driftgp.predictions import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=600) * np.repeat([1.0, 4.0], 300)
    >>> [alarm.kind for alarm in find_alarms(Gaussian(np.zeros(600), np.ones(600), np.ones(600)), y)][:1]
    ['noise']
    """
    if X is not None and "inputs" not in settings:
        settings["inputs"] = [f"input {i + 1}" for i in range(X.shape[1])]
    watch = Alarms(**settings)
    scores = np.where(np.isfinite(y), prediction.to_normal(np.where(np.isfinite(y), y, prediction.mean)), np.nan)
    rows = [None] * len(y) if X is None else list(X)
    return [alarm for z, x in zip(scores, rows, strict=True) for alarm in watch.update(float(z), x)]


def _moved(X: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """|t| of the inputs' mean in the recent rows against what it was before, D."""
    count, mean, squares = moments
    std = np.sqrt(squares / np.maximum(count - 1.0, 1.0))
    there = np.isfinite(X).sum(0)
    recent = np.where(there > 0, np.nansum(X, 0) / np.maximum(there, 1), mean)
    error = np.where(std > 0.0, std, np.inf) / np.sqrt(np.maximum(there, 1))
    return np.where(count > 1.0, np.abs(recent - mean) / error, 0.0)


def _together(X: np.ndarray, z: np.ndarray) -> np.ndarray:
    """|t| of the correlation between each input and the scores in the recent rows, D."""
    there = np.isfinite(z)
    X, z = X[there], z[there]
    n = len(z)
    if n < 5:
        return np.zeros(X.shape[1])
    X = np.where(np.isfinite(X), X, np.nanmean(np.where(np.isfinite(X), X, 0.0), 0))
    X, z = X - X.mean(0), z - z.mean()
    scale = np.sqrt((X**2).sum(0) * (z**2).sum())
    r = np.where(scale > 0.0, X.T @ z / np.where(scale > 0.0, scale, 1.0), 0.0)
    return np.abs(r) * np.sqrt((n - 2) / np.maximum(1.0 - r**2, 1e-9))
