"""Many models as one: a model of the contract for every key, their states in stacks, their steps compiled loops."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import numpy as np
from jax.typing import ArrayLike

from driftgp import checks
from driftgp.files import write_atomically
from driftgp.fingerprint import portrait
from driftgp.fleet import keys as naming
from driftgp.fleet import stored
from driftgp.fleet.blocks import Blocks, Place
from driftgp.fleet.keys import Key
from driftgp.model import Layout, Model, State, checked_batch, checked_inputs, checked_rows
from driftgp.packing import Packing, pack, packing_of
from driftgp.prediction import Prediction

__all__ = ["Fleet", "Key"]

S = TypeVar("S", bound=State)

# Rows of the pretended warm-up from which a state's shapes are found: enough for every model to start.
_ROWS = 16


class Sample(NamedTuple):
    """Rows of data."""

    X: Any  # N×D
    y: Any  # N, or N×P
    elapsed: Any  # N


class Fleet(Generic[S]):
    """A model for every key, each as if it were alone.

    A key is there from the first row that it is updated with; it starts cold, or where `warm` left the common state.
    Rows of one key are taken in the order in which they stand. All the cores that the process may use are used.

    >>> from driftgp import FastAGP
    >>> fleet = Fleet(FastAGP(inducing=4, window=16))
    >>> fleet.update(["north", "south", "north"], [[0.0], [0.0], [1.0]], [1.0, 5.0, 2.0])
    >>> fleet.predict(["south", "north"], [[1.0], [2.0]]).mean.shape
    (2,)
    >>> fleet.keys
    ['north', 'south']
    """

    def __init__(self, model: Model[S]) -> None:
        """Take a model: any of the contract, wrappers included."""
        self.model = model
        self._portrait = json.loads(json.dumps(portrait(model)))
        self._places: dict[Key, Place] = {}
        self._times: dict[Key, float] = {}
        self._layout: Layout | None = None  # until the first rows come
        self._stacks: Blocks | None = None
        self._warm = False

    # ---- what it holds -----------------------------------------------------------------------------------------------

    @property
    def keys(self) -> list[Key]:
        """Keys in the order of their coming."""
        return list(self._places)

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def state(self, key: Key) -> S:
        """State of one key, as `Model` gives and takes it."""
        (place,) = self._known([key])
        state: S = self._blocks.tree(place)
        return state

    def times(self, keys: Iterable[Key]) -> np.ndarray:
        """Time of each key's last row; NaN where the key is unknown or no time was given."""
        return np.array([self._times.get(key, np.nan) for key in naming.checked(keys)], float)

    def fresh(self) -> "Fleet[S]":
        """Return a fleet without keys that starts them as this one does."""
        other = Fleet(self.model)
        if self._layout is not None:
            other._begin(self._layout, self._blocks.packing, self._blocks.start, warm=self._warm)
        return other

    # ---- predict and learn -------------------------------------------------------------------------------------------

    def warm(self, X: ArrayLike, y: ArrayLike) -> None:
        """Have keys that come from now on start from what `Model.init` makes of a batch, N×D and N (or N×P)."""
        X, y = checked_batch(X, y, gaps=self.model.fills_gaps)
        if self._layout is not None:
            X, y, _ = checked_rows(self._layout, X, y, 1.0)
        self._begin_from(self.model.init(X, y), warm=True)

    def predict(self, keys: Iterable[Key], X: ArrayLike) -> Prediction:
        """Distribution of new targets at the rows of X, N×D, each by the model of its key.

        A key that was not seen yet is predicted by the state that it would start from, and does not become known.
        """
        X = checks.inputs("X", X, None if self._layout is None else self._layout.inputs, gaps=self.model.fills_gaps)
        listed = naming.checked(keys, X.shape[0])
        layout = self._layout_for(X, np.zeros(0))
        X = checked_inputs(layout, X)
        different, which = naming.codes(listed)
        places = [self._places[key] if key in self._places else self._blocks.unknown() for key in different]
        y = np.zeros((X.shape[0], *layout.target_shape), X.dtype)
        prediction: Prediction = self._blocks.look(places, which, Sample(X, y, np.zeros(X.shape[0], X.dtype)))
        return prediction

    def update(self, keys: Iterable[Key], X: ArrayLike, y: ArrayLike, time: ArrayLike | None = None) -> None:
        """Learn from rows X (N×D) and y (N or N×P), each by the model of its key.

        `time` (N, in any order across keys, never backwards within one) says how far apart a key's rows are; without it
        each is one unit after the one before, and so is the first row of a key. Where y is NaN, time passes and nothing
        is learned.
        """
        self.evaluate(keys, X, y, time)  # one program for both: a state has the same bits however it was reached

    def evaluate(self, keys: Iterable[Key], X: ArrayLike, y: ArrayLike, time: ArrayLike | None = None) -> Prediction:
        """Do what `update` does, and return what was predicted of each row before it was learned from."""
        X = checks.inputs("X", X, None if self._layout is None else self._layout.inputs, gaps=self.model.fills_gaps)
        listed = naming.checked(keys, X.shape[0])
        y = checks.real("y", y)
        if self._layout is None:
            X, y = checked_batch(X, y, gaps=self.model.fills_gaps)
        if X.shape[0] == 0:
            raise ValueError(f"X must have at least one row; got shape {X.shape}")
        different, which = naming.codes(listed)
        self._one_kind(different)
        elapsed, last = self._elapsed(different, which, time)
        if self._layout is not None:
            checked_rows(self._layout, X, y, elapsed)
        rows = Sample(*checked_rows(self._layout_for(X, y), X, y, elapsed))
        places = [self._place(key) for key in different]
        prediction: Prediction = self._blocks.step(places, which, rows)
        self._note_times(different, last)
        return prediction

    def _elapsed(
        self, different: list[Key], which: np.ndarray, time: ArrayLike | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Time since the same key's row before, and the time of each key's last row."""
        last = np.array([self._times.get(key, np.nan) for key in different], float)
        if time is None:
            return np.ones(which.size), last + np.bincount(which, minlength=len(different))
        now = checks.targets("time", time, which.shape).astype(np.float64)
        if np.isnan(now).any():
            raise ValueError(f"time must not be missing; got NaN in row {int(np.isnan(now).argmax())}")
        order = np.argsort(which, kind="stable")
        key, at = which[order], now[order]
        before = np.where(np.diff(key, prepend=-1) > 0, last[key], np.roll(at, 1))
        passed = np.where(np.isnan(before), 1.0, at - before)
        if (passed < 0.0).any():
            first = int((passed < 0.0).argmax())
            raise ValueError(
                f"time must not run backwards within a key; row {order[first]} of key {different[key[first]]!r} has "
                f"{at[first]:g} after {before[first]:g}: sort the rows, or leave out those that came too late"
            )
        last[key] = at  # of several assignments the last one holds
        return passed[np.argsort(order)], last

    def _note_times(self, keys: list[Key], times: np.ndarray) -> None:
        known = np.flatnonzero(~np.isnan(times)).tolist()
        self._times.update({keys[i]: float(times[i]) for i in known})

    # ---- beginning ---------------------------------------------------------------------------------------------------

    @property
    def _blocks(self) -> Blocks:
        if self._stacks is None:
            raise ValueError("the fleet has no keys and no shapes yet: update it or warm it up first")
        return self._stacks

    def _layout_for(self, X: np.ndarray, y: np.ndarray) -> Layout:
        """Layout of the states; with the first rows that come, the fleet begins cold."""
        if self._layout is None:
            empty = np.zeros((0, X.shape[1]), X.dtype), np.zeros((0, *y.shape[1:]), X.dtype)
            return self._begin_from(self.model.init(*empty), warm=False)
        return self._layout

    def _begin_from(self, start: S, *, warm: bool) -> Layout:
        with jax.enable_x64(True):
            return self._begin(start.layout, packing_of(start), pack(start), warm=warm)

    def _begin(self, layout: Layout, packing: Packing, start: Any, *, warm: bool) -> Layout:
        self._layout, self._warm = layout, warm
        if self._stacks is None:
            stacked = self.model.stacked(packing)
            self._stacks = Blocks(_predict, _predict_and_learn, self.model, packing, start, stacked)
        else:
            self._stacks.restart(start)
        return layout

    def _place(self, key: Key) -> Place:
        if key not in self._places:
            self._places[key] = self._blocks.admit()
        return self._places[key]

    def _known(self, keys: Iterable[Key]) -> list[Place]:
        listed = naming.checked(keys)
        unknown = [key for key in listed if key not in self._places]
        if unknown:
            raise ValueError(f"keys must be those of the fleet; it has no {unknown[0]!r}")
        return [self._places[key] for key in listed]

    def _one_kind(self, keys: list[Key]) -> None:
        there = next(iter(self._places), None)
        if there is not None and keys and type(there) is not type(keys[0]):
            raise ValueError(
                f"keys must be all text or all whole numbers; got {keys[0]!r}, and the fleet has {there!r}"
            )

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def evict(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        """Take keys out of the fleet and return the bytes of each, with which `admit` brings it back."""
        listed = list(dict.fromkeys(naming.checked(keys)))
        places = self._known(listed)
        if not listed:
            return {}
        states = self._blocks.read(places)
        evicted = {
            key: self._seal([key], tuple(rows[i : i + 1] for rows in states), start=False)
            for i, key in enumerate(listed)
        }
        self._blocks.release(places)
        for key in listed:
            del self._places[key]
            self._times.pop(key, None)
        return evicted

    def admit(self, evicted: Mapping[Key, bytes] | bytes) -> None:
        """Bring keys back: those of a mapping that `evict` gave, or all of a fleet's bytes."""
        parts = [evicted] if isinstance(evicted, (bytes, bytearray, memoryview)) else evicted.values()
        opened = [stored.unseal(self._portrait, bytes(part)) for part in parts]
        for part in opened:
            self._check_admitted(part)
        for part in opened:
            self._admit(part)

    def to_bytes(self, *, start: bool = True) -> bytes:
        """Return the whole fleet as bytes, with the state that new keys start from unless told otherwise."""
        return self._seal(self.keys, self._blocks.read(list(self._places.values())), start=start and self._warm)

    @classmethod
    def from_bytes(cls, model: Model[S], data: bytes) -> "Fleet[S]":
        """Return the fleet that `to_bytes` was called on, or refuse bytes that are none of this model's."""
        fleet = cls(model)
        fleet.admit(data)
        return fleet

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fleet to a file, which at every moment is the old one or the new one."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Model[S]) -> "Fleet[S]":
        """Read a fleet of this model from a file."""
        try:
            return cls.from_bytes(model, Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def _seal(self, keys: list[Key], states: tuple[np.ndarray, ...], *, start: bool) -> bytes:
        assert self._layout is not None  # noqa: S101
        begun = self._blocks.start if start else None
        return stored.seal(self._portrait, stored.Stored(self._layout, keys, self.times(keys), states, begun))

    def _check_admitted(self, part: stored.Stored) -> None:
        if self._layout not in (None, part.layout):
            raise ValueError(f"fleet to admit must have the layout {self._layout}; it has {part.layout}")
        self._one_kind(part.keys)
        there = [key for key in part.keys if key in self._places]
        if there:
            raise ValueError(f"keys to admit must not be in the fleet; {there[0]!r} is: evict it first")
        packing = self._packing(part.layout) if self._stacks is None else self._stacks.packing
        expected = list(zip(packing.dtypes, packing.sizes, strict=True))
        if [(str(rows.dtype), rows.shape[1]) for rows in part.states] != expected:
            raise ValueError(f"fleet to admit is damaged: its states are not those of {type(self.model).__name__}")

    def _packing(self, layout: Layout) -> Packing:
        """How a state of this layout packs, found by tracing the start of the model without running it."""
        X = jax.ShapeDtypeStruct((_ROWS, layout.inputs), layout.dtype)
        y = jax.ShapeDtypeStruct((_ROWS, *layout.target_shape), layout.dtype)
        with jax.enable_x64(True):
            return packing_of(jax.eval_shape(self.model.init, X, y))

    def _admit(self, part: stored.Stored) -> None:
        layout = part.layout
        if self._layout is None and part.start is not None:
            self._begin(layout, self._packing(layout), part.start, warm=True)
        elif self._layout is None:
            self._layout_for(np.zeros((0, layout.inputs), layout.dtype), np.zeros((0, *layout.target_shape)))
        places = [self._place(key) for key in part.keys]
        self._blocks.write(places, part.states)
        self._times.update(
            {key: time for key, time in zip(part.keys, part.times.tolist(), strict=True) if time == time}
        )


def _predict(model: Model[Any], state: Any, row: Sample) -> Prediction:
    prediction: Prediction = jax.tree.map(lambda leaf: leaf[0], model.predict(state, row.X[None]))
    return prediction


def _predict_and_learn(model: Model[Any], state: Any, row: Sample) -> tuple[Any, Prediction]:
    return model.update(state, row.X, row.y, row.elapsed), _predict(model, state, row)
