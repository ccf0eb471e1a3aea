"""One suite that every model goes through: what loops, fleets, checkpoints, adapters and wrappers rely on.

A model enters it with a line in `catalogue.py`. The stream is small, and the compiled programs are shared: one shape
of batch (12 rows), of prediction (3 rows), of one update and of an update with several rows (8).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftgp import checkpoint, evaluate
from driftgp import model as contract
from tests.catalogue import CATALOGUE, Entry

WARM, ROWS = 12, 8
RNG = np.random.default_rng(2024)
X = RNG.uniform(size=(WARM + ROWS, 2))
Y = np.sin(5.0 * X[:, 0]) + 0.1 * RNG.normal(size=WARM + ROWS)
Y2 = np.stack([Y, 3.0 - Y**2], 1)
PROBES = np.array([[0.2, 0.7], [0.5, 0.5], [40.0, -60.0]])  # the last one is far from everything seen
WARM_X, WARM_Y = X[:WARM], Y[:WARM]
NEW_X, NEW_Y = X[WARM:], Y[WARM:]


@pytest.fixture(scope="module", params=CATALOGUE)
def entry(request) -> Iterator[Entry]:
    yield CATALOGUE[request.param]
    jax.clear_caches()  # see conftest.py: all models together would map too much


@pytest.fixture(scope="module")
def model(entry):
    return entry.make()


@pytest.fixture(scope="module")
def state(model):
    return model.init(WARM_X, WARM_Y)


# ---- small helpers -----------------------------------------------------------------------------------------


def signature(tree: Any) -> Any:
    """Structure, shapes and dtypes: what must never change."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(np.shape(leaf), np.asarray(leaf).dtype) for leaf in leaves]


def snapshot(tree: Any) -> list[np.ndarray]:
    return [np.array(leaf) for leaf in jax.tree.leaves(tree)]


def assert_same(a: Any, b: Any) -> None:
    """Bit for bit; the bits of a NaN too."""
    for one, other in zip(snapshot(a), snapshot(b), strict=True):
        np.testing.assert_array_equal(one, other)


def assert_close(a: Any, b: Any, tolerance: float = 1e-9) -> None:
    for one, other in zip(snapshot(a), snapshot(b), strict=True):
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(one, other)


def assert_finite(tree: Any) -> None:
    for leaf in snapshot(tree):
        if leaf.dtype.kind == "f":
            assert np.all(np.isfinite(leaf))


def assert_sound(prediction: Any, shape: tuple[int, ...]) -> None:
    assert prediction.mean.shape == prediction.variance.shape == prediction.noise.shape == shape
    assert_finite((prediction.mean, prediction.variance))
    assert np.all(prediction.variance > 0.0)
    assert np.all((prediction.noise >= 0.0) & (prediction.noise <= prediction.variance * (1.0 + 1e-6)))
    low, high = prediction.interval(0.9)
    assert np.all(low < high)


