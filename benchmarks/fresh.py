"""What a fresh process pays: its imports, and CPU and memory until the default model's first prediction."""

import subprocess
import sys
from typing import get_args

from benchmarks.process import Row, environment
from driftgp.defaults import Effort

IMPORTS = {
    "numpy and scipy": "import numpy, scipy.linalg, scipy.special",
    "driftgp": "from driftgp import AGP, Fleet, Online, describe, prequential, recommended",
    "driftgp alone": "import driftgp",
}

IMPORT = """
import time
start = time.process_time()
{}
print(time.process_time() - start)
"""

# The stream is made of its formula, so that nothing but driftgp is imported.
FIRST = """
import time
import numpy as np
from benchmarks.process import peak_bytes
from driftgp import Online, recommended
effort, D = {!r}, {}
t = np.arange(401.0)
X = np.sin(t[:, None] * (0.05 + 0.01 * np.arange(D)) + np.arange(D))
X += 0.1 * np.cos(7.0 * t[:, None] * (1.0 + np.arange(D)))
y = np.sin(2.0 * X[:, 0]) + 0.1 * np.sin(11.0 * t * t)
model = recommended(X[:400], y[:400], effort=effort)
online = Online(model, model.init(X[:400], y[:400]))
float(online.predict(X[400]).mean[0])
print(time.process_time())
print(peak_bytes())
"""


def fresh(rounds: int, inputs: list[int]) -> list[Row]:
    """Seconds of CPU and bytes, of processes of their own, in turn."""
    found: dict[str, list[float]] = {name: [] for name in IMPORTS}
    firsts: dict[tuple[str, int], list[list[float]]] = {(e, D): [] for e in get_args(Effort) for D in inputs}
    for i in range(rounds + 1):
        for name, program in IMPORTS.items():
            (seconds,) = printed(IMPORT.format(program))
            if i:  # the first round reads the disk
                found[name].append(seconds)
        for (effort, D), values in firsts.items():
            values.append(printed(FIRST.format(effort, D)))
    rows: list[Row] = [{"name": name, "how": "import", "seconds": seconds} for name, seconds in found.items()]
    for (effort, D), values in firsts.items():
        cpu, peak = (list(column) for column in zip(*values[1:], strict=True))
        rows.append({"name": effort, "how": "first prediction", "D": D, "seconds": cpu, "bytes": max(peak)})
    return rows


def printed(program: str) -> list[float]:
    """The numbers that a program prints in a fresh process."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    return [float(line) for line in done.stdout.split()]
