"""Targets within bounds: one proper law, exact where bounds are far, finite scores, and a guess that can be refuted."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from driftgp import AGP
from driftgp.contract.protocol import Units
from driftgp.members import LastKMean
from driftgp.predictions import Gaussian, Mixture, Restricted, Root, Rooted, restricted
from driftgp.stream.model_json import plain, rebuilt
from driftgp.wrappers import Bounded, Calibrated, Standardize

NONE = np.inf
NORMAL = Gaussian(np.array([1.0]), np.array([4.0]), np.array([2.0]))
MIXTURE = Mixture(*(np.array([[a], [b]]) for a, b in ((0.3, 0.7), (-1.0, 2.0), (1.0, 4.0), (0.5, 1.0))))
ROOTED = Rooted(MIXTURE.scaled(0.3, 0.5), *(np.array([v]) for v in (-1.0, 0.25, 0.7)))
LAWS = {
    "low": (NORMAL, 0.0, NONE, 0.0, 0.0),
    "high": (NORMAL, -NONE, 2.0, 0.0, 0.0),
    "both": (NORMAL, 0.0, 3.0, 0.0, 0.0),
    "slack": (MIXTURE, 0.0, 3.0, 0.5, 0.0),
    "leak": (MIXTURE, 0.0, 3.0, 0.5, 0.05),
    "leak, mean outside": (NORMAL, 6.0, NONE, 0.0, 0.05),
    "root": (ROOTED, -1.0, NONE, 0.0, 0.0),
    "root, slack": (ROOTED, -1.0, NONE, 0.8, 0.0),
    "root, leak": (ROOTED, -1.0, 40.0, 0.3, 0.05),
    "root that is refuted": (ROOTED, -NONE, NONE, 0.3, 0.05),
    "mean far outside": (NORMAL, 40.0, NONE, 0.0, 0.0),
    "mean far above a narrow interval": (NORMAL, -60.0, -59.5, 0.0, 0.0),
}
SCORES = np.array([-6.0, -3.0, -1.0, -0.1, 0.0, 0.4, 1.3, 2.7, 5.0])[:, None]


def law(name: str) -> Restricted:
    held, *bounds = LAWS[name]
    return Restricted(held, *(np.array([bound]) for bound in bounds))


@pytest.fixture(params=LAWS)
def p(request: Any) -> Restricted:
    return law(request.param)


def pieces(p: Restricted) -> list[tuple[float, float]]:
    """Where the density is smooth, and is not 0."""
    low, high = float((p.low - p.slack)[0]), float((p.high + p.slack)[0])
    cuts = sorted([-40.0, *(end for end in (low, high) if np.isfinite(end)), 45.0])
    return [(a, b) for a, b in pairwise(cuts) if p.leak[0] > 0.0 or (a >= low and b <= high)]


def total(p: Restricted, function: Any) -> float:
    """∫ g(y) exp(log_prob(y)) dy, piece by piece."""
    sums = 0.0
    for a, b in pieces(p):
        grid = np.linspace(a + 1e-12 * abs(a), b - 1e-12 * abs(b), 200_001)
        sums += integrate.simpson(function(grid) * np.exp(p.log_prob(grid)), x=grid)
    return sums


# ---- one law ---------------------------------------------------------------------------------------------------------


def test_the_density_integrates_to_one(p):
    np.testing.assert_allclose(total(p, np.ones_like), 1.0, rtol=1e-6)


def test_the_density_is_the_slope_of_the_cdf(p):
    for y in p.from_normal(SCORES[2:7]):
        step = 1e-5 * p.std[0]
        if abs(y[0] - p.low[0]) < 2.0 * step or abs(y[0] - p.high[0]) < 2.0 * step:
            continue
        slope = (p.cdf(y + step) - p.cdf(y - step)) / (2.0 * step)
        np.testing.assert_allclose(np.exp(p.log_prob(y)), slope, rtol=1e-4)


def test_scores_are_undone_by_values(p):
    values = p.from_normal(SCORES)
    assert np.all(np.diff(values, axis=0) >= 0.0)
    at_bound = (values == p.low) | (values == p.high)  # values in the slack are brought there
    np.testing.assert_allclose(np.where(at_bound, SCORES, p.to_normal(values)), SCORES, rtol=1e-6, atol=1e-6)
    if p.slack[0] == 0.0:
        np.testing.assert_allclose(p.cdf(p.quantile([[0.001], [0.3], [0.98]])), [[0.001], [0.3], [0.98]], rtol=1e-7)


def test_the_crps_is_its_integral():
    for name in ("low", "both", "leak, mean outside"):
        p = law(name)
        grid = np.linspace(-30.0, 30.0, 600_001)
        for y in (0.2, 1.7, 7.0):
            square = (p.cdf(grid) - (grid >= y)) ** 2
            np.testing.assert_allclose(p.crps(y), integrate.trapezoid(square, grid), rtol=3e-3)


@pytest.mark.parametrize("name", ["low", "high", "both"])
def test_a_restricted_normal_law_is_that_of_scipy(name):
    p = law(name)
    ends = (p.low[0] - 1.0) / 2.0, (p.high[0] - 1.0) / 2.0
    other = stats.truncnorm(*ends, loc=1.0, scale=2.0)
    np.testing.assert_allclose([p.mean[0], p.variance[0]], [other.mean(), other.var()], rtol=1e-9)
    np.testing.assert_allclose(p.noise, 0.5 * p.variance, rtol=1e-12)
    for q in (0.025, 0.5, 0.975):
        np.testing.assert_allclose(p.quantile(q), other.ppf(q), rtol=1e-9)
    np.testing.assert_allclose(p.log_prob(1.5), other.logpdf(1.5), rtol=1e-9)


@pytest.mark.parametrize(
    ("mean", "low", "high"),
    [
        (-5.0, 0.0, NONE),
        (-9.0, 0.0, 1.0),
        (4.0, -NONE, 0.5),
        (0.0, 0.3, 0.35),
        (0.0, -0.01, 0.01),
        (0.0, 9.0, 9.005),
        (0.0, 9.0, 9.29),
    ],
)
def test_moments_are_those_of_scipy_wherever_the_interval_lies(mean, low, high):
    other = stats.truncnorm(low - mean, high - mean, loc=mean)
    ours, share = restricted.moments(mean, 1.0, low, high, 0.0)
    grid = np.linspace(max(low, mean - 12.0), min(high, mean + 12.0), 100_001)
    density = np.exp(other.logpdf(grid))
    by_hand = integrate.simpson(density * grid, x=grid)
    np.testing.assert_allclose(ours, by_hand, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(share, integrate.simpson(density * (grid - by_hand) ** 2, x=grid), rtol=1e-6)


@pytest.mark.parametrize("mean", [-1e3, -1e8, -1e200, 1e3, 1e8, 1e200])
def test_a_forecast_far_outside_stays_at_the_nearer_bound(mean):
    p = Restricted(Gaussian(np.array([mean]), np.ones(1), np.ones(1)), *(np.array([v]) for v in (0.0, 5.0, 0.0, 0.0)))
    nearer = 0.0 if mean < 0.0 else 5.0
    for value in (p.mean, *p.interval(0.95), p.from_normal(-40.0), p.from_normal(np.inf)):
        assert np.all((value >= 0.0) & (value <= 5.0))
    np.testing.assert_allclose(p.interval(0.95), nearer, atol=0.01)
    assert 0.0 < p.variance[0] < 0.02
    assert np.isfinite(p.to_normal([0.0, 2.0, 5.0])).all() or abs(mean) > 1e100


def test_values_in_the_slack_are_reported_at_the_bound():
    counts = Restricted(Gaussian(np.zeros(1), np.ones(1), np.ones(1)), *(np.array([v]) for v in (0.0, NONE, 0.5, 0.0)))
    assert counts.quantile(0.05) == counts.interval(0.95)[0] == 0.0
    assert counts.quantile(0.6) > 0.0
    assert counts.mean[0] > 0.0


def test_a_narrow_law_at_the_bound_does_not_report_values_beyond_it():
    """However far the end of the slack is from it, in its own standard deviations."""
    p = Restricted(
        Gaussian(np.array([-0.1]), np.array([1e-4]), np.ones(1)), *(np.array([v]) for v in (0.0, NONE, 0.5, 0.0))
    )
    assert p.interval(0.95) == (0.0, 0.0)
    assert p.mean[0] == 0.0
    grid = np.linspace(0.0, 0.3, 11)
    np.testing.assert_allclose(p.crps(grid), grid, atol=1e-12)  # all of its mass is reported at 0


def test_what_leaks_is_as_the_held_law_has_it():
    p = law("leak")
    for y in (-4.0, 8.0):
        np.testing.assert_allclose(p.log_prob(y), p.model.log_prob(y) + np.log(0.05), rtol=1e-12)
    np.testing.assert_allclose(p.cdf(-4.0), 0.05 * p.model.cdf(-4.0), rtol=1e-10)
    np.testing.assert_allclose(p.quantile(0.05 * p.model.cdf(-4.0)), -4.0, rtol=1e-9)


@pytest.mark.parametrize("held", [NORMAL, MIXTURE], ids=["normal", "mixture"])
def test_bounds_far_away_change_nothing(held):
    p = Restricted(held, *(np.array([v]) for v in (-50.0, 70.0, 0.5, 0.01)))
    y = np.array([[-3.0], [1.0], [60.0], [-49.9]])
    for name, argument in (("log_prob", y), ("to_normal", y), ("crps", y), ("from_normal", SCORES)):
        assert getattr(p, name)(argument).tobytes() == getattr(held, name)(argument).tobytes(), name
    for name in ("mean", "variance", "noise"):
        assert getattr(p, name).tobytes() == getattr(held, name).tobytes()


def test_scores_at_the_bounds_and_beyond_are_finite():
    p = law("both")
    np.testing.assert_array_equal(p.to_normal([-1e300, -1.0, 0.0, 3.0, 9.0]), [-8.0, -8.0, -8.0, 8.0, 8.0])
    assert p.log_prob(-0.1) == -np.inf


def test_a_root_is_undone_wherever_the_value_lies():
    """Also below the base, and where a target is tiny next to the offset."""
    root = Root(np.array([2.0, 0.0]), np.array([0.3, 0.0]))
    y = np.array([-1e30, -7.0, 1.9999, 2.0, 2.0 + 1e-12, 2.3, 900.0, 1e30, np.inf, -np.inf])[:, None]
    np.testing.assert_allclose(root.back(root.of(y)), np.broadcast_to(y, (10, 2)), rtol=1e-14)
    assert np.all(np.diff(root.of(y[:-2]), axis=0) > 0.0)
    assert np.isnan(root.of(np.nan)).all()
    step = 1e-6
    at = np.array([[-3.0], [2.5], [40.0]])
    slope = (root.of(at + step) - root.of(at - step)) / (2.0 * step)
    np.testing.assert_allclose(np.exp(root.log_slope(at)), slope, rtol=1e-6)


@pytest.mark.parametrize("mean", [-9.0, -1.0, -0.1, 0.0, 0.4, 2.0, 30.0])
def test_moments_of_what_has_a_normal_root(mean):
    """The mean is exact, the variance nearly, and neither loses digits where the spread is small."""
    root = Root(np.array([3.0]), np.array([0.5]))
    for std in (1.0, 1e-5):
        z = np.linspace(-10.0, 10.0, 20_001)
        y = root.back(mean + std * z)
        weights = stats.norm.pdf(z) * 1e-3
        exact = np.sum(weights * y)
        middle, above, variance = root.moments(np.array([mean]), np.array([std**2]))
        np.testing.assert_allclose(middle + above, exact, rtol=1e-6)
        np.testing.assert_allclose(variance, np.sum(weights * (y - exact) ** 2), rtol=0.01)


def test_a_rooted_law_in_other_units():
    y = np.array([[-1.5], [0.0], [8.0]])
    p = Restricted(ROOTED, *(np.array([v]) for v in (-1.0, NONE, 0.5, 0.01)))
    scaled = p.scaled(1e6, -4.0)
    np.testing.assert_allclose(scaled.to_normal(1e6 * y - 4.0), p.to_normal(y), rtol=1e-9)
    np.testing.assert_allclose([scaled.mean, scaled.std], [1e6 * p.mean - 4.0, 1e6 * p.std], rtol=1e-9)
    np.testing.assert_allclose(scaled.crps(1e6 * y - 4.0), 1e6 * p.crps(y), rtol=1e-6)


def test_other_units_and_some_of_the_rows():
    two = Gaussian(np.ones((3, 2)), np.full((3, 2), 4.0), np.ones((3, 2)))
    p = Restricted(two, *(np.array(v) for v in ([0.0, -NONE], [2.0, NONE], 0.1, 0.01)))
    y = np.array([1.5, 2.5])
    scaled = p.scaled([10.0, 2.0], 7.0)
    np.testing.assert_allclose(scaled.to_normal([10.0, 2.0] * y + 7.0), p.to_normal(y), rtol=1e-9)
    np.testing.assert_allclose(scaled.mean, [10.0, 2.0] * p.mean + 7.0, rtol=1e-12)
    np.testing.assert_allclose(p.rows([1]).output(1).from_normal(0.3), two.from_normal(0.3)[1, 1], rtol=1e-12)


# ---- the wrapper -----------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(8)
X = RNG.uniform(size=(120, 1))
Y = RNG.poisson(2.0 + 2.0 * np.sin(6.0 * X[:, 0])).astype(float)


def agp() -> AGP:
    return AGP(inducing=6, window=40, warmup_iterations=10)


@pytest.mark.usefixtures("each_engine")
class TestBounded:
    """By both engines."""

    def test_counts_have_intervals_that_begin_at_zero(self):
        model = Calibrated(Bounded(Standardize(agp()), low=0.0, slack=0.5))
        state = model.update(model.init(X[:60], Y[:60]), X[60:], Y[60:])
        prediction = model.predict(state, X[:50])
        low, high = prediction.interval(0.95)
        assert low.min() == 0.0
        assert np.all(high > low)
        assert np.all(prediction.mean >= 0.0)
        assert prediction.law.model.model.interval(0.95)[0].min() < -0.5, "the bounds have something to do"
        np.testing.assert_allclose(prediction.interval(0.95), prediction.law.interval(0.95), rtol=1e-8, atol=1e-9)
        assert np.isfinite(state.log_s2).all()

    def test_bounds_far_away_change_nothing(self):
        model, held = Bounded(agp(), low=-1e6, high=1e6, slack=1.0), agp()
        state, plain_state = model.init(X[:60], Y[:60]), held.init(X[:60], Y[:60])
        state, plain_state = model.update(state, X[60:90], Y[60:90]), held.update(plain_state, X[60:90], Y[60:90])
        assert state.inner.record.tobytes() == plain_state.record.tobytes()
        ours, theirs = model.predict(state, X), held.predict(plain_state, X)
        for name in ("mean", "variance", "noise"):
            assert getattr(ours, name).tobytes() == getattr(theirs, name).tobytes()
        assert np.array(ours.interval(0.9)).tobytes() == np.array(theirs.interval(0.9)).tobytes()

    def test_a_guess_is_given_up_for_good_once_a_target_was_outside(self):
        model = Bounded(LastKMean(k=2), low=(0.0, 0.0), high=(None, 9.0), slack=0.5, leak=0.01)
        state = model.init(np.zeros((20, 1)), np.abs(RNG.normal(size=(20, 2))))
        assert (model.predict(state, [[0.0]]).interval(0.95)[0] >= 0.0).all()
        state = model.update(state, [0.0], [0.0, 9.0])
        assert state.outside.tolist() == [0, 0], "a bound is a value like others"
        state = model.update(state, [0.0], [np.nan, 9.1])
        state = model.update(state, np.zeros((5, 1)), np.ones((5, 2)))
        assert state.outside.tolist() == [0, 1]
        prediction = model.predict(state, [[0.0]])
        assert prediction.records["low"].tolist() == [[0.0, -np.inf]]
        held = model.model.predict(model.model.init(np.zeros((0, 1)), np.zeros((0, 2))), [[0.0]])
        assert held.mean.shape == prediction.mean.shape
        low, high = prediction.law.model.interval(0.95)
        assert prediction.interval(0.95)[0][0, 1] == pytest.approx(low[0, 1])
        assert prediction.interval(0.95)[1][0, 1] == pytest.approx(high[0, 1])

    def test_certain_bounds_stay(self):
        model = Bounded(LastKMean(k=2), low=0.0)
        state = model.init(np.zeros((3, 1)), np.array([1.0, -2.0, np.nan]))
        state = model.update(state, np.zeros((2, 1)), [-1.0, 0.5])
        assert state.outside.tolist() == [2]
        assert model.predict(state, [[0.0]]).interval(0.95)[0] >= 0.0

    def test_bounds_follow_a_change_of_units(self):
        """In units of its own it says what it says in the user's."""
        model = Bounded(LastKMean(k=3, noise=4.0), low=0.0, high=6.0, slack=0.5)
        state = model.init(X[:10], Y[:10])
        before = model.predict(state, X[:1])
        changed = state.copy()
        model.rescale(changed.view, Units(np.zeros(1), np.ones(1), np.array([2.0]), np.array([4.0])))
        after = model.predict(changed, X[:1])
        np.testing.assert_allclose(
            4.0 * np.array(after.interval(0.9)) + 2.0, before.interval(0.9), rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(4.0 * after.mean + 2.0, before.mean, rtol=1e-9)

    @pytest.mark.parametrize("root", [0.0, 0.4])
    def test_the_covariance_has_the_variances_on_its_diagonal(self, root):
        model = Bounded(agp(), low=0.0, root=root)
        state = model.init(X[:60], Y[:60])
        covariance = model.covariance(state, X[:6])
        np.testing.assert_allclose(np.diag(covariance), model.predict(state, X[:6]).variance, rtol=1e-9)
        assert np.linalg.eigvalsh(covariance).min() > 0.0

    # ---- roots

    def test_the_held_model_sees_roots_of_targets_and_of_their_lags(self):
        lag, y = np.column_stack([X[1:], Y[:-1]]), Y[1:]
        root = Root(np.array([0.0]), np.array([0.4]))
        model, held = Bounded(agp(), low=0.0, root=0.4, lags=[1]), agp()
        seen, targets = np.column_stack([X[1:], root.of(Y[:-1])]), root.of(y)
        state = model.update(model.init(lag[:60], y[:60]), lag[60:], y[60:])
        plain_state = held.update(held.init(seen[:60], targets[:60]), seen[60:], targets[60:])
        assert state.inner.record.tobytes() == plain_state.record.tobytes()
        ours, theirs = model.predict(state, lag), held.predict(plain_state, seen)
        np.testing.assert_allclose(ours.law.model.quantile(0.8), root.back(theirs.quantile(0.8)), rtol=1e-10)
        np.testing.assert_allclose(ours.mean, ours.law.mean, rtol=1e-10)
        np.testing.assert_allclose(ours.variance, ours.law.variance, rtol=1e-10)

    def test_means_of_a_skewed_target_are_without_bias(self):
        """The mean root squared lies below the mean."""
        rng = np.random.default_rng(3)
        y = rng.gamma(1.0, 5.0, 3000)
        model = Bounded(Standardize(LastKMean(k=20), adapt=1.0), low=0.0, slack=5.0, root=0.5)
        state = model.init(np.zeros((200, 1)), y[:200])
        means, medians = [], []
        for some in np.split(y[200:], 28):
            state = model.update(state, np.zeros((100, 1)), some)
            prediction = model.predict(state, [[0.0]])
            means.append(prediction.mean[0])
            medians.append(prediction.law.model.quantile(0.5)[0])
        assert np.mean(medians) < 4.5
        assert abs(np.mean(means[8:]) - 5.0) < 0.4

    def test_targets_below_the_bound_are_learned_and_many_of_them_end_the_roots(self):
        model = Bounded(Standardize(LastKMean(k=5), adapt=1.0), low=0.0, slack=1.0, leak=0.01, root=0.3, lags=[0])
        rng = np.random.default_rng(5)
        y = rng.gamma(2.0, 1.0, 100)
        state = model.init(y[:-1, None], y[1:])
        state = model.update(state, [2.0], -0.5)
        assert state.offset[0] > 0.0, "one such target says little"
        assert model.predict(state, [[-0.5]]).interval(0.95)[0][0] < 0.0
        assert np.isfinite(model.predict(state, [[-0.5]]).log_prob(-3.0))
        state = model.update(state, np.full((60, 1), -4.0), rng.normal(-4.0, 0.1, 60))
        assert state.offset.tolist() == state.lag_offset.tolist() == [0.0]
        assert abs(model.predict(state, [[-4.0]]).mean[0] + 4.0) < 0.2

    def test_roots_follow_a_change_of_units(self):
        model = Bounded(LastKMean(k=3, noise=0.3), low=0.0, slack=0.5, root=0.4, lags=[0])
        state = model.init(X[:10], Y[:10])
        before = model.predict(state, X[:1])
        changed = state.copy()
        model.rescale(changed.view, Units(np.array([0.1]), np.array([3.0]), np.array([2.0]), np.array([4.0])))
        after = model.predict(changed, (X[:1] - 0.1) / 3.0)
        np.testing.assert_allclose(
            4.0 * np.array(after.interval(0.9)) + 2.0, before.interval(0.9), rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose([4.0 * after.mean + 2.0, 4.0 * after.std], [before.mean, before.std], rtol=1e-9)

    def test_a_jump_of_the_level_moves_the_roots(self):
        model = Bounded(Standardize(LastKMean(k=5), adapt=1.0), low=0.0, root=0.5)
        state = model.init(np.zeros((40, 1)), RNG.gamma(50.0, 0.2, 40))
        moved = state.copy()
        model.move_level(moved.view, np.array([90.0]))
        before, after = (model.predict(one, [[0.0]]).mean[0] for one in (state, moved))
        assert abs(after - before - 90.0) < 5.0


def test_settings_survive_json():
    model = Bounded(
        agp(), low=(0.0, None), high=(None, 3.0), slack=0.5, leak=(0.0, 0.01), root=(0.5, 0.0), lags=[(1, 0)]
    )
    assert plain(rebuilt(plain(model))) == plain(model)
    assert rebuilt(plain(model)).low == (0.0, None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"low": np.nan}, "low must be finite numbers, or None where there is no bound; got nan"),
        ({"low": ()}, r"low must be one number or None, or one per output; got \(\)"),
        ({"high": [np.inf]}, r"high must be finite numbers, or None where there is no bound; got \[inf\]"),
        ({"low": 2.0, "high": 2.0}, r"low must be below high; got low = 2.0 and high = 2.0"),
        ({"slack": -1.0}, r"slack must lie in \[0, inf\); got -1.0"),
        ({"leak": 1.0}, r"leak must lie in \[0, 1\]; got 1.0"),
        ({"low": (0.0, 0.0), "slack": (1.0, 1.0, 1.0)}, "one per output each; got .*'slack': 3"),
        ({"root": -1.0}, r"root must lie in \[0, inf\); got -1.0"),
        ({"low": None, "high": 1.0, "root": 0.5}, "root must be 0 where there is no low bound"),
        ({"lags": [0.5]}, "lags must be a whole number"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Bounded(agp(), **settings)


def test_bounds_for_another_number_of_outputs_are_refused():
    with pytest.raises(ValueError, match="low must have one number, or one for each of 1 outputs; got 2"):
        Bounded(agp(), low=(0.0, 1.0)).init(X, Y)


def test_lags_among_other_inputs_are_refused():
    with pytest.raises(ValueError, match="lags must be among 1 inputs, of 1 outputs; got input 3 of output 0"):
        Bounded(agp(), root=0.5, lags=[3]).init(X, Y)


def test_a_target_that_is_missing_has_no_score_and_no_warning():
    held = Gaussian(mean=np.ones(2), variance=np.ones(2), noise=np.ones(2))
    law = Restricted(held, low=np.zeros(2), high=np.full(2, np.inf), slack=np.zeros(2), leak=np.full(2, 0.01))
    assert np.isnan(law.to_normal([np.nan, 1.0])).tolist() == [True, False]
    assert np.isnan(law.crps([np.nan, 1.0])).tolist() == [True, False]
