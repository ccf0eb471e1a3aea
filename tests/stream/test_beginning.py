"""How a stream begins: the model is chosen by the first rows, however they come."""

import copy
import pickle

import numpy as np
import pytest

from driftgp import AGP, Online
from driftgp.defaults import recommended
from driftgp.stream.begin import FIRST, Choice, Default
from driftgp.stream.series import Series
from driftgp.wrappers import Gaps, Standardize

RNG = np.random.default_rng(3)
X = RNG.uniform(size=(40, 2))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=40)
ENOUGH = 25


def model(window: int) -> Gaps:
    return Gaps(Standardize(AGP(inducing=4, window=window, step="scaled", prior=3.0), adapt=0.99))


class ByCount:
    """A longer window the more rows there are."""

    first, gaps = ENOUGH, True

    def choose(self, X, y):
        return Choice(model(8 if len(X) < ENOUGH else 12))


class Always(ByCount):
    def choose(self, X, y):
        return Choice(model(8))


class Warmed(ByCount):
    def choose(self, X, y):
        return Choice(model(8), warmup=10)


def bits(online):
    return online.state.record.tobytes()


def at_once(start, X=X, Y=Y):
    online = Online(start)
    online.warm(X, Y)
    return online


def in_parts(start, warm, *ends):
    """So many rows as a batch, and the others in parts that end there."""
    online = Online(start) if warm == 0 else at_once(start, X[:warm], Y[:warm])
    for begin, end in zip((warm, *ends), (*ends, len(X)), strict=True):
        online.update(X[begin:end], Y[begin:end])
    return online


@pytest.mark.parametrize("kind", [ByCount, Always, Warmed])
@pytest.mark.parametrize("parts", [(0,), (12,), (25,), (30,), (0, 1, 24, 25), (7, 26), (0, *range(1, 40))])
def test_once_the_first_rows_are_there_it_makes_no_difference_how_they_came(kind, parts):
    start = kind()
    expected = bits(at_once(start))
    assert bits(in_parts(start, *parts)) == expected
    direct = start.choose(X[:ENOUGH], Y[:ENOUGH])
    state = direct.model.init(X[: direct.warmup], Y[: direct.warmup])
    assert direct.model.update(state, X[direct.warmup :], Y[direct.warmup :]).record.tobytes() == expected


def test_single_samples_and_several_outputs_are_learned_from():
    both = np.column_stack([Y, -Y])
    one_by_one = Online(ByCount())
    for x, y in zip(X, both, strict=True):
        one_by_one.update(x, y)
    assert bits(one_by_one) == bits(at_once(ByCount(), X, both))
    assert one_by_one.predict(X[:3]).mean.shape == (3, 2)


def test_a_model_is_at_work_before_the_first_rows_are_complete():
    online = Online(ByCount())
    assert np.isfinite(online.predict(X[0]).mean).all()
    online.update(X[:20], Y[:20])
    cold = model(8)
    assert online.model == cold
    assert cold.update(cold.init(X[:0], Y[:0]), X[:20], Y[:20]).record.tobytes() == bits(online)
    online.update(X[20:], Y[20:])
    assert online.model == model(12)


def test_what_was_predicted_of_each_row_is_the_same_at_once_and_one_by_one():
    """Across the change of the model."""
    whole, single = Online(ByCount()), Online(ByCount())
    made = []
    for x, y in zip(X, Y, strict=True):
        made.append(single.predict(x).mean.item())
        single.update(x, y)
    prediction = whole.evaluate(X, Y)
    np.testing.assert_array_equal(prediction.mean, made)
    assert bits(whole) == bits(single)
    assert np.isfinite(prediction.log_prob(Y)).all()
    np.testing.assert_array_equal(prediction.rows([3, 30]).mean, [made[3], made[30]])
    np.testing.assert_array_equal(prediction.rows(slice(20, 30)).interval(0.9)[0], prediction.interval(0.9)[0][20:30])


def test_a_model_that_stays_the_right_one_is_not_started_again(monkeypatch):
    online = at_once(Always(), X[:10], Y[:10])
    monkeypatch.delattr(Series, "_replayed")
    online.update(X[10:], Y[10:])


def test_rows_that_are_refused_change_nothing():
    for count in (10, ENOUGH):
        online = at_once(ByCount(), X[:count], Y[:count])
        before = bits(online)
        wrong = X.copy()
        wrong[-1, 0] = np.inf
        for rows, targets in ((wrong, Y), (X[:, :1], Y), (X, Y[:-1])):
            with pytest.raises(ValueError, match="must"):
                online.update(rows, targets)
        assert bits(online) == before
        online.update(X[count:], Y[count:])
        assert bits(online) == bits(at_once(ByCount()))


def test_no_rows_are_no_news():
    for online in (Online(ByCount()), at_once(ByCount(), X[:10], Y[:10])):
        before = online.begun and bits(online)
        online.update(X[:0], Y[:0])
        assert (online.begun and bits(online)) == before
        with pytest.raises(ValueError, match="X must have at least one row to predict for"):
            online.evaluate(X[:0], Y[:0])


def test_the_caller_s_arrays_are_not_kept():
    rows, targets = X[:10].copy(), Y[:10].copy()
    online = at_once(ByCount(), rows, targets)
    rows[...], targets[...] = 0.0, 0.0
    online.update(X[10:], Y[10:])
    assert bits(online) == bits(at_once(ByCount()))


def saved(online):
    return Online.from_bytes(online.to_bytes(), ByCount())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda online: pickle.loads(pickle.dumps(online)), saved])
def test_a_copy_goes_on_by_itself(copied):
    online = at_once(ByCount(), X[:20], Y[:20])
    other = copied(online)
    before = bits(online)
    other.update(X[20:], Y[20:])
    assert bits(online) == before
    assert bits(other) == bits(at_once(ByCount()))


def test_the_rows_that_are_kept_are_never_more_than_choose_the_model():
    online = Online(ByCount())
    for x, y in zip(X[: ENOUGH - 1], Y, strict=False):
        online.update(x, y)
    buffer = online._streams.series[None].buffer
    assert buffer is not None
    assert buffer.count == ENOUGH - 1
    online.update(X[ENOUGH], Y[ENOUGH])
    assert online._streams.series[None].buffer is None


def test_the_default_is_recommended_for_as_many_rows_as_the_longest_window_holds():
    assert Default().first == FIRST == 400
    assert Default().choose(X, Y) == Choice(recommended(X, Y), 0)
    online = Online()
    online.update(X[0], Y[0])
    assert online.model == recommended(X[:0], Y[:0])
