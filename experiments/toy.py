"""The toy stream: the table of all methods, and the figures of the data, the error over time and the predictions."""

import numpy as np
import polars as pl

from driftgp.data import toy_signal, toy_stream
from driftgp.data.toy import WARMUP
from experiments import experiment, figures, methods, order, published, report, summary
from experiments.experiment import Experiment
from experiments.figures import Band
from experiments.report import Picture, Section, Table
from experiments.summary import Results, Summary
from experiments.tasks import Method, Task

NOISE = 0.04
SETTING = (
    "T = 100, M = 10, λ^T = 0.1 (λ = 0.97724); 100 samples of warm-up (200 Adam iterations at rate 0.05) and 401 "
    "online. AGP, fast-AGP and the hybrid (a gradient step every 10 samples) as in the published runs: inducing "
    "inputs evenly spaced on [0, 1] and fixed in the warm-up, all parameters started at 1, jitter 0.001, r_th = "
    "0.0001, relevance by the rows of the Cholesky factor, fast-AGP with the published rule of admission. Seed k is "
    "the published seed k. The noise has a variance of 0.04: no method can have a smaller MSE."
)
RIVALS = (
    "w-VSGP at rate 0.005 and AGP-VSI at 0.05 take 50 iterations a sample and score the predictive density, as "
    "published. WISKI has 80 grid points on ±5.6 and a rate of 0.0001, at which the warm-up of its authors' "
    "implementation ends; that the published runs stayed at it is inferred from their MSE, and not enough to meet it. "
    "With a rate of 0.02 it learns on, and tracks the change. OSGP is this project's, which keeps statistics where the "
    "published one inverts a difference of matrices, and no seed of it fails."
)


class Toy(Experiment):
    """The toy stream with many seeds."""

    name = "toy"
    title = "Toy stream"

    def methods(self) -> list[Method]:
        """All methods."""
        return methods.methods("toy")

    def tasks(self) -> list[Task]:
        """One stream a seed."""
        return toy_tasks(self.selection.seeds)

    def summaries(self, results: Results) -> list[Summary]:
        """One line a method, over its seeds."""
        lines = [summary.summarise("toy", "toy", method, rows) for method, rows in results.items()]
        return [line for line in lines if line is not None]

    def section(self, results: Results) -> Section:
        """The table and three figures."""
        lines = summary.table(self.summaries(results))
        mse = {"toy": {method: found["toy"].mse for method, found in lines.items()}}
        seeds = experiment.seed_range(self.selection.seeds)
        return Section(
            title=self.title,
            command=f"python -m experiments toy --seeds {seeds}",
            paragraphs=[
                SETTING,
                RIVALS,
                f"Seeds {seeds}, or the first of them: as many as the column seeds says, and `--seeds` asks for.",
            ],
            tables=[_table(lines)],
            pictures=self._pictures(results),
            remarks=order.sentences("toy", mse, ["toy"]),
        )

    def _pictures(self, results: Results) -> list[Picture]:
        seed = self.selection.seeds[0]
        stream = toy_stream(seed)
        times, y = stream.X[WARMUP:, 0], stream.y[WARMUP:]
        drawn = {name: rows for name, rows in results.items() if name in figures.LINES and len(rows)}
        errors = {name: np.nanmean(squared_errors(rows), 0) for name, rows in drawn.items()}
        pictures = [
            Picture(
                "toy-data",
                f"The toy stream of seed {seed}: an amplitude that grows, then, at t = 3, a frequency that doubles.",
                figures.toy_data(stream.X[:, 0], stream.y, toy_signal(), WARMUP),
            ),
            Picture(
                "toy-mse-over-time",
                "MSE over time: means over the seeds of each method, and over 11 samples in a row.",
                figures.mse_over_time(times, errors, {name: len(rows) for name, rows in drawn.items()}, NOISE),
            ),
        ]
        forecasts = _forecasts(drawn, f"seed {seed}")
        if forecasts:
            caption = (
                f"What each method said of every sample of seed {seed} before seeing it: mean ± 2 standard deviations."
            )
            pictures.append(Picture("toy-predictions", caption, figures.predictive_panels(times, y, forecasts)))
        return pictures


def toy_tasks(seeds: tuple[int, ...]) -> list[Task]:
    """One task a seed."""
    return [Task(f"seed {seed}", (1,), toy_stream(seed)) for seed in seeds]


def squared_errors(rows: pl.DataFrame) -> np.ndarray:
    """Squared error of every sample, a row a seed."""
    errors: np.ndarray = (summary.array(rows, "mean") - summary.array(rows, "y")) ** 2
    return errors


def _table(lines: dict[str, dict[str, Summary]]) -> Table:
    head = ["method", "MSE", "standard error", "coverage, %", "seconds", "time, AGP = 1", "NLPD", "seeds", "failed"]
    rows = []
    for method, found in lines.items():
        line = found["toy"]
        paper = published.cell("toy", "toy", method)
        rows.append(
            [
                method,
                report.cell(line.mse, paper.mse),
                report.number(line.error),
                report.cell(100 * line.coverage, paper.coverage, experiment.PERCENT),
                report.cell(line.seconds, paper.seconds, experiment.SECONDS),
                experiment.times_agp(lines, "toy", method),
                report.number(line.nlpd, "{:.3f}"),
                str(line.runs),
                str(line.failed),
            ]
        )
    return Table("MSE, coverage and time", head, rows)


def _forecasts(results: Results, series: str) -> dict[str, Band]:
    chosen = {name: rows.filter(pl.col("series") == series) for name, rows in results.items()}
    return {
        name: Band(summary.array(rows, "mean")[0], summary.array(rows, "std")[0])
        for name, rows in chosen.items()
        if len(rows)
    }
