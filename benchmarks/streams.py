"""The streams that everything is measured on."""

import numpy as np

from benchmarks.sizes import Size
from driftgp.data import Stream, toy_stream


def stream(size: Size, samples: int, seed: int = 0) -> Stream:
    """The window's warm-up and so many samples more: the toy, as it goes on, for one input, else a load-like one."""
    return toy(size.T, samples, seed) if size.D == 1 else load_like(size.T, samples, size.D, seed)


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
    """Inputs that swing slowly, each with a period of its own, as the hours of a load do; a target that drifts."""
    rng = np.random.default_rng(seed)
    total = warmup + samples
    t = np.arange(total)
    period, phase = rng.uniform(40.0, 400.0, inputs), rng.uniform(0.0, 2.0 * np.pi, inputs)
    X = np.sin(2.0 * np.pi * t[:, None] / period + phase) + rng.normal(0.0, 0.1, (total, inputs))
    slow = np.cos(t / 500.0)
    y = np.sin(2.0 * X[:, 0]) + slow * X[:, 1 % inputs] * X[:, 2 % inputs] + rng.normal(0.0, 0.1, total)
    return Stream(f"load-like, {inputs} inputs", X=X, y=y, warmup=warmup)


def still(size: Size, samples: int, seed: int = 0) -> Stream:
    """Inputs that go round M/2 places far apart, so that fast-AGP has no reason to exchange a point."""
    rng = np.random.default_rng(seed)
    total = size.T + samples
    places = 3.0 * rng.normal(0.0, 1.0, (max(size.M // 2, 1), size.D)) + 10.0 * np.arange(max(size.M // 2, 1))[:, None]
    which = np.arange(total) % len(places)
    y = np.sin(which) + rng.normal(0.0, 0.1, total)
    return Stream("still", X=places[which], y=y, warmup=size.T)
