"""Predictions together with their rows: times, keys, targets and flags."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftgp.base.frames import Source
from driftgp.base.progress import Progress
from driftgp.predictions import Prediction, joined
from driftgp.stream.base_column import place_of
from driftgp.stream.runtime import Block, Streams
from driftgp.stream.scores import Scores, scores_of

_PARTS = 100  # into which a call that shows its progress cuts its rows
_LEAST = 500  # rows of a part
_EACH = 10  # rows of each key in a part


def in_parts(
    streams: Streams, block: Block, y: np.ndarray, keys: list[Any], elapsed: Any
) -> tuple[Prediction, dict[str, np.ndarray]]:
    """Do the same as `Streams.take`, bit for bit, and show the progress."""
    if streams.settings.missing == "refuse":
        streams.refuse_gaps(block.codes[:, : block.plan.known], block.plan)
    N = len(block.codes)
    size = max(_LEAST, N // _PARTS, _EACH * len(set(keys)))
    passed = None if elapsed is None else np.asarray(elapsed)
    parts, flags = [], []
    with Progress(N, "rows") as progress:
        for begin in range(0, N, size):
            rows = slice(begin, begin + size)
            own = passed if passed is None or passed.ndim == 0 else passed[rows]
            made, remarks = streams.take(block.part(rows), y[rows], keys[rows], elapsed=own, at_once=False)
            parts += [] if made is None else [made]
            flags.append(remarks)
            progress.to(min(begin + size, N))
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
    place = place_of(streams.settings.base)
    seen = Seen(
        y=y if streams.outputs is not None else y[:, 0],
        wall=block.wall,
        flags=flags,
        keys=None if keys is None else np.array(keys, object),
        level=streams.settings.level,
        horizon=streams.settings.horizon,
        table=streams.settings.target is not None,
        time=None if block.table is None or streams.settings.time is None else streams.settings.time,
        at=None if block.times is None else np.asarray(block.times.values, np.float64),
        dated=block.times is not None and block.times.kind == "times",
        key=streams.settings.key,
        base=None if place is None else block.codes[:, place],
    )
    source = Source(None) if block.source is None else block.source
    whole: Any = made
    whole.source = source._replace(seen=seen)
    return made


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows that were predicted, N of them."""

    y: np.ndarray  # N, or N×P
    wall: np.ndarray  # N, the clock on the wall in microseconds; NaN without times
    flags: dict[str, np.ndarray]  # N each
    keys: np.ndarray | None
    level: float
    horizon: int
    table: bool  # whether targets came in a column of the rows
    time: str | None  # name of the column of times
    at: np.ndarray | None  # N, times as numbers
    dated: bool
    key: str | None  # name of the column of keys
    base: np.ndarray | None = None  # N, a forecast from elsewhere

    def taken(self, rows: Any) -> "Seen":
        """The same for some of the rows."""
        some: dict[str, Any] = {
            name: None if value is None else value[rows]
            for name in ("y", "wall", "keys", "at", "base")
            for value in (getattr(self, name),)
        }
        flags = {name: value[rows] for name, value in self.flags.items()}
        same = {name: getattr(self, name) for name in ("level", "horizon", "table", "time", "dated", "key")}
        return Seen(flags=flags, **some, **same)

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
        if self.table and self.time is not None and self.at is not None:
            columns[self.time] = self.at.astype("datetime64[us]") if self.dated else self.at
        if self.table and self.key is not None and self.keys is not None:
            columns[self.key] = self.keys
        return columns

    def after(self) -> dict[str, Any]:
        """Columns of the rows that stand after a forecast in a frame."""
        return {"actual": self.y, "flags": np.array(self.remarks, object)} if self.table and self.y.ndim == 1 else {}
