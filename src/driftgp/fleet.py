"""Many streams as one object: a model for every key, each as if it were alone."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self, Unpack

import numpy as np

from driftgp.base import checks, frames
from driftgp.base.frames import Column
from driftgp.models.model import Model, State, checked_batch
from driftgp.online import Online, start_of
from driftgp.predictions import Prediction
from driftgp.stream import keys as naming
from driftgp.stream import settings, store
from driftgp.stream.begin import Given, Start
from driftgp.stream.entry import Entry
from driftgp.stream.evaluation import with_progress, with_rows
from driftgp.stream.keys import Key
from driftgp.stream.reading import Block
from driftgp.stream.runtime import Streams

__all__ = ["Fleet", "Key"]


class Fleet(Entry):
    """A model for every key, each as if it were alone.

    A key exists from its first row on, and begins as an `Online` does. Rows of one key are taken in the order in which
    they stand. The compiled engine uses all the cores that the process may use. Several threads may share a fleet:
    their calls take turns. An interrupted call leaves each key after some whole number of its rows; how many is not
    known, so go on from a fleet that was saved.

    >>> fleet = Fleet()
    >>> fleet.update(["north", "south", "north"], [[0.0], [0.0], [1.0]], [510.0, 95.0, 512.0])
    >>> fleet.predict(["south", "north"], [[1.0], [2.0]]).mean.shape
    (2,)
    >>> fleet.keys
    ['north', 'south']

    A table that has the keys and the targets in columns needs no other argument:

    >>> rows = [{"zone": zone, "mw": 100.0 + hour} for hour in range(20) for zone in ("CT", "ME")]
    >>> fleet = Fleet(key="zone", target="mw", lags=2, effort="low")
    >>> fleet.evaluate(rows).mean.shape
    (40,)
    >>> fleet["CT"].inputs
    ('lag 1', 'lag 2')
    """

    _kind = "fleet"

    def __init__(
        self,
        model: Model | Start | None = None,
        *,
        key: str | None = None,
        target: str | None = None,
        time: str | None = None,
        **given: Unpack[settings.GivenSettings],
    ) -> None:
        """Begin without keys.

        Args:
            model: the model of every key, with its wrappers. None for the default, which follows each key's rows.
            key: name of the column that has the keys, in tables; None where they come by themselves.
            target: name of the column to predict, as in `Online`.
            time: name of the column of times.
            given: the other settings of `Online`: `features`, `known`, `others`, `lags`, `calendar`, `holidays`,
                `horizon`, `effort` ("low" for thousands of keys), `support`, `base`, `level` and `missing`.
        """
        chosen = settings.settings(key=key, target=target, time=time, **given)
        self._adopt(Streams(chosen, start_of(chosen, model)))

    def _adopt(self, streams: Streams) -> None:
        super()._adopt(streams)
        streams.warns = False

    # ---- what it holds -----------------------------------------------------------------------------------------------

    @property
    def keys(self) -> list[Key]:
        """Keys, in the order in which they came."""
        with self.lock:
            return [key for key in self._streams.series if key is not None]

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._streams.series)

    def __contains__(self, key: object) -> bool:
        return key in self._streams.series

    def __getitem__(self, key: Key) -> Online:
        """One key as an `Online`, a copy with everything the fleet knows about the key."""
        with self.lock:
            self._known([key])
            return Online.from_bytes(store.to_bytes("online", self._streams, [key], alone=True), self._given())

    @property
    def nbytes(self) -> int:
        """Memory of the states, in bytes."""
        return self._streams.stacks.nbytes

    def __repr__(self) -> str:
        start = self._streams.start
        model = start.model.outline if isinstance(start, Given) else f"the default, {self.settings.effort} effort"
        return f"<Fleet of {len(self)} key{'s' * (len(self) != 1)}: {model}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the model and the bytes."""
        return _revived, (self._given(), self.to_bytes())

    def state(self, key: Key) -> State:
        """State of one key, a copy, as `Model` gives and takes it."""
        with self.lock:
            self._known([key])
            slot = self._streams.series[key].slot
            assert slot is not None  # noqa: S101
            return slot.stack.state(slot.number)

    def model(self, key: Key) -> Model:
        """The model of one key."""
        return self.state(key).model

    def times(self, keys: Iterable[Key]) -> np.ndarray:
        """Time of the last row of each of these keys, a number or a date; NaN or NaT where none is known."""
        with self.lock:
            series = [self._streams.series.get(key) for key in naming.checked(keys)]
            last = np.array([np.nan if one is None else one.clock.latest for one in series])
            if not any(one is not None and one.clock.dated for one in series):
                return last
            known = ~np.isnan(last)
            return np.where(known, np.where(known, last, 0).astype("datetime64[us]"), np.datetime64("NaT"))

    def fresh(self) -> "Fleet":
        """Return a fleet without keys, with the same settings and start."""
        with self.lock:
            streams = self._streams
            other = Streams(streams.settings, streams.start)
            other.common, other.outputs = streams.common, streams.outputs
            if streams.planned is not None and streams.common is not None:
                other.share(streams.planned, named=streams.named)
                other.begun = True
            return Fleet.of(other)

    # ---- predict and learn -------------------------------------------------------------------------------------------

    def warm(self, X: Any, y: Any = None) -> None:
        """Give new keys a common start: what `Model.init` makes of a batch X (N×D) and y (N or N×P)."""
        with self.lock:
            streams = self._streams
            block = streams.read(X, learn=True)
            targets = streams.targets(block, y)
            rows, plain = checked_batch(block.codes, streams.plain_targets(targets), gaps=streams.start.gaps)
            streams.start_from(streams.start.choose(rows, plain).model.init(rows, plain), block)

    def predict(self, keys: Any, X: Any = None, *, unknown: Literal["refuse", "start"] | None = None) -> Prediction:
        """Distribution of new targets at the rows of X, N×D, each by the model of its key; nothing changes.

        Args:
            keys: the key of each row; or the rows, where these have their keys in the column `key`.
            X: the rows.
            unknown: what to do with a key that has had no row yet. "start" predicts as before the first row. "refuse"
                raises a ValueError. By default it is refused unless `warm` has given the fleet a state to start from: a
                cold model knows nothing, not even the size of the targets.
        """
        with self.lock:
            block, listed = self._read(keys, X, learn=False)
            if unknown is not None:
                checks.choice("unknown", unknown, ("refuse", "start"))
            new = [key for key in listed if key not in self._streams.series]
            if new and not (unknown == "start" or (unknown is None and self._streams.common is not None)):
                raise ValueError(
                    f"keys must be those of the fleet; it has had no row of {new[0]!r} yet. Update the key first, give "
                    f"new keys a state to start from with warm(X, y), or ask for a cold forecast with unknown='start'"
                )
            return self._streams.predict(block, listed)

    def update(self, keys: Any, X: Any = None, y: Any = None, time: Any = None) -> None:
        """Learn at once from rows X (N×D) and y (N or N×P), each by the model of its key.

        Where y is NaN, time passes and nothing is learned.

        Args:
            keys: the key of each row, text or whole numbers; or the rows, where these have keys and targets in columns.
            X: the rows.
            y: the target of each row.
            time: the time of each row, N: dates or numbers. It says how far apart a key's rows are, in units of the
                typical step within it. Left out it is the column `time`, or the DatetimeIndex of X; without one, each
                row is one step after the one before.
        """
        self._take(keys, X, y, time, at_once=True)

    def evaluate(
        self, keys: Any, X: Any = None, y: Any = None, time: Any = None, *, progress: bool = False
    ) -> Prediction:
        """Predict each row before it is learned from, and return what was predicted.

        Args:
            keys: as in `update`.
            X: the rows, N×D, or a frame.
            y: the target of each row, N or N×P; NaN where it is missing.
            time: the time of each row, as in `update`.
            progress: show on standard error how many rows are done.

        >>> days = np.array(["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-05"], "datetime64[D]")
        >>> fleet = Fleet()
        >>> fleet.evaluate(["a", "b", "a", "b"], np.ones((4, 1)), [1.0, 2.0, 1.5, 2.5], time=days).mean.shape
        (4,)
        """
        return self._take(keys, X, y, time, at_once=False, progress=progress)

    def _take(self, keys: Any, X: Any, y: Any, time: Any, *, at_once: bool, progress: bool = False) -> Prediction:
        if X is not None:
            frames.same_index(X, y)
        with self.lock:
            block, listed = self._read(keys, X, learn=True, time=time)
            naming.one_kind(listed[:1], self.keys)
            targets = self._streams.targets(block, y)
            made: Prediction | None
            if progress and listed:
                made, flags = with_progress(self._streams, block, targets, listed, None)
            else:
                made, flags = self._streams.take(block, targets, listed, at_once=at_once)
            if made is None:
                raise ValueError(f"X must have at least one row; got shape {block.codes.shape}")
            return with_rows(made, block, targets, flags, self._streams, listed)

    def _read(self, keys: Any, X: Any, *, learn: bool, time: Any = None) -> tuple[Block, list[Key]]:
        """Rows and the key of each; refuses what does not fit."""
        streams = self._streams
        block = streams.read(keys if X is None else X, learn=learn)
        if block.single:
            raise ValueError("X must have shape N×D, or be a table, with a key for each row; got one row")
        listed = naming.checked(streams.keys_of(block) if X is None else keys, len(block.codes))
        if time is not None:
            column = frames.times("time", time) or Column("time", "numbers", checks.real("time", frames.targets(time)))
            if len(column) != len(block.codes):
                raise ValueError(f"time must have {len(block.codes)} entries, one for each row of X; got {len(column)}")
            block = block._replace(times=column, wall=column.clock)
        return block, listed

    def _known(self, keys: Iterable[Key]) -> list[Key]:
        listed = naming.checked(keys)
        unknown = [key for key in listed if key not in self._streams.series]
        if unknown:
            raise ValueError(f"keys must be those of the fleet; it has no {unknown[0]!r}")
        return listed

    def _given(self) -> Model | None:
        start = self._streams.start
        return start.model if isinstance(start, Given) else None

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def evict(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        """Take keys out of the fleet and return the bytes of each, with which `admit` brings it back."""
        with self.lock:
            listed = list(dict.fromkeys(self._known(keys)))
            evicted = {key: store.to_bytes(self._kind, self._streams, [key]) for key in listed}
            for key in listed:
                self._streams.remove(key)
            return evicted

    def admit(self, evicted: Mapping[Key, bytes] | bytes) -> None:
        """Bring keys back; `evicted` is a mapping that `evict` gave, or all of a fleet's bytes."""
        given = evicted.values() if isinstance(evicted, Mapping) else [evicted]
        with self.lock:
            store.admit(self._kind, self._streams, [bytes(part) for part in given], self._given())

    @classmethod
    def from_bytes(cls, data: bytes, model: Model | None = None) -> Self:
        """Take back what `to_bytes` gave as `data`. A model with a part that is not in the library has to be given."""
        return cls.of(store.from_bytes(cls._kind, data, model))


def _revived(model: Model | None, data: bytes) -> Fleet:
    return Fleet.from_bytes(data, model)
