"""Regression on fixed points: its recursion, its evidence, its refits and what it does after an abrupt change."""

import numpy as np
import pytest

from driftgp import prequential
from driftgp.contract.records import entries
from driftgp.members import Anchored, Lagged, anchored, descent, evidence
from driftgp.members.descent import DescentState
from driftgp.members.heads import Heads, HeadsState, packed_size
from driftgp.models.model import Units

RNG = np.random.default_rng(0)


def heads_state(features: int, outputs: int, count: int) -> HeadsState:
    return HeadsState.empty(F=features, P=outputs, H=count, B=3, packed=packed_size(features))


# ---- recursive least squares -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_recursion_is_weighted_ridge_regression(outputs):
    Phi, y = RNG.normal(size=(40, 5)), RNG.normal(size=(40, outputs))
    heads, q = Heads((0.95, 0.8)), 0.3
    state = heads_state(5, outputs, 2)
    heads.start(state, q, 1.0)
    for i in range(40):
        heads.learn(state, Phi[i], y[i], q, i)
    for h, rate in enumerate(heads.rates):
        w = rate ** (39.0 - np.arange(40))
        A = (Phi * w[:, None]).T @ Phi + rate**40 * q * np.eye(5)  # what was known at first is forgotten too
        np.testing.assert_allclose(heads.settle(state, h), np.linalg.inv(A), rtol=1e-8)
        np.testing.assert_allclose(state.w[h], np.linalg.solve(A, (Phi * w[:, None]).T @ y), rtol=1e-8)


def test_with_a_leak_nothing_grows_where_nothing_is_seen():
    """The fear: a one-hot column that is 0 for months, and a wild forecast on the day it comes back."""
    heads, state = Heads((0.9,), leak=True), heads_state(3, 1, 1)
    heads.start(state, 1.0, 1.0)
    for i in range(5000):
        heads.learn(state, np.array([1.0, RNG.normal(), 0.0]), RNG.normal(size=1), 1.0, i)
    assert np.linalg.eigvalsh(heads.settle(state, 0)).max() < 3.0


def test_without_a_leak_growth_ends():
    heads, state = Heads((0.9,)), heads_state(2, 1, 1)
    heads.start(state, 1.0, 1.0)
    for i in range(5000):
        heads.learn(state, np.array([1.0, 0.0]), RNG.normal(size=1), 1.0, i)
    C = heads.settle(state, 0)
    assert np.isfinite(C).all()
    assert np.trace(C) < 1e5


# ---- evidence --------------------------------------------------------------------------------------------------------


def bound(theta: np.ndarray, X: np.ndarray, y: np.ndarray, Z: np.ndarray, pieces: int) -> tuple[float, np.ndarray]:
    """The bound and its gradient, a few rows at a time."""
    p = evidence.parameters(theta)
    N = evidence.factor(p, Z)
    assert N is not None
    rows = [slice(i, i + pieces) for i in range(0, len(X), pieces)]
    parts = [evidence.moments(p, Z, N, X[i], y[i]) for i in rows]
    sums = evidence.Moments(*(sum(part) for part in zip(*parts, strict=True)))
    solved = evidence.value(p, sums, len(X))
    assert solved is not None
    reach = evidence.reach(N, solved)
    slopes = [evidence.slope(p, Z, X[i], y[i], reach) for i in rows]
    total = evidence.Slope(*(sum(part) for part in zip(*slopes, strict=True)))
    by = evidence.gradient(theta, Z, N, sums.S, reach, total, solved.by_noise, len(X))
    return evidence.with_prior(theta, solved.value, by)


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_gradient_of_the_bound_is_that_of_differences(outputs):
    X, y = RNG.normal(size=(50, 3)), RNG.normal(size=(50, outputs))
    theta = evidence.prior(3)[0] + 0.3 * RNG.normal(size=8)
    _, gradient = bound(theta, X, y, X[:12], 17)
    step = 1e-5 * np.eye(8)
    differences = [(bound(theta + s, X, y, X[:12], 50)[0] - bound(theta - s, X, y, X[:12], 50)[0]) / 2e-5 for s in step]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5)


def test_with_all_rows_as_points_the_bound_is_the_marginal_likelihood():
    X, y = RNG.normal(size=(30, 2)), RNG.normal(size=(30, 1))
    theta = evidence.prior(2)[0]
    p = evidence.parameters(theta)
    K = evidence.covariance(p, X, X) + X @ np.diag(p.linear**2) @ X.T + 1.0 + p.noise * np.eye(30)
    exact = 0.5 * (y[:, 0] @ np.linalg.solve(K, y[:, 0]) + np.linalg.slogdet(2.0 * np.pi * K)[1])
    assert bound(theta, X, y, X, 30)[0] == pytest.approx(exact, rel=1e-4)


