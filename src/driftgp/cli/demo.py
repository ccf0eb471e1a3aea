"""`driftgp demo`."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftgp.cli import console, options
from driftgp.cli.console import ShownColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.figure import Figure

TOY = (
    ShownColumn("method", "method"),
    ShownColumn("mse", "MSE", "{:.4f}"),
    ShownColumn("coverage", "95% coverage", "{:.1%}"),
    ShownColumn("nlpd", "NLPD", "{:.3f}"),
    ShownColumn("us_per_step", "µs/step", "{:.0f}"),
    ShownColumn("us_per_call", "µs/call", "{:.0f}"),
    ShownColumn("inducing", "inducing", "{:.1f}", screen_only=True),
)
BIKES = (
    ShownColumn("method", "method"),
    ShownColumn("rmse", "RMSE", "{:.1f}"),
    ShownColumn("mae", "MAE", "{:.1f}"),
    ShownColumn("crps", "CRPS", "{:.1f}"),
    ShownColumn("coverage", "95% coverage", "{:.1%}"),
    ShownColumn("microseconds", "µs/row", "{:.0f}"),
)


class Part(StrEnum):
    """What the demonstration has."""

    TOY = "toy"
    BIKES = "bikes"


class Relevance(StrEnum):
    """The rules of `driftgp.gp.inducing`, named here so that `--help` need not import it."""

    LEAVE_ONE_OUT = "leave-one-out"
    CHOLESKY = "cholesky"
    DIAGONAL = "diagonal"


def demo(
    seeds: Annotated[int, typer.Option(min=1, help="Average over this many seeds.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="First seed, the one of the picture.")] = 0,
    methods: Annotated[
        str | None,
        typer.Option(
            help='A table of other methods, without a picture: all, or names with commas, "AGP,OSGP,exact window". '
            'A name with @λ has another forgetting factor: "KRLS-T@0.98". Most need driftgp\\[rivals].',
            show_default="AGP in three forms, and persistence",
        ),
    ] = None,
    relevance: Annotated[
        Relevance | None,
        typer.Option(
            help="Rule by which inducing points are dropped.", show_default="leave-one-out, or cholesky with --paper"
        ),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="All settings as in the published runs, not only those in print.")
    ] = False,
    only: Annotated[Part | None, typer.Option(help="One of the two parts.", show_default="both")] = None,
    output: Annotated[
        Path,
        typer.Option(
            help="Picture of the toy stream: .png, .pdf or .svg; that of the bikes is beside it.",
            dir_okay=False,
            callback=options.picture,
        ),
    ] = Path("demo.png"),
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Write the pictures.")] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table of each part as JSON, and nothing else.")
    ] = False,
) -> None:
    """Show AGP on the paper's toy stream, and the default model on bike rentals: a table and a picture of each."""
    if methods is not None:
        _rivals(None if methods == "all" else [name.strip() for name in methods.split(",")], seeds, seed, as_json)
        return
    parts: dict[str, list[dict[str, Any]]] = {}
    if only is not Part.BIKES:
        parts["toy"] = _toy(range(seed, seed + seeds), relevance, paper, output if plot else None, as_json)
    if only is not Part.TOY:
        parts["bikes"] = _bikes(output.with_stem(f"{output.stem}-bikes") if plot else None, as_json)
    if as_json:
        print(json.dumps(parts, indent=2, allow_nan=False))


def _toy(
    seeds: range, relevance: Relevance | None, paper: bool, output: Path | None, as_json: bool
) -> list[dict[str, Any]]:
    """AGP, fast-AGP, the hybrid and persistence on the toy stream."""
    from driftgp.data import toy_stream
    from driftgp.demo import picture, settings, table

    chosen = settings.published() if paper else settings.printed()
    if relevance is not None:
        chosen["relevance"] = relevance.value
    shown = picture.methods(chosen)
    streams = [toy_stream(number) for number in seeds]
    with console.progress(table.steps(shown, streams), "running") as report:
        results = table.compare(shown, streams, report)
    rows = [asdict(result.row) for result in results.values()]
    if not as_json:
        _print_toy(rows, seeds, as_json)
    if output is not None:
        _draw(picture.picture(streams[0], results["AGP"].runs[0], chosen["window"]), output)
    return console.plain_rows(TOY, rows)


def _bikes(output: Path | None, as_json: bool) -> list[dict[str, Any]]:
    """The default model on hourly bike rentals, beside persistence and the same hour of the week before."""
    from driftgp.demo import showcase

    with console.progress(1 + len(showcase.METHODS), "bikes") as report:
        shown = showcase.bikes(report)
    rows = [line._asdict() for line in shown.found.lines]
    if not as_json:
        console.print_table(
            BIKES,
            rows,
            title=f"Bikes hired per hour, {shown.found.rows} hours, one hour ahead",
            caption="driftgp: the default model; its inputs are weather, calendar and the hours before\n"
            "seasonal naive: the same hour of the week before; µs/row: CPU time to predict and learn",
        )
        console.print_text(shown.found.verdict)
    if output is not None:
        _draw(shown.picture(), output)
    return console.plain_rows(BIKES, rows)


def _draw(figure: Figure, output: Path) -> None:
    from driftgp.plots import base as plots

    plots.save(figure, output)
    console.remark(f"wrote {output}")


def _rivals(names: list[str] | None, seeds: int, seed: int, as_json: bool) -> None:
    """The table of the methods that the paper compares with."""
    from driftgp.demo import catalogue

    chosen = range(seed, seed + seeds)
    with console.progress(len(catalogue.chosen(names)) * (seeds + 1), "running") as report:
        rows = catalogue.compare(names, chosen, report)
    _print_toy(rows, chosen, as_json)


def _print_toy(rows: Iterable[Mapping[str, Any]], seeds: range, as_json: bool) -> None:
    """Print what methods did on the toy stream, for people or for programs."""
    if as_json:
        console.print_json(TOY, rows)
        return
    averaged = f"mean of seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    console.print_table(
        TOY,
        rows,
        title=f"Toy stream, 401 samples one step ahead, {averaged}",
        caption="coverage: share of samples within 2 standard deviations of the mean\n"
        "NLPD: mean negative log density, smaller is better; inducing: points in use\n"
        "µs/step: all samples in one call; µs/call: predict and update, sample by sample",
    )
