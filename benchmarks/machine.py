"""What the figures were measured on."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import limit
from driftgp import AGP
from driftgp import describe as engine_of

PACKAGES = ("driftgp", "jax", "numpy", "scipy", "torch", "gpytorch", "scikit-learn", "river", "tinygp")


def describe() -> dict[str, str]:
    """Processor, cores, compiler and versions."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "compiler": _compiler(),
        "engine": engine_of(AGP()),
        **{name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _compiler() -> str:
    found = limit.compiler()
    if found is None:
        return "none"
    return subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
