"""A model around somebody else's forecast: it is corrected, a bad one is named and does no harm, all doors agree."""

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from driftgp import Fleet, Online, backtest
from driftgp.defaults import recommended
from driftgp.members import Lagged, LastKMean
from driftgp.models.model import Units
from driftgp.stream.settings import settings
from driftgp.wrappers import Around, Calibrated, Credible, Gaps, Standardize

N = 700
RNG = np.random.default_rng(4)
HOURS = np.datetime64("2024-01-01T00", "us") + np.arange(N) * np.timedelta64(1, "h")
WIND = np.abs(RNG.normal(size=N))
SIGNAL = 100.0 + 20.0 * np.sin(np.arange(N) * np.pi / 12) + np.cumsum(RNG.normal(size=N))
Y = SIGNAL - 5.0 * WIND + 0.5 * RNG.normal(size=N)
VENDOR = SIGNAL + 3.0  # which knows nothing of the wind, and is always too high


def rows(base=VENDOR, **more):
    columns = {"mw": Y, "wind": WIND, "vendor": base, **more}
    return [
        {"when": time.astype(object), **{name: values[i] for name, values in columns.items()}}
        for i, time in enumerate(HOURS)
    ]


def evaluated(base, table=None, **given):
    """Means of an evaluation, and what was said in warnings."""
    table = rows() if table is None else table
    asked = {"target": "mw", "time": "when", "features": ["wind"], "others": "ignored", "lags": [1], "effort": "low"}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        prediction = Online(**asked | given, base=base).evaluate(table)
    return prediction, " ".join(str(one.message) for one in said)


def error(prediction, first=50):
    return float(np.sqrt(np.mean((prediction.mean - Y)[first:] ** 2)))


@pytest.mark.parametrize("effort", ["low", "medium"])
def test_what_comes_out_is_better_than_the_base_and_than_no_base(effort):
    with_it, said = evaluated("vendor", effort=effort)
    without, _ = evaluated(None, effort=effort)
    assert not said
    assert error(with_it) < 0.5 * error(without)
    assert error(with_it) < 0.2 * np.sqrt(np.mean((VENDOR - Y)[50:] ** 2))
    assert 0.9 < with_it.scores().coverage < 0.99


def test_the_base_is_known_with_its_row_whatever_the_horizon():
    online = Online(target="mw", time="when", base="vendor", horizon=3, lags=1, effort="low")
    found = online.inputs_of(rows())
    assert found.names[0] == "vendor"
    np.testing.assert_array_equal(found.X[:, 0], VENDOR)
    assert "wind (3 before)" in found.names


# ---- a bad base ------------------------------------------------------------------------------------------------------

