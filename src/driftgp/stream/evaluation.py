"""Predictions together with their rows: times, keys, targets and flags."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftgp.base.frames import Source
from driftgp.base.progress import Progress
from driftgp.predictions import Prediction, joined
from driftgp.stream.base_column import place_of
from driftgp.stream.reading import Block, refuse_gaps
from driftgp.stream.runtime import Streams
from driftgp.stream.scores import Scores, scores_of
from driftgp.stream.settings import Settings

_PARTS = 100  # into which a call that shows its progress cuts its rows
_LEAST = 500  # rows of a part
_EACH = 10  # rows of each key in a part


def with_progress(
    streams: Streams, block: Block, y: np.ndarray, keys: list[Any], elapsed: Any
) -> tuple[Prediction, dict[str, np.ndarray]]:
    """Do the same as `Streams.take`, bit for bit, and show the progress."""
    if streams.settings.missing == "refuse":
        refuse_gaps(block.codes[:, : block.plan.known], block.plan)
    N = len(block.codes)
    size = max(_LEAST, N // _PARTS, _EACH * len(set(keys)))
    with Progress(N, "rows") as progress:
        found = in_parts(streams, block, y, keys, elapsed, size, progress.to)
        progress.to(N)
    return found


def in_parts(
    streams: Streams,
    block: Block,
    y: np.ndarray,
    keys: list[Any],
    elapsed: Any,
    size: int,
    before: Callable[[int], Any],
) -> tuple[Prediction, dict[str, np.ndarray]]:
    """The same in parts of this many rows; `before` is called before each of them with the number of rows done."""
    passed = None if elapsed is None else np.asarray(elapsed)
    parts, flags = [], []
    for begin in range(0, len(block.codes), size):
        before(begin)
        rows = slice(begin, begin + size)
        own = passed if passed is None or passed.ndim == 0 else passed[rows]
        made, remarks = streams.take(block.part(rows), y[rows], keys[rows], elapsed=own, at_once=False)
        parts += [] if made is None else [made]
        flags.append(remarks)
    return joined(parts, block.source), {name: np.concatenate([own[name] for own in flags]) for name in flags[0]}


def with_rows(
    made: Prediction,
    block: Block,
    y: np.ndarray,
    flags: dict[str, np.ndarray],
    streams: Streams,
    keys: list[Any] | None,
) -> Prediction:
    """A prediction that knows its rows, so that `to_frame` and `scores` can show them beside it."""
    settings, place = streams.settings, place_of(streams.settings.base)
    rows = EvaluatedRows(
        settings,
        streams.plain_targets(y),
        block.wall,
        block.times is not None and block.times.kind == "times",
        flags,
        None if block.times is None else np.asarray(block.times.values, np.float64),
        None if keys is None else np.array(keys, object),
        None if place is None else block.codes[:, place],
    )
    source = Source(None) if block.source is None else block.source
    whole: Any = made
    whole.source = source._replace(evaluated=rows)
    return made


@dataclass(frozen=True, eq=False)
class EvaluatedRows:
    """Rows that were predicted before they were learned, N of them."""

    settings: Settings
    y: np.ndarray  # N, or N×P
    wall: np.ndarray  # N, the clock on the wall in microseconds; NaN without times
    dated: bool
    flags: dict[str, np.ndarray]  # N each
    at: np.ndarray | None  # N, times as numbers
    keys: np.ndarray | None
    base: np.ndarray | None = None  # N, a forecast from elsewhere

    def taken(self, rows: Any) -> "EvaluatedRows":
        """The same for some of the rows."""
        values = {name: getattr(self, name) for name in ("y", "wall", "at", "keys", "base")}
        some: dict[str, Any] = {name: value[rows] for name, value in values.items() if value is not None}
        return replace(self, flags={name: value[rows] for name, value in self.flags.items()}, **some)

    @property
    def in_table(self) -> bool:
        """Whether targets came in a column of the rows."""
        return self.settings.target is not None

    @property
    def remarks(self) -> list[str]:
        """The flags of each row, in words."""
        rows: list[list[str]] = [[] for _ in self.wall]
        for name, marked in self.flags.items():
            for row in np.flatnonzero(marked).tolist():
                rows[row].append(name)
        return [" ".join(words) for words in rows]

    def scores(self, prediction: Prediction) -> Scores:
        """The scores of the forecasts of these rows."""
        return scores_of(prediction, self)

    def before(self) -> dict[str, Any]:
        """Columns of the rows that stand before a forecast in a frame."""
        columns: dict[str, Any] = {}
        time, key = self.settings.time, self.settings.key
        if self.in_table and time is not None and self.at is not None:
            columns[time] = self.at.astype("datetime64[us]") if self.dated else self.at
        if self.in_table and key is not None and self.keys is not None:
            columns[key] = self.keys
        return columns

    def after(self) -> dict[str, Any]:
        """Columns of the rows that stand after a forecast in a frame."""
        if not self.in_table or self.y.ndim > 1:
            return {}
        return {"actual": self.y, "flags": np.array(self.remarks, object)}
