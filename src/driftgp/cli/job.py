"""One run from the command line: rows to a journal, with checkpoints on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftgp.cli import console
from driftgp.cli.importance import BETWEEN, ImportanceTrace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from driftgp.runs import Answers, Saved, Settings
    from driftgp.tables.rows import Rows


class Job:
    """Rows of a table to predictions in a file, a checkpoint, a summary and pictures."""

    def __init__(
        self,
        settings: Settings,
        rows: Rows,
        file: str,
        *,
        live: bool,
        saved: Saved | None,
        frozen: bool,
        output: Path | None,
        checkpoint: Path | None,
        every: int,
        keep: bool,
        monitored: bool,
        traced: bool,
    ) -> None:
        """Open the output, and continue from the checkpoint.

        Args:
            settings: of the run.
            rows: of the table.
            file: its name.
            live: whether rows are answered one by one, as they come.
            saved: what the checkpoint holds.
            frozen: whether to predict by it, and to learn nothing.
            output: file of the predictions; - for standard output.
            checkpoint: file to keep up to date.
            every: rows between two checkpoints.
            keep: whether answers are kept for a picture.
            monitored: whether there are answers and scores.
            traced: whether the importance of the inputs is looked at on the way.
        """
        from driftgp.runs import Run
        from driftgp.runs.run import BLOCK
        from driftgp.tables import predictions

        self.settings, self.file, self.checkpoint, self.every = settings, file, checkpoint, every
        self.on_screen = output is not None and str(output) == "-"
        self.output = None if self.on_screen else output
        if keep and checkpoint is not None and self.output is None:
            raise ValueError("a picture of a run with a checkpoint needs --output, which has the rows before a stop")
        size = BETWEEN if traced else min(BLOCK, every) if checkpoint is not None else None
        self.started = Run(
            settings,
            rows,
            saved=saved,
            live=live,
            frozen=frozen,
            growing=checkpoint is not None,
            monitored=monitored,
            block=size,
            complain=console.remark,
        )
        time, resumed = self.started.facts.written.time, saved is not None and not frozen
        self.header = predictions.Header(time[0] if time else None, settings.key)
        self.journal: predictions.Journal | None = None
        self.kept: list[Answers] | None = [] if keep and checkpoint is None else None
        self.traced = ImportanceTrace(self.started) if traced else None
        if self.on_screen or self.output is not None:
            path = None if self.output is None else predictions.journal_of(self.output)
            at = saved.output if saved is not None and resumed else None
            self.journal = predictions.Journal(path, self.header, at)
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
            if self.traced is not None:
                self.traced.see(answers)
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

        if self.output is not None and self.output.suffix.lower() == ".parquet":
            predictions.make_parquet(self.output)
            if self.checkpoint is None:
                predictions.journal_of(self.output).unlink()

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
        from driftgp.stream.monitor import means
        from driftgp.tables import predictions

        if self.kept is not None:
            shown = predictions.from_answers(self.header, self.kept)
        elif self.output is not None:
            shown = predictions.read_predictions(predictions.journal_of(self.output), self.header)
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
        if self.traced is not None:
            self.traced.draw(path, self.header)
