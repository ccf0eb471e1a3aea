"""Odd rows of a table: repeated times, values far from all earlier ones, forecasts far from all targets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_FIRST = 300  # rows after which the usual range is known
_FAR = 3.0  # a wild value lies this many times the range so far beyond it
_OFFSETS = 9  # offsets from UTC that are kept
KINDS = ("late", "repeated", "wild", "wild_forecast")


@dataclass
class Finding:
    """How often something was found, and where it was worst, or first."""

    count: int = 0
    line: int = 0
    detail: str = ""
    weight: float = 0.0

    def add(self, line: int, detail: str = "", weight: float = 0.0) -> None:
        """Take in another one."""
        if not self.count or weight > self.weight:
            self.line, self.detail, self.weight = line, detail, weight
        self.count += 1


class Oddities:
    """Findings by kind, with the range of each column so far and the last time of each series.

    Args:
        columns: names of the columns that hold numbers, and of the target at the end.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        """Have found nothing."""
        self.columns = tuple(columns)
        self.found = {kind: Finding() for kind in KINDS}
        self.offsets: list[float] = []
        self.rows = 0
        self.last: dict[Any, float] = {}
        self.low, self.high = (np.full(len(self.columns), np.nan) for _ in range(2))

    def see(
        self,
        lines: np.ndarray,
        keys: Sequence[Any],
        at: np.ndarray,
        times: Sequence[str],
        offsets: np.ndarray,
        values: np.ndarray,
    ) -> np.ndarray:
        """Take in rows with times and values of their columns, N×C; return which of them have a wild value."""
        self._see_times(lines, keys, at, times)
        for offset in np.unique(offsets[~np.isnan(offsets)]).tolist():
            if offset not in self.offsets and len(self.offsets) < _OFFSETS:
                self.offsets.append(offset)
        with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest float
            return self._wild(lines, values)

    def _see_times(self, lines: np.ndarray, keys: Sequence[Any], at: np.ndarray, times: Sequence[str]) -> None:
        if np.isnan(at).all():
            return
        for place, (key, time) in enumerate(zip(keys, at.tolist(), strict=True)):
            if self.last.get(key) == time:
                self.found["repeated"].add(int(lines[place]), times[place] if len(times) else "")
            self.last[key] = time

    def _wild(self, lines: np.ndarray, values: np.ndarray) -> np.ndarray:
        low = np.fmin.accumulate(np.concatenate([self.low[None], values]))
        high = np.fmax.accumulate(np.concatenate([self.high[None], values]))
        self.low, self.high = low[-1], high[-1]
        low, high = low[:-1], high[:-1]
        span = high - low
        usual = (np.arange(self.rows, self.rows + len(values)) >= _FIRST)[:, None] & (span > 0.0)
        beyond = np.maximum(values - high, low - values)
        wild = usual & (beyond > _FAR * span)
        for i, c in np.argwhere(wild).tolist():
            before = f"{self.columns[c]} is {values[i, c]:.6g}, and was {low[i, c]:.4g} to {high[i, c]:.4g} before"
            self.found["wild"].add(int(lines[i]), before, float(beyond[i, c] / span[i, c]))
        self.rows += len(values)
        reach = np.where(usual[:, -1], _FAR * span[:, -1], math.inf)
        self._bounds = np.stack([low[:, -1] - reach, high[:, -1] + reach], 1)
        return np.asarray(wild.any(1))

    def see_forecasts(self, lines: np.ndarray, mean: np.ndarray, late: np.ndarray) -> None:
        """Take in the forecasts of the rows that were seen last, and which of these came late."""
        outside = (mean < self._bounds[:, 0]) | (mean > self._bounds[:, 1])
        for i in np.flatnonzero(outside).tolist():
            self.found["wild_forecast"].add(int(lines[i]), f"{mean[i]:.6g}", abs(float(mean[i])))
        for i in np.flatnonzero(late).tolist():
            self.found["late"].add(int(lines[i]))

    def never_there(self) -> list[str]:
        """Columns without any value, except the target."""
        return [name for name, low in zip(self.columns[:-1], self.low.tolist(), strict=False) if math.isnan(low)]

    # ---- files -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The findings, for a file."""
        return {
            "found": {kind: list(vars(each).values()) for kind, each in self.found.items()},
            "offsets": self.offsets,
            "rows": self.rows,
            "last": [list(self.last), np.array(list(self.last.values()), np.float64)],
            "low": self.low,
            "high": self.high,
        }

    def restore(self, stored: dict[str, Any]) -> None:
        """Take back what `to_json` gave; refuses what it cannot have given."""
        for kind in KINDS:
            count, line, detail, weight = stored["found"][kind]
            self.found[kind] = Finding(int(count), int(line), str(detail), float(weight))
        self.offsets, self.rows = [float(offset) for offset in stored["offsets"]], int(stored["rows"])
        keys, times = stored["last"]
        self.last = dict(zip(keys, np.asarray(times, np.float64).tolist(), strict=True))
        low, high = (np.array(stored[name], np.float64) for name in ("low", "high"))
        if low.shape != self.low.shape or high.shape != self.high.shape or np.isinf([low, high]).any():
            raise ValueError("its ranges do not fit its columns")
        self.low, self.high = low, high
