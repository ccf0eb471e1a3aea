"""Kill −9 at random moments, over every kind of table and over fleets: the bytes of a run that never stopped."""

import contextlib
import gzip
import io
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.test_run import table

NAIVE = ("--target", "y", "--model", "persistence", "--lags", "2", "--warmup", "5")
HYBRID = ("--target", "y", "--lags", "3", "--kernel", "se", "--inducing", "5", "--window", "30", "--model", "hybrid")
RUN = [sys.executable, "-c", "from driftgp.cli import main; main()", "run"]
DEFAULT = ("--target", "y", "--key", "key", "--horizon", "3")
EVERY = ("--every", "128")

# A program of a user's: a fleet that is saved every 20 rows, and says itself how far it came.
FLEET = """
import sys
from pathlib import Path
import numpy as np
from driftgp import FastAGP
from driftgp.fleet import Fleet

rng = np.random.default_rng(0)
X, keys, every = rng.normal(size=(6000, 2)), np.arange(6000) % 7, 20
output, saved = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None
fleet, row = Fleet(FastAGP(inducing=5, window=30)), 0
if saved is not None and saved.exists():
    fleet = Fleet.load(saved)
    row = int(np.nanmax(fleet.times(fleet.keys))) + 1
with output.open("r+b" if row else "wb") as file:
    file.truncate(row * 32)
    file.seek(row * 32)
    for begin in range(row, 6000, every):
        rows = slice(begin, begin + every)
        made = fleet.evaluate(keys[rows], X[rows], X[rows, 0], np.arange(begin, begin + every, dtype=float))
        low, high = made.interval(0.9)
        file.write(np.stack([made.mean, made.variance, low, high], 1).tobytes())
        file.flush()
        if saved is not None and begin % 200 == 180:
            fleet.save(saved)
"""


class Killing:
    """A command in a process of its own, killed at random moments and started again."""

    def __init__(self, folder, command, output, resumable):
        self.folder, self.command, self.random = folder, command, random.Random(0)
        self.output, self.resumable = output, resumable

    def start(self, output, *more):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        return subprocess.Popen([*self.command, *self.output, output, *more], cwd=self.folder, **quiet)

    def to_the_end(self, output, *more):
        """Let a run come to its end; return its output and for how many seconds it was writing."""
        with self.start(output, *more) as process:
            first = self.wait_for_rows(process, output)
            assert process.wait() == 0, process.stderr.read().decode()
        return (self.folder / output).read_bytes(), time.monotonic() - first

    def wait_for_rows(self, process, output):
        """Wait until the output is longer than it was, and than its header; return the time."""
        path = self.folder / output
        before = max(path.stat().st_size if path.exists() else 0, 100)
        while process.poll() is None and (not path.exists() or path.stat().st_size <= before):
            time.sleep(0.005)
        return time.monotonic()

    def kill(self, times, span, output):
        """Kill so many runs, most of them while they write; a run that gets to its end is begun anew."""
        kills = 0
        while kills < times:
            with self.start(output, *self.resumable) as process:
                if self.random.random() < 0.8:
                    self.wait_for_rows(process, output)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(self.random.uniform(0.0, span))
                kills += process.poll() is None
                process.kill()
                assert process.wait() in (0, -signal.SIGKILL), process.stderr.read().decode()  # it was not refused
                if process.returncode == 0:
                    (self.folder / "saved").unlink()
                    (self.folder / output).unlink()  # or the next run would wait to outgrow it


def counts(rows, keys=3):
    """CSV text of several series of counts, whose forecasts have a bound on one side."""
    rng = np.random.default_rng(0)
    lines = ["when,x,y,key"]
    for t in range(rows):
        x, when = rng.normal(), np.datetime64("2024-01-01T00", "h") + t // keys
        lines.append(f"{when}:00,{x:.4f},{rng.poisson(np.exp(1.0 + 0.3 * x + np.sin(t / 30.0)))},k{t % keys}")
    return "\n".join(lines) + "\n"


def check_killing(folder, times, name, options, text):
    """Kill a run on a table of some format so often, and compare."""
    if name.endswith(".parquet"):
        pl.read_csv(io.StringIO(text), try_parse_dates=True).write_parquet(folder / name)
    else:
        (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    kill(folder, times, [*RUN, name, *options], ("--output",), ("--checkpoint", "saved", *EVERY))
    assert {path.name for path in folder.iterdir()} <= {name, "whole.csv", "killed.csv", "saved"}


def kill(folder, times, command, output, resumable):
    killing = Killing(folder, command, output, resumable)
    whole, span = killing.to_the_end("whole.csv")
    killing.kill(times, span, "killed.csv")
    assert killing.to_the_end("killed.csv", *resumable)[0] == whole


def test_a_killed_run_leaves_no_trace(tmp_path):
    check_killing(tmp_path, 3, "long.csv", NAIVE, table(3000))


def test_a_killed_run_of_the_default_model_accepts_its_own_checkpoints(tmp_path):
    check_killing(tmp_path, 3, "counts.csv", DEFAULT, counts(1200))


@pytest.mark.slow
def test_a_hundred_kills_leave_no_trace_in_the_default_model(tmp_path):
    check_killing(tmp_path, 100, "counts.csv", DEFAULT, counts(3000))


def test_a_killed_fleet_goes_on_where_it_was_saved(tmp_path):
    check_fleet(tmp_path, 2)


def check_fleet(folder, times):
    (folder / "fleet.py").write_text(FLEET)
    kill(folder, times, [sys.executable, str(Path("fleet.py"))], (), ("saved",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "name", "options", "keys"),
    [
        (20, "long.csv", HYBRID, 1),
        (16, "long.csv.gz", HYBRID, 1),
        (16, "long.parquet", HYBRID, 1),
        (16, "long.csv", (*NAIVE, "--key", "key"), 5),
        (16, "long.csv", (*HYBRID, "--horizon", "6"), 1),
    ],
    ids=["csv", "gz", "parquet", "groups", "horizon"],
)
def test_eighty_four_kills_leave_no_trace(tmp_path, times, name, options, keys):
    check_killing(tmp_path, times, name, options, table(6000, keys=keys))


@pytest.mark.slow
def test_sixteen_kills_leave_no_trace_in_a_fleet(tmp_path):
    check_fleet(tmp_path, 16)
