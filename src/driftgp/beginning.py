"""How a stream begins: a model is at work from the first row on, and the first rows together choose which."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from driftgp.defaults import LONGEST, recommended
from driftgp.model import Layout, Model, checked_batch, checked_rows
from driftgp.online import Online

FIRST = LONGEST  # rows that choose a model: as many as the longest window holds


class Plan(NamedTuple):
    """A model, and how many of the first rows it warms up on; from the others it learns one after another."""

    model: Model
    warmup: int = 0

    def start(self, X: np.ndarray, y: np.ndarray) -> Online:
        """The model at work, with these rows (N×D; N, or N×P) behind it."""
        online = Online(self.model, self.model.init(X[: self.warmup], y[: self.warmup]))
        if len(X) > self.warmup:
            online.update(X[self.warmup :], y[self.warmup :])
        return online


def by_default(X: np.ndarray, y: np.ndarray) -> Plan:
    """The default model for a stream that begins with these rows.

    It learns from its very first row on. A warm-up would fit its hyperparameters to a batch, and leave its intervals
    uncalibrated until after it.
    """
    return Plan(recommended(X, y))


class Beginning:
    """A model at work on a stream of which few rows are known, or none.

    `plan` says what a stream needs that begins with given rows. It is asked at once, with the rows that are there, and
    once more when `first` rows have come. If the answer is another one by then, that model starts anew from these rows.
    So after `first` rows it makes no difference whether they came at once, in parts or one by one.

    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> beginning = Beginning(X[:0], X[:0, 0])
    >>> for x in X:
    ...     beginning.learn(x, np.sin(6 * x[0]))
    >>> bool(abs(beginning.online.predict([0.5]).mean[0] - np.sin(3.0)) < 0.2)
    True

    Attributes:
        online: the model at work; another one once `first` rows have chosen it.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        plan: Callable[[np.ndarray, np.ndarray], Plan] = by_default,
        first: int = FIRST,
    ) -> None:
        """Begin with the rows that are there.

        Args:
            X: N×D; N = 0 is a stream of which nothing is known but its number of inputs.
            y: N, or N×P for several outputs.
            plan: gives the model for a stream that begins with such rows; the default one by default.
            first: rows until the model is chosen for good.
        """
        X, y = checked_batch(X, y, gaps=True)
        self.plan, self.first = plan, first
        self._layout = Layout(X.shape[1], y.shape[1] if y.ndim == 2 else None, gaps=True)
        self._started: Plan | None = None
        self._choose(X[:first], y[:first])
        # what has come, until it is enough to choose by
        self._rows = (X.copy(), y.copy()) if len(X) < first else None
        if len(X) > first:
            self.online.update(X[first:], y[first:])

    def learn(self, x: ArrayLike, y: ArrayLike) -> None:
        """Learn from one sample (x of D, y a number or P) or from several rows; where y is NaN, only time passes."""
        if self._rows is None:
            self.online.update(x, y)
            return
        X, Y, _ = checked_rows(self._layout, x, y, 1.0)
        y = Y[:, 0] if self._layout.outputs is None else Y
        missing = self.first - len(self._rows[0])
        rows = np.concatenate([self._rows[0], X[:missing]]), np.concatenate([self._rows[1], y[:missing]])
        if len(X) < missing:
            self.online.update(X, y)
            self._rows = rows
            return
        known = missing if self._choose(*rows) else 0
        self._rows = None
        if len(X) > known:
            self.online.update(X[known:], y[known:])

    def _choose(self, X: np.ndarray, y: np.ndarray) -> bool:
        """Plan by these rows; whether that starts a model anew, which then has them behind it."""
        plan = self.plan(X, y)
        plan = plan._replace(warmup=min(plan.warmup, len(X)))
        if plan == self._started:
            return False
        self.online, self._started = plan.start(X, y), plan
        return True
