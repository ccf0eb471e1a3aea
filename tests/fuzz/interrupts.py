"""Interrupts: a signal's handler raises at a random moment, once or again and again, and nothing is torn.

A case is one piece of work and its interrupts. Afterwards each state must be that after some whole number of rows, and
going on with the remaining rows must lead to the bytes of a run that was never interrupted.
"""

import contextlib
import hashlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from driftgp import AGP, Online
from driftgp.fleet import Fleet
from driftgp.forecasting import Forecaster
from tests.fuzz import files

ROWS, BEGUN = 460, 400  # rows of a stream, and those by which it has chosen its model
KEYS, EACH = 20, 30  # keys of a fleet, and rows of each of them: enough for two threads
RNG = np.random.default_rng(1)
X = RNG.normal(size=(KEYS * EACH, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=len(X))
NAMES = [f"k{i % KEYS}" for i in range(len(X))]


class Stop(BaseException):
    """What the handler raises."""


def interrupted(work: Callable[[], Any], after: float, again: float) -> int:
    """Do some work, with an interrupt after some seconds and, where that is not 0, again and again; how many came."""
    count, armed = 0, [True]

    def handler(*_: Any) -> None:
        nonlocal count
        if armed[0]:
            count += 1
            raise Stop

    report = sys.unraisablehook

    def unraisable(found: Any) -> None:
        """An interrupt that comes in a finaliser cannot reach the caller: Python drops it there."""
        if not isinstance(found.exc_value, Stop):
            report(found)

    signal.signal(signal.SIGALRM, handler)
    sys.unraisablehook = unraisable
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, after, again)
            work()
        finally:
            armed[0] = False  # no call, so that no handler comes between
    except Stop:
        pass
    except SystemError as error:  # the extension modules of pandas take a handler's exception for a fault of their own
        if not isinstance(error.__cause__, Stop):
            raise
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    sys.unraisablehook = report
    return count


def digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()[:8]


# ---- one stream ------------------------------------------------------------------------------------------------------


def whole(online: Online) -> bytes:
    """All that a stream knows, in short."""
    series = online._streams.series[None]
    kept = () if series.buffer is None or not series.buffer.count else series.buffer.rows.arrays
    buffer = b"".join(array.tobytes() for array in kept)
    known = repr((series.clock, series.categories, series.choice)).encode()
    return digest(online.state.record.tobytes(), buffer, known)


def started(form: str) -> Online:
    return Online(effort="low", time="at" if form == "dicts" else None)


@cache
def steps_of_a_stream(form: str) -> dict[bytes, int]:
    """The default after each whole number of rows, buffers and times included."""
    online, steps = started(form), {}
    for row in range(ROWS):
        online.update(*row_of(row, form))
        steps[whole(online)] = row + 1
    return steps


def rows_of(begin: int, end: int, form: str) -> tuple[Any, Any]:
    """Rows as arrays, as a frame whose index is the time, or as dicts with a time."""
    if form == "arrays":
        return X[begin:end], Y[begin:end]
    if form == "dicts":
        return [row_of(row, form)[0] for row in range(begin, end)], Y[begin:end]
    import pandas as pd

    index = pd.date_range("2026-01-01", periods=len(X), freq="h")[begin:end]
    return pd.DataFrame(X[begin:end], columns=["a", "b"], index=index), Y[begin:end]


def row_of(row: int, form: str) -> tuple[Any, Any]:
    """One row by itself."""
    if form != "dicts":
        return rows_of(row, row + 1, form)
    at = datetime(2026, 1, 1) + timedelta(hours=row)
    return {"at": at, "a": float(X[row, 0]), "b": float(X[row, 1])}, float(Y[row])


@cache
def begun(begin: int, form: str) -> bytes:
    online = started(form)
    online.update(*rows_of(0, begin, form))
    return online.to_bytes()


def a_stream(rng: np.random.Generator) -> int:
    """The default within its first rows, across the choice of a model, and after it: blocks, or rows one by one."""
    form, begin = str(rng.choice(["arrays", "frames", "dicts"])), int(rng.choice([5, 385, 402]))
    steps = steps_of_a_stream(form)
    online = Online.from_bytes(begun(begin, form))
    if rng.random() < 0.5:
        count = interrupted(lambda: online.evaluate(*rows_of(begin, ROWS, form)), *moment(rng, 0.01))
    else:

        def one_by_one() -> None:
            for row in range(begin, ROWS):
                x, y = row_of(row, form)
                online.predict(x)
                online.update(x, y)

        count = interrupted(one_by_one, *moment(rng, 0.02))
    here = whole(online)
    assert here in steps or whole(Online.from_bytes(begun(begin, form))) == here, "the stream is torn"
    reached = steps.get(here, begin)
    if reached < ROWS:
        online.update(*rows_of(reached, ROWS, form))
    assert steps.get(whole(online)) == ROWS, "the stream goes on in another way"
    return count


# ---- many streams ----------------------------------------------------------------------------------------------------


