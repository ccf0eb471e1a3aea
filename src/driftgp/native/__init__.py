"""AGP's step by hand: what `agp` computes with JAX, computed by a small C++ library where there is one.

The library is compiled when driftgp is installed, if a C++ compiler is there, and works inside any JAX program like an
operation of JAX's own: under `jit` and `vmap`, in loops. The mathematics of `agp`, `bound` and `inducing` stays the
reference, runs wherever this room does not suit a model, and is what is differentiated. `DRIFTGP_NATIVE=0` in the
environment of a process leaves the library out.
"""

import ctypes
import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from driftgp import kernels, learning
from driftgp.inducing import RULES
from driftgp.kernels import Covariance
from driftgp.prediction import Gaussian

# In the order of kernel.hpp.
_STATIONARY = (kernels.SE, kernels.Matern12, kernels.Matern32, kernels.Matern52)
_KINDS: tuple[type, ...] = (*_STATIONARY, kernels.Linear, kernels.Constant)
_MOST_TERMS = 16
# From so many outputs on, `bound` has a better way than a factorisation for each.
_FEW = 10
# The builds for one kind of processor each, in the order of entry.cpp; the first is chosen by the library itself.
LEVELS = ("best", "plain", "x86_v3", "x86_v4")
# Says that a library fits: see entry.cpp.
_INTERFACE = 1
_CALLS = ("follow", "forecast")


@cache
def library() -> ctypes.CDLL | None:
    """The compiled library, known to JAX from now on; None if there is none."""
    paths = sorted(Path(__file__).parent.glob("step*.so"))
    if not paths or os.environ.get("DRIFTGP_NATIVE") == "0":
        return None
    loaded = ctypes.CDLL(str(paths[0]))
    if ctypes.c_int32.in_dll(loaded, "driftgp_interface").value != _INTERFACE:
        warnings.warn(
            f"{paths[0].name} was compiled for another version of driftgp: install driftgp again", stacklevel=2
        )
        return None
    for name in _CALLS:
        handler = getattr(loaded, f"driftgp_{name}")
        jax.ffi.register_ffi_target(f"driftgp_{name}", jax.ffi.pycapsule(handler), platform="cpu")
    return loaded


def suits(model: Any, state: Any) -> bool:
    """Whether the library has what an AGP and its state need."""
    return (
        model.window is not None
        and model.optimizer is None
        and model.restart
        and model.iterations == 1
        and state.layout.dtype == "float64"
        and state.layout.columns <= _FEW
        and terms(model.kernel) is not None
        and jax.default_backend() == "cpu"
        and library() is not None
    )


def terms(kernel: Covariance) -> list[tuple[int, int]] | None:
    """Kind of each term of a sum of kernels, and whether it has a parameter an input; None if one is of another kind.

    >>> terms(kernels.Linear(0.1) + kernels.SE([1.0, 2.0]))
    [(4, 0), (0, 1)]
    >>> terms(kernels.Periodic()) is None
    True
    """
    found = _terms(kernel)
    return None if None in found or len(found) > _MOST_TERMS else found  # type: ignore[return-value]


def _terms(kernel: Any) -> list[tuple[int, int] | None]:
    if type(kernel) is kernels.Sum:
        return _terms(kernel.first) + _terms(kernel.second)
    if type(kernel) not in _KINDS:
        return [None]
    many = jnp.ndim(kernel.variance) > 0
    if isinstance(kernel, kernels.Linear):
        return [(_KINDS.index(kernels.Linear), int(many))]
    each = isinstance(kernel, kernels.Stationary) and jnp.ndim(kernel.lengthscale) > 0
    return [None if many else (_KINDS.index(type(kernel)), int(each))]


