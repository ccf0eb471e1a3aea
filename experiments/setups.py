"""The paper's figure, the printed setup, the published one and driftgp's default, side by side."""

from experiments import published, report
from experiments.methods import DEFAULT
from experiments.report import Table
from experiments.summary import Lines, Summary

DASH = "–"


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
