"""Options that more than one command takes: how a table is written, which columns are what, and which inputs follow."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from inspect import Parameter, Signature, signature
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
Season = Annotated[int | None, option(TIME, "Rows in a season.", min=1, default="from the times")]
Picture = Annotated[Path | None, option(FILES, "Picture to write: .png, .pdf or .svg.", callback=picture)]
AsJSON = Annotated[bool, option(FILES, "Print the table as JSON.", "--json")]

SETTINGS: dict[str, Any] = {  # by their names in `driftgp.runs.Settings`: type, and option
    "target": (str, option(INPUTS, "Column to predict.")),
    "features": (
        str,
        option(INPUTS, "Columns known when their row is predicted, separated by commas.", default="none"),
    ),
    "known": (str, option(INPUTS, "Columns known ahead of time, such as a holiday flag or a forecast.")),
    "others": (
        str,
        option(INPUTS, "The other columns: late (their values one horizon before) or ignored.", default="late"),
    ),
    "lags": (
        str,
        option(
            INPUTS,
            "Past targets as inputs: how many, or how many steps back, such as 1,2,24.",
            default="chosen from the first rows",
        ),
    ),
    "calendar": (
        str,
        option(
            INPUTS,
            "Cycles as inputs: day, week, year or none; without a value: day,week.",
            default="chosen from the times",
        ),
    ),
    "holidays": (str, option(INPUTS, "Days off, such as 2024-12-25,2024-12-26, or a country such as DE-BY.")),
    "base": (str, option(INPUTS, "Column with a forecast from elsewhere, to be corrected and given intervals.")),
    "missing": (
        str,
        option(
            INPUTS,
            "What to do with a blank input: carry (fill it in), skip (do not learn the row) or refuse.",
            default="carry",
        ),
    ),
    "malformed": (str, option(INPUTS, "What to do with a malformed row: stop or skip.", default="stop")),
    "time": (str, option(TIME, "Column of times, or two columns: date,hour.", default="first column of dates")),
    "horizon": (
        int,
        option(TIME, "How many rows ahead to predict, counted from the last known target.", default="1"),
    ),
    "key": (str, option(TIME, "Column of keys: each key is a series with its own model.")),
    "effort": (
        str,
        option(MODEL, "Effort of the default model: low (thousands of keys), medium or high.", default="medium"),
    ),
    "support": (str, option(MODEL, "Range of the targets: auto, real, positive, or 0,100.", default="auto")),
    "model": (
        str,
        option(
            MODEL,
            "default, agp, fast, hybrid, persistence, mean; with driftgp\\[rivals]: exact, fitc, svgp, w-vsgp, "
            "agp-vsi.",
            default="default",
        ),
    ),
    "level": (float, option(MODEL, "Share of targets that intervals hold.", default="0.95")),
    "alarms": (bool, option(MODEL, "Raise alarms when something has changed.", "--alarms/--no-alarms")),
    "kernel": (str, option(NAMED, "Kernel, such as 'se * periodic + constant'.", default="linear + se")),
    "inducing": (int, option(NAMED, "Largest number of inducing points.", default="40")),
    "window": (int, option(NAMED, "Rows in the window of the model.", default="300")),
    "half_life": (
        str,
        option(NAMED, "Time (7d, 36h) or number of rows after which a row counts half.", default="from --window"),
    ),
    "warmup": (
        int,
        option(NAMED, "First rows, from which the model takes its starting values; 0: none.", default="100"),
    ),
    "standardise": (bool, option(NAMED, "Scale inputs and targets.", "--standardise/--no-standardise")),
    "calibrate": (
        bool,
        option(NAMED, "Adapt the width of intervals to their share of targets.", "--calibrate/--no-calibrate"),
    ),
    "time_format": (
        str,
        option(
            WRITTEN, "day-first, month-first, seconds, milliseconds (since 1970), or a format such as '%d/%m/%Y %H:%M'."
        ),
    ),
    "decimal": (str, option(WRITTEN, "Decimal mark: point or comma.")),
    "delimiter": (str, option(WRITTEN, "Character between cells, or tab, semicolon, space.")),
    "encoding": (str, option(WRITTEN, "Encoding of the text, such as cp1252 or utf-16.")),
    "sheet": (str, option(WRITTEN, "Sheet to read, if a workbook has several.")),
}
READING = ("malformed", "time_format", "decimal", "delimiter", "encoding", "sheet")  # how the file is read


def with_settings(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these settings as options after its first argument; it is called with a dict of those given."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        first, given, *own = signature(command, eval_str=True).parameters.values()

        def called(**arguments: Any) -> None:
            values = {name: arguments.pop(name) for name in names}
            arguments[given.name] = {name: value for name, value in values.items() if value is not None}
            command(**arguments)

        shared = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, shown])
            for name, (kind, shown) in ((name, SETTINGS[name]) for name in names)
        ]
        own = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own]
        called.__signature__ = Signature([first, *shared, *own])  # type: ignore[attr-defined]
        called.__name__, called.__doc__ = command.__name__, command.__doc__
        return called

    return decorate
