"""The default model through everything that users call: Online, prequential, the adapters and the command line."""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import get_args

import numpy as np

from benchmarks import models, streams
from benchmarks.models import after, by_calls, in_stream, rows_of, warm
from benchmarks.process import Row, environment
from benchmarks.streams import DEFAULTS, Size
from benchmarks.timing import Run, in_turn, timed
from driftgp import Online, prequential
from driftgp.base.checks import real
from driftgp.data import Stream
from driftgp.defaults import Effort
from driftgp.models.model import checked_inputs, checked_rows
from driftgp.predictions import Forecast
from driftgp.stream.begin import FIRST

WARMUP = 400  # rows that the default model starts from
BATCH = 1000  # rows of one partial_fit
LAGS = 24
COMMAND = "from driftgp.cli import main; main()"

# ---- Online and prequential ------------------------------------------------------------------------------------------


def default(inputs: int, rounds: int, rows: int) -> list[Row]:
    """The default model at each effort: single calls, single calls with an interval, and one call for all rows."""
    stream = streams.load_like(WARMUP, rows, inputs)
    runs: dict[tuple[str, str], Run] = {}
    for effort in get_args(Effort):
        model = models.default(stream, effort)
        state = warm(model, stream)
        runs[effort, "calls"] = by_calls([model], [state], stream)
        runs[effort, "calls with an interval"] = by_calls([model], [state], stream, level=0.95)
        runs[effort, "prequential"] = in_stream([model], [state], stream)
    return [row | {"M": None, "T": None} for row in rows_of(in_turn(runs, rounds), Size(0, 0, inputs))]


def inputs(inputs: int, rounds: int, rows: int) -> list[Row]:
    """The default model at each effort in one call for all rows: how its cost grows with the inputs."""
    stream = streams.load_like(WARMUP, rows, inputs)
    runs: dict[tuple[str, str], Run] = {}
    for effort in get_args(Effort):
        model = models.default(stream, effort)
        runs[effort, "prequential"] = in_stream([model], [warm(model, stream)], stream)
    return [row | {"M": None, "T": None} for row in rows_of(in_turn(runs, rounds), Size(0, 0, inputs))]


def call(size: list[int], rounds: int, rows: int) -> list[Row]:
    """Where the time of a call goes: each part of `predict` and `update` by itself, and both as a whole."""
    chosen = Size(*size)
    stream = streams.stream(chosen, rows, warmup=WARMUP)
    model = models.agp("AGP", chosen)
    state = warm(model, stream)
    X, y = after(stream)
    engine, layout = state.engine(), state.layout
    handed = list(zip(X, y, strict=True))

    def engine_alone() -> float:
        one = engine.single(state.copy().record)
        pairs = [(x, y[i : i + 1]) for i, x in enumerate(X)]

        def follow() -> None:
            for x, target in pairs:
                one.learn(x, target, 1.0, one.predict(x))

        return timed(len(y), follow)

    made = engine.single(state.copy().record).predict(X[0])
    parts: dict[str, Callable[[np.ndarray, float], object]] = {
        "checks of predict, where a row is not a plain array": lambda x, _: checked_inputs(layout, real("X", x)[None]),
        "checks of update, where a row is not a plain array": lambda x, target: checked_rows(layout, x, target, 1.0),
        "the Forecast that is returned": lambda _x, _y: Forecast(model, made, flat=True, solve=engine.solve),
        "an empty loop": lambda _x, _y: None,
    }

    def part(work: Callable[[np.ndarray, float], object]) -> Run:
        return lambda: timed(len(handed), lambda: [work(x, target) for x, target in handed])

    runs: dict[tuple[str, str], Run] = {
        ("predict and update", "calls"): by_calls([model], [state], stream),
        ("prequential", "calls"): in_stream([model], [state], stream),
        ("the engine's predict and learn", "calls"): engine_alone,
        **{(name, "calls"): part(work) for name, work in parts.items()},
    }
    return rows_of(in_turn(runs, rounds), chosen)


# ---- adapters --------------------------------------------------------------------------------------------------------


