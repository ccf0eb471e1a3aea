"""Streams and backfills of a few keys: order, late rows, starts and refusals."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from driftgp import FastAGP, Fleet
from driftgp.spark import Job, backfill, predict_stream, states_of
from examples.spark_stream import MODEL, SCHEMA, table

OPTIMISED = True  # as the workers' programs are
KEYS = 12
FEATURES = ["before", "sine", "cosine"]
JOB = Job(MODEL, key="meter", time="time", features=FEATURES, target="load", buckets=2)
OTHER = Job(FastAGP(inducing=7, window=48), key="meter", time="time", features=FEATURES, target="load", buckets=2)


class Folder:
    """Files as they land, and what a stream makes of them."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path = spark, path
        self.count = 0

    def land(self, *tables: pd.DataFrame) -> None:
        (self.path / "in").mkdir(exist_ok=True)
        pd.concat(tables).to_parquet(self.path / "in" / f"{self.count:03d}.parquet", coerce_timestamps="us")
        self.count += 1

    def stream(self, job: Job = JOB, **options) -> pd.DataFrame:
        """Go on through the files that are there, and return all predictions so far."""
        rows = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.path / "in"))
        writer = predict_stream(rows, job, **options).writeStream.option("checkpointLocation", self.checkpoint)
        writer.trigger(availableNow=True).start(str(self.path / "out")).awaitTermination()
        return in_order(self.spark.read.parquet(str(self.path / "out")).toPandas())

    @property
    def checkpoint(self) -> str:
        return str(self.path / "checkpoint")

    def states(self) -> list:
        return states_of(self.spark, self.checkpoint).orderBy("bucket").collect()


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    return Folder(spark, tmp_path)


def hours(*some: int) -> list[pd.DataFrame]:
    return [table(hour, KEYS) for hour in some]


def in_order(predictions: pd.DataFrame) -> pd.DataFrame:
    return predictions.sort_values(["time", "meter", "flags"]).reset_index(drop=True)


def static(spark: SparkSession, *tables: pd.DataFrame):
    return spark.createDataFrame(pd.concat(tables), SCHEMA)


def test_a_stream_starts_from_the_states_of_a_backfill(spark, folder, tmp_path):
    whole = in_order(backfill(static(spark, *hours(0, 1, 2, 3, 4)), JOB).predictions.toPandas())
    backfill(static(spark, *hours(0, 1, 2)), JOB).states.write.parquet(str(tmp_path / "states"))
    states = spark.read.parquet(str(tmp_path / "states"))
    for each in hours(3, 4):
        folder.land(each)
    np.testing.assert_array_equal(folder.stream(states=states)["mean"], whole["mean"].tail(2 * KEYS))
    further = in_order(backfill(static(spark, *hours(3, 4)), JOB, states=states).predictions.toPandas())
    np.testing.assert_array_equal(further["mean"], whole["mean"].tail(2 * KEYS))
    with pytest.raises(ValueError, match=r"states: column 'fleet' of bucket .*model.inducing is 8 there and 7 here"):
        predict_stream(spark.readStream.schema(SCHEMA).parquet(str(tmp_path)), OTHER, states=states)
    with pytest.raises(ValueError, match=r"states: .* no column 'fleet'"):
        backfill(static(spark, *hours(3)), JOB, states=states.drop("fleet"))


def test_late_rows_are_predicted_flagged_and_not_learnt_from(folder, spark):
    folder.land(*hours(1, 2))
    folder.land(*hours(0, 3))
    predictions = folder.stream()
    late = predictions["time"] == predictions["time"].min()
    assert ((predictions["flags"] == "late") == late).all()
    assert predictions["mean"].notna().all()
    on_time = backfill(static(spark, *hours(1, 2, 3)), JOB)
    np.testing.assert_array_equal(predictions["mean"][~late], in_order(on_time.predictions.toPandas())["mean"])
    for mine, other in zip(folder.states(), on_time.states.orderBy("bucket").collect(), strict=True):
        one, two = (Fleet.from_bytes(bytes(row["fleet"]), MODEL) for row in (mine, other))
        assert all(one.state(key).record.tobytes() == two.state(key).record.tobytes() for key in two.keys)


def test_a_stream_that_waits_puts_rows_in_order_however_they_arrive(folder, spark):
    for hour in (1, 0, 3, 2, 5, 4, 9):
        folder.land(*hours(hour))
    predictions = folder.stream(wait="2 hours")
    expected = in_order(backfill(static(spark, *hours(0, 1, 2, 3, 4, 5)), JOB).predictions.toPandas())
    pd.testing.assert_frame_equal(predictions, expected)  # the last file is held back until newer rows come


