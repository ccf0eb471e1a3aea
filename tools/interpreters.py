"""Interpreters of this machine that driftgp is for: `python -m tools.interpreters` prints a path per line."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_CLASSIFIER = "Programming Language :: Python :: 3."


def declared() -> list[str]:
    """Versions that pyproject.toml names: "3.11" and so on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [name.rpartition(" ")[2] for name in project["classifiers"] if name.startswith(_CLASSIFIER)]


def found() -> dict[str, Path]:
    """An interpreter for each declared version that is here; the one that runs this stands for its version."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    here: dict[str, Path] = {}
    for version in declared():
        candidates = [Path(sys.executable)] if version == own else _candidates(version)
        if path := next((path for path in candidates if _is(path, version)), None):
            here[version] = path
    return here


def _candidates(version: str) -> Iterator[Path]:
    """On the path, and those of pyenv, whose names on the path need not work."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for folder in [*map(Path, os.get_exec_path()), *sorted(pyenv.glob(f"versions/{version}.*/bin"))]:
        yield folder / f"python{version}"


def _is(path: Path, version: str) -> bool:
    if not path.exists():
        return False
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return answer.stdout.startswith(f"Python {version}.")


if __name__ == "__main__":
    print(*found().values(), sep="\n")
