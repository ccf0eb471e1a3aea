"""Options that more than one command takes: how a table is written, which columns are what, and which inputs follow."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from driftgp.cli.demo import _picture_file as check_picture

INPUTS, TIME, MODEL, FILES = "Inputs", "Time and series", "Model", "Files"  # panels of the help
WRITTEN = "How the file is written, where its rows do not show it"
NAMED = "Model by name: each of these means --model agp where no model is named"


def there(file: str) -> str:
    """Refuse a file that is not there, with names like it, before anything heavy is imported."""
    place = Path(file)
    if file == "-" or (place.exists() and not place.is_dir()):
        return file
    if place.is_dir():
        raise ValueError(f"{file} is a folder: give a file in it")
    folder = place.absolute().parent
    beside = [other.name for other in folder.iterdir() if other.is_file()] if folder.is_dir() else []
    close = [str(place.parent / name) for name in get_close_matches(place.name, beside, n=3, cutoff=0.75)]
    raise ValueError(f"{file}: there is no such file{'. Did you mean ' + ' or '.join(close) + '?' if close else ''}")


class WithCalendar(TyperCommand):
    """A command whose option --calendar may stand alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a calendar without a value as day and week."""
        given: list[str] = []
        for place, arg in enumerate(args):
            given.append("--calendar" if arg == "--no-calendar" else arg)
            if arg == "--no-calendar":
                given.append("none")
            elif arg == "--calendar":
                follows = args[place + 1] if place + 1 < len(args) else ""
                if not set(map(str.strip, follows.split(","))) <= {"day", "week", "year", "none"}:
                    given.append("day,week")
        return super().parse_args(ctx, given)


def picture(path: Path | None) -> Path | None:
    """Refuse a picture that could not be written, before anything is computed."""
    return None if path is None else check_picture(path)


def output_file(path: Path | None) -> Path | None:
    """Refuse, before anything is computed, an output that could not be written."""
    if path is None or str(path) == "-":
        return path
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise typer.BadParameter(f"{path} must end in .csv or .parquet, or be - for standard output")
    return in_a_folder(path)


def in_a_folder(path: Path | None) -> Path | None:
    """Refuse a file in a folder that is not there."""
    if path is not None and not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.absolute().parent} to write {path.name} to")
    return path


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
    str | None, typer.Option(help="Character between cells, or tab, semicolon, space.", rich_help_panel=WRITTEN)
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of the text, such as cp1252 or utf-16.", rich_help_panel=WRITTEN)
]
Sheet = Annotated[str | None, typer.Option(help="Sheet to read, if a workbook has several.", rich_help_panel=WRITTEN)]
Target = Annotated[str | None, typer.Option(help="Column to predict.", rich_help_panel=INPUTS)]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns known when their row is predicted, separated by commas.",
        show_default="none",
        rich_help_panel=INPUTS,
    ),
]
Known = Annotated[
    str | None,
    typer.Option(help="Columns known ahead of time, such as a holiday flag or a forecast.", rich_help_panel=INPUTS),
]
Others = Annotated[
    str | None,
    typer.Option(
        help="The other columns: late (their values one horizon before) or ignored.",
        show_default="late",
        rich_help_panel=INPUTS,
    ),
]
Lags = Annotated[
    str | None,
    typer.Option(
        help="Past targets as inputs: how many, or how many steps back, such as 1,2,24.",
        show_default="chosen from the first rows",
        rich_help_panel=INPUTS,
    ),
]
Calendar = Annotated[
    str | None,
    typer.Option(
        help="Cycles as inputs: day, week, year or none; without a value: day,week.",
        show_default="chosen from the times",
        rich_help_panel=INPUTS,
    ),
]
Holidays = Annotated[
    str | None,
    typer.Option(help="Days off, such as 2024-12-25,2024-12-26, or a country such as DE-BY.", rich_help_panel=INPUTS),
]
Key = Annotated[
    str | None, typer.Option(help="Column of keys: each key is a series with its own model.", rich_help_panel=TIME)
]
Effort = Annotated[
    str | None,
    typer.Option(
        help="Effort of the default model: low (thousands of keys), medium or high.",
        show_default="medium",
        rich_help_panel=MODEL,
    ),
]
Support = Annotated[
    str | None,
    typer.Option(
        help="Range of the targets: auto, real, positive, or 0,100.", show_default="auto", rich_help_panel=MODEL
    ),
]
Base = Annotated[
    str | None,
    typer.Option(
        help="Column with a forecast from elsewhere, to be corrected and given intervals.",
        rich_help_panel=INPUTS,
    ),
]
Malformed = Annotated[
    str | None,
    typer.Option(help="What to do with a malformed row: stop or skip.", show_default="stop", rich_help_panel=INPUTS),
]
Time = Annotated[
    str | None,
    typer.Option(
        help="Column of times, or two columns: date,hour.", show_default="first column of dates", rich_help_panel=TIME
    ),
]
Season = Annotated[
    int | None, typer.Option(min=1, help="Rows in a season.", show_default="from the times", rich_help_panel=TIME)
]
Horizon = Annotated[
    int | None,
    typer.Option(
        help="How many rows ahead to predict, counted from the last known target.",
        show_default="1",
        rich_help_panel=TIME,
    ),
]
Level = Annotated[
    float | None, typer.Option(help="Share of targets that intervals hold.", show_default="0.95", rich_help_panel=MODEL)
]
Picture = Annotated[
    Path | None, typer.Option(help="Picture to write: .png, .pdf or .svg.", callback=picture, rich_help_panel=FILES)
]
AsJSON = Annotated[bool, typer.Option("--json", help="Print the table as JSON.", rich_help_panel=FILES)]
