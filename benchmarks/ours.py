"""driftgp's own models, and the limit beside them: all in turn in one process, so that ratios mean something."""

import time
from typing import Any

import jax
import numpy as np

from benchmarks import limit, streams
from benchmarks.process import CACHE, Row
from benchmarks.sizes import LENGTHS, TOY, Size, steps
from benchmarks.timing import Run, in_turn, timed
from driftgp import rivals as beside
from driftgp.agp import AGP
from driftgp.data import Stream
from driftgp.evaluate import mse, prequential
from driftgp.model import Model
from driftgp.online import Online
from driftgp.settings import default_jitter

HYBRID = 10  # samples from one gradient step of the hybrid to the next, as the paper suggests
EVERY = {"AGP": 1, "hybrid": HYBRID, "fast-AGP": 0}
MOST_CALLS = 500  # samples handed in one by one in a run
SAMPLES = 401  # those of the toy after its warm-up
PIECE = 250  # samples of a long stream between two looks at the clock
MANY = 4000  # samples for fast-AGP to follow: with fewer, the call itself would take as long as the steps
AGAIN = 40  # times that the beginning of a long stream is run again during the pass
BURST = 200  # samples of a burst of repairs

# ---- the two ways to run a model -------------------------------------------------------------------------------------


def model(name: str, size: Size, **options: Any) -> AGP:
    """AGP, the hybrid or fast-AGP with the library's defaults."""
    return AGP(inducing=size.M, window=size.T, learn_every=EVERY[name], **options)


def in_scan(model: Model[Any], state: Any, stream: Stream) -> Run:
    """The compiled loop over all samples after the warm-up."""
    X, y = after(stream)
    return lambda: timed(len(y), lambda: jax.block_until_ready(prequential(model, state, X, y).state))


def by_calls(model: Model[Any], state: Any, stream: Stream) -> Run:
    """One call to predict and one to update for each sample."""
    X, y = after(stream)
    handed = list(zip(X[:MOST_CALLS], y[:MOST_CALLS], strict=True))

    def follow() -> None:
        online = Online(model, state)
        for x, target in handed:
            online.predict(x)
            online.update(x, target)
        online.settle()

    return lambda: timed(len(handed), follow)


def after(stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """The samples after the warm-up."""
    return stream.X[stream.warmup :], stream.y[stream.warmup :]


def warm(model: Model[Any], stream: Stream) -> Any:
    """State after the warm-up."""
    return model.init(stream.X[: stream.warmup], stream.y[: stream.warmup])


def state_bytes(state: Any) -> int:
    """Bytes of the arrays of a state."""
    return sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(state))


def _rows(measured: dict[tuple[str, str], list[float]], size: Size, notes: dict[str, Row] | None = None) -> list[Row]:
    return [
        {"name": name, "how": how, "M": size.M, "T": size.T, "D": size.D, "microseconds": values}
        | (notes or {}).get(name, {})
        for (name, how), values in measured.items()
    ]


# ---- the grid --------------------------------------------------------------------------------------------------------


def grid(size: list[int], rounds: int, seconds: float, names: list[str], calls: bool) -> list[Row]:
    """Our models and the limit at one size."""
    chosen = Size(*size)
    stream = streams.stream(chosen, steps(chosen, seconds))
    X, y = after(stream)
    state = warm(model("AGP", chosen), stream)  # hybrid and fast-AGP start from the same
    runs: dict[tuple[str, str], Run] = {}
    notes: dict[str, Row] = {}
    for name in names:
        ours = model(name, chosen)
        done = prequential(ours, state, X, y)
        points = float(np.sum(done.state.points.used))
        notes[name] = {"mse": mse(done.prediction, y), "points": points, "bytes": state_bytes(state)}
        runs[name, "scan"] = in_scan(ours, state, stream)
        if calls:
            runs[name, "calls"] = by_calls(ours, state, stream)
    return _rows(in_turn(runs | limits(limit.Problem.of(model("AGP", chosen), state, X, y)), rounds), chosen, notes)


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


# ---- how the cost grows ----------------------------------------------------------------------------------------------


def scaling(size: list[int], along: str, rounds: int, seconds: float) -> list[Row]:
    """AGP, and fast-AGP on a stream that gives it no reason to exchange a point."""
    chosen = Size(*size)
    count = steps(chosen, seconds)
    long = streams.still(chosen, max(count, MANY))
    end = long.warmup + count
    short = Stream("still", X=long.X[:end], y=long.y[:end], warmup=long.warmup)
    start = warm(model("AGP", chosen, warmup_iterations=0), long)
    runs, notes = {}, {}
    for name in ("AGP", "fast-AGP"):
        stream = long if name == "fast-AGP" else short
        ours = model(name, chosen, warmup_iterations=0)
        end = prequential(ours, start, *after(stream)).state
        runs[name, "scan"] = in_scan(ours, start, stream)
        notes[name] = {"along": along, "exchanged": bool(np.any(end.points.U != start.points.U))}
    return _rows(in_turn(runs, rounds), chosen, notes)


