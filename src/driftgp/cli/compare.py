"""`driftgp compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from driftgp.cli import console
from driftgp.cli.tables import comparison_table


def compare(
    methods: Annotated[
        str | None,
        typer.Option(
            help='Names, with commas between them: "AGP,OSGP,exact window". A name with @λ is that method with another '
            'forgetting factor: "KRLS-T@0.98,KRLS-T@0.99,KRLS-T@0.995".',
            show_default="all",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Average over this many seeds.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON, and nothing else.")] = False,
) -> None:
    """Run AGP and every rival on the toy stream, one step ahead: a table. Most rivals need driftgp[rivals]."""
    from driftgp.paper import compare as experiment

    names = None if methods is None else [name.strip() for name in methods.split(",")]
    count = len(experiment.chosen(names))
    with console.progress(count * (seeds + 1), "running") as report:
        rows = experiment.compare(names, range(seed, seed + seeds), report)
    comparison_table(rows, range(seed, seed + seeds), as_json)
