"""Build the source archive and every wheel into dist/, on one machine: `make wheels`.

The library is compiled for each platform by Zig's C++ compiler, which brings the headers and the C libraries of all of
them and links the C++ standard library into ours. Every wheel is for all versions of Python.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import build_engine

ROOT = Path(__file__).resolve().parent.parent
# platform tag of the wheel: what Zig calls the platform (the version is the oldest that the library runs on)
TARGETS = {
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
    "macosx_10_13_x86_64": "x86_64-macos.10.13",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}
SYSTEMS = {"linux": "linux", "macos": "darwin", "windows": "win32"}  # as sys.platform says it
for variable in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
    os.environ.setdefault(variable, str(ROOT / ".cache/zig"))
MARCH = {f"-march=x86-64-{level}": f"-march=x86_64_{level}" for level in ("v3", "v4")}


def compiler(target: str, workers: int) -> build_engine.Compiler:
    """Zig's C++ compiler for one of the targets."""
    machine, system, *_ = target.split("-")
    command = [sys.executable, "-m", "ziglang", "c++", "-target", target]
    name = SYSTEMS[system.partition(".")[0]]
    if name == "darwin":  # where Zig's linker cannot hide the C++ library's operators (allocation.hpp)
        command += ["-DDRIFTGP_OWN_NEW", "-fvisibility-global-new-delete=force-hidden"]
    return build_engine.Compiler(command, machine, name, MARCH, strip=True, workers=workers)


def package(kind: str, wheel: str | None = None) -> Path:
    """Have hatchling make one file in dist/."""
    before = set((ROOT / "dist").iterdir())
    environment = os.environ | ({} if wheel is None else {"DRIFTGP_WHEEL": wheel})
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", "dist"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    (made,) = set((ROOT / "dist").iterdir()) - before
    return made


def platform_wheel(tag: str, workers: int) -> Path:
    """Compile for a platform and pack the library."""
    made = compiler(TARGETS[tag], workers)
    with TemporaryDirectory() as folder:
        library = Path(folder) / build_engine.library_name(made.system)
        build_engine.build(ROOT / build_engine.ENGINE / "cpp", library, made)
        return package("wheel", f"{tag}={library}")


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A command that takes platforms."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "tags", nargs="*", type=_known, default=[*TARGETS], help="platform tags; all where none is named"
    )
    return parser


def _known(tag: str) -> str:
    if tag not in TARGETS:
        raise argparse.ArgumentTypeError(f"no such platform: {tag}; there are {', '.join(TARGETS)}")
    return tag


def main() -> None:
    """Build all, or the platforms that are named."""
    parser = arguments(__doc__)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="compilers at the same time")
    asked = parser.parse_args()
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    (ROOT / "dist").mkdir()
    begun = time.perf_counter()

    def say(made: Path) -> None:
        print(f"{time.perf_counter() - begun:6.1f} s  {made.stat().st_size / 1e6:5.2f} MB  {made.name}", flush=True)

    say(package("sdist"))
    say(package("wheel", "any"))
    for tag in asked.tags:
        say(platform_wheel(tag, asked.workers))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd))}\n{error.stderr or ''}")
