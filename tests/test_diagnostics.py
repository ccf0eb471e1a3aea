"""What a person on call reads must be true, and an alarm must mean something."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from driftgp import AGP, FastAGP, bound
from driftgp.diagnostics import Monitor, describe
from driftgp.kernels import SE
from driftgp.prediction import Gaussian
from driftgp.wrappers import CarryForward, Standardize, Watched

MONITOR = Monitor(lags=3)


def noise(*size: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=size)


@jax.jit
def follow(monitor: Monitor, y: Any, mean: Any = 0.0, std: Any = 1.0) -> Any:
    """Score targets (N×P) against normal forecasts; the state after each."""
    forecast = jax.tree.map(lambda value: jnp.broadcast_to(value, y.shape), Gaussian(mean, std**2, std**2))

    def step(state: Any, row: Any) -> Any:
        state = monitor.update(state, *row)
        return state, state

    return lax.scan(step, monitor.init(y.shape[1]), (forecast, y))[1]


def followed(y: np.ndarray, **forecast: Any) -> Any:
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, follow(MONITOR, y.reshape(len(y), -1), **forecast))


# ---- the monitor -----------------------------------------------------------------------------------------------------


def test_running_means_are_the_weighted_means_they_say():
    y = noise(50)
    state = followed(y, mean=0.5, std=2.0)
    e = (y - 0.5) / 2.0
    w = 0.99 ** np.arange(49, -1, -1)
    np.testing.assert_allclose(state.residual[:, 0], e)
    np.testing.assert_allclose(state.mean[-1], w @ e / w.sum())
    np.testing.assert_allclose(state.square[-1], w @ e**2 / w.sum())
    for lag in (1, 2, 3):
        np.testing.assert_allclose(state.products[-1, lag - 1], w[lag:] @ (e[lag:] * e[:-lag]) / w.sum())
    scores = -0.5 * (np.log(2 * np.pi * 4.0) + e**2)
    np.testing.assert_allclose(state.score[-1], w @ scores / w.sum())


def test_autocorrelation_is_that_of_the_residuals():
    e = np.zeros(20_000)
    for t, shock in enumerate(noise(e.size)):
        e[t] = 0.7 * e[t - 1] + shock
    monitor = Monitor(lags=3, forgetting=0.9999)
    with jax.enable_x64(True):
        last = jax.tree.map(lambda leaf: leaf[-1], follow(monitor, e[:, None]))
    np.testing.assert_allclose(np.ravel(monitor.report(last)["autocorrelation"]), [0.7, 0.49, 0.343], atol=0.04)


def test_a_model_that_is_right_raises_no_alarm():
    """20 streams of 2000 samples: a false alarm is expected once in about 10⁵."""
    assert sum(int(followed(noise(2000, seed=seed)).alarms[-1]) for seed in range(20)) <= 2


@pytest.mark.parametrize("change", [lambda y: 2.0 * y, lambda y: y + 2.0, lambda y: 10.0 * y])
def test_a_change_raises_an_alarm_soon_and_only_then(change):
    y = noise(600)
    y[300:] = change(y[300:])
    state = followed(y)
    assert state.alarms[299] == 0
    assert 300 < state.alarmed[350] <= 345


def test_no_single_outlier_raises_an_alarm():
    y = noise(500)
    y[[0, 200]] = 1e8, 1e200
    state = followed(y)
    assert state.alarms[230] == 0
    assert np.all(np.isfinite(state.usual))


def test_an_outlier_at_the_start_does_not_blind_it():
    y = np.where(np.arange(1000) < 500, 1.0, 3.0) * noise(1000)
    y[0] = 1e12
    assert 500 < followed(y).alarmed[-1] <= 550


@pytest.mark.parametrize("std", [0.2, 5.0])
def test_intervals_that_are_always_wrong_are_no_drift(std):
    """The score is compared with what is usual, not with what it should be: that is what residual_square is for."""
    assert followed(noise(3000), std=std).alarms[-1] <= 1


def test_after_an_alarm_what_is_usual_is_learned_anew():
    y = np.where(np.arange(2000) < 300, 1.0, 3.0) * noise(2000)
    state = followed(y)
    assert state.alarms[350] == 1
    assert state.alarms[-1] <= 2
    assert state.usual[-1] < state.usual[299] - 2.0


def test_nothing_is_scored_where_nothing_was_observed():
    y = noise(60)
    gappy = np.repeat(y, 2)
    gappy[1::2] = np.nan
    for one, other in zip(jax.tree.leaves(followed(gappy)), jax.tree.leaves(followed(y)), strict=True):
        np.testing.assert_array_equal(one[-1], other[-1])


def test_called_directly_it_is_what_it_is_in_a_loop():
    y = noise(5, 2)
    state = MONITOR.init(2)
    for row in y:
        state = MONITOR.update(state, Gaussian(*map(jnp.asarray, np.array([[0.0] * 2, [1.0] * 2, [1.0] * 2]))), row)
    for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(followed(y)), strict=True):
        np.testing.assert_allclose(one, other[-1], rtol=1e-14)


# ---- reading a state -------------------------------------------------------------------------------------------------

X, Y = noise(30, 2), noise(30)


@pytest.fixture(scope="module")
def nested():
    """All wrappers around a model: one call that learns from 30 rows, some with gaps."""
    model = Watched(Standardize(CarryForward(AGP(SE(1.5), inducing=4, window=10, forgetting=0.9)), adapt=1.0), MONITOR)
    gappy = X.copy()
    gappy[[5, 9], 1] = np.nan
    y = Y.copy()
    y[-3:] = np.nan
    return model, model.update(model.init(X[:0], Y[:0]), gappy, y)


def test_a_report_reaches_through_all_the_wrappers(nested):
    model, state = nested
    report = describe(model, state)
    agp = state.inner.inner.inner
    assert report["model"] == "Watched of Standardize of CarryForward of AGP"
    assert report["samples"] == 27
    assert report["scored"] == 27
    assert report["filled"] == [0, 2]
    assert report["renewals"] == int(state.inner.renewals) > 0
    assert (report["skipped"], report["repaired"]) == (0, 0)
    assert (report["window"], report["window_in_use"]) == (10, 10)
    assert (report["inducing"], report["inducing_in_use"]) == (4, int(np.sum(np.asarray(agp.points.used))))
    np.testing.assert_allclose(report["effective_samples"], 0.9**3 * (1 - 0.9**10) / 0.1, rtol=1e-12)
    np.testing.assert_allclose(report["time_constant"], 9.4912, rtol=1e-4)
    np.testing.assert_allclose(report["half_life"], 6.5788, rtol=1e-4)


def test_a_report_is_json(nested):
    report = describe(*nested)
    assert json.loads(json.dumps(report)) == report


def test_the_bound_is_that_of_the_window(nested):
    model, state = nested
    agp, inner = model.model.model.model, state.inner.inner.inner
    with jax.enable_x64(True):
        h, memory, points = inner.hyperparameters, inner.window, inner.points
        Kuu = h.kernel(points.U, points.U)
        Kuu = Kuu + agp._jitters(memory.w)[0] * jnp.mean(jnp.diagonal(Kuu)) * jnp.eye(4)
        s = bound.statistics(h.kernel(points.U, memory.X), h.kernel(memory.X), memory.w, memory.y)
        F = float(bound.bound(Kuu, s, h.noise) / s.n)
    assert int(points.count) == 4
    np.testing.assert_allclose(describe(model, state)["bound_per_sample"], F, rtol=1e-9)


def test_a_model_that_forgets_nothing_has_no_time_constant():
    model = FastAGP(inducing=2, window=3, forgetting=1.0)
    report = describe(model, model.init(X[:0], Y[:0]))
    assert report["time_constant"] is None
    assert report["half_life"] is None
    assert "bound_per_sample" not in report


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"forgetting": 0.0}, "forgetting must lie in"), ({"threshold": -1.0}, "threshold"), ({"lags": 0}, "lags")],
)
def test_refuses_settings_without_meaning(setting, message):
    with pytest.raises(ValueError, match=message):
        Monitor(**setting)
