"""Beyond the paper: the library's defaults, untouched, beside the paper's models and every rival on every stream."""

from collections.abc import Callable
from typing import Any

import numpy as np

from driftgp.data import Stream
from driftgp.defaults import SHARES, in_own_units, recommended, sizes
from driftgp.models.model import Model
from driftgp.wrappers import Bank, Standardize
from experiments import beyond_streams, methods, report, summary
from experiments.beyond_streams import SERIES
from experiments.experiment import Experiment
from experiments.report import Section, Table
from experiments.settings import Which
from experiments.summary import Results, Summary
from experiments.tasks import Method, Task

Build = Callable[[Stream], Model]
DEFAULTS = "driftgp defaults"
BANK = "defaults (not calibrated)"
SETTING = (
    "The row of the defaults is `driftgp.defaults.recommended` with nothing but the warm-up samples of each stream; "
    "AGP, fast-AGP and the rivals have the settings of the published runs, those of load and sales on streams that the "
    "paper does not have. Rows with one λ are the members of the bank alone, with a memory 1/(1 − λ) of so many "
    "windows: what the bank saves the user from choosing. Coverage and width are those of the central intervals."
)


class Beyond(Experiment):
    """Every stream, every method."""

    name = "beyond"
    title = "Beyond the paper"

    @property
    def series(self) -> tuple[str, ...]:
        """Series that were asked for."""
        return SERIES if self.selection.series is None else self.selection.series

    def methods(self) -> list[Method]:
        """The defaults, the bank and its members, and all methods of the paper's tables."""
        tables = [*methods.published("load"), *methods.ours("load")]
        known = {method.name: method for method in tables if method.name not in (methods.SHARED, methods.DEFAULT)}
        return [
            Method(DEFAULTS, _defaults, fitted=True),
            Method(BANK, _bank, fitted=True),
            *(Method(f"one λ ({share:g} T)", _single(i), fitted=True) for i, share in enumerate(SHARES)),
            *(Method(name, _by_stream(name), slow=known[name].slow, shared=known[name].shared) for name in known),
        ]

    def tasks(self) -> list[Task]:
        """All series, for the seeds and hours of the selection."""
        return beyond_streams.tasks(self.selection, self.series)

    def summaries(self, results: Results) -> list[Summary]:
        """One line for each method and series."""
        return sorted(summary.by_series(self.name, results), key=lambda line: self.series.index(line.series))

    def section(self, results: Results) -> Section:
        """One table a series."""
        lines = self.summaries(results)
        return Section(
            title=self.title,
            command=f"python -m experiments beyond --series {','.join(self.series)}",
            paragraphs=[SETTING],
            tables=[_table(name, [line for line in lines if line.series == name]) for name in self.series],
        )


def _table(title: str, lines: list[Summary]) -> Table:
    head = ["method", "MSE", "50 %", "80 %", "95 %", "99 %", "width", "NLPD", "CRPS", "µs a step", "runs"]
    rows = [
        [
            line.method,
            report.number(line.mse),
            *(report.number(100 * getattr(line, f"coverage_{level}"), "{:.2f}") for level in (50, 80, 95, 99)),
            *(report.number(getattr(line, name)) for name in ("width", "nlpd", "crps")),
            report.number(line.us_per_step, "{:.0f}"),
            str(line.runs),
        ]
        for line in lines
    ]
    return Table(title, head, rows)


# ---- models --------------------------------------------------------------------------------------------------------


def _warm(stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    return stream.X[: stream.warmup], stream.y[: stream.warmup]


def _defaults(stream: Stream) -> Model:
    return recommended(*_warm(stream))


def members(stream: Stream) -> Bank:
    """The bank inside the defaults."""
    model: Any = _defaults(stream)
    while not isinstance(model, Bank):
        model = model.model
    return model


def _bank(stream: Stream) -> Model:
    """The defaults, not calibrated."""
    return in_units_of_the_defaults(members(stream), stream)


def _single(member: int) -> Build:
    """The defaults with one λ, not calibrated."""
    return lambda stream: in_units_of_the_defaults(members(stream).models[member], stream)


def in_units_of_the_defaults(model: Model, stream: Stream) -> Standardize:
    """A model with the defaults' own units and limits of inputs."""
    return in_own_units(model, sizes(stream.y[: stream.warmup], stream.X.shape[1]).window)


def _by_stream(name: str) -> Build:
    """The method of this name with the settings of the paper's experiment on such a stream."""

    def build(stream: Stream) -> Model:
        return next(method for method in methods.methods(_which(stream)) if method.name == name).build(stream)

    return build


def _which(stream: Stream) -> Which:
    """Settings of load and sales differ in nothing but WISKI's maps."""
    return "toy" if stream.name == "toy" else "load"
