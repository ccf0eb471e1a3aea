"""Compile the C++ library of `driftgp.native`, if a compiler is there; without one the package is pure Python.

Needs jaxlib for its headers. The library has a build for each kind of processor in it and picks one when it is loaded,
so that it may be copied to another machine.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path("src/driftgp/native")
OPTIONS = ["-std=c++17", "-O3", "-fPIC", "-fno-math-errno", "-ffp-contract=fast", "-Wno-psabi"]
X86 = {"x86_64", "amd64", "AMD64"}
# name of each build: doubles in one of its vectors, and the processors it is for
LEVELS = {"plain": ("2", []), "x86_v3": ("4", ["-march=x86-64-v3"]), "x86_v4": ("8", ["-march=x86-64-v4"])}


class CustomBuildHook(BuildHookInterface):
    """Put the library beside its sources, from where both an editable install and a wheel take it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile; where that fails, say so and go on."""
        target = Path(self.root) / SOURCES / "step.so"
        target.unlink(missing_ok=True)
        try:
            build(Path(self.root) / SOURCES, target)
        except (ImportError, OSError, subprocess.CalledProcessError) as error:
            detail = getattr(error, "stderr", None) or error
            self.app.display_warning(
                f"driftgp without its C++ library (models run by JAX alone, more slowly): {detail}"
            )
            return
        build_data["artifacts"].append(f"/{SOURCES / 'step.so'}")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def build(sources: Path, target: Path) -> None:
    """Compile the builds side by side, then link them."""
    import jaxlib

    compiler = shlex.split(os.environ.get("CXX", "")) or [shutil.which("c++") or shutil.which("g++") or "c++"]
    headers = ["-isystem", str(Path(jaxlib.__file__).parent / "include")]
    levels = LEVELS if platform.machine() in X86 else {"plain": LEVELS["plain"]}
    with tempfile.TemporaryDirectory() as folder:
        objects = {name: str(Path(folder) / f"{name}.o") for name in (*levels, "entry")}
        source = ["-c", str(sources / "level.cpp"), "-o"]
        commands = {
            name: [
                *compiler,
                *OPTIONS,
                *march,
                f"-DDRIFTGP_LEVEL={name}",
                f"-DDRIFTGP_LANES={lanes}",
                *source,
                objects[name],
            ]
            for name, (lanes, march) in levels.items()
        }
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = dict(zip(commands, pool.map(_runs, commands.values()), strict=True))
        if not made["plain"]:
            _run(commands["plain"])  # to say why
        for name in levels:
            if not made[name]:  # a compiler that does not know these processors
                del objects[name]
        known = [f"-DDRIFTGP_{name.upper()}" for name in objects]
        _run([*compiler, *OPTIONS, *headers, *known, "-c", str(sources / "entry.cpp"), "-o", objects["entry"]])
        linked = str(Path(folder) / target.name)
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        _run([*compiler, "-shared", *undefined, *objects.values(), "-o", linked])
        shutil.move(linked, target)


def _runs(command: list[str]) -> bool:
    try:
        _run(command)
    except subprocess.CalledProcessError:
        return False
    return True


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (the compiler)
