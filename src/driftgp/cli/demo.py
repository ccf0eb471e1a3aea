"""`driftgp demo`."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from driftgp.cli import console
from driftgp.cli.tables import comparison_table


class Relevance(StrEnum):
    """The rules of `driftgp.inducing`, named here so that `--help` need not import it."""

    LEAVE_ONE_OUT = "leave-one-out"
    CHOLESKY = "cholesky"
    DIAGONAL = "diagonal"


def _picture_file(path: Path) -> Path:
    """Refuse, before anything is computed, a file that could not be written."""
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise typer.BadParameter(f"{path} must end in .png, .pdf or .svg")
    if not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.absolute().parent} to write {path.name} to")
    return path


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
    output: Annotated[
        Path, typer.Option(help="Picture to write: .png, .pdf or .svg.", dir_okay=False, callback=_picture_file)
    ] = Path("demo.png"),
    plot: Annotated[bool, typer.Option("--plot/--no-plot", help="Write the picture.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON, and nothing else.")] = False,
) -> None:
    """Run AGP, fast-AGP, the hybrid and persistence on the toy stream: a table and a picture."""
    if methods is not None:
        _rivals(None if methods == "all" else [name.strip() for name in methods.split(",")], seeds, seed, as_json)
        return
    from driftgp.data import toy_stream
    from driftgp.paper import comparison, settings
    from driftgp.paper import demo as experiment

    chosen = settings.paper("toy") if paper else settings.printed("toy")
    if relevance is not None:
        chosen["relevance"] = relevance.value
    shown = experiment.methods(chosen)
    streams = [toy_stream(number) for number in range(seed, seed + seeds)]
    with console.progress(comparison.steps(shown, streams), "running") as report:
        results = comparison.compare(shown, streams, report)
    rows = [asdict(result.row) for result in results.values()]
    comparison_table(rows, range(seed, seed + seeds), as_json)
    if plot:
        from driftgp import plots

        plots.save(experiment.picture(streams[0], results["AGP"].runs[0], chosen["window"]), output)
        console.remark(f"wrote {output}")


def _rivals(names: list[str] | None, seeds: int, seed: int, as_json: bool) -> None:
    """The table of the methods that the paper compares with."""
    from driftgp.paper import compare

    chosen = range(seed, seed + seeds)
    with console.progress(len(compare.chosen(names)) * (seeds + 1), "running") as report:
        rows = compare.compare(names, chosen, report)
    comparison_table(rows, chosen, as_json)
