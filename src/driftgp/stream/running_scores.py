"""Scores of forecasts, row by row: errors beside naive forecasts, coverage, widths, alarms.

Sums are kept for each series, and every line of a summary follows from them. Rows are added one after another, so that
the cut into blocks changes no bit of the sums. A row is scored once its target has come, if a target was known when it
was predicted and the row did not come late.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftgp.alarms import Alarm, Alarms
from driftgp.predictions import Prediction
from driftgp.stream.keys import SeriesKey
from driftgp.stream.naive import MOST, Naive

SUMS = (
    "rows", "missing", "gaps", "late", "jump", "alarms",
    "scored", "inside", "square", "absolute", "width", "log_density", "crps", "total", "total_square",
    *(f"{kind}_{number}" for number in range(1 + MOST) for kind in ("square", "absolute")),
    "square_base", "absolute_base", "widths",
)  # fmt: skip
_PLACE = {name: place for place, name in enumerate(SUMS)}
LAST = 20_000  # scored rows over whose forecasts the tenths are counted
HOURS = 24
TENTHS = 10
_SETTLED = 100  # rows of a series after which an error may be a sign of a change
_NARROW = 10  # targets of a series after which its intervals are the model's own; the first ones are very wide
_HOUR = 3_600_000_000  # microseconds
_SHOWN = 50  # first and last alarms that are kept with their cause


class Raised(NamedTuple):
    """An alarm of a series."""

    key: SeriesKey
    line: int  # of the file, or number of the row
    time: str
    says: str

    def __str__(self) -> str:
        where = " ".join(part for part in (self.time or f"line {self.line}", str(self.key or "")) if part)
        return f"{where}: {self.says}"


class PredictedRows(NamedTuple):
    """Rows that were predicted, N of them, with what a monitor needs to know of each."""

    prediction: Prediction
    low: np.ndarray
    high: np.ndarray
    y: np.ndarray  # NaN where one is missing
    wall: np.ndarray  # times by the clock on the wall, in microseconds, or numbers; NaN without
    dated: bool
    keys: Sequence[SeriesKey]
    flags: dict[str, np.ndarray]
    lines: np.ndarray
    times: Sequence[str] = ()  # as people write them
    inputs: np.ndarray | None = None  # N×C, values to be watched, if alarms are wanted
    base: np.ndarray | None = None  # N, a forecast from elsewhere


class RunningScores:
    """Sums over the forecasts of many series, their naive forecasts, and their alarms.

    Args:
        horizon: rows ahead.
        lags: of the target: seasons of rows without dates.
        watch: names of the columns in which alarms look for a cause; None for no alarms.
        densities: which of "log_density" and "crps" are wanted; they cost more than all others together.
        naive: whether forecasts are compared with naive ones; not in a run that learns nothing.
    """

    def __init__(
        self,
        horizon: int = 1,
        lags: tuple[int, ...] = (),
        *,
        watch: tuple[str, ...] | None = None,
        densities: tuple[str, ...] = ("log_density",),
        naive: bool = True,
    ) -> None:
        """Start without any rows."""
        self.horizon, self.lags, self.watch, self.densities = horizon, lags, watch, densities
        self.compared = naive
        self.places: dict[SeriesKey, int] = {}
        self.sums = np.zeros((0, len(SUMS)))
        self.naive: list[Naive] = []
        self.alarms: list[Alarms] = []
        self.raised: list[Raised] = []
        self.hours = np.zeros((HOURS, 2))  # rows scored, and those of them inside their interval
        self.forecasts, self.inside = np.zeros(0), np.zeros(0, bool)  # of the last rows scored
        self.largest, self.largest_line = 0.0, 0  # squared error

    # ---- rows --------------------------------------------------------------------------------------------------------

    def see(self, rows: PredictedRows) -> tuple[np.ndarray, dict[int, list[str]]]:
        """Take in rows that were predicted.

        Returns which of them were predicted before any target was known, and the flags of the alarms that they raise.
        """
        which = self._which(rows.keys)
        for name, marked in self._marks(rows).items():
            np.add.at(self.sums[:, _PLACE[name]], which[marked], 1.0)
        np.add.at(self.sums[:, _PLACE["rows"]], which, 1.0)
        naive = self._naive(rows, which) if self.compared else np.zeros((len(rows.y), 1 + MOST))
        self._score(rows, which, naive)
        return np.isnan(naive[:, 0]), {} if self.watch is None else self._alarm(rows, which)

    def _which(self, keys: Sequence[SeriesKey]) -> np.ndarray:
        """The place of the series of each row."""
        places = self.places
        if len(set(keys[:1])) == 1 and len(places) == 1 and keys[0] in places and keys[0] is None:
            return np.zeros(len(keys), np.int64)
        which = np.fromiter((places.setdefault(key, len(places)) for key in keys), np.int64, len(keys))
        new = len(places) - len(self.sums)
        if new:
            self.sums = np.concatenate([self.sums, np.zeros((new, len(SUMS)))])
            self.naive += [Naive(self.horizon, self.lags) for _ in range(new)]
            if self.watch is not None:
                self.alarms += [Alarms(self.watch, horizon=self.horizon) for _ in range(new)]
        return which

    @staticmethod
    def _marks(rows: PredictedRows) -> dict[str, np.ndarray]:
        names = {"missing": "missing", "carried": "gaps", "skipped": "gaps", "late": "late", "jump": "jump"}
        return {names[name]: marked for name, marked in rows.flags.items() if name in names}

    def _naive(self, rows: PredictedRows, which: np.ndarray) -> np.ndarray:
        """The naive forecasts of each row, N×3; targets of late rows are not used."""
        y = np.where(rows.flags["late"], np.nan, rows.y) if "late" in rows.flags else rows.y
        made = np.empty((len(y), 1 + MOST))
        for place, own in _by_place(which):
            made[own] = self.naive[place].take(y[own], rows.wall[own], dated=rows.dated)
        return made

    def _score(self, rows: PredictedRows, which: np.ndarray, naive: np.ndarray) -> None:
        mean = rows.prediction.mean
        here = np.isfinite(mean) & np.isfinite(rows.y) & np.isfinite(naive[:, 0])
        here &= np.isfinite(rows.prediction.variance)  # not cold
        if "late" in rows.flags:
            here &= ~rows.flags["late"]
        which, lines = which[here], rows.lines[here]
        y, mean, low, high, naive = (array[here] for array in (rows.y, mean, rows.low, rows.high, naive))
        inside = (low <= y) & (y <= high)
        error = y - mean
        narrow = self._narrow(which)
        terms = {
            "scored": np.ones(len(y)),
            "inside": inside,
            "square": error**2,
            "absolute": np.abs(error),
            "width": np.where(narrow, high - low, 0.0),
            "widths": narrow,
            "total": y,
            "total_square": y**2,
        }
        for name in self.densities:
            of = rows.prediction.log_prob if name == "log_density" else rows.prediction.crps
            terms[name] = of(np.where(np.isfinite(rows.y), rows.y, rows.prediction.mean))[here]
        for number, forecast in enumerate(naive.T):
            terms[f"square_{number}"], terms[f"absolute_{number}"] = (y - forecast) ** 2, np.abs(y - forecast)
        if rows.base is not None:  # where it is missing, the last target stands in
            base = np.where(np.isnan(rows.base[here]), naive[:, 0], rows.base[here])
            terms["square_base"], terms["absolute_base"] = (y - base) ** 2, np.abs(y - base)
        for name, values in terms.items():
            np.add.at(self.sums[:, _PLACE[name]], which, values)
        if rows.dated:
            hour = (rows.wall[here].astype(np.int64) // _HOUR) % HOURS
            np.add.at(self.hours[:, 0], hour, 1.0)
            np.add.at(self.hours[:, 1], hour, inside)
        self.forecasts = np.concatenate([self.forecasts, mean])[-LAST:]
        self.inside = np.concatenate([self.inside, inside])[-LAST:]
        if len(y) and float(np.max(error**2)) > self.largest:
            worst = int(np.argmax(error**2))
            self.largest, self.largest_line = float(error[worst] ** 2), int(lines[worst])

    def _narrow(self, which: np.ndarray) -> np.ndarray:
        """Which of the rows to be scored are not among the first of their series."""
        before = self.sums[which, _PLACE["scored"]]
        return np.asarray((before if (before >= _NARROW).all() else before + _rank(which)) >= _NARROW)

    def _alarm(self, rows: PredictedRows, which: np.ndarray) -> dict[int, list[str]]:
        prediction, there = rows.prediction, np.isfinite(rows.y)
        score = np.where(there, prediction.to_normal(np.where(there, rows.y, prediction.mean)), np.nan)
        if "late" in rows.flags:
            score = np.where(rows.flags["late"], np.nan, score)
        widths, raised = rows.high - rows.low, []
        for place, own in _by_place(which):
            watch, numbers = self.alarms[place], np.arange(len(which))[own]
            z, begun = score[own], watch.rows
            z[: max(_SETTLED - begun, 0)] = np.nan
            X = None if rows.inputs is None else rows.inputs[own]
            raised += [(int(numbers[alarm.row - begun]), alarm) for alarm in watch.update_all(z, X, widths[own])]
        found: dict[int, list[str]] = {}
        for row, alarm in sorted(raised, key=lambda one: one[0]):
            found.setdefault(row, []).append(alarm.flag)
            self.sums[which[row], _PLACE["alarms"]] += 1.0
            self._note(rows, row, alarm)
        return found

    def _note(self, rows: PredictedRows, row: int, alarm: Alarm) -> None:
        time = rows.times[row] if len(rows.times) else ""
        says = str(alarm).partition(": ")[2].partition(", since")[0]
        concerned = f" (inputs: {', '.join(alarm.inputs)})" if alarm.inputs else ""
        self.raised.append(Raised(rows.keys[row], int(rows.lines[row]), time, says + concerned))
        del self.raised[_SHOWN:-_SHOWN]

    # ---- what it has come to -----------------------------------------------------------------------------------------

    @property
    def labels(self) -> list[str]:
        """Names of the naive forecasts: those of all series, or a general word if they differ."""
        labels: list[str] = []
        for number in range(1 + MOST if self.compared else 0):
            found = {series.labels[number] for series in self.naive if len(series.labels) > number}
            if found:
                labels.append(found.pop() if len(found) == 1 else "a season before")
        return labels

    def of(self, key: SeriesKey) -> dict[str, float]:
        """The sums of one series."""
        return dict(zip(SUMS, self.sums[self.places[key]].tolist(), strict=True))

    def in_all(self) -> dict[str, float]:
        """The sums of all series together."""
        return dict(zip(SUMS, self.sums.sum(0).tolist(), strict=True))

    def by_hour(self) -> np.ndarray:
        """Rows scored at each hour of the day, and the share of them inside their interval, 24×2."""
        return _shares(self.hours)

    def by_tenth(self) -> np.ndarray:
        """The same for each tenth of the forecasts, from the lowest to the highest, of the last rows scored, 10×2."""
        if len(self.forecasts) < TENTHS:
            return np.zeros((0, 2))
        edges = np.quantile(self.forecasts, np.arange(1, TENTHS) / TENTHS)
        tenth = np.searchsorted(edges, self.forecasts, side="right")
        counts = np.bincount(tenth, minlength=TENTHS), np.bincount(tenth, self.inside, minlength=TENTHS)
        return _shares(np.stack(counts, 1).astype(float))

    def shares(self) -> tuple[dict[str, float], list[float | None]]:
        """Coverage by hour of the day and by tenth of the forecasts, as JSON holds them."""
        hours = {f"{hour:02d}": share for hour, (rows, share) in enumerate(self.by_hour().tolist()) if rows}
        return hours, [share if rows else None for rows, share in self.by_tenth().tolist()]

    # ---- files -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Everything that is needed to continue, for a file."""
        return {
            "keys": list(self.places),
            "sums": self.sums,
            "naive": [series.to_json() for series in self.naive],
            "alarms": [alarms.to_json() for alarms in self.alarms],
            "raised": [list(one) for one in self.raised],
            "hours": self.hours,
            "forecasts": self.forecasts,
            "inside": self.inside,
            "largest": [self.largest, self.largest_line],
        }

    def restore(self, stored: dict[str, Any]) -> None:
        """Take back what `to_json` gave; refuses what it cannot have given."""
        keys = stored["keys"]
        self._which(keys)
        self.sums[...] = stored["sums"]
        for series, own in zip(self.naive, stored["naive"], strict=True):
            series.restore(own)
        for alarms, own in zip(self.alarms, stored["alarms"], strict=True):
            alarms.restore(own)
        self.raised = [Raised(key, int(line), str(time), str(says)) for key, line, time, says in stored["raised"]]
        self.hours[...] = stored["hours"]
        self.forecasts, self.inside = np.asarray(stored["forecasts"], float), np.asarray(stored["inside"], bool)
        largest, line = stored["largest"]
        self.largest, self.largest_line = float(largest), int(line)
        if len(self.places) != len(keys) or self.forecasts.ndim != 1 or self.forecasts.shape != self.inside.shape:
            raise ValueError("its scores do not belong to its series")
        if not np.isfinite(self.hours).all() or np.isinf(self.sums[:, :6]).any() or len(self.forecasts) > LAST:
            raise ValueError("its scores have a number that is not finite or out of range")


