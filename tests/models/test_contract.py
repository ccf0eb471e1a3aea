"""One suite that every model goes through, by both engines: what all that runs models relies on.

A model enters it with a line in `catalogue.py`.
"""

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from driftgp import AGP, checkpoint, evaluate
from driftgp.engine import describe
from driftgp.online import Online
from driftgp.wrappers import Credible
from tests.catalogue import CATALOGUE, Entry

WARM, ROWS = 12, 8
RNG = np.random.default_rng(2024)
X = RNG.uniform(size=(WARM + ROWS, 2))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=WARM + ROWS)
Y2 = np.stack([Y, 3.0 - Y**2], 1)
PROBES = np.array([[0.2, 0.7], [0.5, 0.5], [40.0, -60.0]])  # the last one is far from everything seen
WARM_X, WARM_Y = X[:WARM], Y[:WARM]
NEW_X, NEW_Y = X[WARM:], Y[WARM:]


@pytest.fixture(scope="module", params=["native", "reference"])
def engine(request) -> Iterator[str]:
    """Both engines; methods in JAX bring their own, whichever is asked for."""
    if request.param == "native" and not describe(AGP()).startswith("native"):
        pytest.skip(f"there is no compiled engine here ({describe(AGP())})")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFTGP_ENGINE", request.param)
        yield request.param


@pytest.fixture(scope="module", params=CATALOGUE)
def entry(request) -> Entry:
    return CATALOGUE[request.param]


@pytest.fixture(scope="module")
def model(entry, engine):
    model = entry.make()
    if engine == "native" and not describe(model).startswith("native"):
        pytest.skip(describe(model))
    return model


@pytest.fixture(scope="module")
def state(model):
    return model.init(WARM_X, WARM_Y)


# ---- small tools -------------------------------------------------------------------------------------------


def assert_same(a: Any, b: Any) -> None:
    """Bit for bit."""
    assert a.record.tobytes() == b.record.tobytes()


def assert_same_forecast(a: Any, b: Any) -> None:
    assert a.records.tobytes() == b.records.tobytes()


def assert_close(a: Any, b: Any, tolerance: float = 1e-9) -> None:
    """Mean and variance of two predictions."""
    for one, other in ((a.mean, b.mean), (a.variance, b.variance), (a.noise, b.noise)):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def assert_finite(state: Any) -> None:
    assert all(np.isfinite(leaf).all() for leaf in leaves(state.record))


def leaves(record: np.ndarray) -> Iterator[np.ndarray]:
    for name in record.dtype.names or ():
        field = record[name]
        yield from leaves(field) if field.dtype.names else [field]


def assert_sound(prediction: Any, shape: tuple[int, ...]) -> None:
    assert prediction.mean.shape == prediction.variance.shape == prediction.noise.shape == shape
    assert np.isfinite(prediction.mean).all()
    assert np.all(np.isfinite(prediction.variance) & (prediction.variance > 0.0))
    assert np.all((prediction.noise >= 0.0) & (prediction.noise <= prediction.variance * (1.0 + 1e-6)))
    low, high = prediction.interval(0.9)
    assert np.all(low < high)


# ---- the life of a model -----------------------------------------------------------------------------------


def test_predicts_something_sound_after_the_warm_up(model, state):
    assert_finite(state)
    assert_sound(model.predict(state, PROBES), (3,))


def test_starts_cold(model, state):
    """Without a single sample it predicts, and then it learns; its state has the shapes of any other."""
    cold = model.init(WARM_X[:0], WARM_Y[:0])
    assert cold.record.dtype == state.record.dtype
    assert_finite(cold)
    assert_sound(model.predict(cold, PROBES), (3,))
    for x, y in zip(NEW_X[:5], NEW_Y[:5], strict=True):
        cold = model.update(cold, x, y)
        assert_finite(cold)
        assert_sound(model.predict(cold, PROBES), (3,))


def test_an_update_changes_the_prediction_and_not_the_state_it_was_given(model, state):
    before = state.copy()
    after = model.update(state, NEW_X[0], NEW_Y[0] + 1.0)
    assert_same(state, before)
    new, old = model.predict(after, PROBES), model.predict(state, PROBES)
    assert not (np.allclose(new.mean, old.mean, rtol=1e-6) and np.allclose(new.variance, old.variance, rtol=1e-6))


def test_the_same_calls_give_the_same_bits(model, state):
    again = model.init(WARM_X, WARM_Y)
    assert_same(again, state)
    assert_same(model.update(again, NEW_X[0], NEW_Y[0]), model.update(state, NEW_X[0], NEW_Y[0]))


# ---- time and gaps -----------------------------------------------------------------------------------------


