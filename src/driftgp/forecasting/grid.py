"""The times of the rows: so many seconds apart, or so many months, which are not all of one length."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from driftgp.season import DAY, MONTH, usual_step

_SHORTEST_MONTH = 27.5 * DAY


@dataclass(frozen=True)
class Grid:
    """Row i is at first + i steps."""

    first: datetime
    step: float  # seconds; of months, in the mean
    months: int = 0  # of a step; 0 where it is a number of seconds

    @classmethod
    def of(cls, at: np.ndarray, frequency: timedelta | None) -> "Grid":
        """The grid of a series with these times, by the usual time between them unless a frequency is given.

        >>> Grid.of(np.array(["2024-01-31", "2024-02-29", "2024-03-31"], "datetime64[us]"), None).months
        1
        """
        first = at[0].item()
        if frequency is not None:
            return cls(first, frequency.total_seconds())
        step = usual_step((at - at[0]) / np.timedelta64(1, "s"))
        if step is None:
            raise ValueError(
                f"frequency cannot be inferred from {len(at)} times: give frequency=timedelta(hours=1), or "
                "what it is, or more rows at once"
            )
        if step >= _SHORTEST_MONTH:
            months = max(round(step / MONTH), 1)
            monthly = cls(first, months * MONTH, months)
            if np.all(np.abs(monthly.times(monthly.rows(at)) - at) < np.timedelta64(1, "D")):
                return monthly
        return cls(first, step)

    def rows(self, at: np.ndarray) -> np.ndarray:
        """Numbers of the rows that are nearest to these times."""
        if self.months:
            since = at.astype("datetime64[M]") - np.datetime64(self.first, "us").astype("datetime64[M]")
            return np.round(since.astype(np.int64) / self.months).astype(np.int64)
        since = (at - np.datetime64(self.first, "us")) / np.timedelta64(1, "s")
        return np.round(since / self.step).astype(np.int64)

    def times(self, rows: np.ndarray) -> np.ndarray:
        """Times of rows. Of months: the same day, or the last one where there is no such day, or where it was that.

        >>> Grid(datetime(2023, 11, 30), MONTH, 1).times(np.array([1, 3])).astype("datetime64[D]").tolist()
        [datetime.date(2023, 12, 31), datetime.date(2024, 2, 29)]
        """
        first = np.datetime64(self.first, "us")
        if not self.months:
            return first + (rows * self.step * 1e6).astype("timedelta64[us]")
        month = first.astype("datetime64[M]")
        into = first - month  # from the first day of its month
        after = month + (rows * self.months).astype("timedelta64[M]")
        last = (after + 1).astype("datetime64[D]") - after.astype("datetime64[D]") - np.timedelta64(1, "D")
        day = into.astype("timedelta64[D]")
        ends = first.astype("datetime64[D]") + 1 == (month + 1).astype("datetime64[D]")
        days = last if ends else np.minimum(last, day)
        return (after.astype("datetime64[D]") + days).astype("datetime64[us]") + (into - day)

    def __str__(self) -> str:
        """The step, for messages."""
        return f"{self.months} months" if self.months else str(timedelta(seconds=self.step))


def regular(at: np.ndarray) -> bool:
    """Whether times follow one another by one step, with none left out: no business days.

    >>> regular(np.arange("2024-01", "2024-06", dtype="datetime64[M]").astype("datetime64[us]"))
    True
    >>> regular(np.array(["2024-01-04", "2024-01-05", "2024-01-08", "2024-01-09"], "datetime64[us]"))
    False
    """
    try:
        rows = Grid.of(at, None).rows(at)
    except ValueError:
        return False
    return bool(np.all(np.diff(rows) == 1))
