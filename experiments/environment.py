"""What a report says of where it was made: versions, and the machine without its name."""

import platform
import sys
from importlib import metadata
from pathlib import Path

from driftgp.base.cores import cores

PACKAGES = ("driftgp", "numpy", "scipy", "polars", "jax", "jaxlib", "equinox", "optax")  # the last four for the rivals


def versions() -> dict[str, str]:
    """Python and the packages that have a say in the numbers."""
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            if package == "driftgp":
                found[package] = "from source"
    return found


def machine() -> str:
    """Processor, cores and system."""
    return f"{processor()}, {cores()} cores, {platform.system()} on {platform.machine()}"


def processor() -> str:
    """What the machine computes with."""
    if sys.platform == "linux":
        try:
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown processor"
