"""The members of the default beside their limits: `python -m benchmarks.members`.

A limit is what the arithmetic of a row takes at the most that a core of this machine can do (`peak.cpp`), or what the
memory that the row has to read and write takes at the rate of a long inner product, whichever is more; and, for the
fits and replays that occur, their arithmetic. An exponential counts as ten products. Rates and members are measured in
turn, in CPU time.
"""

import subprocess
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.limit import compile_program
from benchmarks.process import CACHE
from benchmarks.streams import load_like
from benchmarks.timing import ratio, spread, timed
from driftgp import AGP, Online, prequential
from driftgp.data import Stream
from driftgp.defaults import LEARNING, SHARES, anchored, kernel, small
from driftgp.members import Anchored
from driftgp.members.anchored import FINISH, HEADS, REPLAY, SOLVE
from driftgp.members.heads import WAITING

EXPONENTIAL = 10.0  # products
WARMUP, ROWS, ROUNDS = 500, 1500, 3
INPUTS = (1, 8, 24)


class Work(NamedTuple):
    """Of one row, in the mean."""

    products: float  # multiplications with an addition
    bytes: float  # read and written
    beside: float = 0.0  # products of fits and replays


class Rates(NamedTuple):
    """What this machine does in a microsecond."""

    products: float
    bytes: float

    def limit(self, work: Work) -> float:
        """Microseconds that the work takes at least."""
        return max(work.products / self.products, work.bytes / self.bytes) + work.beside / self.products


def rates(peak: Path) -> Rates:
    """Of sums in registers by `peak.cpp`, and of an inner product of two vectors of 2 MB in all."""
    done = subprocess.run([peak], capture_output=True, text=True, check=True)
    x, y = np.ones(1 << 17), np.ones(1 << 17)
    inner = timed(200, lambda: [x @ y for _ in range(200)])
    return Rates(float(done.stdout.split()[0]), 2.0 * x.nbytes / inner)


def agp_work(M: int, T: int, D: int, every: int) -> Work:
    """Of a row with a gradient: Gram matrix, Φ, the gradient by 2 D + 2 parameters through Kux, factors of M×M.

    Of another row the posterior: S, its factor and relevances.
    """
    gram = M * T * (3 * D + EXPONENTIAL)
    step, rest = gram + 1.5 * M * M * T + 2 * D * M * T + 6 * M**3, 2 * M**3
    moved, kept = M * T + T * D + 5 * M * M, T + 5 * M * M
    return Work((step + (every - 1) * rest) / every, 8.0 * (moved + (every - 1) * kept) / every)


def anchored_work(model: Anchored, D: int, pieces: Counter[int], replayed: float) -> Work:
    """Features and C φ once per row, and changes of C; per row so many pieces of fits and replays."""
    M, H = model.points, model.voices
    F = 1 + D + M
    kernel = M * (2 * D + EXPONENTIAL)
    features = kernel + M * M / 2
    row = Work(features + 1.5 * H * F * F, 8.0 * (D * M + M * M / 2 + (0.5 + 1.0 / WAITING) * H * F * F))
    # K(Z, Z) and its factor, ΦᵀΦ; A⁻¹; K E and lengthscales; E and its like for S
    value = model.sample * (features + F * F / 2) + M**3 / 3 + F**3 / 2
    gradient = model.sample * (kernel + M * M + 2 * D * M) + 5 * M**3 / 3
    again = replayed * (features + F * F / 2) + pieces[HEADS] * F**3 / 2
    return row._replace(beside=pieces[SOLVE] * value + pieces[FINISH] * gradient + again)


def counted(model: Anchored, data: Stream) -> tuple[Counter[int], float]:
    """Pieces of work of each kind that come once in an evaluation, and rows replayed, per row."""
    X, y, start = data.X, data.y, WARMUP
    online = Online(model, model.init(X[:start], y[:start]))
    done: Counter[int] = Counter()
    replayed = before = 0
    for x, target in zip(X[start:], y[start:], strict=True):
        online.update(x, target)
        state = online.state
        if state.stage == REPLAY and before != REPLAY:
            replayed += state.rows - state.at
        before = state.stage
        done[before] += 1
    rows = len(y) - start
    return Counter({stage: count / rows for stage, count in done.items()}), replayed / rows


def main() -> None:
    """Print the table."""
    peak = compile_program(CACHE, source=Path(__file__).with_name("peak.cpp"))
    print("| member | D | limit, µs | measured, µs | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for D in INPUTS:
        data = load_like(WARMUP, ROWS, D)
        agp = AGP(kernel(D), inducing=20, window=400, forgetting=1.0 - 1.0 / (SHARES[0] * 400), **LEARNING)
        models: dict[str, AGP | Anchored] = {
            "AGP (20, 400)": agp,
            "the same, a step every fourth row": replace(agp, learn_every=4, rate=0.8),
            "200 points": anchored(D),
            "60 points": small(D),
        }
        for name, model in models.items():
            if isinstance(model, AGP):
                work = agp_work(20, 400, D, model.learn_every)
            else:
                work = anchored_work(model, D, *counted(model, data))
            state = model.init(data.X[:WARMUP], data.y[:WARMUP])
            X, y = data.X[WARMUP:], data.y[WARMUP:]
            limits, measured = [], []
            for _ in range(ROUNDS):
                limits.append(rates(peak).limit(work))
                measured.append(timed(ROWS, partial(prequential, model, state, X, y)))
            over = ratio(measured, limits)
            print(
                f"| {name} | {D} | {spread(limits).median:.1f} | {spread(measured).median:.1f} | "
                f"{over.median:.2f} ({over.low:.2f}–{over.high:.2f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
