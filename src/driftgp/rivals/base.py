"""How a rival written in JAX obeys the contract of a model.

A rival is an equinox module: its fields are settings, its state is a pytree, and its mathematics are pure functions,
`begin`, `look` and `step`, which JAX differentiates and compiles. The adapter below is written once: a state is stored
as the record that has a field for each leaf of the pytree. Row by row through records a rival costs several times what
it costs in a compiled loop; its engine (`scan.py`) therefore takes many rows in one call.
"""

import abc
from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import Array

from driftgp.models.model import Model, Units
from driftgp.rivals import programs, settings
from driftgp.rivals.jax_kernels import register
from driftgp.rivals.scan import ScanEngine
from driftgp.rivals.trees import TreeLayout, layout_of, sizes

# Rows of the pretended warm-up from which a state's shapes are found: enough for every rival to start.
_ROWS = 16


class Normal(NamedTuple):
    """What a rival says of new targets, N×P each."""

    mean: Array
    variance: Array
    noise: Array


class Rival(Model, eqx.Module):
    """A model whose mathematics are pure functions of JAX arrays."""

    kernel: Any = settings.kernel()
    noise: Any = settings.noise()  # variance, 1 or P

    def __post_init__(self) -> None:
        """Check the settings."""
        settings.check(self)

    # ---- what a rival provides: pure, traceable, targets with P columns ----------------------------------------------

    @abc.abstractmethod
    def begin(self, X: Array, y: Array) -> Any:
        """State after a warm-up batch X (N×D), y (N×P); its shapes may not depend on N, which may be 0."""

    @abc.abstractmethod
    def look(self, state: Any, X: Array) -> Normal:
        """Distribution of new targets at X (N×D)."""

    @abc.abstractmethod
    def step(self, state: Any, x: Array, y: Array, elapsed: Array) -> Any:
        """State after time `elapsed` and then one sample x (D), y (P); where y is NaN only time has passed."""

    @abc.abstractmethod
    def in_units(self, state: Any, units: Units) -> Any:
        """State as if every sample had come in these units of the present ones."""

    # ---- what it may provide -----------------------------------------------------------------------------------------

    def finish(self, state: Any) -> Any:
        """State with the fields that `derived` names computed from the others."""
        return state

    # ---- the contract ------------------------------------------------------------------------------------------------

    def tree_layout(self, inputs: int, outputs: int) -> TreeLayout:
        """How a state lies in its record."""
        leaves, structure = self._settings()
        shapes = tuple((leaf.shape, leaf.dtype.str) for leaf in leaves)
        return _layout(structure, shapes, inputs, outputs)

    def record_dtype(self, inputs: int, outputs: int) -> np.dtype:
        """Layout of a state: a field for each leaf of the pytree."""
        return self.tree_layout(inputs, outputs).record

    def view(self, record: np.ndarray) -> "RivalView":
        """The fields of a state as attributes, and those of the pytree."""
        return RivalView(self, record)

    def accept(self, inputs: int, outputs: int, rows: int) -> None:  # noqa: ARG002
        """Refuse what the settings do not fit: they are tried on a pretended batch."""
        self.tree_layout(inputs, outputs)

    def start(self, state: "RivalView", X: np.ndarray, y: np.ndarray) -> None:
        """Begin with a warm-up batch."""
        state.words[...] = programs.call(programs.begin, state.layout, programs.as_arrays(self), X, y)

    def forecast(self, state: "RivalView", X: np.ndarray) -> np.ndarray:
        """Look at each row."""
        made = programs.forecasts(state.layout, programs.as_arrays(self), state.words, X)
        return made.view(self.forecast_dtype(made.shape[1] // 3))[:, 0]

    def learn(
        self,
        state: "RivalView",
        x: np.ndarray,
        y: np.ndarray,
        elapsed: float,
        forecast: np.ndarray | None = None,  # noqa: ARG002 (a step computes all it needs)
    ) -> None:
        """Take a step."""
        self._change(state, programs.step, x, y, elapsed)

    def complete(self, state: "RivalView") -> None:
        """Finish the state."""
        self._change(state, programs.finish)

    def rescale(self, state: "RivalView", units: Units) -> None:
        """Change the units."""
        self._change(state, programs.in_units, units)

    def _change(self, state: "RivalView", program: Any, *arguments: Any) -> None:
        state.words[...] = programs.call(program, state.layout, programs.as_arrays(self), state.words, *arguments)

    def check(self, state: "RivalView") -> None:
        """Refuse numbers that are not finite, and whole numbers that no leaf of the pytree could hold."""
        for name, dtype in state.layout.fields():
            values = state.record[name]
            if not np.isfinite(values).all() or (values.astype(dtype) != values).any():
                raise ValueError(f"{name} must hold finite numbers of {dtype}; got {values}")

    def engine(self, inputs: int, outputs: int) -> ScanEngine:  # noqa: ARG002
        """Many rows in one compiled call."""
        return ScanEngine(self, outputs)

    # ---- equal by their settings, as all models are ------------------------------------------------------------------

    def _settings(self) -> tuple[list[np.ndarray], Any]:
        """Numbers, and all else that the settings are made of."""
        register(self.kernel)
        leaves, structure = jax.tree.flatten(self)
        return [np.asarray(leaf) for leaf in leaves], structure

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        (mine, structure), (others, same) = self._settings(), other._settings()
        return structure == same and all(map(np.array_equal, mine, others))

    def __hash__(self) -> int:
        leaves, structure = self._settings()
        return hash((structure, *(leaf.tobytes() for leaf in leaves)))


class RivalView:
    """A rival's record: its fields as attributes, and those of the pytree that it holds (`state.fit.skipped`)."""

    __slots__ = ("layout", "record", "words")

    def __init__(self, rival: Rival, record: np.ndarray) -> None:
        """Look at a record of this rival."""
        self.layout, self.record = rival.tree_layout(*sizes(record)), record
        self.words = record.reshape(1).view(np.int64)  # the record's own memory, as programs take it

    @property
    def tree(self) -> Any:
        """The state as a pytree; its arrays are copies."""
        return self.layout.read(self.record)

    def put(self, tree: Any) -> None:
        """Take another state."""
        self.layout.write(tree, self.record)

    def __getattr__(self, name: str) -> Any:
        if name in RivalView.__slots__:
            raise AttributeError(name)
        if name not in (self.record.dtype.names or ()):
            return getattr(self.tree, name)
        value = self.record[name]
        return value if value.ndim else value.item()


@lru_cache(maxsize=1024)
def _layout(structure: Any, leaves: tuple[tuple[tuple[int, ...], str], ...], inputs: int, outputs: int) -> TreeLayout:
    """Layout of the states of all rivals whose settings have this structure and these shapes."""
    with jax.enable_x64(True):
        rival = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in leaves])
        X, y = (jax.ShapeDtypeStruct((_ROWS, columns), np.float64) for columns in (inputs, outputs))
        state = jax.eval_shape(lambda rival, X, y: rival.begin(X, y), rival, X, y)
    return layout_of(state, inputs, outputs)
