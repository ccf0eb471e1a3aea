"""A job that predicts the load of many meters from Parquet files as they land in a folder.

    python examples/spark_stream.py                    # makes a day of data, a file an hour, and predicts it
    python examples/spark_stream.py DIR --files 0      # predicts what is in DIR/incoming, and goes on from where it was

In the folder: `incoming` (one file an hour, a row a meter), `predictions` (read it with Spark: what a job that was
killed left behind is not counted), `checkpoint` (what has been read and learned) and `start.fleet` (a shared warm-up,
from which each meter starts). A job that was killed, at whatever moment, goes on when it is started again; no
prediction is lost or made twice.
"""

import argparse
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from driftgp import FastAGP
from driftgp.spark import Job, predict_stream, session

SCHEMA = "meter string, time timestamp, before double, sine double, cosine double, load double"
FEATURES = ["before", "sine", "cosine"]
MODEL = FastAGP(inducing=8, window=48)
BUCKETS = 8


# ---- data: a meter's load in units of its usual one, with a daily cycle of its own


def loads(hour: int, meters: int) -> np.ndarray:
    """Load of each meter in an hour."""
    phase = np.random.default_rng(0).uniform(0, 2 * np.pi, meters)
    noise = np.random.default_rng([1, hour + 1]).normal(size=meters)
    return 1 + 0.5 * np.sin(2 * np.pi * hour / 24 + phase) + 0.1 * noise


def table(hour: int, meters: int) -> pd.DataFrame:
    """One file: the load of each meter in an hour, and what it is predicted from."""
    moment = pd.Timestamp("2026-01-01", tz="UTC").as_unit("us") + pd.Timedelta(hours=hour)
    return pd.DataFrame(
        {
            "meter": [f"meter-{meter:05d}" for meter in range(meters)],
            "time": pd.Series([moment] * meters),
            "before": loads(hour - 1, meters),
            "sine": np.sin(2 * np.pi * hour / 24),
            "cosine": np.cos(2 * np.pi * hour / 24),
            "load": loads(hour, meters),
        }
    )


def write_files(folder: Path, files: int, meters: int, seconds: float = 0.0) -> None:
    """Write the next files, each in one step, so that none is read before it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    first = len(list(folder.glob("*.parquet")))
    for hour in range(first, first + files):
        part = folder / f".{hour:06d}.part"
        table(hour, meters).to_parquet(part, coerce_timestamps="us")
        part.replace(folder / f"{hour:06d}.parquet")
        time.sleep(seconds)


# ---- the job


def make_job(folder: Path) -> Job:
    """The job, with the shared warm-up that is in the folder, or one on the first rows there."""
    path = folder / "start.fleet"
    job = Job(MODEL, key="meter", time="time", features=FEATURES, target="load", buckets=BUCKETS)
    if not path.exists():
        fleet = job.fleet()
        fleet.warm(pd.read_parquet(min((folder / "incoming").glob("*.parquet"))).head(100))
        fleet.save(path)
    return job.changed(start=path.read_bytes())


def start_query(spark: SparkSession, folder: Path, *, once: bool) -> StreamingQuery:
    """Read, predict, write: for ever, or until all that is there is read."""
    rows: DataFrame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "incoming"))
    writer = (
        predict_stream(rows, make_job(folder))
        .writeStream.format("parquet")
        .option("path", str(folder / "predictions"))
        .option("checkpointLocation", str(folder / "checkpoint"))
    )
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="1 second")).start()


def summary(spark: SparkSession, folder: Path) -> str:
    """How good the predictions are."""
    found = spark.read.parquet(str(folder / "predictions")).selectExpr(
        "count(*)", "avg(abs(load - mean))", "avg(CAST(load BETWEEN low AND high AS DOUBLE))"
    )
    rows, error, coverage = found.first() or (0, np.nan, np.nan)
    return f"{rows} predictions, mean absolute error {error:.3f}, {coverage:.1%} of the targets in their 95 % interval"


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("spark-demo"))
    parser.add_argument("--files", type=int, default=24, help="files to make, one a second (default 24)")
    parser.add_argument("--meters", type=int, default=200, help="meters in a file that is made (default 200)")
    parser.add_argument("--cores", type=int, default=2, help="cores to use (default 2)")
    parser.add_argument("--forever", action="store_true", help="go on waiting for files")
    options = parser.parse_args()
    incoming = options.folder / "incoming"
    write_files(incoming, min(options.files, 1), options.meters)  # a first one to warm up on
    rest = threading.Thread(target=write_files, args=(incoming, options.files - 1, options.meters, 1.0), daemon=True)
    spark = session("driftgp example", cores=options.cores)
    spark.sparkContext.setLogLevel("ERROR")
    rest.start()
    query = start_query(spark, options.folder, once=options.files == 0 and not options.forever)
    print("started", flush=True)
    if options.files and not options.forever:
        rest.join()
        query.processAllAvailable()
        query.stop()
    query.awaitTermination()
    print(summary(spark, options.folder))
    spark.stop()


if __name__ == "__main__":
    main()
