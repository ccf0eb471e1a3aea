"""Options that more than one command takes: which columns of a table are what, and which inputs follow from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftgp.cli.run import FILES, INPUTS, MODEL, TIME, picture

Table = Annotated[str, typer.Argument(metavar="FILE", help="CSV (also .gz), Parquet or workbook.")]
Target = Annotated[str | None, typer.Option(help="Column to predict.", rich_help_panel=INPUTS)]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns to predict from, with commas; '' for none.", show_default="numeric ones", rich_help_panel=INPUTS
    ),
]
Known = Annotated[str | None, typer.Option(help="Columns known ahead, such as a holiday flag.", rich_help_panel=INPUTS)]
Lags = Annotated[
    int | None, typer.Option(help="Last targets to predict from.", show_default="0", rich_help_panel=INPUTS)
]
SeasonalLags = Annotated[
    str | None, typer.Option(help="Targets so many rows back, such as 24,168.", rich_help_panel=INPUTS)
]
Calendar = Annotated[
    bool | None, typer.Option("--calendar/--no-calendar", help="Hour of day, day of week.", rich_help_panel=INPUTS)
]
Cycles = Annotated[str | None, typer.Option(help="The same, chosen: of day, week, year.", rich_help_panel=INPUTS)]
Holidays = Annotated[str | None, typer.Option(help="Days off, such as 2024-12-25,2024-12-26.", rich_help_panel=INPUTS)]
Malformed = Annotated[
    str | None, typer.Option(help="Malformed rows: stop or skip.", show_default="stop", rich_help_panel=INPUTS)
]
Time = Annotated[
    str | None,
    typer.Option(help="Column of times, or date,hour.", show_default="first column of dates", rich_help_panel=TIME),
]
Season = Annotated[
    int | None, typer.Option(min=1, help="Rows of a season.", show_default="by the times", rich_help_panel=TIME)
]
Horizon = Annotated[
    int | None, typer.Option(help="Rows ahead: a target is known so late.", show_default="1", rich_help_panel=TIME)
]
Level = Annotated[
    float | None, typer.Option(help="Level of the intervals.", show_default="0.95", rich_help_panel=MODEL)
]
Picture = Annotated[
    Path | None, typer.Option(help="Picture: .png, .pdf or .svg.", callback=picture, rich_help_panel=FILES)
]
AsJSON = Annotated[bool, typer.Option("--json", help="Print the table as JSON.", rich_help_panel=FILES)]
