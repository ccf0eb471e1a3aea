"""What a process that runs for months meets: interrupts, threads, exits, shapes without number, no memory."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from driftgp import AGP, FastAGP, Online, checkpoint, prequential, recommended
from driftgp.base import sealed
from driftgp.contract.records import entries
from driftgp.defaults import Effort
from driftgp.engine import engine
from driftgp.fleet import Fleet
from driftgp.forecasting import Forecaster
from driftgp.kernels import SE, Linear, Matern32, Matern52
from driftgp.models.model import State
from tests.fuzz import calls, files, interrupts, saved, states
from tests.fuzz.__main__ import generator

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4000, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=4000)
SMALL = FastAGP(kernel=SE(1.0), inducing=4, window=12, warmup_iterations=2)
LARGE = AGP(inducing=30, window=200, warmup_iterations=2)
native = engine(AGP(), 2, 1).kind == "native"
natively = pytest.mark.skipif(not native, reason="the compiled engine is not there")
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, sends signals")


def script(text: str, timeout: float = 120.0, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(text)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=False, env=os.environ | environment
    )


# ---- the fuzzers, a little of each: make fuzz does more --------------------------------------------------------------


@pytest.mark.parametrize("number", range(60))
def test_a_changed_state_is_refused_or_safe(number):
    states.case(generator("states", 99, number))


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
def test_no_number_in_any_field_of_the_default_gives_a_forecast_that_is_not_one(whole):
    base = states.grown("low", 450)
    for field in entries(base.record.dtype):
        for value in states.FLOATS if field.kind == "f8" and field.numbers else ():
            state, at = base.copy(), field.offset // 8
            numbers = state.record.reshape(1).view(np.float64)
            numbers[at : at + field.numbers if whole else at + 1] = value
            try:
                admitted = states.by_hand(np.random.default_rng(0), state)
            except ValueError:
                continue
            states.go_on(admitted.model, admitted)


@pytest.mark.parametrize("number", range(30))
def test_a_changed_file_is_read_or_refused_in_one_sentence(number):
    files.case(generator("files", 99, number))


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("kind", saved.KINDS)
def test_a_changed_file_with_a_right_checksum_is_refused_or_safe_and_never_large(kind, number):
    saved.read(kind, generator("saved", 99, number))


@pytest.mark.parametrize("number", range(12))
def test_any_sequence_of_calls_leaves_finite_forecasts(number):
    calls.case(generator("calls", 99, number))


@linux
@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("kind", interrupts.ENABLED[:2])
def test_interrupts_at_any_moment_tear_nothing(kind, number):
    """Of the default model too, of twenty keys in two threads, and again and again while the first one is heard."""
    interrupts.KINDS[kind](generator("interrupts", 99, number))


@linux
@pytest.mark.parametrize("number", range(3))
def test_an_interrupted_run_that_is_started_again_writes_the_same_bytes(number):
    interrupts.KINDS["run"](generator("interrupts", 99, number))


# ---- what the fuzzers found ------------------------------------------------------------------------------------------


def test_a_forged_number_of_gradient_steps_does_not_keep_a_step_from_ending():
    with pytest.raises(ValueError, match="iterations must be at most 10000; got 2147483648"):
        AGP(iterations=2**31)
    with pytest.raises(ValueError, match="warmup_iterations must be at most 1000000"):
        AGP(warmup_iterations=2**31)


def test_numbers_whose_squares_overflow_are_no_warning_and_no_error():
    """Warnings are errors here."""
    model = recommended(np.zeros((0, 2)), np.zeros(0))
    online = Online(model, model.init(np.zeros((0, 2)), np.zeros(0)))
    for x, y in (([1e200, -1e308], 1.0), ([1.0, 1.0], 1e308), ([1e-308, 5e-324], -1e308)):
        assert np.isfinite(online.predict(np.array(x)).mean).all()
        online.update(np.array(x), y)
        online.update(np.array([x, x]), np.array([y, y]))


@pytest.mark.parametrize(
    ("name", "field", "value", "message"),
    [
        ("Lagged", "g", 5e306, "g must be finite, and at most 1e"),
        ("Lagged", "w", 6e210, "w must be finite, and at most 1e"),
        ("Lagged", "noise", 1e305, "noise must lie in"),
        ("Anchored", "C", -1e200, "C must be finite, and at most 1e"),
        ("Anchored", "keep", 1e-300, "keep must lie in"),
        ("Anchored", "gain", 3.0, "gain must lie in"),
        ("Anchored", "trace", 1e200, "trace must be finite, and at most 1e"),
        ("Anchored", "waiting", 8, "waiting must lie in"),
    ],
)
def test_regressions_out_of_all_proportion_are_refused(name, field, value, message):
    """They were taken, and the forecast after the next row was no number."""
    state = states.grown(name).copy()
    state.record["heads"][field][...] = value
    with pytest.raises(ValueError, match=message):
        states.by_checkpoint(np.random.default_rng(0), state)


@pytest.mark.parametrize(("field", "value"), [("y", 1e200), ("Z", 1e200), ("theta", 800.0), ("theta", -800.0)])
def test_points_and_hyperparameters_out_of_all_proportion_are_refused(field, value):
    state = states.grown("Anchored").copy()
    state.record[field][...] = value
    with pytest.raises(ValueError, match=f"{field} must be"):
        states.by_checkpoint(np.random.default_rng(0), state)


def test_a_fit_without_points_left_is_refused():
    """It was taken, and after the next row no engine took the state any more."""
    state = states.grown("Anchored", 38).copy()
    assert 1 <= state.stage <= 5, "no fit is going on"
    state.record["fit"]["left"] = 0
    with pytest.raises(ValueError, match="left must be a number of points"):
        states.by_pickle(np.random.default_rng(0), state)


def test_sums_of_a_bank_out_of_all_proportion_are_refused():
    state = states.grown("Bank").copy()
    state.record["b"][...] = -1.7e308
    with pytest.raises(ValueError, match="b must be finite, and at most"):
        states.by_hand(np.random.default_rng(0), state)


def resealed(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """A saved file whose header was changed, with a right checksum, compressed as far as it goes."""
    frame = saved.FRAME
    magic, version, length, rest = frame.unpack_from(data)
    header = json.loads(zlib.decompress(data[frame.size : frame.size + length]))
    change(header)
    text = zlib.compress(json.dumps(header).encode(), 9)
    body = frame.pack(magic, version, len(text), rest) + text + data[frame.size + length : -32]
    return body + hashlib.sha256(body).digest()


def test_a_header_that_unpacks_to_far_more_than_its_file_is_refused_before_it_is_read():
    """117 kB took 3 GB: ten million empty lists, a thousandth of that when compressed."""
    for kind, load in (("Fleet", Fleet.from_bytes), ("Online", Online.from_bytes)):
        data = resealed(saved.originals()[kind][-1], lambda header: header.update(more=[[]] * 3_000_000))
        assert len(data) < 600_000

        def work(load: Callable[[bytes], Any] = load, data: bytes = data) -> None:
            with pytest.raises(ValueError, match=r"is damaged: its header cannot be read \(it is longer than"):
                load(data)

        assert saved.peak(work) < 20.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 10**9}, "horizon must be"),
        ({"horizon": 2000}, "is damaged: .*shape|is too large for a file of"),
        ({"horizon": 0}, "horizon must be"),
        ({"season": 10**8}, "season must be"),
    ],
)
def test_a_forecaster_of_far_too_many_steps_is_refused_before_memory_is_asked_for(change, message):
    """9.6 kB took 3 GB, and 432 bytes with a horizon of 10⁹ were taken."""
    data = resealed(saved.originals()["Forecaster"][0], lambda header: header["settings"].update(change))

    def work() -> None:
        with pytest.raises(ValueError, match=message):
            Forecaster.from_bytes(data)

    assert saved.peak(work) < 100.0


@pytest.mark.parametrize("place", range(4))
def test_first_rows_that_are_not_finite_are_refused(place):
    """Inputs, targets, spans of time, and typical steps."""
    tree = sealed.opened("online", saved.originals()["Online"][0])
    kind, rows = tree.pop("kind"), tree["series"][0][2]["buffer"][1 + place]
    rows[3] = np.inf
    with pytest.raises(ValueError, match="its rows have a number that is not finite or out of range"):
        Online.from_bytes(sealed.seal(kind, tree))


def test_a_model_that_a_small_file_describes_as_huge_is_refused_before_memory_is_asked_for():
    model = AGP(inducing=3, window=8, learn_every=0)
    data = checkpoint.to_bytes(model, model.init(X[:0], Y[:0]))
    forged = resealed(data, lambda header: header["model"].update(inducing=1500, window=2000))

    def work() -> None:
        with pytest.raises(ValueError, match=r"very large model|another size"):
            checkpoint.from_bytes(None, forged)

    assert saved.peak(work) < 20.0


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("inner.inner.low", 1e12),
        ("inner.inner.inner.centre", 1e150),
        ("inner.inner.inner.scale", 1e-150),
        ("inner.inner.inner.inner.inner.inner.member_4.values", 1e150),
    ],
)
def test_the_median_lies_within_the_interval_whatever_a_state_holds(path, value):
    """Of members whose sizes are 10¹⁵⁰ apart, the ends of an interval are known up to the rounding of the largest."""
    state = states.grown("low").copy()
    field = next(field for field in entries(state.record.dtype) if field.path == path)
    state.record.reshape(1).view(np.float64)[field.offset // 8 : field.offset // 8 + field.numbers] = value
    with contextlib.suppress(ValueError):
        states.go_on(state.model, states.by_hand(np.random.default_rng(0), state))


# ---- interrupts ------------------------------------------------------------------------------------------------------


class Stop(Exception):
    """What a signal handler raises."""


def interrupted(work: Callable[[], Any], after: float) -> bool:
    """Do some work, and have a signal handler raise in the midst of it; whether it did."""

    def handler(*_: Any) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        work()
    except Stop:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    return False


def ways_to_learn(model: Any, rows: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Each way to have a model learn rows, and how to see how far it came."""
    start = model.init(X[:0], Y[:0])
    single, block, fleet = Online(model, start), Online(model, start), Fleet(model)
    fleet.update(["a"], X[:1], Y[:1])

    def one_by_one() -> None:
        for x, y in zip(X[:rows], Y[:rows], strict=True):
            single.predict(x)
            single.update(x, y)

    return {
        "predict and update": (one_by_one, lambda: single.state),
        "update": (lambda: block.update(X[:rows], Y[:rows]), lambda: block.state),
        "Fleet": (lambda: fleet.update(["a"] * (rows - 1), X[1:rows], Y[1:rows]), lambda: fleet.state("a")),
        "prequential": (lambda: prequential(model, start, X[:rows], Y[:rows]), lambda: start),
    }


