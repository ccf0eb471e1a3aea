"""`driftgp run` and what is under it: rows to predictions, through stops, gaps and rubbish."""

import contextlib
import csv
import gzip
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from driftgp import Forecaster, Online, checkpoint, cli
from driftgp.alarms import KINDS
from driftgp.base import sealed
from driftgp.base.wording import figure
from driftgp.members import Persistence
from driftgp.models.model import Model
from driftgp.plots.run import worst_first
from driftgp.runs import Run, read_checkpoint, read_config, settings_from
from driftgp.runs import models as named_models
from driftgp.runs.settings import MODELS
from driftgp.stream.running_scores import means
from driftgp.tables import predictions
from driftgp.tables.rows import csv_rows, open_rows

PNG = b"\x89PNG\r\n\x1a\n"
NAIVE = {"target": "y", "model": "persistence", "others": "ignored", "lags": 2, "calendar": False, "warmup": 5}
SMALL = {"target": "y", "kernel": "se", "inducing": 4, "window": 12, "warmup": 12, "lags": 2, "calendar": False}
DEFAULT = {"target": "y", "lags": 2, "calendar": False, "effort": "low"}
IN_JAX = ("exact", "fitc", "svgp", "w-vsgp", "agp-vsi")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """Run in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def table(rows=80, keys=1, seed=0, gaps=()):
    """CSV text: a time, an input, a target, and a key for several series; `gaps` are rows without the input."""
    rng = np.random.default_rng(seed)
    lines = ["when,x,y,key"]
    for t in range(rows):
        x, when = math.sin(t / 5.0), np.datetime64("2024-01-01T00", "h") + t
        y = 10.0 + 2.0 * x + 0.1 * rng.normal() + 5.0 * (t % keys)
        lines.append(f"{when}:00,{'' if t in gaps else f'{x:.4f}'},{y:.4f},k{t % keys}")
    return "\n".join(lines) + "\n"


def rows_of(text):
    return csv_rows("table.csv", io.BytesIO(text.encode()))


class Answer(NamedTuple):
    """What is said of one row."""

    line: int
    time: str
    key: str
    mean: float
    low: float
    high: float
    actual: float
    flags: str


def answers_of(run):
    rows = []
    for block in run.answers():
        columns = (block.lines.tolist(), block.times, block.keys, block.mean, block.low, block.high, block.actual)
        rows += [Answer(*row) for row in zip(*columns, block.flags, strict=True)]
    return rows


def summary(run):
    """The scores of each series."""
    return {key: means(run.monitor.of(key), run.monitor.labels) for key in run.monitor.places}


def numbers(answers):
    return np.array([[answer.mean, answer.low, answer.high] for answer in answers])


def run(*arguments, given=None):
    return CliRunner().invoke(cli.app, ["run", *map(str, arguments)], input=given)


def refused(monkeypatch, capsys, *arguments):
    """What is said on standard error when the command is refused, which is with exit code 2 and no traceback."""
    monkeypatch.setattr(sys, "argv", ["driftgp", "run", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert "Traceback" not in said
    return said


# ---- predictions -----------------------------------------------------------------------------------------------------


def made(options, text, **other):
    """A run that has not begun."""
    how = {name: other.pop(name) for name in ("live", "saved", "block") if name in other}
    return Run(settings_from(options | other), rows_of(text), **how)


def small(text, **other):
    return made(SMALL, text, **other)


@pytest.mark.parametrize("options", [SMALL, DEFAULT | {"features": "x"}, NAIVE | {"missing": "skip", "features": "x"}])
@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("keys", [1, 3])
def test_how_rows_are_cut_into_blocks_changes_no_bit(options, horizon, keys):
    text, options = table(150, keys=keys, gaps={60}), options | {"horizon": horizon, "key": "key"}
    whole = made(options, text)
    expected = answers_of(whole)
    warm = [answer for answer in expected if "cold" not in answer.flags]
    assert len(warm) >= len(expected) - horizon * keys
    assert np.isfinite(numbers(warm)).all()
    for block in (1, 7):
        other = made(options, text, block=block)
        assert_same(expected, answers_of(other))
        assert whole.to_bytes() == other.to_bytes()


def test_a_live_stream_is_answered_as_a_file_is():
    options = SMALL | {"features": "x", "others": "ignored"}
    assert_same(answers_of(made(options, table(80))), answers_of(made(options, table(80), live=True)))


def assert_same(answers, others):
    np.testing.assert_array_equal(numbers(answers), numbers(others))
    assert [answer.flags for answer in answers] == [answer.flags for answer in others]


@pytest.mark.parametrize("stop", [0, 3, 9, 15, 31])
@pytest.mark.parametrize("options", [SMALL, DEFAULT])
@pytest.mark.parametrize("horizon", [1, 2])
def test_resumes_bit_for_bit(options, stop, horizon):
    text, options = (
        table(90, keys=2, gaps={40, 41}),
        options | {"key": "key", "horizon": horizon, "features": "x"},
    )
    uninterrupted = made(options, text)
    whole = answers_of(uninterrupted)
    begun = made(options, "".join(text.splitlines(keepends=True)[: 1 + 2 * stop + 1]))
    first = answers_of(begun)
    resumed = made(options, text, saved=read_checkpoint(begun.to_bytes()))
    assert_same(whole, first + answers_of(resumed))
    assert resumed.before == 2 * stop + 1
    assert summary(resumed) == summary(uninterrupted)


def test_each_key_is_a_run_of_its_own():
    lines = table(90, keys=2).splitlines(keepends=True)
    together = answers_of(small("".join(lines), key="key", horizon=2, features="x"))
    alone = answers_of(small("".join([lines[0], *lines[2::2]]), key="key", horizon=2, features="x"))
    own = [answer for answer in together if answer.key == "k1"]
    np.testing.assert_array_equal(numbers(own), numbers(alone))


def test_many_keys_outgrow_no_stack():
    answers = answers_of(naive(table(400, keys=20), key="key"))
    alone = answers_of(
        naive("\n".join(table(400, keys=20).splitlines()[:1] + table(400, keys=20).splitlines()[20::20]))
    )
    own = [answer for answer in answers if answer.key == "k19"]
    np.testing.assert_array_equal(numbers(own), numbers(alone))


def test_a_gap_in_an_input_is_carried_over_and_flagged():
    answers = answers_of(small(table(60, gaps={40})))
    assert answers[40].flags == ""  # the column enters late
    answers = answers_of(small(table(60, gaps={40}), features="x"))
    assert answers[40].flags == "carried"
    assert np.isfinite(numbers(answers[20:])).all()


@pytest.mark.parametrize("options", [SMALL, DEFAULT])
def test_a_prediction_follows_the_stream(options):
    run = made(options, table(300), features="x")
    answers_of(run)
    scores = summary(run)[None]
    assert scores["rmse"] < 0.32
    assert scores["coverage"] > 0.85


# ---- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"features": "x"}, {"lags": [3, 24], "calendar": True, "horizon": 3}])
def test_a_run_says_what_online_says_bit_for_bit(options):
    """One default, and one stream: what `driftgp run` says is what the library says of the same rows."""
    text = table(120)
    given = {"target": "y", "lags": 2, "calendar": False, "effort": "low"} | options
    answers = answers_of(Run(settings_from(given), rows_of(text)))
    frame = pl.read_csv(io.StringIO(text), try_parse_dates=True)
    python = {name: value.split(",") if name == "features" else value for name, value in given.items()}
    said = Online(time="when", **python).evaluate(frame)
    np.testing.assert_array_equal(numbers(answers), np.stack([said.mean, *said.interval(0.95)], 1))


@pytest.mark.parametrize(
    "setting",
    [
        {"window": 50},
        {"inducing": 5},
        {"kernel": "se"},
        {"half_life": "7d"},
        {"warmup": 20},
        {"standardise": False},
        {"calibrate": False},
    ],
)
def test_a_setting_that_the_default_has_not_chooses_agp_or_is_refused(setting):
    assert settings_from({"target": "y"}).model == "default"
    assert settings_from({"target": "y"} | setting).model == "agp"
    with pytest.raises(ValueError, match="is no setting of the default model"):
        settings_from({"target": "y", "model": "default"} | setting)


def test_a_model_by_name_says_what_it_was_told():
    settings = settings_from({"target": "y", "model": "hybrid", "window": 30})
    assert (settings.kernel, settings.inducing, settings.window) == ("linear + se", 30, 30)
    assert settings == settings_from({name: v for name, v in settings.to_json().items() if v is not None})
    with pytest.raises(ValueError, match=r"inducing must be at most window \(30\); got 31"):
        settings_from({"target": "y", "window": 30, "inducing": 31})


@pytest.mark.parametrize("model", MODELS)
def test_every_model_that_has_a_name_can_be_built(model):
    if model in IN_JAX:
        pytest.importorskip("jax")
    assert ("default", *named_models._BUILDERS) == MODELS
    if model != "default":
        built = named_models.ByName(settings_from({"target": "y", "model": model}), 0.9).model(3)
        assert isinstance(built, Model)


def test_a_setting_of_the_default_is_refused_for_a_model_by_name():
    for setting in ({"effort": "low"}, {"support": "positive"}):
        with pytest.raises(ValueError, match="is a setting of the default model, and the model is agp"):
            settings_from({"target": "y", "model": "agp"} | setting)
    with pytest.raises(ValueError, match="weighs several rates of forgetting"):
        settings_from({"target": "y", "model": "default", "half_life": "7d"})


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [1, 2])
@pytest.mark.parametrize("model", IN_JAX)
def test_a_rival_runs_stops_and_goes_on(model, horizon):
    pytest.importorskip("jax")
    text, options = table(50), SMALL | {"model": model, "horizon": horizon}
    whole = answers_of(made(options, text))
    begun = made(options, "".join(text.splitlines(keepends=True)[:31]))
    first = answers_of(begun)
    resumed = made(options, text, saved=read_checkpoint(begun.to_bytes()))
    assert_same(whole, first + answers_of(resumed))


SCRIPT = """
import sys
sys.modules |= dict.fromkeys(("jax", "equinox", "optax"))  # as if they were not installed
from driftgp.cli import main
main()
"""


@pytest.mark.parametrize("model", ["default", "hybrid", "mean", "svgp"])
def test_only_a_rival_asks_for_jax_and_says_in_one_sentence_what_to_install(file, model):
    command = [sys.executable, "-c", SCRIPT, "run", file.name, "--target", "y", "--model", model]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if model == "svgp":
        assert told.returncode == 2
        assert told.stderr.strip() == 'Error: model SVGP needs jax: pip install "driftgp[rivals]"'
    else:
        assert told.returncode == 0, told.stderr


# ---- time and gaps ---------------------------------------------------------------------------------------------------


def naive(text, **other):
    return Run(settings_from(NAIVE | other), rows_of(text))


def test_nothing_later_than_the_horizon_reaches_a_prediction():
    lines = table(60).splitlines()
    before = answers_of(naive("\n".join(lines), horizon=4))
    lines[-4:] = [line.replace(line.split(",")[2], "1e6") for line in lines[-4:]]
    after = answers_of(naive("\n".join(lines), horizon=4))
    np.testing.assert_array_equal(numbers(before), numbers(after))
    assert before[30].mean == before[26].actual


def test_a_missing_target_is_time_that_passes():
    lines = table(40).splitlines()
    lines[21] = ",".join([*lines[21].split(",")[:2], "", "k0"])
    answers = answers_of(naive("\n".join(lines)))
    assert "missing" in answers[20].flags
    assert answers[21].mean == answers[19].actual
    assert math.isfinite(answers[20].mean)


def test_a_half_life_in_hours_is_one_in_rows_where_a_row_is_an_hour():
    hours, rows = naive(table(60), half_life="10h"), naive(table(60), half_life="10", time="")
    np.testing.assert_allclose(numbers(answers_of(hours)), numbers(answers_of(rows)), rtol=1e-12)


def test_time_without_rows_is_time_all_the_same():
    lines = table(60).splitlines()
    gap = [*lines[:40], *(line.replace("2024-01", "2024-02") for line in lines[40:])]
    steady, silent = (answers_of(naive("\n".join(text), half_life="10h", features="x")) for text in (lines, gap))
    assert silent[38].high - silent[38].low == steady[38].high - steady[38].low
    assert silent[41].high != steady[41].high  # after a month the errors before it hardly count


def test_a_row_that_comes_late_is_flagged_and_neither_learned_nor_scored():
    lines = table(30).splitlines()
    lines[20], lines[21] = lines[21], lines[20]
    run = naive("\n".join(lines))
    answers = answers_of(run)
    assert [t for t, answer in enumerate(answers) if "late" in answer.flags] == [20]
    assert answers[21].mean == answers[19].actual  # the row in between was not learned
    assert run.monitor.in_all()["scored"] == 30 - 2


def test_one_stamp_of_2099_blocks_nothing():
    lines = table(60).splitlines()
    lines[31] = lines[31].replace("2024", "2099")
    answers = answers_of(naive("\n".join(lines)))
    assert answers[30].flags == "jump"
    assert not any("late" in answer.flags for answer in answers)


def test_a_row_with_a_gap_is_not_learned_where_that_is_the_policy():
    answers = answers_of(naive(table(40, gaps={30}), missing="skip", features="x"))
    assert "skipped" in answers[30].flags
    assert answers[31].mean == answers[29].actual
    with pytest.raises(ValueError, match="line 32, column 'x' is blank: expected a number"):
        answers_of(naive(table(40, gaps={30}), missing="refuse", features="x"))


def test_the_first_row_is_predicted_and_says_that_nothing_was_known():
    answers = answers_of(naive(table(10), warmup=0, lags=0, calendar=True))
    assert [answer.flags for answer in answers[:3]] == ["cold", "", ""]
    assert np.isfinite(numbers(answers)).all()


def test_a_date_and_its_hours_are_a_time():
    text = "day,hour,y\n" + "".join(f"2024-01-0{1 + t // 24},{t % 24 + 1},{t}\n" for t in range(48))
    answers = answers_of(naive(text, time="day,hour", calendar=True))
    assert [answers[t].time for t in (0, 23)] == ["2024-01-01 01:00:00", "2024-01-02 00:00:00"]


def test_days_are_written_without_an_hour_and_have_no_hour_of_day():
    text = "day,y\n" + "".join(f"{d:02d}.{m:02d}.2024,{d}\n" for m in (1, 2, 3) for d in range(1, 29))
    run = Run(settings_from({"target": "y", "effort": "low"}), rows_of(text))
    assert answers_of(run)[0].time == "2024-01-01"
    assert run.stream.settings.calendar == ("week",)


def test_other_columns_enter_late_and_the_stream_knows_which():
    run = Run(settings_from({"target": "y", "model": "persistence", "features": "x"}), rows_of(table(50)))
    answers_of(run)
    assert run.facts.written.time == ("when",)
    assert (run.stream.streams.plan.names, run.stream.streams.plan.known) == (("x", "key"), 1)


def test_a_series_of_one_column_just_works():
    rows = 300
    y = 10.0 + np.sin(np.arange(rows) * 2.0 * np.pi / 12.0)
    run = Run(settings_from({"target": "y", "effort": "low"}), rows_of("y\n" + "".join(f"{v:.5f}\n" for v in y)))
    answers_of(run)
    assert run.stream.settings.lags == (1, 2, 3, 12)
    assert summary(run)[None]["rmse"] < 0.5 * summary(run)[None]["rmse_0"]


# ---- labels that come late, and intervals ----------------------------------------------------------------------------


def autoregression(rows, seed=0):
    rng, y = np.random.default_rng(seed), np.zeros(rows)
    for t in range(1, rows):
        y[t] = 0.97 * y[t - 1] + rng.normal()
    return "y\n" + "".join(f"{value:.5f}\n" for value in y)


@pytest.mark.parametrize("horizon", [1, 24])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_hold_their_share_however_late_labels_come(horizon, level):
    runner = naive(autoregression(2500), horizon=horizon, level=level)
    shown = answers_of(runner)[500:]
    assert abs(np.mean([answer.low <= answer.actual <= answer.high for answer in shown]) - level) < 0.025
    assert runner.monitor.in_all()["alarms"] <= 1  # errors that last a horizon are no drift


@pytest.mark.slow
def test_intervals_of_the_default_hold_their_share_a_day_ahead():
    shown = answers_of(made({"target": "y"}, autoregression(3000), lags=2, horizon=24))[500:]
    assert abs(np.mean([answer.low <= answer.actual <= answer.high for answer in shown]) - 0.95) < 0.025


def test_drift_far_ahead_still_raises_an_alarm():
    calm, wild = autoregression(1500).splitlines(), autoregression(1500, seed=1).splitlines()
    text = "\n".join([*calm, *(str(20.0 * float(value)) for value in wild[1:])])
    runner = naive(text, horizon=6)
    answers = answers_of(runner)
    flagged = [t for t, answer in enumerate(answers) for flag in answer.flags.split() if flag.startswith("alarm")]
    assert flagged
    assert min(flagged) >= 1500
    assert runner.monitor.in_all()["alarms"] == len(flagged) == len(runner.monitor.raised)


def test_a_long_calm_leaves_intervals_that_can_grow_again():
    rng = np.random.default_rng(0)
    y = np.concatenate([0.001 * rng.normal(size=1500), rng.normal(size=600)])
    shown = answers_of(naive("y\n" + "".join(f"{value}\n" for value in y)))[-400:]
    assert np.mean([answer.low <= answer.actual <= answer.high for answer in shown]) > 0.9


# ---- checkpoints -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped():
    runner = naive(table(30))
    answers_of(runner)
    return runner.to_bytes(output=17)


def test_a_checkpoint_knows_its_run(stopped):
    saved = read_checkpoint(stopped)
    assert (saved.rows, saved.output, saved.settings.lags) == (30, 17, 2)


@pytest.mark.parametrize("place", [0, 8, 12, 40, -40, -1])
def test_an_altered_checkpoint_is_refused(stopped, place):
    altered = bytearray(stopped)
    altered[place] ^= 1
    with pytest.raises(ValueError, match=r"stream|file|begins with"):
        read_checkpoint(bytes(altered))


@pytest.mark.parametrize("length", [0, 5, 13, 100, -1])
def test_a_truncated_checkpoint_is_refused(stopped, length):
    with pytest.raises(ValueError, match=r"stream|truncated|begins with"):
        read_checkpoint(stopped[:length])


@given(st.binary(max_size=200))
def test_bytes_that_are_no_checkpoint_are_refused(data):
    for attempt in (data, sealed.seal("run", {"extra": {"settings": {"target": "y"}}}), sealed.seal("fleet", {})):
        with pytest.raises(ValueError, match=r"stream|run|begins with|earlier version"):
            read_checkpoint(attempt)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def places(node):
    """Every container in a tree of JSON, with its keys."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in places(node[key])]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_forged_checkpoint_is_refused_or_gone_on_from(stopped, data):
    """Anything in the header replaced and sealed anew: a ValueError or a run, and no other error."""
    tree = sealed.opened("run", stopped)
    tree.pop("kind", None)
    for _ in range(data.draw(st.integers(1, 2))):
        node, key = data.draw(st.sampled_from(places(tree)))
        node[key] = data.draw(JSON)
    with contextlib.suppress(ValueError):
        saved = read_checkpoint(sealed.seal("run", tree))
        answers_of(Run(saved.settings, rows_of(table(40)), saved=saved))


