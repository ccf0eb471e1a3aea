"""The toy stream of the paper, with its formula as it was run: a sine that grows, and doubles its frequency.

    y = A_t sin(4t) + ε, 300 samples on [0, 3], A_t from 0.5 to 2;   y = 2 sin(8t) + ε, 201 samples on [3, 5];
    ε ~ N(0, 0.04). The time t = 3 occurs twice, once with each sine.

The published runs drew ε in single precision with their framework's own generator. It is rebuilt here with NumPy's
Mersenne Twister, so that seed k gives the stream of published seed k. X is the same bit for bit, and y to one unit in
the last place of single precision (2.4e-7).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from driftgp.data.stream import Floats, Stream

WARMUP = 100
FIRST, SECOND = 300, 201  # samples with each sine


def toy_times() -> Floats:
    """The 501 times, in double precision."""
    return np.concatenate([np.linspace(0, 3, FIRST), np.linspace(3, 5, SECOND)])


def toy_signal(times: Floats | None = None) -> Floats:
    """The stream without its noise, at the 501 times (or at slightly rounded ones).

    >>> toy_signal()[[0, 299, 300]].round(3)
    array([ 0.   , -1.073, -1.811])
    """
    times = toy_times() if times is None else times
    amplitude = np.concatenate([np.linspace(0.5, 2, FIRST), np.full(SECOND, 2.0)])
    frequency = np.repeat([4.0, 8.0], [FIRST, SECOND])
    return amplitude * np.sin(frequency * times)


def toy_stream(seed: int = 0, noise: float = 0.2) -> Stream:
    """One toy stream: X 501×1, y 501, the first 100 for warm-up.

    Args:
        seed: of the noise, a whole number from 0 on; the same as in the published runs.
        noise: standard deviation of ε, in units of y.

    >>> stream = toy_stream(seed=0)
    >>> stream.X.shape, stream.y.shape, stream.warmup, stream.online
    ((501, 1), (501,), 100, 401)
    """
    X, Y = toy_streams([seed], noise)
    return Stream("toy", X=X, y=Y[0], warmup=WARMUP, times=X[:, 0], inputs=("t",))


def toy_streams(seeds: Iterable[int], noise: float = 0.2) -> tuple[Floats, Floats]:
    """Many toy streams at once: the shared X, 501×1, and Y with a row for each seed, S×501."""
    if not noise >= 0:
        raise ValueError(f"noise is {noise}: give a standard deviation of 0 or more")
    times = np.concatenate([_single_linspace(0, 3, FIRST), _single_linspace(3, 5, SECOND)])
    Y = toy_signal(times) + noise * _normal([_checked(seed) for seed in seeds])
    return times[:, None], Y


def _checked(seed: int) -> int:
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed}: give a whole number from 0 to 2**32 - 1")
    return int(seed)


def _single_linspace(start: float, stop: float, size: int) -> Floats:
    """Evenly spaced numbers in single precision, counted from the nearer end, as in the published runs."""
    step = np.float64(np.float32((stop - start) / (size - 1)))
    index = np.arange(size)
    from_nearer_end = np.where(index < size // 2, start + step * index, stop - step * (size - 1 - index))
    return from_nearer_end.astype(np.float32).astype(np.float64)


def _normal(seeds: list[int]) -> Floats:
    """ε/σ for every seed, S×501: one draw of 300 numbers, then one of 201, from a Mersenne Twister each."""
    draws = [size for part in (FIRST, SECOND) for size in (part, 16)]  # each draw, and the redrawn end of it
    bits = np.empty((len(seeds), sum(draws)), dtype=np.uint32)
    for row, seed in zip(bits, seeds, strict=True):
        row[:] = np.random.RandomState(seed).randint(0, 2**32, size=len(row), dtype=np.uint32)
    uniform = (bits & np.uint32(2**24 - 1)) * 2.0**-24  # the 24 low bits fill a single-precision mantissa
    first, first_end, second, second_end = np.split(uniform, np.cumsum(draws)[:-1], axis=1)
    return np.concatenate([_box_muller(first, first_end), _box_muller(second, second_end)], axis=1)


def _box_muller(uniform: Floats, end: Floats) -> Floats:
    """Gaussian numbers in blocks of 16: eight radii and eight angles make eight cosines and eight sines.

    A size that is no multiple of 16 has its last 16 numbers made from fresh draws, `end`.
    """
    whole = uniform.shape[1] // 16 * 16
    normal = np.empty(uniform.shape)
    normal[:, :whole] = _blocks(uniform[:, :whole])
    normal[:, -16:] = _blocks(end)
    return normal


def _blocks(uniform: Floats) -> Floats:
    pairs = uniform.reshape(len(uniform), uniform.shape[1] // 16, 2, 8)  # S×blocks×(radius, angle)×8
    radius, angle = np.sqrt(-2 * np.log1p(-pairs[:, :, 0])), 2 * np.pi * pairs[:, :, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2).reshape(uniform.shape)
