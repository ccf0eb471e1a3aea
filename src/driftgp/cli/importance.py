"""The importance of the inputs over a run, for `driftgp run --importance`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftgp.cli import console

if TYPE_CHECKING:
    from pathlib import Path

    from driftgp.runs import Answers, Run
    from driftgp.tables.predictions import Header

BETWEEN = 100  # rows from one look at the model to the next


class ImportanceTrace:
    """The importance of the inputs over a run with one series."""

    def __init__(self, run: Run) -> None:
        """Take the run."""
        self.run = run
        self._seen: list[tuple[Answers, dict[str, float]]] = []

    def see(self, answers: Answers) -> None:
        """Look at the model after a block of rows."""
        from driftgp.diagnostics import importance
        from driftgp.online import Online

        online = self.run.stream
        assert isinstance(online, Online)  # noqa: S101
        shares = importance(online.state)
        if (shares != shares).any():
            raise ValueError(
                f"--importance needs a model with a relevance for each input; {self.run.settings.model!r} does "
                "not: leave out --model, or use --model agp"
            )
        self._seen.append((answers, dict(zip(online.inputs, shares.tolist(), strict=True))))

    def draw(self, path: Path, header: Header) -> None:
        """Draw the importance over time."""
        import numpy as np

        from driftgp.plots import base as plots
        from driftgp.plots import run as plots_run
        from driftgp.tables import predictions

        if not self._seen:
            raise ValueError("there are no rows: there is no importance to draw")
        at = predictions.from_answers(header, [answers for answers, _ in self._seen]).at
        last = np.cumsum([len(answers) for answers, _ in self._seen]) - 1
        names = list(dict.fromkeys(name for _, shares in self._seen for name in shares))
        shares = np.array([[own.get(name, 0.0) for name in names] for _, own in self._seen])
        plots.save(plots_run.importance_figure(at[last], shares, names, self.run.settings.target), path)
        console.remark(f"wrote {path}")
