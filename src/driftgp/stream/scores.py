"""Scores of forecasts: errors beside those of naive forecasts, and coverage of intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.base.wording import figure
from driftgp.predictions import Prediction
from driftgp.stream.running_scores import PredictedRows, RunningScores, means

_ROWS = 30  # least rows of a group whose share is shown
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_TENTHS = tuple(f"in the {which} tenth" for which in ("lowest", *_ORDINALS, "highest"))


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of rows that were predicted before they were learned.

    Attributes:
        rows: number of scored rows. Rows without a target, late rows and the rows up to the first target are not
            scored.
        rmse: root mean squared error.
        mae: mean absolute error.
        crps: mean continuous ranked probability score.
        nlpd: mean negative log predictive density.
        level: of the intervals.
        coverage: share of targets in their interval.
        width: mean width of the intervals, without those of the first ten rows of each series, which are very wide.
        naive: RMSE and MAE of each naive forecast on the same rows, by its name; with a base, those of the "base" too.
        by_hour: rows and coverage at each hour of the day, 24×2; None without dates.
        by_decile: rows and coverage for each tenth of the forecasts, from the lowest on, 10×2; of the last 20 000 rows.
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
        if not self.rows:
            return "no row was scored: none has a target after a row with one, in the order of time"
        inside = f"{self.coverage:.1%} of {self.rows} targets in their {self.level:.0%} interval"
        lines.append(f"{inside}; CRPS {figure(self.crps)}")
        return "\n".join([*lines, *(f"{name}: {text}" for name, text in given_the_row(self.by_hour, self.by_decile))])


def given_the_row(by_hour: np.ndarray | None, by_tenth: np.ndarray) -> list[tuple[str, str]]:
    """Sentences on coverage by hour of the day and by size of the forecast: where it is least, and where it is most.

    >>> given_the_row(None, np.array([[40, 0.85], *8 * [[40, 0.95]], [40, 0.975]]))
    [('By forecast', 'fewest inside in the lowest tenth (85.0%), most in the highest tenth (97.5%)')]
    """
    hours = [f"at {hour:02d}:00" for hour in range(24)]
    groups = (("By hour", by_hour, hours), ("By forecast", by_tenth, _TENTHS))
    return [(name, text) for name, shares, names in groups if (text := _extremes(shares, names))]


def _extremes(shares: np.ndarray | None, names: Sequence[str]) -> str:
    """The least and the largest share of the groups with enough rows; nothing for fewer than two groups."""
    enough = np.flatnonzero(shares[:, 0] >= _ROWS) if shares is not None else np.zeros(0, int)
    if shares is None or len(enough) < 2:
        return ""
    least, most = enough[np.argmin(shares[enough, 1])], enough[np.argmax(shares[enough, 1])]
    return f"fewest inside {names[least]} ({shares[least, 1]:.1%}), most {names[most]} ({shares[most, 1]:.1%})"


def scores_of(prediction: Prediction, rows: Any) -> Scores:
    """The scores of an evaluation, whose rows are `driftgp.stream.evaluation.EvaluatedRows`."""
    if rows.y.ndim != 1:
        raise ValueError(f"scores are those of one target; got {rows.y.shape[1]}: take prediction.output(i)")
    N, level = len(rows.y), rows.settings.level
    low, high = prediction.interval(level)
    monitor = RunningScores(rows.settings.horizon, densities=("log_density", "crps"))
    wall = rows.wall if rows.dated or rows.at is None else rows.at
    keys = [None] * N if rows.keys is None else rows.keys.tolist()
    monitor.see(
        PredictedRows(prediction, low, high, rows.y, wall, rows.dated, keys, rows.flags, np.arange(N), base=rows.base)
    )
    labels = monitor.labels
    found = means(monitor.in_all(), labels)
    naive = {label: (found[f"rmse_{n}"], found[f"mae_{n}"]) for n, label in enumerate(labels)}
    if rows.base is not None:
        naive = {"base": (found["rmse_base"], found["mae_base"]), **naive}
    return Scores(
        rows=int(found["scored"]),
        rmse=found["rmse"],
        mae=found["mae"],
        crps=found["crps"],
        nlpd=found["nlpd"],
        level=level,
        coverage=found["coverage"],
        width=found["width"],
        naive=naive,
        by_hour=monitor.by_hour() if rows.dated else None,
        by_decile=monitor.by_tenth(),
    )
