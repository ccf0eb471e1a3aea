"""`driftgp run`."""

from __future__ import annotations

import os
import stat
import sys
import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftgp.cli import console
from driftgp.cli.job import Job
from driftgp.cli.options import (
    FILES,
    INPUTS,
    MODEL,
    NAMED,
    AsJSON,
    Base,
    Calendar,
    Columns,
    Decimal,
    Delimiter,
    Effort,
    Encoding,
    Holidays,
    Horizon,
    Key,
    Known,
    Lags,
    Level,
    Malformed,
    Others,
    Picture,
    Sheet,
    Support,
    Table,
    Target,
    Time,
    TimeFormat,
    in_a_folder,
    output_file,
    picture,
)

if TYPE_CHECKING:
    from driftgp.runs import Saved, Settings

EVERY = 10_000  # rows between checkpoints of a file; a live stream has one after every row


_NO_SETTINGS = frozenset(
    ("file", "output", "plot", "importance", "checkpoint", "frozen", "every", "config", "summary", "as_json")
)


def run(
    file: Table,
    target: Target = None,
    features: Columns = None,
    known: Known = None,
    others: Others = None,
    lags: Lags = None,
    calendar: Calendar = None,
    holidays: Holidays = None,
    time: Time = None,
    horizon: Horizon = None,
    key: Key = None,
    effort: Effort = None,
    support: Support = None,
    base: Base = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="default, agp, fast, hybrid, persistence, mean; with driftgp\\[rivals]: exact, fitc, svgp, w-vsgp, "
            "agp-vsi.",
            show_default="default",
            rich_help_panel=MODEL,
        ),
    ] = None,
    level: Level = None,
    alarms: Annotated[
        bool | None,
        typer.Option("--alarms/--no-alarms", help="Raise alarms when something has changed.", rich_help_panel=MODEL),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            help="Kernel, such as 'se * periodic + constant'.", show_default="linear + se", rich_help_panel=NAMED
        ),
    ] = None,
    inducing: Annotated[
        int | None, typer.Option(help="Largest number of inducing points.", show_default="40", rich_help_panel=NAMED)
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Rows in the window of the model.", show_default="300", rich_help_panel=NAMED)
    ] = None,
    half_life: Annotated[
        str | None,
        typer.Option(
            help="Time (7d, 36h) or number of rows after which a row counts half.",
            show_default="from --window",
            rich_help_panel=NAMED,
        ),
    ] = None,
    warmup: Annotated[
        int | None,
        typer.Option(
            help="First rows, from which the model takes its starting values; 0: none.",
            show_default="100",
            rich_help_panel=NAMED,
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="What to do with a blank input: carry (fill it in), skip (do not learn the row) or refuse.",
            show_default="carry",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    malformed: Malformed = None,
    standardise: Annotated[
        bool | None,
        typer.Option("--standardise/--no-standardise", help="Scale inputs and targets.", rich_help_panel=NAMED),
    ] = None,
    calibrate: Annotated[
        bool | None,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Adapt the width of intervals to their share of targets.",
            rich_help_panel=NAMED,
        ),
    ] = None,
    time_format: TimeFormat = None,
    decimal: Decimal = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Predictions: .csv or .parquet; - for standard output.", callback=output_file, rich_help_panel=FILES
        ),
    ] = None,
    plot: Picture = None,
    importance: Annotated[
        Path | None,
        typer.Option(
            help="Picture of the importance of each input over time, to write.", callback=picture, rich_help_panel=FILES
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Resume from this file if it is there, and keep it up to date.",
            callback=in_a_folder,
            rich_help_panel=FILES,
        ),
    ] = None,
    frozen: Annotated[
        bool,
        typer.Option("--frozen", help="Predict from the checkpoint and learn nothing.", rich_help_panel=FILES),
    ] = False,
    every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Rows between checkpoints.", show_default=f"{EVERY}, or 1 for -", rich_help_panel=FILES
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with settings; options on the command line win.", rich_help_panel=FILES),
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary/--no-summary", help="Print the table of scores.", rich_help_panel=FILES)
    ] = True,
    as_json: AsJSON = False,
) -> None:
    """Predict each row of a table before learning from it: predictions, intervals, a summary, a picture.

    Without --model, the first rows of each series choose its model.
    """
    chosen = {name: value for name, value in locals().items() if name not in _NO_SETTINGS and value is not None}
    from driftgp.base.locks import locked
    from driftgp.tables.rows import is_live

    live = is_live(file)
    given = _from_config(config) | chosen
    if output is None and live:
        output = Path("-")
    pictures = {"--plot": plot, "--importance": importance}
    _one_part_each(file, output, {"--checkpoint": checkpoint, **pictures, "--config": config})
    saved = _saved(checkpoint, frozen=frozen)
    settings = _frozen_settings(saved, given) if frozen and saved is not None else _settings(given, file, live=live)
    if importance is not None and settings.key is not None:
        raise ValueError("--importance draws one series: leave out --key, or give a file with one series")
    written = [path for path in (output, None if frozen else checkpoint) if path is not None and str(path) != "-"]
    began = clock.perf_counter()
    with (
        locked(*written),
        settings.open(file, growing=checkpoint is not None and not frozen) as rows,
    ):
        job = Job(
            settings,
            rows,
            file,
            live=live,
            saved=saved,
            frozen=frozen,
            output=output,
            checkpoint=None if frozen else checkpoint,
            every=every or (1 if live else EVERY),
            keep=plot is not None,
            monitored=summary or output is not None or plot is not None,
            traced=importance is not None,
        )
        job.run()
    for remark in rows.remarks:
        console.remark(remark)
    seconds = clock.perf_counter() - began
    if summary:
        job.print_summary(seconds, as_json=as_json)
    if plot is not None:
        job.draw(plot)
    if importance is not None:
        job.draw_importance(importance)


