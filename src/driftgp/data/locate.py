"""Where the files are: the argument `data`, or the directory that the variable DRIFTGP_DATA names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

VARIABLE = "DRIFTGP_DATA"
Location: TypeAlias = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Source:
    """A data set: its title, where its publisher offers it, and the file names it goes by, best first."""

    title: str
    publisher: str
    patterns: tuple[str, ...]


def find(source: Source, data: Location = None) -> list[Path]:
    """The files: `data` itself if it is a file, else the matches of the first pattern with a match."""
    place = _place(source, data)
    if place.is_file():
        return [place]
    for pattern in source.patterns:
        matches = sorted(path for path in place.glob(pattern) if path.is_file())
        if matches:
            return matches
    found = "does not hold it" if place.is_dir() else "does not exist"
    raise FileNotFoundError(f"{source.title}: {place} {found}. {_remedy(source)}")


def _place(source: Source, data: Location) -> Path:
    named = data if data is not None else os.environ.get(VARIABLE)
    if not named:
        raise FileNotFoundError(f"{source.title}: no place to look in was given. {_remedy(source)}")
    return Path(named).expanduser()


def _remedy(source: Source) -> str:
    names = " or ".join(repr(pattern) for pattern in source.patterns)
    return (
        f"Get it from {source.publisher}, put it under its name ({names}) into a directory, "
        f"and pass that directory as `data` (--data) or in the environment variable {VARIABLE}"
    )
