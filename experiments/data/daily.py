"""A daily record as measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from driftgp.data.stream import Floats, Times, frozen


@dataclass(frozen=True, eq=False)
class Daily:
    """One row a day: `days` (N, increasing, with gaps or not), `values` (N, or N×24 by the hour), their unit.

    >>> sales = Daily("shop", ["2024-01-01", "2024-01-03"], [2.0, 3.0], unit="EUR")
    >>> len(sales), sales.days[1] - sales.days[0]
    (2, np.timedelta64(2,'D'))
    """

    name: str
    days: Times  # N
    values: Floats  # N or N×24
    unit: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "days", frozen(self.days, "datetime64[D]"))
        object.__setattr__(self, "values", frozen(self.values, np.float64))
        if self.days.ndim != 1 or len(self.days) != len(self.values):
            raise ValueError(
                f"days and values of {self.name!r} must be of one length: give one row a day "
                f"(got shapes {self.days.shape} and {self.values.shape})"
            )
        late = np.flatnonzero(np.diff(self.days) <= np.timedelta64(0, "D"))
        if late.size:
            before, after = self.days[late[0]], self.days[late[0] + 1]
            raise ValueError(f"days of {self.name!r} must increase, one row a day: {after} follows {before}")

    def __len__(self) -> int:
        return len(self.days)

    def between(self, first: str, last: str) -> Daily:
        """The days from `first` to `last`, both included."""
        kept = (self.days >= np.datetime64(first)) & (self.days <= np.datetime64(last))
        return replace(self, days=self.days[kept], values=self.values[kept])

    def without(self, *days: str) -> Daily:
        """The same record with these days taken out."""
        kept = ~np.isin(self.days, np.array(days, dtype="datetime64[D]"))
        return replace(self, days=self.days[kept], values=self.values[kept])
