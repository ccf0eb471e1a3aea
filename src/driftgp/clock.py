"""Time between rows, from the times that they have: in units of the stream's typical step."""

from typing import Any, NamedTuple

import numpy as np

from driftgp import frames
from driftgp.frames import Column

# So many steps from one time to a later one decide which is typical; from then on it stays.
ENOUGH = 100


class Step(NamedTuple):
    """The typical step of a stream: the median of its first steps that are not 0."""

    seen: tuple[float, ...] = ()  # until they are enough
    size: float = 1.0
    fixed: bool = False

    def after(self, passed: np.ndarray) -> "Step":
        """The step once these spans of time were seen as well; NaN and 0 tell nothing."""
        if self.fixed:
            return self
        seen = (*self.seen, *passed[passed > 0.0][: ENOUGH - len(self.seen)].tolist())
        if not seen:
            return self
        size, fixed = float(np.median(seen)), len(seen) == ENOUGH
        return Step(() if fixed else seen, size, fixed)

    def of(self, passed: np.ndarray) -> np.ndarray:
        """Spans in units of the step; NaN, before the first row, is one of them."""
        return np.where(np.isnan(passed), 1.0, passed / self.size)


class Clock(NamedTuple):
    """What one stream knows of its times.

    >>> clock = Clock()
    >>> hours = frames.times("time", np.array(["2024-01-01T00", "2024-01-01T01", "2024-01-01T04"], "datetime64[h]"))
    >>> clock.passed(hours)[0].tolist()
    [1.0, 0.5, 1.5]
    """

    last: float | None = None
    zoned: bool | None = None
    step: Step = Step()

    def passed(self, times: Column) -> tuple[np.ndarray, "Clock"]:
        """Time from row to row, N, and the clock after these rows; refuses times that are missing or run backwards."""
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
        step = self.step.after(spans)
        return step.of(spans), Clock(float(now[-1]) if len(now) else self.last, times.zoned, step)

    def elapsed(self, given: Any) -> tuple[Any, "Clock"]:
        """What the user gives as `elapsed`: numbers as they are, spans of time in units of the typical step."""
        spans = frames.times("elapsed", given)
        if spans is None:
            return frames.targets(given), self
        if spans.kind != "spans":
            raise ValueError(f"elapsed must be numbers or spans of time (such as index.diff()); got {spans.kind}")
        step = self.step.after(spans.values)
        units = step.of(spans.values)
        missing = np.isnan(spans.values)
        if missing[1:].any():
            raise ValueError(
                f"elapsed must not be missing after the first row; it is in row {int(missing[1:].argmax()) + 1}"
            )
        return (units if np.ndim(given) else units[0]), self._replace(step=step)

    def skipped(self, rows: int) -> "Clock":
        """The clock after rows without a time: each is one step after the one before."""
        return self if self.last is None else self._replace(last=self.last + rows * self.step.size)
