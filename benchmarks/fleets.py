"""Many models at once: time per row, on one core and on all, memory, and bytes."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks import models, streams
from benchmarks.models import Clock, after, in_stream, rows_of, warm
from benchmarks.process import Row, peak_bytes
from benchmarks.streams import Size, steps
from benchmarks.timing import Run, in_turn, timed
from driftgp import Fleet

SINGLE = 0.05  # seconds that one model's stream takes


@contextmanager
def one_core() -> Iterator[None]:
    """Have this thread keep to one core: a fleet starts as many threads as there are cores for the one that calls."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def fleet(name: str, size: list[int], keys: int, rounds: int, calls: int) -> list[Row]:
    """Each call brings a row for every key (or eight, or one for a tenth of them), beside the stream of a single model.

    What uses all cores is measured by the clock on the wall, and so is what it is compared with; the rest is CPU.
    """
    chosen = Size(*size)
    model = models.named(name, chosen)
    alone = streams.stream(chosen, steps(chosen, SINGLE))
    state = warm(model, alone)
    together = Fleet(model)
    together.warm(alone.X[: alone.warmup], alone.y[: alone.warmup])
    source = after(streams.stream(chosen, 16 * (rounds + 2) * calls))
    everyone, few = (
        Follower(together, source, np.arange(keys)),
        Follower(together, source, np.arange(max(keys // 8, 1))),
    )
    some = Follower(together, source, np.random.default_rng(0).choice(keys, max(keys // 10, 1), replace=False))
    wall = time.perf_counter
    runs: dict[tuple[str, str], Run] = {
        (name, "all cores"): lambda: everyone.follow(calls, clock=wall),
        (name, "one core"): on_one_core(lambda: everyone.follow(calls, clock=wall)),
        (name, "one model"): in_stream([model], [state], alone, wall),
        (name, "one core, CPU"): on_one_core(lambda: everyone.follow(calls)),
        (name, "one model, CPU"): in_stream([model], [state], alone),
        (name, "eight rows per key, CPU"): on_one_core(lambda: few.follow(calls, each=8)),
        (name, "a tenth of the keys, CPU"): on_one_core(lambda: some.follow(calls)),
    }
    found = in_turn(runs, rounds)
    measured = rows_of(found, chosen, models=keys, bytes=int(state.record.nbytes), peak=peak_bytes())
    return measured + [row | {"models": keys} for row in _bytes(name, chosen, together, rounds)]


class Follower:
    """Some keys of a fleet that follow one stream in step, so that each does what a single model would do."""

    def __init__(self, together: Fleet, source: tuple[np.ndarray, np.ndarray], keys: np.ndarray) -> None:
        self.together, self.keys, self.now = together, keys, 0
        self.X, self.y = source

    def follow(self, calls: int, each: int = 1, clock: Clock = time.process_time) -> float:
        """Microseconds per row of calls that bring the next rows of every key."""
        tables = [self._next(each) for _ in range(calls)]

        def work() -> None:
            for table in tables:
                self.together.evaluate(*table)

        return timed(calls * each * len(self.keys), work, clock)

    def _next(self, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        places = np.arange(self.now, self.now + each) % len(self.y)
        self.now += each
        keys, rows = np.tile(self.keys, each), np.repeat(places, len(self.keys))
        return keys, self.X[rows], self.y[rows]


def on_one_core(run: Run) -> Run:
    """The same on one core."""

    def alone() -> float:
        with one_core():
            return run()

    return alone


def _bytes(name: str, size: Size, together: Fleet, rounds: int) -> list[Row]:
    """CPU per key of making bytes of a fleet, and of a fleet from bytes."""
    data = together.to_bytes()
    runs: dict[tuple[str, str], Run] = {
        (name, "to bytes"): lambda: timed(len(together), together.to_bytes),
        (name, "from bytes"): lambda: timed(len(together), lambda: Fleet.from_bytes(data)),
    }
    return rows_of(in_turn(runs, min(rounds, 3)), size, stored=len(data) / len(together))


def stored(size: list[int], keys: int) -> list[Row]:
    """Bytes per key of a fleet of the default model, after its windows have been filled twice."""
    chosen = Size(*size)
    stream = streams.stream(chosen, 2 * chosen.T)
    X, y = after(stream)
    together = Fleet(models.default(chosen))
    together.warm(stream.X[: stream.warmup], stream.y[: stream.warmup])
    listed = np.repeat(np.arange(keys), len(y))
    noise = np.random.default_rng(0).normal(0.0, 0.01, (keys, *X.shape))
    together.update(listed, (X + noise).reshape(-1, chosen.D), np.tile(y, keys))
    size_of = len(together.to_bytes()) / keys
    whole = together.state(0).record.nbytes
    row = {"name": "default", "how": "to_bytes", "M": chosen.M, "T": chosen.T, "D": chosen.D}
    return [row | {"stored": size_of, "bytes": int(whole)}]
