"""The times of a fleet's keys: how long ago each one's last row was."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from driftgp import checks
from driftgp.fleet.keys import Key


class Clock:
    """Time of the last row of each key, as far as times are given."""

    def __init__(self) -> None:
        """Know of no key."""
        self._last: dict[Key, float] = {}

    def last(self, keys: Iterable[Key]) -> np.ndarray:
        """Time of each key's last row; NaN where the key is unknown or no time was given."""
        return np.array([self._last.get(key, np.nan) for key in keys], float)

    def note(self, keys: list[Key], times: np.ndarray) -> None:
        """Remember the time of each key's last row, where it is known."""
        known = np.flatnonzero(~np.isnan(times)).tolist()
        self._last.update({keys[i]: float(times[i]) for i in known})

    def forget(self, keys: Iterable[Key]) -> None:
        """Remember nothing of some keys."""
        for key in keys:
            self._last.pop(key, None)

    def elapsed(self, keys: list[Key], which: np.ndarray, time: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
        """Time since the same key's row before, for rows of which the i-th is of keys[which[i]]; and each key's last.

        Without times every row is one unit after the one before, and so is the first row of a key.
        """
        last = self.last(keys)
        if time is None:
            return np.ones(which.size), last + np.bincount(which, minlength=len(keys))
        now = checks.targets("time", time, which.shape)
        if np.isnan(now).any():
            raise ValueError(f"time must not be missing; got NaN in row {int(np.isnan(now).argmax())}")
        order = np.argsort(which, kind="stable")
        key, at = which[order], now[order]
        before = np.where(np.diff(key, prepend=-1) > 0, last[key], np.roll(at, 1))
        passed = np.where(np.isnan(before), 1.0, at - before)
        if (passed < 0.0).any():
            first = int((passed < 0.0).argmax())
            raise ValueError(
                f"time must not run backwards within a key; row {order[first]} of key {keys[key[first]]!r} has "
                f"{at[first]:g} after {before[first]:g}: sort the rows, or leave out those that came too late"
            )
        last[key] = at  # of several assignments the last one holds
        return passed[np.argsort(order)], last
