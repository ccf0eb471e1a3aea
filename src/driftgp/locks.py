"""One writer per file: a second process is refused, and told who the first one is.

The lock is the operating system's own, on a small file beside the one that is written. It ends with its process,
however that ends, so a lock file that was left behind by a killed process holds nobody up.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Where the locked byte lies: beyond the text, which a process that is refused has to be able to read.
_BYTE = 1 << 20


@contextmanager
def locked(*paths: str | os.PathLike[str]) -> Iterator[None]:
    """Be the only process that writes these files, or refuse with the process that does.

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
            if not _lock(descriptor):
                owner = os.read(descriptor, 64).decode("ascii", "replace").strip() or "unknown"
                raise ValueError(
                    f"{path} is being written by another run, process {owner}: wait until it ends, or give this run a "
                    "file of its own"
                )
            if _same(descriptor, beside):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its owner removed it between our two steps: it locks nothing any more


def _same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
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
