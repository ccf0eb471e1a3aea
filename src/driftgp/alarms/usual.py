"""The usual width of forecasts: a law that has just become wide must not hide the errors that made it wide.

A model that follows quickly widens its intervals with the first large error. The targets after that are well inside
them, and their normal scores z say nothing of the change. So a target is judged as if its law had not become wider than
usual. Let w be the standard deviation of the forecast, and m and v the running mean and variance of log w:

    s = z · max(1, w / exp(m + 2 √v + 0.1))

While forecasts are as wide as usual, s = z.
"""

import math
from typing import Any

import numpy as np

from driftgp.alarms.stored import array_from

_MEMORY = 200  # rows over which what is usual is averaged
_FIRST = 20  # rows by which it is found
_SLACK = 0.1


class UsualWidth:
    """Running mean m and variance v of log w; a jump moves them no faster than usual changes do."""

    def __init__(self) -> None:
        """Start without any rows."""
        self.restart()

    def restart(self) -> None:
        """Forget the usual values."""
        self.n, self.m, self.v = 0, 0.0, 0.0

    def score(self, z: float, width: float) -> float:
        """The score s of a target with the normal score z, whose forecast had this width."""
        if not (width > 0.0 and math.isfinite(width)):
            return z
        log_w, known = math.log(width), self.n >= _FIRST
        reach = 2.0 * math.sqrt(self.v) + _SLACK
        off = log_w - self.m if self.n else 0.0
        self.m = self.m if self.n else log_w
        self.n = min(self.n + 1, _MEMORY)
        clipped = min(max(off, -reach), reach) if known else off
        self.m += clipped / self.n
        self.v += (clipped * clipped - self.v) / self.n
        return z * math.exp(min(off - reach, 50.0)) if known and off > reach else z

    def to_json(self) -> list[float]:
        """Everything that is needed to continue."""
        return [self.n, self.m, self.v]

    def restore(self, stored: Any) -> None:
        """Take back what `to_json` gave."""
        n, m, v = array_from(stored, (3,)).tolist()
        if not (0 <= n <= _MEMORY and math.isfinite(m) and 0.0 <= v < np.inf):
            raise ValueError(f"alarms must hold a usual width of forecasts; got {str(stored)[:60]!r}")
        self.n, self.m, self.v = int(n), m, v
