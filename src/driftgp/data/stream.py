"""The shape in which data leave this room: a stream to learn from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Floats = NDArray[np.float64]
Times = NDArray[np.datetime64]


def frozen(values: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """A read-only copy, so that a frozen record is frozen to its last number."""
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Stream:
    """Samples in the order in which they arrive, the first `warmup` of them for warm-up and the rest online.

    `X` is N×D and `y` is N, or N×P for P outputs on shared inputs; a NaN in `y` says that nothing was
    observed. `times` are the times of the targets where they are known, `elapsed` the time since the sample
    before (1 each unless given). `lag_columns` names, for each output, the column of X that holds its
    previous value.

    >>> pairs = Stream("pairs", X=[[1.0], [2.0], [4.0]], y=[2.0, 4.0, 8.0], warmup=1, lag_columns=(0,))
    >>> len(pairs), pairs.online
    (3, 2)
    >>> pairs.persistence()
    array([1., 2., 4.])
    """

    name: str
    X: Floats  # N×D
    y: Floats  # N or N×P
    warmup: int
    unit: str = ""
    times: NDArray[Any] | None = None  # N
    elapsed: Floats = field(default_factory=lambda: np.ones(0))  # N
    inputs: tuple[str, ...] = ()  # D names
    lag_columns: tuple[int, ...] = ()  # P

    def __post_init__(self) -> None:
        X, y = frozen(self.X, np.float64), frozen(self.y, np.float64)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)
        elapsed = self.elapsed if np.size(self.elapsed) else np.ones(len(y))
        object.__setattr__(self, "elapsed", frozen(elapsed, np.float64))
        if self.times is not None:
            object.__setattr__(self, "times", frozen(self.times))
        self._check()

    def _check(self) -> None:
        n = len(self.X)
        if self.X.ndim != 2 or self.y.ndim not in (1, 2) or len(self.y) != n:
            raise ValueError(
                f"X and y of {self.name!r} have shapes {self.X.shape} and {self.y.shape}: "
                "give X as N×D and y as N or N×P"
            )
        if not 0 <= self.warmup <= n:
            raise ValueError(f"warmup of {self.name!r} is {self.warmup}: give 0 to {n}, the number of samples")
        for label, column in (("times", self.times), ("elapsed", self.elapsed)):
            if column is not None and column.shape != (n,):
                raise ValueError(f"{label} of {self.name!r} has shape {column.shape}: give one for each of {n} samples")
        if self.inputs and len(self.inputs) != self.X.shape[1]:
            raise ValueError(f"inputs of {self.name!r} has {len(self.inputs)} names for {self.X.shape[1]} columns of X")
        outputs = self.y.size // n if n else len(self.lag_columns)
        if self.lag_columns and len(self.lag_columns) != outputs:
            raise ValueError(
                f"lag_columns of {self.name!r} is {self.lag_columns}: give one for each of {outputs} outputs"
            )

    def __len__(self) -> int:
        return len(self.X)

    @property
    def online(self) -> int:
        """The number of samples after the warm-up."""
        return len(self) - self.warmup

    def output(self, index: int) -> Stream:
        """The stream of one output of several, for one model an output; `y` becomes N."""
        if self.y.ndim == 1 or not -self.y.shape[1] <= index < self.y.shape[1]:
            raise ValueError(f"output {index} asked of {self.name!r}, whose y has shape {self.y.shape}")
        lags = self.lag_columns[index : index + 1 or None]
        return replace(self, y=self.y[:, index], lag_columns=lags)

    def persistence(self) -> Floats:
        """The naive forecast of `y`: its lag column, or else the last value observed (NaN if none was)."""
        if self.lag_columns:
            lagged = self.X[:, list(self.lag_columns)]
            return lagged[:, 0] if self.y.ndim == 1 else lagged
        seen = np.where(np.isnan(self.y.T), 0, np.arange(len(self)))
        newest = np.maximum.accumulate(seen, axis=-1).T
        forecast = np.full_like(self.y, np.nan)
        forecast[1:] = np.take_along_axis(self.y, newest, axis=0)[:-1]
        return forecast
