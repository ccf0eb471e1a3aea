"""AGP's own step: beside the limit, as it grows, on long streams, on bad numbers, and by either engine."""

import os
import time
from typing import Any, cast

import numpy as np

from benchmarks import limit, models, streams
from benchmarks.models import after, by_calls, in_stream, rows_of, warm
from benchmarks.process import CACHE, Row
from benchmarks.streams import Size, steps
from benchmarks.timing import Run, in_turn, timed
from driftgp import prequential
from driftgp.data import Stream
from driftgp.defaults import Effort
from driftgp.evaluate import mse
from driftgp.models.model import Model, State
from driftgp.stream.begin import FIRST

PIECE = 250  # samples of a long stream between two looks at the clock
MANY = 4000  # samples for fast-AGP to follow: with fewer, the call itself would take as long as the steps
BURST = 200  # samples of a burst of repairs

# ---- the grid --------------------------------------------------------------------------------------------------------


def grid(size: list[int], rounds: int, seconds: float, names: list[str], calls: bool) -> list[Row]:
    """Our models and the limit at one size."""
    chosen = Size(*size)
    stream = streams.stream(chosen, steps(chosen, seconds))
    X, y = after(stream)
    state = warm(models.agp("AGP", chosen), stream)  # hybrid and fast-AGP start from the same
    runs: dict[tuple[str, str], Run] = {}
    notes: dict[str, Row] = {}
    for name in names:
        ours = models.agp(name, chosen)
        done = prequential(ours, state, X, y)
        notes[name] = {
            "mse": mse(done.prediction, y),
            "points": int(done.state.points),
            "bytes": int(state.record.nbytes),
        }
        runs[name, "prequential"] = in_stream([ours], [state], stream)
        if calls:
            runs[name, "calls"] = by_calls([ours], [state], stream)
    runs |= limits(limit.Problem.of(models.agp("AGP", chosen), state, X, y))
    return [row | notes.get(row["name"], {}) for row in rows_of(in_turn(runs, rounds), chosen)]


