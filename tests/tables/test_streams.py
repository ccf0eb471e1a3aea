"""Sources and files that misbehave: pipes, torn lines, two writers, corrupt times, files that unpack to too much."""

import gzip
import os
import subprocess
import sys
import threading
import zipfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from driftgp import cli
from driftgp.base.frames import Column
from driftgp.base.locks import locked
from driftgp.runs import Run, settings_from
from driftgp.stream.clock import Clock
from driftgp.tables import rows, tables
from driftgp.tables.rows import csv_rows, is_live, open_rows

COMMAND = ("--target", "y", "--model", "persistence", "--warmup", "5", "--features", "x", "--lags", "1")
ROWS = [f"{t},{t % 7},{t % 3}\n" for t in range(40)]
TABLE = "t,x,y\n" + "".join(ROWS)
SETTINGS = settings_from({"target": "y", "features": "x", "model": "persistence", "lags": 1, "time": "t"})
posix = pytest.mark.skipif(os.name != "posix", reason="named pipes and flock are POSIX")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli.app, ["run", *map(str, arguments)])


def refused(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["driftgp", "run", *map(str, arguments)])
    with pytest.raises(SystemExit) as refusal:
        cli.main()
    assert refusal.value.code == 2
    return capsys.readouterr().err


# ---- named pipes -----------------------------------------------------------------------------------------------------


@posix
def test_no_row_of_a_named_pipe_is_lost(folder):
    os.mkfifo("pipe.csv")
    assert is_live("pipe.csv")
    assert not is_live("table.csv")
    writer = threading.Thread(target=lambda: Path("pipe.csv").write_text(TABLE))
    writer.start()
    piped = run("pipe.csv", *COMMAND)
    writer.join()
    run("table.csv", *COMMAND, "--output", "out.csv")
    assert piped.stdout == Path("out.csv").read_text()


# ---- torn last lines -------------------------------------------------------------------------------------------------


def test_a_live_source_that_ends_within_a_line_does_not_learn_half_a_number():
    torn = csv_rows("here", [b"a,y\n", b"1,2\n", b"3,45"], growing=True)
    assert torn.take(9).cells.rows() == [("1", "2")]
    (remark,) = torn.remarks
    assert "line 3: the last line has no newline and may be half a row" in remark


def test_half_a_quoted_cell_is_left_for_later_too():
    torn = csv_rows("here", [b"a,y\n", b"1,2\n", b'"3\n', b"4,5"], growing=True)
    assert torn.take(9).cells.rows() == [("1", "2")]


def test_a_finished_file_without_a_last_newline_is_read_whole_and_says_so(folder):
    Path("table.csv").write_text(TABLE.removesuffix("\n"))
    told = run("table.csv", *COMMAND, "--output", "out.csv")
    assert "table.csv, line 41: the last line has no newline: it was read as it is" in told.stderr
    assert len(Path("out.csv").read_text().splitlines()) == 41


def test_a_file_that_is_still_being_written_is_gone_on_with_where_its_line_was_torn(folder):
    files = ("--checkpoint", "run.ckpt", "--output", "out.csv")
    Path("growing.csv").write_text(TABLE[:-2])  # "39,4,": the target is yet to come
    assert "left for the next run" in run("growing.csv", *COMMAND, *files).stderr
    Path("growing.csv").write_text(TABLE)
    assert "resumed after 39 rows" in run("growing.csv", *COMMAND, *files).stderr
    run("table.csv", *COMMAND, "--output", "whole.csv")
    assert Path("out.csv").read_bytes() == Path("whole.csv").read_bytes()


