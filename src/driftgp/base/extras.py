"""The error for a missing library of an extra."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(room: str, extra: str) -> Iterator[None]:
    """Import libraries of an extra inside; where one is missing, the error says what to install.

    >>> with needs("driftgp.sea", extra="ships"):
    ...     import anchors
    Traceback (most recent call last):
    ModuleNotFoundError: driftgp.sea needs anchors, which is not installed: pip install "driftgp[ships]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "driftgp").partition(".")[0]
        if missing == "driftgp":  # a mistake of ours, not a missing library
            raise
        message = f'{room} needs {missing}, which is not installed: pip install "driftgp[{extra}]"'
        raise ModuleNotFoundError(message, name=error.name) from error
