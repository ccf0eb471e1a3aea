"""What `driftgp run` says of its own results: beside naive forecasts, with warnings, on a screen of 80 columns."""

import csv
import io
import json
import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from driftgp import cli
from driftgp.base.wording import figure
from driftgp.runs import Run, read_checkpoint, settings_from, words
from driftgp.runs.leaks import find_leaks
from driftgp.runs.warnings import warnings_of
from driftgp.stream.naive import FIRST, find_seasons
from driftgp.stream.running_scores import means
from driftgp.tables.rows import csv_rows

HOURS = 600
NAIVE = {"target": "y", "model": "persistence", "lags": 1, "calendar": False, "warmup": 5}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def stream(rows=HOURS, seed=0):
    """Hourly rows: time, temperature, and a target of which the last value is the best naive forecast."""
    rng = np.random.default_rng(seed)
    times = [str(np.datetime64("2024-01-01T00", "s") + np.timedelta64(3600 * t, "s")) for t in range(rows)]
    y = [1000.0]
    while len(y) < rows:
        y.append(1000.0 + 0.98 * (y[-1] - 1000.0) + rng.normal(0.0, 20.0))
    return [[time, f"{rng.normal(10.0, 3.0):.3f}", f"{value:.3f}"] for time, value in zip(times, y, strict=True)]


def text_of(rows, header="time,x,y"):
    return "\n".join([header, *(",".join(row) for row in rows)]) + "\n"


def run_of(rows, header="time,x,y", **settings):
    settings = {name: value for name, value in (NAIVE | settings).items() if value is not None}
    made = Run(settings_from(settings), csv_rows("rows.csv", io.BytesIO(text_of(rows, header).encode())))
    return made, list(made.answers())


def warned(rows, header="time,x,y", **settings):
    made, _ = run_of(rows, header, **settings)
    found = warnings_of(made)
    assert warnings_of(read_checkpoint(made.to_bytes())) == found  # a checkpoint says the same
    return found


def run(*arguments):
    return CliRunner().invoke(cli.app, ["run", *map(str, arguments)])


def test_a_column_that_is_never_there_is_named():
    rows = [[time, "", y] for time, _, y in stream(200)]
    (found,) = [each for each in warned(rows, features=["x"]) if "no value" in each]
    assert found.startswith("Column 'x' has had no value in 200 rows")
    rows[150][1] = "3.5"
    assert not [each for each in warned(rows, features=["x"]) if "no value" in each]


# ---- naive forecasts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [1, 30])
def test_the_naive_errors_are_those_of_the_naive_forecasts(horizon):
    rows = stream()
    del rows[200:210]  # a gap: a day before is a day before, not 24 rows before
    rows[300][2] = ""
    made, _ = run_of(rows, horizon=horizon)
    y = np.array([float(row[2] or "nan") for row in rows])
    at = np.array([np.datetime64(row[0]) for row in rows])
    scored = [t for t in range(horizon, len(rows)) if math.isfinite(y[t])]
    known = {time: target for time, target in zip(at, y, strict=True) if math.isfinite(target)}
    last = [next(y[s] for s in range(t - horizon, -1, -1) if math.isfinite(y[s])) for t in scored]
    day = np.timedelta64(24 * math.ceil(horizon / 24), "h")
    seasonal = [
        known.get(at[t] - day, naive) if t >= FIRST else naive for t, naive in zip(scored, last, strict=True)
    ]  # the first rows show what the season is
    summary = means(made.monitor.in_all(), made.monitor.labels)
    assert summary["scored"] == len(scored)
    assert summary["rmse_0"] == pytest.approx(np.sqrt(np.mean((y[scored] - last) ** 2)))
    assert summary["rmse_1"] == pytest.approx(np.sqrt(np.mean((y[scored] - seasonal) ** 2)))
    assert summary["mae_1"] == pytest.approx(np.mean(np.abs(y[scored] - seasonal)))


@pytest.mark.parametrize(
    ("step", "labels"),
    [
        (600.0, ["a day before", "a week before"]),
        (86400.0, ["a week before"]),
        (604800.0, ["52 rows before"]),
        (86400.0 * 30.4, ["12 rows before"]),
        (1.0, []),
    ],
)
def test_the_season_follows_from_the_time_between_rows(step, labels):
    found = find_seasons(np.array([1e6 * step * t for t in range(50)]), dated=True)
    assert [season.label for season in found] == labels


