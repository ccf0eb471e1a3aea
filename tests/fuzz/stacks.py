"""Nested models of every build of the library, on stacks of states, by several threads at once: one thread's bits."""

import threading
from typing import Any

import numpy as np

from driftgp import recommended
from driftgp.engine import Batch, library
from driftgp.engine.native import NativeEngine
from tests.engine.test_native_wrappers import INPUTS, any_model, stream
from tests.fuzz.states import EFFORTS

STATES, ROWS, THREADS = 6, 12, 3


def some_model(rng: np.random.Generator, outputs: int) -> Any:
    """Any nesting, or now and then the default of some effort."""
    if rng.random() < 0.9:
        return any_model(rng, 4)
    effort = EFFORTS[rng.integers(len(EFFORTS))]
    return recommended(np.zeros((0, INPUTS)), np.zeros((0, outputs)), effort=effort, support=(6.5, None))


def case(rng: np.random.Generator) -> str:
    """A model, a build, a stack; then the same by threads that share the model."""
    levels = [level for level in library.LEVELS[1:] if library.library().level(level)]
    level = levels[rng.integers(len(levels))]
    P = int(rng.integers(1, 4))
    model = some_model(rng, P)
    X, y, elapsed = stream(model, P, int(rng.integers(1 << 30)))
    engine = NativeEngine(model, X.shape[1], P, level)
    warmup, N = int(rng.choice([0, 1, 10, 25, 60])), STATES * ROWS
    states = np.zeros(STATES, engine.record_dtype)
    for state in states.reshape(STATES, 1):
        engine.start(state.reshape(()), X[:warmup], y[:warmup])
    rows = np.resize(np.arange(len(X)), N)
    X, y, elapsed = X[rows], y[rows], elapsed[rows]
    alone, ends = states.copy(), np.arange(ROWS, N + 1, ROWS)
    expected = engine.run(alone, np.arange(STATES), ends, Batch(X, y, elapsed))
    made: dict[int, np.ndarray] = {}

    def work(thread: int) -> None:
        for slot in range(thread, STATES, THREADS):
            own = slice(slot * ROWS, (slot + 1) * ROWS)
            state = states[slot : slot + 1]
            made[slot] = engine.run(state, np.array([0]), np.array([ROWS]), Batch(X[own], y[own], elapsed[own]))
            engine.solve(made[slot], np.array([-1.0, 1.0]))
            engine.complete(state.copy().reshape(()))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == STATES, "a thread failed"
    assert states.tobytes() == alone.tobytes(), "states of threads differ from those of one"
    assert b"".join(made[slot].tobytes() for slot in range(STATES)) == expected.tobytes()
    return level
