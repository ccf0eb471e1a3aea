"""The ring of the last T samples: whatever comes in whatever order, it holds the last T and their weights."""

from typing import NamedTuple

import numpy as np
import pytest

from driftgp.gp.window import WindowState, observed
from tests import dense_reference as dense

T, D, P = 5, 2, 2
FORGETTING = 0.8
RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(13, D)), RNG.normal(size=(13, P))


class Ring(NamedTuple):
    """A window and its weights."""

    window: WindowState
    w: np.ndarray

    @property
    def X(self):
        return self.window.X

    @property
    def y(self):
        return self.window.y


def fill(X, Y):
    window = WindowState.empty(T=T, D=D, P=P)
    return Ring(window, window.fill(X, Y, FORGETTING))


def step(ring, x, y, elapsed=1.0):
    """Time passes and a sample comes; NaN is none."""
    window, w = WindowState(ring.window.record.copy()), ring.w * FORGETTING**elapsed
    if observed(x, y):
        w[window.push(x, y).slot] = 1.0
    return Ring(window, w)


def empty():
    return fill(X[:0], Y[:0])


def contents(ring):
    """The samples by falling weight, newest first: where in the ring they lie does not matter."""
    order = np.argsort(-ring.w, kind="stable")
    order = order[ring.w[order] > 0.0]
    return np.column_stack([ring.w, ring.X, ring.y])[order]


def expected(rows, times, now):
    """The last T of some samples, newest first, with their weights by definition."""
    w = dense.weights(np.asarray(times, float), now, FORGETTING, T)
    return np.column_stack([w, X[rows], Y[rows]])[w > 0.0][::-1]


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 13])
def test_a_batch_and_the_same_samples_one_by_one_leave_the_same_window(count):
    ring = empty()
    for x, y in zip(X[:count], Y[:count], strict=True):
        ring = step(ring, x, y)
    batch = fill(X[:count], Y[:count])
    rows = np.arange(count)
    np.testing.assert_allclose(contents(ring), expected(rows, rows, count - 1.0), rtol=1e-13)
    np.testing.assert_allclose(contents(batch), contents(ring), rtol=1e-13)


def gaps(Y, *missing):
    Y = Y.copy()
    Y[list(missing), 0] = np.nan  # one output missing is enough: the sample is not observed
    return Y


@pytest.mark.parametrize("missing", [(0,), (12,), (3, 4, 9), (0, 1, 2, 3, 4, 5, 6, 7), tuple(range(13))])
def test_a_gap_makes_time_pass_and_takes_no_place(missing):
    """Rows without a target cost a step of forgetting, and never push a sample out, in a batch or in the stream."""
    gappy = gaps(Y, *missing)
    ring = empty()
    for x, y in zip(X, gappy, strict=True):
        ring = step(ring, x, y)
    rows = np.setdiff1d(np.arange(13), missing)
    np.testing.assert_allclose(contents(ring), expected(rows, rows, 12.0), rtol=1e-13)
    batch = fill(X, gappy)
    np.testing.assert_allclose(contents(batch), contents(ring), rtol=1e-13)
    assert np.all(np.isfinite(batch.y))


@pytest.mark.parametrize("count", [3, 8])
def test_a_batch_with_gaps_goes_on_as_if_it_had_been_a_stream(count):
    """After a batch the next sample replaces a gap or the oldest, not a sample that still belongs."""
    gappy = gaps(Y, 0, 2, 6)
    ring = empty()
    for x, y in zip(X[:count], gappy[:count], strict=True):
        ring = step(ring, x, y)
    batch = fill(X[:count], gappy[:count])
    for x, y in zip(X[count:], Y[count:], strict=True):
        ring, batch = step(ring, x, y), step(batch, x, y)
        np.testing.assert_allclose(contents(batch), contents(ring), rtol=1e-13)


def test_a_gap_does_not_put_the_origin_among_timestamps():
    """Kernels measure distances from the first row of the window, so that row must not lie at 0."""
    stamps = 1.7e9 + np.arange(3.0)[:, None] * np.ones(D)
    ring = fill(stamps, gaps(Y[:3], 0))
    np.testing.assert_array_equal(ring.X[:3], stamps)


def test_elapsed_time_counts_not_the_number_of_calls():
    ring = step(step(step(empty(), X[0], Y[0]), X[1], Y[1], 2.5), X[2], Y[2], 0.0)
    np.testing.assert_allclose(np.sort(ring.w)[-3:], [FORGETTING**2.5, 1.0, 1.0], rtol=1e-14)


def test_the_oldest_is_the_one_that_the_next_replaces():
    ring = fill(X[:7], Y[:7])
    leaving = ring.window.push(X[7], Y[7])
    np.testing.assert_array_equal(leaving.x, X[2])
    np.testing.assert_array_equal(leaving.y, Y[2])
    assert not np.any(np.all(ring.X == X[2], axis=1))
    np.testing.assert_array_equal(ring.X[leaving.slot], X[7])


def test_a_cursor_outside_the_ring_is_refused():
    ring = fill(X[:7], Y[:7])
    for cursor in (-1, T, 10**9):
        ring.window.cursor = cursor
        with pytest.raises(ValueError, match="cursor must lie in"):
            ring.window.check()


def test_weights_die_out_without_a_trace():
    """A pause so long that every weight underflows leaves zeros, not NaN."""
    ring = step(fill(X[:7], Y[:7]), X[0], gaps(Y, 0)[0], 1e9)
    np.testing.assert_array_equal(ring.w, 0.0)
    np.testing.assert_allclose(contents(step(ring, X[7], Y[7]))[:, 0], [1.0])