def test_without_dates_a_seasonal_lag_is_the_season():
    rows = [[str(t), "0", f"{math.sin(2 * math.pi * t / 7):.6f}"] for t in range(400)]
    made, _ = run_of(rows, "t,x,y", lags=[1, 7])
    summary = means(made.monitor.in_all(), made.monitor.labels)
    assert made.monitor.labels == ["persistence", "7 rows before"]
    assert summary["rmse_1"] < 0.5 * summary["rmse_0"]


# ---- warnings --------------------------------------------------------------------------------------------------------


def test_an_honest_file_has_no_warning():
    assert warned(stream()) == []


def test_forecasts_that_are_worse_than_a_naive_one_are_said_to_be():
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=HOURS))
    rows = [[*row[:2], f"{value:.3f}"] for row, value in zip(stream(), walk, strict=True)]
    (said,) = warned(rows, model="mean", others="ignored")
    assert said.startswith("The forecasts are worse than persistence (the last value): RMSE ")
    rows = [[*row, f"k{t % 2}"] for t, row in enumerate(rows)]
    assert "are worse than" in " ".join(warned(rows, "time,x,y,key", model="mean", others="ignored", key="key"))


def with_parts(rows):
    """Bikes: casual and registered riders add up to the count."""
    rng = np.random.default_rng(1)
    parts = rng.poisson(30.0, (len(rows), 2))
    return [[row[0], row[1], *map(str, part), str(part.sum())] for row, part in zip(rows, parts, strict=True)]


def test_columns_that_add_up_to_the_target_are_used_where_they_are_asked_for_with_a_warning():
    header = "time,x,casual,registered,y"
    said = warned(with_parts(stream()), header, features="x,casual,registered")
    assert said[0].startswith("casual and registered give y almost exactly. If they are known only together")
    assert "the forecasts are worthless: leave them out of --features" in said[0]
    assert not any("almost exactly" in text for text in warned(with_parts(stream()), header))  # they enter late


def test_a_column_that_is_the_target_with_a_little_noise_is_named():
    rng = np.random.default_rng(3)
    rows = [[*row, f"{float(row[2]) + 0.1 * rng.normal():.6f}"] for row in stream()]
    found = warned(rows, "time,x,y,leak", features="x,leak")
    assert found[0].startswith("leak gives y almost exactly. If it is known only together with y")


def test_every_column_that_gives_the_target_by_itself_is_named():
    rng = np.random.default_rng(3)
    rows = [[*row, row[2], f"{float(row[2]) + 0.1 * rng.normal():.6f}"] for row in stream()]
    found = warned(rows, "time,x,y,same,leak", features="x,same,leak")
    assert found[0].startswith("same and leak give y almost exactly. If they are known only together with y")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3])
def test_only_what_is_nearly_exact_is_called_a_leak(share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 1] - 2.0 * X[:, 3]
    y = y + share * y.std() * rng.normal(size=300)
    assert find_leaks(X, y) == ((1, 3) if share < 0.02 else ())


def test_a_wild_cell_is_named_in_the_summary_in_the_output_and_by_inspect():
    rows = stream()
    rows[450][1] = "9831"
    Path("rows.csv").write_text(text_of(rows))
    options = ("--target", "y", "--model", "persistence", "--output", "out.csv", "--checkpoint", "run.ckpt")
    said = run("rows.csv", *options, "--warmup", "5", "--json")
    (warning,) = [text for text in json.loads(said.stdout)[-1]["warnings"] if "far outside" in text]
    assert warning.startswith("1 value is far outside all values before, the worst in line 452: x is 9831, and was ")
    with Path("out.csv").open() as lines:
        assert [row["line"] for row in csv.DictReader(lines) if "wild" in row["flags"]] == ["452"]
    told = CliRunner().invoke(cli.app, ["inspect", "run.ckpt", "--json"])
    assert warning in json.loads(told.stdout)["warnings"]
    assert "Warning" in CliRunner().invoke(cli.app, ["inspect", "run.ckpt"]).stdout


def test_a_stream_that_only_drifts_is_not_wild():
    rows = [
        [time, f"{t * t / 100:.3f}", f"{1000 + 5 * t + float(y) / 10:.3f}"] for t, (time, _, y) in enumerate(stream())
    ]
    assert not any("far outside" in said for said in warned(rows))


def test_forecasts_far_outside_all_targets_are_counted():
    made, _ = run_of(stream())
    made.oddities._bounds = np.array([[0.0, 5000.0]])
    made.oddities.see_forecasts(np.array([7]), np.array([863_951.0]), np.array([False]))
    (said,) = warnings_of(made)
    assert said == "1 forecast is far outside all targets before, the worst in line 7: 863951"