def test_descent_finds_the_lowest_point_of_a_narrow_valley():
    def rosenbrock(x: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = 1.0 - x[0], x[1] - x[0] ** 2
        return a**2 + 100.0 * b**2, np.array([-2.0 * a - 400.0 * x[0] * b, 200.0 * b])

    state = DescentState.empty(K=2)
    descent.begin(state, np.array([-1.2, 1.0]), 200)
    while descent.tell(state, *rosenbrock(state.trial)):
        pass
    np.testing.assert_allclose(state.theta, [1.0, 1.0], atol=0.05)


def test_descent_gives_up_where_there_is_no_number():
    state = DescentState.empty(K=2)
    descent.begin(state, np.zeros(2), 10)
    assert not descent.tell(state, np.inf, np.zeros(2))


def test_a_refused_step_is_shortened_whatever_the_gradient_there():
    """The fear: what is left out where a step is refused, its gradient, changes where the next trial is."""
    trials = []
    for gradient in ([0.0, 0.0], [3.0, -50.0]):
        state = DescentState.empty(K=2)
        descent.begin(state, np.zeros(2), 10)
        descent.tell(state, 1.0, np.array([1.0, 2.0]))
        assert descent.refuses(state, 5.0)
        assert not descent.refuses(state, -5.0)
        assert descent.tell(state, 5.0, np.array(gradient))
        trials.append(state.trial.copy())
    np.testing.assert_array_equal(*trials)


def test_a_later_descent_knows_the_curvature_from_the_earlier_one():
    def bowl(x: np.ndarray, lowest: float) -> tuple[float, np.ndarray]:
        curve = np.array([1.0, 50.0])
        return 0.5 * float(curve @ (x - lowest) ** 2), curve * (x - lowest)

    def after(state: DescentState, lowest: float, points: int) -> float:
        descent.begin(state, np.zeros(2), points)
        while descent.tell(state, *bowl(state.trial, lowest)):
            pass
        return bowl(state.theta, lowest)[0]

    fresh, later = DescentState.empty(K=2), DescentState.empty(K=2)
    after(later, 0.5, 30)
    assert after(later, -0.5, 4) < 0.1 * after(fresh, -0.5, 4)


# ---- the member ------------------------------------------------------------------------------------------------------


def stream(rows: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(rows, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=rows)


def test_it_learns_a_function_from_its_first_row_on(each_engine):
    X, y = stream(500)
    model = Anchored(points=30, ring=400, sample=100)
    run = prequential(model, model.init(X[:0], y[:0]), X, y)
    assert np.mean((run.prediction.mean - y)[300:] ** 2) < 0.03
    assert run.state.points == 30
    irrelevant = model.summary(run.state)["relevance"][2]
    assert irrelevant < 0.3


@pytest.mark.usefixtures("each_engine")
def test_one_sweep_leaves_what_single_calls_leave():
    """The fear: a step takes up what the forecast before it computed, and that was of another row or state."""
    X, y = stream(90)
    model = Anchored(points=8, ring=50, sample=20, refresh=15)
    swept = prequential(model, model.init(X[:20], y[:20]), X[20:], y[20:]).state
    single = model.init(X[:20], y[:20])
    for i in range(20, 90):
        model.predict(single, X[i : i + 1])
        model.predict(single, X[:2])
        single = model.update(single, X[i], y[i])
    assert swept.record.tobytes() == single.record.tobytes()


def test_after_an_abrupt_change_the_longest_memory_gives_way():
    X, y = stream(1400)
    y[700:] = 3.0 - y[700:]
    model = Anchored(points=30, ring=600, sample=100)
    state = model.init(X[:200], y[:200])
    run = prequential(model, state, X[200:], y[200:])
    error = (run.prediction.mean - y[200:]) ** 2
    assert run.state.fresh < 800
    assert np.mean(error[-200:]) < 0.05


def test_in_other_units_it_says_the_same(each_engine):
    """Units change in the middle of a fit: what was in hand begins again, and the forecast stays."""
    X, y = stream(260)
    for model in (Anchored(points=12, ring=100, sample=60), Lagged()):
        state = model.init(X[:250], y[:250])
        before = model.predict(state, X[250:])
        units = Units(np.array([0.5, -1.0, 2.0]), np.array([2.0, 0.1, 3.0]), np.array([4.0]), np.array([0.5]))
        changed = state.copy()
        model.rescale(changed.view, units)
        after = model.predict(changed, units.inputs(X[250:]))
        np.testing.assert_allclose(after.mean * 0.5 + 4.0, before.mean, rtol=1e-6)
        np.testing.assert_allclose(after.variance * 0.25, before.variance, rtol=1e-5)


@pytest.mark.parametrize(("model", "rows"), [(Anchored(points=5), 0), (Anchored(points=5), 20), (Lagged(), 0)])
def test_before_the_first_fit_it_is_as_if_the_rows_had_come_in_the_new_units(model, rows):
    """The fear: a stream whose first value is 5000 gives the prior a noise of 0.1 / 5000², for hundreds of rows."""
    X, y = stream(rows)
    units = Units(np.array([0.5, -1.0, 2.0]), np.array([2e3, 1e-3, 3.0]), np.array([4.0]), np.array([5e3]))
    moved = model.init(X, y).copy()
    model.rescale(moved.view, units)
    there = model.init(units.inputs(X), units.targets(y))
    for entry in entries(moved.record.dtype):
        here, expected = (
            np.frombuffer(state.record.tobytes(), entry.kind, entry.numbers, entry.offset) for state in (moved, there)
        )
        # inputs of 1000 scales take most of what is known at first away, and as many digits
        np.testing.assert_allclose(here, expected, rtol=1e-9, atol=1e-9, err_msg=entry.path)


@pytest.mark.parametrize("fresh", [130, 300])
def test_a_replay_counts_every_row_once_and_forgets_it_by_its_age(fresh):
    """The constant feature's sum is the weight of all rows; before an abrupt change they fade as in the last head."""
    X, y = stream(300)
    model = Anchored(points=12, ring=280, sample=60, refresh=10_000)
    state = model.view(model.init(X, y).record.copy())
    state.fresh, state.fit.theta[...] = fresh, state.theta
    state.stage, state.first, state.span, state.next_points = anchored.PLACE, 20, 280, 12
    while state.stage < anchored.HEADS:
        model._work(state)
    age = np.arange(280)[::-1]
    for h, rate in enumerate(model.forgetting):
        before = model.forgetting[-1] if h == 0 else rate
        weights = rate ** np.minimum(age, fresh) * before ** np.maximum(age - fresh, 0)
        assert state.sums[h, 0] == pytest.approx(np.sum(weights), rel=0.01)
        np.testing.assert_allclose(state.moments[h, 0], weights @ y[20:], atol=0.05 * np.sum(weights))


def test_no_row_costs_much_more_than_another():
    """Work beside the recursion is in pieces: a fit ends many rows after it began."""
    X, y = stream(700)
    model = Anchored(points=30, ring=600, sample=200)
    state = model.init(X[:300], y[:300])
    stages = []
    for i in range(300, 700):
        state = model.update(state, X[i], y[i])
        stages.append(state.stage)
    assert len(set(stages)) > 5
    assert sum(stage != 0 for stage in stages) > 50


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Anchored(points=0), "points must"),
        (lambda: Anchored(forgetting=(1.5,)), "forgetting must"),
        (lambda: Lagged(lags=-1), "lags must"),
        (lambda: Lagged(ridge=0.0), "ridge must"),
    ],
)
def test_settings_that_make_no_member_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize(("sums", "moments"), [(-1e3, 1.0), (1.0, 1e300)])
def test_sums_that_have_no_solution_leave_the_old_features(sums, moments):
    """The fear: sums that rounding or wild rows have spoilt become weights that are no numbers."""
    X, y = RNG.normal(size=(60, 2)), RNG.normal(size=60)
    model = Anchored(points=4, ring=40, sample=12)
    state = model.init(X[:40], y[:40])
    undisturbed = model.update(state, X[40], y[40])
    spoilt = state.copy()
    spoilt.record["stage"], spoilt.record["at"], spoilt.record["span"] = 8, 40, 0  # the first head comes next
    spoilt.record["sums"][...], spoilt.record["moments"][...] = sums, moments
    after = model.update(spoilt, X[40], y[40])
    assert after.stage == 0
    assert after.record["heads"].tobytes() == undisturbed.record["heads"].tobytes()


def test_what_was_not_there_for_thousands_of_rows_is_known_no_worse_than_at_the_start():
    """A holiday after months: a head that forgets would say that it may be anything."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=3000), np.zeros(3000)])
    X[100, 1] = 1.0
    y = X[:, 0] + 0.1 * rng.normal(size=3000)
    model = Anchored(points=10, ring=400, sample=100, forgetting=(0.99,))
    state = model.update(model.init(X[:200], y[:200]), X[200:], y[200:])
    prediction = model.predict(state, [[0.0, 1.0]])
    assert prediction.std[0] < 3.0 * np.std(y)
