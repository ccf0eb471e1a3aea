"""The command line of the experiments."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftgp.base.cores import cores
from driftgp.cli import console
from driftgp.cli.console import ShownColumn

if TYPE_CHECKING:
    from experiments.report import Section
    from experiments.reproduce import Plan
    from experiments.settings import Setup
    from experiments.summary import Summary

COLUMNS = (
    ShownColumn("experiment", "experiment"),
    ShownColumn("series", "series"),
    ShownColumn("method", "method"),
    ShownColumn("mse", "MSE", "{:.4f}"),
    ShownColumn("coverage", "coverage", "{:.1%}"),
    ShownColumn("mape", "MAPE, %", "{:.2f}"),
    ShownColumn("nlpd", "NLPD", "{:.3f}"),
    ShownColumn("seconds", "CPU s", "{:.3g}"),
    ShownColumn("runs", "runs", "{:d}", screen_only=True),
)
BEYOND_COLUMNS = (
    *COLUMNS[:4],
    *(ShownColumn(f"coverage_{level}", f"{level} %", "{:.1%}") for level in (50, 80, 95, 99)),
    ShownColumn("width", "width", "{:.3f}"),
    ShownColumn("nlpd", "NLPD", "{:.3f}"),
    ShownColumn("crps", "CRPS", "{:.4f}"),
    ShownColumn("us_per_step", "µs/step", "{:.0f}"),
    ShownColumn("runs", "runs", "{:d}", screen_only=True),
)
BEYOND_CAPTION = "per cent: coverage of the central intervals; width: of the 95 % interval; runs: seeds, or hours"
CAPTION = "coverage: share of samples within 2 standard deviations of the mean; runs: seeds, or hours of the day"


class What(StrEnum):
    """The experiments, named here so that `--help` need not import them."""

    TOY = "toy"
    LAMBDA = "lambda"
    LOAD = "load"
    SALES = "sales"
    BEYOND = "beyond"
    TRIALS = "trials"
    ALL = "all"


# Those that go beyond the paper have reports, and columns, of their own.
_REPORTS: dict[str, str] = {What.BEYOND: "beyond", What.TRIALS: "trials"}


def reproduce(
    what: Annotated[What, typer.Argument(help="Which table of the paper, with its figures, or what goes beyond it.")],
    seeds: Annotated[
        str, typer.Option(help="Toy streams: how many, or a range such as 100-199.", show_default="1000")
    ] = "1000",
    zones: Annotated[str | None, typer.Option(help="Zones of the load, as in CT,WCMA.", show_default="all 8")] = None,
    hours: Annotated[str | None, typer.Option(help="Hours of the load, as in 1-12,24.", show_default="all 24")] = None,
    series: Annotated[
        list[str] | None,
        typer.Option(help='Series of beyond: "toy,CT,CT calendar,SS,OR,bikes".', show_default="all"),
    ] = None,
    setup: Annotated[
        str | None,
        typer.Option(
            help="printed: by the paper's text; published: by the authors' notebooks; ours: what they left out.",
            show_default="all three",
        ),
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option(help="Names, with commas between them: AGP,fast-AGP.", show_default="all")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time.", show_default="one a core")] = None,
    minutes: Annotated[
        float, typer.Option(min=0, help="Begin no run of a method after this many minutes; the report counts the runs.")
    ] = 60,
    data: Annotated[Path | None, typer.Option(help="Folder with the data.", envvar="DRIFTGP_DATA")] = None,
    output: Annotated[
        Path, typer.Option(help="Folder for results; existing results are not computed again.", file_okay=False)
    ] = Path("results"),
    markdown: Annotated[
        Path | None, typer.Option(help="Markdown report to write.", show_default="results.md in the output folder")
    ] = None,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write the report.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON, and nothing else.")] = False,
) -> None:
    """Reproduce the paper's tables and figures. An interrupted run goes on where it stopped.

    Most rivals need driftgp[rivals]; without it, name methods that do not.
    """
    chosen_zones, chosen_hours = _zones(zones), _numbers("hours", hours, 1, 24) if hours else None
    chosen_seeds, names, chosen_series = _seeds(seeds), _names(methods), _series(what, series)
    setups = _setups(setup)
    from experiments import reproduce
    from experiments.tasks import HOURS, Selection

    selection = Selection(chosen_seeds, chosen_zones, chosen_hours or HOURS, data, chosen_series, setups)
    experiments = reproduce.chosen(what.value, selection, names)
    plans = {experiment: reproduce.plans(experiment, names, output) for experiment in experiments}
    if minutes > 0:
        for of_one in plans.values():
            _run(of_one, jobs or cores(), minutes)
    results = {experiment: {plan.method.name: plan.rows() for plan in of_one} for experiment, of_one in plans.items()}
    lines = [line for experiment, found in results.items() for line in experiment.summaries(found)]
    _show(lines, as_json)
    if report:
        sections = [experiment.section(found) for experiment, found in results.items() if found]
        _write(sections, output, markdown, _REPORTS.get(what, "results"))


def _run(plans: list[Plan], jobs: int, minutes: float) -> None:
    """Run what is missing of one experiment, method by method."""
    for plan in plans:
        left = plan.missing()
        if not left:
            continue
        with console.progress(len(left), plan.label) as done:
            plan.run(left, partial(done, plan.label), jobs, minutes)


def _show(lines: list[Summary], as_json: bool) -> None:
    rows = [asdict(line) for line in lines]
    if as_json:
        beyond = any(line.experiment in _REPORTS for line in lines)
        console.print_json(BEYOND_COLUMNS if beyond else COLUMNS, rows)
        return
    for experiment in dict.fromkeys(line.experiment for line in lines):
        of_one = [row for row in rows if row["experiment"] == experiment]
        columns, caption = (BEYOND_COLUMNS, BEYOND_CAPTION) if experiment in _REPORTS else (COLUMNS, CAPTION)
        console.print_table(columns[1:], of_one, title=f"{experiment}, one step ahead", caption=caption)


def _write(sections: list[Section], output: Path, markdown: Path | None, name: str) -> None:
    from experiments import report

    heading = report.BEYOND if name in _REPORTS.values() else report.PAPER
    markdown = markdown or output / f"{name}.md"
    page = output / ("report.html" if name == "results" else f"{name}.html")
    report.write_markdown(markdown, sections, heading)
    report.write_html(page, sections, heading)
    console.remark(f"wrote {markdown} and {page}")


# ---- what the options mean -----------------------------------------------------------------------------------------


def _seeds(text: str) -> tuple[int, ...]:
    """A count, or numbers and ranges.

    >>> _seeds("3"), _seeds("5-7")
    ((0, 1, 2), (5, 6, 7))
    """
    if text.strip().isdecimal():
        if int(text) < 1:
            raise ValueError(f"seeds must be a count of at least 1 or a range such as 100-199; got {text!r}")
        return tuple(range(int(text)))
    return _numbers("seeds", text, 0, 2**32 - 1)


def _numbers(name: str, text: str, lowest: int, highest: int) -> tuple[int, ...]:
    """Numbers and ranges with commas between them.

    >>> _numbers("hours", "1-3,24", 1, 24)
    (1, 2, 3, 24)
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(
                f"{name} must be numbers and ranges, such as {lowest}-{lowest + 2},{lowest + 9}; got {text!r}"
            )
        low, high = int(first), int(last) if dash else int(first)
        if not lowest <= low <= high <= highest:
            raise ValueError(f"{name} must lie between {lowest} and {highest}, ranges from low to high; got {part!r}")
        found.extend(range(low, high + 1))
    return tuple(dict.fromkeys(found))


