"""What the adapters share."""

import subprocess
import sys

import numpy as np
import pytest

from driftgp.adapters import AGPStart, Configured
from driftgp.defaults import recommended
from driftgp.kernels import SE
from driftgp.online import Online
from driftgp.wrappers import Standardize, Within
from driftgp.wrappers.holding import Holding

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=40)


def held(model):
    """The model inside the wrappers, and the kinds of these."""
    kinds = []
    while isinstance(model, Holding):
        kinds.append(type(model))
        model = model.model
    return model, kinds


def imported(program: str, names: str) -> set[str]:
    """Which of these libraries a program imports."""
    program = f"{program}; import sys; print(*(set(sys.modules) & set({names!r}.split())))"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_importing_driftgp_imports_no_other_library():
    others = "sklearn river skpro sktime pandas polars scipy matplotlib typer jax equinox optax"
    assert imported("import driftgp", others) == set()


@pytest.mark.parametrize("adapter", ["sklearn", "river", "skpro", "sktime"])
def test_no_adapter_imports_jax(adapter):
    assert imported(f"import driftgp.{adapter}", "jax equinox optax") == set()


@pytest.mark.parametrize("settings", [{}, {"effort": "low", "support": "real", "lags": [2, 7], "horizon": 2}])
def test_without_settings_of_an_agp_it_is_online(settings):
    class Estimator(Configured):
        pass

    assert repr(Estimator(**settings)._online()) == repr(Online(**settings))
    assert Estimator(**settings)._online().settings == Online(**settings).settings
    assert Estimator(**settings)._start() is None
    assert Estimator(window=20)._start() == AGPStart(window=20)


def test_settings_reach_one_agp_in_the_wrappers_of_the_default():
    choice = AGPStart(inducing=7, window=30, learn_every=5, forgetting=0.9, noise=0.2, warmup_iterations=9).choose(X, Y)
    model, wrappers = held(choice.model)
    assert (model.inducing, model.window, model.learn_every, model.forgetting) == (7, 30, 5, 0.9)
    assert (model.noise, model.warmup_iterations) == ((0.2,), 9)
    assert wrappers == held(recommended(X, Y))[1]
    assert choice.warmup == 30


def test_without_standardising_no_wrapper_changes_the_units_or_the_inputs():
    _, wrappers = held(AGPStart(standardize=False).choose(X, Y).model)
    assert wrappers == [kind for kind in held(recommended(X, Y))[1] if kind not in (Standardize, Within)]


def test_what_is_left_out_is_as_in_the_default():
    member = held(recommended(X, Y))[0].models[0]
    model, _ = held(AGPStart(forgetting=0.9).choose(X, Y).model)
    names = ("kernel", "noise", "inducing", "window", "step", "prior", "learn_every", "warmup_iterations")
    assert [getattr(model, name) for name in names] == [getattr(member, name) for name in names]
    assert held(AGPStart(prior=np.inf).choose(X, Y).model)[0].prior is None


def test_a_window_is_large_enough_for_the_points_and_the_points_are_few_enough_for_the_window():
    assert held(AGPStart(inducing=150).choose(X[:, :1], Y).model)[0].window == 150
    assert held(AGPStart(window=5).choose(X, Y).model)[0].inducing == 5


def test_a_stream_is_not_chosen_for_before_its_window_is_full():
    assert AGPStart(window=1000).first == 1000
    assert AGPStart(window=20).first == AGPStart().first == 400


def test_a_kernel_with_a_lengthscale_for_each_feature_gets_just_as_many():
    settings = AGPStart(kernel=SE([1.0, 2.0, 3.0]), inducing=4, window=12, warmup_iterations=2)
    online = Online(settings)
    online.warm(X[:12], Y[:12])
    assert online.predict(X[:2]).mean.shape == (2,)
    with pytest.raises(ValueError, match="lengthscale"):
        Online(settings).warm(X[:12, :2], Y[:12])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "nonsense"}, "kernel"),
        ({"kernel": 3}, "kernel must be"),
        ({"window": "wide"}, "window must be a whole number"),
        ({"inducing": 0}, "inducing must be a whole number"),
        ({"inducing": 50, "window": 20}, "inducing must be at most window"),
        ({"forgetting": 1.5}, "forgetting must lie in"),
        ({"noise": -1.0}, "noise must lie in"),
        ({"prior": 0.0}, "prior must lie in"),
    ],
)
def test_a_wrong_setting_is_refused_and_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Online(AGPStart(**settings)).warm(X, Y)


