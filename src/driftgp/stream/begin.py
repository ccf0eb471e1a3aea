"""How a series begins: a first model forecasts from the first row on, and the first rows choose the final one."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from driftgp.defaults import LONGEST, Effort, Support, check_effort, recommended
from driftgp.models.model import Model
from driftgp.stream.base_column import place_of
from driftgp.stream.derived import Derived
from driftgp.stream.settings import Settings

FIRST = LONGEST  # rows that choose a model: as many as the longest window holds


class Choice(NamedTuple):
    """A model, and the number of first rows that it warms up on. It learns the other first rows one after another."""

    model: Model
    warmup: int = 0


class Start(Protocol):
    """Which model a series gets."""

    @property
    def first(self) -> int:
        """Rows that choose the model; 0 if there is no choice."""

    @property
    def gaps(self) -> bool:
        """Whether inputs may be NaN."""

    def choose(self, X: np.ndarray, y: np.ndarray) -> Choice:
        """The model for a series that begins with these rows, N×D and N (or N×P); until there are `first`, N = 0."""


@dataclass(frozen=True)
class Given:
    """A model that is given: there is nothing to choose."""

    model: Model
    first: int = 0

    @property
    def gaps(self) -> bool:
        """Whether the model takes inputs that are NaN."""
        return self.model.fills_gaps

    def choose(self, X: np.ndarray, y: np.ndarray) -> Choice:  # noqa: ARG002
        """The model, warmed up on the rows that are there."""
        return Choice(self.model, len(X))


@dataclass(frozen=True)
class Default:
    """The default model: `recommended` for the first rows.

    It learns from its very first row on. A warm-up would fit its hyperparameters to a batch, and leave its intervals
    uncalibrated until after it.
    """

    effort: Effort = "medium"
    support: Support = "auto"
    horizon: int = 1
    lags: tuple[int, ...] = ()  # inputs that are lags of the target, counted from the last one, −1
    base: int | None = None  # the input that is a forecast from elsewhere
    first: int = FIRST
    gaps: bool = True

    @classmethod
    def of(cls, chosen: Settings) -> "Default":
        """That of a stream."""
        derived = Derived.of(chosen, 0, 0)
        lags = tuple(range(-len(derived.names), len(chosen.lags) - len(derived.names)))
        return cls(chosen.effort, chosen.support, chosen.horizon, lags, place_of(chosen.base))

    def __post_init__(self) -> None:
        """Refuse wrong settings before the first row."""
        check_effort(self.effort)

    def choose(self, X: np.ndarray, y: np.ndarray) -> Choice:
        """The default for these rows."""
        effort, support = self.effort, self.support
        return Choice(
            recommended(X, y, horizon=self.horizon, effort=effort, support=support, lags=self.lags, base=self.base)
        )
