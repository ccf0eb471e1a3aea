"""The members of the default beside their limits: `python -m benchmarks.members`.

A limit is what the arithmetic of a row takes at the rate of this machine's matrix products, or what the memory that the
row has to read and write takes at the rate of a long inner product, whichever is more; and, for the fits and replays
that occur, their arithmetic. An exponential counts as ten products. Rates and members are measured in turn in one
process, in CPU time.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.streams import load_like
from benchmarks.timing import ratio, spread, timed
from driftgp import AGP, Online, prequential
from driftgp.data import Stream
from driftgp.defaults import LEARNING, SHARES, anchored, kernel, small
from driftgp.members import Anchored
from driftgp.members.anchored import REPLAY, SUMS
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


def rates() -> Rates:
    """Of a matrix product, and of an inner product of two vectors of 2 MB in all."""
    A, x, y = np.ones((256, 256)), np.ones(1 << 17), np.ones(1 << 17)
    product = timed(30, lambda: [A @ A for _ in range(30)])
    inner = timed(200, lambda: [x @ y for _ in range(200)])
    return Rates(256.0**3 / product, 2.0 * x.nbytes / inner)


def agp_work(M: int, T: int, D: int) -> Work:
    """One gradient per row: Gram matrix, Φ, the gradient through Kux by 2 D + 2 parameters, factors of M×M."""
    gram = M * T * (3 * D + EXPONENTIAL)
    return Work(gram + 1.5 * M * M * T + 2 * D * M * T + 6 * M**3, 8.0 * (M * T + T * D + 5 * M * M))


def anchored_work(model: Anchored, D: int, evaluations: float, replayed: float, replays: float) -> Work:
    """Features and C φ once per row, and changes of C; per row so many evaluations of a fit, and rows replayed."""
    M, H = model.points, model.voices
    F = 1 + D + M
    features = M * (2 * D + EXPONENTIAL) + M * M / 2
    row = Work(features + 1.5 * H * F * F, 8.0 * (D * M + M * M / 2 + (0.5 + 1.0 / WAITING) * H * F * F))
    # ΦᵀΦ, K E and lengthscales; then A⁻¹, E and its like for S, and the factor of K(Z, Z)
    each = model.sample * (2 * features + F * F / 2 + M * M / 2 + 2 * D * M) + F**3 / 2 + 5 * M**3 / 3 + M**3 / 3
    again = replayed * (features + H * F * F / 2) + replays * H * F**3 / 2
    return row._replace(beside=evaluations * each + again)


def counted(model: Anchored, data: Stream) -> tuple[float, float, float]:
    """Evaluations of fits, rows replayed and replays, per row."""
    X, y, start = data.X, data.y, WARMUP
    online = Online(model, model.init(X[:start], y[:start]))
    evaluations = replayed = replays = 0
    before = 0
    for x, target in zip(X[start:], y[start:], strict=True):
        online.update(x, target)
        state = online.state
        evaluations += state.stage == SUMS and before != SUMS
        if state.stage == REPLAY and before != REPLAY:
            replayed, replays = replayed + state.rows - state.at, replays + 1
        before = state.stage
    rows = len(y) - start
    return evaluations / rows, replayed / rows, replays / rows


def main() -> None:
    """Print the table."""
    print("| member | D | limit, µs | measured, µs | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for D in INPUTS:
        data = load_like(WARMUP, ROWS, D)
        agp = AGP(kernel(D), inducing=20, window=400, forgetting=1.0 - 1.0 / (SHARES[0] * 400), **LEARNING)
        models: dict[str, AGP | Anchored] = {"AGP (20, 400)": agp, "200 points": anchored(D), "60 points": small(D)}
        for name, model in models.items():
            work = agp_work(20, 400, D) if isinstance(model, AGP) else anchored_work(model, D, *counted(model, data))
            state = model.init(data.X[:WARMUP], data.y[:WARMUP])
            X, y = data.X[WARMUP:], data.y[WARMUP:]
            limits, measured = [], []
            for _ in range(ROUNDS):
                limits.append(rates().limit(work))
                measured.append(timed(ROWS, partial(prequential, model, state, X, y)))
            over = ratio(measured, limits)
            print(
                f"| {name} | {D} | {spread(limits).median:.1f} | {spread(measured).median:.1f} | "
                f"{over.median:.2f} ({over.low:.2f}–{over.high:.2f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