# ---- files -----------------------------------------------------------------------------------------------------------

SERIES = np.sin(np.arange(90) / 3.0) + 0.05 * np.arange(90)
TABLE = np.column_stack([SERIES[1:-1], SERIES[:-2]]), SERIES[2:]


@pytest.mark.parametrize("settings", [{}, {"window": 20, "kernel": "linear + matern32"}, {"kernel": SE(2.0)}])
@pytest.mark.parametrize("library", ["sklearn", "skpro", "river"])
def test_an_estimator_goes_on_from_its_file(tmp_path, library, settings):
    pytest.importorskip(library)
    module = __import__(f"driftgp.{library}", fromlist=["AGPRegressor"])
    X, y = TABLE
    model = module.AGPRegressor(**settings)
    if library == "river":
        rows = [{"a": float(a), "b": float(b)} for a, b in X]

        def go_on(model, part):
            for row, target in zip(rows[part], y[part].tolist(), strict=True):
                model.learn_one(row, target)
            return model.predict_one(rows[0])

        go_on(model, slice(50))
    else:
        frame = __import__("pandas").DataFrame
        inputs, targets = frame(X, columns=["a", "b"]), frame({"y": y})

        def go_on(model, part):
            method = model.partial_fit if library == "sklearn" else model.update
            method(inputs[part], targets["y"][part] if library == "sklearn" else targets[part])
            return np.asarray(model.predict(inputs[:1])).item()

        model.fit(inputs[:50], targets["y"][:50] if library == "sklearn" else targets[:50])
    model.save(tmp_path / "model.gp")
    back = module.AGPRegressor.load(tmp_path / "model.gp")
    assert go_on(back, slice(50, 88)) == go_on(model, slice(50, 88))
    data = (tmp_path / "model.gp").read_bytes()
    (tmp_path / "model.gp").write_bytes(data[:-40] + b"x" + data[-39:])
    with pytest.raises(ValueError, match=r"model\.gp: stream is damaged: its checksum"):
        module.AGPRegressor.load(tmp_path / "model.gp")


@pytest.mark.parametrize("index", ["range", "date", "period"])
@pytest.mark.parametrize("exogenous", [False, True])
def test_a_forecaster_goes_on_from_its_file(tmp_path, index, exogenous):
    pytest.importorskip("sktime")
    import pandas as pd

    from driftgp.sktime import FanForecaster

    at = {
        "range": pd.RangeIndex(90),
        "date": pd.date_range("2024-01-01", periods=90, freq="D"),
        "period": pd.period_range("2024-01-01", periods=90, freq="D"),
    }[index]
    y = pd.Series(SERIES, at, name="load")
    X = pd.DataFrame({"week": np.arange(90) % 7.0}, at) if exogenous else None

    def part(rows):
        return None if X is None else X[rows]

    model = FanForecaster(season=7).fit(y[:50], X=part(slice(50)), fh=[1, 3])
    model.save(tmp_path / "model.gp", "driftgp")
    back = FanForecaster.load(tmp_path / "model.gp")
    for rows in (slice(50, 52), slice(52, 70)):
        one, other = (
            each.update(y[rows], X=part(rows)).predict(X=part(slice(rows.stop, rows.stop + 3)))
            for each in (model, back)
        )
        pd.testing.assert_series_equal(one, other)


def test_a_file_of_another_estimator_is_refused(tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("river")
    import driftgp.river
    import driftgp.sklearn

    driftgp.sklearn.AGPRegressor().fit(*TABLE).save(tmp_path / "model.gp")
    with pytest.raises(ValueError, match=r"estimator is a driftgp\.sklearn\.AGPRegressor, not a driftgp\.river"):
        driftgp.river.AGPRegressor.load(tmp_path / "model.gp")