SPIKES = np.where(np.arange(N) % 60 == 59, 1e6, VENDOR)
BAD = {
    "constant": (np.full(N, 7.0), "has had one value so far, 7"),
    "huge": (np.full(N, 1e12), "has had one value so far"),
    "noise": (1e3 * RNG.normal(size=N), "check its units"),
    "in other units": (1e-3 * VENDOR, "check its units"),
    "spikes": (SPIKES, "is far outside the targets in 6 of the first"),
    "gaps": (np.where(RNG.random(N) < 0.3, np.nan, VENDOR), ""),
    "rare": (np.where(RNG.random(N) < 0.8, np.nan, VENDOR), "has no value in 8"),
    "never": (np.full(N, np.nan), "had no value in 400 rows"),
    "ends": (np.where(np.arange(N) < 450, VENDOR, np.nan), ""),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_base_is_named_and_does_no_harm(name):
    base, expected = BAD[name]
    found, said = evaluated("vendor", rows(base))
    without, _ = evaluated(None)
    assert expected in said
    assert bool(said) == bool(expected)
    assert error(found) < 1.05 * error(without)


def test_a_base_that_is_the_target_is_named():
    _, said = evaluated("vendor", rows(Y))
    assert "is the target almost exactly" in said


def test_a_fleet_of_many_keys_does_not_warn_of_each():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = [row | {"zone": "a"} for row in rows(np.full(N, 7.0))]
        Fleet(key="zone", target="mw", time="when", base="vendor", lags=1, effort="low").evaluate(table[:500])


@pytest.mark.parametrize(
    ("given", "table", "message"),
    [
        ({"base": "nobody"}, rows(), "base is 'nobody', but there is no such column: there are 'when', 'mw'"),
        ({"base": "mw"}, rows(), "base must not be 'mw', which is the target"),
        ({"base": "vendor"}, rows(np.array(["high"] * N)), "base must hold numbers; column 'vendor' holds text"),
        ({"base": 1}, rows(), "base must be the name of a column"),
        ({"base": -1}, rows(), "base must be a whole number"),
        ({"base": 2.5}, rows(), "base must be a whole number"),
    ],
)
def test_what_cannot_be_a_base_is_refused(given, table, message):
    with pytest.raises(ValueError, match=message):
        Online(target="mw", time="when", lags=1, **given).evaluate(table)


def test_what_cannot_be_a_base_is_refused_in_arrays():
    X = np.column_stack([WIND, VENDOR])
    with pytest.raises(ValueError, match="index of one of the 2 inputs; got 2"):
        Online(base=2).evaluate(X, Y)
    with pytest.raises(ValueError, match="since base names a column"):
        Online(base="vendor").evaluate(X, Y)
    with pytest.raises(ValueError, match="base is that of one target; got 2 outputs"):
        Online(base=0).evaluate(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="base is the forecast of one target; got 2 outputs"):
        recommended(X, np.column_stack([Y, Y]), base=0)
    with pytest.raises(ValueError, match="base must be the index of one of the 2 inputs; got True"):
        recommended(X, Y, base=True)
    with pytest.raises(ValueError, match="effort, support and base belong to the default model"):
        Online(LastKMean(), base=0)


# ---- one setting behind every door -----------------------------------------------------------------------------------


def test_every_door_gives_the_same_numbers(tmp_path, monkeypatch):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from driftgp.cli import app

    monkeypatch.chdir(tmp_path)
    mean = evaluated("vendor")[0].mean
    asked = {"target": "mw", "time": "when", "features": ["wind"], "others": "ignored", "lags": [1], "effort": "low"}
    fleet = Fleet(key="zone", base="vendor", **asked).evaluate([row | {"zone": "a"} for row in rows()])
    np.testing.assert_array_equal(fleet.mean, mean)
    lines = [
        f"{t},{y!r},{w!r},{v!r}" for t, y, w, v in zip(HOURS, *(a.tolist() for a in (Y, WIND, VENDOR)), strict=True)
    ]
    Path("rows.csv").write_text("\n".join(["when,mw,wind,vendor", *lines, ""]))
    options = ["--target", "mw", "--features", "wind", "--others", "ignored", "--lags", "1,", "--no-calendar"]
    options += ["--effort", "low", "--base", "vendor", "--output", "out.csv", "--checkpoint", "run.gp"]
    said = CliRunner().invoke(app, ["run", "rows.csv", *options, "--json"])
    assert said.exit_code == 0, said.output
    with Path("out.csv").open() as output:
        made = [float(row["mean"]) for row in csv.DictReader(output)]
    np.testing.assert_allclose(made, mean, rtol=1e-12)
    total = json.loads(said.stdout)[-1]
    assert total["rmse_base"] == pytest.approx(np.sqrt(np.mean((VENDOR - Y)[1:] ** 2)))
    assert total["inputs"]["Base"].startswith("vendor")
    page = CliRunner().invoke(app, ["inspect", "run.gp"], env={"COLUMNS": "80"}).stdout
    assert "of vendor by itself" in page
    assert all(len(line) <= 80 for line in page.splitlines())
    table = CliRunner().invoke(app, ["run", "rows.csv", *options[:-4]], env={"COLUMNS": "80"}).stdout
    assert "vendor (--base)" in table
    assert all("fewest inside " in table.partition(name)[2].splitlines()[0] for name in ("By hour", "By forecast"))


def test_by_arrays_and_by_names_are_the_same_stream():
    X = np.column_stack([VENDOR, WIND])
    mean = Online(base=0, effort="low").evaluate(X, Y).mean
    named = [{"wind": w, "vendor": v} for v, w in X.tolist()]
    np.testing.assert_array_equal(Online(base="vendor", effort="low").evaluate(named, Y).mean, mean)


@pytest.mark.filterwarnings("ignore:base")
def test_a_stream_with_a_base_goes_on_after_a_reload(tmp_path):
    asked = {"target": "mw", "time": "when", "base": "vendor", "lags": [1], "others": "ignored", "effort": "low"}
    whole, table = Online(**asked), rows(SPIKES)
    expected = whole.evaluate(table).mean
    for cut in (30, 450):
        first = Online(**asked)
        first.evaluate(table[:cut])
        first.save(tmp_path / "stream.gp")
        again = Online.load(tmp_path / "stream.gp")
        assert again.settings.base == "vendor"
        np.testing.assert_array_equal(again.evaluate(table[cut:]).mean, expected[cut:])


def test_adapters_have_the_setting():
    sklearn = pytest.importorskip("driftgp.sklearn")
    X = np.column_stack([VENDOR, WIND])
    model = sklearn.AGPRegressor(base=0, effort="low").fit(X[:600], Y[:600])
    online = Online(base=0, effort="low")
    online.update(X[:600], Y[:600])
    np.testing.assert_array_equal(model.predict(X[600:]), online.predict(X[600:]).mean)


def test_a_comparison_has_a_line_for_the_base_alone():
    found = backtest(
        rows(), methods=["persistence"], target="mw", time="when", base="vendor", lags=[1], effort="low", warmup=200
    )
    assert found["base"].rmse == pytest.approx(np.sqrt(np.mean((VENDOR - Y)[200:] ** 2)))
    assert found["driftgp"].rmse < found["base"].rmse
    law = found.laws["driftgp"]
    low, high = law.interval(0.95)
    inside, hour = ((low <= Y[200:]) & (Y[200:] <= high)), np.arange(200, N) % 24
    expected = [[(hour == h).sum(), inside[hour == h].mean()] for h in range(24)]
    np.testing.assert_allclose(found.by_hour["driftgp"], expected)
    assert found.by_decile["persistence"][:, 0].sum() == N - 200
    assert {"by_hour", "by_decile"} <= set(found.to_json()["methods"][0])


def test_settings_hold_the_base():
    assert settings(base="vendor").to_json()["base"] == "vendor"
    assert settings(base="vendor").changed(lags=3).base == "vendor"


# ---- the two wrappers ------------------------------------------------------------------------------------------------

X2 = np.column_stack([WIND, VENDOR])


def test_a_model_around_a_forecast_is_the_model_of_what_is_left():
    around, plain = Around(Lagged(), column=1), Lagged()
    one, other = around.init(X2[:99], Y[:99]), plain.init(X2[:99], Y[:99] - VENDOR[:99])
    here, there = around.predict(one, X2[99:]), plain.predict(other, X2[99:])
    np.testing.assert_allclose(here.mean, there.mean + VENDOR[99:])
    np.testing.assert_allclose(here.variance, there.variance)


@pytest.mark.parametrize("batch", [0, 100])
def test_the_units_of_the_stream_change_nothing(batch):
    model = Standardize(Around(Lagged(), column=1), adapt=0.99)
    scale = np.array([1.0, 1e3])
    ours, theirs = model.init(X2[:batch], Y[:batch]), model.init(scale * X2[:batch], 1e3 * Y[:batch])
    ours = model.update(ours, X2[batch:300], Y[batch:300])
    theirs = model.update(theirs, scale * X2[batch:300], 1e3 * Y[batch:300])
    mean = model.predict(ours, X2[300:]).mean
    np.testing.assert_allclose(model.predict(theirs, scale * X2[300:]).mean, 1e3 * mean, rtol=1e-6)
    assert np.abs(mean - Y[300:]).mean() < 0.9 * np.abs(VENDOR - Y)[300:].mean()


def test_units_told_before_the_start_are_those_of_a_later_change():
    model = Around(LastKMean(k=3), column=0)
    units = Units(np.array([2.0, 0.0]), np.array([4.0, 1.0]), np.array([3.0]), np.array([5.0]))
    view = [model.view(np.zeros((), model.record_dtype(2, 1))) for _ in range(2)]
    model.expect_units(view[0], units)
    model.start(view[0], units.inputs(X2[:9]), units.targets(Y[:9, None]))
    model.start(view[1], X2[:9], Y[:9, None])
    model.rescale(view[1], units)
    made = [model.forecast(each, units.inputs(X2[9:12]))["mean"] for each in view]
    np.testing.assert_allclose(*made)
    np.testing.assert_allclose(view[0].slope, 4.0 / 5.0)


def test_a_forecast_beyond_its_reach_counts_as_at_it():
    model = Around(LastKMean(k=1), column=0, reach=10.0)
    state = model.init([[1.0], [2.0]], [1.0, 2.0])
    assert model.predict(state, [[1e9]]).mean[0] == 10.0


def test_only_a_normal_model_goes_around_a_forecast():
    with pytest.raises(ValueError, match="model must predict a normal distribution; Calibrated does not"):
        Around(Calibrated(Lagged()), column=0)
    with pytest.raises(ValueError, match="column must name one of the 2 inputs; got 2"):
        Around(Lagged(), column=2).init(X2, Y)
    with pytest.raises(ValueError, match="must take inputs that are NaN; Lagged does not"):
        Credible(Lagged(), column=0)


def test_a_lone_fault_is_a_gap_and_what_lasts_is_believed():
    model = Credible(Gaps(Lagged()), column=1)
    state = model.init(X2[:50], Y[:50])
    gap = model.predict(state, [[1.0, np.nan]]).mean
    for wild in (1e6, -1e6):
        assert model.predict(state, [[1.0, wild]]).mean == gap
    for _ in range(2):
        state = model.update(state, [1.0, 500.0], 90.0)
    assert state.doubts == 2
    assert state.inner.filled.tolist() == [0, 2]
    state = model.update(state, [1.0, 500.0], 90.0)
    assert state.inner.filled.tolist() == [0, 2]
    assert state.span.high[0] == 500.0