# ---- two parts for one file, two writers of one file -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (("--output", "table.csv"), "--output must be another file than the input"),
        (("--output", "other.csv"), "--output must be another file than the input"),
        (("--output", "./sub/../table.csv"), "--output must be another file than the input"),
        (("--checkpoint", "table.csv"), "--checkpoint must be another file than the input"),
        (("--output", "new.csv", "--checkpoint", "new.csv"), "--output must be another file than --checkpoint"),
        (("--output", "new.csv", "--checkpoint", "link.csv"), "--output must be another file than --checkpoint"),
        (("--output", "run.csv", "--config", "run.csv"), "--output must be another file than --config"),
    ],
)
def test_nothing_is_written_over_the_input_or_the_checkpoint(folder, monkeypatch, capsys, files, words):
    (folder / "sub").mkdir()
    os.link("table.csv", "other.csv")
    Path("link.csv").symlink_to("new.csv")
    Path("run.csv").write_text("warmup = 5\n")
    said = refused(monkeypatch, capsys, "table.csv", *COMMAND, *files)
    assert words in said
    assert Path("table.csv").read_text() == TABLE
    assert not Path("new.csv").exists()


@posix
def test_predictions_are_not_appended_to_their_own_input(folder):
    command = [sys.executable, "-c", "from driftgp.cli import main; main()", "run", "table.csv", *COMMAND]
    with Path("table.csv").open("ab") as end:
        told = subprocess.run([*command, "--output", "-"], stdout=end, stderr=subprocess.PIPE, timeout=60, check=False)
    assert told.returncode == 2
    assert b"standard output must be another file than the input" in told.stderr
    assert Path("table.csv").read_text() == TABLE


