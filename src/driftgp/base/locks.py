"""One writer per file, and one thread at a time per stream.

The lock of a file is the operating system's own, on a small file beside the one that is written. A second process is
refused, with the number of the first one in the message. It ends with its process, however that ends, so a lock file
left behind by a killed process blocks nobody.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Place of the locked byte: beyond the text, which a refused process must be able to read.
_BYTE = 1 << 20


@contextmanager
def locked(*paths: str | os.PathLike[str]) -> Iterator[None]:
    """Be the only process that writes these files; otherwise refuse, and name the process that writes them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder, "out.csv")):
    ...     [path.name for path in Path(folder).iterdir()]
    ['.out.csv.lock']
    """
    with ExitStack() as stack:
        for path in dict.fromkeys(Path(path).resolve() for path in paths):
            stack.enter_context(_locked(path))
        yield


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    beside = path.with_name(f".{path.name}.lock")
    descriptor = _taken(path, beside)
    try:
        with suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        if sys.platform == "win32":  # which removes no file that is open
            os.close(descriptor)
            beside.unlink(missing_ok=True)
        else:  # first, so that nobody waits on a file without a name
            beside.unlink(missing_ok=True)
            os.close(descriptor)


def _taken(path: Path, beside: Path) -> int:
    """The lock file, open and locked."""
    while True:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not lock(descriptor):
                owner = os.read(descriptor, 64).decode("ascii", "replace").strip() or "unknown"
                raise ValueError(
                    f"{path} is being written by another run, process {owner}: wait until it ends, or give this run a "
                    "file of its own"
                )
            if is_at(descriptor, beside):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its owner removed it between our two steps: it locks nothing any more


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one that has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def lock(descriptor: int) -> bool:
    """Lock an open file until it is closed; False if another one has it, or if there are no locks here."""
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return False
    return True


# ---- threads ---------------------------------------------------------------------------------------------------------


class Shared(Protocol):
    """An object that threads share: a stream, a fleet."""

    lock: Any  # which lets one thread in at a time, and the same one again


def turns(owner: Shared) -> Any:
    """A lock for what threads share, to be kept as its `lock`.

    If a process is forked while another thread holds the lock, the new process has neither this thread nor the rest of
    its writes. There, use of the owner is refused with an error; with a plain lock it would wait for ever.
    """
    _watch_forks()
    _owners.add(owner)
    return threading.RLock()


class _HalfDone:
    """Replaces a lock that was held by a thread of the parent process."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        raise ValueError(
            f"this {self._kind} cannot be used in this process, which was forked while another thread was at work on "
            "it: its state here is half written. Fork while no thread is at work, use the start method 'spawn', or "
            f"load the {self._kind} from a file"
        )

    def __exit__(self, *raised: object) -> None:
        """Nothing is held."""


_owners: WeakSet[Shared] = WeakSet()


@cache
def _watch_forks() -> None:
    """Look at all locks in every process that is forked from now on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    for owner in list(_owners):
        if not isinstance(owner.lock, _HalfDone):
            if owner.lock.acquire(blocking=False):
                owner.lock.release()
            else:
                owner.lock = _HalfDone(type(owner).__name__)
