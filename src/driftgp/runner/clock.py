"""Time between the rows of a series, in which one corrupt time stamp does no harm.

A row much later than the one before is a long pause or a corrupt time. The row after it tells: if it is near that time,
there was a pause; if it is not, the time was corrupt and is forgotten.
"""

import math
import statistics
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

import numpy as np

from driftgp.runner.stored import number, numbers, whole

FARTHEST = 1000.0  # usual times between rows that a row may be later than the one before
_PAUSES = 10.0  # or so many of the longest pauses that there have been
_FIRST = 10  # times between rows by which the usual one is known
_MOST = 100  # and by which it is known for good
_LATE = 10  # rows running, in order and all much too late, after which it is the latest time so far that was wrong


@dataclass
class Clock:
    """The latest time of a series, and what is known of its times.

    >>> clock = Clock()
    >>> since, jumps = clock.since(np.array([*np.arange(20.0), 1e9, 21.0, 22.0]))
    >>> since[-3:].tolist(), np.flatnonzero(jumps).tolist()
    ([1.0, 2.0, 1.0], [20])
    """

    latest: float = math.nan  # time of the latest row that is believed
    before: float = math.nan  # time of the row before, whatever it was
    jumped: float = math.nan  # time of the row before, if it was much too far ahead
    late: int = 0  # rows running that were much too late, each no earlier than the one before
    longest: float = 0.0  # pause
    gaps: list[float] = field(default_factory=list)  # the first times between rows

    @property
    def far(self) -> float:
        """Time from a row within which the others are to be expected."""
        return FARTHEST * statistics.median(self.gaps) if len(self.gaps) >= _FIRST else math.inf

    @property
    def bound(self) -> float:
        """Time that may pass between two rows before a second one has to confirm it."""
        return max(self.far, _PAUSES * self.longest)

    def since(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Time of each row since the latest one before it, negative where it comes late; and which rows have jumped."""
        gaps = np.diff(at, prepend=self.before)
        usual = len(self.gaps) == _MOST and self.before == self.latest
        if np.isnan(at).all() or (usual and np.all((gaps >= 0.0) & (gaps <= self.bound))):
            self.latest = self.before = float(at[-1])
            self.longest = max(self.longest, float(gaps.max()))
            return gaps, np.zeros(len(at), bool)
        rows = [self._row(time) for time in at.tolist()]
        return np.array([gap for gap, _ in rows]), np.array([jump for _, jump in rows])

    def _row(self, at: float) -> tuple[float, bool]:
        bound, before, jumped, gap = self.bound, self.before, self.jumped, at - self.latest
        self.before, self.jumped = at, math.nan
        if 0.0 < at - before <= bound and len(self.gaps) < _MOST:
            self.gaps.append(at - before)
        if gap > bound and not 0.0 <= at - jumped <= bound:
            self.jumped = at
            return statistics.median(self.gaps), True
        self.late = 0 if not gap < -self.far else self.late + 1 if at >= before else 1
        if gap < 0.0 and self.late < _LATE:
            return gap, False
        self.latest, self.late = at, 0
        if gap < 0.0:  # the latest time was wrong, and so perhaps was the pause before it
            self.longest = 0.0
            return at - before, True
        if math.isfinite(bound):
            self.longest = max(self.longest, gap)
        return gap, False

    # ---- checkpoints

    def to_json(self) -> dict[str, Any]:
        """The numbers, as JSON holds them."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """The clock that `to_json` gave."""
        read: dict[Any, Any] = {int: whole, float: number}
        return cls(**{each.name: read.get(each.type, numbers)(stored[each.name]) for each in fields(cls)})
