"""Every measurement has a process of its own: nothing is warm from another, and its peak of memory is its own.

`python -m benchmarks.process KIND ARGUMENTS` makes one measurement and prints its rows as JSON.
"""

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import machine

Row = dict[str, Any]
CACHE = Path(".cache") / "bench"

ENVIRONMENT = {  # one thread for every library; JAX, which the rivals and tinygp need, keeps what it compiles
    "JAX_PLATFORMS": "cpu",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
    "PYTHONWARNINGS": "ignore",
}

ALL_CORES = ("fleet",)  # what is measured on all of them; the rest keeps to one
MODULES = {  # where the function of each kind of measurement is; a process loads only what it measures
    "default": "entry_points",
    "inputs": "entry_points",
    "adapters": "entry_points",
    "call": "entry_points",
    "command": "entry_points",
    "grid": "steps",
    "exchange": "steps",
    "engines": "steps",
    "length": "steps",
    "scaling": "steps",
    "repairs": "steps",
    "fleet": "fleets",
    "stored": "fleets",
    "fresh": "fresh",
    "outside": "others",
    "rivals": "others",
    "accuracy": "others",
    "errors": "errors",
}


def environment(kind: str = "") -> dict[str, str]:
    """One thread for every library, and folders for what JAX and Python compile."""
    kept = {"JAX_COMPILATION_CACHE_DIR": "jax", "PYTHONPYCACHEPREFIX": "pycache"}
    folders = {name: str((CACHE / folder).resolve()) for name, folder in kept.items()}
    one_thread = {"NPROC": "1"} if kind == "rivals" else {}  # else JAX would share out the arrays of one step
    # without bytecode an import would compile, which an installed library does once
    return {**os.environ, **ENVIRONMENT, **folders, **one_thread, "PYTHONDONTWRITEBYTECODE": ""}


def measure(kind: str, timeout: float = 900.0, **arguments: Any) -> list[Row]:
    """Rows of one measurement; one that fails gives a row that says so, and the others go on."""
    command = [sys.executable, "-m", "benchmarks.process", kind, json.dumps(arguments)]
    others = machine.others()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(kind), timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return [failure(kind, f"took more than {timeout:.0f} s", arguments)]
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["without a word"]
        return [failure(kind, said[-1], arguments)]
    busy = others()
    return [row | {"others": busy} for row in json.loads(done.stdout.splitlines()[-1])]


def failure(kind: str, reason: str, arguments: dict[str, Any]) -> Row:
    """A row that says what was not measured, and why."""
    return {"group": kind, "failed": reason} | {
        key: arguments[key] for key in ("name", "size", "streams") if key in arguments
    }


def measurement(kind: str) -> Callable[..., list[Row]]:
    """The function that makes a kind of measurement."""
    function: Callable[..., list[Row]] = getattr(import_module(f"benchmarks.{MODULES[kind]}"), kind)
    return function


def peak_bytes() -> int:
    """The most memory that this process has had; `getrusage` would count that of the process which started it too."""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"))
        if found:
            return 1024 * int(found[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main(kind: str, arguments: str) -> None:
    """Measure, and print the rows; where a library is not installed, one row says so."""
    given = json.loads(arguments)
    if kind not in ALL_CORES and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    try:
        rows = measurement(kind)(**given)
    except ImportError as error:
        missing = error.name or str(error)
        rows = [failure(kind, f"skipped: {missing} is not installed", given)]
    for row in rows:
        row.setdefault("group", kind)
        row.setdefault("peak", peak_bytes())
    print(json.dumps(rows, default=float))


if __name__ == "__main__":
    main(*sys.argv[1:])
