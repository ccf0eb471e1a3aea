"""From the rows of the runs to one line for each method and series, as the tables and `--json` have it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

Results = Mapping[str, pl.DataFrame]  # method → rows of `store.SCHEMA`
Lines = dict[str, dict[str, "Summary"]]  # method → series → line


NAN = float("nan")
MEANS = ("coverage", "mape", "nlpd", "coverage_50", "coverage_80", "coverage_95", "coverage_99", "width", "crps")


@dataclass(frozen=True)
class Summary:
    """What a method did on a series: means over its runs (seeds, or hours of the day)."""

    experiment: str
    series: str
    method: str
    mse: float
    coverage: float  # share of samples within mean ± 2 standard deviations
    mape: float  # per cent
    nlpd: float
    seconds: float  # of CPU for one series: predicting and learning from all its samples after the warm-up
    runs: int  # how many the means are over
    failed: int = 0  # runs left out because a prediction was not finite, or a step failed
    error: float = NAN  # standard error of the MSE over the runs
    coverage_50: float = NAN  # of the central intervals
    coverage_80: float = NAN
    coverage_95: float = NAN
    coverage_99: float = NAN
    width: float = NAN  # of the 95 % interval
    crps: float = NAN
    us_per_step: float = NAN  # of CPU, the warm-up included


def summarise(experiment: str, series: str, method: str, rows: pl.DataFrame) -> Summary | None:
    """One line from some of a method's rows; None where there are none, or none that came through."""
    sound = rows.filter(pl.all_horizontal(pl.col("mse", "nlpd").is_finite()) & (pl.col("failed").fill_null(0) == 0))
    if sound.is_empty():
        return None
    mse = sound["mse"].to_numpy()
    return Summary(
        experiment=experiment,
        series=series,
        method=method,
        mse=float(mse.mean()),
        seconds=float(rows.group_by("series").agg(pl.col("seconds").sum())["seconds"].to_numpy().mean()),
        runs=len(sound),
        failed=len(rows) - len(sound),
        error=float(mse.std(ddof=1) / np.sqrt(len(mse))) if len(mse) > 1 else NAN,
        us_per_step=1e6 * float(rows["seconds"].sum()) / int(rows["y"].list.len().sum()),
        **{name: float(sound[name].to_numpy().mean()) for name in MEANS},
    )


def by_series(experiment: str, results: Results) -> list[Summary]:
    """One line for each method and each series that it has rows of."""
    lines = [
        summarise(experiment, series, method, rows.filter(pl.col("series") == series))
        for method, rows in results.items()
        for series in rows["series"].unique(maintain_order=True)
    ]
    return [line for line in lines if line is not None]


def table(lines: list[Summary]) -> Lines:
    """Look-up of lines: method → series → line, methods in the order in which they come."""
    found: dict[str, dict[str, Summary]] = {}
    for line in lines:
        found.setdefault(line.method, {})[line.series] = line
    return found


def array(rows: pl.DataFrame, column: str) -> np.ndarray:
    """A column of lists as an array, one row a run."""
    return np.stack(rows[column].to_list()) if len(rows) else np.zeros((0, 0))
