"""Options that more than one command takes: how a table is written, which columns are what, and which inputs follow."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from driftgp.cli.demo import _picture_file as check_picture

INPUTS, TIME, MODEL, FILES = "Inputs", "Time and series", "Model", "Files"  # panels of the help
WRITTEN = "How the file is written, where its rows do not show it"
NAMED = "Model by name: each of these means --model agp where no model is named"


def there(file: str) -> str:
    """Say at once, before anything heavy is imported, that a file is not there, and what there is that is like it."""
    place = Path(file)
    if file == "-" or (place.exists() and not place.is_dir()):
        return file
    if place.is_dir():
        raise ValueError(f"{file} is a folder: give a file in it")
    folder = place.absolute().parent
    beside = [other.name for other in folder.iterdir() if other.is_file()] if folder.is_dir() else []
    close = [str(place.parent / name) for name in get_close_matches(place.name, beside, n=3, cutoff=0.75)]
    raise ValueError(f"{file}: there is no such file{'. Did you mean ' + ' or '.join(close) + '?' if close else ''}")


def picture(path: Path | None) -> Path | None:
    """Refuse, before anything is computed, a picture that could not be written."""
    return None if path is None else check_picture(path)


Table = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV (also .gz), JSON lines, Parquet or workbook; - for CSV from standard input.",
        callback=there,
    ),
]
TimeFormat = Annotated[
    str | None,
    typer.Option(
        help="day-first, month-first, seconds, milliseconds (since 1970), or a format such as '%d/%m/%Y %H:%M'.",
        rich_help_panel=WRITTEN,
    ),
]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark: point or comma.", rich_help_panel=WRITTEN)]
Delimiter = Annotated[
    str | None, typer.Option(help="Between cells: a character, or tab, semicolon, space.", rich_help_panel=WRITTEN)
]
Encoding = Annotated[str | None, typer.Option(help="Such as cp1252 or utf-16.", rich_help_panel=WRITTEN)]
Sheet = Annotated[str | None, typer.Option(help="Sheet of a workbook that has several.", rich_help_panel=WRITTEN)]
Target = Annotated[str | None, typer.Option(help="Column to predict.", rich_help_panel=INPUTS)]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns to predict from, with commas; '' for none.",
        show_default="numbers, flags, texts of few values",
        rich_help_panel=INPUTS,
    ),
]
Known = Annotated[
    str | None,
    typer.Option(help="Columns known ahead, such as a holiday flag or a forecast.", rich_help_panel=INPUTS),
]
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