def test_a_checkpoint_of_other_settings_or_rows_is_refused(stopped):
    saved = read_checkpoint(stopped)
    with pytest.raises(ValueError, match="lags is 3, and the checkpoint was made with 2"):
        Run(settings_from(NAIVE | {"lags": 3}), rows_of(table(40)), saved=saved)
    with pytest.raises(ValueError, match=r"the first 30 rows of .* are not those"):
        Run(settings_from(NAIVE), rows_of(table(40, seed=1)), saved=saved)
    with pytest.raises(ValueError, match=r"the first 30 rows of .* are not those"):
        Run(settings_from(NAIVE), rows_of(table(20)), saved=saved)
    with pytest.raises(ValueError, match="other columns"):
        Run(settings_from(NAIVE), rows_of(table(40).replace("key", "id")), saved=saved)


# ---- the command -----------------------------------------------------------------------------------------------------

COMMAND = ("--target", "y", "--model", "persistence", "--lags", "2", "--warmup", "5")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(table(60))
    return path


def test_the_command_writes_predictions_a_summary_and_a_picture(file, tmp_path):
    result = run(file, *COMMAND, "--output", "out.csv", "--plot", "out.png", "--json", "--calendar")
    assert result.exit_code == 0, result.output
    (summary,) = json.loads(result.stdout)
    assert (summary["rows"], summary["scored"]) == (60, 59)
    with (tmp_path / "out.csv").open() as lines:
        written = list(csv.DictReader(lines))
    assert list(written[0]) == ["line", "when", "mean", "std", "low", "high", "actual", "flags"]
    assert (written[0]["line"], written[0]["flags"]) == ("2", "cold")
    assert float(written[-1]["low"]) < float(written[-1]["mean"]) < float(written[-1]["high"])
    assert (tmp_path / "out.png").read_bytes().startswith(PNG)