def _names(methods: list[str] | None) -> tuple[str, ...] | None:
    """Names from options that may each hold several."""
    if not methods:
        return None
    return tuple(name.strip() for option in methods for name in option.split(",") if name.strip())


def _setups(text: str | None) -> tuple[Setup, ...]:
    """Setups with commas between them.

    >>> _setups("printed, ours")
    ('printed', 'ours')
    """
    from experiments.settings import SETUPS

    asked = SETUPS if text is None else tuple(part.strip().casefold() for part in text.split(","))
    for name in asked:
        if name not in SETUPS:
            raise ValueError(f"setup must be among {', '.join(SETUPS)}; got {name!r}")
    return tuple(name for name in SETUPS if name in asked)


def _series(what: What, options: list[str] | None) -> tuple[str, ...] | None:
    names = _names(options)
    if names is None:
        return None
    if what not in _REPORTS:
        raise ValueError(
            f"series are those of beyond and trials; {what.value} has seeds, zones or hours; got {options!r}"
        )
    from experiments.beyond_streams import SERIES

    known = {name.casefold(): name for name in SERIES}
    for name in names:
        if name.casefold() not in known:
            raise ValueError(f"series must be among {', '.join(SERIES)}; got {name!r}")
    return tuple(known[name.casefold()] for name in names)


def _zones(text: str | None) -> tuple[str, ...]:
    from experiments.data import ZONES

    if text is None:
        return tuple(ZONES)
    found = tuple(dict.fromkeys(part.strip().upper() for part in text.split(",")))
    for zone in found:
        if zone not in ZONES:
            raise ValueError(f"zones must be among {', '.join(ZONES)}; got {zone!r}")
    return found
