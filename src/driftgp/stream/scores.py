"""What forecasts were worth: their errors beside those of naive forecasts, and how often their intervals held."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.predictions import Prediction
from driftgp.stream.monitor import Monitor, Watched, means
from driftgp.wording import figure


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of rows that were predicted before they were learned.

    Attributes:
        rows: how many were scored: those with a target, after a first one was known, that did not come late.
        rmse: root mean squared error.
        mae: mean absolute error.
        crps: mean continuous ranked probability score.
        nlpd: mean negative log predictive density.
        level: of the intervals.
        coverage: share of targets in their interval.
        width: mean width of the intervals.
        naive: RMSE and MAE of each naive forecast on the same rows, by what it is.
        by_hour: rows and coverage at each hour of the day, 24×2; None without dates.
        by_decile: rows and coverage for each tenth of the forecasts, from the lowest on, 10×2.
    """

    rows: int
    rmse: float
    mae: float
    crps: float
    nlpd: float
    level: float
    coverage: float
    width: float
    naive: dict[str, tuple[float, float]]
    by_hour: np.ndarray | None
    by_decile: np.ndarray

    def __str__(self) -> str:
        lines = [f"{'':<24}{'RMSE':>10}{'MAE':>10}", f"{'forecast':<24}{figure(self.rmse):>10}{figure(self.mae):>10}"]
        lines += [f"{name:<24}{figure(rmse):>10}{figure(mae):>10}" for name, (rmse, mae) in self.naive.items()]
        inside = f"{self.coverage:.1%} of {self.rows} targets in their {self.level:.0%} interval"
        return "\n".join([*lines, f"{inside}; CRPS {figure(self.crps)}"])


def scores_of(prediction: Prediction, seen: Any) -> Scores:
    """The scores of an evaluation, whose rows are `seen`."""
    if seen.y.ndim != 1:
        raise ValueError(f"scores are those of one target; got {seen.y.shape[1]}: take prediction.output(i)")
    N = len(seen.y)
    low, high = prediction.interval(seen.level)
    monitor = Monitor(seen.horizon, densities=("log_density", "crps"))
    wall = seen.wall if seen.dated or seen.at is None else seen.at
    keys = [None] * N if seen.keys is None else seen.keys.tolist()
    monitor.see(Watched(prediction, low, high, seen.y, wall, seen.dated, keys, seen.flags, np.arange(N)))
    labels = monitor.labels
    found = means(monitor.in_all(), labels)
    return Scores(
        rows=int(found["scored"]),
        rmse=found["rmse"],
        mae=found["mae"],
        crps=found["crps"],
        nlpd=found["nlpd"],
        level=seen.level,
        coverage=found["coverage"],
        width=found["width"],
        naive={label: (found[f"rmse_{n}"], found[f"mae_{n}"]) for n, label in enumerate(labels)},
        by_hour=monitor.by_hour() if seen.dated else None,
        by_decile=monitor.by_tenth(),
    )