HOLD = """
import sys
from driftgp.base.locks import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("option", ["--output", "--checkpoint"])
def test_a_second_process_is_refused_with_the_first_ones_number_and_a_dead_one_holds_nothing(
    folder, monkeypatch, capsys, option
):
    holder = [sys.executable, "-c", HOLD, "held.csv"]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline().strip() == b"held"
        said = refused(monkeypatch, capsys, "table.csv", *COMMAND, option, "held.csv")
        assert f"held.csv is being written by another run, process {process.pid}" in said
        assert not Path("held.csv").exists()
        process.kill()
    assert Path(".held.csv.lock").exists()
    assert run("table.csv", *COMMAND, option, "held.csv").exit_code == 0
    assert not Path(".held.csv.lock").exists()


def test_of_many_that_want_a_lock_at_once_one_has_it(folder):
    """Threads that take and leave the same lock: it is removed and made anew all the time, and never held twice."""
    inside, most, refusals = [0], [0], []

    def work():
        for _ in range(200):
            try:
                with locked("out.csv"):
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    inside[0] -= 1
            except ValueError as refusal:
                refusals.append(refusal)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert len(refusals) < 800


# ---- corrupt times ---------------------------------------------------------------------------------------------------


def flags_of(times, **options):
    lines = [b"t,x,y\n", *(f"{at!r},{i % 7},{i % 3}\n".encode() for i, at in enumerate(times))]
    run = Run(SETTINGS, csv_rows("here", lines), **options)
    return [
        {each for each in flags.split() if each != "cold" and "alarm" not in each}
        for block in run.answers()
        for flags in block.flags
    ]


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("where", [15, 40, 150])
def test_one_time_in_the_far_future_is_flagged_and_no_later_row_is_out_of_order(where, live):
    times = [60.0 * i for i in range(300)]
    times[where] = 4e9
    flags = flags_of(times, live=live)
    assert flags[where] == {"jump"}
    assert not any(flags[:where] + flags[where + 1 :])


@pytest.mark.parametrize("corrupt", [(0,), (3,), (0, 1, 2), (150, 151, 152)])
def test_a_clock_that_was_believed_wrongly_is_corrected_within_thirty_rows(corrupt):
    times = [60.0 * i for i in range(300)]
    for i in corrupt:
        times[i] = 4e9 + i
    flags = flags_of(times)
    after = corrupt[-1] + 30
    assert any("jump" in each for each in flags[:after])
    assert not any(flags[after:])


def test_a_long_pause_is_believed_with_the_second_row_and_its_time_passes():
    def passed(clock, *times):
        return clock.passed(Column("t", "numbers", np.array(times)))

    _, clock = passed(Clock(), *range(50))
    found, clock = passed(clock, 1e5, 1e5 + 1.0, 1e5 + 2.0)
    assert found.spans.tolist() == [1.0, 1e5 + 1.0 - 49.0, 1.0]
    assert found.jumped.tolist() == [True, False, False]
    found, clock = passed(clock, 2e5, 2e5 + 1.0)  # a pause like one before
    assert not found.jumped.any()


@pytest.mark.parametrize("cuts", [[1] * 400, [7] * 60, [400]])
def test_how_times_are_cut_into_blocks_changes_nothing(cuts):
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.exponential(size=400))
    times[rng.integers(0, 400, 30)] *= rng.choice([1e-3, 0.9, 1.1, 1e6], 30)
    pieces, at = Clock(), 0
    expected, whole = Clock().passed(Column("t", "numbers", times))
    made = []
    for size in cuts:
        if at < len(times):
            found, pieces = pieces.passed(Column("t", "numbers", times[at : at + size]))
            made.append(found)
            at += size
            pieces = Clock.restored(tuple(pieces))
    for one, other in zip(expected, zip(*made, strict=True), strict=True):
        np.testing.assert_array_equal(one, np.concatenate(other))
    assert repr(whole) == repr(pieces)


# ---- far too much ----------------------------------------------------------------------------------------------------


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(folder, monkeypatch, capsys):
    with gzip.open("bomb.csv.gz", "wb", compresslevel=1) as bomb:
        bomb.write(b"t,x,y\n1,2,3\n")
        for _ in range(64):
            bomb.write(bytes(1 << 20))
    assert Path("bomb.csv.gz").stat().st_size < 1 << 19
    reason = "bomb.csv.gz, line 3 is longer than 16 MiB"
    assert reason in refused(monkeypatch, capsys, "bomb.csv.gz", *COMMAND)
    assert run("bomb.csv.gz", *COMMAND, "--malformed", "skip").stderr.count(reason) == 1  # nothing to go on with


def test_rows_of_an_archive_are_not_counted_beyond_a_limit(monkeypatch):
    Path("table.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    assert rows.count_rows("table.csv.gz") == 40
    monkeypatch.setattr(rows, "_COUNTED", 100)
    assert rows.count_rows("table.csv.gz") == 0


@pytest.mark.parametrize("malformed", ["stop", "skip"])
def test_a_damaged_archive_ends_the_run_once(malformed):
    Path("cut.csv.gz").write_bytes(gzip.compress(TABLE.encode())[:-30])
    said = []
    with open_rows("cut.csv.gz") as source:
        stops = malformed == "stop"
        damage = pytest.raises(ValueError, match=r"cut.csv.gz is damaged after line \d+") if stops else nullcontext()
        with damage:
            list(Run(replace(SETTINGS, malformed=malformed), source, complain=said.append).answers())
        assert len(said) == (not stops)


def test_a_workbook_that_unpacks_to_far_too_much_is_refused_by_what_it_says(monkeypatch):
    with zipfile.ZipFile("bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(1 << 21))
    monkeypatch.setattr(tables, "MOST_BYTES", 1 << 20)
    with pytest.raises(ValueError, match=r"bomb.xlsx unpacks to more than 1 MiB: write it as CSV"):
        open_rows("bomb.xlsx")


def test_a_parquet_file_of_far_too_many_cells_is_refused_before_it_is_read(monkeypatch):
    pl.DataFrame({"x": np.zeros(100_000), "y": np.zeros(100_000)}).write_parquet("long.parquet")
    monkeypatch.setattr(tables, "MOST_CELLS", 1000)
    with pytest.raises(ValueError, match=r"long.parquet has 100000 rows of 2 columns, more than 1000 cells"):
        open_rows("long.parquet")
