"""Wrappers, banks and small members in C++, each held to its NumPy twin: one step at a time, from common states."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from driftgp import AGP
from driftgp.contract.records import entries
from driftgp.engine import engine
from driftgp.engine.library import library
from driftgp.engine.native import NativeEngine, NoLibrary
from driftgp.engine.reference import ReferenceEngine
from driftgp.kernels import SE, Constant, Linear
from driftgp.members import Anchored, Lagged, LastKMean, Persistence
from driftgp.models.monitor import Monitor
from driftgp.predictions import Forecast, nominal_reach
from driftgp.predictions.normal import pdf
from driftgp.wrappers import (
    Around,
    Bank,
    Bounded,
    Calibrated,
    Credible,
    Gaps,
    Guarded,
    Standardize,
    Watched,
    Within,
)

SEED = 20250
ROWS, WARMUP = 70, 25
INPUTS = 2
SCORES = np.array([-40.0, -2.2, 0.0, 0.3, 5.0])  # normal scores at which distributions are compared


@pytest.fixture(autouse=True)
def compiled() -> None:
    try:
        library()
    except NoLibrary as missing:
        pytest.skip(f"there is no compiled engine here: {missing}")


def agp(**settings: Any) -> AGP:
    """An AGP whose Kuu has a condition number below 1e6: what rounding does is amplified by it."""
    usual = {"inducing": 5, "window": 20, "forgetting": 0.95, "warmup_iterations": 10, "jitter": 1e-4}
    return AGP(SE() + Linear() + Constant(), **(usual | settings))


def memories(*rates: float, **settings: Any) -> list[Any]:
    return [agp(forgetting=rate, **settings) for rate in rates]


MODELS: dict[str, Callable[[], Any]] = {
    "persistence": lambda: Persistence(noise=0.5),
    "mean of the last": lambda: LastKMean(k=3, forgetting=0.9),
    "standardize": lambda: Standardize(agp()),
    "standardize, adapting": lambda: Standardize(agp(), adapt=0.95),
    "standardize twice": lambda: Standardize(Standardize(LastKMean(k=2), adapt=0.9), adapt=0.95),
    "within": lambda: Within(agp(), margin=0.1),
    "gaps": lambda: Gaps(agp()),
    "credible": lambda: Credible(Gaps(agp()), column=1),
    "calibrated": lambda: Calibrated(agp()),
    "calibrated by sides": lambda: Calibrated(
        LastKMean(k=4), symmetric=False, levels=(0.3, 0.9), gains=(0.0, 0.1), rate=0.05, prior=(2.0, 1.0)
    ),
    "bounded": lambda: Bounded(agp(), low=-0.3, slack=0.05),
    "bounded on both sides": lambda: Bounded(LastKMean(k=2), low=-0.5, high=0.6, leak=1e-3),
    "bounded by a guess": lambda: Bounded(Bank([agp(), LastKMean(k=2)]), low=-0.9, high=1.1, slack=0.3, leak=0.02),
    "bounded roots": lambda: Calibrated(Bounded(agp(), low=-3.0, slack=0.1, root=0.4, lags=[0])),
    "bounded roots that end": lambda: Bounded(Bank([agp(), LastKMean(k=2)]), low=-0.2, leak=0.02, root=0.1, lags=[0]),
    "roots within units": lambda: Standardize(Bounded(agp(), low=-4.0, slack=0.1, root=0.7, lags=[0]), adapt=0.97),
    "guarded roots": lambda: Guarded(Bounded(Standardize(agp(), adapt=0.95), low=-3.0, root=0.2), reach=1.5),
    "bounds beyond units": lambda: Calibrated(Bounded(Standardize(Within(agp()), adapt=0.97), low=6.99, high=7.02)),
    "bounds within units": lambda: Standardize(Bounded(agp(), low=-1.0, slack=0.1), adapt=0.97),
    "watched": lambda: Watched(agp(), Monitor(lags=3, forgetting=0.9)),
    "bank": lambda: Bank(
        [*memories(0.9, 0.99), LastKMean(), agp(window=12, inducing=4)], corrected=(1, 2), prior=(1, 2, 3, 4)
    ),
    "anchored": lambda: Anchored(points=5, ring=20, sample=12, refresh=15),
    "lagged": lambda: Standardize(Lagged(lags=3), adapt=0.9),
    "bank of voices": lambda: Standardize(
        Bank([agp(), Anchored(points=4, ring=16, sample=10, refresh=9), Lagged(), Persistence()], corrected=(0, 1)),
        adapt=0.95,
    ),
    "bank of wrapped voices": lambda: Bank(
        [Within(Anchored(points=3, ring=16, sample=10)), Guarded(Lagged(forgetting=(0.99, 0.9))), agp()], corrected=(0,)
    ),
    "bank of anything": lambda: Bank([Standardize(Within(agp()), adapt=0.9), Watched(Persistence()), agp()]),
    "0.1's default": lambda: Calibrated(Standardize(Within(Bank(memories(0.9, 0.95, 0.99))), adapt=0.98)),
    "all of them": lambda: Watched(
        Calibrated(Standardize(Gaps(Within(Bank([*memories(0.9, 0.99), Persistence()]))), adapt=0.97)),
        Monitor(lags=2),
    ),
    "in another order": lambda: Standardize(
        Within(Calibrated(Gaps(Bank([agp(), LastKMean(k=2)])), symmetric=False)), adapt=0.9
    ),
}


def stream(model: Any, outputs: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs and targets in any units, which change on the way, with outliers, gaps and silences."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, INPUTS))
    y = np.sin(X.sum(1, keepdims=True) + np.arange(outputs)) + 0.2 * rng.normal(size=(ROWS, outputs))
    X[rng.random(ROWS) < 0.05] *= 8.0
    if _has_units(model):
        X, y = 1e3 * X + 5.0, 1e-2 * y + 7.0
        X[ROWS // 2 :] *= 4.0
        y[2 * ROWS // 3 :] *= 3.0
    y[rng.random(ROWS) < 0.06] = np.nan
    y[rng.random(y.shape) < 0.04] = np.nan
    if model.fills_gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, rng.choice([1.0, 1.0, 0.3, 4.0], ROWS)


def _has_units(model: Any) -> bool:
    """Whether the first thing that a sample meets, gaps and ranges apart, are units of its own."""
    while not isinstance(model, Standardize) and hasattr(model, "model"):
        model = model.model
    return isinstance(model, Standardize)


def records(native: NativeEngine) -> tuple[np.ndarray, np.ndarray]:
    """Two records that are all zeros."""
    return np.zeros((), native.record_dtype), np.zeros((), native.record_dtype)


def compare(here: np.ndarray, there: np.ndarray, when: str) -> None:
    """Two records agree: whole numbers exactly, others to 1e-8 of the largest in their field."""
    for entry in entries(here.dtype):
        a, b = (np.frombuffer(record.tobytes(), entry.kind, entry.numbers, entry.offset) for record in (here, there))
        if entry.kind == "i8":
            np.testing.assert_array_equal(b, a, f"{entry.path} {when}")
        else:  # what is 0 up to rounding, such as a mean in units of its own, has no digits to agree on
            largest = np.max(np.abs(a[np.isfinite(a)]), initial=0.0)
            np.testing.assert_allclose(b, a, rtol=0.0, atol=1e-8 * largest + 1e-13, err_msg=f"{entry.path} {when}")


def follow(model: Any, X: np.ndarray, y: np.ndarray, elapsed: np.ndarray, warmup: int, late: int = 0) -> None:
    """Walk through a stream in NumPy, and let C++ make each of the steps from the same state.

    Every other row is learned from with a forecast that is known: the one of this state, or that of `late` rows before.
    """
    D, P = X.shape[1], y.shape[1]
    native = NativeEngine(model, D, P)
    ours, theirs = records(native)
    state = model.view(ours)
    model.start(state, X[:warmup], y[:warmup])
    native.start(theirs, X[:warmup], y[:warmup])
    compare(ours, theirs, "after the start")
    single, issued = native.single(theirs), []
    for t in range(warmup, len(X)):
        theirs[...] = ours
        forecast = model.forecast(state, X[t : t + 1])
        made = single.predict(X[t])
        compare(forecast, made, f"in the forecast of row {t}")
        if t % 6 == 0:
            values = model.law(forecast).from_normal(SCORES[:, None, None])
            np.testing.assert_allclose(native.solve(forecast, SCORES), values, rtol=1e-9, atol=1e-9 * np.ptp(values))
        issued.append(model.forecast(state, X[t + late : t + late + 1]) if late and t + late < len(X) else forecast)
        known = issued[max(t - warmup - late, 0)] if t % 2 else None
        model.learn(state, X[t], y[t], elapsed[t], known)
        single.learn(X[t], y[t], elapsed[t], known)
        compare(ours, theirs, f"after row {t}")


CASES = [
    (name, outputs, warmup)
    for name in MODELS
    for outputs, warmup in ((1, WARMUP), (3, 0))
    if warmup or name != "standardize"  # whose units are those of the warm-up batch
]


@pytest.mark.parametrize(("name", "outputs", "warmup"), CASES)
def test_each_step_is_that_of_the_twin(name, outputs, warmup):
    model = MODELS[name]()
    follow(model, *stream(model, outputs), warmup)


@pytest.mark.parametrize("warmup", [0, WARMUP])
def test_persistence_by_column_is_its_twin(warmup):
    model = Within(Calibrated(Bank([Persistence(column=[1, 0]), Persistence()])))
    follow(model, *stream(model, 2), warmup)


@pytest.mark.parametrize("warmup", [0, WARMUP])
@pytest.mark.parametrize("late", [0, 3])
def test_models_around_a_forecast_are_their_twins(warmup, late):
    held = [Around(Lagged(forgetting=(0.99, 0.9)), 1), Around(Anchored(points=4, ring=16, sample=10), 1, 2.0)]
    held += [Around(LastKMean(k=2), 1), Persistence()]
    model = Credible(Gaps(Standardize(Within(Bank(held, corrected=(0, 1))), adapt=0.95)), 1)
    X, y, elapsed = stream(model, 1)
    X[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, 7.0 + 0.5 * (np.nan_to_num(y[:, 0], nan=7.0) - 7.0) + 1e-6 * X[:, 1])
    follow(model, X, y, elapsed, warmup, late)


@pytest.mark.parametrize("name", ["standardize, adapting", "standardize twice", "watched", "bank", "bank of anything"])
def test_steps_with_forecasts_issued_before_are_those_of_the_twin(name):
    model = MODELS[name]()
    follow(model, *stream(model, 2), WARMUP, late=4)


# ---- what is known is not computed again -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_known_forecast_changes_nothing(name):
    model = MODELS[name]()
    X, y, elapsed = stream(model, 2)
    X[WARMUP + 3] *= 1e3
    native = NativeEngine(model, INPUTS, 2)
    known, unknown = records(native)
    for record in (known, unknown):
        native.start(record, X[:WARMUP], y[:WARMUP])
    one, other = native.single(known), native.single(unknown)
    for t in range(WARMUP, ROWS):
        one.learn(X[t], y[t], elapsed[t], one.predict(X[t]))
        other.learn(X[t], y[t], elapsed[t])
        assert known.tobytes() == unknown.tobytes(), f"row {t}"


def test_a_young_input_far_out_is_learned_from_as_it_is():
    """A forecast takes it to be nearer, so what it says is of another input than the one that is learned from."""
    model = Standardize(Bank([*memories(0.9, 0.99)]), adapt=0.9)
    X = np.array([[1e-3], [1.1e-3], [5.0], [6.0], [5.5], [-4.0]])
    y = np.sin(np.arange(6.0))[:, None]
    native = NativeEngine(model, 1, 1)
    known, unknown = records(native)
    for record in (known, unknown):
        native.start(record, X[:0], y[:0])
    one, other = native.single(known), native.single(unknown)
    for x, target in zip(X, y, strict=True):
        one.learn(x, target, 1.0, one.predict(x))
        other.learn(x, target, 1.0)
        assert known.tobytes() == unknown.tobytes()


def test_calibration_judges_the_interval_that_was_issued():
    """Only so is the share of targets outside the issued intervals what the controllers' sum says."""
    model = Calibrated(Persistence(), levels=(0.8,), gains=(0.0,), rate=0.2)
    native = NativeEngine(model, 1, 1)
    record = np.zeros((), native.record_dtype)
    native.start(record, np.zeros((0, 1)), np.zeros((0, 1)))
    single, rng = native.single(record), np.random.default_rng(SEED)
    issued, outside = [single.predict(np.zeros(1)).copy() for _ in range(5)], 0
    for t in range(200):
        y = 3.0 * rng.normal(size=1)
        held = issued[t]["inner"]
        outside += abs(y - held["mean"]).item() > held["variance"].item() ** 0.5 * issued[t]["reach"].item()
        single.learn(np.zeros(1), y, 1.0, issued[t])
        issued.append(single.predict(np.zeros(1)).copy())
    z = nominal_reach(0.8)
    step = 0.2 / (2.0 * z * pdf(z))
    np.testing.assert_allclose(record["offset"][-1].item(), step * (outside - 0.2 * 200), rtol=1e-9)