def seconds(work: Callable[[], Any]) -> float:
    """How long work takes that nothing interrupts."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def check_interrupts(times: int) -> int:
    """Interrupt every way to learn so often; return how many interrupts came in time.

    Each state must be one after some whole number of rows, and `samples` says which: the caller can go on from there.
    """
    rng, heard = np.random.default_rng(0), 0
    for model, rows in ((SMALL, 4000), (LARGE, 400)):
        steps = [model.init(X[:0], Y[:0])]
        for x, y in zip(X[:rows], Y[:rows], strict=True):
            steps.append(model.update(steps[-1], x, y))
        bits = [hash(state.record.tobytes()) for state in steps]
        lasts = {way: seconds(work) for way, (work, _) in ways_to_learn(model, rows).items()}
        for _ in range(times):
            for way, (work, reached) in ways_to_learn(model, rows).items():
                heard += interrupted(work, float(rng.uniform(0.05, 0.6)) * lasts[way])
                state = reached()
                assert hash(state.record.tobytes()) == bits[state.samples], way
    return heard


@linux
def test_an_interrupt_leaves_a_state_after_some_whole_number_of_samples():
    assert check_interrupts(1) >= 4


@linux
@pytest.mark.slow
def test_forty_interrupts_leave_states_after_whole_numbers_of_samples():
    heard = check_interrupts(12)
    print(f"{heard} interrupts")  # noqa: T201
    assert heard >= 40


@linux
@natively
def test_an_interrupt_is_heard_during_a_long_native_call():
    """In pieces of about 50 ms; the call by itself would take many seconds."""
    model = AGP(inducing=40, window=300, iterations=5, warmup_iterations=2)
    online = Online(model, model.init(X[:300], Y[:300]))
    assert interrupted(lambda: online.update(X, Y), 0.2)
    assert 0 < online.state.samples < len(X)


# ---- threads, exits, builds ------------------------------------------------------------------------------------------


def test_a_state_taken_while_updates_go_on_is_never_torn():
    model = FastAGP(kernel=SE(1.0), inducing=40, window=1000, warmup_iterations=2)
    online = Online(model, model.init(X[:0], Y[:0]))
    expected = {0: online.state.record.tobytes()}
    twin = Online(model, model.init(X[:0], Y[:0]))
    for i in range(300):
        twin.update(X[i], Y[i])
        expected[i + 1] = twin.state.record.tobytes()
    worker = threading.Thread(target=lambda: [online.update(X[i], Y[i]) for i in range(300)])
    worker.start()
    taken = []
    while worker.is_alive():
        taken.append(online.state)
    worker.join()
    assert taken
    assert all(state.record.tobytes() == expected[state.samples] for state in taken)


HUNDREDS = """
import numpy as np
from driftgp import AGP
from driftgp.fleet import Fleet
from driftgp.forecasting import Forecaster
from tests.fuzz.interrupts import interrupted

