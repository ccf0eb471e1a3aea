"""What is handed on: rows that wait for their labels, work for a model, what it says, and the answers of a run."""

from typing import NamedTuple

import numpy as np


class Waiting(NamedTuple):
    """Rows whose labels are not out yet, N of them."""

    X: np.ndarray  # N×D
    y: np.ndarray  # N
    interval: np.ndarray  # N, time since the row before, NaN without times

    def then(self, other: "Waiting") -> "Waiting":
        """These rows and others after them."""
        return Waiting(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    def rows(self, some: slice) -> "Waiting":
        """Some of the rows."""
        return Waiting(*(array[some] for array in self))


class Work(NamedTuple):
    """Rows for one model: learn from a label that has come, then predict a row, and so on."""

    x: np.ndarray  # N×D, inputs of the labels
    y: np.ndarray  # N, the labels
    elapsed: np.ndarray  # N, time since the label before
    x_next: np.ndarray  # N×D, inputs of the rows to predict
    y_next: np.ndarray  # N, their targets, for the log density alone


class Said(NamedTuple):
    """What was predicted for rows, N each."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    log_density: np.ndarray  # of what came, NaN where nothing did
    score: np.ndarray  # normal score of what came, NaN likewise

    def without(self, rows: np.ndarray) -> "Said":
        """The same, with nothing said of some rows, which are marked in a mask."""
        return Said(*(np.where(rows, np.nan, array) for array in self))


class Received(NamedTuple):
    """Rows taken in: what the model is to do for the last of them, and remarks on each."""

    work: Work
    gaps: np.ndarray  # of the rows in `work`, whether an input is missing
    naive: np.ndarray  # of the rows in `work`, forecasts that need no model, N×3
    bounds: np.ndarray  # of the rows in `work`, beyond which a forecast is wild, N×2
    flags: list[list[str]]


class Answer(NamedTuple):
    """What a run says of a row."""

    line: int
    time: str
    group: str
    mean: float
    low: float
    high: float
    actual: float
    flags: tuple[str, ...]