def shuffled(rows):
    return random.Random(0).sample(rows, len(rows))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[::-1], "599 rows are older than a row before, the first in line 3"),
        (shuffled, "older than a row before, the first in line"),
        (lambda rows: [row for row in rows for _ in range(2)], "600 rows have the same time as the row before"),
        (
            lambda rows: [*rows[:100], rows[99], *rows[100:]],
            "1 row has the same time as the row before, the first in line 102",
        ),
    ],
    ids=["reversed", "shuffled", "doubled", "one twice"],
)
def test_disorder_that_cannot_be_mended_is_said_on_the_screen(change, words):
    assert words in " ".join(warned(change(stream())))  # rows that cannot be read twice


@pytest.mark.parametrize("change", [lambda rows: rows[::-1], shuffled], ids=["reversed", "shuffled"])
def test_a_file_out_of_order_is_sorted_and_the_summary_says_so(change):
    Path("rows.csv").write_text(text_of(stream()))
    Path("other.csv").write_text(text_of(change(stream())))
    options = ("--target", "y", "--effort", "low", "--json", "--output")
    ordered, other = (json.loads(run(name, *options, f"of-{name}").stdout)[0] for name in ("rows.csv", "other.csv"))
    assert ordered["read"] == []
    assert len(other["read"]) == 1
    assert other["read"][0].startswith("sorted by time, as ")
    assert other["late"] == 0
    for name in ("rmse", "coverage", "rmse_persistence", "rmse_season", "scored"):
        assert ordered[name] == other[name]
    sorted_lines, lines = (Path(f"of-{name}").read_text().splitlines() for name in ("other.csv", "rows.csv"))
    assert [line.partition(",")[2] for line in sorted_lines] == [line.partition(",")[2] for line in lines]


def test_series_that_are_not_told_apart_are_told_how_to():
    rows = [[row[0], row[1], row[2], key] for row in stream(300) for key in "abc"]
    said = " ".join(warned(rows, "time,x,y,key", features="x"))
    assert "'key' looks like the key of several series: say --key key" in said
    assert warned(rows, "time,x,y,key", features="x", key="key") == []


def test_series_one_below_the_other_are_told_apart_by_the_same_column():
    rows = [[row[0], row[1], row[2], key] for key in "abc" for row in stream(1200)]
    Path("rows.csv").write_text(text_of(rows, "time,x,y,key"))
    told = run("rows.csv", "--target", "y", "--model", "persistence", "--features", "x")
    assert "'key' looks like the key of several series: say --key key" in " ".join(told.stdout.split())


@pytest.mark.parametrize(("offsets", "several"), [(("+01:00", "+02:00"), False), (("+00:00", "-05:00"), True)])
def test_times_of_several_zones_are_named_and_summer_time_is_none(offsets, several):
    rows = stream()
    for t, row in enumerate(rows):
        row[0] += offsets[t >= 300]
    assert any("Times are of several zones (UTC-05:00, UTC)" in said for said in warned(rows)) == several


def test_a_column_of_many_words_is_named():
    rows = [[*row, f"w{t % 60}"] for t, row in enumerate(stream())]
    assert any(said.startswith("Column 'word' holds text with more than 20") for said in warned(rows, "time,x,y,word"))


def test_one_row_that_makes_up_most_of_the_error_is_named():
    rows = stream()
    rows[450][2] = "3900"
    assert any("of the squared error: line 45" in said for said in warned(rows))


def test_a_run_too_short_to_say_anything_says_so():
    assert any("No row was scored" in said for said in warned(stream(1)))
    assert any("Only 19 rows were scored" in said for said in warned(stream(20)))


# ---- the summary -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e5, 1e-3])
@pytest.mark.parametrize("keys", [1, 30])
def test_the_summary_fits_eighty_columns_and_has_no_exponents(scale, keys):
    rows = [
        [*row[:2], str(scale * float(row[2])), f"a store with a long name {t % keys}"] for t, row in enumerate(stream())
    ]
    Path("rows.csv").write_text(text_of(rows, "time,x,y,key"))
    key = ("--key", "key") if keys > 1 else ()
    told = run("rows.csv", "--target", "y", "--model", "persistence", "--warmup", "5", "--features", "x", *key)
    assert told.exit_code == 0, told.output
    shown = told.stdout.splitlines()
    assert max(map(len, shown)) <= 80
    assert "e+" not in told.stdout


