"""What the default costs: time per row, its slowest row, a fresh process, bytes per key."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.defaults.score import EFFORTS
from benchmarks.defaults.streams import WARMUP, Floats, Stream, stream
from benchmarks.fresh import FIRST, printed
from benchmarks.models import standardised
from benchmarks.streams import load_like
from benchmarks.timing import Run, in_turn, ratio, spread, timed
from driftgp import AGP, Online, prequential
from driftgp.checkpoint import to_bytes
from driftgp.data import Stream as Data
from driftgp.defaults import LEARNING, kernel, recommended
from driftgp.models.model import Model

ROUNDS = 3
ROWS = 3000  # that are timed
INPUTS = (1, 8, 24)
KEY = "AGP (20, 400)"  # one native AGP with M = 20 and T = 400: the unit of costs
FIRST_ROWS = 400


def cost(names: Sequence[str] = ("fried", "CT", "appliances"), rounds: int = ROUNDS) -> dict[str, Any]:
    """Microseconds of CPU per row, as a ratio to one AGP in the same rounds, and the slowest row / the median one."""
    return {name: _cost(stream(name).first(WARMUP + ROWS), rounds) for name in names}


def _cost(given: Stream, rounds: int) -> dict[str, Any]:
    X, y = given.X[:WARMUP], given.y[:WARMUP]
    plain = standardised(Data(given.name, X=given.X, y=given.y, warmup=WARMUP))
    agp = AGP(kernel(given.X.shape[1]), inducing=20, window=400, forgetting=1.0 - 1.0 / 400.0, **LEARNING)
    models: dict[str, tuple[Model, Floats, Floats]] = {KEY: (agp, plain.X, plain.y)}
    models |= {effort: (recommended(X, y, effort=effort), given.X, given.y) for effort in EFFORTS}
    measured = in_turn({name: _timed(*rows) for name, rows in models.items()}, rounds)
    found: dict[str, Any] = {KEY: {"microseconds": spread(measured[KEY]).median}}
    for effort in EFFORTS:
        found[effort] = {
            "microseconds": spread(measured[effort]).median,
            "ratio": ratio(measured[effort], measured[KEY]).median,
            **slowest(models[effort][0], given, rounds),
        }
    return found


def _timed(model: Model, X: Floats, y: Floats) -> Run:
    state = model.init(X[:WARMUP], y[:WARMUP])
    return lambda: timed(len(y) - WARMUP, lambda: prequential(model, state, X[WARMUP:], y[WARMUP:]))


def slowest(model: Model, given: Stream, rounds: int = ROUNDS) -> dict[str, float]:
    """The slowest row and the median one, a call to predict and one to update each.

    A row counts with the fastest of its rounds: what another process interrupts is not the model's.
    """
    state = model.init(given.X[:WARMUP], given.y[:WARMUP])
    handed = list(zip(given.X[WARMUP:], given.y[WARMUP:].tolist(), strict=True))
    took = np.empty((rounds, len(handed)))
    for i in range(rounds):
        online = Online(model, state)
        for row, (x, target) in enumerate(handed):
            start = time.thread_time_ns()
            online.predict(x)
            online.update(x, target)
            took[i, row] = time.thread_time_ns() - start
    least = took.min(0) / 1e3
    return {"median_row": float(np.median(least)), "slowest_row": float(least.max())}


def fresh(rounds: int = ROUNDS) -> dict[str, Any]:
    """CPU seconds of a fresh process until the first prediction after 400 rows of eight inputs, and its bytes."""
    found: dict[str, Any] = {}
    for effort in EFFORTS:
        runs = [printed(FIRST.format(effort, 8)) for _ in range(rounds + 1)][1:]  # the first reads the disk
        seconds, peak = zip(*runs, strict=True)
        found[effort] = {"seconds": spread(seconds).median, "bytes": max(peak)}
    return found


def size() -> dict[str, Any]:
    """Bytes per key: of a state in memory, and of its checkpoint after 1000 rows."""
    found: dict[str, Any] = {}
    for effort in EFFORTS:
        for D in INPUTS:
            data = load_like(FIRST_ROWS, 1000, D)
            X, y = data.X[:FIRST_ROWS], data.y[:FIRST_ROWS]
            model = recommended(X, y, effort=effort)
            state = prequential(model, model.init(X, y), data.X[FIRST_ROWS:], data.y[FIRST_ROWS:]).state
            stored = len(to_bytes(model, state))
            found.setdefault(effort, {})[str(D)] = {"memory": int(state.record.nbytes), "stored": stored}
    return found
