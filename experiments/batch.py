"""Many models on many streams, on as many threads as wanted: an engine lets go of Python's lock while it computes.

A fleet could do this too, but here the time of every single run is part of the result.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from driftgp import evaluate
from driftgp.demo import measure
from driftgp.evaluate import Run
from driftgp.models.model import Model
from driftgp.predictions import Prediction
from experiments.tasks import Task


class Case(NamedTuple):
    """A model, what it is to follow, and the key of the result."""

    model: Model
    task: Task
    key: str


Row = dict[str, Any]
Save = Callable[[list[Row]], None]
Progress = Callable[[], None]
LEVELS = (50, 80, 95, 99)  # per cent


def run(
    cases: Sequence[Case], *, save: Save, done: Progress, threads: int = 1, chunk: int = 25, seconds: float = np.inf
) -> None:
    """Run every case and save the rows chunk by chunk; no case is begun after this number of seconds.

    When interrupted, the cases under way are finished and what is done of every chunk is saved.
    """
    compile_ahead(cases)
    stop, meter, deadline = threading.Event(), Meter(), time.monotonic() + seconds

    def work(chunk: Sequence[Case]) -> None:
        rows: list[Row] = []
        for case in chunk:
            if stop.is_set() or time.monotonic() > deadline:
                break
            rows.extend(_rows(case, meter))
            done()
        if rows:
            save(rows)

    size = max(1, min(chunk, -(-len(cases) // threads)))
    with ThreadPoolExecutor(threads) as pool:
        try:
            list(pool.map(work, [cases[start : start + size] for start in range(0, len(cases), size)]))
        except BaseException:
            stop.set()
            raise


def compile_ahead(cases: Sequence[Case]) -> None:
    """Have the rivals in JAX compiled for every shape before any time is measured, by a run that does not count.

    One run serves all cases of a shape: the settings of a rival are arguments of its programs.
    """
    seen: set[Any] = set()
    for case in cases:
        stream = case.task.stream
        shape = type(case.model), stream.X.shape, stream.y.shape, stream.warmup
        if shape not in seen and case.model.engine(*case.task.sizes) is not None:
            _follow(case, Meter())
        seen.add(shape)


def _follow(case: Case, meter: "Meter") -> tuple[Run, float, float]:
    """Warm up, then predict and learn, sample after sample: the run, and the seconds of both parts."""
    with meter.measure() as warm_up:
        state = measure.warm_up(case.model, case.task.stream)
    with meter.measure() as online:
        run = measure.follow(case.model, state, case.task.stream)
    return run, warm_up[0], online[0]


def _rows(case: Case, meter: "Meter") -> list[Row]:
    task = case.task
    run, warm_up, online = _follow(case, meter)
    prediction = run.prediction
    y = task.stream.y[task.stream.warmup :]
    single, shared = y.ndim == 1, len(task.outputs)
    return [
        {"key": case.key, "series": task.series, "output": output}
        | {"seconds": online / shared, "warmup_seconds": warm_up / shared}
        | {"points": measure.inducing_in_use(run.state), "failed": int(getattr(run.state, "failed", 0))}
        | _result(*((prediction, y) if single else (prediction.output(i), y[:, i])))
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

    Wall time would include other programs. The rivals' JAX computes in its own threads, whose time is not that of the
    calling thread.
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
