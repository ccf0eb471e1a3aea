"""All experiments of the paper: run what is not on disk yet, then sum up and report what is."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from driftgp.models.model import Model
from experiments import batch, store
from experiments.batch import Case
from experiments.beyond import Beyond
from experiments.experiment import Experiment
from experiments.forgetting import Forgetting
from experiments.load import Load
from experiments.sales import Sales
from experiments.tasks import Method, Selection, Task, per_output
from experiments.toy import Toy
from experiments.trials import Trials

EXPERIMENTS: dict[str, type[Experiment]] = {kind.name: kind for kind in (Toy, Forgetting, Load, Sales, Beyond, Trials)}
PAPER = (Toy, Forgetting, Load, Sales)
CHUNK, SLOW_CHUNK = 25, 4  # runs in a file


class Plan:
    """One method of one experiment: its cases, and where their results are kept."""

    def __init__(self, experiment: str, method: Method, tasks: Sequence[Task], output: Path) -> None:
        """Take what is to be run."""
        self.method = method
        self.label = f"{experiment} {method.name}"
        self._folder = store.folder(output, experiment, method.name)
        self._cases = _cases(method, tasks)

    def missing(self) -> list[Case]:
        """Jobs whose results are not on disk."""
        done = set(self.rows()["key"])
        return [case for case in self._cases if case.key not in done]

    def run(self, cases: Sequence[Case], done: Callable[[], None], threads: int, minutes: float) -> None:
        """Run the cases that can be begun within this number of minutes, and keep their results."""
        batch.run(
            cases,
            save=lambda rows: store.write(self._folder, rows),
            done=done,
            threads=threads,
            chunk=SLOW_CHUNK if self.method.slow else CHUNK,
            seconds=60 * minutes,
        )

    def rows(self) -> pl.DataFrame:
        """All results so far."""
        return store.read(self._folder, [case.key for case in self._cases])


def plans(experiment: Experiment, names: tuple[str, ...] | None, output: Path) -> list[Plan]:
    """One plan for each method of these names, or for all methods."""
    methods = experiment.wanted(names)
    tasks = experiment.tasks() if methods else []
    return [Plan(experiment.name, method, tasks, output) for method in methods]


def chosen(what: str, selection: Selection, names: tuple[str, ...] | None) -> list[Experiment]:
    """The experiment of this name, or all of the paper's; a method that none of them has is refused."""
    kinds: Sequence[type[Experiment]] = PAPER if what == "all" else [EXPERIMENTS[what]]
    experiments = [kind(selection) for kind in kinds]
    own = (EXPERIMENTS[what],) if issubclass(EXPERIMENTS.get(what, Toy), Beyond) else (Toy, Load, Sales)
    known = {method.name: method for kind in own for method in kind(selection).methods()}
    for name in names or ():
        if not any(method.called(name) for method in known.values()):
            raise ValueError(f"methods must be among {', '.join(sorted(known))}; got {name!r}")
    return experiments


def _cases(method: Method, tasks: Sequence[Task]) -> list[Case]:
    """One case a task, or one for each of its outputs; a model is built once for all that share its settings."""
    tasks = tasks if method.shared else [single for task in tasks for single in per_output(task)]
    models: dict[Any, tuple[Model, Callable[[Task], str]]] = {}

    def settings(task: Task) -> Any:
        return task if method.fitted else (task.stream.name, task.stream.lag_columns)

    for task in tasks:
        if settings(task) not in models:
            model = method.build(task.stream)
            models[settings(task)] = model, store.keys(model)
    paired = [(*models[settings(task)], task) for task in tasks]
    return [Case(model, task, key(task)) for model, key, task in paired]
