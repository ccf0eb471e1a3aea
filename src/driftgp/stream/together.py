"""Many series side by side: one call of the engine for each model, and forecasts in the order of the rows."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from driftgp.base.frames import Source
from driftgp.engine import Batch
from driftgp.predictions import Prediction, joined
from driftgp.stream.keys import SeriesKey, codes
from driftgp.stream.rows import EngineCall, ForecastRecords, Predicting
from driftgp.stream.stacks import Stack, words_of


def run_together(jobs: list[Predicting]) -> list[list[ForecastRecords]]:
    """Run the jobs of several series; the rows of all that have one model go to the engine in one call."""
    results: list[list[ForecastRecords]] = [[] for _ in jobs]
    waiting: dict[int, EngineCall] = {}

    def go_on(i: int, made: np.ndarray | None) -> None:
        try:
            waiting[i] = next(jobs[i]) if made is None else jobs[i].send(made)
        except StopIteration as end:
            waiting.pop(i, None)
            results[i] = end.value

    for i in range(len(jobs)):
        go_on(i, None)
    while waiting:
        kinds: dict[tuple[int, bool, bool, bool], list[int]] = {}
        for i, call in waiting.items():
            batch = call.batch
            kind = (id(call.slot.stack), batch.y is None, batch.X_next is None, batch.known_at is None)
            kinds.setdefault(kind, []).append(i)
        for members in kinds.values():
            for i, made in zip(members, _called([waiting[i] for i in members]), strict=True):
                go_on(i, made)
    return results


def _called(calls: list[EngineCall]) -> list[np.ndarray]:
    """Calls for several series with one model as one call."""
    stack, batches = calls[0].slot.stack, [call.batch for call in calls]
    slots, ends = np.array([call.slot.number for call in calls]), np.cumsum([len(batch.X) for batch in batches])
    together = batches[0]
    if len(calls) > 1:
        rows = {name: _stacked([getattr(batch, name) for batch in batches]) for name in ("X", "y", "elapsed", "X_next")}
        issued, known_at = _places(batches, ends)
        together = Batch(**rows, issued=issued, known_at=known_at)
    made = stack.engine.run(stack.records, slots, ends, together)
    return np.split(made, ends[:-1])


def _stacked(arrays: list[Any]) -> Any:
    return None if arrays[0] is None else np.concatenate(arrays)


def stacked_records(records: list[np.ndarray]) -> np.ndarray:
    """Records one after another: NumPy would compare the layouts of all of them, field by field."""
    if len(records) == 1:
        return records[0]
    stacked: np.ndarray = np.concatenate([words_of(each) for each in records]).view(records[0].dtype)[:, 0]
    return stacked


def _places(batches: list[Batch], ends: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Earlier forecasts of all series, and for each row the place of its forecast."""
    if batches[0].known_at is None:
        return None, None
    issued, places, before = [], [], 0
    for batch, end in zip(batches, ends.tolist(), strict=True):
        N, own = len(batch.X), batch.known_at
        assert own is not None  # noqa: S101
        shifted = np.where(own < N, own + end - N, own - N + int(ends[-1]) + before)
        places.append(np.where(own < 0, -1, shifted))
        if batch.issued is not None:
            issued.append(batch.issued)
            before += len(batch.issued)
    return stacked_records(issued) if issued else None, np.concatenate(places)


def batched(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Items, in lists of this size.

    >>> list(batched("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some


def by_key(keys: Sequence[SeriesKey]) -> dict[SeriesKey, np.ndarray]:
    """The rows of each key, in the order in which keys come."""
    different, which = codes(keys)
    if len(different) == 1:
        return {keys[0]: np.arange(len(keys))}
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(different)))
    return dict(zip(different, np.split(order, ends[:-1]), strict=True))


def assembled(made: list[list[ForecastRecords]], places: list[np.ndarray], source: Source | None) -> Prediction:
    """The forecasts of all series in the order of the rows: one prediction, or one per model put together."""
    by_stack: dict[int, tuple[Stack, list[np.ndarray], list[np.ndarray]]] = {}
    for parts, where in zip(made, places, strict=True):
        begin = 0
        for part in parts:
            own = by_stack.setdefault(id(part.stack), (part.stack, [], []))
            own[1].append(part.records)
            own[2].append(where[begin : begin + len(part.records)])
            begin += len(part.records)
    pieces, rows = [], []
    for stack, records, own_rows in by_stack.values():
        order = np.concatenate(own_rows)
        together = stacked_records(records)
        if len(by_stack) == 1 and len(order) > 1 and np.any(np.diff(order) < 0):
            together, order = together[np.argsort(order)], np.arange(len(order))
        pieces.append(stack.forecast(together))
        rows.append(order)
    return joined(pieces, source, rows)


def scattered(places: Iterable[np.ndarray], values: Iterable[np.ndarray]) -> np.ndarray:
    """Values of rows in the order of the rows."""
    order = np.concatenate(list(places))
    made = np.empty(len(order), bool)
    made[order] = np.concatenate(list(values))
    return made
