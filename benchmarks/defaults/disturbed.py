"""Streams with one wild target, one wild input, or a level that jumps, against the same rows undisturbed."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.defaults.score import follow_from
from benchmarks.defaults.streams import TEN, WARMUP, Floats, Stream, stream
from benchmarks.recovery import recovery
from driftgp.defaults import Effort, recommended

WILD = 50.0  # standard deviations
JUMP = 10.0
AFTER = 50  # rows over which an error is compared
PLACES = tuple(range(1200, 7800, 1100))  # rows that are disturbed, each in a run of its own
JUMPS = PLACES[::2]
MOST, SMOOTH = 500, 100  # rows that a model has to recover, and rows of an error


class Place(NamedTuple):
    """A model about to see a row."""

    row: int
    model: Any
    state: Any
    sign: float  # of the disturbance


def places(given: Stream, effort: Effort, rows: Sequence[int]) -> Iterator[Place]:
    """The default at each of the rows, upward and downward in turn."""
    X, y = given.X[:WARMUP], given.y[:WARMUP]
    model = recommended(X, y, effort=effort)
    state, at = model.init(X, y), WARMUP
    for i, row in enumerate(rows):
        state, at = follow_from(model, state, given, at, row).state, row
        yield Place(row, model, state, 1.0 - 2.0 * (i % 2))


def squares(place: Place, seen: Stream, rows: int) -> Floats:
    """Squared errors of this number of rows from the place on."""
    errors: Floats = follow_from(place.model, place.state, seen, place.row, place.row + rows).errors
    return errors**2


def with_steps(given: Stream, step: Floats, *, lagged: bool) -> Stream:
    """The targets moved by a step (N); with `lagged`, the inputs that are past targets too."""
    X = given.X.copy()
    for column, name in enumerate(given.names):
        if lagged and name.startswith("lag "):
            lag = int(name.removeprefix("lag "))
            X[lag:, column] += step[:-lag]
    return given._replace(X=X, y=given.y + step)


# ---- wild ------------------------------------------------------------------------------------------------------------


def wild(effort: Effort = "medium", names: Sequence[str] = TEN) -> dict[str, Any]:
    """MSE of the 50 rows after a wild cell / MSE of the same rows undisturbed: over all places, and at the worst.

    `target` is a label alone, `lags` a label that comes back in the inputs that are past targets, `input` a cell of one
    column, each column in turn; `row` is the MSE of the row with that cell against the usual one.
    """
    return {name: _wild(stream(name), effort) for name in names}


def _wild(given: Stream, effort: Effort) -> dict[str, float]:
    kinds = ("target", "lags", "input", "row") if any(name.startswith("lag ") for name in given.names) else _NO_LAGS
    above: dict[str, list[float]] = {kind: [] for kind in kinds}
    usual: list[float] = []
    spread, scale = given.y.std(), given.X.std(0)
    for place in places(given, effort, PLACES):
        p = place.row
        undisturbed = squares(place, given, AFTER + 1)
        usual.append(undisturbed[1:].mean())
        step = np.where(np.arange(len(given.y)) == p, place.sign * WILD * spread, 0.0)
        for kind in kinds[:-2]:
            above[kind].append(squares(place, with_steps(given, step, lagged=kind == "lags"), AFTER + 1)[1:].mean())
        by_column = []
        for column in range(given.X.shape[1]):
            X = given.X.copy()
            X[p, column] += place.sign * WILD * (scale[column] or 1.0)
            by_column.append(squares(place, given._replace(X=X), AFTER + 1))
        above["input"].append(float(np.mean([found[1:].mean() for found in by_column])))
        above["row"].append(float(np.mean([found[0] for found in by_column])))
    means = {kind: float(np.mean(values) / np.mean(usual)) for kind, values in above.items()}
    worst = {f"{kind}_worst": float(np.max(np.divide(above[kind], usual))) for kind in kinds[:-1]}
    return means | worst


_NO_LAGS = ("target", "input", "row")


# ---- jumps -----------------------------------------------------------------------------------------------------------


def jump(effort: Effort = "medium", names: Sequence[str] = TEN) -> dict[str, Any]:
    """Rows after a jump of ten standard deviations, at each place, until the error is back within 20 %.

    That is the first row from which the RMSE of 100 rows is at most 1.2 times that of the same rows without the jump.
    """
    return {name: _jump(stream(name), effort) for name in names}


def _jump(given: Stream, effort: Effort) -> dict[str, Any]:
    found = []
    for place in places(given, effort, JUMPS):
        height = place.sign * JUMP * given.y.std()
        step = np.where(np.arange(len(given.y)) >= place.row, height, 0.0)
        jumped = with_steps(given, step, lagged=True)
        found.append(recovery(squares(place, jumped, MOST + SMOOTH), squares(place, given, MOST + SMOOTH), SMOOTH))
    return {"rows": found, "median": float(np.median(found)), "most": max(found)}
