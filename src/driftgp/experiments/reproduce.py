"""All experiments of the paper: run what is not on disk yet, then sum up and report what is."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from driftgp.experiments import batch, store
from driftgp.experiments.batch import Job
from driftgp.experiments.beyond import Beyond
from driftgp.experiments.experiment import Experiment
from driftgp.experiments.forgetting import Forgetting
from driftgp.experiments.load import Load
from driftgp.experiments.sales import Sales
from driftgp.experiments.tasks import Method, Selection, Task, per_output
from driftgp.experiments.toy import Toy
from driftgp.experiments.trials import Trials
from driftgp.model import Model

EXPERIMENTS: dict[str, type[Experiment]] = {kind.name: kind for kind in (Toy, Forgetting, Load, Sales, Beyond, Trials)}
PAPER = (Toy, Forgetting, Load, Sales)
CHUNK, SLOW_CHUNK = 25, 4  # runs in a file


class Plan:
    """One method of one experiment: its jobs, and where their results are kept."""

    def __init__(self, experiment: str, method: Method, tasks: Sequence[Task], output: Path) -> None:
        """Take what is to be run."""
        self.method = method
        self.label = f"{experiment} {method.name}"
        self._folder = store.folder(output, experiment, method.name)
        self._jobs = _jobs(method, tasks)

    def missing(self) -> list[Job]:
        """Jobs whose results are not on disk."""
        done = set(self.rows()["key"])
        return [job for job in self._jobs if job.key not in done]

    def run(self, jobs: Sequence[Job], done: Callable[[], None], threads: int, minutes: float) -> None:
        """Run some of the jobs, as many as can be begun in so many minutes, and keep their results."""
        batch.run(
            jobs,
            save=lambda rows: store.write(self._folder, rows),
            done=done,
            threads=threads,
            chunk=SLOW_CHUNK if self.method.slow else CHUNK,
            seconds=60 * minutes,
        )

    def rows(self) -> pl.DataFrame:
        """Whatever results there are."""
        return store.read(self._folder, [job.key for job in self._jobs])


def plans(experiment: Experiment, names: tuple[str, ...] | None, output: Path) -> list[Plan]:
    """One plan for each method of these names, or for all methods."""
    methods = experiment.wanted(names)
    tasks = experiment.tasks() if methods else []
    return [Plan(experiment.name, method, tasks, output) for method in methods]


def chosen(what: str, selection: Selection, names: tuple[str, ...] | None) -> list[Experiment]:
    """The experiment of this name, or all of the paper's; a method that none of them has is refused."""
    kinds: Sequence[type[Experiment]] = PAPER if what == "all" else [EXPERIMENTS[what]]
    experiments = [kind(selection) for kind in kinds]
    known = {
        method.name
        for kind in ((EXPERIMENTS[what],) if issubclass(EXPERIMENTS.get(what, Toy), Beyond) else (Toy, Load))
        for method in kind(selection).methods()
    }
    for name in names or ():
        if name.casefold() not in {other.casefold() for other in known}:
            raise ValueError(f"methods must be among {', '.join(sorted(known))}; got {name!r}")
    return experiments


def _jobs(method: Method, tasks: Sequence[Task]) -> list[Job]:
    """One job a task, or one for each of its outputs; a model is built once for all that share its settings."""
    tasks = tasks if method.shared else [single for task in tasks for single in per_output(task)]
    models: dict[Any, tuple[Model[Any], Callable[[Task], str]]] = {}

    def settings(task: Task) -> Any:
        return task if method.fitted else (task.stream.name, task.stream.lag_columns)

    for task in tasks:
        if settings(task) not in models:
            model = method.build(task.stream)
            models[settings(task)] = model, store.keys(model)
    paired = [(*models[settings(task)], task) for task in tasks]
    return [Job(model, task, key(task)) for model, key, task in paired]
