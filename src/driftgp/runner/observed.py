"""What is odd about the rows of a series: their order, repetitions, values far from all before, words never seen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from driftgp.runner.samples import Sample
from driftgp.runner.stored import number, numbers, text, whole

_FIRST = 300  # rows until it is known what is usual
_FAR = 3.0  # times the range so far, beyond it: a value that wild is a mistake, or news
_OFFSETS = 9  # offsets from UTC that are kept


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

    def plus(self, other: "Finding") -> "Finding":
        """Both together."""
        worst = other if not self.count or (other.count and other.weight > self.weight) else self
        return Finding(self.count + other.count, worst.line, worst.detail, worst.weight)


KINDS = ("unordered", "repeated", "unknown", "wild", "wild_forecast")


@dataclass
class Observed:
    """Findings by kind, and what they are found by."""

    columns: tuple[str, ...]  # names of the columns, and of the target at the end
    found: dict[str, Finding] = field(default_factory=lambda: {kind: Finding() for kind in KINDS})
    offsets: list[float] = field(default_factory=list)
    rows: int = 0
    last: float = math.nan  # time of the row before
    low: np.ndarray = field(default_factory=lambda: np.zeros(0))  # of each column so far
    high: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        """Have no range yet."""
        if not len(self.low):
            self.low, self.high = (np.full(len(self.columns), np.nan) for _ in range(2))

    def see(self, samples: Sequence[Sample], at: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take in rows with their columns and targets, N×C.

        Returns which rows have a wild value, and the bounds (N×2) beyond which a forecast of the target is wild.
        """
        lines = [sample.line for sample in samples]
        step = np.diff(at, prepend=self.last)
        self.last = float(at[-1])
        for kind, rows in (("unordered", step < 0.0), ("repeated", step == 0.0)):
            for i in np.flatnonzero(rows).tolist():
                self.found[kind].add(lines[i], samples[i].time)
        for sample in samples:
            if sample.unknown:
                self.found["unknown"].add(sample.line, sample.unknown)
            if sample.offset is not None and sample.offset not in self.offsets and len(self.offsets) < _OFFSETS:
                self.offsets.append(sample.offset)
        with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest there are
            return self._wild(lines, values)

    def _wild(self, lines: Sequence[int], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
            self.found["wild"].add(lines[i], before, float(beyond[i, c] / span[i, c]))
        self.rows += len(values)
        reach = np.where(usual[:, -1], _FAR * span[:, -1], math.inf)
        return wild.any(1), np.stack([low[:, -1] - reach, high[:, -1] + reach], 1)

    def see_forecasts(self, lines: Sequence[int], mean: np.ndarray, bounds: np.ndarray) -> None:
        """Take in forecasts (N) and the bounds (N×2) beyond which they are wild."""
        for i in np.flatnonzero((mean < bounds[:, 0]) | (mean > bounds[:, 1])).tolist():
            self.found["wild_forecast"].add(lines[i], f"{mean[i]:.6g}", abs(float(mean[i])))

    # ---- checkpoints

    def to_json(self) -> dict[str, Any]:
        """The findings, as JSON holds them."""
        return {
            "found": {kind: list(vars(each).values()) for kind, each in self.found.items()},
            "offsets": self.offsets,
            "rows": self.rows,
            "last": self.last,
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }

    @classmethod
    def from_json(cls, columns: tuple[str, ...], stored: dict[str, Any]) -> "Observed":
        """What `to_json` gave."""
        found = {}
        for kind in KINDS:
            count, line, detail, weight = stored["found"][kind]
            found[kind] = Finding(whole(count), whole(line), text(detail), number(weight))
        low, high = (np.array(numbers(stored[name], len(columns)), np.float64) for name in ("low", "high"))
        return cls(columns, found, numbers(stored["offsets"]), whole(stored["rows"]), number(stored["last"]), low, high)
