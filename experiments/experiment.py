"""What an experiment is: what to run, how to sum it up, and what the report says of it."""

import abc
from dataclasses import dataclass
from typing import ClassVar

from experiments import published, report
from experiments.methods import DEFAULT
from experiments.published import Cell
from experiments.report import Section, Table
from experiments.summary import Lines, Results, Summary
from experiments.tasks import Method, Selection, Task

PERCENT = "{:.2f}"
DASH = "–"
SECONDS = "{:.4g}"


@dataclass(frozen=True)
class Experiment(abc.ABC):
    """One table of the paper, or one figure, for the seeds, zones and hours of a selection."""

    selection: Selection
    name: ClassVar[str]
    title: ClassVar[str]

    @abc.abstractmethod
    def methods(self) -> list[Method]:
        """Methods in the order of the table."""

    @abc.abstractmethod
    def tasks(self) -> list[Task]:
        """What every method is to follow."""

    @abc.abstractmethod
    def summaries(self, results: Results) -> list[Summary]:
        """One line for each method and series."""

    @abc.abstractmethod
    def section(self, results: Results) -> Section:
        """The experiment's part of the report."""

    def wanted(self, names: tuple[str, ...] | None) -> list[Method]:
        """Methods of the given setups, and with these names in any case (all, if None)."""
        chosen = [method for method in self.methods() if method.setup in self.selection.setups]
        return chosen if names is None else [method for method in chosen if any(map(method.called, names))]


def seed_range(seeds: tuple[int, ...]) -> str:
    """Write seeds as a range where they are one.

    >>> seed_range((0, 1, 2)), seed_range((5,)), seed_range((1, 3))
    ('0-2', '5', '1,3')
    """
    if len(seeds) > 1 and seeds == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds))


def grid(title: str, name: str, lines: Lines, series: list[str], what: str, form: str) -> Table:
    """A table of one score of the experiment `name`, methods down and series across, the paper's number beside ours."""
    rows = [
        [method, *(_cell(found.get(place), published.cell(name, place, method), what, form) for place in series)]
        for method, found in lines.items()
    ]
    return Table(title, ["method", *series], rows)


def _cell(line: Summary | None, paper: Cell, what: str, form: str) -> str:
    return report.cell(None if line is None else ours(line, what), getattr(paper, what, None), form)


def ours(line: Summary, what: str) -> float:
    """Our number in the unit in which the paper has it."""
    value: float = getattr(line, what)
    return 100 * value if what == "coverage" else value


def times_agp(lines: Lines, series: str, method: str) -> str:
    """Time as a multiple of AGP's: ours, measured in one run on one machine, and the paper's."""
    line, agp = lines[method].get(series), lines.get("AGP", {}).get(series)
    if line is None or agp is None:
        return report.cell(None, None)
    cell, reference = published.cell(line.experiment, series, method), published.cell(line.experiment, series, "AGP")
    ratio = cell.seconds / reference.seconds if cell.seconds and reference.seconds else None
    return report.cell(line.seconds / agp.seconds, ratio, "{:.2f}")


def side_by_side(which: str, series: str, lines: Lines, title: str) -> Table:
    """MSE / coverage of every method of the paper's table, and of the default, for one series."""
    rows = []
    for method in published.TABLES[which][series]:
        cell = published.cell(which, series, method)
        found = [lines.get(name, {}).get(series) for name in (f"{method} (printed)", method)]
        rows.append([method, _pair(cell.mse, cell.coverage), *map(_of, found), DASH])
    default = lines.get(DEFAULT, {}).get(series)
    if default is not None:
        rows.append([DEFAULT, DASH, DASH, DASH, _of(default)])
    return Table(title, ["method", "paper", "printed", "published", "default"], rows)


def _of(line: Summary | None) -> str:
    return DASH if line is None else _pair(line.mse, 100 * line.coverage)


def _pair(mse: float | None, coverage: float | None) -> str:
    if mse is None:
        return DASH
    return f"{report.number(mse)} / {report.number(coverage, '{:.2f}')}"