def with_settings(model: Any, factor: float) -> Any:
    """The model with every setting that is a number changed a little."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) * factor if np.asarray(leaf).dtype.kind == "f" else leaf, model)


def compilations() -> int:
    programs = (
        *(contract._compiled_start, contract._compiled_forecast, contract._compiled_learn, contract._whole_learn),
        *(evaluate._compiled, evaluate._whole),
    )
    return sum(program._cache_size() for program in programs)


# ---- the life of a model -----------------------------------------------------------------------------------


def test_predicts_something_sound_after_the_warm_up(model, state):
    assert_finite(state)
    assert_sound(model.predict(state, PROBES), (3,))


def test_starts_cold(model, state):
    """Without a single sample it predicts, and then it learns; its state has the shapes of any other."""
    cold = model.init(WARM_X[:0], WARM_Y[:0])
    assert signature(cold) == signature(state)
    assert_finite(cold)
    assert_sound(model.predict(cold, PROBES), (3,))
    for x, y in zip(NEW_X[:5], NEW_Y[:5], strict=True):
        cold = model.update(cold, x, y)
        assert_finite(cold)
        assert_sound(model.predict(cold, PROBES), (3,))


def test_an_update_changes_the_prediction_and_not_the_state_it_was_given(model, state):
    before = snapshot(state)
    after = model.update(state, NEW_X[0], NEW_Y[0] + 1.0)
    assert_same(state, before)
    new, old = model.predict(after, PROBES), model.predict(state, PROBES)
    assert not (np.allclose(new.mean, old.mean, rtol=1e-6) and np.allclose(new.variance, old.variance, rtol=1e-6))


def test_nothing_grows(model, state):
    """Structure, shapes and dtypes are the same after samples, gaps and batches."""
    one = model.update(state, NEW_X[0], NEW_Y[0])
    gap = model.update(one, NEW_X[1], np.nan)
    rows = model.update(gap, NEW_X, NEW_Y)
    for later in (one, gap, rows):
        assert signature(later) == signature(state)


def test_the_same_calls_give_the_same_bits(model, state):
    again = model.init(WARM_X, WARM_Y)
    assert_same(again, state)
    assert_same(model.update(again, NEW_X[0], NEW_Y[0]), model.update(state, NEW_X[0], NEW_Y[0]))


# ---- time and gaps -----------------------------------------------------------------------------------------


def test_without_a_target_only_time_passes(model, state):
    """Whatever x says: it was not seen with a target, so nothing may be learned from it."""
    here, there = model.update(state, NEW_X[0], np.nan), model.update(state, 7.0 * NEW_X[1], np.nan)
    assert_finite(here)
    assert_close(model.predict(here, PROBES), model.predict(there, PROBES))
    assert_sound(model.predict(here, PROBES), (3,))


def test_without_a_target_and_without_time_nothing_happens(model, state):
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
    step_by_step = state
    for _ in range(2):
        step_by_step = model.update(step_by_step, NEW_X[0], np.nan)
    step_by_step = model.update(step_by_step, NEW_X[0], NEW_Y[0])
    at_once = model.update(state, NEW_X[0], NEW_Y[0], elapsed=3.0)
    assert_close(model.predict(at_once, PROBES), model.predict(step_by_step, PROBES), 1e-8)


def test_a_batch_may_have_gaps(model, state):
    gappy = np.where(np.arange(WARM) % 3 == 0, np.nan, WARM_Y)
    started = model.init(WARM_X, gappy)
    assert signature(started) == signature(state)
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
    assert_close(model.update(state, NEW_X, NEW_Y), one_by_one, 1e-7)


def test_the_compiled_loop_is_calls_one_by_one(model, state):
    run = evaluate.prequential(model, state, NEW_X, NEW_Y)
    assert_sound(run.prediction, (ROWS,))
    one_by_one = state
    for i, (x, y) in enumerate(zip(NEW_X, NEW_Y, strict=True)):
        prediction = model.predict(one_by_one, np.stack([x, *PROBES[:2]]))
        np.testing.assert_allclose(run.prediction.mean[i], prediction.mean[0], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(run.prediction.variance[i], prediction.variance[0], rtol=1e-7)
        one_by_one = model.update(one_by_one, x, y)
    assert_close(run.state, one_by_one, 1e-7)


def test_many_models_at_once_are_each_alone(model):
    """`vmap` over settings, from the warm-up on, against a run each."""
    factors = (1.0, 0.93, 0.87)
    models = [with_settings(model, factor) for factor in factors]
    together = jax.tree.map(lambda *leaves: np.stack(leaves), *models)
    elapsed = np.ones(ROWS)

    def run(model):
        state = model.init(jnp.asarray(WARM_X), jnp.asarray(WARM_Y))
        return evaluate.scan(model, state, jnp.asarray(NEW_X), jnp.asarray(NEW_Y), elapsed).prediction

    with jax.enable_x64(True):
        batch = jax.jit(jax.vmap(run))(together)
    for i, alone in enumerate(models):
        expected = evaluate.prequential(alone, alone.init(WARM_X, WARM_Y), NEW_X, NEW_Y).prediction
        assert_close(jax.tree.map(lambda leaf, i=i: leaf[i], batch), expected, 1e-7)


def test_settings_do_not_recompile(entry, model, state):
    """A new λ, rate or seed, or the same model built again, runs in the programs that are there."""
    use = partial(_use_everything, state=state)
    use(model)
    before = compilations()
    use(entry.make())
    use(with_settings(model, 0.97))
    assert compilations() == before


def _use_everything(model, state):
    model.init(WARM_X, WARM_Y)
    model.predict(state, PROBES)
    model.update(state, NEW_X[0], NEW_Y[0])
    model.update(state, NEW_X[0], NEW_Y[0], elapsed=2.0)
    evaluate.prequential(model, state, NEW_X, NEW_Y)


# ---- state is data -----------------------------------------------------------------------------------------


def test_a_state_is_its_arrays(model, state):
    """Taken apart into NumPy arrays and put together again it goes on bit for bit."""
    leaves, structure = jax.tree.flatten(model.update(state, NEW_X[0], NEW_Y[0]))
    restored = jax.tree.unflatten(structure, [np.array(leaf) for leaf in leaves])
    assert all(np.asarray(leaf).dtype.kind in "fiub" for leaf in leaves)
    original = jax.tree.unflatten(structure, leaves)
    assert_same(model.predict(restored, PROBES), model.predict(original, PROBES))
    assert_same(model.update(restored, NEW_X[1], NEW_Y[1]), model.update(original, NEW_X[1], NEW_Y[1]))


def test_resumes_from_a_checkpoint_bit_for_bit(model, state):
    stopped = model.update(model.update(state, NEW_X, NEW_Y), NEW_X[0], np.nan)
    restored = checkpoint.restore(model, checkpoint.to_bytes(model, stopped))
    assert restored.exact
    assert signature(restored.state) == signature(stopped)
    assert_same(restored.state, stopped)
    assert_same(model.update(restored.state, NEW_X[1], NEW_Y[1]), model.update(stopped, NEW_X[1], NEW_Y[1]))


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
    before = snapshot(state)
    with pytest.raises(ValueError, match="must"):
        call(model, state)
    assert_same(state, before)


# ---- several outputs, single precision ---------------------------------------------------------------------


def test_several_outputs(entry, model, state):
    """They are learned and predicted together, or refused."""
    if not entry.outputs:
        with pytest.raises(ValueError, match="output"):
            model.init(WARM_X, Y2[:WARM])
        return
    pair = model.init(WARM_X, Y2[:WARM])
    assert_sound(model.predict(pair, PROBES), (3, 2))
    updated = model.update(pair, NEW_X[0], Y2[WARM])
    assert signature(updated) == signature(pair)
    assert_finite(updated)
    assert_sound(model.predict(updated, PROBES), (3, 2))
    for target in ([np.nan, np.nan], [np.nan, 1.0]):
        gap = model.update(pair, NEW_X[0], target)
        assert_finite(gap)
        assert_sound(model.predict(gap, PROBES), (3, 2))
    with pytest.raises(ValueError, match=r"y must have shape \(2,\); got shape \(\)"):
        model.update(pair, NEW_X[0], 1.0)


def test_single_precision_stays_single(model):
    started = model.init(WARM_X.astype(np.float32), WARM_Y.astype(np.float32))
    assert {leaf.dtype.name for leaf in snapshot(started)} & {"float32", "float64"} == {"float32"}
    updated = model.update(started, NEW_X[0], NEW_Y[0])  # double precision in, single precision kept
    assert signature(updated) == signature(started)
    assert_finite(updated)
    prediction = model.predict(updated, PROBES)
    assert prediction.mean.dtype == prediction.variance.dtype == np.float32
    assert_sound(prediction, (3,))


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
