"""What there is to run: one model on one stream, and which of all of them the user asked for."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from driftgp.data import Stream
from driftgp.data.locate import Location
from driftgp.models.model import Model
from experiments.data import ZONES
from experiments.settings import SETUPS, Setup

SEEDS = tuple(range(1000))
HOURS = tuple(range(1, 25))


@dataclass(frozen=True)
class Selection:
    """Seeds, zones and hours to run (or series, where an experiment has many), and where the files are."""

    seeds: tuple[int, ...] = SEEDS
    zones: tuple[str, ...] = ZONES
    hours: tuple[int, ...] = HOURS
    data: Location = None
    series: tuple[str, ...] | None = None
    setups: tuple[Setup, ...] = SETUPS


@dataclass(frozen=True, eq=False)
class Task:
    """A stream that one model follows: `outputs` numbers the columns of its y (hours of the day, or a lone 1)."""

    series: str
    outputs: tuple[int, ...]
    stream: Stream

    @property
    def sizes(self) -> tuple[int, int]:
        """Inputs and outputs of a model for the stream."""
        y = self.stream.y
        return self.stream.X.shape[1], 1 if y.ndim == 1 else y.shape[1]

    @cached_property
    def digest(self) -> str:
        """What the data are known by."""
        stream = self.stream
        digest = hashlib.blake2b(digest_size=16)
        for array in (stream.X, stream.y, stream.elapsed):
            digest.update(f"{array.shape}{stream.warmup}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Method:
    """A model under the name that the tables give it.

    `build` takes the stream, of which persistence wants to know the column of the last value, and a method that is
    fitted to the stream its warm-up samples.
    """

    name: str
    build: Callable[[Stream], Model]
    slow: bool = False  # takes about a second a stream, or more
    setup: Setup = "published"
    shared: bool = False  # one model for all outputs of a series, instead of one for each
    fitted: bool = False  # settings follow from the stream's samples

    def of(self, setup: Setup) -> "Method":
        """The same method as part of this setup."""
        return replace(self, setup=setup)

    def called(self, name: str) -> bool:
        """Whether this is its name, in any setup and case: AGP is "AGP" and "AGP (printed)"."""
        asked, known = name.casefold(), self.name.casefold()
        return asked == known or known in (f"{asked} (printed)", f"{asked} (ours)") or known.startswith(f"{asked} (map")


def per_output(task: Task) -> list[Task]:
    """One task for each output of a task."""
    if task.stream.y.ndim == 1:
        return [task]
    return [Task(task.series, (output,), task.stream.output(i)) for i, output in enumerate(task.outputs)]
