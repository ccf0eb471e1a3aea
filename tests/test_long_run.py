"""Sums that are added to and subtracted from for ever must not drift, and nothing may pile up in memory."""

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from driftgp import FastAGP
from driftgp.kernels import SE

OPTIMISED = True  # see conftest.py

T = 20
CORNERS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])


def sample(t: Any) -> tuple[Any, Any]:
    """Irrational frequencies: the stream never repeats itself. The level makes for cancellation."""
    x = jnp.stack([jnp.sin(0.1 * t), jnp.cos(2**0.5 * t)])
    return x, 100.0 + jnp.sin(3.0 * x[0]) + x[1] + jnp.sin(1e3 * t)


@partial(jax.jit, static_argnums=1)
def far(model: Any, steps: int) -> Any:
    """State after so many steps of a stream that is made on the way, and so takes no memory."""

    def step(state: Any, t: Any) -> tuple[Any, None]:
        return model.update(state, *sample(t), 1.0), None

    cold = model.init(jnp.zeros((0, 2)), jnp.zeros(0))
    return lax.scan(step, cold, jnp.arange(steps, dtype=cold.window.X.dtype))[0]


def drift(one: Any, other: Any) -> float:
    """Largest difference of two trees, leaf by leaf, as a share of the leaf's size."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in pairs if np.asarray(a).dtype.kind == "f")


@pytest.mark.parametrize("steps", [99_999, pytest.param(999_999, marks=pytest.mark.slow)])
@pytest.mark.parametrize("forgetting", [0.9, 1.0])
def test_recursive_statistics_are_those_of_the_window(steps, forgetting):
    """At the end of a turn of the window, when the last sum from scratch is as long ago as it can be."""
    assert steps % T == T - 1
    model = FastAGP(kernel=SE(0.7), noise=0.1, inducing=5, window=T, forgetting=forgetting)
    with jax.enable_x64(True):
        state = far(model, steps)
        again = jax.jit(lambda model, state: model.complete(model.essence(state)))(model, state)
    assert int(state.samples) == steps
    assert drift(state.statistics, again.statistics) < 1e-8
    assert drift(state.posterior, again.posterior) < 1e-8
    assert int(state.repaired) == 0


@pytest.mark.parametrize("steps", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_statistics_without_a_window_are_the_weighted_sums_of_all_samples(steps):
    model = FastAGP(kernel=SE(0.7), window=None, forgetting=0.99, inducing=4, inducing_inputs=CORNERS)
    with jax.enable_x64(True):
        s = jax.tree.map(np.asarray, far(model, steps).statistics)
        X, y = jax.tree.map(np.asarray, jax.vmap(sample)(jnp.arange(steps - 5000, steps, dtype=float)))
        Kux = np.asarray(model.kernel(CORNERS, X))
    w = 0.99 ** np.arange(4999, -1, -1)  # what came before weighs less than 1e-21
    exact = {"n": w.sum(), "yy": w @ y**2, "b": (Kux * w) @ y[:, None], "Phi": (Kux * w) @ Kux.T, "kappa": w.sum()}
    for name, value in exact.items():
        np.testing.assert_allclose(getattr(s, name), np.reshape(value, np.shape(getattr(s, name))), rtol=1e-8)


# ---- a million steps -------------------------------------------------------------------------------------------------


@jax.jit
def onwards(model: Any, state: Any, times: Any) -> Any:
    return lax.scan(lambda state, t: (model.update(state, *sample(t), 1.0), None), state, times)[0]


def resident() -> float:
    """Memory of this process that is in use, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def a_million_steps(model: Any, steps: int = 1_000_000, block: int = 10_000) -> tuple[Any, np.ndarray, np.ndarray]:
    """State after the steps, memory after each block in MB, and processor time a step in each block in µs."""
    memory, pace = [], []
    with jax.enable_x64(True):
        state = model.init(np.zeros((0, 2)), np.zeros(0))
        onwards(model, state, np.arange(block, dtype=float))  # compiles
        for start in range(0, steps, block):
            began = time.process_time()
            state = jax.block_until_ready(onwards(model, state, np.arange(start, start + block, dtype=float)))
            pace.append((time.process_time() - began) / block * 1e6)
            memory.append(resident())
    return state, np.array(memory), np.array(pace)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm")
@pytest.mark.parametrize("forgetting", [0.977, 1.0])
def test_a_million_steps_in_constant_memory(forgetting):
    """Time a step is printed (pytest -s), in thirds, and not judged: other programs run here too.

    A window of 101 samples is, after a million, at the end of a turn.
    """
    model = FastAGP(kernel=SE(0.7), noise=0.1, inducing=10, window=101, forgetting=forgetting)
    state, memory, pace = a_million_steps(model)
    thirds = [float(np.median(part)) for part in np.array_split(pace, 3)]
    with jax.enable_x64(True):
        again = jax.jit(lambda model, state: model.complete(model.essence(state)))(model, state)
    apart = max(drift(state.statistics, again.statistics), drift(state.posterior, again.posterior))
    print(f"memory {memory[0]:.1f} to {memory[-1]:.1f} MB, µs a step {np.round(thirds, 1)}, drift {apart:.1e}")  # noqa: T201
    assert int(state.samples) == 1_000_000
    assert memory[-1] - memory[len(memory) // 10] < 2.0
    assert apart < 1e-8
