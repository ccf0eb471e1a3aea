"""The last T samples, and the models that keep them.

A ring of T slots: the newest sample overwrites the oldest. A model gives each slot a weight: λ^(t − t_i) for a sample
inside the window, and 0 for an empty slot. So every sum over slots is a sum over samples. Models that see the same
samples may share one window: their weights differ, not their samples.
"""

import abc
from typing import Any, NamedTuple

import numpy as np

from driftgp.contract.records import View, floats, whole
from driftgp.models.model import Model, Units

_LARGEST = 1.3e154  # largest target of a sample, so that its square is finite


class WindowState(View):
    """Samples in a ring of T slots."""

    X: np.ndarray = floats("T", "D")
    y: np.ndarray = floats("T", "P", low=-_LARGEST, high=_LARGEST)
    cursor: int = whole()  # slot that the next sample takes

    def push(self, x: np.ndarray, y: np.ndarray) -> "Leaving":
        """Put a sample in the place of the oldest, and return what it replaced."""
        slot = self.cursor
        leaving = Leaving(slot, self.X[slot].copy(), self.y[slot].copy())
        self.X[slot], self.y[slot] = x, y
        self.cursor = (slot + 1) % len(self.X)
        return leaving

    def put_back(self, leaving: "Leaving") -> None:
        """Undo a push."""
        self.cursor = leaving.slot
        self.X[leaving.slot], self.y[leaving.slot] = leaving.x, leaving.y

    def fill(self, X: np.ndarray, y: np.ndarray, decay: float) -> np.ndarray:
        """Hold the last T rows of a batch; return their weights: 1 for the newest, and λ for every step before it.

        Rows without a target are dropped first, and have the weight 0.
        """
        N, T = len(X), len(self.X)
        seen = observed(X, y)  # N
        rows = np.argsort(seen, kind="stable")[N - min(N, T) :]  # those not seen come first
        kept = len(rows)
        self.X[:kept] = np.where(np.isfinite(X[rows]), X[rows], 0.0)
        self.y[:kept] = np.where(seen[rows, None], y[rows], 0.0)
        self.cursor = kept % max(T, 1)
        w = np.zeros(T)
        w[:kept] = np.where(seen[rows], decay ** (N - 1.0 - rows), 0.0)
        return w

    def rescale(self, units: Units, here: np.ndarray) -> None:
        """Express the samples in other units; slots that are not `here` stay empty."""
        self.X[...] = np.where(here[:, None], units.inputs(self.X), 0.0)
        self.y[...] = np.where(here[:, None], units.targets(self.y), 0.0)

    def check(self, path: str = "") -> None:
        """Refuse a cursor outside the ring, samples that are not finite, and targets whose squares are not."""
        if not 0 <= self.cursor < max(len(self.X), 1):
            raise ValueError(f"{path}cursor must lie in [0, {len(self.X)}); got {self.cursor}")
        super().check(path)


class Leaving(NamedTuple):
    """The sample that the newest one replaced; zeros if the slot was empty."""

    slot: int
    x: np.ndarray  # D
    y: np.ndarray  # P


def observed(x: np.ndarray, y: np.ndarray) -> Any:
    """Whether a sample, or each row of a batch, is complete; otherwise only time passes."""
    return np.isfinite(x).all(-1) & np.isfinite(y).all(-1)


class Windowed(Model):
    """A model that keeps the last T samples, in its own window or in a shared one."""

    window: int | None  # T

    @abc.abstractmethod
    def own_dtype(self, inputs: int, outputs: int, *, window: bool) -> np.dtype:
        """Layout of a state, with its window or without it."""

    @abc.abstractmethod
    def view_on(self, record: np.ndarray, window: WindowState) -> Any:
        """The fields of a state whose window lies elsewhere."""

    @abc.abstractmethod
    def learn_on(
        self,
        state: Any,
        leaving: Leaving | None,
        x: np.ndarray,
        y: np.ndarray,
        elapsed: float,
        forecast: np.ndarray | None = None,
    ) -> None:
        """Learn from a sample that is in the window already; let time pass if `leaving` is None."""

    @abc.abstractmethod
    def rescale_on(self, state: Any, units: Units) -> None:
        """Change all but the window to other units."""

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state with its own window."""
        return self.own_dtype(inputs, outputs, window=True)

    def view(self, record: np.ndarray) -> Any:
        """The fields of a state with its own window."""
        return self.view_on(record, WindowState(record["window"]))

    def learn(
        self, state: Any, x: np.ndarray, y: np.ndarray, elapsed: float, forecast: np.ndarray | None = None
    ) -> None:
        """Put the sample into the window, then learn from it."""
        leaving = state.window.push(x, y) if self.window is not None and observed(x, y) else None
        self.learn_on(state, leaving, x, y, elapsed, forecast)

    def rescale(self, state: Any, units: Units) -> None:
        """Samples in other units, then all the rest."""
        state.window.rescale(units, state.w > 0.0)
        self.rescale_on(state, units)
