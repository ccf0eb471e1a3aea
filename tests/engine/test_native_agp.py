"""The AGP of the compiled engine beside its twin in NumPy: one step from common states, for all options and kernels."""

import threading
from typing import Any

import numpy as np
import pytest

from driftgp.engine import Batch, description, library
from driftgp.engine.library import NoLibrary
from driftgp.engine.native import NativeEngine
from driftgp.engine.reference import ReferenceEngine
from driftgp.gp.agp import AGP
from driftgp.kernels import (
    SE,
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
)


def _levels() -> list[str]:
    try:
        return [level for level in library.LEVELS[1:] if library.library().level(level)]
    except NoLibrary:
        return []


pytestmark = pytest.mark.skipif(not _levels(), reason="there is no compiled library")

ARD = [0.7, 1.3, 2.1]
KERNELS: dict[str, Kernel] = {
    "se": SE(0.8, 1.3),
    "se per input": SE(ARD, 0.6),
    "matern12": Matern12(ARD, 1.2),
    "matern32": Matern32(1.1, 0.8),
    "matern52": Matern52(ARD, 0.8),
    "rational quadratic": RationalQuadratic(0.9, 1.2, 0.7),
    "rational quadratic per input": RationalQuadratic(ARD, 1.2, 1.7),
    "periodic": Periodic(2.5, 0.9, 1.1) + SE(2.0, 0.3),
    "periodic per input": Periodic([2.5, 3.1, 4.0], ARD, 1.1) + SE(2.0, 0.3),
    "sum": Linear(ARD) + SE(0.8, 1.3) + Constant(0.4) + Linear(0.2),
    "two exponentials": SE(0.8, 1.3) + Matern52(ARD, 0.5),
    "large linear": Linear(60.0) + SE(0.8, 0.3),
    "product": SE(ARD, 1.3) * Periodic(2.5, 0.9, 1.1),
    "nested": (Linear(ARD) + Constant(0.7)) * (SE(0.8, 1.3) + RationalQuadratic(ARD, 0.4, 2.0)) + Matern32(0.9, 0.5),
    "product of products": Constant(0.9) * (SE(0.8) * (Matern52(1.4) * SE(ARD))),
}
FAST: dict[str, Any] = {"learn_every": 0}
OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "cholesky": {"relevance": "cholesky", "threshold": 0.05},
    "diagonal": {"relevance": "diagonal", "threshold": 0.05},
    "iterations": {"iterations": 3},
    "carried": {"step": "carried"},
    "carried, iterations": {"step": "carried", "iterations": 2},
    "scaled": {"step": "scaled"},
    "scaled, iterations, prior": {"step": "scaled", "iterations": 2, "prior": 3.0},
    "prior": {"prior": 2.0},
    "outliers": {"outliers": 4.0},
    "absolute jitter": {"absolute_jitter": 1e-3, "jitter": 0.0},
    "window not of whole vectors": {"window": 29},
    "one point": {"inducing": 1},
    "hybrid": {"learn_every": 3, "threshold": 0.1},
    "learned inputs": {"learn_inducing": True},
    "recent": {"placement": "recent"},
    "given": {"inducing_inputs": [[0.0, 0.5, 1.0], [1.0, 0.0, -1.0]]},
    "fast": FAST,
    "fast, threshold": FAST | {"threshold": 0.2},
    "fast, cholesky": FAST | {"relevance": "cholesky", "threshold": 0.2},
    "fast, diagonal": FAST | {"relevance": "diagonal", "threshold": 0.2},
    "fast, published": FAST | {"admission": "published", "outliers": 4.0},
    "fast, no window": FAST | {"window": None, "forgetting": 0.97},
}


