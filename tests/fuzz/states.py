"""States with a few numbers or bits changed, and their checksums made right, through every way into the library."""

import contextlib
import hashlib
import json
import pickle
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from driftgp import Online, checkpoint, recommended
from driftgp.contract.records import entries
from driftgp.defaults import Effort
from driftgp.fleet import Fleet
from driftgp.models.model import Model, State
from tests.catalogue import CATALOGUE

EFFORTS: tuple[Effort, ...] = ("low", "medium", "high")
MODELS = [name for name, entry in CATALOGUE.items() if entry.make.__qualname__.split(".")[0] != "rival"]
ROWS = np.random.default_rng(0).normal(size=(700, 4))
X, Y = ROWS[:, :2], np.sin(ROWS[:, 0]) + 0.1 * ROWS[:, 3]
STEPS = 20
# rows that a state has behind it: members that work in pieces are then at another one; rings and windows get full
AGES = (21, 34, 36, 38, 40, 150, 650)
WHOLES = (-1, 0, 1, 2, 3, 4, 5, 11, 12, 13, 10**6, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**31), -(2**63))
FLOATS = (np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 5e-324, 1e-300, 1e-150, 1e8, 1e100, 1e150, 1e300, 1.7e308, -1.7e308)


@cache
def grown(name: str, age: int = 40) -> State:
    """A state that has learned for a while: a model of the catalogue, or the default of an effort."""
    efforts = [effort for effort in EFFORTS if effort == name]
    model = recommended(X[:40], Y[:40], effort=efforts[0], support=(-3.0, None)) if efforts else CATALOGUE[name].make()
    return model.update(model.init(X[:20], Y[:20]), X[20:age], Y[20:age])


# ---- what is changed -------------------------------------------------------------------------------------------------