def limits(problem: limit.Problem) -> dict[tuple[str, str], Run]:
    """The bare arithmetic in NumPy and, where there is a compiler, in C++; and whole steps in C++."""
    straight = limit.Straight(problem)
    times = max(3, problem.N // 20)
    runs: dict[tuple[str, str], Run] = {
        ("limit", "NumPy"): lambda: timed(times, lambda: [straight.gradient() for _ in range(times)])
    }
    if limit.compiler() is None:
        return runs
    program = limit.compile_program(CACHE)
    ways = {"C++ loops": False} | ({"C++ BLAS": True} if limit.openblas() else {})

    def of(kind: limit.Kind, by_blas: bool) -> Run:
        return lambda: float(limit.run(program, kind, problem, 1, by_blas).microseconds[0])

    for name, kind in limit.KINDS.items():
        runs |= {(name, how): of(kind, by_blas) for how, by_blas in ways.items()}
    return runs


# ---- what a step costs, by what it does ------------------------------------------------------------------------------


def exchange(size: list[int], rounds: int, samples: int) -> list[Row]:
    """fast-AGP on a stream on which it exchanges a point at every sample, and on one on which it exchanges none."""
    chosen = Size(*size)
    fast = models.agp("fast-AGP", chosen, warmup_iterations=0)
    runs: dict[tuple[str, str], Run] = {}
    shares: dict[str, float] = {}
    for how, make in {"exchanges": streams.moving, "stays": streams.still}.items():
        stream = make(chosen, samples)
        state = warm(fast, stream)
        runs["fast-AGP", how] = in_stream([fast], [state], stream)
        shares[how] = _exchanges(fast, state, stream)
    return [row | {"exchanged": shares[row["how"]]} for row in rows_of(in_turn(runs, rounds), chosen)]


def _exchanges(model: Model, state: State, stream: Stream) -> float:
    """The share of samples at which the inducing points change."""
    done = prequential(model, state, *after(stream), watch=lambda state: state.U)
    U = np.concatenate([done.trace, np.array(done.state.U)[None]])
    return float(np.mean(np.any(U[1:] != U[:-1], axis=(1, 2))))


def engines(size: list[int], rounds: int, samples: int) -> list[Row]:
    """AGP by the reference engine and by the native one, from the same state."""
    chosen = Size(*size)
    stream = streams.stream(chosen, samples)
    ours = models.agp("AGP", chosen)
    state = warm(ours, stream)
    runs: dict[tuple[str, str], Run] = {
        ("AGP", kind): _by(kind, in_stream([ours], [state], stream)) for kind in ("native", "reference")
    }
    return rows_of(in_turn(runs, rounds), chosen)


def _by(kind: str, run: Run) -> Run:
    """The same run by one of the engines."""

    def chosen() -> float:
        before = os.environ.get("DRIFTGP_ENGINE", "auto")
        os.environ["DRIFTGP_ENGINE"] = kind
        try:
            return run()
        finally:
            os.environ["DRIFTGP_ENGINE"] = before

    return chosen


def repairs(size: list[int], rounds: int) -> list[Row]:
    """Bursts of factorisations that need repair: without jitter, and then with an input that stays where it is."""
    chosen = Size(*size)
    stream = streams.stream(chosen, BURST)
    stuck = Stream("stuck", X=np.tile(stream.X[-1], (len(stream.y), 1)), y=stream.y, warmup=stream.warmup)
    plain, bare = models.agp("AGP", chosen), models.agp("AGP", chosen, jitter=0.0)
    state = warm(plain, stream)
    settled = prequential(bare, state, *after(stuck)).state
    cases = {"plain": (plain, state, stream), "no jitter": (bare, state, stream), "stuck": (bare, settled, stuck)}
    runs: dict[tuple[str, str], Run] = {
        ("AGP", how): in_stream([model], [begin], samples) for how, (model, begin, samples) in cases.items()
    }
    measured = rows_of(in_turn(runs, rounds), chosen)
    return [row | {"repairs": _repairs(*cases[row["how"]]) / BURST} for row in measured]


def _repairs(model: Model, state: State, stream: Stream) -> int:
    return int(prequential(model, state, *after(stream)).state.repaired) - int(state.repaired)


# ---- how the cost grows ----------------------------------------------------------------------------------------------


def scaling(size: list[int], along: str, rounds: int, seconds: float) -> list[Row]:
    """AGP, and fast-AGP on a stream that gives it no reason to exchange a point."""
    chosen = Size(*size)
    count = steps(chosen, seconds)
    long = streams.still(chosen, max(count, MANY))
    end = long.warmup + count
    short = Stream("still", X=long.X[:end], y=long.y[:end], warmup=long.warmup)
    start = warm(models.agp("AGP", chosen, warmup_iterations=0), long)
    runs: dict[tuple[str, str], Run] = {}
    for name, stream in (("AGP", short), ("fast-AGP", long)):
        runs[name, "prequential"] = in_stream([models.agp(name, chosen, warmup_iterations=0)], [start], stream)
    return rows_of(in_turn(runs, rounds), chosen, along=along)


def length(size: list[int], name: str, samples: int) -> list[Row]:
    """The first and the last tenth of a long stream, piece by piece in turn: is a step at the end as quick as at the
    beginning?

    What slows the machine for a while slows both, so that their ratio stays.
    """
    chosen = Size(*size)
    of_agp = name in models.EVERY
    stream = streams.stream(chosen, samples, warmup=None if of_agp else FIRST)
    ours = models.agp(name, chosen) if of_agp else models.default(stream, cast("Effort", name))
    X, y = after(stream)
    tenth = samples // 10
    begin = warm(ours, stream)
    states: dict[str, Any] = {"first tenth": begin, "last tenth": begin}
    for start in range(0, samples - tenth, tenth):
        piece = slice(start, start + tenth)
        states["last tenth"] = prequential(ours, states["last tenth"], X[piece], y[piece]).state
    starts = {"first tenth": 0, "last tenth": samples - tenth}
    found: dict[tuple[str, str], list[float]] = {(name, how): [] for how in starts}
    for offset in range(0, tenth, PIECE):
        for how, start in starts.items():
            piece = slice(start + offset, start + min(offset + PIECE, tenth))
            clock = time.process_time()
            states[how] = prequential(ours, states[how], X[piece], y[piece]).state
            found[name, how].append(1e6 * (time.process_time() - clock) / (piece.stop - piece.start))
    return rows_of({key: _smooth(values) for key, values in found.items()}, chosen, samples=samples)


def _smooth(values: list[float], most: int = 40) -> list[float]:
    """Medians of neighbouring pieces, up to a number."""
    return [float(np.median(part)) for part in np.array_split(np.array(values), min(most, len(values)))]
