"""What was measured, kept as JSON: one file for each source, with the commands that wrote it."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from driftgp.base.files import write_atomically

FOLDER = Path(__file__).with_name("results")
SOURCES = ("rivals", "default", "parts")
Rows = dict[str, Any]  # by method and stream, or by part


def read(name: str) -> Rows:
    """The contents of a file; empty without a file."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["figures"] if path.exists() else {}


def commands(name: str) -> list[str]:
    """The commands that wrote what a file has."""
    path = FOLDER / f"{name}.json"
    return list(json.loads(path.read_text(encoding="utf-8"))["made"].values()) if path.exists() else []


def add(name: str, key: str, figures: Rows, *, merge: bool = True) -> None:
    """Put figures under a key of a file: beside those that it has, or in their place."""
    path = FOLDER / f"{name}.json"
    command = f"python -m benchmarks.defaults {shlex.join(sys.argv[1:])}".strip()
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"made": {}, "figures": {}}
    kept["made"][key] = command
    kept["figures"][key] = (kept["figures"].get(key, {}) if merge else {}) | rounded(figures)
    FOLDER.mkdir(exist_ok=True)
    lines = ",\n".join(f"{json.dumps(key)}: {_lines(value)}" for key, value in kept["figures"].items())
    text = f'{{"made": {json.dumps(kept["made"], indent=0)},\n"figures": {{\n{lines}\n}}}}\n'
    write_atomically(path, text.encode())


def _lines(figures: Rows) -> str:
    """One line for each stream of a method, so that a change of one is a change of one line."""
    inner = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in figures.items())
    return f"{{\n{inner}}}"


def rounded(value: Any) -> Any:
    """Numbers with six digits.

    >>> rounded({"mse": [1.23456789, 2]})
    {'mse': [1.23457, 2]}
    """
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
