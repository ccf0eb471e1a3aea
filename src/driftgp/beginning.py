"""How a stream begins: a model is at work from the first row on, and the first rows together choose which."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from driftgp.defaults import LONGEST, Effort, Support, check_effort, recommended
from driftgp.model import Layout, Model, State

FIRST = LONGEST  # rows that choose a model: as many as the longest window holds
_MOST = 1 << 21  # numbers of the first rows, on the word of a file


class Rows(NamedTuple):
    """Rows as a model takes them, checked; without targets there is nothing to learn."""

    X: np.ndarray  # N×D
    y: Any  # N×P
    elapsed: Any  # N; of rows that are kept, the spans of time behind it

    def part(self, rows: slice) -> "Rows":
        """Some of them."""
        return Rows(*(array[rows] for array in self))


class Plan(NamedTuple):
    """A model, and how many of the first rows it warms up on; from the others it learns one after another."""

    model: Model
    warmup: int = 0

    def start(self, layout: Layout, rows: Rows) -> State:
        """The state of the model with these rows behind it."""
        count = min(self.warmup, len(rows.X))
        y = rows.y[:count] if layout.outputs is not None else rows.y[:count, 0]
        state = self.model.init(rows.X[:count], y)
        rest = rows.part(slice(count, None))
        if len(rest.X):
            state.engine().run(state.record.reshape(1), np.array([0]), np.array([len(rest.X)]), *rest)
        return state


class Start(Protocol):
    """Which model a stream gets."""

    @property
    def first(self) -> int:
        """Rows that choose the model; 0 if there is no choice."""

    @property
    def gaps(self) -> bool:
        """Whether inputs may be NaN."""

    def meanwhile(self, X: np.ndarray, y: np.ndarray) -> Plan:
        """The model until then, given an empty batch of the stream's shapes."""

    def plan(self, X: np.ndarray, y: np.ndarray) -> Plan:
        """The model for a stream that begins with these rows, N×D and N (or N×P)."""


@dataclass(frozen=True)
class Given:
    """A model that is given: there is nothing to choose."""

    model: Model
    first: int = 0

    @property
    def gaps(self) -> bool:
        """Whether the model takes inputs that are NaN."""
        return self.model.fills_gaps

    def meanwhile(self, X: np.ndarray, y: np.ndarray) -> Plan:  # noqa: ARG002
        """The model, cold."""
        return Plan(self.model)

    def plan(self, X: np.ndarray, y: np.ndarray) -> Plan:  # noqa: ARG002
        """The model, warmed up on the rows that are there."""
        return Plan(self.model, len(X))


@dataclass(frozen=True)
class Default:
    """The default model: `recommended` for the first rows.

    It learns from its very first row on. A warm-up would fit its hyperparameters to a batch, and leave its intervals
    uncalibrated until after it.
    """

    first: int = FIRST
    gaps: bool = True
    effort: Effort = "medium"
    support: Support = "auto"

    def __post_init__(self) -> None:
        """Refuse what no row could mend."""
        check_effort(self.effort)

    @classmethod
    def from_json(cls, stored: Any) -> "Default":
        """The default of an effort and a support as they were written down."""
        effort, support = stored
        support = tuple(support) if isinstance(support, list) else support
        recommended(np.zeros((0, 1)), np.zeros(0), effort=effort, support=support)  # which refuses others
        return cls(effort=effort, support=support)

    def meanwhile(self, X: np.ndarray, y: np.ndarray) -> Plan:
        """The default for a stream of which nothing is known."""
        return Plan(recommended(X, y, effort=self.effort, support=self.support))

    def plan(self, X: np.ndarray, y: np.ndarray) -> Plan:
        """The default for these rows."""
        return Plan(recommended(X, y, effort=self.effort, support=self.support))


class Buffer:
    """The first rows of a stream, kept until they are enough to choose a model by; never more than that.

    Kept are codes and spans of time: which inputs and how many steps they are, later rows may tell.
    """

    def __init__(self, first: int, columns: int, outputs: int) -> None:
        """Keep up to `first` rows."""
        self.count = 0
        self._rows = Rows(np.zeros((first, columns)), np.zeros((first, outputs)), np.zeros(first))

    @property
    def missing(self) -> int:
        """Rows that are still to come."""
        return len(self._rows.X) - self.count

    @property
    def rows(self) -> Rows:
        """Those that are there."""
        return self._rows.part(slice(self.count))

    def extend(self, rows: Rows) -> None:
        """Keep more rows."""
        end = self.count + len(rows.X)
        for kept, new in zip(self._rows, rows, strict=True):
            kept[self.count : end] = new
        self.count = end

    def longer(self) -> "Buffer":
        """One that may be extended while this one stays as it is; the rows that are there are the same memory."""
        other = object.__new__(Buffer)
        other.count, other._rows = self.count, self._rows
        return other

    def copy(self) -> "Buffer":
        """The same rows, kept by themselves."""
        other = Buffer(len(self._rows.X), self._rows.X.shape[1], self._rows.y.shape[1])
        other.extend(self.rows)
        return other

    def to_json(self) -> dict[str, Any]:
        """The rows, as JSON can hold them."""
        return {"first": len(self._rows.X), **{name: array.tolist() for name, array in self.rows._asdict().items()}}

    @classmethod
    def from_json(cls, stored: dict[str, Any], columns: int, outputs: int) -> "Buffer":
        """Take back what `to_json` gave."""
        first, count = stored["first"], len(stored["elapsed"])
        if type(first) is not int or not 0 <= count < first or first * (columns + outputs + 1) > _MOST:
            raise ValueError(f"a buffer of {count} of {first} rows of {columns} columns")
        shapes = {"X": (count, columns), "y": (count, outputs), "elapsed": (count,)}
        buffer = cls(first, columns, outputs)
        rows = Rows(**{name: np.array(stored[name], np.float64).reshape(shapes[name]) for name in shapes})
        if any(np.isinf(array).any() for array in rows) or np.any(rows.elapsed < 0.0):
            raise ValueError("the first rows must be finite, or NaN, and no time between them below 0")
        buffer.extend(rows)
        return buffer
