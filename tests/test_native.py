"""The C++ library against the mathematics in JAX, which stays the reference for every number it gives."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftgp import AGP, FastAGP, Online, native
from driftgp.evaluate import prequential
from driftgp.fleet import Fleet
from driftgp.kernels import SE, Constant, Linear, Matern12, Matern32, Matern52, Periodic, RationalQuadratic
from driftgp.wrappers import Bank

if native.library() is None:
    pytest.skip("driftgp was installed without a C++ compiler, so there is no library to test", allow_module_level=True)

N = 40
PAPER: dict[str, Any] = {"relevance": "cholesky", "absolute_jitter": 1e-6}
NATURAL: dict[str, Any] = {"natural": 1.0, "rate": 0.2, "prior": 3.0}
# name: settings, inputs, outputs (None: a plain number), M, T
CASES: dict[str, tuple[dict[str, Any], int, int | None, int, int]] = {
    "AGP": ({}, 1, None, 6, 30),
    "fast-AGP": ({"learn_every": 0}, 1, None, 6, 30),
    "hybrid": ({"learn_every": 3}, 2, None, 6, 32),
    "as published": (PAPER, 2, None, 6, 30),
    "fast-AGP as published": ({"learn_every": 0, "admission": "published", **PAPER}, 2, None, 6, 30),
    "diagonal relevance": ({"learn_every": 0, "relevance": "diagonal"}, 2, None, 6, 30),
    "many inputs": ({}, 7, None, 9, 33),
    "defaults' kernel": ({"kernel": Linear(0.1) + SE(2.0), **NATURAL}, 4, None, 8, 40),
    "lengthscale an input": ({"kernel": SE(np.ones(5))}, 5, None, 8, 40),
    "variance an input": ({"kernel": Linear(np.ones(4)) + Matern52(np.ones(4))}, 4, None, 8, 40),
    "Matérn ½": ({"kernel": Matern12()}, 2, None, 6, 30),
    "Matérn 3⁄2 and a level": ({"kernel": Matern32() + Constant()}, 2, None, 6, 30),
    "two exponentials": ({"kernel": SE() + SE(0.1)}, 2, None, 6, 30),
    "wild targets": ({"outliers": 4.0}, 2, None, 6, 30),
    "three outputs": ({}, 2, 3, 6, 30),
    "fast-AGP, three outputs": ({"learn_every": 0}, 2, 3, 6, 29),
    "more points than a panel": ({}, 5, None, 50, 90),
    "more samples than a block": ({"learn_every": 2}, 5, 2, 12, 530),
    "one point": ({}, 1, None, 1, 5),
    "more outputs than points": ({}, 1, 10, 2, 12),
    "as many outputs as may be": ({"learn_every": 3}, 2, 10, 7, 20),
}


def stream(inputs: int, outputs: int | None, window: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = 0.3 * np.cumsum(rng.normal(size=(window + N, inputs)), 0)
    y = np.sin(X.sum(1)) + 0.1 * rng.normal(size=len(X))
    return X, y if outputs is None else y[:, None] * np.arange(1, outputs + 1) + 0.1 * rng.normal(
        size=(len(X), outputs)
    )


def case(name: str) -> tuple[AGP, Any, np.ndarray, np.ndarray]:
    """Model, state after a warm-up, and the rows that follow, some of them without a target."""
    options, inputs, outputs, M, T = CASES[name]
    X, y = stream(inputs, outputs, T)
    model = AGP(inducing=M, window=T, warmup_iterations=10, **options)
    state = model.init(X[:T], y[:T])
    y[T + 5] = np.nan
    return model, state, X[T:], y[T:]


def by_jax(model: AGP, state: Any, X: np.ndarray, y: np.ndarray, elapsed: np.ndarray) -> tuple[Any, Any]:
    """The same row after row, by the mathematics."""
    y = y.reshape(len(X), -1)
    with jax.enable_x64(True):
        learn, forecast = jax.jit(AGP.learn_by_jax), jax.jit(AGP.forecast_by_jax)
        predictions = []
        for row in zip(X, y, elapsed, strict=True):
            predictions.append(forecast(model, state, row[0][None]))
            state = learn(model, state, *(jnp.asarray(value) for value in row))
    return jax.tree.map(lambda *rows: np.concatenate(rows), *predictions), state


def natively(model: AGP, state: Any, X: np.ndarray, y: np.ndarray, elapsed: np.ndarray, level: str) -> tuple[Any, Any]:
    with jax.enable_x64(True):
        return jax.jit(lambda: native.follow(model, state, X, y.reshape(len(X), -1), elapsed, level=level))()


def here(level: str) -> bool:
    if not level.startswith("x86"):
        return True
    processor = Path("/proc/cpuinfo")  # only Linux has it; elsewhere the build that the library picks is tested
    return processor.exists() and {"x86_v3": "avx2", "x86_v4": "avx512dq"}[level] in processor.read_text()


@pytest.mark.parametrize("name", CASES)
def test_library_and_mathematics_agree(name: str) -> None:
    """Every setting that the library takes; a few steps only, since a sign of a gradient near zero may turn later."""
    model, state, X, y = case(name)
    assert native.suits(model, state, from_jax=False)
    elapsed = np.where(np.arange(N) % 7 == 6, 2.5, 1.0)
    rows = slice(0, 8)
    expected, end = by_jax(model, state, X[rows], y[rows], elapsed[rows])
    for level in filter(here, native.LEVELS):
        found, own_end = natively(model, state, X[rows], y[rows], elapsed[rows], level)
        for right, own in zip((expected.mean, expected.variance, expected.noise), found, strict=True):
            np.testing.assert_allclose(own, right, rtol=1e-6, atol=1e-8, err_msg=level)
        assert_same_state(end, own_end)


@pytest.mark.parametrize(
    "name",
    ["AGP", "many inputs", "defaults' kernel", "lengthscale an input", "three outputs", "more samples than a block"],
)
def test_warm_up_goes_where_that_of_the_mathematics_goes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options, inputs, outputs, M, T = CASES[name]
    X, y = stream(inputs, outputs, T)
    model = AGP(inducing=M, window=T, warmup_iterations=40, **options)
    found = model.init(X[: T - 2], y[: T - 2])
    monkeypatch.setattr(native, "suits", lambda *_: False)
    jax.clear_caches()
    expected = model.init(X[: T - 2], y[: T - 2])
    jax.clear_caches()
    assert_same_state(expected, found)


def test_fleet_has_the_bits_of_one_model() -> None:
    """Its states lie packed behind each other; what is read beside one would spoil it."""
    model, _, X, y = case("many inputs")
    start, targets = stream(7, None, 33)
    fleet = Fleet(model)
    fleet.warm(start[:33], targets[:33])
    alone = {key: Online(model, fleet.model.init(start[:33], targets[:33])) for key in ("a", "b", "c")}
    for i in range(0, 12, 3):
        keys = ["a", "b", "a"] if i % 2 else ["c", "a", "b"]
        together = fleet.evaluate(keys, X[i : i + 3], y[i : i + 3])
        ahead = fleet.predict(["a", "new"], X[:2])
        for row, key in enumerate(keys):
            assert together.mean[row] == alone[key].predict(X[i + row]).mean[0]
            alone[key].update(X[i + row], y[i + row])
        assert ahead.mean[0] == alone["a"].predict(X[0]).mean[0]
    for key, online in alone.items():
        for one, other in zip(jax.tree.leaves(fleet.state(key)), jax.tree.leaves(online.state), strict=True):
            np.testing.assert_array_equal(one, other)


def assert_same_state(expected: Any, found: Any) -> None:
    """All but the place of a slot that is not in use, which nobody reads, and inverses, which magnify rounding."""
    assert jax.tree.structure(expected) == jax.tree.structure(found)
    expected, found = (
        replace(
            state,
            points=replace(state.points, U=np.where(np.asarray(state.points.used)[:, None], state.points.U, 0)),
            posterior=state.posterior.repairs,
        )
        for state in (expected, found)
    )
    for right, own in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(own, right, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["AGP", "fast-AGP", "defaults' kernel", "three outputs"])
def test_long_run_stays_with_the_mathematics(name: str) -> None:
    model, state, X, y = case(name)
    expected, _ = by_jax(model, state, X, y, np.ones(N))
    (mean, variance, _), _ = natively(model, state, X, y, np.ones(N), "best")
    np.testing.assert_allclose(mean, expected.mean, atol=1e-4)
    np.testing.assert_allclose(variance, expected.variance, atol=1e-4)


@pytest.mark.parametrize("name", ["AGP", "fast-AGP", "three outputs"])
def test_scan_calls_and_updates_have_the_same_bits(name: str) -> None:
    """One program for all of them, so a run may be taken up in whatever way."""
    model, state, X, y = case(name)
    run = prequential(model, state, X, y)
    online, by_rows = Online(model, state), Online(model, state)
    by_rows.update(X, y)
    after = state
    for i in range(N):
        prediction = online.predict(X[i])
        np.testing.assert_array_equal(prediction.mean[0], run.prediction.mean[i])
        np.testing.assert_array_equal(prediction.variance[0], run.prediction.variance[i])
        online.update(X[i], y[i])
        after = model.update(after, X[i], y[i])
    for end in (online.state, by_rows.state, after, model.update(state, X, y)):
        for one, other in zip(jax.tree.leaves(end), jax.tree.leaves(run.state), strict=True):
            np.testing.assert_array_equal(one, other)


def test_stepper_leaves_the_state_that_it_was_given_alone() -> None:
    model, state, X, y = case("AGP")
    before = [np.array(leaf) for leaf in jax.tree.leaves(state)]
    online = Online(model, state)
    taken = online.state
    online.update(X, y)
    for one, other, given in zip(jax.tree.leaves(taken), jax.tree.leaves(state), before, strict=True):
        np.testing.assert_array_equal(one, given)
        np.testing.assert_array_equal(other, given)


def test_bank_computes_what_its_members_do() -> None:
    """Under `vmap` the library gets several models at once, and settings that differ."""
    model, _, X, y = case("defaults' kernel")
    bank = Bank(model, forgetting=[0.9, 0.98, 0.995])
    start, targets = stream(4, None, 40)
    inner = bank.update(bank.init(start[:40], targets[:40]), X[:8], y[:8]).inner
    for k in range(3):
        member = bank.member(k)
        alone = member.update(member.init(start[:40], targets[:40]), X[:8], y[:8])
        for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(inner), strict=True):
            np.testing.assert_allclose(other[k], one, rtol=1e-6, atol=1e-9)


def test_forecast_is_differentiated_as_the_mathematics() -> None:
    model, state, X, _ = case("many inputs")

    def mean(x: jax.Array, forecast: Any) -> jax.Array:
        return forecast(model, state, x[None]).mean[0, 0]

    with jax.enable_x64(True):
        for derivative in (jax.grad, jax.jacfwd):
            own, right = (derivative(mean)(jnp.asarray(X[0]), way) for way in (AGP.forecast, AGP.forecast_by_jax))
            np.testing.assert_allclose(own, right, rtol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        AGP(Periodic()),
        AGP(RationalQuadratic()),
        AGP(SE() * SE()),
        AGP(iterations=2),
        AGP(restart=False),
        FastAGP(window=None, forgetting=0.9),
    ],
)
def test_what_the_library_does_not_know_is_left_to_jax(model: AGP) -> None:
    X, y = stream(1, None, 30)
    state = model.init(X[:30], y[:30])
    assert not native.suits(model, state, from_jax=False)
    assert np.all(np.isfinite(prequential(model, state, X[30:33], y[30:33]).prediction.mean))


def test_single_precision_and_many_outputs_are_left_to_jax() -> None:
    X, y = stream(1, None, 30)
    model = AGP(inducing=5, window=30, warmup_iterations=1)
    assert not native.suits(model, model.init(X[:30].astype(np.float32), y[:30].astype(np.float32)), from_jax=False)
    assert not native.suits(model, model.init(X[:30], np.tile(y[:30, None], 11)), from_jax=False)


def test_a_state_of_another_model_is_left_to_jax() -> None:
    """C++ would read and write beyond its arrays."""
    X, y = stream(5, None, 30)
    small = AGP(inducing=6, window=30, warmup_iterations=1)
    state = small.init(X[:30], y[:30])
    for other in (AGP(inducing=25, window=30), AGP(inducing=6, window=20)):
        assert not native.suits(other, state, from_jax=False)
        assert other.stepper(state) is None
    other = AGP(SE(np.ones(5)), inducing=6, window=30)
    assert not native.suits(other, state, from_jax=False)
    two = AGP(SE([1.0, 1.0]), inducing=6, window=30, placement="recent", warmup_iterations=1)
    with pytest.raises(ValueError, match="lengthscale must have one entry or one for each of the 5 inputs"):
        two.init(X[:30], y[:30])


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")  # JAX says what it does
def test_a_program_in_single_precision_is_left_to_jax() -> None:
    """A user's own `jit` has whatever precision the user set; JAX then makes floats of our doubles."""
    model, state, X, _ = case("AGP")
    single = jax.jit(lambda state, X: model.predict(state, X).mean)(state, X[:2])
    np.testing.assert_allclose(single, model.predict(state, X[:2]).mean, atol=1e-4)


