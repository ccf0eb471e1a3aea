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

    def scores(self, z: np.ndarray, widths: np.ndarray) -> np.ndarray:
        """The scores s of targets with the normal scores z, whose forecasts had these widths; NaN without a target."""
        n, m, v = self.n, self.m, self.v
        there = ~np.isnan(z) & (widths > 0.0) & np.isfinite(widths)
        wider = np.zeros(len(z))  # log of the factor
        for place in np.flatnonzero(there).tolist():
            log_w = math.log(widths[place])
            known, reach = n >= _FIRST, 2.0 * math.sqrt(v) + _SLACK
            off = log_w - m if n else 0.0
            m = m if n else log_w
            n += n < _MEMORY
            clipped = min(max(off, -reach), reach) if known else off
            m += clipped / n
            v += (clipped * clipped - v) / n
            if known and off > reach:
                wider[place] = min(off - reach, 50.0)
        self.n, self.m, self.v = n, m, v
        return np.asarray(z * np.exp(wider))

    def to_json(self) -> list[float]:
        """Everything that is needed to continue."""
        return [self.n, self.m, self.v]

    def restore(self, stored: Any) -> None:
        """Take back what `to_json` gave."""
        n, m, v = array_from(stored, (3,)).tolist()
        if not (0 <= n <= _MEMORY and math.isfinite(m) and 0.0 <= v < np.inf):
            raise ValueError(f"alarms must hold a usual width of forecasts; got {str(stored)[:60]!r}")
        self.n, self.m, self.v = int(n), m, v
