"""Rows in any number, for a model whose programs are compiled for a few shapes."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from driftgp.adapters.settings import Settings
from driftgp.online import Online
from driftgp.prediction import Prediction

BLOCK = 64  # rows of one compiled call, when there is more than one row


class Stream:
    """A model at work: it learns from rows and predicts for rows, however many there are.

    Three devices keep the shapes few, and none changes what is learned: columns are filled up with zeros, which no
    distance notices; a warm-up batch is filled up at its beginning with rows that have no target; and other rows go in
    blocks, filled up with rows without a target after which no time has passed.

    >>> X = np.linspace(0, 1, 70)[:, None]
    >>> stream = Stream(Settings(inducing=5, window=40), X[:60], np.sin(6 * X[:60, 0]))
    >>> stream.learn(X[60:], np.sin(6 * X[60:, 0]))
    >>> stream.predict(X).mean.shape
    (70,)
    """

    def __init__(self, settings: Settings, X: np.ndarray, y: np.ndarray, inputs: int | None = None) -> None:
        """Warm up on as many of the first rows as the window holds, then learn from the others one after another.

        Args:
            settings: of the model.
            X: N×D; N = 0 is a cold start.
            y: N, or N×P for several outputs.
            inputs: number of features, where X has more columns than that.
        """
        inputs = X.shape[1] if inputs is None else inputs
        self.flat = y.ndim == 1  # one output is a column to the model, and whichever it was to the user
        self.room = settings.room(inputs)
        model = settings.model(inputs)
        self.online = Online(
            model, model.init(*self._warm_up_batch(X[: settings.window], y[: settings.window], settings))
        )
        self.learn(X[settings.window :], y[settings.window :])

    def learn(self, X: np.ndarray, y: np.ndarray) -> None:
        """Learn from rows X (N×D) and y (N or N×P), one after another; where y is NaN, time passes."""
        X, y = self._wide(X), _columns(y)
        if X.shape[0] == 1:
            self.online.update(X[0], y[0])
            return
        for rows in _blocks(X.shape[0]):
            X_block, y_block = X[rows], y[rows]
            elapsed = _filled_up(np.ones(X_block.shape[0]), 0.0)
            self.online.update(_filled_up(X_block, 0.0), _filled_up(y_block, np.nan), elapsed)

    def predict(self, X: np.ndarray) -> Prediction:
        """Distribution of new targets at the rows of X."""
        X = self._wide(X)
        if X.shape[0] == 1:
            parts = [self.online.predict(X)]
        else:
            parts = [self.online.predict(_filled_up(X[rows], 0.0)) for rows in _blocks(X.shape[0])]
        kept = (slice(X.shape[0]), 0) if self.flat else slice(X.shape[0])
        prediction: Prediction = jax.tree.map(lambda *leaves: np.concatenate(leaves)[kept], *parts)
        return prediction

    def covariance(self, X: np.ndarray) -> np.ndarray:
        """Joint covariance of new targets at the rows of X, N×N or N×N×P."""
        count = X.shape[0]
        X = _filled_up(self._wide(X), 0.0)
        covariance = np.asarray(self.online.model.covariance(self.online.state, X))[:count, :count]  # N×N×P
        return covariance[..., 0] if self.flat else covariance

    def _wide(self, X: np.ndarray) -> np.ndarray:
        return np.pad(X, ((0, 0), (0, self.room - X.shape[1])))

    def _warm_up_batch(self, X: np.ndarray, y: np.ndarray, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
        before = (settings.window - X.shape[0] if X.shape[0] else 0, 0)
        X = np.pad(self._wide(X), (before, (0, 0)))
        return X, np.pad(_columns(y), (before, (0, 0)), constant_values=np.nan)


def _columns(y: np.ndarray) -> np.ndarray:
    return y[:, None] if y.ndim == 1 else y


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))


def _filled_up(rows: np.ndarray, value: Any) -> np.ndarray:
    """Rows with more of them, all of one value, up to a whole number of blocks."""
    missing = -rows.shape[0] % BLOCK
    return np.pad(rows, ((0, missing), (0, 0))[: rows.ndim], constant_values=value)