# ---- distributions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [0.3, 5.0, 50.0])
@pytest.mark.parametrize("members", [1, 2, 3, 5])
def test_quantiles_of_mixtures_are_those_of_the_law(spread, members):
    """Members alike and far apart, narrow and wide, with weights down to e⁻¹²."""
    model = Bank([Persistence() for _ in range(members)])
    rng, rows = np.random.default_rng(SEED), 200
    made = np.zeros(rows, model.forecast_dtype(2))
    logs = np.maximum(3.0 * rng.normal(size=(rows, members)), -12.0)
    made["weights"] = np.exp(logs) / np.exp(logs).sum(1, keepdims=True)
    for k in range(members):
        made[f"member_{k}"]["mean"] = 1e3 + spread * rng.normal(size=(rows, 2))
        made[f"member_{k}"]["variance"] = np.exp(2.0 * rng.normal(size=(rows, 2)))
    made["variance"] = model.law(made).variance
    z = np.array([-60.0, -38.0, -7.0, -1.96, -0.1, 0.0, 1.0, 1.96, 3.0, 12.0, 38.0, np.inf])
    values = NativeEngine(model, 1, 2).solve(made, z)
    np.testing.assert_allclose(values, model.law(made).from_normal(z[:, None, None]), rtol=1e-11)
    own = rng.choice(z, (3, rows))  # scores of each row's own
    for either in (NativeEngine(model, 1, 2), ReferenceEngine(model, 1, 2)):
        np.testing.assert_allclose(either.solve(made, own), model.law(made).from_normal(own[..., None]), rtol=1e-11)