heard, X, keys = 0, np.random.default_rng(0).normal(size=(800, 2)), np.arange(800) % 20

def work():
    fleet = Fleet(AGP(inducing=5, window=30))
    while True:
        fleet.evaluate(keys, X, X[:, 0])

while heard < 150:
    heard += interrupted(work, 2e-4 * (1 + heard % 40), 1e-4)
for _ in range(50):
    np.zeros(100_000).sum()  # where memory was damaged, the next one to ask for some finds it
"""


@linux
@natively
def test_hundreds_of_interrupts_of_a_fleet_in_two_threads_damage_no_memory():
    """Arrays were given back while a thread still wrote to them, and five of fourteen processes died of it."""
    told = script(HUNDREDS)
    assert told.returncode == 0, told.stderr


FORKED = """
import os, signal, threading, time, warnings, numpy as np
from driftgp import AGP, Online
from driftgp.fleet import Fleet
from driftgp.forecasting import Forecaster
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(4000, 2))
at_work, idle = KIND, Online()
idle.update(X[:5], X[:5, 0])
update = (lambda: at_work.update(X, X[:, 0])) if isinstance(at_work, Online) else (
    lambda: at_work.update(np.arange(4000) % 20, X, X[:, 0]))
read = (lambda: at_work.predict(X[0])) if isinstance(at_work, Online) else (lambda: at_work.predict([0], X[:1]))
update()
over = []
def work():
    while not over:
        update()
