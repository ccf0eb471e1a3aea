"""Compile the C++ engine, if a compiler is there; without one the package is pure Python.

The library has a build for each kind of processor in it and picks one when a model is made, so that it may be copied to
another machine. It is a plain C library, the same for every version of Python: wheels are tagged py3-none-<platform>.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

ENGINE = Path("src/driftgp/engine")
NAMES = {"darwin": "libdriftgp.dylib", "win32": "driftgp.dll"}  # elsewhere libdriftgp.so
OPTIONS = ["-std=c++17", "-O3", "-fno-math-errno", "-ffp-contract=fast", "-fvisibility=hidden", "-Wno-psabi"]
X86 = {"x86_64", "amd64", "AMD64"}
# name of each build: doubles in one of its vectors, and the processors it is for
LEVELS = {"plain": ("2", []), "x86_v3": ("4", ["-march=x86-64-v3"]), "x86_v4": ("8", ["-march=x86-64-v4"])}


@dataclass(frozen=True)
class Compiler:
    """A compiler, and what it compiles for."""

    command: list[str]
    machine: str
    system: str  # as sys.platform says it
    march: dict[str, str] = field(default_factory=dict)  # what this compiler calls the processors of LEVELS
    strip: bool = False
    workers: int = os.cpu_count() or 1

    @property
    def options(self) -> list[str]:
        """Options for every source."""
        return [*self.command, *OPTIONS, *([] if self.system == "win32" else ["-fPIC"])]

    @property
    def levels(self) -> dict[str, list[str]]:
        """Options of each build."""
        return {
            name: [*(self.march.get(m, m) for m in march), f"-DDRIFTGP_LEVEL={name}", f"-DDRIFTGP_LANES={lanes}"]
            for name, (lanes, march) in LEVELS.items()
            if name == "plain" or self.machine in X86
        }

    def link(self, sources: Path) -> list[str]:
        """Command to which objects and the name of the library are added."""
        own = {
            "linux": [f"-Wl,--version-script={sources / 'exports.map'}"],
            "darwin": ["-Wl,-install_name,@rpath/libdriftgp.dylib"],  # else it is the folder in which it was linked
        }
        return [*self.command, "-shared", *own.get(self.system, []), *(["-s"] if self.strip else [])]


def here() -> Compiler:
    """The compiler of this machine, for this machine."""
    command = shlex.split(os.environ.get("CXX", "")) or [shutil.which("c++") or shutil.which("g++") or "c++"]
    return Compiler(command, platform.machine(), sys.platform)


class CustomBuildHook(BuildHookInterface):
    """Compile the library into a wheel, or beside its sources for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; where that fails, say so and go on. DRIFTGP_WHEEL, of tools/wheels.py, has "tag=library" instead."""
        if "DRIFTGP_WHEEL" in os.environ:
            tag, _, library = os.environ["DRIFTGP_WHEEL"].partition("=")
            self._put(build_data, tag, Path(library) if library else None)
            return
        self._folder = tempfile.TemporaryDirectory()
        name = NAMES.get(sys.platform, "libdriftgp.so")
        target = (Path(self.root) / ENGINE if version == "editable" else Path(self._folder.name)) / name
        try:
            build(Path(self.root) / ENGINE / "cpp", target, here())
        except (OSError, subprocess.CalledProcessError) as error:
            target.unlink(missing_ok=True)  # of an earlier time, and of another version perhaps
            detail = getattr(error, "stderr", None) or error
            self.app.display_warning(f"driftgp without its C++ engine (models run in NumPy, more slowly): {detail}")
        else:
            tag = next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))
            self._put(build_data, tag, None if version == "editable" else target)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was compiled: the wheel has it."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _put(self, build_data: dict[str, Any], tag: str, library: Path | None) -> None:
        build_data["tag"] = f"py3-none-{tag}"
        build_data["pure_python"] = tag == "any"
        if library is not None:
            build_data["force_include"][str(library)] = f"driftgp/engine/{library.name}"


def build(sources: Path, target: Path, compiler: Compiler) -> None:
    """Compile the builds side by side, then link them."""
    with tempfile.TemporaryDirectory() as folder:
        # in the order of linking: of a function of the standard library that several builds have, the first is taken,
        # and it has to run on every processor
        objects = {name: str(Path(folder) / f"{name}.o") for name in ("entry", *compiler.levels)}
        commands = {
            name: [*compiler.options, *level, "-c", str(sources / "level.cpp"), "-o", objects[name]]
            for name, level in compiler.levels.items()
        }
        with ThreadPoolExecutor(compiler.workers) as pool:
            made = dict(zip(commands, pool.map(_runs, commands.values()), strict=True))
        if not made["plain"]:
            _run(commands["plain"])  # to say why
        for name in compiler.levels:
            if not made[name]:  # a compiler that does not know these processors
                del objects[name]
        known = [f"-DDRIFTGP_HAS_{name.upper()}" for name in objects]
        _run([*compiler.options, *known, "-c", str(sources / "entry.cpp"), "-o", objects["entry"]])
        linked, beside = str(Path(folder) / target.name), target.with_name(f"{target.name}.new")
        _run([*compiler.link(sources), *objects.values(), "-o", linked])
        shutil.move(linked, beside)
        beside.replace(target)  # at once: whoever uses the one before goes on with it


def _runs(command: list[str]) -> bool:
    try:
        _run(command)
    except subprocess.CalledProcessError:
        return False
    return True


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (the compiler)