def test_parquet_has_what_csv_has(file, tmp_path):
    for ending in ("csv", "parquet"):
        assert run(file, *COMMAND, "--output", f"out.{ending}").exit_code == 0
    parquet = pl.read_parquet("out.parquet")
    assert parquet.equals(pl.read_csv("out.csv", schema=parquet.schema).with_columns(pl.col("flags").fill_null("")))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.parquet", "table.csv"]


def test_a_parquet_file_and_a_gzipped_one_are_read_like_csv(file, tmp_path):
    pl.read_csv(file, try_parse_dates=True).write_parquet("table.parquet")
    (tmp_path / "table.csv.gz").write_bytes(gzip.compress(file.read_bytes()))
    found = []
    for name in ("table.csv", "table.parquet", "table.csv.gz"):
        with open_rows(name) as rows:
            found.append(numbers(answers_of(Run(settings_from(NAIVE | {"calendar": True}), rows))))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_standard_input_is_answered_line_by_line(file):
    result = run("-", *COMMAND, "--features", "x", given=file.read_text())
    run(file, *COMMAND, "--features", "x", "--output", "out.csv")
    assert result.stdout == Path("out.csv").read_text()


def test_each_answer_comes_before_the_next_question():
    asked, text = [], table(30).splitlines(keepends=True)

    def lines():
        for line in text:
            asked.append(line)
            yield line.encode()

    runner = Run(settings_from(NAIVE), csv_rows("a stream", lines(), live=True), live=True)
    for count, _ in enumerate(runner.answers(), start=1):
        assert len(asked) == 1 + count


