"""Other models on the same streams: those of other libraries, and the rivals of driftgp[rivals]."""

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import models, streams
from benchmarks.models import after, in_stream, rows_of, warm
from benchmarks.outside import CONTENDERS, Contender
from benchmarks.process import Row
from benchmarks.streams import TOY, Size
from benchmarks.timing import Run, in_turn
from driftgp import prequential
from driftgp import rivals as beside
from driftgp.evaluate import mse
from driftgp.models.model import Model

SAMPLES = 401  # those of the toy after its warm-up

# ---- other libraries -------------------------------------------------------------------------------------------------


def outside(name: str, size: list[int], rounds: int, seconds: float) -> list[Row]:
    """Follow a stream (another seed each round) for at most this number of seconds per round."""
    chosen = Size(*size)
    microseconds, errors, seen = [], [], 0
    for seed in range(rounds):
        stream = streams.stream(chosen, SAMPLES, seed)
        contender = CONTENDERS[name](chosen, stream.X[: stream.warmup], stream.y[: stream.warmup])
        took, squares = follow(contender, *after(stream), seconds)
        microseconds.append(took)
        errors.append(float(np.mean(squares)))
        seen = len(squares)
    error = {"mse": float(np.mean(errors))} if seen == SAMPLES else {}
    return rows_of({(name, "calls"): microseconds}, chosen, samples=seen, **error)


def follow(contender: Contender, X: np.ndarray, y: np.ndarray, seconds: float) -> tuple[float, list[float]]:
    """Microseconds of CPU per sample, and the squared errors; the first sample, which may compile, is not timed."""
    squares = []
    gc.collect()
    start = time.process_time()
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        if i == 1:
            start = time.process_time()
        squares.append((contender.predict(x) - target) ** 2)
        contender.learn(x, target)
        if i > 0 and time.process_time() - start > seconds:
            break
    return 1e6 * (time.process_time() - start) / max(len(squares) - 1, 1), squares


def accuracy(names: list[str], seeds: int) -> list[Row]:
    """Mean squared error of our models on the whole toy stream, mean over seeds."""
    rows = []
    for name in names:
        ours = models.agp(name, TOY)
        errors = []
        for seed in range(seeds):
            stream = streams.stream(TOY, SAMPLES, seed)
            X, y = after(stream)
            errors.append(mse(prequential(ours, warm(ours, stream), X, y).prediction, y))
        rows += rows_of({(name, "prequential"): []}, TOY, mse=float(np.mean(errors)), samples=SAMPLES)
    return rows


# ---- rivals ----------------------------------------------------------------------------------------------------------


def rival(name: str, size: Size, warmup: int = 200) -> Model:
    """One of our rivals, with AGP's sizes and else its own defaults."""
    makers: dict[str, Callable[[], Any]] = {
        "AGP": lambda: models.agp("AGP", size, warmup_iterations=warmup),
        "OSGP": lambda: beside.OSGP(inducing=size.M),
        "WISKI": beside.WISKI,
        "KRLS-T": lambda: beside.KRLST(dictionary=size.M),
        "w-VSGP": lambda: beside.WVSGP(inducing=size.M, window=size.T),
        "AGP-VSI": lambda: beside.AGPVSI(inducing=size.M, window=size.T),
        "exact window": lambda: beside.ExactWindow(window=size.T, warmup_iterations=warmup),
    }
    made: Model = makers[name]()
    return made


def rivals(size: list[int], names: list[str], samples: int, rounds: int, warmup: int = 200) -> list[Row]:
    """AGP and rivals over one stream, in turn."""
    chosen = Size(*size)
    stream = streams.stream(chosen, samples)
    X, y = after(stream)
    runs: dict[tuple[str, str], Run] = {}
    notes: dict[str, Row] = {}
    for name in names:
        one = rival(name, chosen, warmup)
        state = warm(one, stream)
        error = mse(prequential(one, state, X, y).prediction, y)
        notes[name] = {"mse": error, "bytes": int(state.record.nbytes)}
        runs[name, "prequential"] = in_stream([one], [state], stream)
    return [row | notes[row["name"]] for row in rows_of(in_turn(runs, rounds), chosen)]
