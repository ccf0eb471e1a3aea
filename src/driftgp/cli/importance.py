"""The importance of the inputs over a run, for `driftgp run --importance`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftgp.cli import console

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from driftgp.runner import Answer, Runner

BETWEEN = 100  # rows from one look at the model to the next, at least


class ImportanceTrace:
    """What mattered to the model of a run with one series, from time to time."""

    def __init__(self, runner: Runner) -> None:
        """Take the run."""
        self.runner = runner
        self._seen: list[tuple[Answer, np.ndarray]] = []
        self._last: Answer | None = None  # after which the model has not been looked at
        self._next = 0  # rows read at which to look again

    def see(self, answer: Answer) -> None:
        """Look at the model after a row, unless the last look was a few rows ago."""
        self._last = answer
        if self.runner.rows >= self._next:
            self._look(answer)

    def _look(self, answer: Answer) -> None:
        from driftgp.diagnostics import importance

        state = self.runner.lanes[answer.group].state
        if state is None:  # not started
            return
        shares = importance(state)
        if (shares != shares).any():
            raise ValueError(
                f"--importance needs a model that says how relevant each input is; {self.runner.settings.model!r} does "
                "not: leave out --model, or use --model agp"
            )
        self._seen.append((answer, shares))
        self._last, self._next = None, self.runner.rows + BETWEEN

    def draw(self, path: Path) -> None:
        """Draw what was seen."""
        import numpy as np

        from driftgp import plots, plots_run
        from driftgp.data import predictions

        runner = self.runner
        if self._last is not None:
            self._look(self._last)
        if not self._seen:
            raise ValueError(
                f"the model has not started after {runner.rows} rows: there is no importance to draw. Give more rows, "
                "or a smaller --warmup"
            )
        header = predictions.columns(timed=bool(runner.schema.time), grouped=False)
        at = predictions.from_answers(header, [answer for answer, _ in self._seen]).at
        shares = np.array([shares for _, shares in self._seen])
        plots.save(plots_run.importance_figure(at, shares, runner.features.names, runner.settings.target), path)
        console.remark(f"wrote {path}")
