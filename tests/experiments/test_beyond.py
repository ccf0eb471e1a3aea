"""`python -m experiments beyond`: the streams, that each has the models meant for it, and what is printed."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from driftgp import AGP
from driftgp.data import Stream, toy_stream
from driftgp.wrappers import Bank, Calibrated, Guarded, Standardize
from experiments import beyond, beyond_streams, reproduce, store
from experiments.__main__ import app
from experiments.beyond import Beyond
from experiments.further import Further
from experiments.tasks import Selection
from experiments.trials import Trials


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    return CliRunner().invoke(app, ["beyond", *arguments])


def days(samples: int = 400) -> Stream:
    times = np.datetime64("2020-02-25") + np.arange(samples)
    return Stream(
        "CT", X=np.zeros((samples, 2)), y=np.zeros(samples), warmup=90, unit="GW", times=times, inputs=("a", "b")
    )


def test_the_calendar_tells_all_days_of_the_week_apart_and_knows_the_target_alone():
    stream = beyond_streams.with_calendar(days())
    week = stream.X[:, 2:8]
    np.testing.assert_allclose(week[:-7], week[7:], atol=1e-9)
    assert np.linalg.matrix_rank(np.column_stack([week[:7], np.ones(7)])) == 7
    assert stream.name == "CT calendar"
    np.testing.assert_allclose(stream.X[5, 8:], stream.X[371, 8:], atol=0.02)  # a year later


def test_a_missing_count_is_carried_as_an_input():
    filled = beyond_streams._filled(np.array([1.0, np.nan, np.nan, 4.0]))
    assert filled.tolist() == [1.0, 1.0, 1.0, 4.0]


def test_the_defaults_see_nothing_but_the_warm_up():
    """The same model, bit for bit, whatever comes later."""
    stream = toy_stream(0)
    other = Stream("toy", X=stream.X, y=np.where(np.arange(501) < 100, stream.y, 1e3), warmup=100)
    model, same = (beyond._defaults(each) for each in (stream, other))
    assert store.keys(model)(_task(stream)) == store.keys(same)(_task(stream))
    assert isinstance(model, Guarded)
    assert isinstance(model.model, Calibrated)


def _task(stream):
    return beyond_streams.Task("toy", (1,), stream)


def test_the_bank_s_members_are_the_rows_with_one_rate():
    stream = toy_stream(0)
    bank = beyond.members(stream)
    assert isinstance(bank, Bank)
    # all of the defaults but guard and calibration
    assert beyond._bank(stream) == beyond._defaults(stream).model.model
    for k, member in enumerate(bank.models):
        single = beyond._single(k)(stream)
        assert isinstance(single, Standardize)
        assert single.model.model.model == member


def test_every_stream_has_the_paper_s_settings_for_it():
    build = beyond._by_stream("fast-AGP")
    assert build(toy_stream(0)).window == 100
    assert build(days()).window == 90
    names = [method.name for method in Beyond(Selection()).methods()]
    assert names[0] == beyond.DEFAULTS
    assert not any("," in name for name in names)  # `--methods` has commas between them
    assert {"AGP", "fast-AGP", "persistence", "KRLS-T"} <= set(names)
    pytest.importorskip("jax")
    for name in names[names.index("persistence") :]:
        for stream in (toy_stream(0), days()):
            beyond._by_stream(name)(stream)


def test_every_trial_changes_one_member_of_the_bank():
    stream = toy_stream(0)
    models = {method.name: method.build(stream) for method in Trials(Selection()).methods()}
    assert not any("," in name for name in models)
    keys = {store.keys(model)(_task(stream)) for model in models.values()}
    assert len(keys) >= len(models) - 2  # a window of 100 (or 400) and a linear part may be the defaults' own
    member = beyond.members(stream).models[1]
    assert store.keys(models["defaults"].model.model.model)(_task(stream)) == store.keys(member)(_task(stream))


def test_trials_are_asked_for_by_their_names():
    asked = reproduce.chosen("trials", Selection(), ("no steps",))
    assert [method.name for method in asked[0].wanted(("No steps",))] == ["no steps"]
    with pytest.raises(ValueError, match="methods must be among"):
        reproduce.chosen("trials", Selection(), ("fast-AGP",))


@pytest.mark.parametrize(("above", "further"), [(0.0, True), (1e9, False)])
def test_a_further_step_is_taken_only_when_it_is_due(above, further):
    stream, alone = toy_stream(0), AGP(inducing=4, window=12, warmup_iterations=2)
    model = Further(alone, above)
    X, y = stream.X, stream.y
    state = model.update(model.init(X[:12], y[:12]), X[12], y[12])
    plain = alone.update(alone.init(X[:12], y[:12]), X[12], y[12])
    same = np.allclose(state.inner.noise, plain.noise, rtol=1e-9)
    assert same is not further


def test_a_run_prints_every_score(tmp_path):
    asked = ("--series", "toy", "--seeds", "2", "--methods", "persistence", "--output", str(tmp_path), "--jobs", "1")
    result = run(*asked, "--json")
    assert result.exit_code == 0, result.output
    (line,) = json.loads(result.stdout)
    assert {"series", "method", "mse", "coverage_50", "coverage_99", "width", "nlpd", "crps", "us_per_step"} <= set(
        line
    )
    assert line["series"] == "toy"
    assert 0.0 < line["coverage_50"] < line["coverage_80"] < line["coverage_95"] <= line["coverage_99"] <= 1.0
    text = (tmp_path / "beyond.md").read_text()
    assert "### toy" in text
    assert "| persistence |" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--series", "moon"), "series must be among toy, CT"), (("--methods", "magic"), "methods must be among")],
)
def test_refuses_what_there_is_not(arguments, message):
    result = run(*arguments)
    assert message in str(result.exception)


def test_series_are_those_of_beyond_alone():
    result = CliRunner().invoke(app, ["toy", "--series", "CT"])
    assert "series are those of beyond" in str(result.exception)


def test_all_is_all_of_the_paper():
    assert Beyond not in {type(experiment) for experiment in reproduce.chosen("all", Selection(), None)}


def test_results_of_earlier_days_can_still_be_read(tmp_path):
    row = {"key": "k", "series": "toy", "output": 1, "seconds": 1.0, "mse": 0.1, "coverage": 0.9, "mape": 1.0}
    row |= {"nlpd": 0.0, "y": [0.0], "mean": [0.0], "std": [1.0]}
    schema = {name: kind for name, kind in store.SCHEMA.items() if name not in store.LATER}
    pl.DataFrame([row], schema=schema).write_parquet(tmp_path / "old.parquet")
    found = store.read(tmp_path, ["k"])
    assert found["mse"].to_list() == [0.1]
    assert found["crps"].to_list() == [None]