def test_a_config_file_holds_the_same_settings_and_the_command_line_wins(file, tmp_path):
    (tmp_path / "run.toml").write_text('target = "y"\nmodel = "persistence"\nlags = [1, 24]\nwarmup = 30\n')
    result = run(file, "--config", "run.toml", "--lags", "1,2,12", "--json")
    assert json.loads(result.stdout)[0]["lags"] == [1, 2, 12]
    assert settings_from(read_config("run.toml")).lags == (1, 24)
    (tmp_path / "old.toml").write_text('target = "y"\ngroup = "key"\n')
    with pytest.raises(ValueError, match="'group' is no setting: it is called key"):
        settings_from(read_config("old.toml"))


def test_a_row_without_a_key_is_named_by_line_and_column(file, monkeypatch, capsys):
    lines = table(60).splitlines()
    lines[41] = "2024-01-03T00:00,1,1, null"
    file.write_text("\n".join(lines))
    said = refused(monkeypatch, capsys, file.name, *COMMAND, "--features", "x", "--key", "key")
    assert "table.csv, line 42, column 'key' is ' null': expected a key" in said


def test_several_series_are_shown_worst_first(file, tmp_path):
    file.write_text(table(120, keys=3))
    result = run(file, *COMMAND, "--key", "key", "--json", "--plot", "out.png", "--output", "out.csv")
    *series, total = json.loads(result.stdout)
    assert total["series"] == "all"
    assert {row["series"] for row in series} == {"k0", "k1", "k2"}
    assert series == sorted(series, key=lambda row: -row["relative"])
    assert (tmp_path / "out.png").read_bytes().startswith(PNG)
    shown = predictions.read_predictions(tmp_path / "out.csv", predictions.Header("when", "key"))
    shown.mean[shown.key == "k2"] += 100.0
    assert worst_first(shown, ["k0", "k1", "k2"])[0] == "k2"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("2024-01-03T00:00,many,1,k0", "table.csv, line 42, column 'x' is 'many': expected a number"),
        ("2024-01-03T00:00,1,inf,k0", "table.csv, line 42, column 'y' is 'inf': expected a number"),
        ("yesterday,1,1,k0", "table.csv, line 42, column 'when' is 'yesterday': expected a date"),
        ("2024-01-03T00:00,1,1", "table.csv, line 42 has 3 cells: expected 4"),
        ('2024-01-03T00:00,"1,1,k0', "table.csv, line 42 cannot be read as CSV"),
    ],
)
def test_a_malformed_row_is_named_by_line_and_column(file, monkeypatch, capsys, line, words):
    lines = table(60).splitlines()
    lines[41] = line
    file.write_text("\n".join(lines))
    assert words in refused(monkeypatch, capsys, file.name, *COMMAND, "--features", "x")
    if '"' not in line:  # an open quotation mark swallows all that follows
        result = run(file.name, *COMMAND, "--features", "x", "--malformed", "skip", "--json")
        assert json.loads(result.stdout)[0]["rows"] == 59
        assert words in result.stderr


