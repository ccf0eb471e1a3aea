"""Sums that are added to and subtracted from for ever must not drift, and nothing may pile up in memory."""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgp import FastAGP, Online
from driftgp.kernels import SE

T = 20
BLOCK = 10_000
CORNERS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])


@pytest.fixture(autouse=True)
def natively(each_engine):
    if each_engine == "reference":
        pytest.skip("a hundred thousand steps take minutes by NumPy; fewer of them are tested in test_agp.py")


def sample(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Irrational frequencies: the stream never repeats itself. The level makes for cancellation."""
    X = np.stack([np.sin(0.1 * t), np.cos(2**0.5 * t)], 1)
    return X, 100.0 + np.sin(3.0 * X[:, 0]) + X[:, 1] + np.sin(1e3 * t)


def far(model: Any, steps: int) -> Any:
    """State after so many steps of a stream that is made on the way."""
    online = Online(model, model.init(np.zeros((0, 2)), np.zeros(0)))
    for start in range(0, steps, BLOCK):
        online.update(*sample(np.arange(start, min(start + BLOCK, steps), dtype=float)))
    return online.state


def drift(state: Any) -> float:
    """Largest difference of statistics and posterior from those computed anew, as a share of each field's size."""
    again = state.copy()
    again.engine().complete(again.record)
    pairs = ((state.record[name], again.record[name]) for name in state.model.derived())
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in pairs)


@pytest.mark.parametrize("steps", [99_999, pytest.param(999_999, marks=pytest.mark.slow)])
@pytest.mark.parametrize("forgetting", [0.9, 1.0])
def test_recursive_statistics_are_those_of_the_window(steps, forgetting):
    """At the end of a turn of the window, when the last sum from scratch is as long ago as it can be."""
    assert steps % T == T - 1
    state = far(FastAGP(kernel=SE(0.7), noise=0.1, inducing=5, window=T, forgetting=forgetting), steps)
    assert state.samples == steps
    assert drift(state) < 1e-8
    assert state.repaired == 0


@pytest.mark.parametrize("steps", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_statistics_without_a_window_are_the_weighted_sums_of_all_samples(steps):
    model = FastAGP(kernel=SE(0.7), window=None, forgetting=0.99, inducing=4, inducing_inputs=CORNERS)
    state = far(model, steps)
    X, y = sample(np.arange(steps - 5000, steps, dtype=float))
    Kux = model.kernel(CORNERS, X)
    w = 0.99 ** np.arange(4999, -1, -1)  # what came before weighs less than 1e-21
    exact = {"n": w.sum(), "yy": w @ y**2, "b": (Kux * w) @ y[:, None], "Phi": (Kux * w) @ Kux.T, "kappa": w.sum()}
    for name, value in exact.items():
        np.testing.assert_allclose(state.record[name].reshape(-1), np.reshape(value, -1), rtol=1e-8)


# ---- a million steps -------------------------------------------------------------------------------------------------


def resident() -> float:
    """Memory of this process that is in use, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm")
@pytest.mark.parametrize("forgetting", [0.977, 1.0])
def test_a_million_steps_in_constant_memory(forgetting):
    """Time per step is printed (pytest -s), in thirds, and not judged: other programs run here too.

    A window of 101 samples is, after a million, at the end of a turn.
    """
    model = FastAGP(kernel=SE(0.7), noise=0.1, inducing=10, window=101, forgetting=forgetting)
    online = Online(model, model.init(np.zeros((0, 2)), np.zeros(0)))
    memory, pace = [], []
    for start in range(0, 1_000_000, BLOCK):
        rows = sample(np.arange(start, start + BLOCK, dtype=float))
        began = time.process_time()
        online.update(*rows)
        pace.append((time.process_time() - began) / BLOCK * 1e6)
        memory.append(resident())
    thirds = [float(np.median(part)) for part in np.array_split(pace, 3)]
    apart = drift(online.state)
    print(f"memory {memory[0]:.1f} to {memory[-1]:.1f} MB, µs per step {np.round(thirds, 1)}, drift {apart:.1e}")  # noqa: T201
    assert online.state.samples == 1_000_000
    assert memory[-1] - memory[len(memory) // 10] < 2.0
    assert apart < 1e-8
