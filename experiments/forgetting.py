"""The forgetting sweep: AGP around the toy stream's change of frequency, for ten rates of forgetting."""

import numpy as np
import polars as pl

from driftgp.data import toy_times
from driftgp.data.toy import WARMUP
from driftgp.gp.agp import AGP
from experiments import claims, experiment, figures, report, settings, summary
from experiments.experiment import Experiment
from experiments.report import Picture, Section, Table
from experiments.summary import Results, Summary
from experiments.tasks import Method, Task
from experiments.toy import squared_errors, toy_tasks

EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0, 2.0, 3.0, 4.0, 4.5, 5.0)
AROUND = (2.5, 4.0)  # the change at t = 3, as the paper shows it
TRACKING = (3.2, 3.4)  # where the paper compares the rates
FINDING = (
    "The paper shows this as a figure without numbers. It claims: without forgetting (v = 0) AGP is similar to the "
    "baselines. With any other v it adapts. The error between t = 3.2 and t = 3.4 falls until v = 4. With λ of 0.9 or"
    " less it forgets too fast."
)
SETTING = (
    "AGP on the toy stream with λ^T = 10^(−v), all else as published: one Adam optimiser for warm-up and stream, "
    "r_th = 0.01, jitter 0.001."
)


class Forgetting(Experiment):
    """AGP with λ^T = 10^−v for ten v."""

    name = "lambda"
    title = "Forgetting sweep"

    def methods(self) -> list[Method]:
        """AGP for every v."""
        return [_method(v) for v in EXPONENTS]

    def wanted(self, names: tuple[str, ...] | None) -> list[Method]:
        """All of them, unless AGP is not asked for."""
        return self.methods() if names is None or "agp" in {name.casefold() for name in names} else []

    def tasks(self) -> list[Task]:
        """One stream a seed."""
        return toy_tasks(self.selection.seeds)

    def summaries(self, results: Results) -> list[Summary]:
        """One line a rate, over t ∈ [2.5, 4]."""
        return [_summary(name, rows) for name, rows in results.items() if len(rows)]

    def section(self, results: Results) -> Section:
        """The table and the figure."""
        seeds = experiment.seed_range(self.selection.seeds[: max(map(len, results.values()), default=0)])
        inside = _between(*AROUND)
        errors = {
            _exponent(name): np.nanmean(squared_errors(rows), 0)[inside] for name, rows in results.items() if len(rows)
        }
        around = {v: float(np.mean(values)) for v, values in errors.items()}
        tracking = {_exponent(name): _tracking(rows) for name, rows in results.items() if len(rows)}
        times = toy_times()[WARMUP:][inside]
        caption = "MSE of AGP around the change of frequency, for ten rates of forgetting: means over the seeds."
        figure = figures.forgetting(times, errors, {v: _factor(v) for v in errors})
        return Section(
            title=self.title,
            command=f"python -m experiments lambda --seeds {seeds}",
            paragraphs=[f"{SETTING} Seeds {seeds}.", FINDING],
            tables=[_table(self.summaries(results), results), *claims.sweep(around, tracking)],
            pictures=[Picture("toy-forgetting", caption, figure)] if errors else [],
            remarks=_remarks(tracking),
        )


def _method(v: float) -> Method:
    options = {name: value for name, value in settings.published("toy").items() if name != "forgetting"}
    return Method(f"v={v:g}", lambda _: AGP(**options, attenuation=10.0**-v))


def _exponent(name: str) -> float:
    return float(name.removeprefix("v="))


def _factor(v: float) -> float:
    return float(10.0 ** (-v / settings.sizes("toy")["window"]))


def _between(first: float, last: float) -> np.ndarray:
    times = toy_times()[WARMUP:]
    inside: np.ndarray = (times >= first) & (times <= last)
    return inside


def _summary(name: str, rows: pl.DataFrame) -> Summary:
    inside = _between(*AROUND)
    y, mean, std = (summary.array(rows, column)[:, inside].astype(float) for column in ("y", "mean", "std"))
    error = mean - y
    mse = np.mean(error**2, 1)
    return Summary(
        experiment="lambda",
        series=name,
        method="AGP",
        mse=float(np.mean(mse)),
        coverage=float(np.mean(np.abs(error) <= 2 * std)),
        mape=float(100 * np.mean(np.abs(error / y))),
        nlpd=float(np.mean(0.5 * np.log(2 * np.pi * std**2) + 0.5 * (error / std) ** 2)),
        seconds=float(rows["seconds"].to_numpy().mean()),
        runs=len(rows),
        error=float(np.std(mse, ddof=1) / np.sqrt(len(mse))) if len(mse) > 1 else float("nan"),
    )


def _tracking(rows: pl.DataFrame) -> float:
    return float(np.nanmean(squared_errors(rows)[:, _between(*TRACKING)]))


def _remarks(errors: dict[float, float]) -> list[str]:
    """Where the paper's three observations hold; `errors` between t = 3.2 and 3.4 for every v."""
    if len(errors) < len(EXPONENTS):
        return []
    worst, best = max(errors, key=errors.__getitem__), min(errors, key=errors.__getitem__)
    later = ", ".join(f"{errors[v]:.4f} (v = {v:g})" for v in sorted(errors) if v > best)
    finding = (
        f"Between t = 3.2 and t = 3.4, v = {worst:g} tracks worst ({errors[worst]:.4f}); the error falls until "
        f"v = {best:g} ({errors[best]:.4f}){f' and then is {later}' if later else ''}."
    )
    return [finding]


def _table(lines: list[Summary], results: Results) -> Table:
    head = ["v", "λ", "MSE, t from 2.5 to 4", "MSE, t from 3.2 to 3.4", "coverage, %", "seeds"]
    rows = []
    for line in lines:
        v = _exponent(line.series)
        rows.append(
            [
                f"{v:g}",
                f"{_factor(v):.4f}",
                report.cell(line.mse, None),
                report.cell(_tracking(results[line.series]), None),
                report.cell(100 * line.coverage, None, experiment.PERCENT),
                str(line.runs),
            ]
        )
    return Table("MSE around the change of frequency", head, rows)
