"""The contract: a model is three pure functions over a state.

Users, loops and wrappers call `init`, `predict` and `update`, which `Model` supplies: called directly they check their
arguments, keep float64 and run compiled; called inside a trace (jit, vmap, scan) they are the bare mathematics.
A new model writes that mathematics once, in `start`, `forecast` and `learn`, where targets always have P columns.
"""

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from driftgp import checks, compiling, loops
from driftgp.compiling import compile_outer, in_one_piece, small
from driftgp.packing import Packing
from driftgp.prediction import Prediction, traced


@dataclass(frozen=True)
class Layout:
    """Shapes that a state was started with."""

    inputs: int  # D
    outputs: int | None  # P, or None for a plain number
    dtype: str
    gaps: bool = False  # whether an input may be NaN

    @property
    def columns(self) -> int:
        """Number of target columns inside the model."""
        return self.outputs or 1

    @property
    def target_shape(self) -> tuple[int, ...]:
        """Shape of one target as the user gives it."""
        return () if self.outputs is None else (self.outputs,)


class State(eqx.Module):
    """What a model remembers: a pytree of arrays whose shapes never change."""

    layout: eqx.AbstractVar[Layout]


S = TypeVar("S", bound=State)


class Units(eqx.Module):
    """A centre and a scale for every input and every target: x in these units is (x − centre) / scale."""

    x_centre: Array  # D
    x_scale: Array  # D
    y_centre: Array  # P
    y_scale: Array  # P

    def inputs(self, X: Array) -> Array:
        """Inputs in these units."""
        return (X - self.x_centre) / self.x_scale

    def targets(self, y: Array) -> Array:
        """Targets in these units."""
        return (y - self.y_centre) / self.y_scale


class Engine(Protocol):
    """A model and its state, which it changes in place; arrays are as the user gave them, and checked."""

    @property
    def state(self) -> Any:
        """A copy of the state as it is now."""

    def predict(self, X: np.ndarray) -> Prediction:
        """Distribution of new targets at the rows of X."""

    def update(self, X: np.ndarray, y: np.ndarray, elapsed: np.ndarray) -> None:
        """Learn from several rows."""

    def follow(self, x: np.ndarray, y: np.ndarray, elapsed: np.ndarray, x_next: np.ndarray) -> Prediction:
        """Learn from one sample, then predict at x_next."""


class Stacked(Protocol):
    """A model, for states that lie packed behind each other, one row each of a vector per dtype."""

    def run(
        self,
        stack: Sequence[np.ndarray],
        slots: np.ndarray,
        ends: np.ndarray,
        rows: Sequence[np.ndarray],
        *,
        learn: bool,
    ) -> Prediction:
        """Predict rows (X, y, elapsed), and learn from them if told to, which changes the stack in place.

        The states at `slots` have rows, in this order, and those of each end at `ends`.
        """