thread = threading.Thread(target=work)
thread.start()
refused = 0
for _ in range(10):
    time.sleep(0.03)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        idle.update(X[5:9], X[5:9, 0])  # what no thread was at work on goes on
        fleet = Fleet(AGP(inducing=3, window=20))
        fleet.update(np.arange(400) % 20, X[:400], X[:400, 0])  # with threads of this process
        try:
            read()
        except ValueError as error:
            assert "was forked while another thread was at work on it" in str(error), error
            os._exit(7)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 7), code
    refused += code == 7
over.append(True)
thread.join()
read()
print(refused)
"""


@linux
@natively
@pytest.mark.parametrize("kind", ["Online()", "Online(AGP(inducing=10, window=60))", "Fleet()"])
def test_a_process_that_is_forked_during_an_update_is_refused_with_a_sentence_and_never_waits(kind):
    """The thread that holds the lock is not in the child: all ten children waited for it for ever."""
    told = script(FORKED.replace("KIND", kind))
    assert told.returncode == 0, told.stderr
    assert int(told.stdout) >= 1, "no fork came during an update"


@natively
@pytest.mark.parametrize("number", range(3))
def test_a_process_may_exit_while_native_calls_run_in_its_threads(number):
    told = script(
        f"""
        import threading, time, numpy as np
        from driftgp import AGP, Online
        from driftgp.fleet import Fleet
        X = np.random.default_rng(0).normal(size=(20000, 2))
        fleet = Fleet(AGP(inducing=10, window=60))
        work = lambda: fleet.update(np.arange(20000) % 50, X, X[:, 0])
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05 + 0.05 * {number})
        """
    )
    assert told.returncode == 0, told.stderr


@linux
@natively
def test_two_builds_in_one_process_share_nothing(tmp_path):
    """Two copies of the library: models of each give the same bits, and freeing one leaves the other."""
    told = script(
        f"""
        import shutil, numpy as np
        from pathlib import Path
        from driftgp import AGP
        from driftgp.engine import Batch, native, library
        here = library.library()
        other = Path({str(tmp_path)!r}, here.path.name)
        shutil.copy(here.path, other)
        X = np.random.default_rng(0).normal(size=(60, 2))
        model, made = AGP(inducing=4, window=12), []
        for loaded in (here, library.Library(other), here):
            native.library = lambda: loaded
            engine = native.NativeEngine(model, 2, 1)
            record = np.zeros((), engine.record_dtype)
            engine.start(record, X[:20], X[:20, :1])
            states = record.reshape(1)
            engine.run(states, np.array([0]), np.array([40]), Batch(X[20:], X[20:, :1], np.ones(40)))
            made.append(states.tobytes())
            del engine
        assert made[0] == made[1] == made[2]
        """
    )
    assert told.returncode == 0, told.stderr


# ---- shapes and memory -----------------------------------------------------------------------------------------------

SHAPES = """
import sys, numpy as np
from driftgp import AGP, FastAGP, Online
from driftgp.wrappers import Bank, Standardize
count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT

