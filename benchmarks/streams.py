"""The sizes that are measured, and the streams that they are measured on."""

from typing import NamedTuple

import numpy as np

from driftgp.data import Stream, toy_stream


class Size(NamedTuple):
    """Inducing points, window, inputs."""

    M: int
    T: int
    D: int

    def __str__(self) -> str:
        return f"{self.M}, {self.T}, {self.D}"


TOY = Size(10, 100, 1)
LOAD = Size(20, 90, 24)
MIDDLE = Size(50, 500, 8)
LARGE = Size(100, 1000, 24)
LARGEST = Size(200, 2000, 24)
GRID = (TOY, LOAD, MIDDLE, LARGE, LARGEST)
DEFAULTS = (Size(20, 100, 1), Size(20, 400, 8), Size(20, 400, 24))  # what `recommended` takes for 1, 8 and 24 inputs


def steps(size: Size, seconds: float) -> int:
    """How many samples to follow so that AGP takes about so long: its cost is that of a few products of M×M by M×T."""
    microseconds = 12.0 + size.M * size.T * (3.0 * size.M + 2.0 * size.D + 30.0) / 40e3
    return max(20, min(20_000, int(1e6 * seconds / microseconds)))


def stream(size: Size, samples: int, seed: int = 0, warmup: int | None = None) -> Stream:
    """A warm-up (of the window's length by default) and samples: the toy for one input, else a load-like one."""
    first = size.T if warmup is None else warmup
    return toy(first, samples, seed) if size.D == 1 else load_like(first, samples, size.D, seed)


def toy(warmup: int, samples: int, seed: int = 0) -> Stream:
    """The paper's toy stream, which goes on: the frequency of the sine changes every 200 samples."""
    known = toy_stream(seed)
    total = warmup + samples
    if total <= len(known):
        return Stream("toy", X=known.X[:total], y=known.y[:total], warmup=warmup)
    more = total - len(known)
    step = 1 + np.arange(more)
    frequency = np.where(step // 200 % 2, 8.0, 4.0)
    phase = 8.0 * known.X[-1, 0] + np.cumsum(frequency) * 0.01
    noise = np.random.default_rng(seed).normal(0.0, 0.2, more)
    X = np.concatenate([known.X, known.X[-1] + 0.01 * step[:, None]])
    return Stream("toy", X=X, y=np.concatenate([known.y, 2.0 * np.sin(phase) + noise]), warmup=warmup)


def load_like(warmup: int, samples: int, inputs: int, seed: int = 0) -> Stream:
    """Inputs that swing slowly with different periods, like the hours of a load; a target that drifts."""
    rng = np.random.default_rng(seed)
    total = warmup + samples
    t = np.arange(total)
    period, phase = rng.uniform(40.0, 400.0, inputs), rng.uniform(0.0, 2.0 * np.pi, inputs)
    X = np.sin(2.0 * np.pi * t[:, None] / period + phase) + rng.normal(0.0, 0.1, (total, inputs))
    slow = np.cos(t / 500.0)
    y = np.sin(2.0 * X[:, 0]) + slow * X[:, 1 % inputs] * X[:, 2 % inputs] + rng.normal(0.0, 0.1, total)
    return Stream(f"load-like, {inputs} inputs", X=X, y=y, warmup=warmup)


def still(size: Size, samples: int, seed: int = 0) -> Stream:
    """Inputs that visit M/2 places far apart in turn, so that fast-AGP has no reason to exchange a point."""
    rng = np.random.default_rng(seed)
    total = size.T + samples
    places = 3.0 * rng.normal(0.0, 1.0, (max(size.M // 2, 1), size.D)) + 10.0 * np.arange(max(size.M // 2, 1))[:, None]
    which = np.arange(total) % len(places)
    y = np.sin(which) + rng.normal(0.0, 0.1, total)
    return Stream("still", X=places[which], y=y, warmup=size.T)


def moving(size: Size, samples: int, seed: int = 0) -> Stream:
    """Inputs far from each other, so that fast-AGP exchanges a point at every sample."""
    rng = np.random.default_rng(seed)
    total = size.T + samples
    X = rng.normal(0.0, 1.0, (total, size.D)) + 10.0 * np.arange(total)[:, None]
    return Stream("moving", X=X, y=rng.normal(0.0, 1.0, total), warmup=size.T)


def series(rows: int, seed: int = 0) -> np.ndarray:
    """A series to be predicted from its own past: two seasons, a level that walks, and noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    level = np.cumsum(rng.normal(0.0, 0.02, rows))
    return level + np.sin(2.0 * np.pi * t / 24.0) + 0.5 * np.sin(2.0 * np.pi * t / 168.0) + rng.normal(0.0, 0.1, rows)
