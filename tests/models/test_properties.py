"""The contract under any settings and any arrival of samples: gaps, irregular times, scales, batches, stops.

Settings, shapes and arrivals are drawn at random.
"""

from typing import Any, NamedTuple

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driftgp import AGP, checkpoint, evaluate
from driftgp.kernels import SE, Linear
from driftgp.wrappers import Gaps, Standardize, Watched

ROWS, CHUNK = 12, 4


class Shape(NamedTuple):
    """Sizes and the kind of model."""

    inducing: int
    window: int
    inputs: int
    outputs: int | None
    learn_every: int
    wrapped: bool


SHAPES = st.builds(
    Shape,
    inducing=st.integers(1, 6),
    window=st.integers(2, 9),
    inputs=st.integers(1, 4),
    outputs=st.none() | st.integers(1, 13),
    learn_every=st.integers(0, 3),
    wrapped=st.booleans(),
)
SETTINGS = st.fixed_dictionaries(
    {
        "forgetting": st.floats(0.3, 1.0),
        "noise": st.floats(1e-6, 1e3),
        "rate": st.floats(1e-3, 1.0),
        "threshold": st.floats(0.0, 0.5),
        "prior": st.floats(0.1, 100.0),
    }
)


def model_of(shape: Shape, chosen: dict[str, float]) -> Any:
    sizes = {"inducing": shape.inducing, "window": shape.window, "learn_every": shape.learn_every}
    model = AGP(SE(0.5) + Linear(0.1), **sizes, **chosen)
    return Watched(Standardize(Gaps(model), adapt=0.9)) if shape.wrapped else model


class Arrival(NamedTuple):
    """Samples as they come: inputs, targets (NaN where there is none), and the time since the one before."""

    X: np.ndarray
    y: np.ndarray
    elapsed: np.ndarray


@st.composite
def arrivals(draw: Any, shape: Shape) -> Arrival:
    numbers = st.floats(-1.0, 1.0, width=32) | st.sampled_from([0.0, 1.0, 1e3])
    X = draw(hnp.arrays(np.float64, (ROWS, shape.inputs), elements=numbers))
    y = draw(hnp.arrays(np.float64, (ROWS, *(() if shape.outputs is None else (shape.outputs,))), elements=numbers))
    elapsed = draw(hnp.arrays(np.float64, ROWS, elements=st.sampled_from([0.0, 0.5, 1.0, 7.0, 1e4])))
    gaps = draw(hnp.arrays(np.bool_, ROWS, elements=st.sampled_from([False, False, True])))
    y = y * draw(st.sampled_from([1e-9, 1.0, 1e6]))
    y[gaps] = np.nan
    if shape.wrapped:
        X[draw(hnp.arrays(np.bool_, X.shape, elements=st.sampled_from([False] * 5 + [True])))] = np.nan
    return Arrival(X, y, elapsed)


def check(shape: Shape, chosen: dict[str, float], rows: Arrival, draw: Any) -> None:
    model = model_of(shape, chosen)
    cold = model.init(rows.X[:0], rows.y[:0])
    run = evaluate.prequential(model, cold, *rows)
    assert_sound(run.prediction)
    assert_finite(run.state)
    assert in_chunks(model, cold, rows).record.tobytes() == run.state.record.tobytes()
    stop = draw(st.sampled_from([0, CHUNK, 2 * CHUNK]))
    assert_resumes(model, cold, rows, stop)
    assert_time_is_time(model, run.state, rows, draw(st.floats(0.0, 5.0)))


def in_chunks(model: Any, state: Any, rows: Arrival, start: int = 0) -> Any:
    for first in range(start, ROWS, CHUNK):
        state = model.update(state, *(array[first : first + CHUNK] for array in rows))
    return state


def assert_resumes(model: Any, state: Any, rows: Arrival, stop: int) -> None:
    """Stopped at any moment and restored, it goes on bit for bit."""
    for first in range(0, stop, CHUNK):
        state = model.update(state, *(array[first : first + CHUNK] for array in rows))
    restored = checkpoint.restore(model, checkpoint.to_bytes(model, state))
    assert restored.exact
    assert restored.state.record.tobytes() == state.record.tobytes()


def assert_time_is_time(model: Any, state: Any, rows: Arrival, first: float) -> None:
    """Without targets four stretches of time are one as long, whatever the inputs were."""
    nothing = np.full_like(rows.y[:CHUNK], np.nan)
    parts = np.array([first, 0.0, 1.0, 2.0])
    X = np.nan_to_num(rows.X)
    several = model.update(state, X[:CHUNK], nothing, parts)
    at_once = model.update(state, X[-CHUNK:], nothing, np.array([parts.sum(), 0.0, 0.0, 0.0]))
    probe = np.zeros((1, rows.X.shape[1]))
    assert_close(model.predict(several, probe), model.predict(at_once, probe))


def assert_finite(state: Any) -> None:
    assert np.isfinite(state.record.reshape(1).view(np.float64)).all()


def assert_sound(prediction: Any) -> None:
    assert np.isfinite([prediction.mean, prediction.variance, prediction.noise]).all()
    assert np.all(prediction.variance > 0.0)
    assert np.all((prediction.noise >= 0.0) & (prediction.noise <= prediction.variance * (1.0 + 1e-9)))


def assert_close(one: Any, other: Any) -> None:
    for a, b in ((one.mean, other.mean), (one.variance, other.variance)):
        size = max(float(np.max(np.abs(b), initial=0.0)), 1e-12)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6 * size)


@pytest.mark.usefixtures("each_engine")
@settings(max_examples=25, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(SHAPES.filter(lambda shape: shape.inducing <= shape.window), SETTINGS, st.data())
def test_any_settings_any_shape_and_any_arrival(shape, chosen, data):
    check(shape, chosen, data.draw(arrivals(shape)), data.draw)


@pytest.mark.slow
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(SHAPES.filter(lambda shape: shape.inducing <= shape.window), SETTINGS, st.data())
def test_many_more_of_them(shape, chosen, data):
    check(shape, chosen, data.draw(arrivals(shape)), data.draw)
