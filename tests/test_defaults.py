"""Defaults from the first samples: sizes that follow the data, and a model that no choice of units can spoil."""

import numpy as np
import pytest

from driftgp import defaults
from driftgp.wrappers import Bank, Calibrated, CarryForward, Guarded, Standardize, Within

RNG = np.random.default_rng(5)


def autoregression(phi: float, samples: int = 4000) -> np.ndarray:
    y = np.zeros(samples)
    for t in range(1, samples):
        y[t] = phi * y[t - 1] + RNG.normal()
    return y


@pytest.mark.parametrize("tau", [5.0, 20.0, 60.0])
def test_the_correlation_time_of_an_autoregression_is_found(tau):
    found = defaults.correlation_time(autoregression(np.exp(-1.0 / tau)))
    assert 0.6 * tau < found < 1.6 * tau


@pytest.mark.parametrize("y", [np.zeros(0), np.zeros(1), np.full(50, 3.0), np.full(50, np.nan), np.zeros((0, 2))])
def test_what_says_nothing_gives_the_smallest_window(y):
    assert defaults.sizes(y) == (defaults.SHORTEST, defaults.MOST)


def test_a_gap_and_another_unit_change_nothing():
    y = autoregression(0.95, 600)
    assert defaults.sizes(1e6 * y - 7.0) == defaults.sizes(y)
    assert defaults.sizes(np.stack([y, -y], 1)) == defaults.sizes(y)
    gappy = y.copy()
    gappy[100] = np.nan
    assert defaults.sizes(gappy) == defaults.sizes(y)


def test_sizes_stay_within_their_limits():
    for y in (autoregression(0.0, 300), autoregression(0.9, 300), np.arange(5000.0)):
        window, inducing = defaults.sizes(y)
        assert defaults.SHORTEST <= window <= defaults.LONGEST
        assert inducing in (defaults.FEWEST, defaults.MOST)


def test_more_inputs_ask_for_a_longer_window():
    y = autoregression(0.0, 300)
    windows = [defaults.sizes(y, inputs).window for inputs in (1, 2, 3, 5, 7, 24, 1000)]
    assert windows == [100, 100, 200, 200, 400, 400, 400]


def test_everything_is_on():
    X, y = RNG.normal(size=(30, 3)), RNG.normal(size=30)
    model = defaults.recommended(X, y)
    kinds = (CarryForward, Guarded, Calibrated, Standardize, Within, Bank)
    for kind in kinds:
        assert isinstance(model, kind)
        if kind is Standardize:
            assert model.forgetting is not None  # units follow the stream
        if kind is not Bank:
            model = model.model
    assert len(model.models) == len(defaults.SHARES)
    assert [member.step for member in model.models] == ["natural"] * len(defaults.SHARES)


def test_nothing_need_be_known_beforehand():
    X, y = RNG.normal(size=(80, 2)), RNG.normal(size=80) + 1e4
    model = defaults.recommended(X[:0], y[:0])
    state = model.update(model.init(X[:0], y[:0]), X, y)
    assert abs(model.predict(state, X[:1]).mean[0] - 1e4) < 10.0


def test_a_gap_in_an_input_is_no_obstacle():
    X, y = RNG.normal(size=(80, 2)), RNG.normal(size=80)
    X[70, 1] = X[10, 0] = np.nan
    model = defaults.recommended(X[:50], y[:50])
    state = model.update(model.init(X[:50], y[:50]), X[50:], y[50:])
    assert np.isfinite(model.predict(state, [[0.5, np.nan]]).mean).all()


def test_a_faulty_input_does_not_carry_the_forecast_away():
    X = RNG.normal(size=(150, 3))
    y = X @ [1.0, 0.5, 0.0]
    model = defaults.recommended(X, y)
    state = model.init(X, y)
    wild = np.array([[0.0, 100.0, 0.0]])
    assert abs(model.predict(state, wild).mean[0]) < 10.0
    after = model.update(state, wild, [0.0])
    assert abs(model.predict(after, X[:1]).mean[0] - y[0]) < 0.3


def test_refuses_what_is_no_batch():
    with pytest.raises(ValueError, match="X must"):
        defaults.recommended(np.zeros(5), np.zeros(5))