def maps():
    return sum(1 for _ in open("/proc/self/maps"))

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

rng = np.random.default_rng(0)

def shape(i):
    M, T, D = 2 + i % 25, 30 + i % 41, 1 + i % 7
    bank = Bank([FastAGP(inducing=M, window=T), AGP(inducing=M, window=T, warmup_iterations=1)])
    model = Standardize(bank, adapt=0.9)
    X = rng.normal(size=(T, D))
    online = Online(model, model.init(X, X[:, 0]))
    for x in X[:5]:
        online.predict(x)
        online.update(x, float(x[0]))
    return online

def rows(online, n):
    X = rng.normal(size=(n, 3))
    online.predict(X)
    online.update(X, X[:, 0])

steady = shape(2)
for i in range(40):  # what the first shapes and rows bring into memory is there now
    shape(i)
    rows(steady, 1 + 13 * i)
before = maps(), resident()
for i in range(count):
    shape(i)
    rows(steady, i + 1)
after = maps(), resident()
print(f"{count} shapes and row counts: maps {before[0]} to {after[0]}, resident {before[1]:.1f} to {after[1]:.1f} MB")
assert after[0] <= 1.1 * before[0], (before, after)
assert after[1] - before[1] < 20.0, (before, after)
"""


@linux
@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_nothing_grows_with_the_number_of_shapes_and_row_counts(count):
    told = script(SHAPES.replace("COUNT", str(count)), timeout=600.0)
    print(told.stdout)  # noqa: T201
    assert told.returncode == 0, told.stderr


@linux
@natively
def test_no_memory_in_the_native_engine_is_an_error_and_not_the_end_of_the_process():
    told = script(
        """
        import resource, numpy as np
        from driftgp import AGP
        X = np.random.default_rng(0).normal(size=(2000, 2))
        model = AGP(inducing=10, window=20, warmup_iterations=1)
        state = model.init(X[:20], X[:20, 0])  # whatever is loaded is loaded
        before = state.record.tobytes()
        large = AGP(inducing=1500, window=2000, warmup_iterations=1)
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), -1))
        try:
            large.init(X, X[:, 0])
        except MemoryError as error:
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
            model.update(state, X[20:40], X[20:40, 0])
            assert state.record.tobytes() == before
            print("refused", error)
        """
    )
    assert told.returncode == 0, told.stderr
    assert "refused" in told.stdout


@linux
@natively
@pytest.mark.parametrize("rows", [36, 230])
def test_a_step_for_which_there_is_no_memory_has_not_happened(rows):
    """A thread that has run nothing yet needs memory; where the system refuses it, the state is as it was."""
    told = script(
        f"""
        import resource, threading, numpy as np
        from driftgp import Online, recommended
        X = np.random.default_rng(0).normal(size=({rows} + 1, 3))
        model = recommended(X[:0], X[:0, 0])
        online = Online(model, model.init(X[:0], X[:0, 0]))
        online.update(X[:-1], X[:-1, 0])
        before, told = online.state.record.tobytes(), []
        def work():
            used = int(open("/proc/self/statm").read().split()[0]) * 4096
            resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), -1))
            try:
                online.update(X[-1], float(X[-1, 0]))
            except MemoryError:
                told.append("refused")
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        thread = threading.Thread(target=work)
        thread.start(), thread.join()
        assert (online.state.record.tobytes() == before) == (told == ["refused"])
        print(*told)
        """,
        MALLOC_MMAP_THRESHOLD_="65536",
        MALLOC_ARENA_MAX="1",
        MALLOC_TOP_PAD_="0",
    )
    assert told.returncode == 0, told.stderr
    assert "refused" in told.stdout


# ---- numbers in any form ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [Matern32, Matern52])
def test_a_lengthscale_of_one_entry_is_a_number_in_a_whole_run(family, monkeypatch):
    for choice in ("reference", "auto"):
        monkeypatch.setenv("DRIFTGP_ENGINE", choice)
        learned = []
        for lengthscale in (0.9, [0.9]):
            model = AGP(family(lengthscale), inducing=4, window=12, warmup_iterations=10)
            state = model.update(model.init(X[:12, :1], Y[:12]), X[12:20, :1], Y[12:20])
            assert state.skipped == 0
            learned.append(state.theta)
        np.testing.assert_allclose(*learned, rtol=1e-9)


@pytest.mark.usefixtures("each_engine")
def test_a_linear_kernel_at_inputs_that_are_exactly_0_forecasts_numbers():
    model = AGP(Linear(), inducing=3, window=12, warmup_iterations=5)
    state = model.init(np.zeros((12, 2)), Y[:12])
    for i in range(30):
        state = model.update(state, np.zeros(2), Y[i])
        forecast = model.predict(state, np.zeros((1, 2)))
        assert np.isfinite(forecast.mean).all()
        assert (forecast.variance > 0.0).all()


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("learn_every", [0, 1])
def test_duplicates_without_jitter_use_a_whole_factor_and_count_the_repair(learn_every):
    model = AGP(SE(1.0), inducing=4, window=12, jitter=0.0, learn_every=learn_every, warmup_iterations=5)
    same = np.repeat(X[:2], 20, 0)
    state = model.init(same[:12], Y[:12])
    for x, y in zip(same, Y, strict=False):
        state = model.update(state, x, y)
        forecast = model.predict(state, X[:8])
        assert np.isfinite(forecast.mean).all()
        assert (forecast.variance > 0.0).all()
        assert np.isfinite(state.inverse_L).all()


# ---- hostile streams, by the default ---------------------------------------------------------------------------------

HIT, ROWS_OF_IT = 200, 100  # rows before the disturbance, rows of it
BACK, SETTLED = 150, 100  # rows after which the default is as it was: after a disturbance, after a change that lasts

HOSTILE: dict[str, Callable[[np.ndarray, np.ndarray], None]] = {}


def hostile(disturb: Callable[[np.ndarray, np.ndarray], None]) -> Callable[[np.ndarray, np.ndarray], None]:
    HOSTILE[disturb.__name__] = disturb
    return disturb


@hostile
def targets_that_alternate_between_extremes(X, y):
    y[:] = 1e6 * (-1.0) ** np.arange(len(y))


@hostile
def targets_of_any_finite_size(X, y):
    y[::3] = 10.0 ** RNG.uniform(-300, 300, len(y[::3]))


@hostile
def inputs_of_any_finite_size(X, y):
    X[::3] = RNG.choice([-1.0, 1.0], X[::3].shape) * 10.0 ** RNG.uniform(-300, 308, X[::3].shape)


@hostile
def constants(X, y):
    X[:], y[:] = 0.7, 3.0


@hostile
def zeros(X, y):
    X[:], y[:] = 0.0, 0.0


@hostile
def duplicates(X, y):
    X[:], y[:] = np.repeat(X[::10], 10, 0), np.repeat(y[::10], 10)


@hostile
def denormals(X, y):
    X *= 5e-324
    y *= 5e-324


def calm(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    return x, 20.0 + 3.0 * np.sin(x[:, 0]) + x[:, 1] + 0.3 * rng.normal(size=rows)


def errors_of(x: np.ndarray, y: np.ndarray, warmup: int, effort: Effort = "medium") -> np.ndarray:
    """Absolute errors of the default model, row by row, all of whose forecasts must be finite.

    Before any target an interval has no ends: nothing is known.
    """
    model = recommended(x[:warmup], y[:warmup], effort=effort)
    run = prequential(model, model.init(x[:warmup], y[:warmup]), x[warmup:], y[warmup:])
    assert np.isfinite(run.prediction.mean).all()
    first = 0 if warmup else 1
    assert all(np.isfinite(each[first:]).all() for each in (run.prediction.variance, *run.prediction.interval(0.95)))
    assert (run.prediction.variance > 0.0).all()
    with np.errstate(over="ignore"):
        return np.append(np.full(warmup, np.nan), np.abs(run.prediction.mean - y[warmup:]))


@natively
@pytest.mark.parametrize("warmup", [0, 100])
@pytest.mark.parametrize("name", HOSTILE)
def test_the_default_stays_finite_and_finds_back(name, warmup):
    """In the median of three streams: whether it starts anew, or goes on with what it had, hangs on a few rows."""
    ratios, struck = [], slice(HIT, HIT + ROWS_OF_IT)
    for seed in (3, 4, 5):
        x, y = calm(HIT + ROWS_OF_IT + BACK + 100, seed)
        with np.errstate(over="ignore", under="ignore"):
            HOSTILE[name](x[struck], y[struck])
        errors = errors_of(x, y, warmup)
        ratios.append(errors[-100:].mean() / errors[HIT - 80 : HIT].mean())
    assert np.median(ratios) < 1.5


@natively
@pytest.mark.parametrize("effort", ["low", "medium"])
@pytest.mark.parametrize("sizes", [(1e300, 1e300), (1e140, 1e140), (1e-300, 1e300), (1e300, 1e-300)], ids=str)
def test_the_default_is_finite_in_units_of_any_size_from_its_first_row(sizes, effort):
    x, y = calm(80, 3)
    x, y = sizes[0] * x, sizes[1] * (y - 20.0)
    assert np.isfinite(errors_of(x, y, 0, effort)).all()


@natively
@pytest.mark.parametrize("seed", range(6))
def test_the_default_is_finite_when_sizes_change_at_random_from_its_first_row(seed):
    """And what it has learned by then is admitted."""
    rng = np.random.default_rng(seed)
    wild = np.array([0.0, 5e-324, 1e-300, 1e20, -1e20, 1e150, -1e200, 1.7e308, -1.7e308, 3.5])
    numbers = np.where(rng.random((60, 3)) < 0.6, rng.normal(size=(60, 3)), rng.choice(wild, (60, 3)))
    errors_of(numbers[:, :2], numbers[:, 2], 0, "low")
    model = recommended(numbers[:0, :2], numbers[:0, 2], effort="low")
    state = model.update(model.init(numbers[:0, :2], numbers[:0, 2]), numbers[:, :2], numbers[:, 2])
    State(model, state.layout, state.record)


@natively
@pytest.mark.parametrize("effort", ["low", "medium"])
def test_a_cold_start_in_units_far_from_one_is_as_good(effort):
    """A load of 5000 ± 30 by a pressure of 10 000 ± 10 was forecast with errors half as large again."""
    x, y = calm(150, 3)
    plain, moved = errors_of(x, y, 0, effort), errors_of(1e4 + 10.0 * x, 4800.0 + 10.0 * y, 0, effort) / 10.0
    assert moved[30:].mean() < 1.1 * plain[30:].mean()


@natively
@pytest.mark.parametrize("wild", [1e300, 1e-300])
@pytest.mark.parametrize("effort", ["low", "medium"])
def test_a_state_comes_back_whatever_its_first_row_was(wild, effort):
    """What is not admitted, no step may leave."""
    x, y = calm(40, 3)
    x[0], y[0] = wild, wild
    model = recommended(x[:0], y[:0], effort=effort)
    state = model.init(x[:0], y[:0])
    for row in range(40):
        state = model.update(state, x[row], y[row])
        if row in (0, 1, 5, 33, 39):
            back = checkpoint.from_bytes(model, checkpoint.to_bytes(model, state))
            assert back.record.tobytes() == state.record.tobytes()


@natively
@pytest.mark.parametrize("change", [(100.0, 0.0), (0.01, 0.0), (1.8, 32.0), (1.0, 1000.0), (-1.0, 0.0)], ids=str)
def test_the_default_follows_a_lasting_change_of_units(change):
    """The sensor of the target: ×100, ÷100, °C to °F, another zero, another sign."""
    factor, shift = change
    x, y = calm(HIT + SETTLED + 100, 3)
    y[HIT:] = factor * y[HIT:] + shift
    errors = errors_of(x, y, 100)
    assert errors[-100:].mean() < 1.5 * abs(factor) * errors[HIT - 80 : HIT].mean()


@natively
@pytest.mark.parametrize("change", [(100.0, 0.0), (1.8, 32.0)], ids=str)
def test_the_default_follows_a_lasting_change_of_units_of_an_input(change):
    factor, shift = change
    x, y = calm(HIT + SETTLED + 100, 3)
    x[HIT:, 1] = factor * x[HIT:, 1] + shift
    errors = errors_of(x, y, 100)
    assert errors[-100:].mean() < 2.5 * errors[HIT - 80 : HIT].mean()
