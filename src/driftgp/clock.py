"""Time between rows, from the times that they have: in units of the stream's typical step."""

from typing import Any, NamedTuple

import numpy as np

from driftgp import checks, frames
from driftgp.frames import Column

# So many steps from one time to a later one decide which is typical; from then on it stays.
ENOUGH = 100


class Step(NamedTuple):
    """The typical step of a stream: the median of its first steps that are not 0."""

    seen: tuple[float, ...] = ()  # until they are enough
    size: float = 1.0
    fixed: bool = False

    def after(self, spans: np.ndarray) -> tuple["Spans", "Step"]:
        """Spans with the step as it is known at each of them, and the step once all of them were seen.

        NaN and 0 tell nothing of the step.
        """
        sizes, seen, fixed = np.full(len(spans), self.size), self.seen, self.fixed
        if not fixed:
            for i in np.flatnonzero(spans > 0.0)[: ENOUGH - len(seen)].tolist():
                seen = (*seen, float(spans[i]))
                sizes[i:] = np.median(seen)
            fixed = len(seen) == ENOUGH
        size = float(sizes[-1]) if len(sizes) else self.size
        return Spans(spans, sizes), Step(() if fixed else seen, size, fixed)


class Spans(NamedTuple):
    """Time that passed before each of N rows; NaN, as before the first one, means one step."""

    spans: np.ndarray
    steps: np.ndarray  # the typical step, as it was known by then

    @property
    def elapsed(self) -> np.ndarray:
        """The same in units of the typical step."""
        return in_steps(self.spans, self.steps)


def in_steps(spans: np.ndarray, step: np.ndarray | float) -> np.ndarray:
    """Spans in units of a step; NaN is one of them."""
    return np.where(np.isnan(spans), 1.0, spans / step)


class Clock(NamedTuple):
    """What one stream knows of its times.

    >>> clock = Clock()
    >>> hours = frames.times("time", np.array(["2024-01-01T00", "2024-01-01T01", "2024-01-01T04"], "datetime64[h]"))
    >>> spans, clock = clock.passed(hours)
    >>> spans.elapsed.tolist()  # by the third row, the typical step is two hours
    [1.0, 1.0, 1.5]
    """

    last: float | None = None
    zoned: bool | None = None
    step: Step = Step()

    def passed(self, times: Column) -> tuple[Spans, "Clock"]:
        """Time from row to row, and the clock after these rows; refuses times that are missing or run backwards."""
        now = np.asarray(times.values, np.float64)
        missing = np.isnan(now)
        if missing.any():
            raise ValueError(f"time must not be missing; {times.name} has none in row {int(missing.argmax())}")
        if self.zoned is not None and times.zoned != self.zoned:
            words = "with" if self.zoned else "without"
            raise ValueError(f"time must come {words} a time zone, as at first; {times.name} has it the other way")
        spans = np.diff(now, prepend=np.nan if self.last is None else self.last)
        if (spans < 0.0).any():
            row = int((spans < 0.0).argmax())
            before = self.last if row == 0 else now[row - 1]
            raise ValueError(
                f"time must not run backwards; row {row} has {times.shown(now[row])} after {times.shown(before)}: "
                f"sort the rows, or leave out those that came too late"
            )
        passed, step = self.step.after(spans)
        return passed, Clock(float(now[-1]) if len(now) else self.last, times.zoned, step)

    def given(self, elapsed: Any, shape: tuple[int, ...]) -> tuple[Spans, "Clock"]:
        """What the user gives as `elapsed` of rows of this shape: numbers of steps, or spans of time."""
        spans = frames.times("elapsed", elapsed)
        if spans is None:
            numbers = np.atleast_1d(checks.elapsed(frames.targets(elapsed), shape))
            return Spans(numbers * self.step.size, np.full(len(numbers), self.step.size)), self
        if spans.kind != "spans":
            raise ValueError(f"elapsed must be numbers or spans of time (such as index.diff()); got {spans.kind}")
        missing = np.isnan(spans.values)
        if missing[1:].any():
            raise ValueError(
                f"elapsed must not be missing after the first row; it is in row {int(missing[1:].argmax()) + 1}"
            )
        known = np.where(missing, 0.0, spans.values)
        checks.elapsed(known if np.ndim(elapsed) else known[0], shape)
        passed, step = self.step.after(np.broadcast_to(spans.values, shape or (1,)))
        return passed, self._replace(step=step)

    def skipped(self, rows: int) -> "Clock":
        """The clock after rows without a time: each is one step after the one before."""
        return self if self.last is None else self._replace(last=self.last + rows * self.step.size)
