"""What a fleet costs: bytes a key, µs a key-step beside one model's scan, memory, and what bytes cost.

    python -m benchmarks.fleet [--keys 10000] [--ticks 5] [--sizes 20,90,24]

Times are the least of several; the scan and the fleet take turns, so that both see the same machine.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftgp import AGP, FastAGP, Online, prequential
from driftgp.fleet import Fleet

STEPS = 500  # of the single model's scan


def stream(rng: np.random.Generator, rows: int, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs that walk, and targets that follow the first of them."""
    X = np.cumsum(rng.normal(size=(rows, inputs)) * 0.15, 0)
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=rows)


def resident() -> float:
    """Megabytes of memory in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def clocked(work: Callable[..., Any], *args: Any) -> float:
    """Seconds that a call takes."""
    began = time.perf_counter()
    work(*args)
    return time.perf_counter() - began


def one_by_one(online: Online[Any], X: np.ndarray, y: np.ndarray) -> None:
    """Predict and learn, a call each."""
    for x, target in zip(X, y, strict=True):
        online.predict(x)
        online.update(x, target)


def separately(model: AGP, states: list[Any], X: np.ndarray, y: np.ndarray) -> None:
    """As a program would that holds a state a key."""
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        model.predict(states[i % len(states)], x[None])
        states[i % len(states)] = model.update(states[i % len(states)], x, target)


class Walks:
    """A stream for every key, in step."""

    def __init__(self, rng: np.random.Generator, start: np.ndarray, keys: int) -> None:
        """Start every key near one place."""
        self.rng, self.X = rng, start + rng.normal(size=(keys, start.size)) * 0.3

    def tick(self, some: Any = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Next rows of some keys; the others wait."""
        self.X[some] += self.rng.normal(size=self.X[some].shape) * 0.15
        X = self.X[some].copy()
        return X, np.sin(2.0 * X[:, 0]) + 0.3 * self.rng.normal(size=len(X))


def measure(kind: str, sizes: Sequence[int], keys: int, ticks: int) -> None:
    """Print the line of one kind of model on the cores that this process has."""
    M, T, D = sizes
    rng = np.random.default_rng(0)
    model = (AGP if kind == "AGP" else FastAGP)(inducing=M, window=T)
    X, y = stream(rng, T + STEPS, D)
    state = model.init(X[:T], y[:T])
    prequential(model, state, X[T:], y[T:])
    fleet = Fleet(model)
    fleet.warm(X[:T], y[:T])
    walks, names = Walks(rng, X[T], keys), np.arange(keys)
    fleet.update(names, *walks.tick())
    best = dict.fromkeys(("scan", "tick", "tenth", "eight", "online", "loop"), np.inf)
    online = Online(model, state)
    few = names[: min(keys, 1000)]
    held = [model.init(X[:T], y[:T]) for _ in range(3)]
    for _ in range(ticks):
        some = rng.choice(keys, keys // 10, replace=False)
        eight = [np.concatenate(column) for column in zip(*[walks.tick(few) for _ in range(8)], strict=True)]
        took = {
            "scan": clocked(prequential, model, state, X[T:], y[T:]) / STEPS,
            "tick": clocked(fleet.evaluate, names, *walks.tick()) / keys,
            "tenth": clocked(fleet.evaluate, some, *walks.tick(some)) / some.size,
            "eight": clocked(fleet.evaluate, np.tile(few, 8), *eight) / (8 * few.size),
            "online": clocked(one_by_one, online, X[T:][:50], y[T:][:50]) / 50,
            "loop": clocked(separately, model, held, X[T:][:50], y[T:][:50]) / 50,
        }
        best = {name: min(best[name], took[name]) for name in best}
    memory = resident()
    data = fleet.to_bytes()
    to = clocked(fleet.to_bytes)
    back = clocked(Fleet.from_bytes, model, data)
    us = {name: 1e6 * value for name, value in best.items()}
    print(
        f"{kind:9} M={M} T={T} D={D}, {keys} keys, {len(os.sched_getaffinity(0))} core(s): "
        f"scan {us['scan']:.1f}, tick {us['tick']:.1f}, a tenth {us['tenth']:.1f}, eight rows a key {us['eight']:.1f}, "
        f"one Online {us['online']:.1f}, Python loop {us['loop']:.1f} µs a key-step; "
        f"{len(data) / keys:.0f} bytes a key; {memory:.0f} MB resident; "
        f"to bytes {1e6 * to / keys:.1f}, back {1e6 * back / keys:.1f} µs a key",
        flush=True,
    )


def on(cores: set[int]) -> Callable[[], None]:
    """Have a process run on some cores."""
    return lambda: os.sched_setaffinity(0, cores)


def main() -> None:
    """Measure each kind of model on one core and on all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--ticks", type=int, default=5)
    parser.add_argument("--sizes", default="20,90,24")
    parser.add_argument("--kinds", default="fast-AGP,AGP")
    parser.add_argument("--here", action="store_true", help="in this process, on the cores it has")
    given = parser.parse_args()
    if given.here:
        for kind in given.kinds.split(","):
            measure(kind, tuple(map(int, given.sizes.split(","))), given.keys, given.ticks)
        return
    for kind in given.kinds.split(","):  # a process of its own for each, so that memory is that of one fleet
        for cores in sorted({1, len(os.sched_getaffinity(0))}):
            chosen = set(sorted(os.sched_getaffinity(0))[:cores])
            command = [sys.executable, "-m", "benchmarks.fleet", "--here", "--kinds", kind]
            command += ["--keys", str(given.keys), "--ticks", str(given.ticks), "--sizes", given.sizes]
            subprocess.run(command, check=True, preexec_fn=on(chosen))


if __name__ == "__main__":
    main()
