"""A fleet on a static DataFrame: predictions of the past, and the states that a stream can start from."""

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd
from pyspark import StorageLevel
from pyspark.sql import DataFrame, functions

from driftgp.spark import schema
from driftgp.spark.bucket import Bucket, Kept, StoredBucket
from driftgp.spark.job import Job


class Backfill(NamedTuple):
    """The result of a backfill, computed in one pass and kept on the executors' disks until `release`."""

    predictions: DataFrame
    states: DataFrame  # bucket, job, fleet: one row per bucket, to be kept as Parquet
    computed: DataFrame

    def release(self) -> None:
        """Free the results on the disks."""
        self.computed.unpersist()


def backfill(frame: DataFrame, job: Job, *, states: DataFrame | None = None) -> Backfill:
    """Predict every row of a static DataFrame before learning from it, in the order of time, each by its key's model.

    The predictions are those of `predict_stream`, and none is late. Spark sorts the rows of a bucket and hands them
    over piece by piece, so that they need not fit into memory; the bucket's states must.

    Args:
        frame: a static DataFrame.
        job: model and columns.
        states: those of an earlier backfill or of a stream, to go on from; a row older than its key's last one is late.
    """
    job = schema.checked(frame, job)
    if frame.isStreaming:
        raise ValueError("frame must be a static DataFrame, from spark.read; for a streaming one use predict_stream")
    rows = schema.prepared(frame, job).selectExpr("*", "null AS job", "null AS fleet")
    if states is not None:
        rows = rows.unionByName(_as_rows(checked_states(states, job)), allowMissingColumns=True)
    tasks = min(job.buckets, int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))  # never merged into few
    in_order = rows.repartition(tasks, "bucket").sortWithinPartitions(
        "bucket", functions.isnull("fleet"), "time", "key", "y", *(f"x{i}" for i in range(len(job.inputs or ())))
    )
    answers = f"bucket int, {schema.ANSWERS}, {schema.STATES}"
    computed = in_order.mapInPandas(Worker(job).run, answers).persist(StorageLevel.DISK_ONLY)
    predictions = schema.finished(computed.where("fleet IS NULL"), job, frame)
    return Backfill(predictions, computed.where("fleet IS NOT NULL").select("bucket", *StoredBucket._fields), computed)


def checked_states(states: DataFrame, job: Job) -> DataFrame:
    """Refuse, before anything runs, states that are not those of this job."""
    missing = [name for name in ("bucket", *StoredBucket._fields) if name not in states.columns]
    if missing:
        raise ValueError(f"states: the DataFrame has no column {missing[0]!r}; it must be the states of a backfill")
    states = states.select(functions.col("bucket").cast("int"), *StoredBucket._fields)
    first = states.first()
    if first is not None:
        open_bucket(job, first["bucket"], tuple(first)[1:])
    return states


def open_bucket(job: Job, number: int, stored: tuple[str, bytes] | None, kept: Kept | None = None) -> Bucket:
    """Open a bucket from what Spark has kept of it; a refusal says which one it is."""
    given = None if stored is None else StoredBucket(stored[0], bytes(stored[1]))
    try:
        return Bucket.open(job, given) if kept is None else kept.open(job, number, given)
    except ValueError as error:
        raise ValueError(f"states: column 'fleet' of bucket {number} cannot be used: {error}") from error


def _as_rows(states: DataFrame) -> DataFrame:
    """States between the rows; what a row has and a state has not must not be null, or whole numbers become floats."""
    return states.selectExpr("bucket", "'' AS key", "0L AS time", "0D AS y", *StoredBucket._fields)


class Worker:
    """Takes the sorted rows of a partition through its buckets, one after another."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def run(self, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Answer each piece, and end each bucket with its state; a bucket's rows may be spread over several pieces."""
        number, bucket = -1, None
        for frame in frames:
            for group, rows in frame.groupby("bucket"):
                is_state = rows["fleet"].notna()
                if bucket is None or group != number:
                    yield from _result(number, bucket)
                    stored = rows.loc[is_state, list(StoredBucket._fields)].itertuples(index=False, name=None)
                    number, bucket = int(group), open_bucket(self.job, int(group), next(stored, None))
                if not is_state.all():
                    yield bucket.answers(rows[~is_state]).assign(bucket=number, **dict.fromkeys(StoredBucket._fields))
        yield from _result(number, bucket)


def _result(number: int, bucket: Bucket | None) -> Iterator[pd.DataFrame]:
    if bucket is not None:
        nothing = dict.fromkeys(("key", "time", "y", *schema.ADDED))
        yield pd.DataFrame([{"bucket": number, **nothing, **bucket.stored()._asdict()}])
