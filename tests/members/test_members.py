"""Small models: the last value, what an input says, the mean of the last few."""

import numpy as np
import pytest

from driftgp.members import LastKMean, Persistence
from driftgp.models.model import Units

T = 12
RNG = np.random.default_rng(7)
X = RNG.uniform(-1.0, 1.0, size=(T, 2))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=T)
Y2 = np.stack([Y, 2.0 - Y**2], 1)
XS = RNG.uniform(-1.5, 1.5, size=(5, 2))


def test_persistence_predicts_the_last_value_that_was_seen():
    model = Persistence()
    state = model.update(model.init(X, Y), X[:3], np.array([5.0, 6.0, np.nan]))
    np.testing.assert_array_equal(model.predict(state, XS).mean, 6.0)


def test_persistence_by_column_predicts_what_the_input_says():
    model = Persistence(column=(1, 0))
    np.testing.assert_array_equal(model.predict(model.init(X, Y2), XS).mean, XS[:, [1, 0]])


@pytest.mark.parametrize("column", [2, (0, 1)])
def test_persistence_refuses_columns_that_are_not_there(column):
    with pytest.raises(ValueError, match="column must name one of the 2 inputs"):
        Persistence(column=column).init(X, Y)


def test_the_mean_of_the_last_k_is_of_those_there_are():
    model = LastKMean(k=4)
    few = model.init(X[:2], Y[:2])
    np.testing.assert_allclose(model.predict(few, XS).mean, np.mean(Y[:2]), rtol=1e-12)
    np.testing.assert_allclose(model.predict(model.init(X, Y), XS).mean, np.mean(Y[-4:]), rtol=1e-12)


def test_a_target_of_which_a_part_is_missing_is_not_seen():
    model = LastKMean(k=3)
    before = model.init(X, Y2)
    after = model.update(before, X[0], [1.0, np.nan])
    np.testing.assert_array_equal(model.predict(after, XS).mean, model.predict(before, XS).mean)


def test_the_variance_is_the_weighted_mean_of_the_squared_errors():
    """The starting variance counts as one error more, as old as the first."""
    model = Persistence(noise=3.0, forgetting=0.9)
    errors = np.diff(Y)
    w = 0.9 ** np.arange(len(errors) - 1.0, -1.0, -1.0)
    expected = (w[0] * 3.0 + w @ errors**2) / (w[0] + np.sum(w))
    np.testing.assert_allclose(model.predict(model.init(X, Y), XS).variance, expected, rtol=1e-12)


def test_by_column_the_first_value_is_an_error_already():
    model = Persistence(column=0, noise=3.0, forgetting=1.0)
    state = model.init(X[:1], Y[:1])
    np.testing.assert_allclose(state.variance, [(3.0 + (Y[0] - X[0, 0]) ** 2) / 2.0], rtol=1e-12)
    assert Persistence(noise=3.0).init(X[:1], Y[:1]).variance.tolist() == [3.0]


def test_what_was_known_counts_as_one_error_after_a_long_silence():
    model = Persistence()
    state = model.update(model.init(X, Y), X[0], np.nan, elapsed=1e6)
    assert state.errors == 1.0
    assert state.variance.tolist() == model.init(X, Y).variance.tolist()


def test_a_variance_stays_above_zero_where_the_target_never_changes():
    model = Persistence(forgetting=0.1)
    state = model.init(np.zeros((2000, 1)), np.zeros(2000))
    assert model.predict(state, np.zeros((1, 1))).variance[0] > 0.0


def test_naive_intervals_cover_what_they_promise_on_a_random_walk():
    walk = np.cumsum(np.random.default_rng(0).normal(size=3000))
    model = Persistence(forgetting=0.99)
    state = model.init(np.zeros((2999, 1)), walk[:-1])
    np.testing.assert_allclose(model.predict(state, np.zeros((1, 1))).variance, 1.0, rtol=0.3)


@pytest.mark.parametrize("model", [Persistence(), LastKMean(k=20)])
def test_other_units_change_values_and_errors(model):
    """A value that has not come yet stays nothing."""
    state = model.init(X, Y2)
    units = Units(np.zeros(2), np.ones(2), np.array([1.0, -2.0]), np.array([2.0, 5.0]))
    expected = model.predict(state, XS)
    model.rescale(state.view, units)
    prediction = model.predict(state, XS)
    np.testing.assert_allclose(prediction.mean, units.targets(expected.mean), rtol=1e-12)
    np.testing.assert_allclose(prediction.variance, expected.variance / units.y_scale**2, rtol=1e-12)


def test_persistence_by_column_cannot_change_its_units():
    model = Persistence(column=0)
    units = Units(np.zeros(2), np.ones(2), np.zeros(1), np.ones(1))
    with pytest.raises(ValueError, match="cannot change its units"):
        model.rescale(model.init(X, Y).view, units)


@pytest.mark.parametrize(("field", "value"), [("cursor", 3), ("count", 4), ("variance", -1.0), ("values", np.nan)])
def test_a_state_that_no_step_could_have_left_is_refused(field, value):
    model = LastKMean(k=3)
    state = model.init(X, Y)
    model.check(state.view)
    state.record[field] = value
    with pytest.raises(ValueError, match=field):
        model.check(state.view)


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (LastKMean, {"k": 0}, "k must be a whole number"),
        (LastKMean, {"noise": 0.0}, "noise must lie in"),
        (Persistence, {"column": -1}, "column must be a whole number"),
        (Persistence, {"forgetting": 1.5}, "forgetting must lie in"),
    ],
)
def test_bad_settings_are_refused_by_name(make, settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings)