@pytest.mark.parametrize("block", [1, None])
@pytest.mark.parametrize("bad", [2, 3, 31])
def test_a_malformed_row_is_refused_wherever_it_stands_in_a_block(block, bad):
    lines = table(60).splitlines()
    lines[bad - 1] = "2024-01-03T00:00,1,many,k0"
    with pytest.raises(ValueError, match=f"line {bad}, column 'y' is 'many': expected a number"):
        answers_of(made(NAIVE, "\n".join(lines) + "\n", block=block))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "z"), "no column 'z'; the columns are when, x, y, key"),
        (("--target", "y", "--kernel", "se +"), "kernel 'se +', column 5"),
        (("--target", "y", "--model", "oracle"), "model must be one of 'default', 'agp'"),
        (("--target", "y", "--model", "default", "--window", "9"), "window is no setting of the default model"),
        (("--target", "y", "--half-life", "soon"), "half-life must be a number of rows or a time such as 7d"),
        (("--target", "y", "--half-life", "7"), "give it one, such as 7d"),
        (("--target", "y", "--features", "y"), "features must not hold 'y', which is the target"),
        (("--target", "y", "--others", "ignored", "--lags", "0", "--no-calendar"), "there are no inputs"),
        (("--target", "y", "--effort", "most"), "effort must be one of"),
        (("--target", "y", "--warmup", "9", "--model", "default"), "predicts from the first row on"),
        (("--target", "y", "--frozen"), "--frozen predicts by a checkpoint, and none is named"),
        (("--target", "y", "--level", "1.5"), "level must lie strictly between 0 and 1"),
        (("--target", "y", "--calendar", "--time", ""), "the calendar needs a column of dates"),
        (("--target", "y", "--horizon", "5", "--lags", "3,9"), "at least the horizon"),
        (("--target", "y", "--holidays", "Easter"), "holidays must be dates, or the code of a country"),
        ((), "target is not given"),
    ],
)
def test_settings_that_make_no_sense_are_refused(file, monkeypatch, capsys, options, words):
    assert words in refused(monkeypatch, capsys, file.name, *options)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(
    st.binary(max_size=300)
    | st.lists(
        st.sampled_from(["y,x\n", "1,2\n", ",\n", '"', "\r", "\x00", "a", "é", "\ufeff", "1e999,2\n", "2024-01-01,3\n"])
    ).map(lambda parts: ("y,x\n" + "".join(parts)).encode())
)
def test_any_bytes_are_a_table_or_a_clean_error(data):
    with contextlib.suppress(ValueError):  # any other error is a fault of the reader
        answers = answers_of(Run(settings_from(NAIVE | {"features": "x"}), csv_rows("any.csv", io.BytesIO(data))))
        assert all(isinstance(answer.line, int) for answer in answers)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(
    st.text(max_size=100)
    | st.tuples(
        st.sampled_from(
            [
                "target",
                "lags",
                "level",
                "half-life",
                "time",
                "support",
                "effort",
                "kernel",
                "holidays",
                "calendar",
            ]
        ),
        st.sampled_from(
            ["1", "-1", "1e400", "nan", '"7d"', "[]", "[1, [2]]", "true", "2024-01-01", "{}", '""', "99999999999999"]
        ),
    ).map(" = ".join)
)
def test_any_config_is_settings_or_a_clean_error(tmp_path, text):
    path = tmp_path / "any.toml"
    path.write_text(text, encoding="utf-8")
    with contextlib.suppress(ValueError):
        settings_from({"target": "y"} | read_config(path))