def _plan(model: Any, state: Any, level: str = "best") -> np.ndarray:
    """Sizes, choices and terms as level.cpp reads them."""
    found = terms(state.hyperparameters.kernel)
    assert found is not None  # noqa: S101 (see `suits`)
    sizes = state.layout.inputs, state.layout.columns, model.inducing, model.window, model.learn_every
    choices = RULES.index(model.relevance), model.natural is not None, model.prior is not None
    further = model.outliers is not None, model.admission == "published", LEVELS.index(level)
    return np.array([*sizes, *choices, *further, *(number for term in found for number in term)], np.int64)


def _settings(model: Any, state: Any) -> tuple[Array, Array]:
    """Numbers that may differ between the models of a batch, and the parameters to which the prior draws."""
    jitters = model._jitters(state.window.w)  # noqa: SLF001 (one model, in two rooms)
    optional = (jnp.ones(()) if value is None else value for value in (model.prior, model.outliers, model.natural))
    numbers = jnp.stack(
        [jnp.asarray(v, float) for v in (model.forgetting, model.rate, model.threshold, *jitters, *optional)]
    )
    start = learning.initial(model.kernel, model.noise, state.layout.columns, state.layout.dtype)
    return numbers, ravel_pytree(start)[0]


def _shapes(tree: Any) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)]


# ---- as operations of JAX --------------------------------------------------------------------------------------------


def follow(
    model: Any, state: Any, X: Array, y: Array, elapsed: Array, *, predict: bool = True, level: str = "best"
) -> tuple[tuple[Array, ...], Any]:
    """Predict, if asked to, and learn, row after row of X (N×D) and y (N×P).

    Returns mean, variance and noise, N×P each, and the state after the last row.
    """
    leaves, structure = jax.tree.flatten(state)
    answers = 3 * predict * [jax.ShapeDtypeStruct((X.shape[0], state.layout.columns), X.dtype)]
    given = [*_settings(model, state), X, y, elapsed]
    call = jax.ffi.ffi_call(
        "driftgp_follow",
        answers + _shapes(state),
        vmap_method="broadcast_all",
        input_output_aliases={len(given) + i: len(answers) + i for i in range(len(leaves))},
    )
    made = call(*given, *leaves, plan=_plan(model, state, level), rows=np.int64(X.shape[0]), predict=predict)
    return tuple(made[: len(answers)]), jax.tree.unflatten(structure, made[len(answers) :])


def learn(model: Any, state: Any, x: Array, y: Array, elapsed: Array) -> Any:
    """State after one sample."""
    return follow(model, state, x[None], y[None], elapsed[None], predict=False)[1]


def forecast(model: Any, state: Any, X: Array, level: str = "best") -> tuple[Array, Array]:
    """Mean and variance at the rows of X, N×P each."""
    answer = jax.ShapeDtypeStruct((X.shape[0], state.layout.columns), X.dtype)
    call = jax.ffi.ffi_call("driftgp_forecast", [answer, answer], vmap_method="broadcast_all")
    mean, variance = call(
        X, *jax.tree.leaves(_for_forecast(state)), plan=_plan(model, state, level), rows=np.int64(X.shape[0])
    )
    return mean, variance


def _for_forecast(state: Any) -> Any:
    """The arrays that a forecast reads; an array that is not named is not copied before the state changes."""
    q = state.posterior
    return state.points, state.hyperparameters, q.inverse_L, q.C, q.alpha