def change(rng: np.random.Generator, record: np.ndarray) -> None:
    """Change a few numbers of a record in place: bits, counts, special values, a run of noise."""
    words = record.reshape(1).view(np.uint64)
    for _ in range(rng.integers(1, 4)):
        fields = [field for field in entries(record.dtype) if field.numbers]
        kind = rng.integers(0, 5)
        if kind == 0:
            words[rng.integers(words.size)] ^= np.uint64(1) << np.uint64(rng.integers(64))
        elif kind == 1:
            start = rng.integers(words.size)
            words[start : start + 8] = rng.integers(0, 2**64, words[start : start + 8].size, np.uint64)
        elif kind == 2:
            field = _one_of(rng, [field for field in fields if field.kind == "i8"] or fields)
            words.view(np.int64)[_place(rng, field)] = _one_of(rng, WHOLES)
        else:
            field = _one_of(rng, [field for field in fields if field.kind == "f8"])
            place = slice(field.offset // 8, field.offset // 8 + field.numbers) if kind == 3 else _place(rng, field)
            words.view(np.float64)[place] = _one_of(rng, FLOATS)


def _one_of(rng: np.random.Generator, things: Any) -> Any:
    return things[rng.integers(len(things))]


def _place(rng: np.random.Generator, field: Any) -> int:
    return int(field.offset // 8 + rng.integers(field.numbers))


# ---- ways in ---------------------------------------------------------------------------------------------------------


def by_checkpoint(rng: np.random.Generator, state: State) -> State:
    model = state.model if rng.random() < 0.5 else None
    return checkpoint.from_bytes(model, checkpoint.to_bytes(state.model, state))


def by_fleet(rng: np.random.Generator, state: State) -> State:
    fleet = Fleet(state.model)
    fleet.update(["a", "b"], X[:2], Y[:2])
    put(fleet, "b", state)
    given = state.model if rng.random() < 0.5 else None
    return Fleet.from_bytes(fleet.to_bytes(), given).state("b")


def put(fleet: Fleet, key: str, state: State) -> None:
    """Have a key go on from a state, whatever it holds."""
    slot = fleet._streams.series[key].slot
    assert slot is not None
    slot.stack.record(slot.number)[...] = state.record


def by_eviction(rng: np.random.Generator, state: State) -> State:
    """As Spark keeps them: keys one by one, for a fleet that is at work."""
    fleet, other = Fleet(state.model), Fleet(state.model)
    for each in (fleet, other):
        each.update(["a"], X[:1], Y[:1])
    other.update(["b"], X[:1], Y[:1])
    put(other, "b", state)
    fleet.admit(other.evict(["b"]))
    return fleet.state("b")


def by_pickle(rng: np.random.Generator, state: State) -> State:
    return pickle.loads(pickle.dumps(state))


def by_hand(rng: np.random.Generator, state: State) -> State:
    return State(state.model, state.layout, state.record)


def by_forged_header(rng: np.random.Generator, state: State) -> State:
    """A checkpoint whose header was changed too: one of its numbers or words replaced."""
    data = checkpoint.to_bytes(state.model, state)
    header = json.loads(zlib.decompress(data[_FRAME : _FRAME + _length(data)]))
    path, values = _one_of(rng, list(_leaves(header))), (-1, 0, 2**31, 2**63, 1e308, None, "", "x", [], {}, True)
    _put(header, path, _one_of(rng, values))
    text = zlib.compress(json.dumps(header).encode())
    rest = data[_FRAME + _length(data) : -32]
    body = data[:10] + len(text).to_bytes(4, "little") + data[14:22] + text + rest
    return checkpoint.from_bytes(None, body + hashlib.sha256(body).digest())


_FRAME = 22


def _length(data: bytes) -> int:
    return int.from_bytes(data[10:14], "little")


def _leaves(tree: Any, path: tuple[Any, ...] = ()) -> Any:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    if path:
        yield path
    for key, value in items:
        yield from _leaves(value, (*path, key))


def _put(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


WAYS: tuple[Callable[[np.random.Generator, State], State], ...] = (
    by_checkpoint,
    by_fleet,
    by_eviction,
    by_pickle,
    by_hand,
    by_forged_header,
)


# ---- a case ----------------------------------------------------------------------------------------------------------


def case(rng: np.random.Generator) -> str:
    """Change a state, hand it in, and, if it is taken, go on with it."""
    name = _one_of(rng, EFFORTS if rng.random() < 0.25 else MODELS)
    way = _one_of(rng, WAYS)
    state = grown(name, int(_one_of(rng, AGES))).copy()
    if way is not by_forged_header:
        change(rng, state.record)
    try:
        admitted = way(rng, state)
    except ValueError:
        return f"{way.__name__}: refused"
    go_on(admitted.model, admitted)
    return f"{way.__name__}: taken"


def go_on(model: Model, state: State) -> None:
    """Every forecast of a state that was taken is finite, and so are its intervals, whose ends are in order."""
    online = Online(model, state)
    D, P = state.layout.inputs, state.layout.columns
    for i in range(STEPS):
        x = np.resize(X[40 + i], D)
        forecast = online.predict(x)
        low, high = forecast.interval(0.9)
        numbers = (forecast.mean, forecast.variance, low, forecast.quantile(0.5), high)
        assert all(np.isfinite(number).all() for number in numbers), f"not finite after {i} steps: {numbers}"
        assert (forecast.variance > 0.0).all(), f"variance {forecast.variance} after {i} steps"
        rounding = 1e-9 * np.abs([low, high]).max(0)  # numbers that differ by no more are the same to a solver
        in_order = (low <= numbers[3] + rounding) & (numbers[3] <= high + rounding) & (low <= high + rounding)
        assert in_order.all(), f"out of order after {i} steps: {numbers[2:]}"
        online.update(x, Y[40 + i] if state.layout.outputs is None else np.full(P, Y[40 + i]))
    with contextlib.suppress(ValueError):  # by now it may have grown to what no step could have left
        checkpoint.from_bytes(model, checkpoint.to_bytes(model, online.state))