def _saved(checkpoint: Path | None, *, frozen: bool) -> Saved | None:
    """What the checkpoint holds, None if it is not there yet."""
    from driftgp.base.files import read_whole, remove_leftovers
    from driftgp.runs import read_checkpoint

    if frozen and (checkpoint is None or not checkpoint.exists()):
        given = "none is named" if checkpoint is None else f"there is no {checkpoint}"
        raise ValueError(f"--frozen predicts by a checkpoint, and {given}: name one with --checkpoint")
    if checkpoint is None:
        return None
    if not frozen:
        remove_leftovers(checkpoint)
    if not checkpoint.exists():
        return None
    data = read_whole(checkpoint)
    try:
        return read_checkpoint(data)
    except ValueError as error:
        raise ValueError(f"{checkpoint}: {error}") from error


def _frozen_settings(saved: Saved, given: dict[str, Any]) -> Settings:
    """The settings of the checkpoint, with those of the file and of the intervals that are given anew."""
    from dataclasses import replace

    from driftgp.runs import settings_from

    free = ("level", "malformed", "delimiter", "encoding", "sheet", "decimal", "time_format")
    others = [name for name in given if name.replace("-", "_") not in free]
    now = settings_from({"target": saved.settings.target, **given}).to_json()
    for name in others:
        plain = name.replace("-", "_")
        if now[plain] != saved.settings.to_json()[plain]:
            raise ValueError(
                f"{name} is {given[name]!r}, and the checkpoint has {saved.settings.to_json()[plain]!r}: leave it out "
                "with --frozen"
            )
    changed: dict[str, Any] = {name: now[name] for name in free if name in given}
    return replace(saved.settings, **changed)


def _settings(given: dict[str, Any], file: str, *, live: bool) -> Settings:
    """The settings; without a target, a refusal with the columns to choose from."""
    from driftgp.runs import settings_from

    if "target" in given or live:
        return settings_from(given)
    with settings_from({**given, "target": "?"}).open(file) as rows:
        columns = ", ".join(rows.header)
    raise ValueError(f"target is not given: name the column to predict with --target. The columns are {columns}")


def _one_part_each(file: str, output: Path | None, others: dict[str, Path | None]) -> None:
    """Refuse to write over the input, the checkpoint or the settings, also where standard output is sent to a file."""
    from driftgp.base.files import apart
    from driftgp.tables.predictions import journal_of

    parts = {"the input": _plain_file(sys.stdin) if file == "-" else file, **others}
    if str(output) == "-":
        apart({**parts, "standard output": _plain_file(sys.stdout)})
    else:
        apart({**parts, "--output": output})
        apart({**parts, "--output": output and journal_of(output)})


def _plain_file(stream: Any) -> int | None:
    """Number of a standard stream where that is a plain file."""
    try:
        number: int = stream.fileno()
    except (OSError, ValueError):  # replaced by something that is no file
        return None
    return number if stat.S_ISREG(os.fstat(number).st_mode) else None


def _from_config(path: Path | None) -> dict[str, Any]:
    from driftgp.runs import read_config

    return {} if path is None else {name.replace("-", "_"): value for name, value in read_config(path).items()}
