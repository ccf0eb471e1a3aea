"""Tables that more than one command prints."""

from collections.abc import Iterable, Mapping
from typing import Any

from driftgp.cli import console
from driftgp.cli.console import Column

COLUMNS = (
    Column("method", "method"),
    Column("mse", "MSE", "{:.4f}"),
    Column("coverage", "95% coverage", "{:.1%}"),
    Column("nlpd", "NLPD", "{:.3f}"),
    Column("us_per_step", "µs/step", "{:.0f}"),
    Column("us_per_call", "µs/call", "{:.0f}"),
    Column("inducing", "inducing", "{:.1f}", screen_only=True),
)


def comparison_table(rows: Iterable[Mapping[str, Any]], seeds: range, as_json: bool) -> None:
    """Print what methods did on the toy stream, for people or for programs."""
    if as_json:
        console.print_json(COLUMNS, rows)
        return
    averaged = f"mean of seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    console.print_table(
        COLUMNS,
        rows,
        title=f"Toy stream, 401 samples one step ahead, {averaged}",
        caption="coverage: share of samples within 2 standard deviations of the mean\n"
        "a step: all samples in one call; a call: predict and update, sample by sample; the quickest pass of up to 15",
    )
