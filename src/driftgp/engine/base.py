"""The engine: it runs a model on arrays of records."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from driftgp.contract.protocol import Contract


class Batch(NamedTuple):
    """Rows for an engine, N of them, in the order of their states.

    Attributes:
        X: inputs, N×D.
        y: targets, N×P; without them nothing is learned.
        elapsed: time since the row before, N; None only where y is.
        X_next: rows to predict, each after the row of X at its place was learned from; by default X, before.
        issued: forecasts that were made before, of rows whose labels come now.
        known_at: the place of the forecast with which each row is learned: i for the forecast of an earlier row i,
            N + i for `issued[i]`. −1 takes the state's own forecast.
    """

    X: np.ndarray
    y: np.ndarray | None = None
    elapsed: np.ndarray | None = None
    X_next: np.ndarray | None = None
    issued: np.ndarray | None = None
    known_at: np.ndarray | None = None


class Engine(Protocol):
    """A model at work on states, which are changed in place; arrays are float64, checked, targets with P columns.

    `states` is an array of records. The states at `slots` have rows, in this order, and those of slots[i] end at
    ends[i].
    """

    @property
    def kind(self) -> str:
        """Which engine it is: "native", "reference" or "scan"."""

    @property
    def model(self) -> Contract:
        """The model."""

    def start(self, record: np.ndarray, X: np.ndarray, y: np.ndarray) -> None:
        """Fill a record of shape (), all zeros so far, from a warm-up batch."""

    def run(self, states: np.ndarray, slots: np.ndarray, ends: np.ndarray, batch: Batch) -> np.ndarray:
        """Predict each row before it is learned from, and return one forecast per row.

        Steps are atomic: an interrupt leaves each state after some whole number of its rows.
        """

    def single(self, record: np.ndarray) -> "Single":
        """The quickest way to hand rows in one at a time, for one record of shape ()."""

    def solve(self, forecasts: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Values whose normal scores are z (Q, or Q×N for scores of each row's own), of N forecasts: Q×N×P."""

    def complete(self, record: np.ndarray) -> None:
        """Compute the fields of a record that follow from the others."""


class Single(Protocol):
    """One state, and rows one at a time.

    `lesson.done` is 1 once `learn` has changed the state, also where a signal's handler then raises.
    """

    lesson: Any

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Forecast at x (D): an array of 1 record, which is the caller's."""

    def learn(self, x: np.ndarray, y: np.ndarray, elapsed: float, known: np.ndarray | None = None) -> None:
        """Learn from x (D), y (P); `known` is the forecast of the present state at x, or None."""


def spans(slots: np.ndarray, ends: np.ndarray) -> Any:
    """Each slot with the first of its rows and the one after its last.

    >>> list(spans(np.array([4, 2]), np.array([3, 5])))
    [(4, 0, 3), (2, 3, 5)]
    """
    begins = [0, *ends[:-1].tolist()]
    return zip(slots.tolist(), begins, ends.tolist(), strict=True)