class Model(eqx.Module, Generic[S]):
    """A regression model for a stream. Its fields are settings; what it learns is in the state."""

    # ---- what a new model provides: pure, traceable, targets with P columns

    @abc.abstractmethod
    def start(self, layout: Layout, X: Array, y: Array) -> S:
        """State after a warm-up batch X (N×D), y (N×P); N = 0 is a cold start."""

    @abc.abstractmethod
    def forecast(self, state: S, X: Array) -> Prediction:
        """Distribution of new targets at X (N×D), arrays N×P."""

    @abc.abstractmethod
    def learn(self, state: S, x: Array, y: Array, elapsed: Array) -> S:
        """State after time `elapsed` and then one sample x (D), y (P); where y is NaN only time has passed."""

    # ---- what a model may provide for loops

    def stepper(self, state: S) -> "Engine | None":  # noqa: ARG002
        """Something that takes samples one at a time more quickly than a compiled function is called; None without."""
        return None

    def stacked(self, packing: Packing) -> "Stacked | None":  # noqa: ARG002
        """The same for a stack of states; None without."""
        return None

    def follow(self, state: S, X: Array, y: Array, elapsed: Array) -> tuple[Prediction, S] | None:  # noqa: ARG002
        """Forecast N×P of each row of X (N×D) before its y (N×P) is learned from, and the state after the last one.

        None, if the model has no quicker way than `forecast` and `learn` row by row.
        """
        return None

    # ---- what a model may provide for checkpoints and wrappers

    @property
    def fills_gaps(self) -> bool:
        """Whether inputs may be NaN; else they are refused, or inside a trace count as not observed."""
        return False

    @property
    def light(self) -> bool:
        """Whether most steps leave most of the state alone; then it matters less how large it is."""
        return False

    def essence(self, state: S) -> S:
        """State with zeros in place of all that `complete` can compute from the rest: what a checkpoint stores."""
        return state

    def complete(self, state: S) -> S:
        """Undo `essence`, up to rounding."""
        return state

    def rescale(self, state: S, units: Units) -> S:  # noqa: ARG002
        """State as if every sample had come in these units of the present ones; shares of a scale stay as they are."""
        raise ValueError(f"{type(self).__name__} cannot change the units of what it has learned")

    def joint(self, state: S, X: Array) -> Array:  # noqa: ARG002
        """Covariance of new targets at X (N×D) between each other, P×N×N; its diagonal is the forecast's variance."""
        raise ValueError(f"{type(self).__name__} has no joint covariance of several targets")

    # ---- what users, loops and wrappers call

    def init(self, X: ArrayLike, y: ArrayLike) -> S:
        """Warm up on a batch, N×D and N (or N×P for several outputs); N = 0 is a cold start."""
        if traced(self, X, y):
            return _start(self, jnp.asarray(X), jnp.asarray(y))
        X, y = checked_batch(X, y, gaps=self.fills_gaps)
        with jax.enable_x64(True):
            state: S = _compiled_start(self, X, y)
        return state

    def predict(self, state: S, X: ArrayLike) -> Prediction:
        """Distribution of new targets at the rows of X, N×D."""
        prediction: Prediction = self._at(state, X, _forecast, _compiled_forecast)
        return prediction

    def covariance(self, state: S, X: ArrayLike) -> Array:
        """Joint covariance of new targets at the rows of X, N×N, or N×N×P for several outputs."""
        covariance: Array = self._at(state, X, _joint, _compiled_joint)
        return covariance

    def _at(self, state: S, X: ArrayLike, bare: Callable[..., Any], compiled: Callable[..., Any]) -> Any:
        if traced(self, state, X):
            return bare(self, state, jnp.asarray(X))
        X = checked_inputs(state.layout, X)
        with jax.enable_x64(True):
            answer = compiled(self, state, X)
        return jax.tree.map(np.asarray, answer)

    def update(self, state: S, x: ArrayLike, y: ArrayLike, elapsed: ArrayLike = 1.0) -> S:
        """Learn from one sample (x of D, y a number or P) or from several rows, one after another.

        `elapsed` is the time since the sample before. A NaN target means that time passes and nothing is learned.
        """
        if traced(self, state, x, y, elapsed):
            return _learn(self, state, jnp.asarray(x), jnp.asarray(y), jnp.asarray(elapsed))
        rows = checked_rows(state.layout, x, y, elapsed)
        with jax.enable_x64(True):
            updated: S = (_whole_learn if small(state, light=self.light) else _compiled_learn)(self, state, *rows)
        return updated


# ---- from the user's shapes to the model's -------------------------------------------------------------------------


def _in_precision(dtype: str, tree: Any) -> Any:
    """Settings and data in the precision of the state: one float64 setting would turn a float32 state into float64."""

    def convert(leaf: Any) -> Any:
        return jnp.asarray(leaf, dtype) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf

    return jax.tree.map(convert, tree)


def _start(model: Model[S], X: Array, y: Array) -> S:
    layout = Layout(X.shape[1], y.shape[1] if y.ndim == 2 else None, str(X.dtype), model.fills_gaps)
    model, y = _in_precision(layout.dtype, (model, y))
    return model.start(layout, X, y.reshape(y.shape[0], layout.columns))


def _forecast(model: Model[S], state: S, X: Array) -> Prediction:
    model, X = _in_precision(state.layout.dtype, (model, X))
    return _as_given(state.layout, model.forecast(state, X))