def differentiable(quick: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is computed by `quick` and differentiated as `plain`, which is the same function."""
    function = jax.custom_jvp(quick)
    function.defjvp(lambda primals, tangents: jax.jvp(plain, primals, tangents))
    return function


# ---- without JAX: a call of it costs several times as much as a step -------------------------------------------------


class _Batch(ctypes.Structure):
    """level.hpp's."""

    _fields_ = (
        ("plan", ctypes.c_void_p),
        ("plan_size", ctypes.c_size_t),
        ("models", ctypes.c_int64),
        ("rows", ctypes.c_int64),
        *(
            (name, ctypes.c_void_p)
            for name in ("settings", "start", "x", "y", "elapsed", "state", "mean", "variance", "noise")
        ),
    )


class Stepper:
    """A model and its state, for samples that are handed in one at a time (`model.Engine`)."""

    def __init__(self, model: Any, state: Any) -> None:
        """Copy the state: it is changed in place from now on."""
        leaves, self._structure = jax.tree.flatten(state)
        self._leaves = [np.array(leaf) for leaf in leaves]
        owned = jax.tree.unflatten(self._structure, self._leaves)
        self._noise = owned.hyperparameters.noise
        self._shape = state.layout.target_shape
        with jax.enable_x64(True):
            self._numbers, self._start = (np.array(array, np.float64) for array in _settings(model, state))
        # whatever C++ reads and writes stays where it is
        self._plan = _plan(model, state)
        self._all, self._read = _pointers(self._leaves), _pointers(jax.tree.leaves(_for_forecast(owned)))
        self._x, self._next = np.zeros((2, 1, state.layout.inputs))
        self._y, self._elapsed = np.zeros((1, *self._shape)), np.zeros(1)
        self._answer = np.zeros((3, 1, *self._shape))
        loaded = library()
        assert loaded is not None  # noqa: S101 (see `suits`)
        self._run, self._forecast = (getattr(loaded, f"driftgp_{name}_directly") for name in _CALLS)
        self._learning = ctypes.byref(self._rows(self._x, self._y, self._elapsed))
        self._predicting = ctypes.byref(self._questions(self._next, self._answer))

    def predict(self, X: np.ndarray) -> Gaussian:
        """Distribution of new targets at the rows of X."""
        X, answer = np.ascontiguousarray(X), np.empty((3, X.shape[0], *self._shape))
        self._forecast(ctypes.byref(self._questions(X, answer)))
        return self._prediction(answer)

    def update(self, X: np.ndarray, y: np.ndarray, elapsed: np.ndarray) -> None:
        """Learn from several rows."""
        rows = [np.ascontiguousarray(array) for array in (X, y, np.broadcast_to(elapsed, X.shape[:1]))]
        self._run(ctypes.byref(self._rows(*rows)))

    def follow(self, x: np.ndarray, y: np.ndarray, elapsed: np.ndarray, x_next: np.ndarray) -> Gaussian:
        """Learn from one sample, then predict at x_next."""
        self._x[0], self._y[0], self._elapsed[0], self._next[0] = x, y, elapsed, x_next
        self._run(self._learning)
        self._forecast(self._predicting)
        return self._prediction(self._answer.copy())

    @property
    def state(self) -> Any:
        """A copy of the state as it is now."""
        with jax.enable_x64(True):
            return jax.tree.unflatten(self._structure, [jnp.array(leaf) for leaf in self._leaves])

    def _prediction(self, answer: np.ndarray) -> Gaussian:
        answer[2] = self._noise if self._shape else self._noise[0]
        prediction: Gaussian = jax.tree.unflatten(_GAUSSIAN, answer)  # to call the class would take longer than a step
        return prediction

    def _rows(self, *arrays: np.ndarray) -> _Batch:
        """Rows to learn from: X, y and elapsed."""
        given = map(_address, (self._numbers, self._start, *arrays))
        return _Batch(*self._size(arrays[0]), *given, ctypes.addressof(self._all), None, None, None)

    def _questions(self, X: np.ndarray, answer: np.ndarray) -> _Batch:
        """Rows to predict for, and room for mean and variance."""
        mean, variance, _ = map(_address, answer)
        nothing = None, None
        return _Batch(
            *self._size(X), *nothing, _address(X), *nothing, ctypes.addressof(self._read), mean, variance, None
        )

    def _size(self, X: np.ndarray) -> tuple[int, int, int, int]:
        return _address(self._plan), self._plan.size, 1, X.shape[0]


_GAUSSIAN = jax.tree.structure(Gaussian(*np.zeros((3, 1))))


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


def _pointers(arrays: list[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*map(_address, arrays))
