"""Fleets on Spark: one model a key for streams and backfills that outgrow one machine.

A `Job` says which model learns from which columns. `predict_stream` takes a streaming DataFrame, `backfill` a static
one; both give mean, interval and flags, and a stream can start from what a backfill has learned.
"""

from driftgp.spark.needs import need_pyspark

need_pyspark()

from driftgp.spark.batch import Backfill, backfill  # noqa: E402
from driftgp.spark.job import Job  # noqa: E402
from driftgp.spark.session import session, settings  # noqa: E402
from driftgp.spark.streaming import predict_stream, states_of  # noqa: E402

__all__ = ["Backfill", "Job", "backfill", "predict_stream", "session", "settings", "states_of"]