def follow(model: Model[S], state: S, X: Array, y: Array, elapsed: Array) -> tuple[Prediction, S] | None:
    """`Model.follow`, for rows as the user gives them."""
    model, X, y, elapsed = _in_precision(state.layout.dtype, (model, X, y, elapsed))
    followed = model.follow(state, X, y.reshape(X.shape[0], state.layout.columns), elapsed)
    return followed and (_as_given(state.layout, followed[0]), followed[1])


def _as_given(layout: Layout, prediction: Prediction) -> Prediction:
    return prediction if layout.outputs else jax.tree.map(partial(jnp.squeeze, axis=-1), prediction)


def _joint(model: Model[S], state: S, X: Array) -> Array:
    model, X = _in_precision(state.layout.dtype, (model, X))
    covariance = jnp.moveaxis(model.joint(state, X), 0, -1)  # N×N×P
    return covariance if state.layout.outputs else covariance[..., 0]


def _learn(
    model: Model[S],
    state: S,
    x: Array,
    y: Array,
    elapsed: Array,
    whole: Callable[..., Any] = lambda step: step,
    loop: Callable[..., Any] = loops.scan,
) -> S:
    def one(model: Model[S], state: S, row: tuple[Array, Array, Array]) -> tuple[S, None]:
        model, x, y, elapsed = _in_precision(state.layout.dtype, (model, *row))
        return model.learn(state, x, jnp.reshape(y, state.layout.columns), elapsed), None

    followed = follow(model, state, x, y, jnp.broadcast_to(elapsed, x.shape[:1])) if x.ndim == 2 else None
    if followed is not None:
        return followed[1]
    if x.ndim == 1:
        learned: S = whole(one)(model, state, (x, y, elapsed))[0]
    else:
        learned = loop(one, model, state, (x, y, jnp.broadcast_to(elapsed, x.shape[:1])))[0]
    return learned


_compiled_start = compile_outer(_start)
_compiled_forecast = compile_outer(_forecast)
_compiled_joint = compile_outer(_joint)
_compiled_learn = compile_outer(_learn)
_whole_learn = compile_outer(partial(_learn, whole=in_one_piece, loop=compiling.scan), whole=True)


# ---- checks of direct calls ----------------------------------------------------------------------------------------


def checked_batch(X: ArrayLike, y: ArrayLike, *, gaps: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return a warm-up batch as arrays of one precision, or refuse it."""
    X, y = checks.inputs("X", X, gaps=gaps), checks.real("y", y)
    if y.ndim not in (1, 2) or y.shape[0] != X.shape[0] or y.shape[1:] == (0,):
        rows = X.shape[0]
        raise ValueError(f"y must have shape ({rows},) or ({rows}, P), one row for each of X; got shape {y.shape}")
    return X, checks.targets("y", y, y.shape).astype(X.dtype)


def checked_inputs(layout: Layout, X: ArrayLike) -> np.ndarray:
    """Return rows to predict for as an array that fits the state, or refuse them."""
    X = checks.inputs("X", X, layout.inputs, gaps=layout.gaps)
    if X.shape[0] == 0:
        raise ValueError(f"X must have at least one row to predict for; got shape {X.shape}")
    return X.astype(layout.dtype, copy=False)


def checked_rows(layout: Layout, x: ArrayLike, y: ArrayLike, elapsed: ArrayLike) -> tuple[np.ndarray, ...]:
    """Return one sample or several as arrays that fit the state, or refuse them."""
    x = checks.real("x", x)
    if x.ndim not in (1, 2):
        raise ValueError(f"x must have shape ({layout.inputs},) for one sample or N×D for several; got {x.shape}")
    x = checks.inputs("x", x, layout.inputs, ndim=x.ndim, gaps=layout.gaps)
    y = checks.targets("y", y, x.shape[:-1] + layout.target_shape)
    elapsed = checks.elapsed(elapsed, x.shape[:-1])
    return tuple(array.astype(layout.dtype, copy=False) for array in (x, y, elapsed))
