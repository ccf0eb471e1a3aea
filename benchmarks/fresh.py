"""What a fresh process pays: the import, the first call, and the first call with the compiler's work on disk."""

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.process import Row, environment

IMPORT = """
import time
start = time.perf_counter()
import driftgp
print(time.perf_counter() - start)
driftgp.AGP  # with it comes JAX
print(time.perf_counter() - start)
"""

FIRST_CALLS = """
import time
import driftgp
from driftgp import AGP, Online
from driftgp.data import toy_stream
from driftgp.evaluate import prequential
stream = toy_stream(seed=0)
X, y = stream.X, stream.y
model = AGP(inducing=10, window=100)
def timed(work):
    start = time.perf_counter()
    result = work()
    print(time.perf_counter() - start)
    return result
state = timed(lambda: model.init(X[:100], y[:100]))
timed(lambda: prequential(model, state, X[100:], y[100:]))
online = Online(model, state)
def first_sample():
    online.predict(X[100])
    online.update(X[100], y[100])
    online.predict(X[101])
timed(first_sample)
"""


def fresh(repeats: int) -> list[Row]:
    """Seconds of each, in processes of their own."""
    imports = list(zip(*(_run(IMPORT, None) for _ in range(repeats)), strict=True))
    rows: list[Row] = [
        {"group": "fresh", "name": name, "how": "", "seconds": list(seconds)}
        for name, seconds in zip(("import driftgp", "from driftgp import AGP"), imports, strict=True)
    ]
    calls = ("init", "prequential", "Online")
    compiled: dict[str, list[float]] = {name: [] for name in calls}
    cached: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            for found in (compiled, cached):
                for name, seconds in zip(calls, _run(FIRST_CALLS, Path(folder)), strict=True):
                    found[name].append(seconds)
    for how, found in (("compiled", compiled), ("from disk", cached)):
        rows += [{"group": "fresh", "name": f"first {name}", "how": how, "seconds": found[name]} for name in calls]
    return rows


def _run(program: str, cache: Path | None) -> list[float]:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(cache), check=True)
    return [float(line) for line in done.stdout.split()]