def test_without_a_target_only_time_passes(model, state):
    """Whatever x says: it was not seen with a target, so nothing may be learned from it."""
    if isinstance(model, Credible):
        pytest.skip("it takes a probe for a gap, which is filled by the last values, of whatever row")
    here, there = model.update(state, NEW_X[0], np.nan), model.update(state, 7.0 * NEW_X[1], np.nan)
    assert_finite(here)
    assert_close(model.predict(here, PROBES), model.predict(there, PROBES))
    assert_sound(model.predict(here, PROBES), (3,))


def test_without_a_target_and_without_time_nothing_happens(model, state):
    if isinstance(model, Credible):
        pytest.skip("a value of the base is judged though the target is missing")
    still = model.update(state, NEW_X[0], np.nan, elapsed=0.0)
    assert_close(model.predict(still, PROBES), model.predict(state, PROBES))


def test_a_long_silence_is_survived(model, state):
    silent = model.update(state, NEW_X[0], np.nan, elapsed=1e6)
    assert_finite(silent)
    assert_sound(model.predict(silent, PROBES), (3,))
    awake = model.update(silent, NEW_X[0], NEW_Y[0])
    assert_finite(awake)
    assert_sound(model.predict(awake, PROBES), (3,))


def test_three_units_of_time_are_three_times_one(entry, model, state):
    if not entry.forgets:
        pytest.skip("time means nothing to this model")
    if isinstance(model, Credible):
        pytest.skip("it sees three values of the base, or one")
    step_by_step = state
    for _ in range(2):
        step_by_step = model.update(step_by_step, NEW_X[0], np.nan)
    step_by_step = model.update(step_by_step, NEW_X[0], NEW_Y[0])
    at_once = model.update(state, NEW_X[0], NEW_Y[0], elapsed=3.0)
    assert_close(model.predict(at_once, PROBES), model.predict(step_by_step, PROBES), 1e-8)


def test_a_batch_may_have_gaps(model, state):
    gappy = np.where(np.arange(WARM) % 3 == 0, np.nan, WARM_Y)
    started = model.init(WARM_X, gappy)
    assert started.record.dtype == state.record.dtype
    assert_finite(started)
    assert_sound(model.predict(started, PROBES), (3,))


def test_a_batch_of_nothing_but_gaps_is_survived(model):
    started = model.init(WARM_X, np.full(WARM, np.nan))
    assert_finite(started)
    assert_sound(model.predict(started, PROBES), (3,))
    assert_finite(model.update(started, NEW_X[0], NEW_Y[0]))


# ---- one step written once ---------------------------------------------------------------------------------


def test_several_rows_are_one_after_another(model, state):
    one_by_one = state
    for x, y in zip(NEW_X, NEW_Y, strict=True):
        one_by_one = model.update(one_by_one, x, y)
    at_once = model.update(state, NEW_X, NEW_Y)
    assert_close(model.predict(at_once, PROBES), model.predict(one_by_one, PROBES), 1e-7)


def test_ways_to_hand_samples_in_agree_bit_for_bit(model, state):
    """Model.update, prequential and Online, with and without a prediction of the sample before it is learned from."""
    if describe(model).startswith("scan"):
        pytest.skip("a scan over many rows is another program than a step")
    run = evaluate.prequential(model, state, NEW_X, NEW_Y)
    assert_sound(run.prediction, (ROWS,))
    asked, unasked, alone = Online(model, state), Online(model, state), state
    for i, (x, y) in enumerate(zip(NEW_X, NEW_Y, strict=True)):
        assert asked.predict(x).records.tobytes() == run.prediction.records[i : i + 1].tobytes()
        asked.update(x, y)
        unasked.update(x, y)
        alone = model.update(alone, x, y)
    for other in (asked.state, unasked.state, alone):
        assert_same(run.state, other)


# ---- state is data -----------------------------------------------------------------------------------------


def test_every_field_is_eight_bytes_wide(state):
    assert all(leaf.dtype in (np.float64, np.int64) for leaf in leaves(state.record))


def test_a_state_is_its_bytes(model, state):
    """Taken apart into bytes and put together again it goes on bit for bit."""
    original = model.update(state, NEW_X[0], NEW_Y[0])
    restored = state.copy()
    restored.record[...] = np.frombuffer(original.record.tobytes(), original.record.dtype)[0]
    assert_same_forecast(model.predict(restored, PROBES), model.predict(original, PROBES))
    assert_same(model.update(restored, NEW_X[1], NEW_Y[1]), model.update(original, NEW_X[1], NEW_Y[1]))


