"""What a person on call reads must be true."""

import json
from typing import Any

import numpy as np
import pytest

from driftgp import AGP, FastAGP, Online, recommended
from driftgp.diagnostics import Monitor, MonitorState, contents, importance
from driftgp.gp import bound
from driftgp.kernels import SE
from driftgp.members import Lagged, LastKMean
from driftgp.predictions import Gaussian
from driftgp.wrappers import Bank, Gaps, Standardize, Watched, Within

MONITOR = Monitor(lags=3)


def noise(*size: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=size)


def followed(y: np.ndarray, mean: float = 0.0, std: float = 1.0, monitor: Monitor = MONITOR) -> np.ndarray:
    """Score targets (N, or N×P) against normal forecasts; the monitor's record after each."""
    y = y.reshape(len(y), -1)
    state = monitor.init(y.shape[1])
    said = Gaussian(*(np.full((1, y.shape[1]), value) for value in (mean, std**2, std**2)))
    seen = np.zeros(len(y), state.record.dtype)
    for i, row in enumerate(y):
        monitor.update(state, said, row)
        seen[i] = state.record
    return seen


# ---- the monitor -----------------------------------------------------------------------------------------------------


def test_running_means_are_the_weighted_means_they_say():
    y = noise(50)
    state = followed(y, mean=0.5, std=2.0)
    e = (y - 0.5) / 2.0
    w = 0.99 ** np.arange(49, -1, -1)
    np.testing.assert_allclose(state["residual"][:, 0], e)
    np.testing.assert_allclose(state["mean"][-1], w @ e / w.sum())
    np.testing.assert_allclose(state["square"][-1], w @ e**2 / w.sum())
    for lag in (1, 2, 3):
        np.testing.assert_allclose(state["products"][-1, lag - 1], w[lag:] @ (e[lag:] * e[:-lag]) / w.sum())
    scores = -0.5 * (np.log(2 * np.pi * 4.0) + e**2)
    np.testing.assert_allclose(state["score"][-1], w @ scores / w.sum())


def test_autocorrelation_is_that_of_the_residuals():
    e = np.zeros(20_000)
    for t, shock in enumerate(noise(e.size)):
        e[t] = 0.7 * e[t - 1] + shock
    monitor = Monitor(lags=3, forgetting=0.9999)
    last = MonitorState(followed(e, monitor=monitor)[-1:].reshape(()))
    np.testing.assert_allclose(np.ravel(monitor.report(last)["autocorrelation"]), [0.7, 0.49, 0.343], atol=0.04)


def test_no_single_outlier_makes_the_figures_infinite():
    y = noise(500)
    y[[0, 200]] = 1e8, 1e200
    with np.errstate(all="ignore"):
        state = followed(y)
    for name in state.dtype.names or ():
        assert np.all(np.isfinite(state[name])), name
    assert state["score"][230] > state["score"][199] - 1.0


def test_nothing_is_scored_where_nothing_was_observed():
    y = noise(60)
    gappy = np.repeat(y, 2)
    gappy[1::2] = np.nan
    assert followed(gappy)[-1].tobytes() == followed(y)[-1].tobytes()


def test_in_a_wrapper_it_is_what_it_is_by_itself():
    model = Watched(LastKMean(k=2), MONITOR)
    y = noise(12, 2)
    state = model.init(np.zeros((0, 1)), y[:0])
    monitor = MONITOR.init(2)
    for row in y:
        MONITOR.update(monitor, model.predict(state, [[0.0]]).law, row)
        state = model.update(state, [0.0], row)
    for name in monitor.record.dtype.names or ():
        np.testing.assert_allclose(state.record["monitor"][name], monitor.record[name], rtol=1e-12, atol=1e-14)


# ---- reading a state -------------------------------------------------------------------------------------------------

X, Y = noise(30, 2), noise(30)


@pytest.fixture(scope="module")
def nested():
    """All wrappers around a model: one call that learns from 30 rows, some with gaps."""
    inner = Within(Gaps(AGP(SE(1.5), inducing=4, window=10, forgetting=0.9)))
    model = Watched(Standardize(inner, adapt=1.0), MONITOR)
    gappy = X.copy()
    gappy[[5, 9], 1] = np.nan
    y = Y.copy()
    y[-3:] = np.nan
    return model, model.update(model.init(X[:0], Y[:0]), gappy, y)


def test_a_report_reaches_through_all_the_wrappers(nested):
    model, state = nested
    report = contents(model, state)
    agp = state.inner.inner.inner.inner
    assert report["model"] == "Watched of Standardize of Within of Gaps of AGP"
    assert report["samples"] == 27
    assert report["scored"] == 27
    assert report["filled"] == [0, 2]
    assert len(report["limited"]) == 2
    assert report["renewals"] == state.inner.renewals > 0
    assert (report["skipped"], report["repaired"]) == (0, 0)
    assert (report["window"], report["window_in_use"]) == (10, 10)
    assert (report["inducing"], report["inducing_in_use"]) == (4, agp.points)
    assert report["noise"] == agp.noise.tolist()
    assert report["kernel"] == {"is": "SE", "lengthscale": agp.theta[0], "variance": agp.theta[1]}
    assert report["forgetting"] == 0.9
    np.testing.assert_allclose(report["effective_samples"], 0.9**3 * (1 - 0.9**10) / 0.1, rtol=1e-12)
    np.testing.assert_allclose(report["time_constant"], 9.4912, rtol=1e-4)
    np.testing.assert_allclose(report["half_life"], 6.5788, rtol=1e-4)


