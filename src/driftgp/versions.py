"""What a report of a problem should say: versions, the platform, and which engine runs models."""

import platform
import re
import sys
from importlib import metadata

import numpy as np

from driftgp.defaults import recommended
from driftgp.engine import describe

_OURS = re.compile(r"extra == .(dev|docs|test|all)\b")  # what only the developers of driftgp need, or is named already


def show_versions() -> None:
    """Print what a report of a problem should say.

    >>> show_versions()  # doctest: +ELLIPSIS
    driftgp ...
    engine ...
    Python ...
    platform ...
    numpy ...
    scipy ...
    """
    for name, version in versions().items():
        print(f"{name} {version}")  # noqa: T201


def versions() -> dict[str, str]:
    """The same as a dict; of the extras only what is installed.

    >>> versions()["engine"].partition(":")[0] in ("native", "reference")
    True
    """
    ours = version_of("driftgp") or "(not installed: run from its source)"
    found = {
        "driftgp": ours,
        "engine": describe(recommended(np.empty((0, 1)), np.empty(0))),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": f"{platform.platform()}, {sys.byteorder}-endian",
    }
    libraries = {name: version_of(name) for name in _dependencies()}
    return found | {name: version for name, version in libraries.items() if version is not None}


def _dependencies() -> list[str]:
    """The libraries of the core, then those of the extras, as the installed package states them."""
    try:
        stated = metadata.requires("driftgp") or []
    except metadata.PackageNotFoundError:
        return ["numpy", "scipy"]
    names = (re.match(r"[\w.-]+", line) for line in stated if not _OURS.search(line))
    return list(dict.fromkeys(found[0] for found in names if found))


def version_of(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
