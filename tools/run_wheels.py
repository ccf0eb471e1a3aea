"""Install wheels into empty environments, and run their libraries, other platforms' under an emulator."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from wheels import TARGETS

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
MUSL = ROOT / ".cache/musl"  # Debian's packages of musl, unpacked
HERE = "manylinux_2_17_x86_64"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
# Largest relative differences between platforms (steps.py).
LIMITS = {"forecasts": 1e-8, "states after a step": 1e-8, "forecasts after a step": 1e-8, "toy MSE, relative": 0.01}


class Failed(Exception):
    """Something did not do what it should."""


def run(*command: object, **options: object) -> str:
    """Run a command, in an environment of which Python knows nothing, and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DRIFTGP"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise Failed(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return str(done.stdout).strip()


def main(wheels: Mapping[str, Path]) -> int:
    """Do all of it; the number of failures."""
    failures = 0
    with TemporaryDirectory() as folder:
        for name, work in jobs(wheels, Path(folder)):
            try:
                print(f"ran      {name}: {work()}", flush=True)
            except Failed as error:
                failures += 1
                print(f"FAILED   {name}: {error}", flush=True)
    return failures


def jobs(wheels: Mapping[str, Path], folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """What can be run here, and a word on what cannot."""
    pythons = dict(interpreters())
    for version in VERSIONS:
        if version in pythons:
            place = folder / f"native-{version}"
            yield (
                f"{HERE}, Python {version}",
                lambda v=version, p=place: installed(pythons[v], wheels[HERE], p, "native"),
            )
        else:
            print(f"not run  {HERE}, Python {version}: no such interpreter here")
    first = next(iter(pythons))
    yield f"any, Python {first}", lambda: installed(pythons[first], wheels["any"], folder / "pure", "reference")
    python = folder / f"native-{first}/bin/python"
    yield f"{HERE}, C example", lambda: example(wheels, HERE, [], folder, python)
    for tag in TARGETS:
        if tag == HERE:
            continue
        emulator = emulators(tag)
        if isinstance(emulator, str):
            print(f"not run  {tag}: {emulator}")
        else:
            yield f"{tag}, C example", lambda t=tag, e=emulator: example(wheels, t, e, folder, python)


def interpreters() -> Iterator[tuple[str, str]]:
    """Versions of Python on this machine, the one that runs this first."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    yield own, sys.executable
    for version in VERSIONS:
        found = shutil.which(f"python{version}")
        if found and version != own:
            answer = subprocess.run([found, "--version"], capture_output=True, check=False)
            if answer.returncode == 0:  # some machines have names of interpreters that are not installed
                yield version, found


def installed(interpreter: str, wheel: Path, place: Path, kind: str) -> str:
    """Install a wheel with what it asks for into an empty environment; run the smoke test and the command."""
    run(interpreter, "-m", "venv", place)
    python = place / "bin/python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    listed = json.loads(run(python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"))
    names = {package["name"] for package in listed} - {"pip", "setuptools"}
    if names != {"driftgp", "numpy", "scipy"}:
        raise Failed(f"the environment has {sorted(names)}")
    package = next(place.glob("lib/python*/site-packages/driftgp"))
    size = sum(file.stat().st_size for file in package.rglob("*") if file.is_file() and file.suffix != ".pyc")
    said = run(python, TOOLS / "smoke.py", kind, cwd=place)
    version = run(place / "bin/driftgp", "--version", cwd=place)
    if f"engine {kind}" not in version:
        raise Failed(f"driftgp --version says: {version}")
    refused = subprocess.run([place / "bin/driftgp", "demo"], capture_output=True, text=True, check=False).stderr
    if 'pip install "driftgp[cli]"' not in refused or refused.count("\n") != 1:
        raise Failed(f"driftgp demo without the extra says: {refused}")
    return f"{', '.join(sorted(names))}; driftgp has {size / 1e6:.2f} MB; {said}"


def emulators(tag: str) -> list[str] | str:
    """How a program of a platform is started here, or why it cannot be."""
    if tag.startswith("macosx"):
        return "there is no emulator of macOS here"
    if tag == "win_amd64":
        wine = shutil.which("wine64") or shutil.which("wine64", path="/usr/lib/wine")
        return [wine] if wine else "no wine64 (Debian: wine64)"
    machine = "aarch64" if tag.endswith("aarch64") else "x86_64"
    musl = tag.startswith("musl")
    root = MUSL if musl else Path("/usr/aarch64-linux-gnu")
    loader = root / "lib" / (f"ld-musl-{machine}.so.1" if musl else "ld-linux-aarch64.so.1")
    if not loader.exists():
        return f"no {loader.name} in {loader.parent} (RELEASING.md says how to get it)"
    if machine == "x86_64":
        return [str(loader)]  # started by its loader, a program finds musl wherever that is
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    return [emulator, "-L", str(root)] if emulator else "no qemu-aarch64-static (Debian: qemu-user-static)"


def example(wheels: Mapping[str, Path], tag: str, emulator: list[str], folder: Path, python: Path) -> str:
    """Compile the C example against a wheel's library, run it on stored states, and compare with this machine's."""
    place = folder / tag
    stored = folder / "stored"
    if not stored.exists():
        run(python, TOOLS / "steps.py", "write", stored)
    shutil.copytree(stored, place)
    with ZipFile(wheels[tag]) as wheel:
        for name in wheel.namelist():
            if "libdriftgp" in name or name.endswith((".dll", "driftgp.h")):
                (place / Path(name).name).write_bytes(wheel.read(name))
    compile_example(tag, place)
    program = [*emulator, place / ("online.exe" if tag.startswith("win") else "online")]
    run(*program, "run", "steps/model.bin", "steps/rows.bin", "steps/state.bin", "steps/forecasts.bin", cwd=place)
    run(*program, "start", "toy/model.bin", "toy/warmup.bin", "toy/state.bin", cwd=place)
    run(*program, "run", "toy/model.bin", "toy/rows.bin", "toy/state.bin", "toy/forecasts.bin", cwd=place)
    found = json.loads(run(python, TOOLS / "steps.py", "compare", folder / HERE, place))
    if not all(found[name] <= limit for name, limit in LIMITS.items()):
        raise Failed(f"it differs from {HERE}: {found}")
    return ", ".join(f"{name} {number:.3g}" for name, number in found.items())


def compile_example(tag: str, place: Path) -> None:
    """The C example for a platform, in the folder where its library and header are."""
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[tag], "-std=c99", "-O2", "-Wall"]
    options = {"musl": ["-dynamic"], "win_": []}.get(tag[:4], [])
    where = [] if tag.startswith("win") else ["-Wl,-rpath,$ORIGIN"]
    source = ROOT / "examples/c/online.c"
    library = place / "driftgp.dll" if tag.startswith("win") else "-ldriftgp"
    name = "online.exe" if tag.startswith("win") else "online"
    run(*compiler, *options, f"-I{place}", source, f"-L{place}", library, *where, "-o", place / name)
