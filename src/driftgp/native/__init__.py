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

from driftgp import bound, kernels, learning
from driftgp.inducing import RULES
from driftgp.kernels import Covariance

# In the order of kernel.hpp.
_STATIONARY = (kernels.SE, kernels.Matern12, kernels.Matern32, kernels.Matern52)
_KINDS: tuple[type, ...] = (*_STATIONARY, kernels.Linear, kernels.Constant)
_MOST_TERMS = 16
# The builds for one kind of processor each, in the order of entry.cpp; the first is chosen by the library itself.
LEVELS = ("best", "plain", "x86_v3", "x86_v4")
# Says that a library fits: see entry.cpp.
_INTERFACE = 3
CALLS = ("follow", "forecast")


@cache
def library() -> ctypes.CDLL | None:
    """The compiled library, known to JAX from now on; None if there is none."""
    paths = sorted(Path(__file__).parent.glob("step*.so"))
    if not paths or os.environ.get("DRIFTGP_NATIVE") == "0":
        return None
    try:
        return _loaded(paths[0])
    except (OSError, AttributeError, ValueError, RuntimeError) as error:
        warnings.warn(f"driftgp goes on without its C++ library, which cannot be loaded: {error}", stacklevel=2)
        return None


def _loaded(path: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(path))
    if ctypes.c_int32.in_dll(loaded, "driftgp_interface").value != _INTERFACE:
        raise ValueError(f"{path.name} was compiled for another version of driftgp: install driftgp again")
    for name in (*CALLS, "warm_up"):
        handler = getattr(loaded, f"driftgp_{name}")
        jax.ffi.register_ffi_target(f"driftgp_{name}", jax.ffi.pycapsule(handler), platform="cpu")
    return loaded


def suits(model: Any, state: Any, *, from_jax: bool = True) -> bool:
    """Whether the library has what an AGP and its state, or the shapes of one, need.

    Called from JAX it needs JAX to have double precision at this place, too.
    """
    return (
        model.optimizer is None
        and model.restart
        and model.iterations == 1
        and state.layout.columns < bound.MANY  # from there on `bound` has a better way than a factor for each
        and terms(model.kernel) is not None
        and _fits(model, state)
        and jax.default_backend() == "cpu"
        and not (from_jax and jax.dtypes.canonicalize_dtype(np.float64) != np.float64)
        and library() is not None
    )