def test_inspect_says_what_a_run_has_come_to(file, tmp_path):
    run(file, *COMMAND, "--checkpoint", "run.ckpt", "--output", "out.csv")
    told = CliRunner().invoke(cli.app, ["inspect", "run.ckpt", "--json", "--plot", "health.png"])
    assert told.exit_code == 0, told.output
    facts = json.loads(told.stdout)
    assert facts["rows_read"] == 60
    assert facts["run_scored"] == 59
    assert (tmp_path / "health.png").read_bytes().startswith(PNG)
    shown = CliRunner().invoke(cli.app, ["inspect", "run.ckpt"]).stdout
    parts = ["a run of 60 rows", "What it is", "What it has learned", "How it does", "What to look at"]
    assert [shown.index(part) for part in parts] == sorted(shown.index(part) for part in parts)


def test_inspect_says_what_a_saved_model_has_learned(tmp_path):
    online = Online()
    rng = np.random.default_rng(0)
    for _ in range(20):
        online.update({"temp": rng.normal(), "wind": rng.normal()}, rng.normal())
    online.save(tmp_path / "online.ckpt")
    shown = CliRunner().invoke(cli.app, ["inspect", str(tmp_path / "online.ckpt")]).stdout
    assert "temp, wind" in shown
    assert "from a Gaussian process on points that move (AGP)" in " ".join(shown.split())