def test_arrays_in_any_order_give_the_same() -> None:
    model, state, X, _ = case("AGP")
    by_columns = jax.tree.map(lambda leaf: np.array(leaf, order="F"), state)
    np.testing.assert_array_equal(
        Online(model, by_columns).predict(X[0]).variance, Online(model, state).predict(X[0]).variance
    )


def test_elapsed_time_that_is_handed_in_may_be_used_again() -> None:
    model, state, X, y = case("AGP")
    elapsed = np.array(1.0)
    online, other = Online(model, state), Online(model, state)
    online.update(X[0], y[0], elapsed)
    other.update(X[0], y[0])
    elapsed[...] = 50.0
    np.testing.assert_array_equal(online.state.window.w, other.state.window.w)


def test_burst_of_repairs_ends_where_jax_ends() -> None:
    """Without jitter and with an input that stays where it is, Kuu has no factor of its own."""
    X, y = stream(1, None, 30)
    model = AGP(inducing=6, window=30, jitter=0.0, warmup_iterations=5)
    state = model.init(X[:30], y[:30])
    stuck = np.tile(X[30], (20, 1))
    run = prequential(model, state, stuck, y[30:50])
    _, end = by_jax(model, state, stuck, y[30:50], np.ones(20))
    assert int(run.state.repaired) > 0 < int(end.repaired)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(run.state))
    np.testing.assert_allclose(run.prediction.mean[-1], np.mean(y[30:50]), atol=0.5)


def test_library_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_INTERFACE", -1)
    with pytest.warns(UserWarning, match="install driftgp again"):
        assert native.library.__wrapped__() is None


def test_library_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTGP_NATIVE", "0")
    assert native.library.__wrapped__() is None
