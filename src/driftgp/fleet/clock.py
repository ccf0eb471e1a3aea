"""The times of a fleet's keys: how long ago each one's last row was."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from driftgp import checks, frames
from driftgp.clock import Step
from driftgp.fleet.keys import Key
from driftgp.frames import Column


class Passed(NamedTuple):
    """Time that has passed for rows, and what is known afterwards."""

    elapsed: np.ndarray  # since the same key's row before, N
    last: np.ndarray  # time of each key's last row
    dated: bool | None
    step: Step


class Clock:
    """Time of the last row of each key, as far as times are given.

    Times that are numbers are taken as they are. Dates are in microseconds, and time passes in units of the typical
    step within a key.
    """

    def __init__(self) -> None:
        """Know of no key."""
        self._last: dict[Key, float] = {}
        self.dated: bool | None = None
        self.step = Step()

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

    def elapsed(self, keys: list[Key], which: np.ndarray, time: Any) -> Passed:
        """Time since the same key's row before, for rows of which the i-th is of keys[which[i]]; and each key's last.

        Without times every row is one unit after the one before, and so is the first row of a key.
        """
        last = self.last(keys)
        if time is None:
            rows = np.bincount(which, minlength=len(keys))
            return Passed(np.ones(which.size), last + rows * self.step.size, self.dated, self.step)
        now, column = self._times(time, which.shape)
        order = np.argsort(which, kind="stable")
        key, at = which[order], now[order]
        before = np.where(np.diff(key, prepend=-1) > 0, last[key], np.roll(at, 1))
        passed = at - before  # NaN for the first row of a key
        if (passed < 0.0).any():
            first = int((passed < 0.0).argmax())
            raise ValueError(
                f"time must not run backwards within a key; row {order[first]} of key {keys[key[first]]!r} has "
                f"{column.shown(at[first])} after {column.shown(before[first])}: sort the rows, or leave out those "
                f"that came too late"
            )
        last[key] = at  # of several assignments the last one holds
        passed = passed[np.argsort(order)]
        dated = column.kind == "times"
        if not dated:
            return Passed(np.where(np.isnan(passed), 1.0, passed), last, dated, self.step)
        spans, step = self.step.after(passed)
        return Passed(spans.elapsed, last, dated, step)

    def accept(self, passed: Passed, keys: list[Key]) -> None:
        """Remember the rows of a call that was in order."""
        self.dated, self.step = passed.dated, passed.step
        self.note(keys, passed.last)

    def _times(self, time: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, Column]:
        """Times as numbers, N; refuses those that are missing, and dates among numbers."""
        column = time if isinstance(time, Column) else frames.times("time", time)
        if column is None:
            column = Column("time", "numbers", frames.targets(time))
        if column.kind not in ("times", "numbers"):
            raise ValueError(f"time must hold dates or numbers; got {column.kind}, such as {column.values[0]!r}")
        if self.dated is not None and self.dated != (column.kind == "times"):
            raise ValueError(
                f"time must hold {'dates' if self.dated else 'numbers'}, as in the rows before; got {column.kind}"
            )
        now = checks.targets("time", column.values, shape)
        if np.isnan(now).any():
            raise ValueError(f"time must not be missing; got NaN in row {int(np.isnan(now).argmax())}")
        return now, column

    def to_json(self) -> list[Any]:
        """What is known besides the keys' times."""
        return [self.dated, *self.step]

    def restore(self, stored: Any) -> None:
        """Take back what `to_json` gave."""
        dated, seen, size, fixed = stored
        if dated not in (None, False, True) or not 0.0 < float(size) < np.inf:
            raise ValueError("times cannot be like that")
        self.dated, self.step = dated, Step(tuple(map(float, seen)), float(size), bool(fixed))