@cache
def steps_of_a_fleet(*, default: bool) -> dict[str, dict[bytes, int]]:
    """Each key after each whole number of its rows."""
    fleet = Fleet(None if default else AGP(inducing=5, window=20))
    steps: dict[str, dict[bytes, int]] = {name: {} for name in NAMES}
    for row in range(EACH):
        some = slice(row * KEYS, (row + 1) * KEYS)
        fleet.update(NAMES[some], X[some], Y[some])
        for name in NAMES[some]:
            steps[name][digest(fleet.state(name).record.tobytes())] = row + 1
    return steps


def a_fleet(rng: np.random.Generator) -> int:
    """Twenty keys and all the cores."""
    default = bool(rng.random() < 0.5)
    steps = steps_of_a_fleet(default=default)
    fleet, begin = Fleet(None if default else AGP(inducing=5, window=20)), int(rng.integers(0, 2)) * KEYS
    if begin:
        fleet.update(NAMES[:begin], X[:begin], Y[:begin])
    count = interrupted(lambda: fleet.evaluate(NAMES[begin:], X[begin:], Y[begin:]), *moment(rng, 0.02))
    for i in range(KEYS):
        name, reached = NAMES[i], 0
        if name in fleet:
            here = digest(fleet.state(name).record.tobytes())
            reached = steps[name].get(here, 0)
            assert reached or begin == 0, f"{name} is torn"
        rest = np.arange(i + KEYS * reached, len(X), KEYS)
        if rest.size:
            fleet.update([name] * rest.size, X[rest], Y[rest])
        assert steps[name].get(digest(fleet.state(name).record.tobytes())) == EACH, f"{name} goes on in another way"
    return count


# ---- forecasts, and the command --------------------------------------------------------------------------------------


@cache
def steps_of_a_forecaster() -> dict[bytes, int]:
    forecaster, steps = Forecaster(horizon=6, season=12), {}
    for row in range(120):
        forecaster.update(Y[row])
        steps[digest(forecaster.to_bytes())] = row + 1
    return steps


def a_forecaster(rng: np.random.Generator) -> int:
    forecaster, steps = Forecaster(horizon=6, season=12), steps_of_a_forecaster()
    begin = int(rng.integers(1, 80))
    forecaster.update(Y[:begin])
    count = interrupted(lambda: forecaster.update(Y[begin:120]), *moment(rng, 0.02))
    reached = steps.get(digest(forecaster.to_bytes()))
    assert reached is not None, "the forecaster is torn"
    if reached < 120:
        forecaster.update(Y[reached:120])
    assert steps.get(digest(forecaster.to_bytes())) == 120, "the forecaster goes on in another way"
    return count


OPTIONS = ("--target", "y", "--lags", "2", "--key", "key", "--checkpoint", "saved", "--every", "7")


@cache
def uninterrupted() -> bytes:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("table.csv").write_bytes(files.CSV)
        code, said = files.run("table.csv", *OPTIONS, "--output", "out.csv")
        assert code == 0, said
        return Path("out.csv").read_bytes()


def in_a_process(after: float, *arguments: str) -> int:
    """`driftgp run` in a process of its own, interrupted as by a user's keys; whether that came in time."""
    quiet = subprocess.DEVNULL
    child = subprocess.Popen([sys.executable, "-m", "driftgp", "run", *arguments], stdout=quiet, stderr=quiet)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(after)
    ended = child.poll() is not None
    child.send_signal(signal.SIGINT)
    code = child.wait(60.0)
    assert code in (0, 1, 130, -signal.SIGINT), f"the process ended with code {code}"
    return int(not ended)


def a_run(rng: np.random.Generator) -> int:
    """`driftgp run`, interrupted and started again until it comes to its end."""
    expected, count = uninterrupted(), 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("table.csv").write_bytes(files.CSV)
        for _ in range(3):
            count += in_a_process(float(rng.uniform(0.2, 1.5)), "table.csv", *OPTIONS, "--output", "out.csv")
        code, said = files.run("table.csv", *OPTIONS, "--output", "out.csv")
        assert code == 0, said
        assert Path("out.csv").read_bytes() == expected, "the output differs"
        left = [path.name for path in Path().iterdir() if path.suffix in (".lock", ".part")]
        assert not left, f"it left {left}"
    return count


def moment(rng: np.random.Generator, span: float) -> tuple[float, float]:
    """When the first interrupt comes, and how often more of them."""
    return float(rng.uniform(1e-4, span)), float(rng.choice([0.0, 0.0, 1e-4, 1e-3]))


KINDS: dict[str, Callable[[np.random.Generator], int]] = {
    "Online": a_stream,
    "Fleet": a_fleet,
    "Forecaster": a_forecaster,
    "run": a_run,
}
ENABLED = ("Online", "Fleet", "Fleet", "run", "Forecaster")


def case(rng: np.random.Generator) -> str:
    """Some work, interrupted."""
    kind = ENABLED[rng.integers(len(ENABLED))]
    return f"{kind}: {'interrupted' if KINDS[kind](rng) else 'not in time'}"
