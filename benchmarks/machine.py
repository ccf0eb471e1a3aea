"""What the figures were measured on, and how quiet it was."""

import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from experiments import environment

PACKAGES = (
    *("driftgp", "numpy", "scipy", "lightgbm", "scikit-learn", "river", "capymoa", "statsforecast"),
    *("torch", "gpytorch", "tinygp", "jax"),
)
STAT = Path("/proc/stat")


def others() -> Callable[[], float]:
    """Begin to look at other work; what is returned says how many cores it has used since then.

    Where there is no /proc/stat, that is the load average now, less the one process that measures.
    """
    began, busy, own = time.monotonic(), _busy(), _own()

    def used() -> float:
        now = _busy()
        if busy is None or now is None:
            return max(os.getloadavg()[0] - 1.0, 0.0)
        return round(max(now - busy - (_own() - own), 0.0) / max(time.monotonic() - began, 1e-3), 2)

    return used


def _busy() -> float | None:
    """Seconds in which a core of this machine had work, since its start."""
    if not STAT.exists():
        return None
    user, nice, system, _, _, interrupts, more = map(int, STAT.read_text(encoding="utf-8").split()[1:8])
    return (user + nice + system + interrupts + more) / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    """CPU seconds of this process and of those that it has started and that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def describe() -> dict[str, str]:
    """Processor, cores, compiler and versions."""
    from benchmarks import limit
    from driftgp import AGP
    from driftgp import describe as engine_of

    return {
        "processor": environment.processor(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "compiler": _compiler(limit.compiler()),
        "engine": engine_of(AGP()),
        **{name: _version(name) for name in PACKAGES},
    }


def _compiler(found: str | None) -> str:
    if found is None:
        return "none"
    return subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
