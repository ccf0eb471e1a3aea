"""Running sums from which a run's summary follows; sums, so that a run that was stopped goes on with them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from driftgp.runner.naive import NAMES
from driftgp.runner.stored import number, whole
from driftgp.runner.work import Said


@dataclass
class Scores:
    """Counts of rows, and sums over those that were predicted and whose target came."""

    rows: int = 0
    predicted: int = 0
    scored: int = 0
    inside: int = 0
    missing: int = 0  # rows without a target
    carried: int = 0  # rows with an input carried forward
    alarms: int = 0
    square: float = 0.0
    absolute: float = 0.0
    width: float = 0.0
    log_density: float = 0.0
    total: float = 0.0  # of the targets scored
    total_square: float = 0.0
    largest: float = 0.0  # squared error
    largest_line: int = 0
    compared: int = 0  # rows scored for which there were naive forecasts too; sums over them follow
    compared_square: float = 0.0
    square_persistence: float = 0.0
    absolute_persistence: float = 0.0
    square_season: float = 0.0
    absolute_season: float = 0.0
    square_season_2: float = 0.0
    absolute_season_2: float = 0.0

    def count(self, said: Said, y: np.ndarray, naive: np.ndarray, lines: Sequence[int]) -> None:
        """Take in what was said of rows whose targets are y, N, beside naive forecasts, N×3, and their lines."""
        self._compare(said.mean, y, naive)
        predicted = np.isfinite(said.mean)
        here = predicted & np.isfinite(y)
        mean, low, high, log_density, y = (
            array[here] for array in (said.mean, said.low, said.high, said.log_density, y)
        )
        self.predicted += int(predicted.sum())
        self.scored += len(y)
        self.inside += int(((low <= y) & (y <= high)).sum())
        self.square = _added(self.square, (y - mean) ** 2)
        self.absolute = _added(self.absolute, np.abs(y - mean))
        self.width = _added(self.width, high - low)
        self.log_density = _added(self.log_density, log_density)
        self.total = _added(self.total, y)
        self.total_square = _added(self.total_square, y**2)
        if len(y):
            worst = int(np.argmax((y - mean) ** 2))
            if (y[worst] - mean[worst]) ** 2 > self.largest:
                self.largest = float((y[worst] - mean[worst]) ** 2)
                self.largest_line = int(np.asarray(lines)[here][worst])

    def _compare(self, mean: np.ndarray, y: np.ndarray, naive: np.ndarray) -> None:
        here = np.isfinite(mean) & np.isfinite(y) & np.isfinite(naive).all(1)
        mean, y, naive = mean[here], y[here], naive[here]
        self.compared += len(y)
        self.compared_square = _added(self.compared_square, (y - mean) ** 2)
        for name, forecast in zip(NAMES, naive.T, strict=False):
            for kind, errors in (("square", (y - forecast) ** 2), ("absolute", np.abs(y - forecast))):
                setattr(self, f"{kind}_{name}", _added(getattr(self, f"{kind}_{name}"), errors))

    def plus(self, other: "Scores") -> "Scores":
        """Sums of both."""
        both = Scores(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))
        worse = self if self.largest >= other.largest else other
        both.largest, both.largest_line = worse.largest, worse.largest_line
        return both

    @property
    def relative(self) -> float:
        """Mean squared error as a share of the targets' variance: 1 for the mean of them all; NaN without any."""
        if not self.scored:
            return math.nan
        variance = self.total_square / self.scored - (self.total / self.scored) ** 2
        return self.square / self.scored / variance if variance > 0.0 else math.inf if self.square else 0.0

    @property
    def naive(self) -> dict[str, float]:
        """RMSE and MAE of each naive forecast, and the model's RMSE on the same rows; NaN where nothing was scored."""
        n = self.compared or math.nan
        errors = {"rmse_compared": math.sqrt(self.compared_square / n)}
        for name in NAMES:
            errors[f"rmse_{name}"] = math.sqrt(getattr(self, f"square_{name}") / n)
            errors[f"mae_{name}"] = getattr(self, f"absolute_{name}") / n
        return errors

    def summary(self) -> dict[str, Any]:
        """Means and counts by name; NaN where nothing was scored."""
        n = self.scored or math.nan
        return {
            "rows": self.rows,
            "predicted": self.predicted,
            "rmse": math.sqrt(self.square / n) if self.scored else math.nan,
            "mse": self.square / n,
            "relative": self.relative,
            "mae": self.absolute / n,
            "coverage": self.inside / n,
            "width": self.width / n,
            "nlpd": -self.log_density / n,
            **self.naive,
            "missing": self.missing,
            "carried": self.carried,
            "alarms": self.alarms,
        }

    def to_json(self) -> dict[str, Any]:
        """The sums, as JSON holds them."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Scores":
        """The sums that `to_json` gave."""
        values: dict[str, Any] = {
            field.name: (whole if field.type is int else number)(stored[field.name]) for field in fields(cls)
        }
        return cls(**values)


def _added(total: float, values: np.ndarray) -> float:
    """A sum taken one value after another, so that how rows are cut into blocks changes no bit of it."""
    return float(np.add.accumulate(np.append(total, values))[-1])