def test_another_model_is_refused_and_the_checkpoint_still_serves_its_own(folder):
    folder.land(*hours(0))
    folder.stream()
    before = folder.states()
    folder.land(*hours(1))
    with pytest.raises(StreamingQueryException, match=r"bucket [01] .*model.inducing is 8 there and 7 here"):
        folder.stream(OTHER)
    assert folder.states() == before
    assert len(folder.stream()) == 2 * KEYS


def test_a_null_key_fails_with_the_name_of_its_column_before_any_state_changes(folder):
    folder.land(*hours(0))
    folder.stream()
    before = folder.states()
    folder.land(*hours(1), *(each.head(1).assign(meter=None) for each in hours(1)))
    with pytest.raises(StreamingQueryException, match="key: column 'meter' has a null"):
        folder.stream()
    assert folder.states() == before


def test_keys_and_times_come_back_as_they_were(spark):
    rows = static(spark, *hours(0, 1)).selectExpr(
        "CAST(right(meter, 5) AS INT) AS `the meter`",
        "CAST(time AS TIMESTAMP_NTZ) AS `at.time`",
        "CAST(before AS DECIMAL(10, 4)) AS before",
        "load > 1 AS high",
        "IF(meter LIKE '%3', NULL, load) AS load",
    )
    job = Job(MODEL, key="the meter", time="at.time", features=["before", "high"], target="load", buckets=2)
    found = backfill(rows, job).predictions
    assert found.columns == ["the meter", "at.time", "load", "mean", "low", "high", "flags"]
    assert found.schema["the meter"].dataType == rows.schema["the meter"].dataType
    assert found.schema["at.time"].dataType == rows.schema["at.time"].dataType
    keys = ["the meter", "`at.time`"]
    found_rows, given_rows = (each.select(*keys, "load").orderBy(*keys).collect() for each in (found, rows))
    assert found_rows == given_rows
    assert found.where("(flags = 'missing') = (load IS NOT NULL)").count() == 0


def test_the_default_has_text_gaps_lags_and_calendar_as_a_fleet_has_them(spark):
    table = pd.concat(hours(*range(30)), ignore_index=True)
    table["sky"] = np.where(table.index % 7 == 3, None, np.where(table.index % 5 < 2, "clear", "rain"))
    table.loc[table.index % 11 == 4, "before"] = np.nan
    table = table.drop(columns=["sine", "cosine"])
    settings = {"key": "meter", "time": "time", "features": ["before", "sky"], "target": "load", "lags": [1, 24],
                "calendar": "day", "effort": "low"}  # fmt: skip
    schema = "meter string, time timestamp, before double, load double, sky string"
    found = backfill(spark.createDataFrame(table, schema), Job(**settings, buckets=2)).predictions.toPandas()
    zone = spark.conf.get("spark.sql.session.timeZone")
    expected = Fleet(**settings).evaluate(table.assign(time=table["time"].dt.tz_convert(zone)))
    found = found.sort_values(["time", "meter"])
    np.testing.assert_array_equal(found["mean"], expected.mean)
    np.testing.assert_array_equal(found["flags"], expected.to_frame()["flags"])


COLUMNS = {"key": "meter", "time": "time", "features": FEATURES, "target": "load"}


@pytest.mark.parametrize(
    ("change", "query", "message"),
    [
        ({"key": "metre"}, "*", "key: the DataFrame has no column 'metre'; it has meter, time"),
        ({"features": ["before", "wind"]}, "*", "features: the DataFrame has no column 'wind'"),
        ({}, "*, load", "target: the DataFrame has more than one column 'load'"),
        ({}, "* EXCEPT (load), CAST(load AS STRING) AS load", "target: column 'load' must hold numbers; it is string"),
        (
            {},
            "* EXCEPT (sine), array(sine) AS sine",
            "features: column 'sine' must hold numbers, booleans or strings; it is array",
        ),
        ({}, "* EXCEPT (meter), 0.5D AS meter", "key: column 'meter' must hold strings or whole numbers; it is double"),
        ({}, "* EXCEPT (time), CAST(time AS STRING) AS time", "time: column 'time' must hold timestamps or whole"),
        ({"key": "mean"}, "*, meter AS mean", "'mean' has the name of a column to be added"),
    ],
)
def test_refuses_columns_that_do_not_fit_and_names_them(spark, change, query, message):
    spark.createDataFrame([], SCHEMA).createOrReplaceTempView("given")
    rows = spark.sql(f"SELECT {query} FROM given")
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace("*", r"\*")):
        backfill(rows, Job(MODEL, **COLUMNS | change))


def test_refuses_a_stream_for_a_backfill_and_the_reverse(spark, tmp_path):
    with pytest.raises(ValueError, match="must be a streaming DataFrame"):
        predict_stream(spark.createDataFrame([], SCHEMA), JOB)
    with pytest.raises(ValueError, match="must be a static DataFrame"):
        backfill(spark.readStream.schema(SCHEMA).parquet(str(tmp_path)), JOB)
