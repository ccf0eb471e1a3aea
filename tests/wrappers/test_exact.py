"""Exact and nearly exact targets: intervals in proportion to the errors, and no wild forecast."""

import numpy as np
import pytest

from driftgp import Online

N, SEEN = 1200, 500
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
U = RNG.uniform(-2.0, 2.0, size=(N, 2))
WALK = np.cumsum(RNG.normal(size=N))
LINEAR = X @ [1.0, 2.0]
STREAMS = {
    "linear": (X, LINEAR),
    "linear, noise of 1e-6": (X, LINEAR + 1e-6 * RNG.normal(size=N)),
    "linear, noise of 1e-3": (X, LINEAR + 1e-3 * RNG.normal(size=N)),
    "linear, in large units, far from 0": (X, 1e5 * LINEAR + 1e7),
    "sine": (U, np.sin(U[:, 0]) + U[:, 1]),
    "an input": (np.column_stack([WALK, X[:, 0]]), WALK),
}


@pytest.mark.parametrize("effort", ["low", "medium"])
@pytest.mark.parametrize("name", STREAMS)
def test_intervals_of_exact_targets_are_in_proportion_to_the_errors(name, effort):
    inputs, y = STREAMS[name]
    said = Online(effort=effort).evaluate(inputs, y).rows(slice(SEEN, None))
    (low, high), y = said.interval(0.95), y[SEEN:]
    rmse = float(np.sqrt(np.mean((said.mean - y) ** 2)))
    assert rmse < 1.2e-3 * np.std(y)
    assert np.mean(high - low) < 10.0 * rmse
    assert np.mean((low <= y) & (y <= high)) > 0.92


@pytest.mark.parametrize("effort", ["low", "medium"])
def test_exact_targets_that_jump_or_become_noisy_are_followed(effort):
    later = np.arange(N) >= 700
    for changed, usual in ((LINEAR + 5.0 * later, 1e-3), (LINEAR + 0.3 * RNG.normal(size=N) * later, 0.4)):
        said = Online(effort=effort).evaluate(X, changed)
        error = said.mean - changed
        assert np.abs(error).max() < 4.0 * np.ptp(changed), "no wild row"
        assert np.sqrt(np.mean(error[800:] ** 2)) < usual
        low, high = said.rows(slice(800, None)).interval(0.95)
        assert np.mean((low <= changed[800:]) & (changed[800:] <= high)) > 0.92


def test_a_constant_and_a_staircase_are_forecast_with_intervals_that_hold():
    for y in (np.full(N, 3.7), np.floor(np.arange(N) / 50.0)):
        said = Online(effort="low").evaluate(X, y).rows(slice(SEEN, None))
        low, high = said.interval(0.95)
        assert np.mean((low <= y[SEEN:]) & (y[SEEN:] <= high)) > 0.92
        assert np.abs(said.mean - y[SEEN:]).max() < 1.5
