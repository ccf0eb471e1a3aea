"""Files that are either whole or not there, and no file in two parts at once."""

import os
import tempfile
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file such that, whatever happens, a reader finds the old bytes or the new ones.

    The bytes go to a temporary file beside it, reach the disk, and then take the name in one step.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to: make it first")
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(_usual_mode(path))
        os.replace(temporary, path)  # noqa: PTH105
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what writes of this file that were killed half-way have left beside it; to be called by its one writer."""
    path = Path(path)
    for part in path.parent.iterdir():
        if part.name.startswith(f".{path.name}.") and part.name.endswith(".part"):
            part.unlink(missing_ok=True)


def apart(parts: Mapping[str, str | os.PathLike[str] | int | None]) -> None:
    """Refuse one file in two parts of a job; a part may be a path, an open file's number, or nothing.

    >>> apart({"input": "rows.csv", "--output": "out.csv"})
    >>> apart({"input": "rows.csv", "--output": "./rows.csv"})
    Traceback (most recent call last):
    ValueError: --output must be another file than input; both are rows.csv, which would be overwritten
    """
    named = [(name, place) for name, place in parts.items() if place is not None]
    for (one, here), (other, there) in combinations(named, 2):
        if _same(here, there):
            raise ValueError(f"{other} must be another file than {one}; both are {here}, which would be overwritten")


def _same(one: str | os.PathLike[str] | int, other: str | os.PathLike[str] | int) -> bool:
    """Whether two names, which may be links, are of one file, whether it is there or not."""
    try:
        return os.path.samestat(os.stat(one), os.stat(other))  # noqa: PTH116 (takes numbers too)
    except OSError:
        return not isinstance(one, int) and not isinstance(other, int) and Path(one).resolve() == Path(other).resolve()


def _usual_mode(path: Path) -> int:
    """Mode of the file that is replaced, or what a new file gets: a temporary one is private."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Have the new name survive a loss of power too, where a folder can be opened (not on Windows)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