def test_a_pickled_state_is_alive(model, state):
    """An unpickled record ignores what is written to it, unless it was made anew."""
    restored = pickle.loads(pickle.dumps(state))
    assert_same(restored, state)
    Online(model, restored).update(NEW_X[0], NEW_Y[0])
    restored.record[...] = model.update(state, NEW_X[0], NEW_Y[0]).record
    assert_same(restored, model.update(state, NEW_X[0], NEW_Y[0]))


def test_resumes_from_a_checkpoint_bit_for_bit(model, state):
    stopped = model.update(model.update(state, NEW_X, NEW_Y), NEW_X[0], np.nan)
    restored = checkpoint.restore(model, checkpoint.to_bytes(model, stopped))
    assert restored.exact
    assert_same(restored.state, stopped)
    assert_same(model.update(restored.state, NEW_X[1], NEW_Y[1]), model.update(stopped, NEW_X[1], NEW_Y[1]))


def test_what_follows_from_the_rest_can_be_computed_from_it(model, state):
    """Fields that a checkpoint leaves out, wiped and completed, give the same predictions."""
    later = model.update(state, NEW_X, NEW_Y)
    wiped = later.copy()
    for path in model.derived():
        field = wiped.record
        for name in path.split("."):
            field = field[name]
        field[...] = 0.0
    wiped.engine().complete(wiped.record)
    assert_close(model.predict(wiped, PROBES), model.predict(later, PROBES), 1e-7)


def test_a_state_that_a_step_has_left_passes_the_check(model, state):
    for one in (state, model.update(state, NEW_X, NEW_Y), model.init(WARM_X[:0], WARM_Y[:0])):
        model.check(one.view)


@pytest.mark.parametrize(
    "call",
    [
        lambda model, state: model.update(state, NEW_X[0], np.inf),
        lambda model, state: model.update(state, NEW_X[0, :1], NEW_Y[0]),
        lambda model, state: model.update(state, [np.inf, 0.0], NEW_Y[0]),
        lambda model, state: model.update(state, NEW_X[0], NEW_Y[:2]),
        lambda model, state: model.update(state, NEW_X, np.append(NEW_Y[:-1], np.inf)),
        lambda model, state: model.update(state, NEW_X[0], NEW_Y[0], elapsed=-1.0),
        lambda model, state: model.predict(state, np.zeros((1, 3))),
        lambda model, state: model.predict(state, [["a", "b"]]),
        lambda model, state: evaluate.prequential(model, state, NEW_X, NEW_Y[:-1]),
    ],
)
def test_a_refused_call_damages_nothing(model, state, call):
    before = state.copy()
    with pytest.raises(ValueError, match="must"):
        call(model, state)
    assert_same(state, before)


# ---- several outputs ---------------------------------------------------------------------------------------


def test_several_outputs(entry, model, state):
    """They are learned and predicted together, or refused."""
    if not entry.outputs:
        with pytest.raises(ValueError, match="output"):
            model.init(WARM_X, Y2[:WARM])
        return
    pair = model.init(WARM_X, Y2[:WARM])
    assert_sound(model.predict(pair, PROBES), (3, 2))
    updated = model.update(pair, NEW_X[0], Y2[WARM])
    assert updated.record.dtype == pair.record.dtype
    assert_finite(updated)
    assert_sound(model.predict(updated, PROBES), (3, 2))
    for target in ([np.nan, np.nan], [np.nan, 1.0]):
        gap = model.update(pair, NEW_X[0], target)
        assert_finite(gap)
        assert_sound(model.predict(gap, PROBES), (3, 2))
    with pytest.raises(ValueError, match=r"y must have shape \(2,\); got shape \(\)"):
        model.update(pair, NEW_X[0], 1.0)


# ---- bad days ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "day",
    [
        (NEW_X, np.full(ROWS, 3.0)),
        (np.repeat(NEW_X[:1], ROWS, axis=0), NEW_Y),
        (np.repeat(NEW_X[:1], ROWS, axis=0), np.zeros(ROWS)),
        (NEW_X, np.where(np.arange(ROWS) == 3, 1e8, NEW_Y)),
        (1e6 * NEW_X, NEW_Y),
        (np.where(np.arange(ROWS)[:, None] == 3, 1e12, NEW_X), NEW_Y),
        (NEW_X, 1e-12 * NEW_Y),
    ],
    ids=[
        "a constant target",
        "a constant input",
        "a constant input and target",
        "a wild target",
        "inputs of another scale",
        "a wild input",
        "tiny targets",
    ],
)
def test_survives(model, state, day):
    survived = model.update(state, *day)
    assert_finite(survived)
    assert_sound(model.predict(survived, PROBES), (3,))
    recovered = model.update(survived, NEW_X, NEW_Y)
    assert_finite(recovered)
    assert_sound(model.predict(recovered, PROBES), (3,))
