"""Sales: seven previous days → the next day, for Store Sales (SS) and Online Retail (OR)."""

from experiments import experiment, methods, order, summary
from experiments.data import online_retail_stream, store_sales_stream
from experiments.experiment import Experiment
from experiments.load import CARRIED
from experiments.report import Section, Table
from experiments.summary import Results, Summary
from experiments.tasks import Method, Task

SERIES = ["SS", "OR"]
SETTING = (
    "T = 90, M = 20, λ^T = 0.1 (λ = 0.9747), seven inputs; 90 samples of warm-up, then 1584 online (SS: mean sales "
    "a day in standard deviations of all inputs, each 1 January replaced by the value before it, the first by the "
    "last value of the series) and 205 online (OR: revenue a trading day in units of 10 000 pounds). Everything "
    "else as for load."
)
DATA = "The published runs leave out the last three samples of both series, and so does this one."


class Sales(Experiment):
    """Two series of sales."""

    name = "sales"
    title = "Sales"

    def methods(self) -> list[Method]:
        """All methods."""
        return methods.methods("sales")

    def tasks(self) -> list[Task]:
        """One task a series."""
        streams = store_sales_stream(self.selection.data), online_retail_stream(self.selection.data)
        return [Task(stream.name, (1,), stream) for stream in streams]

    def summaries(self, results: Results) -> list[Summary]:
        """One line for each method and series."""
        return summary.by_series("sales", results)

    def section(self, results: Results) -> Section:
        """MSE, coverage and time."""
        lines = summary.table(self.summaries(results))
        mse = {name: {method: found[name].mse for method, found in lines.items() if name in found} for name in SERIES}
        return Section(
            title=self.title,
            command="python -m experiments sales",
            paragraphs=[SETTING, CARRIED, DATA],
            tables=[
                experiment.grid("MSE", "sales", lines, SERIES, "mse", "{:.4f}"),
                experiment.grid("Coverage, %", "sales", lines, SERIES, "coverage", experiment.PERCENT),
                _times(experiment.grid("Seconds", "sales", lines, SERIES, "seconds", experiment.SECONDS), lines),
            ],
            remarks=order.sentences("sales", mse, SERIES),
        )


def _times(table: Table, lines: dict[str, dict[str, Summary]]) -> Table:
    rows = [[*row, *(experiment.times_agp(lines, name, row[0]) for name in SERIES)] for row in table.rows]
    return Table(table.title, [*table.head, *(f"{name}, AGP = 1" for name in SERIES)], rows)
