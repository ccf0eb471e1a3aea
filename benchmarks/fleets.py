"""Many models at once: time per row, on one core and on all, memory, and bytes."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks import models, streams
from benchmarks.models import Clock, after, in_stream, rows_of, warm
from benchmarks.process import Row, peak_bytes
from benchmarks.streams import Size
from benchmarks.timing import Run, in_turn, timed
from driftgp import Fleet
from driftgp.defaults import Effort

WARMUP, ALONE = 400, 1000  # rows of the stream that all keys follow
MOST_IN_BLOCKS = 1000  # keys that get fifty rows in a call too


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


def fleet(effort: Effort, inputs: int, keys: int, rounds: int, calls: int) -> list[Row]:
    """Each call brings a row for every key (or fifty, or one for a tenth of them), beside the stream of a single model.

    What uses all cores is measured by the clock on the wall, and so is what it is compared with; the rest is CPU.
    """
    alone = streams.load_like(WARMUP, ALONE, inputs)
    model = models.default(alone, effort)
    state = warm(model, alone)
    together = Fleet(model)
    together.warm(alone.X[: alone.warmup], alone.y[: alone.warmup])
    source = after(alone)
    everyone = Follower(together, source, np.arange(keys))
    some = Follower(together, source, np.random.default_rng(0).choice(keys, max(keys // 10, 1), replace=False))
    wall = time.perf_counter
    runs: dict[tuple[str, str], Run] = {
        (effort, "one model"): in_stream([model], [state], alone, wall),
        (effort, "all cores"): lambda: everyone.follow(calls, clock=wall),
        (effort, "one model, CPU"): in_stream([model], [state], alone),
        (effort, "one core, CPU"): on_one_core(lambda: everyone.follow(calls)),
        (effort, "a tenth of the keys, CPU"): on_one_core(lambda: some.follow(calls)),
    }
    if keys <= MOST_IN_BLOCKS:
        runs[effort, "fifty rows, all cores"] = lambda: everyone.follow(1, each=50, clock=wall)
        runs[effort, "fifty rows, one core"] = on_one_core(lambda: everyone.follow(1, each=50, clock=wall))
    found = in_turn(runs, rounds)
    notes = {"models": keys, "bytes": int(state.record.nbytes), "peak": peak_bytes()}
    return [row | {"M": None, "T": None} | notes for row in rows_of(found, Size(0, 0, inputs))]


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


def stored(effort: Effort, inputs: int, keys: int) -> list[Row]:
    """Bytes per key of a fleet of the default model, in memory and as bytes, after a thousand rows each."""
    stream = streams.load_like(WARMUP, ALONE, inputs)
    X, y = after(stream)
    together = Fleet(models.default(stream, effort))
    together.warm(stream.X[: stream.warmup], stream.y[: stream.warmup])
    alone = len(together.to_bytes())  # the state that a new key starts from
    listed = np.repeat(np.arange(keys), len(y))
    noise = np.random.default_rng(0).normal(0.0, 0.01, (keys, *X.shape))
    together.update(listed, (X + noise).reshape(-1, inputs), np.tile(y, keys))
    size_of = (len(together.to_bytes()) - alone) / keys
    whole = together.state(0).record.nbytes
    return [{"name": effort, "how": "to_bytes", "D": inputs, "stored": size_of, "bytes": int(whole)}]
