"""The progress of a long call, on standard error."""

import math
import sys
import time
from types import TracebackType

EVERY = 0.2  # seconds between two lines


class Progress:
    """One line on standard error that is rewritten: the rows done, and the time left.

    >>> with Progress(200, "rows", shown=False) as progress:
    ...     progress.to(100)
    >>> progress.line(10.0)
    '100 of 200 rows, 50%, 10 s, about 10 s left'
    """

    def __init__(self, total: int, what: str, *, shown: bool = True) -> None:
        """Begin with nothing done of `total`; `shown` is False for a call that says nothing."""
        self.total, self.what, self.shown = total, what, shown
        self.done, self._width = 0, 0
        self._began, self._last = time.monotonic(), -math.inf

    def to(self, done: int) -> None:
        """Show this number of steps as done."""
        self.done = done
        now = time.monotonic()
        if self.shown and (now - self._last >= EVERY or done >= self.total):
            self._last, line = now, self.line(now - self._began)
            sys.stderr.write(f"\r{line:<{self._width}}")
            sys.stderr.flush()
            self._width = len(line)

    def line(self, seconds: float) -> str:
        """The line that is shown after this number of seconds."""
        share = self.done / max(self.total, 1)
        left = f", about {seconds * (1.0 / share - 1.0):.0f} s left" if 0.0 < share < 1.0 else ""
        return f"{self.done} of {self.total} {self.what}, {share:.0%}, {seconds:.0f} s{left}"

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            sys.stderr.write("\n")