def length(size: list[int], name: str, longest: int) -> list[Row]:
    """One pass over a long stream, in pieces: is a step as quick after so many samples as it was at first?

    The row of a length has the pieces after a tenth of it; that of the shortest has its own pieces, which are run again
    all along the pass, so that a machine whose pace changes does not change the ratio.
    """
    chosen = Size(*size)
    stream = streams.stream(chosen, longest)
    ours = model(name, chosen)
    begin = warm(ours, stream)
    X, y = after(stream)
    prequential(ours, begin, X[:PIECE], y[:PIECE])  # compiled by now

    def through(state: Any, start: int, times: list[float]) -> Any:
        piece = slice(start, start + PIECE)
        clock = time.perf_counter()
        state = jax.block_until_ready(prequential(ours, state, X[piece], y[piece]).state)
        times.append(1e6 * (time.perf_counter() - clock) / PIECE)
        return state

    first: list[float] = []
    all_along: list[float] = []
    state = begin
    for start in range(0, longest, PIECE):
        if start % (longest // AGAIN) < PIECE:
            through(begin, 0, first)
        state = through(state, start, all_along)
    rows = []
    for count in [count for count in LENGTHS if count <= longest]:
        times = first if count == LENGTHS[0] else all_along[count // 10 // PIECE : count // PIECE]
        measured = {(name, "scan"): times}
        rows += _rows(measured, chosen, {name: {"samples": count}})
    return rows


def accuracy(names: list[str], seeds: int) -> list[Row]:
    """Mean squared error on the whole toy stream, mean over seeds."""
    rows = []
    for name in names:
        ours = model(name, TOY)
        errors = []
        for seed in range(seeds):
            stream = streams.stream(TOY, SAMPLES, seed)
            X, y = after(stream)
            errors.append(mse(prequential(ours, warm(ours, stream), X, y).prediction, y))
        rows += _rows({(name, "scan"): []}, TOY, {name: {"mse": float(np.mean(errors)), "samples": SAMPLES}})
    return rows


# ---- rivals, and the bad path ----------------------------------------------------------------------------------------


def rival(name: str, size: Size, warmup: int = 200) -> Model[Any]:
    """One of our rivals, with AGP's sizes and else its own defaults."""
    makers: dict[str, Any] = {
        "AGP": lambda: model("AGP", size, warmup_iterations=warmup),
        "OSGP": lambda: beside.OSGP(inducing=size.M),
        "WISKI": beside.WISKI,
        "KRLS-T": lambda: beside.KRLST(dictionary=size.M),
        "w-VSGP": lambda: beside.WVSGP(inducing=size.M, window=size.T),
        "AGP-VSI": lambda: beside.AGPVSI(inducing=size.M, window=size.T),
        "exact window": lambda: beside.ExactWindow(window=size.T, warmup_iterations=warmup),
    }
    made: Model[Any] = makers[name]()
    return made


def rivals(size: list[int], names: list[str], samples: int, rounds: int, warmup: int = 200) -> list[Row]:
    """Rivals in the compiled loop, in turn."""
    chosen = Size(*size)
    stream = streams.stream(chosen, samples)
    runs, notes = {}, {}
    for name in names:
        one = rival(name, chosen, warmup)
        state = warm(one, stream)
        X, y = after(stream)
        notes[name] = {"mse": mse(prequential(one, state, X, y).prediction, y), "bytes": state_bytes(state)}
        runs[name, "scan"] = in_scan(one, state, stream)
    return _rows(in_turn(runs, rounds), chosen, notes)


def repairs(size: list[int], rounds: int) -> list[Row]:
    """Bursts of factorisations that need repair: without jitter, and then with an input that stays where it is."""
    chosen = Size(*size)
    stream = streams.stream(chosen, BURST)
    stuck = Stream("stuck", X=np.tile(stream.X[-1], (len(stream.y), 1)), y=stream.y, warmup=stream.warmup)
    plain, bare = (model("AGP", chosen, jitter=jitter) for jitter in (default_jitter(np.float64), 0.0))
    state = warm(plain, stream)
    settled = prequential(bare, state, *after(stuck)).state
    cases = {"plain": (plain, state, stream), "no jitter": (bare, state, stream), "stuck": (bare, settled, stuck)}
    runs = {("AGP", how): in_scan(*case) for how, case in cases.items()}
    measured = _rows(in_turn(runs, rounds), chosen)
    return [row | {"repairs": _repairs(*cases[row["how"]]) / BURST} for row in measured]


def _repairs(model: Model[Any], state: Any, stream: Stream) -> int:
    return int(prequential(model, state, *after(stream)).state.repaired) - int(state.repaired)
