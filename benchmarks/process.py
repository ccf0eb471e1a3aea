"""Every measurement has a process of its own: nothing is warm from another, and its peak of memory is its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.sizes import LOAD, TOY

Row = dict[str, Any]
CACHE = Path(".cache") / "bench"

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
    "PYTHONWARNINGS": "ignore",
}


def environment(cache: Path | None = None) -> dict[str, str]:
    """One thread for every library, and compiled programs kept in a folder."""
    kept = str((CACHE / "jax" if cache is None else cache).resolve())
    return os.environ | ENVIRONMENT | {"JAX_COMPILATION_CACHE_DIR": kept}


def _threads(kind: str, arguments: dict[str, Any]) -> dict[str, str]:
    """One thread for JAX where a single model's arrays would be shared out among more.

    A fleet uses all cores. Where a sample is a call, one thread computes and another waits for it; steps of these sizes
    are one kernel, which is never shared out.
    """
    many = kind in ("fleet", "outside") or (kind == "grid" and arguments["size"] in (TOY, LOAD))
    return {} if many else {"NPROC": "1"}


def measure(kind: str, timeout: float = 900.0, **arguments: Any) -> list[Row]:
    """Rows of one measurement; one that fails gives a row that says so, and the run goes on."""
    command = [sys.executable, "-m", "benchmarks.worker", kind, json.dumps(arguments)]
    try:
        environ = environment() | _threads(kind, arguments)
        done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return [{"group": kind, "failed": f"took more than {timeout:.0f} s", **arguments}]
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["without a word"]
        return [{"group": kind, "failed": said[-1], **arguments}]
    rows: list[Row] = json.loads(done.stdout.splitlines()[-1])
    return rows