def test_inspect_and_run_tell_of_the_same_alarms(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.stack([rng.normal(size=900) + 20.0 * (np.arange(900) > 600), rng.normal(size=900)])  # x leaves its range
    text = "".join(f"{x:.4f},{y:.4f}\n" for x, y in rows.T)
    (tmp_path / "jump.csv").write_text("x,y\n" + text)
    command = [
        "--target",
        "y",
        "--model",
        "mean",
        "--missing",
        "skip",
        "--checkpoint",
        "run.ckpt",
        "--output",
        "out.csv",
    ]
    run("jump.csv", *command)
    with (tmp_path / "out.csv").open(encoding="utf-8") as lines:
        flagged = [place for place, row in enumerate(csv.DictReader(lines)) if "alarm" in row["flags"]]
    facts = json.loads(CliRunner().invoke(cli.app, ["inspect", "run.ckpt", "--json"]).stdout)
    assert facts["run_alarms"] == len(flagged) > 0
    assert facts["since_alarm"] == 900 - flagged[-1]
    assert set(facts["evidence"]) == set(KINDS)
    assert 0.0 <= max(facts["evidence"].values()) < 1.0


def test_inspect_tells_the_members_of_the_default_apart(tmp_path):
    (tmp_path / "table.csv").write_text(table(60, gaps={50}))
    alone = ("--features", "x", "--others", "ignored", "--lags", "0", "--no-calendar")
    run("table.csv", "--target", "y", *alone, "--checkpoint", "run.ckpt")
    told = CliRunner().invoke(cli.app, ["inspect", "run.ckpt", "--json", "--plot", "health.png"])
    facts = json.loads(told.stdout)
    assert len(facts["members"]) == 7  # of which five have voices and twins
    assert len(facts["weights"]) > 7
    assert facts["filled"] == {"x": 1}
    assert (tmp_path / "health.png").read_bytes().startswith(PNG)
    shown = CliRunner().invoke(cli.app, ["inspect", "run.ckpt"]).stdout
    large = [member["weight"] for member in facts["members"] if member["weight"] >= 0.01]
    found = re.findall(r"Forecast +(\d+)% from", shown)
    assert sorted(map(int, found)) == sorted(round(100 * weight) for weight in large)


def test_inspect_says_what_the_default_has_learned(tmp_path):
    (tmp_path / "table.csv").write_text(table(60))
    run("table.csv", "--target", "y", "--lags", "2", "--checkpoint", "run.ckpt")
    facts = json.loads(CliRunner().invoke(cli.app, ["inspect", "run.ckpt", "--json"]).stdout)
    assert list(facts["importance"].values()) == sorted(facts["importance"].values(), reverse=True)
    assert sum(facts["importance"].values()) == pytest.approx(1.0)
    assert set(facts["importance"]) == set(facts["inputs"])
    assert sum(member["weight"] for member in facts["members"]) == pytest.approx(1.0)
    assert set(facts["members"][0]["relevance"]) == set(facts["inputs"])
    shown = CliRunner().invoke(cli.app, ["inspect", "run.ckpt"]).stdout
    assert "what matters most: " in shown
    assert "remembers about" in shown


def test_the_importance_of_the_inputs_is_drawn(tmp_path):
    (tmp_path / "table.csv").write_text(table(60))
    told = run("table.csv", "--target", "y", "--lags", "2", "--importance", "importance.png")
    assert told.exit_code == 0, told.output
    assert (tmp_path / "importance.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--model", "persistence", "--warmup", "5"), "leave out --model"),
        (("--key", "x"), "leave out --key"),
    ],
)
def test_importance_that_cannot_be_drawn_is_refused_with_a_remedy(tmp_path, monkeypatch, capsys, options, remedy):
    (tmp_path / "table.csv").write_text(table(60))
    said = refused(monkeypatch, capsys, "table.csv", "--target", "y", "--importance", "importance.png", *options)
    assert remedy in " ".join(said.split())
    assert not (tmp_path / "importance.png").exists()


def test_inspect_names_gaps_and_not_the_first_rows_that_have_no_lag(tmp_path):
    (tmp_path / "table.csv").write_text(table(60, gaps={40, 50}))
    run("table.csv", "--target", "y", "--features", "x", "--lags", "1,2", "--effort", "low", "--checkpoint", "run.ckpt")
    facts = json.loads(CliRunner().invoke(cli.app, ["inspect", "run.ckpt", "--json"]).stdout)
    shown = CliRunner().invoke(cli.app, ["inspect", "run.ckpt"]).stdout
    assert facts["filled"] == {"x": 2, "lag 1": 1, "lag 2": 2}
    assert "x was missing in 2 rows, where" in shown
    assert "lag 1 was missing" not in shown


def test_inspect_says_what_a_forecaster_has_learned_and_how_it_did(tmp_path):
    forecaster = Forecaster(6, target="y", time="t", key="shop", season=12)
    forecaster.update(
        [
            {"t": t, "shop": shop, "y": 10.0 * place + np.sin(2.0 * np.pi * t / 12.0)}
            for t in range(100)
            for place, shop in enumerate(("east", "west"))
        ]
    )
    forecaster.save(tmp_path / "sales.gp")
    shown = CliRunner().invoke(cli.app, ["inspect", "sales.gp"], env={"COLUMNS": "80"}).stdout
    whole = forecaster.scores().over(slice(None))
    words = " ".join(shown.split())
    assert shown.startswith("sales.gp: forecasts of the next 6 steps, from 200 rows")
    assert "Series 2, one for each shop" in words
    assert f"MAE {figure(whole.error[0])}; on the same rows: seasonal naive {figure(whole.naive[0])}" in words
    facts = json.loads(CliRunner().invoke(cli.app, ["inspect", "sales.gp", "--key", "west", "--json"]).stdout)
    assert facts["mae"] == pytest.approx(forecaster.scores("west").over(slice(None)).error[0])
    with pytest.raises(ValueError, match=r"key must be one of 'east', 'west'; got 'north'"):
        CliRunner().invoke(cli.app, ["inspect", "sales.gp", "--key", "north"], catch_exceptions=False)
    assert repr(forecaster) == "<Forecaster of the next 6 steps: 200 rows of 2 series>"


