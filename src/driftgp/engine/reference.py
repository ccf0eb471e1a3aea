"""The reference engine: the model's own NumPy methods, row by row."""

from types import SimpleNamespace

import numpy as np

from driftgp.contract.protocol import Contract
from driftgp.engine.base import Batch, spans


class ReferenceEngine:
    """Runs any model, wherever NumPy runs. A step is made on a copy of the state, which then takes its place."""

    kind = "reference"

    def __init__(self, model: Contract, inputs: int, outputs: int) -> None:
        """Take a model and its numbers of inputs and outputs."""
        self.model = model
        self.record_dtype = model.record_dtype(inputs, outputs)
        self.forecast_dtype = model.forecast_dtype(outputs)

    def start(self, record: np.ndarray, X: np.ndarray, y: np.ndarray) -> None:
        """Warm up."""
        with np.errstate(all="ignore"):
            self.model.start(self.model.view(record), X, y)

    def run(self, states: np.ndarray, slots: np.ndarray, ends: np.ndarray, batch: Batch) -> np.ndarray:
        """Predict and learn: see `Engine.run`."""
        X, y, elapsed, X_next, issued, known_at = batch
        N = len(X)
        made = np.empty(N + (0 if issued is None else len(issued)), self.forecast_dtype)
        if issued is not None:
            made[N:] = issued
        for slot, begin, end in spans(slots, ends):
            one = self.single(states[slot : slot + 1].reshape(()))
            known: np.ndarray | None = None
            for i in range(begin, end):
                if known_at is not None:
                    known = made[known_at[i] : known_at[i] + 1].copy() if known_at[i] >= 0 else None
                if y is None or elapsed is None:
                    made[i] = one.predict(X[i])[0]
                elif X_next is None:
                    known = one.predict(X[i]) if known is None or known_at is None else known
                    made[i] = known[0]
                    one.learn(X[i], y[i], float(elapsed[i]), known)
                else:
                    asked = known_at is not None or (known is not None and X[i].tobytes() == X_next[i - 1].tobytes())
                    one.learn(X[i], y[i], float(elapsed[i]), known if asked else None)
                    known = one.predict(X_next[i])
                    made[i] = known[0]
        return made[:N]

    def single(self, record: np.ndarray) -> "ReferenceSingle":
        """Rows one at a time."""
        return ReferenceSingle(self.model, record)

    def solve(self, forecasts: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Values of normal scores, by the law of the forecasts."""
        return self.model.law(forecasts).from_normal(z.reshape(*z.shape, *(1,) * (3 - z.ndim)))

    def complete(self, record: np.ndarray) -> None:
        """Compute what follows from the rest."""
        self.model.complete(self.model.view(record))


class ReferenceSingle:
    """One state: what it has become after a step is written back at once."""

    def __init__(self, model: Contract, record: np.ndarray) -> None:
        """Take a model and a record of shape ()."""
        self._model, self._record = model, record
        self._scratch, self.lesson = record.copy(), SimpleNamespace(done=0)
        self._here, self._there = model.view(record), model.view(self._scratch)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Forecast at x."""
        with np.errstate(all="ignore"):  # of numbers beyond all bounds the models take care themselves
            return self._model.forecast(self._here, x[None])

    def learn(self, x: np.ndarray, y: np.ndarray, elapsed: float, known: np.ndarray | None = None) -> None:
        """Learn on a copy, then commit."""
        self._scratch[...] = self._record
        with np.errstate(all="ignore"):
            self._model.learn(self._there, x, y, elapsed, known)
        self._record[...] = self._scratch
        self.lesson.done = 1