def means(sums: dict[str, float], labels: Sequence[str]) -> dict[str, float]:
    """Errors, coverage and the like from sums; NaN where nothing was scored."""
    n = sums["scored"] or math.nan
    found = {
        "rows": int(sums["rows"]),
        "scored": int(sums["scored"]),
        "rmse": math.sqrt(sums["square"] / n) if sums["scored"] else math.nan,
        "mse": sums["square"] / n,
        "mae": sums["absolute"] / n,
        "relative": _relative(sums),
        "coverage": sums["inside"] / n,
        "width": sums["width"] / (sums["widths"] or math.nan),  # of all but the first rows of each series
        "nlpd": -sums["log_density"] / n,
        "crps": sums["crps"] / n,
    }
    for name in (*range(len(labels)), "base"):
        found[f"rmse_{name}"] = math.sqrt(sums[f"square_{name}"] / n) if sums["scored"] else math.nan
        found[f"mae_{name}"] = sums[f"absolute_{name}"] / n
    return found


def _relative(sums: dict[str, float]) -> float:
    """Mean squared error as a share of the targets' variance; NaN without targets."""
    n = sums["scored"]
    if not n:
        return math.nan
    variance = sums["total_square"] / n - (sums["total"] / n) ** 2
    return sums["square"] / n / variance if variance > 0.0 else math.inf if sums["square"] else 0.0


def _shares(counts: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.stack([counts[:, 0], counts[:, 1] / counts[:, 0]], 1)


def _rank(which: np.ndarray) -> np.ndarray:
    """How many rows of the same series come before each row.

    >>> _rank(np.array([0, 1, 0, 0, 1])).tolist()
    [0, 0, 1, 2, 1]
    """
    rank = np.empty(len(which), np.int64)
    for _, own in _by_place(which):
        rank[own] = np.arange(len(rank[own]))
    return rank


def _by_place(which: np.ndarray) -> list[tuple[int, Any]]:
    """The rows of each series."""
    if len(which) and (which == which[0]).all():
        return [(int(which[0]), slice(None))]
    order = np.argsort(which, kind="stable")
    places, begin = np.unique(which[order], return_index=True)
    return list(zip(places.tolist(), np.split(order, begin[1:]), strict=True))
