"""`driftgp run`."""

from __future__ import annotations

import os
import stat
import sys
import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from driftgp.cli import console, options
from driftgp.cli.file_run import FileRun
from driftgp.cli.options import FILES, in_a_folder, option, output_file, picture

if TYPE_CHECKING:
    from driftgp.runs import RunSettings, Saved

EVERY = 10_000  # rows between checkpoints of a file; a live stream has one after every row


@options.with_settings(*options.SETTINGS)
def run(
    file: options.Table,
    given: dict[str, Any],
    output: Annotated[
        Path | None, option(FILES, "Predictions: .csv or .parquet; - for standard output.", callback=output_file)
    ] = None,
    plot: options.Picture = None,
    importance: Annotated[
        Path | None, option(FILES, "Picture of the importance of each input over time, to write.", callback=picture)
    ] = None,
    checkpoint: Annotated[
        Path | None,
        option(FILES, "Resume from this file if it is there, and keep it up to date.", callback=in_a_folder),
    ] = None,
    frozen: Annotated[bool, option(FILES, "Predict from the checkpoint and learn nothing.", "--frozen")] = False,
    every: Annotated[
        int | None, option(FILES, "Rows between checkpoints.", default=f"{EVERY}, or 1 for -", min=1)
    ] = None,
    config: Annotated[Path | None, option(FILES, "TOML file with settings; options on the command line win.")] = None,
    summary: Annotated[bool, option(FILES, "Print the table of scores.", "--summary/--no-summary")] = True,
    as_json: options.AsJSON = False,
) -> None:
    """Predict each row of a table before learning from it: predictions, intervals, a summary, a picture.

    Without --model, the first rows of each series choose its model.
    """
    from driftgp.base.locks import locked
    from driftgp.tables.rows import is_live

    live = is_live(file)
    given = _from_config(config) | given
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
        file_run = FileRun(
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
        file_run.run()
    for remark in rows.remarks:
        console.remark(remark)
    seconds = clock.perf_counter() - began
    if summary:
        file_run.print_summary(seconds, as_json=as_json)
    if plot is not None:
        file_run.draw(plot)
    if importance is not None:
        file_run.draw_importance(importance)


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


def _frozen_settings(saved: Saved, given: dict[str, Any]) -> RunSettings:
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


def _settings(given: dict[str, Any], file: str, *, live: bool) -> RunSettings:
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
