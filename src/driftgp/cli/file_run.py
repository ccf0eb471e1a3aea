"""One run from the command line: rows to a journal, with checkpoints on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftgp.cli import console
from driftgp.cli.importance import BETWEEN, ImportanceTrace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from driftgp.runs import Answers, RunSettings, Saved
    from driftgp.tables.rows import FileRows


@dataclass
class FileRun:
    """Rows of a table to predictions in a file, a checkpoint, a summary and pictures."""

    settings: RunSettings
    rows: FileRows
    file: str  # its name
    live: bool  # rows are answered one by one, as they come
    saved: Saved | None  # what the checkpoint holds
    frozen: bool  # predict by it, and learn nothing
    output: Path | None  # file of the predictions; - for standard output
    checkpoint: Path | None  # file to keep up to date
    every: int  # rows between two checkpoints
    keep: bool  # answers are kept for a picture
    monitored: bool  # there are answers and scores
    traced: bool  # the importance of the inputs is looked at on the way

    def __post_init__(self) -> None:
        """Open what is written to, and go on from what was saved."""
        from driftgp.runs import Run
        from driftgp.runs.run import BLOCK
        from driftgp.tables import predictions

        checkpoint, saved = self.checkpoint, self.saved
        self.on_screen = self.output is not None and str(self.output) == "-"
        self.path = None if self.on_screen else self.output
        if self.keep and checkpoint is not None and self.path is None:
            raise ValueError("a picture of a run with a checkpoint needs --output, which has the rows before a stop")
        self.started = Run(
            self.settings,
            self.rows,
            saved=saved,
            live=self.live,
            frozen=self.frozen,
            growing=checkpoint is not None,
            monitored=self.monitored,
            block=BETWEEN if self.traced else min(BLOCK, self.every) if checkpoint is not None else None,
            complain=console.remark,
        )
        time, resumed = self.started.facts.written.time, saved is not None and not self.frozen
        self.header = predictions.Header(time[0] if time else None, self.settings.key)
        self.journal: predictions.Journal | None = None
        self.kept: list[Answers] | None = [] if self.keep and checkpoint is None else None
        self.trace = ImportanceTrace(self.started) if self.traced else None
        if self.output is not None:
            path = None if self.path is None else predictions.journal_of(self.path)
            self.journal = predictions.Journal(path, self.header, saved.output if saved and resumed else None)
        self.saved_at = self.started.rows
        if saved is not None and resumed:
            console.remark(f"resumed after {saved.rows} rows")

    def run(self) -> None:
        """Answer every row. An error leaves the last checkpoint as it is: the rows after it are read again."""
        from driftgp.tables.rows import count_rows

        run = self.started
        rows = 0 if run.live else count_rows(self.file)
        try:
            if rows > run.before:
                with console.progress(rows - run.before, "predicting") as report:
                    self._through(report)
            else:
                self._through(lambda _doing, _rows: None)
            self._save()
        finally:
            if self.journal is not None:
                self.journal.close()
        self._finish()

    def _through(self, report: Callable[[str, int], None]) -> None:
        for answers in self.started.answers():
            if self.journal is not None:
                self.journal.write(answers)
            if self.kept is not None:
                self.kept.append(answers)
            if self.trace is not None:
                self.trace.see(answers)
            if self.started.rows - self.saved_at >= self.every:
                self._save()
            report("predicting", len(answers))

    def _save(self) -> None:
        """Write the output to the disk first, then the checkpoint with its length."""
        from driftgp.base.files import write_atomically

        if self.checkpoint is not None:
            length = 0 if self.journal is None else self.journal.sync()
            write_atomically(self.checkpoint, self.started.to_bytes(length))
        self.saved_at = self.started.rows

    def _finish(self) -> None:
        from driftgp.tables import predictions

        if self.path is not None and self.path.suffix.lower() == ".parquet":
            predictions.make_parquet(self.path)
            if self.checkpoint is None:
                predictions.journal_of(self.path).unlink()

    def print_summary(self, seconds: float, *, as_json: bool) -> None:
        """Print the summary, on standard error if predictions are on standard output."""
        from driftgp.cli.summary import Summary

        summary = Summary(self.started, seconds)
        if self.on_screen:
            summary.remark()
        elif as_json:
            summary.print_json()
        else:
            summary.print()

    def draw(self, path: Path) -> None:
        """Draw the run."""
        from driftgp.plots import base as plots
        from driftgp.plots import run as plots_run
        from driftgp.runs.warnings import warnings_of
        from driftgp.stream.running_scores import means
        from driftgp.tables import predictions

        if self.kept is not None:
            shown = predictions.from_answers(self.header, self.kept)
        elif self.path is not None:
            shown = predictions.read_predictions(predictions.journal_of(self.path), self.header)
        run, settings, monitor = self.started, self.settings, self.started.monitor
        unit = run.facts.written.unit
        about = plots_run.About(settings.target, settings.level, unit, settings.horizon, warnings_of(run))
        if settings.key is None or monitor is None:
            figure = plots_run.run_figure(shown, about)
        else:
            figure = plots_run.keys_figure(shown, about, {str(k): means(monitor.of(k), ()) for k in monitor.places})
        plots.save(figure, path)
        console.remark(f"wrote {path}")

    def draw_importance(self, path: Path) -> None:
        """Draw the importance of the inputs over the run."""
        if self.trace is not None:
            self.trace.draw(path, self.header)
