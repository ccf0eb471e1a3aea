"""Defaults from the first samples: sizes that follow the data, and a model that no choice of units can spoil."""

from typing import Any

import numpy as np
import pytest

from driftgp import AGP, Online, defaults
from driftgp.evaluate import prequential
from driftgp.members import Anchored, Lagged, Persistence
from driftgp.wrappers import Bank, Bounded, Calibrated, Gaps, Guarded, Standardize, Within

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
    kinds = (Guarded, Calibrated, Standardize, Gaps, Within, Bank)
    for kind in kinds:
        assert isinstance(model, kind)
        if kind is Standardize:
            assert model.forgetting is not None  # units follow the stream
        if kind is not Bank:
            model = model.model
    agps = [member for member in model.models if isinstance(member, AGP)]
    assert [member.step for member in agps] == ["scaled"] * len(defaults.SHARES)  # there are few inputs
    assert [type(member) for member in model.models[len(agps) :]] == [Anchored, Anchored, Lagged, Persistence]
    assert model.corrected == tuple(range(len(agps) + 2))


@pytest.mark.parametrize(
    ("effort", "inputs", "kinds"),
    [
        ("low", 1, [AGP, Anchored, Lagged]),
        ("low", 20, [Anchored, Lagged]),
        ("medium", 20, [AGP, Anchored, Anchored]),
        ("high", 20, [AGP, AGP, AGP, Anchored, Anchored]),
    ],
)
def test_an_effort_chooses_the_members(effort, inputs, kinds):
    model: Any = defaults.recommended(np.zeros((0, inputs)), np.zeros(0), effort=effort)
    while not isinstance(model, Bank):
        model = model.model
    assert [type(member) for member in model.models] == [*kinds, Lagged, Persistence]


def test_a_state_of_low_effort_takes_at_most_175_kilobytes():
    model = defaults.recommended(np.zeros((0, 24)), np.zeros(0), effort="low")
    assert model.record_dtype(24, 1).itemsize <= 175_000


@pytest.mark.parametrize("support", ["auto", "positive", (0.0, None)])
def test_intervals_of_counts_do_not_go_below_0(support):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2))
    y = rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
    model = defaults.recommended(X[:200], y[:200], effort="low", support=support)
    low, _ = model.predict(model.init(X[:200], y[:200]), X[200:]).interval(0.95)
    assert low.min() == 0.0


def sales(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Amounts with a season, and as inputs the season and two lags."""
    rng = np.random.default_rng(seed)
    wave = np.sin(np.arange(rows + 7) / 4.0)
    y = rng.gamma(2.0, np.exp(wave))
    return np.column_stack([wave[7:], y[6:-1], y[:-7]]), y[7:]


def bounded(model: Any) -> Bounded:
    while not isinstance(model, Bounded):
        model = model.model
    return model


def test_amounts_and_their_lags_are_seen_as_roots():
    X, y = sales(0, 400)
    chosen = bounded(defaults.recommended(X, y, effort="low"))
    assert chosen.root[0] > 0.0
    assert chosen.lags == ((1, 0), (2, 0))
    holes = X.copy()
    holes[::9, 1] = np.nan
    assert bounded(defaults.recommended(holes, y, effort="low")).lags == chosen.lags
    assert bounded(defaults.recommended(X[:, :1], y, effort="low", lags=[-1])).lags == ((0, 0),)


def test_targets_far_from_a_given_bound_are_seen_as_they_are():
    X, y = sales(0, 400)
    assert bounded(defaults.recommended(X, y + 1e3, effort="low", support="positive")).root == (0.0,)
    assert bounded(defaults.recommended(X, y + 1e3, effort="low", support=(1e3, None))).root[0] > 0.0
    assert bounded(defaults.recommended(X, y, effort="low", support=(0.0, 1e3))).root == (0.0,)


@pytest.mark.parametrize("unit", [1e6, 1e-6])
def test_amounts_in_other_units_have_the_same_forecasts(unit):
    X, y = sales(1, 300)
    factors = np.array([1.0, unit, unit])
    means = []
    for columns, targets in ((X, y), (X * factors, unit * y)):
        model = defaults.recommended(columns[:200], targets[:200], effort="low")
        run = prequential(model, model.init(columns[:200], targets[:200]), columns[200:], targets[200:])
        means.append(np.concatenate([run.prediction.mean, *run.prediction.interval(0.95)]))
    np.testing.assert_allclose(means[1], unit * means[0], rtol=1e-3, atol=1e-3 * unit)


@pytest.mark.parametrize("support", ["auto", "positive"])
def test_targets_below_a_bound_that_was_wrong_are_covered_as_without_it(support):
    X, y = sales(2, 1000)
    y[400:] -= 4.0
    X[401:, 1] -= 4.0
    X[407:, 2] -= 4.0
    found = {}
    for name in (support, "real"):
        model = defaults.recommended(X[:300], y[:300], effort="low", support=name)
        p = prequential(model, model.init(X[:300], y[:300]), X[300:], y[300:]).prediction.rows(slice(200, None))
        low, high = p.interval(0.95)
        found[name] = np.mean((low <= y[500:]) & (y[500:] <= high)), np.mean(p.crps(y[500:]))
    assert found[support][0] > 0.92
    assert found[support][1] < 1.05 * found["real"][1]


def test_a_target_beyond_a_promised_bound_is_named_once():
    X, y = sales(3, 60)
    stream = Online(effort="low", support="positive")
    stream.update(X[:50], y[:50])
    with pytest.warns(UserWarning, match="support is 'positive', but a target is -2: .*Correct the target"):
        stream.update(X[50], -2.0)
    stream.update(X[51], -3.0)


def test_a_support_that_is_none_is_refused():
    with pytest.raises(ValueError, match='support must be "auto", "real", "positive" or a pair'):
        defaults.recommended(np.zeros((0, 1)), np.zeros(0), support="negative")
    with pytest.raises(ValueError, match='effort must be "low", "medium" or "high"'):
        defaults.recommended(np.zeros((0, 1)), np.zeros(0), effort="huge")


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
    model = defaults.recommended(X[:80], y[:80])
    state = model.update(model.init(X[:80], y[:80]), X[80:], y[80:])
    wild = np.array([[0.0, 100.0, 0.0]])
    assert abs(model.predict(state, wild).mean[0]) < 10.0
    after = model.update(state, wild, [0.0])
    after = model.update(after, X[:1], y[:1])
    error = model.predict(after, X[1:21]).mean - y[1:21]
    assert np.mean(np.abs(error)) < 0.3


def test_refuses_what_is_no_batch():
    with pytest.raises(ValueError, match="X must"):
        defaults.recommended(np.zeros(5), np.zeros(5))