@pytest.mark.parametrize("outputs", [1, 2])
def test_scores_by_the_engine_are_those_of_the_law(outputs):
    """A calibrated law has no formula for its CRPS: the engine finds the quantiles, NumPy does it here."""
    model = Calibrated(Bank([Persistence(), LastKMean(k=4)]), symmetric=False)
    X, y, _ = stream(model, outputs)
    state = model.update(model.init(X[:WARMUP], y[:WARMUP]), X[WARMUP:], y[WARMUP:])
    native, asked = NativeEngine(model, INPUTS, outputs), []

    def solve(forecasts: np.ndarray, z: np.ndarray) -> np.ndarray:
        asked.append(z.shape)
        return native.solve(forecasts, z)

    for rows in (0, 1, 9):
        records = model.predict(state, X[:9]).records[:rows]
        forecast = Forecast(model, records, flat=outputs == 1, solve=solve)
        targets = np.nan_to_num(y[:rows]).reshape(forecast.shape)
        for ask in (
            lambda law, y=targets: law.crps(y),
            lambda law: law.sample(5, seed=1),
            lambda law: law.quantile(np.array([0.1, 0.9]).reshape(2, *(1 for _ in law.shape))),
        ):
            np.testing.assert_allclose(ask(forecast), ask(forecast.law), rtol=1e-9)
    if outputs == 1:  # several outputs have a score each, which is the law's to find
        assert (96, 9) in asked
        one = forecast.rows([3])
        np.testing.assert_allclose(one.quantile([0.1, 0.5, 0.9]), one.law.quantile([0.1, 0.5, 0.9]), rtol=1e-9)
        np.testing.assert_allclose(one.crps([0.0, 1.0]), one.law.crps([0.0, 1.0]), rtol=1e-9)


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_a_target_beyond_all_bounds_leaves_the_weights_finite():
    model = Calibrated(Bank([LastKMean(), Persistence()]))
    native = NativeEngine(model, 1, 1)
    record = np.zeros((), native.record_dtype)
    native.start(record, np.zeros((3, 1)), np.arange(3.0)[:, None])
    native.single(record).learn(np.zeros(1), np.array([1e200]), 1.0)
    assert np.isfinite(record["log_s2"]).all()
    assert np.isfinite(record["inner"]["weights"]).all()


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("persistence", "cursor", 1),
        ("mean of the last", "count", -1),
        ("mean of the last", "cursor", 3),
        ("within", "count", -1),
        ("gaps", "joint", 2),
        ("standardize", "scale", 0.0),
        ("bounded", "outside", -1),
        ("bounded", "slack", -1.0),
        ("bounded", "low", np.inf),
        ("calibrated", "log_weights", np.nan),
        ("watched", "monitor.scored", -1),
        ("bank", "weights", np.inf),
        ("bank", "window_1.cursor", 12),
        ("bank", "member_2.cursor", -1),
        ("0.1's default", "inner.inner.inner.member_0.points", 6),
    ],
)
def test_a_state_that_no_step_could_have_left_is_refused(name, path, value):
    model = MODELS[name]()
    X, y, _ = stream(model, 1)
    native = NativeEngine(model, INPUTS, 1)
    record = np.zeros((), native.record_dtype)
    native.start(record, X[:WARMUP], y[:WARMUP])
    *parts, last = path.split(".")
    field = record
    for part in parts:
        field = field[part]
    field[last] = value
    with pytest.raises(ValueError, match=last):
        native.single(record).predict(X[0])


