"""Many models as one: a model of the contract for every key, their states in one array, their rows in one call."""

import os
from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from typing import Any, Literal

import numpy as np

from driftgp import checks, frames, gate
from driftgp.defaults import recommended
from driftgp.essence import Essence
from driftgp.files import read_whole, write_atomically
from driftgp.fleet import keys as naming
from driftgp.fleet import stored
from driftgp.fleet.clock import Clock
from driftgp.fleet.keys import Key
from driftgp.fleet.stack import START, Stack
from driftgp.fleet.stored import Stored
from driftgp.frames import Source
from driftgp.intake import Intake
from driftgp.locks import turns
from driftgp.model import Layout, Model, State, checked_batch, checked_inputs, checked_rows, warn_of_units
from driftgp.predictions import Forecast
from driftgp.settings_json import model_of, plain

__all__ = ["Fleet", "Key"]


class Fleet:
    """A model for every key, each as if it were alone.

    A key is there from the first row that it is updated with; it starts cold, or where `warm` left the common state.
    Rows of one key are taken in the order in which they stand. The compiled engine uses all the cores that the process
    may use. Several threads may share a fleet: their calls take turns. An interrupted call leaves each key after some
    whole number of its rows; how many is not known, so go on from a fleet that was saved.

    >>> fleet = Fleet()
    >>> fleet.update(["north", "south", "north"], [[0.0], [0.0], [1.0]], [510.0, 95.0, 512.0])
    >>> fleet.predict(["south", "north"], [[1.0], [2.0]]).mean.shape
    (2,)
    >>> fleet.keys
    ['north', 'south']

    X is an array, a frame of pandas, polars and others (with ``driftgp[frames]``), or a list of dicts. Columns with
    names are checked at every call, and encoded as `driftgp.columns` says: text has one input for each category of the
    first call. Times may be dates: see `update`.
    """

    def __init__(self, model: Model | None = None) -> None:
        """Begin without keys.

        Args:
            model: of every key, wrappers included. None for `driftgp.recommended` at low effort: for the batch that
                `warm` is given or, cold, for the number of inputs and outputs of the first rows.
        """
        self._model = model
        self._intake = Intake()
        self._stack: Stack | None = None  # until the first rows come
        self._slots: dict[Key, int] = {}
        self._clock = Clock()
        self._warm = False
        self._pieces: dict[Key, stored.Piece] | None = None  # of keys that have not changed, where they are kept
        self.lock = turns(self)  # threads that share it take turns

    # ---- what it holds -----------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model of every key."""
        if self._model is None:
            raise ValueError("the fleet has no model yet: update it or warm it up first, or give it one")
        return self._model

    @property
    def keys(self) -> list[Key]:
        """Keys in the order of their coming."""
        with self.lock:
            return list(self._slots)

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        """Memory that the states take, in bytes."""
        return 0 if self._stack is None else self._stack.words.nbytes

    def __contains__(self, key: object) -> bool:
        return key in self._slots

    def __repr__(self) -> str:
        model = "the default model, no row yet" if self._model is None else self._model.outline
        return f"<Fleet of {len(self)} key{'s' * (len(self) != 1)}: {model}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the model and the bytes."""
        with self.lock:
            return _revived, (self._model, None if self._stack is None else self.to_bytes())

    def state(self, key: Key) -> State:
        """State of one key, a copy, as `Model` gives and takes it."""
        with self.lock:
            (slot,) = self._known([key])
            return self._states.state(slot)

    def times(self, keys: Iterable[Key]) -> np.ndarray:
        """Time of the last row of each of these keys, a number or a date; NaN or NaT where none is known."""
        with self.lock:
            last = self._clock.last(naming.checked(keys))
            if not self._clock.dated:
                return last
            known = ~np.isnan(last)
            return np.where(known, np.where(known, last, 0).astype("datetime64[us]"), np.datetime64("NaT"))

    def fresh(self) -> "Fleet":
        """Return a fleet without keys that starts them as this one does."""
        other = Fleet(self._model)
        with self.lock:
            other._intake = self._intake
            if self._stack is not None:
                other._begin(self._stack.state(START), warm=self._warm)
        return other

    # ---- predict and learn -------------------------------------------------------------------------------------------

    def warm(self, X: Any, y: Any) -> None:
        """Have keys that come from now on start from what `Model.init` makes of a batch X (N×D) and y (N or N×P)."""
        with self.lock:
            X, _, _, intake = self._read(X)
            X, y = checked_batch(X, frames.targets(y), gaps=self._fills_gaps)
            if self._stack is not None:
                checked_rows(self._stack.layout, X, y, 1.0)
            model = recommended(X, y, effort="low") if self._model is None else self._model
            self._begin(model.init(X, y), warm=True)
            self._intake = intake

    def predict(self, keys: Iterable[Key], X: Any, *, unknown: Literal["refuse", "start"] | None = None) -> Forecast:
        """Distribution of new targets at the rows of X, N×D, each by the model of its key.

        Args:
            keys: the key of each row.
            X: the rows.
            unknown: what to do with a key that has had no row yet. "start" predicts from the state that it would start
                from, and does not make it known. "refuse" raises a ValueError. By default it is refused unless `warm`
                has given the fleet a state to start from: a cold model knows nothing, not even the size of the targets.
        """
        with self.lock:
            X, _, source, _ = self._read(X)
            listed = naming.checked(keys, X.shape[0])
            self._check_known(listed, unknown)
            stack = Stack(self._cold(X, np.zeros(0))) if self._stack is None else self._stack
            slots = np.fromiter((self._slots.get(key, START) for key in listed), np.int64, len(listed))
            forecast = stack.run(slots, checked_inputs(stack.layout, X))
        forecast.source = source
        return forecast

    def update(self, keys: Iterable[Key], X: Any, y: Any, time: Any = None) -> None:
        """Learn from rows X (N×D) and y (N or N×P), each by the model of its key.

        Where y is NaN, time passes and nothing is learned.

        Args:
            keys: the key of each row: text or whole numbers.
            X: the rows.
            y: the target of each row.
            time: the time of each row, N: dates or numbers, in any order across keys, never backwards within one. It
                says how far apart a key's rows are: by the numbers as they are, or by the dates in units of the typical
                step within a key. Left out it is the DatetimeIndex of X; without one, each row is one unit after the
                one before.
        """
        self.evaluate(keys, X, y, time)

    def evaluate(self, keys: Iterable[Key], X: Any, y: Any, time: Any = None) -> Forecast:
        """Do what `update` does, and return what was predicted of each row before it was learned from.

        Args:
            keys: the key of each row: text or whole numbers.
            X: the rows, N×D, or a frame.
            y: the target of each row, N or N×P; NaN where there is none.
            time: the time of each row, as in `update`.

        >>> days = np.array(["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-05"], "datetime64[D]")
        >>> fleet = Fleet()
        >>> fleet.evaluate(["a", "b", "a", "b"], np.ones((4, 1)), [1.0, 2.0, 1.5, 2.5], time=days).mean.shape
        (4,)
        """
        frames.same_index(X, y)
        with self.lock:
            X, index, source, intake = self._read(X)
            listed = naming.checked(keys, X.shape[0])
            y = checks.real("y", frames.targets(y))
            if self._stack is None:
                X, y = checked_batch(X, y, gaps=self._fills_gaps)
            if X.shape[0] == 0:
                raise ValueError(f"X must have at least one row; got shape {X.shape}")
            different, which = naming.codes(listed)
            naming.one_kind(different, self._slots)
            passed = self._clock.elapsed(different, which, index if time is None else time)
            start = self._cold(X, y) if self._stack is None else None
            rows = checked_rows(self._states.layout if start is None else start.layout, X, y, passed.elapsed)
            if start is not None:
                if start.model.as_they_are:
                    warn_of_units(X, y)
                self._begin(start, warm=False)
            self._changed(different)
            forecast = self._states.run(self._slots_for(different)[which], *rows)
            self._clock.accept(passed, different)
            self._intake = intake
        forecast.source = source
        return forecast

    def _read(self, X: Any) -> tuple[np.ndarray, Any, Source | None, Intake]:
        """Rows of any form as N×D, their own times, where they came from, and what is then known of their form."""
        read, intake = self._intake.read(X)
        rows = checks.inputs("X", intake.expanded(read.codes), self._inputs, gaps=self._fills_gaps)
        return rows, read.times, read.source, intake

    def _check_known(self, keys: list[Key], unknown: str | None) -> None:
        if unknown is not None:
            checks.choice("unknown", unknown, ("refuse", "start"))
        if unknown == "start" or (unknown is None and self._warm):
            return
        new = [key for key in keys if key not in self._slots]
        if new:
            raise ValueError(
                f"keys must be those of the fleet; it has had no row of {new[0]!r} yet. Update the key first, give new "
                f"keys a state to start from with warm(X, y), or ask for a cold forecast with unknown='start'"
            )

    # ---- beginning ---------------------------------------------------------------------------------------------------

    @property
    def _states(self) -> Stack:
        if self._stack is None:
            raise ValueError("the fleet has no keys and no shapes yet: update it or warm it up first")
        return self._stack

    @property
    def _inputs(self) -> int | None:
        return None if self._stack is None else self._stack.layout.inputs

    @property
    def _fills_gaps(self) -> bool:
        """Whether inputs may be NaN, as they may with the recommended model."""
        return self._model is None or self._model.fills_gaps

    def _cold(self, X: np.ndarray, y: np.ndarray) -> State:
        """The state from which a fleet with rows of these shapes begins."""
        model = recommended(X[:0], y[:0], effort="low") if self._model is None else self._model
        return _cold(model, Layout(X.shape[1], y.shape[1] if y.ndim == 2 else None))

    def _begin(self, start: State, *, warm: bool) -> None:
        """Start keys from this state from now on; the first such state also gives the fleet its shapes."""
        if self._stack is None:
            stack = Stack(start)
            self._model, self._warm, self._stack = start.model, warm, stack  # in one step
        else:
            self._stack.restart(start)
            self._warm = warm

    def _slots_for(self, keys: list[Key]) -> np.ndarray:
        """Slots of keys; new ones are given theirs."""
        new = [key for key in keys if key not in self._slots]
        self._slots.update(zip(new, self._states.begin(len(new)), strict=True))
        return np.fromiter((self._slots[key] for key in keys), np.int64, len(keys))

    def _known(self, keys: Iterable[Key]) -> list[int]:
        listed = naming.checked(keys)
        unknown = [key for key in listed if key not in self._slots]
        if unknown:
            raise ValueError(f"keys must be those of the fleet; it has no {unknown[0]!r}")
        return [self._slots[key] for key in listed]

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def evict(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        """Take keys out of the fleet and return the bytes of each, with which `admit` brings it back."""
        with self.lock:
            listed = list(dict.fromkeys(naming.checked(keys)))
            slots = self._known(listed)
            model = None if self._model is None else plain(self._model)
            evicted = {key: self._seal(model, [key], [slot]) for key, slot in zip(listed, slots, strict=True)}
            self._changed(listed)
            for key in listed:
                del self._slots[key]
            self._clock.forget(listed)
            if slots:
                self._states.release(slots)
            return evicted

    def admit(self, evicted: Mapping[Key, bytes] | bytes) -> None:
        """Bring keys back; `evicted` is a mapping that `evict` gave, or all of a fleet's bytes."""
        given = evicted.values() if isinstance(evicted, Mapping) else [evicted]
        with self.lock:
            opened = [stored.opened(bytes(part)) for part in given]
            if not opened:
                return
            model = model_of("fleet", opened[0].model, self._model)
            self._check_admitted(model, opened)
            if self._model is None:
                gate.believe("fleet", model, opened[0].layout, len(opened[0].payload))
            parts = Essence(model, opened[0].layout) if self._stack is None else self._stack.essence
            readers = [stored.Reader(parts, part) for part in opened]
            stack, warm = self._stack, self._warm
            if stack is None:
                start = readers[0].start()
                stack, warm = Stack(_cold(model, parts.layout) if start is None else start), start is not None
            names = [key for part in opened for key in part.keys.names]
            slots = stack.admit(chain.from_iterable(reader.states() for reader in readers), len(names))
            self._model, self._stack, self._warm = model, stack, warm  # all or nothing
            self._slots.update(zip(names, slots, strict=True))
            if self._intake.columns is None:
                self._intake = opened[0].intake
            if self._clock.dated is None:
                self._clock.dated, self._clock.step = opened[0].clock.dated, opened[0].clock.step
            for part in opened:
                self._clock.note(*part.keys)

    def to_bytes(self, *, start: bool = True, again: bool = False) -> bytes:
        """Return the whole fleet as bytes.

        Args:
            start: whether with the state that new keys start from, if there was a warm-up.
            again: keep the bytes of each key until it learns, so that the next call takes the time of the keys that
                have learned since; it takes the memory of the bytes.
        """
        with self.lock:
            if again and self._pieces is None:
                self._pieces = {}
            slots = [*self._slots.values(), START] if start and self._warm else list(self._slots.values())
            return self._seal(plain(self._states.model), self.keys, slots)

    @classmethod
    def from_bytes(cls, model: Model | None, data: bytes) -> "Fleet":
        """Return the fleet whose `to_bytes` gave `data`, or refuse bytes that are none of this model's.

        Without a model it is the one that the bytes describe; one with a part that is not in the library has to be
        given.
        """
        fleet = cls(model)
        fleet.admit(data)
        return fleet

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fleet to the file at `path`, which at every moment is the old one or the new one."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Model | None = None) -> "Fleet":
        """Read a fleet from the file at `path`, and its model if none is given, as `from_bytes` does from bytes."""
        data = read_whole(path)
        try:
            return cls.from_bytes(model, data)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def _seal(self, model: Any, keys: list[Key], slots: list[int]) -> bytes:
        stack = self._states
        named = stored.Keys(keys, self._clock.last(keys))
        clock = Clock() if np.isnan(named.times).all() else self._clock
        form = {"intake": self._intake.to_json(), "clock": clock.to_json()}
        pieces = [self._piece(key, slot) for key, slot in zip_longest(keys, slots)]
        return stored.seal(stack.essence, model, named, pieces, form, started=len(slots) > len(keys))

    def _piece(self, key: Key | None, slot: int) -> stored.Piece:
        """The state in a slot as it is stored; of the one that new keys start from, without a key."""
        kept = {} if self._pieces is None or key is None else self._pieces
        found = kept.get(key)  # type: ignore[arg-type]
        if found is None:
            found = stored.piece_of(self._states.essence, self._states.record(slot))
            if key is not None and self._pieces is not None:
                self._pieces[key] = found
        return found

    def _changed(self, keys: list[Key]) -> None:
        """Keep no bytes of these keys."""
        if self._pieces is not None:
            for key in keys:
                self._pieces.pop(key, None)

    def _check_admitted(self, model: Model, opened: list[Stored]) -> None:
        layout = opened[0].layout if self._stack is None else self._stack.layout
        for part in opened:
            if part.model != opened[0].model:
                model_of("fleet", part.model, model)
            if part.layout != layout:
                raise ValueError(f"fleet to admit must have the layout {layout}; it has {part.layout}")
            naming.one_kind(part.keys.names, self._slots)
        names = [key for part in opened for key in part.keys.names]
        there = [key for key in names if key in self._slots]
        if there:
            raise ValueError(f"keys to admit must not be in the fleet; {there[0]!r} is: evict it first")
        if len(set(names)) < len(names):
            raise ValueError("keys to admit must not come twice")


def _cold(model: Model, layout: Layout) -> State:
    """The state before the first row."""
    return model.init(np.zeros((0, layout.inputs)), np.zeros((0, *layout.target_shape)))


def _revived(model: Model | None, data: bytes | None) -> Fleet:
    return Fleet(model) if data is None else Fleet.from_bytes(model, data)