def _fits(model: Any, state: Any) -> bool:
    """Whether all arrays have the shapes and types that C++ takes for granted."""
    D, P, M, T = state.layout.inputs, state.layout.columns, model.inducing, model.window
    parameters = [leaf.shape for leaf in jax.tree.leaves(state.hyperparameters.kernel)]
    floats = [leaf for leaf in jax.tree.leaves(state) if leaf.dtype not in (np.bool_, np.int32)]
    return (
        state.Kux.shape == (M, T)  # T may be None
        and state.posterior.C.shape == (P, M, M)
        and state.window.X.shape == (T, D)
        and not jax.tree.leaves(state.optimizer)
        and parameters == [np.shape(leaf) for leaf in jax.tree.leaves(model.kernel)]
        and all(shape in ((), (D,)) for shape in parameters)
        and all(leaf.dtype == np.float64 for leaf in floats)
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
    many = np.ndim(kernel.variance) > 0
    if isinstance(kernel, kernels.Linear):
        return [(_KINDS.index(kernels.Linear), int(many))]
    each = isinstance(kernel, kernels.Stationary) and np.ndim(kernel.lengthscale) > 0
    return [None if many else (_KINDS.index(type(kernel)), int(each))]


def plan(model: Any, state: Any, level: str = "best") -> np.ndarray:
    """Sizes, choices and terms as level.cpp reads them."""
    found = terms(state.hyperparameters.kernel)
    assert found is not None  # noqa: S101 (see `suits`)
    sizes = state.layout.inputs, state.layout.columns, model.inducing, model.window, model.learn_every
    choices = RULES.index(model.relevance), model.natural is not None, model.prior is not None
    further = model.outliers is not None, model.admission == "published", LEVELS.index(level)
    return np.array([*sizes, *choices, *further, *(number for term in found for number in term)], np.int64)


def numbers(model: Any, state: Any) -> tuple[Array, Array]:
    """Numbers that may differ between the models of a batch, and the parameters to which the prior draws."""
    jitters = model._jitters(state.window.w)  # noqa: SLF001 (one model, in two rooms)
    optional = (jnp.ones(()) if value is None else value for value in (model.prior, model.outliers, model.natural))
    chosen = model.forgetting, model.rate, model.warmup_rate, model.threshold
    stacked = jnp.stack([jnp.asarray(value, float) for value in (*chosen, *jitters, *optional)])
    start = learning.initial(model.kernel, model.noise, state.layout.columns, state.layout.dtype)
    return stacked, ravel_pytree(start)[0]


# ---- as operations of JAX --------------------------------------------------------------------------------------------


def follow(
    model: Any, state: Any, X: Array, y: Array, elapsed: Array, *, predict: bool = True, level: str = "best"
) -> tuple[tuple[Array, ...], Any]:
    """Predict, if asked to, and learn, row after row of X (N×D) and y (N×P).

    Returns mean, variance and noise, N×P each, and the state after the last row.
    """
    answers = 3 * predict * [jax.ShapeDtypeStruct((X.shape[0], state.layout.columns), X.dtype)]
    given = [*numbers(model, state), X, y, elapsed]
    options = {"plan": plan(model, state, level), "rows": np.int64(X.shape[0]), "predict": predict}
    return _changed("follow", given, answers, state, options)


def warm_up(model: Any, state: Any, iterations: int, level: str = "best") -> Any:
    """Hyperparameters learned from the window by Adam, and Kux, statistics and posterior, which are not read."""
    options = {"plan": plan(model, state, level), "rows": np.int64(iterations)}
    return _changed("warm_up", list(numbers(model, state)), [], state, options)[1]


def _changed(
    name: str, given: list[Array], answers: list[jax.ShapeDtypeStruct], state: Any, options: dict[str, Any]
) -> tuple[tuple[Array, ...], Any]:
    """Answers, and the state, which is changed in place where the program around allows it."""
    leaves, structure = jax.tree.flatten(state)
    shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
    aliases = {len(given) + i: len(answers) + i for i in range(len(leaves))}
    call = jax.ffi.ffi_call(
        f"driftgp_{name}", answers + shapes, vmap_method="broadcast_all", input_output_aliases=aliases
    )
    made = call(*given, *leaves, **options)
    return tuple(made[: len(answers)]), jax.tree.unflatten(structure, made[len(answers) :])


def learn(model: Any, state: Any, x: Array, y: Array, elapsed: Array) -> Any:
    """State after one sample."""
    return follow(model, state, x[None], y[None], elapsed[None], predict=False)[1]


def forecast(model: Any, state: Any, X: Array, level: str = "best") -> tuple[Array, Array]:
    """Mean and variance at the rows of X, N×P each."""
    answer = jax.ShapeDtypeStruct((X.shape[0], state.layout.columns), X.dtype)
    call = jax.ffi.ffi_call("driftgp_forecast", [answer, answer], vmap_method="broadcast_all")
    mean, variance = call(
        X, *jax.tree.leaves(for_forecast(state)), plan=plan(model, state, level), rows=np.int64(X.shape[0])
    )
    return mean, variance


def for_forecast(state: Any) -> Any:
    """The arrays that a forecast reads; an array that is not named is not copied before the state changes."""
    q = state.posterior
    return state.points, state.hyperparameters, q.inverse_L, q.C, q.alpha


def differentiable(quick: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is computed by `quick` and differentiated as `plain`, which is the same function."""
    function = jax.custom_jvp(quick)
    function.defjvp(lambda primals, tangents: jax.jvp(plain, primals, tangents))
    return function
