"""The states of all series: an array of records for each model, and the engine that runs it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftgp.engine import engine
from driftgp.model import Layout, Model, State
from driftgp.predictions import Forecast
from driftgp.runner.work import Said, Work

_FIRST = 4  # records that a stack has room for, before it doubles


class Stack:
    """The states of the series that have one model."""

    def __init__(self, model: Model, inputs: int) -> None:
        """Have room for a few."""
        self.model, self.layout = model, Layout(inputs, None, model.fills_gaps)
        self.engine = engine(model, inputs, 1)
        self.forecast_dtype = model.forecast_dtype(1)
        self._records = np.zeros(_FIRST, model.record_dtype(inputs, 1))
        self._used = 0

    # ---- states ------------------------------------------------------------------------------------------------------

    def admit(self) -> int:
        """Take a series in: its slot, whose record is all zeros."""
        if self._used == len(self._records):
            self._records = np.concatenate([self._records, np.zeros_like(self._records)])
        self._used += 1
        return self._used - 1

    def state(self, slot: int) -> State:
        """The state of a series, which changes with it; to be asked for again once another series was admitted."""
        return State.own(self.model, self.layout, self._records[slot : slot + 1].reshape(()))

    def start(self, slot: int, X: np.ndarray, y: np.ndarray) -> None:
        """Start a series from a warm-up batch, N×D and N."""
        self.engine.start(self.state(slot).record, X, y[:, None])

    # ---- rows --------------------------------------------------------------------------------------------------------

    def forecast(self, slot: int, X: np.ndarray) -> np.ndarray:
        """Forecasts at the rows of X by the state as it is."""
        return self.engine.run(self._records, np.array([slot]), np.array([len(X)]), X)

    def run(self, slots: Sequence[int], works: Sequence[Work]) -> np.ndarray:
        """Do the work of several series, one after the other in the forecasts returned, in one call.

        A label's row is the one predicted just before it, so that the engine has the forecast that was issued for it.
        """
        ends = np.cumsum([len(work.y) for work in works])
        x, y, elapsed, x_next, _ = (np.concatenate(arrays) for arrays in zip(*works, strict=True))
        return self.engine.run(self._records, np.array(slots), ends, x, y[:, None], elapsed, x_next)

    def run_late(self, slot: int, work: Work, issued: np.ndarray) -> np.ndarray:
        """Do the work of one series whose labels come h rows after their rows were predicted.

        A label is learned from together with the forecast that was issued for its row, by which calibration, weights
        and monitor judge the model: a forecast made now would know what came in between. `issued` has the h forecasts
        whose labels are still to come; those of the rows predicted here follow them in what is returned, h + N.
        """
        one, h = self.engine.single(self.state(slot).record), len(issued)
        made = np.concatenate([issued, np.empty(len(work.y), self.forecast_dtype)])
        for i in range(len(work.y)):
            one.learn(work.x[i], work.y[i : i + 1], float(work.elapsed[i]), made[i : i + 1])
            made[h + i] = one.predict(work.x_next[i])[0]
        return made

    def say(self, made: np.ndarray, y: np.ndarray, level: float) -> Said:
        """Forecasts of rows whose targets are y as means, intervals of a level, log densities and normal scores."""
        forecast = Forecast(self.model, made, flat=True, solve=self.engine.solve)
        low, high = forecast.interval(level)
        there = np.isfinite(y)
        y = np.where(there, y, forecast.mean)
        log_density, score = (np.where(there, of(y), np.nan) for of in (forecast.log_prob, forecast.to_normal))
        return Said(forecast.mean, low, high, log_density, score)


class Seat(NamedTuple):
    """Where the state of a series is."""

    stack: Stack
    slot: int


class Stacks:
    """A stack for each model: series that are much alike have models of the same settings."""

    def __init__(self, inputs: int) -> None:
        """Take the number of inputs."""
        self._inputs = inputs
        self._stacks: dict[Model, Stack] = {}

    def admit(self, model: Model) -> Seat:
        """Take a series in that has this model."""
        if model not in self._stacks:
            self._stacks[model] = Stack(model, self._inputs)
        stack = self._stacks[model]
        return Seat(stack, stack.admit())
