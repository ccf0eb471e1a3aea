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
from driftgp.cli.importance import ImportanceTrace
from driftgp.cli.options import (
    FILES,
    INPUTS,
    MODEL,
    NAMED,
    TIME,
    AsJSON,
    Calendar,
    Columns,
    Cycles,
    Decimal,
    Delimiter,
    Encoding,
    Holidays,
    Horizon,
    Known,
    Lags,
    Level,
    Malformed,
    Picture,
    SeasonalLags,
    Sheet,
    Table,
    Target,
    Time,
    TimeFormat,
    picture,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from driftgp.data.rows import Rows
    from driftgp.runner import Answer, Settings

EVERY = 1000  # rows between checkpoints of a file; a live stream has one after every row


def _output_file(path: Path | None) -> Path | None:
    if path is None or str(path) == "-":
        return path
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise typer.BadParameter(f"{path} must end in .csv or .parquet")
    return _in_a_folder(path)


def _in_a_folder(path: Path | None) -> Path | None:
    if path is not None and not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.absolute().parent} to write {path.name} to")
    return path


def run(
    file: Table,
    target: Target = None,
    features: Columns = None,
    known: Known = None,
    lags: Lags = None,
    seasonal_lags: SeasonalLags = None,
    calendar: Calendar = None,
    cycles: Cycles = None,
    holidays: Holidays = None,
    time: Time = None,
    horizon: Horizon = None,
    group: Annotated[str | None, typer.Option(help="Column of keys: one model for each.", rich_help_panel=TIME)] = None,
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
    warmup: Annotated[
        int | None, typer.Option(help="Rows to start on; 0 starts cold.", show_default="100", rich_help_panel=MODEL)
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(help="Such as 'se * periodic + constant'.", show_default="linear + se", rich_help_panel=NAMED),
    ] = None,
    inducing: Annotated[
        int | None, typer.Option(help="Most inducing points.", show_default="40", rich_help_panel=NAMED)
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Rows that a model remembers.", show_default="300", rich_help_panel=NAMED)
    ] = None,
    half_life: Annotated[
        str | None,
        typer.Option(
            help="Time (7d, 36h) or rows until a sample counts half.", show_default="by --window", rich_help_panel=NAMED
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="Blank inputs: carry the last value, skip or refuse the row.",
            show_default="carry",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    malformed: Malformed = None,
    standardise: Annotated[
        bool | None, typer.Option("--standardise/--no-standardise", help="Units that adapt.", rich_help_panel=NAMED)
    ] = None,
    calibrate: Annotated[
        bool | None,
        typer.Option(
            "--calibrate/--no-calibrate", help="Stretch intervals until they hold their share.", rich_help_panel=NAMED
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
            help="Predictions: .csv or .parquet; - for standard output.", callback=_output_file, rich_help_panel=FILES
        ),
    ] = None,
    plot: Picture = None,
    importance: Annotated[
        Path | None,
        typer.Option(
            help="Picture of the importance of each input over time.", callback=picture, rich_help_panel=FILES
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Resume from this file if it is there, and keep it up to date.",
            callback=_in_a_folder,
            rich_help_panel=FILES,
        ),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Rows between checkpoints.", show_default=f"{EVERY}, or 1 for -", rich_help_panel=FILES
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with the same settings; options win.", rich_help_panel=FILES)
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary/--no-summary", help="Print the table of scores.", rich_help_panel=FILES)
    ] = True,
    as_json: AsJSON = False,
) -> None:
    """Predict each row of a table before learning from it: predictions, intervals, a summary, a picture.

    The default model is the one that driftgp recommends for a series by its first rows.
    """
    chosen = {
        name: value
        for name, value in locals().items()
        if name not in ("file", "output", "plot", "importance", "checkpoint", "every", "config", "summary", "as_json")
        and value is not None
    }
    from driftgp.data.rows import is_live
    from driftgp.locks import locked
    from driftgp.runner import settings_from

    live = is_live(file)
    given = _from_config(config) | chosen
    if "target" not in given and not live:
        _ask_for_target(settings_from({**given, "target": "?"}), file)
    settings = settings_from(given)
    if output is None and live:
        output = Path("-")
    if importance is not None and settings.group is not None:
        raise ValueError("--importance draws one series: leave out --group, or give a file with one series")
    pictures = {"--plot": plot, "--importance": importance}
    _one_part_each(file, output, {"--checkpoint": checkpoint, **pictures, "--config": config})
    written = [path for path in (output, checkpoint) if path is not None and str(path) != "-"]
    began = clock.perf_counter()
    with (
        locked(*written),
        settings.open(file, growing=checkpoint is not None) as rows,
    ):
        job = _Job(settings, rows, live, file, output, checkpoint, every or (1 if live else EVERY), plot is not None)
        traced = None if importance is None else ImportanceTrace(job.runner)
        job.run(None if traced is None else traced.see)
    for remark in rows.remarks:
        console.remark(remark)
    seconds = clock.perf_counter() - began
    if summary:
        job.print_summary(seconds, as_json=as_json)
    if plot is not None:
        job.draw(plot)
    if importance is not None and traced is not None:
        traced.draw(importance)


def _ask_for_target(settings: Settings, file: str) -> None:
    """Refuse a run without a target, with the columns to choose from."""
    with settings.open(file) as rows:
        columns = ", ".join(rows.header)
    raise ValueError(f"target is not given: name the column to predict with --target. The columns are {columns}")


def _one_part_each(file: str, output: Path | None, others: dict[str, Path | None]) -> None:
    """Refuse to write over the input, the checkpoint or the settings, also where standard output is sent to a file."""
    from driftgp.data.predictions import journal_of
    from driftgp.files import apart

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
    from driftgp.runner import read_config

    return {} if path is None else {name.replace("-", "_"): value for name, value in read_config(path).items()}


class _Job:
    """One run: rows to a journal, with checkpoints on the way."""

    def __init__(
        self,
        settings: Settings,
        rows: Rows,
        live: bool,
        file: str,
        output: Path | None,
        checkpoint: Path | None,
        every: int,
        keep: bool,
    ) -> None:
        from driftgp.data import predictions
        from driftgp.files import read_whole, remove_leftovers
        from driftgp.runner import Runner, read_checkpoint

        self.settings, self.file, self.checkpoint, self.every = settings, file, checkpoint, every
        self.on_screen = output is not None and str(output) == "-"
        self.output = None if self.on_screen else output
        if keep and checkpoint is not None and self.output is None:
            raise ValueError(
                "a picture of a run with a checkpoint needs an output file, to draw what came before a stop"
            )
        saved = None
        if checkpoint is not None:
            remove_leftovers(checkpoint)
        if checkpoint is not None and checkpoint.exists():
            data = read_whole(checkpoint)
            try:
                saved = read_checkpoint(data)
            except ValueError as error:
                raise ValueError(f"{checkpoint}: {error}") from error
        self.runner = Runner(settings, rows, saved=saved, live=live, complain=console.remark)
        self.header = predictions.columns(timed=bool(self.runner.schema.time), grouped=settings.group is not None)
        self.journal: predictions.Journal | None = None
        self.kept: list[Any] | None = [] if keep and checkpoint is None else None
        if self.on_screen or self.output is not None:
            path = None if self.output is None else predictions.journal_of(self.output)
            self.journal = predictions.Journal(path, self.header, None if saved is None else saved.output)
        self.at_first = self.saved_at = self.runner.rows
        if saved is not None:
            console.remark(f"resumed after {saved.rows} rows")

    def run(self, see: Callable[[Answer], None] | None = None) -> None:
        """Answer every row; `see` is called with the last answer of every block.

        An error leaves the last checkpoint as it is: the rows after it are read again.
        """
        from driftgp.data.rows import count_rows

        blocks = self.runner.blocks()
        rows = 0 if self.runner.live else count_rows(self.file)
        try:
            if rows > self.at_first:
                with console.progress(rows - self.at_first, "predicting") as report:
                    self._through(blocks, report, see)
            else:
                self._through(blocks, lambda _doing, _rows: None, see)
            self._save()
        finally:
            if self.journal is not None:
                self.journal.close()
        self._finish()

    def _through(
        self,
        blocks: Iterator[list[Answer]],
        report: Callable[[str, int], None],
        see: Callable[[Answer], None] | None,
    ) -> None:
        for answers in blocks:
            if self.journal is not None:
                self.journal.write(answers)
            if self.kept is not None:
                self.kept += answers
            if see is not None:
                see(answers[-1])
            if self.runner.rows - self.saved_at >= self.every:
                self._save()
            report("predicting", len(answers))

    def _save(self) -> None:
        """Have the output on the disk first, then the checkpoint that says how long it is."""
        from driftgp.files import write_atomically

        if self.checkpoint is not None:
            length = 0 if self.journal is None else self.journal.sync()
            write_atomically(self.checkpoint, self.runner.to_bytes(length))
        self.saved_at = self.runner.rows

    def _finish(self) -> None:
        from driftgp.data import predictions

        if self.output is not None and self.output.suffix.lower() == ".parquet":
            predictions.make_parquet(self.output)
            if self.checkpoint is None:
                predictions.journal_of(self.output).unlink()

    def print_summary(self, seconds: float, *, as_json: bool) -> None:
        """Print the summary, on standard error if predictions are on standard output."""
        from driftgp.cli.summary import Summary

        summary = Summary(self.runner, self.runner.rows - self.at_first, seconds)
        if self.on_screen:
            summary.remark()
        elif as_json:
            summary.print_json()
        else:
            summary.print()

    def draw(self, path: Path) -> None:
        """Draw the run."""
        from driftgp import plots, plots_run
        from driftgp.data import predictions
        from driftgp.runner.warnings import warnings_of

        if self.kept is not None:
            shown = predictions.from_answers(self.header, self.kept)
        elif self.output is not None:
            shown = predictions.read_predictions(predictions.journal_of(self.output))
        settings, schema = self.settings, self.runner.schema
        warnings = warnings_of(settings, schema, self.runner.lanes)
        about = plots_run.About(settings.target, settings.level, schema.unit, settings.horizon, warnings)
        if settings.group is None:
            figure = plots_run.run_figure(shown, about)
        else:
            figure = plots_run.groups_figure(shown, about, {k: v for k, v in self.runner.summary().items() if k})
        plots.save(figure, path)
        console.remark(f"wrote {path}")
