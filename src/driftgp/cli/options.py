"""Options that more than one command takes: how a table is written, which columns are what, and which inputs follow."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

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


def option(panel: str, text: str, *flags: str, default: str | None = None, **more: Any) -> Any:
    """An option in a panel of the help; `default` says what holds without it, where its value does not."""
    return typer.Option(*flags, help=text, show_default=default or True, rich_help_panel=panel, **more)


def picture(path: Path | None) -> Path | None:
    """Refuse, before anything is computed, a picture that could not be written."""
    if path is not None and path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise typer.BadParameter(f"{path} must end in .png, .pdf or .svg")
    return in_a_folder(path)


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
Target = Annotated[str | None, option(INPUTS, "Column to predict.")]
Columns = Annotated[
    str | None, option(INPUTS, "Columns known when their row is predicted, separated by commas.", default="none")
]
Known = Annotated[str | None, option(INPUTS, "Columns known ahead of time, such as a holiday flag or a forecast.")]
Others = Annotated[
    str | None, option(INPUTS, "The other columns: late (their values one horizon before) or ignored.", default="late")
]
Lags = Annotated[
    str | None,
    option(
        INPUTS,
        "Past targets as inputs: how many, or how many steps back, such as 1,2,24.",
        default="chosen from the first rows",
    ),
]
Calendar = Annotated[
    str | None,
    option(
        INPUTS,
        "Cycles as inputs: day, week, year or none; without a value: day,week.",
        default="chosen from the times",
    ),
]
Holidays = Annotated[str | None, option(INPUTS, "Days off, such as 2024-12-25,2024-12-26, or a country such as DE-BY.")]
Base = Annotated[
    str | None, option(INPUTS, "Column with a forecast from elsewhere, to be corrected and given intervals.")
]
Malformed = Annotated[str | None, option(INPUTS, "What to do with a malformed row: stop or skip.", default="stop")]
Time = Annotated[
    str | None, option(TIME, "Column of times, or two columns: date,hour.", default="first column of dates")
]
Season = Annotated[int | None, option(TIME, "Rows in a season.", min=1, default="from the times")]
Horizon = Annotated[
    int | None, option(TIME, "How many rows ahead to predict, counted from the last known target.", default="1")
]
Key = Annotated[str | None, option(TIME, "Column of keys: each key is a series with its own model.")]
Effort = Annotated[
    str | None, option(MODEL, "Effort of the default model: low (thousands of keys), medium or high.", default="medium")
]
Support = Annotated[str | None, option(MODEL, "Range of the targets: auto, real, positive, or 0,100.", default="auto")]
Level = Annotated[float | None, option(MODEL, "Share of targets that intervals hold.", default="0.95")]
TimeFormat = Annotated[
    str | None,
    option(
        WRITTEN, "day-first, month-first, seconds, milliseconds (since 1970), or a format such as '%d/%m/%Y %H:%M'."
    ),
]
Decimal = Annotated[str | None, option(WRITTEN, "Decimal mark: point or comma.")]
Delimiter = Annotated[str | None, option(WRITTEN, "Character between cells, or tab, semicolon, space.")]
Encoding = Annotated[str | None, option(WRITTEN, "Encoding of the text, such as cp1252 or utf-16.")]
Sheet = Annotated[str | None, option(WRITTEN, "Sheet to read, if a workbook has several.")]
Picture = Annotated[Path | None, option(FILES, "Picture to write: .png, .pdf or .svg.", callback=picture)]
AsJSON = Annotated[bool, option(FILES, "Print the table as JSON.", "--json")]
