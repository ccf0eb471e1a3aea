"""Time between the rows of a series, in units of its typical step. One corrupt time does no harm.

A row that is older than the last one is late: it is predicted and not learned. A row much later than the one before
is a long pause or a corrupt time. The row after it tells: if it is near that time, there was a pause; if it is not, the
time was corrupt and is forgotten.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from driftgp.base.frames import Column

# Number of positive steps that decide the typical step, which stays from then on.
ENOUGH = 100
_FARTHEST = 1000.0  # typical steps that a row may be later than the one before
_PAUSES = 10.0  # or this many times the longest pause so far
_FIRST = 10  # steps after which the typical step is known well enough to doubt a time
_LATE = 10  # successive rows, in order and all much too late, after which the latest time counts as wrong
_LARGEST = 1e100  # time, in whatever units: differences and their sums stay finite
_ON_GRID, _NEAR = 0.9, 0.01  # share of the steps that are whole multiples of the typical one, and how nearly


class Passed(NamedTuple):
    """Time before each of N rows."""

    spans: np.ndarray  # since the last believed row; NaN means one step, as before the first row
    steps: np.ndarray  # the typical step as known after this row
    grid: np.ndarray  # whether times lie on a grid of such steps, as known after this row
    late: np.ndarray  # rows older than the last one
    jumped: np.ndarray  # rows with a time that still needs confirmation
    at: np.ndarray  # believed times, which never decrease; NaN without times

    @property
    def elapsed(self) -> np.ndarray:
        """The spans in units of the typical step."""
        return in_steps(self.spans, self.steps)

    def rows(self, some: Any) -> "Passed":
        """The same for some of the rows."""
        return Passed(*(array[some] for array in self))


def in_steps(spans: np.ndarray, step: np.ndarray | float) -> np.ndarray:
    """Spans in units of a step; NaN is one of them."""
    return np.where(np.isnan(spans), 1.0, spans / step)


class Clock(NamedTuple):
    """The times of one series so far; an immutable value.

    >>> from driftgp.base import frames
    >>> hours = frames.times("time", np.array(["2024-01-01T00", "2024-01-01T01", "2024-01-01T04"], "datetime64[h]"))
    >>> passed, clock = Clock().passed(hours)
    >>> passed.elapsed.tolist()  # by the third row, the typical step is two hours
    [1.0, 1.0, 1.5]
    >>> passed, _ = clock.passed(frames.times("time", np.array(["2024-01-01T02"], "datetime64[h]")))
    >>> passed.late.tolist()
    [True]
    """

    latest: float = math.nan  # time of the last row that is believed
    before: float = math.nan  # time of the row before, believed or not
    jumped: float = math.nan  # time of the row before, if it was much too far ahead
    late: int = 0  # successive rows that were much too late, each no earlier than the one before
    longest: float = 0.0  # pause
    seen: tuple[float, ...] = ()  # the first steps
    size: float = 1.0  # the typical step: the median of those
    grid: bool = False
    dated: bool | None = None  # whether times are dates; None before the first
    zoned: bool | None = None

    @property
    def fixed(self) -> bool:
        """Whether the typical step is known for good."""
        return len(self.seen) >= ENOUGH

    @property
    def far(self) -> float:
        """Time from a row within which other rows are expected."""
        return _FARTHEST * self.size if len(self.seen) >= _FIRST else math.inf

    @property
    def bound(self) -> float:
        """Longest time between two rows that needs no confirmation by a second row."""
        return max(self.far, _PAUSES * self.longest)

    # ---- rows --------------------------------------------------------------------------------------------------------

    def passed(self, times: Column) -> tuple[Passed, "Clock"]:
        """Time from row to row, and the clock after these rows; refuses times that are missing or of another kind."""
        now = self.checked(times)
        clock = self._replace(dated=times.kind == "times", zoned=times.zoned)
        N = len(now)
        gaps = np.diff(now, prepend=self.before)
        if N and self.fixed and self.before == self.latest and bool(np.all((gaps >= 0.0) & (gaps <= self.bound))):
            no = np.zeros(N, bool)
            after = clock._replace(
                latest=float(now[-1]),
                before=float(now[-1]),
                jumped=math.nan,
                longest=max(self.longest, float(gaps.max())),
            )
            return Passed(gaps, np.full(N, self.size), np.full(N, self.grid), no, no, now), after
        rows = []
        for time in now.tolist():
            span, jumped, clock = clock.row(time)
            rows.append((span, clock.size, clock.grid, span < 0.0, jumped, clock.latest))
        spans, steps, grid, late, jumps, at = np.array(rows, np.float64).reshape(N, 6).T
        return Passed(np.maximum(spans, 0.0), steps, grid > 0.0, late > 0.0, jumps > 0.0, at), clock

    def checked(self, times: Column) -> np.ndarray:
        """The times as numbers, N, or a refusal."""
        if times.kind not in ("times", "numbers"):
            raise ValueError(
                f"time must hold dates or numbers; {times.name} holds {times.kind}. Parse it first, such as with "
                f"pandas.to_datetime"
            )
        now = np.asarray(times.values, np.float64)
        missing, far = np.isnan(now), np.abs(now) > _LARGEST
        if missing.any():
            raise ValueError(f"time must not be missing; {times.name} has none in row {int(missing.argmax())}")
        if far.any():
            row = int(far.argmax())
            raise ValueError(f"time must lie within ±{_LARGEST:g}; {times.name} has {now[row]:g} in row {row}")
        if self.dated is not None and len(now) and self.dated != (times.kind == "times"):
            kind = "dates" if self.dated else "numbers"
            raise ValueError(f"time must hold {kind}, as in the rows before; got {times.kind} in {times.name}")
        if self.zoned is not None and len(now) and times.zoned != self.zoned:
            words = ("with", "without") if self.zoned else ("without", "with")
            raise ValueError(
                f"time must come {words[0]} a time zone, as in the rows before; {times.name} comes {words[1]} one: "
                f"convert it first, such as with tz_localize"
            )
        return now

    def row(self, at: float) -> tuple[float, bool, "Clock"]:
        """Time since the last row that is believed (negative for a late one), whether it jumped, and the clock then."""
        bound, gap, step = self.bound, at - self.latest, at - self.before
        if (self.before < self.latest) != (gap < 0.0):  # from a late row to one in order there is no step
            step = gap
        clock = self._replace(before=at, jumped=math.nan)
        if 0.0 < step <= bound and not self.fixed:
            clock = clock.noted(step)
        if gap > bound and not 0.0 <= at - self.jumped <= bound:
            return clock.size, True, clock._replace(jumped=at)
        late = 0 if not gap < -self.far else self.late + 1 if at >= self.before else 1
        if gap < 0.0 and late < _LATE:
            return gap, False, clock._replace(late=late)
        clock = clock._replace(latest=at, late=0)
        if gap < 0.0:  # the latest time was wrong, and so perhaps was the pause before it
            return max(step, 0.0), True, clock._replace(longest=0.0)
        if math.isfinite(bound):
            clock = clock._replace(longest=max(self.longest, gap))
        return gap, False, clock

    def noted(self, step: float) -> "Clock":
        """The clock with one more step, which updates the typical step and the grid."""
        seen = (*self.seen, step)
        size = float(np.median(seen))
        multiples = np.array(seen) / size
        whole = (np.abs(multiples - np.rint(multiples)) <= _NEAR) & (multiples > 0.5)
        return self._replace(seen=seen, size=size, grid=bool(whole.mean() >= _ON_GRID))

    def untimed(self, elapsed: np.ndarray | None, rows: int) -> tuple[Passed, "Clock"]:
        """The same for rows without a time: each is `elapsed` steps after the row before, or one."""
        spans = np.full(rows, np.nan) if elapsed is None else elapsed * self.size
        no = np.zeros(rows, bool)
        at = self.latest + np.cumsum(np.where(np.isnan(spans), self.size, spans))  # NaN where there never was a time
        passed = Passed(spans, np.full(rows, self.size), no, no, no, at)
        if math.isnan(self.latest) or not rows:
            return passed, self
        return passed, self._replace(latest=float(at[-1]), before=float(at[-1]))

    def spaced(self, spans: np.ndarray) -> tuple[Passed, "Clock"]:
        """The same for rows with spans of time from the user."""
        clock, steps = self, np.empty(len(spans))
        for i, span in enumerate(spans.tolist()):
            if span > 0.0 and not clock.fixed:
                clock = clock.noted(span)
            steps[i] = clock.size
        no, nothing = np.zeros(len(spans), bool), np.full(len(spans), np.nan)
        return Passed(spans, steps, no, no, no, nothing), clock

    # ---- files -------------------------------------------------------------------------------------------------------

    @classmethod
    def restored(cls, stored: Any) -> "Clock":
        """The clock with these fields, in their order; refuses impossible fields."""
        latest, before, jumped, late, longest, seen, size, grid, dated, zoned = stored
        steps = tuple(map(float, seen))
        numbers = [float(each) for each in (latest, before, jumped, longest, size)]
        sound = not any(map(math.isinf, (*numbers, *steps))) and numbers[4] > 0.0 and numbers[3] >= 0.0
        if not sound or len(steps) > ENOUGH or type(late) is not int:
            raise ValueError("its clock has a number that is not finite or out of range")
        if not all(flag in (None, False, True) for flag in (dated, zoned)):
            raise ValueError("its clock has a flag that is not valid")
        return cls(numbers[0], numbers[1], numbers[2], late, numbers[3], steps, numbers[4], grid is True, dated, zoned)
