"""Every number of a run's summary, recomputed by pandas from the output file and from the rows as they were made.

Each case is a file of another kind. Nothing of the library is used to recompute: times are those with which the rows
were made, and naive forecasts, coverage, counts and shares follow from them.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

from driftgp import cli

FIRST_ROWS = 20  # of a series, in which the seasonal forecast is the last target
WIDE_ROWS = 10  # of a series, whose intervals are left out of the mean width
OFFSETS = {"a day before": "1D", "2 days before": "2D", "a week before": "7D"}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@dataclass
class File:
    """Rows in the order in which the output has them, how to write them, and what a summary should say of them."""

    rows: pd.DataFrame  # y (NaN: missing), and, where there are any, when (by the clock on the wall), key, x, base
    write: Callable[[pd.DataFrame], str]  # writes the file, and returns its name
    options: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ("a day before", "a week before")
    late: tuple[int, ...] = ()  # rows that come late
    gaps: int = 0  # rows with a gap in an input
    left_out: int = 0
    read: str = ""  # a remark on how the file was read
    first: int = 0  # rows of a first run, which the second one continues
    season_rows: int = field(default=0)  # length of the season in rows, where it is counted in rows
    horizon: int = 1


def hourly(rows=400, seed=0, step="1h", start="2024-01-01"):
    """Hourly targets with a daily cycle that drifts, and an input."""
    rng = np.random.default_rng(seed)
    n = np.arange(rows)
    y = (
        1000.0
        + 100.0 * np.sin(2.0 * np.pi * n / 24.0)
        + np.cumsum(rng.normal(0.0, 5.0, rows))
        + rng.normal(0.0, 8.0, rows)
    )
    when = pd.date_range(start, periods=rows, freq=step)
    return pd.DataFrame({"when": when, "x": rng.normal(10.0, 3.0, rows).round(3), "y": y.round(3)})


def csv(rows, times="%Y-%m-%d %H:%M:%S", **options):
    """Write a CSV of all columns that the rows have."""
    shown = rows if "when" not in rows else rows.assign(when=rows["when"].dt.strftime(times))
    shown.to_csv("rows.csv", index=False, **options)
    return "rows.csv"


def plain():
    return File(hourly(), csv, ("--features", "x"))


def one_column():
    return File(hourly()[["when", "y"]], csv)


def gaps():
    rows = hourly().drop(index=range(200, 230)).reset_index(drop=True)
    rows.loc[[60, 61, 150, 300], "x"] = np.nan
    return File(rows, csv, ("--features", "x"), gaps=4)


def missing_targets():
    rows = hourly()
    rows.loc[[5, 90, 91, 250, 399], "y"] = np.nan
    return File(rows, csv, ("--features", "x"))


def shuffled():
    def write(rows):
        return csv(rows.sample(frac=1.0, random_state=1))

    return File(hourly(), write, ("--features", "x"), read="sorted by when")


def newest_first():
    return File(hourly(), lambda rows: csv(rows[::-1]), ("--features", "x"), read="sorted by when")


def late_rows():
    order = np.arange(400)
    for place in (100, 180, 330):
        order[[place, place + 2]] = order[[place + 2, place]]
    rows = hourly().iloc[order].reset_index(drop=True)
    late = tuple(place + ahead for place in (100, 180, 330) for ahead in (1, 2))
    return File(rows, csv, ("--features", "x", "--checkpoint", "run.gp"), late=late)


def keys():
    parts = [
        hourly(250, seed).assign(key=f"k{seed}", y=lambda own, seed=seed: (own["y"] * 10.0**seed).round(3))
        for seed in range(3)
    ]
    rows = pd.concat(parts).sort_values("when", kind="stable").reset_index(drop=True)
    return File(rows, csv, ("--features", "x", "--key", "key"))


def keys_with_gaps():
    made = keys()
    made.rows.loc[[30, 31, 400, 500], "x"] = np.nan
    made.rows.loc[[9, 77, 600], "y"] = np.nan
    made.gaps = 4
    return made


def resumed():
    made = plain()
    made.first, made.options = 250, (*made.options, "--checkpoint", "run.gp")
    return made


def keys_resumed():
    made = keys()
    made.first, made.options = 500, (*made.options, "--checkpoint", "run.gp")
    return made


def a_day_ahead():
    return File(hourly(), csv, ("--horizon", "24", "--features", "x"), horizon=24)


def more_than_a_day_ahead():
    return File(
        hourly(),
        csv,
        (
            "--horizon",
            "30",
        ),
        seasons=("2 days before", "a week before"),
        horizon=30,
    )


def counts():
    rows = hourly()
    rng = np.random.default_rng(2)
    rows["y"] = rng.poisson(6.0 + 5.0 * np.sin(2.0 * np.pi * np.arange(len(rows)) / 24.0)).astype(float)
    return File(rows, lambda rows: csv(rows.astype({"y": int})), ("--features", "x"))


def clocks_go_back_with_offsets():
    utc = pd.date_range("2024-10-20", periods=400, freq="h", tz="UTC").tz_convert("Europe/Berlin")
    rows = hourly().assign(when=utc.tz_localize(None))

    def write(rows):
        text = [moment.isoformat() for moment in utc]
        rows.assign(when=text).to_csv("rows.csv", index=False)
        return "rows.csv"

    return File(rows, write, ("--features", "x"))


def clocks_go_forward_without_offsets():
    rows = hourly(start="2024-03-25")
    rows = rows[rows["when"] != "2024-03-31 02:00"].reset_index(drop=True)
    return File(rows, csv, ("--features", "x"))


def decimal_commas():
    def write(rows):
        return csv(rows, "%d.%m.%Y %H:%M", sep=";", decimal=",", float_format="%.3f")

    return File(hourly(), write, ("--features", "x"), read="decimal commas")


def currency():
    def write(rows):
        return csv(rows.assign(y=[f"${value:,.3f}" for value in rows["y"]]))

    return File(hourly(), write, ("--features", "x"))


def workbook():
    pytest.importorskip("xlsxwriter", reason="xlsxwriter makes the workbook of this test")

    def write(rows):
        rows.to_excel("rows.xlsx", index=False, engine="xlsxwriter")
        return "rows.xlsx"

    return File(hourly(), write, ("--features", "x"))


def json_lines():
    def write(rows):
        shown = rows.assign(when=rows["when"].dt.strftime("%Y-%m-%dT%H:%M:%S"))
        Path("rows.jsonl").write_text("\n".join(json.dumps(row) for row in shown.to_dict("records")) + "\n")
        return "rows.jsonl"

    return File(hourly(), write, ("--features", "x"))


def parquet_of_ten_minutes():
    def write(rows):
        pl.from_pandas(rows).write_parquet("rows.parquet")
        return "rows.parquet"

    return File(hourly(600, step="10min"), write, ("--features", "x"))


def days():
    return File(hourly(200, step="1D"), lambda rows: csv(rows, "%Y-%m-%d"), seasons=("a week before",))


def months():
    made = hourly(120, step="1MS", start="2010-01-01")
    return File(made, lambda rows: csv(rows, "%Y-%m-%d"), seasons=("12 rows before",), season_rows=12)


def months_without_days():
    made = hourly(120, step="1MS", start="2010-01-01")
    return File(made, lambda rows: csv(rows, "%Y-%m"), seasons=("12 rows before",), season_rows=12)


def weeks():
    made = hourly(160, step="7D", start="2010-01-01")
    return File(made, lambda rows: csv(rows, "%Y-%m-%d"), seasons=("52 rows before",), season_rows=52)


def irregular_times():
    rows = hourly()
    seconds = np.cumsum(np.random.default_rng(6).exponential(600.0, len(rows))).round()
    rows["when"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(seconds, unit="s")
    return File(rows, csv, ("--features", "x"), seasons=())


def tabs_below_titles_with_units():
    def write(rows):
        body = rows.assign(when=rows["when"].dt.strftime("%d/%m/%Y %H:%M")).to_csv(sep="\t", index=False)
        header, _, table = body.partition("\n")
        Path("rows.tsv").write_text(f"Report of a station\n\n{header}\n\tm\tMW\n{table}")
        return "rows.tsv"

    return File(hourly(), write, ("--features", "x"), read="units in line 4")


def keys_in_blocks():
    made = keys()
    ordered = made.rows.sort_values(["when", "key"], kind="stable").reset_index(drop=True)
    return File(ordered.sort_values(["key", "when"]).reset_index(drop=True), csv, made.options)


def no_times():
    options = ("--lags", "1,7", "--features", "x")
    return File(hourly().drop(columns="when"), csv, options, seasons=("7 rows before",), season_rows=7)


def malformed_rows():
    def write(rows):
        name = csv(rows)
        lines = Path(name).read_text().splitlines()
        for place in (50, 120):
            lines.insert(place, "2024-01-01,1,2,3,4,5")
        Path(name).write_text("\n".join(lines) + "\n")
        return name

    return File(hourly(), write, ("--features", "x", "--malformed", "skip"), left_out=2)


def a_base():
    rows = hourly()
    rng = np.random.default_rng(4)
    rows["base"] = (rows["y"] + 20.0 + rng.normal(0.0, 10.0, len(rows))).round(3)
    return File(rows, csv, ("--base", "base", "--features", "x"))


def a_jump_of_the_level():
    rows = hourly(500)
    rows.loc[400:, "y"] = (rows.loc[400:, "y"] + 3000.0).round(3)
    return File(rows, csv, ("--model", "mean", "--features", "x"))


FILES = (
    plain, one_column, gaps, missing_targets, shuffled, newest_first, late_rows, keys, keys_with_gaps, resumed,
    keys_resumed, a_day_ahead, more_than_a_day_ahead, counts, clocks_go_back_with_offsets,
    clocks_go_forward_without_offsets, decimal_commas, currency, workbook, json_lines, parquet_of_ten_minutes, days,
    months, months_without_days, weeks, irregular_times,
    tabs_below_titles_with_units, keys_in_blocks, no_times, malformed_rows, a_base, a_jump_of_the_level,
)  # fmt: skip


# ---- by other means --------------------------------------------------------------------------------------------------


def naive_forecasts(own, file, season):
    """Persistence and one seasonal naive forecast of the rows of a series, by plain search in the past."""
    y = own["y"].mask(own["late"]).tolist()
    when = own["when"].tolist() if "when" in own else [None] * len(own)
    last, seasonal = [], []
    for row in range(len(y)):
        known = [past for past in range(max(row - file.horizon + 1, 0)) if not math.isnan(y[past])]
        last.append(y[known[-1]] if known else math.nan)
        if row < FIRST_ROWS or season is None:
            same = []
        elif file.season_rows:
            same = [past for past in known if past == row - file.season_rows]
        else:
            before = when[row] - pd.Timedelta(OFFSETS[season])
            same = [past for past in known if when[past] == before]
        seasonal.append(y[same[-1]] if same else last[-1])
    return pd.DataFrame({"last": last, "seasonal": seasonal}, index=own.index)


def recomputed(out, file):
    """What a summary should say of these rows, all together and of each key."""
    rows = file.rows.reset_index(drop=True)
    rows["late"] = rows.index.isin(file.late)
    rows["key"] = rows.get("key", "")
    rows["error"], rows["width"] = rows["y"] - out["mean"], out["high"] - out["low"]
    rows["inside"] = (out["low"] <= rows["y"]) & (rows["y"] <= out["high"])
    for number, season in enumerate(file.seasons or (None,)):
        parts = [naive_forecasts(own, file, season) for _, own in rows.groupby("key")]
        found = pd.concat(parts).sort_index()
        rows["persistence"] = found["last"]
        if season is not None:
            rows[f"season_{number + 1}"] = found["seasonal"]
    rows["scored"] = rows["y"].notna() & ~rows["late"] & rows["persistence"].notna() & np.isfinite(out["std"])
    rows["alarms"] = out["flags"].str.count(r"(?:^| )alarm")
    nth = rows["scored"].astype(int).groupby(rows["key"]).cumsum()
    rows["settled"] = rows["scored"] & (nth > WIDE_ROWS)
    return rows, {key: figures_of(own, file) for key, own in [("all", rows), *rows.groupby("key")]}


def figures_of(own, file):
    scored = own[own["scored"]]
    mse = (scored["error"] ** 2).mean()
    found = {
        "rows": len(own),
        "scored": len(scored),
        "missing": int(own["y"].isna().sum()),
        "late": int(own["late"].sum()),
        "alarms": int(own["alarms"].sum()),
        "mse": mse,
        "rmse": math.sqrt(mse),
        "mae": scored["error"].abs().mean(),
        "coverage": scored["inside"].mean(),
        "width": own.loc[own["settled"], "width"].mean(),
        "relative": mse / scored["y"].var(ddof=0),
    }
    names = {"persistence": "persistence", "season": "season_1", "season_2": "season_2", "base": "base"}
    for name, column in names.items():
        if column in own:
            error = scored["y"] - scored[column]
            found[f"rmse_{name}"] = math.sqrt((error**2).mean())
            found[f"mae_{name}"] = error.abs().mean()
    return found


def run(*arguments):
    result = CliRunner().invoke(cli.app, ["run", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def made(case):
    """The summary for programs, the output, and what both follow from."""
    file = case()
    options = ("--target", "y", "--effort", "low", "--output", "out.csv", *file.options)
    if "--model" in options:
        options = tuple(word for word in options if word not in ("--effort", "low"))
    if file.first:
        run(file.write(file.rows.iloc[: file.first]), *options)
    said = json.loads(run(file.write(file.rows), *options, "--json"))
    out = pd.read_csv("out.csv", keep_default_na=False, na_values=[""]).assign(
        flags=lambda own: own["flags"].fillna("").astype(str)
    )
    return file, options, said, out


@pytest.mark.parametrize("case", FILES, ids=lambda case: case.__name__)
def test_every_number_of_the_summary_is_that_of_pandas(case):
    file, _, said, out = made(case)
    total = said[-1]
    rows, expected = recomputed(out, file)
    np.testing.assert_array_equal(out["actual"], rows["y"])  # read as it was written
    if "key" in file.rows:
        np.testing.assert_array_equal(out["key"], rows["key"])
        expected["all"]["relative"] = float(np.median([expected[own["series"]]["relative"] for own in said[:-1]]))
        assert {own["series"] for own in said[:-1]} == set(rows["key"])
    for own in said:
        for name, value in expected[own["series"]].items():
            assert own[name] == pytest.approx(value, rel=1e-9), (own["series"], name)
    assert list(total["naive"].values()) == ["persistence", *file.seasons]
    assert total["gaps"] == file.gaps
    assert total["left_out_rows"] == file.left_out
    assert total["rows_before"] == file.first
    assert (
        any(file.read in note for note in total["read"])
        if file.read
        else not [note for note in total["read"] if "sorted" in note]
    )
    _shares_are_right(rows[rows["scored"]], out["mean"][rows["scored"]], total)
    _alarms_are_listed(out, total)


def _shares_are_right(scored, forecasts, total):
    if "when" in scored:
        by_hour = scored["inside"].groupby(scored["when"].dt.strftime("%H")).mean()
        assert total["coverage_by_hour"] == pytest.approx(by_hour.to_dict())
    edges = np.quantile(forecasts, np.arange(1, 10) / 10)
    tenth = np.searchsorted(edges, forecasts, side="right")
    shares = scored["inside"].groupby(tenth).mean().reindex(range(10))
    assert total["coverage_by_tenth_of_forecast"] == [
        None if math.isnan(share) else pytest.approx(share) for share in shares
    ]


def _alarms_are_listed(out, total):
    """Each with the time of its row, in the order of the rows."""
    flagged = out[out["flags"].str.contains("alarm")]
    times = [row["when"] if "when" in out else f"line {row['line']}" for _, row in flagged.iterrows()]
    counts = flagged["flags"].str.count(r"(?:^| )alarm")
    expected = [str(time) for time, count in zip(times, counts, strict=True) for _ in range(count)]
    assert len(total["raised"]) == len(expected) == total["alarms"]
    for said, time in zip(total["raised"], expected, strict=True):
        assert said.startswith(time)
        assert re.search(r": (targets|inputs|more targets) ", said)  # the cause


@pytest.mark.parametrize("case", [plain, late_rows, keys, resumed, currency, a_jump_of_the_level, a_base])
def test_the_screen_shows_the_numbers_of_pandas(case):
    file, options, _, out = made(case)
    for name in ("out.csv", "run.gp"):
        Path(name).unlink(missing_ok=True)
    if file.first:
        run(file.write(file.rows.iloc[: file.first]), *options)
    shown = run(file.write(file.rows), *options)
    text = " ".join(shown.split())
    _, expected = recomputed(out, file)
    total = expected["all"]
    assert f"{total['coverage']:.1%} of the targets lie in their 95% interval" in text
    assert f"{total['scored']} scored" in text
    assert f"{len(file.rows) - file.first} rows in" in text
    assert not total["late"] or f"{total['late']} late" in text
    if "key" in file.rows:
        forms = {"scored": "{:d}", "relative": "{:.3f}", "coverage": "{:.1%}", "alarms": "{:d}"}
        for own in expected.values():
            assert own is total or all(form.format(own[name]) in text for name, form in forms.items())
        return
    errors = {"driftgp": "", "persistence": "_persistence", "(a day": "_season", "(a week": "_season_2"}
    errors |= {"base (--base)": "_base"} if "base" in file.rows else {}
    for name, suffix in errors.items():
        (line,) = [line for line in shown.splitlines() if "│" in line and name in line]
        found = [cell.strip() for cell in line.split("│")][2:-1]
        assert [float(cell) for cell in found[:2]] == pytest.approx(
            [total[f"rmse{suffix}"], total[f"mae{suffix}"]], rel=2e-3
        )
        less = 1.0 - total["rmse"] / total[f"rmse{suffix}"]
        assert not suffix or found[2] == f"{abs(less):.0%} {'less' if less >= 0.0 else 'more'}"
    assert f"and {total['alarms'] - 5} more" in text if total["alarms"] > 5 else "more: flags" not in text