def test_the_summary_says_how_the_file_was_read():
    rows = [f"{row[0][8:10]}/01/2024;{row[2].replace('.', ',')};S{t}" for t, row in enumerate(stream(300)[::24])]
    Path("rows.csv").write_text("\n".join(["day;y [MW];station", *rows]) + "\n")
    told = " ".join(run("rows.csv", "--target", "y [MW]", "--lags", "1", "--model", "mean").stdout.split())
    assert (
        "Read semicolons between cells; decimal commas; dates of 'day' are day-first, as '13/01/2024' in line 14"
        in told
    )
    assert "mean width" in told
    assert " MW" in told


def test_figures_are_for_people():
    assert [figure(value) for value in (103_124.7, 12.3456, 0.00123456, 0.0, 1000.0, float("nan"))] == [
        "103125",
        "12.35",
        "0.001235",
        "0",
        "1000",
        "–",
    ]


# ---- files that are not there ----------------------------------------------------------------------------------------


def refused(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["driftgp", "run", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_a_file_that_is_not_there_is_answered_with_names_like_it(monkeypatch, capsys, tmp_path):
    Path("load.csv").write_text(text_of(stream(3)))
    assert "laod.csv: there is no such file. Did you mean load.csv?" in refused(monkeypatch, capsys, "laod.csv")
    assert "is a folder: give a file in it" in refused(monkeypatch, capsys, tmp_path)
    assert "no column 'Y'; the columns are time, x, y. Did you mean 'y'?" in refused(
        monkeypatch, capsys, "load.csv", "--target", "Y"
    )


def test_a_run_without_a_target_shows_the_columns_to_choose_from(monkeypatch, capsys):
    Path("load.csv").write_text(text_of(stream(3)))
    said = refused(monkeypatch, capsys, "load.csv")
    assert "target is not given: name the column to predict with --target. The columns are time, x, y" in said


def test_a_file_that_is_not_there_is_answered_before_anything_heavy_is_imported():
    script = (
        "import sys; from driftgp.cli import app\n"
        "try: app(['run', 'nosuch.csv'])\nexcept ValueError: pass\nprint(*sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"numpy", "polars", "matplotlib", "driftgp.runs"} & set(told.stdout.split())


def test_compare_reads_the_same_files_and_warns_of_the_same_leaks():
    rows = [[row[0].replace("-", "/"), *row[1:]] for row in with_parts(stream(700))]
    Path("rows.csv").write_text(text_of(rows, "time,x,casual,registered,y").replace(",", ";"))
    told = CliRunner().invoke(
        cli.app,
        [
            "compare",
            "rows.csv",
            "--target",
            "y",
            "--methods",
            "persistence",
            "--lags",
            "1",
            "--delimiter",
            ";",
            "--features",
            "x,casual,registered",
        ],
    )
    assert told.exit_code == 0, told.output
    assert "casual and registered give y almost exactly" in told.stderr
    assert "read: semicolons between cells" in told.stderr


def test_alarms_are_listed_with_their_time_and_cause():
    rows = stream(700)
    for row in rows[500:]:
        row[2] = f"{float(row[2]) + 3000.0:.3f}"
    Path("rows.csv").write_text(text_of(rows))
    told = run("rows.csv", "--target", "y", "--model", "mean", "--output", "out.csv").stdout
    with Path("out.csv").open() as lines:
        first = next(row for row in csv.DictReader(lines) if "alarm" in row["flags"])
    assert f"Alarms {first['time']}: targets are higher than forecast" in " ".join(told.split())
    assert "RMSE is" in told


@pytest.mark.parametrize(("unit", "second"), [("seconds", 1), ("milliseconds", 1000)])
def test_numbers_that_look_like_times_are_named_with_the_option_that_reads_them(unit, second):
    rows = [[str((1_700_000_000 + 3600 * t) * second), *row[1:]] for t, row in enumerate(stream(120))]
    (found,) = [text for text in warned(rows, "ts,x,y", lags=None) if "since 1970" in text]
    assert found == f"Column 'ts' looks like {unit} since 1970: say --time ts --time-format {unit}"
    assert not [text for text in warned(rows, "ts,x,y", time=["ts"], time_format=unit) if "since 1970" in text]
    prices = [[str(1_700_000_000 + t % 7), *row[1:]] for t, row in enumerate(stream(120))]
    assert not [text for text in warned(prices, "ts,x,y") if "since 1970" in text]


def test_rows_that_come_one_by_one_have_no_seasonal_lags_and_the_summary_says_so():
    settings = settings_from({"target": "y"})
    made = Run(settings, csv_rows("-", io.BytesIO(text_of(stream(60)).encode()), live=True), live=True)
    list(made.answers())
    for run in (made, read_checkpoint(made.to_bytes())):
        assert dict(words.inputs(run))["Lags"].startswith("the target 1, 2, 3 rows before (the rows come one by one")
