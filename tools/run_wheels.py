"""Install wheels into empty environments, and run their libraries, other platforms' under an emulator."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from tools import interpreters
from tools.wheels import TARGETS

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
EMULATED = ROOT / ".cache/emulated"  # files of other systems, by `make emulators`
HERE = "manylinux_2_17_x86_64"
PIP = ("-m", "pip", "--disable-pip-version-check")
# Largest relative differences between platforms (steps.py).
LIMITS = {"forecasts": 1e-8, "states after a step": 1e-8, "forecasts after a step": 1e-8, "toy MSE, relative": 0.01}


class Failed(Exception):
    """Something did not do what it should."""


def run(*command: object, cwd: Path | None = None, **variables: str) -> str:
    """Run a command, in an environment of which Python knows nothing, and return what it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, env=_empty() | variables, cwd=cwd, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def _empty() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DRIFTGP"))}


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
    if HERE not in wheels:
        print(f"not run  anything: the others are compared with {HERE}, which is not in dist/")
        return
    pythons = interpreters.found()
    for version in interpreters.declared():
        name = f"{HERE}, Python {version}"
        if version in pythons:
            yield name, partial(installed, pythons[version], wheels[HERE], folder / f"native-{version}", "native")
        else:
            print(f"not run  {name}: no such interpreter here")
    own, interpreter = next(iter(pythons.items()))
    yield f"any, Python {own}", partial(installed, interpreter, wheels["any"], folder / "pure", "reference")
    python = folder / f"native-{own}/bin/python"
    yield f"{HERE}, C example", partial(example, wheels, HERE, [], folder, python)
    for tag in (tag for tag in TARGETS if tag in wheels and tag != HERE):
        emulator = emulators(tag)
        if isinstance(emulator, str):
            print(f"not run  {tag}: {emulator}")
            continue
        yield f"{tag}, C example", partial(example, wheels, tag, emulator, folder, python)
        if tag == "manylinux_2_17_aarch64":
            yield f"{tag}, Python", partial(emulated_python, wheels[tag], emulator, folder / "arm64")


# ---- with Python -----------------------------------------------------------------------------------------------------


def installed(interpreter: Path, wheel: Path, place: Path, kind: str) -> str:
    """Install a wheel with what it asks for into an empty environment; run the smoke test and the command."""
    run(interpreter, "-m", "venv", place)
    python = place / "bin/python"
    if kind == "native":
        among = ("--no-index", "--no-deps", "--find-links", wheel.parent, "--dest", place)
        chosen = run(python, *PIP, "download", *among, "driftgp")
        if wheel.name not in chosen:
            raise Failed(f"of all wheels pip takes another one: {chosen}")
    run(python, *PIP, "install", "--quiet", wheel)
    names = {package["name"] for package in json.loads(run(python, *PIP, "list", "--format", "json"))}
    names -= {"pip", "setuptools"}
    if names != {"driftgp", "numpy", "scipy"}:
        raise Failed(f"the environment has {sorted(names)}")
    package = next(place.glob("lib/python*/site-packages/driftgp"))
    size = sum(file.stat().st_size for file in package.rglob("*") if file.is_file() and file.suffix != ".pyc")
    said = run(python, TOOLS / "smoke.py", kind, cwd=place)
    version = run(place / "bin/driftgp", "--version", cwd=place)
    if f"engine {kind}" not in version:
        raise Failed(f"driftgp --version says: {version}")
    demo = [str(place / "bin/driftgp"), "demo"]
    refused = subprocess.run(demo, capture_output=True, text=True, env=_empty(), check=False).stderr
    if 'pip install "driftgp[cli]"' not in refused or refused.count("\n") != 1:
        raise Failed(f"driftgp demo without the extra says: {refused}")
    return f"{', '.join(sorted(names))}; driftgp has {size / 1e6:.2f} MB; {said}"


def emulated_python(wheel: Path, emulator: list[str], place: Path) -> str:
    """What pip gives to 64-bit ARM, and the smoke test by a Python of that processor."""
    python = next((EMULATED / "arm64").glob("usr/bin/python3.?*"))
    version = python.name.removeprefix("python")
    accepted = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 27, 28)]  # as its pip would say itself
    options = ("--quiet", "--only-binary=:all:", "--implementation=cp", f"--python-version={version}", *accepted)
    run(sys.executable, *PIP, "install", *options, "--target", place, wheel)
    return run(*emulator, python, TOOLS / "smoke.py", "native", PYTHONPATH=str(place))


# ---- with C ----------------------------------------------------------------------------------------------------------


def emulators(tag: str) -> list[str] | str:
    """How a program of a platform is started here, or why it cannot be."""
    if tag.startswith("macosx"):
        return "there is no emulator of macOS here"
    if tag == "win_amd64":
        wine = shutil.which("wine64") or shutil.which("wine64", path="/usr/lib/wine")
        return [wine] if wine else "no wine64: make emulators"
    machine = "aarch64" if tag.endswith("aarch64") else "x86_64"
    musl = tag.startswith("musl")
    root = EMULATED / ("musl" if musl else "arm64")
    loader = root / "lib" / (f"ld-musl-{machine}.so.1" if musl else "ld-linux-aarch64.so.1")
    if not loader.exists():
        return f"no {loader.name}: make emulators"
    if machine == "x86_64":
        return [str(loader)]  # started by its loader, a program finds musl wherever that is
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    return [emulator, "-L", str(root)] if emulator else "no qemu-aarch64: make emulators"


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
    for toy in sorted(path.name for path in place.glob("toy*")):
        run(*program, "start", f"{toy}/model.bin", f"{toy}/warmup.bin", f"{toy}/state.bin", cwd=place)
        files = (f"{toy}/{name}.bin" for name in ("model", "rows", "state", "forecasts"))
        run(*program, "run", *files, cwd=place)
    found = json.loads(run(python, TOOLS / "steps.py", "compare", folder / HERE, place))
    if not all(found[name] <= limit for name, limit in LIMITS.items()):
        raise Failed(f"it differs from {HERE}: {found}")
    return ", ".join(f"{name} {number:.3g}" for name, number in found.items())


def compile_example(tag: str, place: Path) -> None:
    """The C example for a platform, in the folder where its library and header are."""
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[tag], "-std=c99", "-O2", "-Wall"]
    options = ["-dynamic"] if tag.startswith("musl") else []
    where = [] if tag.startswith("win") else ["-Wl,-rpath,$ORIGIN"]
    source = ROOT / "examples/c/online.c"
    library = place / "driftgp.dll" if tag.startswith("win") else "-ldriftgp"
    name = "online.exe" if tag.startswith("win") else "online"
    run(*compiler, *options, f"-I{place}", source, f"-L{place}", library, *where, "-o", place / name)
