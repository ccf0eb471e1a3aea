"""A job of 2000 keys that is killed five times: what it has written and learned must not show it."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from driftgp.fleet import Fleet
from driftgp.spark import backfill, states_of
from examples import spark_stream

OPTIMISED = True  # as the workers' programs are
KEYS, FILES, KILLS = 2000, 12, 5
ROOT = Path(__file__).parents[2]


class Driver:
    """The example job in a process of its own, on what lies in its folder."""

    def __init__(self, folder: Path) -> None:
        program = ROOT / "examples" / "spark_stream.py"
        with (folder / "log").open("a") as log:
            self.log = Path(log.name)
            self.process = subprocess.Popen(
                [sys.executable, program, folder, "--files=0"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"SPARK_LOCAL_DIRS": str(folder / "scratch")},
                start_new_session=True,
            )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "started\n"

    def kill(self) -> None:
        """Kill the program and the Java beside it, as a machine that goes down would."""
        assert self.process.poll() is None, "the stream has ended before it could be killed: make it longer"
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def end(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0, self.log.read_text()[-5000:]


def committed(folder: Path) -> int:
    """Micro-batches that are through."""
    commits = folder / "checkpoint" / "commits"
    return sum(entry.name.isdigit() for entry in commits.iterdir()) if commits.exists() else 0


def unplan(folder: Path) -> None:
    """Put the job back to the narrow moment when a file is noted as read and the micro-batch that reads it not planned.

    Chance seldom kills there. Spark then takes the file and the next one as one micro-batch: several hours at once.
    """
    checkpoint, number = folder / "checkpoint", str(committed(folder))
    written = folder / "predictions" / "_spark_metadata" / number
    if not written.exists():  # else the micro-batch is further than that
        for name in (number, f".{number}.crc"):
            (checkpoint / "offsets" / name).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a job that was killed at random moments."""
    folder = tmp_path_factory.mktemp("killed")
    spark_stream.write_files(folder / "incoming", FILES, KEYS)
    moments = random.Random(os.environ.get("DRIFTGP_SEED", "0"))
    for _ in range(KILLS):
        driver = Driver(folder)
        before = committed(folder)
        while committed(folder) == before and driver.process.poll() is None:
            time.sleep(0.05)  # it is in mid-stream once it has committed something
        wait = moments.uniform(0.0, 1.0)
        time.sleep(wait)
        driver.kill()
        print(f"killed {wait:.2f} s after its first commit, {committed(folder)} of {FILES} micro-batches committed")  # noqa: T201
    unplan(folder)
    Driver(folder).end()
    return folder


@pytest.fixture(scope="module")
def predictions(survivor: Path, spark: SparkSession) -> pd.DataFrame:
    return spark.read.parquet(str(survivor / "predictions")).toPandas().sort_values(["time", "meter"])


def test_no_prediction_is_lost_or_doubled(predictions):
    assert len(predictions) == KEYS * FILES
    assert not predictions.duplicated(["meter", "time"]).any()
    assert set(predictions["flags"]) == {""}


def test_predictions_equal_those_of_the_fleet_in_one_process(survivor, predictions):
    fleet = Fleet.load(survivor / "start.fleet", spark_stream.MODEL)
    table = pd.concat([spark_stream.table(hour, KEYS) for hour in range(FILES)], ignore_index=True)
    expected = fleet.evaluate(table)
    np.testing.assert_allclose(predictions["mean"], expected.mean, rtol=1e-10)
    low, high = expected.interval(0.95)
    np.testing.assert_allclose(predictions["low"], low, rtol=1e-10)
    np.testing.assert_allclose(predictions["high"], high, rtol=1e-10)


def test_final_states_and_predictions_equal_those_of_a_backfill_that_never_stopped(survivor, predictions, spark):
    rows = spark.read.schema(spark_stream.SCHEMA).parquet(str(survivor / "incoming"))
    whole = backfill(rows, spark_stream.make_job(survivor))
    pd.testing.assert_frame_equal(
        predictions.reset_index(drop=True),
        whole.predictions.toPandas().sort_values(["time", "meter"]).reset_index(drop=True),
    )
    stored = states_of(spark, survivor / "checkpoint").orderBy("bucket").collect()
    assert stored == whole.states.orderBy("bucket").collect()
    assert len(stored) == spark_stream.BUCKETS
    whole.release()