def test_inspect_says_of_any_other_file_that_it_is_none(tmp_path, monkeypatch, capsys):
    (tmp_path / "m.csv").write_text("a,b\n1,2\n")
    monkeypatch.setattr(sys, "argv", ["driftgp", "inspect", "m.csv"])
    with pytest.raises(SystemExit) as refusal:
        cli.main()
    assert refusal.value.code == 2
    assert "m.csv: " in capsys.readouterr().err


def test_a_frozen_run_predicts_as_the_stream_does_and_learns_nothing(tmp_path):
    text = table(200).splitlines(keepends=True)
    (tmp_path / "first.csv").write_text("".join(text[:151]))
    (tmp_path / "next.csv").write_text("".join([text[0], *text[151:]]))
    options = ("--target", "y", "--features", "x", "--lags", "24", "--effort", "low")
    assert run("first.csv", *options, "--checkpoint", "s.gp").exit_code == 0
    before = (tmp_path / "s.gp").read_bytes()
    told = run("next.csv", "--checkpoint", "s.gp", "--frozen", "--output", "out.csv")
    assert told.exit_code == 0, told.output
    assert (tmp_path / "s.gp").read_bytes() == before
    with (tmp_path / "out.csv").open() as lines:
        said = [float(row["mean"]) for row in csv.DictReader(lines)]
    expected = read_checkpoint(before).stream.predict(pl.read_csv("next.csv", try_parse_dates=True))
    assert len(said) == 50
    assert said == expected.mean.tolist()
    told = run("next.csv", "--checkpoint", "s.gp", "--frozen", "--horizon", "3")
    assert "leave it out with --frozen" in str(told.exception)


def test_a_frozen_run_says_which_rows_have_blanks(tmp_path):
    lines = table(200).splitlines(keepends=True)
    (tmp_path / "first.csv").write_text("".join(lines[:151]))
    when, _x, y, key = lines[160].split(",")
    lines[160] = f"{when},,{y},{key}"
    when, x, _y, key = lines[170].split(",")
    lines[170] = f"{when},{x},,{key}"
    (tmp_path / "next.csv").write_text("".join([lines[0], *lines[151:]]))
    told = run("first.csv", "--target", "y", "--features", "x", "--effort", "low", "--checkpoint", "s.gp")
    assert told.exit_code == 0, told.output
    assert run("next.csv", "--checkpoint", "s.gp", "--frozen", "--output", "out.csv").exit_code == 0
    with (tmp_path / "out.csv").open() as rows:
        flags = {i: row["flags"] for i, row in enumerate(csv.DictReader(rows)) if row["flags"]}
    assert flags == {9: "carried", 19: "missing"}


def test_inspect_shows_the_settings_of_a_models_own_checkpoint(tmp_path):
    model = Persistence()
    checkpoint.save(tmp_path / "model.ckpt", model, model.init(np.zeros((0, 1)), np.zeros(0)), {"note": "mine"})
    told = CliRunner().invoke(cli.app, ["inspect", "model.ckpt", "--json"])
    assert json.loads(told.stdout)["extra"] == {"note": "mine"}


def test_a_file_that_has_grown_is_gone_on_with(file, tmp_path):
    options = (*COMMAND, "--checkpoint", "run.ckpt", "--output")
    (tmp_path / "first.csv").write_text(table(40))
    grown = tmp_path / "grown.csv"
    grown.write_text(table(40))
    run(grown, *options, "out.csv")
    grown.write_text(table(60))
    assert "resumed after 40 rows" in run(grown, *options, "out.csv").stderr
    run(file, *COMMAND, "--output", "whole.csv")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_the_default_goes_on_from_its_own_checkpoint_with_counts_groups_and_a_horizon():
    """A bound on one side is infinite on the other: the run refused what it had written."""
    rng = np.random.default_rng(0)
    lines = [f"{t // 2},{rng.normal():.3f},{rng.poisson(0.5 + 0.5 * (t % 2))},k{t % 2}" for t in range(700)]
    header, options = (
        "t,x,y,key",
        ("--target", "y", "--lags", "2", "--key", "key", "--horizon", "3"),
    )
    Path("table.csv").write_text("\n".join([header, *lines]) + "\n")
    assert run("table.csv", *options, "--output", "whole.csv").exit_code == 0
    for rows in (300, 400, 401, 700):
        Path("table.csv").write_text("\n".join([header, *lines[:rows]]) + "\n")
        done = run("table.csv", *options, "--output", "parts.csv", "--checkpoint", "saved", "--every", "7")
        assert done.exit_code == 0, done.output
    assert Path("parts.csv").read_bytes() == Path("whole.csv").read_bytes()