def _stream(rows: int, outputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    y = np.sin(X @ rng.normal(size=(3, outputs))) + 0.1 * rng.normal(size=(rows, outputs))
    y[rng.random(rows) < 0.1] = np.nan
    return X, y


def _differences(got: np.ndarray, expected: np.ndarray) -> dict[str, float]:
    """How far each field is from what it should be, relative to the field's largest number; counts must be equal."""
    apart = {}
    for name in expected.dtype.names or ():
        here, there = got[name], expected[name]
        if here.dtype.names:
            apart |= {f"{name}.{key}": value for key, value in _differences(here, there).items()}
        elif here.dtype.kind == "i":
            apart[name] = 0.0 if np.array_equal(here, there) else np.inf
        else:
            apart[name] = np.max(np.abs(here - there), initial=0.0) / max(np.max(np.abs(there), initial=0.0), 1e-300)
    return apart


def _assert_close(got: np.ndarray, expected: np.ndarray, what: str) -> None:
    wrong = {name: value for name, value in _differences(got, expected).items() if not value < 1e-8}
    assert not wrong, f"{what}: {wrong}"


def _compare(model: AGP, outputs: int, level: str, steps: int = 15) -> None:
    """Start, and then step after step from the state of the twin."""
    X, y = _stream(45 + steps, outputs)
    native, reference = NativeEngine(model, 3, outputs, level), ReferenceEngine(model, 3, outputs)
    got, expected = np.zeros((), native.record_dtype), np.zeros((), native.record_dtype)
    native.start(got, X[:45], y[:45])
    reference.start(expected, X[:45], y[:45])
    _assert_close(got, expected, "start")
    twin = reference.single(expected)
    for i in range(45, 45 + steps):
        got[...] = expected
        single = native.single(got)
        said, twin_said = single.predict(X[i]), twin.predict(X[i])
        _assert_close(said, twin_said, f"forecast of row {i}")
        single.learn(X[i], y[i], 0.5 + i % 2, said if i % 3 else None)
        twin.learn(X[i], y[i], 0.5 + i % 2, twin_said)
        _assert_close(got, expected, f"row {i}")


def _model(kernel: Kernel | None = None, **options: Any) -> AGP:
    usual = {"inducing": 7, "window": 32, "noise": 0.2, "jitter": 1e-4, "warmup_iterations": 8}
    return AGP(SE(0.9, 1.1) if kernel is None else kernel, **usual | options)


@pytest.mark.parametrize("level", _levels())
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_kernels_agree(kernel: Kernel, level: str) -> None:
    _compare(_model(kernel, threshold=0.01), 1, level)
    _compare(_model(kernel, learn_every=0, threshold=0.05, learn_inducing=True), 2, level)


@pytest.mark.parametrize("outputs", [1, 3, 12])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_agree(options: dict[str, Any], outputs: int) -> None:
    _compare(_model(**options), outputs, "best")


@pytest.mark.parametrize("level", _levels())
@pytest.mark.parametrize("options", [{}, {"learn_every": 0}, {"step": "carried"}], ids=["agp", "fast", "carried"])
def test_cold_starts_agree(options: dict[str, Any], level: str) -> None:
    model = _model(**options)
    native, reference = NativeEngine(model, 3, 1, level), ReferenceEngine(model, 3, 1)
    got, expected = np.zeros((), native.record_dtype), np.zeros((), native.record_dtype)
    X, y = _stream(6, 1)
    for engine, record in ((native, got), (reference, expected)):
        engine.start(record, X[:0], y[:0])
        single = engine.single(record)
        for i in range(6):
            single.learn(X[i], y[i], 1.0)
    for name in ("U", "points", "w", "samples"):  # the first steps follow the signs of gradients that are nearly 0
        np.testing.assert_allclose(got[name], expected[name], rtol=0.2, atol=0.2)


def test_points_that_come_and_go_leave_the_factor_as_if_it_were_new() -> None:
    X, y = _stream(400, 1)
    engine = NativeEngine(_model(Matern32(0.8), inducing=20, window=100, learn_every=0, jitter=1e-6), 3, 1)
    states = np.zeros(1, engine.record_dtype)
    engine.start(states[0:1].reshape(()), X[:100], y[:100])
    first = states["U"].copy()
    engine.run(states, [0], [97], Batch(X[100:197], y[100:197], np.ones(97)))
    assert np.mean(np.all(states["U"] == first, -1)) < 0.5
    fresh = states.copy()
    engine.complete(fresh[0:1].reshape(()))
    _assert_close(states[0:1].reshape(()), fresh[0:1].reshape(()), "after many exchanges")


def test_all_ways_to_hand_in_rows_give_the_same_bits() -> None:
    X, y = _stream(240, 2)
    engine = NativeEngine(_model(outliers=4.0), 3, 2)
    start = np.zeros((), engine.record_dtype)
    engine.start(start, X[:40], y[:40])
    rows, elapsed = slice(40, 240), np.ones(200)
    at_once = start.copy()[None]
    made = engine.run(at_once, [0], [200], Batch(X[rows], y[rows], elapsed))
    one = start.copy()
    single = engine.single(one)
    said = []
    for i in range(40, 240):
        known = single.predict(X[i])
        said.append(known.tobytes())
        single.learn(X[i], y[i], 1.0, [known, known.copy(), None][i % 3])
    ahead = start.copy()[None]
    later = engine.run(ahead, [0], [199], Batch(X[40:239], y[40:239], elapsed[1:], X[41:240]))
    assert made.tobytes() == b"".join(said)
    assert at_once.tobytes() == one.tobytes()
    assert later.tobytes() == made[1:].tobytes()


def test_stacks_of_states_agree_with_each_by_itself() -> None:
    X, y = _stream(700, 1)
    engine = NativeEngine(_model(), 3, 1)
    states = np.zeros(5, engine.record_dtype)
    for i in range(5):
        engine.start(states[i : i + 1].reshape(()), X[20 * i : 20 * i + 30], y[20 * i : 20 * i + 30])
    slots, ends = [3, 0, 4, 1], [150, 150, 400, 500]
    alone = states.copy()
    together = engine.run(states, slots, ends, Batch(X[:500], y[:500], np.ones(500)))
    for slot, begin, end in zip(slots, [0, *ends], ends, strict=False):
        own = slice(begin, end)
        made = engine.run(alone[slot : slot + 1], [0], [end - begin], Batch(X[own], y[own], np.ones(end - begin)))
        assert made.tobytes() == together[own].tobytes()
    assert states.tobytes() == alone.tobytes()


def test_one_model_serves_several_threads() -> None:
    X, y = _stream(300, 1)
    engine = NativeEngine(_model(), 3, 1)
    start = np.zeros((), engine.record_dtype)
    engine.start(start, X[:40], y[:40])
    states = [start.copy()[None] for _ in range(4)]
    work = [
        threading.Thread(target=engine.run, args=(state, [0], [260], Batch(X[40:], y[40:], np.ones(260))))
        for state in states
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len({state.tobytes() for state in states}) == 1


def test_a_sample_beyond_all_bounds_is_left_out() -> None:
    X, y = _stream(60, 1)
    engine = NativeEngine(_model(Linear(1.0) + SE()), 3, 1)
    state = np.zeros((), engine.record_dtype)
    engine.start(state, X[:40], y[:40])
    before = state.copy()
    engine.single(state).learn(np.full(3, 1e200), np.zeros(1), 1.0)
    assert state["skipped"] == before["skipped"] + 1
    state["skipped"] -= 1
    _assert_close(state, before, "after a sample that was left out")


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_descriptions_that_cpp_does_not_know_are_refused() -> None:
    loaded, good = library.library(), description.encoded(_model())
    with pytest.raises(NoLibrary, match="no model of kind 99"):
        loaded.make([99.0, *good[1:]], 3, 1, "best")
    with pytest.raises(NoLibrary, match="no kernel of kind 77"):
        loaded.make(
            [77.0 if number == 1.0 and i == len(good) - 7 else number for i, number in enumerate(good)], 3, 1, "best"
        )
    for wrong in (good[:-1], [*good, 0.0], good[:1], [], [20.0, 1e18], [np.nan] * 5, [20.0, 0.0, 1.0, 20.0, 0.0, 0.0]):
        with pytest.raises((ValueError, NoLibrary)):
            loaded.make(wrong, 3, 1, "best")
    for i in range(2, len(good)):  # a setting that is no number of its kind
        with pytest.raises((ValueError, NoLibrary)):
            loaded.make([*good[:i], -7.5, *good[i + 1 :]], 3, 1, "best")


def test_kernels_for_other_inputs_and_unknown_parts_are_refused() -> None:
    class Own(SE):
        pass

    with pytest.raises(ValueError, match="3 entries for 2 inputs"):
        library.library().make(description.encoded(_model(SE(ARD))), 2, 1, "best")
    with pytest.raises(description.Unknown, match="Own"):
        NativeEngine(_model(Own()), 3, 1)


@pytest.mark.parametrize(
    ("field", "value"), [("points", 8), ("points", -1), ("w", np.nan), ("theta", 0.0), ("noise", -1.0), ("samples", -1)]
)
def test_states_that_no_step_could_have_left_are_refused(field: str, value: float) -> None:
    engine = NativeEngine(_model(), 3, 1)
    states = np.zeros(1, engine.record_dtype)
    engine.start(states[0:1].reshape(()), *_stream(40, 1))
    states[field] = value
    with pytest.raises(ValueError, match="state"):
        engine.run(states, [0], [1], Batch(np.zeros((1, 3))))


def test_cursors_outside_the_window_are_refused() -> None:
    engine = NativeEngine(_model(), 3, 1)
    states = np.zeros(1, engine.record_dtype)
    engine.start(states[0:1].reshape(()), *_stream(40, 1))
    states["window"]["cursor"] = 32
    with pytest.raises(ValueError, match="cursor"):
        engine.run(states, [0], [1], Batch(np.zeros((1, 3))))


def test_records_of_other_layouts_are_refused() -> None:
    engine, other = NativeEngine(_model(), 3, 1), NativeEngine(_model(), 3, 2)
    states = np.zeros(3, engine.record_dtype)
    for wrong in (np.zeros(1, other.record_dtype), states[::2], states.reshape(1, 3)):
        with pytest.raises(ValueError, match="states must be"):
            engine.run(wrong, [0], [1], Batch(np.zeros((1, 3)), np.zeros((1, 1)), np.ones(1)))
    states.setflags(write=False)
    with pytest.raises(ValueError, match="writeable"):
        engine.run(states, [0], [1], Batch(np.zeros((1, 3)), np.zeros((1, 1)), np.ones(1)))
    with pytest.raises(ValueError, match="slots"):
        engine.run(states, [3], [1], Batch(np.zeros((1, 3))))


def test_cpp_finds_in_every_field_what_numpy_has_put_there() -> None:
    engine = NativeEngine(_model(step="carried"), 3, 2)
    for dtype, of_forecast in ((engine.record_dtype, False), (engine.forecast_dtype, True)):
        record = np.zeros((), dtype)
        bound = engine.library.entries(engine.address.value or 0, of_forecast=of_forecast)
        for number, entry in enumerate(bound):
            field = record
            for name in entry.path.split("."):
                field = field[name]
            field[...] = number + 1
        for number, entry in enumerate(bound):
            found = np.frombuffer(record.tobytes(), entry.kind, entry.numbers, entry.offset)
            np.testing.assert_array_equal(found, number + 1, err_msg=entry.path)
        assert sum(entry.numbers for entry in bound) * 8 == dtype.itemsize
