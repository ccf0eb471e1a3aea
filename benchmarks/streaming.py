"""Models of other libraries on a stream, one call to predict and one to learn for each sample."""

import gc
import time
from typing import Any

import numpy as np

from benchmarks import streams
from benchmarks.ours import SAMPLES
from benchmarks.outside import CONTENDERS
from benchmarks.process import Row
from benchmarks.sizes import Size


def outside(name: str, size: list[int], rounds: int, seconds: float) -> list[Row]:
    """Follow a stream (another seed each round) for at most so many seconds a round."""
    chosen = Size(*size)
    microseconds, errors, seen = [], [], 0
    for seed in range(rounds):
        stream = streams.stream(chosen, SAMPLES, seed)
        contender = CONTENDERS[name](chosen, stream.X[: stream.warmup], stream.y[: stream.warmup])
        took, squares = follow(contender, stream.X[stream.warmup :], stream.y[stream.warmup :], seconds)
        microseconds.append(took)
        errors.append(float(np.mean(squares)))
        seen = len(squares)
    row = {"name": name, "how": "calls", "M": chosen.M, "T": chosen.T, "D": chosen.D, "microseconds": microseconds}
    return [row | ({"mse": float(np.mean(errors))} if seen == SAMPLES else {}) | {"samples": seen}]


def follow(contender: Any, X: np.ndarray, y: np.ndarray, seconds: float) -> tuple[float, list[float]]:
    """Microseconds a sample, and the squared errors; the first sample, which may compile, is not timed."""
    squares = []
    gc.collect()
    start = time.perf_counter()
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        if i == 1:
            start = time.perf_counter()
        squares.append((contender.predict(x) - target) ** 2)
        contender.learn(x, target)
        if i > 0 and time.perf_counter() - start > seconds:
            break
    return 1e6 * (time.perf_counter() - start) / max(len(squares) - 1, 1), squares