def test_units_adapt_only_for_a_model_that_can_change_its_own():
    for held in (Persistence(column=0), agp(window=None, learn_every=0)):
        with pytest.raises(ValueError, match="adapt"):
            NativeEngine(Standardize(Within(held), adapt=0.9), 2, 1)
        assert engine(Standardize(held), 2, 1).kind == "native"


def test_units_of_a_warm_up_batch_need_one():
    native = NativeEngine(Standardize(agp()), 1, 1)
    with pytest.raises(ValueError, match="warm-up batch"):
        native.start(np.zeros((), native.record_dtype), np.zeros((0, 1)), np.zeros((0, 1)))


# ---- any nesting -----------------------------------------------------------------------------------------------------


def normal_model(rng: np.random.Generator, depth: int) -> Any:
    """A model with normal predictions."""
    kind = rng.integers(9) if depth > 0 else rng.integers(5)
    if kind == 0:
        return LastKMean(k=int(rng.integers(1, 5)), noise=float(rng.uniform(0.1, 2.0)))
    if kind <= 2:
        M, rate = int(rng.integers(2, 7)), float(rng.uniform(0.85, 1.0))
        return agp(inducing=M, window=int(rng.choice([8, 15, 25])), forgetting=rate)
    if kind <= 4:
        rates = tuple(rng.uniform(0.9, 1.0, int(rng.integers(1, 4))).tolist())
        if kind == 3:
            return Lagged(lags=int(rng.integers(0, 4)), forgetting=rates)
        ring, sample = int(rng.integers(8, 40)), int(rng.integers(4, 30))
        return Anchored(points=int(rng.integers(1, 8)), ring=ring, forgetting=rates, sample=sample, refresh=7)
    held = normal_model(rng, depth - 1)
    adapted = Standardize(held, adapt=float(rng.uniform(0.8, 1.0)))
    return (adapted, Within(held, float(rng.uniform(0.0, 0.5))), Gaps(held), Watched(held))[kind - 5]


