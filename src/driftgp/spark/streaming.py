"""A fleet on a stream: Structured Streaming's stateful operator, one state a bucket."""

import io
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import TimestampNTZType, TimestampType

from driftgp.spark import schema
from driftgp.spark.batch import checked_states, open_bucket
from driftgp.spark.bucket import Kept, StoredBucket
from driftgp.spark.job import Job


def predict_stream(
    frame: DataFrame, job: Job, *, states: DataFrame | None = None, wait: str | None = None
) -> DataFrame:
    """Predict every row of a stream, then learn from it, each by the model of its key.

    The answer has the job's key, time and target, `mean`, `low` and `high`, and `flags`. Flags are those of a fleet,
    such as "late", "missing" (no target) and "carried" (an input was blank). It must be written in append mode.

    Within a micro-batch rows are taken in the order of their times. A row that is older than the last one of its key is
    late: it is predicted by the present model, and not learned. With `wait`, rows are held back until the
        watermark has passed them. The watermark follows the newest time at the distance `wait`. The order of rows is
        then exact. The last rows of a stream are held back until newer ones come.

    Args:
        frame: a streaming DataFrame.
        job: model and columns.
        states: what a backfill or another stream of the same job has learned, to start from.
        wait: how long to hold rows back, such as "10 minutes"; None: not at all.
    """
    job = schema.checked(frame, job)
    if not frame.isStreaming:
        raise ValueError("frame must be a streaming DataFrame, from spark.readStream; for a static one use backfill")
    if wait is not None:
        kind = frame.schema[job.time].dataType
        if not isinstance(kind, (TimestampType, TimestampNTZType)):
            raise ValueError(f"wait needs timestamps; the time column {job.time!r} is {kind.simpleString()}")
        frame = frame.withWatermark(job.time, wait)
    answers = (
        schema.prepared(frame, job)
        .groupBy("bucket")
        .transformWithStateInPandas(
            Follower(job) if wait is None else PatientFollower(job),
            schema.ANSWERS,
            "Append",
            "None" if wait is None else "EventTime",
            None if states is None else checked_states(states, job).groupBy("bucket"),
        )
    )
    return schema.finished(answers, job, frame)


def states_of(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> DataFrame:
    """What a stopped stream has learned: the states of its buckets, by the folder of its checkpoint."""
    _ = spark.streams  # before 4.3, Spark starts the service that the reader of states needs only with a stream
    stored = spark.read.format("statestore").option("stateVarName", "bucket").load(os.fspath(checkpoint))
    return stored.select("key.bucket", "value.*")


@lru_cache(maxsize=16)
def kept_by(job: Job) -> Kept:  # noqa: ARG001
    """The buckets of a job in the memory of this worker, shared by all tasks of the job."""
    return Kept()


class Follower(StatefulProcessor):
    """Takes each bucket through the rows of a micro-batch."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: one value a bucket."""
        self.handle = handle
        self.bucket = handle.getValueState("bucket", schema.STATES)

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:  # noqa: ARG002
        """Put a state that the stream starts from into the store, once it has proved to be one of this job."""
        stored = next(initialState[list(StoredBucket._fields)].itertuples(index=False, name=None))
        open_bucket(self.job, key[0], stored)
        self.bucket.update(stored)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002
        """Predict and learn."""
        yield self._followed(key[0], pd.concat(rows))

    def _followed(self, number: int, rows: pd.DataFrame) -> pd.DataFrame:
        kept = kept_by(self.job)
        bucket = open_bucket(self.job, number, self.bucket.get(), kept)
        answers = bucket.answers(rows)
        self.bucket.update(tuple(kept.store(number, bucket)))
        return answers


class PatientFollower(Follower):
    """Holds rows back until the watermark has passed them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the states: that of the models, and the rows held back."""
        super().init(handle)
        self.waiting = handle.getValueState("waiting", "rows binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Predict and learn from what the watermark has passed, and keep the rest."""
        new = pd.concat(rows).drop(columns="bucket", errors="ignore")
        yield from self._released(key[0], pd.concat((*self._held(), new)), timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002
        """Do the same when the watermark has passed the first of the rows held back and none has come."""
        for held in self._held():
            yield from self._released(key[0], held, timerValues.getCurrentWatermarkInMs())

    def _released(self, number: int, rows: pd.DataFrame, watermark: int) -> Iterator[pd.DataFrame]:
        milliseconds = rows["time"] // 1000
        passed = milliseconds <= watermark
        self._hold(rows[~passed])
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        if not passed.all():
            self.handle.registerTimer(int(milliseconds[~passed].min()))
        if passed.any():
            yield self._followed(number, rows[passed])

    def _held(self) -> list[pd.DataFrame]:
        """The rows held back, as one frame, which may be empty."""
        stored = self.waiting.get()
        if stored is None:
            return []
        with pa.ipc.open_stream(bytes(stored[0])) as reader:
            return [reader.read_pandas()]

    def _hold(self, rows: pd.DataFrame) -> None:
        if rows.empty:
            self.waiting.clear()
            return
        table = pa.Table.from_pandas(rows, preserve_index=False)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        self.waiting.update((sink.getvalue(),))
