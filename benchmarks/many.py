"""Many models at once."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks import ours, streams
from benchmarks.process import Row
from benchmarks.sizes import Size, steps
from benchmarks.timing import in_turn, timed
from driftgp.fleet import Fleet


@contextmanager
def one_core() -> Iterator[None]:
    """Have this thread keep to one core, which a fleet takes for the number of blocks to work on at a time.

    The threads in which JAX computes stay free: crowded together with the thread that waits for them they would be
    slower than one core is.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def fleet(name: str, size: list[int], models: int, rounds: int, calls: int, cores: bool = False) -> list[Row]:
    """Each call brings a row for every model: on all cores, on one, and the scan of a single model beside it."""
    chosen = Size(*size)
    model = ours.model(name, chosen)
    alone = streams.stream(chosen, steps(chosen, 0.05))
    state = model.init(alone.X[: alone.warmup], alone.y[: alone.warmup])
    keys = [f"key {i}" for i in range(models)]
    together = Fleet(model)
    together.warm(alone.X[: alone.warmup], alone.y[: alone.warmup])
    rng = np.random.default_rng(0)
    rows = [rng.integers(alone.warmup, len(alone.y), models) for _ in range(calls)]

    def follow() -> float:
        def work() -> None:
            for chosen_rows in rows:
                together.evaluate(keys, alone.X[chosen_rows], alone.y[chosen_rows])

        return timed(calls * models, work)

    def on_one() -> float:
        with one_core():
            return follow()

    runs = {"all cores": follow, "scan": ours.in_scan(model, state, alone)}
    if cores and hasattr(os, "sched_setaffinity"):
        runs["one core"] = on_one
    measured = in_turn(runs, rounds)
    shared = {"name": name, "models": models, "M": chosen.M, "T": chosen.T, "D": chosen.D}
    bytes_each = ours.state_bytes(state)
    return [{**shared, "how": how, "microseconds": values, "bytes": bytes_each} for how, values in measured.items()]
