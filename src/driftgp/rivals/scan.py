"""The engine of the rivals: many rows in one compiled call, and the record written once."""

from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from driftgp.contract.protocol import Contract
from driftgp.engine.base import Batch, spans
from driftgp.rivals import programs

# Most rows in one call, so that an interrupt is heard and the programs for different numbers of rows are few.
_ROWS = 1024


class ScanEngine:
    """A rival at work on records; see `driftgp.engine.base.Engine`."""

    kind = "scan"

    def __init__(self, model: Contract, outputs: int) -> None:
        """Take a rival, and its number of outputs."""
        self.model: Any = model
        self.forecast_dtype = model.forecast_dtype(outputs)

    @cached_property
    def settled(self) -> Any:
        """The rival as programs take it."""
        return programs.settled(self.model)

    def start(self, record: np.ndarray, X: np.ndarray, y: np.ndarray) -> None:
        """Warm up."""
        self.model.start(self.model.view(record), X, y)

    def run(self, states: np.ndarray, slots: np.ndarray, ends: np.ndarray, batch: Batch) -> np.ndarray:
        """Predict and learn: see `Engine.run`. A rival learns from rows alone, not from forecasts that were issued."""
        X, y, elapsed, X_next, *_ = batch
        made = np.empty(len(X), self.forecast_dtype)
        for slot, begin, end in spans(slots, ends):
            state = self.model.view(states[slot : slot + 1].reshape(()))
            for first in range(begin, end, _ROWS):
                rows = slice(first, min(first + _ROWS, end))
                if y is None:
                    numbers = programs.forecasts(state.layout, self.settled, state.words, X[rows])
                else:
                    given = [array[rows] for array in (X, y, elapsed, X_next) if array is not None]
                    after, numbers = programs.run(state.layout, self.settled, state.words, *given)
                    state.words[...] = after
                made[rows] = numbers.view(self.forecast_dtype)[:, 0]
        return made

    def single(self, record: np.ndarray) -> "ScanSingle":
        """Rows one at a time."""
        return ScanSingle(self, record)

    def solve(self, forecasts: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Values of normal scores: mean + z · standard deviation."""
        return forecasts["mean"] + z.reshape(*z.shape, *(1,) * (3 - z.ndim)) * np.sqrt(forecasts["variance"])

    def complete(self, record: np.ndarray) -> None:
        """Compute what follows from the rest."""
        self.model.complete(self.model.view(record))


class ScanSingle:
    """One state, and rows one at a time."""

    def __init__(self, engine: ScanEngine, record: np.ndarray) -> None:
        """Take a record of shape ()."""
        self._engine, self._state, self.lesson = engine, engine.model.view(record), SimpleNamespace(done=0)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Forecast at x."""
        state, engine = self._state, self._engine
        numbers = programs.forecasts(state.layout, engine.settled, state.words, x[None])
        return numbers.view(engine.forecast_dtype)[:, 0]

    def learn(self, x: np.ndarray, y: np.ndarray, elapsed: float, known: np.ndarray | None = None) -> None:  # noqa: ARG002
        """Take a step, all of it before any of it is written."""
        state = self._state
        after = programs.call(programs.step, state.layout, self._engine.settled, state.words, x, y, elapsed)
        state.words[...] = after
        self.lesson.done = 1
