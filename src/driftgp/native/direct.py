"""The library called without JAX: for samples one at a time, and for stacks of models.

A call of a compiled JAX function costs several times as much as a step, and a state that is packed away among others
would have to be unpacked for it. These keep states in NumPy's arrays, which the library changes where they are.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from driftgp import native
from driftgp.packing import Packing
from driftgp.prediction import Gaussian

_POINTERS = "settings", "start", "x", "y", "elapsed", "state", "mean", "variance", "noise", "strides", "slots", "ends"
_GAUSSIAN = jax.tree.structure(Gaussian(*np.zeros((3, 1))))


class _Batch(ctypes.Structure):
    """level.hpp's."""

    _fields_ = (
        ("plan", ctypes.c_void_p),
        ("plan_size", ctypes.c_size_t),
        ("models", ctypes.c_int64),
        ("rows", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in _POINTERS),
    )


class _Direct:
    """A model's settings, and the functions of the library."""

    def __init__(self, model: Any, state: Any) -> None:
        """Take a model and a state of it, or the shapes of one."""
        loaded = native.library()
        assert loaded is not None  # noqa: S101 (see `native.suits`)
        self._follow, self._forecast = (getattr(loaded, f"driftgp_{name}_directly") for name in native.CALLS)
        self._plan = native.plan(model, state)
        self._shape = state.layout.target_shape
        with jax.enable_x64(True):
            self._numbers, self._start = (np.array(array, np.float64) for array in native.numbers(model, state))

    def _batch(self, models: int, rows: int, **pointers: int) -> _Batch:
        return _Batch(
            plan=_address(self._plan),
            plan_size=self._plan.size,
            models=models,
            rows=rows,
            settings=_address(self._numbers),
            start=_address(self._start),
            **pointers,
        )

    def _room(self, rows: int) -> np.ndarray:
        """Room for an answer: mean, variance and noise."""
        return np.empty((3, rows, *self._shape))


def _answers(answer: np.ndarray) -> dict[str, int]:
    return dict(zip(("mean", "variance", "noise"), map(_address, answer), strict=True))


def _prediction(answer: np.ndarray) -> Gaussian:
    prediction: Gaussian = jax.tree.unflatten(_GAUSSIAN, answer)  # to call the class would take longer than a step
    return prediction


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


def _pointers(arrays: list[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*map(_address, arrays))


class Stepper(_Direct):
    """A model and its state, for samples that are handed in one at a time (`model.Engine`)."""

    def __init__(self, model: Any, state: Any) -> None:
        """Copy the state: it is changed in place from now on."""
        super().__init__(model, state)
        leaves, self._structure = jax.tree.flatten(state)
        self._leaves = [np.array(leaf, order="C") for leaf in leaves]
        owned = jax.tree.unflatten(self._structure, self._leaves)
        self._all, self._read = _pointers(self._leaves), _pointers(jax.tree.leaves(native.for_forecast(owned)))
        # one sample: the library finds it, and puts its answer, where it did the last time
        self._x, self._next = np.zeros((2, 1, state.layout.inputs))
        self._y, self._elapsed, self._answer = np.zeros((1, *self._shape)), np.zeros(1), self._room(1)
        self._learning = ctypes.byref(self._lesson(self._x, self._y, self._elapsed))
        self._predicting = ctypes.byref(self._question(self._next, self._answer))

    def predict(self, X: np.ndarray) -> Gaussian:
        """Distribution of new targets at the rows of X."""
        X, answer = np.ascontiguousarray(X), self._room(X.shape[0])
        self._forecast(ctypes.byref(self._question(X, answer)))
        return _prediction(answer)

    def update(self, X: np.ndarray, y: np.ndarray, elapsed: np.ndarray) -> None:
        """Learn from several rows."""
        rows = [np.ascontiguousarray(array) for array in (X, y, np.broadcast_to(elapsed, X.shape[:1]))]
        self._follow(ctypes.byref(self._lesson(*rows)))

    def follow(self, x: np.ndarray, y: np.ndarray, elapsed: np.ndarray, x_next: np.ndarray) -> Gaussian:
        """Learn from one sample, then predict at x_next."""
        self._x[0], self._y[0], self._elapsed[0], self._next[0] = x, y, elapsed, x_next
        self._follow(self._learning)
        self._forecast(self._predicting)
        return _prediction(self._answer.copy())

    @property
    def state(self) -> Any:
        """A copy of the state as it is now."""
        with jax.enable_x64(True):
            return jax.tree.unflatten(self._structure, [jnp.array(leaf) for leaf in self._leaves])

    def _lesson(self, X: np.ndarray, y: np.ndarray, elapsed: np.ndarray) -> _Batch:
        rows = {"x": _address(X), "y": _address(y), "elapsed": _address(elapsed)}
        return self._batch(1, X.shape[0], state=ctypes.addressof(self._all), **rows)

    def _question(self, X: np.ndarray, answer: np.ndarray) -> _Batch:
        return self._batch(1, X.shape[0], x=_address(X), state=ctypes.addressof(self._read), **_answers(answer))


class Stack(_Direct):
    """Many states of one model, packed as rows of a vector per dtype (`model.Stacked`)."""

    def __init__(self, model: Any, packing: Packing) -> None:
        """Take a model and how its states are packed."""
        super().__init__(model, packing.shapes)
        self._pieces = packing.pieces
        self._strides = np.array([packing.sizes[piece.vector] for piece in packing.pieces], np.int64)

    def run(
        self,
        stack: Sequence[np.ndarray],
        slots: np.ndarray,
        ends: np.ndarray,
        rows: Sequence[np.ndarray],
        *,
        learn: bool,
    ) -> Gaussian:
        """Predict rows, and learn from them if told to: see `model.Stacked`."""
        X, y, elapsed = (np.ascontiguousarray(array) for array in rows)
        slots, ends = (np.ascontiguousarray(array, np.int32) for array in (slots, ends))
        starts = [stack[vector][0, start:] for vector, start, _, _ in self._pieces]
        state, answer = _pointers(starts), self._room(X.shape[0])
        batch = self._batch(
            slots.size,
            0,
            x=_address(X),
            y=_address(y),
            elapsed=_address(elapsed),
            state=ctypes.addressof(state),
            strides=_address(self._strides),
            slots=_address(slots),
            ends=_address(ends),
            **_answers(answer),
        )
        (self._follow if learn else self._forecast)(ctypes.byref(batch))
        return _prediction(answer)