def any_model(rng: np.random.Generator, depth: int) -> Any:
    """Wrappers around a bank or a single model."""
    kind = rng.integers(10) if depth > 0 else 0
    if kind == 0:
        count = int(rng.integers(1, 4))
        return Bank([normal_model(rng, 1) for _ in range(count)], corrected=range(int(rng.integers(0, count + 1))))
    if kind == 1:
        return normal_model(rng, 2)
    held = any_model(rng, depth - 1)
    return (
        Standardize(held, adapt=float(rng.uniform(0.8, 1.0))),
        Within(held),
        Gaps(held),
        Watched(held, Monitor(lags=int(rng.integers(1, 4)))),
        Calibrated(held, symmetric=bool(rng.integers(2)), rate=0.02),
        Guarded(held, reach=float(rng.uniform(2.0, 6.0))),
        Bounded(held, low=-1.0, slack=float(rng.uniform(0.0, 0.5)), leak=float(rng.choice([0.0, 0.01]))),
        Bounded(held, low=-2.0, slack=0.1, leak=0.01, root=float(rng.uniform(0.1, 1.0)), lags=[0]),
    )[kind - 2]


def nested(seed: int) -> None:
    rng = np.random.default_rng([SEED, seed])
    model = any_model(rng, 4)
    X, y, elapsed = stream(model, int(rng.integers(1, 4)), seed)
    warmup = int(rng.choice([0, 1, 10, WARMUP]))
    end = warmup + 20
    follow(model, X[:end], y[:end], elapsed[:end], warmup)


@pytest.mark.parametrize("seed", range(8))
def test_any_nesting_makes_the_steps_of_its_twin(seed):
    nested(seed)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(10))
def test_a_thousand_nestings_make_the_steps_of_their_twins(hundred):
    for seed in range(100 * hundred + 100, 100 * hundred + 200):
        nested(seed)