def adapters(inputs: int, rounds: int, rows: int, names: list[str]) -> list[Row]:
    """The adapters without settings, after the rows that choose the model, and the same model without them."""
    shape = next(size for size in DEFAULTS if size.D == inputs)
    stream = streams.stream(shape, max(rows, BATCH), warmup=FIRST)
    makers = {"river": _river, "scikit-learn": _sklearn}
    found: dict[tuple[str, str], list[float]] = {}
    for name in names:
        found |= in_turn({(name, how): run for how, run in makers[name](stream, rows).items()}, rounds)
    return [row | {"M": None, "T": None} for row in rows_of(found, shape)]  # which the first rows chose


def _river(stream: Stream, rows: int) -> dict[str, Run]:
    """`predict_one` and `learn_one`, beside `predict` and `update` of the same model."""
    from driftgp.river import AGPRegressor

    names = [f"x{d}" for d in range(stream.X.shape[1])]
    samples: list[dict[Hashable, float]] = [dict(zip(names, x.tolist(), strict=True)) for x in stream.X]
    targets = stream.y.tolist()
    begun = Online()
    begun.update(stream.X[:FIRST], stream.y[:FIRST])
    handed = list(zip(samples, targets, strict=True))[FIRST : FIRST + rows]
    regressor = AGPRegressor()
    for x, y in zip(samples[:FIRST], targets[:FIRST], strict=True):
        regressor.learn_one(x, y)

    def adapter() -> float:
        def follow() -> None:
            for x, y in handed:
                regressor.predict_one(x)
                regressor.learn_one(x, y)

        return timed(len(handed), follow)

    shorter = Stream(stream.name, X=stream.X[: FIRST + rows], y=stream.y[: FIRST + rows], warmup=FIRST)
    return {"adapter": adapter, "direct": by_calls([begun.model], [begun.state], shorter)}


def _sklearn(stream: Stream, rows: int) -> dict[str, Run]:
    """`partial_fit` of a batch, beside `prequential` of the same rows from the same state."""
    from driftgp.sklearn import AGPRegressor

    del rows
    regressor = AGPRegressor().fit(stream.X[:FIRST], stream.y[:FIRST])
    X, y = stream.X[FIRST : FIRST + BATCH], stream.y[FIRST : FIRST + BATCH]

    def direct() -> float:
        online: Online = regressor.online_
        state = online.state
        return timed(BATCH, lambda: prequential(online.model, state, X, y))

    return {"direct": direct, "adapter": lambda: timed(BATCH, lambda: regressor.partial_fit(X, y))}


# ---- the command line ------------------------------------------------------------------------------------------------


def command(rows: int, rounds: int) -> list[Row]:
    """`driftgp run` over a file, all of its process, and `Online.evaluate` of the same rows in a frame: CPU."""
    import polars as pl

    y = streams.series(rows)
    frame = pl.DataFrame({"y": y})
    found: dict[str, list[float]] = {"driftgp run": [], "Online.evaluate": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            found["driftgp run"].append(_run(y, Path(folder)))
            start = time.process_time()
            made = Online(target="y", lags=LAGS).evaluate(frame)
            found["Online.evaluate"].append(time.process_time() - start)
        means = np.genfromtxt(Path(folder) / "out.csv", delimiter=",", names=True)["mean"]
    if not np.allclose(means, made.mean, rtol=1e-4):
        return [{"failed": "driftgp run and Online.evaluate do not predict the same", "rows": rows}]
    return [{"name": name, "how": "CPU", "rows": rows, "D": LAGS, "seconds": values} for name, values in found.items()]


def _run(y: np.ndarray, folder: Path) -> float:
    """CPU seconds of `driftgp run` from its start to its end."""
    table = folder / "in.csv"
    table.write_text("y\n" + "".join(f"{value:.17g}\n" for value in y.tolist()), encoding="utf-8")
    options = ["--target", "y", "--lags", str(LAGS), "--output", str(folder / "out.csv")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", COMMAND, "run", str(table), *options],
        env=environment(), capture_output=True, check=True,
    )  # fmt: skip
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime
