"""Compile the C++ engine: `python build_engine.py` does it in place, for this machine.

The library has a build for each kind of processor in it and picks one when a model is made, so that it may be copied to
another machine. It is a plain C library, the same for every version of Python.
"""

import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

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
        return [*self.command, *OPTIONS, *([] if self.system == "win32" else ["-fPIC", "-pthread"])]

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


def library_name(system: str) -> str:
    """What the library is called on a system."""
    return NAMES.get(system, "libdriftgp.so")


def in_place(root: Path) -> Path:
    """The library beside its sources, compiled unless it is newer than they are, whole, and can be loaded here."""
    target = root / ENGINE / library_name(sys.platform)
    if not _usable(target, [root / "build_engine.py", *(root / ENGINE / "cpp").iterdir()]):
        try:
            build(root / ENGINE / "cpp", target, here())
        except (OSError, subprocess.CalledProcessError):
            target.unlink(missing_ok=True)  # it may be from an older version
            raise
    return target


def _usable(library: Path, sources: list[Path]) -> bool:
    checksum = checksum_of(library)
    if os.environ.get("CXX") or not (library.exists() and checksum.exists()):  # another compiler was asked for
        return False
    if library.stat().st_mtime <= max(source.stat().st_mtime for source in sources):
        return False
    if checksum.read_bytes() != _checksum(library):
        return False
    # in a subprocess: loading a library of another system could crash it
    return _runs([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(library)])


def checksum_of(library: Path) -> Path:
    """The file beside a library by which damage is noticed before it is loaded."""
    return library.with_name(f"{library.name}.crc32")


def _checksum(library: Path) -> bytes:
    return b"%08x\n" % zlib.crc32(library.read_bytes())


def build(sources: Path, target: Path, compiler: Compiler) -> None:
    """Compile the builds side by side, then link them."""
    begun = time.time()
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
        linked, beside = str(Path(folder) / target.name), target.with_name(f"{target.name}.{os.getpid()}")
        _run([*compiler.link(sources), *objects.values(), "-o", linked])
        shutil.move(linked, beside)
        os.utime(beside, (begun, begun))  # what is changed from then on is not in it
        checksum_of(target).unlink(missing_ok=True)  # for a moment there is none, which is better than a wrong one
        beside.replace(target)  # at once: whoever uses the one before goes on with it
        checksum_of(target).write_bytes(_checksum(target))


def _runs(command: list[str]) -> bool:
    try:
        _run(command)
    except subprocess.CalledProcessError:
        return False
    return True


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (the compiler, or this Python)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell starts what runs in the background deaf to it
    try:
        in_place(Path(__file__).resolve().parent)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"the C++ engine cannot be compiled: {getattr(error, 'stderr', None) or error}")
