"""The native engine: whole models in C++, on the same records as in NumPy."""

import ctypes
import weakref
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np

from driftgp.base.cores import cores
from driftgp.contract.protocol import Contract
from driftgp.contract.records import entries
from driftgp.engine import description
from driftgp.engine.base import Batch
from driftgp.engine.library import OTHER_VERSION, CallRows, Library, NoLibrary, library

__all__ = ["NativeEngine", "NativeSingle", "NoLibrary", "describe"]

_PIECE = 0.05  # seconds after which a long call comes back, so that an interrupt is heard
_SHARE = 64  # least rows per thread


def describe(model: Contract) -> str:
    """Whether C++ runs a model, and if not, the reason."""
    try:
        NativeEngine(model, 1, 1)
    except (NoLibrary, description.Unknown) as reason:
        return f"reference: {reason}"
    except ValueError:
        pass  # it is for another number of inputs or outputs
    return f"native: C++ for {library().level()} processors"


class NativeEngine:
    """A model in C++, at work on records."""

    kind = "native"

    def __init__(self, model: Contract, inputs: int, outputs: int, level: str = "best") -> None:
        """Take a model and its numbers of inputs and outputs.

        Raises `NoLibrary` where there is no library of this version, and `description.Unknown` for a part that has no
        twin in C++.
        """
        self.model, self.inputs, self.outputs = model, inputs, outputs
        self.record_dtype, self.forecast_dtype = model.record_dtype(inputs, outputs), model.forecast_dtype(outputs)
        self.library: Library = library()
        address = self.library.make(description.encoded(model), inputs, outputs, level)
        weakref.finalize(self, self.library.free, address).atexit = False
        self.address = ctypes.c_void_p(address)
        for dtype, of_forecast in ((self.record_dtype, False), (self.forecast_dtype, True)):
            _compare(self.library, list(entries(dtype)), self.library.entries(address, of_forecast=of_forecast))

    def start(self, record: np.ndarray, X: np.ndarray, y: np.ndarray) -> None:
        """Fill a record of shape (), all zeros so far, from a warm-up batch."""
        state = self._records("record", record, ())
        X, y = _floats("X", X, (len(X), self.inputs)), _floats("y", y, (len(X), self.outputs))
        self.library.check(self.library.start(self.address, state, _address(X), _address(y), len(X)))

    def run(self, states: np.ndarray, slots: np.ndarray, ends: np.ndarray, batch: Batch) -> np.ndarray:
        """Predict each row before it is learned from: see `Engine.run`. Rows of many states are shared by all cores."""
        X, y, elapsed, X_next, issued, known_at = batch
        N = len(X)
        slots, ends = _wholes("slots", slots), _wholes("ends", ends)
        if slots.shape != ends.shape or (ends[-1] if ends.size else 0) != N or np.any(np.diff(ends, prepend=0) < 0):
            raise ValueError(f"ends must say where the rows of each slot end, the last at {N}; got {ends}")
        if slots.size and not 0 <= slots.min() <= slots.max() < len(states):
            raise ValueError(f"slots must lie in [0, {len(states)}); got {slots}")
        arrays = {"x": _floats("X", X, (N, self.inputs))}
        for name, given, shape in (("y", y, (N, self.outputs)), ("elapsed", elapsed, (N,)), ("next", X_next, X.shape)):
            if given is not None:
                arrays[name] = _floats("X_next" if name == "next" else name, given, shape)
        before = 0 if issued is None else len(issued)
        made = np.empty(N + before, self.forecast_dtype)
        if issued is not None:
            made[N:] = issued
        pointers = {name: _address(array) for name, array in arrays.items()} | {"forecasts": _address(made)}
        if known_at is not None:
            places = _wholes("known_at", known_at)
            if places.shape != (N,) or np.any((places >= np.arange(N)) & (places < N)) or np.any(places >= N + before):
                raise ValueError(f"known_at must name earlier rows or forecasts that were issued; got {known_at}")
            arrays["known_at"], pointers["known_at"], pointers["room"] = places, _address(places), N + before
        state = self._records("states", states, (len(states),), written=y is not None)
        self._work(slots, ends, CallRows(states=state, seconds=_PIECE, **pointers))
        return made[:N]

    def _work(self, slots: np.ndarray, ends: np.ndarray, common: CallRows) -> None:
        """Run all rows on all cores, piece after piece.

        An exception, of a signal's handler for instance, can be raised between two pieces but within none, so that no
        array is given back while a thread works on it.
        """
        bounds, shares = [0, *ends.tolist()], _shares(slots, ends)
        rows = (CallRows * len(shares))(*[common] * len(shares))
        for share, (begin, end) in zip(rows, shares, strict=True):
            share.slots, share.ends = _address(slots) + 8 * begin, _address(ends) + 8 * begin
            share.count, share.first = end - begin, bounds[begin]
        while any(share.first < bounds[end] for share, (_, end) in zip(rows, shares, strict=True)):
            self.library.check(self.library.run_all(self.address, rows, len(rows)))
            for share in rows:
                share.first = share.done

    def single(self, record: np.ndarray) -> "NativeSingle":
        """The quickest way to hand rows in one at a time, for one record of shape ()."""
        return NativeSingle(self, record, self._records("record", record, ()))

    def solve(self, forecasts: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Values whose normal scores are z (Q, or Q×N for scores of each row's own), of N forecasts: Q×N×P."""
        if forecasts.dtype != self.forecast_dtype or forecasts.ndim != 1:
            raise ValueError(f"forecasts must be records of {type(self.model).__name__}; got {forecasts.dtype}")
        forecasts = np.ascontiguousarray(forecasts)
        z = _floats("z", z, z.shape[:1] if z.ndim == 1 else (len(z), forecasts.size))
        values = np.empty((len(z), forecasts.size, self.outputs))
        places = _address(forecasts), forecasts.size, _address(z), len(z), z.ndim == 2, _address(values)
        code = self.library.from_normal(self.address, *places)
        if code:
            self.library.check(code)
        return values

    def complete(self, record: np.ndarray) -> None:
        """Compute the fields of a record that follow from the others."""
        self.library.check(self.library.complete(self.address, self._records("record", record, ())))

    def _records(self, name: str, records: np.ndarray, shape: tuple[int, ...], *, written: bool = True) -> int:
        """The address of records, refused unless C++ may work on them as they are."""
        if records.dtype != self.record_dtype or records.shape != shape:
            raise ValueError(
                f"{name} must be of {type(self.model).__name__}'s layout for {self.inputs} inputs and {self.outputs} "
                f"outputs, and of shape {shape}; got shape {records.shape} of another layout or size"
            )
        if not (records.flags.c_contiguous and records.flags.aligned and (records.flags.writeable or not written)):
            raise ValueError(f"{name} must be contiguous in memory, aligned and writeable; copy it first")
        return _address(records)


class NativeSingle:
    """One state, and rows one at a time: everything that a call needs lies where it lay the last time."""

    def __init__(self, engine: NativeEngine, record: np.ndarray, address: int) -> None:
        """Take a record of shape () that the engine has checked."""
        self._engine, self._record = engine, record  # which must live as long as their addresses are used
        self._model, self._run = engine.address, engine.library.run
        self._x, self._y = np.zeros(engine.inputs), np.zeros(engine.outputs)
        self._elapsed, self._slot, self._end = np.zeros(1), np.zeros(1, np.int64), np.ones(1, np.int64)
        self._dtype = engine.forecast_dtype
        self._made, self._known = bytearray(self._dtype.itemsize), np.zeros(1, self._dtype)
        self._last: np.ndarray | None = None
        made = ctypes.addressof(ctypes.c_char.from_buffer(self._made))
        common = {
            "states": address,
            "slots": _address(self._slot),
            "ends": _address(self._end),
            "count": 1,
            "x": _address(self._x),
        }
        self._predicting = ctypes.byref(CallRows(**common, forecasts=made))
        self.lesson = CallRows(**common, y=_address(self._y), elapsed=_address(self._elapsed))
        self._learning, self._places = ctypes.byref(self.lesson), (made, _address(self._known))

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Forecast at x (D): an array of 1 record, which is the caller's."""
        self._x[...] = x
        code = self._run(self._model, self._predicting)
        if code:
            self._engine.library.check(code)
        self._last = made = np.frombuffer(bytearray(self._made), self._dtype)
        return made

    def learn(self, x: np.ndarray, y: np.ndarray, elapsed: float, known: np.ndarray | None = None) -> None:
        """Learn from x (D), y (P); `known` is the forecast of the present state at x, or None."""
        self._x[...] = x
        self._y[...] = y
        self._elapsed[0] = elapsed
        if known is None:
            self.lesson.known = None
        elif known is self._last:  # its numbers are here already
            self.lesson.known = self._places[0]
        else:
            self._known[...] = known
            self.lesson.known = self._places[1]
        code = self._run(self._model, self._learning)
        if code:
            self._engine.library.check(code)


def _compare(library: Library, here: list[Any], there: list[Any]) -> None:
    """Refuse a library that binds other fields than the records have."""
    for ours, theirs in zip_longest(here, there):
        if ours != theirs:
            raise NoLibrary(library.path, OTHER_VERSION, f"it takes {theirs} where the record has {ours}")


def _address(array: np.ndarray) -> int:
    if array.dtype == np.float64 and array.flags.writeable and array.size:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))  # a fifth of the time of the way below
    return int(array.ctypes.data)


def _floats(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.ascontiguousarray(value, np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got {array.shape}")
    return array


def _wholes(name: str, value: Any) -> np.ndarray:
    array = np.ascontiguousarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a list of whole numbers; got {value!r}")
    return array.astype(np.int64)


def _shares(slots: np.ndarray, ends: np.ndarray) -> list[tuple[int, int]]:
    """Slots from each begin to each end are one share; all shares have about the same number of rows.

    >>> _shares(np.arange(2), np.array([5, 9]))
    [(0, 2)]
    """
    rows = int(ends[-1]) if ends.size else 0
    threads = min(cores(), slots.size, rows // _SHARE)
    if threads <= 1 or np.unique(slots).size < slots.size:
        return [(0, slots.size)] if rows else []
    cuts = np.searchsorted(ends, np.arange(1, threads) * rows / threads).tolist()
    bounds = [0, *(cut + 1 for cut in cuts), slots.size]
    return [(begin, end) for begin, end in pairwise(bounds) if begin < end]
