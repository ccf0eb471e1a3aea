"""Files that are written as a whole or not at all, and a check that no file is used twice in a job."""

import contextlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from driftgp.base.locks import is_at, lock

_ODD = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket", stat.S_ISCHR: "a device"}
_ATTEMPTS = 5  # at a temporary file
_SETTLED = 3600.0  # seconds after which a temporary file is taken for a leftover where there are no locks


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """All of a plain file; a pipe, which may never end, a folder or a device is refused."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _refuse_odd(path, os.fstat(descriptor).st_mode)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def loaded(path: str | os.PathLike[str], read: Callable[[bytes], Any]) -> Any:
    """What a reader makes of the bytes of a file; an error names the file."""
    data = read_whole(path)
    try:
        return read(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that a reader always finds the old bytes or the new ones.

    The bytes go to a temporary file beside it, reach the disk, and then take the name in one step. If the name is a
    link, the file that it points to is written. Leftovers of earlier writes that were killed are removed.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to: make it first")
    if target.exists():
        _refuse_odd(path, target.stat().st_mode)
    try:
        remove_leftovers(target)
        _write(target, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"{reason}; the file is as it was before", str(path)) from error


def _write(path: Path, data: bytes) -> None:
    descriptor, temporary = _part(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            temporary.chmod(_usual_mode(path))
            if os.name == "posix":  # while it is locked: no other writer takes it for a leftover
                temporary.replace(path)
        if os.name != "posix":  # where an open file cannot be renamed
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _part(path: Path) -> tuple[int, Path]:
    """A temporary file beside a file, open and locked for as long as it is."""
    for attempt in range(_ATTEMPTS):
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        part = Path(name)
        # the last attempt is for folders on which there are no locks, and no leftovers are removed
        if os.name != "posix" or attempt == _ATTEMPTS - 1 or (lock(descriptor) and is_at(descriptor, part)):
            break
        os.close(descriptor)  # another writer was just about to remove it as a leftover
        part.unlink(missing_ok=True)
    return descriptor, part


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove leftovers of writes of this file that were killed; never the file of a writer at work."""
    path = Path(path)
    name = re.compile(rf"\.{re.escape(path.name)}\.[^.]+\.part")
    for part in filter(lambda part: name.fullmatch(part.name), path.parent.iterdir()):
        with contextlib.suppress(OSError):  # it is gone, somebody else's, or, on Windows, open
            _remove_abandoned(part)


def _remove_abandoned(part: Path) -> None:
    """Remove a temporary file if nobody is at work on it any more."""
    descriptor = os.open(part, os.O_RDONLY)
    try:
        if os.name == "posix" and lock(descriptor):
            part.unlink()
    finally:
        os.close(descriptor)
    if os.name != "posix" and time.time() - part.stat().st_mtime > _SETTLED:
        part.unlink()


def _refuse_odd(path: str | os.PathLike[str], mode: int) -> None:
    """Refuse what is not a plain file, and say what it is."""
    if not stat.S_ISREG(mode):
        odd = next((name for is_it, name in _ODD.items() if is_it(mode)), "no plain file")
        raise ValueError(f"{os.fspath(path)} is {odd}: give the name of a plain file")


def apart(parts: Mapping[str, str | os.PathLike[str] | int | None]) -> None:
    """Refuse the same file for two parts of a job; a part may be a path, an open file's number, or nothing.

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
    """Mode of the file that is replaced, or of a new file; a temporary file is private."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a loss of power, if a folder can be opened (not on Windows)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
