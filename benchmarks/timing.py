"""Repeated runs, and their summary."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

Key = TypeVar("Key")
Run = Callable[[], float]  # one run; its microseconds per row


class Spread(NamedTuple):
    """Median of repeated runs, and the quartiles around it."""

    median: float
    low: float
    high: float


def spread(rounds: Sequence[float]) -> Spread:
    """Median and quartiles.

    >>> spread([3.0, 1.0, 2.0])
    Spread(median=2.0, low=1.5, high=2.5)
    """
    low, median, high = np.percentile(np.asarray(rounds, float), [25, 50, 75])
    return Spread(float(median), float(low), float(high))


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """How many times as long the one took as the other, round by round: what slows a whole round down cancels."""
    if len(above) == len(below):
        return spread([a / b for a, b in zip(above, below, strict=True)])
    over = spread(below).median
    return spread([a / over for a in above])


def timed(rows: int, work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Microseconds per row of one run: CPU time of the process, which other processes change little.

    What uses several cores is measured by `time.perf_counter` instead.
    """
    start = clock()
    work()
    return 1e6 * (clock() - start) / rows


def in_turn(runs: Mapping[Key, Run], rounds: int) -> dict[Key, list[float]]:
    """Run all of them, one after another, this number of times; a first round does not count."""
    for run in runs.values():
        run()
    results: dict[Key, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            results[name].append(run())
    return results
