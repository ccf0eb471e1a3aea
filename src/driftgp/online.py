"""A model and its state as one object, for programs that meet their samples one at a time."""

import math
import threading
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from driftgp import checks
from driftgp.model import Model, State, checked_inputs, checked_rows
from driftgp.predictions import Forecast, Prediction


class Online:
    """Predict and update in place. Several threads may share one: their calls take turns.

    >>> from driftgp import AGP
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = AGP(inducing=6, window=40)
    >>> online = Online(model, model.init(X[:40], y[:40]))
    >>> for x, target in zip(X[40:], y[40:]):
    ...     prediction = online.predict(x)
    ...     online.update(x, target)
    >>> prediction.mean.shape
    (1,)
    """

    def __init__(self, model: Model, state: State) -> None:
        """Take a model and a state of it, fresh from `init` or restored; the state is copied."""
        self.model = model
        self._layout = state.layout
        self._flat = state.layout.outputs is None
        self._row = (state.layout.inputs,)
        self._small = np.full(self._row, 1e-16)  # a sum of so small shares is finite if all numbers are
        self._state = state.of(model).copy()  # refuses a state of another model
        self._engine = self._state.engine()
        self._one = self._engine.single(self._state.record)
        self._stack = self._state.record.reshape(1)
        self._lock = threading.Lock()
        self._known: tuple[bytes, np.ndarray] | None = None  # the last input predicted for since the last update

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the model and its state."""
        return type(self), (self.model, self.state)

    def __repr__(self) -> str:
        return f"Online({self.model!r}, {self._state!r})"

    @property
    def state(self) -> State:
        """A copy of the state as it is now."""
        with self._lock:
            return self._state.copy()

    def predict(self, x: ArrayLike) -> Forecast:
        """Distribution of the target at one row x (D), or at the rows of X (N×D)."""
        plain = self._plain(x)
        X: np.ndarray = x if plain else checks.real("X", x)  # type: ignore[assignment]
        X = X[None] if X.ndim == 1 else X
        if not plain:
            X = checked_inputs(self._layout, X)
        with self._lock:
            if len(X) == 1:
                made = self._one.predict(X[0])
                self._known = X.tobytes(), made
            else:
                made = self._engine.run(self._stack, _FIRST, np.array([len(X)]), X)
        return Forecast(self.model, made, flat=self._flat, solve=self._engine.solve)

    def update(self, x: ArrayLike, y: ArrayLike, elapsed: ArrayLike = 1.0) -> None:
        """Learn from one sample or from several rows, as `Model.update` does, at once."""
        usual = self._flat and type(elapsed) is float and elapsed == 1.0 and isinstance(y, float)
        if usual and not math.isinf(y) and self._plain(x):  # type: ignore[arg-type]
            self._learn(x, np.array((y,)), 1.0)
            return
        X, Y, times = checked_rows(self._layout, x, y, elapsed)
        if len(X) == 1:
            self._learn(X[0], Y[0], times.item())
            return
        with self._lock:
            self._known = None
            self._engine.run(self._stack, _FIRST, np.array([len(X)]), X, Y, times)

    def _learn(self, x: Any, y: Any, elapsed: float) -> None:
        """Learn from one sample that was checked; what was predicted for it last is not computed again."""
        with self._lock:
            known, self._known = self._known, None
            seen = known is not None and known[0] == x.tobytes()
            self._one.learn(x, y, elapsed, known[1] if known is not None and seen else None)

    def _plain(self, x: Any) -> bool:
        """Whether x is one row that needs no further check: most calls hand in such rows, and a check takes as long."""
        return (
            type(x) is np.ndarray
            and x.dtype == np.float64
            and x.shape == self._row
            and math.isfinite(x.dot(self._small))
        )


_FIRST = np.array([0])  # the one state of a stack of one


class LateLabels:
    """Predict now, learn when the label comes.

    Inputs wait under a key until their label arrives, at most `most` of them: beyond that the oldest is given up.
    Samples are learned from in the order of their labels; between two of them passes the time between their inputs, or
    none where a label overtakes an earlier one.

    >>> from driftgp import AGP
    >>> model = AGP(inducing=3, window=8)
    >>> service = LateLabels(Online(model, model.init(np.zeros((0, 1)), np.zeros(0))))
    >>> for key, x in [("a", 0.0), ("b", 1.0), ("c", 2.0)]:
    ...     prediction = service.predict(key, [x])
    >>> service.learn("b", 0.5), service.learn("z", 0.5), service.pending
    (True, False, 2)
    """

    def __init__(self, online: Online, most: int = 1000) -> None:
        """Take a model at work and the number of inputs that may wait."""
        self.online = online
        self.most = checks.whole("most", most, 1)
        self.given_up = 0
        self._waiting: dict[Hashable, tuple[np.ndarray, float]] = {}  # in the order of their coming
        self._now = self._learned = 0.0

    @property
    def pending(self) -> int:
        """How many inputs wait for their label."""
        return len(self._waiting)

    def predict(self, key: Hashable, x: ArrayLike, elapsed: float = 1.0) -> Prediction:
        """Distribution of the target at x (D), which came `elapsed` after the one before and waits under its key."""
        if key in self._waiting:
            raise ValueError(f"key must be new, or its label known; {key!r} still waits for its label")
        time = self._now + float(checks.elapsed(elapsed, ()))
        x = np.array(checks.inputs("x", x, ndim=1, gaps=True))  # a copy: the caller may go on to use its own
        prediction = self.online.predict(x)
        self._now = time
        self._waiting[key] = x, time
        if len(self._waiting) > self.most:
            del self._waiting[next(iter(self._waiting))]
            self.given_up += 1
        return prediction

    def learn(self, key: Hashable, y: ArrayLike) -> bool:
        """Learn from the input that waits under a key; False if none does."""
        if key not in self._waiting:
            return False
        x, time = self._waiting[key]
        self.online.update(x, y, max(time - self._learned, 0.0))
        del self._waiting[key]
        self._learned = max(time, self._learned)
        return True