def test_a_report_is_json(nested):
    report = contents(*nested)
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_the_bound_is_that_of_the_window(nested):
    model, state = nested
    agp, inner = model.model.model.model.model, state.inner.inner.inner.inner
    kernel, memory, U = agp.kernel.at(inner.theta), inner.window, inner.U
    Kuu = kernel(U, U)
    Kuu = Kuu + agp.jitter * np.mean(np.diagonal(Kuu)) * np.eye(4)
    s = bound.statistics(kernel(U, memory.X), kernel(memory.X), inner.w, memory.y)
    assert inner.points == 4
    np.testing.assert_allclose(
        contents(model, state)["bound_per_sample"], bound.bound(Kuu, s, inner.noise) / s.n, rtol=1e-9
    )


def test_of_a_bank_every_member_is_reported_with_its_weight():
    model: Any = recommended(X[:10], Y[:10])
    state = model.update(model.init(X[:10], Y[:10]), X[10:], Y[10:])
    report = contents(model, state)
    assert report["model"] == "Guarded of Calibrated of Standardize of Gaps of Within of Bank"
    assert "forgetting" not in report  # that of the units is nobody's memory
    np.testing.assert_allclose(sum(report["weights"]), 1.0)
    kinds = ["AGP", "AGP", "AGP", "Anchored", "Anchored", "Lagged", "Persistence"]
    assert [member["model"] for member in report["members"]] == kinds
    for member, own in zip(report["members"][:3], model.model.model.model.model.model.models, strict=False):
        assert member["forgetting"] == own.forgetting
        assert member["samples"] == 20
        assert member["window_in_use"] == 30
        assert np.isfinite(member["bound_per_sample"])
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_members_of_all_kinds_are_reported():
    model = Bank([FastAGP(inducing=2, window=3), LastKMean(k=2, forgetting=0.5)])
    report = contents(model, model.init(X, Y))
    assert [member["model"] for member in report["members"]] == ["AGP", "LastKMean"]
    assert report["members"][1]["half_life"] == 1.0


def test_a_model_that_forgets_nothing_has_no_time_constant():
    model = FastAGP(inducing=2, window=3, forgetting=1.0)
    report = contents(model, model.init(X[:0], Y[:0]))
    assert report["time_constant"] is None
    assert report["half_life"] is None
    assert "bound_per_sample" not in report


def test_a_model_without_a_window_reports_what_it_has():
    model = FastAGP(inducing=2, window=None, forgetting=0.9, warmup_iterations=0)
    report = contents(model, model.init(X, Y))
    assert "window" not in report
    np.testing.assert_allclose(report["effective_samples"], (1 - 0.9**30) / 0.1)
    assert np.isfinite(report["bound_per_sample"])


def test_numbers_beyond_all_bounds_are_still_json():
    model = AGP(inducing=2, window=3)
    state = model.init(X[:3], Y[:3])
    state.record["Phi"], state.record["noise"] = np.inf, np.nan
    report = contents(model, state)
    assert report["bound_per_sample"] is None
    assert report["noise"] == [None]
    json.dumps(report, allow_nan=False)


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"forgetting": 0.0}, "forgetting must lie in"), ({"lags": 0}, "lags")],
)
def test_refuses_settings_without_meaning(setting, message):
    with pytest.raises(ValueError, match=message):
        Monitor(**setting)


# ---- importance ------------------------------------------------------------------------------------------------------


def test_of_a_linear_member_the_slopes_say_what_matters():
    X, e = noise(400, 3), noise(400, seed=5)
    y = np.zeros(400)
    for t in range(1, 400):  # the last target matters most, and is no input
        y[t] = 0.8 * y[t - 1] + 1.0 * X[t, 0] - 0.5 * X[t, 2] + 0.01 * e[t]
    model = Lagged(lags=1)
    np.testing.assert_allclose(importance(model.init(X, y)), [2 / 3, 0.0, 1 / 3], atol=0.02)
    assert np.isfinite(importance(model.init(X[:0], y[:0]))).all()


def test_importance_is_the_weighted_relevance_of_the_members_that_have_one():
    members = [AGP(SE(lengthscale=[1.0, 4.0]), inducing=3), AGP(SE(lengthscale=[2.0, 1.0]), inducing=3), LastKMean()]
    model = Bank(members)
    state = model.update(model.init(np.zeros((0, 2)), np.zeros(0)), noise(9, 2), noise(9))
    told = model.summary(state)["members"]
    assert "relevance" not in told[2]
    total = sum(member["weight"] * np.array(member["relevance"]) for member in told[:2])
    np.testing.assert_allclose(importance(state), total / total.sum(), rtol=1e-12)


def test_importance_is_unknown_where_no_member_has_a_relevance():
    model = LastKMean()
    assert np.isnan(importance(model.init(np.zeros((0, 2)), np.zeros(0)))).all()


def test_importance_follows_the_input_that_matters():
    X = noise(900, 3)
    y = np.where(np.arange(900) < 450, X[:, 0], X[:, 2]) + 0.1 * noise(900, seed=4)
    model = recommended(X[:300], y[:300])
    state = model.init(X[:300], y[:300])
    assert importance(state).argmax() == 0
    after = importance(model.update(state, X[300:], y[300:]))
    assert after.argmax() == 2
    assert after.sum() == pytest.approx(1.0)


def test_importance_takes_an_online_and_names_what_it_cannot_take():
    X = np.random.default_rng(0).normal(size=(60, 2))
    online = Online(effort="low")
    online.update(X, X[:, 0])
    np.testing.assert_array_equal(importance(online), importance(online.state))
    with pytest.raises(TypeError, match="got int"):
        importance(3)
