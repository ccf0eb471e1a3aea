"""Many models on many streams: one compiled program for all that have one shape, on as many threads as wanted.

A fleet would do as well, but for one thing: here the time of every run by itself is part of the result.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from driftgp import compiling, evaluate, loops
from driftgp.compiling import compile_outer, small
from driftgp.cores import each
from driftgp.experiments.tasks import Task
from driftgp.model import Model
from driftgp.packing import Packing, packing_of
from driftgp.prediction import Prediction


class Job(NamedTuple):
    """A model, what it is to follow, and the key of the result."""

    model: Model[Any]
    task: Task
    key: str


Row = dict[str, Any]
Shape = tuple[Packing, int]  # of a model and its stream, and the samples of the warm-up
Save = Callable[[list[Row]], None]
Progress = Callable[[], None]
LEVELS = (50, 80, 95, 99)  # per cent


def run(
    jobs: Sequence[Job], *, save: Save, done: Progress, threads: int = 1, chunk: int = 25, seconds: float = np.inf
) -> None:
    """Run every job and save the rows chunk by chunk; no job is begun after so many seconds.

    When interrupted, the jobs under way are finished and what is done of every chunk is saved.
    """
    prepare(programs(jobs), threads)
    stop, meter, deadline = threading.Event(), Meter(), time.monotonic() + seconds

    def work(chunk: Sequence[Job]) -> None:
        rows: list[Row] = []
        for job in chunk:
            if stop.is_set() or time.monotonic() > deadline:
                break
            rows.extend(_rows(job, meter))
            done()
        if rows:
            save(rows)

    size = max(1, min(chunk, -(-len(jobs) // threads)))
    with ThreadPoolExecutor(threads) as pool:
        try:
            list(pool.map(work, [jobs[start : start + size] for start in range(0, len(jobs), size)]))
        except BaseException:
            stop.set()
            raise


# ---- one compiled program for a model and a stream -----------------------------------------------------------------


def programs(jobs: Sequence[Job]) -> list[Shape]:
    """What is to be compiled for these jobs: many of them share a program."""
    return list(dict.fromkeys(_shape(job) for job in jobs))


def prepare(shapes: Sequence[Shape], threads: int, done: Progress = lambda: None) -> None:
    """Compile all that is not compiled yet, several programs at a time: the compiler keeps one core busy."""

    def compile_one(shape: Shape) -> None:
        _program(*shape)
        _score_once(*shape)
        done()

    each(compile_one, shapes, threads)


def _arrays(job: Job) -> tuple[Any, ...]:
    stream = job.task.stream
    return job.model, stream.X, stream.y, stream.elapsed


def _shape(job: Job) -> Shape:
    with jax.enable_x64(True):
        return packing_of(_arrays(job)), job.task.stream.warmup


class Program(NamedTuple):
    """A compiled run, and what its predictions look like."""

    run: Callable[..., Prediction]
    prediction: Any  # shapes and dtypes


@lru_cache
def _program(shape: Packing, warmup: int) -> Program:
    """Warm up, then predict and learn, sample by sample: compiled ahead, so that no time includes the compiler's."""

    def follow(model: Model[Any], X: Array, y: Array, elapsed: Array) -> Prediction:
        state = model.init(X[:warmup], y[:warmup])
        return evaluate.scan(model, state, X[warmup:], y[warmup:], elapsed[warmup:], loop=loop).prediction

    leaves = [jax.ShapeDtypeStruct(size, dtype) for size, dtype in shape.leaves]
    arguments = jax.tree.unflatten(shape.structure, leaves)
    with jax.enable_x64(True):
        model, X, y, _ = arguments
        state = jax.eval_shape(lambda model, X, y: model.init(X[:warmup], y[:warmup]), model, X, y)
        whole = small(state, light=model.light)
        loop = compiling.scan if whole else loops.scan
        lowered = compile_outer(follow, whole=whole).lower(*arguments)
        return Program(lowered.compile(), lowered.out_info)


def _score_once(shape: Packing, warmup: int) -> None:
    """Have the scores compiled too: later it would count as the time of some other run that is under way."""
    (samples, *_), _ = shape.leaves[-1]  # of `elapsed`
    ones = np.ones(samples - warmup)
    leaves, structure = jax.tree.flatten(_program(shape, warmup).prediction)
    # increasing numbers will do for anything: intervals of increasing levels reach further and further
    _result(jax.tree.unflatten(structure, [(i + 1.0) * ones for i in range(len(leaves))]), ones)


def _rows(job: Job, meter: "Meter") -> list[Row]:
    program = _program(*_shape(job)).run
    with jax.enable_x64(True), meter.measure() as spent:
        prediction = jax.tree.map(np.asarray, program(*_arrays(job)))
    task = job.task
    y = task.stream.y[task.stream.warmup :]
    if y.ndim == 1:
        prediction, y = jax.tree.map(lambda leaf: leaf[:, None], prediction), y[:, None]
    share = spent[0] / len(task.outputs)
    return [
        {"key": job.key, "series": task.series, "output": output, "seconds": share}
        | _result(jax.tree.map(lambda leaf, i=i: leaf[:, i], prediction), y[:, i])
        for i, output in enumerate(task.outputs)
    ]


def _result(prediction: Prediction, y: np.ndarray) -> Row:
    return {
        "mse": evaluate.mse(prediction, y),
        "coverage": evaluate.coverage(prediction, y, evaluate.TWO_SIGMA),
        "mape": evaluate.mape(prediction, y),
        "nlpd": evaluate.nlpd(prediction, y),
        **{f"coverage_{level}": evaluate.coverage(prediction, y, level / 100) for level in LEVELS},
        "width": evaluate.width(prediction, 0.95),
        "crps": evaluate.crps(prediction, y),
        "y": y.astype(np.float32),
        "mean": prediction.mean.astype(np.float32),
        "std": prediction.std.astype(np.float32),
    }


# ---- how long ------------------------------------------------------------------------------------------------------


class Meter:
    """CPU seconds of this process, shared out evenly among the runs under way.

    A clock on the wall would count what other programs do, and XLA computes in threads of its own, whose time is not
    that of the thread that calls it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[list[float]] = []
        self._last = 0.0

    @contextmanager
    def measure(self) -> Iterator[list[float]]:
        """Yield a list of one number, the seconds; it is complete when the block has been left."""
        spent = [0.0]
        with self._lock:
            self._share()
            self._running.append(spent)
        try:
            yield spent
        finally:
            with self._lock:
                self._share()
                self._running = [other for other in self._running if other is not spent]

    def _share(self) -> None:
        now = time.process_time()
        for spent in self._running:
            spent[0] += (now - self._last) / len(self._running)
        self._last = now
